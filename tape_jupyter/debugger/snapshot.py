"""The notebook as it was before a cell, kept while the cell is stepped, so that it can be run
again.

Kept are the names, what the objects hold that the cell can reach (mementos: the very same objects
are made to hold it again), ambient state, attributes of modules that it names, and what the files
held that it writes. What has changed and cannot be put back is named: a generator, a file too large.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from tape_jupyter.dataflow.fingerprint.fingerprint import Print, fingerprint
from tape_jupyter.dataflow.restore.restore import Shell, put_file
from tape_jupyter.dataflow.restore.snapshots import Memento, remember_value
from tape_jupyter.dataflow.static.names import cell_names
from tape_jupyter.dataflow.tracing import ambient
from tape_jupyter.dataflow.tracing.files import FileWatch
from tape_jupyter.dataflow.tracing.steps import mentioned
from tape_jupyter.dataflow.tracing.variables import Variables

_PASSING = frozenset({"_i", "_ii", "_iii", "_ih", "_dh", "In"})


def reached(source: str, variables: Variables) -> set[str]:
    """The variables that a cell's code (as IPython transformed it) can reach."""
    statements = cell_names(source).statements
    if statements:
        mention = set().union(*(mentioned(each, variables) for each in statements))
    else:
        mention = set()
    resources = variables.closure(mention)
    return resources | variables.sharing(resources)


@dataclass(frozen=True, slots=True)
class Lost:
    """What could not be put back: names of variables, paths of files."""

    names: list[str]
    files: list[str]


class NamespaceSnapshot:
    """The state of a namespace, and of what the `reach` of a cell holds; taken once, put back as
    often as wanted.
    """

    def __init__(self, shell: Shell, variables: Variables, reach: Iterable[str]) -> None:
        self._shell = shell
        self._names = dict(shell.user_ns)
        self._out = dict(shell.user_ns.get("_oh", {}))
        self._mementos: dict[str, Memento] = {}
        self._modules: dict[str, dict[str, Any]] = {}
        self._variables = variables
        self._prints: dict[str, Print] = {}
        for name in reach:
            value = variables.value(name)
            if isinstance(value, types.ModuleType):
                self._modules[value.__name__] = dict(vars(value))
            elif ":" in name or name in self._names:
                self._mementos[name] = remember_value(value)
                if not self._mementos[name].possible():
                    self._prints[name] = fingerprint(value, variables.namespace)
        self._ambient = ambient.take_ambient()
        self._watch = FileWatch()
        self._watch.begin()

    def restore(self) -> Lost:
        """Make everything as it was; gives what could not be. Called while no code of the cell runs."""
        files = self._put_files()
        self._put_names()
        beyond: list[str] = []
        for name, memento in self._mementos.items():
            if memento.possible():
                memento.restore()
            else:
                beyond.append(name)
        for name, was in self._modules.items():
            if name in sys.modules and (change := ambient.module_changes(name, was)) is not None:
                ambient.restore_part(f"{ambient.MODULE}{name}", change.before)
        self.put_ambient()
        self._watch.begin()
        return Lost(sorted(name for name in beyond if self._is_changed(name)), files)

    def _is_changed(self, name: str) -> bool:
        """Whether a variable does not show what it showed, or does not show what it holds."""
        variables, was = self._variables, self._prints.get(name)
        now = fingerprint(variables.value(name), variables.namespace)
        return was is None or now.opaque or now.digest != was.digest

    def put_ambient(self) -> None:
        """The process's state alone."""
        for name, change in ambient.changed_parts(self._ambient, ambient.take_ambient()).items():
            if change.known:
                ambient.restore_part(name, change.before)

    def end(self) -> None:
        """It is not needed any more."""
        self._watch.end()

    def _put_names(self) -> None:
        now = self._shell.user_ns
        for name in [name for name in now if name not in self._names and name not in _PASSING]:
            del now[name]
        for name, value in self._names.items():
            if now.get(name, self) is not value and name not in _PASSING:
                now[name] = value
        out = now.get("_oh")
        if isinstance(out, dict):
            out.clear()
            out.update(self._out)

    def _put_files(self) -> list[str]:
        lost = []
        for path, change in sorted(self._watch.end().changes().items(), reverse=True):
            if change.known:
                put_file(path, change.before)
            else:
                lost.append(path)
        return lost
