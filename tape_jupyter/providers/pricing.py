"""What a call cost, in US dollars at list price. Reads a table that ships with a package; no
network.

genai-prices takes 120 ms to import where pydantic is in already, 300 ms where not: it is imported
while the first model answers, where what it needs is in already, and never for calls that told no
usage.

Up to a model's first step a price is in proportion to its tokens: it is looked up once for a model
and an hour, and multiplied for each call; above that, each call is looked up.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime
from decimal import Decimal
from functools import cache, lru_cache
from importlib import import_module

from tape_jupyter.core.libraries import imported_module
from tape_jupyter.core.unlisted_thread import run_unlisted
from tape_jupyter.providers.types import Facts, Usage

# Who sends the bill, in genai-prices' words where they differ from ours. A provider not in its
# table has no price.
BILLED_AS = {
    "gemini": "google",
    "vertex": "google",
    "bedrock": "aws",
    "huggingface": "huggingface_together",
}
FREE = frozenset({"ollama"})


_HOUR = 3600
_MANY, _FEW = 100_000, 1_000  # tokens: providers begin to charge more from 128,000 on, or later
_KINDS = (Usage(1, 0), Usage(0, 1), Usage(1, 0, 1, 0), Usage(1, 0, 0, 1))
"""One token of plain input, output, cached input, input that is written to a cache."""


def call_cost(facts: Facts, at: datetime | None = None) -> Decimal | None:
    """US dollars, or None when model, usage or price are not known.

    `at` is when the call was made (prices change); now when None. The answered model goes before
    the one asked for.
    """
    usage = facts.usage
    if usage is None or not (facts.answered or facts.model) or facts.provider in FREE:
        return None
    names = facts.provider, facts.answered, facts.model
    plain = usage.input - usage.cached - usage.written
    counts = (plain, usage.output, usage.cached, usage.written)
    if min(counts) < 0 or not 0 < usage.input + usage.output <= _MANY:
        return _look_up(*names, usage, at)
    hour = int((at or datetime.now(UTC)).timestamp() // _HOUR)
    rates = [_find_rate(*names, kind, hour) if counts[kind] else None for kind in range(4)]
    if any(count and rate is None for count, rate in zip(counts, rates, strict=True)):
        return _look_up(*names, usage, at)
    parts = (count * rate for count, rate in zip(counts, rates, strict=True) if rate is not None)
    return sum(parts, start=Decimal())


def load_table() -> None:
    """Import the table of prices, which takes a while, before somebody waits for it."""
    _look_up("anthropic", "claude", "claude", Usage(1, 1), None)


_NEEDED = ("httpx2", "pydantic.main")
"""What genai-prices imports. Other libraries look whether these are there (openai 2: `httpx2`), and
fail where they find one half imported: so none of them is imported beside the program.
"""


def load_libraries() -> None:
    """Import in this thread what the table needs, for a thread of ours that will read it."""
    for name in _NEEDED:
        import_module(name)


def load_table_meanwhile() -> None:
    """Import the table beside what comes next, once: while a model answers. Where that would import
    other libraries, too, whoever first asks for a price waits for it.
    """
    if all(imported_module(name) is not None for name in _NEEDED):
        _load_table_in_thread()


@cache
def _load_table_in_thread() -> None:
    """A fork waits for its end, since a child has no thread that would give back the lock of a
    module.
    """
    wait_for_end = run_unlisted(load_table)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=wait_for_end)


@lru_cache(maxsize=4096)
def _find_rate(provider: str, answered: str, model: str, kind: int, hour: int) -> Decimal | None:
    """US dollars for a token of `_KINDS[kind]` in that hour since the epoch; None where it has no
    price, or one that is not in proportion.
    """
    one = _KINDS[kind]
    at = datetime.fromtimestamp(hour * _HOUR, UTC)
    few, many = (
        _look_up(provider, answered, model, _multiply(one, times), at) for times in (_FEW, _MANY)
    )
    if few is None or many is None or few * (_MANY // _FEW) != many:
        return None
    return many / _MANY


def _multiply(usage: Usage, times: int) -> Usage:
    return Usage(*(count * times for count in usage))


def _look_up(
    provider: str, answered: str, model: str, usage: Usage, at: datetime | None
) -> Decimal | None:
    """What the table says of these counts together."""
    from genai_prices import Usage as PricedUsage
    from genai_prices import calc_price

    priced = PricedUsage(
        input_tokens=usage.input,
        output_tokens=usage.output,
        cache_read_tokens=usage.cached,
        cache_write_tokens=usage.written,
    )
    billed = BILLED_AS.get(provider, provider)
    for name in filter(None, dict.fromkeys((answered, model))):
        try:
            price = calc_price(priced, name, provider_id=billed, genai_request_timestamp=at)
        except (
            LookupError,
            ValueError,
        ):  # a model or provider not in the table; counts that contradict each other
            continue
        return price.total_price
    return None
