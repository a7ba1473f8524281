"""Arrays, frames and tensors, as what a fingerprint needs of them: a head, buffers, objects,
owners.

The libraries are looked at only where their values are there: nothing is imported that the notebook
did not import.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from tape_jupyter.core.readable_memory import require_readable
from tape_jupyter.dataflow.identity import identity


@dataclass(frozen=True, slots=True)
class ArrayTable:
    head: str
    buffers: tuple[Any, ...] = ()
    """What has bytes, and arrays that are no one piece of memory: read by `buffer_pieces`."""
    values: tuple[Any, ...] = ()
    """Python values that are to be looked at one by one, in tuples, since a list made here is
    shared with nobody; or Objects, or tables of them.
    """
    ids: frozenset[int] = frozenset()
    """Objects whose memory it shares: views of one array have one owner."""


@dataclass(frozen=True, slots=True)
class Objects:
    """The Python values in an array."""

    array: Any

    def pieces(self, size: int) -> Iterator[tuple[Any, ...]]:
        """`size` at a time: whoever stops early has not paid for the rest."""
        for start in range(0, self.array.size, size):
            yield tuple(self.array.flat[start : start + size].tolist())


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of a frame of polars, as it hashes them: equal for equal rows, however they lie."""

    frame: Any

    @property
    def nbytes(self) -> int:
        return int(self.frame.estimated_size())

    def pieces(self, size: int) -> Iterator[memoryview]:
        height = self.frame.height
        step = max(1, height * size // max(size, self.nbytes))
        for start in range(0, height, step):
            hashes = array("Q", self.frame.slice(start, step).hash_rows().to_list())
            yield memoryview(hashes).cast("B")


def size_of(buffer: Any) -> int:
    """Bytes of one of the buffers of a table."""
    return int(buffer.nbytes) if hasattr(buffer, "nbytes") else memoryview(buffer).nbytes


def buffer_pieces(buffer: Any, size: int) -> Iterator[memoryview]:
    """The bytes of one of the buffers of a table, about `size` at a time: the whole is never
    copied.
    """
    numpy = sys.modules.get("numpy")
    if isinstance(buffer, Rows):
        yield from buffer.pieces(size)
    elif numpy is None or not isinstance(buffer, numpy.ndarray):
        view = memoryview(buffer).cast("B")
        yield from (view[start : start + size] for start in range(0, len(view), size))
    elif buffer.flags.c_contiguous:
        yield from (
            buffer_pieces(memoryview(buffer.reshape(-1).view(numpy.uint8)), size)
            if buffer.size
            else ()
        )
    else:
        row = buffer.nbytes // max(1, len(buffer))
        if row > size and buffer.ndim > 1:
            for each in buffer:
                yield from buffer_pieces(each, size)
            return
        step = max(1, size // max(1, row))
        for start in range(0, len(buffer), step):
            yield from buffer_pieces(numpy.ascontiguousarray(buffer[start : start + step]), size)


def table_of(module: str, value: Any) -> ArrayTable | None:
    """The table that a value of the package `module` is; None where it is none, or none that we
    know.
    """
    if module == "numpy":
        return _read_numpy(value)
    if module == "pandas":
        return _read_pandas(value)
    if module == "polars":
        return _read_polars(value)
    if module == "torch" and isinstance(value, sys.modules["torch"].Tensor):
        return _read_tensor(value)
    return None


def beneath(value: Any) -> ArrayTable | None:
    """The table that a value of a class derived from one holds, past what the class made of it;
    None where none.
    """
    numpy, pandas = sys.modules.get("numpy"), sys.modules.get("pandas")
    if numpy is not None and isinstance(value, numpy.ndarray):
        plain = numpy.ndarray.view(value, numpy.ndarray)
        return _read_array(plain)
    if pandas is None or not isinstance(value, pandas.DataFrame | pandas.Series):
        return None
    base = pandas.DataFrame if isinstance(value, pandas.DataFrame) else pandas.Series
    inside = object.__getattribute__(value, "__dict__")
    # the class's own ways are not asked
    plain = base._from_mgr(inside["_mgr"], inside["_mgr"].axes)  # noqa: SLF001
    if base is pandas.Series:
        plain._name = inside.get("_name")  # noqa: SLF001
    return _read_pandas(plain)


def _read_numpy(value: Any) -> ArrayTable | None:
    numpy = sys.modules["numpy"]
    if isinstance(value, numpy.ma.MaskedArray):
        parts = (numpy.ma.getdata(value, subok=False), numpy.asarray(numpy.ma.getmaskarray(value)))
        bare = value._mask is numpy.ma.nomask  # noqa: SLF001 - numpy shows one without a mask otherwise
        data, mask = map(_read_array, parts)
        mask = replace(mask, ids=frozenset()) if bare else mask
        return _join_tables(f"masked {bare}", [data, mask], ())
    if isinstance(value, numpy.ndarray):
        table = _read_array(value)
        return table if value.flags.writeable else replace(table, head=f"{table.head} read-only")
    if isinstance(value, numpy.generic) and not value.dtype.hasobject:
        return ArrayTable(f"scalar {value.dtype.str} {value.dtype.names}", (), (value.tobytes(),))
    return ArrayTable(f"dtype {value!r}") if isinstance(value, numpy.dtype) else None


def _read_array(value: Any) -> ArrayTable:
    numpy = sys.modules["numpy"]
    require_readable(value)
    base = value.base
    # a view may have been made for this look: when it is gone another object has its number
    owners = {identity(value)} if base is None else set[int]()
    while base is not None:
        owners.add(identity(base))
        base = getattr(base, "base", None)
    head = f"array {value.dtype.str} {value.shape} {value.dtype.names}"
    if value.dtype.hasobject:
        return ArrayTable(head, (), (Objects(value),), frozenset(owners))
    plain = (
        value.reshape(-1).view(numpy.uint8) if value.flags.c_contiguous and value.size else value
    )
    return ArrayTable(head, (plain,) if value.size else (), (), frozenset(owners))


def _read_pandas(value: Any) -> ArrayTable | None:
    pandas = sys.modules["pandas"]
    if isinstance(value, pandas.DataFrame):
        columns = [_read_column(value._ixs(i, axis=1)._values) for i in range(value.shape[1])]  # noqa: SLF001
        labels = (*_read_labels(value.columns), *_read_labels(value.index))
        return _join_tables(
            f"frame {value.shape} {type(value).__name__}",
            columns,
            (*labels, tuple(value.attrs.items())),
        )
    if isinstance(value, pandas.Series):
        labels = (value.name, *_read_labels(value.index), tuple(value.attrs.items()))
        return _join_tables("series", [_read_column(value._values)], labels)  # noqa: SLF001
    if isinstance(value, pandas.Index):
        return _join_tables("index", [], _read_labels(value))
    if isinstance(value, pandas.api.extensions.ExtensionArray):
        return _join_tables("column", [_read_column(value)], ())
    if type(value).__name__ not in ("Timestamp", "Timedelta", "Interval", "NAType"):
        return None
    return ArrayTable(repr(value))


def _read_polars(value: Any) -> ArrayTable | None:
    polars = sys.modules["polars"]
    if isinstance(value, polars.Series):
        value = polars.Series.to_frame(value)
    if isinstance(value, polars.DataFrame):
        if polars.Object in value.dtypes:
            raise TypeError("Python objects are hashed by their addresses there")
        return ArrayTable(f"polars {value.schema}", (Rows(value),))
    if isinstance(value, polars.Expr):
        return ArrayTable("polars expression", (value.meta.serialize(),))
    return None


def _read_labels(index: Any) -> tuple[Any, ...]:
    """An index costs nothing where it only counts."""
    if type(index).__name__ == "RangeIndex":
        return (index.start, index.stop, index.step, tuple(index.names))
    if len(index) <= _FEW:
        return (tuple(index.names), tuple(index.tolist()))
    levels = getattr(index, "levels", None)
    if levels is None:
        # past its class
        return (tuple(index.names), replace(_read_column(index._values), ids=frozenset()))  # noqa: SLF001
    codes = (
        replace(_read_array(sys.modules["numpy"].asarray(each)), ids=frozenset())
        for each in index.codes
    )
    return (
        tuple(index.names),
        *(label for level in levels for label in _read_labels(level)),
        *codes,
    )


_FEW = 10_000
"""Labels that are looked at one by one; more of them as the index has them."""


def _read_column(values: Any) -> ArrayTable:
    numpy = sys.modules["numpy"]
    if isinstance(values, numpy.ndarray):
        return _read_array(values)
    for part in ("_ndarray", "_data", "_codes"):
        inner = getattr(values, part, None)
        if isinstance(inner, numpy.ndarray):
            table = _read_array(inner)
            mask = getattr(values, "_mask", None)
            more = _read_array(mask).buffers if isinstance(mask, numpy.ndarray) else ()
            shown = table.values
            if hasattr(values, "categories"):
                shown += ((tuple(values.categories), bool(values.ordered)),)
            return ArrayTable(
                f"{values.dtype} {table.head}", table.buffers + more, shown, table.ids
            )
    arrow = getattr(values, "_pa_array", None)
    if arrow is not None:
        buffers = tuple(b for chunk in arrow.chunks for b in chunk.buffers() if b is not None)
        offsets = tuple((chunk.offset, len(chunk)) for chunk in arrow.chunks)
        return ArrayTable(f"{values.dtype} {offsets}", buffers, (), frozenset())
    return ArrayTable(str(values.dtype), (), tuple(values.tolist()))


def _join_tables(head: str, columns: list[ArrayTable], values: tuple[Any, ...]) -> ArrayTable:
    return ArrayTable(
        " ".join([head, *(c.head for c in columns)]),
        tuple(b for c in columns for b in c.buffers),
        (*values, *(each for c in columns for each in c.values)),
        frozenset().union(*(c.ids for c in columns)) if columns else frozenset(),
    )


def _read_tensor(value: Any) -> ArrayTable | None:
    owner = frozenset({value.untyped_storage().data_ptr()})
    if value.device.type != "cpu":
        return None
    plain = value.detach().contiguous()
    numpy = sys.modules["torch"].Tensor.numpy
    try:
        array = _read_array(
            numpy(plain.view(-1).view(sys.modules["torch"].uint8) if plain.numel() else plain)
        )
    except (TypeError, RuntimeError):
        return None
    return ArrayTable(f"tensor {value.dtype} {tuple(value.shape)}", array.buffers, (), owner)
