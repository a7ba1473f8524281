"""Parts of a value that a text names: `memo['a']`, `agent.log`, `math.pi`. A part stands for itself
only where looking it up runs no code: keys of plain dicts, attributes of plain objects, classes and
modules.
"""

from __future__ import annotations

import gc
import re
import sys
import types
from collections import OrderedDict, defaultdict, deque
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from tape_jupyter.core.user_code import is_class_of_users
from tape_jupyter.dataflow.fingerprint.objects import TUPLE_FIELD
from tape_jupyter.dataflow.identity import identity
from tape_jupyter.dataflow.static.uses import Uses
from tape_jupyter.dataflow.tracing.variables import MISSING, Variables, is_module_of_users

_STEP = re.compile(r"\.([^\W\d]\w*)(\(\))?|\[('(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|-?\d+)\]")
TOLD = frozenset({"__name__", "__qualname__", "__module__", "__doc__", "__class__"})
_BUILTIN = (dict, list, set, deque, bytearray, OrderedDict, defaultdict)


def steps(path: str) -> list[tuple[str, Any]]:
    """[("attr", "log"), ("item", 'a')] of `agent.log['a']`; ("call", name) for a method that is
    called.
    """
    path_steps: list[tuple[str, Any]] = []
    root = re.match(r"[^\W\d]\w*", path)
    for each in _STEP.finditer(path, root.end() if root else 0):
        name, call, key = each.groups()
        if name is not None:
            path_steps.append(("call" if call else "attr", name))
        else:
            path_steps.append(("item", int(key) if key[0] not in "'\"" else _parse_string(key)))
    return path_steps


def _parse_string(key: str) -> str:
    import ast

    return str(ast.literal_eval(key))


def first(path: str) -> str:
    """The attribute of a module that a path begins with: `helpers.STATE['a']` -> "STATE"."""
    return next((name for kind, name in steps(path) if kind != "item"), "")


def index(path: str) -> int | None:
    """3 of `Out[3]`."""
    kind, key = next(iter(steps(path)), ("", None))
    return key if kind == "item" and isinstance(key, int) else None


def expanded(line: str) -> Iterator[str]:
    """What IPython expands in a magic's or the shell's line: $name, {expression}."""
    for each in re.finditer(r"(?<!\$)\$([^\W\d][\w.]*)|\{([^{}]*)\}", line):
        yield each[1] or each[2]


def static_attribute(value: Any, name: str) -> Any:  # noqa: PLR0911 - one kind a branch
    """An attribute, where no code runs to find it; MISSING else."""
    if isinstance(value, types.ModuleType):
        return value.__dict__.get(name, MISSING)
    if value is MISSING:
        return MISSING
    kind = type(value)
    if isinstance(value, type):
        for base in value.__mro__:
            if name in base.__dict__:
                attribute = base.__dict__[name]
                return (
                    MISSING
                    if hasattr(type(attribute), "__get__")
                    and not isinstance(attribute, types.FunctionType)
                    else attribute
                )
        return MISSING
    if not is_plain_to_read(kind, name):
        return MISSING
    if (slot := _find_slot(kind, name)) is not None:
        try:
            return slot.__get__(value, kind)
        except AttributeError:
            return MISSING
    inside = _find_instance_dict(value)
    if type(inside) is dict and name in inside:
        return inside[name]
    return _find_class_data(kind, name)


def _find_class_data(kind: type, name: str) -> Any:
    """What stands in a class of the user's for all its instances, other than methods and the like."""
    base = next((base for base in kind.__mro__ if name in base.__dict__), None)
    if base is None or name.startswith("__") or not is_class_of_users(base):
        return MISSING
    attribute = base.__dict__[name]
    return MISSING if hasattr(type(attribute), "__get__") else attribute


def is_plain_to_bind(kind: type, name: str) -> bool:
    """Whether instances of a class look an attribute up, and bind it, in their own dict."""
    return is_plain_to_read(kind, name) and not any(
        "__setattr__" in base.__dict__ and not _is_pydantic_setter(base, kind)
        for base in kind.__mro__
        if base is not object
    )


_GENERIC = frozenset({tuple, list, dict, set, str, int, float, types.SimpleNamespace})
"""Classes of C whose instances look attributes up as any object does."""


def is_plain_to_read(kind: type, name: str) -> bool:
    """Whether no code runs where an attribute of an instance is looked up in its own dict."""
    for base in kind.__mro__:
        if base is object:
            continue
        if "__getattribute__" in base.__dict__ and base not in _GENERIC:
            return False
        attribute = base.__dict__.get(name)
        if hasattr(type(attribute), "__set__") and type(attribute) not in (
            types.MemberDescriptorType,
            TUPLE_FIELD,
        ):
            return False
    return True


def _is_pydantic_setter(base: type, kind: type) -> bool:
    """Pydantic's own way to bind an attribute, where it only binds it."""
    return base.__module__ == "pydantic.main" and not getattr(kind, "model_config", {}).get(
        "validate_assignment"
    )


def _find_slot(kind: type, name: str) -> types.MemberDescriptorType | None:
    """What finds an attribute in a slot, or in a named tuple."""
    slot = next((base.__dict__[name] for base in kind.__mro__ if name in base.__dict__), None)
    plain = type(slot) is types.MemberDescriptorType or (
        type(slot) is TUPLE_FIELD and issubclass(kind, tuple)
    )
    return slot if plain and not name.startswith("__") else None


def _find_item(value: Any, key: Any) -> Any:
    if type(value) in (dict, OrderedDict, defaultdict):
        return value.get(key, MISSING)
    if type(value) in (list, tuple) and isinstance(key, int) and 0 <= key < len(value):
        return value[key]
    if _is_pandas_frame(value) and isinstance(key, str) and len(value) and key in value.columns:
        return value[key]
    return MISSING


def _is_pandas_frame(value: Any) -> bool:
    pandas = sys.modules.get("pandas")
    return pandas is not None and type(value) is getattr(pandas, "DataFrame", None)


def is_frame(value: Any) -> bool:
    """Whether it is a pandas frame with rows: a column of it is a part of it."""
    return _is_pandas_frame(value) and len(value) > 0


def is_array(value: Any) -> bool:
    numpy = sys.modules.get("numpy")
    return numpy is not None and type(value) is getattr(numpy, "ndarray", None)


def read_parts(name: str, used: Uses, variables: Variables, *, moved: bool = False) -> set[str]:
    """What a statement reads of a name: its parts, where the text says which and they are plain;
    else all of it. `moved`: the cell changed its value, so that what was last in a list may be no
    more.
    """
    paths = [path for root, path in (*used.parts, *used.counted) if root == name]
    value = variables.value(name)
    if name in used.bare or not paths or isinstance(value, types.ModuleType):
        if not is_module_of_users(value):
            return {name}
        if name in used.bare or not paths:
            return {name, f"{value.__name__}:*"}
        globals_ = {variables.resource(value.__name__, first(path)) for path in paths}
        return {name, *(each for each in globals_ if each is not None)}
    return {_find_plain_part(name, path, value, moved=moved) for path in paths}


def _find_plain_part(name: str, path: str, value: Any, *, moved: bool) -> str:
    """As far down a path as looking it up is plain."""
    reached = name
    for kind, key in steps(path):
        if kind == "call":
            sized = (key == "len" and type(value) in (list, dict)) or (
                key == "keys" and type(value) is dict
            )
            return f"{reached}.__len__" if sized else reached
        if kind == "attr" and isinstance(value, type) and key in TOLD:
            return f"{reached}.{key}"
        if kind == "item" and type(value) is list and isinstance(key, int) and key < 0:
            if moved:
                return reached
            key += len(value)  # noqa: PLW2901 - results[-1] is the part that it is now
        value = static_attribute(value, key) if kind == "attr" else _find_item(value, key)
        if value is MISSING:
            return reached
        reached += f".{key}" if kind == "attr" else f"[{key!r}]"
    return reached


def written_parts(name: str, used: Uses, variables: Variables) -> set[str]:
    """The parts of a name that a statement writes, where it does nothing else with it that may
    write; else none.
    """
    value = variables.value(name)
    if value is MISSING or isinstance(value, types.ModuleType) or name in used.bare:
        return set()
    parts = set()
    for touch in used.touches:
        if touch.root != name or touch.how in ("argument", "next"):
            if touch.root == name and touch.how == "next":
                return set()
            continue
        if not touch.path:
            return set()
        if touch.how == "method":
            target = value_at(touch.path, value)
            if (
                type(target) not in _BUILTIN
                or touch.path == name
                or not _is_only_there(steps(touch.path), value)
            ):
                return set()
            parts.add(touch.path)
        elif stores(touch.path, value) and _is_only_there(steps(touch.path)[:-1], value):
            parts.add(touch.path)
        else:
            return set()
    return parts


def appended(name: str, used: Uses, variables: Variables) -> str:
    """The one element that a statement `x.log.append(v)` adds; "" where it may do something else to
    `name`.
    """
    ways = [t for t in used.touches if t.root == name]
    if (
        len(ways) != 1
        or ways[0].how != "method"
        or ways[0].what != "append"
        or ways[0].kept
        or not ways[0].path
    ):
        return ""
    value = variables.value(name)
    target = value_at(ways[0].path, value)
    inside = [
        p for root, p in used.parts if root == name and p.removesuffix(".append()") != ways[0].path
    ]
    if type(target) is not list or not target or inside or name in used.bare or used.counted:
        return ""
    if not _is_only_there(steps(ways[0].path), value):
        return ""
    return f"{ways[0].path}[{len(target) - 1}]"


def stored_object(path: str, value: Any) -> Any:
    """The object that a store at the end of a path changes."""
    way = steps(path)
    for kind, key in way[:-1]:
        value = static_attribute(value, key) if kind == "attr" else _find_item(value, key)
    return value


def _is_only_there(way: list[tuple[str, Any]], value: Any) -> bool:
    """Whether the objects on a way into a value are at no other place of it: `grid = [row, row]`
    has one twice.
    """
    met, inner = set(), value
    for kind, key in way:
        inner = static_attribute(inner, key) if kind == "attr" else _find_item(inner, key)
        met.add(identity(inner))
    return not met or _is_each_met_once(value, met)


_MANY = 5_000
"""Objects that are looked at; in more of them anything may be twice."""


def _is_each_met_once(value: Any, looked_for: set[int]) -> bool:
    met: set[int] = set()
    seen: set[int] = set()
    todo = [value]
    while todo:
        each = todo.pop()
        if identity(each) in seen:
            continue
        seen.add(identity(each))
        if len(seen) > _MANY:
            return False
        inner = list(_find_inner_objects(each))
        for one in inner:
            if identity(one) in looked_for:
                if identity(one) in met:
                    return False
                met.add(identity(one))
        todo += inner
    return True


_PLACES = 16
"""Places of one object in a value, at most: beyond them it is as good as anywhere."""
_UNCHANGING = frozenset({
    type(None), bool, int, float, complex, str, bytes, types.BuiltinFunctionType, types.ModuleType,
    types.MemberDescriptorType, types.GetSetDescriptorType, types.WrapperDescriptorType,
})  # fmt: skip


def find_places(name: str, value: Any, looked_for: Any, last: str) -> set[str] | None:
    """Where in a name the part `last` of an object shows: of each place at which the object is, or
    an instance of it where it is a class. None where it may be elsewhere in the value.
    """
    if value is looked_for and _count_parts(value) > _MANY:
        return {f"{name}{last}"}
    places: set[str] = set()
    met = False
    rings: list[tuple[str, str]] = []
    attribute = last.removeprefix(".")
    todo, count = [(name, value, {identity(value): name})], 0
    while todo:
        path, each, above = todo.pop()
        count += 1 + _count_parts(each)
        if count > _MANY or len(places) > _PLACES:
            return None
        if each is looked_for or _finds_in(each, looked_for, attribute):
            places.add(path)
        met = met or each is looked_for or _is_of(each, looked_for)
        inner = _list_parts(path, each)
        hidden = inner is None and each is not looked_for and _holds(each, looked_for)
        if hidden or not _is_plain_class_use(each, looked_for, attribute):
            return None
        for way, one in inner or ():
            if identity(one) in above:
                rings.append((way, above[identity(one)]))
            else:
                todo.append((way, one, {**above, identity(one): way}))
    if not met:
        return None
    written = {f"{place}{last}" for place in places}
    return written | {way for way, back in rings if any(each.startswith(back) for each in places)}


def _count_parts(value: Any) -> int:
    return len(value) if type(value) in (list, tuple, dict) else 0


def _is_of(value: Any, kind: Any) -> bool:
    """Whether a class is beneath a value or class."""
    own = value if isinstance(value, type) else type(value)
    return isinstance(kind, type) and kind in own.__mro__


def _finds_in(value: Any, kind: Any, attribute: str) -> bool:
    """Whether to look an attribute up in a value or class finds that of a class beneath it."""
    own = value if isinstance(value, type) else type(value)
    if not _is_of(value, kind):
        return False
    if own is not value and attribute in (_find_instance_dict(value) or ()):
        return False
    return next((base for base in own.__mro__ if attribute in base.__dict__), kind) is kind


def _is_plain_class_use(value: Any, kind: Any, attribute: str) -> bool:
    """Whether all that a change of an attribute of `kind` changes in a value is that attribute."""
    own = value if isinstance(value, type) else type(value)
    if not _is_of(value, kind):
        return True
    stored = kind.__dict__.get(attribute)
    if attribute.startswith("__") or hasattr(type(stored), "__get__"):
        return False
    return type(own) is type and (own is value or is_plain_to_read(own, attribute))


def _list_parts(path: str, value: Any) -> list[tuple[str, Any]] | None:
    """What is directly in a value and may change, each at its place; None where something in it has
    none.
    """
    kind = type(value)
    if kind in (dict, OrderedDict, defaultdict):
        if not {str, int}.issuperset(map(type, value)):
            return None
        return [
            (f"{path}[{key!r}]", each)
            for key, each in value.items()
            if type(each) not in _UNCHANGING
        ]
    if kind in (list, tuple):
        return [
            (f"{path}[{place}]", each)
            for place, each in enumerate(value)
            if type(each) not in _UNCHANGING
        ]
    own = value if isinstance(value, type) else kind
    if not is_class_of_users(own):
        return [] if own is value else None
    if any(base.__module__ == "builtins" and base is not object for base in own.__mro__):
        return None
    inside = _find_instance_dict(value) if own is not value else None
    parts = {**list_class_data(own), **(inside if type(inside) is dict else {})}
    for base in own.__mro__ if own is not value else ():
        for name in base.__dict__ if "__slots__" in base.__dict__ else ():
            if (slot := _find_slot(base, name)) is not None:
                with suppress(AttributeError):
                    parts[name] = slot.__get__(value, kind)
    return [
        (f"{path}.{name}", each) for name, each in parts.items() if type(each) not in _UNCHANGING
    ]


def list_class_data(kind: type) -> dict[str, Any]:
    return {
        name: each
        for base in reversed(kind.__mro__)
        if is_class_of_users(base)
        for name, each in type.__dict__["__dict__"].__get__(base).items()
        if isinstance(each, types.FunctionType) or not name.startswith("__")
    }


def _holds(value: Any, looked_for: Any) -> bool:
    """Whether an object is anywhere in a value, by the collector's knowledge of it."""
    seen: set[int] = set()
    todo = [value]
    while todo:
        each = todo.pop()
        if each is looked_for:
            return True
        if type(each) in _UNCHANGING or isinstance(each, type) or identity(each) in seen:
            continue
        seen.add(identity(each))
        if len(seen) > _MANY:
            return True
        if isinstance(each, types.FunctionType):
            inside = (each.__closure__, each.__defaults__, each.__kwdefaults__, each.__dict__)
            todo += filter(None, inside)
        else:
            todo += gc.get_referents(each)
    return False


def _find_inner_objects(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        yield from dict.values(value)
    elif isinstance(value, list | tuple | set | frozenset | deque):
        yield from value
    elif isinstance(value, type):
        yield from type.__dict__["__dict__"].__get__(value).values()
    if (
        not isinstance(value, type | types.ModuleType)
        and type(inside := _find_instance_dict(value)) is dict
    ):
        yield from inside.values()
    for base in type(value).__mro__ if "__slots__" in type(value).__dict__ else ():
        for name in base.__dict__:
            if (slot := _find_slot(base, name)) is not None:
                with suppress(AttributeError):
                    yield slot.__get__(value, type(value))


def _find_instance_dict(value: Any) -> Any:
    try:
        return object.__getattribute__(value, "__dict__")
    except AttributeError:
        return None


def value_at(path: str, value: Any) -> Any:
    for kind, key in steps(path):
        if kind == "attr":
            value = static_attribute(value, key)
        elif kind == "item":
            value = _find_item(value, key)
        else:
            value = MISSING
    return value


def stores(path: str, value: Any) -> bool:
    """Whether a store at the end of a path changes that part and nothing else."""
    way = steps(path)
    if not way:
        return False
    for kind, key in way[:-1]:
        value = static_attribute(value, key) if kind == "attr" else _find_item(value, key)
    kind, key = way[-1]
    if isinstance(value, types.ModuleType):
        return False
    if kind == "item" and _is_pandas_frame(value):
        return isinstance(key, str) and len(value) > 0
    if kind == "item":
        return type(value) in (dict, OrderedDict) or (
            type(value) is list and isinstance(key, int) and 0 <= key < len(value)
        )
    return value is not MISSING and (
        isinstance(value, type)
        or (
            is_plain_to_bind(type(value), key)
            and (hasattr(value, "__dict__") or _find_slot(type(value), key) is not None)
        )
    )
