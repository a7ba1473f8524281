"""Generators as tools: a live one is told item by item, as it yields (a recorded one:
instrumentation/tools/replayed_generator.py).

Whatever the generator is, the program gets a real generator (of a trampoline, or `relay`). It hands
every `next`, `send` and `throw` on to a *source*, whose `send` and `throw` give (item,), or () at
the end. `close` is the throw of GeneratorExit that it is in Python, so that one path serves all.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Iterator
from contextlib import contextmanager
from functools import partial
from types import AsyncGeneratorType, GeneratorType
from typing import Any, Protocol

from tape_jupyter.core.call import Capture
from tape_jupyter.core.context import ORIGIN, PARENT, Origin
from tape_jupyter.core.real_clock import perf_counter
from tape_jupyter.encoding.values import registry
from tape_jupyter.encoding.values.mutations import frozen_or_type
from tape_jupyter.encoding.values.placeholders import not_kept
from tape_jupyter.encoding.values.registry import CannotFreeze, GeneratorSteps
from tape_jupyter.encoding.values.tracebacks import drop_own_frames
from tape_jupyter.errors import TapeRefusal
from tape_jupyter.instrumentation.http.replayed_response import await_result
from tape_jupyter.instrumentation.tools.output import listening

Found = tuple[Any, ...]


class RelayedSource(Protocol):
    """What a generator is relayed to."""

    returned: Any

    def send(self, value: Any) -> Found: ...
    def throw(self, error: BaseException) -> Found: ...


class AsyncSource(Protocol):
    """The same, awaited."""

    async def send(self, value: Any) -> Found: ...
    async def throw(self, error: BaseException) -> Found: ...


def relay(source: RelayedSource) -> Generator[Any, Any, Any]:
    """A generator that does what its source does. (A trampoline has the same lines:
    instrumentation/tools/code_swap.py.)
    """
    try:
        step = source.send(None)
        while step:
            try:
                value = yield step[0]
            except BaseException as error:  # the source says what becomes of it
                step = source.throw(error)
            else:
                step = source.send(value)
    except BaseException as error:
        drop_own_frames(error)
        raise
    return source.returned


async def relay_async(source: AsyncSource) -> AsyncGenerator[Any, Any]:
    try:
        step = await source.send(None)
        while step:
            try:
                value = yield step[0]
            except BaseException as error:  # the source says what becomes of it
                step = await source.throw(error)
            else:
                step = await source.send(value)
    except BaseException as error:
        drop_own_frames(error)
        raise


@contextmanager
def switch_strand(origin: Origin | None, parent: str) -> Iterator[None]:
    """Inside, a taped body (or a callback of the program's) runs on that strand, with that call as
    its parent.
    """
    before = ORIGIN.get(), PARENT.get()
    ORIGIN.set(origin)
    PARENT.set(parent)
    try:
        yield
    finally:
        # Not Token.reset: a dropped coroutine may be closed in another context than it was started
        # in.
        ORIGIN.set(before[0])
        PARENT.set(before[1])


def body_strand(name: str) -> Origin | None:
    """What a body spawns must not disturb the numbering of its caller, which replays without it."""
    origin = ORIGIN.get()
    return origin and Origin(origin.cell, f"{origin.lineage}/{name}", counted=origin.counted)


def parent_of(capture: Capture) -> str:
    return str(getattr(capture, "id", ""))


# Not taped: straight through


class Through:
    """A generator that is not taped."""

    def __init__(self, body: Generator[Any, Any, Any]) -> None:
        self.body, self.returned = body, None

    def send(self, value: Any) -> Found:
        return self._take_step(partial(self.body.send, value))

    def throw(self, error: BaseException) -> Found:
        return self._take_step(partial(self.body.throw, error))

    def _take_step(self, go: Callable[[], Any]) -> Found:
        try:
            return (go(),)
        except StopIteration as end:
            self.returned = end.value
            return ()


class AsyncThrough:
    """An async generator that is not taped."""

    def __init__(self, body: AsyncGenerator[Any, Any]) -> None:
        self.body = body

    async def send(self, value: Any) -> Found:
        return await self._take_step(partial(self.body.asend, value))

    async def throw(self, error: BaseException) -> Found:
        return await self._take_step(partial(self.body.athrow, error))

    async def _take_step(self, go: Callable[[], Coroutine[Any, Any, Any]]) -> Found:
        try:
            return (await _begin_unhooked(go),)
        except StopAsyncIteration:
            return ()


def _begin_unhooked(go: Callable[[], Coroutine[Any, Any, Any]]) -> Coroutine[Any, Any, Any]:
    """Begin a step of the body unseen by the event loop: the loop closes the relay, and the relay
    closes its body.
    """
    hooks = sys.get_asyncgen_hooks()
    sys.set_asyncgen_hooks(None, None)
    try:
        return go()
    finally:
        sys.set_asyncgen_hooks(*hooks)


# Live


class _StepRecorder:
    """What every step of a live generator tells its capture."""

    def __init__(self, capture: Capture, name: str, *, is_async: bool) -> None:
        self.capture = capture
        self.steps = GeneratorSteps(is_async)
        self.started = perf_counter()
        self.strand, self.parent = body_strand(name), parent_of(capture)
        self.thrown: BaseException | None = None
        capture.progress(self.steps)

    def record_input(self, value: Any, error: BaseException | None = None) -> None:
        self.thrown = error
        position = len(self.steps.items)
        if value is not None:
            self.steps.sent[position] = frozen_or_type(value)
        if error is not None:
            self.steps.thrown[position] = registry.freeze_error(error)

    @contextmanager
    def stepping(self) -> Iterator[None]:
        self.capture.stepping()
        with switch_strand(self.strand, self.parent), listening(self.capture):
            try:
                yield
            except (GeneratorExit, TapeRefusal) as error:
                self._record_close(keep=isinstance(error, GeneratorExit) or bool(self.steps.items))
                raise
            except BaseException as error:
                self._record_failure(error)
                raise
            self.capture.stepped()

    def record_step(self, step: Found, returned: Any = None) -> Found:
        """What a step gave: an item, told before it is handed on; or the end."""
        self.steps.waits.append(self._measure_elapsed())
        if step:
            self.steps.items.append(_freeze_item(step[0]))
            self.capture.yielded()
        else:
            self.steps.returned, self.steps.end = _freeze_item(returned), "complete"
            self.capture.value(self.steps)
        return step

    def _record_close(self, *, keep: bool) -> None:
        """Nobody reads on: that is no step, and the program may do it sooner in replay."""
        self.capture.stepped()
        self.steps.thrown.pop(len(self.steps.items), None)
        self.steps.waits.append(self._measure_elapsed())
        self.steps.end = "closed"
        if keep:
            self.capture.value(self.steps)
        else:
            self.capture.close()

    def _record_failure(self, error: BaseException) -> None:
        self.capture.stepped()
        self.steps.waits.append(self._measure_elapsed())
        if error is self.thrown:
            self.steps.end = "thrown"
            self.capture.value(self.steps)
        else:
            self.capture.fail(error)

    def _measure_elapsed(self) -> float:
        return perf_counter() - self.started


def _freeze_item(value: Any) -> Any:
    try:
        return registry.freeze(value)
    except CannotFreeze as reason:
        return not_kept(value, str(reason))


class LiveGenerator(Through):
    """A generator that runs and is recorded."""

    def __init__(self, body: Generator[Any, Any, Any], capture: Capture, name: str) -> None:
        super().__init__(body)
        self._inputs = _StepRecorder(capture, name, is_async=False)

    def send(self, value: Any) -> Found:
        self._inputs.record_input(value)
        return super().send(value)

    def throw(self, error: BaseException) -> Found:
        self._inputs.record_input(None, error)
        return super().throw(error)

    def _take_step(self, go: Callable[[], Any]) -> Found:
        with self._inputs.stepping():
            step = super()._take_step(go)
        return self._inputs.record_step(step, self.returned)


class AsyncLive(AsyncThrough):
    """The same, awaited."""

    def __init__(self, body: AsyncGenerator[Any, Any], capture: Capture, name: str) -> None:
        super().__init__(body)
        self._inputs = _StepRecorder(capture, name, is_async=True)

    async def send(self, value: Any) -> Found:
        self._inputs.record_input(value)
        return await super().send(value)

    async def throw(self, error: BaseException) -> Found:
        self._inputs.record_input(None, error)
        return await super().throw(error)

    async def _take_step(self, go: Callable[[], Coroutine[Any, Any, Any]]) -> Found:
        with self._inputs.stepping():
            step = await await_result(super()._take_step(go), self._inputs.capture)
        return self._inputs.record_step(step)


# Which of them


def is_generator(value: Any) -> bool:
    """A generator object, plain or async, or a lazy iterator of Python's own."""
    kind = type(value)
    return (
        kind in (GeneratorType, AsyncGeneratorType)
        or kind in _ITERATORS
        or kind.__module__ == "itertools"
    )


_ITERATORS = frozenset(
    {map, filter, zip, enumerate, reversed, type(iter([])), type(iter(())), type(iter({}))}
)


def through(body: Any) -> Any:
    """The source of a generator object that is not taped."""
    return AsyncThrough(body) if isinstance(body, AsyncGeneratorType) else Through(body)


def record_generator(body: Any, capture: Capture, name: str) -> Any:
    """The source of a generator object that runs and is recorded."""
    if isinstance(body, AsyncGeneratorType):
        return AsyncLive(body, capture, name)
    return LiveGenerator(
        body if isinstance(body, GeneratorType) else _yield_items(body), capture, name
    )


def generator(source: Any) -> Any:
    """A generator object of any source."""
    return relay_async(source) if inspect.iscoroutinefunction(source.send) else relay(source)


def _yield_items(iterator: Iterator[Any]) -> Generator[Any, Any, None]:
    yield from iterator
