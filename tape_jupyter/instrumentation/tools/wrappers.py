"""A taped stand-in for anything that can be called: functions, methods, classes, context managers,
objects.

What a decorator gets is replaced by what it gives (a class is changed in place: it stays the class
that it is). `frozen` leaves what it is given as it was, and gives something taped that stands
beside it.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import types
import weakref
from collections.abc import Callable, Iterator
from enum import Enum
from types import FunctionType
from typing import Any

from tape_jupyter.core.libraries import is_library_class
from tape_jupyter.encoding.values.tracebacks import drop_own_frames
from tape_jupyter.errors import TapeUsageError
from tape_jupyter.instrumentation.tools.call import Kind, choose_wrapper, taped_function
from tape_jupyter.instrumentation.tools.code_swap import clone, is_generator_function, trampoline
from tape_jupyter.instrumentation.tools.discovery import MARK

_SPOKEN = frozenset({"__call__", "__enter__", "__exit__", "__aenter__", "__aexit__"})
"""Methods of a class that are called without their name."""


def decorated(anything: Any, name: str | None, kind: Kind) -> Any:
    """What `@tape.tool` makes of it. Raises TapeUsageError where nothing in it can be called."""
    if isinstance(anything, (staticmethod, classmethod)):
        return type(anything)(decorated(anything.__func__, name, kind))
    if isinstance(anything, type):
        return _tape_methods(anything, name or anything.__name__, kind)
    if (remake := _find_manager_maker(anything)) is not None:
        return remake(decorated(anything.__wrapped__, name or anything.__name__, kind))
    if callable(anything):
        return _wrap_function(anything, name, kind)
    raise TapeUsageError(
        f"@tape.{kind} goes on a function, class or tool, not on a {_find_class_name(anything)}: {anything!r:.200}"
    )


def frozen(anything: Any, /, *, name: str | None = None) -> Any:
    """`tape.frozen(fn)`: a taped stand-in for a function, class or object that is somebody else's.

    `run = tape.frozen(subprocess.run)`, `query = tape.frozen(connection.execute)`; of a class a
    subclass, of an object one whose methods are taped. `name`: what it is called on the tape.
    """
    if isinstance(anything, type):
        return decorated(_derive_class(anything), name, "tool")
    if callable(anything) and (
        hasattr(anything, "__name__") or isinstance(anything, functools.partial)
    ):
        return decorated(anything, name, "tool")
    if isinstance(
        anything,
        (str, bytes, int, float, complex, dict, list, tuple, set, types.ModuleType, type(None)),
    ):
        raise TapeUsageError(
            f"tape.frozen(...) goes around a function, a class or an object, not a {_find_class_name(anything)}"
        )
    return FrozenObject(anything, name or type(anything).__name__)


def _find_class_name(anything: Any) -> str:
    return type(anything).__name__


# Functions


def _wrap_function(
    function: Callable[..., Any], name: str | None, kind: Kind
) -> Callable[..., Any]:
    if hasattr(function, MARK):
        return function
    record = taped_function(function, function, name, kind)
    wrapper: Any = _build_generator_wrapper(function) or _build_forwarder(function, record)
    setattr(wrapper, MARK, record)
    return wrapper  # type: ignore[no-any-return]  # a function


def _build_forwarder(function: Callable[..., Any], record: Any) -> Callable[..., Any]:
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def wait(*args: Any, **kwargs: Any) -> Any:
            try:
                return await record.call_async(*args, **kwargs)
            except BaseException as error:
                drop_own_frames(error)
                raise

        return wait

    @functools.wraps(function)
    def forward(*args: Any, **kwargs: Any) -> Any:
        try:
            return record.call(*args, **kwargs)
        except BaseException as error:
            drop_own_frames(error)
            raise

    return forward


def _build_generator_wrapper(function: Any) -> FunctionType | None:
    """For a generator function another one, of the same sort and with the same parameters; None for
    all others.
    """
    if not is_generator_function(function) or not isinstance(function, FunctionType):
        return None
    wrapper, entrance = clone(function), _Entrance()
    code = trampoline(function, entrance)
    if code is None:
        return None
    wrapper.__code__ = code
    entrance.wrapper = weakref.ref(wrapper)
    functools.update_wrapper(wrapper, function)
    return wrapper


class _Entrance:
    """The constant that a generator's stand-in calls. Weak, as functions._Door is: a code object is
    not collected.
    """

    __slots__ = ("wrapper",)
    wrapper: weakref.ref[FunctionType]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return choose_wrapper(getattr(self.wrapper(), MARK))(*args, **kwargs)


# Context managers


@contextlib.contextmanager
def _yield_nothing() -> Iterator[None]:
    yield


@contextlib.asynccontextmanager
async def _yield_nothing_async() -> Any:
    yield


_MAKERS: dict[Any, Callable[[Any], Any]] = {
    _yield_nothing.__code__: contextlib.contextmanager,
    _yield_nothing_async.__code__: contextlib.asynccontextmanager,
}


def _find_manager_maker(anything: Any) -> Callable[[Any], Any] | None:
    """The decorator of contextlib that made this function of a generator function, or None."""
    return _MAKERS.get(anything.__code__) if isinstance(anything, FunctionType) else None


# Classes


def _tape_methods(cls: type, name: str, kind: Kind) -> type:
    """Tape the public methods of a class, its own and those of its kin: with `Shop.price` as their
    name.
    """
    if issubclass(cls, (Enum, BaseException)):
        raise TapeUsageError(
            f"@tape.{kind} goes on a class whose methods do something, not on {cls.__name__}"
        )
    methods = {n: method for n, method in _list_methods(cls) if n in _SPOKEN or n[:1] != "_"}
    if not methods:
        raise TapeUsageError(
            f"@tape.{kind}: {cls.__name__} has no public method that could be taped"
        )
    for own_name, method in methods.items():
        setattr(cls, own_name, decorated(method, f"{name}.{own_name}", kind))
    return cls


def _list_methods(cls: type) -> Iterator[tuple[str, Any]]:
    """Functions in the class and in those above it that are the user's, or of the same library; the
    nearest last.
    """
    root = cls.__module__.partition(".")[0]
    for base in reversed(cls.__mro__):
        if (
            base is cls
            or not is_library_class(base)
            or base.__module__.partition(".")[0] == root != "builtins"
        ):
            for name, value in list(vars(base).items()):
                if isinstance(value, (FunctionType, staticmethod, classmethod)):
                    yield name, value


def _derive_class(cls: type) -> type:
    namespace = {
        "__module__": cls.__module__,
        "__qualname__": cls.__qualname__,
        "__doc__": cls.__doc__,
    }
    try:
        return types.new_class(cls.__name__, (cls,), exec_body=lambda body: body.update(namespace))
    except TypeError as reason:
        raise TapeUsageError(
            f"tape.frozen({cls.__name__}): it cannot be derived from ({reason})"
        ) from reason


# Objects


class FrozenObject:
    """An object of somebody else's whose public methods are taped; its other attributes are as they
    are.
    """

    def __init__(self, inner: Any, name: str) -> None:
        self.__dict__.update(_inner=inner, _name=name)

    def __getattr__(self, name: str) -> Any:
        if "_inner" not in self.__dict__:  # a copy that is being made
            raise AttributeError(name)
        value = getattr(self._inner, name)
        if name.startswith("_") or not callable(value) or isinstance(value, type):
            return value
        return decorated(value, f"{self._name}.{name}", "tool")

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._inner, name, value)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return decorated(self._inner, self._name, "tool")(*args, **kwargs)

    def __repr__(self) -> str:
        return f"tape.frozen({self._inner!r})"
