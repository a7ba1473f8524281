"""Python's own clock and dates, where a program has put others in their place (a mock, freezegun).

What is imported meanwhile takes what stands there for Python's own and keeps it: our modules would
look for dates that are none, and time-machine's C half writes into whatever it takes for a built-in
function, so that the kernel dies.

`monotonic`, `perf_counter`, `epoch_ns` and `utc_now` are what we ourselves measure, wait and date by: nobody's
stand-in, ours included, reaches them. time-machine does, which changes `time.time` itself: while it
travels, `epoch_ns` and `utc_now` tell its date.
"""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.machinery import BuiltinImporter
from importlib.util import module_from_spec
from types import BuiltinFunctionType, ModuleType
from typing import Any


def _second_time() -> ModuleType:
    """Another module `time`, of the same C functions. Raises RuntimeError where it is not built in."""
    spec = BuiltinImporter.find_spec("time")
    if spec is None or spec.loader is None:
        raise RuntimeError("the module time is not built in")
    second = module_from_spec(spec)
    spec.loader.exec_module(second)
    return second


_second = _second_time()
monotonic: Callable[[], float] = _second.monotonic
monotonic_ns: Callable[[], int] = _second.monotonic_ns
perf_counter: Callable[[], float] = _second.perf_counter
perf_counter_ns: Callable[[], int] = _second.perf_counter_ns
epoch_ns: Callable[[], int] = _second.time_ns


@contextmanager
def genuine() -> Iterator[None]:
    """Inside, `time` and `datetime` have what Python came with; afterwards what the program put
    there stands again.

    Raises RuntimeError where Python's own cannot be found.
    """
    replaced = [
        (owner, name, original)
        for owner, name, original in _find_genuine_members()
        if not _is_genuine(owner, name, original)
    ]
    theirs = [getattr(owner, name, None) for owner, name, _ in replaced]
    try:
        for owner, name, original in replaced:
            setattr(owner, name, original)
        yield
    finally:
        for (owner, name, _), value in zip(replaced, theirs, strict=True):
            setattr(owner, name, value)


def _find_genuine_members() -> Iterator[tuple[ModuleType, str, Any]]:
    """The module, the name, and what Python itself has there."""
    for name in (
        "time",
        "time_ns",
        "clock_gettime",
        "clock_gettime_ns",
        "gmtime",
        "localtime",
        "strftime",
    ):
        if hasattr(_second, name):
            yield time, name, getattr(_second, name)
    date = _find_static_class(object, "date")
    yield dt, "date", date
    yield dt, "datetime", _find_static_class(date, "datetime")


def utc_now() -> dt.datetime:
    """The time. `datetime.now` is what a pinned clock stands in for, and takes longer then."""
    return _from_timestamp(_second.time(), dt.UTC)


def _find_static_class(base: type, name: str) -> type:
    """The class of C of that name in `datetime`: the one that no Python code made."""
    each: type
    for each in type.__subclasses__(base):
        if (
            each.__module__ == "datetime"
            and each.__name__ == name
            and not each.__flags__ & _HEAP_TYPE
        ):
            return each
    raise RuntimeError(f"datetime.{name} is not there")


_HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE, Include/object.h
_from_timestamp: Callable[[float, dt.tzinfo], dt.datetime] = _find_static_class(
    _find_static_class(object, "date"), "datetime"
).fromtimestamp  # type: ignore[attr-defined] # of dates


def _is_genuine(owner: ModuleType, name: str, original: Any) -> bool:
    """Whether `owner.name` is what Python has there: of a function its twin in the second module
    will do.
    """
    value = getattr(owner, name, None)
    return value is original or (
        type(value) is BuiltinFunctionType and (value.__module__, value.__name__) == ("time", name)
    )
