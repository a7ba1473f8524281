"""A file to import from, read in pieces and within limits. Nothing that it names is ever fetched.

`values` walks JSON of any size, a document or many one after another; `lines` reads JSON Lines and
keeps a broken line as text; `members` opens an archive. gzip and zlib are taken off on the way.
"""

from __future__ import annotations

import codecs
import gzip
import io
import json
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from tape_jupyter.errors import TapeError

RECORD_CAP = 256 * 1024 * 1024
"""Characters of one record."""
EXPANDED_CAP = 4 * 1024**3
RATIO_CAP = 400
"""How many times its size a compressed file may have, once it is over 64 MiB."""
HEAD = 64 * 1024

_BLOCK = 1024 * 1024
_FREE = 64 * 1024 * 1024
_KEY = re.compile(r'"([^"\\\n]{1,80})"\s*:')


class TraceError(TapeError):
    """A file that cannot be imported; names the file and, where one is known, the line."""

    def __init__(self, reason: str, *, path: str = "", line: int = 0) -> None:
        self.reason, self.path, self.line = reason, path, line
        where = f"{path}:{line}" if line else path
        super().__init__(f"{where}: {reason}" if where else reason)


class Value(NamedTuple):
    """A JSON value of a file: where it stands (keys; `[]` for an item of a list), itself, and its
    line.
    """

    path: tuple[str, ...]
    value: Any
    line: int


@dataclass(slots=True)
class Broken:
    """A text that is no JSON, and why: a line that was cut off."""

    text: str
    reason: str


def load(text: str) -> Any:
    """The JSON of a text. NaN and Infinity become texts. Raises ValueError, also for what is nested
    too deep.
    """
    try:
        return _decoder.decode(text)
    except RecursionError:
        raise ValueError("it is nested too deep") from None


def load_or_text(text: Any) -> Any:
    """The JSON in a text where there is an object or a list in it, else the text itself."""
    if not isinstance(text, str) or text.lstrip()[:1] not in ("{", "["):
        return text
    try:
        return load(text)
    except ValueError:
        return text


_decoder = json.JSONDecoder(parse_constant=str)


@dataclass
class Source:
    """One file. `name` is what people are told of it: the path as it was given."""

    path: Path
    name: str = ""
    data: bytes | None = None
    """The content, where it is no file of its own: a member of an archive."""
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.name = self.name or str(self.path)

    def failed(self, reason: str, line: int = 0) -> TraceError:
        return TraceError(reason, path=self.name, line=line)

    # -- bytes

    def open(self) -> BinaryIO | _Limited:
        """The content, decompressed as it is read. Reading raises TraceError where it expands past
        all measure.
        """
        try:
            raw = io.BytesIO(self.data) if self.data is not None else self.path.open("rb")
        except OSError as error:
            raise self.failed(f"cannot be read: {error.strerror or error}") from error
        start = raw.read(2)
        raw.seek(0)
        if start == b"\x1f\x8b":
            return _Limited(self, gzip.GzipFile(fileobj=raw), raw, self._size())
        if start[:1] == b"\x78" and start in (b"\x78\x01", b"\x78\x5e", b"\x78\x9c", b"\x78\xda"):
            return _Limited(self, _Zlib(raw), raw, self._size())
        return raw

    def _size(self) -> int:
        return len(self.data) if self.data is not None else self.path.stat().st_size

    def read(self, cap: int = RECORD_CAP) -> bytes:
        """All of it. Raises TraceError where that is more than `cap`."""
        with self.open() as file:
            data = _read(self, file, cap + 1)
        if len(data) > cap:
            raise self.failed(
                f"is larger than {cap // 2**20} MiB, which this format is read in one piece"
            )
        return data

    def text(self) -> str:
        """All of it as text, without a byte order mark. Raises TraceError where it is no UTF-8."""
        try:
            return self.read().decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise self.failed(f"is no UTF-8 text (byte {error.start})") from None

    # -- JSON

    def json(self) -> Any:
        """The whole document. Raises TraceError naming the line where it is none."""
        text = self.text()
        try:
            return load(text)
        except json.JSONDecodeError as error:
            raise self.failed(f"is no JSON: {error.msg}", error.lineno) from None
        except ValueError as error:
            raise self.failed(f"is no JSON: {error}", 1) from None

    def lines(self) -> Iterator[tuple[int, Any]]:
        """(line number, its JSON) of each line that is not empty; a Broken for one that is no JSON."""
        with self.open() as file:
            number = 0
            while line := _line(self, file, number + 1):
                number += 1
                text = line.decode("utf-8-sig" if number == 1 else "utf-8", "replace").strip()
                if text:
                    yield number, _loaded(text)

    def values(self, enter: Callable[[tuple[str, ...]], bool]) -> Iterator[Value]:
        """The values of its JSON, one document or several one after another, however large.

        `enter(path)` says which objects and lists are taken apart; every other value comes whole.
        Ends with a Broken where the text breaks off, or is no JSON from there on.
        """
        with self.open() as file:
            yield from _Walk(self, file, enter).run()

    # -- archives

    def members(self, wanted: Callable[[str], bool] = lambda _: True) -> Iterator[Source]:
        """The files of a zip archive, each a Source of its own; zstd needs the extra. Names are
        never paths here.
        """
        try:
            with zipfile.ZipFile(
                io.BytesIO(self.data) if self.data is not None else self.path
            ) as archive:
                total = 0
                for info in archive.infolist():
                    if info.is_dir() or not wanted(info.filename):
                        continue
                    total += info.file_size
                    if total > EXPANDED_CAP or info.file_size > max(
                        _FREE, RATIO_CAP * max(info.compress_size, 1)
                    ):
                        told = (
                            f"{_printable(info.filename)} in it expands to {info.file_size:,} bytes"
                        )
                        raise self.failed(f"{told}: refused")
                    data = self._member(archive, info)
                    yield Source(self.path, f"{self.name}/{_printable(info.filename)}", data)
        except (zipfile.BadZipFile, zlib.error, EOFError) as error:
            raise self.failed(f"is no sound zip archive: {error}") from None
        except (
            NotImplementedError,
            RuntimeError,
        ) as error:  # a way of compressing or of locking that zipfile has not
            raise self.failed(f"holds a file that cannot be read: {error}") from None

    def _member(self, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
        if info.compress_type == _ZSTD and not hasattr(zipfile, "ZIP_ZSTANDARD"):
            return self._zstd(archive, info)
        with archive.open(info) as file:
            data = file.read(info.file_size + 1)
        if len(data) > info.file_size:
            raise self.failed(f"{_printable(info.filename)} in it is larger than it says: refused")
        return data

    def _zstd(self, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
        zstandard = needs("zstandard", "zstd-compressed logs", self.name)
        assert archive.fp is not None
        archive.fp.seek(info.header_offset)
        head = archive.fp.read(30)
        archive.fp.seek(
            int.from_bytes(head[26:28], "little") + int.from_bytes(head[28:30], "little"), 1
        )
        raw = archive.fp.read(info.compress_size)
        try:
            with zstandard.ZstdDecompressor().stream_reader(raw) as file:
                data: bytes = file.read(info.file_size + 1)
        except zstandard.ZstdError as error:
            raise self.failed(
                f"{_printable(info.filename)} in it is no sound zstd: {error}"
            ) from None
        if len(data) > info.file_size:
            raise self.failed(f"{_printable(info.filename)} in it is larger than it says: refused")
        return data

    # -- what it looks like

    @cached_property
    def head(self) -> bytes:
        """Its first 64 KiB, decompressed."""
        with self.open() as file:
            return _read(self, file, HEAD)

    @cached_property
    def head_text(self) -> str:
        return self.head.decode("utf-8-sig", "replace").lstrip()

    @property
    def is_parquet(self) -> bool:
        return self.head[:4] == b"PAR1"

    def parquet(self) -> Any:
        """Its pyarrow.parquet.ParquetFile, which needs the extra."""
        parquet = needs("pyarrow.parquet", "Parquet files", self.name)
        try:
            return parquet.ParquetFile(self.path)
        except (OSError, ValueError) as error:  # what pyarrow raises for a file that is none
            raise self.failed(f"is no sound Parquet file: {error}") from None

    @cached_property
    def keys(self) -> frozenset[str]:
        """Every key of a JSON object in its first 64 KiB, however deep; of Parquet its columns."""
        if self.is_parquet:
            return self.top
        return frozenset(_KEY.findall(self.head_text))

    @cached_property
    def first(self) -> Any:
        """Its first JSON value where that fits into 64 KiB (of a list: its first item), else None."""
        text = self.head_text
        at = 1 if text[:1] == "[" else 0
        while at < len(text) and text[at] in " \t\r\n":
            at += 1
        try:
            return _decoder.raw_decode(text, at)[0]
        except (ValueError, RecursionError):
            return None

    @cached_property
    def top(self) -> frozenset[str]:
        """The keys of its first JSON object (of a list: of its first item), as far as they stand in
        64 KiB.

        Of Parquet its columns.
        """
        if self.is_parquet:
            return frozenset(self.parquet().schema_arrow.names)
        if isinstance(self.first, dict):
            return frozenset(self.first)
        return frozenset(_top_keys(self.head_text))


def needs(module: str, what: str, where: str) -> Any:
    """An optional package. Raises TraceError telling how to get it."""
    import importlib

    try:
        return importlib.import_module(module)
    except ImportError:
        raise TraceError(
            f"{what} are read with {module}: pip install 'tape-jupyter[interop]'", path=where
        ) from None


_ZSTD = 93
_OPEN = "{["


def _printable(name: str) -> str:
    """A name that somebody else gave, for a terminal."""
    return "".join(char if char.isprintable() else "?" for char in name)[:200]


def _read(source: Source, file: BinaryIO | _Limited, size: int) -> bytes:
    try:
        return file.read(size)
    except (OSError, EOFError, zlib.error) as error:
        raise source.failed(f"cannot be read: {error}") from None


def _line(source: Source, file: BinaryIO | _Limited, number: int) -> bytes:
    try:
        line = file.readline(RECORD_CAP + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise source.failed(f"cannot be read: {error}", number) from None
    if len(line) > RECORD_CAP:
        raise source.failed(f"the line is longer than {RECORD_CAP // 2**20} MiB", number)
    return line


def _loaded(text: str) -> Any:
    try:
        return load(text)
    except ValueError as error:
        return Broken(text, str(error))


def _top_keys(text: str) -> Iterator[str]:
    """Keys of the first object of a JSON text that may break off."""
    depth, first = 0, text[:1] == "["
    for found in re.finditer(r'"((?:[^"\\]|\\.)*)"(\s*:)?|([{\[])|([}\]])', text):
        name, is_key, opens, closes = found.groups()
        depth += bool(opens) - bool(closes)
        if is_key and depth == 1 + first:
            yield name
        if closes and depth == int(first):
            return


class _Limited(io.RawIOBase):
    """A decompressed stream that may not be much larger than what it comes from."""

    def __init__(self, source: Source, inner: Any, raw: BinaryIO, size: int) -> None:
        self._source, self._inner, self._raw, self._count = source, inner, raw, 0
        self._cap = min(EXPANDED_CAP, max(_FREE, RATIO_CAP * size))

    def readable(self) -> bool:
        return True

    def _counted(self, data: bytes) -> bytes:
        self._count += len(data)
        if self._count > self._cap:
            raise self._source.failed(f"expands to more than {self._cap // 2**20} MiB: refused")
        return data

    def read(self, size: int = -1) -> bytes:
        return self._counted(self._inner.read(size if size >= 0 else self._cap + 1))

    def readline(self, size: int | None = -1) -> bytes:
        return self._counted(self._inner.readline(size))

    def close(self) -> None:
        self._inner.close()
        self._raw.close()
        super().close()


class _Zlib(io.RawIOBase):
    """A zlib stream, decompressed as it is read."""

    def __init__(self, raw: BinaryIO) -> None:
        self._raw, self._object, self._left = raw, zlib.decompressobj(), b""

    def read(self, size: int = -1) -> bytes:
        want = size if size >= 0 else EXPANDED_CAP
        found = bytearray()
        while len(found) < want and not self._object.eof:
            data = self._object.unconsumed_tail or self._raw.read(65536)
            if not data:
                break
            found += self._object.decompress(data, want - len(found))
        return bytes(found)

    def readline(self, size: int | None = -1) -> bytes:
        want = size if size is not None and size >= 0 else RECORD_CAP + 1
        while b"\n" not in self._left and len(self._left) < want:
            more = self.read(65536)
            if not more:
                break
            self._left += more
        end = self._left.find(b"\n") + 1 or len(self._left)
        line, self._left = self._left[: min(end, want)], self._left[min(end, want) :]
        return line

    def close(self) -> None:
        self._raw.close()
        super().close()


class _Walk:
    """Walks JSON text of any size: what is not entered is decoded whole as soon as all of it was
    read.
    """

    def __init__(
        self, source: Source, file: BinaryIO | _Limited, enter: Callable[[tuple[str, ...]], bool]
    ) -> None:
        self._source, self._file, self._enter = source, file, enter
        self._decode = codecs.getincrementaldecoder("utf-8-sig")("replace").decode
        self._text, self._at, self._line, self._ended = "", 0, 1, False

    def run(self) -> Iterator[Value]:
        any_read = False
        while char := self._next():
            try:
                for each in self._value(()) if char in _OPEN else self._no_value():
                    any_read = True
                    yield each
            except (ValueError, IndexError) as error:
                if not any_read:
                    raise self._source.failed(f"is no JSON: {error}", self._line) from None
                broken = Broken(
                    self._text[self._at : self._at + HEAD], str(error) or "it breaks off"
                )
                yield Value(("broken",), broken, self._line)
                return

    def _no_value(self) -> Iterator[Value]:
        raise ValueError("it is no JSON object")

    def _more(self) -> bool:
        """Read on; what was done with is let go."""
        if self._ended:
            return False
        data = _read(self._source, self._file, max(_BLOCK, len(self._text) - self._at))
        self._ended = not data
        self._text = self._text[self._at :] + self._decode(data, final=self._ended)
        self._at = 0
        if len(self._text) > RECORD_CAP:
            raise self._source.failed(
                f"a record is longer than {RECORD_CAP // 2**20} MiB", self._line
            )
        return not self._ended or bool(self._text)

    def _next(self) -> str:
        """The next character that is no white space, "" at the end."""
        while True:
            found = _not_space(self._text, self._at)
            if found:
                self._pass(found.start())
                return found[0]
            self._pass(len(self._text))
            if self._ended:
                return ""
            self._more()

    def _pass(self, end: int) -> None:
        self._line += self._text.count("\n", self._at, end)
        self._at = end

    def _value(self, path: tuple[str, ...]) -> Iterator[Value]:
        if self._next() in ("{", "[") and self._enter(path):
            yield from self._entered(path)
            return
        line = self._line
        yield Value(path, self._whole(), line)

    def _entered(self, path: tuple[str, ...]) -> Iterator[Value]:
        is_map = self._text[self._at] == "{"
        self._pass(self._at + 1)
        while (char := self._next()) not in ("}", "]", ""):
            if char == ",":
                self._pass(self._at + 1)
                continue
            key = "[]"
            if is_map:
                key = str(self._whole())
                if self._next() != ":":
                    raise ValueError("a colon is missing")
                self._pass(self._at + 1)
            yield from self._value((*path, key))
        if not char:
            raise ValueError("it breaks off")
        self._pass(self._at + 1)

    def _whole(self) -> Any:
        while True:
            try:
                value, end = _decoder.raw_decode(self._text, self._at)
            except RecursionError:
                raise self._source.failed("is nested too deep", self._line) from None
            except json.JSONDecodeError as error:
                if self._ended or (
                    error.pos < len(self._text) - 100 and not error.msg.startswith("Unterminated")
                ):
                    raise
                self._more()
                continue
            if end == len(self._text) and not self._ended:  # a number may go on
                self._more()
                continue
            self._pass(end)
            return value


_not_space = re.compile(r"[^ \t\r\n\x1e]").search
