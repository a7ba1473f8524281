"""A recorded run as a report sees it: its records, and of each call what can be told. Reads a
cassette, writes nothing; a record that cannot be read is told as such, and no other suffers by it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice
from typing import Any

from tape_jupyter.cassette.cassette import Cassette, Entry
from tape_jupyter.core.call import FunctionCall, Reply, Request, Value
from tape_jupyter.core.progress import Tell, count_items, ignore_progress
from tape_jupyter.errors import CassetteError
from tape_jupyter.providers import hosts, http, registry
from tape_jupyter.providers.json_access import as_mapping, as_text
from tape_jupyter.providers.metadata import Particulars, particulars
from tape_jupyter.providers.registry import Facts

_AGAIN = frozenset({408, 409, 425, 429})
NO_FACTS, NO_PARTICULARS = Facts(), Particulars()


@dataclass(frozen=True, slots=True)
class AuditedCall:
    """One call. `reply` and `request` are None where they cannot be read; `problem` then says why."""

    id: str
    head: Mapping[str, Any]
    facts: Facts = NO_FACTS
    more: Particulars = NO_PARTICULARS
    request: Request | FunctionCall | None = None
    reply: Reply | Value | None = None
    match: str = ""
    lineage: str = ""
    problem: str = ""

    @property
    def kind(self) -> str:
        return as_text(self.head.get("kind")) or "host"

    @property
    def name(self) -> str:
        """The tool's name, or the model's."""
        if isinstance(self.request, FunctionCall):
            return self.request.name
        return self.facts.model or self.host

    @property
    def is_model(self) -> bool:
        """A model's answer is drawn; an embedding's is not, and counts as a retrieval's part."""
        return self.kind == "model" and bool(self.facts.wire) and not self.is_embedding

    @property
    def is_embedding(self) -> bool:
        return "embed" in self.facts.api.lower()

    @property
    def url(self) -> str:
        return self.request.url if isinstance(self.request, Request) else ""

    @property
    def host(self) -> str:
        return self.url.partition("://")[2].partition("/")[0].partition("?")[0]

    @property
    def region(self) -> str:
        return self.more.region or (hosts.region(self.url) if self.url else "")

    @property
    def status(self) -> int | None:
        return self.reply.status if isinstance(self.reply, Reply) else None

    @property
    def was_refused(self) -> bool:
        """Whether it failed in a way that one tries again: busy, too many, a server's or the
        network's fault.
        """
        if isinstance(self.reply, Reply) and self.reply.status is None:
            return True
        return self.status is not None and (self.status in _AGAIN or self.status >= 500)

    @property
    def kit(self) -> Mapping[str, Any]:
        return as_mapping(self.head.get("kit"))

    @property
    def began(self) -> float | None:
        """Seconds since the epoch; None where the record does not say."""
        try:
            return datetime.fromisoformat(as_text(self.head.get("at"))).timestamp()
        except (ValueError, OverflowError):
            return None

    @property
    def seconds(self) -> float | None:
        value = self.head.get("seconds")
        if isinstance(value, int | float) and value >= 0:
            return float(value)
        return None


@dataclass(frozen=True, slots=True)
class AuditedRun:
    """One run. `end` is None where it has no end mark: the kernel died, or still runs."""

    id: str
    record: Mapping[str, Any]
    end: Mapping[str, Any] | None
    calls: tuple[AuditedCall, ...]
    notebook: str = ""

    @property
    def kit(self) -> Mapping[str, Any]:
        return as_mapping(self.record.get("kit"))

    @property
    def pins(self) -> Mapping[str, Any]:
        return as_mapping(self.record.get("pins"))

    @property
    def cold(self) -> tuple[str, ...]:
        """What was said while recording that cannot be replayed."""
        notes = (self.end or {}).get("cold")
        return tuple(str(each) for each in notes) if isinstance(notes, list) else ()

    @property
    def models(self) -> list[AuditedCall]:
        return [call for call in self.calls if call.is_model]


def view_run(cassette: Cassette, run: str, *, limit: int | None = None) -> AuditedRun:
    """The run of that id; of its calls the first `limit`."""
    calls = (entry for entry in cassette.calls if entry.run == run)
    return _build_run(cassette, run, islice(calls, limit))


def all_seen(
    cassette: Cassette,
    runs: Iterable[str],
    *,
    notebook: str = "",
    on_progress: Tell = ignore_progress,
) -> list[AuditedRun]:
    """Several runs of a cassette, from one look at its calls."""
    run_ids = list(runs)
    by_run: dict[str, list[Entry]] = {run: [] for run in run_ids}
    for entry in cassette.calls:
        if entry.run in by_run:
            by_run[entry.run].append(entry)
    calls = count_items(
        [entry for run in run_ids for entry in by_run[run]],
        f"calls of {cassette.path.name}",
        on_progress,
    )
    return [_build_run(cassette, run, islice(calls, len(by_run[run])), notebook) for run in run_ids]


def _build_run(
    cassette: Cassette, run: str, entries: Iterable[Entry], notebook: str = ""
) -> AuditedRun:
    return AuditedRun(
        run, cassette.by_run.get(run, {}), cassette.ended.get(run), calls_seen(entries), notebook
    )


def calls_seen(entries: Iterable[Entry]) -> tuple[AuditedCall, ...]:
    """In the order they stand in. A call that repeats one that was refused is its next attempt,
    whoever retried it.
    """
    refused: Counter[str] = Counter()
    calls = []
    for call in map(call_seen, entries):
        attempt = max(call.more.attempt, 1 + refused[call.match])
        calls.append(
            replace(call, more=replace(call.more, attempt=attempt))
            if attempt > call.more.attempt
            else call
        )
        refused[call.match] = refused[call.match] + 1 if call.was_refused else 0
    return tuple(calls)


def call_seen(entry: Entry) -> AuditedCall:
    """What can be told of one call, from its request and its reply."""
    head: dict[str, Any] = {}
    try:
        head = entry.head()
        request, reply = entry.request(), entry.reply()
    except (CassetteError, OSError) as error:
        return AuditedCall(
            entry.id, head, match=entry.match, lineage=entry.lineage, problem=str(error)
        )
    facts, more = NO_FACTS, NO_PARTICULARS
    if isinstance(request, Request):
        answer = reply if isinstance(reply, Reply) else None
        body = http.loads(http.decoded_body(request.headers, request.body) or b"")
        reply_json = None if answer is None else registry.said_json(answer)
        facts = registry.call_facts(request, answer, parsed=body, reply_json=reply_json)
        more = particulars(request, answer, parsed=body, reply_json=reply_json)
    return AuditedCall(entry.id, head, facts, more, request, reply, entry.match, entry.lineage)
