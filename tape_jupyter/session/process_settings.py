"""Settings of the process that the body of a tool changed: those of plain numbers are set again in
replay, the others are named.

A recording may come from anybody: it sets nothing that could end the process, leave files open to
others, or decide which code runs.
"""

from __future__ import annotations

import atexit
import builtins
import gc
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any, NamedTuple

from tape_jupyter.core.user_code import bag, is_users
from tape_jupyter.dataflow.tracing.ambient import signal_handlers, umask
from tape_jupyter.effects.scope import is_kept_out
from tape_jupyter.encoding.values.walker import need
from tape_jupyter.errors import CassetteError

_DEEPEST = 100_000
"""The greatest recursion limit that a recording may set."""

_LARGEST_STACK = 64 << 20
"""Bytes of a thread's stack that a recording may set."""


class ProcessSetting(NamedTuple):
    """`capture` gives a value that does not change afterwards; `restore` sets it as a recording tells, None
    where that is only named. `names`: it is looked at where code within reach has one of these
    names, since others change it, too, or to ask takes long; None: always. `needs`: the module that
    keeps it, which may not be imported.
    """

    description: str
    capture: Callable[[], Any]
    restore: Callable[[Any], None] | None = None
    names: frozenset[str] | None = None
    needs: str = "sys"


class ProcessSettings:
    """How they are when a body begins. `names` are all names that code within reach looks up."""

    def __init__(self, names: AbstractSet[str]) -> None:
        self._names = names
        self._before, self._modules = _read_settings(names), len(sys.modules)
        self._environment = _read_environment()

    def changes(self) -> tuple[dict[str, Any], list[str]]:
        """What is otherwise now: what can be set again, by name; and what cannot, in words."""
        told: dict[str, Any] = {}
        lost: list[str] = []
        imported = len(sys.modules) != self._modules
        for name, now in _read_settings(self._names).items():
            setting = _SETTINGS[name]
            if name not in self._before or now == self._before[name]:
                continue
            if setting.restore is not None:
                told[name] = now
            elif not (imported and name in _SET_BY_IMPORTS):
                lost.append(f"it changed {setting.description}")
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
            yield f"it changed the environment variable {name}, which a recording does not set"


def set_settings(settings: Mapping[str, Any]) -> None:
    """Set them as they were told. Raises CassetteError for what no recording may set."""
    for name, value in settings.items():
        setting = _SETTINGS.get(name)
        if setting is None or setting.restore is None:
            raise CassetteError(f"{name!r} is not a setting that a recording sets")
        import_module(setting.needs)
        setting.restore(value)


def _read_settings(names: AbstractSet[str]) -> dict[str, Any]:
    """Those that are looked at, as they are now."""
    captured = {}
    for name, setting in _SETTINGS.items():
        is_named = setting.names is None or not setting.names.isdisjoint(names)
        if is_named and setting.needs in sys.modules:
            captured[name] = setting.capture()
    return captured


# ---- of plain numbers


def _put_recursion_limit(value: Any) -> None:
    limit = need(value, int, None)
    if not 50 <= limit <= _DEEPEST:
        raise CassetteError(f"no recursion limit of {limit}")
    sys.setrecursionlimit(limit)


def _put_collection(value: Any) -> None:
    (gc.enable if need(value, bool, None) else gc.disable)()


def _put_thresholds(values: Any) -> None:
    gc.set_threshold(*(need(each, int, None) for each in values))


def _put_timeout(value: Any) -> None:
    socket.setdefaulttimeout(None if value is None else float(value))


def _put_switch_interval(value: Any) -> None:
    sys.setswitchinterval(float(value))


def _put_digits(value: Any) -> None:
    sys.set_int_max_str_digits(need(value, int, None))


def _put_umask(value: Any) -> None:
    """Raises CassetteError where it would leave new files open to more people."""
    mask, now = need(value, int, None), umask()
    if mask & now != now:
        raise CassetteError(f"a recording gives no one more rights to new files ({mask:03o})")
    os.umask(mask)


def _read_stack_size() -> int:
    """To ask for it sets it to 0."""
    size = threading.stack_size()
    threading.stack_size(size)
    return size


def _put_stack_size(value: Any) -> None:
    size = need(value, int, None)
    if not 0 <= size <= _LARGEST_STACK:
        raise CassetteError(f"no stack of {size} bytes for a thread")
    threading.stack_size(size)


def _put_start_method(value: Any) -> None:
    sys.modules["multiprocessing"].set_start_method(need(value, str, None), force=True)


# ---- what is only named


def _ask(module: str, function: str) -> Callable[[], Any]:
    """To ask a function of a module, once that is imported."""

    def ask() -> Any:
        return getattr(sys.modules[module], function)()

    return ask


def _list_table_attributes() -> list[int]:
    """How many attributes the classes of pandas' tables have, and how many types of columns there
    are: libraries give them accessors.
    """
    pandas = sys.modules["pandas"]
    names = ("DataFrame", "Series", "Index")
    classes = [vars(pandas).get(name, object) for name in names]  # it may be half imported
    types = getattr(sys.modules.get("pandas.core.dtypes.base"), "_registry", None)
    return [*(len(vars(each)) for each in classes), len(getattr(types, "dtypes", ()))]


def _read_hooks() -> list[Any]:
    hooks = sys.get_asyncgen_hooks()
    return [hooks.firstiter, hooks.finalizer, sys.get_coroutine_origin_tracking_depth()]


def _read_signal_handlers() -> dict[int, Any]:
    """With that of an interrupt: a kernel sets it between cells only."""
    return {**signal_handlers(), signal.SIGINT: signal.getsignal(signal.SIGINT)}


def _list_finalizers() -> list[int]:
    """The program's functions that are called when an object goes."""
    waiting = [*vars(sys.modules["weakref"].finalize)["_registry"].values()]
    return sorted(id(each) for each in waiting if any(map(_is_programs, (each.func, *each.args))))


def _is_programs(value: Any) -> bool:
    owner = getattr(value, "__self__", None)
    kept = value if owner is None or isinstance(owner, ModuleType) else owner
    return type(kept) in (list, dict, set) or _is_users_object(kept)


def _read_blocked_signals() -> list[int]:
    if sys.platform == "win32":
        return []
    return sorted(signal.pthread_sigmask(signal.SIG_BLOCK, []))


def _list_module_aliases() -> dict[str, int]:
    """Modules under other names than their own, and those that were made by hand; in their packages
    libraries make some themselves.
    """
    aliases = {}
    for name, module in list(sys.modules.items()):
        spec = getattr(module, "__spec__", None)
        if "." not in name and getattr(spec, "name", None) != name:
            aliases[name] = id(module)
    return aliases


def _read_line_editor() -> list[Any]:
    readline = sys.modules["readline"]
    return [readline.get_current_history_length(), readline.get_completer()]


def _read_processors() -> Any:
    get_affinity = getattr(os, "sched_getaffinity", None)
    return None if get_affinity is None else get_affinity(0)


def _read_tracing() -> list[Any]:
    """None for what we profile with ourselves (dataflow/tracing/executed_code.py): it ends when it
    has seen enough, amid a tool too.
    """
    functions = [sys.gettrace(), sys.getprofile(), threading.gettrace(), threading.getprofile()]
    return [None if _is_ours(function) else function for function in functions]


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
    """The classes that a function of the program's given to `copyreg` takes apart, or that are its own."""
    table = sys.modules["copyreg"].dispatch_table
    return sorted(id(pair[0]) for pair in [*table.items()] if any(map(_is_users_object, pair)))


def _read_loop_policy() -> int:
    events = sys.modules.get("asyncio.events")
    policy = getattr(events, "_event_loop_policy", None)  # to ask for it would make one
    return id(policy) if _is_users_object(policy) else 0


def _read_event_loop() -> int:
    """Of the event loop that is the current one where none runs; 0 where there is none."""
    policy = getattr(sys.modules.get("asyncio.events"), "_event_loop_policy", None)
    loop = getattr(getattr(policy, "_local", None), "_loop", None)
    return 0 if loop is None else id(loop)


def _has_no_event_loop() -> bool:
    return not _read_event_loop()


def _put_no_event_loop(value: Any) -> None:
    if need(value, bool, None):
        sys.modules["asyncio"].set_event_loop(None)


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
    "signals": ProcessSetting("how a signal is handled", _read_signal_handlers),
    "timers": ProcessSetting("a timer of the process", _read_timers),
    "limits": ProcessSetting("a limit of the process (resource)", _read_limits),
    "priority": ProcessSetting("the priority of the process", _read_priority),
    "collected": ProcessSetting(
        "what is called when garbage is collected", lambda: [*gc.callbacks]
    ),
    "finders": ProcessSetting("what finds modules", _list_users_finders),
    "copyreg": ProcessSetting("how a class is pickled (copyreg)", _list_pickled_classes),
    "event loops": ProcessSetting("the policy of event loops", _read_loop_policy),
    "event loop": ProcessSetting(
        "which event loop is the current one",
        _read_event_loop,
        names=bag("set_event_loop"),
        needs="asyncio.events",
    ),
    "no event loop": ProcessSetting(
        "whether there is a current event loop",
        _has_no_event_loop,
        _put_no_event_loop,
        bag("asyncio"),
        "asyncio.events",
    ),
    "loggers": ProcessSetting("the class of loggers", logging.getLoggerClass),
    "log records": ProcessSetting("what makes log records", logging.getLogRecordFactory),
    "tracing": ProcessSetting("what traces or profiles code", _read_tracing),
    "stack": ProcessSetting(
        "the stack of new threads", _read_stack_size, _put_stack_size, bag("stack_size")
    ),
    "start method": ProcessSetting(
        "how processes are started",
        lambda: sys.modules["multiprocessing"].get_start_method(allow_none=True),
        _put_start_method,
        bag("set_start_method"),
        "multiprocessing",
    ),
    "executable": ProcessSetting(
        "by which program processes are started",
        _ask("multiprocessing.spawn", "get_executable"),
        names=bag("set_executable"),
        needs="multiprocessing.spawn",
    ),
    "backend": ProcessSetting(
        "the backend of matplotlib",
        lambda: dict.get(sys.modules["matplotlib"].rcParams, "backend"),
        names=bag("use switch_backend"),
        needs="matplotlib",
    ),
    "exit": ProcessSetting(
        "what is called at exit",
        atexit._ncallbacks,  # noqa: SLF001 - Python tells it in no other way
        names=bag("atexit"),
    ),
    "finalizers": ProcessSetting(
        "what is called when an object goes (weakref.finalize)",
        _list_finalizers,
        names=bag("finalize"),
    ),
    "everybody's names": ProcessSetting(
        "a name that all code has (`builtins`)",
        lambda: {name: id(each) for name, each in vars(builtins).items()},
        names=bag("install"),
    ),
    "garbage debugging": ProcessSetting("what is said of garbage", gc.get_debug),
    "frozen": ProcessSetting(
        "which objects are never collected",
        lambda: gc.get_freeze_count() > 0,
        names=bag("freeze unfreeze"),
    ),
    "memory traced": ProcessSetting(
        "whether memory is traced",
        _ask("tracemalloc", "is_tracing"),
        needs="tracemalloc",
    ),
    "faults": ProcessSetting(
        "what is done at a fault",
        _ask("faulthandler", "is_enabled"),
        needs="faulthandler",
    ),
    "coroutines": ProcessSetting(
        "what sees generators and coroutines begin",
        _read_hooks,
        names=bag("set_asyncgen_hooks set_coroutine_origin_tracking_depth"),
    ),
    "blocked": ProcessSetting(
        "which signals are blocked", _read_blocked_signals, names=bag("pthread_sigmask")
    ),
    "thread": ProcessSetting(
        "the name of a thread",
        lambda: threading.current_thread().name,
        names=bag("current_thread currentThread main_thread"),
    ),
    "aliases": ProcessSetting(
        "which module goes by a name (`sys.modules`)", _list_module_aliases, names=bag("modules")
    ),
    "line editor": ProcessSetting(
        "the editor of input lines", _read_line_editor, names=bag("readline"), needs="readline"
    ),
    "processors": ProcessSetting(
        "on which processors it runs", _read_processors, names=bag("sched_setaffinity")
    ),
    "tables": ProcessSetting(
        "the classes or the column types of pandas", _list_table_attributes, needs="pandas"
    ),
    "numpy errors": ProcessSetting(
        "what numpy calls at an error",
        _ask("numpy", "geterrcall"),
        names=bag("seterrcall"),
        needs="numpy",
    ),
    "numpy buffer": ProcessSetting(
        "the buffer of numpy",
        _ask("numpy", "getbufsize"),
        names=bag("setbufsize"),
        needs="numpy",
    ),
}
NEEDED = frozenset(each.needs for each in _SETTINGS.values())
"""The modules that keep them."""
_SET_BY_IMPORTS = frozenset({"collected", "loggers", "tables"})
"""Those that libraries change when they are imported: nothing that a replay lacks."""
