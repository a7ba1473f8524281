"""Codecs of the standard library's value types and containers. No class of the user's is met here."""

from __future__ import annotations

import base64
import importlib
import json
import pathlib
import re
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal
from fractions import Fraction
from types import EllipsisType, NotImplementedType, SimpleNamespace
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

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

_FACTORIES: dict[str, type] = {
    kind.__name__: kind for kind in (list, dict, set, int, float, str, tuple, bool, bytes)
}


def _build_sequence_codec(
    kind: Callable[[list[Any]], Any], *, shared: bool = False, name: str = ""
) -> Codec:
    """An ordered collection."""
    return Codec(
        name or getattr(kind, "__name__", ""),
        lambda value, walk, at: {"values": walk.sequence(value, (at, "values"))},
        lambda s, walk, at: kind(walk.sequence(s["values"], (at, "values"))),
        shared,
    )


def _build_set_codec(kind: type, *, shared: bool) -> Codec:
    """An unordered collection: written in the order of its frozen values, so that equal sets are
    equal text.
    """

    def freeze_set(value: Any, walk: Freezer, at: At) -> dict[str, Any]:
        ordered = sorted(
            value, key=lambda member: json.dumps(walk.freeze_unshared(member, at), sort_keys=True)
        )
        return {"values": walk.sequence(ordered, (at, "values"))}

    return Codec(
        kind.__name__,
        freeze_set,
        lambda s, walk, at: kind(walk.sequence(s["values"], (at, "values"))),
        shared,
    )


def _build_text_codec(name: str, write: Callable[[Any], str], read: Callable[[str], Any]) -> Codec:
    """A value that has an exact text."""
    return Codec(
        name,
        lambda value, _walk, _at: {"value": write(value)},
        lambda s, _walk, at: read(need(s["value"], str, (at, "value"))),
    )


def _build_parts_codec(kind: Callable[..., Any], *names: str, name: str = "") -> Codec:
    """A value that is made of its attributes of these names, in this order."""
    return Codec(
        name or getattr(kind, "__name__", ""),
        lambda value, walk, at: {n: walk.freeze(getattr(value, n), (at, n)) for n in names},
        lambda s, walk, at: kind(*(walk.thaw(s[n], (at, n)) for n in names)),
    )


def _build_bytes_codec(kind: type, *, shared: bool) -> Codec:
    return Codec(
        kind.__name__,
        lambda value, _walk, _at: freeze_bytes(bytes(value)),
        lambda s, _walk, at: kind(thaw_bytes(s, at)),
        shared,
    )


def freeze_bytes(value: bytes) -> dict[str, str]:
    """`utf8` where the bytes are text, `base64` otherwise."""
    try:
        return {"utf8": value.decode()}
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(value).decode()}


def thaw_bytes(structure: dict[str, Any], at: At) -> bytes:
    if "utf8" in structure:
        return bytes(need(structure["utf8"], str, at).encode())
    return base64.b64decode(need(structure["base64"], str, at), validate=True)


def _freeze_mapping(value: Any, walk: Freezer, at: At) -> dict[str, Any]:
    return {"items": walk.items(value, (at, "items"))}


def _build_mapping_codec(kind: type) -> Codec:
    return Codec(
        kind.__name__,
        _freeze_mapping,
        lambda s, walk, at: kind(dict(walk.items(s["items"], (at, "items")))),
        shared=True,
    )


def _freeze_defaultdict(value: Any, walk: Freezer, at: At) -> dict[str, Any]:
    factory = value.default_factory
    name = None
    if factory is not None:
        name = next((n for n, kind in _FACTORIES.items() if kind is factory), "")
    if name == "":
        raise CannotFreeze(at, value, "its default factory is code, not data")
    return {"factory": name, **_freeze_mapping(value, walk, at)}


def _thaw_defaultdict(s: dict[str, Any], walk: Thawer, at: At) -> defaultdict[Any, Any]:
    factory = None if s["factory"] is None else _FACTORIES[s["factory"]]
    return defaultdict(factory, walk.items(s["items"], (at, "items")))


def _freeze_deque(value: Any, walk: Freezer, at: At) -> dict[str, Any]:
    return {"maxlen": value.maxlen, "values": walk.sequence(value, (at, "values"))}


def _thaw_int(s: dict[str, Any], _walk: Thawer, at: At) -> int:
    text = need(s["hex"], str, (at, "hex"))
    if not re.fullmatch(r"-?0x[0-9a-f]{1,1000000}", text):
        raise CassetteError(f"{place_text(at)}: not an int in hex: {text[:40]!r}")
    return int(text, 16)


def _freeze_datetime(value: Any, walk: Freezer, at: At) -> dict[str, Any]:
    zone = {} if value.tzinfo is None else {"zone": walk.freeze(value.tzinfo, (at, "zone"))}
    fold = {"fold": 1} if value.fold else {}
    return {"value": value.replace(tzinfo=None, fold=0).isoformat(), **zone, **fold}


def _build_moment_codec(kind: type[datetime | time]) -> Codec:
    def thaw_moment(s: dict[str, Any], walk: Thawer, at: At) -> datetime | time:
        value = kind.fromisoformat(s["value"])
        if "zone" in s:
            zone = need_zone(walk.thaw(s["zone"], (at, "zone")), at)
        else:
            zone = value.tzinfo
        return value.replace(tzinfo=zone, fold=s.get("fold", 0))

    return Codec(kind.__name__, _freeze_datetime, thaw_moment)


def need_zone(zone: Any, at: At) -> tzinfo | None:
    """A thawed time zone, or None."""
    if zone is not None and not isinstance(zone, tzinfo):
        raise CassetteError(f"{place_text(at)}: {type(zone).__name__} is not a time zone")
    return zone


def _freeze_zone(value: Any, _walk: Freezer, at: At) -> dict[str, Any]:
    if value.key is None:
        raise CannotFreeze(at, value, "a time zone read from a file has no name")
    return {"key": value.key}


def _freeze_timezone(value: Any, walk: Freezer, at: At) -> dict[str, Any]:
    offset, name = value.utcoffset(None), value.tzname(None)
    name_field = {} if timezone(offset).tzname(None) == name else {"name": name}
    return {"offset": walk.freeze(offset, (at, "offset")), **name_field}


def _thaw_timezone(s: dict[str, Any], walk: Thawer, at: At) -> timezone:
    offset = walk.thaw(s["offset"], (at, "offset"))
    if "name" in s:
        return timezone(offset, s["name"])
    return timezone(offset) if offset else UTC


def _build_path_codec(kind: type[pathlib.PurePath], name: str) -> Codec:
    return _build_text_codec(name, str, kind)


def _build_constant_codec(name: str, value: Any) -> Codec:
    return Codec(name, lambda _value, _walk, _at: {}, lambda _s, _walk, _at: value)


def _thaw_float(s: dict[str, Any], _walk: Thawer, _at: At) -> float:
    return {"nan": float("nan"), "inf": float("inf"), "-inf": float("-inf")}[s["value"]]


def _freeze_nothing(_value: Any, _walk: Freezer, _at: At) -> dict[str, Any]:
    return {}  # never asked: the walk itself writes int, float and dict


_PATH = _build_path_codec(pathlib.Path, "Path")

BY_TYPE: dict[type, Codec] = {
    tuple: _build_sequence_codec(tuple),
    set: _build_set_codec(set, shared=True),
    frozenset: _build_set_codec(frozenset, shared=False),
    bytes: _build_bytes_codec(bytes, shared=False),
    bytearray: _build_bytes_codec(bytearray, shared=True),
    complex: _build_parts_codec(complex, "real", "imag"),
    OrderedDict: _build_mapping_codec(OrderedDict),
    Counter: _build_mapping_codec(Counter),
    defaultdict: Codec("defaultdict", _freeze_defaultdict, _thaw_defaultdict, shared=True),
    deque: Codec(
        "deque",
        _freeze_deque,
        lambda s, walk, at: deque(walk.sequence(s["values"], (at, "values")), s["maxlen"]),
        shared=True,
    ),
    SimpleNamespace: Codec(
        "SimpleNamespace",
        lambda value, walk, at: _freeze_mapping(vars(value), walk, at),
        lambda s, walk, at: SimpleNamespace(**dict(walk.items(s["items"], (at, "items")))),
        shared=True,
    ),
    datetime: _build_moment_codec(datetime),
    time: _build_moment_codec(time),
    date: _build_text_codec("date", date.isoformat, date.fromisoformat),
    timedelta: _build_parts_codec(timedelta, "days", "seconds", "microseconds"),
    timezone: Codec("timezone", _freeze_timezone, _thaw_timezone),
    ZoneInfo: Codec(
        "ZoneInfo", _freeze_zone, lambda s, _walk, at: ZoneInfo(need(s["key"], str, at))
    ),
    Decimal: _build_text_codec("Decimal", str, Decimal),
    Fraction: _build_parts_codec(Fraction, "numerator", "denominator"),
    UUID: _build_text_codec("UUID", str, UUID),
    re.Pattern: Codec(
        "pattern",
        lambda value, walk, at: {
            "pattern": walk.freeze(value.pattern, at),
            "flags": int(value.flags & ~re.DEBUG),
        },
        lambda s, walk, at: re.compile(walk.thaw(s["pattern"], at), need(s["flags"], int, at)),
    ),
    range: _build_parts_codec(range, "start", "stop", "step"),
    slice: _build_parts_codec(slice, "start", "stop", "step"),
    EllipsisType: _build_constant_codec("Ellipsis", ...),
    NotImplementedType: _build_constant_codec("NotImplemented", NotImplemented),
    pathlib.PosixPath: _PATH,
    pathlib.WindowsPath: _PATH,
    pathlib.PurePosixPath: _build_path_codec(pathlib.PurePosixPath, "PurePosixPath"),
    pathlib.PureWindowsPath: _build_path_codec(pathlib.PureWindowsPath, "PureWindowsPath"),
}

_READ_ONLY = (
    Codec("int", _freeze_nothing, _thaw_int),
    Codec("float", _freeze_nothing, _thaw_float),
    Codec(
        "dict",
        _freeze_nothing,
        lambda s, walk, at: dict(walk.items(s["items"], (at, "items"))),
        shared=True,
    ),
)

BY_NAME: dict[str, Codec] = {codec.name: codec for codec in (*BY_TYPE.values(), *_READ_ONLY)}


# dateutil's UTC and fixed offsets: what boto3 gives every date of its replies.


def _thaw_dateutil(s: dict[str, Any], walk: Thawer, at: At) -> Any:
    tz: Any = importlib.import_module("dateutil.tz")

    if "offset" in s:
        return tz.tzoffset(s["name"], walk.thaw(s["offset"], (at, "offset")))
    return tz.tzutc()


def _freeze_dateutil(value: Any, walk: Freezer, at: At) -> dict[str, Any]:
    if type(value).__name__ == "tzutc":
        return {}
    return {
        "name": value.tzname(None),
        "offset": walk.freeze(value.utcoffset(None), (at, "offset")),
    }


DATEUTIL = Codec("dateutil", _freeze_dateutil, _thaw_dateutil)
"""For dateutil.tz.tzutc and tzoffset; other zones of dateutil are read from files and have no name."""

BY_NAME[DATEUTIL.name] = DATEUTIL
