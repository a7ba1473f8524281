"""Bodies that run beside each other: what one says it changed, no other says again."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from types import ModuleType
from typing import Any

from tape_jupyter.effects.changes import Changes
from tape_jupyter.effects.memory import Snapshot
from tape_jupyter.effects.scope import NamesInUse, Scope

_LOCK = threading.RLock()


class Bodies:
    """The snapshots of the bodies that run now, of one cell: what one says it changed, no other
    says again, but those that it runs in.
    """

    def __init__(self) -> None:
        self._running: list[Snapshot] = []
        self._names = NamesInUse()
        self.open: list[Any] = []
        """What hears of them, in the order in which they began."""
        self.shown_last: Any = None
        """Whose body, among those that no other runs, showed something last."""

    def begin(self, scope: Scope, around: Sequence[Snapshot] = ()) -> Snapshot:
        """A body is about to run, in those `around` it."""
        with _LOCK:
            snapshot = Snapshot(scope, self._names, self._list_beside(around))
            self._running.append(snapshot)
            return snapshot

    def reach_module(self, snapshot: Snapshot, module: ModuleType) -> None:
        """The body of this snapshot imported a module of the user's, which has just run."""
        with _LOCK:
            snapshot.reach_module(module)
            snapshot.visit_waiting()

    def end(self, snapshot: Snapshot, around: Sequence[Snapshot] = ()) -> Changes:
        """It has ended: what it changed."""
        with _LOCK:
            if snapshot in self._running:
                self._running.remove(snapshot)
            if not self._running:
                self._names = NamesInUse()
            return snapshot.changes(self._list_beside(around))

    @contextmanager
    def act_apart(
        self, objects: Sequence[Any], acting: Sequence[Snapshot]
    ) -> Iterator[list[Changes]]:
        """Inside, code of these objects runs that a replay runs, too: no body says what it changes. Gives
        what each of the bodies of `acting`, one in the other, changed before of what that code looks at.
        """
        with _LOCK:
            snapshot = Snapshot(Scope(None, {"objects": list(objects)}), self._names)
            beside = self._list_beside(acting)
            changed_before = [each.changes_within(snapshot, beside) for each in acting]
        try:
            yield changed_before
        finally:
            with _LOCK, suppress(Exception):  # of the objects' own code
                changed = [node for node, _ in snapshot.find_changed([])]
                for each in self._running:
                    each.adopt_others(changed)

    def _list_beside(self, around: Sequence[Snapshot]) -> list[Snapshot]:
        return [each for each in self._running if each not in around]
