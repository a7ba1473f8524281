"""The state of an object that cannot be written, by value: a digest, and those fields that are
short.

Equal states give equal digests in every process: no address, no order of a set or dict, no hash
seed is in them. An object's own code never runs (no property, `__getattr__`, `__eq__`, `__repr__`):
its slots and its `__dict__` are read.

What holds no value counts by its type: handles (a connection, a client, a socket, a generator), and
objects of libraries that hold one. What is too large is looked at in samples. Both are named in
`less`: two such may well differ.
"""

from __future__ import annotations

import array
import collections
import enum
import functools
import hashlib
import inspect
import io
import itertools
import logging
import queue
import re
import sys
import threading
import types
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

from tape_jupyter.cassette.match_key import canonical
from tape_jupyter.core.moved_folders import MovedFolders
from tape_jupyter.core.open_file import OPEN_FILE
from tape_jupyter.core.user_code import is_users, root_module
from tape_jupyter.dataflow.fingerprint import arrays
from tape_jupyter.dataflow.fingerprint.unwrapped import code_of, is_decorated, unwrap
from tape_jupyter.encoding.values import stdlib
from tape_jupyter.encoding.values.placeholders import StandIn
from tape_jupyter.encoding.values.registry import freeze
from tape_jupyter.encoding.values.user_classes import own_dict
from tape_jupyter.secrets.masked_values import MaskedValues

NODES, LIBRARY_NODES, DEPTH = 5_000, 1_000, 50
"""How many objects are looked at in one value, how many of them in one object of a library, and how
deep.
"""
BYTES, TEXT = 4 << 20, 1 << 20
"""Bytes of buffers and of texts that are read whole in one value; of what is beyond them, samples."""
SAMPLES, SAMPLE = 64, 4_096
STATE, FIELDS, LESS = "state", "fields", "less"
"""Keys of a record beside `<opaque>`."""
SHOWN, MOST_SHOWN = 400, 50
"""Characters of a field that is shown, and items of a container in it; of a longer one its digest
is.
"""
_LOCKS = (
    type(threading.Lock()), type(threading.RLock()), threading.Condition, threading.Event, threading.Semaphore,
    threading.Barrier, threading.local,
)  # fmt: skip
_WEAK: tuple[type, ...] = (weakref.ReferenceType, *weakref.ProxyTypes)
_BUILT_ON: tuple[Any, ...] = (str, int, float, bytes)
_NAMED = (type, types.FunctionType, types.MethodType)
_ATOMS = frozenset({type(None), bool, int, float, str})
_BOXES = (list, tuple, dict, set, frozenset, collections.deque)
_HELD_BACK = re.compile(
    r"(?:.*_)?(?:password|passwd|passphrase|secret|token|api_?key|credentials?)", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class ObjectState:
    """`digest` is of all that counts, `fields` are for people and for comparing, `less` names what
    counts by type or in part, with a number for each of those objects that is good in this process
    (never written).
    """

    digest: str
    fields: dict[str, Any]
    less: dict[str, tuple[int, ...]]

    def record(self) -> dict[str, Any]:
        """What a cassette says of it, beside its type."""
        parts = {FIELDS: self.fields, LESS: list(self.less)}
        return {STATE: self.digest, **{name: each for name, each in parts.items() if each}}


def state_by_value(
    value: Any, masked: MaskedValues, name: str, folders: MovedFolders | None = None
) -> ObjectState:
    """The state of an argument of that name; texts in it name `folders` as they were recorded. Never
    raises: what cannot be looked at counts by its type.
    """
    walk = _Walk(masked, folders)
    try:
        part = walk.digest_value(value, name, 0)
        fields = walk.fields(value, name)
    except (Exception, RecursionError):  # another thread changes it meanwhile
        part = walk.handle(value, name)
        fields = {}
    return ObjectState(
        _compute_digest(object_type_name(value), part.digest)[:16], fields, walk.less
    )


def object_type_name(value: Any) -> str:
    """`module.Class` of an object, whatever it says of itself."""
    kind = type(value)
    return f"{kind.__module__}.{kind.__qualname__}"


class _Part(NamedTuple):
    """A value that was looked at: its digest, and what there is to show of it."""

    digest: str
    preview: Any


class _Handle(Exception):
    """An object of a library reaches something that holds no value."""


class _Walk:
    """Goes through one value. `open` are the containers around the present one, by address: their
    depth.
    """

    def __init__(self, masked: MaskedValues, folders: MovedFolders | None = None) -> None:
        self.masked, self._folders = masked, folders
        self.less: dict[str, tuple[int, ...]] = {}
        self._open: dict[int, int] = {}
        # keeps the value: a freed address may be given out again
        self._done: dict[int, tuple[Any, _Part]] = {}
        self._nodes, self._bytes, self._texts = NODES, BYTES, TEXT
        self._quiet = 0
        """How many containers are open of which nothing is shown."""
        self._library = 0
        """How many objects may still be looked at in the object of a library that is open; 0: none
        is.
        """

    def fields(self, value: Any, name: str) -> dict[str, Any]:
        """The attributes of an object, or the items of a container, each as it is shown."""
        kind = type(value)  # `isinstance` would ask the object for its `__class__`
        if not issubclass(kind, _BOXES) and (_is_library(kind) or issubclass(kind, _NAMED)):
            return {}
        preview = self.digest_value(value, name, 0).preview
        if isinstance(preview, dict) and "<object>" in preview:
            return dict(preview.get("fields", {}))
        if isinstance(preview, dict) and not any(key.startswith("<") for key in preview):
            return preview
        return {} if isinstance(preview, dict) else {"value": preview}

    def digest_value(self, value: Any, at: str, depth: int) -> _Part:
        kind = type(value)
        if kind in _ATOMS:
            return self._digest_atom(value, at)
        if (known := self._done.get(id(value))) is not None:
            return known[1]
        if (above := self._open.get(id(value))) is not None:
            return _build_part("cycle", depth - above)
        self._count_node(depth)
        if self._nodes < 0 or depth > DEPTH:
            return self._cut_value(value, at)
        self._open[id(value)] = depth
        try:
            part = self._digest_object(value, kind, at, depth)
        finally:
            del self._open[id(value)]
        self._done[id(value)] = (value, part)
        return part

    def _count_node(self, depth: int) -> None:
        self._nodes -= 1
        if self._library:
            self._library -= 1
            if self._library <= 0 or depth > DEPTH:
                raise _Handle

    def handle(self, value: Any, at: str) -> _Part:
        """What holds no value: it counts by its type."""
        if self._library:
            raise _Handle
        self._note_less(f"{at} ({object_type_name(value)})", value)
        return _build_part("handle", object_type_name(value))

    def _note_less(self, name: str, value: Any) -> None:
        self.less[name] = (*self.less.get(name, ()), _number_object(value))

    def _cut_value(self, value: Any, at: str) -> _Part:
        self._note_less(f"{at} (too large to be looked at whole)", value)
        return _build_part("cut", object_type_name(value))

    def _digest_atom(self, value: Any, at: str) -> _Part:
        if type(value) is not str:
            return _Part(canonical([type(value).__name__, value]), value)
        value = self._as_recorded(value)
        if len(value) > SHOWN:
            return self._digest_long_text(value, at)
        text, preview = self._mask_text(value, at)
        return _Part(canonical(["str", text]), preview)

    def _as_recorded(self, value: Any) -> Any:
        """A text, or the structure of a value."""
        return self._folders.recorded(value) if self._folders else value

    def _digest_long_text(self, value: str, at: str) -> _Part:
        text, _ = self._mask_text(value, at) if len(value) <= self._texts else (value, "")
        self._texts -= len(text)
        if self._texts < 0:
            return self._digest_sampled_text(
                memoryview(value.encode("utf-8", "surrogatepass")), value, at
            )
        return _build_digest_part("str", len(value), text)

    def _mask_text(self, text: str, at: str) -> tuple[str, str]:
        """A text as it counts and as it is shown, without the secrets in it."""
        name, secrets = at.rpartition(".")[2], self.masked.secrets
        if text and _HELD_BACK.fullmatch(name) and not text.startswith("<secret:"):
            mark = f"<secret:{name}>"
            return f"{mark} {self.masked.add(at, text)}", mark
        if not secrets.suspicious(text):
            return text, text
        scrubbed = secrets.scrub(text)[0]
        before = len(self.masked.parts)
        self.masked.compare(text, scrubbed, at)
        return " ".join([scrubbed, *self.masked.parts[before:]]), scrubbed

    # ------------------------------------------------------------ by kind

    # one kind a line
    def _digest_object(self, value: Any, kind: type, at: str, depth: int) -> _Part:  # noqa: C901, PLR0911
        if issubclass(kind, enum.Enum):
            return _build_part("enum", f"{object_type_name(value)}.{own_dict(value).get('_name_')}")
        if issubclass(kind, _BOXES):
            return self._digest_container(value, kind, at, depth)
        if (way := _LOOKS.get(kind)) is not None:
            return way(self, value, at, depth)
        if kind in stdlib.BY_TYPE and kind is not types.SimpleNamespace:
            structure = self._as_recorded(freeze(value))
            return _Part(canonical(["frozen", structure]), structure)
        if (module := root_module(kind)) and (table := arrays.table_of(module, value)) is not None:
            return self._digest_table(value, table, at, depth)
        if issubclass(kind, type):
            return _build_part("class", f"{value.__module__}.{value.__qualname__}")
        if issubclass(kind, _LOCKS):
            return self._digest_lock(value)
        if issubclass(kind, logging.Logger):
            return _build_part("logger", str(own_dict(value).get("name")))
        if issubclass(kind, io.StringIO):
            return self.digest_value(io.StringIO.getvalue(value), at, depth)
        if issubclass(kind, io.BytesIO):
            return self.digest_value(io.BytesIO.getvalue(value), at, depth)
        if issubclass(kind, OPEN_FILE):
            return self._digest_file(value, at)
        if StandIn in kind.__mro__:
            return self.handle(value, at)
        return self._digest_instance(value, kind, at, depth)

    def _digest_container(self, value: Any, kind: type, at: str, depth: int) -> _Part:
        base: Any = next(each for each in _BOXES if issubclass(kind, each))
        if issubclass(kind, dict):
            content = self.items(dict.items(value), at, depth)
        elif issubclass(kind, set | frozenset):
            members = self._digest_each([(each, f"{at}[]") for each in base.__iter__(value)], depth)
            content = self._join_parts("set", sorted(members, key=lambda part: part.digest))
        else:
            content = self._digest_sequence(list(base.__iter__(value)), at, depth)
        attributes = {} if kind in _BOXES else _collect_attributes(value)
        if kind in _BOXES:
            return _Part(_compute_digest(base.__name__, content.digest), content.preview)
        if attributes:
            fields = self._digest_fields(attributes, at, depth)
        else:
            fields = _build_part("no fields", "")
        return _Part(
            _compute_digest(object_type_name(value), content.digest, fields.digest), content.preview
        )

    def _digest_sequence(self, items: list[Any], at: str, depth: int) -> _Part:
        if len(items) > 8 and set(map(type, items)) <= _ATOMS - {str}:
            return _build_digest_part("list", len(items), canonical(items))
        return self._join_parts(
            "list", self._digest_each([(each, f"{at}[{n}]") for n, each in enumerate(items)], depth)
        )

    def _digest_each(self, items: list[tuple[Any, str]], depth: int) -> list[_Part]:
        """Each of several values; of many none is shown."""
        many = len(items) > MOST_SHOWN
        self._quiet += many
        parts = [self.digest_value(each, at, depth + 1) for each, at in items]
        self._quiet -= many
        return parts

    def items(self, items: Iterable[tuple[Any, Any]], at: str, depth: int) -> _Part:
        pairs = list(items)
        if all(type(key) is str for key, _ in pairs):
            named = {self._as_recorded(key): each for key, each in pairs}
            return self._digest_fields(named, at, depth)
        keys = self._digest_each([(key, f"{at} key") for key, _ in pairs], depth)
        values = self._digest_each(
            [(each, f"{at}[{n}]") for n, (_, each) in enumerate(pairs)], depth
        )
        looked = sorted(zip(keys, values, strict=True), key=lambda pair: pair[0].digest)
        return self._join_parts("items", [self._join_parts("", pair) for pair in looked])

    def _digest_fields(self, fields: dict[str, Any], at: str, depth: int) -> _Part:
        """Named values, in the order of their names."""
        names = sorted(fields)
        looked = dict(
            zip(
                names,
                self._digest_each([(fields[name], f"{at}.{name}") for name in names], depth),
                strict=True,
            )
        )
        digest = _compute_digest(
            "dict", *(each for name, part in looked.items() for each in (name, part.digest))
        )
        preview = {_escape_name(name): part.preview for name, part in looked.items()}
        if depth:
            return _Part(digest, self._shorten_shown(preview, digest, "dict", len(preview)))
        few = list(looked.items())[:MOST_SHOWN]
        return _Part(
            digest,
            {
                _escape_name(name): self._shorten_shown(part.preview, part.digest, "field")
                for name, part in few
            },
        )

    def _join_parts(self, what: str, parts: Sequence[_Part]) -> _Part:
        digest = _compute_digest(what, *(part.digest for part in parts))
        preview = [part.preview for part in parts[:MOST_SHOWN]]
        return _Part(
            digest, self._shorten_shown(preview, digest, f"{what}, {len(parts)}", len(parts))
        )

    def _shorten_shown(self, preview: Any, digest: str, what: str, size: int = 0) -> Any:
        """What is shown of a container, if that is short."""
        if not self._quiet and size <= MOST_SHOWN and len(canonical(preview)) <= SHOWN:
            return preview
        return {"<digest>": _compute_digest(digest)[:16], "of": what}

    def _digest_instance(self, value: Any, kind: type, at: str, depth: int) -> _Part:
        attributes = _collect_attributes(value)
        if issubclass(kind, BaseException):
            attributes["args"] = BaseException.__dict__["args"].__get__(value)
        elif (
            base := next((each for each in _BUILT_ON if issubclass(kind, each)), None)
        ) is not None:
            if base is bytes:
                attributes["<value>"] = base(memoryview(value))
            else:
                attributes["<value>"] = base.__getnewargs__(value)[0]
        elif _is_library(kind):
            return self._digest_library_object(value, attributes, at, depth)
        looked = self._digest_fields(attributes, at, depth)
        name = object_type_name(value)
        return _Part(
            _compute_digest("object", name, looked.digest),
            {"<object>": name, "fields": looked.preview},
        )

    def _digest_library_object(
        self, value: Any, attributes: dict[str, Any], at: str, depth: int
    ) -> _Part:
        """One digest for an object of a library, if all that it holds has a value."""
        if not attributes:
            return self.handle(value, at)
        if self._library:
            return _Part(
                _compute_digest(
                    "object",
                    object_type_name(value),
                    self._digest_fields(attributes, at, depth).digest,
                ),
                "",
            )
        masked, self.masked = self.masked, MaskedValues(self.masked.place, self.masked.secrets)
        done, self._done, self._library = self._done, {}, LIBRARY_NODES
        try:
            digest = _compute_digest(
                "object", object_type_name(value), self._digest_fields(attributes, at, depth).digest
            )
        except _Handle:
            digest = ""
        finally:
            inner, self.masked = self.masked, masked
            self._done, self._library = done, 0
        if not digest:
            return self.handle(value, at)
        masked.include(inner)
        return _Part(digest, {"<library>": object_type_name(value), "digest": digest[:16]})

    def _digest_lock(self, value: Any) -> _Part:
        """A lock has no value of its own; in an object of a library it tells that others work with
        that.
        """
        if self._library:
            raise _Handle
        return _build_part("lock", object_type_name(value))

    def _digest_file(self, value: Any, at: str) -> _Part:
        if self._library:
            raise _Handle
        values = []
        for field in ("name", "mode") if type(value).__module__ in ("_io", "tempfile") else ():
            field_value = getattr(value, field, "")
            values.append(field_value if isinstance(field_value, str) else "")
        self.handle(value, at)
        return _build_part("file", " ".join(values))

    def _digest_table(self, value: Any, table: arrays.ArrayTable, at: str, depth: int) -> _Part:
        digests = [
            table.head,
            *(self._digest_buffer(buffer, value, at) for buffer in table.buffers),
        ]
        for each in table.values:
            if isinstance(each, arrays.ArrayTable):
                digests.append(self._digest_table(value, each, at, depth).digest)
            elif isinstance(each, arrays.Objects):
                digests += [
                    self.digest_value(item, at, depth + 1).digest
                    for item in self._iterate_values(each, value, at)
                ]
            else:
                digests.append(self.digest_value(each, at, depth + 1).digest)
        return _build_digest_part("table", table.head[:80], _compute_digest(*digests))

    def _iterate_values(self, objects: arrays.Objects, value: Any, at: str) -> Iterator[Any]:
        for piece in objects.pieces(SAMPLE):
            if self._nodes < 0:
                self._cut_value(value, at)
                return
            yield piece

    def _digest_buffer(self, buffer: Any, value: Any, at: str) -> str:
        size = arrays.size_of(buffer)
        self._bytes -= size
        fresh = hashlib.blake2b(str(size).encode(), digest_size=16)
        if self._bytes >= 0:
            for piece in arrays.buffer_pieces(buffer, 1 << 20):
                fresh.update(piece)
            return fresh.hexdigest()
        self._cut_value(value, at)
        with suppress(Exception):
            flat = memoryview(buffer).cast("B")
            for start in range(0, max(1, len(flat) - SAMPLE), max(1, len(flat) // SAMPLES)):
                fresh.update(flat[start : start + SAMPLE])
        return fresh.hexdigest()

    def _digest_sampled_text(self, data: memoryview, value: Any, at: str) -> _Part:
        return _build_digest_part("text", len(data), self._digest_buffer(data, value, at))

    def bytes_like(self, value: Any, at: str, _depth: int) -> _Part:
        return _build_digest_part(
            type(value).__name__, len(value), self._digest_buffer(value, value, at)
        )

    def function(self, value: types.FunctionType, at: str, depth: int) -> _Part:
        name = f"{value.__module__}.{value.__qualname__}"
        contents = []
        for cell in value.__closure__ or ():
            with suppress(ValueError):
                contents.append(cell.cell_contents)
        inner = [
            self.digest_value(each, at, depth + 1).digest
            for each in (value.__defaults__, value.__kwdefaults__, contents)
        ]
        digest = _compute_digest("function", name, _digest_code(find_recorded_code(value)), *inner)
        return _Part(digest, {"<code>": name, "digest": digest[:16]})

    def method(self, value: Any, at: str, depth: int) -> _Part:
        """A bound method, Python's or C's."""
        owner = value.__self__
        name = f"{getattr(value, '__module__', None)}.{value.__name__}"
        if owner is None or isinstance(owner, types.ModuleType):
            return _build_part("builtin", name)
        inner = self.digest_value(owner, at, depth + 1)
        body = ""
        if hasattr(value, "__func__") and hasattr(value.__func__, "__code__"):
            body = _digest_code(find_recorded_code(value.__func__))
        digest = _compute_digest("method", name, body, inner.digest)
        return _Part(digest, {"<code>": name, "of": inner.preview})

    def partial(self, value: functools.partial[Any], at: str, depth: int) -> _Part:
        parts = [
            self.digest_value(each, at, depth + 1)
            for each in (value.func, value.args, value.keywords)
        ]
        return _Part(
            _compute_digest("partial", *(part.digest for part in parts)),
            self._join_parts("partial", parts).preview,
        )

    def waiting(self, value: Any, at: str, depth: int) -> _Part:
        if hasattr(value, "queue"):
            return self.digest_value(list(value.queue), at, depth)
        return self.handle(value, at)

    def fields_of(self, value: Any, at: str, depth: int) -> _Part:
        return self.items(vars(value).items(), at, depth)


_Way = Callable[[_Walk, Any, str, int], _Part]
_LOOKS: dict[type, _Way] = {
    types.FunctionType: _Walk.function,
    types.MethodType: _Walk.method,
    types.BuiltinFunctionType: _Walk.method,
    functools.partial: _Walk.partial,
    types.ModuleType: lambda _walk, value, _at, _depth: _build_part("module", str(value.__name__)),
    types.MappingProxyType: lambda walk, value, at, depth: walk.items(
        dict(value).items(), at, depth
    ),
    types.SimpleNamespace: _Walk.fields_of,
    re.Pattern: lambda _walk, value, _at, _depth: _build_part(
        "pattern", [repr(value.pattern), int(value.flags)]
    ),
    bytes: _Walk.bytes_like,
    bytearray: _Walk.bytes_like,
    array.array: _Walk.bytes_like,
    queue.Queue: _Walk.waiting,
    queue.LifoQueue: _Walk.waiting,
    queue.PriorityQueue: _Walk.waiting,
    **dict.fromkeys(_WEAK, lambda _walk, _value, _at, _depth: _build_part("weak", "")),
}


def _is_library(kind: type) -> bool:
    """Whether a class is part of Python or of a package that is installed."""
    module = kind.__module__
    return isinstance(module, str) and not is_users(module) and module in sys.modules


def _collect_attributes(value: Any) -> dict[str, Any]:
    """The attributes that an object holds in its slots and its dict; members that C code made are
    none.
    """
    attributes: dict[str, Any] = {}
    for kind in reversed(type(value).__mro__):
        namespace = vars(kind)
        if isinstance(namespace.get("__slots__"), Iterable):
            for name, slot in namespace.items():
                if type(slot) is types.MemberDescriptorType and name != "__pydantic_fields_set__":
                    with suppress(AttributeError):  # a slot that was never set
                        attributes[name] = slot.__get__(value)
    return attributes | own_dict(value)


_numbers = itertools.count(1)
_living: dict[int, tuple[weakref.ref[Any], int]] = {}
"""By address: objects that were met, and their numbers."""


def _number_object(value: Any) -> int:
    """A number of an object, the same as long as it lives. What is read once only is another thing
    each time.
    """
    kind, address = type(value), id(value)
    if hasattr(kind, "__next__") or hasattr(kind, "__anext__"):
        return next(_numbers)
    known = _living.get(address)
    if known is not None and known[0]() is value:
        return known[1]
    try:
        living = weakref.ref(value, lambda _: _living.pop(address, None))
    except TypeError:
        return -address  # what cannot be watched is known by its address
    _living[address] = (living, next(_numbers))
    return _living[address][1]


def _escape_name(name: str) -> str:
    """A name as it is shown: none is taken for a mark."""
    return f"\\{name}" if name[:1] in ("<", "\\") else name


def _compute_digest(*texts: str) -> str:
    fresh = hashlib.blake2b(digest_size=16)
    for text in texts:
        data = text.encode("utf-8", "surrogatepass")
        fresh.update(b"%d:" % len(data))
        fresh.update(data)
    return fresh.hexdigest()


def _build_part(what: str, content: Any) -> _Part:
    """What is known by a few words."""
    return _Part(canonical([what, content]), {f"<{what}>": content})


def _build_digest_part(what: str, size: Any, text: str) -> _Part:
    digest = _compute_digest(what, str(size), text)
    return _Part(digest, {"<digest>": digest[:16], "of": f"{what}, {size}"})


def find_recorded_code(function: Any) -> types.CodeType:
    """The code whose digest recordings hold: its own; the user's own where ours holds an object, which
    is another in each process.
    """
    code: types.CodeType = function.__code__
    if not isinstance(function, types.FunctionType):
        return code
    if code.co_flags & _GENERATORS and isinstance(body := unwrap(function), types.FunctionType):
        return code_of(body)
    if code.co_name in _FORWARDERS and is_decorated(function):
        return _FORWARDERS[code.co_name]
    return code_of(function)


def _build_forwarders(record: Any = None) -> dict[str, types.CodeType]:
    """The code of what a decorator of ours puts in a function's place, as it was when recordings began
    to hold digests of it: what is recorded is found whatever that code is now.
    """

    def forward(*args: Any, **kwargs: Any) -> Any:
        return record.call(*args, **kwargs)

    async def wait(*args: Any, **kwargs: Any) -> Any:
        return await record.call_async(*args, **kwargs)

    return {each.__name__: each.__code__ for each in (forward, wait)}


_FORWARDERS = _build_forwarders()


_GENERATORS = inspect.CO_GENERATOR | inspect.CO_ASYNC_GENERATOR


def _digest_code(code: types.CodeType) -> str:
    """A digest of what a function does, under this version of Python."""
    consts = [
        _digest_code(each) if isinstance(each, types.CodeType) else _format_constant(each)
        for each in code.co_consts
    ]
    names = (*code.co_names, "", *code.co_varnames, "", *code.co_freevars)
    return _compute_digest(code.co_name, code.co_code.hex(), *names, *consts)


def _format_constant(value: Any) -> str:
    if isinstance(value, frozenset):
        return " ".join(sorted(map(_format_constant, value)))
    if isinstance(value, tuple):
        return f"({' '.join(map(_format_constant, value))})"
    return f"{type(value).__name__} {value!r}"
