"""What each part of a new object depends on, where a call makes it of known parts: a dataclass, a
named tuple, a frame of rows (dataflow/static/outcomes/__init__.py).
"""

from __future__ import annotations

import ast
import copy
import dataclasses
import sys
import types
from typing import Any

from tape_jupyter.dataflow.history import ELEMENT
from tape_jupyter.dataflow.static.outcomes.expressions import is_named_tuple, is_table
from tape_jupyter.dataflow.static.outcomes.values import (
    NOTHING,
    NewObject,
    OutcomeValue,
    Reckoning,
    put,
)
from tape_jupyter.dataflow.tracing import paths
from tape_jupyter.dataflow.tracing.variables import MISSING

Parts = dict[str, frozenset[str]]


def has_written_init(start: Any) -> bool:
    """Whether `dataclasses` wrote this `__init__`."""
    return isinstance(start, types.FunctionType) and start.__code__.co_filename == "<string>"


def parts_of_class(kind: type, part: str) -> Parts:
    """Of an object of a class, what stands in the class for all its instances."""
    return {
        f".{name}": frozenset({f"{part}.{name}"})
        for name, each in paths.list_class_data(kind).items()
        if not has_written_init(each)
    }


def parts_of_new(
    kind: type, start: Any, args: list[OutcomeValue], named: dict[str | None, OutcomeValue]
) -> Parts | None:
    """Of an object that a class makes of what it is handed, each part by itself."""
    if is_named_tuple(kind):
        names = list(getattr(kind, "_fields", ()))
    elif dataclasses.is_dataclass(kind) and has_written_init(start):
        names = list(start.__code__.co_varnames[1 : start.__code__.co_argcount])
    else:
        return None
    given = {**dict(zip(names, args, strict=False)), **named}
    parts: Parts = {}
    for name in names:
        parts[f".{name}"] = given[name].all if name in given else NOTHING
    return parts if given.keys() <= set(names) else None


def new_of_parts(
    reckoning: Reckoning,
    node: ast.Call,
    called: OutcomeValue,
    args: list[OutcomeValue],
    named: dict[str | None, OutcomeValue],
) -> OutcomeValue | None:
    """What a library's call makes, where it takes it part by part from what it is handed."""
    if called.bound is not None and getattr(node.func, "attr", "") == "_replace" and not args:
        return _replace_fields(reckoning, called.bound, named)
    if called.obj in (dataclasses.replace, getattr(copy, "replace", MISSING)) and len(args) == 1:
        return _replace_fields(reckoning, args[0], named)
    if _is_frames_class(called.obj) and len(args) == 1 and not named:
        return _make_frame(reckoning, node.args[0], args[0])
    return None


def _replace_fields(
    reckoning: Reckoning, base: OutcomeValue, named: dict[str | None, OutcomeValue]
) -> OutcomeValue | None:
    """An object like another one, but for some fields: it is of the class of that."""
    kind = type(base.obj if base.obj is not MISSING else reckoning.bound_once(base.part))
    if is_named_tuple(kind):
        names = list(getattr(kind, "_fields", ()))
    elif dataclasses.is_dataclass(kind) and _is_plain_dataclass(kind):
        names = [each.name for each in dataclasses.fields(kind)]
    else:
        return None
    if not base.part or not named.keys() <= set(names):
        return None
    same = base.deps | {f"{base.part}.__class__"}
    parts: Parts = {}
    for name in names:
        if name in named:
            deps = named[name].all
        else:
            kept = f"{base.part}.{name}"
            deps = frozenset({kept}) | reckoning.find_later_dependencies(kept)
        parts[f".{name}"] = deps
    deps = same.union(*parts.values())
    reckoning.result.reads |= deps
    return OutcomeValue(same, fresh=NewObject(deps, put([base, *named.values()]), parts))


def _is_plain_dataclass(kind: type) -> bool:
    """Whether nothing but its written `__init__` runs where it is made, of all of its fields."""
    start = next((vars(c)["__init__"] for c in kind.__mro__ if "__init__" in vars(c)), None)
    return (
        has_written_init(start)
        and not hasattr(kind, "__post_init__")
        and all(each.init for each in dataclasses.fields(kind))
    )


def _is_frames_class(value: Any) -> bool:
    return value is not MISSING and value is getattr(sys.modules.get("pandas"), "DataFrame", None)


def _make_frame(reckoning: Reckoning, node: ast.expr, data: OutcomeValue) -> OutcomeValue | None:
    """A frame of rows that are dicts with the same keys, or of columns that are written down."""
    if is_table(reckoning, data) and all(type(key) is str for key in data.obj[0]):
        count = data.deps | {f"{data.part}.__len__", f"{data.part}.__class__"}
        parts = {f"[{key!r}]": count | {f"{data.part}{ELEMENT}[{key!r}]"} for key in data.obj[0]}
    elif data.fresh is not None and data.fresh.parts and _has_columns_of_one_length(node):
        count, parts = data.deps, dict(data.fresh.parts)
    else:
        return None
    deps = count.union(*parts.values())
    reckoning.result.reads |= deps
    return OutcomeValue(fresh=NewObject(deps, put([data]), {**parts, ".__len__": count}))


def _has_columns_of_one_length(node: ast.expr) -> bool:
    if not isinstance(node, ast.Dict):
        return False
    lists = [each.elts for each in node.values if isinstance(each, ast.List)]
    starred = any(isinstance(one, ast.Starred) for elements in lists for one in elements)
    return len(lists) == len(node.values) and len(set(map(len, lists))) == 1 and not starred
