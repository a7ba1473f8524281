"""What a request that goes out again will cost, in US dollars at list price: as its recorded call,
and at most.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from tape_jupyter.core.call import Reply, Request
from tape_jupyter.providers import http, registry
from tape_jupyter.providers.pricing import FREE
from tape_jupyter.providers.registry import Facts, Usage

_LIMITS = (
    "max_tokens", "max_completion_tokens", "max_output_tokens", "maxOutputTokens", "maxTokens", "num_predict",
)  # fmt: skip
_CHOICES = ("n", "candidateCount")
_UNSEEN = 1000
"""Tokens that another model may add to a request that are not in its text (a prompt for tools)."""


@dataclass(frozen=True, slots=True)
class CostEstimate:
    """`expected`: with the tokens of the recorded reply. `most`: with as many as the request lets
    the model answer; None where it names no limit. Both are None where the price is not known.
    """

    text: str
    expected: Decimal | None = None
    most: Decimal | None = None


def estimate(before: Request, after: Request, reply: Reply) -> CostEstimate:
    """Of a changed request, by the tokens of the recorded one; the input in proportion to the
    request's length.
    """
    recorded = registry.call_facts(before, reply)
    if recorded.provider in FREE:
        return CostEstimate("free", Decimal(0), Decimal(0))
    if recorded.usage is None:
        return CostEstimate("its cost is not known: the recorded reply tells no tokens")
    grown = len(after.body) / max(len(before.body), 1)
    new_facts = registry.call_facts(after)
    other = new_facts.model != recorded.model
    facts = replace(recorded, model=new_facts.model, answered="" if other else recorded.answered)
    usage = recorded.usage
    counts = Usage(round(usage.input * grown) if grown != 1 else usage.input, usage.output)
    expected = registry.call_cost(replace(facts, usage=counts))
    if expected is None:
        return CostEstimate(f"its price is not known ({facts.provider} {facts.model})")
    most = _estimate_most(facts, usage, before, after, other=other)
    text = f"about {dollars(expected)} ({counts.input} tokens in, {counts.output} out as recorded)"
    return CostEstimate(
        text + (f", at most {dollars(most)}" if most is not None else ""), expected, most
    )


def estimate_unrecorded(request: Request) -> CostEstimate:
    """Of a request like which none was recorded: each of its bytes may be a token."""
    facts = registry.call_facts(request)
    if facts.provider in FREE:
        return CostEstimate("free", Decimal(0), Decimal(0))
    usage = Usage(len(request.body), 0)
    least = registry.call_cost(replace(facts, usage=usage))
    if least is None:
        return CostEstimate(f"its price is not known ({facts.provider} {facts.model})")
    most = _estimate_most(facts, usage, request, request, other=True)
    if most is not None:
        text = f"at most {dollars(most)}"
    else:
        text = "it sets no limit to its answer"
    return CostEstimate(text, least, most)


def _estimate_most(
    facts: Facts, usage: Usage, before: Request, after: Request, *, other: bool
) -> Decimal | None:
    """The price of all tokens that the answer may have. A byte more in the request is a token at
    most, and so is each byte for another model, which cuts it otherwise; whatever may go into the
    provider's cache is priced as that where it is dearer.
    """
    body = http.loads(http.decoded_body(after.headers, after.body) or b"")
    limit = _find_token_limit(body) if isinstance(body, Mapping) else None
    if limit is None:
        return None
    input_tokens = usage.input + max(0, len(after.body) - len(before.body))
    if other:
        input_tokens = max(input_tokens, len(after.body)) + _UNSEEN
    counts = [Usage(input_tokens, limit), Usage(input_tokens, limit, written=input_tokens)]
    prices = [registry.call_cost(replace(facts, usage=each)) for each in counts]
    return max((price for price in prices if price is not None), default=None)


def _find_token_limit(body: Mapping[str, Any]) -> int | None:
    """Tokens that one request may be answered with, in all its choices."""
    inner = [body.get(name) for name in ("generationConfig", "inferenceConfig", "options")]
    places = [body, *(each for each in inner if isinstance(each, Mapping))]
    limits = [each[name] for each in places for name in _LIMITS if _is_count(each.get(name))]
    choices = [each[name] for each in places for name in _CHOICES if _is_count(each.get(name))]
    return max(limits) * max(choices, default=1) if limits else None


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def paid(request: Request, reply: Reply) -> Decimal | None:
    """What a reply cost; None where its tokens or their price are not known. An error costs
    nothing.
    """
    facts = registry.call_facts(request, reply)
    if facts.provider in FREE or (reply.status or 0) >= 400:
        return Decimal(0)
    return registry.call_cost(facts)


def dollars(price: Decimal) -> str:
    text = f"{price:.6f}"
    return f"${text.rstrip('0').rstrip('.')}"
