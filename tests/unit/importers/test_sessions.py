"""Sessions and traffic of coding agents, and tapes of other recorders, become calls."""

import json

import pytest

import tape_jupyter as tape
from tape_jupyter.cassette.cassette import Cassette

ASKED = {"model": "gpt-4o-mini", "messages": [{"role": "user", "content": "Who?"}]}
SAID = {"id": "c1", "object": "chat.completion", "created": 1, "model": "gpt-4o-mini",
        "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "North"}}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 1, "total_tokens": 4}}  # fmt: skip


def imported(folder, *rows, name="session.jsonl", text=None):
    (folder / name).write_text("\n".join(map(json.dumps, rows)) if text is None else text)
    done = tape.import_trace(folder / name, cassette=folder / "x.tapes" / "main.tape.yaml")
    return done, Cassette.open(done.path, check="whole") if done.path else None


def told(entry):
    return json.loads(entry.request().body), json.loads(entry.reply().body)


def counted(done):
    report = done.files[0]
    return report.calls + report.spans + sum(report.reasons.values())


def chat(**more):
    import openai

    client = openai.OpenAI(api_key="none", max_retries=0)
    return client.chat.completions.create(**ASKED, **more)


# ---------------------------------------------------------------- Claude Code


def line(kind, content, own, second, **more):
    message = {"role": kind, "content": content, **more.pop("message", {})}
    return {"type": kind, "sessionId": "s", "uuid": own, "parentUuid": None, "isSidechain": False, "cwd": "/w",
            "timestamp": f"2026-03-01T12:00:{second:02}.000Z", "message": message, **more}  # fmt: skip


def claude_code():
    about = {
        "id": "m1",
        "model": "claude-sonnet-5",
        "usage": {"input_tokens": 3, "output_tokens": 9},
    }
    return [
        {"type": "summary", "summary": "x", "leafUuid": "u"},
        line("user", "List the files", "u1", 0),
        line("assistant", [{"type": "text", "text": "I look."}], "a1", 2, message=about),
        line(
            "assistant",
            [{"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls"}}],
            "a2",
            3,
            message=about,
        ),
        line(
            "user",
            [
                {
                    "type": "tool_result",
                    "tool_use_id": "t1",
                    "content": [{"type": "text", "text": "a.txt"}],
                }
            ],
            "u2",
            5,
        ),
        line(
            "assistant",
            [{"type": "text", "text": "One file."}],
            "a3",
            6,
            message={**about, "id": "m2"},
        ),
    ]


def test_a_session_of_claude_code_is_tool_calls_and_answers_for_viewing(tmp_path):
    done, cassette = imported(tmp_path, *claude_code())
    model, tool, last = cassette.calls
    assert [entry.head()["kind"] for entry in cassette.calls] == ["model", "tool", "model"]
    asked, said = told(model)
    assert asked["messages"] == [{"role": "user", "content": "List the files"}]
    assert [block["type"] for block in said["content"]] == ["text", "tool_use"], (
        "a line a block: they are one answer"
    )
    assert (
        tool.request().name == "Bash"
        and tool.request().arguments == {"command": "ls"}
        and tool.reply().value == "a.txt"
    )
    kit = model.head()["kit"]
    assert (
        kit["grade"] == "T"
        and kit["usage"] == {"input": 3, "output": 9}
        and "system prompt" in kit["missing"]
    )
    assert told(last)[0]["messages"][0]["content"][0]["tool_use_id"] == "t1"
    assert counted(done) == 7, (
        "6 lines, of which one is a tool's answer and a prompt of the next request"
    )


def test_lines_of_a_session_that_are_no_records_are_kept_and_do_not_end_it(tmp_path):
    rows = claude_code()
    text = (
        "\n".join([json.dumps(rows[0]), '"massive error"', "42", *map(json.dumps, rows[1:])])
        + '\n{"type": "user", "torn'
    )
    done, cassette = imported(tmp_path, text=text)
    assert done.files[0].reasons["a line that is no record"] == 3 and done.files[0].calls == 3
    assert "torn" in str(cassette.ended)


def test_an_answer_that_failed_and_a_tool_that_was_refused_are_errors(tmp_path):
    rows = [
        *claude_code()[:4],
        line(
            "user",
            [{"type": "tool_result", "tool_use_id": "t1", "content": "denied", "is_error": True}],
            "u2",
            5,
        ),
        line(
            "assistant",
            [{"type": "text", "text": "API Error: 529 overloaded"}],
            "a3",
            6,
            isApiErrorMessage=True,
            message={"id": "m3", "model": "claude-sonnet-5"},
        ),
        line(
            "assistant",
            [{"type": "text", "text": "No response"}],
            "a4",
            7,
            message={"model": "<synthetic>"},
        ),
    ]
    done, cassette = imported(tmp_path, *rows)
    assert [bool(entry.head().get("failed")) for entry in cassette.calls] == [False, True, True]
    assert done.files[0].reasons["an answer that the agent wrote itself"] == 1


def test_the_sub_agents_of_a_session_do_not_mix_with_it(tmp_path):
    rows = claude_code()
    rows.insert(2, line("user", "Side job", "s1", 1, isSidechain=True))
    rows.insert(
        4,
        line(
            "assistant",
            [{"type": "text", "text": "Side done"}],
            "s2",
            2,
            isSidechain=True,
            message={"id": "m9", "model": "claude-haiku-5"},
        ),
    )
    _, cassette = imported(tmp_path, *rows)
    said = {
        entry.head()["kit"]["model"]: told(entry)
        for entry in cassette.calls
        if entry.head()["kind"] == "model"
    }
    assert said["claude-haiku-5"][0]["messages"] == [{"role": "user", "content": "Side job"}]


# ---------------------------------------------------------------- Codex, Gemini CLI


def rollout(*items):
    return [
        {"timestamp": f"2026-03-01T12:00:{n:02}.000Z", "type": kind, "payload": payload}
        for n, (kind, payload) in enumerate(items)
    ]


def test_a_session_of_codex_is_tool_calls_and_answers_for_viewing(tmp_path):
    rows = rollout(
        ("session_meta", {"id": "s", "cwd": "/w", "cli_version": "1"}),
        ("turn_context", {"model": "gpt-5"}),
        (
            "response_item",
            {
                "type": "message",
                "role": "user",
                "content": [{"type": "input_text", "text": "List"}],
            },
        ),
        ("response_item", {"type": "reasoning", "summary": [], "encrypted_content": "x"}),
        (
            "response_item",
            {
                "type": "function_call",
                "name": "shell",
                "arguments": '{"command": ["ls"]}',
                "call_id": "c1",
            },
        ),
        (
            "event_msg",
            {
                "type": "token_count",
                "info": {"last_token_usage": {"input_tokens": 3, "output_tokens": 9}},
            },
        ),
        (
            "response_item",
            {
                "type": "function_call_output",
                "call_id": "c1",
                "output": '{"output": "a.txt", "metadata": {"exit_code": 0}}',
            },
        ),
        (
            "response_item",
            {
                "type": "message",
                "role": "assistant",
                "content": [{"type": "output_text", "text": "One file."}],
            },
        ),
        ("event_msg", {"type": "agent_message", "message": "One file."}),
    )
    done, cassette = imported(tmp_path, *rows)
    model, tool, last = cassette.calls
    assert [item["type"] for item in told(model)[1]["output"]] == ["reasoning", "function_call"]
    assert tool.request().arguments == {"command": ["ls"]} and tool.reply().value == "a.txt"
    assert (
        model.head()["kit"]["usage"] == {"input": 3, "output": 9}
        and model.head()["kit"]["model"] == "gpt-5"
    )
    assert told(last)[0]["input"][0]["type"] == "function_call_output"
    assert done.files[0].reasons["an event of kind agent_message: no call"] == 1


def test_an_old_session_of_codex_whose_answers_are_events_is_read(tmp_path):
    rows = rollout(
        ("session_meta", {"id": "s"}),
        ("event_msg", {"type": "user_message", "message": "Hi"}),
        ("event_msg", {"type": "agent_message", "message": "Hello"}),
    )
    _, cassette = imported(tmp_path, *rows)
    asked, said = told(cassette.calls[0])
    assert (
        asked["input"] == [{"role": "user", "content": "Hi"}]
        and said["output"][0]["content"][0]["text"] == "Hello"
    )


def test_a_session_of_codex_from_before_its_records_had_envelopes_is_read(tmp_path):
    rows = [
        {"id": "s", "timestamp": "2025-06-01T12:00:00Z", "instructions": None},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "List"}]},
        {"record_type": "state"},
        {
            "type": "function_call",
            "name": "shell",
            "arguments": '{"command": ["ls"]}',
            "call_id": "c1",
        },
        {"type": "function_call_output", "call_id": "c1", "output": "a.txt"},
    ]
    done, cassette = imported(tmp_path, *rows)
    assert done.files[0].format == "codex" and [
        entry.head()["kind"] for entry in cassette.calls
    ] == ["model", "tool"]
    assert (
        cassette.calls[1].reply().value == "a.txt"
        and "time" in cassette.calls[0].head()["kit"]["missing"]
    )


def gemini(**more):
    use = {"id": "u1", "name": "read_file", "args": {"path": "a"}, "status": "success", "timestamp": "2026-03-01T12:00:02Z",
           "result": [{"functionResponse": {"name": "read_file", "response": {"output": "hello"}}}]}  # fmt: skip
    return [
        {"id": "m1", "type": "user", "timestamp": "2026-03-01T12:00:00Z", "content": "Read it"},
        {
            "id": "m2",
            "type": "gemini",
            "timestamp": "2026-03-01T12:00:01Z",
            "content": "I read.",
            "model": "gemini-3",
            "tokens": {"input": 3, "output": 9},
            "toolCalls": [use],
            **more,
        },
        {"id": "m3", "type": "info", "content": "done"},
    ]


@pytest.mark.parametrize("form", ["document", "lines"])
def test_a_session_of_gemini_cli_is_tool_calls_and_answers_for_viewing(tmp_path, form):
    head = {"sessionId": "s", "projectHash": "h", "startTime": "2026-03-01T12:00:00Z"}
    if form == "document":
        done, cassette = imported(tmp_path, {**head, "messages": gemini()}, name="session.json")
    else:
        first, old = gemini()[0], {**gemini()[1], "content": "I"}
        done, cassette = imported(
            tmp_path, head, first, old, gemini()[1], gemini()[2], {"$set": {"lastUpdated": "x"}}
        )
    model, tool = cassette.calls
    assert told(model)[0]["contents"] == [{"role": "user", "parts": [{"text": "Read it"}]}]
    assert told(model)[1]["candidates"][0]["content"]["parts"][0] == {"text": "I read."}
    assert tool.request().arguments == {"path": "a"} and tool.reply().value == "hello"
    assert done.files[0].reasons["a message of kind info: no call"] == 1


def test_replies_that_gemini_cli_recorded_say_that_their_requests_are_missing(tmp_path):
    said = {"candidates": [{"content": {"parts": [{"text": "North"}], "role": "model"}}]}
    rows = [
        {"method": "generateContentStream", "response": [said, said]},
        {"method": "countTokens", "response": {"totalTokens": 3}},
    ]
    done, cassette = imported(tmp_path, *rows, name="x.responses")
    kit = cassette.calls[0].head()["kit"]
    assert (
        kit["grade"] == "T"
        and "request" in kit["missing"]
        and len(cassette.calls[0].reply().chunks) == 2
    )
    assert sum(done.files[0].reasons.values()) == 1


# ---------------------------------------------------------------- traffic of agents


@pytest.mark.slow
def test_traffic_that_claude_trace_kept_replays_with_its_pace(tmp_path):
    import anthropic

    asked = {
        "model": "claude-sonnet-5",
        "max_tokens": 9,
        "messages": [{"role": "user", "content": "Who?"}],
        "stream": True,
    }
    events = [
        {"type": "message_start", "message": {"id": "m", "type": "message", "role": "assistant", "model": "claude-sonnet-5", "content": [], "stop_reason": None, "stop_sequence": None, "usage": {"input_tokens": 3, "output_tokens": 0}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "North"}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None}, "usage": {"output_tokens": 1}},
        {"type": "message_stop"},
    ]  # fmt: skip
    request = {
        "timestamp": 1772366400.0,
        "method": "POST",
        "url": "https://api.anthropic.com/v1/messages",
        "headers": {"x-api-key": "sk-ant-" + "Q7w8" * 8},
        "body": asked,
    }
    kept = [
        {"event": each["type"], "data": each, "timestamp": 1772366400.5 + n}
        for n, each in enumerate(events)
    ]
    rows = [{"request": request, "response": {"timestamp": 1772366406.0, "status_code": 200, "headers": {"content-type": "text/event-stream"}, "events": kept}, "logged_at": "x"},
            {"request": request, "response": None, "logged_at": "x", "note": "orphaned"}]  # fmt: skip
    done, cassette = imported(tmp_path, *rows, name="log.jsonl")
    with (
        tape.replaying(done.path),
        anthropic.Anthropic(api_key="none").messages.stream(
            **{k: v for k, v in asked.items() if k != "stream"}
        ) as stream,
    ):
        assert stream.get_final_text() == "North"
    assert cassette.calls[0].reply().waits[:2] == (0.5, 1.5)
    assert (
        done.files[0].reasons == {"a request without a reply: orphaned": 1}
        and "Q7w8" * 8 not in done.path.read_text()
    )


def test_traffic_that_claude_trace_kept_as_text_is_that_text(tmp_path):
    request = {
        "timestamp": 1772366400.0,
        "method": "POST",
        "url": "https://api.openai.com/v1/chat/completions",
        "headers": {},
        "body": ASKED,
    }
    done, _ = imported(
        tmp_path,
        {
            "request": request,
            "response": {
                "status_code": 200,
                "headers": {"content-type": "application/json", "content-encoding": "gzip"},
                "body_raw": json.dumps(SAID),
            },
            "logged_at": "x",
        },
        name="log.jsonl",
    )
    with tape.replaying(done.path):
        assert chat().choices[0].message.content == "North"


def test_traffic_by_websocket_that_claude_tap_kept_is_a_stream(tmp_path):
    import openai

    item = {
        "type": "message",
        "id": "m",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": "North", "annotations": []}],
    }
    whole = {
        "id": "r",
        "object": "response",
        "created_at": 1,
        "status": "completed",
        "model": "gpt-5",
        "output": [item],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
    }
    row = {"id": "q", "turn": 1, "transport": "websocket", "upstream_base_url": "https://api.openai.com", "timestamp": "2026-03-01T12:00:00Z", "duration_ms": 10,
           "request": {"method": "WEBSOCKET", "path": "/v1/responses", "headers": {}, "body": {"type": "response.create", "model": "gpt-5", "input": "Who?"}},
           "response": {"status": 101, "headers": {}, "body": None, "ws_events": [{"type": "response.completed", "sequence_number": 0, "response": whole}]}}  # fmt: skip
    done, cassette = imported(tmp_path, row)
    with tape.replaying(done.path):
        events = list(
            openai.OpenAI(api_key="none").responses.create(model="gpt-5", input="Who?", stream=True)
        )
    assert events[-1].response.output_text == "North"
    assert any("WebSocket" in each for each in cassette.calls[0].head()["kit"]["assumed"])


def test_events_that_claude_tap_kept_are_a_stream_and_a_reply_that_broke_off_says_so(tmp_path):
    asked = {"model": "gpt-4o-mini", "messages": ASKED["messages"], "stream": True}
    chunks = [
        {
            "id": "c1",
            "object": "chat.completion.chunk",
            "created": 1,
            "model": "m",
            "choices": [{"index": 0, "delta": {"content": each}, "finish_reason": None}],
        }
        for each in ("No", "rth")
    ]
    row = {"id": "q", "turn": 1, "upstream_base_url": "https://api.openai.com", "timestamp": "2026-03-01T12:00:00Z",
           "request": {"method": "POST", "path": "/v1/chat/completions", "headers": {}, "body": asked}}  # fmt: skip
    events = [
        {"event": "message", "data": json.dumps(chunks[0])},
        {"data": chunks[1]},
        {"data": "[DONE]"},
    ]
    rows = [{**row, "response": {"status": 200, "headers": {"content-type": "text/event-stream"}, "sse_events": events}},
            {**row, "response": {"status": 200, "headers": {}, "body": "data: {", "completed": False}}]  # fmt: skip
    done, cassette = imported(tmp_path, *rows)
    with tape.replaying(done.path):
        assert [each.choices[0].delta.content for each in chat(stream=True)] == ["No", "rth"]
    assert any("broke off" in each for each in cassette.calls[1].head()["kit"]["missing"])


# ---------------------------------------------------------------- other recorders


def test_a_recording_of_agent_rewind_replays_and_its_stream_is_one(tmp_path):
    chunks = [
        {
            "id": "c1",
            "object": "chat.completion.chunk",
            "created": 1,
            "model": "m",
            "choices": [{"index": 0, "delta": {"content": each}, "finish_reason": None}],
        }
        for each in ("No", "rth")
    ]
    rows = [
        {"rewind_format": 2, "created_at": 1.0, "meta": {}},
        {"seq": 0, "kind": "llm", "name": "openai.chat.completions.create", "fingerprint": "f", "request": {"args": [], "kwargs": ASKED}, "response": SAID, "error": None, "duration_ms": 5, "ts": 1772366400.0},
        {"seq": 1, "kind": "llm", "name": "openai.chat.completions.create", "fingerprint": "f", "request": {"args": [], "kwargs": {**ASKED, "stream": True}}, "response": {"__rewind_stream__": chunks}, "error": None, "duration_ms": 5, "ts": 1772366401.0},
        {"seq": 2, "kind": "tool", "name": "look", "fingerprint": "f", "request": {"args": [4], "kwargs": {"data": {"__bytes_hex__": "00ff"}}}, "response": {"__rewind_blob__": "../../etc/passwd"}, "error": None, "duration_ms": 5, "ts": 1772366402.0},
        {"seq": 3, "kind": "tool", "name": "look", "fingerprint": "f", "request": {"args": [], "kwargs": {}}, "response": None, "error": {"type": "ValueError", "message": "no"}, "duration_ms": 5, "ts": 1772366403.0},
    ]  # fmt: skip
    _, cassette = imported(tmp_path, *rows, name="run.rewind")
    with tape.replaying(cassette.path):
        assert chat().choices[0].message.content == "North"
        assert [each.choices[0].delta.content for each in chat(stream=True)] == ["No", "rth"]
    tool, failed = cassette.calls[2:]
    assert tool.request().arguments == {
        "0": 4,
        "data": {"<type>": "bytes", "base64": "AP8="},
    } and any("blobs" in each for each in tool.head()["kit"]["missing"])
    assert failed.head()["failed"] == "no"


def test_a_tape_of_agenttape_does_not_hold_what_came_after_a_reply(tmp_path):
    use = {"id": "t1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    later = [
        {"role": "assistant", "tool_calls": [use]},
        {"role": "tool", "tool_call_id": "t1", "content": "seen"},
    ]
    said = {
        **SAID,
        "choices": [
            {
                "index": 0,
                "finish_reason": "tool_calls",
                "message": {"role": "assistant", "content": None, "tool_calls": [use]},
            }
        ],
    }
    told_ = {"version": "1", "created_at": "2026-03-01T12:00:00", "run_id": "r", "meta": {"framework": "openai"}, "interactions": [
        {"index": 0, "kind": "llm", "boundary": "llm", "request": {"endpoint": "chat.completions", **ASKED, "messages": [*ASKED["messages"], *later]}, "response": said, "match_key": "k", "latency_ms": 5},
        {"index": 1, "kind": "tool", "boundary": "look", "request": {"name": "look", "args": {"at": 1}}, "response": {"__agenttape_asset__": "assets/x"}, "match_key": "k"},
    ]}  # fmt: skip
    _, cassette = imported(tmp_path, told_, name="run.json")
    with tape.replaying(cassette.path):
        assert chat().choices[0].message.tool_calls[0].id == "t1"
    assert any("up to the reply" in each for each in cassette.calls[0].head()["kit"]["assumed"])
    assert any("assets" in each for each in cassette.calls[1].head()["kit"]["missing"])


def test_a_cassette_of_llm_cassette_replays(tmp_path):
    rows = [{"type": "header", "format_version": 1}, {"type": "llm_call", "provider": "openai", "request": {"operation": "chat.completions.create", "body": ASKED}, "response": SAID},
            {"type": "tool_call", "name": "look", "args": {"at": 1}, "result": {"seen": 2}}]  # fmt: skip
    done, cassette = imported(tmp_path, *rows)
    with tape.replaying(done.path):
        assert chat().choices[0].message.content == "North"
    assert cassette.calls[1].reply().value == {"seen": 2} and counted(done) == 3


CASSETTER = """\
version: 1
interactions:
- request:
    method: POST
    uri: https://api.openai.com/v1/chat/completions
    headers:
      content-type: [application/json]
    body:
      type: json
      content: {model: gpt-4o-mini, messages: [{role: user, content: 'Who?'}]}
  response:
    status: 200
    headers:
      content-type: [application/json]
    body:
      type: binary
      content: %s
  recorded_at: 2026-01-01T00:00:00Z
ws_interactions:
- uri: wss://x
  frames: []
"""


def test_a_cassette_of_cassetter_replays_and_its_sockets_are_counted(tmp_path):
    done, _ = imported(
        tmp_path, text=CASSETTER % f"'{json.dumps(SAID).encode().hex()}'", name="c.yaml"
    )
    with tape.replaying(done.path):
        assert chat().choices[0].message.content == "North"
    assert done.files[0].format == "cassetter" and done.files[0].reasons == {
        "a WebSocket conversation: not imported": 1
    }


def test_hex_digits_that_yaml_reads_as_a_number_are_refused(tmp_path):
    done, _ = imported(tmp_path, text=CASSETTER % "0011", name="c.yaml")
    assert done.files[0].calls == 0 and any(
        "YAML reads as a number" in each for each in done.files[0].reasons
    )
