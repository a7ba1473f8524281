"""The list of parts that a message is made of, in whatever API."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tape_jupyter.providers.json_access import as_list, as_text
from tape_jupyter.providers.streams.events import same_json


def of_type(parts: Any, kind: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """The parts of that `type`, each with its place."""
    for at, part in enumerate(as_list(parts)):
        if isinstance(part, dict) and part.get("type") == kind:
            yield at, part


def touched_parts(old: Any, new: Any) -> list[dict[str, Any]]:
    """The new parts up to the last one that changed; none where both lists are the same."""
    before = [part for part in as_list(old) if isinstance(part, dict)]
    after = [part for part in as_list(new) if isinstance(part, dict)]
    same = 0
    while same < min(len(before), len(after)) and same_json(before[-1 - same], after[-1 - same]):
        same += 1
    unchanged = same == len(before) == len(after)
    return [] if unchanged else after[: len(after) - same]


def type_problem(part: Mapping[str, Any]) -> tuple[str, str]:
    """The problem of a part without a type (`MessageFormat.part_problem`)."""
    if as_text(part.get("type")):
        return "", ""
    return "type", "each part of a message says what it is: it has a type"
