"""Objects that a body can reach: how each is reached, and what a person calls it."""

from __future__ import annotations

from dataclasses import dataclass
from types import FunctionType, ModuleType
from typing import Any

from tape_jupyter.effects import kinds
from tape_jupyter.effects.kinds import Kind
from tape_jupyter.effects.paths import Step, format_path, step_text
from tape_jupyter.encoding.values.walker import shown_type


@dataclass(slots=True)
class ReachedObject:
    """An object within reach, how it is reached, and how it looked. `state` is None for what keeps
    no state.
    """

    value: Any
    above: ReachedObject | None
    step: Step
    kind: Kind | None
    state: Any = None
    placed: bool = True
    """Whether it can be named; what a set holds cannot, unless something else leads to it, too."""

    def path(self) -> str:
        """From a root of the scope. Raises LookupError where it is held by a set, which has no
        places.
        """
        if self.above is None:
            return str(self.step[1])
        return f"{self.above.path()}{step_text(self.step)}"

    def is_better_reached(self, above: ReachedObject, step: Step) -> bool:
        """Whether this way to it is the better one: any to what had none; a variable's name rather than a
        way through other objects, which may be missing in a replay, and says less to a person.
        """
        is_deep = self.above is not None and self.above.above is not None
        is_named = step[0] == "name" and above.above is None
        is_better = not self.placed or (is_deep and is_named)
        return is_better and not above.is_below(self)

    def is_below(self, other: ReachedObject) -> bool:
        """Whether the other is on the way to this one."""
        node: ReachedObject | None = self
        while node is not None and node is not other:
            node = node.above
        return node is other


def describe_reached(node: ReachedObject) -> str:
    """What a person calls it: `todo`, `self.items`, `count`; `a Person in team.people`."""
    try:
        return format_path(node.path())
    except LookupError:
        above = "" if node.above is None else f" in {describe_reached(node.above)}"
        return f"a {shown_type(type(node.value))}{above}"


def is_librarys_object(value: Any) -> bool:
    """Whether a library defines its class; code of a library does not count."""
    return kinds.is_librarys(type(value)) and not isinstance(
        value, (type, FunctionType, ModuleType)
    )
