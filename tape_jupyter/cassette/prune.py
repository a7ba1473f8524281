"""Drops recordings that no replay can use any more. The file is replaced in one step, under its
lock.

Kept: of each cell the newest recording, runs that add to it (new_episodes), and every run that a
kept request refers to for its history. What takes are based on stays byte for byte: only recordings
after it can go. Takes are not pruned.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tape_jupyter.cassette import external_texts as assets
from tape_jupyter.cassette import request_refs
from tape_jupyter.cassette.cassette import Cassette
from tape_jupyter.cassette.journal import Journal
from tape_jupyter.cassette.runs import current_run_ids, later_recordings
from tape_jupyter.cassette.takes import files
from tape_jupyter.core import locks
from tape_jupyter.core.atomic_write import replacing
from tape_jupyter.core.plain_text import format_count, join_some
from tape_jupyter.core.progress import Tell, count_items, ignore_progress
from tape_jupyter.encoding.yaml import emitter
from tape_jupyter.errors import CassetteError, TapeUsageError


@dataclass(frozen=True, slots=True)
class Pruned:
    """What went, or would go: run ids, how many calls, bytes of the cassette and of texts beside
    it.
    """

    runs: tuple[str, ...]
    calls: int
    before: int
    after: int
    assets: tuple[str, ...] = ()
    back_to: str = ""

    def text(self, path: Path, *, dry: bool) -> str:
        """A line for people."""
        verb = "would drop" if dry else "dropped"
        return (
            f"{path}: {verb} {format_count(len(self.runs), 'run')} with {format_count(self.calls, 'call')} "
            f"({self.before:,} -> {self.after:,} bytes)"
            f"{f'; {self.back_to} is replayed again' if self.back_to and not dry else ''}"
        )


Record = dict[str, Any]


def superseded_runs(records: Iterable[Record]) -> tuple[str, ...]:
    """Runs that can go, in file order."""
    runs: list[Record] = []
    needs: dict[str, set[str]] = {}
    for record in records:
        if "run" in record and next(iter(record)) == "run":
            runs.append(record)
        elif "call" in record:
            needs.setdefault(owner(record), set()).update(_find_referred_runs(record))
    known = [owner(run) for run in runs]
    kept = current_run_ids(runs) | (set(needs) - set(known))
    waiting = list(kept)
    while waiting:
        more = needs.get(waiting.pop(), set()) - kept
        kept |= more
        waiting += more
    return tuple(run for run in known if run not in kept)


def find_cassette_of_run(cassettes: Sequence[Path], run: str) -> Path:
    """Which of a notebook's cassettes holds a run: the only one in any case, whose pruning says what it
    has. Raises TapeUsageError where none of several does.
    """
    if len(cassettes) == 1:
        return cassettes[0]
    for path in cassettes:
        with suppress(CassetteError):
            if any(owner(record) == run for record in Cassette.open(path, check="marks").runs):
                return path
    have = ", ".join(path.name for path in cassettes)
    raise TapeUsageError(
        f"{run[:80]} is not a run of any cassette of the notebook: {have} (tape show lists their "
        "runs). Nothing was dropped"
    )


def _find_runs_after(path: Path, records: Sequence[Record], run: str, fixed: set[str]) -> set[str]:
    """The recordings that replaced this one, with what adds to them. Raises TapeUsageError where
    there is none, CassetteError where one of them is needed.
    """
    runs = [record for record in records if next(iter(record)) == "run"]
    later = set(later_recordings(runs, run))
    if not later:
        known = any(owner(record) == run for record in runs)
        if known:
            why = "is replayed already"
        else:
            why = "is not a run of it (tape show lists them)"
        raise TapeUsageError(f"{path}: {run[:80]} {why}. Nothing was dropped")
    gone = later | {owner(record) for record in runs if record.get("parent") in later}
    needed = gone & fixed
    for record in records:
        if "call" in record and owner(record) not in gone:
            needed |= gone & _find_referred_runs(record)
    if needed:
        raise CassetteError(
            f"{join_some(sorted(needed), 3)} cannot be dropped: a take is based on it, or a later recording refers "
            "to it. Record the cell again instead",
            path=str(path),
        )
    return gone


def _find_referred_runs(call: Record) -> set[str]:
    """The other runs whose requests this request takes its history from."""
    request = call.get("request")
    body = request.get("body") if isinstance(request, dict) else None
    return {ref.run for ref in request_refs.references(body) if ref.run}


def owner(record: Record) -> str:
    """The run a record belongs to; "" for the header. Its first key is its kind: tape, run, kit,
    call, more, end.
    """
    kind = next(iter(record))
    return str(record[kind] if kind in ("run", "kit", "end") else record.get("run", ""))


def prune_cassette(
    path: Path, *, dry: bool = False, back_to: str = "", on_progress: Tell = ignore_progress
) -> Pruned:
    """Drop superseded runs from a cassette, or what replaced the run `back_to`; `dry` only tells.
    Raises CassetteError and TapeUsageError; the file is then as it was.
    """
    on_progress(f"checking {path.name}", 0, 0)
    with _hold_lock(path):
        if Cassette.open(path, check="whole").base is not None:
            raise CassetteError(
                "a take is not pruned: it holds only what was changed", path=str(path)
            )
        before = path.stat().st_size
        texts, torn = _read_record_texts(path)
        records = [
            emitter.parse_record(text.decode("utf-8"))
            for text in count_items(texts, f"records of {path.name}", on_progress)
        ]
        fixed = _find_runs_within(texts, records, files.extent(path))
        if back_to:
            dropped_runs = _find_runs_after(path, records, back_to, fixed)
        else:
            dropped_runs = set(superseded_runs(records)) - fixed
        drops = droppable(records, dropped_runs)
        kept = b"".join(text for text, drop in zip(texts, drops, strict=True) if not drop) + torn
        if any(drops) and not dry:
            _replace_file(path, kept)
    dropped = [record for record, drop in zip(records, drops, strict=True) if drop]
    unused = unused_assets(path, kept, dropped)
    for name in unused if not dry else ():
        (path.parent / "assets" / name).unlink(missing_ok=True)
    runs = tuple(dict.fromkeys(owner(record) for record in dropped))
    return Pruned(
        runs, sum("call" in record for record in dropped), before, len(kept), unused, back_to
    )


def droppable(records: Sequence[Record], dropped_runs: set[str]) -> list[bool]:
    """Of each record, whether it goes with these runs; of a run that a kept one tells its kit by,
    only the calls go.
    """
    bases = {
        str(record["like"])
        for record in records
        if "like" in record and owner(record) not in dropped_runs
    }
    return [
        owner(r) in dropped_runs and (owner(r) not in bases or next(iter(r)) in ("call", "more"))
        for r in records
    ]


def _find_runs_within(texts: Sequence[bytes], records: Sequence[Record], extent: int) -> set[str]:
    """The runs with a record in the first `extent` bytes, which takes are based on."""
    owners, offset = set(), 0
    for text, record in zip(texts, records, strict=True):
        if offset < extent:
            owners.add(owner(record))
        offset += len(text)
    return owners


def _read_record_texts(path: Path) -> tuple[list[bytes], bytes]:
    """The records of a cassette, byte for byte, and its torn tail."""
    journal = Journal(path)
    texts = [journal.read(span.offset, span.length) for span in journal.scan()]
    return texts, journal.read(journal.committed, journal.torn)


def unused_assets(path: Path, kept: bytes, dropped: list[Record]) -> tuple[str, ...]:
    """Texts beside the cassette that only the dropped records name: none of the folder's cassettes
    does.
    """
    named = set().union(*map(assets.asset_names, dropped)) if dropped else set()
    if named:
        others = [other.read_bytes() for other in path.parent.rglob("*.tape.yaml") if other != path]
    else:
        others = []
    return tuple(
        sorted(name for name in named if not any(name.encode() in text for text in (kept, *others)))
    )


@contextmanager
def _hold_lock(path: Path) -> Iterator[None]:
    """The cassette's own lock (cassette/journal.py takes it for each append)."""
    try:
        file = os.open(path, os.O_RDWR)
    except OSError as error:
        raise CassetteError(f"cannot be opened: {error.strerror}", path=str(path)) from error
    try:
        locks.lock_file(file, path)
        yield
    finally:
        os.close(file)


def _replace_file(path: Path, data: bytes) -> None:
    try:
        with replacing(path, private=True, lasting=True) as draft:
            draft.write_bytes(data)
            shutil.copymode(path, draft)
    except OSError as error:
        raise CassetteError(
            f"cannot be replaced: {error.strerror or error}", path=str(path)
        ) from error
