"""A request that repeats history refers to it. Pure: structure in, structure out.

In a folded body a run of list items may stand as {"<from>": "78a670b1 messages[0:17]"}, a long text
as {"<from>": "78a670b1 system"}; the call named is an earlier one of the same run, or
"RUN/78a670b1" of another. Only requests refer, and only to requests: editing a reply by hand never
changes what was asked.

Follows the references of request bodies to the bodies they name. Reads through what it is given.

References only go back in the file, so bodies are unfolded oldest first: no recursion, however long
the chain, and a body is let go once the last one that refers to it is whole.
"""

from __future__ import annotations

import hashlib
import json
import marshal
import operator
import re
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from tape_jupyter.errors import CassetteError

MARK = "<from>"
LONG_TEXT = 200
WORTH = 64  # characters of JSON that a reference must save: below, the items themselves read better
REMEMBERED = 64  # lists at a path whose items can be referred to; older ones are stored anew
_RECENT = 8  # lists at a path that another may go on from: as many agents may ask beside each other
_TEXTS_KEPT = 4096
_MOST_NODES = 2_000_000  # of an unfolded body; a few hostile lines could ask for any number
_MOST_TEXT = 128 * 1024 * 1024
_DEPTH = (
    3  # dictionaries below the body that are looked into: toolConfig.tools, systemInstruction.parts
)
_REF = re.compile(
    r"(?:([^\s/]+)/)?([0-9a-f]{8}(?:-\d+)?) ([^\[\]]+?)(?:\[(\d{1,9}):(\d{1,9})\])?\Z"
)


class Ref(NamedTuple):
    """A parsed reference: `run` is "" for the same run; `start`/`stop` are None for a whole text."""

    run: str
    call: str
    path: str
    start: int | None
    stop: int | None


def parse_ref(text: Any) -> Ref:
    match = _REF.match(text) if isinstance(text, str) else None
    if not match:
        raise CassetteError(
            f'{text!r:.100} is not a reference; write it like "78a670b1 messages[0:17]"'
        )
    run, call, path, start, stop = match.groups()
    return Ref(
        run or "",
        call,
        path,
        None if start is None else int(start),
        None if stop is None else int(stop),
    )


def _parse_lone_ref(mark: dict[str, Any]) -> Ref:
    if len(mark) > 1:
        raise CassetteError(
            f"beside the reference {str(mark[MARK])[:80]!r} there are other keys; remove them"
        )
    return parse_ref(mark[MARK])


class _Item(NamedTuple):
    """A list's item or a text, as the folder remembers it; `size` in characters of JSON, of a long
    one about.
    """

    digest: bytes
    size: int


def _build_item(value: Any) -> _Item:
    if isinstance(value, int | float) or value is None:
        return _SCALAR
    data = marshal.dumps(value, _PLAIN)
    if len(data) > _SURELY_WORTH:
        size = len(data)
    else:
        size = len(_encode(value))
    return _Item(hashlib.sha256(data).digest(), size)


_PLAIN = 2
"""The format of marshal (never read back) whose bytes depend on nothing but the value. Writing JSON
takes ten times as long.
"""
_SURELY_WORTH = 10 * WORTH
_encode = json.JSONEncoder(separators=(",", ":")).encode
_SCALAR = _Item(b"", 0)
"""Numbers and words like true are not referred to: lists of numbers stay on one line. All are this
one item, which therefore never shows that two values are the same.
"""


@dataclass(slots=True)
class _Sequence:
    """The items of a list as the newest call of those whose lists grew into it has them."""

    owner: tuple[str, str]
    items: list[_Item]


class _Listed(NamedTuple):
    """A list as it was folded, what is known of its items, the bytes of those where they had to be
    compared, the sequence that it goes on from, or is, and the items of the list that it goes on from.
    Of its `referable` first items each can be referred to.
    """

    value: list[Any]
    items: list[_Item]
    data: bytes
    sequence: _Sequence | None
    before: list[_Item]
    referable: int

    def count_known(self, sequence: _Sequence) -> int:
        """How many of its first items are known to be those of the sequence, and can be referred to:
        none of them needs to be looked at again.
        """
        return min(self.referable, len(self.before)) if sequence.items is self.before else 0


_LIST_HEAD = 5
"""Bytes of marshal before a list's items: its kind and its length. The items follow one another,
each ending itself.
"""
_LONGEST_KEPT = 4 * 1024 * 1024


def _build_listed(value: list[Any], earlier: Iterable[_Listed]) -> _Listed:
    """What is known of a list. Where it begins with all of an earlier one, only its new items are
    looked at: these are the same objects, or the same bytes.
    """
    for each in earlier:
        size = len(each.value)
        if (
            size <= len(value)
            and value[size - 1] is each.value[-1]
            and _has_same_objects(value, each)
        ):
            return _grow_listed(value, each, b"")
    data = marshal.dumps(value, _PLAIN)
    kept = data[_LIST_HEAD:] if len(data) <= _LONGEST_KEPT else b""
    for each in earlier:
        if each.data and data.startswith(each.data, _LIST_HEAD):
            return _grow_listed(value, each, kept)
    items = list(map(_build_item, value))
    return _Listed(value, items, kept, None, [], _count_referable(items, 0))


def _has_same_objects(value: list[Any], earlier: _Listed) -> bool:
    return all(map(operator.is_, value, earlier.value))


def _grow_listed(value: list[Any], before: _Listed, data: bytes) -> _Listed:
    items = [*before.items, *map(_build_item, value[len(before.value) :])]
    referable = before.referable
    if referable == len(before.items):
        referable = _count_referable(items, referable)
    return _Listed(value, items, data, before.sequence, before.items, referable)


def _count_referable(items: list[_Item], start: int) -> int:
    """How many of the first items can be referred to; those before `start` can."""
    for at in range(start, len(items)):
        if not items[at].size:
            return at
    return len(items)


def _find_foldable_values(
    body: dict[str, Any], prefix: str = "", depth: int = _DEPTH
) -> Iterator[tuple[str, Any]]:
    for key, value in body.items():
        if not key or not key.replace("_", "").replace("-", "").isalnum():
            continue
        path = f"{prefix}{key}"
        if isinstance(value, dict) and depth > 1:
            yield from _find_foldable_values(value, path + ".", depth - 1)
        elif (isinstance(value, list) and value) or (
            isinstance(value, str) and len(value) > LONG_TEXT
        ):
            yield path, value


class RequestFolder:
    """Remembers what the requests of this session held, and folds later requests against it."""

    def __init__(self) -> None:
        self._items: dict[tuple[str, bytes], tuple[_Sequence, int]] = {}
        self._texts: dict[tuple[str, bytes], tuple[str, str]] = {}
        self._sequences: dict[str, OrderedDict[int, _Sequence]] = {}
        """Of each path those whose items can be referred to, by their identity."""
        self._lists: dict[str, tuple[_Listed, ...]] = {}
        """Of each path the lists that were folded last."""
        self.known = 0
        """How many bodies it was told of: as long as no other is, the same body is folded alike."""

    def fold(self, run: str, body: Any) -> tuple[Any, Callable[[str], None]]:
        """The body with references, and `remember(call id)` to be called once the record is
        committed.
        """
        if not isinstance(body, dict):
            return body, lambda _call: None
        lists: dict[str, _Listed] = {}
        texts: dict[str, bytes] = {}
        folded = body
        for path, value in _find_foldable_values(body):
            if isinstance(value, list):
                lists[path] = listed = _build_listed(value, self._lists.get(path, ()))
                new = self._fold_list(run, path, value, listed)
            else:
                texts[path] = _build_item(value).digest
                new = self._fold_text(run, path, value, texts[path])
            if new is not value:
                folded = _replace_value(folded, path.split("."), new)
        return folded, lambda call: self._remember_body(run, call, lists, texts)

    def _fold_text(self, run: str, path: str, value: str, digest: bytes) -> Any:
        location = self._texts.get((path, digest))
        if location:
            return {MARK: f"{_format_owner(run, *location)} {path}"}
        return value

    def _fold_list(self, run: str, path: str, value: list[Any], listed: _Listed) -> list[Any]:
        out: list[Any] = []
        items, at = listed.items, 0
        while at < len(value):
            length, sequence, start = self._find_remembered_stretch(path, listed, at)
            if sequence and _is_worth_folding(items, at, length):
                name = _format_owner(run, *sequence.owner)
                out.append({MARK: f"{name} {path}[{start}:{start + length}]"})
            else:
                out += value[at : at + length]
            at += length
        return value if out == value else out

    def _find_remembered_stretch(
        self, path: str, listed: _Listed, at: int
    ) -> tuple[int, _Sequence | None, int]:
        """How many items from `at` on stand in one remembered list (at least 1: itself), in which,
        and where.
        """
        items = listed.items
        location = self._items.get((path, items[at].digest)) if items[at].size else None
        if location is None:
            return 1, None, 0
        sequence, start = location
        length = listed.count_known(sequence) if at == start == 0 else 0
        for mine, other in zip(
            items[at + length :], sequence.items[start + length :], strict=False
        ):
            if (mine is not other and mine != other) or not mine.size:
                break
            length += 1
        return length, sequence, start

    def _remember_body(
        self, run: str, call: str, lists: dict[str, _Listed], texts: dict[str, bytes]
    ) -> None:
        self.known += 1
        for path, listed in lists.items():
            sequence = self._remember_sequence(path, listed, (run, call))
            recent = tuple(
                each for each in self._lists.get(path, ()) if each.sequence is not sequence
            )
            self._lists[path] = (listed._replace(sequence=sequence), *recent)[:_RECENT]
        for path, digest in texts.items():
            self._texts.setdefault((path, digest), (run, call))
        while len(self._texts) > _TEXTS_KEPT:
            del self._texts[next(iter(self._texts))]

    def _remember_sequence(self, path: str, listed: _Listed, owner: tuple[str, str]) -> _Sequence:
        """The sequence that a committed list is from now on: the one that it goes on from, if
        nothing else went on from it meanwhile.
        """
        sequences = self._sequences.setdefault(path, OrderedDict())
        sequence, known = listed.sequence, 0
        if (
            sequence is not None
            and id(sequence) in sequences
            and _is_continuation(listed, sequence)
        ):
            known = len(sequence.items)
            sequence.owner, sequence.items = owner, listed.items
        else:
            sequence = _Sequence(owner, listed.items)
            sequences[id(sequence)] = sequence
        sequences.move_to_end(id(sequence))
        for index, item in enumerate(listed.items[known:], known):
            if item.size:
                self._items[path, item.digest] = (sequence, index)
        if len(sequences) > REMEMBERED:
            self._forget_sequence(path, sequences.popitem(last=False)[1])
        return sequence

    def _forget_sequence(self, path: str, oldest: _Sequence) -> None:
        for item in oldest.items:
            if self._items.get((path, item.digest), (None, 0))[0] is oldest:
                del self._items[path, item.digest]


def _is_continuation(listed: _Listed, sequence: _Sequence) -> bool:
    if sequence.items is listed.before:
        return True
    size = len(sequence.items)
    return size <= len(listed.items) and all(map(operator.is_, listed.items, sequence.items))


def _is_worth_folding(items: list[_Item], at: int, length: int) -> bool:
    """Whether so many items save enough to be referred to: most do by their first ones."""
    saved = 0
    for item in items[at : at + length]:
        saved += item.size
        if saved >= WORTH:
            return True
    return False


def _format_owner(run: str, other: str, call: str) -> str:
    return call if other == run else f"{other}/{call}"


def _replace_value(value: dict[str, Any], path: list[str], new: Any) -> dict[str, Any]:
    return {
        **value,
        path[0]: new if len(path) == 1 else _replace_value(value[path[0]], path[1:], new),
    }


def _get_at_path(value: Any, path: str) -> Any:
    for key in path.split("."):
        value = value.get(key) if isinstance(value, dict) else None
    return value


def references(body: Any) -> list[Ref]:
    """Every reference in a folded body (lists and dictionaries are walked without recursion)."""
    refs: list[Ref] = []
    stack = [body]
    while stack:
        value = stack.pop()
        if isinstance(value, dict):
            if MARK in value:
                refs.append(_parse_lone_ref(value))
            else:
                stack.extend(value.values())
        elif isinstance(value, list):
            stack.extend(value)
    return refs


def unfold_references(body: Any, get_body: Callable[[Ref], Any]) -> Any:
    """The body with every reference replaced; `get_body(ref)` gives the *unfolded* body of the call it
    names.
    """
    if isinstance(body, list):
        out: list[Any] = []
        for item in body:
            if isinstance(item, dict) and MARK in item:
                out.extend(_read_slice(_parse_lone_ref(item), get_body))
            else:
                out.append(unfold_references(item, get_body))
            if len(out) > _MOST_NODES:
                raise CassetteError(_TOO_MUCH)
        return out
    if isinstance(body, dict):
        if MARK in body:
            return _read_text(_parse_lone_ref(body), get_body)
        return {key: unfold_references(value, get_body) for key, value in body.items()}
    return body


def _read_slice(ref: Ref, get_body: Callable[[Ref], Any]) -> list[Any]:
    items = _get_at_path(get_body(ref), ref.path)
    check_reference(ref, {ref.path: len(items)} if isinstance(items, list) else {})
    return items[ref.start : ref.stop] if isinstance(items, list) else []


def _read_text(ref: Ref, get_body: Callable[[Ref], Any]) -> str:
    text = _get_at_path(get_body(ref), ref.path)
    check_reference(ref, {ref.path: None} if isinstance(text, str) else {})
    return str(text)


Shape = dict[str, int | None]
"""What a body has to refer to: its lists by path, with their unfolded lengths, and its texts
(None).
"""


def shape(folded: Any) -> Shape:
    sizes: Shape = {}
    stack = [("", folded)]
    while stack:
        path, value = stack.pop()
        if isinstance(value, list):
            sizes[path] = sum(_count_items(item) for item in value)
        elif isinstance(value, str) or (
            isinstance(value, dict) and next(iter(value), "")[:1] == "<"
        ):
            sizes[path] = None  # a reference or an asset stands for a text
        elif isinstance(value, dict):
            stack += [(f"{path}.{key}" if path else key, item) for key, item in value.items()]
    return sizes


def _count_items(item: Any) -> int:
    if not isinstance(item, dict) or MARK not in item:
        return 1
    ref = parse_ref(item[MARK])
    return (ref.stop or 0) - (ref.start or 0)


def check_reference(ref: Ref, shape: Shape) -> None:
    """Raises CassetteError where a reference asks for what a body of this shape does not have."""
    if ref.start is None or ref.stop is None:
        if ref.path not in shape or shape[ref.path] is not None:
            raise CassetteError(f"call {ref.call} has no text {ref.path!r} to refer to")
        return
    length = shape.get(ref.path)
    if length is None:
        raise CassetteError(f"call {ref.call} has no list {ref.path!r} to refer to")
    if not ref.start < ref.stop <= length:
        raise CassetteError(
            f"{ref.path}[{ref.start}:{ref.stop}] is outside call {ref.call}, which holds {length}"
        )


_TOO_MUCH = (
    "its references unfold to more than any request holds; restore the file, or record again"
)


def check_body_size(body: Any) -> Any:
    """The unfolded body itself. Raises CassetteError where it is larger than any request:
    references that multiply.
    """
    nodes, text, stack = 0, 0, [body]
    while stack:
        value = stack.pop()
        if isinstance(value, str):
            text += len(value)
        elif isinstance(value, dict | list):
            nodes += len(value)
            if nodes > _MOST_NODES:
                break
            stack.extend(value.values() if isinstance(value, dict) else value)
        if text > _MOST_TEXT:
            break
    else:
        return body
    raise CassetteError(_TOO_MUCH)


Key = tuple[str, str]
"""Run id and call id."""

_KEPT = 128  # whole bodies: the next request of a conversation refers to one of the last


class Histories:
    """Unfolds bodies. `place(key)` is where a call's record begins (None: no such call),
    `folded(key)` its body.
    """

    def __init__(self, place: Callable[[Key], int | None], folded: Callable[[Key], Any]) -> None:
        self._place, self._folded = place, folded
        self._expanded: OrderedDict[Key, Any] = OrderedDict()

    def clear(self) -> None:
        self._expanded.clear()

    def body(self, key: Key, folded: Any) -> Any:
        """The body of a call with every reference replaced. Raises CassetteError naming both calls."""
        bodies, unfolded = self._collect_needed_bodies(key, folded)
        uses = Counter(other for owner, body in bodies.items() for other in targets(owner, body))
        for owner in sorted(bodies, key=lambda k: self._place(k) or 0):
            body = unfold_references(bodies[owner], partial(_find_body, unfolded, owner))
            for other in targets(owner, bodies[owner]):
                uses[other] -= 1
                if not uses[other]:
                    del unfolded[other]
            unfolded[owner] = self._cache_body(owner, body)
        return check_body_size(unfolded[key]) if targets(key, folded) else folded

    def _collect_needed_bodies(
        self, key: Key, folded: Any
    ) -> tuple[dict[Key, Any], dict[Key, Any]]:
        """The folded bodies that must be unfolded for this one, and the whole ones that are at
        hand.
        """
        bodies, unfolded = {key: folded}, {}
        waiting = [key]
        while waiting:
            owner = waiting.pop()
            for other in targets(owner, bodies[owner]):
                require_earlier(owner, other, self._place)
                if other in self._expanded:
                    unfolded[other] = self._expanded[other]
                elif other not in bodies:
                    bodies[other] = self._folded(other)
                    waiting.append(other)
        return bodies, unfolded

    def _cache_body(self, key: Key, body: Any) -> Any:
        self._expanded[key] = body
        while len(self._expanded) > _KEPT:
            self._expanded.popitem(last=False)
        return body


class ReferenceCheck:
    """Checks the references of a file's bodies in file order, by their lengths alone: in time
    linear in the file.
    """

    def __init__(
        self, place: Callable[[Key], int | None], below: Callable[[Key], Shape] = lambda _: {}
    ) -> None:
        """`below`: the shape of a body that stands before the records that are checked (in a take's
        base).
        """
        self._place, self._below = place, below
        self._shapes: dict[Key, Shape] = {}

    def body(self, key: Key, folded: Any) -> bool:
        """Whether the body refers to others. Raises CassetteError for a reference to what is not
        there.
        """
        refs = references(folded)
        for ref in refs:
            other = reference_target(key, ref)
            require_earlier(key, other, self._place)
            if other not in self._shapes:
                self._shapes[other] = self._below(other)
            check_reference(ref, self._shapes[other])
        self._shapes[key] = shape(folded)
        return bool(refs)


def _find_body(unfolded: Mapping[Key, Any], owner: Key, ref: Ref) -> Any:
    return unfolded[reference_target(owner, ref)]


def reference_target(owner: Key, ref: Ref) -> Key:
    return ref.run or owner[0], ref.call


def targets(owner: Key, folded: Any) -> set[Key]:
    return {reference_target(owner, ref) for ref in references(folded)}


def require_earlier(owner: Key, other: Key, place: Callable[[Key], int | None]) -> None:
    there, here = place(other), place(owner)
    named = "/".join(other) if other[0] != owner[0] else other[1]
    if there is None:
        raise CassetteError(
            f"call {owner[1]} refers to call {named}, which is not in this cassette", line=2
        )
    if here is not None and there >= here:
        raise CassetteError(
            f"call {owner[1]} refers to call {named}, which does not come before it", line=2
        )
