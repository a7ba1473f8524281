"""Exports that are a list of records: JSON Lines, a JSON list, a list inside an object, Parquet, a
table (CSV, TSV).
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from tape_jupyter.importers.source import RECORD_CAP, Broken, Source, Value, load, load_or_text
from tape_jupyter.importers.trace import Item, Skipped, each

_DEEPEST = 3
"""How many times JSON may stand as text in JSON."""


def read_rows(
    source: Source,
    make: Callable[[dict[str, Any], int], Iterable[Item]],
    *lists: str,
    record_field: str = "",
) -> Iterator[Item]:
    """What `make` gives of each record and its line. `lists`: names of lists that an object around
    them has.

    Of the fields beside them the one named `record_field` is a record too; the others tell of the export.

    What is no object is a `Skipped`, and keeps its text.
    """
    for path, row, line in source_rows(source, *lists):
        if len(path) == 1 and path[0] not in ("[]", "broken", record_field):
            continue
        if isinstance(row, dict):
            yield from each(partial(make, row, line), line)
        elif isinstance(row, Broken):
            yield Skipped(
                f"a record that breaks off or is not JSON: {row.reason}", line=line, text=row.text
            )
        elif not path or path[-1] == "[]":
            yield Skipped("a record that is not a JSON object", line=line, text=str(row))


def source_rows(source: Source, *lists: str) -> Iterator[Value]:
    """Each record of a file; of an object that has one of `lists`, each item of that list and each
    other field.
    """
    if source.is_parquet:
        yield from _read_parquet(source)
    elif source.columns:
        yield from _read_table(source)
    elif source.head_text[:1] == "[":
        yield from source.values(lambda path: not path)
    elif any(_has_list(source, name, lists) for name in lists):
        yield from source.values(lambda path: not path or path[-1] in lists)
    elif source.one_a_line:
        yield from (Value((), row, line) for line, row in source.lines())
    else:
        yield from source.values(lambda _: False)


def _has_list(source: Source, name: str, lists: Sequence[str]) -> bool:
    """Whether the first object has a list of this name (or one in an object of this name); a record
    may have a field that is called so.
    """
    if isinstance(source.first, dict):
        value = source.first.get(name)
        inner = [value.get(each) for each in lists] if isinstance(value, dict) else []
        return any(isinstance(each, list) for each in (value, *inner))
    return name in source.top and re.search(rf'"{name}"\s*:\s*\[', source.head_text) is not None


def _read_parquet(source: Source) -> Iterator[Value]:
    number = 0
    file = source.parquet()
    try:
        for batch in file.iter_batches(batch_size=256):
            for row in batch.to_pylist():
                number += 1
                yield Value((), {name: _format_time(value) for name, value in row.items()}, number)
    except (OSError, ValueError) as error:
        raise source.failed(f"is not a sound Parquet file: {error}", number) from None


def _format_time(value: Any) -> Any:
    """Times of Parquet as texts; all else is JSON already."""
    return value.isoformat() if hasattr(value, "isoformat") else value


def _read_table(source: Source) -> Iterator[Value]:
    """Each line of a table; an empty cell is a field that is not there."""
    with source.open() as file, io.TextIOWrapper(file, "utf-8-sig", "replace", newline="") as text:
        reader = csv.DictReader(text, delimiter=source.delimiter)
        while True:
            usual = csv.field_size_limit(RECORD_CAP)
            try:
                row = next(reader, None)
            except csv.Error as error:
                raise source.failed(f"is not a sound table: {error}", reader.line_num) from None
            finally:
                csv.field_size_limit(usual)
            if row is None:
                return
            filled = {name: cell for name, cell in row.items() if name and cell}
            yield Value((), _nest_columns(source, filled), reader.line_num)


def _nest_columns(source: Source, row: dict[str, str]) -> dict[str, Any]:
    """Columns such as `inputs.model` as fields of `inputs`, whose texts were JSON before they were
    cells.
    """
    nested: dict[str, Any] = {name: cell for name, cell in row.items() if "." not in name}
    for name, cell in row.items():
        outer, dot, inner = name.partition(".")
        if not dot:
            continue
        fields = nested.setdefault(outer, {})
        if isinstance(fields, dict):
            source.noted("a table's cells are texts: those that read as JSON are taken for it")
            fields[inner] = _parse_cell(cell)
        else:
            nested[name] = cell
    return nested


def _parse_cell(text: str) -> Any:
    try:
        return load(text)
    except ValueError:
        return text


def decode_field(value: Any) -> Any:
    """A field that holds JSON, as text or as text of text; a text that is none stays."""
    for _ in range(_DEEPEST):
        if not isinstance(value, str):
            break
        text = value.strip()
        if text[:1] == '"' and text[-1:] == '"' and len(text) > 1:
            try:
                value = load(text)
            except ValueError:
                break
        else:
            decoded = load_or_text(value)
            if isinstance(decoded, str):
                break
            value = decoded
    return value


def mapping_field(value: Any) -> dict[str, Any]:
    """The object that a field holds, as it is or as JSON text; an empty one where it holds none."""
    decoded = decode_field(value)
    return decoded if isinstance(decoded, dict) else {}


def listed_field(value: Any) -> list[Any]:
    """The list that a field holds, as it is or as JSON text; an empty one where it holds none."""
    decoded = decode_field(value)
    return decoded if isinstance(decoded, list) else []
