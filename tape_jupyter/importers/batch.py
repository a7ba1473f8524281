"""Batches: the requests lie in one file and the results in another; they are joined by `custom_id`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from tape_jupyter.importers.rows import read_rows, source_rows
from tape_jupyter.importers.source import Source, TraceError
from tape_jupyter.importers.trace import Item, Skipped

_LOOKED_AT = 50
_LARGEST = 256 * 1024 * 1024
ALONE = "a request of a batch: its reply, if there is one, is in the file of results"

Ask = tuple[str, str, Any]
"""A request's method, its path, and its JSON."""


def skip_request(row: Mapping[str, Any], line: int) -> Iterator[Skipped]:
    """What is said of a row of a file that has requests, and no results."""
    yield Skipped(
        ALONE if "custom_id" in row else "a record that is no request of a batch", line=line
    )


def read_results(
    source: Source,
    read_requests: Callable[[Mapping[str, Any]], Iterator[tuple[str, Ask]]],
    read_row: Callable[[str, Mapping[str, Ask], Mapping[str, Any], int], Iterator[Item]],
) -> Iterator[Item]:
    """The calls of a file of results, each with its request where a file beside it has that."""
    result_ids = {
        str(row["custom_id"])
        for _, row, _ in source_rows(source)
        if isinstance(row, dict) and "custom_id" in row
    }
    requests = requests_of_results(source, read_requests, result_ids)
    yield from read_rows(source, partial(read_row, source.name, requests))


def requests_of_results(
    source: Source,
    read: Callable[[Mapping[str, Any]], Iterator[tuple[str, Ask]]],
    result_ids: set[str],
) -> dict[str, Ask]:
    """The requests of these results, from the one file beside them that has them all; none where
    several have.
    """
    if source.data is not None or not result_ids:
        return {}
    fitting: list[tuple[Path, dict[str, Ask]]] = []
    for path in _list_files_beside(source.path):
        requests = _read_requests(path, read)
        if result_ids <= requests.keys():
            fitting.append((path, requests))
    if len(fitting) == 1:
        source.notes.append(f"the requests are those of {fitting[0][0].name}, beside it")
        return fitting[0][1]
    if fitting:
        names = ", ".join(path.name for path, _ in fitting[:5])
        source.notes.append(
            f"several files beside it have requests of these ids ({names}): none was taken"
        )
    return {}


def _list_files_beside(path: Path) -> Iterator[Path]:
    absolute = path.absolute()
    candidates = sorted(
        each
        for each in absolute.parent.iterdir()
        if each.suffix in (".jsonl", ".json", ".gz", ".ndjson")
    )
    for each in candidates[:_LOOKED_AT]:
        if each != absolute and each.is_file() and each.stat().st_size <= _LARGEST:
            yield each


def _read_requests(
    path: Path, read: Callable[[Mapping[str, Any]], Iterator[tuple[str, Ask]]]
) -> dict[str, Ask]:
    source = Source(path)
    try:
        if "custom_id" not in source.keys:
            return {}
        return {
            request_id: request
            for _, row, _ in source_rows(source, "requests")
            if isinstance(row, dict)
            for request_id, request in read(row)
        }
    except TraceError:  # a file of another kind
        return {}


def echoed(body: Mapping[str, Any]) -> dict[str, Any]:
    """What a reply tells of its request: all that is known of it where the requests are not there."""
    names = (
        "model",
        "instructions",
        "tools",
        "tool_choice",
        "temperature",
        "top_p",
        "text",
        "previous_response_id",
    )
    kept = names if body.get("object") == "response" else ("model",)
    return {name: body[name] for name in kept if body.get(name) is not None}
