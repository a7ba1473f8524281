"""`dataclass` for the classes that a taped cell loads: as the standard library's, made in a tenth of
its time.

The standard library compiles up to six methods for each class, at import. Here `__init__` alone is
compiled, when the first object is made; the others are the same functions for all. `order` is not
taken: such a class takes the standard library's.
"""

from __future__ import annotations

import dataclasses
import reprlib
from operator import attrgetter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from dataclasses import dataclass as dataclass  # noqa: PLC0414 - what a type checker sees
else:

    def dataclass(
        kind: type | None = None, *, frozen: bool = False, slots: bool = False, eq: bool = True
    ) -> Any:
        """As `dataclasses.dataclass`, with or without options."""
        if kind is None:
            return lambda decorated: _complete(decorated, frozen=frozen, slots=slots, eq=eq)
        return _complete(kind, frozen=frozen, slots=slots, eq=eq)


_MISSING: Any = dataclasses.MISSING


def _complete(kind: type, *, frozen: bool, slots: bool, eq: bool) -> type:
    """The class with its fields noted, and its methods."""
    own = set(vars(kind))
    bare = kind.__doc__ is None
    if bare:
        kind.__doc__ = kind.__name__  # else its signature is looked for
    make = dataclasses.dataclass(init=False, repr=False, eq=False, slots=slots)
    made: Any = make(kind)
    if bare:
        made.__doc__ = None
    fields = dataclasses.fields(made)
    compared = [each.name for each in fields if each.compare]
    methods: dict[str, Any] = {"__init__": _build_init(made), "__repr__": _describe}
    if eq:
        read = _reader_of(compared)
        methods["__eq__"] = _build_eq(read)
        methods["__hash__"] = _build_hash(read) if frozen else None
    if frozen:
        methods |= {"__setattr__": _refuse_setting, "__delattr__": _refuse_deleting}
    if frozen and slots:
        methods |= {"__getstate__": _take_state, "__setstate__": _put_state}
    for name, method in methods.items():
        if name not in own:
            setattr(made, name, method)
    return made  # type: ignore[no-any-return]


def _build_init(kind: Any) -> Callable[..., None]:
    """Compiles the real one when it is called first, and puts it in its own place."""

    def __init__(self: Any, *args: Any, **named: Any) -> None:  # noqa: N807 - its name in tracebacks
        compiled = _compile_init(kind)
        if vars(kind).get("__init__") is __init__:
            kind.__init__ = compiled
        compiled(self, *args, **named)

    return __init__


def _compile_init(kind: Any) -> Callable[..., None]:
    frozen = kind.__setattr__ is _refuse_setting
    positional, named, body = ["self"], list[str](), list[str]()
    known: dict[str, Any] = {"MISSING": _MISSING, "put": object.__setattr__}
    for field in dataclasses.fields(kind):
        name, value = field.name, field.name
        default = known[f"default_{name}"] = field.default
        factory = known[f"factory_{name}"] = field.default_factory
        parameter = name
        if default is not _MISSING:
            parameter = f"{name}=default_{name}"
            value = name if field.init else f"default_{name}"
        elif factory is not _MISSING:
            parameter = f"{name}=MISSING"
            made = f"factory_{name}()"
            value = f"{made} if {name} is MISSING else {name}" if field.init else made
        elif not field.init:
            continue
        if field.init:
            (named if field.kw_only else positional).append(parameter)
        body.append(f"put(self, {name!r}, {value})" if frozen else f"self.{name} = {value}")
    if hasattr(kind, "__post_init__"):
        body.append("self.__post_init__()")
    parameters = ", ".join([*positional, *(["*", *named] if named else [])])
    source = "\n ".join([f"def __init__({parameters}):", *(body or ["pass"])])
    exec(source, known)  # noqa: S102 - names of fields, nothing else
    compiled: Callable[..., None] = known["__init__"]
    compiled.__qualname__ = f"{kind.__qualname__}.__init__"
    return compiled


def _reader_of(names: list[str]) -> Callable[[Any], Any]:
    """A function that gives the values of these attributes, as a tuple."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda each: tuple(getattr(each, name) for name in names)


def _build_eq(read: Callable[[Any], Any]) -> Callable[[Any, object], bool]:
    def __eq__(self: Any, other: object) -> bool:  # noqa: N807
        if other.__class__ is self.__class__:
            return bool(read(self) == read(other))
        return NotImplemented

    return __eq__


def _build_hash(read: Callable[[Any], Any]) -> Callable[[Any], int]:
    return lambda each: hash(read(each))


@reprlib.recursive_repr()
def _describe(self: Any) -> str:
    shown = [f"{f.name}={getattr(self, f.name)!r}" for f in dataclasses.fields(self) if f.repr]
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _refuse_setting(_: object, name: str, __: object) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_deleting(_: object, name: str) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")


def _take_state(self: Any) -> list[Any]:
    return [getattr(self, field.name) for field in dataclasses.fields(self)]


def _put_state(self: Any, state: list[Any]) -> None:
    for field, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, field.name, value)
