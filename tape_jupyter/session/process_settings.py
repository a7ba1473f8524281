"""Settings of the process that the body of a tool changed: those of plain numbers are set again in
replay, the others are named.

A recording may come from anybody: it sets nothing that could end the process, leave files open to
others, or decide which code runs.
"""

from __future__ import annotations

import gc
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple

from tape_jupyter.core.user_code import is_users
from tape_jupyter.dataflow.tracing.ambient import signal_handlers, umask
from tape_jupyter.effects.scope import is_kept_out
from tape_jupyter.encoding.values.walker import need
from tape_jupyter.errors import CassetteError

_DEEPEST = 100_000
"""The greatest recursion limit that a recording may set."""


class ProcessSetting(NamedTuple):
    """`take` gives a value that does not change afterwards; `put` sets it as a recording tells, None
    where that is only named.
    """

    said: str
    take: Callable[[], Any]
    put: Callable[[Any], None] | None = None


class ProcessSettings:
    """How they are when a body begins."""

    def __init__(self) -> None:
        self._before, self._modules = _read_settings(), len(sys.modules)
        self._environment = _read_environment()

    def changes(self) -> tuple[dict[str, Any], list[str]]:
        """What is otherwise now: what can be set again, by name; and what cannot, in words."""
        told: dict[str, Any] = {}
        lost: list[str] = []
        imported = len(sys.modules) != self._modules
        for name, now in _read_settings().items():
            setting = _SETTINGS[name]
            if name not in self._before or now == self._before[name]:
                continue
            if setting.put is not None:
                told[name] = now
            elif not (imported and name in _SET_BY_IMPORTS):
                lost.append(f"it changed {setting.said}")
        return told, [*lost, *_describe_kept_out_variables(self._environment)]


def _read_environment() -> dict[Any, Any]:
    """The environment variables as Python keeps them: decoding them takes longer than most tools."""
    return dict(getattr(os.environ, "_data", os.environ))


def _describe_kept_out_variables(before: dict[Any, Any]) -> Iterator[str]:
    """Of the environment variables that no recording sets, those that are otherwise now."""
    now = _read_environment()
    if now == before:
        return
    changed = (name for name in {*before, *now} if before.get(name) != now.get(name))
    for name in sorted(map(os.fsdecode, changed)):
        if is_kept_out(name):
            yield f"it changed the environment variable {name}, which no recording sets"


def set_settings(told: Mapping[str, Any]) -> None:
    """Set them as they were told. Raises CassetteError for what no recording may set."""
    for name, value in told.items():
        setting = _SETTINGS.get(name)
        if setting is None or setting.put is None:
            raise CassetteError(f"{name!r} is no setting that a recording sets")
        setting.put(value)


def _read_settings() -> dict[str, Any]:
    return {name: setting.take() for name, setting in _SETTINGS.items()}


# ---- of plain numbers


def _put_recursion_limit(told: Any) -> None:
    limit = need(told, int, None)
    if not 50 <= limit <= _DEEPEST:
        raise CassetteError(f"no recursion limit of {limit}")
    sys.setrecursionlimit(limit)


def _put_collection(told: Any) -> None:
    (gc.enable if need(told, bool, None) else gc.disable)()


def _put_thresholds(told: Any) -> None:
    gc.set_threshold(*(need(each, int, None) for each in told))


def _put_timeout(told: Any) -> None:
    socket.setdefaulttimeout(None if told is None else float(told))


def _put_switch_interval(told: Any) -> None:
    sys.setswitchinterval(float(told))


def _put_digits(told: Any) -> None:
    sys.set_int_max_str_digits(need(told, int, None))


def _put_umask(told: Any) -> None:
    """Raises CassetteError where it would leave new files open to more people."""
    mask, now = need(told, int, None), umask()
    if mask & now != now:
        raise CassetteError(f"a recording gives no one more rights to new files ({mask:03o})")
    os.umask(mask)


# ---- what is only named


def _read_tracing() -> list[Any]:
    """None for what we profile with ourselves (dataflow/tracing/executed_code.py): it ends when it
    has seen enough, amid a tool too.
    """
    found = [sys.gettrace(), sys.getprofile(), threading.gettrace(), threading.getprofile()]
    return [None if _is_ours(function) else function for function in found]


def _is_ours(function: Any) -> bool:
    return str(getattr(function, "__module__", "")).startswith("tape_jupyter.")


def _read_timers() -> list[bool]:
    if sys.platform == "win32":
        return []
    timers = (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF)
    return [signal.getitimer(each)[0] > 0 for each in timers]


@cache
def _list_limit_kinds() -> list[int]:
    """What the system lets be limited. Windows has no `resource`."""
    if sys.platform == "win32":
        return []
    import resource

    return [number for name, number in vars(resource).items() if name.startswith("RLIMIT_")]


def _read_limits() -> list[Any]:
    limited = _list_limit_kinds()
    return [sys.modules["resource"].getrlimit(number) for number in limited]


def _read_priority() -> int:
    return 0 if sys.platform == "win32" else os.getpriority(os.PRIO_PROCESS, 0)


def _list_users_finders() -> list[int]:
    """The program's own, of what finds modules."""
    return [id(each) for each in (*sys.meta_path, *sys.path_hooks) if _is_users_object(each)]


def _is_users_object(value: Any) -> bool:
    module = getattr(value, "__module__", None) or type(value).__module__
    return isinstance(module, str) and is_users(module)


def _list_pickled_classes() -> list[int]:
    """The program's own classes that a function given to `copyreg` takes apart."""
    table = sys.modules["copyreg"].dispatch_table
    return sorted(id(each) for each in list(table) if _is_users_object(each))


def _read_loop_policy() -> int:
    events = sys.modules.get("asyncio.events")
    policy = getattr(events, "_event_loop_policy", None)  # to ask for it would make one
    return id(policy) if _is_users_object(policy) else 0


_SETTINGS: Mapping[str, ProcessSetting] = {
    "recursion limit": ProcessSetting(
        "the recursion limit", sys.getrecursionlimit, _put_recursion_limit
    ),
    "garbage collection": ProcessSetting(
        "whether garbage is collected", gc.isenabled, _put_collection
    ),
    "garbage thresholds": ProcessSetting(
        "when garbage is collected", lambda: list(gc.get_threshold()), _put_thresholds
    ),
    "socket timeout": ProcessSetting(
        "the timeout of sockets", socket.getdefaulttimeout, _put_timeout
    ),
    "switch interval": ProcessSetting(
        "how often threads take turns", sys.getswitchinterval, _put_switch_interval
    ),
    "digits": ProcessSetting(
        "how many digits a number in a text may have", sys.get_int_max_str_digits, _put_digits
    ),
    "umask": ProcessSetting("the permissions of new files", umask, _put_umask),
    "signals": ProcessSetting("how a signal is handled", signal_handlers),
    "timers": ProcessSetting("a timer of the process", _read_timers),
    "limits": ProcessSetting("a limit of the process (resource)", _read_limits),
    "priority": ProcessSetting("the priority of the process", _read_priority),
    "collected": ProcessSetting(
        "what is called when garbage is collected", lambda: [*gc.callbacks]
    ),
    "finders": ProcessSetting("what finds modules", _list_users_finders),
    "copyreg": ProcessSetting("how a class is pickled (copyreg)", _list_pickled_classes),
    "event loops": ProcessSetting("the policy of event loops", _read_loop_policy),
    "loggers": ProcessSetting("the class of loggers", logging.getLoggerClass),
    "tracing": ProcessSetting("what traces or profiles code", _read_tracing),
}
_SET_BY_IMPORTS = frozenset({"collected", "loggers"})
"""Those that libraries change when they are imported: nothing that a replay lacks."""
