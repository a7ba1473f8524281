"""Engine room: what one statement writes, and what that depends on, as far as it has been read: the state that
statements.py, stores.py, expressions.py and invoked.py add to.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from tape_jupyter.flow.history import covers
from tape_jupyter.flow.terms import ATOMS, NOTHING, Frame, Told, Unclear, Value
from tape_jupyter.flow.variables import MISSING, Variables

NODES = 3_000
"""Nodes of syntax trees that are read for one statement."""

Way = Callable[["Reckoning", Any, Frame], Any]
"""How one kind of node is read: a statement gives None, an expression a Value."""


class Reckoning:
    """Of one statement at the top of a cell. `unsteady`: names that the cell binds, whose value may have been another;
    `moved`: names whose value the cell changed, so that `log[-1]` may have been another. What kind of node is read in
    which way is in `statements` and `expressions`; a kind without a way is Unclear.
    """

    def __init__(
        self, variables: Variables, unsteady: frozenset[str], moved: frozenset[str],
        statements: Mapping[type, Way], expressions: Mapping[type, Way],
    ) -> None:  # fmt: skip
        self.told = Told()
        self.variables, self.unsteady, self.moved = variables, unsteady, moved
        self.depth = 0
        """Functions of the user's that are entered just now."""
        self._count = 0
        self._statements, self._expressions = statements, expressions

    def may_raise(self, frame: Frame, *deps: frozenset[str]) -> None:
        """What is done now may raise, depending on `deps`: so does all that comes after it."""
        self.told.raises |= frame.control.union(*deps)

    def after(self, frame: Frame, *deps: frozenset[str]) -> frozenset[str]:
        """What something that is done now depends on."""
        return self.told.raises.union(frame.control, *deps)

    def write(self, frame: Frame, path: str, deps: frozenset[str]) -> None:
        """A part of a name is given something that depends on `deps`."""
        self.told.writes[path] = self.told.writes.get(path, NOTHING) | self.after(frame, deps)

    def late(self, own: str) -> frozenset[str]:
        """What a part depends on since the statement itself wrote it."""
        return frozenset().union(*(deps for path, deps in self.told.writes.items() if covers(path, own)))

    def change(self, frame: Frame, value: Value, deps: frozenset[str]) -> None:
        """A value is changed in place, one does not know how."""
        if value.fresh is not None:
            value.fresh.deps |= self.after(frame, deps)
        for path, _ in value.refs | (value.fresh.refs if value.fresh is not None else frozenset()):
            self.write(frame, path, deps | {path})

    def block(self, body: Sequence[ast.stmt], frame: Frame) -> None:
        """Statements in their order. Raises Unclear."""
        for node in body:
            self._count += 1
            way = self._statements.get(type(node))
            if way is None or self._count > NODES:
                raise Unclear
            way(self, node, frame)

    def value(self, node: ast.expr, frame: Frame) -> Value:
        """An expression that is read whole. Raises Unclear."""
        found = self.base(node, frame)
        self.told.reads |= found.all
        return found

    def base(self, node: ast.expr, frame: Frame) -> Value:
        """An expression of which only a part may be read: `a` of `a.b`. Raises Unclear."""
        self._count += 1
        way = self._expressions.get(type(node))
        if way is None or self._count > NODES:
            raise Unclear
        found: Value = way(self, node, frame)
        return found

    def variable(self, name: str, frame: Frame) -> Value:
        """A name of the notebook, or of the module whose function this is. Raises Unclear."""
        resource = self.variables.resource(frame.place, name)
        if resource is None:
            return Value(obj=getattr(builtins, name, MISSING))
        value = self.variables.value(resource)
        if value is MISSING and hasattr(builtins, name):
            raise Unclear
        if resource in self.unsteady:
            value = MISSING
        if type(value) in ATOMS:
            return Value(own=resource, kind=type(value), late=self.late(resource))
        return Value(own=resource, refs=frozenset({(resource, True)}), obj=value, late=self.late(resource))

    def now(self, value: Value) -> Any:
        """What a name holds after the cell."""
        return self.variables.value(value.own) if value.own and value.own.isidentifier() else MISSING

    def all_of(self, values: Iterable[Value]) -> frozenset[str]:
        """What values depend on that are read whole."""
        found = frozenset().union(*(each.all for each in values))
        self.told.reads |= found
        return found
