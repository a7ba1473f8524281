"""A file to import from, read in pieces and within limits. Nothing that it names is ever fetched.

`values` walks JSON of any size, a document or many one after another; `lines` reads JSON Lines and
keeps a broken line as text; `members` opens an archive. gzip, zlib and zstd are taken off on the
way, and UTF-16 (what PowerShell's `>` writes) is read as the same text in UTF-8.
"""

from __future__ import annotations

import codecs
import csv
import io
import json
import re
import zipfile
import zlib
from collections import Counter
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
HEAD = 1024 * 1024
FURTHER = 32 * HEAD
"""How much is looked at of a file, and of one that is not known by that."""

_TEXT = 64 * 1024
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
    counts: Counter[str] = field(default_factory=Counter)
    head_bytes: int = HEAD
    """How many bytes of it `head` has."""

    def __post_init__(self) -> None:
        self.name = self.name or str(self.path)

    def failed(self, reason: str, line: int = 0) -> TraceError:
        return TraceError(reason, path=self.name, line=line)

    # -- bytes

    def open(self) -> BinaryIO:
        """The content, decompressed as it is read. Reading raises TraceError where it expands past
        all measure; where the compressed file breaks off, that is noted, and what came is read.
        """
        file: io.BufferedReader
        try:
            if self.data is None:
                file = self.path.open("rb")
            else:
                file = io.BufferedReader(io.BytesIO(self.data))
            start = file.peek(4)[:4]
        except OSError as error:
            raise self.failed(f"cannot be read: {error.strerror or error}") from error
        if start[:2] == b"\x1f\x8b" or start[:2] in _ZLIB:
            file = io.BufferedReader(_Expanded(self, _build_inflater(self, file), file), _TEXT)
        elif start == b"\x28\xb5\x2f\xfd":
            zstandard = needs("zstandard", "files that are compressed by zstd", self.name)
            reader = zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True)
            file = io.BufferedReader(_Expanded(self, reader.read, file), _TEXT)
        start = file.peek(2)[:2]
        coding = next((name for mark, name in _UTF_16.items() if start == mark), "")
        return io.BufferedReader(_Recoded(file, coding), _TEXT) if coding else file

    @property
    def size(self) -> int:
        """Its bytes as they are stored."""
        return len(self.data) if self.data is not None else self.path.stat().st_size

    def read(self, cap: int = RECORD_CAP) -> bytes:
        """All of it. Raises TraceError where that is more than `cap`."""
        with self.open() as file:
            data = _read_bytes(self, file, cap + 1)
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
            raise self.failed(f"is not UTF-8 text (byte {error.start})") from None

    # -- JSON

    def json(self) -> Any:
        """The whole document. Raises TraceError naming the line where it is none."""
        text = self.text()
        try:
            return load(text)
        except json.JSONDecodeError as error:
            raise self.failed(f"is not JSON: {error.msg}", error.lineno) from None
        except ValueError as error:
            raise self.failed(f"is not JSON: {error}", 1) from None

    def lines(self) -> Iterator[tuple[int, Any]]:
        """(line number, its JSON) of each line that is not empty; a Broken for one that is no JSON."""
        with self.open() as file:
            number = 0
            while line := _read_line(self, file, number + 1):
                number += 1
                text = self._decode_line(line).removeprefix("\ufeff").strip()
                if text:
                    yield number, _parse_line(text)

    def _decode_line(self, line: bytes) -> str:
        try:
            return line.decode("utf-8")
        except UnicodeDecodeError:
            self.noted(_NO_UTF_8)
            return line.decode("utf-8", "replace")

    def noted(self, note: str) -> None:
        """Once, however often it is so."""
        if note not in self.notes:
            self.notes.append(note)

    def counted(self, what: str) -> None:
        """One more of what people are told the number of."""
        self.counts[what] += 1

    @property
    def remarks(self) -> list[str]:
        """All that people should know of how it was read."""
        return [*self.notes, *(f"{count} {what}" for what, count in self.counts.items())]

    def values(self, enter: Callable[[tuple[str, ...]], bool]) -> Iterator[Value]:
        """The values of its JSON, one document or several one after another, however large.

        `enter(path)` says which objects and lists are taken apart; every other value comes whole.
        Ends with a Broken where the text breaks off, or is no JSON from there on.
        """
        if self.one_a_line:
            yield from self._walk_lines(enter)
            return
        with self.open() as file:
            for number, each in enumerate(_Walk(self, file, enter).run()):
                if not number and isinstance(each.value, Broken):
                    raise self.failed(f"is not JSON: {each.value.reason}", each.line)
                yield each

    def _walk_lines(self, enter: Callable[[tuple[str, ...]], bool]) -> Iterator[Value]:
        """Each line by itself: one that breaks off ends with itself."""
        with self.open() as file:
            number = 0
            while line := _read_line(self, file, number + 1):
                number += 1
                yield from _Walk(self, io.BytesIO(line), enter, number).run()

    # -- archives

    def members(self, is_wanted: Callable[[str], bool] = lambda _: True) -> Iterator[Source]:
        """The files of a zip archive, each a Source of its own; zstd needs the extra. Names are
        never paths here.
        """
        try:
            with zipfile.ZipFile(
                io.BytesIO(self.data) if self.data is not None else self.path
            ) as archive:
                total = 0
                for info in archive.infolist():
                    if info.is_dir() or not is_wanted(info.filename):
                        continue
                    total += info.file_size
                    if total > EXPANDED_CAP or info.file_size > max(
                        _FREE, RATIO_CAP * max(info.compress_size, 1)
                    ):
                        problem = f"{_clean_name(info.filename)} in it expands to {info.file_size:,} bytes"
                        raise self.failed(f"{problem}: refused")
                    data = self._read_member(archive, info)
                    yield Source(self.path, f"{self.name}/{_clean_name(info.filename)}", data)
        except (zipfile.BadZipFile, zlib.error, EOFError) as error:
            raise self.failed(f"is not a sound zip archive: {error}") from None
        except (
            NotImplementedError,
            RuntimeError,
        ) as error:  # a way of compressing or of locking that zipfile has not
            raise self.failed(f"holds a file that cannot be read: {error}") from None

    def _read_member(self, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
        if info.compress_type == _ZSTD and not hasattr(zipfile, "ZIP_ZSTANDARD"):
            return self._read_zstd_member(archive, info)
        with archive.open(info) as file:
            data = file.read(info.file_size + 1)
        if len(data) > info.file_size:
            raise self.failed(f"{_clean_name(info.filename)} in it is larger than it says: refused")
        return data

    def _read_zstd_member(self, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
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
                f"{_clean_name(info.filename)} in it is not a sound zstd: {error}"
            ) from None
        if len(data) > info.file_size:
            raise self.failed(f"{_clean_name(info.filename)} in it is larger than it says: refused")
        return data

    # -- what it looks like

    def look_further(self) -> bool:
        """Let `head` and what is read from it see more; whether there is more."""
        if self.head_bytes >= FURTHER or len(self.head) < self.head_bytes:
            return False
        self.head_bytes = FURTHER
        for name in _SEEN:
            self.__dict__.pop(name, None)
        return True

    @cached_property
    def head(self) -> bytes:
        """Its first `head_bytes` bytes, decompressed."""
        with self.open() as file:
            return _read_bytes(self, file, self.head_bytes)

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
            raise self.failed(f"is not a sound Parquet file: {error}") from None

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The columns of a table (CSV, or with tabs between them), from its first line; none of
        another file.
        """
        line = self.head_text.partition("\n")[0].strip()
        if not _HEADER.fullmatch(line):
            return ()
        names = tuple(next(csv.reader([line], delimiter=self.delimiter), ()))
        return names if len(names) >= _COLUMNS and all(names) else ()

    @property
    def delimiter(self) -> str:
        """What stands between a table's cells."""
        return "\t" if "\t" in self.head_text.partition("\n")[0] else ","

    @cached_property
    def keys(self) -> frozenset[str]:
        """Every key of a JSON object in its head, however deep; of Parquet or a table its columns."""
        if self.is_parquet or self.columns:
            return self.top
        return frozenset(_KEY.findall(self.head_text))

    @cached_property
    def first(self) -> Any:
        """Its first JSON object where that fits into the head (of a list: its first item), else
        None.
        """
        text = self.head_text
        parsed = _decode_first_value(text[1:].lstrip() if text[:1] == "[" else text)
        lines = text.split("\n", _LINES)[1:_LINES] if self.one_a_line else []
        others = (_decode_first_value(line.strip()) for line in lines)
        if isinstance(parsed, dict):
            return parsed
        return next((each for each in others if isinstance(each, dict)), parsed)

    @cached_property
    def one_a_line(self) -> bool:
        """Whether it is JSON Lines, however long the first of them; a document in one line is too,
        where its end is in the head.
        """
        first, ends, rest = self.head_text.partition("\n")
        if not ends:
            if len(self.head) < self.head_bytes:
                return _is_json(first)
            return self._has_next_line()
        if _is_json(first):
            return True
        second, third = [*rest.lstrip().split("\n", 2)[:2], ""][:2]
        goes_on = first.strip()[-1:] in ("", *"{[,:")  # or it broke off there
        return _is_object(second) and (not goes_on or _is_object(third))

    def _has_next_line(self) -> bool:
        """Whether a line that is longer than the head ends as JSON does, and another one follows."""
        with self.open() as file:
            line = file.readline(FURTHER)
            return (
                line[-1:] == b"\n"
                and line.rstrip()[-1:] in b"}]"
                and bool(file.readline(2).strip())
            )

    @cached_property
    def top(self) -> frozenset[str]:
        """The keys of its first JSON object (of a list: of its first item), as far as they stand in
        the head.

        Of Parquet or a table its columns.
        """
        if self.is_parquet:
            return frozenset(self.parquet().schema_arrow.names)
        if self.columns:  # `inputs.model` is `model` in `inputs`
            return frozenset({*self.columns, *(name.partition(".")[0] for name in self.columns)})
        if isinstance(self.first, dict):
            return frozenset(self.first)
        return frozenset(_find_top_keys(self.head_text))


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
_ZLIB = (b"\x78\x01", b"\x78\x5e", b"\x78\x9c", b"\x78\xda")
_UTF_16 = {
    b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16", b"{\0": "utf-16-le", b"[\0": "utf-16-le", b"\0{": "utf-16-be",
    b"\0[": "utf-16-be",
}  # fmt: skip
_NO_UTF_8 = "it is not UTF-8 in places: what cannot be read stands as \ufffd"
_OPEN = "{["
_LINES = 50
"""Of so many lines the first that is an object tells what a file of lines is."""
_SEEN = ("head", "head_text", "columns", "keys", "first", "top", "one_a_line")
_COLUMNS = 3
_DEEPEST = 1_000
"""No reader of JSON follows it further down."""
_HEADER = re.compile(r'[\w.$" ,\t-]{1,20000}')


def _is_json(text: str) -> bool:
    try:
        load(text)
    except ValueError:
        return False
    return True


def _is_object(line: str) -> bool:
    return line.lstrip()[:1] == "{" and _is_json(line)


def _decode_first_value(text: str) -> Any:
    try:
        return _decoder.raw_decode(text)[0]
    except (ValueError, RecursionError):
        return None


def _clean_name(name: str) -> str:
    """A name that somebody else gave, for a terminal."""
    return "".join(char if char.isprintable() else "?" for char in name)[:200]


def _read_bytes(source: Source, file: BinaryIO, size: int) -> bytes:
    try:
        return file.read(size)
    except (OSError, EOFError, zlib.error) as error:
        raise source.failed(f"cannot be read: {error}") from None


def _read_line(source: Source, file: BinaryIO, number: int) -> bytes:
    try:
        line = file.readline(RECORD_CAP + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise source.failed(f"cannot be read: {error}", number) from None
    if len(line) > RECORD_CAP:
        raise source.failed(f"the line is longer than {RECORD_CAP // 2**20} MiB", number)
    return line


def _parse_line(text: str) -> Any:
    try:
        return load(text)
    except ValueError as error:
        return Broken(text, str(error))


def _find_top_keys(text: str) -> Iterator[str]:
    """Keys of the first object of a JSON text that may break off."""
    depth, first = 0, text[:1] == "["
    for match in re.finditer(r'"((?:[^"\\]|\\.)*)"(\s*:)?|([{\[]+)|([}\]]+)', text):
        name, is_key, opens, closes = match.groups()
        if is_key and depth == 1 + first:
            yield name
        depth += len(opens or "") - len(closes or "")
        if depth > _DEEPEST or (closes and depth <= first):
            return


class _Expanded(io.RawIOBase):
    """A decompressed stream that may not be much larger than what it comes from. `inflate(n)` gives
    its next bytes, at most n.
    """

    def __init__(self, source: Source, inflate: Callable[[int], bytes], raw: BinaryIO) -> None:
        self._source, self._inflate, self._raw, self._count = source, inflate, raw, 0
        self._cap = min(EXPANDED_CAP, max(_FREE, RATIO_CAP * source.size))

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            data = self._inflate(len(buffer))
        except zlib.error as error:
            raise self._source.failed(f"cannot be read: {error}") from None
        except Exception as error:  # zstandard's own, which is not imported here
            if type(error).__name__ != "ZstdError":
                raise
            raise self._source.failed(f"cannot be read: {error}") from None
        self._count += len(data)
        if self._count > self._cap:
            raise self._source.failed(f"expands to more than {self._cap // 2**20} MiB: refused")
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._raw.close()
        super().close()


def _build_inflater(source: Source, raw: BinaryIO) -> Callable[[int], bytes]:
    """What reads on in gzip (several members too) or zlib. A stream that breaks off ends there, and
    is noted.
    """
    state = zlib.decompressobj(_EITHER)
    waiting = b""

    def inflate_next(size: int) -> bytes:
        nonlocal state, waiting
        while True:
            if state.eof:
                waiting = (state.unused_data or raw.read(_TEXT)).lstrip(b"\0")
                if waiting[:1] != b"\x1f":
                    return b""
                state = zlib.decompressobj(_EITHER)
            data = waiting or raw.read(_TEXT)
            if not data:
                source.noted("the compressed file breaks off; what came before is read")
                return b""
            expanded = state.decompress(data, size)
            waiting = state.unconsumed_tail
            if expanded:
                return expanded

    return inflate_next


_EITHER = zlib.MAX_WBITS | 32
"""zlib finds out which of both it is."""


class _Recoded(io.RawIOBase):
    """Text in UTF-16, as UTF-8."""

    def __init__(self, inner: BinaryIO, coding: str) -> None:
        self._inner, self._left = inner, b""
        self._decode = codecs.getincrementaldecoder(coding)("replace").decode

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._left:
            data = self._inner.read(_TEXT)
            self._left = self._decode(data, final=not data).encode("utf-8", "replace")
            if not data:
                break
        part, self._left = self._left[: len(buffer)], self._left[len(buffer) :]
        buffer[: len(part)] = part
        return len(part)

    def close(self) -> None:
        self._inner.close()
        super().close()


class _Walk:
    """Walks JSON text of any size: what is not entered is decoded whole as soon as all of it was
    read.
    """

    def __init__(
        self,
        source: Source,
        file: BinaryIO,
        enter: Callable[[tuple[str, ...]], bool],
        line: int = 1,
    ) -> None:
        self._source, self._file, self._enter = source, file, enter
        self._decode = codecs.getincrementaldecoder("utf-8-sig")("replace").decode
        self._text, self._at, self._line, self._ended = "", 0, line, False

    def run(self) -> Iterator[Value]:
        """Its values; a Broken ends them where the text breaks off, or is no JSON from there on."""
        while char := self._find_next_character():
            try:
                yield from self._walk_value(()) if char in _OPEN else self._refuse_value()
            except (ValueError, IndexError) as error:
                text = self._text[self._at : self._at + _TEXT]
                yield Value(("broken",), Broken(text, str(error) or "it breaks off"), self._line)
                return

    def _refuse_value(self) -> Iterator[Value]:
        raise ValueError("it is not a JSON object")

    def _read_block(self) -> bool:
        """Read on; what was done with is let go."""
        if self._ended:
            return False
        data = _read_bytes(self._source, self._file, max(_BLOCK, len(self._text) - self._at))
        self._ended = not data
        text = self._decode(data, final=self._ended)
        if "\ufffd" in text and b"\xef\xbf\xbd" not in data:
            self._source.noted(_NO_UTF_8)
        self._text, self._at = self._text[self._at :] + text, 0
        if len(self._text) > RECORD_CAP:
            raise self._source.failed(
                f"a record is longer than {RECORD_CAP // 2**20} MiB", self._line
            )
        return not self._ended or bool(self._text)

    def _find_next_character(self) -> str:
        """The next character that is no white space, "" at the end."""
        while True:
            match = _not_space(self._text, self._at)
            if match:
                self._advance_to(match.start())
                return match[0]
            self._advance_to(len(self._text))
            if self._ended:
                return ""
            self._read_block()

    def _advance_to(self, end: int) -> None:
        self._line += self._text.count("\n", self._at, end)
        self._at = end

    def _walk_value(self, path: tuple[str, ...]) -> Iterator[Value]:
        if self._find_next_character() in ("{", "[") and self._enter(path):
            yield from self._walk_container(path)
            return
        line = self._line
        yield Value(path, self._decode_value(), line)

    def _walk_container(self, path: tuple[str, ...]) -> Iterator[Value]:
        is_map = self._text[self._at] == "{"
        self._advance_to(self._at + 1)
        while (char := self._find_next_character()) not in ("}", "]", ""):
            if char == ",":
                self._advance_to(self._at + 1)
                continue
            key = "[]"
            if is_map:
                key = str(self._decode_value())
                if self._find_next_character() != ":":
                    raise ValueError("a colon is missing")
                self._advance_to(self._at + 1)
            yield from self._walk_value((*path, key))
        if not char:
            raise ValueError("it breaks off")
        self._advance_to(self._at + 1)

    def _decode_value(self) -> Any:
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
                self._read_block()
                continue
            if end == len(self._text) and not self._ended:  # a number may go on
                self._read_block()
                continue
            self._advance_to(end)
            return value


_not_space = re.compile(r"[^ \t\r\n\x1e]").search
