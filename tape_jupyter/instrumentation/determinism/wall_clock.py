"""The wall clock that C reads: `time.time`, `datetime.now`, `date.today`, `localtime`, `gmtime`,
`strftime`.

time-machine swaps these functions' C pointers, so that `from datetime import datetime` of long ago,
`isinstance` and pickling stay as they are, and pandas is covered. It asks the last object of its
`traveller_stack` for the time: ours (`Dispatch`) answers with the tape's time where user code of a
taped cell asks, else with the real one. Those names are private to time-machine: its version is
pinned, and before the first use we prove that they do what we think.
"""

from __future__ import annotations

import datetime as dt
import sys
import threading
import time
import uuid
from collections.abc import Callable
from importlib import import_module
from typing import Any

from tape_jupyter.core.real_clock import genuine
from tape_jupyter.instrumentation.determinism import clock_callers
from tape_jupyter.instrumentation.patching import original_of

_lock = threading.Lock()
_loaded: list[tuple[Any, Any]] = []
_reason: list[str] = []


class Dispatch:
    """What time-machine calls a traveller. `time_ns` is called straight from C: one frame up is who
    reads the clock.
    """

    def __init__(self, original: Callable[[], int]) -> None:
        self._original = original
        self.uses = 0

    def time_ns(self) -> int:
        reading = clock_callers.read_clock("wall")
        return self._original() if reading is None else reading

    def _start(self) -> None:
        """Asked for by time-machine where a program travels on top of ours."""

    def _stop(self) -> None:
        """The same."""


_dispatch: list[Dispatch] = []


def hold_wall_clock() -> Callable[[], None]:
    """Hold the wall clock from now on; gives what lets go again. Raises RuntimeError where it
    cannot be held.
    """
    with _lock:
        module, machine = _load_hooks()
        if not _dispatch:
            _dispatch.append(Dispatch(machine.original_time_ns))
            if not module.traveller_stack:
                machine.patch()
            module.traveller_stack.insert(0, _dispatch[0])
        _dispatch[0].uses += 1
    return _call_once(_remove_hook)


def _remove_hook() -> None:
    with _lock:
        module, machine = _load_hooks()
        _dispatch[0].uses -= 1
        if not _dispatch[0].uses:
            module.traveller_stack.remove(_dispatch.pop())
            _hand_on_uuid(module)
            if not module.traveller_stack:
                machine.unpatch()


_UUID = {
    "_generate_time_safe": "original_uuid_generate_time_safe",
    "_UuidCreate": "original_uuid_uuid_create",
}
"""Names in `uuid`, and under which time-machine keeps what stood there."""


def _hand_on_uuid(module: Any) -> None:
    """As time-machine's first traveller takes these functions of `uuid` out, and its last puts them
    back: where that one came after us, or went before us, they would be gone for ever.
    """
    for name, original in _UUID.items():
        if module.traveller_stack and getattr(module, original) is None:
            setattr(module, original, original_of(vars(uuid)[name]))
        elif not module.traveller_stack and getattr(module, original) is not None:
            setattr(uuid, name, getattr(module, original))
            setattr(module, original, None)


def _call_once(undo: Callable[[], None]) -> Callable[[], None]:
    left = [undo]
    return lambda: left.pop()() if left else None


def _load_hooks() -> tuple[Any, Any]:
    """time-machine and its C half, proven. Raises RuntimeError, each time for the same reason."""
    if _reason:
        raise RuntimeError(_reason[0])
    if not _loaded:
        try:
            with genuine():
                module = _import_time_machine()
                machine = import_module("_time_machine")
                _prove_hooks(module, machine)
        except Exception as error:
            _reason.append(
                f"time-machine's hooks do not work here ({type(error).__name__}: {error})"
            )
            raise RuntimeError(_reason[0]) from error
        _loaded.append((module, machine))
    return _loaded[0]


def _import_time_machine() -> Any:
    """time-machine without its plugin for pytest: a kernel has no use for it, and it takes longer
    than all the rest.
    """
    hides = "pytest" not in sys.modules and "time_machine" not in sys.modules
    if hides:
        sys.modules["pytest"] = None  # type: ignore[assignment]  # an import then fails at once
    try:
        return import_module("time_machine")
    finally:
        if hides:
            sys.modules.pop("pytest", None)


_NOON = 951_825_600_123_456_789  # 2000-02-29 12:00:00.123456789 UTC


class _Probe(Dispatch):
    """Tells one frame another time, and everybody else the real one."""

    def __init__(self, original: Callable[[], int], code: Any) -> None:
        super().__init__(original)
        self._code = code

    def time_ns(self) -> int:
        return _NOON if sys._getframe(1).f_code is self._code else self._original()  # noqa: SLF001


def _prove_hooks(module: Any, machine: Any) -> None:
    """Every function we rely on asks us, from the frame of its caller, and is itself again
    afterwards.
    """
    patches = not module.traveller_stack
    if patches:
        machine.patch()
    probe = _Probe(machine.original_time_ns, _read_clocks.__code__)
    module.traveller_stack.append(probe)
    try:
        readings = _read_clocks()
    finally:
        module.traveller_stack.remove(probe)
        if patches:
            machine.unpatch()
    # what now() gives
    local = dt.datetime.fromtimestamp(_NOON // 10**9).replace(microsecond=123456)  # noqa: DTZ006
    utc = local.astimezone(dt.UTC)
    year = ("2000",) * 3
    expected = (
        _NOON,
        _NOON / 10**9,
        local,
        utc,
        utc.replace(tzinfo=None),
        local.date(),
        local,
        *year,
    )
    wrong = [
        name for name, one, other in zip(_NAMES, readings, expected, strict=True) if one != other
    ]
    if (
        wrong
        or abs(time.time_ns() - _NOON) < 10**18 // 10
        or abs(_read_clocks()[0] - _NOON) < 10**17
    ):
        raise RuntimeError(f"not held: {', '.join(wrong) or 'the real time afterwards'}")


_NAMES = (
    "time.time_ns", "time.time", "datetime.now", "datetime.now(tz)", "datetime.utcnow", "date.today", "datetime.today",
    "time.localtime", "time.gmtime", "time.strftime",
)  # fmt: skip


def _read_clocks() -> tuple[Any, ...]:
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        naive = dt.datetime.utcnow()  # noqa: DTZ003 - people do
    return (
        time.time_ns(), time.time(), dt.datetime.now(), dt.datetime.now(dt.UTC), naive, dt.date.today(),  # noqa: DTZ005, DTZ011
        dt.datetime.today(), str(time.localtime().tm_year), str(time.gmtime().tm_year), time.strftime("%Y"),  # noqa: DTZ002
    )  # fmt: skip
