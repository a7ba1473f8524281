"""A recording as a trial plays it: some calls answered otherwise, calls added, a cell's clock and
chance those of another recording. All of it in memory; the file stays as it is.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Self

from tape_jupyter.cassette import records
from tape_jupyter.cassette.cassette import Cassette, Entry, Overridden
from tape_jupyter.cassette.index_entries import Holder
from tape_jupyter.cassette.takes import files
from tape_jupyter.cassette.takes.files import TakeBase
from tape_jupyter.core.call import Reply, Value

if TYPE_CHECKING:
    from pathlib import Path

ADDED = "r-added"
"""How the ids of runs begin that hold a trial's added calls."""


class _ReplacedAnswer(Overridden):
    """A recorded call that a trial answers otherwise."""

    __slots__ = ("given",)

    def __init__(self, book: Holder, replaced: Entry, reply: Reply | Value) -> None:
        super().__init__(book, (replaced.offset, replaced.length), replaced)
        self.given = reply


class _Added(Entry):
    """A call that the recording does not hold, of a run that adds to one of its own."""

    __slots__ = ("given", "record")

    def __init__(self, book: Holder, run: str, record: Mapping[str, Any]) -> None:
        head = record["head"]
        names = (str(head["call"]), run, str(head["match"]), str(head.get("lineage", "")))
        super().__init__(book, (0, 0), names, str(head.get("apart", "")))
        self.record = {**record, "head": {**head, "run": run}}
        self.given = records.section_reply(record["response"], book.assets)[0]


class ComposedCassette(Cassette):
    """A cassette or take, opened to be played with changes that no file holds."""

    def take(self, name: str) -> Self:
        """What a trial lets out goes to a take of the cassette as it is composed."""
        path = files.path_of(self.root, name)
        composed_take = _TakeOfComposed(path, self._build_take_base(path), self)
        composed_take.refresh()
        return composed_take  # type: ignore[return-value]  # a cassette, as the session asks

    def reply(self, entry: Entry) -> tuple[Reply | Value, bool]:
        """None is read ahead: what is added lies in no file."""
        if isinstance(entry, _ReplacedAnswer | _Added):
            return entry.given, False
        if entry.book is not self and self.base is not None:
            return self.base.reply(entry)
        return self._kept.get(entry.offset) or self._read_replies([entry])[0]

    def head(self, entry: Entry) -> dict[str, Any]:
        if isinstance(entry, _ReplacedAnswer):
            return self.head(entry.replaced)
        if isinstance(entry, _Added):
            return dict(entry.record["head"])
        return super().head(entry)

    def request_section(self, entry: Entry) -> dict[str, Any]:
        if isinstance(entry, _Added):
            return dict(entry.record["request"])
        return super().request_section(entry)

    def answer(self, run: str, call: str, response: Mapping[str, Any]) -> None:
        """Answer a recorded call by this `response:` section. KeyError for a call that is not there."""
        replaced = self.by_name[run, call]
        reply = records.section_reply(response, self.assets)[0]
        self._apply_override(_ReplacedAnswer(self, replaced, reply))

    def add(self, run: str, calls: Iterable[Mapping[str, Any]]) -> None:
        """Let a run also answer these calls: each has the `head`, `request` and `response` of a
        record.
        """
        name = f"{ADDED}-{sum(str(each['run']).startswith(ADDED) for each in self.runs)}"
        same = self.by_run[run]
        kept = {key: same[key] for key in ("cell", "source", "session", "title") if same.get(key)}
        self._add_run({"run": name, "mode": "again", "parent": run, **kept})
        for call_record in calls:
            if call_record["head"].get("kind") in _TOOLS:
                tool = call_record["head"]["name"]
            else:
                tool = ""
            self._add_call(_Added(self, name, call_record), tool=str(tool))

    def change_run(self, run: str, changed: Mapping[str, Any], ended: Mapping[str, Any]) -> None:
        """Put other values on a run's record and on its end mark; None takes a key away. `pins` are
        put among those that are there.
        """
        if "pins" in changed:
            pins = _apply_changes(self.by_run[run].get("pins", {}), changed["pins"])
            changed = {**changed, "pins": pins}
        place = next(i for i, each in enumerate(self.runs) if each["run"] == run)
        self.runs[place] = self.by_run[run] = _apply_changes(self.by_run[run], changed)
        self.ended[run] = _apply_changes(self.ended.get(run, {}), ended)

    def keep_runs(self, run_ids: Iterable[str]) -> None:
        """Leave out the other runs: a newer recording of a cell then replaces none of these."""
        kept = set(run_ids)
        self.runs[:] = [each for each in self.runs if each["run"] in kept]


class _TakeOfComposed(Cassette):
    """A take whose base is composed, as its file is not."""

    def __init__(self, path: Path, of: TakeBase, below: ComposedCassette) -> None:
        super().__init__(path, of=of)
        self._composed = below

    def _open_base(self, path: Path, of: TakeBase) -> Any:
        del path, of
        return self._composed


_TOOLS = ("tool", "retrieval")


def _apply_changes(record: Mapping[str, Any], changed: Mapping[str, Any]) -> dict[str, Any]:
    merged = {**copy.copy(dict(record)), **changed}
    return {key: value for key, value in merged.items() if value is not None}
