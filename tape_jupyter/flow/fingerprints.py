"""Engine room: what a value is, as a short digest, and what it can reach: shared objects, code, libraries.

Nothing of the user's is run: no __reduce__, __eq__, __hash__, __repr__, property or __getattr__; no generator is moved.
What cannot be looked into is opaque: whoever mentions it may have changed it. Digests hold no addresses, so equal
values have equal digests in another kernel.
"""

from __future__ import annotations

import collections
import contextvars
import datetime as dt
import decimal
import functools
import gc
import io
import itertools
import logging
import pathlib
import pickle
import random
import re
import sys
import time
import types
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tape_jupyter.flow import tables
from tape_jupyter.flow.bindings import identity
from tape_jupyter.flow.digests import hasher
from tape_jupyter.flow.modules import MACHINERY, bag, is_users, root_module

SECONDS = 0.05
"""How much of the processor's time one value may take; then it is opaque."""
FOREIGN_NODES = 400
"""Objects looked at below one object of a library: an SDK's client holds thousands."""
NODES, BYTES = 2_000, 1 << 20
"""What is always looked at, however slow the machine is just now."""
PIECE, MEGABYTE = 4_096, 1 << 20
"""Items of a box, and bytes of a text or buffer, that are looked at between two looks at the clock."""
DEPTH = 150

_ATOMS = frozenset(
    {type(None), bool, int, float, complex, str, bytes, type(Ellipsis), type(NotImplemented), range, slice}
)
_ATOM_BOXES = frozenset({list, tuple, dict, set, frozenset, collections.deque})
_PICKLED = _ATOMS - {range, slice, type(Ellipsis), type(NotImplemented)}
_SORTED = ({str}, {int}, {bytes})
_CONTAINERS = (list, tuple, dict, set, frozenset, collections.deque)
_SKIPPED = frozenset(
    {"__dict__", "__weakref__", "__module__", "__doc__", "__firstlineno__", "__static_attributes__", "__slotnames__",
     "_abc_impl", "__abstractmethods__", "__annotations_cache__", "__annotate_func__",
     "__pydantic_core_schema__", "__pydantic_validator__", "__pydantic_serializer__", "__pydantic_decorators__",
     "__pydantic_parent_namespace__", "__pydantic_complete__", "__pydantic_setattr_handlers__",
     "__signature__"}
)  # fmt: skip
_QUIET = (
    "_thread.",
    "threading.",
    "weakref",
    "builtins.module",
    "_socket.",
    "_ssl.",
    "select.",
    "asyncio.",
    "_asyncio.",
)
_TRANSPORTS = bag("urllib3 httpcore httpcore2 h11 h2 hpack ssl socket anyio sniffio certifi aiohappyeyeballs")
"""Packages whose objects change with each request: connections that are open, counters. An SDK's client holds them."""
_PASSING = {
    "httpx": bag("_state _transport _mounts"),
    "httpx2": bag("_state _transport _mounts"),
    "anthropic": bag("_lazy_tracer"),
}
"""Attributes of clients of the same kind, by the package of their class or of one that it derives from."""
_PLAIN_REDUCE = frozenset(
    {"datetime", "decimal", "fractions", "pathlib", "re", "array", "uuid", "zoneinfo", "ipaddress", "enum"}
)
_HELD = (list, dict, set, collections.deque, types.FunctionType, types.MethodType, types.GeneratorType)
_MAPPED: tuple[type, ...] = (types.MappingProxyType, type({}.keys()), type({}.values()), type({}.items()))
_ITERABLES: tuple[Any, ...] = ([], (), range(0), {}, {}.values(), {}.items(), set(), "", b"", bytearray())
_ITERATORS = frozenset(type(iter(each)) for each in _ITERABLES)


@dataclass(frozen=True, slots=True)
class Print:
    """A value's fingerprint.

    `ids`: changeable objects in it; `codes`: (module, code) of its functions, "" the notebook;
    `kinds`: root modules of its types and functions.
    """

    digest: str
    opaque: bool = False
    vast: bool = False
    """Opaque for its size alone: it could be read, but that takes too long."""
    ids: frozenset[int] = frozenset()
    classes: frozenset[int] = frozenset()
    """Of `ids`, the classes and functions: who changes an object changes none of them."""
    codes: frozenset[tuple[str, types.CodeType]] = frozenset()
    kinds: frozenset[str] = frozenset()
    seconds: float = 0.0
    weight: int = 0
    """Bytes of its buffers, about."""


class _Vast(Exception):
    pass


class _Impure(Exception):
    pass


class _Pickler(pickle.Pickler):
    """Of exact builtin values only: any other object stops it before anything of it is asked."""

    def reducer_override(self, _obj: Any) -> Any:
        raise _Impure


def _pickled(value: Any) -> bytes:
    sink = io.BytesIO()
    pickler = _Pickler(sink, 5)
    pickler.fast = True  # no memo: equal values give equal bytes, whichever strings are one object
    pickler.dump(value)
    return sink.getvalue()


def fingerprint(value: Any, namespace: Mapping[str, Any] | None = None, *, seconds: float = SECONDS) -> Print:
    """Of one value; `namespace` is the notebook's, by which its functions are known. Raises nothing."""
    if type(value) in _ATOMS and not (type(value) in (str, bytes) and len(value) > 1_000_000):
        return Print(_atom(value))
    began = time.thread_time()
    walk = _Walk(namespace, began + seconds)
    opaque = vast = False
    try:
        walk.go(value, 0, foreign=False)
    except _Vast:
        vast = True
    except Exception:  # whatever people's objects do when looked at, tracking goes on
        opaque = True
    took = time.thread_time() - began
    ids = frozenset(walk.ids)
    digest = "" if vast or opaque else walk.hash.hexdigest()
    return Print(
        digest or f"opaque {type(value).__qualname__}", walk.opaque or opaque or vast, vast, ids,
        frozenset(walk.classes),
        frozenset(walk.codes), frozenset(walk.kinds), took, walk.weight,
    )  # fmt: skip


def _atom(value: Any) -> str:
    h = hasher()
    h.update(f"{type(value).__name__}\0".encode())
    h.update(value if type(value) is bytes else str(value).encode("utf-8", "surrogatepass"))
    return h.hexdigest()


def _pieces(value: Any, kind: type) -> Iterator[Any]:
    """A box in pieces of its own kind; a deque in lists."""
    if len(value) <= PIECE:
        yield list(value) if kind is collections.deque else value
    elif kind in (list, tuple):
        yield from (value[start : start + PIECE] for start in range(0, len(value), PIECE))
    else:
        items = iter(value.items() if kind is dict else value)
        made = dict if kind is dict else list
        while piece := made(itertools.islice(items, PIECE)):
            yield piece


class _Walk:
    def __init__(self, namespace: Mapping[str, Any] | None, deadline: float) -> None:
        self.hash = hasher()
        self.ids: set[int] = set()
        self.classes: set[int] = set()
        self.codes: set[tuple[str, types.CodeType]] = set()
        self.kinds: set[str] = set()
        self.opaque = False
        self.weight = 0
        self._namespace, self._deadline = namespace, deadline
        self._seen: dict[int, int] = {}
        self._held: list[Any] = []
        self._count = 0
        self._foreign = 0

    def say(self, text: str) -> None:
        self.hash.update(text.encode("utf-8", "surrogatepass"))
        self.hash.update(b"\0")

    def buffer(self, data: Any) -> None:
        """A large buffer, in pieces, so that the deadline holds."""
        self.weight += tables.size_of(data)
        for piece in tables.pieces(data, MEGABYTE):
            self.hash.update(piece)
            self.tick()

    def tick(self) -> None:
        if (self._count > NODES or self.weight > BYTES) and time.thread_time() > self._deadline:
            raise _Vast

    # ---------------------------------------------------------------- one object
    def go(self, value: Any, depth: int, *, foreign: bool) -> None:
        kind = type(value)
        self._count += 1
        if not self._count & 63:
            self.tick()
        if kind in _ATOMS:
            self._atom(value, kind)
            return
        if identity(value) in self._seen:
            self.say(f"@{self._seen[identity(value)]}")
            return
        if depth > DEPTH:
            raise _Vast
        if kind is not tuple and kind is not frozenset:
            self._seen[identity(value)] = len(self._seen)
        self._held.append(value)
        if isinstance(value, _CONTAINERS):
            self._container(value, kind, depth + 1, foreign=foreign)
        else:
            self._object(value, kind, depth + 1, foreign=foreign)

    def _atom(self, value: Any, kind: type) -> None:
        self.hash.update(f"{kind.__name__}\1".encode())
        if kind is bytes:
            self.buffer(value)
        elif kind is str and len(value) > MEGABYTE:
            for start in range(0, len(value), MEGABYTE):
                self.buffer(value[start : start + MEGABYTE].encode("utf-8", "surrogatepass"))
        else:
            self.hash.update(str(value).encode("utf-8", "surrogatepass"))
        self.hash.update(b"\0")

    def _container(self, value: Any, kind: type, depth: int, *, foreign: bool) -> None:  # noqa: C901 - one kind a branch
        if kind is not tuple and kind is not frozenset:
            self.ids.add(identity(value))
        if kind in _ATOM_BOXES and self._plain(value, kind):
            return
        base = next(each for each in _CONTAINERS if isinstance(value, each))
        size = base.__len__(value)
        self.say(f"[{kind.__name__}{size}")
        if isinstance(value, dict):
            for key, each in dict.items(value) if size > PIECE else list(dict.items(value)):
                if type(key) is str and key == "__builtins__":  # of a namespace that exec() was given
                    continue
                self.go(key, depth, foreign=foreign)
                self.go(each, depth, foreign=foreign)
        elif isinstance(value, set | frozenset):
            self._unordered(value, depth, foreign=foreign)
        else:
            for each in base.__iter__(value) if size > PIECE else list(base.__iter__(value)):
                self.go(each, depth, foreign=foreign)
            if isinstance(value, collections.deque):
                self.say(str(value.maxlen))
        if kind not in _ATOM_BOXES:
            if isinstance(value, collections.defaultdict):
                self.go(value.default_factory, depth, foreign=foreign)
            self._class(kind, depth)
            self._attributes(value, kind, depth, foreign=foreign)

    def _plain(self, value: Any, kind: type) -> bool:
        """Hashes a box of atoms in C, a piece at a time. What it hashed before it met something else does no harm."""
        if kind in (set, frozenset):
            inner = set(map(type, value)) if len(value) <= PIECE else set()
            if inner not in _SORTED:
                return False
            value = sorted(value)
        self.say(f"[{kind.__name__} {getattr(value, 'maxlen', '')}")
        for piece in _pieces(value, kind):
            inner = set(map(type, piece))
            sizes: Iterable[int] = map(sys.getsizeof, piece)
            if kind is dict:
                inner.update(map(type, piece.values()))
                sizes = itertools.chain(sizes, map(sys.getsizeof, piece.values()))
            if not inner <= _PICKLED or max(sizes, default=0) > MEGABYTE:
                return False
            data = _pickled(piece)
            self.weight += len(data)
            self._count += len(piece) >> 4  # a sixteenth of the work of another object
            self.hash.update(data)
            self.tick()
        return True

    def _unordered(self, value: Iterable[Any], depth: int, *, foreign: bool) -> None:
        base: Any = frozenset if isinstance(value, frozenset) else set
        parts = []
        whole = self.hash
        for each in base.__iter__(value):
            self.hash = hasher()
            self.go(each, depth, foreign=foreign)
            parts.append(self.hash.hexdigest())
        self.hash = whole
        self.say(",".join(sorted(parts)))

    def _object(self, value: Any, kind: type, depth: int, *, foreign: bool) -> None:
        if (look := _LOOKS.get(kind)) is not None:
            look(self, value, depth)
        elif isinstance(value, type):
            self._class(value, depth, whole=True)
        elif (module := root_module(kind)) and (table := tables.look(module, value)) is not None:
            self._table(value, table, module, depth)
        elif isinstance(value, io.StringIO | io.BytesIO) and kind in (io.StringIO, io.BytesIO):
            self.ids.add(identity(value))
            self.say("closed" if value.closed else f"{value.tell()}")
            if not value.closed:
                self.go(value.getvalue(), depth, foreign=foreign)
        elif isinstance(value, weakref.ReferenceType):
            self.say("reference")
            self.go(weakref.ReferenceType.__call__(value), depth, foreign=foreign)
        elif kind in _ITERATORS:
            self._iterator(value, depth, foreign=foreign)
        else:
            self._instance(value, kind, depth, foreign=foreign)

    # ---------------------------------------------------------------- kinds of objects
    def function(self, value: types.FunctionType, depth: int) -> None:
        place = self._place(value)
        if place is None:
            self.kinds.add(root_module(value))
            self.say(f"function {value.__module__}.{value.__qualname__}")
            if str(value.__globals__.get("__name__")).partition(".")[0] in MACHINERY:
                return
            if not value.__closure__ and not value.__dict__:
                return
        self.ids.add(identity(value))
        self.classes.add(identity(value))
        self.say(f"function {value.__qualname__}")
        for each in (value.__code__, value.__defaults__, value.__kwdefaults__, value.__dict__ or None):
            self.go(each, depth, foreign=False)
        for cell in value.__closure__ or ():
            try:
                inside = cell.cell_contents
            except ValueError:
                self.say("empty")
            else:
                self.ids.add(identity(cell))
                self.go(inside, depth, foreign=place is None)
        if place == "?":
            self.go(value.__globals__, depth, foreign=False)
        elif place is not None:
            self.codes.add((place, value.__code__))

    def _place(self, value: types.FunctionType) -> str | None:
        """Whose globals it uses: "" the notebook's, a module's name of the user's, None a library's."""
        if self._namespace is None or value.__globals__ is self._namespace:
            return ""
        name = value.__globals__.get("__name__")
        if isinstance(name, str) and name in sys.modules and sys.modules[name].__dict__ is value.__globals__:
            return name if is_users(name) else None
        return "?"  # globals of its own: exec(text, {})

    def code(self, value: types.CodeType, depth: int) -> None:
        self.hash.update(value.co_code)
        self.say(repr((value.co_name, value.co_names, value.co_varnames, value.co_freevars)))
        for const in value.co_consts:
            self.go(const, depth, foreign=False)

    def method(self, value: types.MethodType, depth: int) -> None:
        self.say("method")
        self.go(value.__func__, depth, foreign=False)
        self.go(value.__self__, depth, foreign=False)

    def builtin(self, value: types.BuiltinFunctionType, depth: int) -> None:
        self.say(f"builtin {value.__qualname__}")
        owner = value.__self__
        if owner is not None and not isinstance(owner, types.ModuleType | type):
            self.go(owner, depth, foreign=False)
        else:
            self.kinds.add(root_module(value))

    def module(self, value: types.ModuleType, _depth: int) -> None:
        self.kinds.add(value.__name__.partition(".")[0])
        self.say(f"module {value.__name__}")

    def partial(self, value: functools.partial[Any], depth: int) -> None:
        self.ids.add(identity(value))
        for each in (value.func, value.args, value.keywords):
            self.go(each, depth, foreign=False)

    def wrapped(self, value: Any, depth: int) -> None:
        """property, staticmethod, classmethod, cached functions: what they hold."""
        self.say(type(value).__name__)
        for slot in ("fget", "fset", "fdel", "__func__", "func"):
            if (inner := getattr(value, slot, None)) is not None:
                self.go(inner, depth, foreign=False)

    def cached(self, value: Any, depth: int) -> None:
        self.ids.add(identity(value))
        self.say(f"cached {tuple(value.cache_info())}")
        self.go(value.__wrapped__, depth, foreign=False)
        self.opaque = self.opaque or value.cache_info().currsize > 0

    def frame(self, value: Any, depth: int) -> None:
        """A generator or coroutine: it is opaque, but where it stands and what it holds is known."""
        self.ids.add(identity(value))
        self.opaque = True
        stands = next((f for s in ("gi_frame", "cr_frame", "ag_frame") if (f := getattr(value, s, None))), None)
        code = next((c for s in ("gi_code", "cr_code", "ag_code") if (c := getattr(value, s, None))), None)
        self.say(f"frame {value.__qualname__} {stands.f_lasti if stands else None}")
        if code is not None:
            self.codes.add(("", code))
        if stands is not None:
            for key, each in dict(stands.f_locals).items():
                self.say(key)
                self.go(each, depth, foreign=False)

    def slot(self, value: types.MemberDescriptorType, _depth: int) -> None:
        self.say(f"slot {value.__qualname__}")

    def path(self, value: pathlib.PurePath, _depth: int) -> None:
        """Its text: what else it holds it makes of that when it is asked."""
        self.kinds.add("pathlib")
        self.say(f"{type(value).__name__} {value!s}")

    def logger(self, value: logging.Logger, depth: int) -> None:
        """Not what it remembers of its own questions, nor whom it belongs to: the levels of all are ambient state."""
        self.ids.add(id(value))
        self.kinds.add("logging")
        self.say(f"logger {value.name} {value.level} {value.disabled} {value.propagate}")
        for each in (*value.handlers, *value.filters):
            self.go(each, depth, foreign=True)

    def pattern(self, value: re.Pattern[Any], depth: int) -> None:
        self.kinds.add("re")
        self.go((value.pattern, int(value.flags)), depth, foreign=False)

    def match(self, value: re.Match[Any], depth: int) -> None:
        self.pattern(value.re, depth)
        self.go((value.regs, value.pos, value.endpos), depth, foreign=False)
        self.go(value.string, depth, foreign=False)

    def member(self, value: Any, depth: int) -> None:
        """A field of a named tuple."""
        self.go(value.__reduce__()[1], depth, foreign=False)

    def mapped(self, value: Any, depth: int) -> None:
        self.say(type(value).__name__)
        if value is getattr(sys.modules.get("dataclasses"), "_EMPTY_METADATA", None):
            return  # which all fields of all dataclasses have in common
        inner = value.mapping if isinstance(value, type({}.keys()) | type({}.values()) | type({}.items())) else value
        self.go(dict(inner), depth, foreign=False)
        self._held_by(value, depth)
        self.opaque = True

    def dice(self, value: random.Random, depth: int) -> None:
        self.ids.add(identity(value))
        self.go(value.getstate(), depth, foreign=False)

    def context(self, value: contextvars.ContextVar[Any], depth: int) -> None:
        """Its value here and now; set() may have been called in another context, so it is opaque."""
        self.ids.add(identity(value))
        self.opaque = True
        self.say(value.name)
        self.go(value.get(None), depth, foreign=False)

    def buffered(self, value: Any, _depth: int) -> None:
        self.ids.add(identity(value))
        self.say(f"{type(value).__name__}{len(value)}")
        self.buffer(value)

    def memory(self, value: memoryview, depth: int) -> None:
        self.ids.add(identity(value))
        self.go(value.obj, depth, foreign=False)

    def _iterator(self, value: Any, depth: int, *, foreign: bool) -> None:
        self.ids.add(identity(value))
        self.opaque = True
        for each in value.__reduce__()[1:]:
            self.go(each, depth, foreign=foreign)
        self._held_by(value, depth)

    def _held_by(self, value: Any, depth: int) -> None:
        """What an object of C holds, by the collector's knowledge of it: iter(d) and d.keys() hold d."""
        for each in gc.get_referents(value):
            if isinstance(each, _HELD):
                self.go(each, depth, foreign=True)

    def _table(self, value: Any, table: tables.Table, module: str, depth: int) -> None:
        self.ids.add(identity(value))
        self.ids.update(table.ids)
        self.kinds.add(module)
        self.say(table.head)
        self._held.append(table)
        self._columns(table, depth)

    def _columns(self, table: tables.Table, depth: int) -> None:
        for buffer in table.buffers:
            self.buffer(buffer)
        for each in table.values:
            if isinstance(each, tables.Table):
                self.say(each.head)
                self._columns(each, depth)
            elif isinstance(each, tables.Objects):
                self._objects(each, depth)
            else:
                self.go(each, depth, foreign=False)

    def _objects(self, objects: tables.Objects, depth: int) -> None:
        for piece in objects.pieces(PIECE):
            if not self._plain(piece, tuple):
                for each in piece:
                    self.go(each, depth, foreign=False)

    def _class(self, value: type, depth: int, *, whole: bool = False) -> None:
        module = value.__module__ if isinstance(value.__module__, str) else ""
        if not is_users(module):
            self.kinds.add(module.partition(".")[0])
            self.say(f"class {module}.{value.__qualname__}")
            return
        if identity(value) in self._seen and not whole:
            self.say(f"@{self._seen[identity(value)]}")
            return
        self._seen.setdefault(identity(value), len(self._seen))
        self.ids.add(identity(value))
        self.classes.add(identity(value))
        self.say(f"class {value.__qualname__}")
        for base in value.__bases__:
            if base is not object:
                self.go(base, depth, foreign=False)
        inside = sorted(type.__dict__["__dict__"].__get__(value).items())
        for name, each in inside:
            if name not in _SKIPPED and not _is_generated(name, each):
                self.say(name)
                self.go(each, depth, foreign=False)
        ids, opaque = set(self.ids), self.opaque
        for name, each in inside:
            if _is_generated(name, each):
                self.go(each, depth, foreign=False)
        self.ids, self.opaque = ids, opaque

    def _instance(self, value: Any, kind: type, depth: int, *, foreign: bool) -> None:
        users = is_users(kind.__module__ if isinstance(kind.__module__, str) else "")
        self.ids.add(identity(value))
        if not users:
            self._foreign += 1
            self.kinds.add(root_module(kind))
            if root_module(kind) in MACHINERY or root_module(kind) in _TRANSPORTS:
                self.say(f"machinery {kind.__qualname__}")
                return
            if self._foreign > FOREIGN_NODES:
                self.say(f"more {kind.__qualname__}")
                return
        self._class(kind, depth)
        beneath = self._beneath(value, depth)
        if kind in _FILES and not foreign:
            self.opaque = self.opaque or not value.closed
        if self._attributes(value, kind, depth, foreign=foreign or not users) or beneath:
            return
        name = f"{kind.__module__}.{kind.__qualname__}"
        self.say(f"instance {name}")
        if kind is object:
            return
        if root_module(kind) in _PLAIN_REDUCE:
            self.go(_reduced(value), depth, foreign=foreign)
        elif not users and not foreign and not name.startswith(_QUIET):
            self.opaque = True
            self._held_by(value, depth)

    def _beneath(self, value: Any, depth: int) -> bool:
        """What the builtin class that a value's class derives from holds of it, past what the class made of that."""
        for base, plain in _PLAIN.items():
            if isinstance(value, base):
                self.go(plain(value), depth, foreign=False)
                return True
        if (table := tables.beneath(value)) is None:
            return False
        self._table(value, table, root_module(type(value)), depth)
        return True

    def _attributes(self, value: Any, kind: type, depth: int, *, foreign: bool) -> bool:
        """Its attributes, past __getattribute__ and properties. Whether it may have any."""
        found = False
        try:
            inside = object.__getattribute__(value, "__dict__")
        except AttributeError:
            inside = None
        if type(inside) is dict:
            found = True
            lasting = [(k, each) for k, each in inside.items() if not _passing(kind, k, each)]
            self.say(f"attributes {len(lasting)}")
            for key, each in lasting:
                self.say(str(key) if type(key) is str else "?")
                self.go(each, depth, foreign=foreign)
        for base in type.__dict__["__mro__"].__get__(kind):
            for name, slot in type.__dict__["__dict__"].__get__(base).items():
                if type(slot) is types.MemberDescriptorType and "__slots__" in base.__dict__:
                    found = True
                    try:
                        each = slot.__get__(value, kind)
                    except AttributeError:
                        continue
                    self.say(name)
                    self.go(each, depth, foreign=foreign)
        return found


def _passing(kind: type, key: Any, value: Any) -> bool:
    """Whether an attribute of a library's object says nothing of its value: connections and the like, or what it made
    of itself when first asked (`client.messages` of an SDK), where nobody has put anything of the user's into it.
    """
    if type(key) is not str or is_users(kind.__module__ if isinstance(kind.__module__, str) else ""):
        return False
    bases = type.__dict__["__mro__"].__get__(kind)
    if any(key in _PASSING.get(root_module(base), ()) for base in bases):
        return True
    slot = next((d[key] for base in bases if key in (d := type.__dict__["__dict__"].__get__(base))), None)
    if not isinstance(slot, functools.cached_property) or isinstance(value, _HELD):
        return False
    try:
        inside = object.__getattribute__(value, "__dict__")
    except AttributeError:
        inside = {}
    return not any(_is_users_own(each) for each in (type(value), *inside.values()))


def _is_generated(name: str, value: Any) -> bool:
    """Whether `dataclass` put it into a class: nobody changes it, so those who have it have nothing in common."""
    if isinstance(value, types.FunctionType):
        return value.__code__.co_filename == "<string>" or value.__globals__.get("__name__") == "dataclasses"
    return name in ("__dataclass_fields__", "__dataclass_params__")


def _is_users_own(value: Any) -> bool:
    module = value.__module__ if isinstance(value, type | types.FunctionType) else type(value).__module__
    return is_users(module if isinstance(module, str) else "")


_FILES = frozenset({io.TextIOWrapper, io.BufferedReader, io.BufferedWriter, io.BufferedRandom, io.FileIO})
_PLAIN: dict[type, Callable[[Any], Any]] = {
    str: str.__str__,
    int: int.__repr__,
    float: float.__repr__,
    complex: complex.__repr__,
    bytes: lambda value: bytes.__getitem__(value, slice(None)),
    bytearray: lambda value: bytes(bytearray.__getitem__(value, slice(None))),
    decimal.Decimal: decimal.Decimal.__str__,
    dt.datetime: lambda value: dt.datetime.__reduce_ex__(value, 4)[1],
    dt.date: lambda value: dt.date.__reduce__(value)[1],
    dt.time: lambda value: dt.time.__reduce_ex__(value, 4)[1],
    dt.timedelta: lambda value: dt.timedelta.__reduce__(value)[1],
    BaseException: BaseException.__dict__["args"].__get__,
}


def _reduced(value: Any) -> Any:
    """Of a type of the standard library whose __reduce_ex__ only tells."""
    parts = value.__reduce_ex__(4)
    return parts if isinstance(parts, str) else tuple(parts[1:3])


_LOOKS: dict[type, Callable[[_Walk, Any, int], None]] = {
    types.FunctionType: _Walk.function,
    types.CodeType: _Walk.code,
    types.MemberDescriptorType: _Walk.slot,
    re.Pattern: _Walk.pattern,
    re.Match: _Walk.match,
    logging.Logger: _Walk.logger,
    type(pathlib.PurePath()): _Walk.path,
    type(pathlib.Path()): _Walk.path,
    type(collections.namedtuple("_Field", "x").__dict__["x"]): _Walk.member,  # noqa: PYI024 - the type of its field
    types.MethodType: _Walk.method,
    types.BuiltinFunctionType: _Walk.builtin,
    types.ModuleType: _Walk.module,
    functools.partial: _Walk.partial,
    property: _Walk.wrapped,
    staticmethod: _Walk.wrapped,
    classmethod: _Walk.wrapped,
    functools.cached_property: _Walk.wrapped,
    type(functools.lru_cache(len)): _Walk.cached,
    types.GeneratorType: _Walk.frame,
    types.CoroutineType: _Walk.frame,
    types.AsyncGeneratorType: _Walk.frame,
    random.Random: _Walk.dice,
    contextvars.ContextVar: _Walk.context,
    bytearray: _Walk.buffered,
    memoryview: _Walk.memory,
    **dict.fromkeys(_MAPPED, _Walk.mapped),
}
