"""One row of a sweep: a run with a candidate, in whatever process or machine a worker is.

What is needed comes in the attempt, the row goes into the store as soon as it is there; nothing but
the row is given back.
"""

from __future__ import annotations

import difflib
import itertools
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tape_jupyter.bundle.archive import locations
from tape_jupyter.cassette import paths
from tape_jupyter.cassette.cassette import Cassette
from tape_jupyter.cassette.cell_sources import digests
from tape_jupyter.cassette.runs import current_run_ids
from tape_jupyter.cassette.takes import edits
from tape_jupyter.cassette.takes import files as takes_files
from tape_jupyter.core.temp_dirs import scratch
from tape_jupyter.errors import TapeError, TapeUsageError
from tape_jupyter.experiments import checked_run, environments
from tape_jupyter.experiments.check import Check, CheckedCell, CheckedRun, judged
from tape_jupyter.experiments.checked_run import ReplayOptions
from tape_jupyter.experiments.sweep import asking
from tape_jupyter.experiments.sweep import candidate as candidates
from tape_jupyter.experiments.sweep.candidate import Candidate
from tape_jupyter.experiments.sweep.limits import RunLimits
from tape_jupyter.experiments.sweep.store import Row, RowStore
from tape_jupyter.headless import run as headless_run
from tape_jupyter.session.summary_rows import row_of_entry

if TYPE_CHECKING:
    from nbformat import NotebookNode


@dataclass(frozen=True, slots=True)
class Attempt:
    """What a worker is given; plain values only. `place` is what rows call the run, `at` where it
    lies, wherever a worker stands. `results` is where rows are kept, `env` whose
    packages a bundle runs with, `seconds` and `memory` are a whole run's limits, `timeout` a
    cell's, `pace` is that of its replies; `page`: a page of the viewer is written too; `asked`:
    under which key the store has what the candidate asked again.
    """

    key: str
    place: str
    at: str
    kind: str
    candidate: Mapping[str, Any]
    check: str
    results: str
    env: str = "lock"
    allow_index: bool = False
    timeout: float | None = None
    seconds: float = 0.0
    memory: int = 0
    page: bool = False
    asked: str = ""
    pace: str = ""


@dataclass(frozen=True, slots=True)
class _Named:
    """A recorded call: in which code cell (0: not known) it was made, its kind and name."""

    cell: int
    kind: str
    name: str


@dataclass(slots=True)
class _Recorded:
    """What a run's recordings tell, and how many calls and cells the candidate changed."""

    fits: int = 0
    calls: list[_Named] = field(default_factory=list)
    cold: int = 0
    tags: dict[str, Any] = field(default_factory=dict)
    live: int = 0
    cost: float = 0.0


class RowWriteError(TapeUsageError):
    """A row could not be written (a full disk, a store that is gone): the sweep ends."""


def attempt(job: Attempt) -> Row:
    """Run it, and keep its row. Whatever goes wrong with the run is in the row. Raises RowWriteError."""
    began = time.perf_counter()
    limits, recorded = RunLimits(job.seconds, job.memory), _Recorded()
    try:
        with limits.watch_limits():
            run = checked_run.in_thread(_run_attempt, job, recorded, limits)
    except TapeError as error:
        run = _build_broken_run(str(error).splitlines()[0])
    except Exception as error:
        run = _build_broken_run(f"{type(error).__name__}: {error}")
    row = _build_row(job, run, recorded, limits, time.perf_counter() - began)
    try:
        RowStore(job.results).put_row(job.key, row)
    except Exception as error:
        why = str(getattr(error, "strerror", None) or error or type(error).__name__)
        raise RowWriteError(
            f"a row cannot be kept in {locations.shown_place(job.results)}: {why}"
        ) from None
    return row


def lost(job: Attempt, why: str) -> Row:
    """The row of an attempt whose workers died."""
    row = _build_row(job, _build_broken_run(why), _Recorded(), RunLimits(), 0.0)
    return {**row, "end": "died"}


def _build_broken_run(why: str) -> CheckedRun:
    return CheckedRun("unresolved", why=why, error="broken")


def _build_row(
    job: Attempt, run: CheckedRun, recorded: _Recorded, limits: RunLimits, seconds: float
) -> Row:
    end: str = limits.ended or ("broken" if run.error == "broken" else "")
    verdict, why = run.verdict, run.why
    if limits.ended:
        limit = f"{job.seconds:g} s" if end == "timed out" else f"{job.memory >> 20} MB"
        verdict, why = "unresolved", f"{end}: ended at its limit of {limit}"
    near = [call for call in recorded.calls if run.cell and call.cell == run.cell]
    near = near or recorded.calls
    return {
        "key": job.key, "place": job.place, "candidate": job.candidate["name"], "verdict": verdict,
        "end": end, "why": why, "value": run.value, "cell": run.cell, "error": "" if end else run.error,
        "asked": run.asked, "calls": run.calls, "live": recorded.live, "diverged": run.missed, "cost": recorded.cost,
        "seconds": round(seconds, 3), "fits": recorded.fits, "cold": recorded.cold,
        "tool": _find_last_name(near, "tool", "retrieval"), "model": _find_last_name(near, "model"),
        "tenant": str(recorded.tags.get("tenant_id", "")), "tags": recorded.tags,
    }  # fmt: skip


def _find_last_name(calls: Sequence[_Named], *kinds: str) -> str:
    return next((call.name for call in reversed(calls) if call.kind in kinds), "")


def _run_attempt(job: Attempt, recorded: _Recorded, limits: RunLimits) -> CheckedRun:
    candidate, check = candidates.candidate_of_record(job.candidate), Check.parse(job.check)
    if job.kind == "bundle":
        return _run_bundle(job, candidate, check, recorded, limits)
    notebook = Path(job.at)
    saved = headless_run.read_notebook(notebook)
    node = _change_notebook(job, saved, candidate, notebook, recorded)
    files = _build_takes(job, saved, candidate, recorded)
    if candidate.packages:
        python = environments.changed_environment(candidate.packages)
    else:
        python = None
    options = ReplayOptions(
        asking.TAKE if files else "", job.pace, node, files, str(python) if python else None,
        job.timeout, limits.started,
    )  # fmt: skip
    return checked_run.replay_and_check(notebook, check, options)


def _build_takes(
    job: Attempt, saved: NotebookNode, candidate: Candidate, recorded: _Recorded
) -> dict[Path, bytes]:
    """The takes that hold what the candidate answers, as they would lie beside the notebook's
    recordings.
    """
    tapes = paths.folder(Path(job.at))
    with scratch("try") as folder:
        tapes_copy = folder / tapes.name
        shutil.copytree(tapes, tapes_copy, ignore=shutil.ignore_patterns(takes_files.DELETED))
        before = set(tapes_copy.rglob("*"))
        _write_answers(job, tapes_copy, saved, candidate, recorded)
        new_files = [
            file for file in tapes_copy.rglob("*") if file not in before and file.is_file()
        ]
        new_files = [file for file in new_files if file.suffix != ".lock"]
        return {tapes / file.relative_to(tapes_copy): file.read_bytes() for file in new_files}


def write_pages(job: Attempt) -> None:
    """What a report shows of an attempt whose row is there already; nothing runs. What cannot be
    made is left out.
    """
    from tape_jupyter.bundle import replay as bundle_replay
    from tape_jupyter.bundle.archive import opened

    candidate, recorded = candidates.candidate_of_record(job.candidate), _Recorded()
    with suppress(Exception):
        if job.kind != "bundle":
            saved = headless_run.read_notebook(Path(job.at))
            _change_notebook(job, saved, candidate, Path(job.at), recorded)
            _build_takes(job, saved, candidate, recorded)
            return
        with opened(job.at) as bundle, scratch("try") as folder:
            session, _ = bundle_replay.laid_out(bundle, folder / "bundle")
            saved = headless_run.read_notebook(session)
            _change_notebook(job, saved, candidate, None, recorded)
            _write_answers(job, paths.folder(session), saved, candidate, recorded)


def _run_bundle(
    job: Attempt, candidate: Candidate, check: Check, recorded: _Recorded, limits: RunLimits
) -> CheckedRun:
    """In an empty home, without the network, with the packages of its lock or those that are here."""
    import nbformat

    from tape_jupyter.bundle import replay as bundle_replay
    from tape_jupyter.bundle.archive import opened
    from tape_jupyter.bundle.environment import caches
    from tape_jupyter.bundle.proof import process
    from tape_jupyter.comparison.outputs import places

    want = bundle_replay.ReplayRequest(
        env="current" if job.env == "current" else "lock", yes=True,
        allow_index=job.allow_index, pace=job.pace,
    )  # fmt: skip
    with opened(job.at) as bundle, scratch("try") as folder:
        bundle_replay.runnable(bundle, want)
        session, _ = bundle_replay.laid_out(bundle, folder / "bundle")
        saved = headless_run.read_notebook(session)
        node = _change_notebook(job, saved, candidate, None, recorded)
        session.write_text(nbformat.writes(node), encoding="utf-8")  # type: ignore[no-untyped-call]
        answered = _write_answers(job, paths.folder(session), saved, candidate, recorded)
        if candidate.packages:
            kept = [str(each) for each in bundle.manifest.kit.get("distributions") or ()]
            python = str(environments.changed_environment(candidate.packages, kept))
        else:
            python = bundle_replay.interpreter(
                bundle, want, lambda _what, _done, _all: None, folder, []
            )
        proof = process.ProofJob(
            str(session), str(folder / "home"), python, asking.TAKE if answered else "",
            bundle_replay.chosen_pace(bundle.manifest, want), caches.cache_variables(), job.timeout,
            question=check.expression,
        )  # fmt: skip
        began = time.perf_counter()
        done = process.run_proof(proof, lambda *_: None, lambda _: None, limits.started)
        cells = [
            CheckedCell(out.outputs, saved.cells[out.index].outputs, out.ran) for out in done.outs
        ]
        check.require(len(cells))
        assert done.answer is not None
        where = places(session.parent, folder / "home")
        return judged(cells, check, done.answer, where, time.perf_counter() - began)


def _change_notebook(
    job: Attempt,
    saved: NotebookNode,
    candidate: Candidate,
    notebook: Path | None,
    recorded: _Recorded,
) -> NotebookNode:
    """The notebook with the candidate's cells; as it is where its rules fit none of them. How they
    differ is kept for the report, where there is one.
    """
    try:
        node = candidate.changed(saved, notebook)
    except candidates.FitsNothing:
        return saved
    recorded.fits += sum(
        old.source != new.source for old, new in zip(saved.cells, node.cells, strict=True)
    )
    if job.page and (diff_text := "\n".join(_diff_code(saved, node))):
        RowStore(job.results).write_file(f"pages/{job.key}.diff", diff_text.encode())
    recorded.fits += len(candidate.packages)
    return node


def _diff_code(saved: NotebookNode, node: NotebookNode) -> Iterator[str]:
    """A unified diff of each code cell that is another."""
    code = [headless_run.has_code(cell) for cell in saved.cells]
    for number, (old, new) in enumerate(
        itertools.compress(zip(saved.cells, node.cells, strict=True), code), 1
    ):
        names = f"cell {number} as recorded", f"cell {number} as tried"
        yield from difflib.unified_diff(
            old.source.splitlines(), new.source.splitlines(), *names, lineterm=""
        )


# ---------------------------------------------------------------- recordings


def _write_answers(
    job: Attempt, tapes: Path, saved: NotebookNode, candidate: Candidate, recorded: _Recorded
) -> bool:
    """Read the recordings of a folder of one's own, and put the candidate's answers into a take in
    it; gives whether there are any.
    """
    numbers = _index_cells(saved)
    answered = _lay_answers(job, tapes, candidate, recorded)
    for path in takes_files_of(tapes):
        book = Cassette.open(path)
        used = current_run_ids(book.runs)
        calls = [entry for entry in book.calls if entry.run in used]
        for entry in calls:
            summary_row = row_of_entry(entry)
            cell = numbers(book.by_run.get(entry.run, {}))
            recorded.calls.append(_Named(cell, summary_row.kind, summary_row.name))
            recorded.tags.update(summary_row.tags)
        recorded.cold += sum(bool(book.ended.get(run, {}).get("cold")) for run in used)
        for rule in candidate.overrides:
            for entry in candidates.fitting(rule, calls):
                if "message" in rule:
                    answer = edits.given_edit(entry, message=rule["message"])
                else:
                    answer = edits.apply_edit(entry, candidates.rule_edit(rule))
                book.commit_reply(entry, answer, asking.TAKE)
                recorded.fits += 1
                answered = True
        if job.page:
            _write_page(
                job, book.take(asking.TAKE) if asking.TAKE in takes_files.take_names(path) else book
            )
    return answered


def _lay_answers(job: Attempt, tapes: Path, candidate: Candidate, recorded: _Recorded) -> bool:
    """Lay what the candidate asked again beside the recordings. Raises TapeUsageError where that
    was not paid for.
    """
    if not candidate.requests:
        return False
    answers = asking.kept_answers(RowStore(job.results), job.asked)
    if not answers.complete:
        raise TapeUsageError(
            "its calls were not all asked again: a limit was reached, or no answer came"
        )
    answers.write_files(tapes)
    recorded.live, recorded.cost = answers.live, float(answers.cost)
    recorded.fits += len(answers.done)
    return bool(answers.files)


def takes_files_of(tapes: Path) -> list[Path]:
    return paths.cassettes_in(tapes)


def _index_cells(saved: NotebookNode) -> Any:
    """Tells which code cell a run is of, 0 where that cannot be told."""
    known: dict[str, int] = {}
    cells = [cell for cell in saved.cells if headless_run.has_code(cell)]
    for number, cell in enumerate(cells, 1):
        for name in (str(cell.get("id") or ""), *digests(cell.source)):
            known.setdefault(name, number)

    def find_number(run: Mapping[str, Any]) -> int:
        return known.get(str(run.get("cell") or "")) or known.get(str(run.get("source") or ""), 0)

    return find_number


def _write_page(job: Attempt, book: Cassette) -> None:
    """The viewer's page of the run, for the report. One that cannot be made is left out."""
    from tape_jupyter.reports import page

    notes: list[str] = []
    text = "".join(page.page_pieces(book, notes, lambda _done, _total: None))
    RowStore(job.results).write_file(f"pages/{job.key}.html", text.encode())


__all__ = ["Attempt", "RowWriteError", "attempt", "lost", "write_pages"]
