"""Delta debugging: the parts of a change that are needed for an outcome. Pure.

A trial answers "flips", "stays" or "unresolved" for a set of parts. The result flips the outcome,
and leaving any one part out of it does not (1-minimal). Few parts of many are found by halving
(as Junker's QuickXplain finds them); Zeller's ddmin, over what that leaves, makes it 1-minimal
whatever trials answer.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

Outcome = Literal["flips", "stays", "unresolved"]
Part = TypeVar("Part", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Minimal(Generic[Part]):
    """The parts, how many different sets were tried for them, and how many of those gave no answer."""

    parts: tuple[Part, ...]
    trials: int
    unresolved: int


def minimal_subset(
    parts: Sequence[Part], trial: Callable[[Sequence[Part]], Outcome]
) -> Minimal[Part]:
    """The 1-minimal subset, in the order of `parts`, which are all different and together flip the
    outcome.

    No set is tried twice; the whole and the empty set are not tried.
    """
    seen: dict[frozenset[Part], Outcome] = {frozenset(): "stays", frozenset(parts): "flips"}

    def has_flipped(subset: Sequence[Part]) -> bool:
        key = frozenset(subset)
        if key not in seen:
            seen[key] = trial(subset)
        return seen[key] == "flips"

    left = _minimize_parts(_halve_parts(tuple(parts), has_flipped), has_flipped)
    return Minimal(left, len(seen) - 2, sum(outcome == "unresolved" for outcome in seen.values()))


_Flips = Callable[[Sequence[Part]], bool]


def _halve_parts(parts: tuple[Part, ...], flips: _Flips[Part]) -> tuple[Part, ...]:
    """Parts that flip the outcome: again and again the last one of the shortest beginning that does
    so with those found before. About log2 of all trials for each part, where more parts never undo
    what fewer do; else perhaps more parts than are needed.
    """
    needed: tuple[Part, ...] = ()
    left = parts
    while left and not flips(needed):
        short, long = 0, len(left)  # the beginning of `long` parts flips, that of `short` does not
        while long - short > 1:
            middle = (short + long) // 2
            if flips((*left[:middle], *needed)):
                long = middle
            else:
                short = middle
        needed = (left[long - 1], *needed)
        left = left[: long - 1]
    return needed


def _minimize_parts(parts: tuple[Part, ...], flips: _Flips[Part]) -> tuple[Part, ...]:
    left, pieces = parts, 2
    while len(left) > 1:
        chunks = _split_parts(left, pieces)
        if smaller := next((chunk for chunk in chunks if flips(chunk)), None):
            left, pieces = smaller, 2
        elif smaller := next(
            (rest for rest in _list_complements(left, chunks) if flips(rest)), None
        ):
            left, pieces = smaller, max(pieces - 1, 2)
        elif pieces < len(left):
            pieces = min(2 * pieces, len(left))
        else:
            break
    return left


def _split_parts(parts: tuple[Part, ...], pieces: int) -> list[tuple[Part, ...]]:
    """In so many pieces of nearly the same length, none of them empty."""
    ends = [len(parts) * number // pieces for number in range(pieces + 1)]
    return [parts[start:end] for start, end in itertools.pairwise(ends) if end > start]


def _list_complements(
    parts: tuple[Part, ...], chunks: Sequence[tuple[Part, ...]]
) -> list[tuple[Part, ...]]:
    return [tuple(part for part in parts if part not in chunk) for chunk in map(frozenset, chunks)]
