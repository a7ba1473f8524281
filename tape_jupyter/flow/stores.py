"""Engine room: what a target is given: names, attributes, keys; and on what that then depends (outcomes.py)."""

from __future__ import annotations

import ast
import types
from collections import OrderedDict, defaultdict
from dataclasses import replace

from tape_jupyter.flow import parts
from tape_jupyter.flow.history import ELEMENT
from tape_jupyter.flow.reckoning import Reckoning
from tape_jupyter.flow.terms import NOTHING, Frame, Unclear, Value
from tape_jupyter.flow.variables import MISSING


def store(reckoning: Reckoning, target: ast.expr, value: Value, frame: Frame, *, there: bool = False) -> None:
    """`there`: the target was there before."""
    if isinstance(target, ast.Name):
        bind(reckoning, target.id, value, frame)
    elif isinstance(target, ast.Tuple | ast.List):
        if not (isinstance(value.kind, type) and value.kind is tuple):
            reckoning.may_raise(frame, value.all)
        for each in target.elts:
            inner = each.value if isinstance(each, ast.Starred) else each
            store(reckoning, inner, Value(value.all, refs=value.inside), frame)
    elif isinstance(target, ast.Attribute | ast.Subscript):
        _store_part(reckoning, target, value, frame, there=there)
    else:
        raise Unclear


def bind(reckoning: Reckoning, name: str, value: Value, frame: Frame) -> None:
    if frame.top:
        reckoning.told.binds[name] = reckoning.told.binds.get(name, NOTHING) | reckoning.after(frame, value.all)
        before = (frame.names.get(name) or reckoning.variable(name, frame)) if frame.control else Value()
        deps = reckoning.after(frame, value.all, before.all)
        frame.names[name] = replace(value, deps=deps, own="", refs=value.refs | before.refs)
    elif name in frame.shared:
        resource = f"{frame.place}:{name}" if frame.place else name
        reckoning.write(frame, resource, value.all)
    else:
        before = frame.names.get(name, Value())
        if frame.control:  # it may hold what it held before
            deps, refs = value.deps | frame.control | before.all, value.refs | before.refs
            value = replace(value, deps=deps, refs=refs)
        frame.names[name] = value


def _store_part(
    reckoning: Reckoning, target: ast.Attribute | ast.Subscript, value: Value, frame: Frame, *, there: bool
) -> None:
    base = reckoning.base(target.value, frame)
    key = reckoning.value(target.slice, frame) if isinstance(target, ast.Subscript) else Value()
    if base.fresh is not None:
        base.fresh.deps |= reckoning.after(frame, value.all, key.all)
        base.fresh.refs |= value.inside
    if not base.refs:
        return
    step = _step(target, key)
    if isinstance(target, ast.Attribute):
        known = base.obj is not MISSING and parts.stores(f"x.{target.attr}", base.obj)
    else:
        frame_ = parts.is_frame(base.obj) and type(key.obj) is str and not key.own
        known = (
            frame_
            or type(base.obj) in (dict, OrderedDict, defaultdict)
            or (type(base.obj) is list and parts.value_at(f"x{step}", base.obj) is not MISSING)
        )
    if isinstance(target, ast.Subscript) and parts.is_array(base.obj) and base.own:
        reckoning.may_raise(frame, base.deps, value.all, key.all)
        reckoning.write(frame, f"{base.own}{ELEMENT}", value.all | key.all)
        return
    if not known or not base.own:
        if base.obj is not MISSING and isinstance(base.obj, types.ModuleType):
            raise Unclear
        reckoning.may_raise(frame, base.all, key.all)
        reckoning.change(frame, base, value.all | key.all)
    elif step:
        reckoning.write(frame, f"{base.own}{step}", value.all | base.deps)
        if not there and isinstance(target, ast.Subscript) and not parts.is_frame(base.obj):
            reckoning.write(frame, f"{base.own}.__len__", NOTHING)
    else:
        reckoning.write(frame, base.own, key.all | base.deps)
        reckoning.write(frame, f"{base.own}{ELEMENT}", value.all)


def _step(target: ast.Attribute | ast.Subscript, key: Value) -> str:
    if isinstance(target, ast.Attribute):
        return f".{target.attr}"
    return f"[{key.obj!r}]" if type(key.obj) in (str, int) and not key.own else ""
