"""Recordings of agent-rewind (JSON Lines, gzip too). Its blobs, files of their own, are not read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tape_jupyter.importers import observed, recorders
from tape_jupyter.importers.attributes import attribute_seconds
from tape_jupyter.importers.observed import ObservedStep, StepFailure, StepNotes, StepPlace
from tape_jupyter.importers.rows import listed_field, mapping_field, read_rows
from tape_jupyter.importers.source import Source
from tape_jupyter.importers.trace import Item, Run, Skipped

TITLE = "agent-rewind"

_KINDS = {"llm": "model", "tool": "tool", "memory": "tool"}
_MARKS: dict[str, Callable[[Any], Any]] = {
    "__rewind_blob__": lambda _: None, "__rewind_literal__": lambda value: value, "__repr__": str,
    "__bytes_hex__": lambda value: bytes.fromhex(str(value)),
    "__bytes_utf8__": lambda value: str(value).encode("utf-8", "surrogatepass"),
}  # fmt: skip
_LOST = {
    "__rewind_blob__": "what lies in the folder of blobs", "__repr__": "objects, of which there is only their repr",
}  # fmt: skip
_STREAM = "__rewind_stream__"


def recognises(source: Source) -> int:
    if "rewind_format" in source.top:
        return 95
    return 85 if {"seq", "kind", "fingerprint", "request"} <= source.keys else 0


def read(source: Source) -> Iterator[Item]:
    yield from read_rows(source, _Recording(source.name).row)


class _Recording:
    """A file: each header in it begins a run."""

    def __init__(self, file: str) -> None:
        self.file, self.heads = file, 0

    def row(self, row: dict[str, Any], line: int) -> Iterator[Item]:
        self.heads += "rewind_format" in row
        trace = "" if self.heads < 2 else str(self.heads)
        if "rewind_format" in row:
            yield Run(trace, "recording", mapping_field(row.get("meta")))
        else:
            yield from _read_row(self.file, trace, row, line)


def _read_row(file: str, trace: str, row: dict[str, Any], line: int) -> Iterator[Item]:
    kind = str(row.get("kind") or "")
    if kind not in _KINDS:
        yield Skipped(f"a record of kind {kind[:40] or 'none'}: no call", line=line)
        return
    missing: list[str] = []
    raw_request = _strip_marks(row.get("request"), missing)
    raw_reply = _strip_marks(row.get("response"), missing)
    failed, thrown = recorders.error_message_and_class(row.get("error"))
    start = attribute_seconds(row.get("ts"))
    name = str(row.get("name") or "")
    step_kind: Any = _KINDS[kind]
    took = float(row.get("duration_ms") or 0.0) / 1000
    seen = ObservedStep(
        kind=step_kind,
        name=name,
        place=StepPlace(
            id=str(row.get("seq")),
            trace=trace,
            start=start - took if start else 0.0,
            end=start,
            line=line,
        ),
        input=recorders.named_arguments(raw_request),
        output=raw_reply,
        failure=StepFailure(message=failed, type_name=thrown),
        notes=StepNotes(missing=missing),
    )
    if step_kind == "model":
        seen.asked.provider = recorders.named_provider(name)
        if isinstance(seen.input, Mapping):
            seen.asked.model = str(seen.input.get("model") or "")
        if isinstance(raw_reply, Mapping) and _STREAM in raw_reply:
            seen.arrival.chunks = listed_field(raw_reply[_STREAM])
            seen.notes.missing.append("pace")
            for mark, what in (
                ("truncated", "the rest of the stream"),
                ("error", "the error that ended the stream"),
            ):
                if raw_reply.get(f"{_STREAM.removesuffix('__')}_{mark}__"):
                    seen.notes.missing.append(what)
    yield observed.item(seen, "agent-rewind", file)


def _strip_marks(value: Any, missing: list[str]) -> Any:
    """The value without agent-rewind's marks."""
    if isinstance(value, Mapping):
        mark = next((name for name in _MARKS if name in value), "")
        if mark in _LOST:
            missing.append(_LOST[mark])
        if mark:
            return _MARKS[mark](value[mark])
        return {name: _strip_marks(each, missing) for name, each in value.items()}
    if isinstance(value, list):
        return [_strip_marks(each, missing) for each in value]
    return value
