"""Secrets out of texts and structures: each value becomes its mark, in whatever encoding it stands,
and what is around it stays readable as what it was: base64 stays base64, a stream stays cut, a PNG
stays a PNG.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any
from urllib.parse import quote

from tape_jupyter.secrets import key_patterns, nested_encodings, passages
from tape_jupyter.secrets.registry import Secrets, marker
from tape_jupyter.secrets.spellings import SHORT

_STREAMS = ("events", "lines", "frames")
_MARKER = re.compile(r"<(secret:[\w.\-]+)>")
_BEGINNING = 12
"""Characters that are too much of a secret, where the rest is cut off."""
_PNG = "\x89PNG\r\n\x1a\n"
_PNG_TEXTS = (b"tEXt", b"iTXt", b"zTXt", b"eXIf")

Span = tuple[int, int, str]


class Masking(Secrets):
    """What takes the place of values: `marks` (value -> what stands for it), and `known`'s by
    `<secret:NAME>`; `again`: what stands for a marker that a recording has already.

    Fields are not masked by their names here: a notebook's code would break.
    """

    def __init__(
        self,
        known: Secrets,
        marks: Mapping[str, str],
        again: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        super().__init__()
        self._again = dict(again)
        self.seen: dict[str, str] = {}
        """Each stretch that was masked, as it stood, and what stands there now."""
        self._begun: list[tuple[str, str, str]] = []
        for regex, name in known.patterns:
            self.pattern(regex, name)
        self.learn_all((value, rank, marker(name)) for value, rank, name in known.list_values())
        self.learn_all((value, 9, mark) for value, mark in marks.items())

    def _build_mark(self, name: str) -> str:
        return name

    def has_marker(self, data: bytes) -> bool:
        """Whether a marker that is to be replaced stands in a file."""
        return any(each.encode() in data for each in self._again)

    def look_for_beginnings(self, seen: Mapping[str, str]) -> list[str]:
        """Mask what is only the beginning of such a stretch as well: names and titles are cut.
        Gives what a text must hold for that.
        """
        for stretch, mark in seen.items():
            same = _count_common_prefix(stretch, mark)
            ends = range(max(_BEGINNING, same + SHORT), len(stretch))
            if (
                end := next(
                    (end for end in ends if key_patterns.mixed(_unescape_text(stretch[same:end]))),
                    0,
                )
            ) and mark != stretch:
                self._begun.append((stretch[:end], stretch, mark))
        return [beginning for beginning, _, _ in self._begun]

    # ------------------------------------------------------------ texts

    def scrub(self, text: str) -> tuple[str, bool]:
        clean = self._mask_text(text, nested_encodings.DEPTH)
        return clean, clean != text

    def _mask_text(self, text: str, depth: int) -> str:
        if text.startswith(_PNG):
            text = without_texts(text.encode("latin-1", "replace")).decode("latin-1")
        clean = self._mask_wrapped(text, depth) if depth else text
        spans = self._note_masked(clean, self._find_spans(clean))
        if "\0" in text:
            return _replace_at_same_length(clean, spans)
        clean = _replace_spans(clean, spans)
        return self._mask_escaped(clean, depth) if depth else clean

    def _find_spans(self, text: str) -> Iterable[Span]:
        """Where values stand in a text, plainly or in a usual spelling, and their marks."""
        finder, spans = self._get_finder(), []
        if finder.hits(text.encode("utf-8", "surrogatepass")):
            marks = tuple(finder.values.values())
            spans = [(start, end, marks[which]) for start, end, which in finder.find_spans(text)]
        spans += self._find_cut_off(text)
        for each in _MARKER.finditer(text) if self._again else ():
            if each[0] in self._again:
                spans.append((*each.span(), self._again[each[0]]))
        for pattern, name in self._patterns:
            hits = (each for each in pattern.finditer(text) if not _MARKER.fullmatch(each[0]))
            spans += [(*each.span(), marker(name)) for each in hits]
        return spans

    def _find_cut_off(self, text: str) -> Iterable[Span]:
        """Where no more than a beginning stands of what was masked elsewhere."""
        for beginning, stretch, mark in self._begun:
            at = text.find(beginning)
            while at >= 0:
                size = _count_common_prefix(text[at : at + len(stretch)], stretch)
                yield at, at + size, mark if mark.startswith("<") else mark[:size]
                at = text.find(beginning, at + size)

    def _note_masked(self, text: str, spans: Iterable[Span]) -> list[Span]:
        spans = list(spans)
        self.seen.update((text[start:end], mark) for start, end, mark in spans)
        return spans

    def _mask_wrapped(self, text: str, depth: int) -> str:
        """With what stands in base64 and hex masked inside."""
        spans = []
        for run in sorted(nested_encodings.encoded_runs(text), key=lambda run: run.start):
            inner = self._mask_text(run.text, depth - 1)
            if inner != run.text:
                spans.append((run.start, run.end, run.wrap(inner)))
        return _replace_spans(text, self._note_masked(text, spans))

    def _mask_escaped(self, text: str, depth: int) -> str:
        """With values masked whose characters are escaped one by one, also several times over."""
        plain, starts = text, list(range(len(text) + 1))
        for _ in range(depth):
            unescaped = nested_encodings.unescaped(plain)
            if unescaped is None:
                break
            plain, starts = unescaped[0], [starts[at] for at in unescaped[1]]
            spans = [*self._find_spans(plain), *self._find_wrapped_spans(plain, depth - 1)]
            if spans:
                spans = [_escape_mark(text, starts[a], starts[b], mark) for a, b, mark in spans]
                text = _replace_spans(text, self._note_masked(text, spans))
                return self._mask_escaped(text, depth - 1)
        return text

    def _find_wrapped_spans(self, text: str, depth: int) -> Iterable[Span]:
        for run in nested_encodings.encoded_runs(text) if depth else ():
            inner = self._mask_text(run.text, depth - 1)
            if inner != run.text:
                yield run.start, run.end, run.wrap(inner)

    # ------------------------------------------------------------ structures

    def scrub_structure(self, value: Any) -> tuple[Any, bool]:
        moved = False
        if isinstance(value, dict):
            for kind in (
                _STREAMS
            ):  # as a whole first: of what is cut, a part may look like a secret of its own
                if isinstance(value.get(kind), list):
                    entries, across = self._mask_stream_entries(value[kind])
                    value, moved = ({**value, kind: entries}, True) if across else (value, moved)
        clean, changed = super().scrub_structure(value)
        return clean, changed or moved

    def _scrub_field(self, key: Any, item: Any) -> tuple[Any, bool]:
        clean, changed = self.scrub_structure(item)
        return (self.escape_output(key, clean), True) if changed else (item, False)

    def escape_output(self, key: Any, value: Any) -> Any:
        """A masked part of an output: in HTML a mark in angle brackets would be a tag."""
        if key not in ("text/html", "image/svg+xml", "text/markdown"):
            return value
        return _escape_markers_in_html(value)

    def _mask_stream_entries(self, entries: list[Any]) -> tuple[list[Any], bool]:
        """Entries of a stream without the values that are cut over several of them."""
        split_entries = [
            (entry, [_copy_structure(piece) for piece in passages.stream_entries([entry])])
            for entry in entries
        ]
        changed = False
        groups: dict[tuple[str, str], list[tuple[Any, Any]]] = {}
        for piece in (piece for _, pieces in split_entries for piece in pieces):
            which = passages.which(piece.get("data")) if isinstance(piece, dict) else ""
            for at, holder, key in _find_text_holders(piece):
                groups.setdefault((at, which), []).append((holder, key))
                if which:
                    groups.setdefault((at, ""), []).append((holder, key))
        for holders in groups.values():
            changed = (len(holders) > 1 and self._mask_pieces_together(holders)) or changed
        compared = (
            (entry, pieces, passages.stream_entries([entry])) for entry, pieces in split_entries
        )
        return [
            each for entry, new, old in compared for each in ([entry] if new == old else new)
        ], changed

    def _mask_pieces_together(self, pieces: list[tuple[Any, Any]]) -> bool:
        """Mask what the pieces say together; what a mask takes the place of goes into the piece
        where it begins.
        """
        texts = [holder[key] for holder, key in pieces]
        full_text = "".join(texts)
        clean, changed = self.scrub(full_text)
        if changed:
            for (holder, key), text in zip(pieces, recut_masked(texts, clean), strict=True):
                holder[key] = text
        return changed


def recut_masked(texts: list[str], clean: str) -> list[str]:
    """A changed whole in as many pieces: those before and after what changed stay as they are."""
    full_text = "".join(texts)
    begin = next(
        (i for i, (a, b) in enumerate(zip(full_text, clean, strict=False)) if a != b),
        min(len(full_text), len(clean)),
    )
    most = min(len(full_text), len(clean)) - begin
    same = next((i for i in range(most) if full_text[-1 - i] != clean[-1 - i]), most)
    stop, between = len(full_text) - same, clean[begin : len(clean) - same]
    out, at, placed = [], 0, False
    for number, text in enumerate(texts):
        start, end = at, at + len(text)
        head, tail = text[: max(0, begin - start)], text[max(0, stop - start) :]
        if not placed and (begin < end or number == len(texts) - 1):
            out.append(head + between + tail)
            placed = True
        else:
            out.append(text if end <= begin else tail)
        at = end
    return out


def _unescape_text(text: str) -> str:
    return nested_encodings.without_escapes(text) or text


def _count_common_prefix(one: str, other: str) -> int:
    """Characters that both begin with."""
    return next(
        (at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b),
        min(len(one), len(other)),
    )


def _replace_spans(text: str, spans: Iterable[Span]) -> str:
    """Of spans that overlap the first, and of those that begin together the longest."""
    out, last = [], 0
    for start, end, mark in sorted(spans, key=lambda span: (span[0], -span[1])):
        if start >= last:
            out += [text[last:start], mark]
            last = end
    return "".join([*out, text[last:]])


def _replace_at_same_length(text: str, spans: Iterable[Span]) -> str:
    """In bytes with offsets a mark takes as much room as what it stands for."""
    return _replace_spans(
        text,
        [(start, end, mark[: end - start].ljust(end - start, "-")) for start, end, mark in spans],
    )


def _escape_mark(text: str, start: int, end: int, mark: str) -> Span:
    """A mark as a place spells its characters."""
    original = text[start:end]
    if "%" in original:
        return start, end, quote(mark, safe="%")
    return start, end, html.escape(mark) if "&" in original else mark


def _escape_markers_in_html(value: Any) -> Any:
    if isinstance(value, list):
        return [_escape_markers_in_html(line) for line in value]
    return _MARKER.sub(r"&lt;\1&gt;", value) if isinstance(value, str) else value


def _copy_structure(entry: Any) -> Any:
    if isinstance(entry, dict):
        return {key: _copy_structure(value) for key, value in entry.items()}
    return [_copy_structure(item) for item in entry] if isinstance(entry, list) else entry


def _find_text_holders(entry: Any) -> Iterable[tuple[str, Any, Any]]:
    """Address, holder and key of each text that an entry of a stream says."""
    if not isinstance(entry, dict):
        return
    for column in (entry, *(each for each in entry.get("vary", ()) if isinstance(each, dict))):
        if isinstance(column.get("at"), str) and isinstance(column.get("text"), str):
            yield column["at"], column, "text"
    if "data" not in entry and isinstance(entry.get("text"), str):
        yield "", entry, "text"
    stack: list[tuple[str, Any, Any]] = [("", entry, "data")] if "data" in entry else []
    while stack:
        at, holder, key = stack.pop()
        value = holder[key]
        if isinstance(value, str) and value:
            yield at, holder, key
        elif isinstance(value, dict):
            stack.extend((f"{at}.{name}" if at else str(name), value, name) for name in value)
        elif isinstance(value, list):
            stack.extend(
                (f"{at}.{index}" if at else str(index), value, index) for index in range(len(value))
            )


def without_texts(png: bytes) -> bytes:
    """A PNG without the chunks that hold texts."""
    out, at = [png[:8]], 8
    while at + 12 <= len(png):
        end = at + 12 + int.from_bytes(png[at : at + 4])
        if png[at + 4 : at + 8] not in _PNG_TEXTS:
            out.append(png[at:end])
        at = end
    return b"".join(out)
