"""The tree of a trace's spans: which calls hold others, and by which path a call is reached."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple


class TraceNode(NamedTuple):
    """A span or a call of a trace. `kind` is "span", or the kind of call."""

    parent: str
    name: str
    kind: str


@dataclass(slots=True)
class Tree:
    """The nodes of one trace by their ids; parents may come after their children, or not at all."""

    nodes: dict[str, TraceNode] = field(default_factory=dict)
    repeated: int = 0

    def add(self, name: str, node: TraceNode) -> None:
        self.repeated += name in self.nodes
        self.nodes[name] = node

    def above(self, name: str) -> list[str]:
        """The ids above a node, the nearest first; a circle of parents is followed once."""
        ancestors: list[str] = []
        passed = {name}
        while (
            (node := self.nodes.get(name)) is not None
            and node.parent in self.nodes
            and node.parent not in passed
        ):
            name = node.parent
            passed.add(name)
            ancestors.append(name)
        return ancestors

    def outer(self) -> set[str]:
        """The model calls that hold another model call: the innermost is the one that was sent."""
        outer_calls: set[str] = set()
        for name, node in self.nodes.items():
            for upper in self.above(name) if node.kind == "model" else ():
                kind = self.nodes[upper].kind
                if kind == "tool":
                    break
                if kind == "model":
                    outer_calls.add(upper)
        return outer_calls

    def path(self, name: str) -> tuple[str, ...]:
        """The names of the spans around a node, from the outermost."""
        names = (self.nodes[upper] for upper in reversed(self.above(name)))
        return tuple(node.name for node in names if node.kind == "span")

    def caller(self, name: str) -> str:
        """The nearest tool above a node, "" where there is none."""
        for upper in self.above(name):
            if self.nodes[upper].kind in ("tool", "retrieval"):
                return upper
        return ""

    def strangers(self) -> int:
        """How many nodes name a parent that is not there."""
        return sum(
            bool(node.parent) and node.parent not in self.nodes for node in self.nodes.values()
        )

    def circles(self) -> int:
        """How many nodes have no end above them."""
        return sum(self._is_circular(name) for name in self.nodes)

    def _is_circular(self, name: str) -> bool:
        above = self.above(name)
        top = self.nodes[above[-1] if above else name].parent
        return top in self.nodes
