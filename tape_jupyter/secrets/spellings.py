"""How one secret value may be spelled in a text, and how to find many of them in one pass.

Pure: values in, patterns out. `Finder` is what the secrets known at one moment compile to; it is
never changed, only replaced, so that readers in other threads need no lock.
"""

from __future__ import annotations

import base64
import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from tape_jupyter.secrets.needles import find_all

SHORT = 8
"""A value of fewer characters is looked for as a whole word only, in its raw and escaped spelling."""

# characters: a shorter stretch of letters and digits is in too many clean texts to be a needle
_PLAIN_RUN = 6
_FIELD = 64
"""Bytes that no name of a field is longer than."""
_ESCAPED = 32
"""Bytes that a character takes at most, however it is escaped: two halves of a pair, each
behind eight backslashes.
"""


@dataclass(frozen=True)
class Finder:
    """Finds values (value -> what to put in its place) in a text: `hits` is the quick question,
    `replace` the answer.

    A value that contains another goes before it.
    """

    values: Mapping[str, str]
    odd: re.Pattern[str] | None  # of values that no needle stands for
    short: tuple[bytes, ...]  # needles looked for one by one
    words: Mapping[int, Sequence[bytes]]  # the 8-byte words of the long needles, and those of each
    stride: int
    reach: int
    """Bytes that whatever `hits` finds takes up at most, and a name of a field."""

    def hits(self, data: bytes) -> bool:
        """May `data` (UTF-8) hold one of the values? False is certain."""
        return (
            any(needle in data for needle in self.short)
            or next(self._find_long_needles(data), None) is not None
            or (
                self.odd is not None
                and self.odd.search(data.decode("utf-8", "surrogatepass")) is not None
            )
        )

    @cached_property
    def needles(self) -> frozenset[str]:
        """Texts one of which stands in each text that holds a value, but for `odd` ones."""
        long = (needle for needles in self.words.values() for needle in needles)
        return frozenset(needle.decode() for needle in (*self.short, *long))

    def replace(self, text: str) -> str:
        """The text with each value, in whatever spelling, replaced."""
        marks = tuple(self.values.values())
        out, last = [], 0
        for start, end, which in self.find_spans(text):
            out += [text[last:start], marks[which]]
            last = end
        return "".join([*out, text[last:]])

    def find_spans(self, text: str) -> Iterator[tuple[int, int, int]]:
        """Where each value stands in the text: start, end, and which of `values` it is."""
        for first, last in self._find_neighbourhoods(text) if self.values else ():
            yield from (
                (*match.span(), (match.lastindex or 1) - 1)
                for match in self._compiled_pattern.finditer(text, first, last)
            )

    def _find_neighbourhoods(self, text: str) -> Iterator[tuple[int, int]]:
        """The stretches of a text that hold whatever stands in it: it is spelled by patterns that
        take their time.
        """
        widest = _ESCAPED * max(map(len, self.values))
        if len(text) <= 2 * widest:
            yield 0, len(text)
            return
        data = text.encode("utf-8", "surrogatepass")
        places = [span for match in self._find_odd(text) if (span := match.span())]
        for needle in {
            *(needle for needle in self.short if needle in data),
            *self._find_long_needles(data),
        }:
            places += [(at, at + len(needle)) for at in find_all(text, needle.decode())]
        first = last = 0
        for start, end in sorted(places):
            if start - widest > last:
                if last:
                    yield first, last
                first = start - widest
            last = max(last, end + widest)
        if last:
            yield first, min(last, len(text))

    def _find_odd(self, text: str) -> Iterator[re.Match[str]]:
        return iter(()) if self.odd is None else self.odd.finditer(text)

    @cached_property
    def _compiled_pattern(self) -> re.Pattern[str]:
        """Compiled when first needed: it takes about 1 ms a value, and most runs never meet one."""
        return re.compile("|".join(f"({_build_spelling_pattern(value)})" for value in self.values))

    def _find_long_needles(self, data: bytes) -> Iterator[bytes]:
        """Wherever it lies, a needle of 8 * stride + 7 bytes covers one of every stride aligned
        words whole.
        """
        if not self.words:
            return
        aligned = memoryview(data)[: len(data) & ~7].cast("Q")
        there = self.words.keys() & aligned[:: self.stride].tolist()
        candidates = {needle for word in there for needle in self.words[word]}
        yield from (needle for needle in candidates if needle in data)


def finder(values: Mapping[str, str]) -> Finder:
    odd = [value for value in values if len(_find_longest_run(value)) < min(_PLAIN_RUN, len(value))]
    needles = {
        needle for value in values for needle in _collect_needles(value, raw=value not in odd)
    }
    stride = _choose_stride([len(needle) for needle in needles])
    long = {needle for needle in needles if len(needle) >= 8 * stride + 7}
    words: dict[int, list[bytes]] = {}
    for needle in long:
        for word in _split_into_words(needle):
            words.setdefault(word, []).append(needle)
    return Finder(
        values=values,
        odd=re.compile("|".join(_build_escaped_pattern(value) for value in odd)) if odd else None,
        short=tuple(sorted(needles - long)),
        words=words,
        stride=stride,
        reach=max([_FIELD, *map(len, needles), *(_ESCAPED * len(value) for value in odd)]),
    )


def _build_spelling_pattern(value: str) -> str:
    """A pattern that finds a value raw, URL-, JSON- and HTML-encoded (also mixed), in hex and in
    base64.
    """
    if len(value) < SHORT:
        return rf"(?<![A-Za-z0-9]){_build_escaped_pattern(value)}(?![A-Za-z0-9])"
    data = value.encode("utf-8", "surrogatepass")
    return "|".join(
        (_build_escaped_pattern(value), f"(?i:{data.hex()})", *_build_base64_patterns(data))
    )


def _build_escaped_pattern(value: str) -> str:
    return "".join(_build_character_pattern(c) for c in value)


_NAMED = {
    '"': (r'\\{1,8}"', "&quot;", "&#34;"),
    "\\": (r"\\{2,8}",),
    "/": (r"\\{1,8}/",),
    "\n": (r"\\{1,8}n",),
    "\t": (r"\\{1,8}t",),
    "\r": (r"\\{1,8}r",),
    "\b": (r"\\{1,8}b",),
    "\f": (r"\\{1,8}f",),
    " ": (r"\+",),
    "&": ("&amp;",),
    "<": ("&lt;",),
    ">": ("&gt;",),
    "'": ("&#x27;", "&#39;", r"\\{1,8}'"),
}


@lru_cache(maxsize=512)
def _build_character_pattern(c: str) -> str:
    """One character as JSON (also inside JSON), URLs and HTML spell it; letters and digits have one
    spelling.
    """
    if c.isascii() and c.isalnum():
        return c
    octets = "".join(f"%{octet:02x}" for octet in c.encode("utf-8", "surrogatepass"))
    units = json.dumps(c)[1:-1].split("\\u")[1:] if ord(c) > 0x7E else [f"{ord(c):04x}"]
    escapes = "".join(r"\\{1,8}u" + unit for unit in units)
    # Escapes are escaped again by each layer of JSON; without a bound on the layers a run of
    # backslashes takes n * n.
    return f"(?:{'|'.join((*_NAMED.get(c, ()), f'(?i:%(?:25)?{octets[1:]})', f'(?i:{escapes})', re.escape(c)))})"


def _build_base64_patterns(data: bytes) -> Iterable[str]:
    """The three alignments, both alphabets. Characters that the value shares with its neighbours go
    as well.
    """
    for shift in range(3):
        body = "".join(
            {"+": "[+-]", "/": "[/_]"}.get(c, c) for c in _encode_base64_inner(data, shift)
        )
        before = "[A-Za-z0-9+/_-]?" if shift else ""
        after = "[A-Za-z0-9+/_-]?" if (shift + len(data)) % 3 else ""
        yield before + body + after


def _encode_base64_inner(data: bytes, shift: int) -> str:
    """The characters that `data` alone decides when it begins `shift` bytes (mod 3) into what is
    encoded.
    """
    encoded = base64.b64encode(b"\0" * shift + data).decode()
    return encoded[-(-shift * 8 // 6) : (shift + len(data)) * 8 // 6]


def _collect_needles(value: str, *, raw: bool) -> Iterable[bytes]:
    """Byte strings one of which is in every text that holds the value in some spelling (`raw`: also
    the plain ones).
    """
    if raw:
        yield _find_longest_run(value).encode()
    if len(value) >= SHORT:
        data = value.encode("utf-8", "surrogatepass")
        yield data.hex().encode()
        yield data.hex().upper().encode()
        for shift in range(3):
            yield _find_longest_run(_encode_base64_inner(data, shift)).encode()


def _find_longest_run(text: str) -> str:
    """The longest stretch of ASCII letters and digits: every encoding of text leaves those alone."""
    return max(re.findall(r"[A-Za-z0-9]+", text), key=len, default="")


def _choose_stride(lengths: Sequence[int]) -> int:
    """How many words apart to look, so that the whole takes the least time: needles too short for
    it are looked for one by one.
    """

    def estimate_time(stride: int) -> float:
        too_short = sum(length < 8 * stride + 7 for length in lengths)
        return too_short + (_LOOK_UP / stride if too_short < len(lengths) else 0)

    return min(_STRIDES, key=estimate_time)


_STRIDES = (8, 6, 5, 4, 3, 2, 1)
_LOOK_UP = 16  # searches for one needle that take as long as looking up every word


def _split_into_words(needle: bytes) -> Iterable[int]:
    return (int.from_bytes(needle[i : i + 8], sys.byteorder) for i in range(len(needle) - 7))
