"""Store room: a request that repeats history refers to it. Pure: structure in, structure out.

In a folded body a run of list items may stand as {"<from>": "78a670b1 messages[0:17]"}, a long text as
{"<from>": "78a670b1 system"}; the call named is an earlier one of the same run, or "RUN/78a670b1" of another.
Only requests refer, and only to requests: editing a reply by hand never changes what was asked.
"""

from __future__ import annotations

import hashlib
import json
import marshal
import re
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from tape_jupyter.errors import CassetteError

MARK = "<from>"
LONG_TEXT = 200
WORTH = 64  # characters of JSON that a reference must save: below, the items themselves read better
REMEMBERED = 64  # bodies whose items can be referred to; older ones are stored anew
_TEXTS_KEPT = 4096
_MOST_NODES = 2_000_000  # of an unfolded body; a few hostile lines could ask for any number
_MOST_TEXT = 128 * 1024 * 1024
_DEPTH = 3  # dictionaries below the body that are looked into: toolConfig.tools, systemInstruction.parts
_REF = re.compile(r"(?:([^\s/]+)/)?([0-9a-f]{8}(?:-\d+)?) ([^\[\]]+?)(?:\[(\d{1,9}):(\d{1,9})\])?\Z")


class Ref(NamedTuple):
    """A parsed reference: `run` is "" for the same run; `start`/`stop` are None for a whole text."""

    run: str
    call: str
    path: str
    start: int | None
    stop: int | None


def parse_ref(text: Any) -> Ref:
    found = _REF.match(text) if isinstance(text, str) else None
    if not found:
        raise CassetteError(f'{text!r:.100} is not a reference; write it like "78a670b1 messages[0:17]"')
    run, call, path, start, stop = found.groups()
    return Ref(run or "", call, path, None if start is None else int(start), None if stop is None else int(stop))


def _alone(mark: dict[str, Any]) -> Ref:
    if len(mark) > 1:
        raise CassetteError(f"beside the reference {str(mark[MARK])[:80]!r} stand other keys; take them out")
    return parse_ref(mark[MARK])


class _Item(NamedTuple):
    """A list's item or a text, as the folder remembers it; `size` in characters of JSON, of a long one about."""

    digest: bytes
    size: int


def _item(value: Any) -> _Item:
    if isinstance(value, int | float) or value is None:
        return _SCALAR
    data = marshal.dumps(value, _PLAIN)
    size = len(data) if len(data) > _SURELY_WORTH else len(json.dumps(value, separators=(",", ":")))
    return _Item(hashlib.sha256(data).digest(), size)


_PLAIN = 2
"""The format of marshal (never read back) whose bytes depend on nothing but the value. Writing JSON takes ten times
as long.
"""
_SURELY_WORTH = 10 * WORTH
_SCALAR = _Item(b"", 0)
"""Numbers and words like true are not referred to: lists of numbers stay on one line."""


def _places(body: dict[str, Any], prefix: str = "", depth: int = _DEPTH) -> Iterator[tuple[str, Any]]:
    for key, value in body.items():
        if not key or not key.replace("_", "").replace("-", "").isalnum():
            continue
        path = f"{prefix}{key}"
        if isinstance(value, dict) and depth > 1:
            yield from _places(value, path + ".", depth - 1)
        elif (isinstance(value, list) and value) or (isinstance(value, str) and len(value) > LONG_TEXT):
            yield path, value


class Folder:
    """Remembers what the requests of this session held, and folds later requests against it."""

    def __init__(self) -> None:
        self._items: dict[tuple[str, bytes], tuple[str, str, int]] = {}
        self._texts: dict[tuple[str, bytes], tuple[str, str]] = {}
        self._bodies: OrderedDict[tuple[str, str], dict[str, list[_Item]]] = OrderedDict()
        self.known = 0
        """How many bodies it was told of: as long as no other is, the same body is folded alike."""

    def fold(self, run: str, body: Any) -> tuple[Any, Callable[[str], None]]:
        """The body with references, and `remember(call id)` to be called once the record is committed."""
        if not isinstance(body, dict):
            return body, lambda _call: None
        lists: dict[str, list[_Item]] = {}
        texts: dict[str, bytes] = {}
        folded = body
        for path, value in _places(body):
            if isinstance(value, list):
                lists[path] = [_item(item) for item in value]
                new = self._fold_list(run, path, value, lists[path])
            else:
                texts[path] = _item(value).digest
                new = self._fold_text(run, path, value, texts[path])
            folded = folded if new is value else _put(folded, path.split("."), new)
        return folded, lambda call: self._remember(run, call, lists, texts)

    def _fold_text(self, run: str, path: str, value: str, digest: bytes) -> Any:
        held = self._texts.get((path, digest))
        return {MARK: f"{_name(run, *held)} {path}"} if held else value

    def _fold_list(self, run: str, path: str, value: list[Any], items: list[_Item]) -> list[Any]:
        out: list[Any] = []
        at = 0
        while at < len(value):
            length, name, start = self._same(run, path, items, at)
            if name and sum(item.size for item in items[at : at + length]) >= WORTH:
                out.append({MARK: f"{name} {path}[{start}:{start + length}]"})
            else:
                out += value[at : at + length]
            at += length
        return value if out == value else out

    def _same(self, run: str, path: str, items: list[_Item], at: int) -> tuple[int, str, int]:
        """How many items from `at` on stand in one remembered list (at least 1: itself), in which call, and where."""
        held = self._items.get((path, items[at].digest)) if items[at].size else None
        source = self._bodies.get(held[:2], {}).get(path) if held else None
        if held is None or source is None:
            return 1, "", 0
        start = held[2]
        most = min(len(items) - at, len(source) - start)
        length = next((i for i in range(most) if items[at + i] != source[start + i]), most)
        return length, _name(run, *held[:2]), start

    def _remember(self, run: str, call: str, lists: dict[str, list[_Item]], texts: dict[str, bytes]) -> None:
        self.known += 1
        self._bodies[run, call] = lists
        for path, items in lists.items():
            for index, item in enumerate(items):
                if item.size:
                    self._items[path, item.digest] = (run, call, index)
        for path, digest in texts.items():
            self._texts.setdefault((path, digest), (run, call))
        if len(self._bodies) > REMEMBERED:
            self._drop_oldest()
        while len(self._texts) > _TEXTS_KEPT:
            del self._texts[next(iter(self._texts))]

    def _drop_oldest(self) -> None:
        oldest, bodies = self._bodies.popitem(last=False)
        for path, items in bodies.items():
            for item in items:
                if self._items.get((path, item.digest), ("", "", 0))[:2] == oldest:
                    del self._items[path, item.digest]


def _name(run: str, other: str, call: str) -> str:
    return call if other == run else f"{other}/{call}"


def _put(value: dict[str, Any], path: list[str], new: Any) -> dict[str, Any]:
    return {**value, path[0]: new if len(path) == 1 else _put(value[path[0]], path[1:], new)}


def _get(value: Any, path: str) -> Any:
    for key in path.split("."):
        value = value.get(key) if isinstance(value, dict) else None
    return value


def references(body: Any) -> list[Ref]:
    """Every reference in a folded body (lists and dictionaries are walked without recursion)."""
    found: list[Ref] = []
    stack = [body]
    while stack:
        value = stack.pop()
        if isinstance(value, dict):
            if MARK in value:
                found.append(_alone(value))
            else:
                stack.extend(value.values())
        elif isinstance(value, list):
            stack.extend(value)
    return found


def unfold(body: Any, held: Callable[[Ref], Any]) -> Any:
    """The body with every reference replaced; `held(ref)` gives the *unfolded* body of the call it names."""
    if isinstance(body, list):
        out: list[Any] = []
        for item in body:
            if isinstance(item, dict) and MARK in item:
                out.extend(_slice(_alone(item), held))
            else:
                out.append(unfold(item, held))
            if len(out) > _MOST_NODES:
                raise CassetteError(_TOO_MUCH)
        return out
    if isinstance(body, dict):
        if MARK in body:
            return _text(_alone(body), held)
        return {key: unfold(value, held) for key, value in body.items()}
    return body


def _slice(ref: Ref, held: Callable[[Ref], Any]) -> list[Any]:
    items = _get(held(ref), ref.path)
    fits(ref, {ref.path: len(items)} if isinstance(items, list) else {})
    return items[ref.start : ref.stop] if isinstance(items, list) else []


def _text(ref: Ref, held: Callable[[Ref], Any]) -> str:
    text = _get(held(ref), ref.path)
    fits(ref, {ref.path: None} if isinstance(text, str) else {})
    return str(text)


Shape = dict[str, int | None]
"""What a body has to refer to: its lists by path, with their unfolded lengths, and its texts (None)."""


def shape(folded: Any) -> Shape:
    found: Shape = {}
    stack = [("", folded)]
    while stack:
        path, value = stack.pop()
        if isinstance(value, list):
            found[path] = sum(_length(item) for item in value)
        elif isinstance(value, str) or (isinstance(value, dict) and next(iter(value), "")[:1] == "<"):
            found[path] = None  # a reference or an asset stands for a text
        elif isinstance(value, dict):
            stack += [(f"{path}.{key}" if path else key, item) for key, item in value.items()]
    return found


def _length(item: Any) -> int:
    if not isinstance(item, dict) or MARK not in item:
        return 1
    ref = parse_ref(item[MARK])
    return (ref.stop or 0) - (ref.start or 0)


def fits(ref: Ref, shape: Shape) -> None:
    """Raises CassetteError where a reference asks for what a body of this shape does not have."""
    if ref.start is None or ref.stop is None:
        if ref.path not in shape or shape[ref.path] is not None:
            raise CassetteError(f"call {ref.call} has no text {ref.path!r} to refer to")
        return
    length = shape.get(ref.path)
    if length is None:
        raise CassetteError(f"call {ref.call} has no list {ref.path!r} to refer to")
    if not ref.start < ref.stop <= length:
        raise CassetteError(f"{ref.path}[{ref.start}:{ref.stop}] is outside call {ref.call}, which holds {length}")


_TOO_MUCH = "its references unfold to more than any request holds; restore the file, or record again"


def bounded(body: Any) -> Any:
    """The unfolded body itself. Raises CassetteError where it is larger than any request: references that multiply."""
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
