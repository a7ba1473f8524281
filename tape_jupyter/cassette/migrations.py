"""Numbered steps from older cassette formats to the present one. Records in, records out.

0 -> 1: calls had a number and no run, no match key; replies stood under `reply`. (The format of the
prototypes.)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from tape_jupyter.cassette.match_key import match_key
from tape_jupyter.cassette.records import section_request
from tape_jupyter.cassette.request_refs import references
from tape_jupyter.errors import CassetteError
from tape_jupyter.secrets.registry import Secrets

VERSION = 1
Records = list[dict[str, Any]]


def migrated(records: Records, version: int) -> Records:
    """The records of a cassette of format `version`, as format VERSION. Raises CassetteError,
    without a line.
    """
    for step in range(version, VERSION):
        records = STEPS[step](records)
    return records


def _migrate_from_0(records: Records) -> Records:
    run = "r-0"
    out: Records = [{**records[0], "tape": 1}, {"run": run, "mode": "record"}]
    seen: Counter[str] = Counter()
    for record in records[1:]:
        if "call" not in record:
            raise CassetteError(f"format 0 holds calls only, not {next(iter(record))!r}")
        request, response = record.get("request"), record.get("reply", record.get("response"))
        if not isinstance(request, dict) or not isinstance(response, dict):
            raise CassetteError(f"call {record['call']!r} has no request or no reply")
        if references(request):
            raise CassetteError(
                "a cassette of format 0 with references cannot be read; record it again"
            )
        match = match_key(section_request(request), Secrets())
        name = match[:8]
        seen[name] += 1
        name = name if seen[name] == 1 else f"{name}-{seen[name]}"
        head = {"call": name, "run": run, "match": match, "kind": "model"}
        out.append({**head, "request": request, "response": response})
    return out


STEPS: dict[int, Callable[[Records], Records]] = {0: _migrate_from_0}
