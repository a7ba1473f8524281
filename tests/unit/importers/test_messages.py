"""Messages of any system: what is none of a known form is read as well as it can be, and never raises."""

import random

import pytest

from tape_jupyter.importers import messages

KEYS = (
    "role content kwargs message type text thinking tool_calls function_call function name toolName arguments args "
    "input id call_id toolUse functionCall functionResponse data lc finish_reason response_metadata toolResult parts "
    "summary reasoning output tool_call_id result additional_kwargs"
).split()
WORDS = (
    "function tool_use tool_result reasoning text function_call function_call_output message thinking user assistant "
    "tool"
).split()
READERS = (messages.messages_of, messages.declarations, messages.said_messages, messages.part_of)


def value_of(rng, depth=0):
    kind = rng.random()
    if depth > 4 or kind < 0.35:
        return rng.choice(["", *WORDS, 1, None, True, 1.5, "{}", "[1]", '{"a":1}'])
    if kind < 0.65:
        return {rng.choice(KEYS): value_of(rng, depth + 1) for _ in range(rng.randint(0, 4))}
    return [value_of(rng, depth + 1) for _ in range(rng.randint(0, 3))]


@pytest.mark.parametrize("read", READERS, ids=lambda it: it.__name__)
def test_anything_can_stand_where_messages_do(read):
    for seed in range(8_000):
        read(value_of(random.Random(seed)))


def test_types_and_ids_that_are_no_texts():
    odd = {"type": ["function"], "id": {"a": 1}, "functionCall": {"name": "f", "id": ["x"]}}
    (message,) = messages.messages_of(
        [{"role": "assistant", "content": [odd], "tool_calls": [{"id": ["x"], "name": "f"}]}]
    )
    assert [part["type"] for part in message["parts"]] == ["tool_call"]
    assert messages.messages_of([{"role": "assistant", "content": "a", "tool_calls": True}])
