"""The clock and the sleep of user code in taped cells: what `time` gives
(instrumentation/determinism/wall_clock.py has the wall clock).

The stand-ins behave as the built-in functions do: no methods where a class keeps one, no frame of
their own in the reader's way, pickled by name. What a module took before we came, with `from time
import sleep`, as the default of an argument or as an attribute of a class, is put right in the
modules that are not plumbing.

Not held: `numpy.datetime64('now')`, SQLite's clock, times of files, `time.process_time` and
`thread_time`, `clock_gettime` of other clocks than the real-time one: they read the system in C.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from types import BuiltinFunctionType, FunctionType
from typing import Any

from tape_jupyter.instrumentation.determinism import clock_callers
from tape_jupyter.instrumentation.patching import Substitute, original_of, swap, undoing

_READS = {
    "monotonic": ("monotonic", 1e-9), "monotonic_ns": ("monotonic", 1), "perf_counter": ("perf", 1e-9),
    "perf_counter_ns": ("perf", 1),
}  # fmt: skip
_stand_ins: dict[int, Any] = {}
"""By the id of the built-in function; those live for ever."""


def patch() -> Callable[[], None]:
    """Tap `time.monotonic`, `perf_counter`, `sleep`, `ctime`, `asctime`. Returns the undo."""
    wrappers: dict[str, Callable[[Any], Any]] = {name: partial(_wrap_read, name) for name in _READS}
    wrappers |= {name: partial(_wrap_text_of_moment, name) for name in ("ctime", "asctime")} | {
        "sleep": _wrap_sleep
    }
    take_off = undoing(
        *(
            swap(time, name, wrapper)
            for name, wrapper in wrappers.items()
            if _is_genuine(original_of(vars(time).get(name)))
        )
    )
    rebind(_replace_in_definitions(_stand_ins))

    def undo() -> None:
        back = {id(stand_in): stand_in.original for stand_in in _stand_ins.values()}
        take_off()
        _replace_in_definitions(back)  # patching.sweep_patches() has the namespaces

    return undo


def _is_genuine(value: Any) -> bool:
    """Whether that is Python's own. A program's stand-in (a mock, gevent's) is the program's clock
    and stays.
    """
    return type(value) is BuiltinFunctionType


def rebind(namespaces: Iterable[Mapping[str, Any]]) -> None:
    """Put the stand-ins where these namespaces hold the functions themselves."""
    kinds = {type(stand_in.original) for stand_in in _stand_ins.values()}
    for names in namespaces:
        if isinstance(names, dict):
            items = [item for item in names.items() if type(item[1]) in kinds]
            for name, value in items:
                if id(value) in _stand_ins:  # every audit hook hears of an id()
                    names[name] = _stand_ins[id(value)]


def _replace_in_definitions(instead: Mapping[int, Any]) -> list[dict[str, Any]]:
    """In the functions and classes of modules that know the clock: once, since it looks at all of
    them. The namespaces of these modules.
    """
    swapped, know_it = _Swapped(instead), []
    kinds = swapped.kinds
    for names in _list_namespaces():
        values = list(names.values())
        # fast: of them all
        clocks = [each for each in values if each is time or type(each) in kinds]
        if any(each is time or each in swapped for each in clocks):
            swapped.in_definitions(values, names.get("__name__"))
            know_it.append(names)
    return know_it


class _Swapped:
    """What takes the place of a clock where one is held."""

    def __init__(self, instead: Mapping[int, Any]) -> None:
        self._instead = instead
        self.kinds = {
            type(each) for stand_in in _stand_ins.values() for each in (stand_in, stand_in.original)
        }

    def __contains__(self, value: Any) -> bool:
        # every audit hook hears of an id()
        return type(value) in self.kinds and id(value) in self._instead

    def in_definitions(self, values: Iterable[Any], module: str | None) -> None:
        """What stands in these values that the module defines itself."""
        for value in values:
            kind = type(value)  # of a stand-in for another object too: nothing is asked of those
            if kind is FunctionType and value.__module__ == module:
                self.in_defaults(value)
            elif issubclass(kind, type) and value.__module__ == module:
                self.in_class(value)

    def in_class(self, defined: type) -> None:
        """Its attributes, and the defaults of its methods."""
        for name, value in list(vars(defined).items()):
            kind = type(value)
            if kind is FunctionType:
                self.in_defaults(value)
            elif kind is classmethod or kind is staticmethod:
                self.in_defaults(value.__func__)
            elif kind in self.kinds and value in self:
                with suppress(TypeError):  # a class of C
                    type.__setattr__(defined, name, self._instead[id(value)])

    def in_defaults(self, function: Any) -> None:
        if type(function) is not FunctionType:
            return
        defaults, named = function.__defaults__ or (), function.__kwdefaults__ or {}
        if any(value in self for value in defaults):
            function.__defaults__ = tuple(
                self._instead[id(v)] if v in self else v for v in defaults
            )
        for name, value in named.items():
            if value in self:
                named[name] = self._instead[id(value)]


def _list_namespaces() -> list[dict[str, Any]]:
    """Of every module whose own time may be the tape's."""
    modules = [
        module
        for name, module in list(sys.modules.items())
        if name != "time" and not clock_callers.is_plumbing(name)
    ]
    return [vars(module) for module in modules if hasattr(module, "__dict__")]


def _build_stand_in(original: Any, call: Callable[..., Any]) -> Any:
    """An object of a class of its own, whose `__call__` is no method: calling it adds no frame but
    `call`'s.
    """
    kind = type(
        "builtin_function_or_method",
        (Substitute,),
        {
            "__module__": "time", "__name__": original.__name__, "__qualname__": original.__name__,
            "__doc__": original.__doc__, "__text_signature__": getattr(original, "__text_signature__", None),
            "__call__": staticmethod(call), "original": original,
            "__reduce__": lambda _self: original.__name__, "__repr__": lambda _self: repr(original),
        },
    )  # fmt: skip
    stand_in = kind()
    _stand_ins[id(original)] = stand_in
    return stand_in


def _wrap_read(name: str, original: Callable[[], Any]) -> Any:
    kind, scale = _READS[name]

    def read() -> Any:
        reading = clock_callers.read_clock(kind)
        return original() if reading is None else reading * scale

    return _build_stand_in(original, read)


def _wrap_text_of_moment(name: str, original: Callable[..., str]) -> Any:
    """`ctime()` and `asctime()` without a moment read the clock in C."""

    def format_moment(*args: Any) -> str:
        reading = None if args and args[0] is not None else clock_callers.read_clock("wall")
        if reading is None:
            return original(*args)
        if name == "ctime":
            return original(reading / 1e9)
        return original(time.localtime(reading / 1e9))

    return _build_stand_in(original, format_moment)


def _wrap_sleep(original: Callable[[float], None]) -> Any:
    def sleep(seconds: float) -> None:
        clock = clock_callers.clock_here()
        if clock is None or not (clock.sleeps or clock_callers.notes_order(clock)):
            return original(seconds)
        if not (_is_users(clock_callers.module_of(1)) and _is_wait(seconds)):
            return original(seconds)
        lineage = clock_callers.strand_here()
        if clock.order is None:
            clock.sleep(float(seconds), lineage)
        else:
            name = clock.order.timer(lineage)
            original(seconds)
            together = not clock.order.turn()
            clock.order.note(name, lineage, together=together)
        return None

    return _build_stand_in(original, sleep)


def _is_users(module: Any) -> bool:
    """Whether a sleep called from there is the program's: threads and pools call it only when it
    was handed to them.
    """
    return not clock_callers.is_plumbing(module) or str(module).partition(".")[0] in (
        "threading",
        "concurrent",
    )


def _is_wait(seconds: Any) -> bool:
    try:
        return bool(seconds > 0)
    except TypeError:
        return False
