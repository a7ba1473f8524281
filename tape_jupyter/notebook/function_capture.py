"""Notebook room: a taped function that goes live: what it gave, what it changed, how far its generator came; committed
once. Nothing here ever raises into the program: what cannot be kept is a warning of the cell.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

from tape_jupyter.calls import FunctionCall, Value, Where
from tape_jupyter.errors import CassetteError
from tape_jupyter.freezing import CannotFreeze, Steps, freeze_error
from tape_jupyter.freezing.effects import Frozen, frozen_or_type
from tape_jupyter.notebook import answers
from tape_jupyter.notebook.capture import Passing, Taking
from tape_jupyter.notebook.effects import Observed
from tape_jupyter.notebook.moved import Body
from tape_jupyter.notebook.taped import Cell, Row
from tape_jupyter.secrets import Secrets


def as_asked(call: FunctionCall) -> FunctionCall:
    """The call with its arguments frozen as they are now: the body may change them."""
    arguments = {name: Frozen(frozen_or_type(value)) for name, value in call.arguments.items()}
    return FunctionCall(call.name, arguments, call.kind, call.discreet, call.scope)


class FunctionCapture(Taking, Passing):
    """A taped function whose body runs (calls.Capture). One that an interrupt stopped gave nothing to keep.

    `call` has its arguments as they were asked (as_asked). A generator that its cell
    left open is committed at the cell's end, and what it does later is added by a `more:` record.
    """

    def __init__(self, cell: Cell, secrets: Secrets, match: str, where: Where, call: FunctionCall) -> None:
        super().__init__(cell, secrets, match, call.kind, where)
        self.call = call
        self._pending: asyncio.CancelledError | None = None
        self._steps: Steps | None = None
        self._items_kept = -1
        self._in_time = False
        self._body = Body(cell, where.lineage, call.name)
        self.observed = Observed(cell, call)

    def value(self, value: Any) -> None:
        if isinstance(value, Steps):
            self._end_steps()
            return
        did = self.observed.end()
        try:
            structure = answers.kept(self.call, value, self.secrets) or self.observed.written(value, did)
        except CannotFreeze as error:
            self.cell.warn(f"{self.call.kind} {self.call.name} is not on the tape: {error}", cold=True)
            self._keep(Value(unkept=str(error), seconds=self._elapsed(), did=did), "not kept")
        else:
            self._keep(Value(structure, seconds=self._elapsed(), did=did))

    def progress(self, steps: Steps) -> None:
        self._steps = steps
        self.observed.end()
        self._body.alone = False  # other code runs between its steps
        self.cell.running[self] = None

    def stepping(self) -> None:
        self.observed.begin()

    def stepped(self) -> None:
        did = self.observed.end()
        if did and self._steps is not None:
            self._steps.did[len(self._steps.items)] = did

    def shown(self, event: dict[str, Any]) -> None:
        self.observed.shown(event)

    def close(self) -> None:
        self.observed.end()
        self._body.moved()
        self.cell.running.pop(self, None)

    def fail(self, error: BaseException) -> None:
        if isinstance(error, asyncio.CancelledError) and self._of_the_cells_end(error):
            self._pending = error
            self.cell.running[self] = None
        elif not isinstance(error, KeyboardInterrupt):
            self._raised(error)
        elif self._steps is not None:
            self._steps.end = "cut short"
            self._end_steps()

    def cell_ended(self, *, interrupted: bool) -> None:
        self._in_time = True
        if self._pending is not None and not interrupted:
            self._raised(self._pending)
        elif self._steps is not None:
            self._steps.end = "cut short" if self._pending is not None else "closed"
            self._keep_steps()

    def _raised(self, error: BaseException) -> None:
        told = f"{type(error).__name__}: {error}"
        did = self.observed.end()
        if self._steps is not None:
            self._steps.end, self._steps.error = "error", freeze_error(error)
            self._end_steps(told)
        else:
            frozen = freeze_error(error)
            self._keep(Value(error=frozen, seconds=self._elapsed(), did=did), told)

    def _end_steps(self, error: str = "") -> None:
        self.cell.running.pop(self, None)
        self._keep_steps(error)

    def _keep_steps(self, error: str = "") -> None:
        """Commit what the generator did that is not on the tape yet."""
        assert self._steps is not None
        before, self._items_kept = self._items_kept, len(self._steps.items)
        for item in self._steps.items[max(before, 0) :]:
            self._name_if_unkept(item)
        if before < 0:
            self._keep(Value(self._steps.structure(), seconds=self._elapsed()), error)
        elif before < self._items_kept or self._steps.end != "closed":
            self._add(Value(self._steps.structure(before)))

    def _name_if_unkept(self, item: Any) -> None:
        if isinstance(item, dict) and item.get("<type>") == "not kept":
            self.cell.warn(
                f"{self.call.kind} {self.call.name} yielded what cannot be on the tape: {item['why']}. In replay a "
                "stand-in takes its place, which may be handed to taped functions and refuses any other use",
                cold=True,
            )

    def _keep(self, value: Value, error: str = "") -> None:
        row = Row(self.id, self.call.kind, self.call.name, seconds=self._elapsed(), error=error)
        self._commit(self.call, replace(value, moved=self._body.moved()), {}, row)
        if not self._in_time:
            self._say_if_late()
            self.handed(ends=True)

    def _add(self, late: Value) -> None:
        if self.entry is None or self.cell.cassette is None:
            return
        try:
            self.cell.cassette.append_more(self.entry, late, self.secrets)
        except (CassetteError, OSError) as problem:
            self.cell.warn(f"the last items of call {self.id} are NOT on the tape: {problem}", cold=True)
