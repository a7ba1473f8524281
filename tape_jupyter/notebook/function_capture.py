"""Notebook room: a taped function that goes live: what it gave, what it changed, how far its generator came; committed
once. Nothing here ever raises into the program: what cannot be kept is a warning of the cell.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tape_jupyter.calls import FunctionCall, Value, Where
from tape_jupyter.errors import CassetteError
from tape_jupyter.freezing import CannotFreeze, Steps, freeze_error
from tape_jupyter.freezing.effects import Frozen, frozen_or_type
from tape_jupyter.masked_values import MaskedValues
from tape_jupyter.matching import Asked, asked_function
from tape_jupyter.notebook import answers
from tape_jupyter.notebook.capture import Passing, Taking
from tape_jupyter.notebook.effects import Observed
from tape_jupyter.notebook.moved import Body
from tape_jupyter.notebook.taped import Cell, Row
from tape_jupyter.secrets import Secrets
from tape_jupyter.states import FIELDS, STATE, state_by_value, type_name


def as_asked(call: FunctionCall, secrets: Secrets) -> tuple[FunctionCall, Asked]:
    """The call with its arguments frozen as they are now (the body may change them), and what it is found by.

    An argument that cannot be frozen stands as its type, with its state as far as that can be told (states.py).
    """
    arguments: dict[str, Any] = {}
    states: list[str] = []
    by_state: list[str] = []
    by_type: dict[str, tuple[int, ...]] = {}
    masked = MaskedValues(f"{call.kind} {call.name}", secrets)
    for name, value in call.arguments.items():
        structure = frozen_or_type(value)
        if type(value) is not Frozen and type(structure) is dict and "<opaque>" in structure:
            state = state_by_value(value, masked, name)
            structure = {**structure, **state.record()}
            states.append(f"{name}={state.digest}")
            by_state.append(f"{name} ({structure['<opaque>']})")
            by_type |= state.less
        arguments[name] = Frozen(structure)
    own = _own_state(call, secrets)
    if own is not None:
        states.append(f"self={own[STATE]}")
    frozen = FunctionCall(
        call.name, arguments, call.kind, call.discreet, None if own is None else Frozen(own), call.scope
    )
    told = asked_function(frozen, secrets, states)
    told = told._replace(
        by_type=tuple(by_type),
        masked=(*masked.weak, *told.masked),
        given=(*masked.given, *told.given),
        by_value=(*by_state, *masked.keyed, *told.by_value),
        plain=(*told.plain, *masked.weak.items(), *by_type.items()),
    )
    return frozen, told


def _own_state(call: FunctionCall, secrets: Secrets) -> dict[str, Any] | None:
    """A method's own object by its fields; None where it has none that hold a value."""
    if call.own is None or isinstance(call.own, type):
        return None
    state = state_by_value(call.own, MaskedValues(f"{call.kind} {call.name} self", secrets), "self")
    return {"<opaque>": type_name(call.own), **state.record()} if state.fields else None


class FunctionCapture(Taking, Passing):
    """A taped function whose body runs (calls.Capture). One that an interrupt stopped gave nothing to keep.

    `call` has its arguments as they were asked (as_asked). A generator that its cell
    left open is committed at the cell's end, and what it does later is added by a `more:` record.
    """

    def __init__(
        self, cell: Cell, secrets: Secrets, asked: Asked, where: Where, call: FunctionCall, arguments: Mapping[str, Any]
    ) -> None:
        super().__init__(cell, secrets, asked, call.kind, where)
        self.call, self._arguments = call, arguments
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

    def _changed(self) -> tuple[str, ...]:
        """Types of arguments that cannot be written and that are not as they were asked."""
        found: dict[str, None] = {}
        for name, asked in self.call.arguments.items():
            before = asked.structure if isinstance(asked, Frozen) else None
            if isinstance(before, dict) and "<opaque>" in before and before.get(FIELDS):
                masked = MaskedValues(f"{self.call.kind} {self.call.name}", self.secrets)
                if state_by_value(self._arguments[name], masked, name).digest != before.get(STATE):
                    found[before["<opaque>"]] = None
        return tuple(found)

    def _keep(self, value: Value, error: str = "") -> None:
        row = Row(self.id, self.call.kind, self.call.name, seconds=self._elapsed(), error=error)
        self._commit(self.call, replace(value, moved=self._body.moved(), changed=self._changed()), {}, row)
        if not self._in_time:
            self._say_if_late()
            self.handed(ends=True)
        if self._steps is None:
            self._let_go()

    def _let_go(self) -> None:
        """The program's own objects: a context that outlives the call keeps this, and would keep them."""
        self.observed.let_go()
        self._arguments = {}
        self.call = replace(self.call, scope=None)

    def _add(self, late: Value) -> None:
        if self.entry is None or self.cell.cassette is None:
            return
        try:
            self.cell.cassette.append_more(self.entry, late, self.secrets)
        except (CassetteError, OSError) as problem:
            self.cell.lose(f"the last items of call {self.id} are NOT on the tape: {problem}")
