"""What stands in a text in another spelling, and how it is put back: base64, base32, hex, gzip,
escapes.

A `Wrapped` is a stretch of a text that means another text; `wrap` spells a changed one as it was
spelled. Texts may be wrapped several times over. Nothing is decoded past CAP, and what is no text
inside is given as far as it is legible.
"""

from __future__ import annotations

import base64
import binascii
import bisect
import gzip
import html
import io
import itertools
import re
import string
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

from tape_jupyter.secrets.needles import encode_by_character, find_all, long_runs, table_of

CAP = 64 * 1024 * 1024
"""Bytes that one stretch may unpack to; the rest is not looked at."""
DEPTH = 5
"""How many times over a text may be wrapped."""

LEAST = 24  # characters of a stretch of base64 or hex: a shorter one holds no key
_LEGIBLE, _LEAST_LEGIBLE = table_of(bytes(range(32, 127)) + b"\t\r\n"), 12
_LINE_END = r"(?:\\{1,16}r)?\\{1,16}n|\r?\n"  # as it is, or escaped however often
_BASE64 = re.compile(
    rf"[A-Za-z0-9+/_-]{{24,}}(?:(?<=[A-Za-z0-9+/_-]{{60}})(?:{_LINE_END})[A-Za-z0-9+/_-]+)*={{0,2}}"
)
_BASE64_LETTERS = table_of(b"+/_-" + string.digits.encode() + string.ascii_letters.encode())
_HEX_DIGITS, _LEAST_HEX = table_of(string.hexdigits.encode()), 32
_ESCAPED_BEFORE = r"(?<=\\[nrt])|(?<=\\u[0-9A-Fa-f]{4})|(?<=\\x[0-9A-Fa-f]{2})|(?<=%[0-9A-Fa-f]{2})"
_HEX_APART = re.compile(
    rf"(?:(?<![0-9A-Za-z])|{_ESCAPED_BEFORE})[0-9A-Fa-f]{{2}}(?P<sign>[ :.-])[0-9A-Fa-f]{{2}}"
    rf"(?:(?:(?P=sign)|{_LINE_END})[0-9A-Fa-f]{{2}}){{10,}}(?![0-9A-Za-z])"
)
_BASE32 = re.compile(
    rf"(?:[A-Z2-7]{{24,}}(?:(?<=[A-Z2-7]{{60}})(?:{_LINE_END})[A-Z2-7]+)*"
    rf"|[a-z2-7]{{24,}}(?:(?<=[a-z2-7]{{60}})(?:{_LINE_END})[a-z2-7]+)*)={{0,6}}(?![A-Za-z0-9])"
)
_ESCAPE_END = re.compile(r"(?<=\\)(?:[nrt]|u[0-9A-Fa-f]{4}|x[0-9A-Fa-f]{2})|(?<=%)[0-9A-Fa-f]{2}")
"""The letters of an escape, which a stretch may follow."""
_BASE32_UPPER = table_of(b"234567" + string.ascii_uppercase.encode())
_BASE32_LOWER = table_of(b"234567" + string.ascii_lowercase.encode())
_PAIRS = bytes(
    ord("h") if digit else ord("s") if byte in b" :.-\r\n\\" else ord("n") if byte in b"nr" else 0
    for byte, digit in enumerate(_HEX_DIGITS)
)
_APART = table_of(string.hexdigits.encode() + b" :.-\r\n\\nr")
_BASE85 = re.compile(r"<~([!-uz\s]{15,}?)~>")
_DIGIT = re.compile("[2-7]")
_WORD = re.compile("[a-z]+|[0-9a-f]+|[0-9A-F]+")  # a long word is no base64, nor is hex
_SLASH, _PATH, _SHORT = re.compile("/"), 64, 8192
_BREAKS = re.compile(_LINE_END)
FILE_STARTS = ("iVBORw0KGgo", "JVBERi0", "UEsDB", "Qlpo", "/Td6")
"""What a PNG, a PDF, a zip, a bz2 and an xz begin with in base64."""
_GZIP, ZLIB = b"\x1f\x8b", (b"\x78\x01", b"\x78\x5e", b"\x78\x9c", b"\x78\xda")


@dataclass(frozen=True)
class Wrapped:
    """text[start:end] means `text`; `wrap` gives the stretch that means another text."""

    start: int
    end: int
    text: str
    wrap: Callable[[str], str]


def letter_runs(text: str, data: bytes) -> list[tuple[int, int]]:
    """Start and end of each stretch of letters of base64, without those of an escape that leads up to it.
    `data`: the text by character.
    """
    runs = []
    for start, end in long_runs(data, _BASE64_LETTERS, LEAST):
        if start and text[start - 1] in "\\%" and (ended := _ESCAPE_END.match(text, start)):
            start = ended.end()  # noqa: PLW2901
        if end - start >= LEAST:
            runs.append((start, end))
    return runs


def encoded_runs(
    text: str,
    data: bytes | None = None,
    runs: list[tuple[int, int]] | None = None,
    *,
    whole: bool = True,
) -> Iterator[Wrapped]:
    """The stretches of base64, base32, hex and (between its marks) Ascii85 in a text that hold
    something legible. `data`, `runs`: the text by character and its letter_runs, where they are at hand.
    Not `whole`: of a long stretch that is hardly legible only what is, which cannot be wrapped again.
    """
    if len(text) < LEAST:
        return
    data = encode_by_character(text) if data is None else data
    letters = _Letters(data, letter_runs(text, data) if runs is None else runs)
    yield from _read_base64_runs(text, letters, whole=whole)
    for start, end in letters.find_long_runs(_HEX_DIGITS, _LEAST_HEX):
        if _HEX_LEGIBLE.search(data, start, end):
            yield from _decode_hex(start, text[start:end])
    for alphabet in (_BASE32_UPPER, _BASE32_LOWER):
        yield from _read_base32_runs(text, letters, alphabet)
    for match in _find_separated_hex(text, data):
        yield from _decode_separated_hex(match)
    for match in _BASE85.finditer(text) if "<~" in text else ():
        yield from _decode_base85(match)


class _Letters:
    """The stretches of letters of base64 in a text, as one: looked through together."""

    def __init__(self, data: bytes, runs: list[tuple[int, int]]) -> None:
        self.runs, self._data = runs, data
        self._joined = b"\0".join(data[start:end] for start, end in runs)
        self._starts = list(
            itertools.accumulate((end - start + 1 for start, end in runs), initial=0)
        )

    def find_long_runs(self, alphabet: bytes, least: int) -> Iterator[tuple[int, int]]:
        """Where in the text so many letters of an alphabet stand."""
        for at, end in long_runs(self._joined, alphabet, least):
            number = bisect.bisect_right(self._starts, at) - 1
            moved = self.runs[number][0] - self._starts[number]
            yield at + moved, end + moved

    @cached_property
    def begins(self) -> set[int]:
        return {start for start, _ in self.runs}

    @cached_property
    def _legible(self) -> tuple[bytes, bytes]:
        return find_legible_quads(self._joined)

    @cached_property
    def promising(self) -> set[int]:
        """The runs that, read as base64 from any letter, hold legible text or what gzip or zlib begin with."""
        marked, starts, found = self._legible[1], self._starts, set()
        at = marked.find(1)
        while at >= 0:
            number = bisect.bisect_right(starts, 4 * at + 7) - 1
            found.add(number)
            at = marked.find(1, max(at + 1, starts[number + 1] // 4))
        return found | self.packed

    @cached_property
    def packed(self) -> set[int]:
        """The runs near whose beginning stands what gzip or zlib begin with."""
        heads = [self._data[start : min(end, start + _HEAD)] for start, end in self.runs]
        starts = list(itertools.accumulate((len(head) + 1 for head in heads), initial=0))
        joined = b"\0".join(heads) + b"\0\0"
        return {
            bisect.bisect_right(starts, at) - 1
            for begin, third in _PACKED_LETTERS.items()
            for at in find_all(joined, begin)
            if joined[at + 2] in third
        }

    def find_legible(self, number: int) -> list[tuple[int, int]]:
        """Where a run, read as base64 from any letter, holds legible text: whole groups of four letters."""
        start, end = self._starts[number], self._starts[number + 1] - 1
        return list(_find_legible_letters(*self._legible, start, end))


def _read_base64_runs(  # noqa: C901 - one step a way in which a run can hold nothing
    text: str, letters: _Letters, *, whole: bool
) -> Iterator[Wrapped]:
    """What they mean, each with the lines that go on with it."""
    end, settled = 0, set[str]()  # names and numbers are said again and again
    for number, (start, run_end) in enumerate(letters.runs):
        if start < end:
            continue
        end, encoded = run_end, text[start:run_end]
        if encoded in settled:
            continue
        is_one = run_end - start < _LINE or text[run_end : run_end + 1] not in _LINE_SIGNS
        if is_one and number not in letters.promising and not _may_be_utf16(encoded):
            continue
        if is_one:
            end += next((n for n in (2, 1) if text.startswith("=" * n, end)), 0)
        else:
            match = _BASE64.match(text, start)
            assert match is not None
            end = match.end()
        encoded = text[start:end]
        if end - start > _LONG and is_one and not whole and number not in letters.packed:
            parts = _read_parts(encoded, letters.find_legible(number))
            if parts is not None:
                yield Wrapped(start, end, parts, lambda text: text)
                continue
        found = list(_decode_base64(start, encoded))
        if "/" in encoded[:_PATH] and len(encoded) < _SHORT:
            for slash in _SLASH.finditer(encoded[:_PATH]):  # a path may lead up to it
                found += _decode_base64(start + slash.end(), encoded[slash.end() :])
        if not found and is_one and len(encoded) < _SHORT:
            settled.add(text[start:run_end])
        yield from found


_LINE, _LINE_SIGNS = 60, frozenset("\r\n\\")
"""A shorter stretch, or one that nothing of these follows, does not go on in the next line."""


def _may_be_utf16(encoded: str) -> bool:
    """Whether it may be base64 of UTF-16: a zero in a third of the bytes, each of which makes a letter of
    a few; two of three make an A.
    """
    if encoded.count("A") < _LEAST_ZEROS:
        return False
    return len(encoded.encode().translate(None, b"ABCDQgw")) * 4 <= len(encoded) * 3


_HEAD = _PATH + 8  # letters in which a path may lead up to a stretch
_LEAST_ZEROS = 8  # that make an A, in twelve letters of ASCII
_PACKED_LETTERS = {b"H4": b"stuv", b"eA": b"EFGH", b"eF": b"4567", b"eJ": b"wxyz", b"eN": b"opqr"}
"""What base64 of gzip and of zlib begins with, and its third letter."""
_LONG, _SAMPLE = 4096, 400


def _read_parts(encoded: str, legible: list[tuple[int, int]]) -> str | None:
    """The legible parts of a long stretch whose rest is a program's format; None where it may be a text."""
    if sum(end - start for start, end in legible) * 8 > len(encoded) or _may_be_utf16(encoded):
        return None
    plain = encoded.encode().translate(_FROM_URL)
    for start in (0, (len(plain) - _SAMPLE) // 2, len(plain) - _SAMPLE - 4):
        for shift in range(4):
            sample = _decode_letters(plain[start + shift : start + shift + _SAMPLE], 0)
            if len(sample.translate(None, _CONTROLS)) * _FEW > len(sample) * (_FEW - 1):
                return None
    parts = []
    for start, end in legible:
        data = _decode_letters(plain[start:end], 0)
        parts += [data[a:b].decode() for a, b in long_runs(data, _LEGIBLE, _LEAST_LEGIBLE)]
    return "\1".join(parts)


def _read_base32_runs(text: str, letters: _Letters, alphabet: bytes) -> Iterator[Wrapped]:
    last = 0
    for start, _ in letters.find_long_runs(alphabet, LEAST):
        if start >= last and (start in letters.begins or not text[start - 1].isalnum()):
            match = _BASE32.match(text, start)
            if match is not None:
                last = match.end()
                yield from _decode_base32(match)


def _find_separated_hex(text: str, data: bytes) -> Iterator[re.Match[str]]:
    """Where so many pairs of digits stand apart: all in a row, or some with a break of several
    characters between them.
    """
    for first, last in long_runs(data, _APART, _LEAST_APART):
        marked = data[first:last].translate(_PAIRS) + b"\0"
        if b"hhs" not in marked:  # a digest
            continue
        places = [*find_all(marked, b"hhs" * 11 + b"hh")]
        for broken in (b"hhsnhh", b"hhsshh", b"hhssn", b"hhsns", b"hhsss"):
            places += find_all(marked, broken)
        end = 0
        for at in sorted(places):
            if at >= end:
                start, end = marked.rfind(0, 0, at) + 1, marked.find(0, at)
                yield from _HEX_APART.finditer(text, first + start, first + end + 1)


_LEAST_APART = 12 * 3 - 1  # characters of twelve pairs


def _decode_base64(start: int, encoded: str) -> Iterator[Wrapped]:
    """What it means read from each of its first four characters: letters before it may be glued to
    it.
    """
    letters = _join_lines(encoded)
    if len(letters) >= LEAST and not _WORD.fullmatch(letters):
        plain = letters.encode().translate(_FROM_URL)
        for shift in range(4):
            inner = legible(_decode_letters(plain, shift))
            if inner is not None:
                text, wrap = inner
                yield Wrapped(
                    start,
                    start + len(encoded),
                    text,
                    _build_base64_encoder(encoded, letters[:shift], wrap),
                )


_FROM_URL, _TO_URL = bytes.maketrans(b"-_", b"+/"), str.maketrans("+/", "-_")


def _join_lines(encoded: str) -> str:
    """The letters alone."""
    if "\\" in encoded:
        return _BREAKS.sub("", encoded).rstrip("=")
    return encoded.replace("\r\n", "").replace("\n", "").rstrip("=")


def _decode_letters(plain: bytes, shift: int) -> bytes:
    """From one of the first letters on; one letter alone at the end means nothing."""
    left = (len(plain) - shift) % 4
    if left == 1:
        return binascii.a2b_base64(plain[shift:-1])
    return binascii.a2b_base64(plain[shift:] + b"=" * (-left % 4))


def _build_base64_encoder(
    encoded: str, before: str, wrap: Callable[[str], bytes]
) -> Callable[[str], str]:
    def encode_text(text: str) -> str:
        is_url = bool(set(encoded) & set("-_"))
        padded = encoded.endswith("=") or len(_BREAKS.sub("", encoded)) % 4 == 0
        broken = _BREAKS.search(encoded)
        letters = base64.b64encode(wrap(text)).decode()
        letters = letters.translate(_TO_URL) if is_url else letters
        letters = before + (letters if padded else letters.rstrip("="))
        if broken is None:
            return letters
        return broken[0].join(
            letters[i : i + broken.start()] for i in range(0, len(letters), broken.start())
        )

    return encode_text


def _decode_hex(start: int, encoded: str) -> Iterator[Wrapped]:
    for shift in range(2):
        digits = encoded[shift : len(encoded) - (len(encoded) - shift) % 2]
        inner = legible(binascii.unhexlify(digits))
        if inner is not None:
            text, wrap = inner
            end = encoded[shift + len(digits) :]
            yield Wrapped(
                start,
                start + len(encoded),
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


_HEX_LEGIBLE = re.compile(rb"(?:[02-7][0-9A-Fa-f]){12}|1[fF]8[bB]|78(?:01|5[eE]|9[cC]|[dD][aA])")
"""Twelve legible bytes, or every other one a zero (UTF-16), or what gzip and zlib begin with."""
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


# ---------------------------------------------------------------- legible letters


def _build_quad_tables() -> list[tuple[bytes, bytes]]:
    """For each letter's place (mod 4): a bit for each place at which a group of four may begin, set where
    the letter may be what legible bytes become there; those that begin up to here, and behind it.
    """
    legible = [byte for byte, is_legible in enumerate(_LEGIBLE) if is_legible]
    fits = (
        {byte >> 2 for byte in legible},
        {low << 4 | byte >> 4 for byte in legible for low in range(4)},
        {low << 2 | byte >> 6 for byte in legible for low in range(16)},
        {*range(64)},
    )
    letters = string.ascii_uppercase + string.ascii_lowercase + string.digits
    values = {**{ord(c): n for n, c in enumerate(letters + "+/")}, ord("-"): 62, ord("_"): 63}
    tables = []
    for place in range(4):
        bits = [
            sum(
                1 << begin
                for begin in range(4)
                if byte in values and values[byte] in fits[(place - begin) % 4]
            )
            for byte in range(256)
        ]
        low = (2 << place) - 1
        tables.append((bytes(each & low for each in bits), bytes(each & ~low for each in bits)))
    return tables


_QUADS = _build_quad_tables()
_ROW = 3  # groups of four letters: any twelve legible bytes have three whole ones


def find_legible_quads(letters: bytes) -> tuple[bytes, bytes]:
    """Of each group of four letters and of three more at which of its letters (as bits) base64 of legible
    bytes may begin; and 1 where there are three such groups in a row.
    """
    size = len(letters) // 4 + 1
    padded = letters.ljust(4 * size + 4, b"\0")
    agreed = -1
    for place, (upto, behind) in enumerate(_QUADS):
        column = padded[place::4]
        bits = int.from_bytes(column[:size].translate(upto), "little")
        if place < 3:
            bits |= int.from_bytes(column[1:].translate(behind), "little")
        agreed &= bits
    rows = agreed & agreed >> 8 & agreed >> 16
    return rows.to_bytes(size + 1, "little"), rows.to_bytes(size + 1, "little").translate(_TO_ONE)


_TO_ONE = b"\0" + b"\1" * 255


def _find_legible_letters(
    rows: bytes, marked: bytes, start: int, end: int
) -> Iterator[tuple[int, int]]:
    """The letters of `rows` between two that may be base64 of legible bytes: from a letter at which a group
    begins, counted from `start`.
    """
    first, last = start // 4, end // 4 + 1
    at = marked.find(1, first, last)
    while at >= 0:
        stop = marked.find(0, at)
        for begin in range(4):
            bit = 1 << begin
            here = [n for n in range(at, stop) if rows[n] & bit]
            if here:
                low = max(4 * here[0] + begin - 4, start + (4 * here[0] + begin - start) % 4)
                yield low - start, min(4 * (here[-1] + _ROW + 1) + begin, end) - start
        at = marked.find(1, stop, last)


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
    if next(long_runs(data, _LEGIBLE, _LEAST_LEGIBLE), None) is None:
        return _decode_utf16(data)
    try:
        return data.decode("utf-8"), lambda text: text.encode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return data.decode("latin-1"), lambda text: text.encode("latin-1", "replace")


def legible_parts(text: str) -> str:
    """Of the bytes of a program's format (character by character) what can be read, a text whole."""
    try:
        data = text.encode("latin-1")
    except UnicodeEncodeError:
        return text
    controls = len(data) - len(data.translate(None, _CONTROLS))
    if controls * _FEW < len(data):
        return text
    return "\1".join(text[start:end] for start, end in long_runs(data, _LEGIBLE, _LEAST_PART))


_CONTROLS = bytes({*range(32)} - {*b"\t\n\r\x1b"})
_FEW = 50  # one of so many bytes is a control character: no text
_LEAST_PART = 8


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

_COLOUR = r"\x1b\[[0-9;:]*m|\\(?:u001b|x1b)\[[0-9;:]*m"
_TAG = r"</?(?:span|b|i|u|em|strong|code|pre|font|mark)\b[^<>]{0,400}>"
_MARKS = re.compile(f"{_COLOUR}|{_TAG}")


def uncoloured(text: str) -> str | None:
    """A text without a terminal's colours and HTML's marks of words, which may cut a key; None
    where it has none.
    """
    if not _has_colour(text) and "</" not in text:
        return None
    bare = _MARKS.sub("", text)
    return bare if bare != text else None


def _has_colour(text: str) -> bool:
    return "\x1b" in text or "\\u001b" in text or "\\x1b" in text


# ---------------------------------------------------------------- escapes

_ESCAPE = re.compile(
    r"%(?:25){0,8}(?P<octet>[0-9A-Fa-f]{2})"
    r"|\\\\{0,15}(?:u(?P<unit>[0-9A-Fa-f]{4})|x(?P<byte>[0-9A-Fa-f]{2})|(?P<plain>[\"/'nrt]))"
    r"|&(?:#(?P<decimal>[0-9]{1,7})|#[xX](?P<hexadecimal>[0-9A-Fa-f]{1,6})"
    r"|(?P<named>amp|lt|gt|quot|apos|sol|plus|equals));"
)
_PLAIN = {"n": "\n", "r": "\r", "t": "\t"}


def unescaped(text: str) -> tuple[str, list[int]] | None:
    """A text with its escapes (of URLs, JSON, HTML) taken off, and where each of its characters
    begins in the original; one more number tells the end. None where it has none.
    """
    if not _has_escape(text):
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


def find_signs(text: str) -> list[tuple[int, int]]:
    """Where a text has marks, or escapes of what a key, a name, or another encoding is spelled with: all
    but those of line ends, quotes and brackets, which only stand around them.
    """
    signs = [
        match.span()
        for sign in (*"%&", *(_BACKSLASHED if "\\" in text else ()))
        for at in find_all(text, sign)
        if (match := _ESCAPE.match(text, at)) is not None and _spells(match)
    ]
    if "\\" in text:
        signs += [(at, at + len(_BACKSLASHES)) for at in find_all(text, _BACKSLASHES)]
    has_bracket = "<" in text
    if "\x1b" in text or (signs and _has_colour(text)) or (has_bracket and "</" in text):
        signs += [
            match.span()
            for sign in ("\x1b", "<", *(("\\u001b", "\\x1b") if "\\" in text else ()))
            for at in find_all(text, sign)
            if (match := _MARKS.match(text, at)) is not None
        ]
    if has_bracket and "<~" in text:
        signs += [match.span() for match in _BASE85.finditer(text) if "\\" in match[0]]
    return sorted(signs)


_BACKSLASHED = ("\\u00", "\\x", "\\/")
_BACKSLASHES = "\\" * 9
"""More than a value that is known is looked for behind."""
_AROUND_ONLY = frozenset("\"'()[]{},>\n\r\t")


def _spells(match: re.Match[str]) -> bool:
    letter = _unescape_character(match)
    return letter <= "~" and letter not in _AROUND_ONLY


def without_escapes(text: str) -> str | None:
    """What `unescaped` makes of a text, without the places."""
    return _ESCAPE.sub(_unescape_character, text) if _has_escape(text) else None


def _has_escape(text: str) -> bool:
    has_sign = "%" in text or "\\" in text or "&" in text
    return has_sign and _ESCAPE.search(text) is not None


def _unescape_character(match: re.Match[str]) -> str:
    if plain := match["plain"]:
        return _PLAIN.get(plain, plain)
    groups = match.groupdict()
    if groups["named"]:
        return html.unescape(match[0])
    if groups["decimal"]:
        number = int(groups["decimal"])
    else:
        number = int(
            groups["octet"] or groups["unit"] or groups["byte"] or groups["hexadecimal"], 16
        )
    return chr(number) if number < 0x110000 else "?"
