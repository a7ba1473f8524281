"""What in a bundle's files is a secret: values that are secret here and now, what looks like a key,
what people's own patterns find; in the encodings that nested_encodings.py, passages.py and pdf.py
open. A leak says where and what kind, never the value.
"""

from __future__ import annotations

import bisect
import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from tape_jupyter.core.progress import Tell
from tape_jupyter.secrets import key_patterns, nested_encodings, passages, spellings
from tape_jupyter.secrets.needles import Needles, encode_by_character
from tape_jupyter.secrets.passages import Passage
from tape_jupyter.secrets.registry import FIELD_NEEDLES, Secrets, find_field_name, plainly_none

NAME = "a file's name"
_KNOWN = "known "
_BETWEEN = "\n\x1e\n"
_BLOCK = 65536  # characters that are asked about at once
_BREAK = re.compile(r"[\s\"'<>]")
_BEFORE, _BEHIND = 170, 1_100  # characters around a sign that a key, its name and its address take
_FIELD_NAME, _FIELD_REACH = 24, 10_100
_CONTEXT = 48  # characters before a stretch of base64 that may say what it is: `AccountKey=`


@dataclass(frozen=True, order=True)
class Leak:
    """A place (file, then cell, call, line or address), what stands there, and how often."""

    where: str
    kind: str
    count: int


@dataclass(frozen=True)
class Hit:
    """A leak with its value, which only redaction may look at."""

    path: str
    where: str
    kind: str
    value: str

    def __repr__(self) -> str:
        return f"<{self.kind} in {self.where}>"


def scan(
    content: Mapping[str, bytes | Path], known: Secrets, on_progress: Tell | None = None
) -> list[Leak]:
    """Every secret in the files of a bundle (its paths -> bytes, or the file to read), sorted by
    place; [] if none.

    `known` holds what is secret here and now (known.here). Raises OSError where a file cannot be
    read.
    """
    return shown_leaks(hunt(content, known, on_progress))


def shown_leaks(hits: Iterable[Hit]) -> list[Leak]:
    """Hits as people may see them: a place that itself spells a secret is told without it."""
    hits = list(hits)
    values = {hit.value for hit in hits}
    counts = Counter((_remove_values(hit.where, values), hit.kind) for hit in hits)
    return sorted(Leak(where, kind, count) for (where, kind), count in counts.items())


def _remove_values(where: str, values: Iterable[str]) -> str:
    for value in values:
        where = where.replace(value, "...")
    return where


def hunt(
    content: Mapping[str, bytes | Path], known: Secrets, on_progress: Tell | None = None
) -> Iterator[Hit]:
    """Every secret in the files, with its value. A text that a file says several times is looked at
    once.
    """

    def find_suspects(texts: list[str]) -> set[int]:
        return _find_suspects(texts, known)

    # of people's own patterns nobody knows what they find in lines
    suspects = None if known.patterns else find_suspects
    for done, (path, source) in enumerate(content.items()):
        if on_progress is not None:
            on_progress("looking for secrets", done, len(content))
        data = passages.read_passages(source)
        by_text: dict[str, Passage] = {path: Passage(lambda: NAME, path)}
        for passage in passages.file_passages(path, data, suspects):
            by_text.setdefault(passage.text, passage)
        found = _search_passages(list(by_text.values()), known)
        hits = [Hit(path, passage.place(at), kind, value) for passage, at, kind, value in found]
        yield from hits
        if not any(passage.is_whole for passage in by_text.values()):
            yield from _find_missed_values(path, data, known, {hit.value for hit in hits})


def _find_suspects(texts: list[str], known: Secrets) -> set[int]:
    """The numbers of the lines of records (cassette_gate.py) in which a secret may stand: they have
    one encoding more, since texts stand in quotes.
    """
    numbered = [Passage(str(number).__str__, text) for number, text in enumerate(texts)]
    depth = nested_encodings.DEPTH + 1
    found = _search_passages(numbered, known, depth=depth, with_signs=True)
    return {int(passage.where()) for passage, *_ in found}


def _find_missed_values(path: str, data: bytes, known: Secrets, values: set[str]) -> Iterator[Hit]:
    """Values that are secret here and stand in the bytes, whatever the file is: what no passage
    said.
    """
    if _may_hold_secret(data, known):
        text = data.decode("utf-8", "replace")
        for start, end, kind in _find_known_values(text, known):
            value = text[start:end]
            if not any(value in other or other in value for other in values):
                yield Hit(path, f"{path}, line {text.count(chr(10), 0, start) + 1}", kind, value)


def _may_hold_secret(data: bytes, known: Secrets) -> bool:
    if known.needles is not None and not _build_needles(known.needles).any_in(data):
        return False
    return known.suspicious(data)


@lru_cache(maxsize=8)
def _build_needles(needles: frozenset[str]) -> Needles:
    return Needles(needles.union(FIELD_NEEDLES))


Found = tuple[Passage, int, str, str]
"""A passage, where in it something stands, of what kind it is, and its value."""


def _search_passages(
    passage_list: list[Passage],
    known: Secrets,
    *,
    is_outer: bool = True,
    depth: int = nested_encodings.DEPTH,
    with_signs: bool = False,
) -> Iterator[Found]:
    """Not `is_outer`: passages of files in base64, in which no more of such are looked for.
    `with_signs`: also where a known value, or a field with a secret's name, may stand.
    """
    stretches = [
        _Stretch(passage, None, 0, passage.text)
        for passage in passage_list
        if len(passage.text) >= spellings.SHORT
    ]
    seen: set[tuple[int, int, str]] = set()
    named: set[tuple[int, str]] = set()
    searched: set[tuple[int, int | None, int]] = set()
    for level in range(depth + 1):
        layer = _Layer(stretches, known)
        if level == 0 and is_outer:
            inner = list({each.text: each for each in _read_embedded_files(layer)}.values())
            yield from _search_passages(inner, known, is_outer=False) if inner else ()
        for stretch, offset, kind, value in _search_layer(layer, known):
            at = offset if stretch.offset is None else stretch.offset
            name, again = (id(stretch.passage), at, value), (id(stretch.passage), kind)
            if kind.startswith(_KNOWN) and level == 0:
                named.add(
                    again
                )  # known values are found in their encodings as well: not once more inside
            if name not in seen and (level == 0 or again not in named):
                seen.add(name)
                yield stretch.passage, at, kind, value
        if level == 0 and with_signs:
            signs = layer.suspicious.union(map(layer.find_index, layer.field_places))
            yield from ((stretches[index].passage, 0, "sign", "") for index in signs)
        if level == depth or not stretches:
            return
        stretches = [each for each in _unwrap_layer(layer, known) if _is_new(each, searched)]


def _is_new(stretch: _Stretch, searched: set[tuple[int, int | None, int]]) -> bool:
    """Whether its text was not searched before: colours and escapes come off in any order."""
    name = (id(stretch.passage), stretch.offset, hash(stretch.text))
    is_new = name not in searched
    searched.add(name)
    return is_new


@dataclass(frozen=True, slots=True)
class _Stretch:
    """A text to search: of a passage, or wrapped in one (`offset` is then where). `context`
    characters stand before.
    """

    passage: Passage
    offset: int | None
    context: int
    text: str


class _Layer:
    """Texts that are searched as one: most hold nothing, and each search has its price."""

    def __init__(self, stretches: list[_Stretch], known: Secrets) -> None:
        self.stretches = stretches
        self.starts = list(
            itertools.accumulate((len(each.text) + len(_BETWEEN) for each in stretches), initial=0)
        )
        self.text = _BETWEEN.join(each.text for each in stretches)
        self.data = encode_by_character(self.text)
        self.wrapped = nested_encodings.find_stretches(self.text, self.data)
        self._needles = known.needles
        more = self._needles or frozenset()
        self.places = list(key_patterns.find_places(self.text, self.data, more))
        self.field_places = sorted(
            at
            for place, needle in self.places
            if needle in key_patterns.NAMES_OF_FIELDS
            and (at := _find_field_name(self.text, place, place + len(needle))) is not None
        )
        self.suspicious: set[int] = set()
        """The texts that may hold a value that is known here."""

    def find_index(self, at: int) -> int:
        """The number of the text that stands at a place."""
        return bisect.bisect_right(self.starts, at) - 1

    def find_end(self, index: int) -> int:
        return self.starts[index + 1] - len(_BETWEEN)

    def find_end_of_letters(self, at: int) -> int:
        """Where the letters of base64 end that go on from a place."""
        return nested_encodings.find_run(self.data, at, self.wrapped.long)[1]

    def find_suspicious_texts(self, known: Secrets) -> Iterator[int]:
        """Which texts may hold a known value."""
        if self._needles is None:
            yield from self._ask_block_by_block(known)
            return
        for index in {self.find_index(at) for at, needle in self.places if needle in self._needles}:
            if _may_hold_value(self.stretches[index].text, known):
                yield index

    def _ask_block_by_block(self, known: Secrets) -> Iterator[int]:
        first, starts = 0, self.starts
        while first < len(self.stretches):
            last = max(first + 1, bisect.bisect_right(starts, starts[first] + _BLOCK) - 1)
            if _may_hold_value(self.text[starts[first] : starts[last]], known):
                yield from (
                    index
                    for index in range(first, last)
                    if last - first == 1 or _may_hold_value(self.stretches[index].text, known)
                )
            first = last


def _may_hold_value(text: str, known: Secrets) -> bool:
    return known.suspicious_values(text, text.encode("utf-8", "surrogatepass"))


def _read_embedded_files(layer: _Layer) -> Iterator[Passage]:
    """What the files say that stand in the texts of a layer as base64."""
    places: dict[int, list[tuple[int, int]]] = {}
    for at, needle in layer.places:
        if needle in nested_encodings.FILE_STARTS:
            index = layer.find_index(at)
            start, end = layer.starts[index], layer.find_end_of_letters(at)
            places.setdefault(index, []).append((at - start, end - start))
    for index, starts in places.items():
        yield from passages.read_embedded_files(layer.stretches[index].passage, starts)


def _find_field_name(text: str, start: int, end: int) -> int | None:
    return find_field_name(text, max(0, start - _FIELD_NAME), end)


def _search_layer(layer: _Layer, known: Secrets) -> Iterator[tuple[_Stretch, int, str, str]]:
    best: dict[int, list[tuple[int, int, str]]] = {}
    for secret in key_patterns.find_keys(layer.text, layer.places):
        index = layer.find_index(secret.start)
        start = layer.starts[index]
        best.setdefault(index, []).append((secret.start - start, secret.end - start, secret.kind))
    fields: dict[int, list[int]] = {}
    for at in layer.field_places:
        index = layer.find_index(at)
        fields.setdefault(index, []).append(at - layer.starts[index])
    layer.suspicious.update(layer.find_suspicious_texts(known))
    for index in {*layer.suspicious, *fields}:
        hits = _find_known_values(layer.stretches[index].text, known, fields.get(index, ()))
        best.setdefault(index, []).extend(hits)
    for index, found in sorted(best.items()):
        stretch = layer.stretches[index]
        for start, end, kind in _select_widest(found):
            if end > stretch.context:
                yield stretch, start, kind, stretch.text[start:end]


def _find_known_values(
    text: str, known: Secrets, field_places: Iterable[int] | None = None
) -> Iterator[tuple[int, int, str]]:
    for start, end, name, by_field in known.find_matches(text, field_places):
        value = text[start:end]
        plain = nested_encodings.without_escapes(value) or value  # a page has \u003c for a bracket
        if by_field and key_patterns.is_strong(value) and key_patterns.is_strong(plain):
            yield start, end, f"field {name}"
        elif not by_field and not plainly_none(plain):
            yield start, end, f"{_KNOWN}{name}"


def _select_widest(hits: list[tuple[int, int, str]]) -> Iterator[tuple[int, int, str]]:
    last = -1
    for start, end, kind in sorted(hits, key=lambda hit: (hit[0], -hit[1])):
        if end > last:
            last = end
            yield start, end, kind


def _unwrap_layer(layer: _Layer, known: Secrets) -> Iterator[_Stretch]:
    """What is wrapped in the texts of a layer."""
    text = layer.text
    for run in nested_encodings.encoded_runs(text, layer.data, layer.wrapped, whole=False):
        index = layer.find_index(run.start)
        stretch, at = layer.stretches[index], run.start - layer.starts[index]
        before = stretch.text[max(0, at - _CONTEXT) : at]
        yield _Stretch(
            stretch.passage,
            _choose_outer_offset(stretch.offset, at),
            len(before),
            before + nested_encodings.legible_parts(run.text),
        )
    for start, end in _find_spelled_stretches(layer, known):
        index = layer.find_index(start)
        stretch, at = layer.stretches[index], start - layer.starts[index]
        said = text[start:end]
        for plain in (nested_encodings.without_escapes(said), nested_encodings.uncoloured(said)):
            if plain is not None:
                offset = _choose_outer_offset(stretch.offset, at)
                yield _Stretch(stretch.passage, offset, 0, plain)


def _find_spelled_stretches(layer: _Layer, known: Secrets) -> Iterator[tuple[int, int]]:
    """The stretches of a layer's texts in which escapes or marks may hide something: around those that
    spell letters, and where something is that those of line ends and quotes may keep from being found.
    """
    text = layer.text
    signs = [
        (start, end, _BEHIND) for start, end in nested_encodings.find_signs(text, layer.wrapped)
    ]
    signs += key_patterns.find_escaped(text, layer.places)
    signs += [(at, at + _FIELD_NAME, _FIELD_REACH) for at in layer.field_places]
    whole = range(len(layer.stretches)) if known.patterns else layer.suspicious
    signs += [(layer.starts[index], layer.find_end(index), 0) for index in whole]
    last = first = -1
    for start, end, reach in sorted(signs):
        if start > last or first < 0:
            if first >= 0:
                yield first, _find_break(text, last, layer)
            first = _find_break_before(text, start - _BEFORE, layer.starts[layer.find_index(start)])
            last = 0
        last = max(last, min(end + reach, layer.find_end(layer.find_index(start))))
    if first >= 0:
        yield first, _find_break(text, last, layer)


def _find_break(text: str, at: int, layer: _Layer) -> int:
    """The next blank or quote: nothing is cut in two."""
    found = _BREAK.search(text, at)
    return min(found.start() if found else len(text), layer.find_end(layer.find_index(at)))


def _find_break_before(text: str, at: int, least: int) -> int:
    nearest = max(least, at - _FIELD_REACH)
    return max(nearest, *(text.rfind(each, nearest, max(at, nearest)) + 1 for each in " \n\"'<>"))


def _choose_outer_offset(outer: int | None, inner: int) -> int:
    return inner if outer is None else outer
