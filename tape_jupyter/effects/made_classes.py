"""Classes whose instances a replay makes again: all that such an instance is stands in its attributes,
and in the text, number or container of Python's own that it is derived of.

It is made without running code of its class. Not of classes that act when they are thrown away
(`__del__`), of those that keep something in memory of C, of clients and machinery.
"""

from __future__ import annotations

import inspect
import sys
import weakref
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from types import FunctionType, MemberDescriptorType, MethodType, ModuleType
from typing import Any

from tape_jupyter.core.libraries import is_library_class, is_library_file
from tape_jupyter.effects.kinds import SCALARS, element_base, is_machinery
from tape_jupyter.encoding.values.user_classes import (
    acts_when_thrown_away,
    class_path,
    find_class,
    is_findable,
    is_own_hash,
    lasting_state,
    set_attributes,
    state_of,
)
from tape_jupyter.encoding.values.walker import At, CannotFreeze, need
from tape_jupyter.errors import CassetteError

TEXTS = (str, bytes, int, float)
SEQUENCES = (list, deque)
MAPPINGS = (OrderedDict, dict)
_BASES: tuple[type, ...] = (*TEXTS, *SEQUENCES, *MAPPINGS, set)

PLAIN_TYPES: Mapping[str, type] = {
    class_path(kind): kind
    for kind in (
        int, float, str, bool, complex, bytes, bytearray, list, tuple, dict, set, frozenset, object, type(None),
        OrderedDict, defaultdict, deque, Counter, Decimal, Fraction, date, datetime, time, timedelta,
    )
}  # fmt: skip
"""Classes of values: who calls one gets such a value, and nothing else happens."""

_STANDARD_DATA = frozenset([
    "argparse", "calendar", "collections", "configparser", "csv", "difflib", "email", "graphlib", "html",
    "ipaddress", "json", "numbers", "optparse", "plistlib", "reprlib", "shlex", "statistics", "string", "textwrap",
    "uuid", "xml",
])  # fmt: skip
"""Of the standard library only these packages, and of others these classes; what opens files and
connections is not among them.
"""

_STANDARD_CLASSES = frozenset([
    "http.cookies.Morsel", "http.cookies.SimpleCookie", "urllib.request.Request", "logging.Formatter",
    "logging.Filter", "logging.LogRecord", "logging.PercentStyle", "logging.StrFormatStyle",
    "logging.StringTemplateStyle",
])  # fmt: skip

_OPENERS = frozenset({"argparse.FileType"})

_INSTALLERS = frozenset({"pip", "setuptools", "pkg_resources", "distutils", "virtualenv", "wheel"})

_known: weakref.WeakKeyDictionary[type, type | None] = weakref.WeakKeyDictionary()


def made_base(kind: type) -> type | None:
    """What an instance is beside its attributes: `object`, or a class of Python's own. None where a
    replay makes no instance of this class.
    """
    try:
        return _known[kind]
    except KeyError:
        base = _known[kind] = _find_base(kind)
        return base


def _find_base(kind: type) -> type | None:
    if issubclass(kind, (type, BaseException, Enum, ModuleType)) or acts_when_thrown_away(kind):
        return None
    if is_library_class(kind) and not _is_data(kind):
        return None
    base: Any = element_base(kind) or next((e for e in kind.__mro__ if e in _BASES), object)
    if kind is object:
        return None
    try:
        base.__new__(kind)
    except TypeError:  # C code makes its instances
        return None
    return None if _hides_memory(kind, base) else base


def _is_data(kind: type) -> bool:
    root = kind.__module__.partition(".")[0]
    if root in sys.stdlib_module_names:
        name = f"{kind.__module__}.{kind.__qualname__}"
        return name in _STANDARD_CLASSES or (root in _STANDARD_DATA and name not in _OPENERS)
    return root not in _INSTALLERS and not is_machinery(kind)


def _hides_memory(kind: type, base: type) -> bool:
    """Whether an instance takes more memory than its slots and its dict need: C keeps something there."""
    members = [
        each
        for owner in kind.__mro__
        if owner not in base.__mro__
        for each in vars(owner).values()
        if type(each) is MemberDescriptorType
    ]
    words = len(members) + (kind.__weakrefoffset__ > 0 and not base.__weakrefoffset__)
    has_place = kind.__dictoffset__ > 0 or bool(base.__itemsize__)
    words += bool(kind.__dictoffset__) and not base.__dictoffset__ and has_place
    return kind.__basicsize__ - base.__basicsize__ > words * tuple.__itemsize__


# ---- by name


def describe_class(value: Any, at: At) -> dict[str, Any]:
    """How the class of an instance is found again. Raises CannotFreeze."""
    kind = type(value)
    if is_findable(kind):
        return {"class": class_path(kind)}
    if _is_only_a_mixture(kind):
        return {"class": class_path(kind), "bases": [class_path(base) for base in kind.__bases__]}
    raise CannotFreeze(at, value, f"its class cannot be found again as {class_path(kind)}")


def _is_only_a_mixture(kind: type) -> bool:
    """Whether a class was made of others and adds nothing, so that making it again runs no code."""
    own = vars(kind).keys() - {"__module__", "__doc__", "__dict__", "__weakref__", *_NAMED}
    return (
        not own
        and len(kind.__bases__) > 1
        and type(kind) is type
        and all(map(is_findable, kind.__bases__))
        and _takes_heirs_quietly(kind)
    )


_NAMED = ("__firstlineno__", "__static_attributes__")


def _takes_heirs_quietly(kind: type) -> bool:
    return not any("__init_subclass__" in vars(base) for base in kind.__mro__[:-1])


def find_made_class(described: Mapping[str, Any], at: At) -> type:
    """The class that `describe_class` told of. Raises CassetteError."""
    name = need(described["class"], str, at)
    if "bases" in described:
        kind = _mix(name, tuple(find_class(each, at) for each in described["bases"]))
    else:
        kind = find_class(name, at)
    if made_base(kind) is None:
        raise CassetteError(f"an instance of {name} is not made by a recording")
    return kind


def _mix(name: str, bases: tuple[type, ...]) -> type:
    module, _, path = name.partition(":")
    known: list[type] = type.__subclasses__(bases[0])
    for kind in known:
        if kind.__bases__ == bases and class_path(kind) == name and _is_only_a_mixture(kind):
            return kind
    if not all(type(base) is type and _takes_heirs_quietly(base) for base in bases):
        raise CassetteError(f"{name} is made of classes that act when it is made")
    return type(path.rpartition(".")[2], bases, {"__module__": module, "__qualname__": path})


def may_name(kind: type, holder: type | None) -> bool:
    """Whether an object of class `holder` may come to hold this class: its program may call it."""
    if PLAIN_TYPES.get(class_path(kind)) is kind:
        return True
    return holder is not None and is_of_package(kind, holder) and made_base(kind) is not None


def is_of_package(kind: type, holder: type) -> bool:
    """Whether both are of one library."""
    root, others = (each.__module__.partition(".")[0] for each in (kind, holder))
    return root == others and is_library_class(kind) and is_library_class(holder)


def find_method(owner: Any, name: str, holder: type | None) -> Any:
    """The method of that name, where an object of class `holder` may keep it: one of an object of its own
    library, or of one of Python's own containers. None for any other.
    """
    kind = type(owner)
    if holder is None or not isinstance(name, str):
        return None
    if kind in _BASES:
        method = getattr(kind, name, None)
        return None if method is None else getattr(owner, name)
    function = inspect.getattr_static(kind, name, None)
    if (
        type(function) is FunctionType
        and is_of_package(kind, holder)
        and is_library_file(function.__code__)
    ):
        return MethodType(function, owner)
    return None


# ---- instances


def make_bare(kind: type, content: Any) -> Any:
    """An instance that no code of its class has seen; its attributes, and what a container holds, are
    missing.
    """
    base: Any = made_base(kind)
    if base in TEXTS:
        return base.__new__(kind, content)
    return base.__new__(kind)


def attributes_of(value: Any) -> dict[str, Any]:
    """Its attributes, without its own hash where it keeps that."""
    return lasting_state(value, lambda: make_bare(type(value), _content_of_text(value)))


def is_kept_hash(owner: Any, name: str, value: Any) -> bool:
    """Whether an attribute is the hash of its owner, which that works out again in each process."""
    may_be = is_own_hash(owner, value) and made_base(type(owner)) is not None
    return may_be and attributes_of(owner).get(name) is None


def is_hash_of_plain_parts(value: Any) -> bool:
    """Whether texts and numbers among its attributes decide its hash, and not what it leads to."""
    plain = {name: each for name, each in state_of(value).items() if type(each) in SCALARS}
    twin = make_bare(type(value), _content_of_text(value))
    set_attributes(twin, plain)
    try:
        return hash(twin) == hash(value)
    except Exception:  # its own code misses something
        return False


def _content_of_text(value: Any) -> Any:
    base = made_base(type(value))
    return base(value) if base in TEXTS else None
