"""Puts names, objects, files and ambient state back to what they were at some point of the history.

Between two cells of a re-run the kernel is idle: all here happens at once, with no code of the
user's run. What a person did not run is put back at the end (dataflow/restore/rerun.py).
"""

from __future__ import annotations

import os
import shutil
import sys
import types
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from tape_jupyter.core.atomic_write import replacing
from tape_jupyter.dataflow.fingerprint.fingerprint import fingerprint
from tape_jupyter.dataflow.history import Change, Execution, History
from tape_jupyter.dataflow.restore.snapshots import Memento, remember_value
from tape_jupyter.dataflow.restore.versions import BEGINNING, Versions, changed_by, parted
from tape_jupyter.dataflow.tracing import ambient
from tape_jupyter.files.links import link_above, put_link
from tape_jupyter.files.stand_ins import DIRECTORY, stand_in, target_of

_VAST = 512 << 20
"""Bytes of arrays and tables that are kept once, while a re-run lasts, so that it can be cancelled."""
_ABSENT: Any = object()
_SHOWN = ("_", "__", "___")
_IN_PARTS = frozenset({"environment"})
"""Ambient state that is a dict by what the resources call its parts."""


class Shell(Protocol):
    """What is needed of IPython's shell."""

    user_ns: dict[str, Any]


def hold_values(entry: Execution) -> None:
    """Keep what the entry's values hold now; called at its end. What could not be put back is not
    kept at all: an open file, a connection, a generator live as long as the notebook holds them,
    and so does what has a `__del__`.
    """
    for name, value in list(entry.kept.items()):
        memento = entry.mementos[name] = remember_value(value, complete_only=True)
        if not memento.is_complete or memento.ends or (memento.dark and name in entry.opaque):
            entry.mementos[name] = memento.bare()
            del entry.kept[name]


def put_file(path: str, content: bytes | None) -> None:
    """Make the file hold `content`, or be gone (None). It is a new file: whoever has the old one
    open keeps that.
    """
    file = Path(path)
    if link := link_above(path, os.getcwd()):  # noqa: PTH109 - a text is wanted
        if content is None:
            return
        Path(link).unlink()  # a folder stood there
    mark = stand_in(path)
    if mark is not None and mark == content:
        return
    if file.is_symlink():
        file.unlink()
    if (target := target_of(content)) is not None:
        with suppress(OSError):  # as below
            put_link(file, target)
        return
    if content == DIRECTORY:
        file.mkdir(parents=True, exist_ok=True)
        return
    if content is None:
        with suppress(OSError):  # a directory that holds what no cell wrote stays
            file.rmdir() if file.is_dir() else file.unlink()
        return
    if read_file(path) == content:
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    there = file.exists()
    with replacing(file, private=there) as draft:
        draft.write_bytes(content)
        if there:
            shutil.copymode(file, draft)


def read_file(path: str) -> bytes | None:
    """Its bytes, or what stands for them; None where nothing can be read (of a pipe nothing is: that
    would wait).
    """
    file = Path(path)
    if (mark := stand_in(path)) is not None:
        return mark
    try:
        return file.read_bytes() if file.is_file() else None
    except OSError:
        return None


@dataclass(slots=True)
class World:
    """The live state: a namespace, files and ambient state, of which each thing has a version of
    the history.
    """

    shell: Shell
    names: dict[str, Any] = field(default_factory=dict)
    """The names as they were when the re-run began."""
    mementos: dict[str, Memento] = field(default_factory=dict)
    unsure: set[str] = field(default_factory=set)
    """Names that are not what the history says: something changed them that nobody saw. They are
    left as they are.
    """
    out: dict[Any, Any] = field(default_factory=dict)
    number: int | None = None
    """The next prompt's number when the re-run began; None where the shell keeps a history: that
    wants new numbers.
    """
    modules: dict[str, types.ModuleType] = field(default_factory=dict)
    """Modules of the user's that are not imported, as before the cell that did: what they were when
    it began.
    """
    others: dict[str, Change] = field(default_factory=dict)
    """Files and ambient state as they were when the re-run began, in `after`."""

    @classmethod
    def now(cls, shell: Shell, history: History) -> World:
        """The world as it is, with all that is needed to come back to it."""
        world = cls(shell, names=dict(shell.user_ns), out=dict(shell.user_ns.get("_oh", {})))
        if not getattr(getattr(shell, "history_manager", None), "enabled", True):
            world.number = getattr(shell, "execution_count", None)
        for name in {name for entry in history for name in entry.changed}:
            if ":" in name and (value := world.value(name, _ABSENT)) is not _ABSENT:
                world.names[name] = value
            if name in world.names:
                world.mementos[name] = remember_value(world.names[name], size=_VAST)
        last = {name: entry for entry in history for name in changed_by(entry)}
        world.unsure = {
            name
            for name, changer in last.items()
            if not (parted(name)[0] or name in changer.opaque or world.is_what(name, changer))
        }
        for part, value in ambient.take_ambient().items():
            world.others[f"ambient:{part}"] = Change(None, value)
        versions = Versions(history)
        for part in {
            part for entry in history for part in entry.ambient if part.startswith(ambient.MODULE)
        }:
            world.others[f"ambient:{part}"] = Change(
                None, _collect_attributes(part, len(history), versions)
            )
        for part in {
            part for e in history for part in e.ambient if part.startswith(ambient.IMPORTED)
        }:
            name = part.removeprefix(ambient.IMPORTED)
            there = sys.modules.get(name, ambient.ABSENT)
            world.others[f"ambient:{part}"] = Change(None, there)
        for path in {path for entry in history for path in entry.files}:
            world.others[f"file:{path}"] = Change(None, read_file(path))
        return world

    def is_what(self, name: str, entry: Execution) -> bool:
        """Whether the name holds now what it held after `entry`, which changed it last."""
        value = self.value(name, _ABSENT)
        if value is _ABSENT:
            return entry.after.get(name, "") == ""
        print_ = fingerprint(value, self.shell.user_ns)
        return print_.opaque or entry.after.get(name) in {None, print_.digest}

    def restore_version(self, thing: str, version: int, versions: Versions) -> None:
        """Give the thing the version it had after entry `version`, as far as it was kept."""
        kind, rest = parted(thing)
        if kind:
            self._put_change(kind, rest, version, versions)
        elif version == BEGINNING:
            self._remove_name(thing, versions)
        else:
            self._put_name(thing, version, versions)

    def _remove_name(self, name: str, versions: Versions) -> None:
        if not versions.began(name):
            return
        module = name.rpartition(":")[0]
        if module and module in versions.history[versions.changers(name)[0]].imported:
            if module in sys.modules:
                self.modules[module] = sys.modules.pop(module)  # who imports it again runs it again
            return
        self.unbind(name)

    def _find_namespace(self, variable: str) -> tuple[dict[str, Any], str]:
        """Where a variable lives: the notebook, or the user's module that it names."""
        module, colon, name = variable.rpartition(":")
        if not colon:
            return self.shell.user_ns, name
        namespace = vars(sys.modules[module]) if module in sys.modules else {}
        return namespace, name

    def bind(self, variable: str, value: Any) -> None:
        home, name = self._find_namespace(variable)
        home[name] = value

    def unbind(self, variable: str) -> None:
        home, name = self._find_namespace(variable)
        home.pop(name, None)

    def value(self, variable: str, default: Any = None) -> Any:
        home, name = self._find_namespace(variable)
        return home.get(name, default)

    def value_now(self, thing: str) -> Any:
        """Of a name; of ambient state, its parts."""
        kind, rest = parted(thing)
        if kind:
            return ambient.PARTS[rest].capture() if rest in _IN_PARTS else None
        return self.value(thing)

    def _put_name(self, name: str, version: int, versions: Versions) -> None:
        entry = versions.history[version]
        if entry.after.get(name) == "":
            self.unbind(name)
        elif name in entry.kept:
            self.bind(name, entry.kept[name])
            memento = entry.mementos.get(name)
            if memento is not None and memento.possible():
                memento.restore()
        elif (after := versions.next(name, version)) is not None and versions.history[
            after
        ].after.get(name) == "":
            home, bare = self._find_namespace(name)
            home.setdefault(bare, None)  # `del` asks for no value, but that there is one

    def _put_change(self, kind: str, rest: str, version: int, versions: Versions) -> None:
        thing = f"{kind}:{rest}"
        if rest.startswith(ambient.MODULE):
            self._put_value(kind, rest, _collect_attributes(rest, version, versions))
            return
        index = versions.changers(thing)[0] if version == BEGINNING else version
        entry = versions.history[index]
        change = (entry.ambient if kind == "ambient" else entry.files).get(rest)
        if change is not None and change.known:
            self._put_value(kind, rest, change.before if version == BEGINNING else change.after)

    def _put_value(self, kind: str, rest: str, value: Any) -> None:
        if kind == "ambient":
            ambient.restore_part(rest, value)
        else:
            put_file(rest, value)

    def put_first(self, thing: str, *, complete_only: bool = False) -> None:
        """As it was when the re-run began. `complete_only`: what a value held only where all of it can be
        put back: halves of a client's connections do harm to a cell that uses them next.
        """
        kind, rest = parted(thing)
        if kind:
            if thing in self.others:
                self._put_value(kind, rest, self.others[thing].after)
            return
        if (module := thing.rpartition(":")[0]) in self.modules and module not in sys.modules:
            sys.modules[module] = self.modules[module]
        if thing in self.names:
            self.bind(thing, self.names[thing])
        else:
            self.unbind(thing)
        if thing in self.mementos and (self.mementos[thing].is_complete or not complete_only):
            self.mementos[thing].restore()

    def put_all_first(self, changed: Iterable[str]) -> None:
        """Everything as it was when the re-run began; `changed` are the things that it changed
        besides.
        """
        sys.modules.update(self.modules)
        for thing in {*self.names, *self.mementos, *self.others, *changed}:
            if (
                thing in self.mementos
                or thing in self.others
                or self.names.get(thing, _ABSENT) is not self.value(thing, _ABSENT)
            ):
                self.put_first(thing)
        if isinstance(now := self.shell.user_ns.get("_oh"), dict):
            now.clear()
            now.update(self.out)

    # ------------------------------------------------------------- what the shell shows: _, __, ___ and Out

    def restore_output_history(self, number: int | None) -> None:
        """`_`, `__`, `___` and Out as they were before the cell of that prompt number."""
        shell: Any = self.shell
        out = shell.user_ns.get("_oh")
        if number is None or not hasattr(shell, "displayhook") or not isinstance(out, dict):
            return
        out.pop(number, None)
        shell.user_ns.pop(f"_{number}", None)
        if self.number is not None:
            shell.execution_count = number
        self._show_newest(n for n in out if isinstance(n, int) and n < number)

    def renumber(self, now: int | None, then: int | None) -> None:
        """What a cell displayed when it ran again is Out[its old number]."""
        out = self.shell.user_ns.get("_oh")
        if (
            now is None
            or then is None
            or now == then
            or not isinstance(out, dict)
            or now not in out
        ):
            return
        out[then] = self.shell.user_ns[f"_{then}"] = out.pop(now)
        self.shell.user_ns.pop(f"_{now}", None)

    def show_last(self) -> None:
        """The same for the next cell that a person runs."""
        shell: Any = self.shell
        if self.number is not None:
            shell.execution_count = self.number
        if hasattr(shell, "displayhook") and isinstance(shell.user_ns.get("_oh"), dict):
            self._show_newest(n for n in shell.user_ns["_oh"] if isinstance(n, int))

    def _show_newest(self, numbers: Iterable[int]) -> None:
        shell: Any = self.shell
        out = shell.user_ns["_oh"]
        values = [out[n] for n in sorted(numbers)][-1:-4:-1]
        for name, value in zip(_SHOWN, [*values, "", "", ""], strict=False):
            if shell.user_ns.get(name) is getattr(
                shell.displayhook, name, None
            ):  # else a person has a `_` of their own
                setattr(shell.displayhook, name, value)
                shell.push({name: value}, interactive=False)


def _collect_attributes(part: str, version: int, versions: Versions) -> dict[str, Any]:
    """The attributes of a module that any entry changed, as they were after entry `version`."""
    attributes: dict[str, Any] = {}
    for index in versions.changers(f"ambient:{part}"):
        change = versions.history[index].ambient.get(part)
        if change is not None and index <= version:
            attributes |= change.after
        elif change is not None:
            attributes = {**change.before, **attributes}
    return attributes


def namespace(values: dict[str, Any]) -> Shell:
    """A shell that is only a namespace, for whoever has no other."""
    return types.SimpleNamespace(user_ns=values)
