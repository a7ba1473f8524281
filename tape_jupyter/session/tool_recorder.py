"""A taped function that goes live: what it gave, what it changed, how far its generator came;
committed once. Nothing here ever raises into the program: what cannot be kept is a warning of the
cell.

What people type at prompts (`input`, `getpass`). A secret is learned and never written; in replay a
placeholder stands for it, that is scrubbed to the same marker. Asks nobody, prompts nowhere.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from types import ModuleType
from typing import Any

from tape_jupyter.cassette.match_key import MatchedRequest, asked_function
from tape_jupyter.core.call import Capture, FunctionCall, Value, Where
from tape_jupyter.core.moved_folders import FOLDERS, MovedFolders
from tape_jupyter.encoding.values.generators import BEFORE_STEPS
from tape_jupyter.encoding.values.mutations import FrozenValue, frozen_or_type
from tape_jupyter.encoding.values.registry import (
    CannotFreeze,
    GeneratorSteps,
    Secret,
    freeze,
    freeze_error,
)
from tape_jupyter.encoding.values.tracebacks import with_frames
from tape_jupyter.errors import CassetteError
from tape_jupyter.replay.object_state import FIELDS, STATE, object_type_name, state_by_value
from tape_jupyter.secrets.masked_values import MaskedValues
from tape_jupyter.secrets.registry import Secrets, marker
from tape_jupyter.session.cell import ReportRow, TapedCell
from tape_jupyter.session.http_recorder import RecorderBase
from tape_jupyter.session.pins.random import Body
from tape_jupyter.session.recorded_folders import note_named_folders
from tape_jupyter.session.tool_effects import ObservedBody

_ASKS = re.compile(
    r"\b(?:pass(?:word|phrase|code|wd)?|secrets?|credentials?|token|pin|otp"
    r"|(?:api|access|secret|private|licen[cs]e|subscription|account|auth\w*|your)[ _-]?key|key(?=\W*$))\b",
    re.IGNORECASE,
)
"""Words of a prompt that asks for a secret. "Enter the key figure" and "max tokens" do not."""

_LOOKS = re.compile(
    r"(?:sk-|AIza|gsk_|hf_|gh[pousr]_|github_pat_|xai-|pplx-|tvly-|lsv2_|AKIA|xox[abp]-|glpat-|eyJ)[\w.\-]{12,}"
    r"|(?=\S*[A-Za-z])(?=\S*\d)(?!\S*[/\\:@])[\w.+=\-]{24,}"
)
"""A key by its prefix, or 24 characters or more of letters and digits in one word that is no path
or address.
"""

PLACED_ITEMS = 1_000
"""Items of a generator that have places in the order of hand-overs."""

_MARKER = re.compile(r"<secret:([\w.\-]+)>")


def is_secret(prompt: str, answer: str) -> bool:
    """Whether an answer may not be written, by what was asked or by how it looks."""
    return _ASKS.search(prompt) is not None or _LOOKS.fullmatch(answer.strip()) is not None


def secret_name(call: FunctionCall) -> str:
    """What the secret is called: `ANTHROPIC_API_KEY` where "Anthropic API key: " was asked."""
    name = re.sub(r"\W+", "_", _read_prompt(call)).strip("_").upper()
    return name[:60].strip("_") or call.name.upper()


def written_secret(call: FunctionCall, answer: Any, secrets: Secrets) -> Any:
    """What is written of a secret answer, which is learned; None where the answer is none."""
    looks_secret = call.discreet == "maybe" and is_secret(_read_prompt(call), str(answer))
    if not (looks_secret or call.discreet == "yes") or not isinstance(answer, str):
        return None
    secrets.learn(secret_name(call), answer)
    # it may be known by another name, which then is its marker's
    known = _MARKER.fullmatch(secrets.scrub(answer)[0])
    return freeze(Secret(known[1] if known else secret_name(call)))


def replayed_value(value: Value, secrets: Secrets) -> Value:
    """The value as replay gives it: a placeholder for a secret."""
    structure = value.value
    if not isinstance(structure, Mapping) or structure.get("<type>") != "secret":
        return value
    return replace(value, value=secrets.create_placeholder(str(structure.get("name"))))


def unrecorded(call: FunctionCall, secrets: Secrets) -> Value:
    """The same for a secret that was typed while nothing was taped: it would not be on the tape in
    any case.
    """
    return Value(untyped_secret(call, secrets))


def untyped_secret(call: FunctionCall, secrets: Secrets) -> str:
    """The same where a person was asked for a secret and typed none, or nobody could be asked."""
    return secrets.create_placeholder(
        secret_name(call), f"the answer to {_read_prompt(call).strip()!r}"
    )


def asks_a_secret(call: FunctionCall) -> bool:
    """Whether a secret is asked for, by what asks or by its words."""
    return call.discreet == "yes" or (
        call.discreet == "maybe" and is_secret(_read_prompt(call), "")
    )


def _read_prompt(call: FunctionCall) -> str:
    return str(frozen_or_type(call.arguments.get("prompt", "")))


def freeze_call(
    call: FunctionCall, secrets: Secrets, folders: MovedFolders | None = None
) -> tuple[FunctionCall, MatchedRequest]:
    """The call with its arguments frozen as they are now (the body may change them), and what it is
    found by.

    An argument that cannot be frozen stands as its type, with its state as far as that can be told
    (replay/object_state.py). Texts name `folders` as they were recorded.
    """
    arguments: dict[str, Any] = {}
    states: list[str] = []
    by_state: list[str] = []
    by_type: dict[str, tuple[int, ...]] = {}
    masked = MaskedValues(f"{call.kind} {call.name}", secrets)
    for name, value in call.arguments.items():
        structure = frozen_or_type(value)
        structure = folders.recorded(structure) if folders else structure
        if type(value) is not FrozenValue and type(structure) is dict and "<opaque>" in structure:
            state = state_by_value(value, masked, name, folders)
            structure = {**structure, **state.record()}
            states.append(f"{name}={state.digest}")
            by_state.append(f"{name} ({structure['<opaque>']})")
            by_type |= state.less
        arguments[name] = FrozenValue(structure)
    own_state = _read_own_state(call, secrets, folders)
    if own_state is not None:
        states.append(f"self={own_state[STATE]}")
    frozen = FunctionCall(
        call.name,
        arguments,
        call.kind,
        call.discreet,
        None if own_state is None else FrozenValue(own_state),
        call.scope,
    )
    matched = asked_function(frozen, secrets, states)
    matched = matched._replace(
        by_type=tuple(by_type),
        masked=(*masked.weak, *matched.masked),
        given=(*masked.given, *matched.given),
        by_value=(*by_state, *masked.keyed, *matched.by_value),
        plain=(*matched.plain, *masked.weak.items(), *by_type.items()),
    )
    return frozen, matched


def _read_own_state(
    call: FunctionCall, secrets: Secrets, folders: MovedFolders | None
) -> dict[str, Any] | None:
    """A method's own object by its fields; None where it has none that hold a value."""
    if call.instance is None or isinstance(call.instance, type):
        return None
    masked = MaskedValues(f"{call.kind} {call.name} self", secrets)
    state = state_by_value(call.instance, masked, "self", folders)
    if state.fields:
        return {"<opaque>": object_type_name(call.instance), **state.record()}
    return None


class FunctionCapture(RecorderBase, Capture):
    """A taped function whose body runs (core/call.py, `Capture`). One that an interrupt stopped gave nothing
    to keep.

    `call` has its arguments as they were asked (as_asked). A generator that its cell
    left open is committed at the cell's end, and what it does later is added by a `more:` record.
    """

    def __init__(
        self,
        cell: TapedCell,
        secrets: Secrets,
        matched: MatchedRequest,
        where: Where,
        call: FunctionCall,
        arguments: Mapping[str, Any],
    ) -> None:
        super().__init__(cell, secrets, matched, call.kind, where)
        self.call, self._arguments = call, arguments
        self._pending: asyncio.CancelledError | None = None
        self._is_awaited = False
        self._steps: GeneratorSteps | None = None
        self._items_kept = -1
        self._in_time = False
        self._body = Body(cell, where.lineage, call.name)
        self.observed = ObservedBody(cell, call, self)

    def value(self, value: Any) -> None:
        if isinstance(value, GeneratorSteps):
            self._end_steps()
            return
        did = self.observed.end()
        try:
            structure = written_secret(self.call, value, self.secrets) or self.observed.written(
                value, did
            )
        except CannotFreeze as error:
            self.cell.warn(
                f"{self.call.kind} {self.call.name} is not on the tape: {error}", cold=True
            )
            self._commit_value(
                Value(unkept=str(error), seconds=self._measure_elapsed(), did=did), "not kept"
            )
        else:
            self._commit_value(Value(structure, seconds=self._measure_elapsed(), did=did))

    def turn(self) -> Awaitable[bool] | None:
        """Nothing where the body awaited nothing: its task goes on, as it would untaped."""
        self._gave_at_once = self.observed.awaited_nothing()
        return super().turn()

    def progress(self, steps: GeneratorSteps) -> None:
        self._steps = steps
        if did := self.observed.end_step():  # a plain function that gave the generator
            steps.did[BEFORE_STEPS] = did
        self._body.alone = False  # other code runs between its steps
        self.cell.recording.running[self] = None

    def stepping(self) -> None:
        self.observed.begin()

    def stepped(self) -> None:
        did = self.observed.end_step()
        if did and self._steps is not None:
            self._steps.did[len(self._steps.items)] = did

    def yielded(self) -> None:
        if self._steps is not None and len(self._steps.items) <= PLACED_ITEMS:
            self.handed()

    def awaited(self) -> None:
        self._is_awaited = True

    def wait_to_show(self) -> None:
        self.observed.wait_to_show()

    def record_output(self, event: dict[str, Any], sink: Any = None) -> None:
        self.observed.record_output(event, sink)

    def writes_to_descriptors(self) -> None:
        self.observed.writes_to_descriptors()

    def knows(self, value: Any) -> bool:
        return bool(self.observed.find_place(value))

    def acting_again(
        self, objects: Sequence[Any], event: Mapping[str, Any], sink: Any
    ) -> AbstractContextManager[None]:
        return self.observed.acting_again(objects, event, sink)

    def imported(self, module: ModuleType) -> None:
        self.observed.imported(module)

    @property
    def places(self) -> bool:
        return super().places and self._steps is None  # steps are handed over one by one

    def close(self) -> None:
        self.observed.end()
        self._body.moved()
        self.cell.recording.running.pop(self, None)

    def fail(self, error: BaseException) -> None:
        if isinstance(error, asyncio.CancelledError) and self._is_decided_at_cell_end(error):
            self._pending = error
            self.cell.recording.running[self] = None
        elif not isinstance(error, KeyboardInterrupt):
            self._commit_error(error)
        elif self._steps is not None:
            self._steps.end = "cut short"
            self._end_steps()

    def cell_ended(self, *, interrupted: bool) -> None:
        self._in_time = True
        if self._pending is not None and not interrupted:
            self._commit_error(self._pending)
        elif self._steps is not None:
            self._steps.end = "cut short" if self._pending is not None else "closed"
            self._commit_steps()

    def _commit_error(self, error: BaseException) -> None:
        message = f"{type(error).__name__}: {error}"
        did = self.observed.end()
        if self._steps is not None:
            self._steps.end, self._steps.error = "error", with_frames(freeze_error(error), error)
            self._end_steps(message)
        else:
            frozen = with_frames(freeze_error(error), error)
            if isinstance(error, asyncio.CancelledError):  # this one ended it
                did["cancelled"] = max(0, did.get("cancelled", 0) - 1)
            did["awaited"] = self._is_awaited
            self.observed.raised(error, did)
            self._commit_value(
                Value(
                    error=frozen,
                    seconds=self._measure_elapsed(),
                    did={name: each for name, each in did.items() if each},
                ),
                message,
            )

    def _end_steps(self, error: str = "") -> None:
        self.cell.recording.running.pop(self, None)
        self._commit_steps(error)
        self._release_references()

    def _commit_steps(self, error: str = "") -> None:
        """Commit what the generator did that is not on the tape yet."""
        assert self._steps is not None
        before, self._items_kept = self._items_kept, len(self._steps.items)
        for item in self._steps.items[max(before, 0) :]:
            self._warn_if_not_kept(item)
        if before < 0:
            self._commit_value(
                Value(self._steps.structure(), seconds=self._measure_elapsed()), error
            )
        elif before < self._items_kept or self._steps.end != "closed":
            late = Value(self._steps.structure(before))
            self._append_late_value(self._with_folders(late))

    def _warn_if_not_kept(self, item: Any) -> None:
        if isinstance(item, dict) and item.get("<type>") == "not kept":
            self.cell.warn(
                f"{self.call.kind} {self.call.name} yielded what cannot be on the tape: {item['why']}. In replay a "
                "stand-in takes its place, which may be handed to taped functions and refuses any other use",
                cold=True,
            )

    def _find_changed_types(self) -> tuple[str, ...]:
        """Types of arguments that cannot be written and that are not as they were asked."""
        type_names: dict[str, None] = {}
        for name, argument in self.call.arguments.items():
            before = argument.structure if isinstance(argument, FrozenValue) else None
            if isinstance(before, dict) and "<opaque>" in before and before.get(FIELDS):
                masked = MaskedValues(f"{self.call.kind} {self.call.name}", self.secrets)
                if state_by_value(self._arguments[name], masked, name).digest != before.get(STATE):
                    type_names[before["<opaque>"]] = None
        return tuple(type_names)

    def _name_masked(self, value: Value) -> Value:
        """The value; in its record, that keys in it are not kept, as a replay then says."""
        kept = [value.value, value.error, value.did]
        clean, is_masked = self.secrets.scrub_structure(kept)
        if not is_masked:
            return value
        chosen = {marker(name) for _, name in self.secrets.patterns}  # as the user asked
        before = str(kept)
        names = dict.fromkeys(
            each[1]
            for each in _MARKER.finditer(str(clean))
            if each[0] not in before and each[0] not in chosen
        )
        if not names:
            return value
        what = (
            f"what it gave or did holds {', '.join(names)}, and a marker stands for what is secret"
        )
        self.observed.warn(what)
        return replace(value, did={**value.did, "masked": what})

    def _with_folders(self, value: Value) -> Value:
        """The value; in its record, which folders it names."""
        folders = note_named_folders(self.cell, [value.value, value.error, value.did])
        return replace(value, did={**value.did, FOLDERS: folders}) if folders else value

    def _commit_value(self, value: Value, error: str = "") -> None:
        value = self._name_masked(self._with_folders(value))
        row = ReportRow(
            self.id, self.call.kind, self.call.name, seconds=self._measure_elapsed(), error=error
        )
        self._commit_call(
            self.call,
            replace(value, moved=self._body.moved(), changed=self._find_changed_types()),
            {},
            row,
        )
        if not self._in_time:
            self._report_if_late()
            self.handed()
        if self._steps is None:
            self._release_references()

    def _release_references(self) -> None:
        """The program's own objects: a context that outlives the call keeps this, and would keep
        them.
        """
        self.observed.let_go()
        self._arguments = {}
        self.call = replace(self.call, scope=None)

    def _append_late_value(self, late: Value) -> None:
        if self.entry is None or self.cell.cassette is None:
            return
        try:
            self.cell.cassette.append_more(self.entry, late, self.secrets)
        except (CassetteError, OSError) as problem:
            self.cell.lose(f"the last items of call {self.id} are NOT on the tape: {problem}")
