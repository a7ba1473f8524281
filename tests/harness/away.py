"""An internet of one machine, for notebooks that others wrote and nobody changes: whatever host they ask, one provider
on loopback answers, over TLS too. So an SDK's own address is what is recorded, also where a notebook spells it out.

    python tests/harness/away.py --provider FAKE_PROVIDER.py --ca CA.pem -- COMMAND ...

It is started by `command(...)` in namespaces of its own (`unshare -rnm`): there `lo` is all the network there is, every
name resolves to 127.0.0.1, and ports 80, 443 and 11434 (Ollama's) are the provider's. The command's exit code is its own.
"""

from __future__ import annotations

import argparse
import os
import shutil
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PORTS = {80: False, 443: True, 11434: False}
"""Where the provider answers, and whether over TLS."""


def possible() -> bool:
    """Whether this machine gives us namespaces with a network and mounts of their own."""
    if sys.platform != "linux" or shutil.which("unshare") is None:
        return False
    asked = ["unshare", "-rnm", "sh", "-c", "mount --bind /etc/hosts /etc/resolv.conf"]
    return subprocess.run(asked, capture_output=True, check=False).returncode == 0


def command(provider: Path, ca: Path, words: list[str]) -> list[str]:
    """The words that run `words` there. `ca` is written: what clients must trust (`variables`)."""
    own = [
        sys.executable,
        str(Path(__file__).resolve()),
        "--provider",
        str(provider),
        "--ca",
        str(ca),
        "--",
        *words,
    ]
    return ["unshare", "-rnm", *own]


def variables(ca: Path) -> dict[str, str]:
    """What makes clients trust the certificates of that internet."""
    names = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "AWS_CA_BUNDLE", "PIP_CERT")
    return dict.fromkeys(names, str(ca))


def names_answered() -> None:
    """Answer every question for a name with 127.0.0.1 (and none for IPv6), on UDP and port 53, in a thread."""
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind(("127.0.0.1", 53))

    def answer() -> None:
        while True:
            asked, who = server.recvfrom(4096)
            end = asked.find(b"\0", 12) + 5
            question, kind = asked[12:end], struct.unpack("!H", asked[end - 4 : end - 2])[0]
            told = (
                b"\xc0\x0c" + struct.pack("!HHIH", 1, 1, 60, 4) + b"\x7f\0\0\1"
                if kind == 1
                else b""
            )
            head = asked[:2] + struct.pack("!HHHHH", 0x8180, 1, 1 if told else 0, 0, 0)
            server.sendto(head + question + told, who)

    threading.Thread(target=answer, daemon=True).start()
    with tempfile.NamedTemporaryFile("w", suffix=".conf", delete=False) as file:
        file.write("nameserver 127.0.0.1\n")
    with tempfile.NamedTemporaryFile("w", suffix=".conf", delete=False) as switch:
        switch.write("hosts: files dns\n")
    for mine, theirs in ((file.name, "/etc/resolv.conf"), (switch.name, "/etc/nsswitch.conf")):
        Path(mine).chmod(0o644)
        if Path(theirs).exists():
            subprocess.run(["mount", "--bind", mine, os.path.realpath(theirs)], check=True)


def any_certificate(ca_file: Path) -> ssl.SSLContext:
    """A context that has a certificate for whatever host is asked for, made when it is."""
    import trustme

    ca, known, lock = trustme.CA(), {}, threading.Lock()
    usual = ssl.get_default_verify_paths().cafile
    ca_file.write_bytes((Path(usual).read_bytes() if usual else b"") + b"\n" + ca.cert_pem.bytes())

    def context_for(host: str) -> ssl.SSLContext:
        with lock:
            if host not in known:
                known[host] = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
                ca.issue_cert(host).configure_cert(known[host])
            return known[host]

    first = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ca.issue_cert("localhost").configure_cert(first)

    def chosen(sock: ssl.SSLObject, host: str | None, _first: ssl.SSLContext) -> None:
        if host:
            sock.context = context_for(host)

    first.sni_callback = chosen
    return first


def provider_answers(path: Path, ca_file: Path) -> None:
    """The stand-in provider on PORTS, in threads."""
    sys.path.insert(0, str(path.parent))
    module = __import__(path.stem)
    context = any_certificate(ca_file)
    for port, secured in PORTS.items():
        server = module.serve(["--port", str(port)])
        if secured:
            server.socket = context.wrap_socket(
                server.socket, server_side=True, do_handshake_on_connect=False
            )
        server.handle_error = lambda *_: None  # a client that went away
        threading.Thread(target=server.serve_forever, daemon=True).start()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--provider", type=Path, required=True)
    parser.add_argument("--ca", type=Path, required=True)
    parser.add_argument("words", nargs="+")
    options = parser.parse_args()
    sys.path.insert(0, str(ROOT))
    from tape_jupyter.isolation.namespaces import loopback_up

    loopback_up()
    names_answered()
    provider_answers(options.provider, options.ca)
    return subprocess.run(options.words, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
