"""Store room: what thousands of calls cost. Up to a model's first step a price is in proportion to its tokens: it is
looked up once for a model and an hour, and multiplied for each call; above that, each call is looked up.
"""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from functools import lru_cache

from tape_jupyter.providers import Facts, Usage, cost

_HOUR = 3600
_MANY, _FEW = 100_000, 1_000  # tokens: providers begin to charge more from 128,000 on, or later
_KINDS = (Usage(1, 0), Usage(0, 1), Usage(1, 0, 1, 0), Usage(1, 0, 0, 1))


def price(told: Facts, at: float) -> float | None:
    """US dollars of a call made `at` (seconds of the epoch), at list price; None where it is not known."""
    usage = told.usage
    if usage is None:
        return None
    plain = usage.input - usage.cached - usage.written
    usual = plain >= 0 and usage.input <= _MANY
    rates = _rates(told.provider, told.model, told.answered, int(at // _HOUR)) if usual else None
    if rates is None:
        return _float(cost(told, _when(at)))
    counts = (plain, usage.output, usage.cached, usage.written)
    if any(count and rate is None for count, rate in zip(counts, rates, strict=True)):
        return None
    return sum(count * rate for count, rate in zip(counts, rates, strict=True) if rate is not None)


def load() -> None:
    """Import the table of prices, which takes a while, before somebody waits for it."""
    cost(Facts(provider="anthropic", model="claude", usage=Usage(1, 1)))


@lru_cache(maxsize=1024)
def _rates(provider: str, model: str, answered: str, hour: int) -> tuple[float | None, ...] | None:
    """US dollars a token: of input, output, cached and written input. None where that is not in proportion."""
    at = _when(hour * _HOUR)
    found: list[float | None] = []
    for kind in _KINDS:
        few, many = (_cost(provider, model, answered, kind, times, at) for times in (_FEW, _MANY))
        if few is not None and many is not None and few * (_MANY // _FEW) != many:
            return None
        found.append(None if many is None else float(many / _MANY))
    return tuple(found)


def _cost(provider: str, model: str, answered: str, kind: Usage, times: int, at: datetime) -> Decimal | None:
    usage = Usage(*(count * times for count in kind))
    return cost(Facts(provider=provider, model=model, answered=answered, usage=usage), at)


def _when(at: float) -> datetime:
    return datetime.fromtimestamp(at if 0 < at < _LATE else 0, UTC)


_LATE = 32_503_680_000  # the year 3000: a moment made by hand


def _float(dollars: Decimal | None) -> float | None:
    return None if dollars is None else float(dollars)
