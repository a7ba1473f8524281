"""What a person may change of a recorded call: a text, a part of the message, raw bodies, values; and what is refused."""

import json

import pytest

import tape_jupyter as tape
from tape_jupyter.cassette.takes import edits
from tape_jupyter.core.call import FunctionCall, Reply, Request, Value
from tape_jupyter.errors import TapeUsageError
from tape_jupyter.encoding.values.registry import freeze, thaw
from tests.harness.tapes import JSON, Recorder

URL = "https://api.anthropic.com/v1/messages"
SSE = (("content-type", "text/event-stream; charset=utf-8"), ("request-id", "req_9"))
SCHEMA = {"type": "object", "properties": {"order": {"type": "integer"}}, "required": ["order"]}
TOOLS = [{"name": "look", "input_schema": SCHEMA}]
MESSAGE = {
    "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-sonnet-5",
    "content": [
        {"type": "thinking", "thinking": "hm", "signature": "sig=="},
        {"type": "text", "text": "Let me see."},
        {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"order": 7}},
    ],
    "stop_reason": "tool_use", "stop_sequence": None, "usage": {"input_tokens": 9, "output_tokens": 20},
}  # fmt: skip


def asked(*messages):
    body = {"model": "claude-sonnet-5", "stream": True, "tools": TOOLS, "messages": list(messages)}
    return Request("POST", URL, JSON, json.dumps(body).encode())


def event(data):
    return f"event: {data['type']}\ndata: {json.dumps(data, separators=(',', ':'))}\n\n".encode()


def delta(index, kind, **told):
    return event({"type": "content_block_delta", "index": index, "delta": {"type": kind, **told}})


EVENTS = (
    event({"type": "message_start", "message": {**MESSAGE, "content": [], "stop_reason": None}}),
    event({"type": "ping"}),
    event({"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": "", "signature": ""}}),
    delta(0, "thinking_delta", thinking="hm"), delta(0, "signature_delta", signature="sig=="),
    event({"type": "content_block_stop", "index": 0}),
    event({"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}}),
    delta(1, "text_delta", text="Let "), delta(1, "text_delta", text="me "), delta(1, "text_delta", text="see."),
    event({"type": "content_block_stop", "index": 1}),
    event({"type": "content_block_start", "index": 2, "content_block": {**MESSAGE["content"][2], "input": {}}}),
    delta(2, "input_json_delta", partial_json=""), delta(2, "input_json_delta", partial_json='{"order":'),
    delta(2, "input_json_delta", partial_json=" 7}"),
    event({"type": "content_block_stop", "index": 2}),
    event({"type": "message_delta", "delta": {"stop_reason": "tool_use", "stop_sequence": None}, "usage": {"output_tokens": 20}}),
    event({"type": "message_stop"}),
)  # fmt: skip
STREAMED = Reply(200, SSE, EVENTS, tuple(round(0.1 * n, 1) for n in range(len(EVENTS))))
QUESTION = {"role": "user", "content": "Where is order 7?"}
RESULT = {
    "role": "user",
    "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "shipped"}],
}
DONE = {
    **MESSAGE,
    "content": [{"type": "text", "text": "It is shipped."}],
    "stop_reason": "end_turn",
}


@pytest.fixture
def path(tmp_path):
    """An agent: a streamed reply that calls a tool, the tool, the answer that quotes its result."""
    path = tmp_path / "agent.tapes" / "main.tape.yaml"
    Recorder(path).run(
        "aaaa",
        (asked(QUESTION), STREAMED),
        (FunctionCall("look", {"order": 7}), Value(freeze({"state": "shipped", "at": (1, 2)}))),
        (FunctionCall("look_json", {"order": 7}), Value('{"state": "shipped"}')),
        (asked(QUESTION, {"role": "assistant", "content": MESSAGE["content"]}, RESULT), Reply(200, JSON, (json.dumps(DONE).encode(),), (0.5,))),
    )  # fmt: skip
    return path


def call(path, number):
    return tape.open(path).calls[number]


def answered(path, take, number):
    return tape.open(path).take(take).calls[number].reply()


def message(reply):
    """The message as a program's SDK has it."""
    from tests.harness.sdk_views import sees

    return sees("anthropic", reply.body, streamed=b"event:" in reply.body)


# ---------------------------------------------------------------- from Python


def test_a_text_takes_the_place_of_the_first_text_and_the_rest_of_the_stream_stays_as_it_was(path):
    before = path.read_bytes()
    take = tape.open(path).override(call(path, 0), text="No order 7 is known here.", take="angry")
    reply = answered(path, "angry", 0)
    assert [block.get("text") for block in message(reply)["content"]] == [
        None,
        "No order 7 is known here.",
        None,
    ]
    kept = [number for number, chunk in enumerate(EVENTS) if chunk in reply.chunks]
    assert kept == [0, 1, 2, 3, 5, 6, 10, 11, 12, 13, 14, 15, 16, 17], (
        "only the text's deltas, and the signature, are others"
    )
    assert len(reply.chunks) == len(EVENTS) - 1, "cut into as many deltas as there were"
    at = {chunk: wait for chunk, wait in zip(reply.chunks, reply.waits, strict=True)}
    assert [at[EVENTS[number]] for number in kept] == [STREAMED.waits[number] for number in kept]
    assert path.read_bytes() == before and take.chain == ("main", "angry")


def test_the_take_says_what_kind_of_edit_it_was_that_usage_is_stale_and_thinking_unsigned(path):
    take = tape.open(path).override(call(path, 0), text="No.", take="angry")
    head = tape.open(take.path).calls[0].head()
    assert (head["edit"], head["usage"], head["tape only"]) == ("text", "stale", True)
    assert message(answered(path, "angry", 0))["usage"]["output_tokens"] == 20
    assert message(answered(path, "angry", 0))["content"][0]["signature"] == ""
    plain = tape.open(path).override(call(path, 3), text="Gone.", take="gone").calls[3].head()
    assert plain["usage"] == "stale" and "tape only" not in plain


def test_an_empty_text_is_a_reply(path):
    tape.open(path).override(call(path, 3), text="", take="silent")
    assert message(answered(path, "silent", 3))["content"][0]["text"] == ""


def test_part_of_a_message_is_enough_and_how_it_ends_follows(path):
    main = tape.open(path)
    main.override(call(path, 0), message={"content": "I cannot look that up."}, take="no-tool")
    said = message(answered(path, "no-tool", 0))
    assert [block["type"] for block in said["content"]] == ["text"] and said[
        "stop_reason"
    ] == "end_turn"
    tool = {"type": "tool_use", "id": "toolu_2", "name": "look", "input": {"order": 8}}
    main.override(
        call(path, 3), message=json.dumps({"content": [*DONE["content"], tool]}), take="again"
    )
    said = message(answered(path, "again", 3))
    assert said["content"][1]["input"] == {"order": 8} and said["stop_reason"] == "tool_use"
    main.override(call(path, 3), message={"stop_reason": "max_tokens"}, take="cut")
    assert message(answered(path, "cut", 3))["stop_reason"] == "max_tokens"


def test_text_on_a_function_is_what_it_returns(path):
    tape.open(path).override(call(path, 1), text="nothing", take="t")
    assert answered(path, "t", 1) == Value("nothing")


def test_overriding_twice_makes_a_take_of_the_take_and_starts_from_what_stands_there(path):
    first = tape.open(path).override(call(path, 0), text="One.", take="angry")
    second = first.override(first.calls[0], message={"model": "another"})
    assert second.chain == ("main", "angry", "angry-2")
    said = message(answered(path, "angry-2", 0))
    assert said["model"] == "another" and said["content"][1]["text"] == "One."


@pytest.mark.parametrize(
    ("number", "given", "said"),
    [
        (0, {"text": "x", "message": {}}, "one of text, message, fault, reply"),
        (0, {"text": 7}, "text= is a text, not a int"),
        (0, {"message": "{oops"}, "message=: this is not JSON"),
        (0, {"message": [1]}, "a dict or JSON of one"),
        (0, {"message": {"content": 7}}, "content: a message of this API has a list 'content'"),
        (0, {"message": {"content": ["x"]}}, r"content\[0\]: this is not a JSON object"),
        (0, {"text": "x" * (4 * 2**20 + 1)}, "this has 4.0 MiB; an edit may have 4"),
        (1, {"message": {"content": "x"}}, "is a function: override it with value= or error="),
    ],
)
def test_what_cannot_be_a_message_is_refused_and_nothing_is_written(path, number, given, said):
    with pytest.raises(TapeUsageError, match=said):
        tape.open(path).override(call(path, number), **given)
    assert not (path.parent / "takes").exists()


def test_a_call_that_two_cells_hold_is_asked_for_with_its_run(tmp_path):
    path = tmp_path / "two.tapes" / "main.tape.yaml"
    runs = [Recorder(path).run(source, (asked(QUESTION), STREAMED)) for source in ("aaaa", "bbbb")]
    entry = call(path, 0)
    with pytest.raises(TapeUsageError) as refused:
        tape.open(path).override(entry.id, text="Yes.")
    assert str(refused.value).endswith(f"say which: {runs[0]}/{entry.id}, {runs[1]}/{entry.id}")
    tape.open(path).override(f"{runs[1]}/{entry.id}", text="Yes.", take="mine")
    assert (
        b"Yes." in answered(path, "mine", 1).body and b"Yes." not in answered(path, "mine", 0).body
    )


def test_a_part_that_gets_a_field_more_is_streamed_anew_with_it(path):
    citation = {"type": "char_location", "cited_text": "order 7", "document_index": 0}
    content = [dict(each) for each in MESSAGE["content"]]
    content[1]["citations"] = [citation]
    tape.open(path).override(call(path, 0), message={"content": content}, take="mine")
    seen = message(answered(path, "mine", 0))
    assert "order 7" in str(seen) and "Let me see." in str(seen)


def test_a_call_that_another_kernel_recorded_again_is_refused_naming_the_newer_run(path):
    entry = call(path, 3)
    newer = Recorder(path, "s9").run("aaaa", (asked(QUESTION), STREAMED))
    with pytest.raises(TapeUsageError, match=newer):
        tape.open(path).override(entry, text="x")
    Recorder(path, "s9").run("bbbb", (asked(QUESTION), STREAMED))
    assert tape.open(path).override(call(path, 4), text="y"), "a base that only grew is fine"


# ---------------------------------------------------------------- as a view asks


def test_the_editor_gets_the_message_its_fields_the_raw_body_and_the_faults(path):
    told = edits.editable_of(call(path, 0)).record()
    assert told["form"] == "message" and told["api"] == "anthropic"
    assert json.loads(told["recorded"]) == MESSAGE and told["current"] == told["recorded"]
    fields = {field["label"]: field for field in told["fields"]}
    assert list(fields) == ["text", "thinking", "tool call 1", "arguments of look", "how it ends"]
    assert fields["text"]["path"] == "content[1].text" and fields["text"]["value"] == "Let me see."
    assert (
        fields["tool call 1"]["choices"] == ["look"]
        and fields["arguments of look"]["kind"] == "json"
    )
    assert told["raw"]["status"] == 200 and told["raw"]["body"].startswith("event: message_start")
    assert [fault["name"] for fault in told["faults"]] == [
        "rate_limit",
        "overloaded",
        "server_error",
        "reset",
        "timeout",
        "truncated",
    ]
    assert edits.editable_of(call(path, 1)).record()["faults"][0]["name"] == "error"


def test_a_field_changes_only_what_it_says(path):
    change = {"path": "content[2].input", "value": '{"order": 8}'}
    reply = edits.answer_of(call(path, 0), {"form": "fields", "fields": [change]})
    assert message(reply)["content"][2]["input"] == {"order": 8}
    assert set(EVENTS) - set(reply.chunks) == {EVENTS[4], EVENTS[14]}
    same = [
        {"path": field["path"], "value": field["value"]}
        for field in edits.editable_of(call(path, 0)).fields
    ]
    assert edits.answer_of(call(path, 0), {"form": "fields", "fields": same}) == STREAMED
    with pytest.raises(TapeUsageError, match=r"no field 'content\[9\].text'"):
        edits.answer_of(
            call(path, 0), {"form": "fields", "fields": [{"path": "content[9].text", "value": "x"}]}
        )


def problems(path, number, **edit):
    return [
        (problem["level"], problem["path"])
        for problem in edits.problems_of(call(path, number), edit)
    ]


def test_what_is_wrong_with_an_edit_is_said_beside_the_field(path):
    def with_call(**changed):
        return json.dumps({**MESSAGE, "content": [{**MESSAGE["content"][2], **changed}]})

    assert problems(path, 0, form="message", message=json.dumps(MESSAGE)) == []
    assert problems(path, 0, form="message", message="{") == [("error", "")]
    assert problems(path, 0, form="message", message=with_call(name="erase")) == [
        ("warning", "content[0].name")
    ]
    assert problems(path, 0, form="message", message=with_call(input={"order": "x"})) == [
        ("warning", "content[0].input.order")
    ]
    assert problems(path, 0, form="message", message=with_call(input={})) == [
        ("warning", "content[0].input")
    ]
    assert problems(path, 0, form="message", message=json.dumps(DONE)) == [
        ("warning", "content")
    ], "its result is handed back later"
    assert problems(path, 0, form="message", message=" " * (4 * 2**20 + 1)) == [("error", "")]
    assert problems(path, 0, form="fault", name="nonsense", options={}) == [("error", "")]
    assert problems(path, 3, form="raw", status=200, headers=[], body="{") == []
    assert problems(
        path, 3, form="raw", status=200, headers=[["content-type", "application/json"]], body="{"
    ) == [("warning", "")]
    assert problems(path, 3, form="raw", status=99, headers=[], body="{}") == [("error", "")]


def test_a_tools_result_that_is_json_in_a_text_stays_json(path):
    assert problems(path, 2, form="value", value='"{\\"state\\": \\"lost\\"}"') == []
    assert problems(path, 2, form="value", value='"no JSON"') == [("error", "")]
    assert problems(path, 2, form="value", value="not even a text") == [("error", "")]


def test_a_value_keeps_its_types_and_names_no_class_that_it_may_not(path):
    told = json.loads(edits.editable_of(call(path, 1)).current)
    told["state"] = "lost"
    changed = edits.answer_of(call(path, 1), {"form": "value", "value": json.dumps(told)})
    assert thaw(changed.value) == {"state": "lost", "at": (1, 2)}
    for name in ("subprocess:Popen", "builtins:eval", "os:system"):
        evil = json.dumps({"<type>": "dataclass", "class": name, "fields": {}})
        assert problems(path, 1, form="value", value=evil) == [("error", "")]


def test_raw_bodies_keep_their_charset_and_lose_their_content_encoding(tmp_path):
    import gzip

    path = tmp_path / "raw.tape.yaml"
    headers = (
        ("content-type", "text/plain; charset=latin-1"),
        ("content-encoding", "gzip"),
        ("content-length", "999"),
    )
    body = gzip.compress("Größe".encode("latin-1"))
    Recorder(path).run(
        "aaaa", (Request("GET", "https://shop.test/x"), Reply(200, headers, (body,), (0.1,)))
    )
    entry = call(path, 0)
    assert edits.editable_of(entry).raw["body"] == "Größe"
    reply = edits.answer_of(
        entry,
        {"form": "raw", "status": 404, "headers": [list(pair) for pair in headers], "body": "Maße"},
    )
    assert reply.body == "Maße".encode("latin-1") and reply.status == 404
    assert reply.headers == (headers[0], ("content-length", "4"))
    with pytest.raises(TapeUsageError, match="cannot be said in iso8859-1"):
        edits.answer_of(entry, {"form": "raw", "status": 200, "headers": [], "body": "日本"})
    with pytest.raises(TapeUsageError, match="line break"):
        edits.answer_of(
            entry, {"form": "raw", "status": 200, "headers": [["x", "a\r\nb: c"]], "body": ""}
        )


def test_binary_frames_are_not_edited_as_text(tmp_path):
    path = tmp_path / "frames.tape.yaml"
    from tape_jupyter.encoding.http.aws_event_stream import encode_frame

    body = encode_frame({":event-type": "messageStop"}, b"{}")
    kind = (("content-type", "application/vnd.amazon.eventstream"),)
    url = "https://bedrock-runtime.us-east-1.amazonaws.com/model/m/converse-stream"
    Recorder(path).run(
        "aaaa", (Request("POST", url, JSON, b'{"messages": []}'), Reply(200, kind, (body,), (0.1,)))
    )
    entry = call(path, 0)
    with pytest.raises(TapeUsageError, match="a stream of binary frames"):
        edits.answer_of(entry, {"form": "raw", "status": 200, "headers": [], "body": "x"})
    shown = edits.editable_of(entry).raw["body"]
    assert (
        edits.answer_of(
            entry, {"form": "raw", "status": 503, "headers": [list(kind[0])], "body": shown}
        ).body
        == body
    )
    with pytest.raises(TapeUsageError, match="not a message that can be taken apart"):
        tape.open(path).override(entry, message={"x": 1})


def test_other_wires_are_edited_as_the_json_that_they_are(tmp_path):
    path = tmp_path / "gemini.tape.yaml"
    url = "https://generativelanguage.googleapis.com/v1beta/models/gemini-3:generateContent"
    said = {"candidates": [{"content": {"parts": [{"text": "hi"}]}}]}
    Recorder(path).run(
        "aaaa",
        (
            Request("POST", url, JSON, b'{"contents": []}'),
            Reply(200, JSON, (json.dumps(said).encode(),), (0.1,)),
        ),
    )
    told = edits.editable_of(call(path, 0))
    assert told.form == "raw" and told.raw["json"] and json.loads(told.raw["body"]) == said
    take = tape.open(path).override(
        call(path, 0), text=told.raw["body"].replace("hi", "ho"), take="t"
    )
    assert (
        json.loads(take.calls[0].reply().body)["candidates"][0]["content"]["parts"][0]["text"]
        == "ho"
    )


def test_a_reply_that_became_a_fault_can_be_edited_as_it_was_recorded(path):
    take = tape.open(path).override(call(path, 0), fault="server_error", take="down")
    told = edits.editable_of(take.calls[0])
    assert (
        told.form == "message" and json.loads(told.current) == MESSAGE and told.raw["status"] == 500
    )
    again = take.override(take.calls[0], text="Back.")
    assert message(again.calls[0].reply())["content"][1]["text"] == "Back."


def test_a_dialogue_is_edited_frame_by_frame(tmp_path):
    path = tmp_path / "realtime.tape.yaml"
    lines = (
        b'{"sent":{"type":"ask"}}\n',
        b'{"got":{"type":"said","text":"yes"}}\n',
        b'{"got close":1000,"reason":""}\n',
    )
    Recorder(path).run(
        "aaaa",
        (
            Request("GET", "wss://example.com/x"),
            Reply(101, (("Upgrade", "websocket"),), lines, (0.0, 0.1, 0.2)),
        ),
    )
    entry = call(path, 0)
    told = edits.editable_of(entry)
    assert told.form == "raw" and told.faults == []
    edit = {
        "form": "raw",
        "status": 101,
        "headers": [["Upgrade", "websocket"]],
        "body": told.raw["body"].replace("yes", "no"),
    }
    reply = edits.answer_of(entry, edit)
    assert reply.chunks == (
        lines[0],
        lines[1].replace(b"yes", b"no"),
        lines[2],
    ) and reply.waits == (0.0, 0.1, 0.2)
    with pytest.raises(TapeUsageError, match="a dialogue, a frame a line"):
        edits.answer_of(entry, {**edit, "body": "no line"})
    with pytest.raises(TapeUsageError, match="edit its lines"):
        tape.open(path).override(entry, fault="timeout")
