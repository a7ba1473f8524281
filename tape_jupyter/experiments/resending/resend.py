"""`tape resend NB CALL`: what would be sent and cost, the sending, and the answer in a take.

The answer lies in the take beside the recording, and plays nowhere, until it is promoted: then it
answers the call.
"""

from __future__ import annotations

import difflib
import json
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from tape_jupyter import __version__
from tape_jupyter.cassette import match_key, paths
from tape_jupyter.cassette.cassette import Cassette
from tape_jupyter.cassette.index_entries import Entry
from tape_jupyter.cassette.records import Head, moment_text
from tape_jupyter.cassette.runs import RESENT
from tape_jupyter.cassette.takes import files, overrides
from tape_jupyter.cassette.takes.promotion import RESENT_CALL, promote
from tape_jupyter.commands import override
from tape_jupyter.core.call import Reply, Request, Where
from tape_jupyter.errors import TapeUsageError
from tape_jupyter.experiments.resending import keys, live, price
from tape_jupyter.experiments.resending.edited_request import edited
from tape_jupyter.experiments.resending.price import CostEstimate
from tape_jupyter.providers import registry
from tape_jupyter.reports import diff, listing
from tape_jupyter.secrets.registry import Secrets


@dataclass(frozen=True, slots=True)
class ResendPlan:
    """What is about to be sent: in place of which call, with which key, and what that will cost."""

    book: Cassette
    entry: Entry
    request: Request
    sent: Request
    estimate: CostEstimate
    changes: tuple[str, ...]
    note: str = ""

    @property
    def cost(self) -> str:
        """What it will cost, in words."""
        return self.estimate.text

    def lines(self) -> list[str]:
        where = f"{self.request.method} {self.request.url.partition('?')[0]}"
        changed = list(self.changes) or ["as it was recorded"]
        return [
            f"{where}: {self.cost}",
            *(f"  {line}" for line in changed),
            *([f"  ! {self.note}"] * bool(self.note)),
        ]


@dataclass(frozen=True, slots=True)
class Resent:
    """The answer: the take and the call that hold it, how it differs from the recorded one, and
    what it cost.
    """

    take: Cassette
    entry: Entry
    of: Entry
    reply: Reply
    lines: tuple[str, ...]
    paid: Decimal | None
    promoted: bool = False

    @property
    def cost(self) -> str:
        if self.paid is None:
            return "its price is not known"
        return price.dollars(self.paid)

    def record(self) -> dict[str, Any]:
        return {
            "take": files.take_name(self.take.path), "path": str(self.take.path), "call": self.of.name,
            "resent": self.entry.name, "status": self.reply.status, "difference": list(self.lines), "cost": self.cost,
            "promoted": self.promoted,
        }  # fmt: skip

    def text(self) -> str:
        name = files.take_name(self.take.path)
        lines = [f"  {line}" for line in self.lines] or ["  the answer is the same"]
        if self.promoted:
            end = f"it answers call {self.of.id} in take {name} now; to play it: --take {name}"
        else:
            end = (
                f"to put it in the call's place: %tape takes promote {name} "
                f"(in a terminal: tape takes NB promote {name})"
            )
        return "\n".join(
            [f"take {name}: the answer to call {self.of.id}, sent again ({self.cost})", *lines, end]
        )


def plan_resend(
    cassettes: Sequence[Path], call: str, *, settings: Sequence[str] = (), message: str | None = None, of: str = "",
    key: str = "",
) -> ResendPlan:  # fmt: skip
    """What would be sent. Sends nothing. Raises TapeUsageError, CassetteError."""
    root = override.holding(cassettes, {"call": call, "of": of})
    book = Cassette.open(root)
    if of:
        files.require_take(root, of)
        book = book.take(of)
    entry = overrides.find_call(book, call)
    overrides.require_newest(entry, book)
    recorded_request, recorded_reply = entry.request(), entry.reply()
    if not isinstance(recorded_request, Request) or not isinstance(recorded_reply, Reply):
        raise TapeUsageError(
            f"call {entry.id} is of the function {entry.title}: only requests are sent again"
        )
    if recorded_reply.status == 101:
        raise TapeUsageError(
            f"call {entry.id} is a WebSocket: only a request with one reply is sent again"
        )
    request = edited(recorded_request, settings, message)
    sent = _add_headers(keys.with_key(request, os.environ, key))
    cost = price.estimate(recorded_request, request, recorded_reply)
    return ResendPlan(
        book,
        entry,
        request,
        sent,
        cost,
        tuple(_diff_requests(recorded_request, request)),
        keys.without_key(request, key),
    )


def send_planned(planned: ResendPlan, take: str = "", *, promoted: bool = False) -> Resent:
    """Send it, and write the answer to the take (a new one by itself). Raises TapeUsageError,
    CassetteError.
    """
    book, entry = planned.book, planned.entry
    goal = _choose_take(book, take)
    secrets = Secrets()
    secrets.learn_environment(os.environ)
    secrets.learn_request(planned.sent)
    began, start = datetime.now(UTC), time.monotonic()
    reply = live.send_live(planned.sent)
    answer = _write_answer(
        goal, entry, planned.request, reply, moment_text(began), time.monotonic() - start, secrets
    )
    lines = tuple(diff.changed_lines(entry, answer))
    done = Resent(goal, answer, entry, reply, lines, price.paid(planned.request, reply))
    if not promoted:
        return done
    promote(goal)
    return replace(done, promoted=True)


def _choose_take(book: Cassette, name: str) -> Cassette:
    if name:
        return book.take(name)
    if book.base is not None:
        return book
    return book.take(files.unused_name(book.root, "resend"))


def _write_answer(
    take: Cassette,
    of: Entry,
    request: Request,
    reply: Reply,
    at: str,
    seconds: float,
    secrets: Secrets,
) -> Entry:
    header = {"cassette": paths.stem(take.root), "made by": f"tape-jupyter {__version__}"}
    run = take.start_run(
        {"mode": RESENT, RESENT_CALL: of.name, "at": at, "title": f"resend {of.id}"},
        header,
        secrets,
    )
    matched = match_key.match_request(request, secrets, exact=match_key.exact_digest(request))
    recorded_head = of.head()
    kit = registry.call_facts(request, reply).record()
    head = Head(
        matched.match[:8], run, matched.match, str(recorded_head.get("kind", "host")), Where(run), at, seconds, kit,
        exact=matched.exact, request_json=matched.json, discriminator=matched.discriminator,
    )  # fmt: skip
    entry = take.append_call(head, request, reply, secrets)
    take.end_run(run, {"outcome": "ok", "calls": 1}, secrets)
    return entry


def _add_headers(request: Request) -> Request:
    """The headers that a cassette does not keep and a provider needs."""
    if request.body[:1] in (b"{", b"["):
        headers = {"content-type": "application/json"}
    else:
        headers = {}
    if registry.identify(request).wire == "anthropic":
        headers["anthropic-version"] = "2023-06-01"
    headers |= {"accept-encoding": "identity", "user-agent": f"tape-jupyter/{__version__}"}
    dropped = ("host", "content-length", "connection", "accept-encoding", "user-agent")
    kept = tuple((name, value) for name, value in request.headers if name.lower() not in dropped)
    more = tuple(
        (name, value)
        for name, value in headers.items()
        if not any(name == each.lower() for each, _ in kept)
    )
    return replace(request, headers=(*kept, *more))


def _diff_requests(before: Request, after: Request) -> list[str]:
    one, two = (_format_request(each) for each in (before, after))
    return list(difflib.unified_diff(one, two, lineterm="", n=0))[2:][: diff.LINES]


def _format_request(request: Request) -> list[str]:
    body = listing.readable_body(request.body, request.headers)
    return [
        request.url,
        *(
            body if isinstance(body, str) else json.dumps(body, indent=1, ensure_ascii=False)
        ).splitlines(),
    ]
