"""The values that dataflow/static/outcomes/__init__.py reckons with: parts of names, things that a
statement makes, and what each depends on; and the syntax trees of functions. Pure.

What one statement writes, and what that depends on, as far as it has been read: the state that
dataflow/static/outcomes/statements.py, dataflow/static/outcomes/expressions.py,
dataflow/static/outcomes/expressions.py and dataflow/static/outcomes/calls.py add to.
"""

from __future__ import annotations

import ast
import builtins
import linecache
import re
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from tape_jupyter.dataflow.history import ELEMENT, covers
from tape_jupyter.dataflow.tracing.variables import MISSING, Variables

NOTHING: frozenset[str] = frozenset()
ATOMS = (type(None), bool, int, float, complex, str, bytes)
NUMBERS = (bool, int, float)


class Unclear(Exception):
    """Something is not understood: nothing is told."""


@dataclass(frozen=True, slots=True)
class OutcomeValue:
    """`part`: the part of a name that it is; `deps`: what else it depends on; `refs`: (part, whether
    it is that very object or something in it).
    """

    deps: frozenset[str] = NOTHING
    part: str = ""
    refs: frozenset[tuple[str, bool]] = frozenset()
    obj: Any = MISSING
    kind: type | None = None
    fresh: NewObject | None = None
    bound: OutcomeValue | None = None
    """The object whose method it is."""
    late: frozenset[str] = NOTHING
    """What it depends on since the statement itself wrote it."""
    within: NewObject | None = None
    """The object made here of which it is a part, in which a change of it shows."""

    @property
    def all(self) -> frozenset[str]:
        deps = self.deps | self.late
        deps = deps | {self.part} if self.part else deps
        return deps | self.fresh.deps if self.fresh is not None else deps

    @property
    def inside(self) -> frozenset[tuple[str, bool]]:
        refs = frozenset((path, False) for path, _ in self.refs)
        return refs | self.fresh.refs if self.fresh is not None else refs

    @property
    def holder(self) -> NewObject | None:
        """The object made here that it is, or is a part of."""
        return self.fresh if self.fresh is not None else self.within


@dataclass(slots=True)
class NewObject:
    """An object that the statement makes."""

    deps: frozenset[str] = NOTHING
    refs: frozenset[tuple[str, bool]] = frozenset()
    parts: Mapping[str, frozenset[str]] | None = None
    """What each of its keys or fields depends on, `['role']` or `.system`, where it has these
    whatever the reply is.
    """
    kind: type | None = None
    """The user's class whose `__init__` fills it."""
    put: bool = False
    """It was put into something else."""


def put(values: Iterable[OutcomeValue]) -> frozenset[tuple[str, bool]]:
    """What is in the thing that values are put into."""
    refs: set[tuple[str, bool]] = set()
    for each in values:
        refs |= each.refs | each.inside
        if each.holder is not None:
            each.holder.put = True
    return frozenset(refs)


@dataclass(slots=True)
class StatementOutcome:
    """Of one statement. `writes`: parts, with what each depends on; `binds`: the same of names that
    it binds.
    """

    writes: dict[str, frozenset[str]] = field(default_factory=dict)
    binds: dict[str, frozenset[str]] = field(default_factory=dict)
    raises: frozenset[str] = NOTHING
    """What it depends on whether it comes to its end."""
    reads: set[str] = field(default_factory=set)
    codes: set[types.CodeType] = field(default_factory=set)
    """Code of the user that was read."""
    grows: set[str] = field(default_factory=set)
    """Names that it binds to the list that they had, which has more elements now."""
    appends: dict[str, int] = field(default_factory=dict)
    """By list, how often something is appended to it; UNSURE where nobody knows."""
    made: dict[str, OutcomeValue] = field(default_factory=dict)
    """Names that it binds in any case, and once, to an object that it makes."""

    def parts_of_made(self, name: str) -> dict[str, frozenset[str]]:
        """What each part of such an object depends on, where it is known."""
        value = self.made.get(name, OutcomeValue())
        parts = (value.fresh.parts if value.fresh is not None else None) or {}
        around = value.deps | value.late | self.raises
        return {f"{name}{step}": deps | around for step, deps in parts.items()}


@dataclass(slots=True)
class OutcomeFrame:
    place: str
    names: dict[str, OutcomeValue]
    shared: frozenset[str]
    """Names that are the module's, though it binds them."""
    top: bool = False
    control: frozenset[str] = NOTHING
    returns: list[OutcomeValue] = field(default_factory=list)


def part_root(path: str) -> str:
    """The variable that a part is of: `log` of `log[0].text`, `helpers:STATE` of
    `helpers:STATE['a']`.
    """
    place, colon, rest = path.partition(":")
    if not colon or "[" in place:
        place, colon, rest = "", "", path
    match = re.match(r"[^.\[]+", rest)
    return f"{place}{colon}{match[0] if match else rest}"


class Several:
    """One of the things in a box, nobody knows which."""

    def __init__(self, box: Any) -> None:
        self._box = box

    def functions(self) -> list[types.FunctionType]:
        inside = list(self._box.values() if isinstance(self._box, dict) else self._box)
        members = [each for each in inside if isinstance(each, types.FunctionType)]
        return members if members and len(members) == len(inside) <= 12 else []

    def are_of_atoms(self) -> bool:
        """Whether each is a method of a text or number, which changes nothing: `str.upper`."""
        inside = list(self._box.values() if isinstance(self._box, dict) else self._box)
        return all(
            type(each) is types.MethodDescriptorType and each.__objclass__ in ATOMS
            for each in inside
        )


def sum_kind(op: ast.operator, left: OutcomeValue, right: OutcomeValue) -> type | None:
    """The kind of a sum that does not raise; None where it may."""
    if (
        isinstance(op, ast.Add | ast.Sub | ast.Mult)
        and left.kind in NUMBERS
        and right.kind in NUMBERS
    ):
        return left.kind if left.kind is right.kind else float
    if isinstance(op, ast.Add) and left.kind is str and right.kind is str:
        return str
    return None


def loading(target: ast.expr) -> ast.expr:
    """The target of `x += 1` as it is read."""
    if isinstance(target, ast.Name):
        return ast.copy_location(ast.Name(target.id, ast.Load()), target)
    if isinstance(target, ast.Attribute):
        return ast.copy_location(ast.Attribute(target.value, target.attr, ast.Load()), target)
    if isinstance(target, ast.Subscript):
        return ast.copy_location(ast.Subscript(target.value, target.slice, ast.Load()), target)
    raise Unclear


def leaves_block(node: ast.AST) -> bool:
    return any(
        isinstance(each, ast.Return | ast.Break | ast.Continue | ast.Raise)
        for each in ast.walk(node)
    )


def shared_names(tree: ast.AST) -> Iterator[str]:
    for each in ast.walk(tree):
        if isinstance(each, ast.Global):
            yield from each.names


@lru_cache(256)
def _parse_text(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return None


Function = ast.Lambda | ast.FunctionDef | ast.AsyncFunctionDef


@lru_cache(1024)
def source_of(code: types.CodeType) -> Function | None:
    """The syntax tree of a function, where its text is at hand and says which it is; a generator
    has none.
    """
    if (
        code.co_flags & (0x20 | 0x200)
        or (tree := _parse_text("".join(linecache.getlines(code.co_filename)))) is None
    ):
        return None
    candidates: list[Function] = []
    for each in ast.walk(tree):
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef) and each.name == code.co_name:
            first = min([each.lineno, *(d.lineno for d in each.decorator_list)])
            candidates += [each] if first == code.co_firstlineno else []
        elif (
            isinstance(each, ast.Lambda)
            and code.co_name == "<lambda>"
            and each.lineno == code.co_firstlineno
        ):
            candidates.append(each)
    if len(candidates) > 1:
        candidates = [*_find_innermost(candidates, code)]
    return candidates[0] if len(candidates) == 1 else None


def _find_innermost(candidates: Sequence[Function], code: types.CodeType) -> Sequence[Function]:
    """Of lambdas on one line, the one around all places of the code, and not around another such."""
    places = [(line, column) for line, _, column, _ in code.co_positions() if line and column]
    around = [c for c in candidates if isinstance(c, ast.Lambda) and _is_around(c.body, places)]
    return sorted(around, key=lambda each: (each.body.lineno, each.body.col_offset))[-1:]


def _is_around(body: ast.expr, places: Sequence[tuple[int, int]]) -> bool:
    end = (body.end_lineno or 0, body.end_col_offset or 0)
    return bool(places) and all((body.lineno, body.col_offset) <= each < end for each in places)


UNSURE = 1 << 20
"""How often something is appended where nobody knows."""
NODES = 3_000
"""Nodes of syntax trees that are read for one statement."""

Way = Callable[["Reckoning", Any, OutcomeFrame], Any]
"""How one kind of node is read: a statement gives None, an expression a Value."""


class Reckoning:
    """Of one statement at the top of a cell. `unsteady`: names that the cell binds, whose value may
    have been another; `moved`: names whose value the cell changed, so that `log[-1]` may have been
    another. What kind of node is read in which way is in `statements` and `expressions`; a kind
    without a way is Unclear.
    """

    def __init__(
        self, variables: Variables, unsteady: frozenset[str], moved: frozenset[str],
        statements: Mapping[type, Way], expressions: Mapping[type, Way], once: frozenset[str] = NOTHING,
    ) -> None:  # fmt: skip
        self.result = StatementOutcome()
        self.variables, self.unsteady, self.moved, self.once = variables, unsteady, moved, once
        self.depth = 0
        """Functions of the user's that are entered just now."""
        self._count = 0
        self._statements, self._expressions = statements, expressions

    def may_raise(self, frame: OutcomeFrame, *deps: frozenset[str]) -> None:
        """What is done now may raise, depending on `deps`: so does all that comes after it."""
        self.result.raises |= frame.control.union(*deps)

    def after(self, frame: OutcomeFrame, *deps: frozenset[str]) -> frozenset[str]:
        """What something that is done now depends on."""
        return self.result.raises.union(frame.control, *deps)

    def write(
        self, frame: OutcomeFrame, path: str, deps: frozenset[str], *, new: bool = False
    ) -> None:
        """A part of a name is given something that depends on `deps`; `new`: it is one more element."""
        if not new and ELEMENT in path:  # some element, not one of those that are appended
            self.result.appends[path.partition(ELEMENT)[0]] = UNSURE
        self.result.writes[path] = self.result.writes.get(path, NOTHING) | self.after(frame, deps)

    def find_later_dependencies(self, part: str) -> frozenset[str]:
        """What a part depends on since the statement itself wrote it."""
        return frozenset().union(
            *(deps for path, deps in self.result.writes.items() if covers(path, part))
        )

    def alter(
        self, frame: OutcomeFrame, made: NewObject, deps: frozenset[str],
        refs: frozenset[tuple[str, bool]] = frozenset(), *, step: str = "",
    ) -> None:  # fmt: skip
        """An object that the statement makes is changed in place; `step`: only this field of it."""
        needs = self.after(frame, deps)
        made.deps |= needs
        made.refs |= refs
        if not step or made.parts is None:
            made.parts = None
        else:
            made.parts = {**made.parts, step: made.parts.get(step, NOTHING) | needs}
        if made.put:  # what holds it is not told of
            self.may_raise(frame, deps)

    def change(self, frame: OutcomeFrame, value: OutcomeValue, deps: frozenset[str]) -> None:
        """A value is changed in place, one does not know how."""
        for made in filter(None, (value.fresh, value.within)):
            self.alter(frame, made, deps)
        for path, _ in value.refs | (value.fresh.refs if value.fresh is not None else frozenset()):
            self.write(frame, path, deps | {path})

    def block(self, body: Sequence[ast.stmt], frame: OutcomeFrame) -> None:
        """Statements in their order. Raises Unclear."""
        for node in body:
            self._count += 1
            way = self._statements.get(type(node))
            if way is None or self._count > NODES:
                raise Unclear
            way(self, node, frame)

    def value(self, node: ast.expr, frame: OutcomeFrame) -> OutcomeValue:
        """An expression that is read whole. Raises Unclear."""
        outcome = self.base(node, frame)
        self.result.reads |= outcome.all
        return outcome

    def base(self, node: ast.expr, frame: OutcomeFrame) -> OutcomeValue:
        """An expression of which only a part may be read: `a` of `a.b`. Raises Unclear."""
        self._count += 1
        way = self._expressions.get(type(node))
        if way is None or self._count > NODES:
            raise Unclear
        outcome: OutcomeValue = way(self, node, frame)
        return outcome

    def variable(self, name: str, frame: OutcomeFrame) -> OutcomeValue:
        """A name of the notebook, or of the module whose function this is. Raises Unclear."""
        resource = self.variables.resource(frame.place, name)
        if resource is None:
            return OutcomeValue(obj=getattr(builtins, name, MISSING))
        value = self.variables.value(resource)
        if value is MISSING and hasattr(builtins, name):
            raise Unclear
        if resource in self.unsteady:
            value = MISSING
        if type(value) in ATOMS:
            return OutcomeValue(
                part=resource, kind=type(value), late=self.find_later_dependencies(resource)
            )
        return OutcomeValue(
            part=resource,
            refs=frozenset({(resource, True)}),
            obj=value,
            late=self.find_later_dependencies(resource),
        )

    def bound_once(self, name: str) -> Any:
        """What a name holds after the cell, where only one statement of the cell binds it."""
        return self.variables.value(name) if name in self.once else MISSING

    def now(self, value: OutcomeValue) -> Any:
        """What a name holds after the cell."""
        if value.part and value.part.isidentifier():
            return self.variables.value(value.part)
        return MISSING

    def repeat_appends(self, before: Mapping[str, int]) -> None:
        """What was appended since may be appended any number of times."""
        appends = self.result.appends
        for path in [p for p, count in appends.items() if count != before.get(p, 0)]:
            appends[path] = UNSURE

    def all_of(self, values: Iterable[OutcomeValue]) -> frozenset[str]:
        """What values depend on that are read whole."""
        deps = frozenset().union(*(each.all for each in values))
        self.result.reads |= deps
        return deps
