"""The calls of a notebook's cassettes, as exporters are given them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from tape_jupyter.cassette.cassette import Cassette
from tape_jupyter.cassette.index_entries import Entry
from tape_jupyter.cassette.runs import current_run_ids
from tape_jupyter.exporters.recording import ExportedRun, RecordedCall, Recording

_OLD = "calls of recordings that a newer recording of their cell replaced (a replay does not use them either)"


def read_recording(title: str, cassettes: Sequence[Path]) -> Recording:
    """What a replay of these cassettes uses. Raises CassetteError."""
    runs: list[ExportedRun] = []
    calls: list[RecordedCall] = []
    left = 0
    for path in cassettes:
        cassette = Cassette.open(path)
        used = current_run_ids(cassette.runs)
        recorded = [_read_call(entry) for entry in cassette.calls if entry.run in used]
        left += len(cassette.calls) - len(recorded)
        with_calls = {call.run for call in recorded}
        runs += [run for run in _read_runs(cassette) if run.id in with_calls]
        calls += recorded
    done = Recording(title, runs, calls)
    if left:
        done.lost[_OLD] = left
    return done


def _read_runs(cassette: Cassette) -> Iterator[ExportedRun]:
    for record in cassette.runs:
        name = str(record["run"])
        failed = str(cassette.ended.get(name, {}).get("error") or "")
        yield ExportedRun(
            name, str(record.get("title") or name), _parse_time(record.get("at")), failed
        )


def _read_call(entry: Entry) -> RecordedCall:
    head = entry.head()
    kit = head.get("kit")
    parent = str(head.get("parent") or "")
    return RecordedCall(
        entry.name, entry.run, str(head.get("kind") or "host"), str(head.get("name") or ""), entry.request(),
        entry.reply(), _parse_time(head.get("at")), float(head.get("seconds") or 0.0),
        tuple(each for each in str(head.get("span") or "").split(" / ") if each),
        f"{entry.run}/{parent}" if parent else "", str(head.get("failed") or ""), kit if isinstance(kit, dict) else {},
    )  # fmt: skip


def _parse_time(value: Any) -> float:
    try:
        return datetime.fromisoformat(str(value)).timestamp()
    except (ValueError, OverflowError):
        return 0.0
