"""Tools and retrievals, Python functions whose calls are recorded and played. Decides nothing
itself.

Two doors to one call: a decorator (`tool`, `retrieval`), and `tape_functions`, which tapes plain
functions where they stand: whoever holds such a function (a dict of handlers, a bound method, a
closure, a tool object of an SDK) holds a taped one, because what changes is the function's
`__code__`.
"""

from __future__ import annotations

import functools
import inspect
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import CodeType, FunctionType, TracebackType
from typing import Any, ParamSpec, Self, TypeVar, cast, overload

from tape_jupyter.core.context import CALLED_AS, SPAN
from tape_jupyter.instrumentation.tools import wrappers
from tape_jupyter.instrumentation.tools.call import (
    Kind,
    TapedFunction,
    choose_wrapper,
    taped_function,
)
from tape_jupyter.instrumentation.tools.code_swap import clone, is_generator_function, trampoline
from tape_jupyter.instrumentation.tools.discovery import MARK, find_functions, unwrap
from tape_jupyter.instrumentation.tools.generators import through

__all__ = [
    "TapedFunctions",
    "find_functions",
    "retrieval",
    "span",
    "tape_functions",
    "taped_as",
    "tool",
]

P = ParamSpec("P")
R = TypeVar("R")
F = TypeVar("F")


# The decorators


@overload
def tool(function: F, /) -> F: ...
@overload
def tool(*, name: str | None = None) -> Callable[[F], F]: ...
def tool(function: Any = None, /, *, name: str | None = None) -> Any:
    """Record the calls of a function, and in replay answer them from the tape without running it.

    `@tool`, `@tool(name="search")`; plain and async functions, methods, and tool objects of an SDK.
    """
    return _apply_decorator(function, name, "tool")


@overload
def retrieval(function: F, /) -> F: ...
@overload
def retrieval(*, name: str | None = None) -> Callable[[F], F]: ...
def retrieval(function: Any = None, /, *, name: str | None = None) -> Any:
    """As `tool`, for a function that looks documents up: its calls are shown as retrievals."""
    return _apply_decorator(function, name, "retrieval")


def _apply_decorator(anything: Any, name: str | None, kind: Kind) -> Any:
    if anything is None:
        return lambda anything: _apply_decorator(anything, name, kind)
    named = getattr(anything, "name", None)
    if isinstance(named, str) and (
        function := unwrap(anything)
    ):  # a tool object: its function is taped where it stands
        tape_functions({name or named: function}, kind=kind)
        return anything
    return wrappers.decorated(anything, name, kind)


class span:  # noqa: N801  # used like a function: `with tape.span("plan"):`, `@tape.span("plan")`
    """Names the calls made inside: a context manager (also async) and a decorator (also of async
    functions).
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def __enter__(self) -> Self:
        SPAN.set((*SPAN.get(), self.name))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        SPAN.set(SPAN.get()[:-1])

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
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
    """What `tape_functions` did: call it to undo (a second call does nothing). `skipped` says why,
    by name.
    """

    def __init__(self, taped: list[tuple[FunctionType, _Swap]], skipped: dict[str, str]) -> None:
        self._taped, self.skipped = taped, skipped

    @property
    def current_functions(self) -> list[FunctionType]:
        """The functions that still have our code: a reload (`%autoreload`) gives them other code
        where they stand.
        """
        return [function for function, swap in self._taped if function.__code__ is swap.trampoline]

    def __len__(self) -> int:
        return len(self._taped)

    def __call__(self) -> None:
        while self._taped:
            _untape_function(*self._taped.pop())


@dataclass(slots=True)
class _Swap:
    """The code a function had, and how often it is taped. Lives in the function's own `__dict__`,
    which a reload shares with the function's successor: only the code tells whose it is.
    """

    original: CodeType
    trampoline: CodeType
    taped: TapedFunction
    count: int = 1


class _Trampoline:
    """The constant that a trampoline calls. Weak: the garbage collector does not look into code
    objects, so a code that held its own function (as a recursive closure's does, by way of the
    cell) would never be freed.
    """

    __slots__ = ("function",)

    def __init__(self, function: FunctionType) -> None:
        self.function = weakref.ref(function)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        function = self.function()
        swap = vars(function).get(_SWAP)
        if swap is None:  # untaped between the call and this line
            result = cast("Any", function)(*args, **kwargs)
            return through(result) if is_generator_function(function) else result
        return choose_wrapper(swap.taped)(*args, **kwargs)


_SWAP = "__tape_swap__"
_LOCK = threading.Lock()


def tape_functions(
    functions: Mapping[str, Callable[..., Any] | Iterable[Callable[..., Any]]],
    *,
    kind: Kind = "tool",
) -> TapedFunctions:
    """Tape functions wherever they are referenced, under these names. Returns the undo.

    A name may have several functions. Taping what is taped counts up; the last undo puts the code
    back. What cannot be taped (what is not a Python function) is left as it is, and said in
    `skipped`.
    """
    done: list[tuple[FunctionType, _Swap]] = []
    skipped: dict[str, str] = {}
    for name, candidates in functions.items():
        for candidate in [candidates] if callable(candidates) else candidates:
            if hasattr(candidate, MARK):
                continue  # its decorator tapes it
            inside: list[Any] = [*unwrap(candidate)]
            for function in inside or [candidate]:
                swap = _tape_function(function, name, kind)
                if isinstance(swap, str):
                    skipped[name] = swap
                else:
                    done.append((function, swap))
    return TapedFunctions(done, skipped)


@contextmanager
def taped_as(name: str, functions: Iterable[FunctionType]) -> Iterator[None]:
    """Inside, these functions are taped, and their calls are calls of `name`, whatever they were
    taped as before.
    """
    functions = tuple(functions)
    undo = tape_functions({name: functions})
    swaps = [vars(function).get(_SWAP) for function in functions]
    before = CALLED_AS.get()
    CALLED_AS.set({**before, **{id(swap.taped): name for swap in swaps if swap is not None}})
    try:
        yield
    finally:
        CALLED_AS.set(before)
        undo()


def _tape_function(function: Any, name: str, kind: Kind) -> _Swap | str:
    """Swap the code of a function. Returns why not, where that cannot be."""
    if not isinstance(function, FunctionType):
        return f"a {type(function).__name__} has no Python code to tape"
    with _LOCK:
        swap = vars(function).get(_SWAP)
        if swap is not None and function.__code__ is swap.trampoline:
            swap.count += 1
            return cast("_Swap", swap)
        code = trampoline(function, _Trampoline(function))
        if code is None:
            return "its parameters have names that no source could spell"
        swap = vars(function)[_SWAP] = _Swap(
            function.__code__, code, taped_function(function, clone(function), name, kind)
        )
        function.__code__ = code
    return swap


def _untape_function(function: FunctionType, swap: _Swap) -> None:
    with _LOCK:
        swap.count -= 1
        if swap.count:
            return
        if function.__code__ is swap.trampoline:  # else somebody put other code in since
            function.__code__ = swap.original
        if vars(function).get(_SWAP) is swap:
            del vars(function)[_SWAP]
