"""Codecs of pandas: DataFrame, Series, Index, Timestamp, Timedelta, Period, Interval, NaT, NA.

Imported only for a value of pandas'. A column is written by its dtype; an object column holds
frozen values, which may be nested. Timestamps in a column are integers since 1970 in the dtype's
unit, as pandas keeps them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from tape_jupyter.encoding.values.numpy import freeze_array, thaw_array
from tape_jupyter.encoding.values.stdlib import need_zone
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

# Columns: the array of a Series, a DataFrame's column or an Index


def _freeze_column(array: Any, walk: Freezer, at: At) -> dict[str, Any]:
    dtype: Any = array.dtype
    if type(dtype) in _COLUMNS:
        name, write, _read = _COLUMNS[type(dtype)]
        return {"column": name, **write(array, walk, at)}
    if type(dtype) in _MASKED:
        return {"column": dtype.name, **_freeze_masked(array, walk, at)}
    if isinstance(dtype, np.dtype) or isinstance(array, pd.arrays.NumpyExtensionArray):
        return freeze_array(np.asarray(array), walk, at)
    raise CannotFreeze(at, array, f"a column of dtype {dtype}")


def _thaw_column(s: Any, walk: Thawer, at: At) -> Any:
    need(s, dict, at)
    if "column" not in s:
        return thaw_array(s, walk, at)
    name = s["column"]
    if name in _MASKED_BY_NAME:
        return _thaw_masked(s, walk, at)
    read = next((read for known, _write, read in _COLUMNS.values() if known == name), None)
    if read is None:
        raise CassetteError(f"{place_text(at)}: {name!r} is not a dtype that can be recorded")
    return read(s, walk, at)


def _freeze_masked(array: Any, walk: Freezer, at: At) -> dict[str, Any]:
    """Nullable numbers: the values, and which of them are missing."""
    missing = array.isna()
    values = array.to_numpy(array.dtype.numpy_dtype, na_value=0)
    return {
        "values": freeze_array(values, walk, (at, "values")),
        "missing": [int(i) for i in np.flatnonzero(missing)],
    }


def _thaw_masked(s: dict[str, Any], walk: Thawer, at: At) -> Any:
    values = thaw_array(s["values"], walk, (at, "values"))
    missing = np.zeros(len(values), bool)
    missing[[need(i, int, (at, "missing")) for i in s["missing"]]] = True
    array_type = _MASKED_BY_NAME[s["column"]]().construct_array_type()
    return array_type(values, missing)


def _freeze_text(array: Any, _walk: Freezer, _at: At) -> dict[str, Any]:
    missing = "NA" if array.dtype.na_value is pd.NA else "nan"
    values = [None if absent else str(v) for v, absent in zip(array, array.isna(), strict=True)]
    return {"storage": array.dtype.storage, "na": missing, "values": values}


def _thaw_text(s: dict[str, Any], _walk: Thawer, at: At) -> Any:
    dtype = pd.StringDtype(s["storage"], na_value=pd.NA if s["na"] == "NA" else np.nan)
    for value in need(s["values"], list, (at, "values")):
        need(value, str, (at, "values")) if value is not None else None
    values = np.array([dtype.na_value if v is None else v for v in s["values"]], dtype=object)
    return pd.array(values, dtype=dtype)


def _freeze_moments(array: Any, walk: Freezer, at: At) -> dict[str, Any]:
    return {
        "unit": array.dtype.unit,
        "zone": walk.freeze(array.dtype.tz, (at, "zone")),
        "values": freeze_array(array.asi8, walk, (at, "values")),
    }


def _thaw_moments(s: dict[str, Any], walk: Thawer, at: At) -> Any:
    zone = need_zone(walk.thaw(s["zone"], (at, "zone")), (at, "zone"))
    values = thaw_array(s["values"], walk, (at, "values")).view(f"M8[{s['unit']}]")
    return pd.DatetimeIndex(values).tz_localize("UTC").tz_convert(zone).array


def _freeze_category(array: Any, walk: Freezer, at: At) -> dict[str, Any]:
    return {
        "ordered": bool(array.ordered),
        "categories": walk.freeze(array.categories, (at, "categories")),
        "codes": freeze_array(array.codes, walk, (at, "codes")),
    }


def _thaw_category(s: dict[str, Any], walk: Thawer, at: At) -> Any:
    categories = walk.thaw(s["categories"], (at, "categories"))
    return pd.Categorical.from_codes(
        thaw_array(s["codes"], walk, (at, "codes")), categories, ordered=s["ordered"]
    )


def _freeze_periods(array: Any, walk: Freezer, at: At) -> dict[str, Any]:
    return {
        "freq": array.dtype.name[len("period[") : -1],
        "values": freeze_array(array.asi8, walk, (at, "values")),
    }


def _thaw_periods(s: dict[str, Any], walk: Thawer, at: At) -> Any:
    values = thaw_array(s["values"], walk, (at, "values"))
    index: Any = pd.PeriodIndex
    return index.from_ordinals(values, freq=need(s["freq"], str, at)).array


def _freeze_intervals(array: Any, walk: Freezer, at: At) -> dict[str, Any]:
    ends = {n: walk.freeze(getattr(array, n), (at, n)) for n in ("left", "right")}
    return {"closed": array.closed, **ends}


def _thaw_intervals(s: dict[str, Any], walk: Thawer, at: At) -> Any:
    left, right = (walk.thaw(s[n], (at, n)) for n in ("left", "right"))
    return pd.arrays.IntervalArray.from_arrays(left, right, closed=s["closed"])


_Write = Callable[[Any, Freezer, At], dict[str, Any]]
_Read = Callable[[dict[str, Any], Thawer, At], Any]
_COLUMNS: dict[Any, tuple[str, _Write, _Read]] = {
    pd.StringDtype: ("text", _freeze_text, _thaw_text),
    pd.DatetimeTZDtype: ("datetime", _freeze_moments, _thaw_moments),
    pd.CategoricalDtype: ("category", _freeze_category, _thaw_category),
    pd.PeriodDtype: ("period", _freeze_periods, _thaw_periods),
    pd.IntervalDtype: ("interval", _freeze_intervals, _thaw_intervals),
}
_MASKED: list[Any] = [
    getattr(pd, f"{u}Int{bits}Dtype") for u in ("", "U") for bits in (8, 16, 32, 64)
]
_MASKED += [pd.Float32Dtype, pd.Float64Dtype, pd.BooleanDtype]
_MASKED_BY_NAME: dict[str, Any] = {kind.name: kind for kind in _MASKED}


# Index


def _freeze_index(index: Any, walk: Freezer, at: At) -> dict[str, Any]:
    if type(index) is pd.RangeIndex:
        bounds = {"start": index.start, "stop": index.stop, "step": index.step}
        return {"range": bounds, **_freeze_name(index, walk, at)}
    if type(index) is pd.MultiIndex:
        levels = [walk.freeze(level, ((at, "levels"), i)) for i, level in enumerate(index.levels)]
        names = walk.sequence(list(index.names), (at, "names"))
        codes = [[int(code) for code in codes] for codes in index.codes]
        return {"levels": levels, "codes": codes, "names": names}
    freq = None
    if isinstance(index, (pd.DatetimeIndex, pd.TimedeltaIndex)):
        freq = getattr(index, "freqstr", None)
    column = _freeze_column(index.array, walk, (at, "values"))
    record: dict[str, Any] = {"values": column, **_freeze_name(index, walk, at)}
    if freq:
        record["freq"] = freq
    return record


def _thaw_index(s: dict[str, Any], walk: Thawer, at: At) -> Any:
    if "range" in s:
        start, stop, step = (
            need(s["range"][n], int, (at, "range")) for n in ("start", "stop", "step")
        )
        return pd.RangeIndex(start, stop, step, name=_thaw_name(s, walk, at))
    if "levels" in s:
        levels = walk.sequence(s["levels"], (at, "levels"))
        return pd.MultiIndex(levels, s["codes"], names=walk.sequence(s["names"], (at, "names")))
    column = _thaw_column(s["values"], walk, (at, "values"))
    index: Any = pd.Index(column, dtype=column.dtype, name=_thaw_name(s, walk, at))
    if "freq" in s:
        index.freq = need(s["freq"], str, (at, "freq"))
    return index


def _freeze_name(labelled: Any, walk: Freezer, at: At) -> dict[str, Any]:
    if labelled.name is None:
        return {}
    return {"name": walk.freeze(labelled.name, (at, "name"))}


def _thaw_name(s: dict[str, Any], walk: Thawer, at: At) -> Any:
    return walk.thaw(s["name"], (at, "name")) if "name" in s else None


# Series and DataFrame


def _freeze_attrs(obj: Any, walk: Freezer, at: At) -> dict[str, Any]:
    fields = {"attrs": walk.freeze(obj.attrs, (at, "attrs"))} if obj.attrs else {}
    return fields if obj.flags.allows_duplicate_labels else {**fields, "unique labels": True}


def _thaw_attrs(obj: Any, s: dict[str, Any], walk: Thawer, at: At) -> Any:
    if "attrs" in s:
        obj.attrs = need(walk.thaw(s["attrs"], (at, "attrs")), dict, (at, "attrs"))
    if "unique labels" in s:
        obj.flags.allows_duplicate_labels = False
    return obj


def _freeze_series(series: Any, walk: Freezer, at: At) -> dict[str, Any]:
    fields = {**_freeze_name(series, walk, at), **_freeze_attrs(series, walk, at)}
    fields["index"] = walk.freeze(series.index, (at, "index"))
    return {**fields, "values": _freeze_column(series.array, walk, (at, "values"))}


def _thaw_series(s: dict[str, Any], walk: Thawer, at: At) -> Any:
    index = _need_index(walk.thaw(s["index"], (at, "index")), at)
    column = _thaw_column(s["values"], walk, (at, "values"))
    return _thaw_attrs(pd.Series(column, index, column.dtype, _thaw_name(s, walk, at)), s, walk, at)


def _freeze_frame(frame: Any, walk: Freezer, at: At) -> dict[str, Any]:
    fields = _freeze_attrs(frame, walk, at)
    fields["index"] = walk.freeze(frame.index, (at, "index"))
    fields["columns"] = walk.freeze(frame.columns, (at, "columns"))
    arrays = [frame.iloc[:, i].array for i in range(frame.shape[1])]
    fields["data"] = [
        _freeze_column(array, walk, ((at, "data"), i)) for i, array in enumerate(arrays)
    ]
    return fields


def _thaw_frame(s: dict[str, Any], walk: Thawer, at: At) -> Any:
    index = _need_index(walk.thaw(s["index"], (at, "index")), at)
    names = _need_index(walk.thaw(s["columns"], (at, "columns")), at)
    columns = [
        _thaw_column(c, walk, ((at, "data"), i)) for i, c in enumerate(need(s["data"], list, at))
    ]
    if len(columns) != len(names):
        raise CassetteError(
            f"{place_text(at)}: {len(columns)} columns of data for {len(names)} names"
        )
    # By number first: names may repeat.
    data = {i: pd.Series(column, index, column.dtype) for i, column in enumerate(columns)}
    frame = pd.DataFrame(data, index=index)
    frame.columns = names
    return _thaw_attrs(frame, s, walk, at)


def _need_index(index: Any, at: At) -> Any:
    if not isinstance(index, pd.Index):
        raise CassetteError(f"{place_text(at)}: a {type(index).__name__} is not an index")
    return index


# Scalars


def _freeze_timestamp(value: Any, walk: Freezer, at: At) -> dict[str, Any]:
    """Zoned ones in UTC: that is the same moment in the hour that comes twice, too."""
    naive = value if value.tz is None else value.tz_convert("UTC").tz_localize(None)
    zone = {} if value.tz is None else {"zone": walk.freeze(value.tz, (at, "zone"))}
    return {"value": naive.isoformat(), "unit": value.unit, **zone}


def _thaw_timestamp(s: dict[str, Any], walk: Thawer, at: At) -> Any:
    moment = pd.Timestamp(need(s["value"], str, at)).as_unit(s["unit"])
    if "zone" not in s:
        return moment
    return moment.tz_localize("UTC").tz_convert(need_zone(walk.thaw(s["zone"], (at, "zone")), at))


def _thaw_timedelta(s: dict[str, Any], _walk: Thawer, at: At) -> Any:
    return pd.Timedelta(np.timedelta64(need(s["value"], int, at), s["unit"]))


def _freeze_interval(value: Any, walk: Freezer, at: At) -> dict[str, Any]:
    return {
        "closed": value.closed,
        **{n: walk.freeze(getattr(value, n), (at, n)) for n in ("left", "right")},
    }


def _thaw_interval(s: dict[str, Any], walk: Thawer, at: At) -> Any:
    left, right = (walk.thaw(s[n], (at, n)) for n in ("left", "right"))
    return pd.Interval(left, right, closed=s["closed"])


_INDEX = Codec("Index", _freeze_index, _thaw_index)
_BY_TYPE: dict[Any, Codec] = {
    pd.DataFrame: Codec("DataFrame", _freeze_frame, _thaw_frame, shared=True),
    pd.Series: Codec("Series", _freeze_series, _thaw_series, shared=True),
    pd.Timestamp: Codec("Timestamp", _freeze_timestamp, _thaw_timestamp),
    pd.Timedelta: Codec(
        "Timedelta",
        lambda v, _w, _a: {"value": int(v.asm8.view("i8")), "unit": v.unit},
        _thaw_timedelta,
    ),
    pd.Period: Codec(
        "Period",
        lambda v, _w, _a: {"value": v.ordinal, "freq": v.freqstr},
        lambda s, _w, at: pd.Period(ordinal=need(s["value"], int, at), freq=s["freq"]),
    ),
    pd.Interval: Codec("Interval", _freeze_interval, _thaw_interval),
    type(pd.NaT): Codec("NaT", lambda _v, _w, _a: {}, lambda _s, _w, _a: pd.NaT),
    type(pd.NA): Codec("NA", lambda _v, _w, _a: {}, lambda _s, _w, _a: pd.NA),
}
BY_NAME = {codec.name: codec for codec in (_INDEX, *_BY_TYPE.values())}


def codec_for(kind: type) -> Codec | None:
    """The codec of a type of pandas'; subclasses of a frame (geopandas) have none."""
    if issubclass(kind, pd.Index) and kind.__module__.partition(".")[0] == "pandas":
        return _INDEX
    return _BY_TYPE.get(kind) or (_find_array_codec(kind))


def _find_array_codec(kind: type) -> Codec | None:
    return _COLUMN if issubclass(kind, pd.api.extensions.ExtensionArray) else None


_COLUMN = Codec("pandas array", _freeze_column, _thaw_column, shared=True)
BY_NAME[_COLUMN.name] = _COLUMN
