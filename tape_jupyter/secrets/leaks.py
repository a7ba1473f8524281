"""What in a bundle's files is a secret: values that are secret here and now, what looks like a key,
what people's own patterns find; in any encoding. A leak says where and what kind, never the value.
"""

from __future__ import annotations

import bisect
import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tape_jupyter.core.progress import Tell
from tape_jupyter.secrets import key_patterns, nested_encodings, passages, spellings
from tape_jupyter.secrets.passages import Passage
from tape_jupyter.secrets.registry import Secrets, plainly_none

NAME = "a file's name"
_KNOWN = "known "
_BETWEEN = "\n\x1e\n"
_BLOCK = 65536  # characters that are asked about at once
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
    for done, (path, source) in enumerate(content.items()):
        if on_progress is not None:
            on_progress("looking for secrets", done, len(content))
        data = passages.read_passages(source)
        by_text: dict[str, Passage] = {path: Passage(lambda: NAME, path)}
        for passage in passages.file_passages(path, data):
            by_text.setdefault(passage.text, passage)
        hits = list(_find_in_passages(path, list(by_text.values()), known))
        yield from hits
        yield from _find_missed_values(path, data, known, {hit.value for hit in hits})


def _find_missed_values(path: str, data: bytes, known: Secrets, values: set[str]) -> Iterator[Hit]:
    """Values that are secret here and stand in the bytes, whatever the file is: what no passage
    said.
    """
    if known.suspicious(data):
        text = data.decode("utf-8", "replace")
        for start, end, kind in _find_known_values(text, known):
            value = text[start:end]
            if not any(value in other or other in value for other in values):
                yield Hit(path, f"{path}, line {text.count(chr(10), 0, start) + 1}", kind, value)


def _find_in_passages(path: str, passage_list: list[Passage], known: Secrets) -> Iterator[Hit]:
    """The secrets of passages, and of what is wrapped in them; of two that overlap the longer."""
    layer = [
        _Stretch(passage, None, 0, passage.text)
        for passage in passage_list
        if len(passage.text) >= spellings.SHORT
    ]
    seen: set[tuple[int, int, str]] = set()
    named: set[tuple[int, str]] = set()
    for level in range(nested_encodings.DEPTH + 1):
        for stretch, offset, kind, value in _search_layer(layer, known):
            at = offset if stretch.offset is None else stretch.offset
            name, again = (id(stretch.passage), at, value), (id(stretch.passage), kind)
            if kind.startswith(_KNOWN) and level == 0:
                named.add(
                    again
                )  # known values are found in their encodings as well: not once more inside
            if name not in seen and (level == 0 or again not in named):
                seen.add(name)
                yield Hit(path, stretch.passage.place(at), kind, value)
        if level < nested_encodings.DEPTH and layer:
            layer = list(_unwrap_layer(layer))


@dataclass(frozen=True, slots=True)
class _Stretch:
    """A text to search: of a passage, or wrapped in one (`offset` is then where). `context`
    characters stand before.
    """

    passage: Passage
    offset: int | None
    context: int
    text: str


def _search_layer(
    layer: list[_Stretch], known: Secrets
) -> Iterator[tuple[_Stretch, int, str, str]]:
    """Most texts hold nothing, and each search has its price: many are searched as one."""
    starts, joined = _join_layer(layer)
    best: dict[int, list[tuple[int, int, str]]] = {}
    for secret in key_patterns.find_keys(joined):
        index = bisect.bisect_right(starts, secret.start) - 1
        best.setdefault(index, []).append(
            (secret.start - starts[index], secret.end - starts[index], secret.kind)
        )
    for index in _find_suspicious_texts(layer, starts, joined, known):
        best.setdefault(index, []).extend(_find_known_values(layer[index].text, known))
    for index, hits in sorted(best.items()):
        stretch = layer[index]
        for start, end, kind in _select_widest(hits):
            if end > stretch.context:
                yield stretch, start, kind, stretch.text[start:end]


def _find_suspicious_texts(
    layer: list[_Stretch], starts: list[int], joined: str, known: Secrets
) -> Iterator[int]:
    """Which texts may hold a known value; asked block by block."""
    first = 0
    while first < len(layer):
        last = max(first + 1, bisect.bisect_right(starts, starts[first] + _BLOCK) - 1)
        if known.suspicious(joined[starts[first] : starts[last]]):
            yield from (
                index for index in range(first, last) if known.suspicious(layer[index].text)
            )
        first = last


def _find_known_values(text: str, known: Secrets) -> Iterator[tuple[int, int, str]]:
    for start, end, name, by_field in known.find_matches(text):
        value = text[start:end]
        plain = (nested_encodings.unescaped(value) or (value, []))[
            0
        ]  # a page has a marker's bracket as \u003c
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


def _join_layer(layer: list[_Stretch]) -> tuple[list[int], str]:
    """All texts as one, and where each begins in it; one more number is the end."""
    starts = list(
        itertools.accumulate((len(each.text) + len(_BETWEEN) for each in layer), initial=0)
    )
    return starts, _BETWEEN.join(each.text for each in layer)


def _unwrap_layer(layer: list[_Stretch]) -> Iterator[_Stretch]:
    """What is wrapped in the texts of a layer."""
    starts, joined = _join_layer(layer)
    for run in nested_encodings.encoded_runs(joined):
        index = bisect.bisect_right(starts, run.start) - 1
        stretch, at = layer[index], run.start - starts[index]
        before = stretch.text[max(0, at - _CONTEXT) : at]
        yield _Stretch(
            stretch.passage,
            _choose_outer_offset(stretch.offset, at),
            len(before),
            before + run.text,
        )
    for stretch in layer:
        if (plain := nested_encodings.unescaped(stretch.text)) is not None:
            yield _Stretch(stretch.passage, stretch.offset, 0, plain[0])
        if (bare := nested_encodings.uncoloured(stretch.text)) is not None:
            yield _Stretch(stretch.passage, stretch.offset, 0, bare)


def _choose_outer_offset(outer: int | None, inner: int) -> int:
    return inner if outer is None else outer
