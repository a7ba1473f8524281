"""Engine room: the values that outcomes.py reckons with: parts of names, things that a statement makes, and what each
depends on; and the syntax trees of functions. Pure.
"""

from __future__ import annotations

import ast
import linecache
import re
import types
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from tape_jupyter.flow.variables import MISSING

NOTHING: frozenset[str] = frozenset()
ATOMS = (type(None), bool, int, float, complex, str, bytes)
NUMBERS = (bool, int, float)


class Unclear(Exception):
    """Something is not understood: nothing is told."""


@dataclass(frozen=True, slots=True)
class Value:
    """`own`: the part of a name that it is; `deps`: what else it depends on; `refs`: (part, whether it is that very
    object or something in it).
    """

    deps: frozenset[str] = NOTHING
    own: str = ""
    refs: frozenset[tuple[str, bool]] = frozenset()
    obj: Any = MISSING
    kind: type | None = None
    fresh: Fresh | None = None
    bound: Value | None = None
    """The object whose method it is."""
    late: frozenset[str] = NOTHING
    """What it depends on since the statement itself wrote it."""

    @property
    def all(self) -> frozenset[str]:
        found = self.deps | self.late
        found = found | {self.own} if self.own else found
        return found | self.fresh.deps if self.fresh is not None else found

    @property
    def inside(self) -> frozenset[tuple[str, bool]]:
        found = frozenset((path, False) for path, _ in self.refs)
        return found | self.fresh.refs if self.fresh is not None else found


@dataclass(slots=True)
class Fresh:
    """An object that the statement makes."""

    deps: frozenset[str] = NOTHING
    refs: frozenset[tuple[str, bool]] = frozenset()


@dataclass(slots=True)
class Told:
    """Of one statement. `writes`: parts, with what each depends on; `binds`: the same of names that it binds."""

    writes: dict[str, frozenset[str]] = field(default_factory=dict)
    binds: dict[str, frozenset[str]] = field(default_factory=dict)
    raises: frozenset[str] = NOTHING
    """What it depends on whether it comes to its end."""
    reads: set[str] = field(default_factory=set)
    codes: set[types.CodeType] = field(default_factory=set)
    """Code of the user that was read."""
    appends: dict[str, int] = field(default_factory=dict)
    """By list, how often something is appended to it; more than once where nobody knows."""


@dataclass(slots=True)
class Frame:
    place: str
    names: dict[str, Value]
    shared: frozenset[str]
    """Names that are the module's, though it binds them."""
    top: bool = False
    control: frozenset[str] = NOTHING
    returns: list[Value] = field(default_factory=list)


def root_of(path: str) -> str:
    """The variable that a part is of: `log` of `log[0].text`, `helpers:STATE` of `helpers:STATE['a']`."""
    place, colon, rest = path.partition(":")
    if not colon or "[" in place:
        place, colon, rest = "", "", path
    found = re.match(r"[^.\[]+", rest)
    return f"{place}{colon}{found[0] if found else rest}"


class Several:
    """One of the things in a box, nobody knows which."""

    def __init__(self, box: Any) -> None:
        self._box = box

    def functions(self) -> list[types.FunctionType]:
        inside = list(self._box.values() if isinstance(self._box, dict) else self._box)
        found = [each for each in inside if isinstance(each, types.FunctionType)]
        return found if found and len(found) == len(inside) <= 12 else []


def sum_kind(op: ast.operator, left: Value, right: Value) -> type | None:
    """The kind of a sum that does not raise; None where it may."""
    if isinstance(op, ast.Add | ast.Sub | ast.Mult) and left.kind in NUMBERS and right.kind in NUMBERS:
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


def leaves(node: ast.AST) -> bool:
    return any(isinstance(each, ast.Return | ast.Break | ast.Continue | ast.Raise) for each in ast.walk(node))


def shared_names(tree: ast.AST) -> Iterator[str]:
    for each in ast.walk(tree):
        if isinstance(each, ast.Global):
            yield from each.names


@lru_cache(256)
def _tree(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return None


@lru_cache(1024)
def source_of(code: types.CodeType) -> ast.Lambda | ast.FunctionDef | ast.AsyncFunctionDef | None:
    """The syntax tree of a function, where its text is at hand and says which it is; a generator has none."""
    if code.co_flags & (0x20 | 0x200) or (tree := _tree("".join(linecache.getlines(code.co_filename)))) is None:
        return None
    found: list[ast.Lambda | ast.FunctionDef | ast.AsyncFunctionDef] = []
    for each in ast.walk(tree):
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef) and each.name == code.co_name:
            first = min([each.lineno, *(d.lineno for d in each.decorator_list)])
            found += [each] if first == code.co_firstlineno else []
        elif isinstance(each, ast.Lambda) and code.co_name == "<lambda>" and each.lineno == code.co_firstlineno:
            found.append(each)
    return found[0] if len(found) == 1 else None
