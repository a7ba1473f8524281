"""What a call cost, in US dollars at list price. Reads a table that ships with a package; no
network.

genai-prices takes 120 ms to import where pydantic is in already, 300 ms where not: it is imported
with the first priced call, and never for one that told no usage.
"""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal

from tape_jupyter.providers.types import Facts

# Who sends the bill, in genai-prices' words where they differ from ours. A provider not in its
# table has no price.
BILLED_AS = {
    "gemini": "google",
    "vertex": "google",
    "bedrock": "aws",
    "huggingface": "huggingface_together",
}
FREE = frozenset({"ollama"})


def call_cost(facts: Facts, at: datetime | None = None) -> Decimal | None:
    """US dollars, or None when model, usage or price are not known.

    `at` is when the call was made (prices change); now when None. The answered model goes before
    the one asked for.
    """
    if facts.usage is None or not (facts.answered or facts.model) or facts.provider in FREE:
        return None
    from genai_prices import Usage, calc_price

    usage = Usage(
        input_tokens=facts.usage.input,
        output_tokens=facts.usage.output,
        cache_read_tokens=facts.usage.cached,
        cache_write_tokens=facts.usage.written,
    )
    billed = BILLED_AS.get(facts.provider, facts.provider)
    for model in filter(None, dict.fromkeys((facts.answered, facts.model))):
        try:
            price = calc_price(usage, model, provider_id=billed, genai_request_timestamp=at)
        except (
            LookupError,
            ValueError,
        ):  # a model or provider not in the table; counts that contradict each other
            continue
        return price.total_price
    return None
