"""Codec of exceptions. Real class, args, attributes, notes, causes; nothing of the user's is run.

    {"<type>": "exception", "class": "httpx:HTTPStatusError", "args": [...], "attributes": {...},
    "notes": [...],
     "message": "...", "exceptions": [...],         a group's
     "cause": {...}, "context": {...}, "suppress": true,
     "left out": ["request"],                       what could not be written: it is absent after thawing
     "below": "botocore.exceptions:ClientError",    a class made in a function is looked for below this one
     "was": "pydantic_core:ValidationError",        `class` is what it derives from: the real one cannot be built
     "text": "..."}                                 only where `str` of the thawed one would differ

An attribute that cannot be frozen (a socket, a client) is left out: an exception without it is
better than none.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import GetSetDescriptorType, MemberDescriptorType
from typing import Any

from tape_jupyter.encoding.values.user_classes import (
    ModuleAbsent,
    class_path,
    dict_of,
    find_class,
    own_dict,
)
from tape_jupyter.encoding.values.walker import TYPE, At, Codec, Freezer, Thawer, need, place_text
from tape_jupyter.errors import CassetteError

MAX_CHAIN = 8
"""How many causes and contexts, one below the other, are kept."""

_BASE = vars(BaseException)
_GROUP = {"exceptions", "message"}


class AbsentError(Exception):
    """Stands for a cause or context whose module this process has not imported; its text says what
    it was.
    """


@dataclass(slots=True)
class _Parts:
    """What an exception is built from: live values, and the names of those that cannot be written."""

    args: tuple[Any, ...] = ()
    attributes: dict[str, Any] = field(default_factory=dict)
    message: str = ""
    exceptions: list[BaseException] | None = None
    details: Mapping[str, Any] | None = None
    left_out: list[str] = field(default_factory=list)


# Freezing


def _freeze_exception(error: BaseException, walk: Freezer, at: At) -> dict[str, Any]:
    parts = _Parts()
    fields: dict[str, Any] = {"class": "", "args": _freeze_args(error, parts, walk, at)}
    if isinstance(error, BaseExceptionGroup):
        parts.message, parts.exceptions = error.message, list(error.exceptions)
        fields |= {
            "message": error.message,
            "exceptions": walk.sequence(parts.exceptions, (at, "exceptions")),
        }
    if is_validation_error(type(error)):
        fields |= _freeze_details(error, parts, walk, at)
    elif attributes := _freeze_attributes(error, parts, walk, at):
        fields["attributes"] = attributes
    if notes := own_dict(error).get("__notes__"):
        fields["notes"] = [str(note) for note in notes]
    fields |= _freeze_chain(error, walk, at)
    if parts.left_out:
        fields["left out"] = parts.left_out
    return fields | _freeze_identity(error, parts)


def minimal_exception(error: BaseException, reason: str) -> dict[str, Any]:
    """Class and text of an exception whose own code fails when it is looked at."""
    text = _describe_safely(str, error)
    return {
        TYPE: CODEC.name,
        "args": [text],
        "left out": [reason],
        **_freeze_identity(error, _Parts((text,))),
    }


def _freeze_args(error: BaseException, parts: _Parts, walk: Freezer, at: At) -> list[Any]:
    if isinstance(error, BaseExceptionGroup):
        return []
    structures, kept = [], []
    for i, value in enumerate(error.args):
        done, structure = walk.attempt(value, ((at, "args"), i))
        if not done:
            parts.left_out.append(f"args[{i}]")
            # its repr stands for it from here on
            value = structure = _describe_safely(repr, value)  # noqa: PLW2901
        structures.append(structure)
        kept.append(value)
    parts.args = tuple(kept)
    return structures


def _freeze_attributes(
    error: BaseException, parts: _Parts, walk: Freezer, at: At
) -> dict[str, Any]:
    structures = {}
    for name, value in _iterate_attributes(error, parts):
        done, structure = walk.attempt(value, ((at, "attributes"), name))
        if not done or name[:1] == "<":
            parts.left_out.append(name)
            continue
        structures[name] = structure
        parts.attributes[name] = value
    return structures


def _iterate_attributes(error: BaseException, parts: _Parts) -> Iterator[tuple[str, Any]]:
    """Attributes in slots, in the C structs of OSError, ImportError, SyntaxError, ... unless the
    args give the same, and in the dict.
    """
    derived = _derive_attributes_from_args(type(error), parts)
    for name, member in _find_members(type(error)).items():
        with contextlib.suppress(AttributeError):
            value = member.__get__(error)
            if value is not None and (type(value), value) != derived.get(name):
                yield name, value
    yield from ((name, value) for name, value in own_dict(error).items() if name != "__notes__")


def _derive_attributes_from_args(
    kind: type[BaseException], parts: _Parts
) -> dict[str, tuple[type, Any]]:
    """What the interpreter's own exceptions make of their args, as (type, value) by name."""
    derived = {}
    with contextlib.suppress(TypeError):
        bare = _build_bare(kind, parts)
        for name, member in _find_members(kind).items():
            with contextlib.suppress(AttributeError):
                derived[name] = (type(member.__get__(bare)), member.__get__(bare))
    return derived


def _find_members(kind: type) -> dict[str, Any]:
    """The descriptors, in C, that hold attributes of instances outside their dict."""
    members = {
        n: member
        for c in reversed(kind.__mro__)
        if c is not BaseException
        for n, member in vars(c).items()
    }
    fit = (MemberDescriptorType, GetSetDescriptorType)
    not_data = _GROUP if issubclass(kind, BaseExceptionGroup) else set()
    return {
        n: m for n, m in members.items() if type(m) in fit and n[:2] != "__" and n not in not_data
    }


def _freeze_chain(error: BaseException, walk: Freezer, at: At) -> dict[str, Any]:
    """Cause and context, unless they are too far away."""
    fields: dict[str, Any] = {}
    for name, other in (("cause", error.__cause__), ("context", error.__context__)):
        if other is not None and _count_chain(at) < MAX_CHAIN:
            done, structure = walk.attempt(other, (at, name))
            fields |= {name: structure} if done else {}
    return fields | ({"suppress": True} if error.__suppress_context__ else {})


def _count_chain(at: At) -> int:
    """How many causes and contexts stand above this place, in a row."""
    count = 0
    while at is not None and at[1] in {"cause", "context"}:
        at, count = at[0], count + 1
    return count


def _freeze_identity(error: BaseException, parts: _Parts) -> dict[str, Any]:
    """Class and text, proven: the exception is built once from its parts, and compared."""
    real = type(error)
    for kind in real.__mro__:
        try:
            again = _build_exception(kind, parts)
        except Exception:  # noqa: S112  # then what it derives from is built instead; BaseException always can
            continue
        text = _describe_safely(str, error)
        extra = {} if _describe_safely(str, again) == text else {"text": text}
        return _freeze_class(kind) | ({} if kind is real else {"was": class_path(real)}) | extra
    raise AssertionError("BaseException can always be built")


def _freeze_class(kind: type) -> dict[str, str]:
    if _is_named(kind):
        return {"class": class_path(kind)}
    return {
        "class": class_path(kind),
        "below": next(class_path(c) for c in kind.__mro__ if _is_named(c)),
    }


def _is_named(kind: type) -> bool:
    """Whether an exception's class is found by its name; the one that took its place in a notebook
    will do.
    """
    try:
        return issubclass(find_class(class_path(kind), None), BaseException)
    except CassetteError:
        return False


def _describe_safely(text: Any, value: Any) -> str:
    try:
        return str(text(value))
    except Exception as reason:
        return f"<{type(value).__name__} without text: {type(reason).__name__}>"


# Thawing


def _thaw_exception(s: dict[str, Any], walk: Thawer, at: At) -> BaseException:
    kind = _find_exception_class(s, at)
    parts = _Parts(tuple(walk.sequence(s["args"], (at, "args"))), message=s.get("message", ""))
    parts.attributes = walk.mapping(s.get("attributes", {}), (at, "attributes"))
    if "exceptions" in s:
        parts.exceptions = walk.sequence(s["exceptions"], (at, "exceptions"))
    if "details" in s:
        parts.details = walk.mapping(s["details"], (at, "details"))
    error = _build_exception(
        _build_class_with_text(kind, need(s["text"], str, (at, "text"))) if "text" in s else kind,
        parts,
    )
    if "notes" in s:
        dict_of(error)["__notes__"] = [need(note, str, (at, "notes")) for note in s["notes"]]
    for name in ("cause", "context"):
        if name in s:
            _BASE[f"__{name}__"].__set__(error, _thaw_chained(s[name], walk, (at, name)))
    _BASE["__suppress_context__"].__set__(error, s.get("suppress", False))
    return error


def _find_exception_class(s: dict[str, Any], at: At) -> type[BaseException]:
    try:
        kind = find_class(s["class"], (at, "class"))
    except CassetteError:
        if "below" not in s:
            raise
        above = find_class(s["below"], (at, "below"))
        kind = next((k for k in _iterate_subclasses(above) if class_path(k) == s["class"]), above)
    if not issubclass(kind, BaseException):
        raise CassetteError(f"{place_text(at)}: {s['class']!r} is not the class of an exception")
    return kind


def _iterate_subclasses(kind: type) -> Iterator[type]:
    below: type
    for below in type.__subclasses__(kind):
        yield below
        yield from _iterate_subclasses(below)


def _thaw_chained(s: Any, walk: Thawer, at: At) -> BaseException:
    """A cause or context. One whose module is not imported here cannot be asked for by name: its
    text will do.
    """
    try:
        error = walk.thaw(s, at)
    except ModuleAbsent as reason:
        return walk.built(AbsentError(f"{s.get('class')}: {s.get('args')} ({reason})"), at)
    if not isinstance(error, BaseException):
        raise CassetteError(f"{place_text(at)}: a {type(error).__name__} is not an exception")
    return error


# Building: from live parts, by the constructors of the interpreter's own exceptions only


def _build_exception(kind: type[BaseException], parts: _Parts) -> BaseException:
    if is_validation_error(kind):
        error = _build_validation_error(kind, parts.details)
    else:
        error = _build_bare(kind, parts)
    if parts.exceptions is None:
        _BASE["args"].__set__(error, parts.args)
    members = _find_members(type(error))
    for name, value in parts.attributes.items():
        if name.startswith("__") and name.endswith("__"):
            raise CassetteError(f"{name!r} is not an attribute that an exception can have")
        if name not in members:
            dict_of(error)[name] = value
            continue
        with contextlib.suppress(AttributeError):  # read-only: derived from the args
            members[name].__set__(error, value)
    return error


def _build_bare(kind: type[BaseException], parts: _Parts) -> BaseException:
    """An instance, by `__new__` and `__init__` of the first builtin base that is able to."""
    args = parts.args if parts.exceptions is None else (parts.message, parts.exceptions)
    for base in kind.__mro__:
        if base.__module__ != "builtins" or not issubclass(base, BaseException):
            continue
        try:
            error = base.__new__(kind, *args)
        except (
            TypeError
        ):  # another base has the larger struct, or the class cannot be built from Python
            continue
        # a user's class passed its base something else
        with contextlib.suppress(TypeError, ValueError):
            base.__init__(error, *args)
        return error
    raise TypeError(f"{class_path(kind)} cannot be built")


def _build_class_with_text(kind: type[BaseException], text: str) -> type[BaseException]:
    """A class below `kind` that reads as recorded: its own `__str__` needs what was left out.

    Where making a subclass would run code of the user's (a metaclass, `__init_subclass__`) the
    class stays as it is.
    """
    if type(kind) is not type or any(
        "__init_subclass__" in vars(c) for c in kind.__mro__ if c is not object
    ):
        return kind
    namespace = {
        "__str__": lambda _self: text,
        "__module__": kind.__module__,
        "__qualname__": kind.__qualname__,
    }
    return type(kind.__name__, (kind,), namespace)


# Pydantic's ValidationError has no constructor: it is built from its lines


def is_validation_error(kind: type) -> bool:
    core = sys.modules.get("pydantic_core")
    return core is not None and kind is core.ValidationError


def _freeze_details(error: Any, parts: _Parts, walk: Freezer, at: At) -> dict[str, Any]:
    lines = [
        {k: v for k, v in line.items() if k != "url"} for line in error.errors(include_url=False)
    ]
    text = str(error)
    for mode in ("python", "json"):
        details = {
            "title": error.title,
            "lines": lines,
            "mode": mode,
            "hide": "input_value=" not in text,
        }
        done, structure = walk.attempt(details, (at, "details"))
        with contextlib.suppress(Exception):
            if done and str(_build_validation_error(type(error), details)) == text:
                parts.details = details
                return {"details": structure}
    return {}


def _build_validation_error(kind: Any, details: Mapping[str, Any] | None) -> BaseException:
    if details is None:
        raise TypeError("its lines are not recorded")
    core: Any = sys.modules["pydantic_core"]
    known = set(core.core_schema.ErrorType.__args__)
    lines = []
    for line in details["lines"]:
        line_type = line["type"]
        if line_type not in known:
            line_type = core.PydanticCustomError(line_type, line["msg"], line.get("ctx"))
        context = {"ctx": line["ctx"]} if "ctx" in line else {}
        lines.append({"type": line_type, "loc": line["loc"], "input": line["input"], **context})
    error: BaseException = kind.from_exception_data(
        details["title"], lines, details["mode"], details["hide"]
    )
    return error


CODEC = Codec("exception", _freeze_exception, _thaw_exception, shared=True)
BY_NAME = {CODEC.name: CODEC}
