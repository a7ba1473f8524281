"""Codecs of polars: DataFrame and Series, as a file of Arrow's. Imported only for a value of polars'.

A lazy frame has none: what it is made of may be code.
"""

from __future__ import annotations

import io
from typing import Any

import polars as pl

from tape_jupyter.encoding.values.stdlib import freeze_bytes, thaw_bytes
from tape_jupyter.encoding.values.walker import At, CannotFreeze, Codec, Freezer, Thawer

_LARGEST = 32 << 20
"""Bytes of one table that are written."""


def write_table(frame: Any, at: At) -> bytes:
    """A DataFrame as a file that polars reads in every version. Raises CannotFreeze."""
    if frame.estimated_size() > _LARGEST:
        raise CannotFreeze(at, frame, f"larger than {_LARGEST >> 20} MB")
    if pl.Object in frame.dtypes:
        raise CannotFreeze(at, frame, "a column of objects")
    file = io.BytesIO()
    frame.write_ipc(file)
    return file.getvalue()


def read_table(content: bytes) -> Any:
    return pl.read_ipc(io.BytesIO(content))


def _freeze_frame(frame: Any, _walk: Freezer, at: At) -> dict[str, Any]:
    return {"arrow": freeze_bytes(write_table(frame, at))}


def _thaw_frame(s: dict[str, Any], _walk: Thawer, at: At) -> Any:
    return read_table(thaw_bytes(s["arrow"], at))


def _freeze_series(series: Any, _walk: Freezer, at: At) -> dict[str, Any]:
    return {"arrow": freeze_bytes(write_table(series.to_frame(), at))}


def _thaw_series(s: dict[str, Any], walk: Thawer, at: At) -> Any:
    return _thaw_frame(s, walk, at).to_series()


_BY_TYPE: dict[Any, Codec] = {
    pl.DataFrame: Codec("polars frame", _freeze_frame, _thaw_frame, shared=True),
    pl.Series: Codec("polars series", _freeze_series, _thaw_series, shared=True),
}
BY_NAME = {codec.name: codec for codec in _BY_TYPE.values()}


def codec_for(kind: type) -> Codec | None:
    return _BY_TYPE.get(kind)
