"""What a statement does, node by node (dataflow/static/outcomes/__init__.py)."""

from __future__ import annotations

import ast
from dataclasses import replace

from tape_jupyter.core.user_code import bag
from tape_jupyter.dataflow.static.outcomes.calls import call_outcome, write_element
from tape_jupyter.dataflow.static.outcomes.expressions import store, take_each
from tape_jupyter.dataflow.static.outcomes.values import (
    NOTHING,
    NUMBERS,
    OutcomeFrame,
    OutcomeValue,
    Reckoning,
    Unclear,
    Way,
    leaves_block,
    loading,
    sum_kind,
)
from tape_jupyter.dataflow.tracing.variables import MISSING

_LOCKS = bag("lock RLock Lock Semaphore BoundedSemaphore")


def expression(reckoning: Reckoning, node: ast.Expr, frame: OutcomeFrame) -> None:
    inner = node.value.value if isinstance(node.value, ast.Await) else node.value
    if isinstance(inner, ast.Call):
        call_outcome(reckoning, inner, frame, dropped=True)
    else:
        reckoning.value(inner, frame)


def assign(reckoning: Reckoning, node: ast.Assign, frame: OutcomeFrame) -> None:
    value = reckoning.value(node.value, frame)
    for target in node.targets:
        store(reckoning, target, value, frame)


def annotated(reckoning: Reckoning, node: ast.AnnAssign, frame: OutcomeFrame) -> None:
    if node.value is not None:
        store(reckoning, node.target, reckoning.value(node.value, frame), frame)


def augmented(reckoning: Reckoning, node: ast.AugAssign, frame: OutcomeFrame) -> None:
    load = loading(node.target)
    if _extends_list(reckoning, node, frame):
        return
    old, new = reckoning.value(load, frame), reckoning.value(node.value, frame)
    if (
        old.kind is None
        and isinstance(node.target, ast.Name)
        and type(now := reckoning.now(old)) in (*NUMBERS, str)
    ):
        old = replace(old, kind=type(now), refs=frozenset())
    kind = sum_kind(node.op, old, new)
    if kind is None:
        reckoning.may_raise(frame, old.all, new.all)
    if old.refs or old.fresh is not None:
        reckoning.change(frame, old, new.all)
    store(
        reckoning,
        node.target,
        OutcomeValue(old.all | new.all, refs=old.refs | new.inside, kind=kind),
        frame,
        there=True,
    )


def _extends_list(reckoning: Reckoning, node: ast.AugAssign, frame: OutcomeFrame) -> bool:
    """`messages += [{...}, {...}]` at the top of a cell, which adds to the list that is there."""
    target, added = node.target, node.value
    if not (frame.top and isinstance(target, ast.Name) and isinstance(added, ast.List)):
        return False
    now = reckoning.variables.value(target.id)
    if not isinstance(node.op, ast.Add) or type(now) is not list or frame.control:
        return False
    if target.id in frame.names or any(isinstance(each, ast.Starred) for each in added.elts):
        return False
    base = OutcomeValue(part=target.id, refs=frozenset({(target.id, True)}), obj=now)
    for each in added.elts:
        write_element(reckoning, base, reckoning.value(each, frame), frame)
        reckoning.result.appends[target.id] = reckoning.result.appends.get(target.id, 0) + 1
    if reckoning.result.raises:
        reckoning.write(frame, target.id, NOTHING)
    reckoning.result.reads.add(f"{target.id}.__class__")
    reckoning.result.grows.add(target.id)
    return True


def returned(reckoning: Reckoning, node: ast.Return, frame: OutcomeFrame) -> None:
    if node.value is not None:
        value = reckoning.value(node.value, frame)
    else:
        value = OutcomeValue(kind=type(None))
    if value.obj is not MISSING and value.refs == {(value.part, True)}:
        frame.returns.append(replace(value, deps=value.deps | frame.control))  # `return self`
    else:
        frame.returns.append(replace(value, deps=value.all | frame.control, part=""))


def branch(reckoning: Reckoning, node: ast.If, frame: OutcomeFrame) -> None:
    test = reckoning.value(node.test, frame).all
    before = frame.control
    frame.control = before | test
    for body in (node.body, node.orelse):
        reckoning.block(body, frame)
    if not leaves_block(node):
        frame.control = before


def loop(
    reckoning: Reckoning, node: ast.For | ast.AsyncFor | ast.While, frame: OutcomeFrame
) -> None:
    before = frame.control
    if node.orelse:
        raise Unclear
    appended = dict(reckoning.result.appends)
    for _ in range(2):
        if isinstance(node, ast.While):
            frame.control |= reckoning.value(node.test, frame).all
        else:
            take_each(reckoning, node.iter, node.target, frame)
        reckoning.block(node.body, frame)
    reckoning.repeat_appends(appended)
    if not leaves_block(node):
        frame.control = before


def run_block(reckoning: Reckoning, node: ast.With | ast.AsyncWith, frame: OutcomeFrame) -> None:
    for item in node.items:
        value = reckoning.value(item.context_expr, frame)
        if item.optional_vars is not None or type(value.obj).__name__ not in _LOCKS:
            raise Unclear
    reckoning.block(node.body, frame)


def asserted(reckoning: Reckoning, node: ast.Assert, frame: OutcomeFrame) -> None:
    reckoning.may_raise(frame, reckoning.value(node.test, frame).all)


def skip_statement(reckoning: Reckoning, node: ast.stmt, frame: OutcomeFrame) -> None:
    """pass, global; break and continue, which branch() and loop() know of."""


WAYS: dict[type, Way] = {
    ast.Expr: expression, ast.Assign: assign, ast.AnnAssign: annotated, ast.AugAssign: augmented,
    ast.Return: returned, ast.If: branch, ast.For: loop, ast.AsyncFor: loop, ast.While: loop, ast.With: run_block,
    ast.AsyncWith: run_block, ast.Assert: asserted, ast.Pass: skip_statement, ast.Global: skip_statement,
    ast.Break: skip_statement, ast.Continue: skip_statement,
}  # fmt: skip
