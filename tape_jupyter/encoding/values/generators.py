"""What a generator did: its items as it yielded them, what it was sent, how it ended. Runs no
generator.

    {"<type>": "generator", "items": [...], "end": "complete"}
    "async": true            an async generator
    "sent": [[2, value]]     after the second item it was sent this (a plain `next` is not written)
    "thrown": [[3, error]]   after the third one this was thrown in
    "did": [[2, effects]]    what its body did besides, before the item of that number (session/tool_effects.py);
                             -1: before there was a generator
    "end"                    complete, closed (nobody read on), thrown (what was thrown in came out again), error, or
                             cut short
    "returned", "error"      those of such an end
    "waits": [...]           seconds from the start to each item, and to the end

Items are frozen one by one, when they are yielded: a generator that yields one growing list gives
what it was then. They are thawed one by one as well, when they are reached.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from tape_jupyter.encoding.values.walker import TYPE, At, Codec, Freezer, Thawer, need, place_text
from tape_jupyter.errors import CassetteError

End = Literal["complete", "closed", "thrown", "error", "cut short"]
NAME = "generator"
BEFORE_STEPS = -1
"""The number, in `did`, of what a plain function did before it gave its generator."""


@dataclass(slots=True)
class GeneratorSteps:
    """What one generator did so far. Every value in it is frozen (but see the taps, which freeze
    them).
    """

    is_async: bool = False
    items: list[Any] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)
    sent: dict[int, Any] = field(default_factory=dict)
    thrown: dict[int, Mapping[str, Any]] = field(default_factory=dict)
    did: dict[int, Mapping[str, Any]] = field(default_factory=dict)
    end: End = "closed"
    returned: Any = None
    error: Mapping[str, Any] | None = None

    def structure(self, start: int = 0) -> dict[str, Any]:
        """As it is written; from the item of that number on, where those before it are on the tape
        already.
        """
        state: dict[str, Any] = {TYPE: NAME}
        if self.is_async:
            state["async"] = True
        state["items"] = self.items[start:]
        state |= {
            name: pairs
            for name in ("sent", "thrown", "did")
            if (pairs := _to_pairs(getattr(self, name), start))
        }
        state["end"] = self.end
        if self.returned is not None:
            state["returned"] = self.returned
        if self.error is not None:
            state["error"] = dict(self.error)
        if waits := self.waits[start:]:
            state["waits"] = [round(wait, 4) for wait in waits]
        return state

    def wait(self, position: int) -> float:
        """Seconds from the start to that item (or to the end, after the last one)."""
        return self.waits[min(position, len(self.waits) - 1)] if self.waits else 0.0


def join_states(first: Any, late: Any) -> Any:
    """The structure of a generator, and of what it did after that was committed, as one."""
    if not (is_steps(first) and is_steps(late)):
        raise CassetteError("a `more:` record of a tool holds what a generator did later")
    base = {k: v for k, v in first.items() if k in (TYPE, "async")}
    lists = {
        k: [*first.get(k, ()), *late.get(k, ())]
        for k in ("items", "sent", "thrown", "did", "waits")
    }
    ending = {k: v for k, v in late.items() if k in ("end", "returned", "error")}
    return {**base, **{k: v for k, v in lists.items() if v or k == "items"}, **ending}


def is_steps(structure: Any) -> bool:
    """Whether a frozen value is what a generator did."""
    return isinstance(structure, dict) and structure.get(TYPE) == NAME


def _to_pairs(by_position: Mapping[int, Any], start: int) -> list[list[Any]]:
    return [
        [position, value]
        for position, value in by_position.items()
        if position >= start or (position == BEFORE_STEPS and not start)
    ]


def _freeze_generator(steps: GeneratorSteps, _walk: Freezer, _at: At) -> dict[str, Any]:
    structure = steps.structure()
    del structure[TYPE]
    return structure


def _thaw_generator(s: dict[str, Any], _walk: Thawer, at: At) -> GeneratorSteps:
    end = s.get("end", "complete")
    if end not in get_args(End):
        raise CassetteError(
            f"{place_text((at, 'end'))}: a generator's end is one of {', '.join(get_args(End))}, not {end!r}"
        )
    items = need(s["items"], list, (at, "items"))
    waits = [float(wait) for wait in need(s.get("waits", []), list, (at, "waits"))]
    error = need(s["error"], dict, (at, "error")) if end == "error" else None
    is_async = need(s.get("async", False), bool, (at, "async"))
    sent, thrown, did = (
        _read_pairs(s.get(name, []), (at, name)) for name in ("sent", "thrown", "did")
    )
    return GeneratorSteps(is_async, items, waits, sent, thrown, did, end, s.get("returned"), error)


def _read_pairs(pairs: Any, at: At) -> dict[int, Any]:
    values = {}
    for i, pair in enumerate(need(pairs, list, at)):
        if type(pair) is not list or len(pair) != 2:
            raise CassetteError(
                f"{place_text((at, i))}: write it as a list of two: after which item, and what"
            )
        values[need(pair[0], int, ((at, i), 0))] = pair[1]
    return values


CODEC = Codec(NAME, _freeze_generator, _thaw_generator)
