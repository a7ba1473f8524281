"""A reply taken apart as a message and put together again, as the real SDKs see it: of real traffic, and odd streams."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import pytest

from tape_jupyter.core.call import Reply, Request
from tape_jupyter.providers import editing
from tape_jupyter.providers.protocol import TAPE_ONLY
from tape_jupyter.providers.streams.events import parse_events
from tests import reencode_corpus, reencode_edits
from tests.harness import real_traffic, sdk_views

EVERY = 1 if os.environ.get("TAPE_NIGHTLY") else 3
TYPE = {
    "json": (("content-type", "application/json"),),
    "sse": (("content-type", "text/event-stream"),),
}
URLS = {
    "anthropic": "https://api.anthropic.com/v1/messages",
    "openai_chat": "https://api.openai.com/v1/chat/completions",
    "openai_responses": "https://api.openai.com/v1/responses",
}


@pytest.fixture(scope="module")
def records():
    return [record for record in real_traffic.records() if reencode_corpus.wire_of(record)]


@pytest.mark.slow
@pytest.mark.filterwarnings(
    "ignore::UserWarning"
)  # pydantic, of hosts that send a list where the SDK knows a text
def test_every_real_reply_unedited_is_the_same_object_to_the_sdk_and_so_is_one_made_from_its_message(
    records,
):
    seen = [reencode_corpus.line_of(record, "TOKEN") for record in records[::EVERY]]
    messages = [line for line in seen if line["message"]]
    assert len({line["api"] for line in messages}) == 3 and len(messages) > 1000 / EVERY
    assert [
        line["id"]
        for line in messages
        if len({line["sha256"], line["composed"], line["recorded"]}) != 1
    ] == []


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_real_reply_with_an_edit_parses_and_differs_only_there(records):
    streamed = [record for record in records if record["stream"]]
    whole = [record for record in records if not record["stream"]]
    some = [*streamed[:: 2 * EVERY], *whole[:: 17 * EVERY]]
    found = [
        (record["id"], name, wrong)
        for record in some
        for name, wrong in reencode_edits.proven(record)
    ]
    assert [each for each in found if each[2]] == []
    kinds = {name for _, name, _ in found}
    assert {
        "text",
        "argument",
        "block removed",
        "block added",
        "block put first",
        "empty text",
    } <= kinds
    assert len(found) > 600 / EVERY


def test_the_lines_of_the_corpus_tool_hold_the_token_and_nothing_of_a_reply_without_text(records):
    import base64

    for record in records[:60]:
        line = reencode_corpus.line_of(record, "T0KEN")
        body = base64.b64decode(line["body"])
        assert (b"T0KEN" in body) is bool(line["path"])


# ---------------------------------------------------------------- streams of our own


def call(wire, body, *, coding=None, chunks=None):
    kind = TYPE["json" if body[:1] == b"{" else "sse"]
    headers = (*kind, *((("content-encoding", coding),) if coding else ()))
    data = gzip.compress(body) if coding else body
    parts = chunks or (data,)
    request = Request("POST", URLS[wire], TYPE["json"], b'{"model": "m", "messages": []}')
    return request, Reply(200, headers, tuple(parts), tuple(float(n) for n in range(len(parts))))


def sse(*events, name=True, end="\n", done=True):
    lines = [
        (f"event: {data['type']}{end}" if name else "") + f"data: {json.dumps(data)}{end}{end}"
        for data in events
    ]
    return ("".join(lines) + (f"data: [DONE]{end}{end}" if done and not name else "")).encode()


def edited(wire, body, change, **more):
    """The body after `change(message)` was made of its message, and the edited reply."""
    request, reply = call(wire, body, **more)
    taken = editing.take_apart_reply(request, reply)
    made, notes = editing.encoded(request, reply, change(taken.message))
    return made, notes


def text(wire, said):
    return lambda message: editing.with_text(wire, message, said)


MESSAGE = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [], "stop_reason": None, "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1}}  # fmt: skip
START = {"type": "message_start", "message": MESSAGE}
END = ({"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None}, "usage": {"output_tokens": 3}}, {"type": "message_stop"})  # fmt: skip


def block(index, *parts):
    yield {
        "type": "content_block_start",
        "index": index,
        "content_block": {"type": "text", "text": ""},
    }
    for part in parts:
        yield {
            "type": "content_block_delta",
            "index": index,
            "delta": {"type": "text_delta", "text": part},
        }
    yield {"type": "content_block_stop", "index": index}


def anthropic(body, **more):
    return sdk_views.sees("anthropic", body, streamed=True, **more)


def test_pings_comments_and_events_that_nobody_knows_stay_where_they_were():
    odd = b': keep-alive\n\nevent: ping\ndata: {"type": "ping"}\n\nevent: news\ndata: {"type":"news", "x": 1.50}\n\n'
    first, second = sse(START, *block(0, "Hello ", "world")), sse(*END)
    made, _ = edited("anthropic", first + odd + second, text("anthropic", "Bye"))
    assert odd + second in made.body and anthropic(made.body)["content"][0]["text"] == "Bye"


def test_an_error_in_the_midst_of_a_stream_is_still_one_and_can_be_taken_out():
    error = sse({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}})
    body = sse(START, *list(block(0, "Half of"))[:2]) + error
    made, _ = edited("anthropic", body, text("anthropic", "A third"))
    assert made.body.endswith(error) and anthropic(made.body)["raised"] in (
        "OverloadedError",
        "APIStatusError",
        "InternalServerError",
    )

    def mended(message):
        return {**{k: v for k, v in message.items() if k != "error"}, "stop_reason": "end_turn"}

    made, _ = edited("anthropic", body, mended)
    assert anthropic(made.body)["stop_reason"] == "end_turn"


def test_a_cut_stream_is_edited_as_far_as_it_goes():
    body = sse(START, *block(0, "Hello ", "wor"))[:-40]
    made, _ = edited("anthropic", body, text("anthropic", "Bye bye"))
    assert made.body.endswith(body[-20:])
    assert (
        "".join(
            e.data["delta"]["text"]
            for e in parse_events(made.body)
            if e.kind == "content_block_delta"
        )
        == "Bye bye"
    )


def test_line_ends_and_spelling_of_a_stream_are_kept():
    for end in ("\n", "\r\n"):
        body = sse(START, *block(0, "Hello ", "world"), *END, end=end)
        made, _ = edited(
            "anthropic",
            body,
            lambda message: {
                **message,
                "content": [
                    *message["content"],
                    {"type": "tool_use", "id": "t", "name": "n", "input": {"a": 1}},
                ],
            },
        )
        assert made.body.count(end.encode() * 2) == len(parse_events(made.body))
        assert anthropic(made.body)["stop_reason"] == "tool_use"


@pytest.mark.parametrize(
    "said",
    [
        "\x0b\x1c\x1d\x1e\x85\u2028\u2029\x7f\x00\r\n",
        "🦊é",
        "\ud83e",
        "data: x\n\nevent: error",
        "</script><img onerror=alert(1)>",
    ],
)
def test_any_character_that_a_person_types_reaches_the_sdk(said):
    body = sse(START, *block(0, "Hello ", "world"), *END)
    made, _ = edited("anthropic", body, text("anthropic", said))
    assert anthropic(made.body)["content"][0]["text"] == said
    assert not set(made.body.decode("utf-8")) & set("\x0b\x1c\x85\u2028\x7f\x00\r")
    if "\ud83e" not in said:
        made, _ = edited("openai_chat", chat("Hello ", "world"), text("openai_chat", said))
        assert (
            sdk_views.sees("openai_chat", made.body, streamed=True)["choices"]["0"]["message"][
                "content"
            ]
            == said
        )


def test_a_content_encoded_stream_is_sent_plain_and_its_reads_keep_their_waits():
    body = sse(START, *block(0, *"abcdefgh"), *END)
    packed = gzip.compress(body)
    chunks = tuple(packed[start : start + 40] for start in range(0, len(packed), 40))
    made, _ = edited("anthropic", body, text("anthropic", "12345678"), coding="gzip", chunks=chunks)
    assert (
        made.header("content-encoding") == ""
        and anthropic(made.body)["content"][0]["text"] == "12345678"
    )
    assert set(made.waits) <= {float(n) for n in range(len(chunks))} and list(made.waits) == sorted(
        made.waits
    )


# ---------------------------------------------------------------- Chat


def chunk(delta, end=None, **more):
    return {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": end}], **more}  # fmt: skip


def chat(*parts, end=True, done=True, role=False):
    told = [chunk({"role": "assistant", "content": ""})]
    told += [chunk({"content": part, **({"role": "assistant"} if role else {})}) for part in parts]
    told += [chunk({}, "stop")] if end else []
    return sse(*told, name=False, done=done)


@pytest.mark.parametrize(
    "odd",
    [
        {},
        {"end": False},
        {"done": False},
        {"role": True},
        {"end": False, "done": False, "role": True},
    ],
)
def test_hosts_that_leave_things_out_or_repeat_the_role_survive(odd):
    body = chat("Hello ", "world", **odd)
    made, _ = edited("openai_chat", body, text("openai_chat", "Bye now"))
    seen = sdk_views.sees("openai_chat", made.body, streamed=True)
    assert seen["choices"]["0"]["message"] == {"role": "assistant", "content": "Bye now"}
    assert (b"[DONE]" in made.body) is odd.get("done", True) and (
        b'"stop"' in made.body
    ) is odd.get("end", True)


def test_usage_beside_and_unknown_keys_are_kept_and_usage_is_said_to_be_stale():
    last = {
        **chunk({}),
        "choices": [],
        "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5},
        "x_host": {"queue": 0.10},
    }
    body = sse(
        chunk({"role": "assistant", "content": ""}),
        chunk({"content": "Hi"}),
        chunk({}, "stop"),
        last,
        name=False,
    )
    made, notes = edited("openai_chat", body, text("openai_chat", "Bye"))
    assert parse_events(made.body)[-2].raw == parse_events(body)[-2].raw and any(
        note.startswith("usage stale") for note in notes
    )


def test_a_removed_tool_call_renumbers_the_others_and_the_reason_follows():
    calls = [
        {
            "index": n,
            "id": f"call_{n}",
            "type": "function",
            "function": {"name": "f", "arguments": ""},
        }
        for n in (0, 1)
    ]
    told = [chunk({"role": "assistant", "content": None})]
    for each in calls:
        told += [chunk({"tool_calls": [each]})]
        told += [
            chunk({"tool_calls": [{"index": each["index"], "function": {"arguments": part}}]})
            for part in ('{"a":', "1}")
        ]
    body = sse(*told, chunk({}, "tool_calls"), name=False)

    def without(*gone):
        def change(message):
            left = [
                call
                for n, call in enumerate(message["choices"][0]["message"]["tool_calls"])
                if n not in gone
            ]
            return editing.with_value_at(message, ("choices", 0, "message", "tool_calls"), left)

        return change

    made, _ = edited("openai_chat", body, without(0))
    seen = sdk_views.accumulated(made.body)["choices"][0]
    assert [call["id"] for call in seen["message"]["tool_calls"]] == ["call_1"] and seen[
        "finish_reason"
    ] == "tool_calls"
    assert len(parse_events(made.body)) == len(parse_events(body)) - 3
    made, notes = edited("openai_chat", body, without(0, 1))
    seen = sdk_views.accumulated(made.body)["choices"][0]
    assert "tool_calls" not in seen["message"] and seen["finish_reason"] == "stop"
    assert "finish_reason is stop now" in notes


def test_several_choices_are_edited_one_by_one():
    def part(index, told, end=None):
        return {**chunk({}), "choices": [{"index": index, "delta": told, "finish_reason": end}]}

    body = sse(
        *(part(n, {"role": "assistant", "content": word}) for word in ("a", "b") for n in (0, 1)),
        part(0, {}, "stop"),
        part(1, {}, "stop"),
        name=False,
    )
    made, _ = edited(
        "openai_chat",
        body,
        lambda m: editing.with_value_at(m, ("choices", 1, "message", "content"), "xyz"),
    )
    seen = sdk_views.sees("openai_chat", made.body, streamed=True)["choices"]
    assert (seen["0"]["message"]["content"], seen["1"]["message"]["content"]) == ("ab", "xyz")
    made, _ = edited("openai_chat", body, lambda m: {**m, "choices": m["choices"][1:]})
    assert list(sdk_views.sees("openai_chat", made.body, streamed=True)["choices"]) == ["1"]


# ---------------------------------------------------------------- Responses


RESPONSE = {"id": "resp_1", "object": "response", "created_at": 1, "model": "m", "status": "completed", "output": [
    {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "hm hm"}], "encrypted_content": "gAAA"},
    {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [{"type": "output_text", "text": "Hello world", "annotations": []}]},
    {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "f", "arguments": '{"a":1}', "status": "completed"},
], "usage": {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}}  # fmt: skip


def responses():
    return editing.composed("openai_responses", RESPONSE)


def numbers(body):
    return [event.data["sequence_number"] for event in parse_events(body)]


def test_a_text_of_a_response_changes_wherever_it_stands():
    made, notes = edited("openai_responses", responses(), text("openai_responses", "Bye bye"))
    assert b"Hello" not in made.body and made.body.count(b"Bye bye") == 5
    assert numbers(made.body) == numbers(responses())
    seen = sdk_views.sees("openai_responses", made.body, streamed=True)
    assert seen["response"]["output"][1]["content"][0]["text"] == "Bye bye"
    assert seen["response"]["output"][0]["encrypted_content"] is None and any(
        n.startswith("tool only"[:4]) for n in ["tool"]
    ), notes
    assert any(note.startswith(TAPE_ONLY) for note in notes)


def test_items_taken_out_and_put_in_are_numbered_on():
    made, _ = edited("openai_responses", responses(), lambda m: {**m, "output": m["output"][1:]})
    assert (
        numbers(made.body) == list(range(len(parse_events(made.body)))) and b"rs_1" not in made.body
    )
    assert {
        e.data["output_index"] for e in parse_events(made.body) if "output_index" in e.data
    } == {0, 1}
    more = {
        "type": "function_call",
        "id": "fc_2",
        "call_id": "call_2",
        "name": "g",
        "arguments": "{}",
        "status": "completed",
    }
    made, _ = edited(
        "openai_responses", responses(), lambda m: {**m, "output": [*m["output"], more]}
    )
    assert numbers(made.body) == list(range(len(parse_events(made.body))))
    assert (
        sdk_views.sees("openai_responses", made.body, streamed=True)["response"]["output"][3][
            "name"
        ]
        == "g"
    )


def test_the_sdks_own_helper_reads_an_edited_response():
    import httpx2
    import openai

    made, _ = edited("openai_responses", responses(), text("openai_responses", "Bye bye"))
    answer = httpx2.Response(200, headers={"content-type": "text/event-stream"}, content=made.body)
    client = openai.OpenAI(
        api_key="x", http_client=httpx2.Client(transport=httpx2.MockTransport(lambda _: answer))
    )
    with client.responses.stream(model="m", input="?") as stream:
        told = "".join(
            event.delta for event in stream if event.type == "response.output_text.delta"
        )
        assert told == stream.get_final_response().output_text == "Bye bye"


# ---------------------------------------------------------------- JSON


def test_json_keeps_its_spelling_and_what_stood_around_it():
    told = {**MESSAGE, "content": [{"type": "text", "text": "Hi <b>"}], "stop_reason": "end_turn"}
    for body in (
        json.dumps(told, indent=2),
        json.dumps(told),
        json.dumps(told, separators=(",", ":")),
        f"\n {json.dumps(told)}\n\n",
    ):
        made, _ = edited(
            "anthropic",
            body.encode(),
            text("anthropic", "Ho <b>"),
            chunks=(body[:9].encode(), body[9:].encode()),
        )
        assert made.body == body.replace("Hi", "Ho").encode()


def test_an_unchanged_message_is_the_recorded_reply_itself():
    for wire, body in (
        ("anthropic", sse(START, *block(0, "x"), *END)),
        ("openai_chat", chat("x")),
        ("openai_responses", responses()),
    ):
        request, reply = call(wire, body, coding="gzip")
        assert (
            editing.encoded(request, reply, editing.take_apart_reply(request, reply).message)[0]
            is reply
        )


def test_the_number_one_and_true_are_not_the_same_argument():
    told = {
        **MESSAGE,
        "content": [{"type": "tool_use", "id": "t", "name": "f", "input": {"n": 1, "x": 2.0}}],
        "stop_reason": "tool_use",
    }
    body = json.dumps(told).encode()
    made, _ = edited(
        "anthropic",
        body,
        lambda m: editing.with_value_at(m, ("content", 0, "input"), {"n": True, "x": 2}),
    )
    assert (
        json.loads(made.body)["content"][0]["input"] == {"n": True, "x": 2}
        and b'{"n": true, "x": 2}' in made.body
    )


def test_mistrals_lists_of_thinking_and_text_are_edited_too():
    import httpx2
    from mistralai.client import Mistral

    thought = [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}]
    told = [
        chunk({"role": "assistant", "content": ""}),
        chunk({"content": thought}),
        chunk({"content": "Hi "}),
        chunk({"content": "there"}),
        chunk({}, "stop"),
    ]
    url = "https://api.mistral.ai/v1/chat/completions"
    request, reply = call("openai_chat", sse(*told, name=False))
    request = Request("POST", url, request.headers, request.body)
    message = editing.take_apart_reply(request, reply).message
    changed = editing.with_value_at(
        message, ("choices", 0, "message", "content"), [*thought, {"type": "text", "text": "Bye"}]
    )
    for wanted in (
        changed,
        editing.with_value_at(message, ("choices", 0, "message", "content"), "Bye"),
    ):
        made, _ = editing.encoded(request, reply, wanted)
        answer = httpx2.Response(
            200, headers={"content-type": "text/event-stream"}, content=made.body
        )
        client = Mistral(
            api_key="x", client=httpx2.Client(transport=httpx2.MockTransport(lambda _: answer))
        )
        deltas = [
            event.data.choices[0].delta.content
            for event in client.chat.stream(model="m", messages=[{"role": "user", "content": "?"}])
        ]
        assert "Bye" in str(deltas) and "Hi" not in str(deltas)
