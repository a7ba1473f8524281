"""Live Python values <-> plain structure (dict, list, str, int, float, bool, None). No pickle, no
eval.

    freeze(value) -> structure          raises CannotFreeze (what, where in the value, why)
    thaw(structure) -> value            raises CassetteError on anything malformed
    freeze_error(exc) -> structure      never raises; what cannot be written is listed under `left out`
    thaw_error(structure) -> exception

What round-trips is what the codecs name: scalars (standard library), classes (Enum, namedtuple,
dataclass, pydantic), errors (exceptions), arrays (numpy, PIL), tables (pandas, polars), replies (responses
and requests of httpx and requests), outcomes (sqlite3, subprocess), steps (generators). Their
libraries are imported only to thaw a value of theirs. Other packages add codecs by the entry-point
group `tape_jupyter.value_codecs`: a class with its module, and its `Codec`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import Any

from tape_jupyter.core import plugins
from tape_jupyter.encoding.values import (
    exceptions,
    generators,
    placeholders,
    stdlib,
    tool_results,
    user_classes,
)
from tape_jupyter.encoding.values.generators import GeneratorSteps
from tape_jupyter.encoding.values.placeholders import Argument, Secret
from tape_jupyter.encoding.values.walker import (
    MAX_DEPTH,
    CannotFreeze,
    Codec,
    Freezer,
    Thawer,
    depth,
    need,
)
from tape_jupyter.errors import CassetteError

__all__ = [
    "Argument",
    "Awaited",
    "CannotFreeze",
    "GeneratorSteps",
    "Secret",
    "freeze",
    "freeze_error",
    "thaw",
    "thaw_error",
]

_LIBRARIES = (
    {"numpy": "numpy", "PIL": "pillow", "pandas": "pandas"}
    | dict.fromkeys(("httpx", "httpx2", "requests"), "http_objects")
    | dict.fromkeys(("sqlite3", "subprocess", "tape_jupyter"), "stdlib_results")
)
_MARKS = {
    "numpy": {"ndarray", "numpy"},
    "pillow": {"Image"},
    "stdlib_results": {"CompletedProcess", "sqlite3 row", "sqlite3 cursor"},
    "http_objects": {"http response", "http request"},
    "pandas": {
        "DataFrame",
        "Series",
        "Index",
        "pandas array",
        "Timestamp",
        "Timedelta",
        "Period",
        "Interval",
        "NaT",
        "NA",
    },
    "polars": {"polars frame", "polars series"},
}
"""Marks by the file that reads them: a library is imported when a value of its is met."""


GROUP = "tape_jupyter.value_codecs"


@dataclass(frozen=True, slots=True)
class Awaited:
    """What a plain function's awaitable result gave: thaws to an Awaited, which the tap turns into
    an awaitable.
    """

    value: Any


_AWAITED = Codec(
    "awaitable",
    lambda awaited, walk, at: {"value": walk.freeze(awaited.value, (at, "value"))},
    lambda s, walk, at: Awaited(walk.thaw(s["value"], (at, "value"))),
)


def freeze(value: Any) -> Any:
    """The value as structure: a copy, later changes of the value do not show. Raises CannotFreeze."""
    return freeze_checked(lambda: Freezer(_find_codec).freeze(value, None), value)


def freeze_checked(write: Callable[[], Any], value: Any) -> Any:
    """What `write` makes of the value. Raises CannotFreeze, whatever goes wrong."""
    try:
        structure = write()
    except CannotFreeze:
        raise
    except (
        Exception
    ) as reason:  # the object's own code, or another thread that changes it meanwhile
        raise CannotFreeze(None, value, f"{type(reason).__name__}: {reason}") from reason
    if depth(structure) > MAX_DEPTH:
        raise CannotFreeze(None, value, f"nested deeper than {MAX_DEPTH} levels")
    return structure


def thaw(structure: Any) -> Any:
    """The value again, of the same type. Raises CassetteError, and runs no code that the structure
    names.
    """
    try:
        return Thawer(_find_named_codec).thaw(structure, None)
    except RecursionError:
        raise CassetteError("a recorded value is nested too deep to be read") from None


def state_codec(kind: type) -> Codec | None:
    """As for any value; and plain objects of the user's classes and tables of polars, which are written
    where a tool's results are: as arguments they are told by their type.
    """
    if kind.__module__.startswith("polars."):
        return _import_codecs("polars").codec_for(kind) or _find_codec(kind)
    return _find_codec(kind) or (user_classes.PLAIN if user_classes.is_plain_class(kind) else None)


def state_codec_named(name: str) -> Codec | None:
    if name == user_classes.PLAIN.name:
        return user_classes.PLAIN
    return _find_named_codec(name)


def freeze_error(error: BaseException) -> dict[str, Any]:
    """The exception as structure; parts that cannot be frozen are left out, and named under `left
    out`.
    """
    done, frozen = Freezer(_find_codec).attempt(error, None)
    structure: dict[str, Any] = frozen if done else exceptions.minimal_exception(error, frozen)
    for part in ("context", "cause", "attributes"):
        if part in structure and depth(structure) > MAX_DEPTH:
            del structure[part]
            structure.setdefault("left out", []).append(part)
    return structure


def thaw_error(structure: Mapping[str, Any]) -> BaseException:
    """The exception again, to be raised. Raises CassetteError, naming the module that must be
    imported first.
    """
    error = thaw(need(dict(structure), dict, None))
    if not isinstance(error, BaseException):
        raise CassetteError(f"a {type(error).__name__} is recorded where an exception belongs")
    return error


def _find_codec(kind: type) -> Codec | None:
    """How a value of this very type is written; None: it is not."""
    known = stdlib.BY_TYPE.get(kind) or _OURS.get(kind)
    if known is not None:
        return known
    if issubclass(kind, BaseException):
        return exceptions.CODEC
    return _find_library_codec(kind) or _find_added_codec(kind) or user_classes.codec_for(kind)


def _find_library_codec(kind: type) -> Codec | None:
    library = kind.__module__.partition(".")[0]
    if kind.__module__ == "dateutil.tz.tz" and kind.__name__ in {"tzutc", "tzoffset"}:
        return stdlib.DATEUTIL
    codec: Codec | None = (
        _import_codecs(_LIBRARIES[library]).codec_for(kind) if library in _LIBRARIES else None
    )
    return codec


def _find_added_codec(kind: type) -> Codec | None:
    """The codec of another package for this very class."""
    point = plugins.entry_points_of(GROUP).get(f"{kind.__module__}.{kind.__qualname__}")
    return plugins.load_entry_point(point, Codec) if point is not None else None


@cache
def _collect_added_codecs() -> Mapping[str, Codec]:
    return {codec.name: codec for codec in plugins.load_all(GROUP, Codec).values()}


def _find_named_codec(name: str) -> Codec | None:
    """How a value with this mark is read; None: there is no such mark."""
    for known in _ALWAYS:
        if name in known:
            return known[name]
    file = next((file for file, marks in _MARKS.items() if name in marks), None)
    if file is None:
        return _collect_added_codecs().get(name)
    codec: Codec = _import_codecs(file).BY_NAME[name]
    return codec


def _import_codecs(file: str) -> ModuleType:
    """The codecs of a library: one of a few files of this package, never a name from a recording."""
    try:
        return importlib.import_module(f"tape_jupyter.encoding.values.{file}")
    except ImportError as missing:
        raise CassetteError(f"a recorded value needs {missing.name}: install it") from missing


_OURS: dict[type, Codec] = {
    Awaited: _AWAITED,
    GeneratorSteps: generators.CODEC,
    **tool_results.BY_TYPE,
    **placeholders.BY_TYPE,
}
_ALWAYS = (
    stdlib.BY_NAME,
    user_classes.BY_NAME,
    exceptions.BY_NAME,
    placeholders.BY_NAME,
    {codec.name: codec for codec in _OURS.values()},
)
