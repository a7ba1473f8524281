"""Values written and read beside a program's own objects: one that is there already is told by its
path.
"""

from __future__ import annotations

import functools
import sys
import weakref
from collections import deque
from collections.abc import Callable, Mapping
from types import BuiltinMethodType, MethodType
from typing import Any

from tape_jupyter.effects import kinds, made_classes
from tape_jupyter.encoding.values import registry
from tape_jupyter.encoding.values.tracebacks import FRAMES, put_own_frames, with_own_frames
from tape_jupyter.encoding.values.user_classes import (
    BY_NAME,
    PLAIN,
    class_path,
    find_class,
    has_hash_of_its_own,
    is_namedtuple,
)
from tape_jupyter.encoding.values.walker import (
    SAME,
    TYPE,
    At,
    CannotFreeze,
    Codec,
    Entangled,
    Freezer,
    Thawer,
    need,
    place_text,
)
from tape_jupyter.errors import CassetteError

STANDING = "standing"
VIEW = "view"
WEAK = "weak reference"
_LEAVES = frozenset({str, int, float, bool, type(None)})


MADE = "made"
_MOST_MADE = 5_000
"""Objects of libraries that one body may make and leave behind."""


class _MadeObjects:
    """The objects that a body made, by number, and the records of them that are written.

    `before` counts the records that are to stand before the change that is written now.
    """

    def __init__(self) -> None:
        self.values: list[Any] = []
        self.waiting: deque[int] = deque()
        self.unfinished: set[int] = set()
        self.records: list[dict[str, Any]] = []
        self.before = 0
        self._numbers: dict[int, int] = {}  # by the id of each

    def add(self, value: Any) -> int:
        """The number of a new one, whose record is to be written."""
        number = self._numbers[id(value)] = len(self.values)
        self.values.append(value)
        self.waiting.append(number)
        self.unfinished.add(number)
        return number

    def find(self, value: Any) -> int | None:
        return self._numbers.get(id(value))

    def finish(self, number: int, record: dict[str, Any]) -> None:
        self.unfinished.discard(number)
        self.records.append(record)

    def mark(self) -> tuple[int, int, int]:
        return len(self.values), len(self.records), self.before

    def put_first(self, mark: tuple[int, int, int]) -> None:
        """Have the records since then stand before the change that is written now."""
        _, since, _ = mark
        finished = self.records[since:]
        del self.records[since:]
        self.records[self.before : self.before] = finished
        self.before += len(finished)

    def return_to(self, mark: tuple[int, int, int]) -> None:
        values, records, before = mark
        del self.records[before : self.before], self.records[records:]
        self.before = before
        for value in self.values[values:]:
            del self._numbers[id(value)]
        del self.values[values:]
        self.waiting.clear()
        self.unfinished.clear()

    def take_records(self) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """Those to stand before the change that was written last, and behind it."""
        records, self.records = self.records, []
        before, self.before = self.before, 0
        return records[:before], records[before:]


class Writing(Freezer):
    """A walk that writes what stands in the program already as {"<type>": "standing", "at": path}.

    Objects that it makes again from their attributes (made_classes.py) are written beside, each as a
    record of its own that others refer to by {"<type>": "standing", "at": "made[3]"}, so that they
    may lead to each other. What is in a set, or a key, has its record before what refers to it: it is
    asked for its hash.
    """

    def __init__(self, find_path: Callable[[Any], str | None]) -> None:
        super().__init__(registry.state_codec)
        self._unchanged = find_path
        self._itself: Any = None
        self._made = _MadeObjects()
        self._is_hashing = False
        self._is_flat = False
        self.holder: type | None = None
        """The class of the object whose attributes are written."""

    def attempt_contents(self, value: Any, at: At) -> tuple[bool, Any]:
        """`attempt` for an object that stands in the program, written as what it is now."""
        self._itself = value
        return self.attempt(value, at)

    def attempt_members(self, values: list[Any], at: At) -> tuple[bool, Any]:
        """`attempt` for members of a set."""
        return self._attempt(
            lambda: [self._freeze_hashed(v, (at, i)) for i, v in enumerate(values)]
        )

    def attempt_item(self, key: Any, value: Any, at: At) -> tuple[bool, Any]:
        """`attempt` for a key and its value."""
        return self._attempt(
            lambda: [self._freeze_hashed(key, (at, 0)), self.freeze(value, (at, 1))]
        )

    def attempt(self, value: Any, at: At) -> tuple[bool, Any]:
        return self._attempt(lambda: self.freeze(value, at))

    def _attempt(self, write: Callable[[], Any]) -> tuple[bool, Any]:
        """Objects of the program's own classes stand inside of each other where they can."""
        done, structure, is_entangled = self._attempt_once(write)
        if is_entangled:
            self._is_flat = True
            done, structure, _ = self._attempt_once(write)
            self._is_flat = False
        return done, structure

    def _attempt_once(self, write: Callable[[], Any]) -> tuple[bool, Any, bool]:
        """Whether it could be written; the structure, or why not; and whether it leads back to itself."""
        seen, made = len(self._seen), self._made.mark()
        try:
            structure = write()
            self._made.put_first(made)
            while self._made.waiting:
                self._finish(self._made.waiting.popleft())
        except Exception as reason:  # CannotFreeze, or the object's own code failed
            self._forget_since(seen)
            self._made.return_to(made)
            self._depth, self._is_hashing = 0, False
            return False, str(reason), isinstance(reason, Entangled)
        return True, structure, False

    def take_records(self) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """The records to stand before the change that was written last, and behind it."""
        return self._made.take_records()

    def made_place(self, value: Any) -> str:
        """How one of these objects is told; "" for any other."""
        number = self._made.find(value)
        return "" if number is None else f"{MADE}[{number}]"

    def freeze(self, value: Any, at: At) -> Any:
        kind = type(value)
        if kind not in _LEAVES and value is not self._itself:
            try:
                path = self._unchanged(value)
            except LookupError as why:
                raise CannotFreeze(at, value, str(why)) from None
            if path is not None:
                return {TYPE: STANDING, "at": path}
            if self._is_made(value):
                return self._refer_to_made(value, at)
            if reference := self._refer(value, at):
                return reference
            if kind in _CODE or isinstance(value, type):
                return self._freeze_code(value, at)
            if is_namedtuple(kind):
                return self._freeze_once(value, at, super().freeze)
        return self._freeze_with_frames(value, at)

    def _freeze_with_frames(self, value: Any, at: At) -> Any:
        """Of an error, with where it was raised."""
        structure = super().freeze(value, at)
        is_error = isinstance(value, BaseException) and SAME not in structure
        return with_own_frames(structure, value) if is_error else structure

    def _refer(self, value: Any, at: At) -> dict[str, Any]:
        """What leads to another object and has nothing of its own; {} for any other."""
        if type(value) is weakref.ReferenceType and _is_plain_reference(value):
            return {TYPE: WEAK, "to": self.freeze(value(), (at, "to"))}
        if id(value) in self._seen or not self._is_view(value):
            return {}
        reference: dict[str, Any] = self._freeze_once(value, at, self._freeze_view)
        return reference

    def _is_view(self, value: Any) -> bool:
        """Whether it is a part of an array that stands in the program, or is written already."""
        numpy = sys.modules.get("numpy")
        if numpy is None or type(value) is not numpy.ndarray or not is_viewable(value.base):
            return False
        base = value.base
        return id(base) in self._seen or self._unchanged(base) is not None

    def _freeze_view(self, value: Any, at: At) -> dict[str, Any]:
        base = value.base
        start = value.__array_interface__["data"][0] - base.__array_interface__["data"][0]
        return {
            TYPE: VIEW,
            "of": self.freeze(base, (at, "of")),
            "offset": start,
            "shape": list(value.shape),
            "strides": list(value.strides),
            "dtype": value.dtype.str,
        }

    def _is_made(self, value: Any) -> bool:
        kind = type(value)
        is_known = self._made.find(value) is not None
        if is_known or id(value) in self._seen:
            return is_known
        codec = self.codec_of(kind)
        is_nested = codec is not None and not (self._is_flat and codec in _FLAT)
        return not is_nested and made_classes.made_base(kind) is not None

    def _refer_to_made(self, value: Any, at: At) -> dict[str, Any]:
        made = self._made
        number = made.find(value)
        if number is None:
            if len(made.values) >= _MOST_MADE:
                raise CannotFreeze(at, value, f"more than {_MOST_MADE:,} objects were made")
            number = made.add(value)
        has_own_hash = has_hash_of_its_own(type(value))
        if self._is_hashing and number in made.unfinished and has_own_hash:
            if number in made.waiting:
                made.waiting.remove(number)
                self._finish(number)
            elif not made_classes.is_hash_of_plain_parts(value):
                raise CannotFreeze(at, value, "its hash depends on what leads back to it")
        return {TYPE: STANDING, "at": f"{MADE}[{number}]"}

    def _finish(self, number: int) -> None:
        """Write the record of one."""
        value = self._made.values[number]
        place: At = ((None, MADE), number)
        outer, self.holder, self._depth = (self.holder, self._depth), type(value), 0
        record = {"at": f"{MADE}[{number}]", **made_classes.describe_class(value, place)}
        try:
            record |= self._write_content(value, (place, "content"))
            attributes = made_classes.attributes_of(value)
            if attributes:
                record["attributes"] = self.mapping(attributes, (place, "attributes"))
        except CannotFreeze as why:
            raise type(why)(None, value, str(why)) from None
        self.holder, self._depth = outer
        self._made.finish(number, record)

    def _write_content(self, value: Any, at: At) -> dict[str, Any]:
        base = made_classes.made_base(type(value))
        if base in made_classes.TEXTS:
            return {"content": super().freeze(base(value), at)}
        if base in made_classes.SEQUENCES:
            limit = {"maxlen": value.maxlen} if base is deque else {}
            return {"content": self.sequence(list(base.__iter__(value)), at), **limit}
        if base in made_classes.MAPPINGS:
            return {"content": self.items(kinds.MAPPING.copy_state(value), at)}
        if base is set:
            members = sorted(set.__iter__(value), key=repr)
            return {"content": [self._freeze_hashed(v, (at, i)) for i, v in enumerate(members)]}
        if base is not object:  # an element
            state = kinds.ELEMENT.copy_state(value)
            return {"content": self.mapping({n: state[n] for n in kinds.ELEMENT_PARTS}, at)}
        return {}

    def items(self, value: Any, at: At) -> list[list[Any]]:
        return [
            [self._freeze_hashed(k, ((at, i), 0)), self.freeze(v, ((at, i), 1))]
            for i, (k, v) in enumerate(value.items())
        ]

    def _freeze_hashed(self, value: Any, at: At) -> Any:
        outer, self._is_hashing = self._is_hashing, True
        structure = self.freeze(value, at)
        self._is_hashing = outer
        return structure

    def freeze_unshared(self, value: Any, at: At) -> Any:
        """Of a member of a set, which is written before it, so that its hash is known."""
        before = len(self._seen)
        structure = self._freeze_hashed(value, at)
        new = list(self._seen.items())[before:]
        self._forget_since(before)
        self._seen |= {key: seen for key, seen in new if _is_in_record(seen[0])}
        return structure

    def _freeze_code(self, value: Any, at: At) -> Any:
        """A class or a method that an object of a library keeps, where it is of the same library."""
        if isinstance(value, type):
            if made_classes.may_name(value, self.holder):
                return {TYPE: "class", "class": class_path(value)}
        elif type(value) is functools.partial:
            if type(value.func) in _METHODS:
                parts = {"func": value.func, "args": value.args, "keywords": value.keywords}
                return {TYPE: "partial", **self.mapping(parts, at)}
        elif made_classes.find_method(value.__self__, value.__name__, self.holder) == value:
            of = self.freeze(value.__self__, (at, "of"))
            return {TYPE: "method", "of": of, "name": value.__name__}
        return super().freeze(value, at)


_METHODS = frozenset({MethodType, BuiltinMethodType, type([].__len__)})
_CODE = _METHODS | {functools.partial}
_FLAT = (PLAIN, BY_NAME["dataclass"])


def _is_in_record(at: At) -> bool:
    """Whether a place is in the record of an object that was made."""
    while at is not None and at[0] is not None:
        at = at[0]
    return at is not None and at[1] == MADE


def is_viewable(base: Any) -> bool:
    """Whether it is an array in one piece, of plain values, others of which share the memory."""
    numpy = sys.modules.get("numpy")
    if numpy is None or type(base) is not numpy.ndarray:
        return False
    return bool(base.flags.c_contiguous and base.dtype.isbuiltin == 1 and not base.dtype.hasobject)


class EffectReader(Thawer):
    """The other direction; `resolve` gives the object of a path."""

    def __init__(self, resolve: Callable[[str], Any]) -> None:
        self.holder: type | None = None
        """The class of the object whose attributes are read."""
        codecs = {
            name: Codec(name, _write_nothing, thaw)
            for name, thaw in (
                (STANDING, lambda s, _walk, at: resolve(need(s["at"], str, at))),
                ("class", _thaw_class),
                ("method", _thaw_method),
                ("partial", _thaw_partial),
                (VIEW, _thaw_view),
                (WEAK, _thaw_weak),
            )
        }
        super().__init__(lambda name: codecs.get(name) or registry.state_codec_named(name))

    def thaw(self, structure: Any, at: At) -> Any:
        value = super().thaw(structure, at)
        if isinstance(value, BaseException) and FRAMES in structure:
            put_own_frames(value, structure)
        return value


def _holder_in(walk: Thawer) -> type | None:
    assert isinstance(walk, EffectReader)
    return walk.holder


def _thaw_class(s: dict[str, Any], walk: Thawer, at: At) -> type:
    name = need(s["class"], str, at)
    kind = made_classes.PLAIN_TYPES.get(name) or find_class(name, at)
    if not made_classes.may_name(kind, _holder_in(walk)):
        raise CassetteError(f"the class {name} is not given to a program by a recording")
    return kind


def _thaw_method(s: dict[str, Any], walk: Thawer, at: At) -> Any:
    owner = walk.thaw(s["of"], (at, "of"))
    method = made_classes.find_method(owner, need(s["name"], str, at), _holder_in(walk))
    if method is None:
        raise CassetteError(f"the method {s['name']} is not given to a program by a recording")
    return method


def _thaw_partial(s: dict[str, Any], walk: Thawer, at: At) -> Any:
    parts = walk.mapping({name: s[name] for name in ("func", "args", "keywords")}, at)
    if type(parts["func"]) not in _METHODS:
        raise CassetteError("it calls what no recording may")
    return functools.partial(parts["func"], *parts["args"], **parts["keywords"])


def _is_plain_reference(reference: weakref.ReferenceType[Any]) -> bool:
    """Whether it leads to something, and nothing is called when that goes."""
    return reference() is not None and reference.__callback__ is None


def _thaw_weak(s: dict[str, Any], walk: Thawer, at: At) -> Any:
    target = walk.thaw(s["to"], (at, "to"))
    try:
        return weakref.ref(target)
    except TypeError as why:
        raise CassetteError(str(why)) from None


def _thaw_view(s: dict[str, Any], walk: Thawer, at: At) -> Any:
    base = walk.thaw(s["of"], (at, "of"))
    if not is_viewable(base):
        raise CassetteError("there is no array here whose memory it shares")
    numpy = sys.modules["numpy"]
    kind = numpy.dtype(need(s["dtype"], str, at))
    if kind.hasobject or kind.isbuiltin != 1:
        raise CassetteError(f"an array of {kind} has no memory that others share")
    # within the base's memory: NumPy looks
    return numpy.ndarray(s["shape"], kind, base, s["offset"], s["strides"])


def _write_nothing(_value: Any, _walk: Freezer, _at: At) -> dict[str, Any]:
    return {}  # never asked: Writing writes these


class EffectWriter(Freezer):
    """A walk that writes a result whole, and notes in `same` which parts of it are objects that
    stand somewhere.
    """

    def __init__(self, place_of: Callable[[Any], str]) -> None:
        super().__init__(registry.state_codec)
        self._place_of = place_of
        self.same: dict[str, str] = {}

    def written(self, value: Any) -> Any:
        """The structure, as freezing.freeze gives it. Raises CannotFreeze."""
        return registry.freeze_checked(lambda: self.freeze(value, None), value)

    def freeze(self, value: Any, at: At) -> Any:
        structure = super().freeze(value, at)
        if type(structure) in (dict, list) and type(value) is not tuple:
            place = self._place_of(value)
            if place:
                self.same[place_text(at)] = place
        return structure


class PartRestorer(Thawer):
    """The other direction: a part that is still what was recorded is the program's own object
    again.
    """

    def __init__(self, same: Mapping[str, str], resolve: Callable[[str], Any]) -> None:
        super().__init__(registry.state_codec_named)
        self._same_as, self._unchanged = same, resolve

    def thaw(self, structure: Any, at: At) -> Any:
        place = None
        if self._same_as and type(structure) in (dict, list):
            place = self._same_as.get(place_text(at))
        if place is not None:
            live = self._unchanged(place)
            if live is not None and (
                _is_reference(structure) or _freeze_or_none(live) == structure
            ):
                return self.built(live, at)
        return super().thaw(structure, at)


def _is_reference(structure: Any) -> bool:
    return type(structure) is dict and SAME in structure


def _freeze_or_none(value: Any) -> Any:
    try:
        return Freezer(registry.state_codec).freeze(value, None)
    except CannotFreeze:
        return None
