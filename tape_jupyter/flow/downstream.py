"""Engine room: which executions depend on a changed reply, and why. Pure: a walk forward through the history.

A step that reads what is tainted is tainted, and so is all that it may write. A step that is not tainted does in the
changed world what it did in this one: what it writes for certain is clean again. After a tainted step of a cell, later
steps may not be reached (it may raise now), so they are tainted too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tape_jupyter.flow.history import EVERYTHING, FILES, OUTPUTS, REPLY, Entry, History, Step, name_of
from tape_jupyter.flow.taints import Differing, Taints

HOLDS = "holds the changed reply"


Lines = Mapping[int, tuple[int, ...] | None]
"""By entry, the lines at which it made its taped calls; None: they are not known."""


def downstream(history: History, changed: Iterable[int] | Lines) -> dict[int, tuple[str, ...]]:
    """By index, the reasons of each entry that depends on the replies that `changed` entries hold, these included.

    A mapping tells the lines at which the changed call may have been made, where they are known: what the entry did
    before them is as it was.
    """
    return traced(history, changed)[0]


def traced(history: History, changed: Iterable[int] | Lines) -> tuple[dict[int, tuple[str, ...]], Differing]:
    """As downstream(), with what may differ after each of these entries."""
    lines = changed if isinstance(changed, Mapping) else dict.fromkeys(changed)
    taints, differing = Taints(), Differing()
    found: dict[int, tuple[str, ...]] = {}
    for entry in history:
        reasons = walk(entry, taints, lines)
        if reasons:
            found[entry.index] = tuple(reasons)
        differing.passed(entry.index, taints, depends=bool(reasons))
    return found, differing


def walk(entry: Entry, taints: Taints, lines: Lines) -> list[str]:
    """Take `taints` past one entry. Returns why it depends on them; nothing where it does not."""
    holds = entry.index in lines
    at = lines.get(entry.index)
    reasons = [HOLDS] if holds else []
    stopped = False
    for step in entry.steps:
        hits = taints.hits(step)
        at_call = holds and (at is None or any(step.line <= line <= max(step.end, step.line) for line in at))
        if not (hits or at_call or stopped):
            for written in step.strong:
                taints.clear(written)
            continue
        if not holds:
            reasons += [reason for reason in said(entry, step, hits) if reason not in reasons]
        _leave(step, taints, hits, entry, at_call=at_call, stopped=stopped)
        stopped = stopped or not _goes_on(step, taints, hits, at_call=at_call)
    return reasons


_Hits = list[tuple[str, str, "Entry"]]


def _leave(step: Step, taints: Taints, hits: _Hits, entry: Entry, *, at_call: bool, stopped: bool) -> None:
    """What a step that depends on the change leaves: some of what it writes may not depend on it."""
    all_of_it = stopped or (at_call and not _asks(step)) or any(not _is_name(read) for read, _, _ in hits)
    amends = not at_call and not stopped and all(read in step.amends for read, _, _ in hits)
    tainted = {
        written
        for written in step.strong | step.weak
        if all_of_it
        or ((needs := step.needs.get(written)) is None and not amends)
        or (needs is not None and ((at_call and REPLY in needs) or taints.reach(needs)))
    }
    if all_of_it and amends:
        tainted = set()
    for written in step.strong - tainted:
        taints.clear(written)
    for written in tainted:
        taints.add(written, entry)


def _goes_on(step: Step, taints: Taints, hits: _Hits, *, at_call: bool) -> bool:
    """Whether what follows a tainted step is reached all the same. To add to a box of which another part differs does
    not raise.
    """
    if step.raises is not None and all(_is_name(read) for read, _, _ in hits) and (_asks(step) or not at_call):
        return not (at_call and REPLY in step.raises) and not taints.reach(step.raises)
    if all(read in step.amends and written != read for read, written, _ in hits):
        return step.calm_call
    return step.calm


def _asks(step: Step) -> bool:
    """Whether it is known where in it a call is made: what it writes may depend on that."""
    return REPLY in (step.raises or ()) or any(REPLY in needs for needs in step.needs.values())


def _is_name(read: str) -> bool:
    """Whether it is a variable of the notebook or of a module of the user's."""
    return read != EVERYTHING and (name_of(read) is not None or read.partition(":")[0] not in _WORLD)


_WORLD = frozenset({"file", "ambient", "library", "output"})


def said(entry: Entry, step: Step, hits: list[tuple[str, str, Entry]]) -> list[str]:
    """Reasons in people's words: "reads `mood`, set by [2]"."""
    found = []
    for read, _written, by in hits:
        who = by.title if by.index != entry.index else "itself"
        text = _reason(read, step.via.get(read, ""), who)
        if text not in found:
            found.append(text)
    return found[:4]


def _reason(read: str, via: str, who: str) -> str:
    by_way = f"calls `{via}`, which " if via else ""
    if read in _WIDE:
        return _WIDE[read].format(who=who)
    kind, colon, rest = read.partition(":")
    if not colon or name_of(read) is not None:
        return f"{by_way}reads `{read}`, set by {who}"
    ambient = AMBIENT_SAID.get(rest.partition("[")[0], rest)
    shown = {"file": rest.rpartition("/")[2] or rest, "ambient": ambient}.get(kind, rest)
    return by_way + _KINDS.get(kind, "reads `{it}` of {kind}, set by {who}").format(it=shown, kind=kind, who=who)


_WIDE = {
    EVERYTHING: "may read any name; {who} changed some",
    FILES: "may look at any file; {who} wrote one",
    OUTPUTS: "reads `Out`; {who} showed a result",
    "output:newest": "reads `_`, the newest result, which may be that of {who}",
}
_KINDS = {
    "file": "opens {it}, written by {who}",
    "ambient": "depends on {it}, changed by {who}",
    "library": "uses {it}, whose state {who} may have changed",
    "output": "reads `Out[{it}]`, shown by {who}",
}
AMBIENT_SAID: dict[str, str] = {
    "environment": "an environment variable", "cwd": "the working directory", "random": "the state of `random`",
    "numpy random": "the state of `numpy.random`", "torch": "the state of torch's random numbers",
    "decimal": "the decimal context", "path": "`sys.path`", "locale": "the locale", "time zone": "the time zone",
    "logging": "the levels of `logging`", "warnings": "the filters of `warnings`",
    "process": "a setting of the interpreter", "numpy": "an option of numpy", "pandas": "an option of pandas",
    "matplotlib": "a setting of matplotlib", "figures": "the open figures",
    "csv": "the field size limit of `csv`",
    "background": "tasks or threads that run on", "shell": "a setting of the notebook's shell",
}  # fmt: skip
