"""Looking into other people's JSON, where anything may stand anywhere. Nothing here raises.

`dig`, `as_text`, `count`, `as_mapping` and `maps` give the thing looked for or an empty one; the others
read what wires have in common: sampling settings, tool declarations, token counts, errors.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tape_jupyter.providers.types import ABSENT, PINNABLE, Facts, Tool, Usage


def dig(value: Any, path: str) -> Any:
    """What lies at a dotted path of mappings, or None: other people's JSON may hold anything
    anywhere.
    """
    if "." not in path:
        return value.get(path) if isinstance(value, dict) else None
    for key in path.split("."):
        if not isinstance(value, dict):
            return None
        value = value.get(key)
    return value


def key(value: Any) -> str:
    """Something to tell the parts of a stream apart by: their index, which is a number or nothing
    sensible.
    """
    return str(value) if isinstance(value, int | str) else ""


def as_text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def count(value: Any) -> int:
    if isinstance(value, int | float) and 0 <= value < 2**53:
        return int(value)
    return 0


def as_mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def maps(value: Any) -> Iterator[Mapping[str, Any]]:
    """The mappings in a list, whatever else is in it; nothing when it is no list."""
    if isinstance(value, list):
        return (item for item in value if isinstance(item, dict))
    return iter(())


def sampling_settings(body: Any, paths: Mapping[str, tuple[str, ...]]) -> dict[str, Any]:
    """Sampling settings by their common name; of the places in `paths` the first that is set
    counts.
    """
    settings: dict[str, Any] = dict.fromkeys(PINNABLE, ABSENT)
    for name, places in paths.items():
        for place in places:
            if (value := dig(body, place)) is not None:
                settings[name] = value
                break
    return settings


def parse_tool(declaration: Mapping[str, Any], name: Any) -> Tool:
    """The digest does not depend on the order of keys: SDKs build schemas from sets and dicts."""
    canonical = json.dumps(declaration, sort_keys=True, separators=(",", ":"))
    return Tool(
        as_text(name), hashlib.sha256(canonical.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    )


def tools(declarations: Iterable[Mapping[str, Any]], name: str = "name") -> tuple[Tool, ...]:
    """The named ones; `name` is the path of the name in a declaration."""
    return tuple(
        parse_tool(each, dig(each, name)) for each in declarations if as_text(dig(each, name))
    )


def parse_arguments(value: Any) -> Any:
    """Tool arguments travel as JSON text on most wires; what does not parse stays text."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value) if value else {}
    except (ValueError, RecursionError):
        return value


def usage(body: Any, where: str, paths: Mapping[str, tuple[str, ...]]) -> Usage | None:
    """Token counts below the path `where`; several places for one count are added up. None when
    nothing is told.
    """
    counts = dig(body, where)
    if not isinstance(counts, Mapping):
        return None
    return Usage(
        **{
            name: sum(count(dig(counts, place)) for place in places)
            for name, places in paths.items()
        }
    )


def error_text(body: Any, *, failed: bool) -> str:
    """What the error says. `failed`, a status of 400 or more, lets `{"message"}` and `{"detail"}`
    count as one.
    """
    error = dig(body, "error")
    if isinstance(error, Mapping):
        kind = (
            as_text(error.get("type")) or as_text(error.get("status")) or as_text(error.get("code"))
        )
        return ": ".join(part for part in (kind, as_text(error.get("message"))) if part)
    return (
        as_text(error)
        or (failed and (as_text(dig(body, "message")) or as_text(dig(body, "detail"))))
        or ""
    )


def recalled(record: Mapping[str, Any]) -> Facts:
    """The part of Facts that a call record keeps. Records are data: what has the wrong type is left
    out.
    """
    usage, model = as_mapping(record.get("usage")), as_text(record.get("model"))
    return Facts(
        provider=as_text(record.get("provider")),
        model=model,
        answered=as_text(record.get("answered")) or model,
        usage=Usage(*(count(usage.get(name)) for name in Usage._fields)) if usage else None,
    )
