"""Requests that repeat the one before: an agent sends its whole history each turn, and only what is
new in it is read.

Of each body read lately its beginning is known: up to the end of the last item of its longest
list. A body that begins with the same bytes and goes on with `,` or `]` has the same items there:
these are not parsed, searched for secrets, digested or spelled again. Everything found is what
reading the whole would find; where anything is unusual the caller reads the whole.
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from tape_jupyter.cassette.repeated_bytes import RepeatedBody, SeenBodies
from tape_jupyter.encoding.http import json_style
from tape_jupyter.encoding.http.json_style import Dialect
from tape_jupyter.secrets.registry import Secrets

_KEPT = 8
"""Beginnings that are known at once: as many agents may ask beside each other."""
_SHORTEST, _LONGEST = 1024, 2 * 1024 * 1024
"""Bytes of a body whose beginning is kept."""
_MALFORMED = (ValueError, IndexError, RecursionError)
_BASE64 = b"base64: "
_WHOLE_FLOAT = re.compile(r"\d\.0|\d[eE]")

_Scan = Callable[[str, int], tuple[Any, int]]


class Canonical(NamedTuple):
    """How a body counts for a match key: `text` of a value, the keys that do not count, and the
    scanner that reads numbers as they count.
    """

    text: Callable[[Any], str]
    volatile: frozenset[str]
    scan: _Scan


class Spelled(NamedTuple):
    """A body as its record shows it: `body` spelled in the dialect `json` gives its bytes again."""

    json: str
    body: dict[str, Any]


class ReadRequest(NamedTuple):
    """What a body was found to be: its digest as it counts, its JSON (whole floats as ints), whether
    nothing in it can hide a secret (no escaped characters), its spelling, where it has one, and its
    JSON with as much of its list as is new.
    """

    digest: str
    value: dict[str, Any]
    clean: bool
    spelled: Spelled | None
    news: dict[str, Any]


class _Object(NamedTuple):
    """A JSON object around one list: the members before and after it, its items, and where in the
    text the last of them ends.
    """

    lead: dict[str, Any]
    key: str
    items: list[Any]
    tail: dict[str, Any]
    end: int

    @property
    def value(self) -> dict[str, Any]:
        return {**self.lead, self.key: self.items, **self.tail}


@dataclass(frozen=True, slots=True)
class _Beginning:
    """`data` ends with the last item of `exact`; in `counted` whole floats are ints.

    `opening` is what `counting` digested before the items. `clean` is the Secrets.version that found
    nothing in `data`, `escapes` whether characters are escaped in it, `dialect` what all of it is
    spelled in (None: in several, or in none).
    """

    data: memoryview
    exact: _Object
    counted: _Object
    opening: str
    counting: Any
    clean: int
    escapes: bool
    dialect: Dialect | None


class BodyHistory:
    """The beginnings of the bodies that were read last. Any thread may ask. Whether `word` stands in
    them is known, too.
    """

    def __init__(self, word: bytes = b"") -> None:
        self.seen = SeenBodies(word)
        self._known: tuple[_Beginning, ...] = ()
        self._lock = threading.Lock()

    def build_growing_body(self, body: bytes) -> GrowingBody:
        """A body, with what is known of its beginning."""
        seen = self.seen.compare(body)
        fitting = [each for each in self._known if _goes_on_from(body, each.data, seen)]
        known = max(fitting, key=lambda each: len(each.data), default=None)
        return GrowingBody(self, body, known, seen)

    def remember_beginning(self, beginning: _Beginning, instead: _Beginning | None) -> None:
        """Remember a beginning, in place of the one that it goes on from."""
        with self._lock:
            rest = (each for each in self._known if each is not instead)
            self._known = (beginning, *rest)[:_KEPT]


def _goes_on_from(body: bytes, beginning: memoryview, seen: RepeatedBody) -> bool:
    is_list = body[len(beginning) : len(beginning) + 1] in (b",", b"]")
    return is_list and seen.starts_with(beginning)


class GrowingBody:
    """A body of which the beginning may be known."""

    def __init__(
        self, history: BodyHistory, body: bytes, known: _Beginning | None, seen: RepeatedBody
    ) -> None:
        self._history, self._body, self._known, self._seen = history, body, known, seen
        self._start = len(known.data) if known is not None else 0

    @property
    def marked(self) -> bool:
        """Whether the word of its history stands in it."""
        return self._seen.marked

    def digest(self, head: bytes) -> str:
        """16 hex digits of `head` and the body as it is."""
        return self._seen.digest(head)

    def read(self, address: str, canonical: Canonical, secrets: Secrets) -> ReadRequest | None:
        """The body read, and its beginning known from now on. None where it may hold a secret, or
        is not plainly one JSON object around a list: read it as a whole then.
        """
        version = secrets.version
        if not _SHORTEST <= len(self._body) <= _LONGEST or self._is_suspicious(version, secrets):
            return None
        try:
            return self._read_request(address, canonical, version)
        except _MALFORMED:
            return None

    def _is_suspicious(self, version: int, secrets: Secrets) -> bool:
        if version and self._known is not None and self._known.clean == version:
            return secrets.suspicious_after(self._body, self._start)
        return secrets.suspicious(self._body)

    def _read_request(self, address: str, canonical: Canonical, version: int) -> ReadRequest | None:
        known = self._known
        text = self._body[self._start :].decode("utf-8")
        new = new_counted = self._parse_object(text, _EXACT)
        if _WHOLE_FLOAT.search(text):
            new_counted = self._parse_object(text, canonical.scan)
        if new.key in canonical.volatile or {new.key, *new.lead}.intersection(new.tail):
            return None
        exact = _join_objects(known.exact if known else None, new)
        alike = new is new_counted and (known is None or known.exact is known.counted)
        counted = exact
        if not alike:
            counted = _join_objects(known.counted if known else None, new_counted)
        dialect = self._find_dialect(text, new, exact)
        opening, closing = _write_around_items(address, counted, canonical)
        counting = self._digest_counted(opening, counted, canonical)
        ended = counting.copy()
        ended.update(closing.encode())
        escapes = "\\u" in text or (known is not None and known.escapes)
        end = self._start + len(text[: new.end].encode())
        until = _Beginning(
            memoryview(self._body)[:end], exact, counted, opening, counting, version, escapes, dialect
        )  # fmt: skip
        if _BASE64 not in self._body[self._start :]:  # which goes on for as long as it likes
            self._history.remember_beginning(until, known)
        spelled = Spelled(dialect.name, exact.value) if dialect is not None else None
        news = counted._replace(items=new_counted.items).value
        return ReadRequest(ended.hexdigest(), counted.value, not escapes, spelled, news)

    def _parse_object(self, text: str, scan: _Scan) -> _Object:
        """What of the object stands in the text: all of it, or what follows the known beginning.
        Raises one of _MALFORMED.
        """
        if self._known is None:
            return _parse_whole_object(text, scan)
        items, at = _parse_items(text, 1, scan) if text[0] == "," else ([], 0)
        tail, stop = ({}, at + 2) if text[at + 1] == "}" else _parse_members(text, at + 1, scan)
        if text[at] != "]" or stop != len(text):
            raise ValueError(text[at : at + 20])
        exact = self._known.exact
        return _Object(exact.lead, exact.key, items, tail, at)

    def _find_dialect(self, text: str, new: _Object, exact: _Object) -> Dialect | None:
        """The dialect that the whole body is spelled in, where that is on one line."""
        if self._known is None:
            json_style.require_structure(exact.value, 0)
            candidate = json_style.find_dialect(text, exact.value)
            if candidate is not None and candidate.separator:
                return candidate
            return None
        dialect = self._known.dialect
        if dialect is None:
            return None
        json_style.require_structure(new.items, 1)
        json_style.require_structure(new.tail, 0)
        comma = dialect.separator
        items = "".join(comma + dialect.encode(item) for item in new.items)
        tail = comma + dialect.encode(new.tail)[1:] if new.tail else "}"
        return dialect if f"{items}]{tail}" == text else None

    def _digest_counted(self, opening: str, counted: _Object, canonical: Canonical) -> Any:
        """The digest of what counts up to the end of the list's last item."""
        known, start = self._known, 0
        if known is not None and known.opening == opening:
            digest, start = known.counting.copy(), len(known.counted.items)
        else:
            digest = hashlib.sha256(opening.encode("utf-8", "surrogatepass"))
        new = ",".join(map(canonical.text, counted.items[start:]))
        digest.update(f"{',' if start and new else ''}{new}".encode())
        return digest


def _join_objects(before: _Object | None, new: _Object) -> _Object:
    """What goes on from a known beginning, as a whole."""
    if before is None:
        return new
    return new._replace(lead=before.lead, items=[*before.items, *new.items])


def _write_around_items(address: str, counted: _Object, canonical: Canonical) -> tuple[str, str]:
    """What counts of a request before the items of its list and after them, as it is digested."""
    members = {**counted.lead, **counted.tail}
    member_texts = {
        key: f"{canonical.text(key)}:{canonical.text(members[key])}"
        for key in sorted(members)
        if key not in canonical.volatile
    }
    before = "".join(f"{text}," for key, text in member_texts.items() if key < counted.key)
    after = "".join(f",{text}" for key, text in member_texts.items() if key > counted.key)
    return f"{address}\n{{{before}{canonical.text(counted.key)}:[", f"]{after}}}"


def _parse_whole_object(text: str, scan: _Scan) -> _Object:
    """A JSON object around its longest list, without white space but one blank between tokens.
    Raises one of _MALFORMED.
    """
    members: list[tuple[str, Any]] = []
    longest = (0, 0, 0)  # characters, which member, where its items end
    at = _expect_mark(text, 0, "{")
    while True:
        _expect_mark(text, at, '"')
        key, at = scan(text, at)
        at = start = _skip_blank(text, _expect_mark(text, at, ":"))
        if text[at] == "[" and text[at + 1] != "]":
            value, at = _parse_items(text, at + 1, scan)
            longest = max(longest, (at - start, len(members), at))
            at += 1
        else:
            value, at = scan(text, at)
        members.append((key, value))
        if text[at] == "}":
            break
        at = _skip_blank(text, _expect_mark(text, at, ","))
    size, which, end = longest
    if not size or at + 1 != len(text) or len(dict(members)) != len(members):
        raise ValueError("no list, or a member twice")
    key, items = members[which]
    return _Object(dict(members[:which]), key, items, dict(members[which + 1 :]), end)


def _parse_items(text: str, at: int, scan: _Scan) -> tuple[list[Any], int]:
    """The items of a list from `at` on, and where its bracket closes."""
    items = []
    while True:
        item, at = scan(text, _skip_blank(text, at))
        items.append(item)
        if text[at] == "]":
            return items, at
        at = _expect_mark(text, at, ",")


def _parse_members(text: str, at: int, scan: _Scan) -> tuple[dict[str, Any], int]:
    """The members of an object that follow a comma at `at`, and where the object ends."""
    start = _skip_blank(text, _expect_mark(text, at, ","))
    _expect_mark(text, start, '"')
    value, end = scan("{" + text[start:], 0)
    return value, start + end - 1


def _expect_mark(text: str, at: int, mark: str) -> int:
    if text[at] != mark:
        raise ValueError(f"no {mark}")
    return at + 1


def _skip_blank(text: str, at: int) -> int:
    return at + (text[at] == " ")


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


_EXACT: _Scan = json.JSONDecoder(parse_constant=_refuse_constant).raw_decode
