"""Taps room: tools and retrievals, Python functions whose calls are recorded and played. Decides nothing itself.

Two doors to one call: a decorator (`tool`, `retrieval`), and `tape_functions`, which tapes plain functions where they
stand: whoever holds such a function (a dict of handlers, a bound method, a closure, a tool object of an SDK) holds a
taped one, because what changes is the function's `__code__`. In replay a taped body never runs.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import threading
import weakref
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import CodeType, FunctionType, TracebackType
from typing import Any, Literal, ParamSpec, Self, TypeVar, cast, overload

from tape_jupyter import frozen, taps
from tape_jupyter.calls import Capture, FunctionCall, Play, Value
from tape_jupyter.errors import TapeRefusal, TapeUsageError
from tape_jupyter.origin import ORIGIN, PARENT, SPAN, Origin
from tape_jupyter.taps.endings import await_cancel, was_cancelled
from tape_jupyter.taps.finding import MARK, find_functions, is_method, unwrap
from tape_jupyter.taps.lineage import settle
from tape_jupyter.taps.trampoline import clone, trampoline

__all__ = ["TapedFunctions", "find_functions", "retrieval", "span", "tape_functions", "tool"]

Kind = Literal["tool", "retrieval"]
P = ParamSpec("P")
R = TypeVar("R")
F = TypeVar("F")


# One call


@dataclass(frozen=True, slots=True)
class _Taped:
    """A taped function: the call's name and kind, and the body to run when the tape says so."""

    name: str
    kind: Kind
    body: Callable[..., Any]
    signature: inspect.Signature | None
    drop_first: bool

    def arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """By parameter name, defaults filled in, without `self`; as `args` and `kwargs` where there is no signature."""
        if self.signature is None:
            return {"args": list(args), "kwargs": kwargs}
        bound = self.signature.bind(*args, **kwargs)
        bound.apply_defaults()
        first = 1 if self.drop_first else 0
        return {n: list(v) if self._is_rest(n) else v for n, v in list(bound.arguments.items())[first:]}

    def _is_rest(self, name: str) -> bool:
        return self.signature is not None and self.signature.parameters[name].kind is inspect.Parameter.VAR_POSITIONAL

    def begin(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Play | Capture | None:
        tape = taps.current()
        if tape is None:
            return None
        settle()
        try:
            arguments = self.arguments(args, kwargs)
        except TypeError:  # the body raises it again, in its own words
            return None
        return tape.begin(FunctionCall(self.name, arguments, self.kind))

    def call(self, *args: Any, **kwargs: Any) -> Any:
        decision = self.begin(args, kwargs)
        if decision is None:
            return self.body(*args, **kwargs)
        if isinstance(decision, Play):
            if was_cancelled(decision.reply.error) and _in_task():
                return _play_async(decision)
            value = _played(decision)
            return _ready(value.value) if isinstance(value, frozen.Awaited) else value
        with _running(decision, self.name):
            result = self.body(*args, **kwargs)
        if inspect.iscoroutine(result):
            return self._await(result, decision)
        decision.value(result)
        return result

    async def call_async(self, *args: Any, **kwargs: Any) -> Any:
        decision = self.begin(args, kwargs)
        if decision is None:
            return await self.body(*args, **kwargs)
        if isinstance(decision, Play):
            return await _play_async(decision)
        with _running(decision, self.name):
            result = await self.body(*args, **kwargs)
        decision.value(result)
        return result

    async def _await(self, coroutine: Awaitable[Any], capture: Capture) -> Any:
        """A plain function gave a coroutine: the call ends when that does."""
        with _running(capture, self.name):
            result = await coroutine
        capture.value(frozen.Awaited(result))
        return result


async def _ready(value: Any) -> Any:
    return value


def _in_task() -> bool:
    """Whether an event loop runs here: a plain function that was cancelled in one had given a coroutine."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


async def _play_async(play: Play) -> Any:
    await await_cancel(play.reply.error)
    value = _played(play)
    return value.value if isinstance(value, frozen.Awaited) else value


def _played(play: Play) -> Any:
    reply = cast("Value", play.reply)
    if reply.error is not None:
        raise frozen.thaw_error(reply.error)
    return frozen.thaw(reply.value)


@contextmanager
def _running(capture: Capture, name: str) -> Iterator[None]:
    """The body's own strand: what it spawns must not disturb the numbering of its caller, which replays without it."""
    strand, parent = ORIGIN.get(), PARENT.get()
    ORIGIN.set(strand and Origin(strand.cell, f"{strand.lineage}/{name}"))
    PARENT.set(getattr(capture, "id", ""))
    try:
        yield
    except (GeneratorExit, TapeRefusal):  # a coroutine that nobody awaits any more; our own word, not the tool's
        capture.close()
        raise
    except BaseException as error:
        capture.fail(error)
        raise
    finally:
        # Not Token.reset: a dropped coroutine may be closed in another context than it was started in.
        ORIGIN.set(strand)
        PARENT.set(parent)


def _taped(function: Callable[..., Any], body: Callable[..., Any], name: str | None, kind: Kind) -> _Taped:
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        signature = None
    own_name = str(name or getattr(function, "__name__", type(function).__name__))
    return _Taped(own_name, kind, body, signature, drop_first=is_method(function))


# The decorators


@overload
def tool(function: F, /) -> F: ...
@overload
def tool(*, name: str | None = None) -> Callable[[F], F]: ...
def tool(function: Any = None, /, *, name: str | None = None) -> Any:
    """Record the calls of a function, and in replay answer them from the tape without running it.

    `@tool`, `@tool(name="search")`; plain and async functions, methods, and tool objects of an SDK.
    """
    return _decorate(function, name, "tool")


@overload
def retrieval(function: F, /) -> F: ...
@overload
def retrieval(*, name: str | None = None) -> Callable[[F], F]: ...
def retrieval(function: Any = None, /, *, name: str | None = None) -> Any:
    """As `tool`, for a function that looks documents up: its calls are shown as retrievals."""
    return _decorate(function, name, "retrieval")


def _decorate(function: Any, name: str | None, kind: Kind) -> Any:
    if function is None:
        return lambda function: _decorate(function, name, kind)
    if isinstance(function, (staticmethod, classmethod)):
        return type(function)(_decorate(function.__func__, name, kind))
    named = getattr(function, "name", None)
    if isinstance(named, str) and (found := unwrap(function)):  # a tool object: its function is taped where it stands
        tape_functions({name or named: found}, kind=kind)
        return function
    if callable(function) and not isinstance(function, type):
        return _wrap(function, name, kind)
    raise TapeUsageError(f"@tape.{kind} goes on a function or a tool, not on a {type(function).__name__}: {function!r}")


def _wrap(function: Callable[..., Any], name: str | None, kind: Kind) -> Callable[..., Any]:
    if hasattr(function, MARK):
        return function
    taped = _taped(function, function, name, kind)
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def wrapper(*args: Any, **kwargs: Any) -> Any:
            return await taped.call_async(*args, **kwargs)
    else:

        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            return taped.call(*args, **kwargs)

    setattr(wrapper, MARK, taped)
    return wrapper


class span:  # noqa: N801  # used like a function: `with tape.span("plan"):`, `@tape.span("plan")`
    """Names the calls made inside: a context manager (also async) and a decorator (also of async functions)."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __enter__(self) -> Self:
        SPAN.set((*SPAN.get(), self.name))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        SPAN.set(SPAN.get()[:-1])

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self.__exit__(kind, error, at)

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def within_async(*args: P.args, **kwargs: P.kwargs) -> Any:
                with self:
                    return await function(*args, **kwargs)

            return cast("Callable[P, R]", within_async)

        @functools.wraps(function)
        def within(*args: P.args, **kwargs: P.kwargs) -> R:
            with self:
                return function(*args, **kwargs)

        return within


# Taping where a function stands


class TapedFunctions:
    """What `tape_functions` did: call it to undo (a second call does nothing). `skipped` says why, by name."""

    def __init__(self, functions: list[FunctionType], skipped: dict[str, str]) -> None:
        self._functions, self.skipped = functions, skipped

    def __call__(self) -> None:
        while self._functions:
            _untape(self._functions.pop())


@dataclass(slots=True)
class _Swap:
    """The code a function had, and how often it is taped. Lives in the function's own `__dict__`."""

    original: CodeType
    trampoline: CodeType
    taped: _Taped
    count: int = 1


class _Door:
    """The constant that a trampoline calls. Weak: the garbage collector does not look into code objects, so a code
    that held its own function (as a recursive closure's does, by way of the cell) would never be freed.
    """

    __slots__ = ("function",)

    def __init__(self, function: FunctionType) -> None:
        self.function = weakref.ref(function)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        function = self.function()
        swap = vars(function).get(_SWAP)
        if swap is None:  # untaped between the call and this line
            return cast("Any", function)(*args, **kwargs)
        taped = swap.taped
        return (taped.call_async if inspect.iscoroutinefunction(taped.body) else taped.call)(*args, **kwargs)


_SWAP = "__tape_swap__"
_LOCK = threading.Lock()


def tape_functions(
    functions: Mapping[str, Callable[..., Any] | Iterable[Callable[..., Any]]], *, kind: Kind = "tool"
) -> TapedFunctions:
    """Tape functions wherever they are referenced, under these names. Returns the undo.

    A name may have several functions. Taping what is taped counts up; the last undo puts the code back. What cannot
    be taped (generator functions, what is not a Python function) is left as it is, and said in `skipped`.
    """
    taped: list[FunctionType] = []
    skipped: dict[str, str] = {}
    for name, given in functions.items():
        for candidate in [given] if callable(given) else given:
            if hasattr(candidate, MARK):
                continue  # its decorator tapes it
            inside: list[Any] = [*unwrap(candidate)]
            for function in inside or [candidate]:
                reason = _tape(function, name, kind)
                if reason:
                    skipped[name] = reason
                elif isinstance(function, FunctionType):
                    taped.append(function)
    return TapedFunctions(taped, skipped)


def _tape(function: Any, name: str, kind: Kind) -> str:
    """Swap the code of a function. Returns why not, or ""."""
    if not isinstance(function, FunctionType):
        return f"a {type(function).__name__} has no Python code to tape"
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        return "generator functions are not taped yet"
    with _LOCK:
        swap = vars(function).get(_SWAP)
        if swap is not None and function.__code__ is swap.trampoline:
            swap.count += 1
            return ""
        code = trampoline(function, _Door(function))
        if code is None:
            return "its parameters have names that no source could spell"
        taped = _taped(function, clone(function), name, kind)
        vars(function)[_SWAP] = _Swap(function.__code__, code, taped)
        function.__code__ = code
    return ""


def _untape(function: FunctionType) -> None:
    with _LOCK:
        swap = vars(function).get(_SWAP)
        if swap is None or function.__code__ is not swap.trampoline:  # somebody else put other code in since
            return
        swap.count -= 1
        if not swap.count:
            function.__code__ = swap.original
            del vars(function)[_SWAP]
