"""What thousands of calls cost is what each of them costs."""

import random
from datetime import UTC, datetime

import pytest

from tape_jupyter.providers.registry import Facts, Usage, call_cost
from tape_jupyter.spans import rows

MODELS = [
    ("anthropic", "claude-opus-5"), ("anthropic", "claude-sonnet-4-5"), ("openai", "gpt-5"), ("gemini", "gemini-2.5-pro"),
    ("deepseek", "deepseek-chat"), ("openai", "text-embedding-3-small"), ("nobody", "nothing"), ("ollama", "gemma3"),
]  # fmt: skip


@pytest.mark.parametrize(("provider", "model"), MODELS)
def test_a_price_is_that_of_the_table_also_above_a_step_and_for_odd_counts(provider, model):
    draw, at = random.Random(7), datetime(2026, 11, 21, 20, tzinfo=UTC)
    for _ in range(60):
        size = draw.choice((100, 10_000, 300_000, 2_000_000))
        usage = Usage(
            draw.randrange(size),
            draw.randrange(size),
            draw.choice((0, draw.randrange(size))),
            draw.choice((0, 50)),
        )
        told = Facts(provider=provider, model=model, usage=usage)
        exact = call_cost(told, at)
        assert rows.price(told, at.timestamp()) == (
            None if exact is None else pytest.approx(float(exact), rel=1e-9)
        )


def test_a_call_without_usage_or_with_an_impossible_moment_has_no_price_or_todays():
    assert rows.price(Facts(provider="anthropic", model="claude-opus-5"), 0.0) is None
    told = Facts(provider="anthropic", model="claude-opus-5", usage=Usage(1000, 10))
    assert all(rows.price(told, at) is not None for at in (0.0, -5.0, 1e30))
