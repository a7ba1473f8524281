"""What each kind of object is, to a fingerprint: boxes, functions, generators, iterators, patterns."""

from __future__ import annotations

import collections
import contextvars
import functools
import logging
import os
import pathlib
import random
import re
import sys
import types
import weakref
from collections.abc import Callable
from typing import Any

from tape_jupyter.core.memoised import MEMOISED, read_settable
from tape_jupyter.core.user_code import (
    MACHINERY,
    is_environment,
    is_registered,
    is_users,
    root_module,
)
from tape_jupyter.dataflow.fingerprint import arrays, unwrapped
from tape_jupyter.dataflow.fingerprint.containers import ATOM_BOXES, PIECE, hash_plain, items_of
from tape_jupyter.dataflow.fingerprint.instances import (
    attributes,
    instance,
    of_class,
    of_table,
    visit_referents,
)
from tape_jupyter.dataflow.fingerprint.walker import Walk
from tape_jupyter.dataflow.identity import identity

_CONTAINERS = (list, tuple, dict, set, frozenset, collections.deque)
_MAPPED: tuple[type, ...] = (
    types.MappingProxyType,
    type({}.keys()),
    type({}.values()),
    type({}.items()),
)
_METHODS = (
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
    types.ClassMethodDescriptorType,
)
"""Of classes that no Python code made: `str.lower`."""
TUPLE_FIELD: type = type(collections.namedtuple("_Field", "x").__dict__["x"])  # noqa: PYI024
"""The type of a named tuple's field."""
_ITERABLES: tuple[Any, ...] = (
    [],
    (),
    range(0),
    {},
    {}.values(),
    {}.items(),
    set(),
    "",
    b"",
    bytearray(),
)
_ITERATORS = frozenset(type(iter(each)) for each in _ITERABLES)


def visit_object(walk: Walk, value: Any, kind: type, depth: int, *, foreign: bool) -> None:
    """By its kind: what there is to say of an object, and what in it is gone through (walks.Look)."""
    if isinstance(value, _CONTAINERS):
        _visit_container(walk, value, kind, depth, foreign=foreign)
    elif (way := _LOOKS.get(kind)) is not None:
        way(walk, value, depth)
    elif isinstance(value, type):
        of_class(walk, value, depth, is_value=True)
    elif (module := root_module(kind)) and (table := arrays.table_of(module, value)) is not None:
        of_table(walk, value, table, module, depth)
    elif isinstance(value, weakref.ReferenceType):
        walk.hash_text("reference")
        walk.visit_value(weakref.ReferenceType.__call__(value), depth, foreign=foreign)
    elif kind in _ITERATORS:
        _visit_iterator(walk, value, depth, foreign=foreign)
    elif kind in _ALIASES or kind.__module__ in ("typing", "typing_extensions"):
        _visit_alias(walk, value, depth)
    else:
        instance(walk, value, kind, depth, foreign=foreign)


# one kind a branch
def _visit_container(walk: Walk, value: Any, kind: type, depth: int, *, foreign: bool) -> None:  # noqa: C901
    if kind is not tuple and kind is not frozenset:
        walk.ids.add(identity(value))
    if kind in ATOM_BOXES and hash_plain(walk, value, kind):
        return
    base = next(each for each in _CONTAINERS if isinstance(value, each))
    size = base.__len__(value)
    walk.hash_text(f"[{kind.__name__}{size}")
    if isinstance(value, dict):
        for key, each in items_of(value):
            if type(key) is str and key == "__builtins__":  # of a namespace that exec() was given
                continue
            walk.visit_value(key, depth, foreign=foreign)
            walk.visit_value(each, depth, foreign=foreign)
    elif isinstance(value, set | frozenset):
        walk.unordered(value, depth, foreign=foreign)
    else:
        for each in base.__iter__(value) if size > PIECE else list(base.__iter__(value)):
            walk.visit_value(each, depth, foreign=foreign)
        if isinstance(value, collections.deque):
            walk.hash_text(str(value.maxlen))
    if kind not in ATOM_BOXES:
        if isinstance(value, collections.defaultdict):
            walk.visit_value(value.default_factory, depth, foreign=foreign)
        of_class(walk, kind, depth)
        attributes(walk, value, kind, depth, foreign=foreign)


def _visit_function(walk: Walk, value: types.FunctionType, depth: int) -> None:
    if (body := unwrapped.unwrap(value)) is not value:
        walk.ids.add(identity(value))
        walk.visit_value(body, depth, foreign=False)
        return
    code, instance_dict = unwrapped.code_of(value), unwrapped.attributes_of(value)
    place = _find_place(walk, value)
    if place is None:
        walk.kinds.add(root_module(value))
        walk.hash_text(f"function {value.__module__}.{value.__qualname__}")
        if str(value.__globals__.get("__name__")).partition(".")[0] in MACHINERY:
            return
        if not value.__closure__ and not instance_dict:
            return
    walk.ids.add(identity(value))
    walk.classes.add(identity(value))
    walk.hash_text(f"function {value.__qualname__}")
    about = (value.__doc__, _find_annotations(value)) if place is not None else ()
    for each in (code, value.__defaults__, value.__kwdefaults__, instance_dict or None, *about):
        walk.visit_value(each, depth, foreign=False)
    _visit_closure(walk, value, depth, foreign=place is None)
    if place == "?":
        walk.visit_value(value.__globals__, depth, foreign=False)
    elif place is not None:
        walk.codes.add((place, code))


def _find_annotations(value: types.FunctionType) -> Any:
    """As they are kept: from Python 3.14 on by code that makes them when they are asked for."""
    return getattr(value, "__annotate__" if sys.version_info >= (3, 14) else "__annotations__")


def _visit_closure(walk: Walk, value: types.FunctionType, depth: int, *, foreign: bool) -> None:
    for cell in value.__closure__ or ():
        try:
            inside = cell.cell_contents
        except ValueError:
            walk.hash_text("empty")
        else:
            walk.ids.add(identity(cell))
            walk.visit_value(inside, depth, foreign=foreign)


def _find_place(walk: Walk, value: types.FunctionType) -> str | None:
    """Whose globals it uses: "" the notebook's, a module's name of the user's, None a library's."""
    if walk.namespace is None or value.__globals__ is walk.namespace:
        return ""
    name = value.__globals__.get("__name__")
    if (
        isinstance(name, str)
        and name in sys.modules
        and sys.modules[name].__dict__ is value.__globals__
    ):
        return name if is_users(name) else None
    return "?"  # globals of its own: exec(text, {})


def _visit_code(walk: Walk, value: types.CodeType, depth: int) -> None:
    walk.hash.update(value.co_code)
    walk.hash_text(repr((value.co_name, value.co_names, value.co_varnames, value.co_freevars)))
    for const in value.co_consts:
        walk.visit_value(const, depth, foreign=False)


def _visit_method(walk: Walk, value: types.MethodType, depth: int) -> None:
    walk.hash_text("method")
    walk.visit_value(value.__func__, depth, foreign=False)
    walk.visit_value(value.__self__, depth, foreign=False)


def _visit_builtin(walk: Walk, value: types.BuiltinFunctionType, depth: int) -> None:
    walk.hash_text(f"builtin {value.__qualname__}")
    owner = value.__self__
    if owner is not None and not isinstance(owner, types.ModuleType | type):
        walk.visit_value(owner, depth, foreign=False)
    else:
        walk.kinds.add(root_module(value))


def _visit_module(walk: Walk, value: types.ModuleType, depth: int) -> None:
    walk.hash_text(f"module {value.__name__}")
    if is_registered(value):
        walk.kinds.add(value.__name__.partition(".")[0])
    else:
        walk.ids.add(identity(value))
        walk.visit_value(vars(value), depth, foreign=False)


def _visit_partial(walk: Walk, value: functools.partial[Any], depth: int) -> None:
    walk.ids.add(identity(value))
    for each in (value.func, value.args, value.keywords, vars(value) or None):
        walk.visit_value(each, depth, foreign=False)


def _visit_wrapper(walk: Walk, value: Any, depth: int) -> None:
    """property, staticmethod, classmethod, cached functions: what they hold."""
    walk.hash_text(type(value).__name__)
    for slot in ("fget", "fset", "fdel", "__func__", "func"):
        if (inner := getattr(value, slot, None)) is not None:
            walk.visit_value(inner, depth, foreign=False)


def _visit_memoised(walk: Walk, value: Any, depth: int) -> None:
    walk.ids.add(identity(value))
    info = value.cache_info()
    walk.hash_text(f"memoised {tuple(info)}")
    walk.visit_value(value.__wrapped__, depth, foreign=False)
    kept = read_settable(value)
    if kept is None:
        walk.opaque = walk.opaque or info.currsize > 0
        return
    for entry in kept.entries:
        walk.visit_value((entry.args, entry.kwargs, entry.result), depth, foreign=False)


def _visit_suspended(walk: Walk, value: Any, depth: int) -> None:
    """A generator or coroutine: it is opaque, but where it stands and what it holds is known."""
    walk.ids.add(identity(value))
    walk.opaque = True
    stands = next(
        (f for s in ("gi_frame", "cr_frame", "ag_frame") if (f := getattr(value, s, None))), None
    )
    code = next(
        (c for s in ("gi_code", "cr_code", "ag_code") if (c := getattr(value, s, None))), None
    )
    walk.hash_text(f"frame {value.__qualname__} {stands.f_lasti if stands else None}")
    if code is not None:
        walk.codes.add(("", code))
    if stands is not None:
        for key, each in dict(stands.f_locals).items():
            walk.hash_text(key)
            walk.visit_value(each, depth, foreign=False)


def _visit_alias(walk: Walk, value: Any, depth: int) -> None:
    """`list[int]`, `Literal["a"]`, `int | None`, a type variable: nobody changes one."""
    walk.kinds.add("typing")
    walk.hash_text(type(value).__qualname__)
    for slot in ("_name", "__name__", "__forward_arg__", "__origin__", "__args__", "__metadata__"):
        try:
            walk.visit_value(object.__getattribute__(value, slot), depth, foreign=True)
        except AttributeError:
            continue


def _visit_slot(walk: Walk, value: Any, _depth: int) -> None:
    walk.hash_text(f"slot {value.__qualname__}")


def _visit_path(walk: Walk, value: pathlib.PurePath, _depth: int) -> None:
    """Its text: what else it holds it makes of that when it is asked."""
    walk.kinds.add("pathlib")
    walk.hash_text(f"{type(value).__name__} {value!s}")


def _visit_logger(walk: Walk, value: logging.Logger, depth: int) -> None:
    """Not what it remembers of its own questions, nor whom it belongs to: the levels of all are
    ambient state.
    """
    walk.ids.add(id(value))
    walk.kinds.add("logging")
    walk.hash_text(f"logger {value.name} {value.level} {value.disabled} {value.propagate}")
    for each in (*value.handlers, *value.filters):
        walk.visit_value(each, depth, foreign=True)


def _visit_pattern(walk: Walk, value: re.Pattern[Any], depth: int) -> None:
    walk.kinds.add("re")
    walk.visit_value((value.pattern, int(value.flags)), depth, foreign=False)


def _visit_match(walk: Walk, value: re.Match[Any], depth: int) -> None:
    _visit_pattern(walk, value.re, depth)
    walk.visit_value((value.regs, value.pos, value.endpos), depth, foreign=False)
    walk.visit_value(value.string, depth, foreign=False)


def _visit_tuple_field(walk: Walk, value: Any, depth: int) -> None:
    """A field of a named tuple."""
    walk.visit_value(value.__reduce__()[1], depth, foreign=False)


def _visit_mapping_view(walk: Walk, value: Any, depth: int) -> None:
    walk.hash_text(type(value).__name__)
    if value is getattr(sys.modules.get("dataclasses"), "_EMPTY_METADATA", None):
        return  # which all fields of all dataclasses have in common
    is_view = isinstance(value, type({}.keys()) | type({}.values()) | type({}.items()))
    walk.visit_value(dict(value.mapping if is_view else value), depth, foreign=False)
    visit_referents(walk, value, depth)
    walk.opaque = True


def _visit_environment(walk: Walk, value: Any, depth: int) -> None:
    """What the process' own variables are is state of the process, by whatever name it is asked for."""
    if is_environment(value):
        walk.hash_text("environment")
    else:
        instance(walk, value, type(value), depth, foreign=False)


def _visit_random(walk: Walk, value: random.Random, depth: int) -> None:
    walk.ids.add(identity(value))
    walk.visit_value(value.getstate(), depth, foreign=False)


def _visit_context_var(walk: Walk, value: contextvars.ContextVar[Any], depth: int) -> None:
    """Its value here and now; set() may have been called in another context, so it is opaque."""
    walk.ids.add(identity(value))
    walk.opaque = True
    walk.hash_text(value.name)
    walk.visit_value(value.get(None), depth, foreign=False)


def _visit_bytearray(walk: Walk, value: Any, _depth: int) -> None:
    walk.ids.add(identity(value))
    walk.hash_text(f"{type(value).__name__}{len(value)}")
    walk.buffer(value)


def _visit_memoryview(walk: Walk, value: memoryview, depth: int) -> None:
    walk.ids.add(identity(value))
    walk.visit_value(value.obj, depth, foreign=False)


def _visit_iterator(walk: Walk, value: Any, depth: int, *, foreign: bool) -> None:
    walk.ids.add(identity(value))
    walk.opaque = True
    for each in value.__reduce__()[1:]:
        walk.visit_value(each, depth, foreign=foreign)
    visit_referents(walk, value, depth)


_ALIASES = frozenset({types.GenericAlias, types.UnionType})
_LOOKS: dict[type, Callable[[Walk, Any, int], None]] = {
    types.FunctionType: _visit_function,
    types.CodeType: _visit_code,
    types.MemberDescriptorType: _visit_slot,
    re.Pattern: _visit_pattern,
    re.Match: _visit_match,
    logging.Logger: _visit_logger,
    type(pathlib.PurePath()): _visit_path,
    type(pathlib.Path()): _visit_path,
    TUPLE_FIELD: _visit_tuple_field,
    **dict.fromkeys(_METHODS, _visit_slot),
    types.MethodType: _visit_method,
    types.BuiltinFunctionType: _visit_builtin,
    types.ModuleType: _visit_module,
    functools.partial: _visit_partial,
    property: _visit_wrapper,
    staticmethod: _visit_wrapper,
    classmethod: _visit_wrapper,
    functools.cached_property: _visit_wrapper,
    MEMOISED: _visit_memoised,
    types.GeneratorType: _visit_suspended,
    types.CoroutineType: _visit_suspended,
    types.AsyncGeneratorType: _visit_suspended,
    random.Random: _visit_random,
    contextvars.ContextVar: _visit_context_var,
    type(os.environ): _visit_environment,
    bytearray: _visit_bytearray,
    memoryview: _visit_memoryview,
    **dict.fromkeys(_MAPPED, _visit_mapping_view),
}
