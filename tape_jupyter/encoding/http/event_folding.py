"""Events of a stream that differ in a few leaves, folded to one entry, and back. Pure structure.

A stream is a list of *pieces* (one event, line or frame each); the cassette keeps a list of
*entries*:

    event: content_block_delta         fields of the piece (sse.py), `data` its JSON with the leaves emptied
    data: {delta: {text: ""}}
    at: delta.text                     where the pieces' main text goes
    text: North lost the most          the joined texts, in one piece to be read and edited
    cuts: [10, 9]                      characters of each piece
    vary:                              other leaves that differ
      - {at: obfuscation, text: xYzw, cuts: [3, 1]}
      - {at: p, text: abcdefgh, upto: [3, 8]}    abc, abcdefgh: each a beginning of the text
      - {at: sequence_number, count: 4}          4, 5, 6, ...
      - {at: usage.total, numbers: [10, 12]}
    pad: [3, 0]                        spaces before the last bracket (one number: the same in every piece)
    json: spaced                       the dialect, where it is not the stream's
    times: 2                           how many pieces, where nothing above tells
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, Final

from tape_jupyter.encoding.http.json_style import Dialect, dialect
from tape_jupyter.errors import CassetteError

Path = tuple[str | int, ...]
Entry = dict[str, Any]

_MAX_COLUMNS: Final = 8
_MAX_PAD: Final = 1_000
_MAX_TIMES: Final = 2**20  # a hand-written `times` must not fill the memory
_MAX_CHARS: Final = 2**27  # of one entry when unfolded
_LISTS: Final = ("cuts", "upto", "numbers")
_IDENTITY: Final = re.compile(
    r"(?!event_?[iI]d\Z)(?:(?:\w+_)?(?:type|object|id|name|role|model|index)|\w+(?:Id|Index|Name|Type))"
)
_FILLER: Final = frozenset(
    {"obfuscation", "p", "signature", "system_fingerprint", "event_id", "eventId"}
)
_NUMBERS: Final = frozenset({int, float})


class Piece:
    """One event of a stream. `fields` in wire order, `data: None` where the JSON stands; no
    dialect: no JSON.
    """

    __slots__ = ("data", "dialect", "fields", "pad")

    def __init__(
        self, fields: Entry, data: Any = None, spelling: Dialect | None = None, pad: int = 0
    ) -> None:
        self.fields, self.data, self.dialect, self.pad = fields, data, spelling, pad

    def entry(self, spelling: Dialect) -> Entry:
        if self.dialect is None:
            return dict(self.fields)
        entry = {**self.fields, "data": self.data}
        if self.dialect is not spelling:
            entry["json"] = self.dialect.name
        if self.pad:
            entry["pad"] = self.pad
        return entry


# ---------------------------------------------------------------- folding


def fold_stream(
    pieces: Iterable[Piece], spelling: Dialect, *, separate: bool = False
) -> list[Entry]:
    """Entries of a stream whose dialect is `spelling`; with `separate` one for each piece. Takes the
    pieces over.
    """
    if separate:
        return [piece.entry(spelling) for piece in pieces]
    entries: list[Entry] = []
    group: _Group | None = None
    for piece in pieces:
        if group is None or not group.accept_piece(piece):
            if group is not None:
                entries.append(group.entry(spelling))
            group = _Group(piece)
    if group is not None:
        entries.append(group.entry(spelling))
    return entries


class _Group:
    """Pieces that differ only in `columns`: their leaves, by path."""

    __slots__ = ("_blank", "_columns", "_first", "_pads")

    def __init__(self, first: Piece) -> None:
        self._first, self._pads = first, [first.pad]
        self._columns: dict[Path, list[Any]] = {}
        self._blank = first.data

    def accept_piece(self, piece: Piece) -> bool:
        """Whether the piece belongs here; then it is kept."""
        first = self._first
        if piece.dialect is not first.dialect or (
            piece.fields is not first.fields and not _has_same_fields(first, piece)
        ):
            return False
        if first.dialect is not None:
            leaves = self._take_leaves(piece.data) or self._widen_columns(piece.data)
            if leaves is None:
                return False
            for column, leaf in zip(self._columns.values(), leaves, strict=True):
                column.append(leaf)
        self._pads.append(piece.pad)
        return True

    def _take_leaves(self, data: Any) -> list[Any] | None:
        """The leaves of `data` if nothing else differs: blanked, so that the rest is compared at C
        speed.
        """
        leaves: list[Any] = []
        holders: list[tuple[Any, Any]] = []
        try:
            for path in self._columns:
                holder = _get_leaf(data, path[:-1])
                leaves.append(holder[path[-1]])
                holders.append((holder, path[-1]))
        except (LookupError, TypeError):
            return None
        for (holder, step), leaf in zip(holders, leaves, strict=True):
            holder[step] = _empty_leaf(leaf)
        if data == self._blank:
            return leaves
        for (holder, step), leaf in zip(holders, leaves, strict=True):
            holder[step] = leaf
        return None

    def _widen_columns(self, data: Any) -> list[Any] | None:
        """The leaves of `data` after columns were added for what else differs; None if too much
        does.
        """
        template = self._blank
        for path, column in self._columns.items():
            template = _replace_leaf(template, path, column[0])
        paths: list[Path] = []
        if (
            not _collect_changes(template, data, (), paths)
            or len(self._columns | dict.fromkeys(paths)) > _MAX_COLUMNS
        ):
            return None
        for path in paths:
            if path not in self._columns:
                leaf = _get_leaf(template, path)
                self._columns[path] = [leaf] * len(self._pads)
                self._blank = _replace_leaf(self._blank, path, _empty_leaf(leaf))
        return [_get_leaf(data, path) for path in self._columns]

    def entry(self, spelling: Dialect) -> Entry:
        first, times = self._first, len(self._pads)
        if times == 1:
            return first.entry(spelling)
        entry = Piece(first.fields, self._blank, first.dialect).entry(spelling)
        columns = [
            _build_column(path, values)
            for path, values in sorted(self._columns.items(), key=_rank_column)
        ]
        if columns and "text" in columns[0]:
            entry |= columns.pop(0)
        if columns:
            entry["vary"] = columns
        if any(self._pads):
            entry["pad"] = self._pads if len(set(self._pads)) > 1 else self._pads[0]
        if not any(key in column for key in _LISTS for column in (entry, *columns)):
            entry["times"] = times
        return entry


def _has_same_fields(first: Piece, piece: Piece) -> bool:
    return first.fields == piece.fields and list(first.fields) == list(piece.fields)


def _empty_leaf(leaf: Any) -> Any:
    if type(leaf) is str:
        return ""
    return 0 if type(leaf) in _NUMBERS else leaf


def _collect_changes(a: Any, b: Any, path: Path, paths: list[Path]) -> bool:
    """Collect the leaves in which `b` differs from `a`; False if it differs in more than texts and
    numbers.
    """
    kind, other = type(a), type(b)
    if kind is dict and other is dict:
        return _collect_dict_changes(a, b, path, paths)
    if kind is list and other is list:
        return _collect_list_changes(a, b, path, paths)
    if kind is str and other is str:
        return _add_leaf(path, paths)
    return kind in _NUMBERS and other in _NUMBERS and _add_leaf(path, paths)


def _collect_dict_changes(
    a: dict[str, Any], b: dict[str, Any], path: Path, paths: list[Path]
) -> bool:
    if len(a) != len(b):
        return False
    for (key, x), (other, y) in zip(a.items(), b.items(), strict=True):
        if key != other or (
            x is not y and x != y and not _collect_changes(x, y, (*path, key), paths)
        ):
            return False
    return True


def _collect_list_changes(a: list[Any], b: list[Any], path: Path, paths: list[Path]) -> bool:
    if len(a) != len(b):
        return False
    for i, (x, y) in enumerate(zip(a, b, strict=True)):
        if x is not y and x != y and not _collect_changes(x, y, (*path, i), paths):
            return False
    return True


def _add_leaf(path: Path, paths: list[Path]) -> bool:
    paths.append(path)
    return _may_vary(path)


@lru_cache(maxsize=1024)
def _may_vary(path: Path) -> bool:
    """What says *which* thing an event speaks of may not vary, nor what has no plain address."""
    names = [step for step in path if isinstance(step, str)]
    return (
        bool(names)
        and not _IDENTITY.fullmatch(names[-1])
        and not any("." in name for name in names)
    )


def _rank_column(column: tuple[Path, list[Any]]) -> tuple[bool, bool]:
    """Texts before numbers, filler last."""
    path, values = column
    return type(values[0]) is not str, path[-1] in _FILLER


def _build_column(path: Path, values: list[Any]) -> Entry:
    at = ".".join(map(str, path))
    if type(values[0]) is str:
        return {"at": at} | _build_text_column(values)
    if all(type(v) is int for v in values) and values == list(
        range(values[0], values[0] + len(values))
    ):
        return {"at": at, "count": values[0]}
    return {"at": at, "numbers": values}


def _build_text_column(values: list[str]) -> Entry:
    sizes = [len(value) for value in values]
    longest = max(values, key=len)
    if sum(sizes) >= 2 * len(longest) > 40 and all(map(longest.startswith, values)):
        return {"text": longest, "upto": sizes}
    return {"text": "".join(values), "cuts": sizes}


def _get_leaf(data: Any, path: Path) -> Any:
    for step in path:
        data = data[step]
    return data


def _replace_leaf(data: Any, path: Path, leaf: Any) -> Any:
    """A copy of `data` with another leaf at `path`; what is off the path is shared."""
    if not path:
        return leaf
    copy: Any = data.copy()
    copy[path[0]] = _replace_leaf(data[path[0]], path[1:], leaf)
    return copy


# ---------------------------------------------------------------- unfolding


def payloads(entry: Entry, spelling: Dialect) -> list[str]:
    """The JSON texts of an entry's pieces, in order. Raises CassetteError, TypeError, ValueError,
    LookupError.
    """
    if "json" in entry:
        spelling = dialect(entry["json"])
    data, columns = entry["data"], list(_iterate_columns(entry))
    times = pieces_of(entry, columns)
    if columns:
        texts = _fill_template(data, columns, spelling, times)
    else:
        texts = repeated(spelling.encode(data), times)
    return _pad_texts(texts, entry["pad"]) if "pad" in entry else texts


def merged_json(entry: Entry) -> list[Any] | None:
    """The JSON of an entry's pieces as if their main texts had come at once: for a glance at what a
    stream says.

    [] for an entry without JSON, None where only the pieces one by one can tell (texts of several
    parts in turns). Raises as `payloads` does.
    """
    if "data" not in entry:
        return None if {"raw", "base64"} & entry.keys() else []
    turns = (column for column in entry.get("vary", ()) if "numbers" in column)
    if "upto" in entry or any(
        _IDENTITY.fullmatch(column["at"].rpartition(".")[2]) for column in turns
    ):
        return None
    data = entry["data"]
    if "at" not in entry:
        return [data] * min(pieces_of(entry), _MAX_GLANCE)
    return [_replace_leaf(data, _parse_address(data, entry["at"]), entry["text"])]


_MAX_GLANCE: Final = 1_000


def split_pieces(entry: Entry) -> list[Entry]:
    """The pieces of an entry with `times` as entries of their own; any other entry, and one too
    large, alone.

    Raises as `payloads` does.
    """
    columns, pads = entry.get("vary", []), entry.get("pad")
    if "times" not in entry or any(key in column for key in _LISTS for column in (entry, *columns)):
        return [entry]
    times = pieces_of(entry)
    if times > _MAX_GLANCE:
        return [entry]
    bare = {key: value for key, value in entry.items() if key not in ("times", "vary")}
    pieces = []
    for number in range(times):
        piece = dict(bare)
        for column in columns:
            piece["data"] = _replace_leaf(
                piece["data"], _parse_address(piece["data"], column["at"]), column["count"] + number
            )
        if isinstance(pads, list):
            piece["pad"] = pads[number]
        pieces.append(piece)
    return pieces


def repeated(text: str, times: int) -> list[str]:
    if len(text) * times > _MAX_CHARS:
        raise CassetteError(f"times: {times} makes this event too large")
    return [text] * times


def pieces_of(entry: Entry, columns: Iterable[Entry] = ()) -> int:
    """How many pieces an entry stands for; its lists must agree."""
    counts = {len(column[key]) for column in columns for key in _LISTS if key in column}
    if type(entry.get("pad")) is list:
        counts.add(len(entry["pad"]))
    if "times" in entry:
        counts.add(entry["times"])
    times = counts.pop() if counts else 1
    if type(times) is int and times > _MAX_TIMES:
        raise CassetteError(f"times: {times} makes this event too large")
    if counts or type(times) is not int or times < 1:
        raise CassetteError(
            "the lists of a folded event (cuts, upto, numbers, pad, times) are not equally long"
        )
    return times


def _iterate_columns(entry: Entry) -> Iterator[Entry]:
    if "at" in entry:
        yield entry
    elif "text" in entry:
        raise CassetteError(
            "an event has data or text; both only with `at`, which says where in the data the text goes"
        )
    yield from entry.get("vary", ())


def _fill_template(data: Any, columns: list[Entry], spelling: Dialect, times: int) -> list[str]:
    """Each text is the template's with the leaves put in. The template is encoded once, with a mark
    for each leaf.
    """
    plain, mark = spelling.encode(data), "mark"
    while mark in plain:
        mark += "~"
    marks = [f"{mark}{i}:" for i in range(len(columns))]
    for column, name in zip(columns, marks, strict=True):
        data = _replace_leaf(data, _parse_address(data, column["at"]), name)
    parts = re.split(f'"{re.escape(mark)}([0-9]+):"', spelling.encode(data))
    order = [int(number) for number in parts[1::2]]
    if sorted(order) != list(range(len(columns))):
        raise CassetteError("two lists of a folded event have the same address")
    form = "%s".join(part.replace("%", "%%") for part in parts[::2])
    repeated(form, times)
    leaves = [_format_leaves(columns[i], spelling, times) for i in order]
    return [form % row for row in zip(*leaves, strict=True)]


def _parse_address(data: Any, at: str) -> Path:
    path: list[str | int] = []
    for step in at.split("."):
        path.append(int(step) if type(data) is list else step)
        data = data[path[-1]]
    return tuple(path)


def _format_leaves(column: Entry, spelling: Dialect, times: int) -> list[str]:
    if "numbers" in column:
        return [spelling.number(value) for value in column["numbers"]]
    if "count" in column:
        first = column["count"]
        if type(first) is not int:
            raise CassetteError("count is the first number")
        return list(map(str, range(first, first + times)))
    return [spelling.string(part) for part in _split_texts(column)]


def column_texts(column: Entry) -> list[str]:
    """The texts that a column stands for, one for each piece; [] for numbers, and for a mapping
    that is no column.
    """
    if not isinstance(column.get("at"), str) or not {"cuts", "upto"} & column.keys():
        return []
    try:
        return _split_texts(column)
    except (CassetteError, LookupError, TypeError):
        return []


def with_texts(column: Entry, texts: list[str]) -> Entry:
    """The same column with these texts instead."""
    rest = {key: value for key, value in column.items() if key not in ("text", "cuts", "upto")}
    return {**rest, "text": "".join(texts), "cuts": [len(text) for text in texts]}


def _split_texts(column: Entry) -> list[str]:
    if "upto" in column:
        return _cut_beginnings(column["text"], column["upto"])
    return recut_text(column["text"], column["cuts"])


def recut_text(text: str, cuts: list[int]) -> list[str]:
    """The text in as many parts as there are cuts: of those lengths; after an edit as long as it
    lasts, rest last.
    """
    if type(text) is not str or not cuts or any(type(cut) is not int or cut < 0 for cut in cuts):
        raise CassetteError("a folded event has a text, and cuts: a list of character counts")
    ends = list(itertools.accumulate(cuts))
    if ends[-1] != len(text):
        ends[-1] = len(text)
    return [text[start:end] for start, end in zip([0, *ends[:-1]], ends, strict=True)]


def _cut_beginnings(text: str, upto: list[int]) -> list[str]:
    """The text's beginnings of those lengths; after an edit what was whole is whole again."""
    if type(text) is not str or not upto or any(type(end) is not int or end < 0 for end in upto):
        raise CassetteError("a folded event has a text, and upto: a list of character counts")
    full_length = max(upto)
    return [text if end == full_length else text[:end] for end in upto]


def _pad_texts(texts: list[str], pad: int | list[int]) -> list[str]:
    pads: list[Any] = pad if isinstance(pad, list) else [pad] * len(texts)
    if not all(type(n) is int and 0 <= n <= _MAX_PAD for n in pads):
        raise CassetteError("pad is a number of spaces")
    return [f"{text[:-1]}{' ' * n}{text[-1:]}" for text, n in zip(texts, pads, strict=True)]
