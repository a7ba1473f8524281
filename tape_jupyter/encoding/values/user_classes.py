"""Codecs of values whose class is somebody's own: Enum, namedtuple, dataclass, pydantic model, and
of plain objects whose class the user wrote.

No code comes from data. A class is looked up by name in modules that are already imported (never
imported, and not through a module's `__getattr__`, which may import), must be of the kind its codec
is for, and is filled without running `__init__`, a `__new__` of its own, validators, `__setattr__`,
`__setstate__` or `__reduce__`.
"""

from __future__ import annotations

import dataclasses
import enum
import re
import sys
import threading
import weakref
from collections.abc import Callable, Mapping
from types import MemberDescriptorType
from typing import Any

from tape_jupyter.core.libraries import is_library_class
from tape_jupyter.core.user_code import is_class_statement
from tape_jupyter.encoding.values.walker import (
    At,
    CannotFreeze,
    Codec,
    Freezer,
    Thawer,
    need,
    place_text,
)
from tape_jupyter.errors import CassetteError

_V2_STATE = {
    "set": "__pydantic_fields_set__",
    "extra": "__pydantic_extra__",
    "private": "__pydantic_private__",
}


class ModuleAbsent(CassetteError):
    """A recorded class lives in a module that this process has not imported."""


def class_path(kind: type) -> str:
    """`module:Class.Inner`."""
    return f"{kind.__module__}:{kind.__qualname__}"


def find_class(name: Any, at: At) -> type:
    """The class of that name in the modules that are imported. Raises CassetteError, ModuleAbsent."""
    module_name, _, path = need(name, str, at).partition(":")
    module = sys.modules.get(module_name)
    if module is None:
        raise ModuleAbsent(
            f"{place_text(at)}: {name!r} was recorded: import {module_name!r} before it is replayed"
        )
    member: Any = module
    for part in path.split("."):
        if member is module or isinstance(member, type):
            member = vars(member).get(part)
        else:
            member = None
    if not isinstance(member, type):
        raise CassetteError(
            f"{place_text(at)}: {module_name!r} has no class {path!r}; run the cell that defines it first"
        )
    return member


def is_findable(kind: type) -> bool:
    """Whether a class would be found again by its name: not one made inside a function."""
    try:
        return _is_same_class(find_class(class_path(kind), None), kind)
    except CassetteError:
        return False


def _is_same_class(current: type, kind: type) -> bool:
    """The same class, or the one that took its place when its notebook cell was run again."""
    if current is kind:
        return True
    codec = codec_for(current)
    return codec is codec_for(kind) and (
        codec is not None or (is_plain_class(current) and is_plain_class(kind))
    )


def _require_class_name(value: Any, at: At) -> str:
    kind = type(value)
    if not is_findable(kind):
        raise CannotFreeze(
            at,
            value,
            f"its class cannot be found again as {class_path(kind)}; define it at top level",
        )
    return class_path(kind)


def _require_class(s: dict[str, Any], at: At, is_kind: Callable[[type], bool]) -> Any:
    kind = find_class(s["class"], (at, "class"))
    if not is_kind(kind):
        raise CassetteError(
            f"{place_text(at)}: {s['class']!r} is not the class of a recorded {s['<type>']}"
        )
    return kind


def bare(kind: type) -> Any:
    """An instance that no code of its class has seen."""
    return object.__new__(kind)


def is_made_bare(kind: type) -> bool:
    """Whether `bare` makes an instance: not of what is derived of a builtin type. None is made to find
    out of a class whose instances act when they are thrown away.
    """
    if acts_when_thrown_away(kind):
        return all(is_class_statement(base) for base in kind.__mro__[:-1])
    try:
        bare(kind)
    except TypeError:
        return False
    return True


def acts_when_thrown_away(kind: type) -> bool:
    return hasattr(kind, "__del__")


def slots_of(kind: type) -> dict[str, MemberDescriptorType]:
    """The slots of a class, by the name that code uses."""
    known = _SLOTS.get(kind)
    if known is None:
        members = {
            n: d
            for c in reversed(kind.__mro__)
            for n, d in vars(c).items()
            if type(d) is MemberDescriptorType
        }
        known = _SLOTS[kind] = {
            name: slot for name, slot in members.items() if not name.startswith("__")
        }
    return known


_SLOTS: weakref.WeakKeyDictionary[type, dict[str, MemberDescriptorType]] = (
    weakref.WeakKeyDictionary()
)


def fill(instance: Any, values: dict[str, Any], at: At) -> Any:
    """Set attributes in the instance's own slots and dict: no `__setattr__`, no property of the
    user's runs.
    """
    slots = slots_of(type(instance))
    for name, value in values.items():
        if name.startswith("__") and name.endswith("__"):
            raise CassetteError(
                f"{place_text(at)}: {name!r} is not an attribute that a value can have"
            )
        if name in slots:
            slots[name].__set__(instance, value)
        else:
            dict_of(instance)[name] = value
    return instance


def own_dict(instance: Any) -> dict[str, Any]:
    """The instance's `__dict__`, past a `__getattribute__` of the user's; {} where there is none."""
    try:
        return dict_of(instance)
    except AttributeError:
        return {}


def dict_of(instance: Any) -> dict[str, Any]:
    read = threading.local if issubclass(type(instance), threading.local) else object
    attributes: dict[str, Any] = read.__getattribute__(instance, "__dict__")
    return attributes


def state_of(instance: Any) -> dict[str, Any]:
    """All attributes an instance holds, in its slots and its dict."""
    attributes: dict[str, Any] = {}
    slots = slots_of(type(instance))
    if not slots:
        return dict(own_dict(instance))
    for name, slot in slots.items():
        try:
            attributes[name] = slot.__get__(instance)
        except AttributeError:
            continue  # a slot that was never set
    return attributes | own_dict(instance)


def set_attributes(instance: Any, values: Mapping[str, Any]) -> None:
    """Set attributes that the instance of a library's class had: also one with a name like `__x__`,
    where its class has no such.
    """
    slots = slots_of(type(instance))
    for name, value in values.items():
        if name in slots:
            slots[name].__set__(instance, value)
        elif re.fullmatch(r"__\w+__", name) and hasattr(type(instance), name):
            raise CassetteError(f"{name!r} is not an attribute that a value can have")
        else:
            dict_of(instance)[name] = value


_HASHES: tuple[Any, ...] = (None, *(c.__hash__ for c in (object, str, bytes, int, float)))
_LARGEST_SMALL_NUMBER = 1 << 16


def has_hash_of_its_own(kind: type) -> bool:
    """Whether its attributes may decide the hash of an instance."""
    return kind.__hash__ not in _HASHES


def is_own_hash(owner: Any, value: Any) -> bool:
    """Whether an attribute is as large as the hash of its owner."""
    if type(value) is not int or abs(value) <= _LARGEST_SMALL_NUMBER:
        return False
    try:
        return has_hash_of_its_own(type(owner)) and hash(owner) == value
    except Exception:  # its own code: it has none
        return False


def lasting_state(value: Any, make_twin: Callable[[], Any]) -> dict[str, Any]:
    """Its attributes. A hash that it keeps in one is another one in each process: it is None, or left
    out, where an object without it has that hash, too.
    """
    state = state_of(value)
    if acts_when_thrown_away(type(value)):
        return state
    for name in [name for name in state if is_own_hash(value, state[name])]:
        rest = {n: v for n, v in state.items() if n != name}
        for other in ({**state, name: None}, rest):
            if _has_hash_of(value, make_twin, other):
                state = other
                break
    return state


def _has_hash_of(value: Any, make_twin: Callable[[], Any], state: dict[str, Any]) -> bool:
    try:
        twin = make_twin()
        set_attributes(twin, state)
        return hash(twin) == hash(value)
    except Exception:  # its own code misses something
        return False


# Enum: by name, because a member's value may be anything.


def _is_enum(kind: type) -> bool:
    return isinstance(kind, enum.EnumMeta)


def _freeze_enum(value: Any, walk: Freezer, at: At) -> dict[str, Any]:
    named = {"class": _require_class_name(value, at)}
    if value._name_ in type(value)._member_map_:
        return {**named, "name": value._name_}
    return {**named, "value": walk.freeze(value._value_, (at, "value"))}


def _thaw_enum(s: dict[str, Any], walk: Thawer, at: At) -> Any:
    kind = _require_class(s, at, _is_enum)
    if "name" in s:
        return kind._member_map_[s["name"]]
    if not issubclass(kind, enum.Flag):
        raise CassetteError(f"{place_text(at)}: a member of {s['class']} needs a name")
    value = need(walk.thaw(s["value"], (at, "value")), int, at)
    # the library's own, whatever the class made of it
    combine = vars(enum.Flag)["_missing_"].__func__
    return kind._value2member_map_.get(value) or combine(kind, value)


# namedtuple


def is_namedtuple(kind: type) -> bool:
    return (
        issubclass(kind, tuple)
        and isinstance(getattr(kind, "_fields", None), tuple)
        and hasattr(kind, "_make")
    )


def _freeze_namedtuple(value: Any, walk: Freezer, at: At) -> dict[str, Any]:
    fields = dict(zip(type(value)._fields, tuple.__iter__(value), strict=True))
    return {"class": _require_class_name(value, at), "fields": walk.mapping(fields, (at, "fields"))}


def _thaw_namedtuple(s: dict[str, Any], walk: Thawer, at: At) -> Any:
    kind = _require_class(s, at, is_namedtuple)
    fields = walk.mapping(s["fields"], (at, "fields"))
    if set(fields) != set(kind._fields):
        raise CassetteError(
            f"{place_text(at)}: {s['class']} has the fields {', '.join(kind._fields)} now"
        )
    return tuple.__new__(kind, [fields[name] for name in kind._fields])


# dataclass


def _is_dataclass(kind: type) -> bool:
    return dataclasses.is_dataclass(kind) and not issubclass(kind, BaseException)


def _freeze_dataclass(value: Any, walk: Freezer, at: At) -> dict[str, Any]:
    name = _require_class_name(value, at)
    if not is_made_bare(type(value)):
        raise CannotFreeze(at, value, "a dataclass that is also a builtin type")
    state = lasting_state(value, lambda: bare(type(value)))
    return {"class": name, "fields": walk.mapping(state, (at, "fields"))}


def _thaw_dataclass(s: dict[str, Any], walk: Thawer, at: At) -> Any:
    kind = _require_class(s, at, _is_dataclass)
    return fill(bare(kind), walk.mapping(s["fields"], (at, "fields")), (at, "fields"))


# pydantic, version 2 and (pydantic.v1) version 1; never imported here


def _is_model(kind: type) -> bool:
    return any(
        c.__name__ == "BaseModel" and c.__module__ in {"pydantic.main", "pydantic.v1.main"}
        for c in kind.__mro__
    )


def _is_pydantic_v2(kind: type) -> bool:
    return hasattr(kind, "__pydantic_fields_set__")


def _freeze_model(value: Any, walk: Freezer, at: At) -> dict[str, Any]:
    structure = {
        "class": _require_class_name(value, at),
        "fields": walk.mapping(dict_of(value), (at, "fields")),
    }
    if not _is_pydantic_v2(type(value)):
        return {**structure, "set": sorted(value.__fields_set__)}
    structure["set"] = sorted(value.__pydantic_fields_set__)
    for name in ("extra", "private"):
        state = object.__getattribute__(value, _V2_STATE[name])
        if state is not None:
            structure[name] = walk.freeze(_drop_defaults(state), (at, name))
    return structure


def _drop_defaults(state: dict[str, Any]) -> dict[str, Any]:
    """Pydantic marks a private attribute that was never set with a value of its own."""
    return {k: v for k, v in state.items() if type(v).__name__ != "PydanticUndefinedType"}


def _thaw_model(s: dict[str, Any], walk: Thawer, at: At) -> Any:
    kind = _require_class(s, at, _is_model)
    model = bare(kind)
    names = {need(name, str, (at, "set")) for name in s["set"]}
    object.__setattr__(model, "__dict__", {})
    fill(model, walk.mapping(s["fields"], (at, "fields")), (at, "fields"))
    if not _is_pydantic_v2(kind):
        object.__setattr__(model, "__fields_set__", names)
        return model
    object.__setattr__(model, _V2_STATE["set"], names)
    for name in ("extra", "private"):
        state = need(walk.thaw(s[name], (at, name)), dict, at) if name in s else None
        object.__setattr__(model, _V2_STATE[name], state)
    return model


# plain objects, of the user's own classes only: those of a library may have finalizers and handles
# that nobody checked, but for a few that hold data and nothing else

_DATA_CLASSES = frozenset({"langgraph.store.base:Item"})


def is_plain_class(kind: type) -> bool:
    """Whether all that an instance is stands in its slots and its dict, and the user wrote its
    class.
    """
    if issubclass(kind, BaseException) or (
        is_library_class(kind) and class_path(kind) not in _DATA_CLASSES
    ):
        return False
    return is_made_bare(kind)


def _freeze_plain(value: Any, walk: Freezer, at: At) -> dict[str, Any]:
    state = lasting_state(value, lambda: bare(type(value)))
    return {
        "class": _require_class_name(value, at),
        "fields": walk.mapping(state, (at, "fields")),
    }


def _thaw_plain(s: dict[str, Any], walk: Thawer, at: At) -> Any:
    kind = _require_class(s, at, is_plain_class)
    return fill(bare(kind), walk.mapping(s["fields"], (at, "fields")), (at, "fields"))


PLAIN = Codec("object", _freeze_plain, _thaw_plain, shared=True)
_ENUM = Codec("enum", _freeze_enum, _thaw_enum)
_NAMEDTUPLE = Codec("namedtuple", _freeze_namedtuple, _thaw_namedtuple)
_MODEL = Codec("pydantic", _freeze_model, _thaw_model, shared=True)
_DATACLASS = Codec("dataclass", _freeze_dataclass, _thaw_dataclass, shared=True)
BY_NAME = {codec.name: codec for codec in (_ENUM, _NAMEDTUPLE, _MODEL, _DATACLASS)}


def codec_for(kind: type) -> Codec | None:
    """The codec of a class of somebody's own, or None. Exceptions are not for this file."""
    if _is_enum(kind):
        return _ENUM
    if is_namedtuple(kind):
        return _NAMEDTUPLE
    if _is_model(kind):
        return _MODEL
    return _DATACLASS if _is_dataclass(kind) else None
