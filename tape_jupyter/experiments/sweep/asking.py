"""Recorded calls that a candidate asks again, live, before its runs: with changed parameters, another
prompt. The answers are kept beside the rows, in the calls' places, and are paid once.
"""

from __future__ import annotations

import base64
import hashlib
import json
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

from tape_jupyter.cassette import paths
from tape_jupyter.cassette.cassette import Cassette
from tape_jupyter.cassette.index_entries import Entry
from tape_jupyter.cassette.runs import current_run_ids
from tape_jupyter.cassette.takes import files as takes_files
from tape_jupyter.cassette.takes.promotion import promote
from tape_jupyter.core.call import Request
from tape_jupyter.core.progress import Tell, ignore_progress
from tape_jupyter.core.temp_dirs import scratch
from tape_jupyter.errors import TapeError, TapeUsageError
from tape_jupyter.experiments.resending import price, resend
from tape_jupyter.experiments.sampling.budget import Budget
from tape_jupyter.experiments.sweep import candidate as candidates
from tape_jupyter.experiments.sweep.candidate import Candidate
from tape_jupyter.experiments.sweep.places import TriedPlace
from tape_jupyter.experiments.sweep.store import RowStore

TAKE = "try"


@dataclass(slots=True)
class ResentRun:
    """What was asked again of one run: files of its .tapes folder, by their paths in it; how many
    calls, and what they cost. `complete`: all that the candidate wants.
    """

    files: dict[str, bytes] = field(default_factory=dict)
    live: int = 0
    cost: Decimal = Decimal(0)
    done: list[str] = field(default_factory=list)
    complete: bool = False

    def record(self) -> dict[str, Any]:
        files = {name: base64.b64encode(data).decode() for name, data in self.files.items()}
        return {
            "files": files, "live": self.live, "cost": str(self.cost), "done": self.done,
            "whole": self.complete,
        }  # fmt: skip

    def write_files(self, tapes: Path) -> None:
        for name, data in self.files.items():
            goal = tapes.joinpath(*name.split("/"))
            goal.parent.mkdir(parents=True, exist_ok=True)
            goal.write_bytes(data)


def kept_answers(store: RowStore, key: str) -> ResentRun:
    """What was asked before; nothing where nothing was."""
    try:
        stored = json.loads(store.get(f"takes/{key}.json"))
    except (OSError, ValueError):
        return ResentRun()
    files = {name: base64.b64decode(data) for name, data in stored["files"].items()}
    return ResentRun(
        files, stored["live"], Decimal(stored["cost"]), stored["done"], stored["whole"]
    )


def key_of(place: TriedPlace, candidate: Candidate) -> str:
    rules = json.dumps([dict(rule) for rule in candidate.requests], sort_keys=True, default=str)
    return hashlib.sha256(f"{place.digest}\n{rules}".encode()).hexdigest()[:32]


def require_limit(tried: Sequence[Candidate], budget: Budget) -> None:
    """Raises TapeUsageError where candidates ask models again and no limit is set to that."""
    names = ", ".join(each.name for each in tried if each.requests)
    if names and budget.max_cost is None and budget.max_calls is None:
        raise TapeUsageError(
            f"{names} asks models again, live: say what that may cost (--max-cost USD) or how many calls may go out "
            "(--max-calls N). Nothing was sent"
        )


def request_missing(
    places: Sequence[TriedPlace], tried: Sequence[Candidate], store: RowStore, budget: Budget,
    on_progress: Tell = ignore_progress,
) -> None:  # fmt: skip
    """Ask what is not there yet, as long as the budget has room; each answer is kept at once.
    Raises TapeUsageError where no limit is given, or it cannot be kept.
    """
    pairs = [(place, each) for each in tried if each.requests for place in places]
    require_limit(tried, budget)
    for number, (place, candidate) in enumerate(pairs):
        on_progress(f"asking again, paid {price.dollars(budget.spent)}", number, len(pairs))
        key = key_of(place, candidate)
        before = kept_answers(store, key)
        if before.complete:
            continue
        try:
            with _copy_tapes(place) as tapes:
                if not _ask_missing(tapes, candidate, store, key, before, budget):
                    return
        except TapeUsageError:
            raise
        except TapeError:  # a bundle that is not whole: its row says so
            continue


@contextmanager
def _copy_tapes(place: TriedPlace) -> Iterator[Path]:
    """A copy of a run's recordings."""
    with scratch("ask") as folder:
        if place.kind == "notebook":
            tapes = paths.folder(Path(place.place).resolve())
            shutil.copytree(tapes, folder / tapes.name, ignore=shutil.ignore_patterns(takes_files.DELETED))  # fmt: skip
            yield folder / tapes.name
            return
        from tape_jupyter.bundle import replay as bundle_replay
        from tape_jupyter.bundle.archive import opened

        with opened(place.place) as bundle:
            session, _ = bundle_replay.laid_out(bundle, folder / "bundle")
            yield paths.folder(session)


def _ask_missing(
    tapes: Path,
    candidate: Candidate,
    store: RowStore,
    key: str,
    answers: ResentRun,
    budget: Budget,
) -> bool:
    """Ask what is missing of one run; False where the budget has no room for it."""
    there = {file for file in tapes.rglob("*") if file.is_file()}
    answers.write_files(tapes)
    answers.complete = True
    for path, entry, rule in list(_find_wanted_calls(tapes, candidate)):
        name = f"{paths.stem(path)}/{entry.name}"
        request = entry.request()
        if name in answers.done or not isinstance(request, Request):
            continue
        settings, message = candidates.settings_of(rule, request)
        planned = resend.plan_resend([path], entry.name, settings=settings, message=message)
        budget.require(planned.estimate)
        if not budget.reserve(planned.estimate.most):
            return False
        paid: Decimal | None = None
        try:
            done = resend.send_planned(planned, TAKE)
            paid = done.paid
            answers.live, answers.cost = answers.live + 1, answers.cost + (paid or Decimal(0))
            promote(done.take)
        except TapeUsageError:  # no answer, or an error: it is asked again another time
            answers.complete = False
            continue
        finally:
            budget.record_payment(planned.estimate.most, paid)
        answers.done.append(name)
        answers.files = {
            file.relative_to(tapes).as_posix(): file.read_bytes()
            for file in tapes.rglob("*")
            if file.is_file() and file not in there and file.suffix != ".lock"
        }
        store.write_file(
            f"takes/{key}.json", json.dumps({**answers.record(), "whole": False}).encode()
        )
    store.write_file(f"takes/{key}.json", json.dumps(answers.record()).encode())
    return True


def _find_wanted_calls(tapes: Path, candidate: Candidate) -> Iterator[tuple[Path, Entry, Any]]:
    """The calls that the rules speak of, each once, with the first rule that fits."""
    seen: set[str] = set()
    for path in paths.cassettes_in(tapes):
        book = Cassette.open(path)
        used = current_run_ids(book.runs)
        calls = [entry for entry in book.calls if entry.run in used]
        for rule in candidate.requests:
            for entry in candidates.fitting(rule, calls):
                if entry.name not in seen and entry.head().get("kind") == "model":
                    seen.add(entry.name)
                    yield path, entry, rule
