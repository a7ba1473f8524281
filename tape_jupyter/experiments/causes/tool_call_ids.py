"""Ids that a provider makes up for each tool call: two runs that are else alike differ in all of them,
and in each request that gives one back. The good recording is read with the ids of the bad one, so
that such calls are the same, and a run may have replies of both. Reads, writes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from tape_jupyter.cassette.cassette import Entry
from tape_jupyter.cassette.match_key import recorded_key
from tape_jupyter.cassette.records import (
    request_section,
    response_section,
    section_reply,
    section_request,
)
from tape_jupyter.core.call import FunctionCall, Reply, Request, Value
from tape_jupyter.experiments.causes.sides import Side
from tape_jupyter.providers import http
from tape_jupyter.secrets.registry import Secrets

_GIVEN_BACK = frozenset({"tool_call_id", "tool_use_id", "call_id", "previous_response_id"})
_SHORTEST = 6
"""Characters of an id, at least: a shorter text may stand for anything."""


def with_ids_of(good: Side, bad: Side) -> Side:
    """The good side, with the bad one's ids where both made a call of the same place."""
    ours, theirs = _find_returned_ids(bad.calls), _find_returned_ids(good.calls)
    if not ours or not theirs:
        return good
    names: dict[str, str] = {}
    by_name = {entry.name: entry for entry in bad.calls}
    entries_by_match: dict[str, list[Entry]] = {}
    for entry in reversed(bad.calls):
        entries_by_match.setdefault(entry.match, []).append(entry)
    renamed: dict[str, Entry] = {}
    for entry in good.calls:
        same = by_name.get(entry.name)
        left = entries_by_match.get(_find_match_key(entry, names))
        other = same or (left.pop() if left else None)
        if other is not None and other is not entry:
            pairs = zip(
                _find_ids_in_reply(entry, theirs), _find_ids_in_reply(other, ours), strict=False
            )
            names |= {one: another for one, another in pairs if one != another}
        if names and entry is not same and not isinstance(entry.request(), FunctionCall):
            renamed[entry.name] = cast("Entry", _RenamedEntry(entry, names))
    return replace(good, renamed=renamed) if names else good


class _RenamedEntry:
    """A recorded call, with other ids in what was asked and answered; else as it is."""

    def __init__(self, entry: Entry, names: Mapping[str, str]) -> None:
        self._entry, self._names = entry, dict(names)
        self.match = _find_match_key(entry, names)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._entry, name)

    def request(self) -> Request | FunctionCall:
        return _rename_request(self._entry.request(), self._names)

    def reply(self) -> Reply | Value:
        reply = self._entry.reply()
        section = response_section(reply, Secrets())
        renamed = _replace_ids(section, self._names)
        if renamed == section:
            return reply
        return section_reply({key: each for key, each in renamed.items() if key != "sha256"})[0]


def _rename_request(
    request: Request | FunctionCall, names: Mapping[str, str]
) -> Request | FunctionCall:
    section = request_section(request, Secrets(), digest=False)
    renamed = _replace_ids(section, names)
    return request if renamed == section else section_request(renamed)


def _find_match_key(entry: Entry, names: Mapping[str, str]) -> str:
    """The match key of a call with these names; as recorded where it has none of them."""
    if not names:
        return entry.match
    request = entry.request()
    if isinstance(request, FunctionCall):
        return entry.match
    renamed = _rename_request(request, names)
    return entry.match if renamed is request else recorded_key(renamed)


def _replace_ids(content: Any, names: Mapping[str, str]) -> Any:
    """The same structure with these ids in place of those, wherever they stand as words."""
    pattern = re.compile("|".join(rf"(?<![\w-]){re.escape(each)}(?![\w-])" for each in names))

    def replace_in(value: Any) -> Any:
        if isinstance(value, str):
            return pattern.sub(lambda match: names[match[0]], value)
        if isinstance(value, list):
            return [replace_in(each) for each in value]
        if isinstance(value, Mapping):
            return {key: replace_in(each) for key, each in value.items()}
        return value

    return replace_in(content)


def _find_returned_ids(calls: Sequence[Entry]) -> frozenset[str]:
    """The ids that requests give back to their provider."""
    ids: set[str] = set()
    for entry in calls:
        request = entry.request() if entry.head().get("kind") == "model" else None
        if isinstance(request, Request):
            ids |= set(
                _find_ids(http.loads(http.decoded_body(request.headers, request.body) or b""))
            )
    return frozenset(ids)


def _find_ids(body: Any) -> Iterator[str]:
    if isinstance(body, list):
        for each in body:
            yield from _find_ids(each)
    elif isinstance(body, Mapping):
        for key, value in body.items():
            if key in _GIVEN_BACK and isinstance(value, str) and len(value) >= _SHORTEST:
                yield value
            elif isinstance(value, list | Mapping):
                yield from _find_ids(value)


def _find_ids_in_reply(entry: Entry, ids: frozenset[str]) -> list[str]:
    """Those of the ids that stand in a reply, in their order."""
    reply = entry.reply()
    if not isinstance(reply, Reply):
        return []
    text = (http.decoded_body(reply.headers, reply.readable) or b"").decode("utf-8", "replace")
    at = {each: text.find(each) for each in ids}
    return sorted((each for each in ids if at[each] >= 0), key=at.__getitem__)
