"""How a cell's outputs differ from those that are expected, told so that a person sees it at once:
text as a unified diff, a table by the cells that changed, a picture by its size and the share of
its pixels.

What counts as a difference is comparison/outputs.py's to say; here it is only shown.
"""

from __future__ import annotations

import base64
import binascii
import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tape_jupyter.comparison import images, outputs, tables
from tape_jupyter.comparison.images import Images
from tape_jupyter.comparison.tables import TableDiff

LINES = 60
"""Lines of one part's diff in a terminal; the report shows REPORTED."""
REPORTED = 1_000


@dataclass(frozen=True)
class OutputPart:
    """One thing that a cell shows: a stream, an error, or one form (a mime type) of a display."""

    name: str
    lines: tuple[str, ...]
    """As they are compared: without what is forgiven."""
    value: Any = field(default=None, compare=False, repr=False)
    display: int = field(default=0, compare=False)
    """Which of the cell's displays it is a form of."""


@dataclass(frozen=True)
class OutputDifference:
    """One part that differs. `name` as Part's; `table` and `images` where it is one, else `lines`
    of a diff.
    """

    name: str
    lines: tuple[str, ...] = ()
    table: TableDiff | None = None
    images: Images | None = None
    only: str = ""
    """"expected" or "replayed" where the other has no such part."""

    @property
    def heading(self) -> str:
        """Its name; of an error the first line of what it says."""
        first, *more = self.name.splitlines() or [""]
        return f"{first} …" if more else first

    def text(self, most: int = LINES) -> list[str]:
        """The lines that a terminal shows."""
        if self.only:
            head = f"{self.heading}: {'missing in the replay' if self.only == 'expected' else 'new in the replay'}"
        else:
            head = f"{self.heading}:"
        lines = self._list_lines()
        more = len(lines) - most
        shortened = map(outputs.shortened, lines[:most])
        return [head, *shortened, *([outputs.format_more(more)] if more > 0 else [])]

    def record(self) -> dict[str, Any]:
        """For --json."""
        what = self._find_kind()
        return {"part": self.name, "what": what, "only": self.only, "lines": self.text()[1:]}

    def _list_lines(self) -> list[str]:
        if self.table:
            return self.table.text()
        return self.images.text() if self.images else list(self.lines)

    def _find_kind(self) -> str:
        if self.table:
            return "table"
        return "image" if self.images else "text"


def compare_cells(
    expected: Sequence[outputs.Output],
    replayed: Sequence[outputs.Output],
    where: Mapping[str, str] = outputs.NOWHERE,
) -> list[OutputDifference]:
    """The parts that differ, in the order of the cell; [] where none does. `where` as in
    outputs.output_lines().
    """
    pairs = _pair_parts(list(parts(expected, where)), list(parts(replayed, where)))
    differences = [(one, _compare_parts(one, other)) for one, other in pairs]
    tabled = {one.display for one, each in differences if one and each and each.table}
    return [
        each
        for one, each in differences
        if each
        and not (
            one and one.name == "text/plain" and one.display in tabled
        )  # a frame's plain form: the same
    ]


def parts(
    cell_outputs: Sequence[outputs.Output], where: Mapping[str, str] = outputs.NOWHERE
) -> Iterator[OutputPart]:
    """What a cell shows, part by part, as it is compared."""
    for number, group in enumerate(_group_outputs(cell_outputs)):
        data = group[0].get("data") or {}
        forms: list[list[outputs.Output]] = [
            [{**group[0], "data": {kind: data[kind]}}] for kind in sorted(data)
        ]
        for each in forms or [group]:
            for name, lines in _split_headings(outputs.output_lines(each, where)):
                yield OutputPart(name, lines, data.get(name), number)


def _group_outputs(cell_outputs: Sequence[outputs.Output]) -> Iterator[list[outputs.Output]]:
    """Each display and error alone; neighbouring streams together, as comparison/outputs.py merges
    them.
    """
    streams: list[outputs.Output] = []
    for output in cell_outputs:
        if output.get("output_type") == "stream":
            streams.append(output)
            continue
        if outputs.is_summary(output):
            continue
        if streams:
            yield streams
            streams = []
        yield [output]
    if streams:
        yield streams


def _split_headings(lines: Iterator[str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The lines of outputs.output_lines() under their headings: "[stdout]"; the first line always is one."""
    name, kept = "", list[str]()
    for line in lines:
        if line.startswith("[") and line.endswith("]") and (not name or line in _HEADINGS):
            if name:
                yield name, tuple(kept)
            name, kept = line[1:-1], []
        else:
            kept.append(line)
    if name:
        yield name, tuple(kept)


_HEADINGS = ("[stdout]", "[stderr]")
"""The headings that may follow another in one group: streams. Everything else is a group alone."""


def _pair_parts(
    before: list[OutputPart], after: list[OutputPart]
) -> list[tuple[OutputPart | None, OutputPart | None]]:
    """What is compared with what: equal parts first, between them those of one name in their order."""
    pairs: list[tuple[OutputPart | None, OutputPart | None]] = []
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    for tag, a, b, c, d in matcher.get_opcodes():
        if tag == "equal":
            continue
        names = difflib.SequenceMatcher(
            None,
            [each.name for each in before[a:b]],
            [each.name for each in after[c:d]],
            autojunk=False,
        )
        for how, i, j, k, m in names.get_opcodes():
            if how == "equal":
                pairs += zip(before[a + i : a + j], after[c + k : c + m], strict=True)
            else:
                pairs += [(each, None) for each in before[a + i : a + j]]
                pairs += [(None, each) for each in after[c + k : c + m]]
    return pairs


def _compare_parts(one: OutputPart | None, other: OutputPart | None) -> OutputDifference | None:
    if one is None or other is None:
        part = one or other
        assert part is not None
        sign, only = ("-", "expected") if one else ("+", "replayed")
        one_sided = None
        if images.is_image(part.name):
            one_sided = images.one_sided_images(part.name, _decode_image(part), only)
        lines = () if one_sided else tuple(f"{sign}{line}" for line in part.lines[:REPORTED])
        return OutputDifference(part.name, lines, images=one_sided, only=only)
    if one.lines == other.lines:
        return None
    if images.is_image(one.name):
        return OutputDifference(
            one.name,
            images=images.compare_images(one.name, _decode_image(one), _decode_image(other)),
        )
    if tables.may_hold_table(one.name) and (
        table := tables.compare_tables(
            outputs.join_lines(one.value), outputs.join_lines(other.value)
        )
    ):
        return OutputDifference(one.name, table=table)
    return OutputDifference(one.name, _diff_lines(one.lines, other.lines))


def _diff_lines(one: Sequence[str], other: Sequence[str]) -> tuple[str, ...]:
    lines = list(difflib.unified_diff(one, other, lineterm="", n=2))[2:]
    more = len(lines) - REPORTED
    if more > 0:
        return (*lines[:REPORTED], outputs.format_more(more))
    return tuple(lines)


def _decode_image(part: OutputPart) -> bytes:
    try:
        return base64.b64decode(outputs.join_lines(part.value).encode("ascii", "replace"))
    except (binascii.Error, ValueError):
        return b""
