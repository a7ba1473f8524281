"""Whom a run serves: what a person told (`%tape set`), and what is found without being told.
Patches nothing, imports nothing of anybody's: OTel baggage is read only where the program imported
it.

What holds for the whole run stands on its kit; on a call's record stands only what differs from
that.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from typing import Any

from tape_jupyter.audit import environment
from tape_jupyter.errors import TapeUsageError
from tape_jupyter.secrets.registry import Secrets

_BAGGAGE = "opentelemetry.baggage"
_NAMES = {
    **dict.fromkeys(("user_id", "user.id", "userid", "enduser.id", "enduser_id"), "user_id"),
    **dict.fromkeys(
        ("tenant_id", "tenant.id", "tenantid", "tenant", "organization.id"), "tenant_id"
    ),
    **dict.fromkeys(("session_id", "session.id", "sessionid"), "session_id"),
}
_REDACT = re.compile(r"redact(?:\.([A-Za-z][\w-]*))?")
_LONGEST = 200  # characters of a flag's value
_FLAGS = 200  # flags of one cell


class Tags:
    """What was told in this session. `redacted` are the names of the patterns that mask, never the
    patterns.
    """

    def __init__(self) -> None:
        self.given: dict[str, Any] = {}
        self.redacted: list[str] = []

    def set(self, key: str, value: str, secrets: Secrets) -> None:
        """A fact for every following run; `redact=REGEX` and `redact.NAME=REGEX` mask. Raises
        TapeUsageError.
        """
        if masks := _REDACT.fullmatch(key):
            name = masks[1] or "redacted"
            secrets.pattern(value, name)
            self.redacted = list(dict.fromkeys((*self.redacted, name)))
        elif key.isidentifier():
            self.given[key] = flags_of(value) if key == "flags" else value
        else:
            raise TapeUsageError(
                f"{key!r} cannot be set; write %tape set user_id=ada or redact=REGEX"
            )

    def start(self) -> CellTags:
        """The tags of a cell that begins now."""
        return CellTags(self.given, self.redacted)


class CellTags:
    """The tags of one execution of one cell. `flags` were evaluated in it."""

    def __init__(
        self, tags: Mapping[str, Any] | None = None, redacted: list[str] | None = None
    ) -> None:
        self._given, self._redacted = dict(tags or {}), list(redacted or ())
        self._baggage = baggage()
        self.flags: dict[str, Any] = {}

    def run(self) -> dict[str, Any]:
        """For the run's kit: what was found, what was told (which wins), and the flags evaluated so
        far.
        """
        flags = {**self.flags, **self._given.get("flags", {})}
        tags: dict[str, Any] = {**self._baggage, **self._given}
        if flags:
            tags["flags"] = flags
        if self._redacted:
            tags["redact"] = self._redacted
        return tags

    def of_call(self) -> dict[str, Any]:
        """What this very call's baggage says, and the cell's did not. Asked where the call is made."""
        if _BAGGAGE not in sys.modules:
            return {}
        return {
            name: value for name, value in baggage().items() if self._baggage.get(name) != value
        }

    def with_user(self, tags: Mapping[str, Any], user: str) -> dict[str, Any]:
        """A call's own tags, with the user that its request names, where the run has another."""
        if not user or "user_id" in tags or user == {**self._baggage, **self._given}.get("user_id"):
            return dict(tags)
        return {**tags, "user_id": user}

    def flag(self, key: str, value: Any) -> None:
        """A feature flag was evaluated."""
        if len(self.flags) < _FLAGS:
            self.flags[key] = _to_plain_value(value)


def baggage() -> dict[str, Any]:
    """What the program's OTel baggage says of whom it serves; {} where it has none."""
    module = sys.modules.get(_BAGGAGE)
    if module is None:
        return {}
    try:
        items = dict(module.get_all())
    except Exception:  # half imported, or somebody's stand-in
        return {}
    known = {
        _NAMES[key.lower()]: str(value) for key, value in items.items() if key.lower() in _NAMES
    }
    others = {
        str(key): _to_plain_value(value)
        for key, value in items.items()
        if key.lower() not in _NAMES
    }
    record: dict[str, Any] = dict(known)
    if others:
        record["baggage"] = others
    return record


def flags_of(text: str) -> dict[str, Any]:
    """`new_prompt,tone=warm` or a JSON object, as flags. A flag without a value is on."""
    if text.lstrip().startswith("{"):
        try:
            flags = json.loads(text)
        except ValueError as error:
            raise TapeUsageError(f"flags={text[:80]}: it is not JSON ({error})") from None
        return {str(key): _to_plain_value(value) for key, value in flags.items()}
    pairs = (part.partition("=") for part in text.split(",") if part.strip())
    return {key.strip(): value.strip() if is_pair else True for key, is_pair, value in pairs}


def _to_plain_value(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, str):
        return value[:_LONGEST]
    return json.dumps(value, default=str)[:_LONGEST]


def recorded_tags(run: Mapping[str, Any], call: Mapping[str, Any]) -> dict[str, Any]:
    """The tags of a recorded call: its run's, and its own where they differ. Both are kits as they
    were read.
    """
    call_tags = call.get("tags")
    return {**environment.tags_of(run), **(call_tags if isinstance(call_tags, dict) else {})}
