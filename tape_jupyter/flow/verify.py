"""Engine room: compares what a re-run left in the live kernel with a hermetic replay of the whole history.

proved          every cell shows the same, every name holds the same
differs         some cells do not: they depend on the change by a way that nobody saw. To adopt: plan(learned=...)
not provable    the replay could not be made, or these cells do not even reproduce without the change
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from tape_jupyter.flow.fresh import _file
from tape_jupyter.flow.hermetic import Ran, Replayed
from tape_jupyter.flow.history import Entry, History

_ADDRESS = re.compile(r"0x[0-9a-fA-F]{6,}|(?<= at )[0-9a-f]{8,}")
State = Literal["proved", "differs", "not provable"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """`cells` are the indices of entries that came out otherwise; `text` says it in a sentence."""

    state: State
    text: str
    cells: tuple[int, ...] = ()


def verify(
    history: History,
    texts: Mapping[int, str],
    replayed: Replayed,
    baseline: Callable[[], set[int]] = set,
) -> Verdict:
    """`texts`: what each entry shows in the notebook now (entries without one are not compared).

    `baseline`, asked only where something differs, gives the entries that do not reproduce even without the change.
    """
    if replayed.failed is not None:
        return Verdict("not provable", replayed.failed)
    wrong = differing(history, texts, replayed)
    if not wrong:
        return Verdict("proved", "a fresh replay of all cells came out the same")
    unsteady = baseline() & wrong.keys()
    found = {index: why for index, why in wrong.items() if index not in unsteady}
    if not found:
        index = min(unsteady)
        said = f"{history[index].title} does not come out the same even as it was recorded"
        return Verdict("not provable", said)
    index = min(found)
    return Verdict("differs", f"{history[index].title} also depends on this: {found[index]}", tuple(sorted(found)))


def differing(history: History, texts: Mapping[int, str], replayed: Replayed) -> dict[int, str]:
    """The entries that came out otherwise in the replay, and how."""
    last = _last_makers(history)
    found: dict[int, str] = {}
    for ran in replayed.ran:
        entry = history[ran.index]
        if ran.index in texts and _steady(texts[ran.index]) != _steady(ran.text):
            found[ran.index] = "it shows something else"
        else:
            why = _state(entry, ran, last)
            if why is not None:
                found[ran.index] = why
    return found


def _steady(text: str) -> str:
    """Without addresses of objects, which no two processes have in common."""
    return _ADDRESS.sub("0x", text)


def _last_makers(history: History) -> dict[str, int]:
    return {name: entry.index for entry in history for name in entry.changed}


def variables_differing(history: History, replayed: Replayed) -> list[str]:
    """The names that hold something else after the replay, by fingerprint; those that nobody can look into left out."""
    last, found = _last_makers(history), set()
    for ran in replayed.ran:
        entry = history[ran.index]
        for name in (entry.changed | ran.changed) - entry.opaque - ran.opaque:
            if last.get(name, entry.index) == entry.index and entry.after.get(name, "") != ran.after.get(name, ""):
                found.add(name)
    return sorted(found)


def _state(entry: Entry, ran: Ran, last: Mapping[str, int]) -> str | None:
    """How what it left for good differs. Opaque values and what was overwritten since are not compared."""
    opaque = entry.opaque | ran.opaque
    for name in sorted((entry.changed | ran.changed) - opaque):
        if last.get(name, entry.index) == entry.index and entry.after.get(name, "") != ran.after.get(name, ""):
            return f"`{name}` holds something else"
    for path in entry.files.keys() & ran.files.keys():
        if entry.files[path].known and _file(entry.files[path].after) != ran.files[path]:
            return f"{path} holds something else"
    return None
