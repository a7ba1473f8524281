"""A program that downloads and uploads a large body, run by tests/unit/core/test_large_body.py in a process of its own.

    python large_program.py MODE CASSETTE CLIENT URL SIZE

Prints as JSON what it got, and the most memory that it had, in bytes.
"""

import asyncio
import contextlib
import hashlib
import http.server
import json
import os
import sys
import threading

PIECE = bytes(range(256)) * 1024


def parts(size):
    """The body: a secret stands across the border of two pieces, and at its end."""
    whole, rest = divmod(size, len(PIECE))
    key = os.environ.get("OPENAI_API_KEY", "").encode()
    first = PIECE[: -len(key) // 2] + key[: len(key) // 2] if key else PIECE
    yield first
    yield key[len(key) // 2 :] + PIECE[len(key) :] if key else PIECE
    for _ in range(whole - 2):
        yield PIECE
    yield PIECE[:rest] + key


class Server(http.server.BaseHTTPRequestHandler):
    """Sends the body of `/SIZE`, and says length and digest of what is sent to it."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_args):
        """Quiet."""

    def do_GET(self):
        if self.path == "/json":
            self.answer(
                json.dumps({"words": ["x" * 1000] * 9000}, separators=(",", ":")).encode(),
                "application/json",
            )
            return
        size = int(self.path.rpartition("/")[2])
        length = sum(map(len, parts(size)))
        self.send_response(200)
        self.send_header("Content-Type", "application/octet-stream")
        self.send_header("Content-Length", str(length))
        self.end_headers()
        for part in parts(size):
            self.wfile.write(part)

    def do_POST(self):
        digest, length = hashlib.sha256(), 0
        for part in self.body():
            digest.update(part)
            length += len(part)
        self.answer(f"{length} {digest.hexdigest()}".encode(), "text/plain")

    def answer(self, said, kind):
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

    def body(self):
        if self.headers.get("Transfer-Encoding") != "chunked":
            yield from self.read(int(self.headers["Content-Length"]))
            return
        while size := int(self.rfile.readline(), 16):
            yield from self.read(size)
            self.rfile.readline()
        self.rfile.readline()

    def read(self, left):
        while left:
            part = self.rfile.read(min(left, 1 << 16))
            left -= len(part)
            yield part


def serve():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def httpx(url, size):
    import httpx

    with httpx.Client(timeout=120) as client:
        with client.stream("GET", f"{url}/{size}") as reply:
            yield from reply.iter_bytes()
        yield client.post(url, content=parts(size)).content


def requests(url, size):
    import requests

    with requests.get(f"{url}/{size}", stream=True, timeout=120) as reply:
        yield from reply.iter_content(1 << 16)
    yield requests.post(url, data=parts(size), timeout=120).content


def urllib3(url, size):
    import urllib3

    pool = urllib3.PoolManager()
    yield from pool.request("GET", f"{url}/{size}", preload_content=False).stream(1 << 16)
    with written(size) as file:
        yield pool.request("POST", url, body=file).data


def urllib(url, size):
    import urllib.request

    with urllib.request.urlopen(f"{url}/{size}") as reply:
        while part := reply.read(1 << 16):
            yield part
    with written(size) as file:
        length = str(os.fstat(file.fileno()).st_size)
        headers = {"Content-Length": length, "Content-Type": "application/octet-stream"}
        with urllib.request.urlopen(
            urllib.request.Request(url, data=file, headers=headers)
        ) as reply:
            yield reply.read()


def aiohttp(url, size):
    import aiohttp

    digest = hashlib.sha256()

    async def sent():
        for part in parts(size):
            yield part

    async def main():
        async with aiohttp.ClientSession() as session:
            async with session.get(f"{url}/{size}") as reply:
                async for part in reply.content.iter_chunked(1 << 16):
                    digest.update(part)
            async with session.post(url, data=sent()) as reply:
                return await reply.read()

    said = asyncio.run(main())
    yield digest.hexdigest().encode()
    yield said


@contextlib.contextmanager
def written(size):
    """The body as a file."""
    path = os.path.join(os.path.dirname(sys.argv[2]), "upload")  # noqa: PTH118, PTH120
    if not os.path.exists(path):  # noqa: PTH110
        with open(path, "wb") as file:  # noqa: PTH123
            file.writelines(parts(size))
    with open(path, "rb") as file:  # noqa: PTH123
        yield file


def most_memory():
    with open("/proc/self/status") as status:  # noqa: PTH123
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))


def main():
    mode, cassette, client, url, size = sys.argv[1:]
    if mode == "untaped":
        taping = contextlib.nullcontext()
    else:
        import tape_jupyter as tape

        taping = {"record": tape.recording, "replay": tape.replaying}[mode](cassette)
    digest, last, got = hashlib.sha256(), b"", 0
    with taping:
        for part in globals()[client](url, int(size)):
            digest.update(part)
            got, last = got + len(part), part
    print(
        json.dumps(
            {"got": got, "digest": digest.hexdigest(), "said": last.decode(), "most": most_memory()}
        )
    )


if __name__ == "__main__":
    main()
