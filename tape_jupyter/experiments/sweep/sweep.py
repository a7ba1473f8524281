"""`tape try`: every run with every candidate, and as it is; the rows, and what they come to."""

from __future__ import annotations

import hashlib
import json
import platform
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tape_jupyter import __version__
from tape_jupyter.bundle import trust
from tape_jupyter.bundle.archive import locations, opened
from tape_jupyter.core.plain_text import format_count
from tape_jupyter.core.progress import Tell, ignore_progress
from tape_jupyter.errors import BundleError, TapeUsageError
from tape_jupyter.experiments.check import Check
from tape_jupyter.experiments.sampling.budget import Budget
from tape_jupyter.experiments.sweep import asking, engine, limits, places
from tape_jupyter.experiments.sweep import candidate as candidates
from tape_jupyter.experiments.sweep.attempt import Attempt, write_pages
from tape_jupyter.experiments.sweep.candidate import AS_RECORDED, Candidate
from tape_jupyter.experiments.sweep.engine import Workers
from tape_jupyter.experiments.sweep.places import TriedPlace
from tape_jupyter.experiments.sweep.store import Row, RowStore
from tape_jupyter.experiments.sweep.summary import SweepSummary

if TYPE_CHECKING:
    import pandas as pd

RESULTS = "tape-try"
"""The folder that rows are kept in where no other is named."""
SECONDS = 600.0
"""Seconds that a whole run gets by itself."""
_ROWS = 1
"""Number of the form of rows: another one has other keys."""


@dataclass(frozen=True, slots=True)
class SweepOptions:
    """`results`: a folder or URL. `env` "current" runs bundles with the packages that are here.
    `seconds` and `memory` (bytes; 0: half of the machine's for all workers) are a run's limits;
    `max_cost` (US dollars) and `max_calls` those of what candidates ask again, live; `pace` is that
    of the recorded replies.
    """

    check: str = ""
    results: str = RESULTS
    env: str = "lock"
    allow_index: bool = False
    timeout: float | None = None
    seconds: float = SECONDS
    memory: int = 0
    pages: bool = False
    again: bool = False
    max_cost: Decimal | None = None
    max_calls: int | None = None
    pace: str = ""


@dataclass(frozen=True, slots=True)
class Sweep:
    """All rows of a sweep, in the store, by their keys in order, with the places that they are of
    now; `had` were there already.
    """

    store: RowStore
    places: Mapping[str, str]
    summary: SweepSummary
    had: int = 0

    def rows(self) -> Iterator[Row]:
        """Read from the store, one by one."""
        for key, place in self.places.items():
            row: Row = json.loads(self.store.get(f"rows/{key}.json"))
            yield {**row, "place": place}

    def frame(self) -> pd.DataFrame:
        """As a pandas frame. Raises TapeUsageError where pandas is not installed."""
        try:
            import pandas as pd
        except ImportError as error:
            raise TapeUsageError(
                "a frame needs pandas, which is not installed here: pip install pandas"
            ) from error
        return pd.DataFrame(list(self.rows()))

    def text(self) -> str:
        had = f"; {self.had} existed already" if self.had else ""
        return "\n".join([*self.summary.lines(), f"rows: {self.store.place}{had}"])


def try_candidates(
    wheres: Sequence[str | Path] | str | Path,
    candidates_: Sequence[str | Path | Candidate],
    check: str = "",
    *,
    workers: Any = "",
    results: str | Path = RESULTS,
    **options: Any,
) -> Sweep:
    """`tape try` from Python. `workers`: as on the command line, any executor, or
    a `dask.distributed.Client`. `options` are
    those of SweepOptions. Bundles run without being asked. Raises TapeUsageError.
    """
    where = [wheres] if isinstance(wheres, str | Path) else list(wheres)
    tried = [each if isinstance(each,
    Candidate) else candidates.read_candidate(Path(each)) for each in candidates_]  # fmt: skip
    tried_places = places.found_places([str(each) for each in where], [results])
    sweep_options = SweepOptions(check=check, results=str(results), **options)
    if not isinstance(workers, str):
        return sweep(tried_places, tried, sweep_options, engine.given_executor(workers))
    with engine.workers_of(str(workers)) as pool:
        return sweep(tried_places, tried, sweep_options, pool)


def sweep(
    tried_places: Sequence[TriedPlace], tried: Sequence[Candidate], options: SweepOptions, workers: Workers,
    on_progress: Tell = ignore_progress,
) -> Sweep:  # fmt: skip
    """Have a row of each run as recorded and with each candidate; those that are there count.

    Rows that say that a run came to no end (a worker died, a limit) are made anew. Raises
    TapeUsageError where rows cannot be kept, for names that are not clear, and for no check.
    """
    Check.parse(options.check)
    every = [Candidate(), *tried]
    names = [each.name for each in every]
    if len(set(names)) != len(names):
        raise TapeUsageError(
            f"two candidates have one name: {', '.join(names[1:])}; give them others"
        )
    budget = Budget(options.max_cost, options.max_calls)
    asking.require_limit(tried, budget)
    store = RowStore(options.results)
    store.prepare()
    jobs = {job.key: job for job in _build_jobs(tried_places, every, options, workers.count)}
    summary = SweepSummary(names)
    done: set[str] = set()
    for key, row in () if options.again else store.rows():
        if key in jobs and not row.get("end"):
            summary.add({**row, "place": jobs[key].place})
            done.add(key)
    had = len(done)

    def keep_row(row: Row) -> None:
        if row["key"] not in done:
            done.add(row["key"])
            summary.add(row)
            on_progress("runs tried", len(done), len(jobs))

    def run_jobs(*, recorded: bool) -> None:
        selected = ((job.candidate["name"] == AS_RECORDED) == recorded for job in jobs.values())
        left = (
            job
            for job, is_selected in zip(jobs.values(), selected, strict=True)
            if is_selected and job.key not in done
        )
        engine.run_jobs(left, store, workers, keep_row)

    on_progress("runs tried", len(done), len(jobs))
    run_jobs(recorded=True)
    if tried:
        _require_answer(options.check, summary)
        asking.request_missing(tried_places, tried, store, budget, on_progress)
        run_jobs(recorded=False)
    if options.pages:
        _write_missing_pages(jobs.values(), store, on_progress)
    return Sweep(store, {key: job.place for key, job in jobs.items()}, summary, had)


def _write_missing_pages(jobs: Iterable[Attempt], store: RowStore, on_progress: Tell) -> None:
    """Of rows that were made when nobody asked for a report."""
    missing = [job for job in jobs if not store.has(f"pages/{job.key}.html")]
    for number, job in enumerate(missing, 1):
        write_pages(job)
        on_progress("pages written", number, len(missing))


def _require_answer(check: str, summary: SweepSummary) -> None:
    """Raises TapeUsageError where the check could be answered in none of the runs as recorded."""
    if summary.runs and len(summary.unanswered) == summary.runs:
        first = next(iter(summary.unanswered.values()))
        raise TapeUsageError(
            f"--check {check}: in {summary.runs} of {format_count(summary.runs, 'run')} as recorded {first}; "
            "no candidate was tried, and nothing was asked"
        )


def _build_jobs(
    tried_places: Sequence[TriedPlace],
    every: Sequence[Candidate],
    options: SweepOptions,
    workers: int,
) -> Iterator[Attempt]:
    memory = options.memory or limits.usual_memory() // max(1, workers)
    records = [(each, each.record()) for each in every]
    copies: Counter[str] = Counter()
    for place in tried_places:
        copies[place.digest] += 1
        run_digest = f"{place.digest} {copies[place.digest]}"
        notebook = Path(place.place).resolve() if place.kind == "notebook" else None
        for each, record in records:
            yield Attempt(
                _derive_key(run_digest, each.digest_for(notebook), options), place.place,
                _make_absolute(place.place), place.kind, record, options.check,
                _make_absolute(options.results), options.env, options.allow_index, options.timeout, options.seconds,
                memory, options.pages, asking.key_of(place, each) if each.requests else "",
                options.pace,
            )  # fmt: skip


def _make_absolute(place: str) -> str:
    return place if locations.is_url(place) else str(Path(place).resolve())


def _derive_key(place: str, candidate: str, options: SweepOptions) -> str:
    """Of the run (its digest, and which copy of it), the candidate, and what else a row depends on."""
    version = f"{__version__} {_ROWS} {platform.python_version()} {options.env}"
    parts = [place, candidate, version, options.check.strip(), f"{options.timeout}"]
    key_text = "\n".join([*parts, options.pace] if options.pace else parts)
    return hashlib.sha256(key_text.encode()).hexdigest()[:32]


def require_trust(tried_places: Sequence[TriedPlace], *, yes: bool) -> None:
    """That a person has let these bundles run: with `yes`, once for each before, or now for all
    of them on the terminal. Raises BundleError.
    """
    if yes:
        return
    unknown = []
    for place in tried_places:
        if place.kind == "bundle":
            with opened(place.place) as bundle:
                if not trust.trusted(bundle.digest):
                    unknown.append(place.place)
    if not unknown:
        return
    warning = (
        f"{len(unknown)} bundles were not made here (the first: {unknown[0]}). To try them runs their code on this "
        "machine, as you."
    )
    prompt = trust.terminal()
    if prompt is None:
        raise BundleError(
            f"{warning} Nothing was run: add --yes, or look first: tape verify, tape open"
        )
    question = f"{warning}\nType {trust.WORD} to run them, anything else to leave it: "
    if prompt(question).strip().lower() != trust.WORD:
        raise BundleError("not run")


__all__ = ["RESULTS", "Sweep", "SweepOptions", "require_trust", "sweep", "try_candidates"]
