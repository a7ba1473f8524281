"""Settings of the process and of libraries that the body of a tool changed: seen while it runs, set
again in replay.

What is watched is told by dataflow/tracing/ambient.py. In a record, by part:

    cwd                relative to the notebook's folder
    path, warnings     {"splice": [head, tail], "put": [...]}: what stands between the first and the last ones
    pandas, matplotlib, numpy      the options that changed
    logging            {"disable": 0, "levels": {"LOUD": 25}, "loggers": {"agent": [10, false, true]}, "basic":
                       ["%(message)s", null, "%"]}: names of levels; of each logger its level, whether it is
                       disabled, whether it propagates; the handler of `logging.basicConfig()`, or of
                       `logging.warning()`, which the root had not: formats of its lines and their dates, style
    decimal, locale, csv, time zone  as they are now
    dialects           {"set": {"semicolons": {"delimiter": ";", ...}}, "drop": ["excel"]}
    file types         {"types": {".gl": "model/gltf"}}: the entries of each table that changed
    process            numbers by the name of the setting (process_settings.py)
"""

from __future__ import annotations

import decimal
import logging
import os
import re
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from tape_jupyter.core.stubs import do_nothing
from tape_jupyter.core.user_code import bag
from tape_jupyter.dataflow.tracing import ambient
from tape_jupyter.encoding.values import registry
from tape_jupyter.encoding.values.user_classes import class_path, find_class
from tape_jupyter.encoding.values.walker import CannotFreeze, need
from tape_jupyter.errors import CassetteError
from tape_jupyter.session.process_settings import NEEDED, ProcessSettings, set_settings


class ToolSettings:
    """What one body does to settings. `names` are all names that code within its reach looks up, `imports`
    the modules that it imports itself.
    """

    def __init__(
        self, folder: Path | None, names: AbstractSet[str], imports: AbstractSet[str] = frozenset()
    ) -> None:
        _import_ahead(imports)
        self._folder, self._names, self._before = folder, names, _read_parts(names)
        self._process = ProcessSettings(names)

    def end(self, is_placed: Callable[[Any], Any]) -> tuple[dict[str, Any], list[str]]:
        """The changed parts as structure; and in words, what could not be written. `is_placed`: of
        an object, whether what became of it is told elsewhere.
        """
        changes: dict[str, Any] = {}
        process, lost = self._process.changes()
        if process:
            changes["process"] = process
        for name, change in ambient.changed_parts(self._before, _read_parts(self._names)).items():
            try:
                if name == "cwd":
                    changes[name] = _to_relative_folder(change.after, self._folder)
                elif written := _PARTS[name].write(change.before, change.after):
                    changes[name] = written
            except (CannotFreeze, ValueError, AttributeError) as why:
                lost.append(f"it changed {ambient.PARTS[name].label}: {why}")
            if name == "logging":
                lost += _describe_changed_handlers(change.before, change.after, is_placed)
            elif name == "decimal" and repr(change.before[1]) != repr(change.after[1]):
                lost.append("it changed `decimal.DefaultContext`, which new threads begin with")
        return changes, lost


def set_again(changes: Mapping[str, Any], folder: Path | None) -> Iterator[str]:
    """Set them as the recorded body did. Gives what was not done, in words."""
    for name, structure in changes.items():
        try:
            if name == "cwd":
                here = folder or Path()
                # a recording may come from anybody: the folder is looked at again
                os.chdir(here / _to_relative_folder(str(here / structure), folder))
            elif name == "process":
                set_settings(need(structure, dict, None))
            else:
                if needs := ambient.PARTS[name].needs:
                    import_module(needs.partition(".")[0])  # as the body did
                _PARTS[name].restore(structure)
        except Exception as why:  # of a library, or of a tape that somebody edited
            description = ambient.PARTS[name].label if name in ambient.PARTS else name
            yield f"it changed {description}: {why}"


def _to_relative_folder(path: str, folder: Path | None) -> str:
    """A working directory, relative to the notebook's folder. Raises ValueError where it is elsewhere."""
    if folder is None:
        raise ValueError(f"to {path}; the notebook's folder is not known")
    return Path(os.path.realpath(path)).relative_to(os.path.realpath(folder)).as_posix()


def _import_ahead(imports: AbstractSet[str]) -> None:
    """Libraries with settings that the body is about to import: how they begin would be seen by nobody."""
    needed = {ambient.PARTS[name].needs for name in _PARTS} | NEEDED
    about_to = {name.partition(".")[0] for name in imports}
    for module in sorted({each.partition(".")[0] for each in needed} & about_to):
        if module not in sys.modules:
            with suppress(Exception):  # it is not there, which the body finds out
                import_module(module)


def _read_parts(names: AbstractSet[str]) -> dict[str, Any]:
    parts = {}
    for name, setting in _PARTS.items():
        part = ambient.PARTS[name]
        if setting.names is not None and setting.names.isdisjoint(names):
            continue
        if not part.needs or part.needs in sys.modules:
            try:
                parts[name] = part.capture()
            except Exception:  # noqa: S112 - of a library that is not as we know it
                continue
    return parts


# ---- lists: what stands between their ends


def _find_splice(before: list[Any], now: list[Any]) -> tuple[list[int], list[Any]]:
    """How many items at the beginning and at the end are as before, and those between them."""
    head = _count_same(before, now)
    tail = _count_same(before[head:][::-1], now[head:][::-1])
    return [head, tail], now[head : len(now) - tail]


def _count_same(before: list[Any], now: list[Any]) -> int:
    """How many items both lists begin with."""
    count = 0
    for one, other in zip(before, now, strict=False):
        if one != other:
            break
        count += 1
    return count


def _apply_splice(now: list[Any], change: Mapping[str, Any], items: list[Any]) -> list[Any]:
    head, tail = (need(each, int, None) for each in need(change["splice"], list, None))
    return [*now[:head], *items, *now[len(now) - tail :]]


def _write_path(before: list[str], now: list[str]) -> dict[str, Any]:
    ends, items = _find_splice(before, now)
    for each in items:
        if not _is_below(each):
            raise CannotFreeze(None, each, "a folder outside of the notebook's is of this machine")
    return {"splice": ends, "put": [_to_portable_path(each) for each in items]}


_HERE = "<folder>/"


def _to_portable_path(folder: str) -> str:
    """A path in the working directory, wherever that is in a replay."""
    if not Path(folder).is_absolute():
        return folder
    return _HERE + Path(folder).relative_to(Path.cwd()).as_posix()


def _is_below(folder: str) -> bool:
    """Whether it is in the working directory: a recording may come from anybody."""
    here = Path(os.path.realpath("."))
    return Path(os.path.realpath(folder)).is_relative_to(here)


def _put_path(change: Mapping[str, Any]) -> None:
    items = []
    for each in change["put"]:
        folder = need(each, str, None)
        if folder.startswith(_HERE):
            folder = str(Path.cwd() / folder.removeprefix(_HERE))
        items.append(folder)
    if not all(map(_is_below, items)):
        raise CassetteError("a recording adds no folder outside of the notebook's")
    sys.path[:] = _apply_splice(sys.path, change, items)


def _write_warnings(before: list[Any], now: list[Any]) -> dict[str, Any]:
    ends, items = _find_splice(before, now)
    return {"splice": ends, "put": [_write_filter(*each) for each in items]}


def _write_filter(action: str, message: Any, category: type, module: Any, line: int) -> list[Any]:
    return [action, _extract_pattern(message), class_path(category), _extract_pattern(module), line]


def _extract_pattern(value: Any) -> str | None:
    return getattr(value, "pattern", value) or None


def _put_warnings(change: Mapping[str, Any]) -> None:
    items = []
    for action, message, category, module, line in change["put"]:
        kind = find_class(category, None)
        if not issubclass(kind, Warning) or action not in _ACTIONS:
            raise CassetteError(f"{category!r} is not a warning")
        matched = re.compile(message, re.IGNORECASE) if message else None
        items.append((action, matched, kind, re.compile(module) if module else None, int(line)))
    ambient.restore_part("warnings", _apply_splice(list(warnings.filters), change, items))


_ACTIONS = ("error", "ignore", "always", "all", "default", "module", "once")


# ---- options by name


def _write_options(before: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, Any]:
    changed = {
        name: each for name, each in now.items() if name not in before or before[name] != each
    }
    frozen: dict[str, Any] = registry.freeze(changed)
    return frozen


_CYCLE = "axes.prop_cycle"
"""The setting of matplotlib that is an object: in a record, the values of each property."""


def _write_matplotlib(before: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, Any]:
    if now.get(_CYCLE) != before.get(_CYCLE):
        now = {**now, _CYCLE: dict(now[_CYCLE].by_key())}
    else:
        now = {name: value for name, value in now.items() if name != _CYCLE}
    return _write_options(before, now)


def _put_matplotlib(value: Any) -> None:
    settings = need(registry.thaw(value), dict, None)
    if isinstance(settings.get(_CYCLE), dict):
        settings[_CYCLE] = sys.modules["matplotlib"].cycler(**settings[_CYCLE])
    ambient.restore_part("matplotlib", settings)


def _put_options(name: str) -> Callable[[Any], None]:
    def put_options(value: Any) -> None:
        ambient.restore_part(name, need(registry.thaw(value), dict, None))

    return put_options


def _write_numpy(before: Any, now: Any) -> list[Any]:
    return [_write_options(one, other) for one, other in zip(before, now, strict=True)]


def _put_numpy(value: Any) -> None:
    print_options, errors = (need(registry.thaw(each), dict, None) for each in value)
    numpy = sys.modules["numpy"]
    numpy.set_printoptions(**print_options)
    numpy.seterr(**errors)


# ---- logging


def _index_by_name(taken: tuple[Any, ...]) -> dict[str, tuple[Any, ...]]:
    return {name: tuple(state) for name, *state in taken[1]}


def _write_logging(before: Any, now: Any) -> dict[str, Any]:
    """`before` and `now`: what is disabled, the loggers' states, the names of levels."""
    change: dict[str, Any] = {}
    if before[0] != now[0]:
        change["disable"] = now[0]
    one, other = _index_by_name(before), _index_by_name(now)
    loggers = {}
    for name in sorted({*one, *other}):
        state = other.get(name, ambient.UNCHANGED_LOGGER)[:3]
        if state != one.get(name, ambient.UNCHANGED_LOGGER)[:3]:
            loggers[name] = list(state)
    if loggers:
        change["loggers"] = loggers
    levels = {name: level for name, level in now[2].items() if before[2].get(name) != level}
    if basic := _find_basic_format(before, now):
        change["basic"] = basic
    if levels:
        change["levels"] = levels
    return change


def _find_basic_format(before: Any, now: Any) -> list[Any]:
    """Formats and style of the handler that `logging.basicConfig()` gave the root, which had none."""
    handlers = _index_by_name(now).get("root", ambient.UNCHANGED_LOGGER)[3]
    if _index_by_name(before).get("root", ambient.UNCHANGED_LOGGER)[3] or len(handlers) != 1:
        return []
    handler = handlers[0]
    formatter = handler.formatter
    if type(handler) is not logging.StreamHandler or type(formatter) is not logging.Formatter:
        return []
    if handler.stream is not sys.stderr or handler.level or handler.filters:
        return []
    for style, kinds in _STYLES.items():
        if type(formatter._style) is kinds[0]:  # noqa: SLF001 - logging tells it nowhere else
            return [formatter._fmt, formatter.datefmt, style]  # noqa: SLF001 - the same
    return []


_STYLES: Mapping[str, tuple[type, str]] = vars(logging)["_STYLES"]


def set_handler_again(changes: Mapping[str, Any]) -> Iterator[str]:
    """The handler that the body gave the root, before what it showed by it. Gives what was not done."""
    change = changes.get("logging")
    if not isinstance(change, Mapping) or "basic" not in change:
        return iter(())
    return set_again({"logging": {"basic": change["basic"]}}, None)


def _describe_changed_handlers(before: Any, now: Any, is_placed: Callable[[Any], Any]) -> list[str]:
    """The loggers whose handlers are others now; one that the program has at hand is told already."""
    one, other = _index_by_name(before), _index_by_name(now)
    lost = []
    for name in sorted({*one, *other}):
        handlers = logging.getLogger(name if name != "root" else None).handlers
        is_other = (
            one.get(name, ambient.UNCHANGED_LOGGER)[3]
            != other.get(name, ambient.UNCHANGED_LOGGER)[3]
        )
        is_other = is_other and not (name == "root" and _find_basic_format(before, now))
        if is_other and not is_placed(handlers):
            lost.append(f"it changed the handlers of the logger {name!r}")
        elif not is_other:
            lost += _describe_changed_filters(
                name, _get_passed(one, name), _get_passed(other, name), is_placed
            )
    return lost


def _get_passed(loggers: Mapping[str, tuple[Any, ...]], name: str) -> tuple[Any, ...]:
    passed: tuple[Any, ...] = loggers.get(name, ambient.UNCHANGED_LOGGER)[4]
    return passed


def _describe_changed_filters(
    name: str, before: tuple[Any, ...], now: tuple[Any, ...], is_placed: Callable[[Any], Any]
) -> list[str]:
    """What else a logger's records pass: its filters, and how its handlers let them through."""
    if before == now:
        return []
    logger = logging.getLogger(name if name != "root" else None)
    one, other = (
        [each for each in passed if not isinstance(each, ambient.HandlerState)]
        for passed in (before, now)
    )
    if one != other:
        return (
            [] if is_placed(logger.filters) else [f"it changed the filters of the logger {name!r}"]
        )
    states = (each for each in now if isinstance(each, ambient.HandlerState))
    changed = (each.handler for each in states if each not in before)
    return [] if all(map(is_placed, changed)) else [f"it changed a handler of the logger {name!r}"]


def _put_logging(change: Mapping[str, Any]) -> None:
    if "basic" in change and not logging.root.handlers:
        fmt, datefmt, style = change["basic"]
        logging.basicConfig(format=fmt, datefmt=datefmt, style=style)
    if "disable" in change:
        logging.disable(need(change["disable"], int, None))
    for name, level in change.get("levels", {}).items():
        logging.addLevelName(need(level, int, None), name)
    for name, (level, disabled, propagate) in change.get("loggers", {}).items():
        logger = logging.getLogger(name if name != "root" else None)
        logger.setLevel(need(level, int, None))
        logger.disabled, logger.propagate = bool(disabled), bool(propagate)


# ---- the others


def _write_decimal(before: Any, taken: Any) -> dict[str, Any]:
    """Of a pair, the context that is in use here; the other is what new ones are made of."""
    now: decimal.Context = taken[0]
    if repr(now) == repr(before[0]):
        return {}
    fields: dict[str, Any] = {name: getattr(now, name) for name in ambient.DECIMAL_FIELDS}
    for name in ("flags", "traps"):
        fields[name] = [signal.__name__ for signal, on in getattr(now, name).items() if on]
    return fields


def _put_decimal(change: Mapping[str, Any]) -> None:
    fields = {name: change[name] for name in ambient.DECIMAL_FIELDS}
    for name in ("flags", "traps"):
        fields[name] = [vars(decimal)[each] for each in change[name]]
    decimal.setcontext(decimal.Context(**fields))


def _write_zone_name(before: Any, now: tuple[Any, ...]) -> str:
    """Nothing where only the variable TZ was set, which no clock heeds before `time.tzset()`."""
    names, _, seconds = now
    return " ".join(names) if (names, seconds) != (before[0], before[2]) else ""


def _write_dialects(before: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, Any]:
    changed = _write_options(before, now)
    return {"set": changed, "drop": sorted(before.keys() - now.keys())}


def _put_dialects(change: Mapping[str, Any]) -> None:
    dialects = ambient.PARTS["dialects"].capture()
    for name in change["drop"]:
        dialects.pop(name, None)
    ambient.restore_part("dialects", dialects | registry.thaw(change["set"]))


def _write_file_types(before: Any, now: Any) -> dict[str, Any]:
    tables = zip(ambient.FILE_TYPES, before, now, strict=True)
    return {name: changed for name, one, other in tables if (changed := _write_options(one, other))}


def _put_file_types(change: Mapping[str, Any]) -> None:
    tables = dict(zip(ambient.FILE_TYPES, ambient.file_types(), strict=True))
    for name, entries in change.items():
        for ending, kind in need(registry.thaw(entries), dict, None).items():
            if name in ambient.FILE_TYPES[:2]:
                strict = name == ambient.FILE_TYPES[0]
                sys.modules["mimetypes"].add_type(kind, ending, strict=strict)
            else:
                tables[name][ending] = kind


def _put_zone(_value: Any) -> None:
    """By the variable TZ, which is set by then."""
    if sys.platform != "win32":
        time.tzset()


class _Part(NamedTuple):
    """`names`: it is looked at where code within reach has one of these names; None: always."""

    write: Callable[[Any, Any], Any]
    restore: Callable[[Any], None]
    names: AbstractSet[str] | None = None


def _write_value(_before: Any, now: Any) -> Any:
    return now


_PARTS: Mapping[str, _Part] = {
    "cwd": _Part(_write_value, do_nothing),
    "path": _Part(_write_path, _put_path),
    "warnings": _Part(_write_warnings, _put_warnings),
    "pandas": _Part(_write_options, _put_options("pandas")),
    "matplotlib": _Part(_write_matplotlib, _put_matplotlib),
    "numpy": _Part(_write_numpy, _put_numpy),
    "logging": _Part(_write_logging, _put_logging),
    "decimal": _Part(_write_decimal, _put_decimal),
    "locale": _Part(_write_value, lambda value: ambient.restore_part("locale", value)),
    "csv": _Part(_write_value, lambda value: ambient.restore_part("csv", value)),
    "dialects": _Part(_write_dialects, _put_dialects, bag("csv register_dialect")),
    "file types": _Part(_write_file_types, _put_file_types, bag("mimetypes add_type")),
    "calendar": _Part(_write_value, lambda value: ambient.restore_part("calendar", value)),
    "time zone": _Part(_write_zone_name, _put_zone),
}
