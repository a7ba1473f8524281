"""By which ways a statement goes into the value of a name: `[m["role"] for m in log]` reads one key of
each thing in `log`, and how many there are. Pure.

A way is a row of steps: ("attr", name), ("item", key), ("get", key) of `d.get("k")`, ("each", ""),
("len", "").
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

Step = tuple[str, str | int]
Way = tuple[Step, ...]


def read_ways(node: ast.AST, name: str) -> frozenset[Way] | None:
    """All ways into the value of a name; None where it is used as a whole, or in one that is not
    known.
    """
    parents = {child: each for each in ast.walk(node) for child in ast.iter_child_nodes(each)}
    found: set[Way] = set()
    uses = [each for each in ast.walk(node) if isinstance(each, ast.Name) and each.id == name]
    if not all(isinstance(each.ctx, ast.Load) for each in uses):
        return None
    for each in uses:
        ways = _follow(each, (), parents)
        if ways is None:
            return None
        found |= ways
    return frozenset(found) or None


def _follow(  # noqa: PLR0911 - one use a branch
    node: ast.expr, way: Way, parents: dict[ast.AST, ast.AST]
) -> frozenset[Way] | None:
    """The ways that begin with `way`, which ends at `node`."""
    if not isinstance(getattr(node, "ctx", ast.Load()), ast.Load):
        return None
    above = parents.get(node)
    if isinstance(above, ast.Attribute):
        called = parents.get(above)
        if isinstance(called, ast.Call) and called.func is above:
            return _follow_method(called, above.attr, way, parents)
        return _follow(above, (*way, ("attr", above.attr)), parents)
    key = _find_key(above.slice) if isinstance(above, ast.Subscript) else None
    if isinstance(above, ast.Subscript) and above.value is node and key is not None:
        return _follow(above, (*way, ("item", key)), parents)
    if isinstance(above, ast.Call) and isinstance(above.func, ast.Name) and above.func.id == "len":
        return frozenset({(*way, ("len", ""))})
    if isinstance(above, ast.comprehension) and above.iter is node:
        return _follow_each(above, (*way, ("each", "")), parents)
    return frozenset({way}) if way else None


def _follow_method(
    call: ast.Call, method: str, way: Way, parents: dict[ast.AST, ast.AST]
) -> frozenset[Way] | None:
    """A method may use all of what it is called on; `get` of a dict looks up one key."""
    if method == "get" and call.args and not call.keywords:
        key = _find_key(call.args[0])
        if key is not None:
            return _follow(call, (*way, ("get", key)), parents)
    return frozenset({way}) if way else None


def _follow_each(
    comprehension: ast.comprehension, way: Way, parents: dict[ast.AST, ast.AST]
) -> frozenset[Way] | None:
    """Into what a comprehension goes through, where its variable is one name."""
    target, whole = comprehension.target, parents.get(comprehension)
    if not isinstance(target, ast.Name) or whole is None or comprehension.is_async:
        return frozenset({way})
    if any(isinstance(n, ast.Name) and n.id == target.id for n in ast.walk(comprehension.iter)):
        return None
    found = {(*way[:-1], ("len", ""))}
    for each in _find_uses(whole, comprehension, target.id):
        ways = _follow(each, way, parents)
        if ways is None:
            return None
        found |= ways
    return frozenset(found)


def _find_uses(whole: ast.AST, comprehension: ast.comprehension, name: str) -> Iterator[ast.Name]:
    for each in ast.walk(whole):
        if isinstance(each, ast.Name) and each.id == name and each is not comprehension.target:
            yield each


def _find_key(node: ast.expr) -> str | int | None:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = _find_key(node.operand)
        return -inner if type(inner) is int else None
    if isinstance(node, ast.Constant) and type(node.value) in (str, int):
        return node.value if isinstance(node.value, str | int) else None
    return None
