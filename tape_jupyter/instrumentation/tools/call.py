"""One call of a taped function: asks the tape, then runs the body and tells what it gave, or plays.

In replay a taped body runs only where a call inside it was overridden. What a body gives decides
how its call ends: a coroutine's when it was awaited, a generator's when it ended
(instrumentation/tools/generators.py), any other's when it returned.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import FunctionType
from typing import Any, Literal, cast

from tape_jupyter import instrumentation
from tape_jupyter.core.call import Capture, FunctionCall, Play, Value
from tape_jupyter.core.context import CALLED_AS
from tape_jupyter.effects.scope import Scope
from tape_jupyter.encoding.values import registry
from tape_jupyter.encoding.values.generators import BEFORE_STEPS, is_steps
from tape_jupyter.encoding.values.mutations import is_changeable, redo_changes
from tape_jupyter.encoding.values.tracebacks import drop_own_frames, put_frames
from tape_jupyter.errors import TapeRefusal, UnmatchedCall
from tape_jupyter.instrumentation.concurrency.threads import settle_origin
from tape_jupyter.instrumentation.http.replayed_response import (
    await_cancel,
    await_past_cancels,
    await_result,
    pass_head,
    was_cancelled,
)
from tape_jupyter.instrumentation.stepping_hook import begin_call, instead
from tape_jupyter.instrumentation.tools import generators
from tape_jupyter.instrumentation.tools.code_swap import is_generator_function
from tape_jupyter.instrumentation.tools.discovery import is_method, without_plumbing
from tape_jupyter.instrumentation.tools.output import listening, told_arguments
from tape_jupyter.instrumentation.tools.replayed_generator import played

Kind = Literal["tool", "retrieval"]
Discreet = Literal["no", "maybe", "yes"]
_NOTHING: Mapping[str, Any] = {}


@dataclass(frozen=True, slots=True)
class TapedFunction:
    """A taped function: the call's name and kind, and the body to run when the tape says so.

    `partial_arguments` are the arguments that partials have given it already; `discreet` is told in the call
    (core/call.py, `FunctionCall`).
    """

    name: str
    kind: Kind
    body: Callable[..., Any]
    signature: inspect.Signature | None
    drop_first: bool
    partial_arguments: tuple[tuple[Any, ...], Mapping[str, Any]] = ((), _NOTHING)
    discreet: Discreet = "no"

    def arguments(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """By parameter name, defaults filled in, without `self`; as `args` and `kwargs` where there
        is no signature.
        """
        return self._select_arguments(self._bind_arguments(args, kwargs))

    def _bind_arguments(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """All that the body is given, by parameter name. Raises TypeError where it does not fit."""
        args, kwargs = (*self.partial_arguments[0], *args), {**self.partial_arguments[1], **kwargs}
        if self.signature is None:
            return {"args": list(args), "kwargs": kwargs}
        bound = self.signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return dict(bound.arguments)

    def _select_arguments(self, bound: Mapping[str, Any]) -> dict[str, Any]:
        if self.signature is None:
            return dict(bound)
        named = list(bound.items())[1 if self.drop_first else 0 :]
        return without_plumbing({n: list(v) if self._is_rest(n) else v for n, v in named})

    @property
    def changeable(self) -> bool:
        """Whether the body can run with other arguments than the program's: they are told by name,
        all of them.
        """
        return self.signature is not None and self.partial_arguments == ((), _NOTHING)

    def _is_rest(self, name: str) -> bool:
        return (
            self.signature is not None
            and self.signature.parameters[name].kind is inspect.Parameter.VAR_POSITIONAL
        )

    def begin_call(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> TapedToolCall:
        tape = instrumentation.current()
        if tape is None or (call := self._build_call(args, kwargs)) is None:
            return _UNTAPED
        return self._build_tool_call(tape.begin(call), call, args)

    async def ask_async(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> TapedToolCall:
        """`ask`, for a door that can await."""
        tape = instrumentation.current()
        if tape is None or (call := self._build_call(args, kwargs)) is None:
            return _UNTAPED
        return self._build_tool_call(await begin_call(tape, call), call, args)

    def _build_call(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> FunctionCall | None:
        """The call; None where the arguments do not fit: the body raises that again, in its own
        words.
        """
        settle_origin()
        try:
            bound = self._bind_arguments(args, kwargs)
        except TypeError:
            return None
        name = CALLED_AS.get().get(id(self), self.name)
        receiver = (
            next(iter((*self.partial_arguments[0], *args)), None) if self.drop_first else None
        )
        scope = within_reach(self.body, bound)
        module = getattr(scope.function, "__module__", None) or ""
        ours = module.startswith("tape_jupyter.")  # what our own bodies do is on the tape already
        return FunctionCall(
            name,
            self._select_arguments(bound),
            self.kind,
            self.discreet,
            receiver,
            None if ours else scope,
        )

    def _build_tool_call(
        self, decision: Play | Capture | None, call: FunctionCall, args: tuple[Any, ...]
    ) -> TapedToolCall:
        receiver = (*self.partial_arguments[0], *args)[:1] if self.drop_first else ()
        return TapedToolCall(call.name, decision, call.arguments, receiver)

    def sent(
        self, decision: Capture, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments that the body runs with: the program's, or what a person made of them."""
        other = instead(decision)
        if other is None or self.signature is None or not self.changeable:
            return told_arguments(args, kwargs)
        bound = self.signature.bind(*args, **kwargs)
        bound.arguments.update(other.arguments)
        return bound.args, bound.kwargs

    def call(self, *args: Any, **kwargs: Any) -> Any:
        call = self.begin_call(args, kwargs)
        if call.decision is None:
            return self.body(*args, **kwargs)
        if isinstance(call.decision, Play):
            return call.play(call.decision)
        args, kwargs = self.sent(call.decision, args, kwargs)
        with running_body(call.decision, call.name):
            result = self.body(*args, **kwargs)
        return call.record_result(result, call.decision)

    async def call_async(self, *args: Any, **kwargs: Any) -> Any:
        call = await self.ask_async(args, kwargs)
        if call.decision is None:
            return await self.body(*args, **kwargs)
        if isinstance(call.decision, Play):
            return await call.play_async(call.decision)
        args, kwargs = self.sent(call.decision, args, kwargs)
        with running_body(call.decision, call.name):
            result = await await_result(self.body(*args, **kwargs), call.decision)
        return call.record_value(result, call.decision)

    def source(self, *args: Any, **kwargs: Any) -> Any:
        """For a generator function: what its generator is relayed to. Asked when the first item is."""
        call = self.begin_call(args, kwargs)
        if isinstance(call.decision, Play):
            return call.played_source(call.decision, is_async=inspect.isasyncgenfunction(self.body))
        if call.decision is None:
            return generators.through(self.body(*args, **kwargs))
        args, kwargs = self.sent(call.decision, args, kwargs)
        return generators.record_generator(self.body(*args, **kwargs), call.decision, call.name)


@dataclass(frozen=True, slots=True)
class TapedToolCall:
    """One call: what the tape decided, its arguments by name, and (own object,) where it is a
    method's.
    """

    name: str
    decision: Play | Capture | None
    arguments: Mapping[str, Any]
    instance: tuple[Any, ...] = ()

    # ------------------------------------------------------------ live

    def record_result(self, result: Any, capture: Capture) -> Any:
        """What the body gave, as the program gets it: what runs on is told as it runs."""
        if inspect.iscoroutine(result):
            return _await_as_program(self._await_result(result, capture))
        if generators.is_generator(result):
            return generators.generator(generators.record_generator(result, capture, self.name))
        return self.record_value(result, capture)

    def record_value(self, result: Any, capture: Capture) -> Any:
        result = _make_lasting(result)
        capture.value(self._build_reference(result))
        return result

    async def _await_result(self, coroutine: Awaitable[Any], capture: Capture) -> Any:
        """A plain function gave a coroutine: the call ends when that does."""
        capture.awaited()
        with running_body(capture, self.name):
            result = _make_lasting(await await_result(coroutine, capture))
        capture.value(registry.Awaited(self._build_reference(result)))
        return result

    def _build_reference(self, result: Any) -> Any:
        """A list or dict that was handed in and comes back is told as that; so is a handle, which
        has no copy.
        """
        objects = {"self": self.instance[0], **self.arguments} if self.instance else self.arguments
        name = next((name for name, value in objects.items() if value is result), "")
        if name and (is_changeable(result) or not _can_freeze(result)):
            return registry.Argument(name)
        return result

    # ------------------------------------------------------------ played

    def play(self, play: Play) -> Any:
        reply = cast("Value", play.reply)
        kind = reply.value.get("<type>") if isinstance(reply.value, dict) else ""
        is_cancelled = was_cancelled(reply.error) and _is_in_task()
        if kind == "awaitable" or reply.awaited or is_cancelled:
            return _await_as_program(self.play_async(play))
        if is_steps(reply.value):
            return generators.generator(self._play_generator(reply, play))
        pass_head(play)
        return self._play_value(play)

    async def play_async(self, play: Play) -> Any:
        reply = cast("Value", play.reply)
        try:
            await await_cancel(reply.error)
        except asyncio.CancelledError:  # the body had done something until then
            self._redo_body(play)
            raise
        await await_past_cancels(play, reply.cancelled)
        if is_steps(reply.value):
            raise UnmatchedCall(
                f"{self.name} is awaited now, and was a generator when recorded: record it again"
            )
        value = self._play_value(play)
        return self._resolve_argument(value.value) if isinstance(value, registry.Awaited) else value

    def played_source(self, play: Play, *, is_async: bool) -> Any:
        """The source of a recorded generator; a list (a stub, say) is one that yields its items."""
        reply = cast("Value", play.reply)
        if is_steps(reply.value):
            return self._play_generator(reply, play)
        if reply.error is None and not isinstance(reply.value, list):
            raise UnmatchedCall(
                f"{self.name} is a generator now, and its recording holds another value: record it again"
            )
        steps = registry.GeneratorSteps(is_async, reply.value or [], end="complete")
        if reply.error is not None:
            steps = registry.GeneratorSteps(is_async, end="error", error=reply.error)
        return self._play_generator(replace(reply, value=steps.structure(), error=None), play)

    def _play_generator(self, reply: Value, play: Play) -> Any:
        ended = functools.partial(redo_changes, reply.effects, self.arguments)
        steps = registry.thaw(reply.value)
        if play.effects is not None and BEFORE_STEPS in steps.did:
            play.effects.happen(BEFORE_STEPS)
        return played(steps, self.name, play.gate, ended, play.effects)

    def _play_value(self, play: Play) -> Any:
        reply = cast("Value", play.reply)
        self._redo_body(play)
        if reply.error is not None:
            raise _build_error(reply.error, play)
        convert = play.effects.result if play.effects is not None else registry.thaw
        return self._resolve_argument(convert(reply.value))

    def _redo_body(self, play: Play) -> None:
        """What the recorded body did besides giving a value."""
        redo_changes(cast("Value", play.reply).effects, self.arguments)
        if play.effects is not None:
            play.effects.happen()

    def _resolve_argument(self, value: Any) -> Any:
        if not isinstance(value, registry.Argument):
            return value
        if value.name == "self" and self.instance:
            return self.instance[0]
        if value.name not in self.arguments:
            raise UnmatchedCall(
                f"{self.name} gave back its argument {value.name} when recorded, and has none now"
            )
        return self.arguments[value.name]


async def _await_as_program(coroutine: Awaitable[Any]) -> Any:
    """What a plain function gives its program to await, without frames of ours in an error."""
    try:
        return await coroutine
    except BaseException as error:
        drop_own_frames(error)
        raise


def _build_error(structure: Mapping[str, Any], play: Play) -> BaseException:
    """The recorded error. No frame that it passes may keep it: it would outlive its handling."""
    error = registry.thaw_error(structure)
    if play.effects is not None:
        error = play.effects.raised(error)
    return put_frames(error, structure)


_UNTAPED = TapedToolCall("", None, {})


def _can_freeze(value: Any) -> bool:
    try:
        registry.freeze(value)
    except registry.CannotFreeze:
        return False
    return True


def _make_lasting(result: Any) -> Any:
    """A cursor is read to its end: the program could read it only once."""
    sqlite3 = sys.modules.get("sqlite3")
    if sqlite3 is None or type(result) is not sqlite3.Cursor:
        return result
    from tape_jupyter.encoding.values.stdlib_results import recorded_cursor

    return recorded_cursor(result)


def _is_in_task() -> bool:
    """Whether an event loop runs here: a plain function that was cancelled in one had given a
    coroutine.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


@contextmanager
def running_body(capture: Capture, name: str) -> Iterator[None]:
    """The body runs: on its own strand, as the parent of what it calls; what it raises is told."""
    with (
        generators.switch_strand(generators.body_strand(name), generators.parent_of(capture)),
        listening(capture),
    ):
        try:
            yield
        except (
            GeneratorExit,
            TapeRefusal,
        ):  # a coroutine that nobody awaits any more; our own word, not the tool's
            capture.close()
            raise
        except BaseException as error:
            capture.fail(error)
            raise


def taped_function(
    function: Callable[..., Any],
    body: Callable[..., Any],
    name: str | None,
    kind: Kind,
) -> TapedFunction:
    """A function as it is taped: under its own name if none is given; `body` is what runs."""
    inner, partial_args = _unpack_partial(function)
    try:
        signature = inspect.signature(inner)
    except (TypeError, ValueError):
        signature = None
    own_name = str(name or getattr(inner, "__name__", type(inner).__name__))
    return TapedFunction(own_name, kind, body, signature, is_method(inner), partial_args)


def within_reach(body: Any, bound: Mapping[str, Any]) -> Scope:
    """What a body can reach: its function, what it is given, and the object that it is a method of."""
    owners: dict[str, Any] = {}
    while not isinstance(body, FunctionType) or hasattr(body, "__wrapped__"):
        if inspect.ismethod(body):
            owners.setdefault("self", body.__self__)
        elif not isinstance(body, (FunctionType, functools.partial)) and isinstance(
            call := vars(type(body)).get("__call__"), FunctionType
        ):
            owners.setdefault("self", body)
            return Scope(call, {**owners, **bound})
        inner = (
            getattr(body, "__wrapped__", None)
            or getattr(body, "__func__", None)
            or getattr(body, "func", None)
        )
        if inner is None or inner is body:
            break
        body = inner
    return Scope(body if isinstance(body, FunctionType) else None, {**owners, **bound})


def _unpack_partial(function: Any) -> tuple[Any, tuple[tuple[Any, ...], Mapping[str, Any]]]:
    """The function inside of a partial, and what the partial gives it: that is part of what is
    asked.
    """
    if not isinstance(function, functools.partial):
        return function, ((), _NOTHING)
    return function.func, (
        function.args,
        function.keywords,
    )  # a partial of a partial is one partial


def choose_wrapper(function: TapedFunction) -> Callable[..., Any]:
    """What stands for the body, by the sort of function it is."""
    if is_generator_function(function.body):
        return function.source
    return function.call_async if inspect.iscoroutinefunction(function.body) else function.call
