"""What is planted: secrets of 25 kinds, as their issuers make them, in 8 encodings; and a search that knows nothing of ours.

A `Plant` has `text`, what stands in a session (a connection string, a header), and `cores`, the parts that must never
be in a bundle. `spelled(core)` are all the byte strings that would give a core away.
"""

from __future__ import annotations

import base64
import gzip
import html
import json
import random
import re
import string
import zlib
from dataclasses import asdict, dataclass
from urllib.parse import quote, unquote_to_bytes

import numpy as np

LETTERS = string.ascii_letters + string.digits
HEX = "0123456789abcdef"
BASE32 = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
BASE62 = string.digits + string.ascii_uppercase + string.ascii_lowercase


@dataclass
class Plant:
    kind: str
    encoding: str
    place: str
    text: str
    cores: list[str]

    @property
    def told(self) -> str:
        """The text as it is planted."""
        return ENCODINGS[self.encoding](self.text)

    def row(self, **more: object) -> dict[str, object]:
        return {**asdict(self), "told": self.told, **more}


def drawn(rng: random.Random, letters: str, count: int) -> str:
    return "".join(rng.choices(letters, k=count))


def checked(rng: random.Random, prefix: str) -> str:
    """Thirty letters and their checksum."""
    body, left, tail = drawn(rng, LETTERS, 30), 0, ""
    left = zlib.crc32(body.encode())
    while left:
        left, digit = divmod(left, 62)
        tail = BASE62[digit] + tail
    return prefix + body + tail.rjust(6, "0")


def b64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def pem(rng: random.Random) -> tuple[str, list[str]]:
    body = base64.b64encode(rng.randbytes(400)).decode()
    lines = [body[i : i + 64] for i in range(0, len(body), 64)]
    return "-----BEGIN PRIVATE KEY-----\n" + "\n".join(lines) + "\n-----END PRIVATE KEY-----\n", [
        n for n in lines if len(n) > 40
    ]


def account(rng: random.Random) -> tuple[str, list[str]]:
    key, cores = pem(rng)
    told = {
        "type": "service_account",
        "project_id": "churn-1",
        "private_key_id": drawn(rng, HEX, 40),
        "private_key": key,
    }
    return json.dumps(told), cores


def jwt(rng: random.Random) -> tuple[str, list[str]]:
    head, body = (
        {"alg": "HS256", "typ": "JWT"},
        {"sub": drawn(rng, string.digits, 10), "iat": 1767225600},
    )
    parts = [b64url(json.dumps(part, separators=(",", ":")).encode()) for part in (head, body)]
    sign = b64url(rng.randbytes(32))
    return ".".join([*parts, sign]), [sign]


def discord(rng: random.Random) -> str:
    return f"{b64url(('1' + drawn(rng, string.digits, 17)).encode())}.{drawn(rng, LETTERS, 6)}.{drawn(rng, LETTERS + '-_', 38)}"


def around(form: str, core: str) -> tuple[str, list[str]]:
    return form.replace("CORE", core), [core]


KINDS = {
    "anthropic": lambda r: f"sk-ant-api03-{drawn(r, LETTERS + '-_', 93)}AA",
    "openai": lambda r: f"sk-proj-{drawn(r, LETTERS, 74)}T3BlbkFJ{drawn(r, LETTERS, 74)}",
    "google": lambda r: f"AIzaSy{drawn(r, LETTERS + '-_', 33)}",
    "aws id": lambda r: f"AKIA{drawn(r, BASE32, 16)}",
    "aws secret": lambda r: around("aws_secret_access_key = CORE", drawn(r, LETTERS + "/+", 38) + "7a"),
    "github": lambda r: checked(r, "ghp_"),
    "github app": lambda r: checked(r, "ghs_"),
    "github fine-grained": lambda r: f"github_pat_11{drawn(r, LETTERS, 20)}_{drawn(r, LETTERS, 59)}",
    "gitlab": lambda r: f"glpat-{drawn(r, LETTERS + '-_', 19)}x",
    "slack bot": lambda r: f"xoxb-{drawn(r, string.digits[1:], 12)}-{drawn(r, string.digits[1:], 12)}-{drawn(r, LETTERS, 24)}",
    "slack webhook": lambda r: around("https://hooks.slack.com/services/T0ABCDEFG/B0HIJKLMN/CORE", drawn(r, LETTERS, 24)),
    "stripe": lambda r: f"sk_live_{drawn(r, LETTERS, 24)}",
    "twilio": lambda r: f"SK{drawn(r, HEX, 32)}",
    "sendgrid": lambda r: f"SG.{drawn(r, LETTERS + '-_', 22)}.{drawn(r, LETTERS + '-_', 43)}",
    "hugging face": lambda r: f"hf_{drawn(r, string.ascii_letters, 34)}",
    "npm": lambda r: checked(r, "npm_"),
    "pypi": lambda r: f"pypi-AgEIcHlwaS5vcmc{b64url(r.randbytes(60))}",
    "jwt": jwt,
    "private key": pem,
    "azure": lambda r: around(
        "DefaultEndpointsProtocol=https;AccountName=churn;AccountKey=CORE;EndpointSuffix=core.windows.net",
        base64.b64encode(r.randbytes(64)).decode(),
    ),
    "gcp account": account,
    "database url": lambda r: around("postgresql://app:CORE@db.internal:5432/churn", drawn(r, LETTERS, 16)),
    "basic auth url": lambda r: around("https://deploy:CORE@artifacts.acme.dev/simple", drawn(r, LETTERS, 20)),
    "bearer": lambda r: around("Authorization: Bearer CORE", drawn(r, LETTERS, 39) + "7"),
    "telegram": lambda r: f"{drawn(r, string.digits[1:], 10)}:AA{drawn(r, LETTERS + '-_', 33)}",
}  # fmt: skip
MORE = {
    "discord": discord,
    "mailgun": lambda r: f"key-{drawn(r, HEX, 32)}",
    "digitalocean": lambda r: f"dop_v1_{drawn(r, HEX, 64)}",
    "databricks": lambda r: f"dapi{drawn(r, HEX, 32)}",
    "groq": lambda r: f"gsk_{drawn(r, LETTERS, 52)}",
    "github oauth": lambda r: checked(r, "gho_"),
}
"""Kinds that are looked for besides; the tests plant them too."""


def made(kind: str, rng: random.Random) -> tuple[str, list[str]]:
    found = {**KINDS, **MORE}[kind](rng)
    return (found, [found]) if isinstance(found, str) else found


ENCODINGS = {
    "plain": str,
    "base64": lambda s: base64.b64encode(s.encode()).decode(),
    "base64url": lambda s: b64url(b"? " + s.encode()),
    "hex": lambda s: s.encode().hex(),
    "url": lambda s: "".join(f"%{octet:02X}" for octet in s.encode()),
    "json": lambda s: "".join(f"\\u{ord(c):04x}" for c in s),
    "html": lambda s: "".join(f"&#{ord(c)};" for c in s),
    "gzip": lambda s: base64.b64encode(gzip.compress(s.encode(), mtime=0)).decode(),
}


# ---------------------------------------------------------------- the search


def spelled(core: str) -> set[bytes]:
    """The core as it may stand in bytes; base64 wherever it begins in what was encoded."""
    ways = {json.dumps(core)[1:-1], quote(core), core[::-1]}
    for form in {core, quote(core, safe="")}:
        data = form.encode()
        ways |= {
            form,
            data.hex(),
            data.hex().upper(),
            ENCODINGS["url"](form),
            ENCODINGS["url"](form).lower(),
        }
        ways |= {
            ENCODINGS["json"](form),
            ENCODINGS["json"](form).replace("\\", "\\\\"),
            ENCODINGS["html"](form),
        }
        for shift in range(3):
            inner = base64.b64encode(b"\0" * shift + data).decode()[
                -(-shift * 8 // 6) : (shift + len(data)) * 8 // 6
            ]
            ways |= {inner, inner.replace("+", "-").replace("/", "_")}
    return {way.encode() for way in ways} | {core.encode("utf-16-le"), core.encode("utf-16-be")}


class Search:
    """Many cores, looked for in much data: by the eight bytes that each spelling begins with, then whole."""

    def __init__(self, plants: list[Plant]) -> None:
        self.ways: dict[int, set[tuple[bytes, str]]] = {}
        for plant in plants:
            for core in plant.cores:
                for way in spelled(core):
                    self.ways.setdefault(int.from_bytes(way[:8], "little"), set()).add((way, core))
        self.leads = np.array(sorted(self.ways), dtype="<u8")

    def found(self, data: bytes) -> set[str]:
        """The cores that stand in the data, in any spelling."""
        leads: set[int] = set()
        for start in range(min(8, max(0, len(data) - 7))):
            words = np.frombuffer(data, dtype="<u8", offset=start, count=(len(data) - start) // 8)
            at = np.searchsorted(self.leads, words)
            leads.update(words[self.leads[np.minimum(at, len(self.leads) - 1)] == words].tolist())
        return {core for lead in leads for way, core in self.ways[lead] if way in data}


def opened(data: bytes) -> list[bytes]:
    """The data, and what is packed in it: in base64, gzip, zlib; texts that lines of base64 break."""
    texts, todo = [data], [data]
    for _ in range(3):
        todo = [inner for each in todo for inner in _inside(each)]
        texts += todo
    return texts


_LETTERS = re.compile(rb"[A-Za-z0-9+/=_-]{16,}")


def _inside(data: bytes) -> list[bytes]:
    found = []
    for text in (data, data.replace(b"\n", b"").replace(b" ", b"").replace(b"\\n", b"")):
        for letters in _LETTERS.findall(text):
            plain = letters.replace(b"-", b"+").replace(b"_", b"/")
            for part in (
                *plain.split(b"="),
                *plain[max(0, plain.find(b"H4sI")) :].split(b"="),
            ):  # behind a path
                found += _unpacked(
                    base64.b64decode(part[: len(part) - (len(part) % 4 == 1)] + b"==")
                )
    return [*found, *_unpacked(data), *_read_on(data)]


def _read_on(data: bytes) -> list[bytes]:
    """The data with the escapes of URLs, JSON and HTML taken off."""
    found = []
    if b"%" in data:
        found.append(unquote_to_bytes(data))
    if b"\\u00" in data:
        found.append(re.sub(rb"\\+u00([0-9a-f]{2})", lambda hit: bytes([int(hit[1], 16)]), data))
    if b"&#" in data:
        found.append(html.unescape(data.decode("utf-8", "replace")).encode())
    return [text for text in found if text != data]


def _unpacked(raw: bytes) -> list[bytes]:
    for wbits, magic in ((31, b"\x1f\x8b"), (15, b"\x78")):
        if raw.startswith(magic):
            try:
                return [zlib.decompressobj(wbits).decompress(raw)]
            except zlib.error:
                pass
    return []
