"""State of the process that no name of the notebook holds: environment, working directory, random
states, options of libraries, figures. Each part can be taken and put back. Nothing is imported for
it.

Which environment variables, and which options of pandas, a statement's text is about. Pure.

The environment is one thing only for what asks for it as a whole: `os.environ["A"]` and
`os.environ["B"]` are two.
"""

from __future__ import annotations

# what `signal` asks: its own functions make an enum of each answer. typeshed does not know it
import _signal  # type: ignore[import-not-found]
import ast
import csv
import decimal
import gc
import io
import locale
import logging
import os
import random
import re
import signal
import socket
import sys
import time
import types
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from operator import is_
from typing import Any, NamedTuple

from tape_jupyter.core.stubs import do_nothing
from tape_jupyter.core.user_code import bag, is_environment, is_users
from tape_jupyter.dataflow.history import Change


class AmbientPart(NamedTuple):
    """`label`: how people are told of it. `capture` gives a value that does not change afterwards;
    `restore` takes it back.
    """

    label: str
    capture: Callable[[], Any]
    restore: Callable[[Any], None]
    needs: str = ""
    """The module without which it is not there."""
    by: frozenset[str] = frozenset()
    """It changes only where code of these packages runs or is at hand, or of any that is not
    Python's own; where none is named, nothing tells.
    """


_IGNORED = frozenset({"LINES", "COLUMNS", "PYTEST_CURRENT_TEST"})
LENT: dict[str, str] = {}
"""Variables that replay lends to a cell, placeholders for keys (notebook/keys.py): no doing of the
cell.
"""


_environ: list[Any] = [None, None, {}]


def _take_environment() -> dict[str, str]:
    raw = getattr(
        os.environ, "_data", None
    )  # undecoded: reading each variable anew for each cell takes a while
    if raw is None or raw != _environ[0] or _environ[1] != LENT:
        environment = {
            k: v for k, v in os.environ.items() if k not in _IGNORED and LENT.get(k) != v
        }
        _environ[:] = None if raw is None else dict(raw), dict(LENT), environment
    return dict(_environ[2])


def _put_environment(value: dict[str, str]) -> None:
    for key in set(_take_environment()) - set(value):
        del os.environ[key]
    os.environ.update(value)


def _take_cwd() -> str | None:
    try:
        return os.getcwd()  # noqa: PTH109 - a text that can be compared
    except FileNotFoundError:
        return None


def _put_path(value: list[str]) -> None:
    sys.path[:] = value


_modules: list[dict[str, types.ModuleType]] = [{}, {}]
"""What `sys.modules` was when it was last looked through, and what was made by hand of it."""


def _take_made_modules() -> dict[str, types.ModuleType]:
    """Of `sys.modules`, those that no import found: `sys.modules["stub"] = ModuleType("stub")`. Those
    that libraries make have a name below their own, or one that is theirs alone.
    """
    if _modules[0] != sys.modules:  # looking through thousands takes milliseconds
        now = dict(sys.modules)
        _modules[:] = now, _find_made_modules(now)
    return dict(_modules[1])


def _find_made_modules(modules: dict[str, types.ModuleType]) -> dict[str, types.ModuleType]:
    made = {
        name: each
        for name, each in modules.items()
        if type(each) is types.ModuleType and each.__dict__.get("__spec__") is None
    }
    return {
        name: each
        for name, each in made.items()
        if name[0] != "_" and name != "cython_runtime" and name.partition(".")[0] in made
    }


def _put_made_modules(value: dict[str, types.ModuleType]) -> None:
    for name in _take_made_modules().keys() - value.keys():
        del sys.modules[name]
    sys.modules.update(value)


def _take_finders() -> tuple[list[tuple[int, Any]], ...]:
    """The program's own, of what finds modules, with their places."""
    lists: tuple[list[Any], ...] = (sys.meta_path, sys.path_hooks)
    return tuple(
        [(i, each) for i, each in enumerate(some) if _is_users_own(each)] for some in lists
    )


def _is_users_own(value: Any) -> bool:
    module = getattr(value, "__module__", None)
    return isinstance(module, str) and is_users(module)


def _put_finders(value: tuple[list[tuple[int, Any]], ...]) -> None:
    lists: tuple[list[Any], ...] = (sys.meta_path, sys.path_hooks)
    for some, kept in zip(lists, value, strict=True):
        some[:] = [each for each in some if not _is_users_own(each)]
        for place, each in kept:
            some.insert(place, each)


def _put_argv(value: list[str]) -> None:
    sys.argv[:] = value


def _take_numpy_state() -> Any:
    kind, keys, *rest = sys.modules["numpy"].random.get_state()
    return kind, keys.tobytes(), *rest


def _put_numpy_state(value: Any) -> None:
    numpy = sys.modules["numpy"]
    kind, keys, *rest = value
    numpy.random.set_state((kind, numpy.frombuffer(keys, dtype=numpy.uint32), *rest))


def _take_numpy_options() -> Any:
    numpy = sys.modules["numpy"]
    return numpy.get_printoptions(), numpy.geterr()


def _put_numpy_options(value: Any) -> None:
    numpy = sys.modules["numpy"]
    print_options, errors = value
    numpy.set_printoptions(
        **{k: v for k, v in print_options.items() if k != "override_repr" or v is not None}
    )
    numpy.seterr(**errors)


def _take_torch_state() -> bytes:
    return bytes(sys.modules["torch"].get_rng_state().numpy())


def _put_torch_state(value: bytes) -> None:
    torch = sys.modules["torch"]
    torch.set_rng_state(torch.frombuffer(bytearray(value), dtype=torch.uint8))


def _take_pandas_options() -> Any:
    # pandas gives no whole view
    config = sys.modules["pandas._config.config"]._global_config  # noqa: SLF001
    before, flat = _OPTIONS.get("pandas", (None, None))
    if config != before:
        flat = _flatten_options(config)
        _OPTIONS["pandas"] = _copy_options(config), flat
    return flat


_OPTIONS: dict[str, tuple[Any, Any]] = {}
"""Options as they were when they were last looked at, and what was told of them: most tools change none."""


def _copy_options(options: dict[str, Any]) -> dict[str, Any]:
    return {k: _copy_options(v) if isinstance(v, dict) else v for k, v in options.items()}


def _flatten_options(options: dict[str, Any], above: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in options.items():
        if isinstance(value, dict):
            flat |= _flatten_options(value, f"{above}{key}.")
        else:
            flat[f"{above}{key}"] = value
    return flat


def _put_pandas_options(value: dict[str, Any]) -> None:
    now = _take_pandas_options()
    for key, option in value.items():
        if now.get(key) != option:
            sys.modules["pandas"].set_option(key, option)


_BY_PYPLOT = frozenset({"interactive", "backend"})
"""Settings that pyplot makes in a notebook once, with its first figure, whose cell it is: they are never
undone.
"""


def _has_pyplot_begun() -> bool:
    """Whether it has loaded its backend."""
    return getattr(sys.modules.get("matplotlib.pyplot"), "_backend_mod", None) is not None


def _take_matplotlib_settings() -> dict[str, Any]:
    live, late = sys.modules["matplotlib"].rcParams, not _has_pyplot_begun()
    settings: dict[str, Any]
    before, settings = _OPTIONS.get("matplotlib", (None, {}))
    if before is None or before[0] != late or not dict.__eq__(live, before[1]):
        now = dict(dict.items(live))
        settings = {n: v for n, v in now.items() if not late or n not in _BY_PYPLOT}
        _OPTIONS["matplotlib"] = (late, now), settings
    return settings


def _is_same_matplotlib(was: dict[str, Any], now: dict[str, Any]) -> bool:
    return _is_equal(was, {name: value for name, value in now.items() if name in was})


def _put_matplotlib_settings(value: dict[str, Any]) -> None:
    dict.update(sys.modules["matplotlib"].rcParams, value)


def _take_figures() -> tuple[Any, ...]:
    managers = sys.modules["matplotlib._pylab_helpers"].Gcf.figs
    return tuple(
        (number, id(manager), _count_drawn_items(manager)) for number, manager in managers.items()
    )


def _count_drawn_items(manager: Any) -> tuple[int, ...]:
    return tuple(len(axes.get_children()) for axes in manager.canvas.figure.axes)


_SHOWS = "ast_node_interactivity"


def _take_shell() -> tuple[Any, ...]:
    """How results are shown: which of a cell's, and whether over several lines. A notebook that binds
    the first on the class has its text where the trait was.
    """
    shell = sys.modules["IPython"].get_ipython()
    if shell is None:
        return ()
    from IPython.core.interactiveshell import InteractiveShell

    bound = InteractiveShell.__dict__.get(_SHOWS)
    plain = shell.display_formatter.formatters["text/plain"]
    return bound, getattr(shell, _SHOWS), bool(plain.pprint)


def _put_shell(value: tuple[Any, ...]) -> None:
    shell = sys.modules["IPython"].get_ipython()
    if shell is None or not value:
        return
    from IPython.core.interactiveshell import InteractiveShell

    bound, shows, lines = value
    if InteractiveShell.__dict__.get(_SHOWS) is not bound:
        vars(shell).pop(_SHOWS, None)
        setattr(InteractiveShell, _SHOWS, bound)
    if getattr(shell, _SHOWS) != shows:
        setattr(shell, _SHOWS, shows)
    shell.display_formatter.formatters["text/plain"].pprint = lines


def _take_logging() -> tuple[Any, ...]:
    loggers = [
        logging.root,
        *(
            each
            for each in logging.root.manager.loggerDict.values()
            if isinstance(each, logging.Logger)
        ),
    ]
    return (
        logging.root.manager.disable,
        tuple(
            (*state, tuple(e.handlers), (*e.filters, *map(_take_handler, e.handlers)))
            for e in loggers
            if (state := _take_logger(e))
        ),
        logging.getLevelNamesMapping(),
    )


def _take_logger(logger: logging.Logger) -> tuple[Any, ...]:
    """Nothing of one that is as it was made: imports make hundreds."""
    own = logger.handlers or logger.filters
    if logger.level or own or logger.disabled or not logger.propagate:
        return logger.name, logger.level, logger.disabled, logger.propagate
    return ()


class HandlerState(NamedTuple):
    """What a handler lets through, and how."""

    handler: logging.Handler
    level: int
    formatter: logging.Formatter | None
    filters: tuple[Any, ...]


def _take_handler(handler: logging.Handler) -> HandlerState:
    return HandlerState(handler, handler.level, handler.formatter, tuple(handler.filters))


def _put_handler(state: HandlerState) -> None:
    handler = state.handler
    if _take_handler(handler) != state:
        handler.setLevel(state.level)
        handler.formatter = state.formatter
        handler.filters[:] = state.filters


def _put_logging(value: tuple[Any, ...]) -> None:
    disable, logger_states, names = value
    logging.disable(disable)
    _put_level_names(names)
    states = {name: state for name, *state in logger_states}
    known = (
        each
        for each in logging.root.manager.loggerDict.values()
        if isinstance(each, logging.Logger)
    )
    for logger in [logging.root, *known]:
        if logger.name not in states and not _take_logger(logger):
            continue
        level, disabled, propagate, handlers, passed = states.get(logger.name, UNCHANGED_LOGGER)
        logger.setLevel(level)
        logger.disabled, logger.propagate = disabled, propagate
        logger.handlers[:] = handlers
        logger.filters[:] = [each for each in passed if not isinstance(each, HandlerState)]
        for each in passed:
            if isinstance(each, HandlerState):
                _put_handler(each)


UNCHANGED_LOGGER: tuple[Any, ...] = (0, False, True, (), ())
"""Level, whether disabled, whether it propagates, its handlers; its filters, with how those handlers are:
of a logger that nobody set up.
"""


def _put_level_names(names: dict[str, int]) -> None:
    """No function of `logging` forgets a name."""
    by_level, by_name = logging._levelToName, logging._nameToLevel  # noqa: SLF001
    for name in set(by_name) - set(names):
        level = by_name.pop(name)
        if by_level.get(level) == name:
            del by_level[level]
    for name, level in names.items():
        if by_level.get(level) not in names or names[by_level[level]] != level:
            logging.addLevelName(level, name)


def _take_warnings() -> list[Any]:
    return list(warnings.filters)


def _put_warnings(value: list[Any]) -> None:
    warnings.resetwarnings()  # which also tells modules to forget what they have warned of
    filters: Any = warnings.filters
    filters[:] = value


def _take_process() -> tuple[Any, ...]:
    return (
        sys.getrecursionlimit(), gc.isenabled(), socket.getdefaulttimeout(), sys.getswitchinterval(),
        signal_handlers(),
    )  # fmt: skip


def signal_handlers() -> dict[int, Any]:
    """By the number of their signal, as C keeps them."""
    return dict(zip(_SIGNALS, map(_signal.getsignal, _SIGNALS), strict=True))


_SIGNALS = sorted(signal.valid_signals() - {signal.SIGINT})
"""SIGINT is the kernel's, which sets it anew for each cell."""


def _put_process(value: tuple[Any, ...]) -> None:
    sys.setrecursionlimit(value[0])
    (gc.enable if value[1] else gc.disable)()
    socket.setdefaulttimeout(value[2])
    sys.setswitchinterval(value[3])
    for number, handler in value[4].items():
        if handler is not None and _signal.getsignal(number) is not handler:
            signal.signal(number, handler)


DECIMAL_FIELDS = ("prec", "rounding", "Emin", "Emax", "capitals", "clamp")
"""Of a context, beside its flags and traps."""


def _put_decimal(value: tuple[decimal.Context, decimal.Context]) -> None:
    decimal.setcontext(value[0].copy())
    for name in DECIMAL_FIELDS:
        setattr(decimal.DefaultContext, name, getattr(value[1], name))
    decimal.DefaultContext.traps.update(value[1].traps)


def _take_decimal() -> Any:
    return decimal.getcontext().copy(), decimal.DefaultContext.copy()


def umask() -> int:
    """Permissions that new files do not get. Where the system tells it, it is not set meanwhile:
    another thread may make a file.
    """
    try:
        with io.FileIO("/proc/self/status") as status:  # whatever a program has for `open`
            told = re.search(rb"^Umask:\s*([0-7]+)", status.read(), re.MULTILINE)
        if told:
            return int(told[1], 8)
    except OSError:
        pass
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _is_same_decimal(one: Any, other: Any) -> bool:
    return repr(one) == repr(other)


def _take_weekday() -> int:
    return int(sys.modules["calendar"].firstweekday())


def _put_weekday(value: int) -> None:
    sys.modules["calendar"].setfirstweekday(value)


def _put_umask(value: int) -> None:
    os.umask(value)


def _put_locale(value: str) -> None:
    locale.setlocale(locale.LC_ALL, value)


def _put_zone(value: tuple[Any, ...]) -> None:
    os.environ.pop("TZ", None) if value[1] is None else os.environ.__setitem__("TZ", value[1])
    time.tzset()


def _put_csv(limit: int) -> None:
    csv.field_size_limit(limit)


_OF_DIALECT = (
    *("delimiter", "quotechar", "escapechar", "lineterminator"),
    *("doublequote", "skipinitialspace", "strict", "quoting"),
)


def _take_dialects() -> dict[str, dict[str, Any]]:
    dialects = {name: csv.get_dialect(name) for name in csv.list_dialects()}
    return {
        name: {field: getattr(each, field) for field in _OF_DIALECT}
        for name, each in dialects.items()
    }


def _put_dialects(value: dict[str, dict[str, Any]]) -> None:
    for name in {*csv.list_dialects()} - value.keys():
        csv.unregister_dialect(name)
    for name, fields in value.items():
        csv.register_dialect(name, **fields)


FILE_TYPES = ("types", "common types", "encodings", "suffixes")
"""The tables of `mimetypes`: what a file is by its ending, strictly and commonly; how it is packed; the
endings that stand for two.
"""


def file_types() -> list[dict[str, str]]:
    """Those tables, as whoever asks first would find them."""
    types = sys.modules["mimetypes"]
    if not types.inited:
        types.init()
    kept = types._db  # noqa: SLF001 - nothing else tells what all has been added
    return [kept.types_map[True], kept.types_map[False], kept.encodings_map, kept.suffix_map]


def _put_file_types(value: list[dict[str, str]]) -> None:
    for table, entries in zip(file_types(), value, strict=True):
        table.clear()
        table.update(entries)
    of_type = sys.modules["mimetypes"]._db.types_map_inv  # noqa: SLF001 - the same
    for strict, entries in zip((True, False), value, strict=False):
        of_type[strict].clear()
        for ending, kind in entries.items():
            of_type[strict].setdefault(kind, []).append(ending)


_OTHERS = frozenset({"?"})

PARTS: dict[str, AmbientPart] = {
    "environment": AmbientPart("an environment variable", _take_environment, _put_environment),
    "cwd": AmbientPart("the working directory", _take_cwd, os.chdir),
    "random": AmbientPart(
        "the state of `random`", random.getstate, random.setstate, by=bag("random _random")
    ),
    "path": AmbientPart("`sys.path`", lambda: list(sys.path), _put_path),
    "modules": AmbientPart(
        "a module made by hand", _take_made_modules, _put_made_modules, by=bag("sys importlib")
    ),
    "finders": AmbientPart("what finds modules", _take_finders, _put_finders),
    "argv": AmbientPart("`sys.argv`", lambda: list(sys.argv), _put_argv),
    "decimal": AmbientPart("the decimal context", _take_decimal, _put_decimal),
    "locale": AmbientPart("the locale", lambda: locale.setlocale(locale.LC_ALL), _put_locale),
    "umask": AmbientPart("the umask", umask, _put_umask, by=bag("os posix nt")),
    "calendar": AmbientPart(
        "the first day of the week of `calendar`",
        _take_weekday,
        _put_weekday,
        "calendar",
        bag("calendar"),
    ),
    "csv": AmbientPart("the field size limit of `csv`", csv.field_size_limit, _put_csv, "csv"),
    "dialects": AmbientPart(
        "the dialects of `csv`", _take_dialects, _put_dialects, "csv", bag("csv _csv")
    ),
    "file types": AmbientPart(
        "the types of files (`mimetypes`)",
        lambda: [*map(dict, file_types())],
        _put_file_types,
        "mimetypes",
        bag("mimetypes"),
    ),
    "time zone": AmbientPart(
        "the time zone", lambda: (time.tzname, os.environ.get("TZ"), time.timezone), _put_zone
    ),
    "logging": AmbientPart(
        "the levels of `logging`", _take_logging, _put_logging, by=bag("logging")
    ),
    "shell": AmbientPart("a setting of the notebook's shell", _take_shell, _put_shell, "IPython"),
    "warnings": AmbientPart("the filters of `warnings`", _take_warnings, _put_warnings),
    "process": AmbientPart(
        "a setting of the interpreter", _take_process, _put_process, by=bag("sys gc socket signal")
    ),
    "numpy random": AmbientPart(
        "the state of `numpy.random`", _take_numpy_state, _put_numpy_state, "numpy.random", _OTHERS
    ),
    "numpy": AmbientPart(
        "an option of numpy", _take_numpy_options, _put_numpy_options, "numpy", _OTHERS
    ),
    "torch": AmbientPart(
        "the state of torch's random numbers", _take_torch_state, _put_torch_state, "torch"
    ),
    "pandas": AmbientPart(
        "an option of pandas",
        _take_pandas_options,
        _put_pandas_options,
        "pandas._config.config",
        _OTHERS,
    ),
    "matplotlib": AmbientPart(
        "a setting of matplotlib", _take_matplotlib_settings, _put_matplotlib_settings, "matplotlib"
    ),
    "figures": AmbientPart("the open figures", _take_figures, do_nothing, "matplotlib.pyplot"),
}


def take_ambient(
    before: Mapping[str, Any] | None = None, near: frozenset[str] | None = None
) -> dict[str, Any]:
    """All parts as they are now. A part that cannot be taken (a library half imported) is left out.

    `near`: the packages whose code ran since they were as `before`, or was at hand; what none of
    them changes is not looked at again. None: not known.
    """
    if before is None or near is None or not near <= _OWN:
        return complete_ambient({})
    same = {name for name, part in PARTS.items() if part.by and near.isdisjoint(part.by)}
    return complete_ambient({name: before[name] for name in same & before.keys()})


def complete_ambient(known: Mapping[str, Any]) -> dict[str, Any]:
    """All parts as they are now, of which these are known."""
    parts: dict[str, Any] = {}
    for name, part in PARTS.items():
        if part.needs and part.needs not in sys.modules:
            continue
        try:
            parts[name] = known[name] if name in known else part.capture()
        except Exception:  # noqa: S112 - a part of another library that is not as we know it
            continue
    return parts


def keep_unpinned(parts: Mapping[str, Any]) -> dict[str, Any]:
    """Of these, those that are the same whether or not a cell is taped."""
    return {name: parts[name] for name in _UNPINNED & parts.keys()}


_UNPINNED = bag("modules umask logging")
"""Parts that nothing of the tape holds or changes, of those that take a while to look at."""
_OWN = frozenset(name.lstrip("_") for name in sys.stdlib_module_names) | {""}
"""Python's own packages."""


def restore_part(name: str, value: Any) -> None:
    """Put a part back, as `take_ambient` gave it; of "module math", these attributes; of "mode /a/file", its
    permissions; of "times /a/file", when it was read and written (ns). Raises what the library
    raises.
    """
    if name.startswith(MODULE):
        with suppress(LookupError):  # it is gone
            _put_attributes(holder(name.removeprefix(MODULE)), value)
    elif name.startswith(IMPORTED):
        _put_imported(name.removeprefix(IMPORTED), value)
    elif name.startswith(MODE):
        with suppress(OSError):  # it is gone
            os.chmod(name.removeprefix(MODE), value)  # noqa: PTH101 - a text
    elif name.startswith(TIMES):
        with suppress(OSError):
            os.utime(name.removeprefix(TIMES), ns=value)
    else:
        PARTS[name].restore(value)


def _put_imported(name: str, module: Any) -> None:
    if module is not ABSENT:
        sys.modules[name] = module
    elif name in sys.modules:
        del sys.modules[name]


def imports_undone(before: Mapping[str, Any]) -> dict[str, Change]:
    """Of modules that were imported, those that stand no more in `sys.modules`, or others do."""
    now = ((name, was, sys.modules.get(name, ABSENT)) for name, was in before.items())
    return {f"{IMPORTED}{name}": Change(was, there) for name, was, there in now if there is not was}


def _put_attributes(owner: Any, attributes: dict[str, Any]) -> None:
    for key, value in attributes.items():
        if value is not ABSENT:
            setattr(owner, key, value)
        elif key in vars(owner):
            delattr(owner, key)


def holder(name: str) -> Any:
    """A module, or what stands in one: "json", "json.JSONEncoder". Raises LookupError where there is
    none that has attributes.
    """
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        target: Any = sys.modules.get(".".join(parts[:end]))
        if target is None:
            continue
        for part in parts[end:]:
            target = vars(target)[part] if hasattr(target, "__dict__") else None
        if hasattr(target, "__dict__"):
            return target
    raise LookupError(name)


def module_changes(name: str, before: dict[str, Any]) -> Change | None:
    """Attributes of a module, or of an object that stands in one, that were bound anew, removed,
    added; submodules and the module's own caches are not. None where it is not there any more.
    """
    try:
        now = vars(holder(name))
    except LookupError:
        return None
    if (
        len(now) == len(before)
        and all(map(is_, before, now))
        and all(map(is_, before.values(), now.values()))
    ):
        return None  # as nearly always
    keys = [
        k
        for k in {*before, *now}
        if before.get(k, ABSENT) is not now.get(k, ABSENT) and _is_patch(k, now.get(k, ABSENT))
    ]
    if not keys:
        return None
    return Change({k: before.get(k, ABSENT) for k in keys}, {k: now.get(k, ABSENT) for k in keys})


def _is_patch(key: str, value: Any) -> bool:
    return (
        not isinstance(value, types.ModuleType)
        and not key.startswith("__")
        and key not in _OF_THE_SHELL
    )


class _Absent:
    def __repr__(self) -> str:
        return "ABSENT"


ABSENT = _Absent()
"""An attribute that a module did not have."""
MODULE = "module "
IMPORTED = "imported "
"""A module of the user's that a cell took out of `sys.modules`."""
MODE = "mode "
"""Of a file: who may read, write and run it."""
TIMES = "times "
_OF_THE_SHELL = frozenset({"_", "get_ipython", "display", "exit", "quit"})


def changed_parts(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Change]:
    """The parts that differ. A part that was not there before (its library is new) has changed only
    by being there.
    """
    changes = {}
    for name, now in after.items():
        if name not in before:
            continue
        was = before[name]
        if was is now:
            continue
        same = _SAME.get(name, _is_equal)(was, now)
        if not same:
            changes[name] = Change(was, now, known=name != "figures")
    return changes


def _is_equal(one: Any, other: Any) -> bool:
    try:
        return bool(one == other)
    except Exception:
        return one is other or repr(one) == repr(other)


_SAME: Mapping[str, Callable[[Any, Any], bool]] = {
    "decimal": _is_same_decimal,
    "matplotlib": _is_same_matplotlib,
}


ENVIRONMENT = "ambient:environment"
_ENVIRONS = ("environ", "environb")
PANDAS = "ambient:pandas"
_SHOWING = re.compile(r"(display|styler)\.\w+")
_OPTION = re.compile(r"(display|styler|mode|compute|io|plotting|future|string)\.\w+")
_SHOWN_BY = ("pandas.io.formats", "pandas._config.config")


def variables_of(
    node: ast.AST | None, value_of: Callable[[str], Any]
) -> tuple[set[str], set[str]] | None:
    """(those that a statement reads, those that it sets), as resources; None where its text does
    not say which.
    """
    if node is None:
        return None
    reads: set[str] = set()
    writes: set[str] = set()
    resolved: set[int] = set()
    for each in ast.walk(node):
        asked, stored = _find_asked_variables(each, value_of)
        if asked or stored:
            resolved.update(
                id(inner) for inner in ast.walk(each.func if isinstance(each, ast.Call) else each)
            )
            reads |= {f"{ENVIRONMENT}[{key!r}]" for key in asked}
            writes |= {f"{ENVIRONMENT}[{key!r}]" for key in stored}
    if any(
        id(each) not in resolved
        for each in ast.walk(node)
        if _is_environment(each, value_of) or _is_environment_function(each, value_of)
    ):
        return None
    return reads, writes


def _find_asked_variables(
    node: ast.AST, value_of: Callable[[str], Any]
) -> tuple[set[str], set[str]]:
    """(the variables that this expression reads, those that it sets)."""
    if isinstance(node, ast.Subscript) and _is_environment(node.value, value_of):
        asked = _read_strings([node.slice])
        return (asked, set()) if isinstance(node.ctx, ast.Load) else (set(), asked)
    if (
        isinstance(node, ast.Compare)
        and len(node.ops) == 1
        and isinstance(node.ops[0], ast.In | ast.NotIn)
    ):
        inside = _is_environment(node.comparators[0], value_of)
        return (_read_strings([node.left]) if inside else set()), set()
    if isinstance(node, ast.Call):
        func = node.func
        if isinstance(func, ast.Attribute) and _is_environment(func.value, value_of):
            return _find_variables_of_method(func.attr, node)
        if _is_environment_function(func, value_of):
            return _read_strings(node.args[:1]), set()
    return set(), set()


def _find_variables_of_method(name: str, node: ast.Call) -> tuple[set[str], set[str]]:
    """The same of a call of the environment's."""
    asked = _read_strings(node.args[:1])
    if name == "get":
        return asked, set()
    if name in ("pop", "setdefault"):
        return asked, asked
    if name == "update":
        pairs = [key for each in node.args if isinstance(each, ast.Dict) for key in each.keys]
        keys, named = _read_strings(pairs), {k.arg for k in node.keywords if k.arg is not None}
        told = len(node.args) == sum(isinstance(each, ast.Dict) for each in node.args)
        if (
            told
            and len(keys) == len(set(map(ast.dump, filter(None, pairs))))
            and (None not in pairs and len(named) == len(node.keywords))
        ):
            return set(), keys | named
    return set(), set()


def _read_strings(nodes: Iterable[ast.expr | None]) -> set[str]:
    """Of these, the texts that are written down."""
    constants = (each.value for each in nodes if isinstance(each, ast.Constant))
    return {each for each in constants if isinstance(each, str)}


def names_environment(identifiers: Iterable[str], value_of: Callable[[str], Any]) -> bool:
    """Whether one of these words stands for the environment: `os.environ`, or a name for it."""
    return any(
        identifier in _ENVIRONS or is_environment(value_of(identifier))
        for identifier in identifiers
    )


def _is_environment(node: ast.AST, value_of: Callable[[str], Any]) -> bool:
    if isinstance(node, ast.Attribute):
        return node.attr in _ENVIRONS or is_environment(_find_module_attribute(node, value_of))
    return isinstance(node, ast.Name) and is_environment(value_of(node.id))


def _is_environment_function(node: ast.AST, value_of: Callable[[str], Any]) -> bool:
    if isinstance(node, ast.Attribute):
        return node.attr in ("getenv", "putenv", "unsetenv")
    return isinstance(node, ast.Name) and value_of(node.id) is os.getenv


def _find_module_attribute(node: ast.Attribute, value_of: Callable[[str], Any]) -> Any:
    base = value_of(node.value.id) if isinstance(node.value, ast.Name) else None
    return vars(base).get(node.attr) if isinstance(base, types.ModuleType) else None


def options_set(texts: Iterable[str]) -> str:
    """The options of pandas that a statement with these texts sets: those of how things are shown,
    or any.
    """
    named = [text for text in texts if _OPTION.fullmatch(text)]
    return f"{PANDAS}['display']" if named and all(map(_SHOWING.fullmatch, named)) else PANDAS


def options_read(functions: Iterable[str]) -> Iterator[str]:
    """The options of pandas that code with these functions may have looked at."""
    yield f"{PANDAS}['mode']"
    if any(name.startswith(_SHOWN_BY) for name in functions):
        yield f"{PANDAS}['display']"
