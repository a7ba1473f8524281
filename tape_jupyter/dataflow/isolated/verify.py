"""Compares what a re-run left in the live kernel with a hermetic replay of the whole history.

proved          every cell shows the same, every name holds the same
differs         some cells do not: they depend on the change by a way that nobody saw. To adopt: plan(learned=...)
not provable    the replay could not be made, or these cells do not even reproduce without the change
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import zip_longest
from operator import itemgetter
from typing import Literal, TypeAlias

from tape_jupyter.cassette.match_key import parting
from tape_jupyter.comparison.outputs import forgive
from tape_jupyter.core.plain_text import join_some
from tape_jupyter.dataflow.history import Execution, History
from tape_jupyter.dataflow.isolated.end_state import End, EndValue, digest_content
from tape_jupyter.dataflow.isolated.process import EntryOutcome, Replayed

_ADDRESS = re.compile(r"0x[0-9a-fA-F]{6,}|(?<= at )[0-9a-f]{8,}")
_REFUSED = re.compile(r"^(UnmatchedCall: [^\n]*).*", re.MULTILINE | re.DOTALL)
_TAPE_FILE = re.compile(r" \([^()\n]*\.tape\.yaml[^()\n]*\)")
_MOST, _WIDTH = 3, 60
_Ran: TypeAlias = Execution | EntryOutcome
State = Literal["proved", "differs", "not provable"]


@dataclass(frozen=True, slots=True)
class RerunVerdict:
    """`cells` are the indices of entries that changed; `text` says it in a sentence."""

    state: State
    text: str
    cells: tuple[int, ...] = ()


def verify_rerun(
    history: History,
    texts: Mapping[int, str],
    replayed: Replayed,
    baseline: Callable[[], set[int]] = set,
    live: End | None = None,
) -> RerunVerdict:
    """`texts`: what each entry shows in the notebook now (entries without one are not compared).
    `live`: what is there in the notebook's kernel now.

    `baseline`, asked only where something differs, gives the entries that do not reproduce even
    without the change.
    """
    if replayed.failed is not None:
        return RerunVerdict("not provable", replayed.failed)
    wrong = differing_entries(history, texts, replayed, live)
    if not wrong:
        return RerunVerdict(
            "proved",
            f"a fresh replay of all cells gave the same{_format_unseen(history, replayed, live)}",
        )
    unsteady = baseline() & wrong.keys()
    differing = {index: why for index, why in wrong.items() if index not in unsteady}
    if not differing:
        index = min(unsteady)
        message = f"{history[index].title} does not repeat even the recording: {wrong[index]}"
        return RerunVerdict("not provable", message)
    index = min(differing)
    return RerunVerdict(
        "differs",
        f"{history[index].title} also depends on this: {differing[index]}",
        tuple(sorted(differing)),
    )


def differing_entries(
    history: History, texts: Mapping[int, str], replayed: Replayed, live: End | None = None
) -> dict[int, str]:
    """The entries that changed in the replay, and how. Where both ends are known, what the names
    hold there counts; else the fingerprints taken after each entry.
    """
    if live is not None and replayed.end is not None:
        names, at_end = {}, [*_compare_ends(history, replayed, live, replayed.end)]
    else:
        names, at_end = _compare_names(history, replayed), []
    reasons: dict[int, str] = {}
    for outcome in replayed.ran:
        entry = history[outcome.index]
        if outcome.index in texts and _strip_volatile_text(
            texts[outcome.index]
        ) != _strip_volatile_text(outcome.text):
            reasons[outcome.index] = (
                f"its output differs{_format_first_difference(texts[outcome.index], outcome.text)}"
            )
        elif outcome.index in names:
            reasons[outcome.index] = f"`{names[outcome.index][0]}` holds something else"
        elif path := _find_other_file(entry, outcome):
            reasons[outcome.index] = f"{path} holds something else"
    for index, why in at_end:
        reasons.setdefault(index, why)
    return reasons


def _compare_ends(
    history: History, replayed: Replayed, live: End, replayed_end: End
) -> Iterator[tuple[int, str]]:
    """What is live against what is there after all cells ran: who left it, and how it differs."""
    makers = {**_find_last_changes(replayed.ran), **_find_last_changes(history)}
    for name, maker in sorted(makers.items(), key=itemgetter(0)):
        here, there = live.names.get(name, EndValue()), replayed_end.names.get(name, EndValue())
        if here.digest != there.digest and not (here.dark or there.dark):
            yield (
                maker.index,
                f"`{name}` holds {_format_value(here)} here, {_format_value(there)} after a whole run",
            )
    writers = {path: entry.index for entry in history for path in entry.files}
    if replayed.away == "layers":
        for path in sorted(writers.keys() & live.files.keys() & replayed_end.files.keys()):
            if live.files[path] != replayed_end.files[path]:
                yield writers[path], f"{path} holds something else"


def _format_value(value: EndValue) -> str:
    return "nothing" if not value.digest else value.short or "something else"


def _format_unseen(history: History, replayed: Replayed, live: End | None) -> str:
    """Names that nobody can look into and that may be otherwise, as an addition to a sentence."""
    if live is None or replayed.end is None:
        return ""
    unseen = []
    for name in sorted({name for entry in history for name in entry.changed}):
        here, there = live.names.get(name, EndValue()), replayed.end.names.get(name, EndValue())
        if (here.dark or there.dark) and (
            here.digest != there.digest or "too large" in here.dark + there.dark
        ):
            unseen.append(f"`{name}` ({here.dark or there.dark})")
    if not unseen:
        return ""
    return f"; what cannot be inspected may have changed: {join_some(unseen, _MOST)}"


def _format_first_difference(here: str, there: str) -> str:
    """The first line that differs, on both sides, cut around what parts them."""
    pairs = zip_longest(
        _strip_volatile_text(here).splitlines(),
        _strip_volatile_text(there).splitlines(),
        fillvalue="nothing",
    )
    one, other = next(((a, b) for a, b in pairs if a != b), ("", ""))
    start = parting(one, other, _WIDTH, _WIDTH // 3)
    here, there = (f"{'…' if start else ''}{line[start : start + _WIDTH]}" for line in (one, other))
    return f" ({here!r} here, {there!r} after a whole run)" if one or other else ""


def _strip_volatile_text(text: str) -> str:
    """Without what no two processes have in common: addresses, and times that magics tell. Of a
    refusal only which call it was: a take is another file, and other calls may be the nearest in it.
    """
    text = _REFUSED.sub(lambda match: _TAPE_FILE.sub("", match[1]), text)
    return forgive(_ADDRESS.sub("0x", text), "stream")


def variables_differing(history: History, replayed: Replayed) -> list[str]:
    """The names that hold something else after the replay, by fingerprint; those that nobody can
    look into left out.
    """
    return sorted(name for names in _compare_names(history, replayed).values() for name in names)


def _compare_names(history: History, replayed: Replayed) -> dict[int, list[str]]:
    """The names that are left otherwise, by the entry that changed them last in either world. Two
    worlds may part over when an object changed (a callback of the loop, a thread): what it holds at
    the end decides. Opaque values and what was overwritten since are not compared.
    """
    ran = {outcome.index for outcome in replayed.ran}
    recorded = _find_last_changes(entry for entry in history if entry.index in ran)
    again = _find_last_changes(replayed.ran)
    found: dict[int, list[str]] = {}
    for name in sorted(recorded.keys() | again.keys()):
        makers = [changes[name] for changes in (recorded, again) if name in changes]
        left = {_read_digest(changes, name) for changes in (recorded, again)}
        if any(name in maker.opaque for maker in makers):
            continue
        if ":" in name and name.replace(":", ".") in sys.modules:
            continue  # a module stands in its package, whoever imported it first
        if len(left) > 1:
            found.setdefault(max(maker.index for maker in makers), []).append(name)
    return found


def _find_last_changes(ran: Iterable[_Ran]) -> dict[str, _Ran]:
    return {name: entry for entry in ran for name in entry.changed}


def _read_digest(changes: Mapping[str, _Ran], name: str) -> str:
    return changes[name].after.get(name, "") if name in changes else ""


def _find_other_file(entry: Execution, outcome: EntryOutcome) -> str | None:
    """A file that it left otherwise, if any."""
    for path in entry.files.keys() & outcome.files.keys():
        change = entry.files[path]
        if change.known and digest_content(change.after) != outcome.files[path]:
            return path
    return None
