"""A package index on loopback, as pip and uv ask one (PEP 691), with small wheels made here.

    with IndexServer([wheel_of("amber", "1.0")]) as index:
        pip install --index-url index.url amber

`login=("ada", "pw")` refuses whoever does not say so; `html=True` answers as old indexes do (PEP 503).
"""

from __future__ import annotations

import base64
import hashlib
import json
import threading
from collections.abc import Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tape_jupyter.bundle.environment import build_backend

Wheel = tuple[str, bytes]


def wheel_of(
    name: str,
    version: str,
    needs: Sequence[str] = (),
    files: Mapping[str, str] | None = None,
    tag: str = "py3-none-any",
) -> Wheel:
    """A wheel with one module that knows its version, and what else is given."""
    about = f"{name.replace('-', '_')}-{version}.dist-info"
    metadata = "".join(
        [
            f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
            *(f"Requires-Dist: {n}\n" for n in needs),
        ]
    )
    own = (
        files if files is not None else {f"{name.replace('-', '_')}.py": f"VERSION = {version!r}\n"}
    )
    return build_backend.pack_wheel(
        {
            **{inside: text.encode() for inside, text in own.items()},
            f"{about}/METADATA": metadata.encode(),
            f"{about}/WHEEL": f"Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: {tag}\n".encode(),
        }
    )


class IndexServer:
    """`url` is its address; `asked` the paths that were asked for, in order."""

    def __init__(
        self,
        wheels: Sequence[Wheel],
        login: tuple[str, str] | None = None,
        html: bool = False,
        yanked: Mapping[str, str] | None = None,
    ) -> None:
        self.files = dict(wheels)
        self.asked: list[str] = []
        self.login, self.html, self.yanked = login, html, yanked or {}
        index = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                index._answer(self)

            do_HEAD = do_GET

            def log_message(self, *_: Any) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self._server.server_address[1]}"

    @property
    def url(self) -> str:
        return f"http://{self.host}/simple"

    @property
    def url_with_login(self) -> str:
        user, password = self.login or ("", "")
        return f"http://{user}:{password}@{self.host}/simple"

    def sha256(self, name: str) -> str:
        return hashlib.sha256(self.files[name]).hexdigest()

    def _answer(self, handler: BaseHTTPRequestHandler) -> None:
        self.asked.append(handler.path)
        if self.login is not None:
            wanted = "Basic " + base64.b64encode(":".join(self.login).encode()).decode()
            if handler.headers.get("Authorization") != wanted:
                self._send(handler, 401, b"", {"WWW-Authenticate": 'Basic realm="index"'})
                return
        kind, _, rest = handler.path.strip("/").partition("/")
        if kind == "files" and rest in self.files:
            self._send(handler, 200, self.files[rest], {"Content-Type": "application/octet-stream"})
        elif kind == "simple" and (listed := [n for n in self.files if _project(n) == rest]):
            self._list(handler, rest, listed)
        else:
            self._send(handler, 404, b"", {})

    def _list(self, handler: BaseHTTPRequestHandler, project: str, listed: list[str]) -> None:
        if self.html:
            links = "".join(
                f'<a href="/files/{n}#sha256={self.sha256(n)}">{n}</a><br>' for n in listed
            )
            self._send(
                handler,
                200,
                f"<!DOCTYPE html><html>{links}</html>".encode(),
                {"Content-Type": "text/html"},
            )
            return
        files = [
            {
                "filename": n, "url": f"/files/{n}", "hashes": {"sha256": self.sha256(n)}, "size": len(self.files[n]),
                "yanked": self.yanked.get(n, False),
            }
            for n in listed
        ]  # fmt: skip
        body = json.dumps(
            {"meta": {"api-version": "1.1"}, "name": project, "files": files}
        ).encode()
        self._send(handler, 200, body, {"Content-Type": "application/vnd.pypi.simple.v1+json"})

    def _send(
        self, handler: BaseHTTPRequestHandler, status: int, body: bytes, headers: Mapping[str, str]
    ) -> None:
        handler.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            handler.send_header(name, value)
        handler.end_headers()
        if handler.command != "HEAD":
            handler.wfile.write(body)

    def __enter__(self) -> IndexServer:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


def _project(file: str) -> str:
    return file.split("-")[0].replace("_", "-").lower()


class Carried:
    """What a bundle gives of its environment, without the rest of a bundle: `files` as environment.lock gives them."""

    def __init__(self, files: Mapping[str, Any]) -> None:
        self.files = {
            name: data if isinstance(data, bytes) else data.read_bytes()
            for name, data in files.items()
        }

    def read(self, name: str) -> bytes:
        return self.files[name]

    def names(self, role: str | None = None) -> list[str]:
        return sorted(
            name for name in self.files if role is None or name.startswith(f"environment/{role}s/")
        )
