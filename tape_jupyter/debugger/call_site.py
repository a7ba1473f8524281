"""A call that is about to be made, as the one who steps needs it: who makes it, what it is, what
answers.

A *place* names a call of a pass: "STRAND:N" is the N-th call of that strand of tasks and threads.
The same program has the same places whenever it is run again, so a person can go back to one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Would = Literal["play", "live", "refuse"]
KINDS = ("model", "tool", "retrieval", "http")


@dataclass(frozen=True, slots=True)
class CallSite:
    """What is known of a call before it is answered.

    `kind` is one of KINDS; `name` the tool's name, or the model's, or the host. `span` is the
    recorded call that answers it ("RUN/CALL", "" where none does), `would` what becomes of it when
    nobody says otherwise. `failed` says that the reply is an error. `text` is what is asked, as far
    as a condition may look at it; `arguments` are a tool's.
    """

    kind: str
    name: str
    title: str = ""
    span: str = ""
    would: Would = "play"
    failed: bool = False
    edited: bool = False
    cell: str = ""
    text: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Passed:
    """A call of this pass that was made."""

    place: str
    span: str
    title: str
    kind: str
    edited: bool = False

    def record(self) -> dict[str, Any]:
        """As protocol.ts has it (StepPassed)."""
        return {
            "place": self.place,
            "span": self.span,
            "title": self.title,
            "kind": self.kind,
            "edited": self.edited,
        }


def place_strand(place: str) -> str:
    return place.rpartition(":")[0]


def number_of(place: str) -> int:
    number = place.rpartition(":")[2]
    return int(number) if number.isdigit() else 0
