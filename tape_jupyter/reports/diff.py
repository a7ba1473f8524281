"""How two cassettes, or a cassette and a take, differ: call by call, in the words of their records.

`tape.diff(a, b)`. Reads, never writes. Compared are the calls that a replay would use.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from tape_jupyter.audit.drift import Drift, of_pairs, of_runs
from tape_jupyter.audit.run_view import AuditedCall, call_seen, view_run
from tape_jupyter.cassette.cassette import Cassette, Entry, Overridden
from tape_jupyter.cassette.records import response_section
from tape_jupyter.cassette.runs import current_run_ids
from tape_jupyter.core.call import Reply, Value
from tape_jupyter.core.plain_text import format_count
from tape_jupyter.core.progress import Tell, count_items, ignore_progress
from tape_jupyter.encoding.yaml import emitter
from tape_jupyter.secrets.registry import Secrets

LINES = 40
"""Of one call's diff that are shown; the others are counted."""

_PLUMBING = ("sha256", "plain", "wire", "reads", "waits", "cuts")
_NEWS = ("headers", "version", "reason", "scrubbed")


@dataclass(frozen=True, slots=True)
class CallDifference:
    """One call that is not the same in both: its id in either ("" where it is in one only), and a
    diff in lines.
    """

    what: Literal["changed", "only in A", "only in B"]
    a: str
    b: str
    title: str
    lines: tuple[str, ...] = ()

    def record(self) -> dict[str, Any]:
        return {**asdict(self), "lines": list(self.lines)}


def diff(
    a: Cassette | str | Path, b: Cassette | str | Path, tell: Tell = ignore_progress
) -> list[CallDifference]:
    """The calls that differ, in the order of A, then those that only B has. Raises CassetteError.

    Calls are paired by run and id (a take keeps those of its base), else by what was asked, in
    order.
    """
    ours, theirs = (
        _find_used_calls(each if isinstance(each, Cassette) else Cassette.open(each))
        for each in (a, b)
    )
    differences: list[CallDifference] = []
    for entry, other in count_items(list(pair_calls(ours, theirs)), "comparing calls", tell):
        if entry is None or other is None:
            differences.append(_build_one_sided(entry, other))
        elif entry is not other and (lines := changed_lines(entry, other)):
            differences.append(
                CallDifference("changed", entry.name, other.name, entry.title, tuple(lines))
            )
    return differences


def drifts(a: Cassette, b: Cassette, on_progress: Tell = ignore_progress) -> list[Drift]:
    """What changed around the calls that both hold: what answered, code, libraries, moment. Raises
    CassetteError.
    """
    met: list[tuple[AuditedCall, AuditedCall]] = []
    runs: dict[tuple[str, str], None] = {}
    for entry, other in count_items(
        list(pair_calls(_find_used_calls(a), _find_used_calls(b))),
        "looking for what changed around calls",
        on_progress,
    ):
        if entry is None or other is None or entry is other:
            continue
        met.append((call_seen(entry), call_seen(other)))
        runs[entry.run, other.by if isinstance(other, Overridden) and other.by else other.run] = (
            None
        )
    around = [
        each
        for one, other in runs
        for each in of_runs(view_run(a, one, limit=0), view_run(b, other, limit=0))
    ]
    return list(dict.fromkeys([*of_pairs(met), *around]))


def _find_used_calls(cassette: Cassette) -> list[Entry]:
    used = current_run_ids(cassette.runs)
    return [entry for entry in cassette.calls if entry.run in used]


def pair_calls(
    ours: Sequence[Entry], theirs: Sequence[Entry]
) -> Iterator[tuple[Entry | None, Entry | None]]:
    by_name = {(entry.run, entry.id): entry for entry in theirs}
    same = {
        id(entry): by_name.pop((entry.run, entry.id))
        for entry in ours
        if (entry.run, entry.id) in by_name
    }
    by_match: dict[str, list[Entry]] = {}
    for entry in reversed(list(by_name.values())):
        by_match.setdefault(entry.match, []).append(entry)
    for entry in ours:
        left = by_match.get(entry.match)
        yield entry, same.get(id(entry)) or (left.pop() if left else None)
    rest = {id(entry) for left in by_match.values() for entry in left}
    yield from ((None, entry) for entry in theirs if id(entry) in rest)


def _build_one_sided(entry: Entry | None, other: Entry | None) -> CallDifference:
    if entry is not None:
        return CallDifference("only in A", entry.name, "", entry.title)
    assert other is not None
    return CallDifference("only in B", "", other.name, other.title)


def changed_lines(entry: Entry, other: Entry) -> list[str]:
    """The diff of two replies: what was answered; of one and the same call also how (its headers)."""
    one, two = entry.reply(), other.reply()
    before, after = _emit_reply(one), _emit_reply(two)
    if (
        before == after
        and entry.run == other.run
        and _emit_with_headers(one) != _emit_with_headers(two)
    ):
        before, after = _emit_with_headers(one), _emit_with_headers(two)
    lines = list(difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=1))[
        2:
    ]
    if len(lines) > LINES:
        more = [f"... {format_count(len(lines) - LINES, 'more line')}"]
    else:
        more = []
    return [*lines[:LINES], *more]


def _emit_reply(reply: Reply | Value) -> str:
    """A reply as its record says it, without digests, timing and headers."""
    section = {
        key: value for key, value in response_section(reply, Secrets()).items() if key not in _NEWS
    }
    return _emit_section(section)


def _emit_with_headers(reply: Reply | Value) -> str:
    return _emit_section(response_section(reply, Secrets()))


def _emit_section(section: Any) -> str:
    return emitter.emit(_drop_plumbing(section)).removeprefix("---\n").removesuffix("...\n")


def _drop_plumbing(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _drop_plumbing(child) for key, child in value.items() if key not in _PLUMBING}
    if isinstance(value, list):
        return [_drop_plumbing(item) for item in value]
    return value


def diff_text(differences: Sequence[CallDifference], a: str, b: str) -> str:
    """For people."""
    if not differences:
        return f"{a} and {b} answer every call the same way"
    blocks = [f"--- {a}\n+++ {b}"]
    for each in differences:
        call = (each.a or each.b).partition("/")[2]
        blocks.append(
            "\n".join(
                [f"{each.what}: {call} ({each.title})", *(f"  {line}" for line in each.lines)]
            )
        )
    return "\n".join(blocks)
