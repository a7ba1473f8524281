"""Codecs of numpy arrays and scalars, exact to the bit. Imported only for a value of numpy's.

A small array is a flat list of numbers or strings that a person can read and edit, where that gives
the same bits; any other is the base64 of its bytes. Element order is C order unless `order` says
"F".
"""

from __future__ import annotations

import base64
import math
from typing import Any

import numpy as np

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

_READABLE = 4096
"""Elements up to which an array is written as a list."""

_LISTED_KINDS = "biufUMO"


def freeze_array(array: Any, walk: Freezer, at: At) -> dict[str, Any]:
    """`dtype`, `shape` (absent with one dimension) and `values` or `base64`."""
    fields: dict[str, Any] = {"dtype": _freeze_dtype(array.dtype, at)}
    if array.ndim != 1:
        fields["shape"] = list(array.shape)
    if array.ndim > 1 and array.flags.f_contiguous and not array.flags.c_contiguous:
        fields["order"] = "F"
    return fields | _freeze_elements(array, walk, at)


def _freeze_elements(array: Any, walk: Freezer, at: At) -> dict[str, Any]:
    flat = array.reshape(-1)
    if array.dtype.kind == "O":
        return {"values": walk.sequence(flat.tolist(), (at, "values"))}
    if array.dtype.hasobject:
        raise CannotFreeze(at, array, f"its elements ({array.dtype}) hold references")
    if array.size <= _READABLE and array.dtype.kind in _LISTED_KINDS:
        values = _list_elements(flat)
        if (
            values is not None
            and _build_flat_array(values, array.dtype).tobytes() == flat.tobytes()
        ):
            return {"values": values}
    return {"base64": base64.b64encode(flat.tobytes()).decode()}


def _list_elements(flat: Any) -> list[Any] | None:
    """Elements as a structure holds them: dates as ISO text, nan and inf as these words. None: a
    long double.
    """
    values = (np.datetime_as_string(flat) if flat.dtype.kind == "M" else flat).tolist()
    if flat.dtype.kind == "f" and all(type(v) is float for v in values):
        return [v if math.isfinite(v) else repr(v) for v in values]
    return values if all(type(v) in (bool, int, str) for v in values) else None


def _build_flat_array(values: list[Any], dtype: Any) -> Any:
    if dtype.kind == "f":
        values = [float(v) for v in values]
    return np.array(values, dtype).reshape(len(values))


def _freeze_dtype(dtype: Any, at: At) -> Any:
    """`<f8`; a structured type is a list of [name, type] or [name, type, shape]."""
    if dtype.kind == "T" or dtype.isalignedstruct:
        raise CannotFreeze(at, dtype, "this dtype has no text that gives it again")
    text = dtype.str if dtype.names is None else _to_lists(dtype.descr)
    if np.dtype(_to_tuples(text)) != dtype or dtype.metadata:
        raise CannotFreeze(at, dtype, "this dtype has no text that gives it again")
    return text


def _to_lists(descr: Any) -> Any:
    if isinstance(descr, (list, tuple)):
        return [_to_lists(part) for part in descr]
    return descr


def _to_tuples(fields: Any) -> Any:
    """What numpy asks for: a list of tuples; a nested type is a list again, a shape a tuple."""
    if not isinstance(fields, list):
        return fields
    return [(f[0], _to_tuples(f[1]), *(tuple(shape) for shape in f[2:])) for f in fields]


def thaw_array(s: dict[str, Any], walk: Thawer, at: At) -> Any:
    """The array; raises CassetteError where elements and shape do not fit."""
    dtype = np.dtype(_to_tuples(s["dtype"]))
    if "values" in s:
        values = _thaw_values(s, dtype, walk, at)
    else:
        values = _thaw_bytes(s, dtype, at)
    shape = tuple(need(n, int, (at, "shape")) for n in s.get("shape", [len(values)]))
    if math.prod(shape) != len(values) or any(n < 0 for n in shape):
        raise CassetteError(
            f"{place_text(at)}: {len(values)} elements do not make the shape {list(shape)}"
        )
    array = values.reshape(shape)
    return np.asfortranarray(array) if s.get("order") == "F" else array


def _thaw_values(s: dict[str, Any], dtype: Any, walk: Thawer, at: At) -> Any:
    values = walk.sequence(s["values"], (at, "values"))
    if dtype.kind != "O":
        return _build_flat_array(values, dtype)
    array = np.empty(len(values), dtype)
    for i, value in enumerate(values):  # one by one: as a whole, lists would become dimensions
        array[i] = value
    return array


def _thaw_bytes(s: dict[str, Any], dtype: Any, at: At) -> Any:
    data = base64.b64decode(need(s["base64"], str, (at, "base64")), validate=True)
    if dtype.hasobject:
        raise CassetteError(f"{place_text(at)}: objects cannot be read from bytes")
    return np.frombuffer(data, dtype).copy() if data else np.empty(0, dtype)


def _freeze_scalar(value: Any, walk: Freezer, at: At) -> dict[str, Any]:
    fields = freeze_array(np.asarray(value), walk, at)
    del fields["shape"]
    values = fields.pop("values", None)
    return fields if values is None else {**fields, "value": values[0]}


def _thaw_scalar(s: dict[str, Any], walk: Thawer, at: At) -> Any:
    (value,) = thaw_array({"values": [s["value"]], **s} if "value" in s else s, walk, at)
    return value


_ARRAY = Codec("ndarray", freeze_array, thaw_array, shared=True)
_SCALAR = Codec("numpy", _freeze_scalar, _thaw_scalar)
BY_NAME = {codec.name: codec for codec in (_ARRAY, _SCALAR)}


def codec_for(kind: type) -> Codec | None:
    """The codec of a type of numpy's; subclasses of arrays (matrix, masked array) have none."""
    if kind is np.ndarray:
        return _ARRAY
    return _SCALAR if issubclass(kind, np.generic) and kind is not np.void else None
