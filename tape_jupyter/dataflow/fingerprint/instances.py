"""Classes, and objects of no kind that is known: their attributes, past everything that would run
code of the user's, and what a builtin class beneath them or a table holds.
"""

from __future__ import annotations

import asyncio
import collections
import datetime as dt
import decimal
import functools
import gc
import io
import threading
import types
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from tape_jupyter.core.abstract_classes import registered
from tape_jupyter.core.futures import FUTURES
from tape_jupyter.core.readable_memory import owns_memory
from tape_jupyter.core.user_code import (
    MACHINERY,
    bag,
    is_class_of_users,
    is_class_statement,
    is_users,
    root_module,
)
from tape_jupyter.dataflow.fingerprint import arrays
from tape_jupyter.dataflow.fingerprint.containers import PIECE, hash_plain
from tape_jupyter.dataflow.fingerprint.walker import Walk
from tape_jupyter.dataflow.identity import identity
from tape_jupyter.instrumentation.patching import original_of

FOREIGN_NODES = 400
"""Objects looked at below one object of a library: an SDK's client holds thousands."""
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
    "builtins.module",
    "_socket.",
    "_ssl.",
    "select.",
    "asyncio.",
    "_asyncio.",
)
_TRANSPORTS = bag(
    "urllib3 httpcore httpcore2 h11 h2 hpack ssl socket anyio sniffio certifi aiohappyeyeballs"
)
"""Packages whose objects change with each request: connections that are open, counters. An SDK's
client holds them.
"""
LOCK = type(threading.Lock())
_SHOWN = frozenset({"IPython.core.display", "IPython.lib.display"})
"""Of the machinery, modules whose objects are what a program shows."""
_PASSING = {
    "httpx": bag("_state _transport _mounts"),
    "httpx2": bag("_state _transport _mounts"),
    "anthropic": bag("_lazy_tracer"),
    "matplotlib": bag("_parents"),  # by their addresses
    "sqlalchemy": bag("_creation_order"),
    "ipywidgets": bag("_model_id _Output__counter _property_lock comm msg_id"),
    "threading": bag("_ident _native_id"),
    "concurrent": bag("_threads _idle_semaphore _thread_name_prefix"),
}
"""Attributes of clients of the same kind, by the package of their class or of one that it derives
from.
"""
_PLAIN_REDUCE = frozenset(
    {
        "datetime",
        "decimal",
        "fractions",
        "pathlib",
        "re",
        "array",
        "uuid",
        "zoneinfo",
        "ipaddress",
        "enum",
        "operator",
    }
)
_INERT = bag("pydantic_core jiter tiktoken tokenizers regex")
"""Packages of C or Rust whose objects nobody changes."""
_STATELESS = bag("_io _thread ast types _ctypes asyncio _asyncio")
"""Modules of C whose classes keep nothing besides, or what is looked at elsewhere."""
HELD = (
    list,
    dict,
    set,
    collections.deque,
    types.FunctionType,
    types.MethodType,
    types.GeneratorType,
)
_CARRIERS = bag("csv zipfile tarfile gzip bz2 lzma codecs tempfile contextlib shelve")
"""Modules whose objects stand around a file, or whatever else a program gave them: what they hold
is the program's own.
"""
_FILES = frozenset(
    {io.TextIOWrapper, io.BufferedReader, io.BufferedWriter, io.BufferedRandom, io.FileIO}
)
_ASKED_LESS: tuple[type, ...] = (*FUTURES, LOCK, *_FILES)
_OUTCOME = ("_state", "_result", "_exception")
"""What became of a future or a task; to ask for it by its methods would count as having heard of an error."""


def _read_text_buffer(value: Any) -> Any:
    """Where it stands, and its text; None where it is closed."""
    base: Any = io.StringIO if isinstance(value, io.StringIO) else io.BytesIO
    try:
        return base.tell(value), base.getvalue(value)
    except ValueError:
        return None


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
    io.StringIO: _read_text_buffer,
    io.BytesIO: _read_text_buffer,
    **dict.fromkeys(
        FUTURES, lambda value: [object.__getattribute__(value, name) for name in _OUTCOME]
    ),
}


def of_table(walk: Walk, value: Any, table: arrays.ArrayTable, module: str, depth: int) -> None:
    """A frame, a series, an array of a library, as dataflow/fingerprint/arrays.py lays it open."""
    walk.ids.add(identity(value))
    walk.ids.update(table.ids)
    walk.kinds.add(module)
    walk.hash_text(table.head)
    walk.held.append(table)
    _visit_table(walk, table, depth)


def _visit_table(walk: Walk, table: arrays.ArrayTable, depth: int) -> None:
    for buffer in table.buffers:
        walk.buffer(buffer)
    for each in table.values:
        if isinstance(each, arrays.ArrayTable):
            walk.hash_text(each.head)
            _visit_table(walk, each, depth)
        elif isinstance(each, arrays.Objects):
            _visit_objects(walk, each, depth)
        else:
            walk.visit_value(each, depth, foreign=False)


def _visit_objects(walk: Walk, objects: arrays.Objects, depth: int) -> None:
    for piece in objects.pieces(PIECE):
        if not hash_plain(walk, piece, tuple):
            for each in piece:
                walk.visit_value(each, depth, foreign=False)


def of_class(walk: Walk, value: type, depth: int, *, is_value: bool = False) -> None:
    """A class, with all that stands in it where it is the user's. `is_value`: it is the value, not
    somebody's class.
    """
    module = value.__module__ if isinstance(value.__module__, str) else ""
    if not is_class_of_users(value):
        walk.kinds.add(module.partition(".")[0])
        walk.hash_text(f"class {module}.{value.__qualname__}")
        return
    if identity(value) in walk.seen and not is_value:
        walk.hash_text(f"@{walk.seen[identity(value)]}")
        return
    walk.seen.setdefault(identity(value), len(walk.seen))
    walk.ids.add(identity(value))
    walk.classes.add(identity(value))
    walk.hash_text(f"class {value.__qualname__}")
    for base in value.__bases__:
        if base is not object:
            walk.visit_value(base, depth, foreign=False)
    if "_abc_impl" in vars(value):
        walk.hash_text(f"registered {sorted(each.__qualname__ for each in registered(value))}")
    inside = sorted(type.__dict__["__dict__"].__get__(value).items())
    for name, each in inside:
        if name not in _SKIPPED and not _is_generated(name, each):
            walk.hash_text(name)
            walk.visit_value(each, depth, foreign=False)
    ids, opaque = set(walk.ids), walk.opaque
    for name, each in inside:
        if _is_generated(name, each):
            walk.visit_value(each, depth, foreign=False)
    walk.ids, walk.opaque = ids, opaque


def is_memory(kind: type) -> bool:
    """Whether its values are memory of C code (ctypes)."""
    return any(base.__module__ == "_ctypes" for base in type.__dict__["__mro__"].__get__(kind))


def instance(walk: Walk, value: Any, kind: type, depth: int, *, foreign: bool) -> None:
    """An object of which nothing else is known than its class."""
    users = is_class_of_users(kind)
    walk.ids.add(identity(value))
    if not users:
        if (original := original_of(value)) is not value:
            walk.visit_value(original, depth, foreign=foreign)
            return
        walk.foreigners += 1
        known = _look_at_class(kind)
        walk.kinds.add(known.root)
        if known.plumbing and (foreign or kind is not threading.local):
            walk.hash_text(known.plumbing)
            return
        if walk.foreigners > FOREIGN_NODES:
            walk.partial = True
            walk.hash_text(f"more {kind.__qualname__}")
            return
        walk.hash_text(known.text)
        bare, native = known.bare, known.root in _CARRIERS
    else:
        of_class(walk, kind, depth)
        bare, native = _find_bare(kind), True
    beneath = _visit_beneath(walk, value, bare, depth, foreign=foreign)
    if kind in _FILES and not foreign:
        walk.opaque = walk.opaque or not value.closed
    if attributes(walk, value, kind, depth, foreign=foreign or not native):
        walk.partial = walk.partial or (not beneath and keeps_native_state(kind))
    elif not beneath:
        _visit_native(walk, value, kind, depth, foreign=foreign)


@functools.lru_cache(4096)
def keeps_native_state(kind: type) -> bool:
    """Whether a class of C that it derives from may keep more than its attributes show."""
    bases = type.__dict__["__mro__"].__get__(kind)
    return any(
        base.__basicsize__ > object.__basicsize__
        and root_module(base) not in _STATELESS
        and not is_class_statement(base)
        for base in bases
    )


def _visit_native(walk: Walk, value: Any, kind: type, depth: int, *, foreign: bool) -> None:
    """An object without attributes: what it holds, C or Rust may keep."""
    name = f"{kind.__module__}.{kind.__qualname__}"
    locked = not foreign and kind is LOCK and value.locked()
    walk.hash_text(f"instance {name}{' locked' if locked else ''}")
    if kind is object:
        return
    if root_module(kind) == "pydantic_core" and kind.__name__.endswith("Url"):
        walk.hash_text(str(value))
    elif root_module(kind) in _PLAIN_REDUCE:
        walk.visit_value(_reduce_value(value), depth, foreign=foreign)
    elif is_class_of_users(kind) or name.startswith(_QUIET):
        return
    elif foreign:
        walk.partial = walk.partial or root_module(kind) not in _INERT
    else:
        walk.opaque = True
        visit_referents(walk, value, depth)


def _describe_plumbing(kind: type) -> str:
    """What is said of a library's object that holds nothing of a program's state; "" of any other."""
    if any(root_module(base) == "comm" for base in type.__dict__["__mro__"].__get__(kind)):
        return "comm"  # how a widget speaks to its view, of whatever class a kernel has
    if issubclass(kind, asyncio.AbstractEventLoop):
        return "event loop"  # what waits in it changes at all times
    if root_module(kind) in MACHINERY and issubclass(kind, io.TextIOBase):
        return "machinery stream"  # where a cell prints to: the kernel's, and a fresh run's
    if kind.__module__ in _SHOWN:
        return ""
    if root_module(kind) in MACHINERY or root_module(kind) in _TRANSPORTS:
        return f"machinery {kind.__qualname__}"
    return ""


def _find_bare(kind: type) -> Callable[[Any], Any] | None:
    """What gives that which a builtin class beneath this one holds, past what the class made of it;
    None where there is none.
    """
    return next((bare for base, bare in _PLAIN.items() if issubclass(kind, base)), None)


def _visit_beneath(
    walk: Walk, value: Any, bare: Callable[[Any], Any] | None, depth: int, *, foreign: bool
) -> bool:
    """What the builtin class that a value's class derives from holds of it, past what the class
    made of that. What lies in a library's object is asked less: no future what became of it, no
    lock and no file whether it is held or open.
    """
    if foreign and isinstance(value, _ASKED_LESS):
        walk.dim.add(identity(value))
        if isinstance(value, FUTURES):
            return False
    if bare is not None:
        walk.visit_value(bare(value), depth, foreign=False)
        return True
    if is_memory(type(value)):
        if owns_memory(value):
            walk.visit_value(bytes(value), depth, foreign=False)
        else:
            walk.opaque = True
        return True
    if (table := arrays.beneath(value)) is None:
        return False
    of_table(walk, value, table, root_module(type(value)), depth)
    return True


def attributes(walk: Walk, value: Any, kind: type, depth: int, *, foreign: bool) -> bool:
    """Its attributes, past __getattribute__ and properties. Whether it may have any."""
    has_attributes, users = False, is_class_of_users(kind)
    owner: Any = threading.local if issubclass(kind, threading.local) else object
    try:
        inside = owner.__getattribute__(value, "__dict__")
    except AttributeError:
        inside = None
    if type(inside) is dict:
        has_attributes = True
        lasting = list(inside.items()) if users else _list_lasting(kind, inside)
        walk.hash_text(f"attributes {len(lasting)}")
        for key, each in lasting:
            walk.hash_text(str(key) if type(key) is str else "?")
            walk.visit_value(each, depth, foreign=foreign)
    slots = tuple(_find_slots(kind)) if users else _look_at_class(kind).slots
    for name, slot in slots:
        try:
            each = slot.__get__(value, kind)
        except AttributeError:
            continue
        walk.hash_text(name)
        walk.visit_value(each, depth, foreign=foreign)
    return has_attributes or bool(slots)


def _find_slots(kind: type) -> Iterator[tuple[str, Any]]:
    for base in type.__dict__["__mro__"].__get__(kind):
        inside = type.__dict__["__dict__"].__get__(base)
        if "__slots__" in inside:
            yield from (
                (name, slot)
                for name, slot in inside.items()
                if type(slot) is types.MemberDescriptorType
            )


def _list_lasting(kind: type, inside: dict[Any, Any]) -> list[tuple[Any, Any]]:
    """The attributes of a library's object that say something of its value."""
    known = _look_at_class(kind)
    names = known.passing
    lasting = [(k, each) for k, each in inside.items() if not _is_passing(known, k, each)]
    return [
        (k, tuple(one for one in each.items() if one[0] not in names))
        if names and k == "_trait_values" and type(each) is dict
        else (k, each)
        for k, each in lasting
    ]


def visit_referents(walk: Walk, value: Any, depth: int) -> None:
    """What an object of C holds, by the collector's knowledge of it: iter(d) and d.keys() hold d,
    csv.writer(file) holds file.write.
    """
    for each in gc.get_referents(value):
        if isinstance(each, (*HELD, types.BuiltinMethodType)):
            walk.visit_value(each, depth, foreign=True)
        elif type(each) is tuple or _is_python_iterator(type(each)):
            walk.visit_value(each, depth, foreign=False)


def _is_python_iterator(kind: type) -> bool:
    """Whether its objects go through what others hold: `chain(xs)` holds an iterator of `xs`."""
    return kind.__module__ == "itertools" or (
        kind.__module__ == "builtins" and hasattr(kind, "__next__")
    )


@dataclass(frozen=True, slots=True)
class LibraryClass:
    """What is known of the objects of a library's class."""

    root: str
    """The package that it belongs to."""
    text: str
    """What is said of the class itself."""
    bare: Callable[[Any], Any] | None
    plumbing: str
    """What is said of one that holds nothing of a program's state; "" of any other."""
    passing: frozenset[str]
    """The names of `_PASSING` that are meant in them."""
    cached: frozenset[str]
    """Attributes that they make of themselves when first asked: `client.messages` of an SDK."""
    slots: tuple[tuple[str, Any], ...]


_known_classes: weakref.WeakKeyDictionary[type, LibraryClass] = weakref.WeakKeyDictionary()


def _look_at_class(kind: type) -> LibraryClass:
    """Looked up once: nobody changes a library's class."""
    known = _known_classes.get(kind)
    if known is None:
        module = kind.__module__ if isinstance(kind.__module__, str) else ""
        bases = type.__dict__["__mro__"].__get__(kind)
        passing = frozenset().union(*(_PASSING.get(root_module(base), ()) for base in bases))
        members: dict[str, Any] = {}
        for base in reversed(bases):
            members.update(type.__dict__["__dict__"].__get__(base))
        cached = {k for k, each in members.items() if isinstance(each, functools.cached_property)}
        slots = tuple(slot for slot in _find_slots(kind) if slot[0] not in passing)
        known = _known_classes[kind] = LibraryClass(
            root_module(kind),
            f"class {module}.{kind.__qualname__}",
            _find_bare(kind),
            _describe_plumbing(kind),
            passing,
            frozenset(cached),
            slots,
        )
    return known


def _is_passing(known: LibraryClass, key: Any, value: Any) -> bool:
    """Whether an attribute of a library's object says nothing of its value: connections and the
    like, or what it made of itself when first asked, where nobody has put anything of the user's
    into it.
    """
    if type(key) is not str:
        return False
    if key not in known.passing | known.cached or isinstance(value, HELD):
        return key in known.passing
    try:
        inside = object.__getattribute__(value, "__dict__")
    except AttributeError:
        inside = {}
    return not any(_is_users_own(each) for each in (type(value), *inside.values()))


def _is_generated(name: str, value: Any) -> bool:
    """Whether `dataclass` put it into a class: nobody changes it, so those who have it have nothing
    in common.
    """
    if isinstance(value, types.FunctionType):
        return (
            value.__code__.co_filename == "<string>"
            or value.__globals__.get("__name__") == "dataclasses"
        )
    return name in ("__dataclass_fields__", "__dataclass_params__")


def _is_users_own(value: Any) -> bool:
    if isinstance(value, types.FunctionType):
        return is_users(value.__module__ if isinstance(value.__module__, str) else "")
    return is_class_of_users(value if isinstance(value, type) else type(value))


def _reduce_value(value: Any) -> Any:
    """Of a type of the standard library whose __reduce_ex__ only tells."""
    parts = value.__reduce_ex__(4)
    return parts if isinstance(parts, str) else tuple(parts[1:3])
