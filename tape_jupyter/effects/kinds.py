"""The kinds of objects that keep a program's state: how each is looked at, compared and put back.

A *look* is a shallow copy of what an object holds. Two looks at one object say what became of it;
what is inside of it is looked at on its own, so that objects which many others refer to stay those
very objects.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import queue
import sys
import tempfile
import threading
import weakref
from collections import OrderedDict, UserDict, UserList, defaultdict, deque
from collections.abc import Collection, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import is_dataclass
from enum import Enum, EnumMeta
from operator import is_
from types import (
    BuiltinFunctionType,
    FunctionType,
    GetSetDescriptorType,
    MethodType,
    ModuleType,
    SimpleNamespace,
)
from typing import Any, Protocol

from tape_jupyter.core.libraries import is_library_class, is_library_file
from tape_jupyter.core.user_code import is_class_statement
from tape_jupyter.effects import whole_objects
from tape_jupyter.effects.hidden_state import hides_state
from tape_jupyter.effects.paths import MODEL_STATE, Step, is_model
from tape_jupyter.effects.scope import NAMES
from tape_jupyter.encoding.values.user_classes import slots_of, state_of

SCALARS = frozenset({str, int, float, bool, complex, bytes, type(None)})

MISSING = object()


class Kind(Protocol):
    """How objects of some types are handled."""

    def copy_state(self, value: Any) -> Any:
        """What the object holds, as a copy that later changes do not touch."""

    def same(self, before: Any, now: Any) -> bool:
        """Whether two looks show the same."""

    def inside(self, state: Any) -> Iterator[tuple[Step, Any]]:
        """What it refers to."""


def is_same_value(one: Any, other: Any) -> bool:
    """The same object, or scalars of one type and value."""
    if one is other:
        return True
    kind = type(one)
    return (
        kind is type(other)
        and kind in SCALARS
        and (one == other or repr(one) == repr(other) == "nan")
    )


def _has_same_items(before: Collection[Any], now: Collection[Any]) -> bool:
    return len(before) == len(now) and (
        all(map(is_, before, now)) or all(map(is_same_value, before, now))
    )


def _has_same_mapping(before: Mapping[Any, Any], now: Mapping[Any, Any]) -> bool:
    return _has_same_items(before, now) and _has_same_items(before.values(), now.values())


class SequenceKind:
    """list, deque and what is derived of them."""

    def copy_state(self, value: Any) -> list[Any]:
        return list(base_of(type(value)).__iter__(value))

    same = staticmethod(_has_same_items)

    def inside(self, state: list[Any]) -> Iterator[tuple[Step, Any]]:
        for index, item in enumerate(state):
            if type(item) not in SCALARS:
                yield ("item", index), item


WEAK = (weakref.WeakSet, weakref.WeakValueDictionary, weakref.WeakKeyDictionary)
_CONTAINERS = frozenset({list, deque, OrderedDict, dict, set, *WEAK})


def base_of(kind: type) -> Any:
    """The container of Python's own that a class is derived of: its methods are past any code of
    the user's.
    """
    if kind in _CONTAINERS:
        return kind
    return next(base for base in kind.__mro__ if base in _CONTAINERS)


class Tuple(SequenceKind):
    """What holds others and never changes."""

    def copy_state(self, value: Any) -> list[Any]:
        return list(tuple.__iter__(value))

    def same(self, _before: Any, _now: Any) -> bool:
        return True


class MappingKind:
    """dict and what is derived of it."""

    def copy_state(self, value: Any) -> dict[Any, Any]:
        if isinstance(value, OrderedDict):  # its order is not that of the dict inside of it
            return {key: dict.__getitem__(value, key) for key in list(OrderedDict.__iter__(value))}
        if isinstance(value, (weakref.WeakValueDictionary, weakref.WeakKeyDictionary)):
            return dict(value.items())
        if type(value) is dict:
            return dict.copy(value)  # in one step: another thread may change it meanwhile
        return dict(list(dict.items(value)))  # in its own order, whatever it shows

    same = staticmethod(_has_same_mapping)

    def inside(self, state: dict[Any, Any]) -> Iterator[tuple[Step, Any]]:
        for number, (key, item) in enumerate(state.items()):
            if type(item) not in SCALARS:
                yield (("item", key) if type(key) in (str, int) else ("nth", number)), item


class SetKind:
    """set and what is derived of it."""

    def copy_state(self, value: Any) -> set[Any]:
        return set(base_of(type(value)).__iter__(value))

    def same(self, before: set[Any], now: set[Any]) -> bool:
        return before == now

    def inside(self, state: set[Any]) -> Iterator[tuple[Step, Any]]:
        for item in state:
            if type(item) not in SCALARS:
                yield ("member", None), item


CONTAINER_KINDS = (SequenceKind, MappingKind, SetKind)


class Attributes:
    """An object with attributes: those in its slots and its dict; and which of the user's classes
    it is of.
    """

    def copy_state(self, value: Any) -> dict[str, Any]:
        state, kind = state_of(value), type(value)
        if not is_library_class(kind):
            state["__class__"] = kind
        return state

    same = staticmethod(_has_same_mapping)
    is_same_part = staticmethod(is_same_value)

    def inside(self, state: dict[str, Any]) -> Iterator[tuple[Step, Any]]:
        for name, item in state.items():
            if type(item) not in SCALARS:
                yield ("attribute", name), item


ELEMENT_TEXTS = ("tag", "text", "tail")
ELEMENT_PARTS = (*ELEMENT_TEXTS, "attrib", "children")


class ElementKind(Attributes):
    """An element of `xml.etree`: what is written in it, and the elements in it."""

    def copy_state(self, value: Any) -> dict[str, Any]:
        base: Any = element_base(type(value))
        if base is not type(value):  # past any code of a class derived of it
            texts = {name: vars(base)[name].__get__(value) for name in ELEMENT_TEXTS}
            parts = base.items(value), base.__getitem__(value, slice(None))
            return (
                state_of(value)
                | texts
                | dict(zip(ELEMENT_PARTS[3:], map(tuple, parts), strict=True))
            )
        return {
            "tag": value.tag,
            "text": value.text,
            "tail": value.tail,
            "attrib": tuple(value.items()),
            "children": tuple(value),
        }

    def same(self, before: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
        return before.keys() == now.keys() and all(
            map(self.is_same_part, before.values(), now.values())
        )

    @staticmethod
    def is_same_part(one: Any, other: Any) -> bool:
        if type(one) is type(other) is tuple:  # elements, or names with their texts
            return len(one) == len(other) and (all(map(is_, one, other)) or one == other)
        return is_same_value(one, other)

    def inside(self, state: dict[str, Any]) -> Iterator[tuple[Step, Any]]:
        for number, child in enumerate(state["children"]):
            yield ("item", number), child
        if len(state) > len(ELEMENT_PARTS):
            yield from super().inside({n: v for n, v in state.items() if n not in ELEMENT_PARTS})


class NamesKind(Attributes):
    """Variables, a function's closure, the environment (scope.py)."""

    def copy_state(self, value: Any) -> dict[str, Any]:
        state: dict[str, Any] = value.copy_state()
        return state

    def same(
        self, before: Mapping[str, Any], now: Mapping[str, Any]
    ) -> bool:  # their order says nothing
        return before.keys() == now.keys() and all(
            is_same_value(before[name], now[name]) for name in before
        )


class CodeHolder(NamesKind):
    """A class or a module of the user's: its attributes, and what the class is derived of. Of the
    functions in it only the user's count, and which they are: libraries set others when they please.
    """

    def copy_state(self, value: Any) -> dict[str, Any]:
        state = {
            n: v
            for n, v in vars(value).items()
            if not n.startswith("_abc_") and _is_programs_attribute(n, v)
        }
        if not isinstance(value, type):
            return state
        return state | {name: getattr(value, name, None) for name in CLASS_PARTS}

    def inside(self, state: Any) -> Iterator[tuple[Step, Any]]:
        for step, value in super().inside(state):
            if step[1] not in CLASS_PARTS and not _is_code(value):
                yield step, value


CLASS_PARTS = (
    "__bases__", "__name__", "__qualname__", "__module__", "__doc__", "__hash__", "__match_args__",
    "__abstractmethods__",
)  # fmt: skip
"""Of a class, what is named beside its attributes where it was changed; no recording sets it."""


class EnumMember(Attributes):
    """A member of an Enum of the user's: what it has beside what Python gives it (`_value_`)."""

    def copy_state(self, value: Any) -> dict[str, Any]:
        return {n: v for n, v in vars(value).items() if not (n[0] == n[-1] == "_")}


class WrapperKind(Attributes):
    """A library's function around one of the user's: its attributes."""

    def copy_state(self, value: FunctionType) -> dict[str, Any]:
        return {n: v for n, v in vars(value).items() if not n.startswith("__")}


class FunctionKind(WrapperKind):
    """A function of the user's: its attributes, what its parameters are where nothing is given, and
    its code.
    """

    def copy_state(self, value: FunctionType) -> dict[str, Any]:
        parts = {name: getattr(value, name) for name in FUNCTION_PARTS}
        parts |= {"__module__": value.__module__, "__code__": own_code(value).__code__}
        attributes = vars(value)
        if attributes:
            parts |= {
                name: attributes[name]
                for name in ("__wrapped__", "__signature__")
                if name in attributes
            }
        return super().copy_state(value) | parts

    def inside(self, state: dict[str, Any]) -> Iterator[tuple[Step, Any]]:
        yield from (pair for pair in super().inside(state) if is_settable_part(pair[0][1]))


FUNCTION_PARTS = ("__defaults__", "__kwdefaults__", "__doc__", "__name__", "__qualname__")
"""Of a function, what a recording sets beside its attributes."""


def is_settable_part(name: str) -> bool:
    """Whether a recording sets this attribute of a function."""
    return name in FUNCTION_PARTS or not name.startswith("__")


def is_settable(owner: Any, name: str) -> bool:
    """Whether a recording sets this attribute of an object. It decides not which code runs."""
    if isinstance(owner, FunctionType):
        return is_settable_part(name)
    return not (isinstance(owner, type | ModuleType) and name.startswith("__"))


def annotations_of(value: Any) -> Any:
    """What the parameters of a function or the attributes of a class are said to be, as a copy; None
    where they name what is not there.
    """
    try:
        namespace = (
            vars(value) if isinstance(value, type) else {"__annotations__": value.__annotations__}
        )
        return [*namespace.get("__annotations__", {}).items()]
    except Exception:  # from Python 3.14 on they are worked out when they are asked for
        return None


def own_code(function: FunctionType) -> FunctionType:
    """The function with the code that the user wrote: a taped one has ours where it stands."""
    swap = vars(function).get("__tape_swap__")
    body = getattr(getattr(swap, "taped", None), "body", None)
    return body if isinstance(body, FunctionType) else function


class HandlerKind(Attributes):
    """A handler of `logging`: what it lets through, and how; what it keeps records in, or hands them to."""

    def copy_state(self, value: Any) -> dict[str, Any]:
        return {n: v for n, v in vars(value).items() if n in _PARTS_OF_HANDLER}


KEEPS_RECORDS = ("buffer", "queue", "target")
"""Where a handler of `logging` has records, or the handler that gets them."""
_PARTS_OF_HANDLER = ("level", "filters", "formatter", *KEEPS_RECORDS)


class TraitsKind(Attributes):
    """A widget: what it shows."""

    def copy_state(self, value: Any) -> dict[str, Any]:
        traits = vars(value)["_trait_values"]
        return {n: v for n, v in traits.items() if not n.startswith("_") and n not in _PLUMBING}


_PLUMBING = frozenset({"comm", "keys", "layout", "style", "log", "tooltip", "tabbable"})


class ContextVariable:
    """A context variable of the program's: its value here."""

    def copy_state(self, value: ContextVar[Any]) -> dict[str, Any]:
        current = value.get(MISSING)
        return {} if current is MISSING else {"value": current}

    same = staticmethod(_has_same_mapping)

    def inside(self, state: dict[str, Any]) -> Iterator[tuple[Step, Any]]:
        for item in state.values():
            if type(item) not in SCALARS:
                yield ("context", None), item


SEQUENCE = SequenceKind()
TUPLE = Tuple()
MAPPING = MappingKind()
SET = SetKind()
ATTRIBUTES = Attributes()
NAMES_KIND = NamesKind()
CLASS, MODULE, FUNCTION, CONTEXT = CodeHolder(), CodeHolder(), FunctionKind(), ContextVariable()
TRAITS, HANDLER, WRAPPER, MEMBER = TraitsKind(), HandlerKind(), WrapperKind(), EnumMember()
ELEMENT = ElementKind()

_BY_TYPE: dict[type, Kind] = {
    list: SEQUENCE, deque: SEQUENCE, tuple: TUPLE, dict: MAPPING, set: SET,
    ContextVar: CONTEXT, SimpleNamespace: ATTRIBUTES,
    queue.Queue: ATTRIBUTES, queue.LifoQueue: ATTRIBUTES, queue.PriorityQueue: ATTRIBUTES,
    UserDict: ATTRIBUTES, UserList: ATTRIBUTES,
    **dict.fromkeys(NAMES, NAMES_KIND),
    weakref.WeakSet: SET, weakref.WeakValueDictionary: MAPPING, weakref.WeakKeyDictionary: MAPPING,
    contextlib.ExitStack: ATTRIBUTES, contextlib.AsyncExitStack: ATTRIBUTES,
    threading.local: ATTRIBUTES, tempfile.SpooledTemporaryFile: ATTRIBUTES,
    **whole_objects.BY_TYPE,
}  # fmt: skip

LOCKS = (type(threading.Lock()), type(threading.RLock()), asyncio.Lock)


def is_locked(lock: Any) -> bool:
    """Whether somebody holds a lock; of one that a thread may take twice, whether this one does."""
    owned = getattr(lock, "_is_owned", lock.locked if hasattr(lock, "locked") else None)
    return owned is not None and bool(owned())


LINKS = (MethodType, functools.partial, staticmethod, classmethod, property)
"""What holds functions and objects and has no state of its own."""

RESOURCES = frozenset([
    "anthropic", "openai", "google", "mistralai", "cohere", "groq", "boto3", "botocore", "httpx", "httpx2",
    "httpcore", "httpcore2", "aiohttp", "urllib3", "requests", "langsmith", "opentelemetry", "IPython",
    "ipykernel", "ipywidgets", "traitlets", "zmq", "tornado", "jupyter_client", "comm", "anywidget",
    "tape_jupyter", "matplotlib", "matplotlib_inline", "rich", "torch", "transformers", "tensorflow", "jax",
    "sklearn", "sqlalchemy", "psycopg", "psycopg2", "redis", "pymongo", "grpc", "websockets", "mcp", "fastmcp",
    "anyio", "sniffio", "litellm", "tenacity", "click", "typer", "wrapt", "pluggy", "_pytest", "pytest",
    "hypothesis", "tiktoken", "tokenizers", "langgraph_sdk", "instructor",
])  # fmt: skip
"""Packages whose objects are clients, connections and machinery: what they keep for themselves is
no state of the program's.
"""

STANDARD_MACHINERY = frozenset([
    "abc", "ast", "asyncio", "concurrent", "contextlib", "ctypes", "datetime", "decimal", "fractions",
    "functools", "http", "importlib", "inspect", "ipaddress", "logging", "multiprocessing", "numbers", "operator",
    "pathlib", "re", "selectors", "signal", "socket", "socketserver", "ssl", "string", "subprocess", "tempfile",
    "threading", "traceback", "types", "typing", "unittest", "urllib", "uuid", "warnings", "weakref", "xmlrpc",
    "zoneinfo",
])  # fmt: skip
"""The same of the standard library; and of values that never change."""

_STATE = frozenset(
    {"asyncio.queues", "_thread", "types", "urllib.request.Request", "unittest.suite"}
)

MACHINERY = (
    "langchain_core.callbacks.", "langchain_core.tracers.", "langchain_core.runnables.",
    "langchain_core.language_models.",
    "langgraph.pregel.", "langgraph.graph.", "langgraph.prebuilt.", "langgraph.channels.", "langgraph.managed.",
    "langgraph._internal.", "workflows.", "llama_index.core.workflow.", "llama_index.core.callbacks.",
    "llama_index.core.agent.", "llama_index.core.instrumentation.", "llama_index_instrumentation.",
    "pydantic_ai.models.", "pydantic_ai.providers.", "pydantic_ai._", "pydantic_ai.agent.", "pydantic_ai.toolsets.",
    "jinja2.utils.LRUCache.", "agents.models.", "agents.tracing.", "agents.run.", "agents.run_internal.",
)  # fmt: skip
"""The same, of packages that also have objects which a program keeps its state in: stores,
memories, contexts.
"""

_STORES = (
    "google.adk.sessions.state.", "google.adk.events.event_actions.",
    "workflows.context.state_store.", "rich.table.", "rich.tree.", "rich.text.", "rich.progress.",
    "click.core.",
    "IPython.core.display.", "requests.structures.", "requests.models.Request.", "httpx.Headers.", "httpx.Cookies.",
)  # fmt: skip
"""Modules and classes of all those whose objects hold the program's state all the same."""

_DATA_BASES = frozenset({"BaseModel"})


def kind_of_type(kind: type) -> Kind | None:
    """How objects of this very type are looked at; None: they keep no state that a program sees as
    its own.
    """
    try:
        return _KNOWN[kind]
    except KeyError:
        known = _KNOWN[kind] = _find_kind(kind)
        return known


_KNOWN: weakref.WeakKeyDictionary[type, Kind | None] = weakref.WeakKeyDictionary()


def _find_kind(kind: type) -> Kind | None:
    if kind in _BY_TYPE:
        return _BY_TYPE[kind]
    if kind in SCALARS or issubclass(kind, (Enum, BaseException, ModuleType)):
        return MEMBER if issubclass(kind, Enum) and not is_library_class(kind) else None
    root = kind.__module__.partition(".")[0]
    whole_kind = whole_objects.find_by_class_name(kind)
    if whole_kind is not None:
        return whole_kind
    if is_library_class(kind) and issubclass(kind, logging.Handler):
        return HANDLER
    if is_library_class(kind) and is_machinery(kind):
        return TRAITS if is_widget(kind) else None
    return _find_kind_by_base(kind, root)


def _find_kind_by_base(kind: type, root: str) -> Kind | None:
    for base, base_kind in (
        (list, SEQUENCE),
        (deque, SEQUENCE),
        (dict, MAPPING),
        (set, SET),
        (tuple, TUPLE),
    ):
        if issubclass(kind, base):
            return base_kind
    if element_base(kind) is not None:
        return ELEMENT
    if kind in (frozenset, FunctionType, BuiltinFunctionType, *LINKS):
        return None
    if hides_state(kind):
        return whole_objects.HIDDEN
    return ATTRIBUTES if _has_state(kind, root) else None


def is_machinery(kind: type) -> bool:
    """Whether objects of a library's class are clients, connections or machinery."""
    name = f"{kind.__module__}.{kind.__name__}."
    root = kind.__module__.partition(".")[0]
    return (root in RESOURCES or name.startswith(MACHINERY)) and not name.startswith(_STORES)


def element_base(kind: type) -> type | None:
    """The class of elements of `xml.etree` that a class is, or is derived of."""
    for base in kind.__mro__:
        if base.__name__ == "Element" and base.__module__ == "xml.etree.ElementTree":
            return base if type(vars(base).get("text")) is GetSetDescriptorType else None
    return None


def is_widget(kind: type) -> bool:
    return any(
        base.__name__ == "Widget" and base.__module__.startswith("ipywidgets")
        for base in kind.__mro__
    )


def _has_state(kind: type, root: str) -> bool:
    if not is_library_class(kind):
        return True
    if is_dataclass(kind) or any(base.__name__ in _DATA_BASES for base in kind.__mro__):
        return root not in ("typing", "dataclasses")
    names = {kind.__module__, f"{kind.__module__}.{kind.__name__}"}
    if root in STANDARD_MACHINERY and _STATE.isdisjoint(names):
        return False
    has_attributes = bool(kind.__dictoffset__) or is_class_statement(kind)
    return has_attributes or root not in sys.stdlib_module_names


def also_inside(kind: type) -> tuple[str, ...]:
    """What else an object of this type leads to: a container's own attributes, and the class that
    the user wrote.
    """
    try:
        return _ALSO[kind]
    except KeyError:
        names = _ALSO[kind] = _list_inner_attributes(kind)
        return names


_ALSO: weakref.WeakKeyDictionary[type, tuple[str, ...]] = weakref.WeakKeyDictionary()


def _list_inner_attributes(kind: type) -> tuple[str, ...]:
    names = []
    if kind not in _BY_TYPE and issubclass(kind, (list, deque, dict, set)):
        names += ["__dict__"] if kind.__dictoffset__ else []
        names += ["default_factory"] if issubclass(kind, defaultdict) else []
        names += ["__slots__"] if slots_of(kind).keys() - {"default_factory"} else []
    if is_model(kind):
        names += MODEL_STATE
    if is_widget(kind):
        names.append("_trait_notifiers")  # what listens to it
    if is_users_class(kind):
        names.append("__class__")
    return tuple(names)


def is_of_c(kind: type) -> bool:
    """Whether a library's class with attributes is none that a class statement made."""
    return is_library_class(kind) and not is_class_statement(kind) and kind not in _BY_TYPE


def is_librarys(kind: type) -> bool:
    return kind not in NAMES and is_library_class(kind)


def is_users_class(value: Any) -> bool:
    return isinstance(value, type) and not is_library_class(value) and not issubclass(value, Enum)


def is_users_enum(value: Any) -> bool:
    return isinstance(value, EnumMeta) and not is_library_class(value)


def is_users_function(value: Any) -> bool:
    return isinstance(value, FunctionType) and not is_library_file(value.__code__)


def _is_programs_attribute(name: str, value: Any) -> bool:
    """Whether an attribute of a class or a module is the program's. Python sets many of those that
    begin with two underscores.
    """
    if not name.startswith("__") and not _is_code(value):
        return True
    return any(True for _ in functions_of(value))


def functions_of(member: Any) -> Iterator[FunctionType]:
    """The functions of the user's that a member of a class runs."""
    if is_users_function(member):
        yield member
    if isinstance(member, FunctionType) or type(member) in SCALARS:
        return
    members = []
    for name in ("__func__", "fget", "fset", "fdel"):
        # past the `__getattr__` of a module or a proxy, which may import what it stands for
        with contextlib.suppress(AttributeError):
            members.append(object.__getattribute__(member, name))
    yield from (each for each in members if is_users_function(each))


def _is_code(value: Any) -> bool:
    """A descriptor of a class of the user's may keep something itself, and is data."""
    return isinstance(
        value,
        (FunctionType, BuiltinFunctionType, type, ModuleType, staticmethod, classmethod, property),
    ) or (hasattr(type(value), "__get__") and is_library_class(type(value)))
