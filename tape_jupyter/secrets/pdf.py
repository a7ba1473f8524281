"""What the streams of a PDF hold, and the texts that they show, as far as they are spelled in letters."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator

from tape_jupyter.secrets.nested_encodings import unpacked

_STREAM = re.compile(rb"stream\r?\n(.*?)\r?\n?endstream", re.DOTALL)
_HEX = re.compile(rb"[0-9A-Fa-f\s]+>?\s*")
_STRING = rb"\([^()\\]*+(?>(?:\\.[^()\\]*+)*)\)|<[0-9A-Fa-f\s]*+>"
_SHOWN = re.compile(
    rb"\[((?>(?:\s*+(?:" + _STRING + rb"|[-+.\d]++))+))\s*+\]|(" + _STRING + rb")", re.DOTALL
)
"""The strings that stand in one list, which are drawn side by side, or one alone."""
_PARTS = re.compile(_STRING, re.DOTALL)
_ESCAPE = re.compile(rb"\\(?:([0-7]{1,3})|(\r?\n)|(.))", re.DOTALL)
_LETTERS = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"b": b"\b", b"f": b"\f"}


def open_pdf(data: bytes) -> list[tuple[str, bytes]]:
    """The file itself, its streams as they are unpacked, and what these show, by a name of each."""
    streams = [each for match in _STREAM.finditer(data) if (each := _unpack_stream(match[1]))]
    shown = [b"\n".join(_yield_shown(each)) for each in (data, *streams)]
    return [
        ("", data),
        *(("stream", each) for each in streams),
        *(("text", each) for each in shown if each),
    ]


def _unpack_stream(packed: bytes) -> bytes:
    """A stream without its filters (deflated, Ascii85, hex, the last two around the first); b"" of
    any other, which the file itself shows.
    """
    plain = unpacked(packed, 15)
    if plain:
        return plain
    text = packed.strip()
    try:
        if text.endswith(b"~>"):
            inner = base64.a85decode(text.removeprefix(b"<~")[:-2])
        elif _HEX.fullmatch(text):
            inner = _decode_hex(text)
        else:
            return b""
    except ValueError:
        return b""
    return unpacked(inner, 15) or inner


def _decode_hex(text: bytes) -> bytes:
    digits = b"".join(text.strip(b"<> \r\n").split())
    return bytes.fromhex((digits + b"0" * (len(digits) % 2)).decode("ascii"))


def _yield_shown(stream: bytes) -> Iterator[bytes]:
    for match in _SHOWN.finditer(stream):
        parts = _PARTS.findall(match[1]) if match[1] else [match[2]]
        # else it stands there so; a list of numbers shows nothing
        if len(parts) > 1 or any(part[:1] == b"<" or b"\\" in part for part in parts):
            yield b"".join(map(_decode_string, parts))


def _decode_string(text: bytes) -> bytes:
    if text[:1] == b"<":
        return _decode_hex(text).replace(b"\0", b"")  # two bytes a letter
    return _ESCAPE.sub(_decode_escape, text[1:-1])


def _decode_escape(match: re.Match[bytes]) -> bytes:
    if match[1]:
        return bytes([int(match[1], 8) & 255])
    return b"" if match[2] else _LETTERS.get(match[3], match[3])
