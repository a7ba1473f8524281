"""A re-run, step by step. It says which entry comes next and makes the world as that entry found
it; somebody else runs the cell (in a notebook the front end) and tells what came of it. Nothing
runs or waits in here.

    rerun = Rerun(history, plan, shell)
    while (entry := rerun.next()) is not None:
        rerun.prepare(entry)
        outcome = ...  # run entry.source; the tracker's new Entry for it
        rerun.record_outcome(entry, outcome)
    rerun.finish()  # or, at any time between two cells: rerun.cancel()

A value that came out equal to the recorded one is put back as the very object it was: who depended
only on it is dropped, and that is said. So is who reads only parts of a value that are as they were
(dataflow/restore/recorded_parts.py). A cell that wrote what it had not written before takes in
who reads that, which is said too.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Literal

from tape_jupyter.dataflow.downstream import Taints, walk_entry
from tape_jupyter.dataflow.fingerprint.fingerprint import fingerprint
from tape_jupyter.dataflow.history import FILES, Execution, History, name_of
from tape_jupyter.dataflow.identity import identity
from tape_jupyter.dataflow.isolated.end_state import End, look_at_end
from tape_jupyter.dataflow.plan import Plan
from tape_jupyter.dataflow.restore.recorded_parts import RecordedParts
from tape_jupyter.dataflow.restore.restore import Shell, World
from tape_jupyter.dataflow.restore.versions import (
    BEGINNING,
    Versions,
    changed_by,
    find_seen,
    needed_by,
    parted,
    thing_of,
    written_by,
)
from tape_jupyter.dataflow.tracing.ambient import IMPORTED

_IMPORTED = f"ambient:{IMPORTED}"
_NOBODYS = (str, int, float, bytes, type(None), types.ModuleType)
_EQUAL = "what it depends on did not change"
_GENERATORS = {"random": "random", "numpy random": "numpy", "torch": "torch"}
"""Parts of the process' state that are generators, with the names that a cell's pins know them by."""


class Rerun:
    """The state of one re-run. `ticked`: the entries to run (default: as the plan has them).

    `behind`: those that were left out of an earlier re-run, and did not see what changed then.
    """

    def __init__(
        self,
        history: History,
        plan: Plan,
        shell: Shell,
        *,
        ticked: Iterable[int] | None = None,
        behind: Iterable[int] = (),
        on_error: Literal["stop", "go on"] = "stop",
        resync: Callable[[set[str]], object] = set,
    ) -> None:
        self.history, self.plan, self.shell = history, plan, shell
        self.ticked = {c.entry for c in plan.cells if c.ticked} if ticked is None else set(ticked)
        self.on_error, self._resync = on_error, resync
        self.ran: list[int] = []
        self.skipped: dict[int, str] = {}
        self.found: dict[int, str] = {}
        self.stopped: str | None = None
        self.notes: list[str] = []
        self._roles = {cell.entry: cell.role for cell in plan.cells}
        self._versions = Versions(history)
        self._world = World.now(shell, history)
        self._was = list(history.entries)
        self._parts = RecordedParts(self._was, self._world.value_now, shell.user_ns)
        self._at: dict[str, int] = {}
        """Things that are not at their last version, with the version they are at."""
        self._taints = Taints()
        self._touched: set[str] = set()
        """Things that were put back since the tracker was last told."""
        self._new: set[str] = set()
        """Things that are not what the history had: other values, or made anew."""
        self.doubt = self._explain_doubt()
        """Why the live kernel may come out wrong, whatever is put back; None: nothing speaks
        against it.
        """
        self.moved: dict[int, tuple[str, ...]] = {}
        """By entry that runs: generators of the process that do not stand where it found them."""
        self._cursor, self._prepared = 0, -1
        self._forced = self._find_makers() | set(behind)
        self._broken: set[str] = set()
        """What a run that was broken off changed."""
        self._maker_reasons: dict[int, str] = {}
        """Entries that run again since one that came after them was broken off, with the reason."""

    @property
    def done(self) -> int:
        return len(self.ran) + len(self.skipped)

    @property
    def differing(self) -> frozenset[str]:
        """Variables that are not what the history had, as it stands."""
        return frozenset(thing for thing in self._new if not parted(thing)[0])

    def find_differing_state(self, entry: Execution) -> list[str]:
        """Files that the entry looks at, and parts of the process' state, that are not what they were
        then.
        """
        return find_seen(self._new, entry.reads)

    @property
    def total(self) -> int:
        return len(self.ticked | set(self.found))

    def next(self) -> Execution | None:
        """The entry to run now, or None: then finish()."""
        while self.stopped is None and self._cursor < len(self.history):
            entry = self.history[self._cursor]
            self._cursor += 1
            if self._is_rerun_needed(entry):
                return entry
        return None

    def _explain_doubt(self) -> str | None:
        needed = {thing for index in self.ticked for thing in needed_by(self.history[index])}
        for thing in sorted(needed & self._world.unsure):
            last = self.history[self._versions.last(thing)]
            return f"`{thing}` is not what {last.title} left: it was changed in a way that was not seen"
        return None

    def _find_makers(self) -> set[int]:
        """Entries that run whatever their inputs: they hold the changed reply, or make something
        anew.
        """
        makers = set()
        for cell in self.plan.cells:
            entry = self.history[cell.entry]
            if cell.role == "changed" or (
                cell.role == "restores"
                and any(
                    self._versions.lost(t, entry.index)
                    for t in self._versions.list_changes(entry.index)
                )
            ):
                makers.add(cell.entry)
        return makers

    def _is_rerun_needed(self, entry: Execution) -> bool:
        index = entry.index
        after = self._taints.copy()
        reasons = walk_entry(entry, after, self._find_lines(index))
        touches = [
            t
            for t in sorted(self._versions.list_changes(index))
            if t in self._new and not self._versions.is_new_value(t, index)
        ]
        forced = index in self._forced or bool(touches)
        if reasons and not forced and (equal := self._find_equal_reads(entry)):
            after = self._taints.copy()
            reasons = walk_entry(entry, after, self._find_lines(index), equal)
        due = forced or bool(reasons)
        if due and index in self.ticked:
            return True
        if due and index not in self._roles:
            reason = "; ".join(reasons) or self._maker_reasons.get(index, "")
            self.found[index] = reason or f"changes `{touches[0]}`, which is created again"
            return True
        if index in self._roles:
            self.skipped[index] = _EQUAL if index in self.ticked else "you left it out"
        if not due:
            self._taints = after
            self._new -= self._versions.list_changes(index)
        return False

    def _find_equal_reads(self, entry: Execution) -> frozenset[str]:
        """Parts that the entry reads of values that came out otherwise, where all these are as they
        were.
        """
        hit = {read for step in entry.steps for read, _, _ in self._taints.hits(step)}
        versions = {
            read: self._versions.before(name, entry.index)
            for read in hit
            if (name := thing_of(read)) is not None and self._parts.are_known(read, entry)
        }
        for read, version in versions.items():
            if version not in self.ran or self._at.get(thing_of(read) or "") != version:
                return frozenset()
        is_equal = versions and self._parts.are_equal(versions.items(), entry)
        return frozenset(versions) if is_equal else frozenset()

    def _find_lines(self, index: int) -> dict[int, tuple[int, ...] | None]:
        return {index: self.plan.lines[index]} if index in self.plan.lines else {}

    # ------------------------------------------------------------- before a cell

    def prepare(self, entry: Execution) -> None:
        """Make the world as the entry found it then, but for what changed since.

        Asked again for the same entry, it undoes what a run that was broken off did.
        """
        again = needed_by(entry) if self._prepared == entry.index else set()
        self._prepared = entry.index
        for thing in self._order_things():
            self._bring_thing(
                thing, self._versions.before(thing, entry.index), again=thing in again
            )
        self.moved[entry.index] = self._list_moved_generators()
        self._world.restore_output_history(entry.number)
        self._resync_tracker()

    def _list_moved_generators(self) -> tuple[str, ...]:
        """Until a cell with a changed reply has run, all stand where they stood."""
        if not any(self._roles.get(index) == "changed" for index in self.ran):
            return ()
        return tuple(name for part, name in _GENERATORS.items() if f"ambient:{part}" in self._new)

    def _order_things(self) -> list[str]:
        """Files from the deepest, so that folders are empty; then modules, in which names are; ambient
        state last: nothing put back may move it.
        """
        files = sorted((each for each in self._versions if each.startswith("file:")), reverse=True)
        modules = [each for each in self._versions if each.startswith(_IMPORTED)]
        return [
            *files,
            *modules,
            *sorted(
                set(self._versions) - set(files) - set(modules),
                key=lambda thing: (thing.startswith("ambient:"), thing),
            ),
        ]

    def _bring_thing(self, thing: str, version: int, *, again: bool) -> None:
        there = version in self.ran or self._at.get(thing, self._versions.last(thing)) == version
        if thing in self._world.unsure or (there and not again):
            return
        if version == self._versions.last(thing) and version not in self.ran:
            self._world.put_first(
                thing, complete_only=True
            )  # what it was may be more than the history keeps of it
        else:
            self._world.restore_version(thing, version, self._versions)
        self._touched.add(thing)
        self._at[thing] = version
        if version not in self.ran:
            self._new.discard(thing)

    # ------------------------------------------------------------- a run that is broken off

    def broke_off(self, outcome: Execution) -> None:
        """A run does not count: its entry is to run once more."""
        self._broken |= changed_by(outcome)

    def go_back(self, entry: Execution) -> bool:
        """Whether something that a broken run of the entry changed cannot be put back: then next()
        begins again with who makes it. Else prepare() undoes it.
        """
        makers: dict[int, str] = {}
        for thing in sorted(self._broken):
            for index in self._find_lost_chain(thing, entry.index):
                makers.setdefault(index, f"makes `{thing}` again, which {entry.title} changed")
        self._broken.clear()
        if not makers:
            return False
        begin = min(makers)
        again = {index for index in self.ran if index >= begin}
        for index in again:
            self.history.entries[index] = self._was[index]
        self.ran = [index for index in self.ran if index < begin]
        self._maker_reasons |= makers
        self._forced |= {*again, *makers, entry.index}
        self._cursor = begin
        return True

    def _find_lost_chain(self, thing: str, index: int) -> list[int]:
        """Who makes and changes a name up to where the entry at `index` found it, where that cannot
        be put back.
        """
        version = self._versions.before(thing, index)
        if parted(thing)[0] or version == BEGINNING or not self._versions.lost(thing, version):
            return []
        chain = [each for each in self._versions.changers(thing) if each <= version]
        makers = [each for each in chain if self._versions.is_new_value(thing, each)][-1:]
        return [each for each in chain if makers and each >= makers[0]]

    # ------------------------------------------------------------- after a cell

    def record_outcome(self, entry: Execution, outcome: Execution) -> None:
        """Take what came of it: `outcome` is the new entry that the tracker made of this execution."""
        index = entry.index
        before = set(self._taints)
        self._world.renumber(outcome.number, entry.number)
        self._replace_entry(entry, outcome)
        self.ran.append(index)
        hit = [
            *walk_entry(entry, self._taints, self._find_lines(index)),
            *walk_entry(outcome, self._taints, self._find_lines(index)),
        ]
        self._clear_unchanged(set(self._taints) - before, entry, outcome)
        equal = self._restore_equal_things(entry, outcome)
        for thing in self._versions.list_changes(index) | changed_by(outcome):
            self._versions.add(thing, index)
            self._at[thing] = index
            if thing in equal:
                self._new.discard(thing)
                self._taints.clear(thing)
            elif hit or thing not in self._new:
                self._new.add(thing)
                if not (hit and self._has_known_parts(thing)):
                    self._add_taints(thing, entry, outcome)
        if entry.outputs and entry.outputs == outcome.outputs:
            self._taints.clear(f"output:{entry.number}")
        if outcome.outcome == "error" and entry.outcome != "error" and self.on_error == "stop":
            self.stopped = f"{entry.title} raised an error: the cells after it were not run and show old outputs"
            self.stopped += self._describe_not_put_back(entry, outcome)

    def _clear_unchanged(
        self, tainted: Iterable[str], entry: Execution, outcome: Execution
    ) -> None:
        """Of what the entry may have written, what it was seen not to change: neither when it was
        recorded nor now.
        """
        for resource in tainted:
            name = name_of(resource)
            if name is None:
                unchanged = _are_files_unchanged(resource, entry, outcome)
            else:
                unchanged = (
                    name not in self._new
                    and all(_is_seen_unchanged(name, each) for each in (entry, outcome))
                    and fingerprint(self._world.value(name), self.shell.user_ns).is_data
                )
            if unchanged:
                self._taints.clear(resource)

    def _describe_not_put_back(self, entry: Execution, outcome: Execution) -> str:
        """What the cell binds anew after it raised: the value before, which nobody reads, was let
        go.
        """
        before = {
            name: self._versions.before(name, entry.index)
            for name in entry.certain - outcome.changed
        }
        names = [
            f"`{n}`"
            for n, v in sorted(before.items())
            if v != BEGINNING and self._versions.unread(n, v)
        ]
        return (
            f"; {', '.join(names)} still as {entry.title} left it when it was recorded"
            if names
            else ""
        )

    def _has_known_parts(self, thing: str) -> bool:
        """Whether it is known which parts of it differ."""
        return any(
            each == thing or each.startswith((f"{thing}.", f"{thing}[")) for each in self._taints
        )

    def _add_taints(self, thing: str, entry: Execution, outcome: Execution) -> None:
        """The parts of it that were written, where these are known; else all of it."""
        parts = {each for each in entry.writes | outcome.writes if thing_of(each) == thing} or {
            thing
        }
        for part in parts:
            self._taints.add(part, entry)

    def _replace_entry(self, entry: Execution, outcome: Execution) -> None:
        """The new entry stands where the old one stood; the tracker had put it last."""
        if self.history.entries and self.history.entries[-1] is outcome and outcome is not entry:
            self.history.entries.pop()
        outcome.index, outcome.number, outcome.cell = entry.index, entry.number, entry.cell
        self.history.entries[entry.index] = outcome

    def _restore_equal_things(self, entry: Execution, outcome: Execution) -> set[str]:
        """The things that came out as recorded; their values are put back as the very objects they
        were.
        """
        things = self._versions.list_changes(entry.index) | changed_by(outcome)
        equal = {thing for thing in things if self._is_as_recorded(thing, entry, outcome)}
        if outcome.imported:  # what the module defines is another object now, however equal
            equal = {thing for thing in equal if parted(thing)[0]}
        while True:  # a name that shares an object with an unequal one is unequal
            others = (things | self._new) - equal
            unequal = {t for t in equal if outcome.shares.get(t, frozenset()) & others}
            if not unequal:
                break
            equal -= unequal
        equal -= self._find_held_elsewhere(equal, outcome)
        for name in sorted(equal):
            if name in entry.kept:
                outcome.kept[name] = entry.kept[name]
                self._world.bind(name, entry.kept[name])
                self._touched.add(name)
                entry.mementos[name].restore()
                outcome.mementos[name] = entry.mementos[name]
        return equal

    def _find_held_elsewhere(self, equal: set[str], outcome: Execution) -> set[str]:
        """The names whose objects the process holds, too, since this run: a handler that a logger was
        given. The objects that they were when it was recorded would be others.
        """
        parts = [c.after for part, c in outcome.ambient.items() if f"ambient:{part}" not in equal]
        held = {identity(each) for each in _list_held(parts)}
        if not held:
            return set()
        names = (name for name in equal if not parted(name)[0])
        values = ((name, self._world.value(name)) for name in names)
        return {n for n, value in values if held & fingerprint(value, self.shell.user_ns).ids}

    def _is_as_recorded(self, thing: str, entry: Execution, outcome: Execution) -> bool:
        kind, rest = parted(thing)
        if kind:
            old, new = (
                (e.ambient if kind == "ambient" else e.files).get(rest) for e in (entry, outcome)
            )
            return (
                old is not None
                and new is not None
                and old.known
                and new.known
                and bool(old.after == new.after)
            )
        if (
            thing in entry.opaque
            or thing in outcome.opaque
            or thing not in entry.after
            or thing not in outcome.after
        ):
            return False
        if entry.after[thing] != outcome.after[thing]:
            return False
        if entry.after[thing] == "" or self._versions.unread(thing, entry.index):
            return True
        return thing in entry.kept and entry.mementos[thing].possible()

    # ------------------------------------------------------------- the end

    def _resync_tracker(self) -> None:
        """The tracker must not take what was put back for the next cell's doing."""
        self._resync({thing for thing in self._touched if not parted(thing)[0]})
        self._touched.clear()

    def finish(self) -> None:
        """What nobody ran again becomes what it was; what changed stays."""
        for thing in self._order_things():
            last = self._versions.last(thing)
            if last not in self.ran and self._at.get(thing, last) != last:
                self._world.put_first(thing)
                self._touched.add(thing)
                self._at[thing] = last
        self._world.show_last()
        self._resync_tracker()

    def end(self) -> End:
        """What is there now, of all that the history changed: before the re-run, and in it."""
        names = {
            name
            for entries in (self._was, self.history)
            for entry in entries
            for name in entry.changed
        }
        return look_at_end(
            self.shell.user_ns, names, {path for entry in self.history for path in entry.files}
        )

    def cancel(self) -> None:
        """Everything as it was before the re-run: names, what objects held, files, ambient state,
        and the history.
        """
        self.history.entries[:] = self._was
        self._world.put_all_first(self._versions)
        self._world.show_last()
        self._touched.update(self._versions)
        self._resync_tracker()


def _list_held(parts: Iterable[Any]) -> Iterator[Any]:
    """The objects in state of the process that may be a program's own."""
    todo = [*parts]
    while todo:
        each = todo.pop()
        if isinstance(each, tuple | list):
            todo += each
        elif isinstance(each, dict):
            todo += each.values()
        elif not isinstance(each, _NOBODYS):
            yield each
            owner = getattr(each, "__self__", None)
            if isinstance(each, types.BuiltinMethodType | types.MethodType) and owner is not None:
                yield owner


def _is_seen_unchanged(name: str, entry: Execution) -> bool:
    """Whether an entry looked at a name, and found it as it was."""
    return (
        bool(entry.after.get(name))
        and entry.before.get(name) == entry.after[name]
        and name not in entry.changed | entry.opaque
    )


def _are_files_unchanged(resource: str, *runs: Execution) -> bool:
    """Whether it is known that no run changed these files, or that each made and removed the same
    in this folder. A process may have written anywhere.
    """
    if not resource.startswith("file:") or any(run.notes for run in runs):
        return False
    path = resource.removeprefix("file:")
    if any(path in run.files or any(each.endswith(path) for each in run.ambient) for run in runs):
        return False  # it, or who may use it, or when it was written
    if resource == FILES:
        return all(
            thing in {f"file:{each}" for each in run.files} or Path(parted(thing)[1]).is_dir()
            for run in runs
            for thing in written_by(run)
            if parted(thing)[0] == "file"
        )
    made = [
        {
            each: (change.before is None, change.after is None)
            for each, change in run.files.items()
            if str(Path(each).parent) == path and (change.before is None) != (change.after is None)
        }
        for run in runs
    ]
    return all(each == made[0] for each in made)
