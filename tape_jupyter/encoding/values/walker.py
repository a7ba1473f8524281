"""The walk over a value (freeze) or a structure (thaw), shared by all codecs. Constructs no class
itself.

A structure holds dict, list, str, int, float, bool and None only. What is not one of these is a
dict with a mark:

    {"<type>": "tuple", "values": [1, 2]}       a codec's fields stand beside the mark
    {"<same>": "$.a[0]"}                        the very object that was thawed from that place of the structure

A real dict with a key that begins with "<" is written as items, so a mark is never mistaken for
data.
"""

from __future__ import annotations

import json
import math
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeAlias, TypeVar

from tape_jupyter.errors import CassetteError, TapeError

TYPE, SAME = "<type>", "<same>"
At: TypeAlias = "tuple[At, str | int] | None"
"""A place in a structure: the place above and the key or index in it; None is the whole."""

MAX_DEPTH = 56
"""Levels of structure: a record adds a few around it, and the text form refuses more than 64
(HOSTILE.md 10).
"""

_Built = TypeVar("_Built")
_PLAIN = frozenset({str, bool, type(None)})
_NUMBERS, _LARGE = {int, float}, 2**63
_LONGEST_INT = (
    256  # bits; beyond it an int is written in hex, which costs no quadratic time to read
)


class CannotFreeze(TapeError, TypeError):
    """A value (or a part of it) that no codec can write down so that it comes back as it was."""

    def __init__(self, at: At, value: Any, why: str = "") -> None:
        self.place, self.kind = place_text(at), shown_type(type(value))
        super().__init__(f"{self.place}: cannot freeze a {self.kind}{': ' if why else ''}{why}")


class Entangled(CannotFreeze):
    """A value that leads back to itself, or too deep, to be written inside of each other."""


class Codec(NamedTuple):
    """How one type is written: `freeze(value, walk, at)` gives the fields beside the mark, `thaw`
    the value again.

    `shared`: the type is mutable, so that one object in two places comes back as one object in two
    places.
    """

    name: str
    freeze: Callable[[Any, Freezer, At], dict[str, Any]]
    thaw: Callable[[dict[str, Any], Thawer, At], Any]
    shared: bool = False


def place_text(at: At) -> str:
    """`$.rows[3].name`: a place in words."""
    parts: list[str] = []
    while at is not None:
        at, part = at
        named = isinstance(part, str) and part.isidentifier()
        parts.append(f".{part}" if named else f"[{json.dumps(part)}]")
    return "$" + "".join(reversed(parts))


def shown_type(kind: type) -> str:
    """The name a person knows: `tuple`, `pandas.DataFrame`, `Point`."""
    module = kind.__module__
    if module in {"builtins", "__main__"}:
        return kind.__qualname__
    return f"{module}.{kind.__qualname__}"


class Freezer:
    """One walk over one value. Remembers what it has seen, for shared references and cycles."""

    def __init__(self, find: Callable[[type], Codec | None]) -> None:
        self._find = find
        self._codecs: dict[type, Codec | None] = {}
        self._open: set[int] = set()
        # keeps the value: a freed id may be given out again
        self._seen: dict[int, tuple[At, Any]] = {}
        self._depth = 0

    def freeze(self, value: Any, at: At) -> Any:
        kind = type(value)
        if kind in _PLAIN:
            return value
        if kind is int:
            if value.bit_length() <= _LONGEST_INT:
                return value
            return {TYPE: "int", "hex": hex(value)}
        if kind is float:
            if math.isfinite(value):
                return value
            return {TYPE: "float", "value": repr(value)}
        if self._depth > MAX_DEPTH:
            raise Entangled(at, value, f"nested deeper than {MAX_DEPTH} levels")
        self._depth += 1
        try:
            return self._freeze_container(value, kind, at)
        finally:
            self._depth -= 1

    def attempt(self, value: Any, at: At) -> tuple[bool, Any]:
        """(True, structure), or (False, why not); a failed attempt leaves nothing to refer to."""
        before = len(self._seen)
        try:
            return True, self.freeze(value, at)
        except Exception as reason:  # CannotFreeze, or the object's own code failed
            self._forget_since(before)
            return False, str(reason)

    def freeze_unshared(self, value: Any, at: At) -> Any:
        """The structure, for comparing only: nothing later refers to it."""
        before = len(self._seen)
        structure = self.freeze(value, at)
        self._forget_since(before)
        return structure

    def place_of(self, value: Any) -> str:
        """Where a mutable object that was written stands; "" where it was not."""
        seen = self._seen.get(id(value))
        return "" if seen is None else place_text(seen[0])

    def _forget_since(self, before: int) -> None:
        while len(self._seen) > before:
            self._seen.popitem()

    def mapping(self, values: dict[str, Any], at: At) -> dict[str, Any]:
        """The values of named fields, each frozen; names are identifiers, so no key can be a mark."""
        return {name: self.freeze(value, (at, name)) for name, value in values.items()}

    def sequence(self, values: Any, at: At) -> list[Any]:
        # no inf, no nan
        if set(map(type, values)) <= _NUMBERS and all(-_LARGE < v < _LARGE for v in values):
            return list(values)
        return [v if type(v) in _PLAIN else self.freeze(v, (at, i)) for i, v in enumerate(values)]

    def _freeze_container(self, value: Any, kind: type, at: At) -> Any:
        if kind is dict:
            return self._freeze_once(value, at, self._freeze_dict)
        if kind is list:
            return self._freeze_once(value, at, self.sequence)
        codec = self.codec_of(kind)
        if codec is None:
            raise CannotFreeze(at, value, _REASONS.get(kind.__name__, ""))

        def freeze_marked(value: Any, at: At) -> dict[str, Any]:
            return {TYPE: codec.name, **codec.freeze(value, self, at)}

        if codec.shared:
            return self._freeze_once(value, at, freeze_marked)
        return freeze_marked(value, at)

    def codec_of(self, kind: type) -> Codec | None:
        """How a value of this very type is written; None: it is not. Found once a walk."""
        try:
            return self._codecs[kind]
        except KeyError:
            codec = self._codecs[kind] = self._find(kind)
            return codec

    def _freeze_dict(self, value: dict[Any, Any], at: At) -> dict[str, Any]:
        if all(type(key) is str and key[:1] != "<" for key in value):
            return {
                k: v if type(v) in _PLAIN else self.freeze(v, (at, k)) for k, v in value.items()
            }
        return {TYPE: "dict", "items": self.items(value, (at, "items"))}

    def items(self, value: Any, at: At) -> list[list[Any]]:
        """The items of a mapping in their order, as pairs."""
        return [
            [self.freeze(k, ((at, i), 0)), self.freeze(v, ((at, i), 1))]
            for i, (k, v) in enumerate(value.items())
        ]

    def _freeze_once(self, value: Any, at: At, write: Callable[[Any, At], Any]) -> Any:
        key = id(value)
        if key in self._open:
            raise Entangled(
                at, value, f"it contains itself (a cycle back to {place_text(self._seen[key][0])})"
            )
        if key in self._seen:
            return {SAME: place_text(self._seen[key][0])}
        self._seen[key] = (at, value)
        self._open.add(key)
        try:
            return write(value, at)
        finally:
            self._open.discard(key)


class Thawer:
    """One walk over one structure; `find` gives the codec of a mark. Raises CassetteError and
    nothing else.
    """

    def __init__(self, find: Callable[[str], Codec | None]) -> None:
        self._find = find
        self._built: deque[tuple[At, Any]] = deque()
        self._places: dict[str, Any] = {}
        """By their places, all but the newest of them."""

    def thaw(self, structure: Any, at: At) -> Any:
        kind = type(structure)
        if kind in _PLAIN or kind is int or kind is float:
            return structure
        if kind is list:
            return self._thaw_list(structure, at)
        if kind is not dict:
            raise CassetteError(
                f"{place_text(at)}: a {shown_type(kind)} is not part of a frozen value"
            )
        if TYPE in structure:
            return self._thaw_marked(structure, at)
        if SAME in structure:
            return self._thaw_reference(structure, at)
        return self._thaw_dict(structure, at)

    def mapping(self, structure: Any, at: At) -> dict[str, Any]:
        """Named fields, each thawed."""
        for name in need(structure, dict, at):
            need(name, str, at)
        return {name: self.thaw(value, (at, name)) for name, value in structure.items()}

    def sequence(self, structure: Any, at: At) -> list[Any]:
        return [self.thaw(v, (at, i)) for i, v in enumerate(need(structure, list, at))]

    def items(self, structure: Any, at: At) -> Iterator[tuple[Any, Any]]:
        for i, pair in enumerate(need(structure, list, at)):
            if type(pair) is not list or len(pair) != 2:
                raise CassetteError(
                    f"{place_text((at, i))}: an item is a list of a key and a value"
                )
            yield self.thaw(pair[0], ((at, i), 0)), self.thaw(pair[1], ((at, i), 1))

    def _thaw_list(self, structure: list[Any], at: At) -> list[Any]:
        values: list[Any] = []
        self._built.append((at, values))
        values.extend(
            v if type(v) in _PLAIN else self.thaw(v, (at, i)) for i, v in enumerate(structure)
        )
        return values

    def _thaw_dict(self, structure: dict[Any, Any], at: At) -> dict[str, Any]:
        values: dict[str, Any] = {}
        self._built.append((at, values))
        for key, value in structure.items():
            if type(key) is not str or (key[:1] == "<" and not key.startswith("<secret:")):
                raise CassetteError(
                    f"{place_text(at)}: {key!r} is not a key of a frozen dict; write it as items"
                )
            values[key] = self.thaw(value, (at, key))
        return values

    def _thaw_marked(self, structure: dict[str, Any], at: At) -> Any:
        name = structure[TYPE]
        codec = self._find(name) if type(name) is str else None
        if codec is None:
            raise CassetteError(f"{place_text(at)}: {name!r} is not a type that can be recorded")
        try:
            value = codec.thaw(structure, self, at)
        except CassetteError:
            raise
        except KeyError as missing:
            raise CassetteError(
                f"{place_text(at)}: a recorded {name} without {missing}"
            ) from missing
        except Exception as reason:
            raise CassetteError(f"{place_text(at)}: not a recorded {name}: {reason}") from reason
        return self.built(value, at)

    def places(self) -> dict[str, Any]:
        """What stands at each place that was thawed."""
        while self._built:
            at, value = self._built.popleft()
            self._places[place_text(at)] = value
        return self._places

    def built(self, value: _Built, at: At) -> _Built:
        """Remember what stands at a place, for what is the same further on."""
        self._built.append((at, value))
        return value

    def _thaw_reference(self, structure: dict[str, Any], at: At) -> Any:
        places = self.places()
        place = need(structure[SAME], str, (at, SAME))
        if place not in places:
            raise CassetteError(
                f"{place_text(at)}: same as {place!r}, which is not a place before it"
            )
        return places[place]


def need(value: Any, kind: type, at: At) -> Any:
    """The value, if it is exactly of that type (a bool is not an int here)."""
    if type(value) is not kind:
        raise CassetteError(
            f"{place_text(at)}: expected {kind.__name__}, not {type(value).__name__}"
        )
    return value


def depth(structure: Any) -> int:
    """Levels of dicts and lists; a scalar has none."""
    level, inner = 0, [structure]
    while containers := [s for s in inner if type(s) in (dict, list)]:
        level += 1
        inner = [v for s in containers for v in (s.values() if type(s) is dict else s)]
    return level


_GENERATOR = "a generator can be read once only: return it alone, not inside of another value, or return a list"
_REASONS = {
    "generator": _GENERATOR,
    "async_generator": _GENERATOR,
    "coroutine": "await it first",
    "module": "a module is code, not data",
    "function": "a function is code, not data",
    "type": "a class is code, not data",
}
