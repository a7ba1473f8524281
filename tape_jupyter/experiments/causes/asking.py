"""`--on-divergence live`: what a trial asks that is on neither tape is asked here, outside of its
process, and its answer kept in a take. A trial itself never reaches the network.

Each request is asked once; the trial is then run again. The most that a request can cost is known
before it goes out, or it does not.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, TypedDict

from tape_jupyter.cassette import records
from tape_jupyter.cassette.cassette import Cassette
from tape_jupyter.cassette.records import moment_text, response_section
from tape_jupyter.cassette.takes import files
from tape_jupyter.core.call import Reply, Request, Where
from tape_jupyter.errors import TapeError, TapeUsageError
from tape_jupyter.experiments.causes.search import Runs
from tape_jupyter.experiments.resending import keys, live, price
from tape_jupyter.experiments.resending.resend import _add_headers
from tape_jupyter.experiments.sampling.budget import Budget
from tape_jupyter.experiments.trials.runner import Trial, TrialResult
from tape_jupyter.providers import registry
from tape_jupyter.replay.player import POLICIES
from tape_jupyter.secrets.registry import Secrets

TAKE = "why"


class TrialLimits(TypedDict, total=False):
    """`on_divergence`: stop, stale or live; `max_cost` in US dollars; `timeout`: seconds of a trial;
    `pace`: when recorded replies arrive (one of PACES).
    """

    on_divergence: str
    max_calls: int | None
    max_cost: float | None
    timeout: float | None
    pace: str | None


def require_limits(limits: TrialLimits) -> tuple[str, Budget]:
    """Raises TapeUsageError where requests may go out without a limit, or limits have no use."""
    policy = limits.get("on_divergence") or "stop"
    calls = limits.get("max_calls")
    cost = limits.get("max_cost")
    limited = calls is not None or cost is not None
    if policy not in POLICIES:
        raise TapeUsageError(
            f"{policy[:80]!r} is not a choice at a changed request ({', '.join(POLICIES)})"
        )
    if policy == "live" and not limited:
        raise TapeUsageError(
            "--on-divergence live: say how much with --max-calls N or --max-cost USD"
        )
    if policy != "live" and limited:
        raise TapeUsageError("--max-calls and --max-cost go with --on-divergence live")
    return policy, Budget(None if cost is None else Decimal(str(cost)), calls)


@dataclass(slots=True)
class Asker:
    """Runs trials, and asks what they miss. `runs` is the bad side's newest run, which answers where
    a cell has none.
    """

    inner: Runs
    cassette: Cassette
    runs: str
    budget: Budget
    send: Callable[[Request], Reply] = live.send_live
    refused: str = ""
    """Why a request was not sent."""
    _added: dict[str, list[Mapping[str, Any]]] = field(default_factory=dict)
    _take: Cassette | None = None

    def run(self, trial: Trial) -> TrialResult:
        result = self.inner.run(self._add_answers(trial))
        while result.missing_request is not None:
            if not self._send_request(result.missing_request):
                why = f"{result.run.why} ({self.refused})"
                return replace(result, run=replace(result.run, why=why))
            result = self.inner.run(self._add_answers(trial))
        return result

    def _add_answers(self, trial: Trial) -> Trial:
        added = {run: [*trial.added.get(run, ()), *self._added.get(run, ())]
                 for run in dict.fromkeys((*trial.added, *self._added))}  # fmt: skip
        return replace(trial, added=added)

    def _send_request(self, call_record: Mapping[str, Any]) -> bool:
        """Send one request and keep its answer; False, and `refused`, where it may not go out."""
        request = records.section_request(call_record["request"])
        assert isinstance(request, Request)
        cost = price.estimate_unrecorded(request)
        try:
            self.budget.require(cost)
            sent = _add_headers(keys.with_key(request, os.environ))
        except TapeError as error:
            self.refused = f"not asked: {error}"
            return False
        if not self.budget.reserve(cost.most):
            self.refused = f"not asked: {self.budget.full(cost.most)}"
            return False
        secrets = Secrets()
        secrets.learn_environment(os.environ)
        secrets.learn_request(sent)
        began, start = datetime.now(UTC), time.monotonic()
        paid: Decimal | None = None
        try:
            reply = self.send(sent)
            paid = price.paid(request, reply)
        except TapeError as error:
            self.refused = f"not answered: {error}"
            return False
        finally:
            self.budget.record_payment(cost.most, paid)
        self._record_answer(
            call_record, request, reply, moment_text(began), time.monotonic() - start, secrets
        )
        return True

    def _record_answer(
        self, call_record: Mapping[str, Any], request: Request, reply: Reply, at: str, seconds: float,
        secrets: Secrets,
    ) -> None:  # fmt: skip
        """In a take of its own, and for the trials that follow."""
        parent = str(call_record["run"] or self.runs)
        same = self.cassette.by_run.get(parent, {})
        kept = {key: same[key] for key in ("cell", "source", "session", "title") if same.get(key)}
        if self._take is None:
            self._take = self.cassette.take(files.unused_name(self.cassette.root, TAKE))
        run = self._take.start_run(
            {"mode": "again", "parent": parent, **kept, "at": at}, {}, secrets
        )
        recorded_head = call_record["head"]
        kit = registry.call_facts(request, reply).record()
        head = records.Head(
            str(recorded_head["call"]),
            run,
            str(recorded_head["match"]),
            str(recorded_head["kind"]),
            Where(run, str(recorded_head["lineage"])),
            at,
            seconds,
            kit,
            discriminator=str(recorded_head.get("apart", "")),
        )
        entry = self._take.append_call(head, request, reply, secrets)
        self._take.end_run(run, {"outcome": "ok", "calls": 1}, secrets)
        mine = self._added.setdefault(parent, [])
        name = f"{recorded_head['call'][:8]}-{1000 + len(mine)}"  # among calls that only the good side made
        mine.append({
            "head": {**entry.head(), "call": name, "match": recorded_head["match"]}, "request": call_record["request"],
            "response": response_section(entry.reply(), secrets),
        })  # fmt: skip

    @property
    def summary(self) -> str:
        """What became of it, for people; "" where nothing was asked."""
        if not self.budget.calls:
            return ""
        spent = self.budget.spent + self.budget.unknown
        cost = f", {price.dollars(spent)}" if spent else ""
        if self._take is not None:
            kept = f", kept in take {files.take_name(self._take.path)}"
        else:
            kept = ""
        return f"{cost}{kept}"
