"""What stands in a text in another spelling, and how it is put back: base64, base32, hex, gzip,
escapes.

A `Wrapped` is a stretch of a text that means another text; `wrap` spells a changed one as it was
spelled. Texts may be wrapped several times over. Nothing is decoded past CAP, and what is no text
inside is given as far as it is legible.
"""

from __future__ import annotations

import base64
import binascii
import gzip
import html
import io
import re
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

CAP = 64 * 1024 * 1024
"""Bytes that one stretch may unpack to; the rest is not looked at."""
DEPTH = 5
"""How many times over a text may be wrapped."""

LEAST = 24  # characters of a stretch of base64 or hex: a shorter one holds no key
_LEGIBLE = re.compile(rb"[ -~\t\r\n]{12,}")
_BASE64 = re.compile(
    r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{24,}(?:(?<=[A-Za-z0-9+/_-]{60})(?:\r?\n|\\n)[A-Za-z0-9+/_-]+)*={0,2}"
)
_HEX = re.compile(r"(?<![0-9A-Fa-f])[0-9A-Fa-f]{32,}(?![0-9A-Fa-f])")
_HEX_APART = re.compile(
    r"(?<![0-9A-Za-z])[0-9A-Fa-f]{2}(?P<sign>[ :.-])[0-9A-Fa-f]{2}"
    r"(?:(?:(?P=sign)|\r?\n|\\n)[0-9A-Fa-f]{2}){10,}(?![0-9A-Za-z])"
)
_BASE32 = re.compile(
    r"(?<![A-Za-z0-9])(?:[A-Z2-7]{24,}(?:(?<=[A-Z2-7]{60})(?:\r?\n|\\n)[A-Z2-7]+)*"
    r"|[a-z2-7]{24,}(?:(?<=[a-z2-7]{60})(?:\r?\n|\\n)[a-z2-7]+)*)={0,6}(?![A-Za-z0-9])"
)
_BASE85 = re.compile(r"<~([!-uz\s]{15,}?)~>")
_DIGIT = re.compile("[2-7]")
_WORD = re.compile("[a-z]+|[0-9a-f]+|[0-9A-F]+")  # a long word is no base64, nor is hex
_SLASH, _PATH, _SHORT = re.compile("/"), 64, 8192
_BREAKS = re.compile(r"\r?\n|\\n")
_GZIP, ZLIB = b"\x1f\x8b", (b"\x78\x01", b"\x78\x5e", b"\x78\x9c", b"\x78\xda")


@dataclass(frozen=True)
class Wrapped:
    """text[start:end] means `text`; `wrap` gives the stretch that means another text."""

    start: int
    end: int
    text: str
    wrap: Callable[[str], str]


def encoded_runs(text: str) -> Iterator[Wrapped]:
    """The stretches of base64, base32, hex and (between its marks) Ascii85 in a text that hold
    something legible.
    """
    if len(text) < LEAST:
        return
    for match in _BASE64.finditer(text):
        yield from _decode_base64(match.start(), match[0])
        if "/" in match[0][:_PATH] and len(match[0]) < _SHORT:
            for slash in _SLASH.finditer(match[0][:_PATH]):  # a path may lead up to it
                yield from _decode_base64(match.start() + slash.end(), match[0][slash.end() :])
    for match in _HEX.finditer(text):
        yield from _decode_hex(match)
    for match in _HEX_APART.finditer(text):
        yield from _decode_separated_hex(match)
    for match in _BASE32.finditer(text):
        yield from _decode_base32(match)
    for match in _BASE85.finditer(text) if "<~" in text else ():
        yield from _decode_base85(match)


def _decode_base64(start: int, encoded: str) -> Iterator[Wrapped]:
    """What it means read from each of its first four characters: letters before it may be glued to
    it.
    """
    letters = _BREAKS.sub("", encoded).rstrip("=")
    if len(letters) >= LEAST and not _WORD.fullmatch(letters):
        plain = letters.translate(_FROM_URL)
        for shift in range(4):
            data = base64.b64decode(
                plain[shift : len(plain) - (len(plain) - shift) % 4] + _pad_last_group(plain, shift)
            )
            inner = legible(data)
            if inner is not None:
                text, wrap = inner
                yield Wrapped(
                    start,
                    start + len(encoded),
                    text,
                    _build_base64_encoder(encoded, letters[:shift], wrap),
                )


_FROM_URL, _TO_URL = str.maketrans("-_", "+/"), str.maketrans("+/", "-_")


def _pad_last_group(plain: str, shift: int) -> str:
    """The last group of letters, padded; one letter alone means nothing."""
    left = (len(plain) - shift) % 4
    return plain[-left:] + "=" * (4 - left) if left > 1 else ""


def _build_base64_encoder(
    encoded: str, before: str, wrap: Callable[[str], bytes]
) -> Callable[[str], str]:
    is_url = bool(set(encoded) & set("-_"))
    padded = encoded.endswith("=") or len(_BREAKS.sub("", encoded)) % 4 == 0
    broken = _BREAKS.search(encoded)

    def encode_text(text: str) -> str:
        letters = base64.b64encode(wrap(text)).decode()
        letters = letters.translate(_TO_URL) if is_url else letters
        letters = before + (letters if padded else letters.rstrip("="))
        if broken is None:
            return letters
        return broken[0].join(
            letters[i : i + broken.start()] for i in range(0, len(letters), broken.start())
        )

    return encode_text


def _decode_hex(match: re.Match[str]) -> Iterator[Wrapped]:
    encoded = match[0]
    for shift in range(2):
        digits = encoded[shift : len(encoded) - (len(encoded) - shift) % 2]
        inner = legible(binascii.unhexlify(digits))
        if inner is not None:
            text, wrap = inner
            end = encoded[shift + len(digits) :]
            yield Wrapped(
                match.start(),
                match.end(),
                text,
                _build_hex_encoder(encoded[:shift], end, wrap, is_upper=encoded.isupper()),
            )


def _build_hex_encoder(
    before: str, after: str, wrap: Callable[[str], bytes], *, is_upper: bool
) -> Callable[[str], str]:
    def encode_text(text: str) -> str:
        digits = wrap(text).hex()
        return before + (digits.upper() if is_upper else digits) + after

    return encode_text


def _decode_separated_hex(match: re.Match[str]) -> Iterator[Wrapped]:
    """Bytes as two digits each, with a blank or a sign between them."""
    digits = [each[0] for each in _PAIR.finditer(match[0])]
    inner = legible(bytes.fromhex("".join(digits)))
    if inner is not None:
        text, wrap = inner
        sign, is_upper = match[0][2], match[0].isupper()
        yield Wrapped(
            match.start(),
            match.end(),
            text,
            lambda plain: _encode_separated_hex(wrap(plain), sign, is_upper=is_upper),
        )


_PAIR = re.compile("[0-9A-Fa-f]{2}")


def _encode_separated_hex(data: bytes, sign: str, *, is_upper: bool) -> str:
    digits = data.hex(" ").replace(" ", sign)
    return digits.upper() if is_upper else digits


def _decode_base32(match: re.Match[str]) -> Iterator[Wrapped]:
    letters = _BREAKS.sub("", match[0]).rstrip("=")
    if not _DIGIT.search(letters):
        return  # a word
    encoded = letters[: len(letters) - (len(letters) % 8 in (1, 3, 6))].upper()
    inner = legible(base64.b32decode(encoded + "=" * (-len(encoded) % 8)))
    if inner is not None:
        text, wrap = inner
        is_lower, padded = letters.islower(), match[0].endswith("=")
        yield Wrapped(
            match.start(),
            match.end(),
            text,
            lambda plain: _encode_base32(wrap(plain), padded, is_lower=is_lower),
        )


def _encode_base32(data: bytes, padded: bool, *, is_lower: bool) -> str:
    letters = base64.b32encode(data).decode()
    letters = letters if padded else letters.rstrip("=")
    return letters.lower() if is_lower else letters


def _decode_base85(match: re.Match[str]) -> Iterator[Wrapped]:
    try:
        inner = legible(base64.a85decode(match[1]))
    except ValueError:
        return
    if inner is not None:
        text, wrap = inner
        yield Wrapped(
            match.start(),
            match.end(),
            text,
            lambda plain: base64.a85encode(wrap(plain), adobe=True).decode(),
        )


# ---------------------------------------------------------------- bytes


def legible(data: bytes) -> tuple[str, Callable[[str], bytes]] | None:
    """The text in bytes and how another text becomes such bytes; None where nothing in them can be
    read.

    gzip and zlib are unpacked. Bytes that are not UTF-8 become characters one by one (latin-1).
    """
    if data.startswith(_GZIP):
        return _decompress_text(data, 31, lambda plain: gzip.compress(plain, mtime=0))
    if data.startswith(ZLIB) and (decompressed := _decompress_text(data, 15, zlib.compress)):
        return decompressed
    if not _LEGIBLE.search(data):
        return _decode_utf16(data)
    try:
        return data.decode("utf-8"), lambda text: text.encode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return data.decode("latin-1"), lambda text: text.encode("latin-1", "replace")


def _decode_utf16(data: bytes) -> tuple[str, Callable[[str], bytes]] | None:
    """UTF-16, which has a NUL beside each letter."""
    if data.count(0) * 3 < len(data) or len(data) < LEAST:
        return None
    coding = "utf-16-be" if data[:1] == b"\0" else "utf-16-le"
    even = data[: len(data) & ~1]
    return even.decode(coding, "replace"), lambda text: text.encode(coding, "replace")


def _decompress_text(
    data: bytes, wbits: int, pack: Callable[[bytes], bytes]
) -> tuple[str, Callable[[str], bytes]] | None:
    plain = unpacked(data, wbits)
    inner = legible(plain) if plain else None
    if inner is None:
        return None
    text, wrap = inner
    return text, lambda changed: pack(wrap(changed))


def unpacked(data: bytes, wbits: int) -> bytes:
    """What a stream of zlib (15) or gzip (31) holds, up to CAP; as far as it is sound."""
    inflater, out = zlib.decompressobj(wbits), io.BytesIO()
    source = io.BytesIO(data)
    try:
        while out.tell() < CAP and (block := source.read(2**16)):
            out.write(inflater.decompress(block, CAP))
            if inflater.eof and inflater.unused_data and wbits == 31:
                source = io.BytesIO(inflater.unused_data + source.read())
                inflater = zlib.decompressobj(wbits)
    except zlib.error:
        pass
    return out.getvalue()


# ---------------------------------------------------------------- colours

_MARKS = re.compile(
    r"(?:\x1b|\\u001b|\\x1b)\[[0-9;:]*m|</?(?:span|b|i|u|em|strong|code|pre|font|mark)\b[^<>]{0,400}>"
)


def uncoloured(text: str) -> str | None:
    """A text without a terminal's colours and HTML's marks of words, which may cut a key; None
    where it has none.
    """
    if not ("\x1b" in text or "\\u001b" in text or "\\x1b" in text or "</" in text):
        return None
    bare = _MARKS.sub("", text)
    return bare if bare != text else None


# ---------------------------------------------------------------- escapes

_ESCAPE = re.compile(
    r"%(?:25){0,8}(?P<octet>[0-9A-Fa-f]{2})"
    r"|\\{1,16}(?:u(?P<unit>[0-9A-Fa-f]{4})|x(?P<byte>[0-9A-Fa-f]{2})|(?P<plain>[\"/'nrt]))"
    r"|&(?:#(?P<decimal>[0-9]{1,7})|#[xX](?P<hexadecimal>[0-9A-Fa-f]{1,6})"
    r"|(?P<named>amp|lt|gt|quot|apos|sol|plus|equals));"
)
_PLAIN = {"n": "\n", "r": "\r", "t": "\t"}


def unescaped(text: str) -> tuple[str, list[int]] | None:
    """A text with its escapes (of URLs, JSON, HTML) taken off, and where each of its characters
    begins in the original; one more number tells the end. None where it has none.
    """
    if not (("%" in text or "\\" in text or "&" in text) and _ESCAPE.search(text)):
        return None
    out: list[str] = []
    starts: list[int] = []
    last = 0
    for match in _ESCAPE.finditer(text):
        out.append(text[last : match.start()])
        starts.extend(range(last, match.start()))
        out.append(_unescape_character(match))
        starts.extend([match.start()] * len(out[-1]))
        last = match.end()
    out.append(text[last:])
    starts.extend(range(last, len(text) + 1))
    return "".join(out), starts


def _unescape_character(match: re.Match[str]) -> str:
    groups = match.groupdict()
    if groups["plain"]:
        return _PLAIN.get(groups["plain"], groups["plain"])
    if groups["named"]:
        return html.unescape(match[0])
    if groups["decimal"]:
        number = int(groups["decimal"])
    else:
        number = int(
            groups["octet"] or groups["unit"] or groups["byte"] or groups["hexadecimal"], 16
        )
    return chr(number) if number < 0x110000 else "?"
