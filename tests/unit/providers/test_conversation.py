"""A call as a conversation, whatever wire it went over; and in one line."""

import base64
import gzip
import json
import os
from pathlib import Path

import pytest

from tape_jupyter.core.call import Reply, Request
from tape_jupyter.providers.registry import call_facts
from tape_jupyter.providers import conversation, http
from tape_jupyter.providers.conversation import whole_blocks
from tests import reencode_corpus
from tests.harness import real_traffic
from tests.harness.tapes import JSON


def said(body):
    return conversation.reply_turns(body)


def texts(found):
    return [
        (turn["role"], [part.get("text", part.get("name", "")) for part in turn["parts"]])
        for turn in found
    ]


@pytest.mark.parametrize(
    ("body", "line"),
    [
        ({"content": [{"type": "text", "text": "negative\n"}]}, '"negative"'),
        (
            {
                "content": [
                    {"type": "thinking", "thinking": "hm"},
                    {"type": "tool_use", "name": "look", "input": {}},
                ]
            },
            "→ look",
        ),
        ({"choices": [{"message": {"role": "assistant", "content": "hi"}}]}, '"hi"'),
        (
            {
                "choices": [
                    {
                        "message": {
                            "tool_calls": [
                                {"id": "1", "function": {"name": "look", "arguments": "{}"}}
                            ]
                        }
                    }
                ]
            },
            "→ look",
        ),
        (
            {"output": [{"type": "message", "content": [{"type": "output_text", "text": "hi"}]}]},
            '"hi"',
        ),
        (
            {
                "output": [
                    {"type": "function_call", "name": "look", "call_id": "1", "arguments": "{}"}
                ]
            },
            "→ look",
        ),
        ({"candidates": [{"content": {"parts": [{"text": "hi"}]}}]}, '"hi"'),
        (
            {
                "candidates": [
                    {"content": {"parts": [{"functionCall": {"name": "look", "args": {}}}]}}
                ]
            },
            "→ look",
        ),
        ({"output": {"message": {"content": [{"text": "hi"}]}}}, '"hi"'),
        (
            {
                "output": {
                    "message": {
                        "content": [{"toolUse": {"toolUseId": "1", "name": "look", "input": {}}}]
                    }
                }
            },
            "→ look",
        ),
        ({"message": {"content": [{"type": "text", "text": "hi"}]}}, '"hi"'),
        ({"message": {"role": "assistant", "content": "hi"}, "done": True}, '"hi"'),
        ({"completion": " hi"}, '"hi"'),
        ({"choices": [{"message": {"content": "x" * 500}}]}, f'"{"x" * 119}…"'),
        ({"embedding": [0.1]}, ""),
        ({"error": {"type": "x"}}, ""),
        ([1, "two", None], ""),
        ("text", ""),
        (None, ""),
    ],
)
def test_an_answer_of_any_wire_in_one_line(body, line):
    assert conversation.gist(said(body)) == line


def test_a_conversation_reads_from_the_system_to_the_answer():
    asked = {
        "system": "Be brief.",
        "messages": [
            {"role": "user", "content": "where is my order?"},
            {
                "role": "assistant",
                "content": [
                    {"type": "tool_use", "id": "t", "name": "look", "input": {"q": "my order"}}
                ],
            },
            {
                "role": "user",
                "content": [
                    {
                        "type": "tool_result",
                        "tool_use_id": "t",
                        "content": "3 found",
                        "is_error": True,
                    }
                ],
            },
        ],
    }
    reply = Reply(200, JSON, (b'{"content":[{"type":"text","text":"Shipped."}]}',), (0.1,))
    found = conversation.conversation_turns(
        Request("POST", "https://x.test", JSON, json.dumps(asked).encode()), reply
    )
    assert [turn["role"] for turn in found] == ["system", "user", "assistant", "tool", "assistant"]
    assert found[2]["parts"] == [
        {"type": "tool_use", "id": "t", "name": "look", "input": {"q": "my order"}}
    ]
    assert found[3]["parts"] == [
        {"type": "tool_result", "id": "t", "text": "3 found", "error": True}
    ]


def test_openai_tools_results_and_pictures():
    asked = {
        "messages": [
            {"role": "developer", "content": "Be brief."},
            {
                "role": "user",
                "content": [
                    {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
                ],
            },
            {"role": "tool", "tool_call_id": "c", "content": "ok"},
        ]
    }
    system, user, result = conversation.request_turns(asked)
    assert system["role"] == "system"
    assert user["parts"] == [{"type": "image", "media": "image/png", "bytes": 3, "data": "AAAA"}]
    assert result == {
        "role": "tool",
        "parts": [{"type": "tool_result", "id": "c", "text": "ok", "error": False}],
    }


def test_a_picture_of_many_megabytes_is_named_and_not_carried():
    block = {
        "type": "image",
        "source": {"type": "base64", "media_type": "image/png", "data": "A" * 2_000_000},
    }
    (part,) = conversation.request_turns({"messages": [{"role": "user", "content": [block]}]})[0][
        "parts"
    ]
    assert part == {"type": "image", "media": "image/png", "bytes": 1_500_000, "data": None}


def test_tools_that_the_provider_runs_are_no_calls_of_anybody_here():
    found = said(
        {
            "content": [
                {"type": "server_tool_use", "name": "web_search", "input": {}},
                {"type": "text", "text": "so"},
            ]
        }
    )
    assert conversation.gist(found) == '"so"' and found[0]["parts"][0]["name"] == "web_search"


@pytest.mark.parametrize(
    "body",
    [
        {"messages": {"a": 1}},
        {"messages": [1, [2], {"content": 3}]},
        {"contents": [{"parts": "x"}]},
        {"input": [[]]},
    ],
)
def test_what_is_no_conversation_has_no_turns(body):
    assert [
        turn for turn in conversation.request_turns(body) if turn["role"] not in ("user",)
    ] == []


def test_a_message_nested_without_end_is_cut_short():
    block = {"type": "text", "text": "x"}
    for _ in range(500):
        block = [block]
    assert conversation.request_turns({"messages": [{"role": "user", "content": block}]}) == []


def test_what_a_streamed_model_thought_is_not_shown_as_its_answer():
    parts = [
        {"type": "thinking", "thinking": [{"type": "text", "text": "Let me think. "}]},
        {"type": "text", "text": "The answer is 4."},
    ]
    events = [{"choices": [{"index": 0, "delta": {"content": [part]}}]} for part in parts]
    assert [(block["type"], block["text"]) for block in whole_blocks(events)] == [
        ("thinking", "Let me think. "),
        ("text", "The answer is 4."),
    ]


def test_a_stream_of_chat_chunks_is_one_message_with_its_calls():
    events = [
        {"choices": [{"index": 0, "delta": {"role": "assistant", "content": "Let me "}}]},
        {"choices": [{"index": 0, "delta": {"content": "look."}}]},
        {
            "choices": [
                {
                    "index": 0,
                    "delta": {
                        "tool_calls": [
                            {
                                "index": 0,
                                "id": "c",
                                "function": {"name": "look", "arguments": '{"q"'},
                            }
                        ]
                    },
                }
            ]
        },
        {
            "choices": [
                {
                    "index": 0,
                    "delta": {"tool_calls": [{"index": 0, "function": {"arguments": ": 1}"}}]},
                }
            ]
        },
        "[DONE]",
    ]
    text, use = whole_blocks(events)
    assert text["text"] == "Let me look." and (use["name"], use["input"]) == ("look", {"q": 1})


def test_every_recorded_answer_of_real_traffic_is_told_and_its_tool_calls_agree():
    silent, wrong, told = [], [], 0
    for record in real_traffic.records():
        call, answer = reencode_corpus.call_of(record)
        known = call_facts(call, answer)
        json.dumps(conversation.conversation_turns(call, answer))
        plain = http.decoded_body(answer.headers, answer.body)
        line = (
            conversation.gist(conversation.reply_body_turns(answer.headers, plain)) if plain else ""
        )
        if (
            known.api in ("messages", "chat", "responses")
            and answer.status == 200
            and known.stop
            and plain
        ):
            told += 1
            silent += [record["id"]] if not line and known.usage and known.usage.output > 1 else []
        if known.wire and bool(known.calls) != line.startswith("→"):
            wrong.append(record["id"])
    assert told > 900 and not wrong
    assert len(silent) <= told // 100, silent
