"""`tape sample NB CALL -k 10`: live replies at one recorded call, each in a take of its own, each
continued from the tape.

The takes are named by what is sent: a second run finds the answers of the first, continues them
again (that costs nothing) and pays for those that are missing.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

from tape_jupyter.cassette import paths
from tape_jupyter.cassette.cassette import Cassette
from tape_jupyter.cassette.index_entries import Entry
from tape_jupyter.cassette.records import response_section
from tape_jupyter.cassette.runs import RESENT, current_runs, run_of
from tape_jupyter.cassette.takes import files
from tape_jupyter.cassette.takes.promotion import promote
from tape_jupyter.core.call import Reply, Request
from tape_jupyter.core.plain_text import format_count
from tape_jupyter.core.progress import Tell, ignore_progress
from tape_jupyter.errors import TapeError, TapeUsageError
from tape_jupyter.experiments.causes.parts import notebook_cells
from tape_jupyter.experiments.causes.sides import Side, SideSources
from tape_jupyter.experiments.check import Check, CheckedRun
from tape_jupyter.experiments.recorded_job import job_of, saved_cells
from tape_jupyter.experiments.resending import price, resend
from tape_jupyter.experiments.sampling.budget import Budget
from tape_jupyter.experiments.sampling.shares import OutcomeShare, shares
from tape_jupyter.experiments.trials.needed import depends_on
from tape_jupyter.experiments.trials.runner import Trial, TrialRunner
from tape_jupyter.providers import conversation
from tape_jupyter.reports import listing
from tape_jupyter.secrets.registry import Secrets

SHOWN = 60
"""Characters of an answer by which it is told from others in the table, where no check is given."""


@dataclass(frozen=True, slots=True)
class Ask:
    """What is asked again: the call, and what is another in its request (as in `tape resend`).
    `pace`: when the other, recorded replies arrive as the notebook goes on.
    """

    notebook: Path
    call: str
    settings: Sequence[str] = ()
    message: str | None = None
    of: str = ""
    key: str = ""
    name: str | None = None
    pace: str = ""

    def plan(self) -> resend.ResendPlan:
        return resend.plan_resend(
            listing.list_cassettes(self.notebook, self.name), self.call, settings=self.settings,
            message=self.message, of=self.of, key=self.key,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Sample:
    """One answer: the take that holds it, its gist, what it cost, and how the notebook came out."""

    take: str
    answer: str
    paid: Decimal | None
    run: CheckedRun | None = None
    before: bool = False
    """It was there already."""

    def outcome(self, *, checked: bool) -> str:
        if self.run is None or not checked:
            return self.answer[:SHOWN]
        if self.run.verdict == "unresolved":
            return f"unresolved: {self.run.why}"[:SHOWN]
        return self.run.value or self.run.verdict

    def record(self) -> dict[str, Any]:
        return {
            "take": self.take, "answer": self.answer, "before": self.before,
            "paid": None if self.paid is None else float(self.paid),
            "run": self.run.record() if self.run is not None else None,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Sampled:
    """All of it. `failed` are calls that gave no answer, `stopped` is why not all were made."""

    request: Ask
    requested: int
    check: Check
    samples: tuple[Sample, ...]
    spent: Decimal
    unknown: Decimal = Decimal(0)
    """What calls of unknown cost may have cost, at most."""
    failed: tuple[str, ...] = ()
    stopped: str = ""

    @property
    def outcomes(self) -> list[OutcomeShare]:
        return shares(each.outcome(checked=bool(self.check.kind)) for each in self.samples)

    @property
    def is_complete(self) -> bool:
        return len(self.samples) >= self.requested

    def record(self) -> dict[str, Any]:
        return {
            "notebook": str(self.request.notebook), "call": self.request.call, "wanted": self.requested,
            "check": self.check.text, "outcomes": [each.record() for each in self.outcomes],
            "samples": [each.record() for each in self.samples], "paid": float(self.spent),
            "unknown": float(self.unknown), "failed": list(self.failed), "stopped": self.stopped,
        }  # fmt: skip

    def text(self) -> str:
        """For people: a table of outcomes with their shares and 95 % intervals."""
        what = self.check.text or "the answer"
        lines = [
            f"{what}, in {len(self.samples)} of {format_count(self.requested, 'sample')} (95 % Wilson intervals):"
        ]
        for each in self.outcomes:
            bounds = f"{each.low:6.1%} to {each.high:6.1%}"
            lines.append(f"  {each.count:>4}  {each.share:6.1%}  {bounds}   {each.outcome}")
        if not self.check.kind:
            lines += _describe_endings(self.samples)
        names = [each.take for each in self.samples]
        if names:
            lines.append(f"takes: {names[0]}" + (f" to {names[-1]}" if len(names) > 1 else ""))
        again = sum(each.before for each in self.samples)
        paid = f"paid now: {price.dollars(self.spent)}"
        if self.unknown:
            paid += f", and {price.dollars(self.unknown)} at most for calls whose cost is not known"
        lines.append(paid + (f"; {again} answers were there already" if again else ""))
        lines += [f"! {each}" for each in self.failed]
        return "\n".join([*lines, *([f"! {self.stopped}"] if self.stopped else [])])


def _describe_endings(samples: Sequence[Sample]) -> list[str]:
    """How the notebook came out, of those where it did not run through."""
    reasons = [each.run.why for each in samples if each.run and each.run.verdict != "passes"]
    return [f"  of these {reasons.count(each)}: {each}" for each in dict.fromkeys(reasons)]


def sample_answers(
    question: Ask,
    count: int,
    check: Check,
    budget: Budget,
    *,
    calls: int = 4,
    before: Callable[[resend.ResendPlan, int], None] = lambda _plan, _missing: None,
    on_progress: Tell = ignore_progress,
) -> Sampled:
    """Have `count` answers, and the notebook continued with each.

    `calls` go out at once; `before` hears, before
    anything is sent, what will be, and how many times. On Ctrl-C what is under way is waited for
    and kept. Raises TapeUsageError, CassetteError.
    """
    planned = question.plan()
    continued = _Continued(question, planned, check)
    prefix = f"sample-{_digest_plan(planned)}"
    have = _find_answers(planned.book, prefix)
    missing = max(0, count - len(have))
    if missing:
        budget.require(planned.estimate)
    sender = _Sender(question, planned, prefix, budget)
    done: list[Sample] = []
    with TrialRunner(continued.job) as runner:
        continued.require_outcomes(runner.recording.run)
        before(planned, missing)
        _send_calls(sender, missing, calls, on_progress)
        samples = sorted([*have[:count], *sender.made], key=lambda each: _parse_number(each.take))
        for number, each in enumerate(samples):
            on_progress("continuing from the tape", number, count)
            done.append(replace(each, run=continued.run(runner, each.take)))
    return Sampled(
        question,
        count,
        check,
        tuple(done),
        budget.spent,
        budget.unknown,
        tuple(sender.failed),
        sender.stopped,
    )


class _Sender:
    """Sends the request, each time into a take of its own."""

    def __init__(
        self, question: Ask, planned: resend.ResendPlan, prefix: str, budget: Budget
    ) -> None:
        self.ask, self.planned, self.prefix, self.budget = question, planned, prefix, budget
        self.made: list[Sample] = []
        self.failed: list[str] = []
        self.stopped = ""
        self._taken = set(files.take_names(planned.book.root))
        self._lock = threading.Lock()

    def send(self) -> bool:
        """One call; False where the budget has no room for it."""
        most = self.planned.estimate.most
        if not self.budget.reserve(most):
            self.stopped = self.budget.full(most)
            return False
        paid: Decimal | None = None
        try:
            done = resend.send_planned(self.ask.plan(), self._reserve_name())
            paid = done.paid
            self._keep_answer(done)
        except TapeError as error:
            self.failed.append(str(error))
        finally:
            self.budget.record_payment(most, paid)
        return True

    def _keep_answer(self, done: resend.Resent) -> None:
        name = files.take_name(done.take.path)
        try:
            promote(done.take)
        except TapeUsageError:  # an error, or cut short: the take keeps it
            self.failed.append(f"take {name}: the answer is {done.reply.status or 'none'}")
            return
        self.made.append(Sample(name, _summarize_reply(done.reply), done.paid))

    def _reserve_name(self) -> str:
        with self._lock:
            number = 1
            while f"{self.prefix}-{number}" in self._taken:
                number += 1
            self._taken.add(f"{self.prefix}-{number}")
            return f"{self.prefix}-{number}"


def _send_calls(sender: _Sender, count: int, calls: int, on_progress: Tell) -> None:
    """So many calls, several at once; those under way are waited for, whatever happens."""
    pool = ThreadPoolExecutor(max(1, calls), thread_name_prefix="tape-sample")
    try:
        waiting = [pool.submit(sender.send) for _ in range(count)]
        for number, future in enumerate(as_completed(waiting), 1):
            future.result()
            on_progress(f"paid {price.dollars(sender.budget.spent)}", number, count)
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


class _Continued:
    """The notebook replayed with an answer in the call's place, offline: a trial each."""

    def __init__(self, question: Ask, planned: resend.ResendPlan, check: Check) -> None:
        path, self.book, self.entry = question.notebook.resolve(), planned.book, planned.entry
        saved = saved_cells(path)
        check.require(len(saved))
        side = Side(
            paths.stem(self.book.path), self.book, current_runs(map(run_of, self.book.runs))
        )
        self.sources, ids = [cell.source for cell in saved], [cell.id for cell in saved]
        cells = notebook_cells(side, self.sources, ids, SideSources(path, side))
        parent_run = side.parent(self.entry.run)
        cell_numbers = (cell.number for cell in cells if cell.run and cell.run.id == parent_run)
        self.first = next(cell_numbers, 0)
        self.check = check
        job = job_of(path, saved, side, cells, check, [self.first])
        self.job = replace(job, pace=question.pace)

    def require_outcomes(self, recorded: CheckedRun) -> None:
        """Raises TapeUsageError where the check cannot be answered, or the call has no say in it."""
        if not self.check.kind:
            return
        if recorded.verdict == "unresolved" and (recorded.asked or not recorded.cell):
            raise TapeUsageError(
                f"--check {self.check.text}: as recorded, {recorded.why}. Nothing was sent"
            )
        if not depends_on(self.check, self.sources, self.first):
            always = recorded.value or recorded.verdict
            raise TapeUsageError(
                f"--check {self.check.text}: it is always {always}: call {self.entry.id} does not affect it. "
                "Nothing was sent"
            )

    def run(self, runner: TrialRunner, take: str) -> CheckedRun:
        answer = self.book.take(take).by_name[self.entry.run, self.entry.id].reply()
        call_answer = (self.entry.run, self.entry.id, response_section(answer, Secrets()))
        return runner.run(Trial(answers=[call_answer], first=self.first)).run


def _digest_plan(planned: resend.ResendPlan) -> str:
    """Of the call, and of what is sent in its place."""
    request = planned.request
    head = f"{planned.entry.name} {request.method} {request.url}\n"
    return hashlib.sha256(head.encode() + request.body).hexdigest()[:8]


def _parse_number(take: str) -> int:
    return int(take.rpartition("-")[2])


def _find_answers(book: Cassette, prefix: str) -> list[Sample]:
    """The answers of earlier runs, those of a run that was killed between the call and its place
    among them.
    """
    samples = []
    for name in files.take_names(book.root):
        start, _, number = name.rpartition("-")
        if start != prefix or not number.isdecimal():
            continue
        take = book.take(name)
        answer = next((each for each in take.calls if _is_answer(take, each)), None)
        if answer is None or not isinstance(reply := answer.reply(), Reply):
            continue
        if not take.overrides:
            try:
                promote(take)
            except TapeUsageError:
                continue
        request = answer.request()
        paid = price.paid(request, reply) if isinstance(request, Request) else None
        samples.append(Sample(name, _summarize_reply(reply), paid, before=True))
    return sorted(samples, key=lambda each: _parse_number(each.take))


def _is_answer(take: Cassette, entry: Entry) -> bool:
    return entry.book is take and take.by_run.get(entry.run, {}).get("mode") == RESENT


def _summarize_reply(reply: Reply) -> str:
    """An answer in a line."""
    summary = conversation.gist(conversation.reply_body_turns(reply.headers, reply.readable), 200)
    if summary:
        return " ".join(summary.split())
    body = listing.readable_body(reply.readable, reply.headers)
    return " ".join(str(body).split())[:200]
