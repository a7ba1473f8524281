"""How often each outcome came, and how sure that is. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from math import sqrt
from statistics import NormalDist
from typing import Any


@dataclass(frozen=True, slots=True)
class OutcomeShare:
    """`count` of `of` samples; `low` and `high` are Wilson's 95 % interval of the share."""

    outcome: str
    count: int
    of: int
    low: float
    high: float

    @property
    def share(self) -> float:
        return self.count / self.of

    def record(self) -> dict[str, Any]:
        return {**asdict(self), "share": self.share}


_CONFIDENCE = 0.95


def wilson(count: int, of: int) -> tuple[float, float]:
    """The score interval of a proportion, without continuity correction (E. B. Wilson, JASA 22,
    1927, p. 209; as method 3 in R. G. Newcombe, Statistics in Medicine 17, 1998, p. 857).
    """
    if not 0 <= count <= of or of < 1:
        raise ValueError(f"{count} of {of} is not a share")
    z = NormalDist().inv_cdf((1 + _CONFIDENCE) / 2)
    share, scale = count / of, 1 + z * z / of
    middle = (share + z * z / (2 * of)) / scale
    half = z * sqrt(share * (1 - share) / of + z * z / (4 * of * of)) / scale
    low = 0.0 if count == 0 else max(0.0, middle - half)
    return low, 1.0 if count == of else min(1.0, middle + half)


def shares(outcomes: Iterable[str]) -> list[OutcomeShare]:
    """Each outcome once, the most frequent first."""
    counts = Counter(outcomes)
    of = counts.total()
    return [
        OutcomeShare(outcome, count, of, *wilson(count, of))
        for outcome, count in counts.most_common()
    ]
