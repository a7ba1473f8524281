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
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from tape_jupyter.secrets.needles import (
    compile_quick,
    encode_by_character,
    find_all,
    find_end,
    find_start,
    long_runs,
    table_of,
)

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


class Run(NamedTuple):
    """A stretch of letters of base64: start, end, and where the lines end that go on with it."""

    start: int
    end: int
    last: int


class Stretches(NamedTuple):
    """Where a text may be wrapped: the runs of letters, and where pairs of hexadecimal digits begin to
    stand apart, escapes of letters and Ascii85 begin.
    """

    runs: list[Run]
    apart: list[int]
    escapes: list[int]
    ascii85: list[int]
    long: list[tuple[int, int]]
    """All runs of a line's letters or more."""


def find_stretches(text: str, data: bytes) -> Stretches:
    """What of a text may mean another. `data`: the text by character."""
    long = list(long_runs(data, _BASE64_LETTERS, _LINE))
    found, at = Stretches(_read_lines(text, long), [], [], [], long), 0
    for start, end in (*(run for run in long if run[1] - run[0] > _LONG), (len(data), len(data))):
        _find_signs_between(text, data, at, min(start + _ESCAPE_REACH, len(data)), found)
        found.runs.extend(_trim_run(text, start, end))
        found.apart.extend(_find_pairs_in_run(data, start, end))
        at = max(0, end - 2)  # a pair of digits may end it
    return found._replace(runs=_drop_covered(found.runs), apart=sorted(found.apart))


def _find_signs_between(text: str, data: bytes, at: int, stop: int, found: Stretches) -> None:
    search = compile_quick(_SIGNS).search
    match = search(data, at, stop)
    while match is not None:
        start, begins = match.start(), match[0][:1]
        if begins in _ESCAPE_SIGNS or begins == b"<":
            places = found.ascii85 if begins == b"<" else found.escapes
            places.append(start)
            match = search(data, match.end(), stop)
            continue
        if _APART_BEGINS.match(data, start):
            found.apart.append(start)
            end = find_start(data, _BASE64_LETTERS, find_end(data, _APART, start))
            pieces = long_runs(data[start:end], _BASE64_LETTERS, LEAST)
            runs = [(start + low, start + high) for low, high in pieces]
        else:
            runs = [find_run(data, start, found.long)]
            end = runs[0][1]
        for first, last in runs:
            found.runs.extend(_trim_run(text, first, last))
            found.apart.extend(_find_pairs_in_run(data, first, last))
        match = search(data, max(start + 1, end - 2), stop)


def find_run(data: bytes, at: int, long: list[tuple[int, int]]) -> tuple[int, int]:
    """Where the letters begin and end among which a place is. `long`: those of many."""
    number = bisect.bisect_right(long, (at, len(data))) - 1
    if number >= 0 and at < long[number][1]:
        return long[number]
    return find_start(data, _BASE64_LETTERS, at), find_end(data, _BASE64_LETTERS, at)


def _read_lines(text: str, long: list[tuple[int, int]]) -> list[Run]:
    """The runs that may go on in the next line."""
    runs, behind = list[Run](), 0
    for start, end in long:
        if start >= behind and text[end : end + 1] in _LINE_SIGNS:
            for run in _trim_run(text, start, end):
                match = _BASE64.match(text, run.start)
                behind = match.end() if match else end
                runs.append(run._replace(last=max(end, behind)))
    return runs


def _trim_run(text: str, start: int, end: int) -> Iterator[Run]:
    """A run without the letters of an escape that leads up to it, if it is long enough then."""
    if start and text[start - 1] in "\\%" and (ended := _ESCAPE_END.match(text, start)):
        start = ended.end()
    if end - start >= LEAST:
        yield Run(start, end, end)


def _find_pairs_in_run(data: bytes, start: int, end: int) -> Iterator[int]:
    if data.find(b"-", start, end) >= 0:
        yield from (
            match.start() for match in compile_quick(_APART_BY_DASH).finditer(data, start, end)
        )


def _drop_covered(runs: list[Run]) -> list[Run]:
    """In order, without those in the lines of one before."""
    kept: list[Run] = []
    for run in sorted(runs, key=lambda run: (run.start, -run.last)):
        if not kept or run.start >= kept[-1].last:
            kept.append(run)
    return kept


def encoded_runs(
    text: str,
    data: bytes | None = None,
    stretches: Stretches | None = None,
    *,
    whole: bool = True,
) -> Iterator[Wrapped]:
    """The stretches of base64, base32, hex and (between its marks) Ascii85 in a text that hold
    something legible. `data`, `stretches`: the text by character and what find_stretches gives, where they
    are at hand. Not `whole`: of a long stretch that is hardly legible only what is, which cannot be wrapped
    again.
    """
    if len(text) < LEAST:
        return
    data = encode_by_character(text) if data is None else data
    stretches = find_stretches(text, data) if stretches is None else stretches
    letters = _Letters(data, stretches.runs)
    yield from _read_base64_runs(text, letters, whole=whole)
    letters = letters.without_noise()
    for start, end in letters.find_long_runs(_HEX_DIGITS, _LEAST_HEX):
        if _HEX_LEGIBLE.search(data, start, end):
            yield from _decode_hex(start, text[start:end])
    for alphabet in (_BASE32_UPPER, _BASE32_LOWER):
        yield from _read_base32_runs(text, letters, alphabet)
    for match in _find_separated_hex(text, data, stretches.apart):
        yield from _decode_separated_hex(match)
    for match in _find_ascii85(text, stretches.ascii85):
        yield from _decode_base85(match)


class _Letters:
    """The stretches of letters of base64 in a text, as one: looked through together."""

    def __init__(self, data: bytes, runs: list[Run]) -> None:
        self.runs, self._data = runs, data
        self._noise: set[int] = set()
        self._joined = b"\0".join(data[start:last] for start, _, last in runs)
        self._starts = list(
            itertools.accumulate((last - start + 1 for start, _, last in runs), initial=0)
        )

    def find_long_runs(self, alphabet: bytes, least: int) -> Iterator[tuple[int, int]]:
        """Where in the text so many letters of an alphabet stand."""
        for at, end in long_runs(self._joined, alphabet, least):
            number = bisect.bisect_right(self._starts, at) - 1
            moved = self.runs[number].start - self._starts[number]
            yield at + moved, end + moved

    def __getitem__(self, number: int) -> bytes:
        """A run alone."""
        start, end, _ = self.runs[number]
        return self._data[start:end]

    @cached_property
    def begins(self) -> set[int]:
        return {run.start for run in self.runs}

    def is_promising(self, number: int) -> bool:
        """Whether a run, read as base64 from any letter, holds legible text or what gzip or zlib begin with."""
        found = compile_quick(_LEGIBLE_QUADS).search(self[number])
        return found is not None or number in self.packed

    @cached_property
    def packed(self) -> set[int]:
        """The runs near whose beginning stands what gzip or zlib begin with."""
        heads = [self._data[start : min(end, start + _HEAD)] for start, end, _ in self.runs]
        starts = list(itertools.accumulate((len(head) + 1 for head in heads), initial=0))
        joined = b"\0".join(heads) + b"\0\0"
        return {
            bisect.bisect_right(starts, at) - 1
            for begin, third in _PACKED_LETTERS.items()
            for at in find_all(joined, begin)
            if joined[at + 2] in third
        }

    def find_legible(self, number: int) -> list[tuple[int, int]] | None:
        """Where a run, read as base64 from any letter, holds legible text: whole groups of four letters.
        None where that is much of it.
        """
        spans, other = _find_legible_letters(self[number])
        if spans is not None and not other:
            self._noise.add(number)
        return spans

    def without_noise(self) -> _Letters:
        """Those runs in which something else than base64 may stand."""
        if not self._noise:
            return self
        kept = [run for number, run in enumerate(self.runs) if number not in self._noise]
        return _Letters(self._data, kept)


def _read_base64_runs(  # noqa: C901 - one step a way in which a run can hold nothing
    text: str, letters: _Letters, *, whole: bool
) -> Iterator[Wrapped]:
    """What they mean, each with the lines that go on with it."""
    end, settled = 0, set[str]()  # names and numbers are said again and again
    for number, (start, run_end, last) in enumerate(letters.runs):
        if start < end:
            continue
        end, size = run_end, run_end - start
        if size < _SHORT and text[start:run_end] in settled:
            continue
        is_one = not text[run_end:last].rstrip("=")
        if is_one and size > _LONG and not whole and number not in letters.packed:
            parts = _read_parts(letters[number], letters.find_legible(number))
            if parts:
                yield Wrapped(start, end, parts, lambda text: text)
            if parts is not None:
                continue
        if is_one and not letters.is_promising(number) and not _may_be_utf16(letters[number]):
            continue
        if is_one:
            end += next((n for n in (2, 1) if text.startswith("=" * n, end)), 0)
        else:
            match = _BASE64.match(text, start)
            assert match is not None
            end = match.end()
        encoded = text[start:end]
        found = list(_decode_base64(start, encoded))
        if "/" in encoded[:_PATH] and len(encoded) < _SHORT:
            for slash in _SLASH.finditer(encoded[:_PATH]):  # a path may lead up to it
                found += _decode_base64(start + slash.end(), encoded[slash.end() :])
        if not found and is_one and len(encoded) < _SHORT:
            settled.add(text[start:run_end])
        yield from found


_LINE, _LINE_SIGNS = 60, frozenset("\r\n\\")
"""A shorter stretch, or one that nothing of these follows, does not go on in the next line."""


def _may_be_utf16(letters: bytes) -> bool:
    """Whether it may be base64 of UTF-16: a zero in a third of the bytes, each of which makes a letter of
    a few; two of three make an A, so that one of 24 letters is.
    """
    if letters.count(b"A") < max(_LEAST_ZEROS, len(letters) // 24):
        return False
    return len(letters.translate(None, b"ABCDQgw")) * 4 <= len(letters) * 3


_HEAD = _PATH + 8  # letters in which a path may lead up to a stretch
_LEAST_ZEROS = 8  # that make an A, in twelve letters of ASCII
_PACKED_LETTERS = {b"H4": b"stuv", b"eA": b"EFGH", b"eF": b"4567", b"eJ": b"wxyz", b"eN": b"opqr"}
"""What base64 of gzip and of zlib begins with, and its third letter."""
_LONG, _SAMPLE, _FIRST = 4096, 400, 100
_SAMPLE_SIZE = _SAMPLE * 3 // 4  # bytes
"""Most samples of what is no text have too many control characters in their first letters."""


def _read_parts(letters: bytes, legible: list[tuple[int, int]] | None) -> str | None:
    """The legible parts of a long stretch whose rest is a program's format; None where it may be a text."""
    if legible is None or _may_be_utf16(letters):
        return None
    if not legible:
        return ""
    if _may_be_text(letters):
        return None
    parts = []
    for start, end in legible:
        data = _decode_letters(letters[start:end].translate(_FROM_URL), 0)
        parts += [data[a:b].decode() for a, b in long_runs(data, _LEGIBLE, _LEAST_LEGIBLE)]
    return "\1".join(parts)


def _may_be_text(letters: bytes) -> bool:
    """Whether a stretch, read from any of its first letters, has hardly a control character somewhere."""
    places = (0, (len(letters) - _SAMPLE) // 2, len(letters) - _SAMPLE - 4)
    pieces = (letters[at + n : at + n + _SAMPLE] for at in places for n in range(4))
    return any(_has_few_controls(piece[:_FIRST]) and _has_few_controls(piece) for piece in pieces)


def _has_few_controls(letters: bytes) -> bool:
    """Whether what letters mean has no more control characters than a sample of a text."""
    data = binascii.a2b_base64(letters.translate(_FROM_URL))
    return (len(data) - len(data.translate(None, _CONTROLS))) * _FEW < _SAMPLE_SIZE


def _read_base32_runs(text: str, letters: _Letters, alphabet: bytes) -> Iterator[Wrapped]:
    last = 0
    for start, _ in letters.find_long_runs(alphabet, LEAST):
        if start >= last and (start in letters.begins or not text[start - 1].isalnum()):
            match = _BASE32.match(text, start)
            if match is not None:
                last = match.end()
                yield from _decode_base32(match)


def _find_separated_hex(text: str, data: bytes, places: list[int]) -> Iterator[re.Match[str]]:
    """Where so many pairs of digits stand apart: all in a row, or some with a break of several
    characters between them. `places`: where they may begin.
    """
    end = 0
    for at in places:
        if at >= end:
            end = find_end(data, _APART, at)
            yield from _HEX_APART.finditer(text, at, end + 1)


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


_HEX_PACKED = "1[fF]8[bB]|78(?:01|5[eE]|9[cC]|[dD][aA])"
_HEX_SIGNS = f"(?:[02-7][0-9A-Fa-f]){{12}}|{_HEX_PACKED}"
_HEX_LEGIBLE = re.compile(_HEX_SIGNS.encode())
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


def _find_ascii85(text: str, places: Iterable[int]) -> Iterator[re.Match[str]]:
    end = 0
    for at in places:
        match = _BASE85.match(text, at) if at >= end else None
        if match is not None:
            end = match.end()
            yield match


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


def _build_groups() -> tuple[str, str]:
    """What twelve legible bytes become in base64, read from any of its letters: three groups of four and a
    letter; and with what is behind or before.
    """
    legible = [byte for byte, is_legible in enumerate(_LEGIBLE) if is_legible]
    values = {
        **{letter: number for number, letter in enumerate(_ALPHABET + "+/")},
        "-": 62,
        "_": 63,
    }
    fits = (
        {byte >> 2 for byte in legible},
        {low << 4 | byte >> 4 for byte in legible for low in range(4)},
        {low << 2 | byte >> 6 for byte in legible for low in range(16)},
        {*range(64)},
    )
    letters = ("".join(each for each, value in values.items() if value in fit) for fit in fits)
    first, second, third, any_ = (
        f"[{each.replace('-', '')}{'-' * ('-' in each)}]" for each in letters
    )
    common = f"(?:{first}{second}{third}{any_}){{3}}{first}"
    behind, around, before = (
        f"{second}{third}{any_}",
        f"(?<={third}{any_}){common}{second}",
        f"(?<={second}{third}{any_}){common}",
    )
    return common, f"{common}{behind}|{around}|{before}"


_ALPHABET = string.ascii_uppercase + string.ascii_lowercase + string.digits
_ROW = 16  # letters of twelve bytes
_LEGIBLE_QUADS, _TWELVE_LEGIBLE = _build_groups()
_QUADS, _TWELVE = re.compile(_LEGIBLE_QUADS.encode()), re.compile(_TWELVE_LEGIBLE.encode())
_LETTER, _DIGIT_OF_HEX = "[A-Za-z0-9+/_-]", "[0-9A-Fa-f]"
_LINE_ENDS = r"(?:\\+r)?\\+n|\r?\n"


def _spell_apart(signs: Iterable[str], times: int) -> str:
    digit = _DIGIT_OF_HEX
    return "|".join(
        f"{digit}{{2}}(?:(?:{sign}|{_LINE_ENDS}){digit}{{2}}){{{times}}}" for sign in signs
    )


_APART_ANY = _spell_apart((" ", ":", r"\.", "-"), 5)
_APART_BEGINS = re.compile(_APART_ANY.encode())
_ESCAPE_SIGNS = (b"\\", b"%", b"&")
_ESCAPE_REACH = 32
_APART_BY_DASH = _spell_apart(("-",), 5)
_BASE32_SIGNS = "[A-Z2-7]{24}|[a-z2-7]{24}"
_BASE32_BEGINS = re.compile(_BASE32_SIGNS.encode())
_LEGIBLE_OR_OTHER = "|".join(
    (
        _LEGIBLE_QUADS,
        f"(?:[02-7]{_DIGIT_OF_HEX}){{12}}|(?:{_HEX_PACKED}){_DIGIT_OF_HEX}{{26}}",
        f"[+/_-](?:{_BASE32_SIGNS})",
    )
)
"""What may stand in a long run of letters: base32 behind no letter or digit."""
_SIGNS = "|".join(
    (
        _LEGIBLE_QUADS,
        f"A{_LETTER}{{2}}A",  # of UTF-16: two letters of ASCII have a zero between and behind
        "H4[s-v]|eA[E-H]|eF[4-7]|eJ[w-z]|eN[o-r]",  # gzip and zlib, as _PACKED_LETTERS
        _HEX_SIGNS,
        _BASE32_SIGNS,
        _APART_ANY,
        "<~",
        r"\\{9}|\\(?:u00[0-7]|x[0-7]|/)|%(?:25){0,8}[0-7]|&(?:#|amp|lt|gt|quot|apos|sol|plus|equals)",
    )
)
"""One of them is in each run of letters in which something can be read, and where pairs of digits stand
apart.
"""


def _find_legible_letters(letters: bytes) -> tuple[list[tuple[int, int]] | None, bool]:
    """The letters of a run that may be base64 of legible bytes, counted from its start and from a letter at
    which a group begins; None where they are more than an eighth of it. And whether hex or base32 may stand
    in it.
    """
    search, spans, covered = compile_quick(_LEGIBLE_OR_OTHER).search, list[list[int]](), 0
    latest: dict[int, list[int]] = {}  # of each letter of a group the span that begins there
    match, other = search(letters), _BASE32_BEGINS.match(letters) is not None
    while match is not None:
        at = match.start()
        match = search(letters, at + 1)
        if not _TWELVE.match(letters, at):
            other = other or not _QUADS.match(letters, at)
            continue
        low, high = max(at - 4, at % 4), min(at + _ROW + 4, len(letters))
        span = latest.get(at % 4)
        if span is None or span[1] < low:
            span = latest[at % 4] = [low, low]
            spans.append(span)
        covered += high - span[1]
        span[1] = high
        if covered * 8 > len(letters):
            return None, other
    return [(low, high) for low, high in spans], other


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


def find_signs(text: str, stretches: Stretches) -> list[tuple[int, int]]:
    """Where a text has marks, or escapes of what a key, a name, or another encoding is spelled with: all
    but those of line ends, quotes and brackets, which only stand around them.
    """
    signs = []
    for at in stretches.escapes:
        if text.startswith(_BACKSLASHES, at):
            signs.append((at, at + len(_BACKSLASHES)))
        elif (match := _ESCAPE.match(text, at)) is not None and _spells(match):
            signs.append(match.span())
    has_bracket = "<" in text
    if "\x1b" in text or (signs and _has_colour(text)) or (has_bracket and "</" in text):
        signs += [
            match.span()
            for sign in ("\x1b", "<", *(("\\u001b", "\\x1b") if "\\" in text else ()))
            for at in find_all(text, sign)
            if (match := _MARKS.match(text, at)) is not None
        ]
    ascii85 = _find_ascii85(text, stretches.ascii85)
    signs += [match.span() for match in ascii85 if "\\" in match[0]]
    return sorted(signs)


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
