"""What changeable objects held at a moment, so that the very same objects can be made to hold it
again.

A memento keeps, for each changeable object that a value reaches, the references it held: no copies,
no pickling, no code of the user's. Putting it back keeps every object's identity, so what else
refers to them stays right. What cannot be put back (a generator, a connection, an open file) is
named in `opaque`; what is too large to keep, too. What does something when it goes is named in
`ends`: whoever keeps it, or its memento, keeps that from happening.
"""

from __future__ import annotations

import array
import collections
import contextlib
import datetime as dt
import decimal
import enum
import fractions
import functools
import gc
import io
import itertools
import logging
import operator
import pathlib
import random
import re
import sys
import threading
import types
import uuid
import weakref
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

from tape_jupyter.core.abstract_classes import registered, set_registered
from tape_jupyter.core.memoised import MEMOISED, read_kept, read_settable, set_kept
from tape_jupyter.core.open_file import OPEN_FILE
from tape_jupyter.core.readable_memory import owns_memory, require_readable
from tape_jupyter.core.user_code import is_class_of_users, is_environment, is_registered, is_users
from tape_jupyter.dataflow.fingerprint import unwrapped
from tape_jupyter.dataflow.fingerprint.containers import items_of
from tape_jupyter.dataflow.fingerprint.instances import LOCK, is_memory, keeps_native_state
from tape_jupyter.dataflow.fingerprint.objects import TUPLE_FIELD
from tape_jupyter.dataflow.identity import identity
from tape_jupyter.dataflow.tracing.ambient import DECIMAL_FIELDS

NODES = 100_000
BYTES = 64 << 20
Put = Callable[[], None]

_PLAIN = (
    type(None), bool, int, float, complex, str, bytes, type(Ellipsis), type(NotImplemented), range, types.CodeType,
    dt.date, dt.time, dt.timedelta, dt.tzinfo, decimal.Decimal, enum.Enum,
    fractions.Fraction, pathlib.PurePath, uuid.UUID, re.Pattern, re.Match, types.WrapperDescriptorType,
    types.MethodDescriptorType, types.GetSetDescriptorType, types.MemberDescriptorType, types.ClassMethodDescriptorType,
    types.MethodWrapperType, types.GenericAlias, TUPLE_FIELD, types.UnionType, operator.itemgetter,
    operator.attrgetter, operator.methodcaller, weakref.ref, property,
)  # fmt: skip
_PASSING = frozenset({"RLock", "Condition"})
_KEPT_OUT = (
    "asyncio",
    "IPython",
    "ipykernel",
    "traitlets",
    "zmq",
    "tornado",
    "matplotlib",
    "_asyncio",
    "sqlite3",
    "concurrent",
    "multiprocessing",
    "socket",
    "ssl",
    "subprocess",
)
_ASYNC_VALUES = frozenset(
    {"Queue", "PriorityQueue", "LifoQueue", "Event", "Lock", "Semaphore", "BoundedSemaphore"}
)
_CLASS_OWN = frozenset(
    {"__dict__", "__weakref__", "__doc__", "__module__", "__abstractmethods__", "_abc_impl"}
)
_OF_FRAMES = frozenset({"_mgr", "_item_cache", "_attrs", "_flags", "_name"})
"""Attributes that every table of pandas has."""
_ABSENT = object()
_ALL = slice(None)
_FIRST, _SECOND = operator.itemgetter(0), operator.itemgetter(1)


_ITEM = 64
"""Bytes that one thing in a list, or one attribute's object, takes: about."""
_POINTER = 8
_ENDLESS = (type, types.FunctionType, types.ModuleType, logging.Handler, threading.local)
"""What libraries keep registers of: a callback that waits for one of these to go closes nothing."""
_HEAP = 1 << 9  # Py_TPFLAGS_HEAPTYPE: a class statement made it
_ATOMS = frozenset(_PLAIN[:11])
_PLACES = (types.GetSetDescriptorType, types.MemberDescriptorType)
_ITERATORS: tuple[Any, ...] = (
    types.GeneratorType, types.CoroutineType, types.AsyncGeneratorType, type(iter([])), type(iter(())), type(iter({})),
    type(iter(set())), type(iter("")), type(iter(range(0))), type(reversed([])), zip, map, filter, enumerate, reversed,
    itertools.count, itertools.cycle, itertools.chain, itertools.islice, itertools.accumulate, itertools.repeat,
    itertools.takewhile, itertools.dropwhile, itertools.product, itertools.starmap, itertools.groupby,
    threading.Thread,
)  # fmt: skip


@dataclass(slots=True)
class Memento:
    """`puts` make each object hold again what it held; `checks` say whether that can be done now."""

    puts: list[Any] = field(default_factory=list)
    """One after the other: a function, how many values follow, the values that it is called with. A
    list for all of them, since the collector walks through whatever is kept.
    """
    checks: list[Callable[[], bool]] = field(default_factory=list)
    opaque: list[str] = field(default_factory=list)
    """Types of what cannot be put back, in the order they were met."""
    ends: list[str] = field(default_factory=list)
    """Types of what does something when it goes (`__del__`, weakref.finalize), or of which the program
    can tell that it went.
    """
    changeable: list[Any] = field(default_factory=list)
    """The objects that `puts` change."""
    watchable: list[Any] = field(default_factory=list)
    """Of these, those that can be weakly referred to."""
    dark: list[str] = field(default_factory=list)
    """Types of C that show nothing of what they hold."""
    size: int = 0
    """Bytes that were copied for it, about."""
    weight: int = 0
    """Bytes of the value itself, about; `_ITEM` for each thing in it."""

    @property
    def is_complete(self) -> bool:
        return not self.opaque

    def possible(self) -> bool:
        """Whether all that the value held can be put back now: a buffer closed since cannot be
        opened again.
        """
        return self.is_complete and not self.ends and all(check() for check in self.checks)

    def bare(self) -> Memento:
        """Only why it cannot be put back: it keeps nothing alive."""
        return Memento(opaque=self.opaque[:1], ends=(self.ends or self.dark)[:1])

    def add_put(self, put: Callable[..., object], *values: Any) -> None:
        self.puts += (put, len(values), *values)

    def restore(self) -> None:
        puts = iter(self.puts)
        for put in puts:
            put(*itertools.islice(puts, next(puts)))


def _remember_annotations(function: types.FunctionType) -> Put:
    """From Python 3.14 on they are made by code when they are asked for: that code is kept."""
    if sys.version_info >= (3, 14):
        annotate = function.__annotate__

        def put_code() -> None:
            if function.__annotate__ is not annotate:
                function.__annotate__ = annotate

        return put_code
    mapping = function.__annotations__
    return functools.partial(_put_annotations, function, mapping, dict(mapping))


def remember_value(
    value: Any, nodes: int = NODES, size: int = BYTES, *, complete_only: bool = False
) -> Memento:
    """What everything that `value` reaches holds now; `nodes` objects and `size` bytes of arrays at
    most. With `complete_only` no more is looked at once something cannot be put back.
    """
    return _Walk(nodes, size, complete_only=complete_only).through(value)


class _Walk:
    def __init__(self, nodes: int, size: int, *, complete_only: bool) -> None:
        self.memento = Memento()
        self._complete_only = complete_only
        self._nodes, self._size = nodes, size
        self._seen: dict[int, Any] = {}
        self._final: dict[type, bool] = {}
        self._visits: dict[type, Callable[[Any, Any], Iterable[Any]]] = {}

    def through(self, value: Any) -> Memento:
        todo: list[Iterator[Any]] = [iter((value,))]
        while todo:
            for each in todo[-1]:
                if type(each) in _ATOMS or identity(each) in self._seen:
                    continue
                self._seen[identity(each)] = each
                if len(self._seen) > self._nodes:
                    self.memento.opaque.append("something vast")
                    return self.memento
                puts = len(self.memento.puts)
                try:
                    children = self._remember_object(each)
                except Exception:  # a property or a proxy of somebody's
                    children = self._note_opaque(each)
                if self._complete_only and self.memento.opaque:
                    return self.memento
                if len(self.memento.puts) > puts:
                    self.memento.changeable.append(each)
                    if type(each).__weakrefoffset__:
                        self.memento.watchable.append(each)
                todo.append(iter(children))
                break
            else:
                todo.pop()
        self.memento.weight += len(self._seen) * _ITEM
        return self.memento

    def _note_opaque(self, what: Any) -> Iterable[Any]:
        self.memento.opaque.append(_format_type(what))
        return ()

    def _remember_object(self, what: Any) -> Iterable[Any]:
        """Keep what it holds itself; give what it refers to."""
        if self._has_end(what, type(what)):
            self.memento.ends.append(_format_type(what))
        kind = type(what)
        if kind not in self._visits:
            self._visits[kind] = self._find_visit(what)
        return self._visits[kind](self, what)

    def _find_visit(self, what: Any) -> Callable[[Any, Any], Iterable[Any]]:
        """How things of its type are remembered."""
        by_kind = (visit for kind, visit in self._BY_KIND if isinstance(what, kind))
        visit = next(by_kind, _Walk._remember_other)
        if not is_class_of_users(type(what)) or visit in (
            _Walk._remember_class,
            _Walk._remember_other,
        ):
            return visit

        def remember_with_attributes(walk: _Walk, what: Any) -> Iterable[Any]:
            walk.memento.add_put(_put_class, what, type(what))
            return [*visit(walk, what), *walk._remember_attributes(what), type(what)]

        return remember_with_attributes

    def _remember_other(self, what: Any) -> Iterable[Any]:
        module = type(what).__module__ or ""
        numpy, pandas = sys.modules.get("numpy"), sys.modules.get("pandas")
        if numpy is not None and isinstance(what, numpy.ndarray):
            inside = self._remember_array(what)
            return inside if type(what) is numpy.ndarray else [*inside, *self._remember_own(what)]
        if pandas is not None and isinstance(what, pandas.DataFrame | pandas.Series):
            return self._remember_frame(what)
        if module.partition(".")[0] == "numpy":
            return self._remember_numpy(what)
        if module.partition(".")[0] == "pandas":
            return self._remember_pandas(what)
        if module.partition(".")[0] == "polars":
            return self._remember_polars(what)
        return self._remember_instance(what, module)

    def _remember_own(self, what: Any) -> Iterable[Any]:
        """What an array of a class of the user's has besides."""
        if not is_class_of_users(type(what)):
            return ()
        return [*self._remember_attributes(what), type(what)]

    def _has_end(self, what: Any, kind: type) -> bool:
        """Whether something happens when it goes, or the program can tell that it went."""
        if is_weakly_watched(what):
            return True
        if kind.__flags__ & _HEAP == 0:
            return False
        if kind not in self._final:
            bases = (
                b for b in type.__dict__["__mro__"].__get__(kind) if b.__module__ != "_io"
            )  # also StringIO's
            self._final[kind] = any(
                "__del__" in type.__dict__["__dict__"].__get__(base) for base in bases
            )
        return self._final[kind]

    def _count_copy(self, copied: Any, each: int = 0) -> None:
        """A copy of what a box holds was made; `each`: bytes that were made for each item besides."""
        self.memento.size += sys.getsizeof(copied) + each * len(copied)
        self.memento.weight += _ITEM * len(copied)

    def _do_nothing(self, _what: Any) -> Iterable[Any]:
        return ()

    def _remember_list(self, what: list[Any]) -> Iterable[Any]:
        items = tuple(list.__iter__(what))
        self._count_copy(items)
        self.memento.add_put(list.__setitem__, what, _ALL, items)
        if type(what) is list and _ATOMS.issuperset(map(type, items)):
            return ()
        return [*items, *self._remember_attributes(what)]

    def _remember_dict(self, what: dict[Any, Any]) -> Iterable[Any]:
        keys, values = _split_items(what)
        self._count_copy(keys, _POINTER)
        self.memento.add_put(_put_dict, what, keys, values)
        kinds = map(type, itertools.chain(keys, values))
        if type(what) is dict and _ATOMS.issuperset(kinds):
            return ()
        factory = getattr(what, "default_factory", None)
        items = zip(keys, values, strict=True)
        inside = [v for k, v in items if not (type(k) is str and k == "__builtins__")]
        return [*inside, *keys, factory, *self._remember_attributes(what)]

    def _remember_set(self, what: set[Any]) -> Iterable[Any]:
        items = set(what)
        self._count_copy(items)
        self.memento.add_put(_put_set, what, items)
        return [*items, *self._remember_attributes(what)]

    def _remember_frozen(self, what: tuple[Any, ...] | frozenset[Any]) -> Iterable[Any]:
        self.memento.weight += _ITEM * len(what)
        return [*what, *self._remember_attributes(what)]

    def _remember_deque(self, what: collections.deque[Any]) -> Iterable[Any]:
        items = list(what)
        self._count_copy(items)

        def put_items() -> None:
            what.clear()
            what.extend(items)

        self.memento.add_put(put_items)
        return [*items, *self._remember_attributes(what)]

    def _remember_buffer(self, what: bytearray | array.array[Any]) -> Iterable[Any]:
        content = what[:]
        self.memento.size += memoryview(content).nbytes

        def put_content() -> None:
            what[:] = content  # type: ignore[assignment]

        self.memento.add_put(put_content)
        return ()

    def _remember_text_buffer(self, what: io.StringIO | io.BytesIO) -> Iterable[Any]:
        if what.closed:
            self.memento.add_put(what.close)
            return ()
        content, place = what.getvalue(), what.tell()
        self.memento.size += len(content)

        def put_content() -> None:
            what.seek(0)
            what.truncate()
            what.write(content)  # type: ignore[arg-type]
            what.seek(place)

        self.memento.add_put(put_content)
        self.memento.checks.append(lambda: not what.closed)
        return self._remember_attributes(what)

    def _remember_random(self, what: random.Random) -> Iterable[Any]:
        if isinstance(what, random.SystemRandom):
            return ()
        state = what.getstate()
        self.memento.add_put(lambda: what.setstate(state))
        return ()

    def _remember_function(self, what: types.FunctionType) -> Iterable[Any]:
        if (body := unwrapped.unwrap(what)) is not what:
            return (body,)
        attributes = dict(unwrapped.attributes_of(what))
        own = _find_own_globals(what)
        if not (is_users(what.__module__ or "") or what.__closure__ or attributes or own):
            return ()
        defaults, keywords = what.__defaults__, dict(what.__kwdefaults__ or {})
        self.memento.add_put(_remember_annotations(what))
        code = unwrapped.code_of(what)
        self.memento.add_put(
            _put_function, what, code, what.__doc__, defaults, keywords, attributes
        )
        return [
            *(defaults or ()),
            *keywords.values(),
            *attributes.values(),
            *(what.__closure__ or ()),
            own,
        ]

    def _remember_closure_cell(self, what: types.CellType) -> Iterable[Any]:
        try:
            content = what.cell_contents
        except ValueError:
            content = _ABSENT

        self.memento.add_put(_put_closure_cell, what, content)
        return () if content is _ABSENT else (content,)

    def _remember_module(self, what: types.ModuleType) -> Iterable[Any]:
        return () if is_registered(what) else (vars(what),)

    def _remember_method(self, what: types.MethodType) -> Iterable[Any]:
        return (what.__func__, what.__self__)

    def _remember_builtin(self, what: types.BuiltinFunctionType) -> Iterable[Any]:
        owner = getattr(what, "__self__", None)
        return () if owner is None or isinstance(owner, types.ModuleType | type) else (owner,)

    def _remember_partial(self, what: functools.partial[Any]) -> Iterable[Any]:
        self.memento.add_put(_put_partial, what, what.func, what.args, what.keywords, vars(what))
        return (what.func, *what.args, what.keywords, vars(what))

    def _remember_exception(self, what: BaseException) -> Iterable[Any]:
        self.memento.add_put(_put_exception, what, what.args, what.__cause__)
        return [*what.args, what.__cause__, vars(what)]

    def _remember_context(self, what: decimal.Context) -> Iterable[Any]:
        self.memento.add_put(_put_context, what, what.copy())
        return ()

    def _remember_local(self, what: threading.local) -> Iterable[Any]:
        """What it holds for this thread."""
        return (threading.local.__getattribute__(what, "__dict__"),)

    def _remember_wrapped(
        self, what: staticmethod[Any, Any] | classmethod[Any, Any, Any]
    ) -> Iterable[Any]:
        return (what.__func__,)

    def _remember_class(self, what: type) -> Iterable[Any]:
        if not is_class_of_users(what):
            return ()
        attributes = {
            k: v
            for k, v in vars(what).items()
            if k not in _CLASS_OWN and not isinstance(v, _PLACES)
        }

        def put_attributes() -> None:
            for name in [k for k in vars(what) if k not in attributes and k not in _CLASS_OWN]:
                if not isinstance(vars(what)[name], _PLACES):
                    type.__delattr__(what, name)
            for name, value in attributes.items():
                if vars(what).get(name, _ABSENT) is not value:
                    type.__setattr__(what, name, value)

        self.memento.add_put(put_attributes)
        if "_abc_impl" in vars(what):
            known = registered(what)
            self.memento.add_put(lambda: _put_registered(what, known))
        bases = what.__bases__
        self.memento.add_put(lambda: _put_bases(what, bases))
        return [*attributes.values(), *bases]

    def _remember_memoised(self, what: Any) -> Iterable[Any]:
        kept = read_settable(what)
        if kept is None:
            return self._note_opaque(what)
        self._count_copy(kept.entries, _ITEM)

        def put_entries() -> None:
            if not read_kept(what).is_kept(kept):
                set_kept(what, kept)

        self.memento.add_put(put_entries)
        parts = ((each.args, each.kwargs, each.result) for each in kept.entries)
        return [vars(what), *itertools.chain.from_iterable(parts)]

    def _remember_mapping_view(self, what: Any) -> Iterable[Any]:
        """Whoever holds the dict may change it; through this nobody can."""
        (mapping,) = gc.get_referents(what)
        if type(mapping) is not dict:
            return self._note_opaque(what)
        keys, values = _split_items(mapping)
        self._count_copy(keys, _POINTER)
        self.memento.checks.append(functools.partial(_holds_items, mapping, keys, values))
        return [*keys, *values]

    def _remember_iterator(self, what: Any) -> Iterable[Any]:
        return self._note_opaque(what)

    def _remember_lock(self, what: Any) -> Iterable[Any]:
        """Others may wait for it: it is not taken or released for anybody."""
        locked = what.locked()
        self.memento.checks.append(lambda: what.locked() == locked)
        return ()

    def _remember_open_file(self, what: Any) -> Iterable[Any]:
        if what in (
            sys.stdout,
            sys.stderr,
            sys.stdin,
            sys.__stdout__,
            sys.__stderr__,
            sys.__stdin__,
        ):
            return ()
        return self._note_opaque(what)

    def _remember_numpy(self, what: Any) -> Iterable[Any]:
        if hasattr(what, "bit_generator") or type(what).__name__ == "RandomState":
            return self._remember_numpy_generator(what)
        if type(what).__name__ in {"dtype", "ufunc", "bool", "str_"} or hasattr(what, "item"):
            return ()
        if getattr(what, "__dict__", None):
            return self._remember_instance(what, "numpy")
        return self._note_opaque(what)

    def _remember_array(self, what: Any) -> Iterable[Any]:
        numpy = sys.modules["numpy"]
        if isinstance(what, numpy.memmap) or not self._reserve_bytes(what.nbytes):
            return self._note_opaque(what)  # the one is an open file
        require_readable(what)
        masked = isinstance(what, numpy.ma.MaskedArray)
        # past what a class of the user's makes of a view, and of a copy
        plain = what if masked else numpy.ndarray.view(what, numpy.ndarray)
        copied = plain.copy()
        self.memento.size += copied.nbytes
        shape, kind, nomask = copied.shape, copied.dtype, numpy.ma.nomask

        writeable = what.flags.writeable
        bare = getattr(what, "_mask", None) is nomask

        def put_array() -> None:
            if (what.shape, what.dtype) != (shape, kind):
                _put_form(numpy.ndarray, what, shape, kind)
            plain = what if masked else numpy.ndarray.view(what, numpy.ndarray)
            what.flags.writeable = plain.flags.writeable = True
            plain[...] = copied
            what.flags.writeable = writeable
            if bare:
                what._mask = nomask  # noqa: SLF001 - there is no other way back to it

        def has_form() -> bool:
            same = (what.shape, what.dtype) == (shape, kind)
            flat = not masked and what.flags.c_contiguous and what.nbytes == copied.nbytes
            return same or flat

        self.memento.add_put(put_array)
        self.memento.checks.append(lambda: has_form() and _may_write(what))
        return copied.ravel().tolist() if kind.hasobject else ()

    def _remember_numpy_generator(self, what: Any) -> Iterable[Any]:
        # RandomState has no other word
        bits = getattr(what, "bit_generator", None) or what._bit_generator  # noqa: SLF001
        state = bits.state
        self.memento.add_put(lambda: setattr(bits, "state", state))
        return ()

    def _remember_pandas(self, what: Any) -> Iterable[Any]:
        import pandas as pd

        if isinstance(what, pd.Index):
            names = list(what.names)
            self.memento.add_put(_put_names, what, names)
            return ()
        if isinstance(what, pd.api.extensions.ExtensionArray):
            copied = what.copy()
            self.memento.size += copied.nbytes
            self.memento.add_put(operator.setitem, what, _ALL, copied)
            self.memento.checks.append(lambda: what.dtype == copied.dtype)
            return ()
        # groups, windows and styles of a table
        return self._remember_instance(what, "pandas") if getattr(what, "__dict__", None) else ()

    def _remember_frame(self, what: Any) -> Iterable[Any]:
        import pandas as pd

        used = _count_table_bytes(what)
        if not self._reserve_bytes(used):
            return self._note_opaque(what)
        lazy = (
            int(pd.__version__.partition(".")[0]) >= 3
        )  # copies there are made when either is written to
        self.memento.size += 0 if lazy else used
        base: Any = pd.DataFrame if isinstance(what, pd.DataFrame) else pd.Series
        inside = object.__getattribute__(what, "__dict__")
        # past what a class of the user's makes of a copy
        plain = base._from_mgr(inside["_mgr"], inside["_mgr"].axes)  # noqa: SLF001
        plain.__dict__.update({k: v for k, v in inside.items() if k in _OF_FRAMES})
        copied = plain.copy(deep=not lazy)
        own = {k: v for k, v in inside.items() if k not in _OF_FRAMES}

        def put_state() -> None:
            state: Any = copied.copy(deep=not lazy).__getstate__()
            state.pop("_metadata", None)  # a list of its class: no frame has one of its own
            base.__setstate__(what, state)
            for name in inside.keys() - _OF_FRAMES - own.keys():
                del inside[name]
            inside.update(own)

        self.memento.add_put(put_state)
        arrays = (a for a in inside["_mgr"].arrays if getattr(a.dtype, "hasobject", False))
        objects = (each.ravel().tolist() for each in arrays)
        cells = [row for rows in objects if not _ATOMS.issuperset(map(type, rows)) for row in rows]
        return [*cells, *own.values(), *([type(what)] if is_class_of_users(type(what)) else ())]

    def _remember_polars(self, what: Any) -> Iterable[Any]:
        """A clone of its core costs nothing: rows are copied when either is written to."""
        polars = sys.modules["polars"]
        if isinstance(what, polars.LazyFrame | polars.Expr):
            return ()  # nobody changes a query
        slot = {polars.DataFrame: "_df", polars.Series: "_s"}.get(type(what))
        if slot is None:
            return self._remember_instance(what, "polars")
        core = getattr(what.clone(), slot)
        self.memento.add_put(lambda: setattr(what, slot, core.clone()))
        return ()

    def _reserve_bytes(self, size: int) -> bool:
        self._size -= size
        return self._size >= 0

    def _remember_instance(self, what: Any, module: str) -> Iterable[Any]:
        name = type(what).__name__
        top = module.partition(".")[0]
        if type(what) is object or is_environment(what):
            # nothing is in the one; the other is put back as the state of the process
            return ()
        if name in _PASSING or (
            module == "logging" and name in {"RootLogger", "Manager", "PlaceHolder"}
        ):
            return ()
        if top in _KEPT_OUT and not (top == "asyncio" and name in _ASYNC_VALUES):
            return () if name.endswith(("EventLoop", "Shell")) else self._note_opaque(what)
        if is_memory(type(what)):
            return self._remember_memory(what)
        children = self._remember_attributes(what)
        bare = not children and type(what).__flags__ & _HEAP == 0
        # of the latter other threads may have theirs
        if bare or (not is_class_of_users(type(what)) and _has_thread_locals(what)):
            return self._note_opaque(what)
        if is_class_of_users(type(what)):
            self.memento.add_put(_put_class, what, type(what))
        has_slots = any("__slots__" in vars(base) for base in type(what).__mro__)
        kind: Any = type(what)
        if keeps_native_state(kind) or not (children or has_slots):
            self.memento.dark.append(_format_type(what))
        return [*children, *((type(what),) if is_class_of_users(type(what)) else ())]

    def _remember_memory(self, what: Any) -> Iterable[Any]:
        """A value of ctypes: the bytes at its place."""
        if not owns_memory(what):
            return self._note_opaque(what)
        ctypes = sys.modules["ctypes"]
        content, place = bytes(what), ctypes.addressof(what)
        self.memento.size += len(content)

        def put_bytes() -> None:
            if bytes(what) != content:
                ctypes.memmove(place, content, len(content))

        self.memento.add_put(put_bytes)
        return ()

    def _remember_attributes(self, what: Any) -> list[Any]:
        """Its `__dict__` and slots; of a plain container, nothing."""
        if type(what).__flags__ & _HEAP == 0 and not hasattr(what, "__dict__"):
            return []
        instance_dict = getattr(what, "__dict__", None)
        children: list[Any] = [] if not isinstance(instance_dict, dict) else [instance_dict]
        for slot in _find_slots(type(what)):
            value = getattr(what, slot, _ABSENT)
            self.memento.add_put(_put_slot, what, slot, value)
            if value is not _ABSENT:
                children.append(value)
        return children

    _BY_KIND: ClassVar[tuple[tuple[Any, Callable[[Any, Any], Iterable[Any]]], ...]] = (
        (_PLAIN, _do_nothing),
        (list, _remember_list),
        (dict, _remember_dict),
        ((tuple, frozenset), _remember_frozen),
        (set, _remember_set),
        (collections.deque, _remember_deque),
        ((bytearray, array.array), _remember_buffer),
        (types.FunctionType, _remember_function),
        (types.CellType, _remember_closure_cell),
        (types.ModuleType, _remember_module),
        (types.MethodType, _remember_method),
        (types.BuiltinFunctionType, _remember_builtin),
        (functools.partial, _remember_partial),
        ((staticmethod, classmethod), _remember_wrapped),
        (type, _remember_class),
        (MEMOISED, _remember_memoised),
        (types.MappingProxyType, _remember_mapping_view),
        (_ITERATORS, _remember_iterator),
        ((io.StringIO, io.BytesIO), _remember_text_buffer),
        (OPEN_FILE, _remember_open_file),
        (LOCK, _remember_lock),
        (random.Random, _remember_random),
        (BaseException, _remember_exception),
        (decimal.Context, _remember_context),
        (threading.local, _remember_local),
    )


def _find_own_globals(function: types.FunctionType) -> dict[str, Any] | None:
    """The namespace that exec() ran its text in; None where that is the notebook's or a module's."""
    inside = function.__globals__
    module = sys.modules.get(str(inside.get("__name__")))
    if "__spec__" in inside or (module is not None and vars(module) is inside):
        return None
    return inside


def is_weakly_watched(what: Any) -> bool:
    """Whether a weak reference calls back when it goes, or refers to an object of the user's."""
    if not weakref.getweakrefcount(what) or isinstance(what, _ENDLESS):
        return False
    return is_class_of_users(type(what)) or any(
        each.__callback__ is not None for each in weakref.getweakrefs(what)
    )


def _count_table_bytes(table: Any) -> int:
    """Bytes of a frame or series of pandas: what `memory_usage` adds up in a millisecond."""
    arrays = table._mgr.arrays  # noqa: SLF001 - pandas gives them one by one else
    return int(table.index.memory_usage() + sum(each.nbytes for each in arrays))


def _may_write(array: Any) -> bool:
    """Whether an array can be written to, or made so: a view of one that cannot is not."""
    flags = array.flags
    return bool(flags.writeable or flags.owndata)


def _has_thread_locals(what: Any) -> bool:
    inside = getattr(what, "__dict__", None)
    values = inside.values() if isinstance(inside, dict) else ()
    return any(isinstance(each, threading.local) for each in values)


def _put_form(base: Any, array: Any, shape: tuple[int, ...], kind: Any) -> None:
    """The shape and the type of the items, by which the same memory is looked at."""
    base.shape.__set__(array, (array.size,))
    base.dtype.__set__(array, kind)
    base.shape.__set__(array, shape)


def _put_names(index: Any, names: list[Any]) -> None:
    if list(index.names) != names:
        index.names = names


def _put_partial(
    what: functools.partial[Any],
    function: Any,
    given: tuple[Any, ...],
    keywords: dict[str, Any],
    attributes: dict[str, Any],
) -> None:
    if what.func is not function or what.args is not given or what.keywords is not keywords:
        what.__setstate__((function, given, keywords, attributes))  # type: ignore[attr-defined]


def _put_exception(
    what: BaseException, given: tuple[Any, ...], cause: BaseException | None
) -> None:
    if what.args is not given:
        what.args = given
    if what.__cause__ is not cause:
        hides = what.__suppress_context__
        what.__cause__ = cause
        what.__suppress_context__ = hides


def _put_context(what: decimal.Context, was: decimal.Context) -> None:
    for name in DECIMAL_FIELDS:
        setattr(what, name, getattr(was, name))
    what.flags.update(was.flags)
    what.traps.update(was.traps)


def _put_class(what: Any, kind: type) -> None:
    if type(what) is not kind:
        object.__setattr__(what, "__class__", kind)


def _put_registered(abstract: type, known: list[type]) -> None:
    if registered(abstract) != known:
        set_registered(abstract, known)


def _split_items(what: dict[Any, Any]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Its keys and its values: two objects for the collector, not one for each item."""
    items = items_of(what)
    return tuple(map(_FIRST, items)), tuple(map(_SECOND, items))


def _holds_items(what: dict[Any, Any], keys: tuple[Any, ...], values: tuple[Any, ...]) -> bool:
    """Whether these very objects are in it, in this order."""
    now_keys, now_values = _split_items(what)
    now, then = (*now_keys, *now_values), (*keys, *values)
    return len(now) == len(then) and all(map(operator.is_, now, then))


def _put_dict(what: dict[Any, Any], keys: tuple[Any, ...], values: tuple[Any, ...]) -> None:
    if _holds_items(what, keys, values):
        return
    kind = collections.OrderedDict if isinstance(what, collections.OrderedDict) else dict
    kind.clear(what)
    for key, value in zip(keys, values, strict=True):
        kind.__setitem__(what, key, value)


def _put_set(what: set[Any], items: set[Any]) -> None:
    if what != items:
        set.clear(what)
        set.update(what, items)


def _put_function(
    what: types.FunctionType,
    code: types.CodeType,
    doc: str | None,
    defaults: tuple[Any, ...] | None,
    keywords: dict[str, Any],
    attributes: dict[str, Any],
) -> None:
    what.__doc__ = doc
    if unwrapped.code_of(what) is not code:
        what.__code__ = code
    if what.__defaults__ is not defaults:
        what.__defaults__ = defaults
    if keywords != (what.__kwdefaults__ or {}):
        what.__kwdefaults__ = dict(keywords) or None
    unwrapped.put_attributes(what, attributes)


def _put_annotations(
    function: types.FunctionType, mapping: dict[str, Any], items: dict[str, Any]
) -> None:
    function.__annotations__ = mapping
    mapping.clear()
    mapping.update(items)


def _put_closure_cell(what: types.CellType, content: Any) -> None:
    if content is not _ABSENT:
        what.cell_contents = content
    else:
        with contextlib.suppress(ValueError):
            del what.cell_contents


def _put_bases(what: type, bases: tuple[type, ...]) -> None:
    if what.__bases__ != bases:
        what.__bases__ = bases


def _put_slot(what: Any, slot: str, value: Any) -> None:
    if getattr(what, slot, _ABSENT) is value:
        return
    if value is _ABSENT:
        object.__delattr__(what, slot)
    else:
        object.__setattr__(what, slot, value)


def _find_slots(kind: type) -> Iterator[str]:
    for each in kind.__mro__:
        declared = each.__dict__.get("__slots__", ())
        for slot in (declared,) if isinstance(declared, str) else declared:
            if slot not in {"__dict__", "__weakref__"}:
                yield (
                    f"_{each.__name__.lstrip('_')}{slot}"
                    if slot.startswith("__") and not slot.endswith("__")
                    else slot
                )


def _format_type(what: Any) -> str:
    kind = type(what)
    if kind.__module__ in {"builtins", "__main__"}:
        return kind.__qualname__
    return f"{kind.__module__}.{kind.__qualname__}"
