"""What a refused call is told: the call, the nearest recorded one, how they differ, what to do now.

A divergence: a call that a replay makes and the tape does not hold. Tells how it differs from the
recorded call in whose place it stands, and finds that call. What becomes of it the player decides,
or a person.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tape_jupyter.cassette import paths
from tape_jupyter.cassette.cassette import Entry
from tape_jupyter.cassette.match_key import (
    compared_fields,
    differing_fields,
    field_diff,
    likeness,
    match_key,
    nearest,
)
from tape_jupyter.core.call import FunctionCall, HostClass, Request
from tape_jupyter.core.plain_text import format_count, format_times
from tape_jupyter.core.real_clock import monotonic
from tape_jupyter.errors import CassetteError, UnmatchedCall
from tape_jupyter.replay.player import Frozen, Refuse
from tape_jupyter.secrets.registry import Secrets
from tape_jupyter.session.cell import Divergence, TapedCell

SEARCH_SECONDS, SEARCH_IN_ALL = 0.3, 3.0
"""What a search for the nearest call takes at most, however large the cassette, and what all those
of a cell take: thousands of tasks may be refused one after another.
"""


def title(call: Request | FunctionCall) -> str:
    if isinstance(call, FunctionCall):
        return f"{call.kind} {call.name}"
    return f"{call.method} {call.url.partition('?')[0]}"


def miss(
    cell: TapedCell, call: Request | FunctionCall, refused: Refuse, secrets: Secrets
) -> UnmatchedCall:
    """The refusal of one call, ready to raise. It is shown below the cell and saved with it: no
    secret is in it.
    """
    if refused.ended:
        return UnmatchedCall(
            f"{title(call)}: its cell has ended; in replay a call from a thread or task that outlives its cell is "
            "refused. Wait for it inside the cell (join, await, gather)."
        )
    where = shown_file(cell)
    if refused.frozen:
        return UnmatchedCall(_describe_frozen_call(cell, call, refused, where, secrets))
    if refused.times and not refused.why:
        return UnmatchedCall(
            f"{title(call)}: recorded {format_times(refused.times)} in {where}, and this cell now makes it once more. "
            "Nothing was sent. Record the cell again, or use %%tape new_episodes to add the new call."
        )
    lines = [f"{title(call)} is not on the tape ({where}). Nothing was sent."]
    lines += [refused.why] if refused.why else []
    reordered = False
    if isinstance(call, FunctionCall) or not refused.why:
        near, reordered = _format_nearest_call(cell, call, secrets)
        lines += near
    then = "%tape off, then " if cell.request.overruled else ""
    lines.append(
        f"Now: fix the difference, record the cell again ({then}%%tape record), or add it "
        f"({then}%%tape new_episodes)."
    )
    if cell.execution.selection.live:
        lines.append(f"Or let it go live as well: --live {boundary(call)}.")
    elif cell.replaying and cell.cassette is not None and cell.cassette.base is not None:
        lines.append(
            "Or, into the take: let it go live, or keep the recorded reply: --on-divergence live|stale."
        )
    return UnmatchedCall("\n".join(lines), reordered=reordered)


def boundary(call: Request | FunctionCall) -> str:
    """The word of --live and --freeze that is for this call's like."""
    if isinstance(call, FunctionCall):
        return f"tool:{call.name}"
    return f"host:{urlsplit(call.url).netloc}"


def shown_file(cell: TapedCell) -> str:
    """The file that a person finds: of a take that is not written yet, its cassette's."""
    if (
        cell.cassette is not None
        and cell.cassette.base is not None
        and not cell.cassette.path.exists()
    ):
        return cell.cassette.root.name
    return cell.path.name if cell.path else "the cassette"


def _describe_frozen_call(
    cell: TapedCell, call: Request | FunctionCall, refused: Refuse, where: str, secrets: Secrets
) -> str:
    if isinstance(call, FunctionCall):
        stub = f"--stub tool:{call.name}=JSON"
    else:
        stub = "a tool of its own and --stub"
    now = f"Now: give it {stub}, fix the difference, or let it run once without --freeze."
    if refused.times:
        return (
            f"{title(call)} is frozen, recorded {format_times(refused.times)} in {where}, and now made once more. "
            f"It did not run. {now}"
        )
    lines = [
        f"{title(call)} is frozen (--freeze), and no recording in {where} answers it. It did not run."
    ]
    return "\n".join([*lines, *_format_nearest_call(cell, call, secrets)[0], now])


def _describe_others(cassette: Path | None) -> str:
    """The cassettes of the same notebook that a cell may name instead."""
    others = [] if cassette is None else paths.cassettes_beside(cassette)[1:]
    names = ", ".join(map(paths.stem, others))
    return f" There are: {names} (%%tape replay NAME)." if names else ""


def _format_nearest_call(
    cell: TapedCell, call: Request | FunctionCall, secrets: Secrets
) -> tuple[list[str], bool]:
    """How it differs from the nearest recorded call, and whether only the order of its words does."""
    if cell.cassette is None or not cell.cassette.calls:
        none = "The cassette holds no calls yet."
        if not (cell.path and cell.path.exists()):
            none = f"There is no cassette {cell.path}.{_describe_others(cell.path)}"
        return [none], False
    ours = compared_fields(call, secrets=secrets)
    entry = nearest_call(cell, ours)
    if entry is None:
        field_lines = [
            f"  {name}: {str(value)[:200]!r}"
            for name, value in ours.items()
            if name not in ("tool", "method", "url")
        ]
        others = format_count(len(cell.cassette), "call")
        found = f"Nothing like it is recorded ({others} to other places)"
        if cell.findings.searched >= SEARCH_IN_ALL:
            found = f"What is recorded like it was not looked for: calls before it took {SEARCH_IN_ALL:.0f} s of that"
        return [
            f"{found}. It asks:",
            *field_lines[:5],
        ], False
    head = f"Nearest recorded call: {entry.id} (run {entry.run}, {entry.book.path.name}:{entry.line}); it differs in:"
    theirs = recorded_fields(entry) or {}
    diff = field_diff(theirs, ours)
    if not diff and (same := cell.cassette.matching(match_key(call, secrets))):
        place = f"{same[-1].id} of run {same[-1].run} ({same[-1].book.path.name}:{same[-1].line})"
        return [
            f"It was recorded: call {place}. A newer recording of that cell took that run's place, without it."
        ], False
    unseen = ["  nothing that is shown here: a secret or a volatile field"]
    return [head, *(diff or unseen)], bool(diff) and _count_differing_words(
        theirs, ours
    ) == _count_differing_words(ours, theirs)


def _count_differing_words(fields: Mapping[str, Any], other: Mapping[str, Any]) -> Counter[str]:
    """How often which word is said in the fields of `fields` that are not the same in `other`."""
    texts = [str(value) for name, value in fields.items() if other.get(name, _NONE) != value]
    return Counter(re.findall(r"\w+", " ".join(texts)))


_NONE = object()


def nearest_call(cell: TapedCell, ours: Mapping[str, Any]) -> Entry | None:
    """Of recorded calls of the same sort the one whose fields are most like these; of equals the
    newest.
    """
    with _search_until(cell) as until:
        result = nearest(ours, _read_recorded_calls(cell, until, is_tool="tool" in ours))
    return result[0] if result is not None else None


@contextmanager
def _search_until(cell: TapedCell) -> Iterator[float]:
    """The moment at which a search for what is shown of a refused call ends: for as long as a
    person is ready to wait.
    """
    began = monotonic()
    try:
        yield began + min(SEARCH_SECONDS, SEARCH_IN_ALL - cell.findings.searched)
    finally:
        cell.findings.searched += monotonic() - began


def _read_recorded_calls(
    cell: TapedCell, until: float, *, is_tool: bool
) -> Iterator[tuple[Entry, Mapping[str, Any]]]:
    """Recorded calls of the same sort with their fields, newest first."""
    for entry in reversed(cell.cassette.calls if cell.cassette is not None else ()):
        if monotonic() > until:
            return
        theirs = recorded_fields(entry)
        if theirs is not None and ("tool" in theirs) == is_tool:
            yield entry, theirs


def recorded_fields(entry: Entry) -> Mapping[str, Any] | None:
    """A recorded call's fields; None where its record cannot be read."""
    try:
        return compared_fields(entry.request(), recorded=True)
    except CassetteError:
        return None


FIELDS, WIDTH = 20, 2_000
"""Of a divergence's fields: how many are told, and how long each value may be."""

_TELLING = ("messages", "input", "contents", "prompt", "system", "instructions")
"""Where a request says what it asks: fields below these come first, and of them the last."""

_CALL_ID = re.compile(
    r"(?:\b(?:tool_use_id|tool_call_id|call_id)|(?:\]|functionCall|functionResponse)\.id)$"
)
"""What a provider names a tool's call: new in each reply, so it differs wherever one went live."""


class Stale(Frozen):
    """Answered with the recorded reply of another request, in whose place the call stands."""

    __slots__ = ()


def find_divergence(
    cell: TapedCell,
    call: Request | FunctionCall,
    match: str,
    lineage: str,
    secrets: Secrets,
    group: str = "",
) -> Divergence:
    """The divergence that a refused call is."""
    ours = compared_fields(call, secrets=secrets)
    with _search_until(cell) as until:
        nearest = next(in_its_place(cell, ours, lineage, until), None)
    nearest = nearest or nearest_call(cell, ours)
    theirs = recorded_fields(nearest) or {} if nearest is not None else {}
    differences = sorted(
        differing_fields(theirs, ours, WIDTH), key=lambda field: _rank_field(field[0])
    )[:FIELDS]
    kind: HostClass = call.kind if isinstance(call, FunctionCall) else "host"
    if nearest is not None:
        kind = nearest.head().get("kind", kind)
    repeats = cell.player.repeats(cell.execution)
    return Divergence(
        match, kind, title(call), call, ours, nearest, tuple(differences), repeats, lineage, group
    )


def claim_stale_call(
    cell: TapedCell, call: Request | FunctionCall, lineage: str, secrets: Secrets
) -> Stale | None:
    """The recorded call in whose place this one stands, served to it; None where the cell's
    recording has none left.
    """
    ours, until = compared_fields(call, secrets=secrets), monotonic() + SEARCH_SECONDS
    for entry in in_its_place(cell, ours, lineage, until):
        if cell.player.claim(cell.execution, entry):
            return Stale(entry)
    return None


def in_its_place(
    cell: TapedCell, ours: Mapping[str, Any], lineage: str, until: float
) -> Iterator[Entry]:
    """Recorded calls of the same cell to the same address or tool that were not served in this
    execution: those of the same task or thread first, of those the ones that it has not gone past
    (a later call of theirs was served), of those the most alike, of these the earliest.
    """
    if monotonic() > until:
        return
    runs = cell.player.repeated(cell.execution) - {cell.recording.run}
    served = cell.execution.served
    calls = cell.cassette.calls if cell.cassette is not None else []
    run_calls = [entry for entry in calls if entry.run in runs]
    was_served = [(entry.run, entry.id) in served for entry in run_calls]
    reached = {
        (entry.run, entry.lineage): place
        for place, entry in enumerate(run_calls)
        if was_served[place]
    }
    likely_first = sorted(
        (entry.lineage != lineage, place < reached.get((entry.run, entry.lineage), 0), place)
        for place, entry in enumerate(run_calls)
        if not was_served[place]
    )
    ranked = []
    for is_elsewhere, is_past, place in likely_first:
        theirs = recorded_fields(run_calls[place]) if monotonic() < until else None
        if theirs is not None and _extract_address(theirs) == _extract_address(ours):
            ranked.append((is_elsewhere, is_past, -likeness(ours, theirs), place))
    for *_, place in sorted(ranked):
        yield run_calls[place]


def _extract_address(fields: Mapping[str, Any]) -> tuple[Any, ...]:
    return fields.get("tool"), fields.get("method"), str(fields.get("url", "")).partition("?")[0]


def _rank_field(path: str) -> tuple[int, int]:
    """What is asked before how it is asked, ids last; of a conversation the last turn first."""
    if _CALL_ID.search(path):
        return 2, 0
    root = path.partition(".")[0].partition("[")[0]
    if root not in _TELLING:
        return 1, 0
    number = path.partition("[")[2].partition("]")[0]
    return 0, -int(number) if number.isdigit() else 0
