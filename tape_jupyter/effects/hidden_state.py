"""Objects of extension modules that show no attributes: compilers of C, Cython, Rust keep what such an
object holds where Python sees none of it.

What their own pickle tells is compared. Where they have none, nobody can tell whether they changed;
it is said where code within reach calls a method of theirs that may do so.
"""

from __future__ import annotations

import io
import pickle
import re
import sys
import time
import weakref
import zlib
from collections.abc import Iterable
from types import BuiltinFunctionType, FunctionType
from typing import Any

from tape_jupyter.core.libraries import is_library_class

_SHOWN = frozenset([
    "numpy", "pandas", "pyarrow", "pydantic_core", "lxml", "PIL", "_cffi_backend", "cython_runtime", "_cython_3",
    "regex", "_regex", "rpds", "jiter", "orjson", "markupsafe", "_yaml", "yaml", "spacy", "thinc", "onnxruntime", "cv2",
    "greenlet", "nanobind", "typing_extensions", "charset_normalizer", "cryptography", "fastuuid", "xxhash_cffi",
])  # fmt: skip
"""Packages whose objects of this sort never change, keep only what can be computed again, or are
looked at in a way of their own (whole_objects.py).
"""

_STANDARD = frozenset([
    ("zlib", "Compress"), ("zlib", "Decompress"), ("_bz2", "BZ2Compressor"), ("_bz2", "BZ2Decompressor"),
    ("_lzma", "LZMACompressor"), ("_lzma", "LZMADecompressor"), ("decimal", "Context"), ("_hashlib", "HMAC"),
    ("pyexpat", "xmlparser"),
])  # fmt: skip
"""Classes of the standard library, which else keeps nothing where nobody sees it."""

_READS = re.compile(
    r"_|get|find|search|query|count|read|is[A-Z_]|has[A-Z_]|to_|as_|keys$|values$|items$|copy|knn|lookup|match"
    r"|describe|list|show|iter|len|size|shape|name|index$|encode|decode|predict|transform|similar|distance|contains"
    r"|dump|save|export|num|dim|path|fetch_?df|df$|arrow$|tell$|info|stat|check|compare|sum|mean|min$|max$|equals"
)
"""How methods are called that change nothing."""

_WRITES = re.compile(r"create|insert|update|delete|remove|modify|replace|_add|_set|_pop|set_|pop_")
"""What a method does all the same that has such a word in its name (`get_or_create`)."""

_MOST_BYTES, _LONGEST, _SLOW_LOOKS = 1 << 20, 0.002, 3
"""Bytes of a pickle above which an object counts as one that tells nothing; and seconds of processor
that it may take, but for so many times (the first one imports something).
"""

_HEAP_TYPE = 1 << 9
"""`Py_TPFLAGS_HEAPTYPE` of C's API: not one of Python's own types."""

_slow: weakref.WeakKeyDictionary[type, int] = weakref.WeakKeyDictionary()
"""How often a look at an object of a class took too long, or gave nothing."""


def hides_state(kind: type) -> bool:
    """Whether objects of this class may hold what Python does not see. One with a hash and an equality
    of its own is a value, and never changes.
    """
    if not is_library_class(kind):
        return False
    root = kind.__module__.partition(".")[0]
    if root in sys.stdlib_module_names:  # "builtins" among them
        is_unnamed = root == "builtins" and bool(kind.__flags__ & _HEAP_TYPE)
        return is_unnamed or (kind.__module__, kind.__name__) in _STANDARD
    if kind.__name__ == "SwigPyObject":
        return True
    slots = vars(object)
    is_value = kind.__hash__ not in (None, slots["__hash__"]) and kind.__eq__ is not slots["__eq__"]
    has_slots = any("__slots__" in vars(base) for base in kind.__mro__)
    return not (kind.__dictoffset__ or has_slots or is_value or root in _SHOWN)


def read_state(value: Any) -> int | None:
    """A checksum of what its pickle tells that it holds; None where that tells nothing, or takes too
    long.
    """
    kind = type(value)
    if _slow.get(kind, 0) > _SLOW_LOOKS:
        return None
    began = time.thread_time()
    try:
        checksum = zlib.crc32(_pickle(value))
    except Exception:  # the library's own code: it has none, or a larger one
        _slow[kind] = _SLOW_LOOKS + 1
        return None
    if time.thread_time() - began > _LONGEST:
        _slow[kind] = _slow.get(kind, 0) + 1
    return checksum


def list_writers(kinds: Iterable[type]) -> frozenset[str]:
    """The methods of these classes that may change what an object of theirs holds."""
    return frozenset(
        name
        for kind in kinds
        for name in dir(kind)
        if _WRITES.search(name.strip("_")) or not _READS.match(name)
    )


def _pickle(value: Any) -> bytes:
    file = _LimitedFile()
    _Pickler(file, type(value)).dump(value)
    return file.getvalue()


class _LimitedFile(io.BytesIO):
    def write(self, data: Any) -> int:
        if self.tell() + len(data) > _MOST_BYTES:
            raise OverflowError
        return super().write(data)


class _Pickler(pickle.Pickler):
    """Of other objects inside it only says which they are: their code is not run."""

    def __init__(self, file: io.BytesIO, kind: type) -> None:
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self._plain = (kind, *_PLAIN)

    def persistent_id(self, value: Any) -> str | None:
        return None if isinstance(value, self._plain) else f"at {id(value)}"


_PLAIN = (
    str, int, float, bool, complex, bytes, bytearray, type(None), tuple, list, dict, set, frozenset, type,
    FunctionType, BuiltinFunctionType,
)  # fmt: skip


# ---- libraries that tell it in a way of their own


def digest_lxml(value: Any) -> Any:
    """Of an element or a whole tree of lxml's."""
    return hash(sys.modules["lxml.etree"].tostring(value))


def digest_polars(value: Any) -> Any:
    """Of a DataFrame or a Series of polars: names, types, and a checksum of the rows."""
    frame = _as_frame(value)
    return frame.schema, frame.height, frame.hash_rows().hash().sum() if frame.width else 0


def _as_frame(value: Any) -> Any:
    return value.to_frame() if hasattr(value, "to_frame") else value


def put_polars(live: Any, recorded: Any) -> None:
    """`recorded` is another one like it; in older recordings, a file of Arrow's."""
    if isinstance(recorded, bytes):
        from tape_jupyter.encoding.values.polars import read_table

        recorded = read_table(recorded)
    if hasattr(live, "to_frame"):
        series = recorded.to_series() if hasattr(recorded, "to_series") else recorded
        live._s = series._s  # noqa: SLF001 - as its own methods do that work in place
    else:
        live._df = _as_frame(recorded)._df  # noqa: SLF001


_FEW_ROWS = 20_000
"""Rows of a whole database that are read to see whether they changed."""


def look_at_duckdb(connection: Any) -> Any:
    """The tables and views of its database and a checksum of their rows. Where there are many rows no
    two looks are the same: it may have changed.
    """
    cursor = connection.cursor()
    try:
        tables = cursor.execute(
            "SELECT database_name, schema_name, table_name, sql, estimated_size FROM duckdb_tables() ORDER BY ALL"
        ).fetchall()
        views = cursor.execute(
            "SELECT sql FROM duckdb_views() WHERE NOT internal ORDER BY ALL"
        ).fetchall()
        if sum(table[-1] for table in tables) > _FEW_ROWS:
            return object()
        rows = [
            cursor.execute(
                f'SELECT sum(hash(t)), count(*) FROM "{base}"."{schema}"."{name}" t'  # noqa: S608 - its own names
            ).fetchone()
            for base, schema, name, *_ in tables
        ]
        return tables, views, rows
    finally:
        cursor.close()
