"""What the files of a bundle say, passage by passage, each with the place where a person finds it.

Cassettes are read as calls (a stream as what it said in the end, however it was cut), notebooks as
cells; archives a few levels deep, also in base64. What cannot be read as what it claims to be is read as text, and
what is no text by its legible bytes.
"""

from __future__ import annotations

import base64
import bz2
import io
import json
import lzma
import re
import string
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tape_jupyter.encoding.http import event_folding
from tape_jupyter.encoding.http.content_encoding import decode_body
from tape_jupyter.encoding.yaml import emitter
from tape_jupyter.errors import CassetteError
from tape_jupyter.secrets.cassette_gate import Suspects, bare_record, choose_records
from tape_jupyter.secrets.needles import find_all, long_runs, table_of
from tape_jupyter.secrets.nested_encodings import CAP, FILE_STARTS, ZLIB, legible, unpacked
from tape_jupyter.secrets.pdf import open_pdf

_QUOTABLE = 400  # characters of a text that is told with its key, as JSON tells it
_COMMIT = re.compile(r"(?<=\n)\.\.\.\r?\n")
_LETTERS = table_of(b"\t\n\r" + bytes(range(32, 127)) + bytes(range(128, 256)))
_ASCII, _LEAST_LETTERS = table_of(b"\t\n\r" + bytes(range(32, 127))), 8
_PNG_IN_BASE64 = FILE_STARTS[0]
_PNG = b"\x89PNG\r\n\x1a\n"
_LEVELS = 3  # of archives in archives
_LEAST_PACKED = 24
_PACKED_BASE64 = re.compile(
    rf"(?:{'|'.join(FILE_STARTS)})[A-Za-z0-9+/]{{20,}}(?:\s+[A-Za-z0-9+/]{{4,}})*={{0,2}}"
)
_LINE = 76
_OF_BASE64 = string.ascii_letters.encode() + string.digits.encode() + b"+/"
_STREAMS = ("events", "lines", "frames")
_WHICH = ("index", "output_index", "content_index", "item_id", "choice_index", "contentBlockIndex")


class Passage(NamedTuple):
    """A text, and where it stands. `numbered`: the line within it is part of the place. `is_whole`: all of a
    file's bytes say it.
    """

    where: Callable[[], str]
    text: str
    numbered: bool = False
    is_whole: bool = False

    def place(self, offset: int | None = None) -> str:
        location = self.where()
        if not self.numbered or offset is None:
            return location
        return f"{location}, line {self.text.count(chr(10), 0, offset) + 1}"


def file_passages(path: str, data: bytes, suspects: Suspects | None = None) -> Iterator[Passage]:
    """The passages of one file of a bundle; with `suspects` those of a cassette's records in which
    a secret may stand.
    """
    if path.endswith(".tape.yaml"):
        found = _read_cassette_passages(path, data, suspects)
    elif path.endswith(".ipynb"):
        found = _read_notebook_passages(path, data)
    else:
        found = _read_file_passages(path, data, _LEVELS)
    yield from found


def read_embedded_files(passage: Passage, places: Iterable[tuple[int, int]]) -> Iterator[Passage]:
    """The files that stand in a text as base64, where that is read by nobody else: pictures,
    documents, archives. `places`: where one of FILE_STARTS stands, and where its letters end. What can be read
    in the base64 itself is not among them.
    """
    behind = 0
    for at, end in places:
        if at < behind:
            continue
        letters, behind = _read_packed_letters(passage.text, at, end)
        letters = letters[: len(letters) - (len(letters) % 4 == 1)]  # of a word behind it
        if letters.startswith(_PNG_IN_BASE64):
            texts = png_texts(_Base64(letters))
        else:
            data = base64.b64decode(letters + "=" * (-len(letters) % 4))
            texts = (each.text for each in _read_file_passages("", data, _LEVELS))
        yield from (Passage(passage.where, text) for text in texts)


def _read_packed_letters(text: str, at: int, end: int) -> tuple[str, int]:
    """The letters of a file in base64, in whatever lines, and where they end; "" of what is too short."""
    if (
        text[end : end + 1].isspace()
        or text.find("-", at, end) >= 0
        or text.find("_", at, end) >= 0
    ):
        found = _PACKED_BASE64.match(text, at)
        return ("".join(found[0].split()).rstrip("="), found.end()) if found else ("", at)
    return (text[at:end], end) if end - at >= _LEAST_PACKED else ("", at)


class _Base64:
    """The bytes that letters mean; only those that are asked for are decoded."""

    def __init__(self, letters: str) -> None:
        self._letters = letters

    def __len__(self) -> int:
        return len(self._letters) * 3 // 4

    def __getitem__(self, part: slice) -> bytes:
        start, stop, _ = part.indices(len(self))
        first = start // 3
        letters = self._letters[4 * first : -(-stop // 3) * 4]
        data = base64.b64decode(letters + "=" * (-len(letters) % 4))
        return data[start - 3 * first : stop - 3 * first]


def _format_place(*parts: str) -> Callable[[], str]:
    return lambda: ", ".join(part for part in parts if part)


# ---------------------------------------------------------------- cassettes


def _read_cassette_passages(path: str, data: bytes, suspects: Suspects | None) -> Iterator[Passage]:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        yield from _read_file_passages(path, data, depth=0)
        return
    records = list(_split_records(text))
    if suspects is None:
        for line, piece in records:
            yield from _read_piece_passages(path, line, piece)
        return
    bare = [bare_record(piece) for _, piece in records]
    chosen = choose_records(bare, suspects)
    for number, (line, piece) in enumerate(records):
        if number in chosen:
            yield from _read_piece_passages(path, line, piece)
        elif _JOINED.search(rest := _ONE_FOLDED.sub(_drop_folded, bare[number])):
            yield from _read_joined_passages(path, line, rest)


def _split_records(text: str) -> Iterator[tuple[int, str]]:
    """Each record of a cassette with its first line, and what is torn behind them."""
    start, line = 0, 1
    ends = (
        (mark.end() for mark in _COMMIT.finditer(text))
        if "\r" in text
        else (at + len(_END) for at in find_all(text, _END))
    )
    for end in ends:
        yield line, text[start:end]
        line += text.count("\n", start, end)
        start = end
    if text[start:].strip():
        yield line, text[start:]


_END = "\n...\n"


def _read_piece_passages(path: str, line: int, piece: str) -> Iterator[Passage]:
    """Those of a record; of what is none the text that it is."""
    try:
        record = emitter.parse_record(piece, first_line=line)
    except CassetteError:
        yield Passage(_format_place(path, f"from line {line}"), piece)
    else:
        yield from _read_record_passages(path, line, record)


_JOINED = re.compile(r"\n(?:  )?(?:events|lines|frames|text|wire|base64):")
"""What a reader puts together, or takes an encoding off."""


_ONE_FOLDED = re.compile(r"\n  events:\n    - event:[^\n]*\n(?:      [^\n]*\n|\n)+(?=  \S|\S)")
"""A stream that is one event folded: what it says in the end stands there in one piece."""


def _drop_folded(stream: re.Match[str]) -> str:
    """Nothing for it, but where one event is told for several."""
    return stream[0] if "\n      times:" in stream[0] else ""


def _read_joined_passages(path: str, line: int, piece: str) -> Iterator[Passage]:
    """What a record says that its lines do not."""
    try:
        if piece.startswith("---\ncall:"):
            answer = piece.find("\nresponse:\n") % len(piece)  # at its end where there is none
            spans = (("request", 0, answer), ("response", answer, len(piece)))
            parts = {
                part: emitter.top(piece, part, first_line=line)
                for part, start, end in spans
                if _JOINED.search(piece, start, end)
            }
        else:
            parts = emitter.parse_record(piece, first_line=line)
    except CassetteError:
        yield Passage(_format_place(path, f"from line {line}"), piece)
    else:
        yield from _read_bodies(parts, lambda: _name_piece(line, piece), path)


def _name_piece(line: int, piece: str) -> str:
    try:
        return _name_record(line, emitter.head(piece, "request"))
    except CassetteError:
        return f"from line {line}"


def _read_record_passages(path: str, line: int, record: Mapping[str, Any]) -> Iterator[Passage]:
    place = _name_record(line, record)
    for part, value in record.items():
        yield from structure_passages(value, part, lambda at: _format_place(path, place, at))
    yield from _read_bodies(record, lambda: place, path)


def _name_record(line: int, record: Mapping[str, Any]) -> str:
    kind = next(iter(record))
    name = f"{kind} {record[kind]}" + (
        f" of {record['run']}" if kind != "run" and "run" in record else ""
    )
    return f"{name}, line {line}"


def _read_bodies(parts: Mapping[str, Any], name: Callable[[], str], path: str) -> Iterator[Passage]:
    def place_of(body: str) -> Callable[[], str]:
        return lambda: f"{path}, {name()}, {body}"

    for part in ("request", "response"):
        if isinstance(parts.get(part), dict):
            yield from _read_body_passages(parts[part], place_of(f"{part} body"))
    if "more" in parts:
        yield from _read_body_passages(parts, place_of("body"))


def _read_body_passages(section: Mapping[str, Any], where: Callable[[], str]) -> Iterator[Passage]:
    """What a body says beyond the texts of its record: a stream in one piece, bytes without their
    encoding.
    """
    for kind in _STREAMS:
        if isinstance(section.get(kind), list):
            yield from (Passage(where, text) for text in joined_texts(section[kind]))
    if isinstance(section.get("text"), str) and "data:" in section["text"]:
        yield from (Passage(where, text) for text in joined_texts(_parse_events(section["text"])))
    for key in ("wire", "base64"):
        if isinstance(section.get(key), str):
            yield from (
                Passage(where, text)
                for text in _decode_body_texts(section[key], str(section.get("encoding", "")))
            )


def joined_texts(entries: list[Any]) -> Iterator[str]:
    """What a stream says at each address of its pieces, one after another, whatever stands between
    them.
    """
    texts_by_place: dict[tuple[str, str], list[str]] = {}
    for entry in stream_entries(entries):
        if not isinstance(entry, dict):
            continue
        of_part = which(entry.get("data"))
        for at, text in _iterate_entry_texts(entry):
            texts_by_place.setdefault((at, of_part), []).append(text)
            if of_part:
                texts_by_place.setdefault((at, ""), []).append(text)
    joined = ("".join(texts) for texts in texts_by_place.values() if len(texts) > 1)
    yield from dict.fromkeys(joined)


def stream_entries(entries: list[Any]) -> list[Any]:
    """The entries of a stream; what it says several times over is told as often."""
    return [
        piece
        for entry in entries
        for piece in (_split_folded_entry(entry) if isinstance(entry, dict) else (entry,))
    ]


def _split_folded_entry(entry: dict[str, Any]) -> list[dict[str, Any]]:
    try:
        return event_folding.split_pieces(entry)
    except (CassetteError, LookupError, TypeError, ValueError, AttributeError):  # edited by hand
        return [entry]


def _iterate_entry_texts(entry: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for column in (entry, *(each for each in entry.get("vary", ()) if isinstance(each, dict))):
        if isinstance(column.get("at"), str) and isinstance(column.get("text"), str):
            yield column["at"], column["text"]
    data = entry.get("data")
    if isinstance(data, dict | list):
        yield from ((at, text) for at, _, text in walked(data) if text)
    elif isinstance(entry.get("text"), str):
        yield "", entry["text"]


def which(data: Any) -> str:
    """Which of several parts an event speaks of: parts may come in turns."""
    if not isinstance(data, dict):
        return ""
    parts = [f"{key}={data[key]}" for key in _WHICH if key in data]
    for value in data.values():
        for inner in value if isinstance(value, list) else (value,):
            if isinstance(inner, dict):
                parts += [f"{key}={inner[key]}" for key in _WHICH if key in inner]
    return " ".join(parts)


def _parse_events(text: str) -> list[dict[str, Any]]:
    events = []
    for line in text.splitlines():
        name, _, value = line.partition(":")
        if name == "data":
            try:
                events.append({"data": json.loads(value)})
            except (ValueError, RecursionError):
                events.append({"text": value.removeprefix(" ")})
    return events


def _decode_body_texts(letters: str, encoding: str) -> Iterator[str]:
    try:
        raw = base64.b64decode("".join(letters.split()))
        plain = decode_body(raw, encoding, CAP) if encoding else raw
    except ValueError:
        return
    if (decoded := legible(plain)) is not None:
        yield decoded[0]


# ---------------------------------------------------------------- notebooks and structures


def _read_notebook_passages(path: str, data: bytes) -> Iterator[Passage]:
    try:
        loaded = json.loads(data)
    except (ValueError, RecursionError):
        yield from _read_file_passages(path, data, depth=0)
        return
    if not isinstance(loaded, dict):
        loaded = {"notebook": loaded}
    cells = loaded.get("cells")
    for number, cell in enumerate(cells if isinstance(cells, list) else (), 1):
        if isinstance(cell, dict):
            yield from _read_cell_passages(path, number, cell)
    rest = {key: value for key, value in loaded.items() if key != "cells"}
    yield from structure_passages(rest, "", lambda at: _format_place(path, at))


def _read_cell_passages(path: str, number: int, cell: Mapping[str, Any]) -> Iterator[Passage]:
    place = f"cell {number}"
    for part, value in cell.items():
        if part == "source":
            yield Passage(lambda: f"{path}, {place}, source", joined_lines(value), numbered=True)
        elif part == "outputs" and isinstance(value, list):
            for index, output in enumerate(value, 1):
                label = f"output {index}"
                yield from structure_passages(
                    output,
                    "",
                    lambda at, label=label: _format_place(path, place, label, at),  # type: ignore[misc]
                )
            for text in _join_streams(value):
                yield Passage(_format_place(path, place, "outputs"), text)
        else:
            yield from structure_passages(value, part, lambda at: _format_place(path, place, at))


def _join_streams(outputs: list[Any]) -> Iterator[str]:
    """What stands in several outputs and is shown as one text: what a program printed in pieces."""
    streams: dict[Any, list[str]] = {}
    for output in outputs:
        if isinstance(output, dict) and output.get("output_type") == "stream":
            streams.setdefault(str(output.get("name")), []).append(joined_lines(output.get("text")))
    yield from ("".join(texts) for texts in streams.values() if len(texts) > 1)


def joined_lines(value: Any) -> str:
    """A text that a notebook may keep as the list of its lines."""
    if isinstance(value, list):
        return "".join(line for line in value if isinstance(line, str))
    return value if isinstance(value, str) else ""


def structure_passages(
    value: Any, at: str, where: Callable[[str], Callable[[], str]]
) -> Iterator[Passage]:
    """Every text of a structure, and every key; a short one with the name it is given to."""
    for path, key, text in walked(value, at):
        if text[_LINE : _LINE + 1] == "\n":
            text = _join_base64(text)  # noqa: PLW2901
        named = key and len(text) <= _QUOTABLE and '"' not in text
        yield Passage(where(path), f'"{key}": "{text}"' if named else text)


def _join_base64(text: str) -> str:
    """A text without line ends, if it is base64 as encodebytes makes it."""
    body = text.removesuffix("\n")
    data = body.encode("utf-8", "surrogatepass")
    joined = data.replace(b"\n", b"")
    lines = len(data) - len(joined)
    if body[_LINE :: _LINE + 1][:lines] != "\n" * lines:
        return text
    return text if joined.rstrip(b"=").translate(None, _OF_BASE64) else joined.decode("ascii")


def walked(value: Any, at: str = "") -> Iterator[tuple[str, str, str]]:
    """Address, key and text of each leaf that is a text; a list of nothing but texts is also one
    text (lines).
    """
    stack: list[tuple[str, str, Any]] = [(at, at.rpartition(".")[2], value)]
    while stack:
        path, key, each = stack.pop()
        if isinstance(each, str):
            yield path, key, each
        elif isinstance(each, dict):
            for name, inner in each.items():
                stack.append((f"{path}.{name}" if path else str(name), str(name), inner))
                if len(str(name)) >= 16 and not isinstance(inner, str):
                    yield path, "", str(name)
        elif isinstance(each, list):
            if len(each) > 1 and all(type(item) is str for item in each):
                yield path, "", "".join(each)
            stack.extend(
                (f"{path}.{i}", key, item)
                for i, item in enumerate(each)
                if isinstance(item, str | dict | list)
            )


# ---------------------------------------------------------------- anything else


def _read_file_passages(path: str, data: bytes, depth: int) -> Iterator[Passage]:
    """What a file says, and what the files in it do; what CAP has no room for stays packed."""
    waiting, room, whole = [(path, data, depth)], CAP, data
    while waiting:
        path, data, depth = waiting.pop()
        members = _open_members(data) if depth and room > 0 else None
        if members is None:
            yield from _read_plain_passages(path, data, is_whole=data is whole)
            continue
        if names := "\n".join(name for name, _ in members if name):
            yield Passage(_format_place(path, "names in it"), names)
        for name, inner in reversed(members):
            room -= len(inner)
            below = 0 if inner is data else depth - 1  # a PDF is a text itself
            waiting.append((f"{path}!{name}" if name else path, inner, below))


def _read_plain_passages(path: str, data: bytes, *, is_whole: bool) -> Iterator[Passage]:
    if data.startswith(_PNG):
        yield from (Passage(_format_place(path, "PNG metadata"), text) for text in png_texts(data))
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        text = ""
    if text and "\0" not in text:
        yield Passage(_format_place(path), text, numbered=True, is_whole=is_whole)
        return
    yield Passage(_format_place(path), _read_letters(data))
    if data.count(0) * 4 > len(data):
        yield Passage(_format_place(path), _read_letters(data.replace(b"\0", b"")))


def _read_letters(data: bytes) -> str:
    """The stretches of bytes that may be text, where some of it is ASCII: all that is found is."""
    marked = data.translate(_LETTERS) + b"\0"
    parts, end = [], 0
    for at, stop in long_runs(data, _ASCII, _LEAST_LETTERS):
        if at >= end:
            start, end = marked.rfind(0, end, at) + 1, marked.find(0, stop)
            parts.append(data[max(start, 0) : end])
    return b"\n".join(parts).decode("latin-1")


def _open_members(data: bytes) -> list[tuple[str, bytes]] | None:
    """The files of an archive, the one content of a packed file, a PDF and its streams; None for
    any other file.
    """
    opener = next((opener for begins, opener in _OPENERS if data.startswith(begins)), None)
    if opener is None:
        return None
    try:
        return opener(data) or None
    except _UNSOUND:
        return None


_UNSOUND = (
    OSError, EOFError, lzma.LZMAError, ValueError, zipfile.BadZipFile, NotImplementedError, RuntimeError, zlib.error,
)  # fmt: skip


def _open_single_member(
    unpack: Callable[[bytes], bytes],
) -> Callable[[bytes], list[tuple[str, bytes]]]:
    return lambda data: [("", plain)] if (plain := unpack(data)[:CAP]) else []


def _limit_unpacked_size(unpack: Callable[[bytes], bytes]) -> Callable[[bytes], bytes]:
    """For what unpacks all at once."""
    return lambda data: unpack(data) if len(data) < CAP // 8 else b""


def _open_zip(data: bytes) -> list[tuple[str, bytes]]:
    members, remaining = [], CAP
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for info in archive.infolist():
            with archive.open(info) as file:
                inner = file.read(remaining)
            remaining -= len(inner)
            members.append((info.filename, inner))
    return members


_OPENERS: tuple[
    tuple[bytes | tuple[bytes, ...], Callable[[bytes], list[tuple[str, bytes]]]], ...
] = (
    (b"\x1f\x8b", _open_single_member(lambda data: unpacked(data, 31))),
    (ZLIB, _open_single_member(lambda data: unpacked(data, 15))),
    (b"BZh", _open_single_member(_limit_unpacked_size(bz2.decompress))),
    (b"\xfd7z", _open_single_member(_limit_unpacked_size(lzma.decompress))),
    (b"PK\x03\x04", _open_zip),
    (b"%PDF-", open_pdf),
)


def png_texts(data: bytes | _Base64) -> Iterator[str]:
    """The texts of a PNG's chunks, unpacked."""
    at = 8
    while at + 8 <= len(data):
        size, kind = int.from_bytes(data[at : at + 4]), data[at + 4 : at + 8]
        if kind in (b"tEXt", b"iTXt", b"zTXt", b"eXIf"):
            name, _, rest = data[at + 8 : at + 8 + size].partition(b"\0")
            packed = next(
                (rest[i:] for i in range(min(6, len(rest))) if rest[i : i + 1] == b"\x78"), b""
            )
            plain = unpacked(packed, 15) if packed and kind != b"tEXt" else b""
            yield (name + b": " + (plain or rest)).decode("latin-1")
        at += 12 + size


def read_passages(content: Path | bytes) -> bytes:
    return content if isinstance(content, bytes) else content.read_bytes()
