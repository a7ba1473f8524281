"""The state of a notebook's session as text, and a comparer of two such states.

    write(path, get_ipython())          in a kernel, by a silent request: writes the state as JSON
    differences(before, after)          "todo[1]: 'eggs' != missing", one line a difference

A state is a flat mapping of places to words: `todo` is "list of 2", `todo[0]` is "'milk'", `cart.items` is "list of 1",
`alias` is "the same object as todo". Mutable objects that are reached by several places are told once, at the first;
so two states are equal only where names and places are shared in the same way. The walk follows the program's own
objects: containers, instances of classes of the notebook, data classes, pydantic models, closures, class attributes,
modules that lie in the notebook's folder; numpy, pandas, figures and databases by what they hold. Clients, locks and
other objects of libraries are told by their type. Nothing of the program's is called or changed by it.
"""

from __future__ import annotations

import contextvars
import enum
import functools
import hashlib
import inspect
import io
import json
import os
import re
import sys
import types
from collections import ChainMap, OrderedDict, defaultdict, deque
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

LONGEST = 300
"""Characters of a value that are told as they are; of a longer one its beginning and a digest."""
MOST = 20_000
"""Places of a state."""
DEEPEST = 14
_PLAIN = (
    type(None),
    bool,
    int,
    float,
    complex,
    str,
    bytes,
    range,
    slice,
    type(Ellipsis),
    type(NotImplemented),
)
_VALUES = {
    "datetime",
    "decimal",
    "fractions",
    "uuid",
    "itertools",
    "pathlib",
    "pathlib._local",
    "zoneinfo",
    "ipaddress",
    "re",
}
"""Modules whose objects are values: told by their repr."""
_SKIPPED = re.compile(
    r"_+|_i+|_i?\d+|_(oh|dh|ih|exit_code)|In|Out|exit|quit|open|get_ipython|__\w+__"
)
_OURS = re.compile(r"KEY|TOKEN|SECRET|^TAPE_|^JPY_|^PYTEST|^PYDEVD|^_$|^COLUMNS$|^LINES$")
"""Environment variables that differ between two runs of the harness."""


def write(path: str, shell: Any) -> None:
    """Write the state of a shell's session to a file."""
    state = told(shell.user_ns, set(shell.user_ns_hidden))
    Path(path).write_text(json.dumps(state), encoding="utf-8")


def told(namespace: Mapping[str, Any], hidden: set[str] = frozenset()) -> dict[str, str]:
    """The state of a namespace, of the process around it, and of the context variables that it names."""
    walk = _Walk()
    for name in sorted(namespace, key=str):
        if name not in hidden and not _SKIPPED.fullmatch(name):
            walk.visit(name, namespace[name])
    walk.process()
    return walk.places


def differences(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """What is otherwise in the second state, a line a place; below a place that differs nothing more is told."""
    found: list[str] = []
    hidden: list[str] = []
    for place in [*before, *(each for each in after if each not in before)]:
        one, other = before.get(place), after.get(place)
        if one == other or any(_below(place, above) for above in hidden):
            continue
        found.append(f"{place}: {one or 'missing'} != {other or 'missing'}")
        if one is None or other is None or _kind(one) != _kind(other):
            hidden.append(place)
    return found


def root(difference: str) -> str:
    """The variable, or part of the process, that a difference is in."""
    return re.split(r"[.\[(:]| is ", difference, maxsplit=1)[0].strip()


def names(difference: str, state: Mapping[str, str]) -> frozenset[str]:
    """The variables that hold what a difference is in: that of its place, and those of the same object."""
    place = difference.partition(": ")[0]
    found = {root(difference)}
    if variable := re.match(r"os\.environ\['(\w+)'\]", place):
        found = {variable[1]}
    for other, words in state.items():
        same = words.removeprefix("the same object as ")
        if same != words and (place == other or place == same or _below(place, same)):
            found |= {root(f"{other}: "), root(f"{same}: ")}
    return frozenset(found)


def _below(place: str, above: str) -> bool:
    return place.startswith(above) and place[len(above) : len(above) + 1] in (".", "[", "(")


def _kind(words: str) -> str:
    return words.partition(" of ")[0]


def _how_far(frame: types.FrameType | None) -> str:
    """Where a suspended generator stands, with the plain values that it keeps."""
    if frame is None:
        return ""
    plain = {
        name: each
        for name, each in frame.f_locals.items()
        if isinstance(each, str | int | float | bool | None)
    }
    return f" at {frame.f_lasti} with {plain}"


class _Walk:
    def __init__(self) -> None:
        self.places: dict[str, str] = {}
        self._seen: dict[int, str] = {}
        self._kept: list[Any] = []  # ids stay theirs
        self._depth = 0

    def visit(self, place: str, value: Any) -> None:
        if len(self.places) >= MOST:
            self.places["(more)"] = f"more than {MOST} places"
            return
        if self._depth > DEEPEST:
            self.places[place] = f"{_name(type(value))}, not followed"
            return
        if isinstance(value, enum.Enum) or (isinstance(value, _PLAIN) and type(value) in _PLAIN):
            self.places[place] = _short(repr(value))
            return
        if type(value).__module__ in _VALUES:
            self.places[place] = _short(repr(value))
            return
        if type(value) not in (tuple, frozenset):
            if id(value) in self._seen:
                self.places[place] = f"the same object as {self._seen[id(value)]}"
                return
            self._seen[id(value)] = place
            self._kept.append(value)
        self._depth += 1
        try:
            self._tell(place, value)
        except Exception as why:
            self.places[place] = f"{_name(type(value))}, not readable ({type(why).__name__})"
        finally:
            self._depth -= 1

    def process(self) -> None:
        """What the process around the namespace is set to."""
        import logging

        for name, value in sorted(os.environ.items()):
            if not _OURS.search(name):
                self.places[f"os.environ[{name!r}]"] = _short(repr(value))
        self.places["os.getcwd()"] = repr(os.getcwd())
        self.places["sys.path"] = repr(sys.path)
        root_logger = logging.getLogger()
        self.places["logging.root"] = (
            f"level {root_logger.level}, handlers {[_name(type(h)) for h in root_logger.handlers]}"
        )

    # ---------------------------------------------------------------- kinds

    def _tell(self, place: str, value: Any) -> None:
        for tell in (
            self._mapping, self._sequence, self._set, self._module, self._class, self._callable, self._buffer, self._library,
            self._running, self._error,
        ):  # fmt: skip
            if tell(place, value):
                break
        else:
            self._instance(place, value)

    def _mapping(self, place: str, value: Any) -> bool:
        if not isinstance(value, (dict, types.MappingProxyType, ChainMap)):
            return False
        kind = (
            OrderedDict
            if isinstance(value, OrderedDict)
            else dict
            if isinstance(value, dict)
            else type(value)
        )
        items = list(
            kind.items(value)
        )  # an OrderedDict's order is not that of the dict inside of it
        default = (
            f", default {_callable_name(value.default_factory)}"
            if isinstance(value, defaultdict)
            else ""
        )
        self.places[place] = f"{_name(type(value))} of {len(items)}{default}"
        if isinstance(value, dict):
            self.places[f"{place} (keys)"] = _short(repr([_key(key) for key, _ in items]))
        for key, each in items:
            self.visit(f"{place}[{_key(key)}]", each)
        self._attributes(place, value)
        return True

    def _sequence(self, place: str, value: Any) -> bool:
        if not isinstance(value, (list, tuple, deque)):
            return False
        limit = (
            f", at most {value.maxlen}"
            if isinstance(value, deque) and value.maxlen is not None
            else ""
        )
        self.places[place] = f"{_name(type(value))} of {len(value)}{limit}"
        fields = getattr(type(value), "_fields", None)
        for number, each in enumerate(value):
            self.visit(f"{place}.{fields[number]}" if fields else f"{place}[{number}]", each)
        self._attributes(place, value)
        return True

    def _set(self, place: str, value: Any) -> bool:
        if not isinstance(value, (set, frozenset)):
            return False
        self.places[place] = f"{_name(type(value))} of {len(value)}"
        members = []
        for each in value:
            walk = _Walk()
            walk.visit("", each)
            members.append(json.dumps(list(walk.places.items())))
        for number, member in enumerate(sorted(members)):
            self.places[f"{place}[{number}]"] = _short(
                " ".join(" ".join(pair) for pair in json.loads(member)).strip()
            )
        return True

    def _module(self, place: str, value: Any) -> bool:
        if not isinstance(value, types.ModuleType):
            return False
        file = getattr(value, "__file__", None)
        own = not (file or value.__spec__) or (file and Path(file).parent == Path.cwd())
        self.places[place] = f"module {value.__name__}"
        if own:
            self._members(place, vars(value))
        return True

    def _class(self, place: str, value: Any) -> bool:
        if not isinstance(value, type):
            return False
        self.places[place] = f"class {_name(value)}"
        if _own(value):
            self._members(place, vars(value))
        return True

    def _members(self, place: str, found: Mapping[str, Any]) -> None:
        for name in sorted(found):
            each = found[name]
            if name.startswith("__") or isinstance(
                each, (property, types.GetSetDescriptorType, types.MemberDescriptorType)
            ):
                continue
            if isinstance(each, (staticmethod, classmethod)):
                each = each.__func__
            if not name.startswith(("_abc_", "model_", "_pydantic", "_sa_", "_value2member_map_")):
                self.visit(f"{place}.{name}", each)

    def _callable(self, place: str, value: Any) -> bool:
        if isinstance(value, functools.partial):
            self.places[place] = "partial"
            self.visit(f"{place}.func", value.func)
            self.visit(f"{place}.args", value.args)
            self.visit(f"{place}.keywords", value.keywords)
        elif isinstance(value, types.MethodType):
            self.places[place] = f"method {value.__func__.__qualname__}"
            self.visit(f"{place}.__self__", value.__self__)
        elif isinstance(value, types.FunctionType):
            self._function(place, value)
        elif isinstance(value, functools._lru_cache_wrapper):
            self.places[place] = f"cached function, {value.cache_info()}"
            self.visit(f"{place}.__wrapped__", value.__wrapped__)
        elif isinstance(
            value,
            (types.BuiltinFunctionType, types.MethodDescriptorType, types.WrapperDescriptorType),
        ):
            self.places[place] = f"function {value.__qualname__}"
        else:
            return False
        return True

    def _function(self, place: str, value: types.FunctionType) -> None:
        own = value.__module__ in _own_modules()
        self.places[place] = f"function {value.__module__}.{value.__qualname__}"
        if not own:
            return
        self.places[f"{place}.__code__"] = _code(value)
        for name, cell in zip(value.__code__.co_freevars, value.__closure__ or (), strict=False):
            try:
                self.visit(f"{place}.<{name}>", cell.cell_contents)
            except ValueError:
                self.places[f"{place}.<{name}>"] = "empty"
        if value.__defaults__:
            self.visit(f"{place}.__defaults__", value.__defaults__)
        for name in sorted(vars(value)):
            if not name.startswith("__signature") and not name.startswith("_tape"):
                self.visit(f"{place}.{name}", vars(value)[name])

    def _buffer(self, place: str, value: Any) -> bool:
        if isinstance(value, bytearray):
            self.places[place] = _short(repr(value))
        elif isinstance(value, (io.StringIO, io.BytesIO)):
            closed = value.closed
            self.places[place] = (
                f"{_name(type(value))} closed"
                if closed
                else _short(f"{value.getvalue()!r} at {value.tell()}")
            )
        elif isinstance(value, io.IOBase):
            where = (
                "closed" if value.closed else f"open at {value.tell() if value.seekable() else '?'}"
            )
            self.places[place] = (
                f"file {getattr(value, 'name', '')} {getattr(value, 'mode', '')}, {where}"
            )
        else:
            return False
        return True

    def _running(self, place: str, value: Any) -> bool:
        if isinstance(value, types.GeneratorType):
            self.places[place] = (
                f"generator, {inspect.getgeneratorstate(value)}{_how_far(value.gi_frame)}"
            )
        elif isinstance(value, types.CoroutineType):
            self.places[place] = f"coroutine, {inspect.getcoroutinestate(value)}"
        elif isinstance(value, types.AsyncGeneratorType):
            self.places[place] = "async generator"
        elif isinstance(value, contextvars.ContextVar):
            self.places[place] = f"context variable {value.name}"
            nothing = object()
            held = value.get(nothing)  # type: ignore[arg-type]
            if held is nothing:
                self.places[f"{place}.get()"] = "nothing"
            else:
                self.visit(f"{place}.get()", held)
        else:
            return False
        return True

    def _error(self, place: str, value: Any) -> bool:
        if not isinstance(value, BaseException):
            return False
        self.places[place] = _name(type(value))
        self.visit(f"{place}.args", value.args)
        self.visit(f"{place}.__cause__", value.__cause__)
        self._attributes(place, value)
        return True

    def _library(self, place: str, value: Any) -> bool:
        """Objects of libraries that hold the program's data."""
        kind = next((base for base in map(_name, type(value).__mro__) if base in _LIBRARY), None)
        if kind is None:
            return False
        _LIBRARY[kind](self, place, value)
        return True

    def _instance(self, place: str, value: Any) -> None:
        kind = type(value)
        self.places[place] = f"{_name(kind)} object"
        if _own(kind) or kind is types.SimpleNamespace:
            self._attributes(place, value)
            return
        for name in {
            **getattr(kind, "__dataclass_fields__", {}),
            **getattr(kind, "__pydantic_fields__", {}),
        }:
            if not name.startswith("_"):  # what a library keeps for itself is its own affair
                with suppress(AttributeError):
                    self.visit(f"{place}.{name}", object.__getattribute__(value, name))

    def _attributes(self, place: str, value: Any) -> None:
        """Fields of an instance, without calling what is its own."""
        with suppress(AttributeError):
            found = object.__getattribute__(value, "__dict__")
            for name in list(found):
                if not (name.startswith("__") and name.endswith("__")):
                    self.visit(f"{place}.{name}", found[name])
        for base in type(value).__mro__:
            slots = vars(base).get("__slots__", ())
            for name in (slots,) if isinstance(slots, str) else slots:
                if name not in ("__dict__", "__weakref__") and not name.startswith("__pydantic"):
                    with suppress(AttributeError):
                        self.visit(f"{place}.{name}", object.__getattribute__(value, name))

    # ---------------------------------------------------------------- libraries

    def _array(self, place: str, value: Any) -> None:
        data = (
            repr(value.tolist())
            if value.dtype.hasobject or value.size <= 64
            else _digest(value.tobytes())
        )
        self.places[place] = f"array {value.dtype} {value.shape} " + _short(data)

    def _scalar(self, place: str, value: Any) -> None:
        self.places[place] = f"{value.dtype} {value!r}"

    def _random(self, place: str, value: Any) -> None:
        state = value.getstate() if hasattr(value, "getstate") else (
            value.bit_generator.state if hasattr(value, "bit_generator") else value.get_state()
        )  # fmt: skip
        self.places[place] = f"{_name(type(value))} in state {_digest(repr(state).encode())}"

    def _frame(self, place: str, value: Any) -> None:
        self.places[place] = f"DataFrame of {value.shape}"
        self.places[f"{place}.index"] = _short(repr(list(value.index)))
        self.places[f"{place}.columns"] = _short(
            repr([(str(c), str(t)) for c, t in zip(value.columns, value.dtypes, strict=True)])
        )
        for number in range(value.shape[1]):
            self.places[f"{place}[{_key(value.columns[number])}]"] = _short(
                repr(value.iloc[:, number].tolist())
            )
        self.visit(f"{place}.attrs", dict(value.attrs))

    def _series(self, place: str, value: Any) -> None:
        self.places[place] = f"Series {value.dtype} {value.name!r} {_short(repr(value.tolist()))}"
        self.places[f"{place}.index"] = _short(repr(list(value.index)))

    def _index(self, place: str, value: Any) -> None:
        self.places[place] = f"{type(value).__name__} {_short(repr(list(value)))}"

    def _figure(self, place: str, value: Any) -> None:
        self.places[place] = f"figure of {len(value.axes)} axes"
        for number, axes in enumerate(value.axes):
            self._axes(f"{place}.axes[{number}]", axes)

    def _axes(self, place: str, value: Any) -> None:
        lines = [line.get_xydata().tolist() for line in value.lines]
        bars = [patch.get_bbox().bounds for patch in value.patches if hasattr(patch, "get_bbox")]
        self.places[place] = _short(f"axes {value.get_title()!r} lines {lines} patches {bars}")

    def _database(self, place: str, value: Any) -> None:
        self.places[place] = f"database, in transaction: {value.in_transaction}"
        self.places[f"{place}.dump()"] = _short("\n".join(value.iterdump()))

    def _logger(self, place: str, value: Any) -> None:
        self.places[place] = f"logger {value.name}, level {value.level}"
        for number, handler in enumerate(value.handlers):
            self.visit(f"{place}.handlers[{number}]", handler)

    def _handler(self, place: str, value: Any) -> None:
        self.places[place] = f"{_name(type(value))}, level {value.level}"
        for name, each in vars(value).items():
            if name not in ("filters", "formatter", "lock", "_name", "level", "_closed"):
                self.visit(f"{place}.{name}", each)

    def _log_record(self, place: str, value: Any) -> None:
        self.places[place] = f"log record {value.name} {value.levelname} {value.getMessage()!r}"

    def _queue(self, place: str, value: Any) -> None:
        held = value.queue if hasattr(value, "queue") else value._queue
        self.places[place] = f"{_name(type(value))} of {len(held)}"
        self.visit(f"{place}.queue", list(held))

    def _event(self, place: str, value: Any) -> None:
        self.places[place] = f"{_name(type(value))} set: {value.is_set()}"

    def _lock(self, place: str, value: Any) -> None:
        self.places[place] = f"{_name(type(value))} locked: {value.locked()}"

    def _bar(self, place: str, value: Any) -> None:
        self.places[place] = f"progress bar {value.n} of {value.total}"

    def _weak(self, place: str, value: Any) -> None:
        self.places[place] = f"{_name(type(value))} of {len(value)}"
        for key, each in (
            sorted(value.items(), key=lambda pair: repr(pair[0])) if hasattr(value, "items") else ()
        ):
            self.visit(f"{place}[{_key(key)}]", each)

    def _shown(self, place: str, value: Any) -> None:
        self.places[place] = f"{_name(type(value))} {_short(repr(getattr(value, 'data', None)))}"

    def _image(self, place: str, value: Any) -> None:
        self.places[place] = f"image {value.mode} {value.size} {_digest(value.tobytes())}"


_LIBRARY = {
    "numpy.ndarray": _Walk._array, "numpy.generic": _Walk._scalar, "numpy.random._generator.Generator": _Walk._random,
    "numpy.random.mtrand.RandomState": _Walk._random, "random.Random": _Walk._random,
    "pandas.DataFrame": _Walk._frame, "pandas.core.frame.DataFrame": _Walk._frame,
    "pandas.Series": _Walk._series, "pandas.core.series.Series": _Walk._series,
    "pandas.Index": _Walk._index, "pandas.core.indexes.base.Index": _Walk._index,
    "matplotlib.figure.Figure": _Walk._figure, "matplotlib.axes._base._AxesBase": _Walk._axes,
    "sqlite3.Connection": _Walk._database, "logging.Logger": _Walk._logger, "logging.Handler": _Walk._handler,
    "logging.LogRecord": _Walk._log_record, "queue.Queue": _Walk._queue, "asyncio.queues.Queue": _Walk._queue,
    "threading.Event": _Walk._event, "asyncio.locks.Event": _Walk._event, "_thread.lock": _Walk._lock,
    "asyncio.locks.Lock": _Walk._lock, "tqdm.std.tqdm": _Walk._bar, "weakref.WeakValueDictionary": _Walk._weak,
    "IPython.core.display.DisplayObject": _Walk._shown, "PIL.Image.Image": _Walk._image,
}  # fmt: skip


def _own_modules() -> set[str]:
    """The notebook's own module, and those that lie in its folder."""
    here = Path.cwd()
    own = {
        name
        for name, module in list(sys.modules.items())
        if (file := getattr(module, "__file__", None)) and Path(file).parent == here
    }
    return {"__main__", *own}


def _own(kind: type) -> bool:
    return kind.__module__ in _own_modules()


def _name(kind: type) -> str:
    return (
        kind.__qualname__
        if kind.__module__ in ("builtins", "__main__")
        else f"{kind.__module__}.{kind.__qualname__}"
    )


def _callable_name(value: Any) -> str:
    return getattr(value, "__qualname__", repr(value))


def _code(function: types.FunctionType) -> str:
    """A digest of what a function's code does, without where it stands."""
    return f"code {_digest(repr(list(_instructions(function.__code__))).encode())}"


def _instructions(code: types.CodeType) -> Iterator[Any]:
    yield (code.co_code, code.co_names, code.co_varnames, code.co_freevars)
    for constant in code.co_consts:
        yield (
            list(_instructions(constant))
            if isinstance(constant, types.CodeType)
            else re.sub(r" at 0x[0-9a-f]+", "", repr(constant))
        )


def _key(key: Any) -> str:
    kind = type(key)
    plain = (
        isinstance(key, (*_PLAIN, tuple, frozenset, enum.Enum))
        or kind.__module__ in _VALUES
        or hasattr(kind, "__dataclass_fields__")
    )
    return _addressless(repr(key)) if plain or not _own(kind) else f"{_name(kind)} object"


def _short(text: str) -> str:
    text = _addressless(text)
    return (
        text
        if len(text) <= LONGEST
        else f"{text[:LONGEST]}... ({len(text)} characters, {_digest(text.encode())})"
    )


def _addressless(text: str) -> str:
    """Without addresses, and without the process in the name of a cell's file."""
    return re.sub(r"\bipykernel_\d+", "ipykernel_", re.sub(r"\b0x[0-9a-f]{6,}\b", "0x", text))


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:12]
