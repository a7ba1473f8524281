"""`tape.recording(path)`, `tape.replaying(path)`: a block of any Python program, taped like a cell."""

from __future__ import annotations

import contextlib
import functools
import inspect
import sys
from collections.abc import (
    AsyncGenerator,
    Callable,
    Coroutine,
    Generator,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from types import AsyncGeneratorType, CoroutineType, GeneratorType, TracebackType
from typing import Any, Self, TypeVar, cast

from tape_jupyter.core.context import ORIGIN
from tape_jupyter.errors import CassetteError, TapeUsageError
from tape_jupyter.instrumentation.tools.generators import AsyncThrough, Found, Through, relay
from tape_jupyter.session import partial_replay, session
from tape_jupyter.session.cell import CellReport, CellRequest, TapedCell, current_task
from tape_jupyter.session.options import check_effects, check_pace, check_pins

F = TypeVar("F", bound=Callable[..., Any])
R = TypeVar("R")
_NOTHING: Mapping[str, Any] = {}
_LAZY = (
    GeneratorType, AsyncGeneratorType,
    # no other name
    contextlib._GeneratorContextManager, contextlib._AsyncGeneratorContextManager,  # noqa: SLF001
)  # fmt: skip
"""What a function may return, besides an awaitable, before it has done anything."""


class Block:
    """A context manager, also asynchronous, also a decorator of functions: plain, async, and
    generators of both sorts.

    After the block `report` says what happened. A refused call that the block's own code hid is
    raised at its end, and so is a CassetteError where something of the recording could not be
    written. A generator's block begins when it is first read, and is open until it ends or is
    closed.
    """

    def __init__(self, ask: CellRequest) -> None:
        self._request = ask
        self._cell: TapedCell | None = None
        self.report: CellReport | None = None

    def of(self, source: str, name: str, namespace: Mapping[str, Any]) -> Self:
        """Speak for a piece of code that has a name of its own: as a notebook's cell it is
        recorded, and known again.

        `namespace` holds the functions that a request's tools may name.
        """
        self._request = replace(self._request, source=source, cell_id=name, namespace=namespace)
        return self

    def begin(self) -> TapedCell:
        """Start the block here and now; `end` ends it, in whatever context."""
        # the block's own code may change directory
        here = self._request.path and self._request.path.absolute()
        self._cell = session.get().begin(replace(self._request, path=here))
        return self._cell

    def end(self, error: BaseException | None = None) -> None:
        """End it, with the error that left it. What was refused stands in `report`, and is not
        raised.
        """
        if self._cell is not None:
            cell, self._cell = self._cell, None
            self.report = session.get().end(cell, error)

    def __enter__(self) -> Self:
        self.begin()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._cell is None:
            return
        if isinstance(error, GeneratorExit):  # a generator that nobody reads on did not fail
            error = None
        if isinstance(error, SystemExit) and not error.code:  # a program that ended well
            error = None
        self.end(error)
        if self.report is None or error is not None:
            return
        if self.report.misses:
            raise self.report.misses[0]
        if self.report.lost:
            raise build_loss_error(self.report)

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.__exit__(kind, error, trace)

    def __call__(self, function: F) -> F:
        """The function, taped each time it is called. Raises TapeUsageError for what is no function
        (a class).
        """
        if (
            isinstance(function, type)
            or not callable(function)
            or isinstance(function, staticmethod)
        ):
            if isinstance(function, type):
                kind = f"the class {function.__name__}"
            else:
                kind = f"a {type(function).__name__}"
            now = "Put it on the function itself (below @staticmethod, @classmethod, @property; above each method)"
            raise TapeUsageError(
                f"{self._format_api_name()} goes on a function, not on {kind}. {now}, or use it in a `with`"
            )
        if inspect.isroutine(function) or isinstance(function, functools.partial):
            code = function
        else:
            code = _find_call_method(function)
        if inspect.isasyncgenfunction(code):
            return cast("F", self._wrap_async_generator_function(function))
        if inspect.isgeneratorfunction(code):
            return cast("F", self._wrap_generator_function(function))
        return cast(
            "F",
            self._wrap_coroutine_function(function)
            if inspect.iscoroutinefunction(code)
            else self._wrap_function(function),
        )

    def _wrap_function(self, function: Callable[..., R]) -> Callable[..., R]:
        @functools.wraps(function)
        def taped(*args: Any, **kwargs: Any) -> R:
            with Block(self._request):
                return self._done(function, function(*args, **kwargs))

        return taped

    def _wrap_coroutine_function(
        self, function: Callable[..., Coroutine[Any, Any, R]]
    ) -> Callable[..., Coroutine[Any, Any, R]]:
        @functools.wraps(function)
        async def taped(*args: Any, **kwargs: Any) -> R:
            async with Block(self._request):
                return self._done(function, await function(*args, **kwargs))

        return taped

    def _wrap_generator_function(
        self, function: Callable[..., Generator[Any, Any, R]]
    ) -> Callable[..., Generator[Any, Any, R]]:
        @functools.wraps(function)
        def taped(*args: Any, **kwargs: Any) -> Generator[Any, Any, R]:
            block = Block(self._request)
            with ExitStack() as leaving:
                leaving.push(block)  # its first step begins it
                return cast("R", (yield from relay(_Steps(block, function(*args, **kwargs)))))

        return taped

    def _wrap_async_generator_function(
        self, function: Callable[..., AsyncGenerator[Any, Any]]
    ) -> Callable[..., AsyncGenerator[Any, Any]]:
        @functools.wraps(function)
        async def taped(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
            block = Block(self._request)
            with ExitStack() as leaving:
                leaving.push(block)
                steps = _AsyncSteps(block, function(*args, **kwargs))
                step = await steps.send(None)
                # the lines of yielding.relay_async: no async generator can be delegated to
                while step:
                    try:
                        value = yield step[0]
                    except BaseException as error:
                        step = await steps.throw(error)
                    else:
                        step = await steps.send(value)

        return taped

    @contextmanager
    def step(self) -> Iterator[None]:
        """Inside runs the code of the block, which the first step begins; between two steps runs
        that of its reader.
        """
        before = ORIGIN.get()
        try:
            cell = self._cell or self.begin()
            ORIGIN.set(cell.origin)
            cell.task = current_task()
            yield
        finally:
            # not Token.reset: a dropped coroutine may be closed in another context
            ORIGIN.set(before)

    def _done(self, function: Callable[..., Any], result: R) -> R:
        """What the function returned. Raises TapeUsageError where its work is still to be done:
        that would run live.
        """
        if not isinstance(result, _LAZY) and not inspect.isawaitable(result):
            return result
        if isinstance(result, CoroutineType):
            result.close()  # else Python says that it was never awaited
        name = getattr(function, "__name__", type(function).__name__)
        kind = type(result).__name__.strip("_")
        raise TapeUsageError(
            f"{self._format_api_name()}: {name} returned a {kind}, which does its work after the block, where it is "
            "not recorded. Decorate the function that does it (`async def`, or with `yield`), or put a `with` "
            "around where it is used"
        )

    def _format_api_name(self) -> str:
        if self._request.mode == "record":
            return "tape.recording(...)"
        return "tape.replaying(...)"


def build_loss_error(report: CellReport) -> CassetteError:
    """What is raised where calls are not on the tape, and nothing else went wrong."""
    first, count = report.lost[0], len(report.lost)
    more = f", and {count - 1:,} more like it" if count > 1 else ""
    return CassetteError(f"{first}{more}. The block ran to its end; fix that, and record it again")


def _find_call_method(anything: Any) -> Any:
    """What runs when an object is called."""
    return type(anything).__call__


class _Steps(Through):
    """A generator each step of which runs in the block."""

    def __init__(self, block: Block, body: Generator[Any, Any, Any]) -> None:
        super().__init__(body)
        self._block = block

    def _take_step(self, go: Callable[[], Any]) -> Found:
        with self._block.step():
            return super()._take_step(go)


class _AsyncSteps(AsyncThrough):
    """The same of an async generator."""

    def __init__(self, block: Block, body: AsyncGenerator[Any, Any]) -> None:
        super().__init__(body)
        self._block = block

    async def _take_step(self, go: Callable[[], Coroutine[Any, Any, Any]]) -> Found:
        with self._block.step():
            return await super()._take_step(go)


def _build_block(mode: str, path: str | Path, options: dict[str, Any]) -> Block:
    # the caller's functions are what a request's tools name
    namespace = sys._getframe(2).f_globals  # noqa: SLF001
    path = Path(path)
    return Block(
        CellRequest(
            mode,
            path=path,
            source=f"block {path.name}",
            options=options,
            namespace=namespace,
            block=True,
        )
    )


def _collect_selection_options(**given: Any) -> dict[str, Any]:
    """Options of take, live, freeze and stub that were given; one word may stand for a list of one."""
    options = {
        name: [each] if isinstance(each, str) and name != "take" else each
        for name, each in given.items()
    }
    return {
        name: each if isinstance(each, str | Mapping) else list(each)
        for name, each in options.items()
        if each
    }


def recording(
    path: str | Path,
    *,
    ignore: Sequence[str] = (),
    tools: Sequence[str] = (),
    no_pin: Sequence[str] = (),
    no_effects: Sequence[str] = (),
    take: str = "",
    freeze: str | Sequence[str] = (),
    stub: Mapping[str, Any] = _NOTHING,
) -> Block:
    """Record every call of the block into the cassette at `path` (appends a run; nothing is
    overwritten).

    `ignore`: JSON paths left out of the match; `tools`: names of functions to tape besides those
    that requests declare; `no_pin`: what is left to chance, of 'clock', 'sleep', 'random',
    'timezone'; `no_effects`: what tools do besides returning that is left out, of 'output',
    'memory', 'files'. `freeze`: boundaries that are answered from an earlier recording and never
    run ('llm', 'tools', 'tool:NAME', 'host:NAME', 'call:ID', 'cell:ID'); `stub` answers tools with
    values ({'tool:NAME': value}); `take` records into a take of that name. Raises CassetteError
    before anything is sent where the cassette cannot be written, TapeUsageError for what makes no
    sense.
    """
    options = {"ignore": list(ignore), "tools": list(tools), "no_pin": check_pins(no_pin)}
    options["no_effects"] = check_effects(no_effects)
    return _build_block(
        "record",
        path,
        {**options, **_collect_selection_options(take=take, freeze=freeze, stub=stub)},
    )


def replaying(  # noqa: PLR0913  # each is a word of the `%%tape` line
    path: str | Path,
    *,
    mode: str = "replay",
    strict: bool = False,
    ignore: Sequence[str] = (),
    tools: Sequence[str] = (),
    cut_short: bool = False,
    no_pin: Sequence[str] = (),
    no_effects: Sequence[str] = (),
    pace: str = "",
    shuffle: int | None = None,
    take: str = "",
    live: str | Sequence[str] = (),
    freeze: str | Sequence[str] = (),
    stub: Mapping[str, Any] = _NOTHING,
    on_divergence: str = "stop",
) -> Block:
    """Play the cassette at `path`: no network, no key, no tool body runs but those around an
    overridden call.

    `mode` may be 'once' or 'new_episodes'; `strict` refuses replies edited by hand, and calls that
    match by less than all of them; `cut_short` plays replies that an interrupt cut; `no_pin` and
    `no_effects` as in `recording`. `pace`: 'instant', 'order' (of the recorded completions) or
    'recorded'; without it in order where calls overlapped. `shuffle`: a seed that draws the order
    of replies. `take` plays that take; `live` names boundaries (as `freeze` of `recording`) that go
    live: what ran live goes to `take`, or to a new take that `report.take` names. `on_divergence`:
    what becomes of a call that is not on the tape: 'stop' raises UnmatchedCall, 'live' sends it,
    'stale' gives it the recorded reply of the call in whose place it stands; what was answered goes
    to the take likewise. Raises TapeUsageError where there is no cassette.
    """
    options = {
        "ignore": list(ignore),
        "tools": list(tools),
        "strict": strict,
        "cut_short": cut_short,
    }
    options |= {"no_pin": check_pins(no_pin), "pace": check_pace(pace), "shuffle": shuffle}
    options |= _collect_selection_options(take=take, live=live, freeze=freeze, stub=stub)
    options |= {"no_effects": check_effects(no_effects), "on_divergence": on_divergence}
    partial_replay.policy_of(options, mode)
    return _build_block(mode, path, options)
