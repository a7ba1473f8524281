"""The answer of `tape why`, in words, as a table, as a tree with the culprit marked, as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from tape_jupyter.core.plain_text import format_count
from tape_jupyter.experiments.causes.search import Place
from tape_jupyter.experiments.ddmin import Outcome

Layer = Literal["flips", "stays", "unresolved", "not swapped"]
LAYER_TEXTS: Mapping[str, str] = {
    "flips": "the check holds",
    "stays": "it still fails",
    "unresolved": "unknown: that run asks for a call on neither tape, or the check raises",
    "not swapped": "differs; cannot be swapped offline",
}
MARK = ">>"


@dataclass(frozen=True, slots=True)
class CauseNode:
    """A line of the tree: a code cell, or below it something that differs or was asked there.
    `span` is `RUN/ID` of a call.
    """

    id: str
    title: str
    span: str = ""
    depth: int = 0
    differs: bool = False
    culprit: bool = False


@dataclass(frozen=True, slots=True)
class Cause:
    """`minimal` are ids of the calls (or `clock:4`, `chance:4`, `code:4` of code cell 4) of which
    none can be left out; `within` the places in their replies. `layers`: what came of taking all of
    a layer from the good side.

    `own` are the seconds that the trials took themselves, the first with the start of their
    process; `seconds` all of it. `notes` are
    sentences: what differs and was not swapped, what else would do.
    """

    minimal: tuple[str, ...]
    titles: tuple[str, ...]
    within: tuple[Place, ...]
    layers: Mapping[str, Layer]
    differing: int
    trials: int
    unresolved: int
    seconds: float
    own: float
    check: str
    sides: tuple[str, str]
    tree: tuple[CauseNode, ...] = ()
    notes: tuple[str, ...] = ()
    asked: int = 0
    cost: str = ""

    def record(self) -> dict[str, Any]:
        """What `--json` prints."""
        return {
            "minimal": list(self.minimal),
            "within": [place.record() for place in self.within],
            "layers": dict(self.layers),
            "trials": self.trials,
            "unresolved": self.unresolved,
            "seconds": round(self.seconds, 3),
        }

    def build_view_record(self) -> dict[str, Any]:
        """The same, with what a view shows: words and the tree."""
        tree = [asdict(node) for node in self.tree]
        notes = self._format_end()
        text = self.text(timed=False)
        return {
            **self.record(),
            "words": self.format_summary(),
            "tree": tree,
            "notes": notes,
            "text": text,
        }

    def text(self, *, timed: bool = True) -> str:
        """In words, with the table of layers and the tree. Not `timed`: what is the same each time."""
        end = self._format_end(timed=timed)
        return "\n".join(
            [*self.format_summary(), "", *self._format_table(), "", *self._format_tree(), *end]
        )

    def format_summary(self) -> list[str]:
        """What makes the difference, and which part of it."""
        count, (good, bad) = len(self.minimal), self.sides
        what = "1 difference makes" if count == 1 else f"{count} differences together make"
        lines = [
            f"{what} `{self.check}` fail in {bad}, of {self.differing} between {good} and {bad}:"
        ]
        for each, title in zip(self.minimal, self.titles, strict=True):
            lines.append(f"  {each}  {title}")
            for place in (place for place in self.within if place.call == each):
                lines.append(f"      {place.fragment.path}")
                lines.append(f"        {bad}: {place.fragment.bad}")
                lines.append(f"        {good}: {place.fragment.good}")
        return lines

    def _format_table(self) -> list[str]:
        width = max([len(layer) for layer in self.layers] + [5])
        head = f"  {'layer':{width}}  with all of it from {self.sides[0]}"
        rows = [
            f"  {layer:{width}}  {LAYER_TEXTS[outcome]}" for layer, outcome in self.layers.items()
        ]
        return [head, *rows]

    def _format_tree(self) -> list[str]:
        lines = [f"{_choose_mark(node)} {'  ' * node.depth}{node.title}" for node in self.tree]
        return [*lines, f"({MARK} the cause, * differs)", ""] if lines else []

    def _format_end(self, *, timed: bool = True) -> list[str]:
        if self.asked:
            live = f"{format_count(self.asked, 'call')} went live{self.cost}"
        else:
            live = "nothing went live"
        seconds = f", {self.seconds:.1f} s" if timed else ""
        summary = (
            f"{format_count(self.trials, 'trial')}, {self.unresolved} unresolved{seconds}; {live}"
        )
        return [*self.notes, summary]


def _choose_mark(node: CauseNode) -> str:
    if node.culprit:
        return MARK
    return " *" if node.differs else "  "


def tried_layers(outcomes: Mapping[str, Outcome], unswapped: Mapping[str, Any]) -> dict[str, Layer]:
    """The layers that were tried, then those that only differ."""
    layers: dict[str, Layer] = dict(outcomes)
    for layer in unswapped:
        layers.setdefault(layer, "not swapped")
    return layers
