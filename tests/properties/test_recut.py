"""Any message of a wire becomes a stream and is read from it again; any message can be made of any other's stream."""

import copy
import json

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tape_jupyter.core.call import Reply
from tape_jupyter.providers import editing
from tape_jupyter.providers.anthropic import stream
from tape_jupyter.providers.streams import rechunking
from tape_jupyter.providers.openai import chat_stream, responses_stream
from tape_jupyter.providers.streams.events import StreamEvent, join_events, parse_events
from tape_jupyter.providers.streams.diff import recut_parts

SETTINGS = settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))

texts = st.text(st.characters(exclude_categories=("Cs",)), max_size=30) | st.sampled_from(
    ["", "\u2028", "data: [DONE]\n\n", "a b c d e f"]
)
said = texts.filter(bool)
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-9, 10**18)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(texts, inner, max_size=2),
    max_leaves=5,
)
arguments = st.dictionaries(said, values, min_size=1, max_size=3)
numbers = st.integers(0, 3)

# ---------------------------------------------------------------- messages


def tool(id_, name, value):
    return {"type": "tool_use", "id": f"toolu_{id_}", "name": name, "input": value}


cited = st.builds(
    lambda t, c: {
        "type": "text",
        "text": t,
        "citations": [{"type": "char_location", "cited_text": c}],
    },
    texts,
    said,
)
blocks = st.one_of(
    st.builds(lambda t: {"type": "text", "text": t}, texts),
    cited,
    st.builds(lambda t: {"type": "thinking", "thinking": t, "signature": "c2ln"}, texts),
    st.just({"type": "redacted_thinking", "data": "b3BhcXVl"}),
    st.builds(tool, numbers, said, arguments | st.just({})),
    st.builds(
        lambda n, v: {
            "type": "server_tool_use",
            "id": f"srvtoolu_{n}",
            "name": "web_search",
            "input": v,
        },
        numbers,
        arguments,
    ),
    st.builds(
        lambda n, v: {
            "type": "web_search_tool_result",
            "tool_use_id": f"srvtoolu_{n}",
            "content": [v],
        },
        numbers,
        arguments,
    ),
    st.builds(lambda v: {"type": "compaction", "content": v}, texts),
)
claude = st.builds(
    lambda content, stop: {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": content, "stop_reason": stop,
        "stop_sequence": None, "usage": {"input_tokens": 3, "output_tokens": 4},
    },
    st.lists(blocks, max_size=5), st.sampled_from(["end_turn", "max_tokens", "tool_use"]),
)  # fmt: skip

calls = st.builds(lambda n, name, a: {"id": f"call_{n}", "type": "function", "function": {"name": name, "arguments": json.dumps(a)}}, numbers, said, arguments | st.just({}))  # fmt: skip
customs = st.builds(
    lambda n, name, t: {"id": f"call_{n}", "type": "custom", "custom": {"name": name, "input": t}},
    numbers,
    said,
    said,
)


def spoken(content, tools, refusal, thought):
    message = {
        "role": "assistant",
        "content": content,
        **({"refusal": refusal} if refusal is not None else {}),
    }
    return (
        message
        | ({"reasoning_content": thought} if thought else {})
        | ({"tool_calls": tools} if tools else {})
    )


choices = st.builds(
    spoken,
    st.none() | texts,
    st.lists(calls | customs, max_size=3, unique_by=lambda c: c["id"]),
    st.none() | said,
    st.none() | said,
)
chat = st.builds(
    lambda told, ends: {
        "id": "c1", "object": "chat.completion", "created": 1, "model": "m",
        "choices": [{"index": n, "finish_reason": end, "message": each} for n, (each, end) in enumerate(zip(told, ends))],
        "usage": {"prompt_tokens": 1, "completion_tokens": 2},
    },
    st.lists(choices, min_size=1, max_size=2), st.lists(st.sampled_from(["stop", "length", "tool_calls"]), min_size=2, max_size=2),
)  # fmt: skip

parts = st.one_of(
    st.builds(lambda t: {"type": "output_text", "text": t, "annotations": []}, texts),
    st.builds(
        lambda t: {
            "type": "output_text",
            "text": t,
            "annotations": [{"type": "url_citation", "url": "u"}],
        },
        texts,
    ),
    st.builds(lambda t: {"type": "refusal", "refusal": t}, texts),
)
items = st.one_of(
    st.builds(lambda n, p: {"type": "message", "id": f"msg_{n}", "role": "assistant", "status": "completed", "content": p}, numbers, st.lists(parts, max_size=2)),
    st.builds(lambda n, a: {"type": "function_call", "id": f"fc_{n}", "call_id": f"call_{n}", "name": "f", "arguments": json.dumps(a), "status": "completed"}, numbers, arguments),
    st.builds(lambda n, t: {"type": "custom_tool_call", "id": f"ct_{n}", "call_id": f"call_{n}", "name": "g", "input": t, "status": "completed"}, numbers, texts),
    st.builds(lambda n, t: {"type": "reasoning", "id": f"rs_{n}", "summary": [{"type": "summary_text", "text": t}]}, numbers, texts),
    st.builds(lambda n: {"type": "web_search_call", "id": f"ws_{n}", "status": "completed", "action": {"type": "search", "query": "q"}}, numbers),
    st.builds(lambda n, t: {"type": "code_interpreter_call", "id": f"ci_{n}", "code": t, "status": "completed", "container_id": "c"}, numbers, texts),
)  # fmt: skip
responses = st.builds(
    lambda output, status: {
        "id": "resp_1", "object": "response", "created_at": 1, "model": "m", "status": status, "output": output,
        "usage": {"input_tokens": 1, "output_tokens": 2}, "error": None,
    },
    st.lists(items, max_size=4), st.sampled_from(["completed", "incomplete"]),
)  # fmt: skip

WIRES = {
    "anthropic": (stream, claude),
    "openai_chat": (chat_stream, chat),
    "openai_responses": (responses_stream, responses),
}
wires = st.one_of(*(st.tuples(st.just(name), drawn, drawn) for name, (_, drawn) in WIRES.items()))


def canonical(value):
    return json.dumps(value, sort_keys=True)


def finer(name, events):
    """The same stream in smaller deltas, as a model gives it."""
    out = []
    for event in events:
        halves = _halves(name, event)
        out += halves or [event]
    if name == "openai_responses":
        out = [
            event.replace_data({**event.data, "sequence_number": number})
            for number, event in enumerate(out)
        ]
    return parse_events(join_events(out))


def _halves(name, event):
    data = event.data
    if name == "anthropic" and event.kind == "content_block_delta":
        key = {
            "text_delta": "text",
            "thinking_delta": "thinking",
            "input_json_delta": "partial_json",
        }.get(data["delta"]["type"])
        path = ("delta", key)
    elif name == "openai_responses" and event.kind.endswith(".delta"):
        path = ("delta",)
    else:
        return None
    told = editing.value_at(data, path) if None not in path else None
    if not isinstance(told, str) or len(told) < 2:
        return None
    return [
        event.replace_data(editing.with_value_at(data, path, half))
        for half in (told[: len(told) // 2], told[len(told) // 2 :])
    ]


@SETTINGS
@given(wires)
def test_a_message_becomes_a_stream_and_is_read_again(drawn):
    name, message, _ = drawn
    codec = WIRES[name][0]
    body = join_events(codec.compose(message))
    assert canonical(codec.read(parse_events(body))) == canonical(message)
    assert join_events(codec.rewrite(parse_events(body), codec.read(parse_events(body)))) == body


@SETTINGS
@given(wires)
def test_any_message_can_be_made_of_the_stream_of_any_other(drawn):
    name, message, other = drawn
    codec = WIRES[name][0]
    events = finer(name, codec.compose(message))
    before = copy.deepcopy([event.data for event in events])
    made = join_events(codec.rewrite(events, other))
    assert canonical(codec.read(parse_events(made))) == canonical(other)
    assert [event.data for event in events] == before, "what was recorded is not changed"
    if name == "openai_responses":
        assert [event.data["sequence_number"] for event in parse_events(made)] == list(
            range(len(parse_events(made)))
        )


@SETTINGS
@given(wires, st.lists(st.integers(1, 200), min_size=1, max_size=20))
def test_reads_cover_the_changed_body_and_waits_rise(drawn, sizes):
    name, message, other = drawn
    codec = WIRES[name][0]
    events = codec.compose(message)
    body = join_events(events)
    cut, start = [], 0
    for size in sizes:
        cut.append(body[start : start + size])
        start += size
    cut = tuple(part for part in (*cut, body[start:]) if part)
    reply = Reply(200, (), cut, tuple(float(n) for n in range(len(cut))))
    old = parse_events(body)
    assert rechunking.reread(reply, old, old) == (cut, reply.waits)
    new = codec.rewrite(old, other)
    parts, waits = rechunking.reread(reply, old, new)
    assert (
        b"".join(parts) == join_events(new)
        and all(parts)
        and len(parts) == len(waits)
        and list(waits) == sorted(waits)
    )


@SETTINGS
@given(st.lists(texts, max_size=6), texts)
def test_a_recut_text_is_the_text(parts, text):
    made = recut_parts(parts, text)
    assert len(made) == len(parts) and (not parts or "".join(part or "" for part in made) == text)
    if "".join(parts) == text and all(parts):
        assert made == parts


@SETTINGS
@given(st.binary(max_size=80) | st.lists(st.sampled_from([b"data: {}", b"\n", b"\r\n", b"\r", b"event: x", b": c", b"data: [DONE]", b'data: {"a":', b" 1}"]), max_size=9).map(b"".join))  # fmt: skip
def test_any_bytes_are_taken_apart_without_loss_and_read_without_raising(body):
    events = parse_events(body)
    assert join_events(events) == body
    for codec, _ in WIRES.values():
        message = codec.read(events)
        assert join_events(codec.rewrite(events, message)) == body


@SETTINGS
@given(st.lists(st.builds(lambda kind, more: {"type": kind, **more}, st.sampled_from(["message_start", "content_block_start", "content_block_delta", "content_block_stop", "message_delta", "error", "response.output_item.added", "response.output_text.delta", "response.output_item.done", "response.completed", "response.content_part.added"]), st.dictionaries(st.sampled_from(["index", "delta", "content_block", "message", "choices", "output_index", "item", "content_index", "response", "part", "usage", "error"]), st.one_of(values, st.integers(0, 2), st.lists(st.dictionaries(st.sampled_from(["index", "delta", "finish_reason"]), values, max_size=3), max_size=2)), max_size=5)), max_size=6))  # fmt: skip
def test_nonsense_in_the_right_words_is_kept_as_it_is(told):
    body = join_events([StreamEvent(f"data: {json.dumps(data)}\n\n".encode()) for data in told])
    events = parse_events(body)
    for codec, _ in WIRES.values():
        assert join_events(codec.rewrite(events, codec.read(events))) == body
