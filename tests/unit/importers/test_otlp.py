"""OpenTelemetry traces become calls that replay: by the names of their attributes, in every spelling of OTLP."""

import json
from pathlib import Path

import pytest

import tape_jupyter as tape
from tape_jupyter.cassette.cassette import Cassette

ASKED = {"messages": [{"role": "user", "content": "Who?"}], "model": "gpt-4o-mini", "seed": 7}
SAID = {"id": "c1", "object": "chat.completion", "created": 1, "model": "gpt-4o-mini",
        "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "North"}}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 1, "total_tokens": 4}}  # fmt: skip


def value(told):
    if isinstance(told, bool):
        return {"boolValue": told}
    if isinstance(told, int):
        return {"intValue": str(told)}
    if isinstance(told, float):
        return {"doubleValue": told}
    if isinstance(told, list):
        return {"arrayValue": {"values": [value(each) for each in told]}}
    if isinstance(told, dict):
        return {"kvlistValue": {"values": [{"key": k, "value": value(v)} for k, v in told.items()]}}
    return {"stringValue": told}


def attributes(told):
    return [{"key": name, "value": value(each)} for name, each in told.items()]


def span(own, told, parent="", name="chat", **more):
    return {"traceId": "aa" * 16, "spanId": own, "parentSpanId": parent, "name": name, "startTimeUnixNano": "1795399684689844017",
            "endTimeUnixNano": "1795399684730740167", "attributes": attributes(told), **more}  # fmt: skip


def request(*spans):
    return {
        "resourceSpans": [
            {
                "resource": {},
                "scopeSpans": [
                    {
                        "scope": {"name": "openinference.instrumentation.openai"},
                        "spans": list(spans),
                    }
                ],
            }
        ]
    }


def llm(asked=ASKED, said=SAID, **more):
    return {"openinference.span.kind": "LLM", "llm.system": "openai", "input.value": json.dumps(asked),
            "output.value": json.dumps(said), **more}  # fmt: skip


def imported(folder, *documents, name="trace.json", text=None):
    (folder / name).write_text("\n".join(map(json.dumps, documents)) if text is None else text)
    done = tape.import_trace(folder / name, cassette=folder / "x.tapes" / "main.tape.yaml")
    return done, Cassette.open(done.path, check="whole")


def genai(**more):
    return {
        "gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai", "gen_ai.request.model": "gpt-4o-mini",
        "gen_ai.input.messages": json.dumps([{"role": "user", "parts": [{"type": "text", "content": "Who?"}]}]),
        "gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": [{"type": "text", "content": "North"}], "finish_reason": "stop"}]),
        **more,
    }  # fmt: skip


def asks(**more):
    import openai

    client = openai.OpenAI(api_key="none", max_retries=0)
    return client.chat.completions.create(model="gpt-4o-mini", messages=ASKED["messages"], **more)


def test_what_openinference_kept_of_a_call_replays_by_the_real_sdk(tmp_path):
    done, cassette = imported(tmp_path, request(span("b1", llm())))
    with tape.replaying(done.path):
        assert asks(seed=7).choices[0].message.content == "North"
    kit = cassette.calls[0].head()["kit"]
    assert (
        kit["grade"] == "J"
        and kit["origin"]["system"] == "openinference"
        and "url" in kit["missing"]
    )


def test_a_stream_that_was_put_together_is_a_stream_again_and_its_chunks_are_missing(tmp_path):
    done, cassette = imported(tmp_path, request(span("b1", llm({**ASKED, "stream": True}))))
    with tape.replaying(done.path):
        assert (
            "".join(
                each.choices[0].delta.content or ""
                for each in asks(stream=True, seed=7)
                if each.choices
            )
            == "North"
        )
    assert "chunks" in cassette.calls[0].head()["kit"]["missing"]


def test_spans_around_a_call_are_its_path_and_a_model_call_around_another_is_a_span(tmp_path):
    spans = [
        span("b3", llm(), "b2", "ChatCompletion"),
        span("b2", llm(), "b1", "ChatOpenAI"),
        span("b1", {}, "", "agent"),
    ]
    done, cassette = imported(tmp_path, request(*spans))
    assert [entry.head()["span"] for entry in cassette.calls] == ["agent / ChatOpenAI"]
    assert done.files[0].spans == 2


def test_a_call_inside_a_tool_is_the_tools(tmp_path):
    tool = {
        "openinference.span.kind": "TOOL",
        "tool.name": "lookup",
        "input.value": '{"id": 4}',
        "output.value": "done",
    }
    _, cassette = imported(
        tmp_path,
        request(
            span("b1", tool),
            {**span("b2", llm(), "b1"), "startTimeUnixNano": "1795399684690844017"},
        ),
    )
    outer, inner = cassette.calls
    assert (
        outer.head()["kind"] == "tool"
        and outer.request().arguments == {"id": 4}
        and outer.reply().value == "done"
    )
    assert inner.head()["parent"] == outer.id


def test_an_error_is_a_reply_with_the_status_it_names(tmp_path):
    import openai

    thrown = {"name": "exception", "timeUnixNano": "1", "attributes": attributes(
        {"exception.type": "openai.NotFoundError", "exception.message": "Error code: 404 - {'error': {'message': 'no model'}}"})}  # fmt: skip
    told = llm()
    del told["output.value"]
    done, _ = imported(tmp_path, request(span("b1", told, status={"code": 2}, events=[thrown])))
    with tape.replaying(done.path), pytest.raises(openai.NotFoundError, match="no model"):
        asks(seed=7)


GENERATIONS = {
    "now": (genai(), []),
    "event": (
        {k: v for k, v in genai().items() if "messages" not in k},
        [("gen_ai.client.inference.operation.details", {k: json.loads(v) for k, v in genai().items() if "messages" in k})],
    ),
    "2024": (
        {"gen_ai.operation.name": "chat", "gen_ai.system": "openai", "gen_ai.request.model": "gpt-4o-mini"},
        [("gen_ai.user.message", {"content": "Who?"}), ("gen_ai.choice", {"message": '{"content": "North"}', "finish_reason": "stop"})],
    ),
    "openllmetry": (
        {"gen_ai.system": "OpenAI", "gen_ai.request.model": "gpt-4o-mini", "gen_ai.prompt.0.role": "user",
         "gen_ai.prompt.0.content": "Who?", "gen_ai.completion.0.role": "assistant", "gen_ai.completion.0.content": "North"}, [],
    ),
    "vercel": (
        {"ai.operationId": "ai.generateText.doGenerate", "ai.model.provider": "openai.chat", "ai.model.id": "gpt-4o-mini",
         "ai.prompt.messages": '[{"role":"user","content":[{"type":"text","text":"Who?"}]}]', "ai.response.text": "North"}, [],
    ),
}  # fmt: skip


@pytest.mark.parametrize("generation", GENERATIONS)
def test_neutral_messages_become_a_rebuilt_call(tmp_path, generation):
    told, events = GENERATIONS[generation]
    made = [
        {"name": name, "timeUnixNano": "1", "attributes": attributes(each)} for name, each in events
    ]
    done, cassette = imported(tmp_path, request(span("b1", told, events=made)))
    with tape.replaying(done.path):
        assert asks().choices[0].message.content == "North"
    kit = cassette.calls[0].head()["kit"]
    assert kit["grade"] == "M" and kit["rebuilt"] is True


def test_log_records_hold_the_messages_of_a_span_that_has_none(tmp_path):
    bare = {k: v for k, v in genai().items() if "messages" not in k}
    record = {"traceId": "aa" * 16, "spanId": "b1", "eventName": "gen_ai.client.inference.operation.details",
              "timeUnixNano": "1795399684689844017", "attributes": attributes(genai())}  # fmt: skip
    logs = {
        "resourceLogs": [
            {
                "scopeLogs": [
                    {"logRecords": [record, {**record, "eventName": "other", "attributes": []}]}
                ]
            }
        ]
    }
    done, cassette = imported(tmp_path, request(span("b1", bare)), logs)
    assert len(cassette.calls) == 1 and done.files[0].reasons == {
        "a log record without a model call": 1
    }


def test_a_model_call_whose_content_was_off_is_a_span_and_that_is_said(tmp_path):
    bare = {k: v for k, v in genai().items() if "messages" not in k}
    done, cassette = imported(tmp_path, request(span("b1", bare)))
    assert (
        not cassette.calls
        and done.files[0].spans == 1
        and "without their messages" in done.files[0].notes[0]
    )


SPELLINGS = {
    "one document": [request(span("b1", llm()))],
    "snake case": [{"resource_spans": [{"scope_spans": [{"spans": [
        {"trace_id": "aa" * 16, "span_id": "b1", "name": "chat", "attributes": attributes(llm())}]}]}]}],
    "a list of requests": [[request(span("b1", llm()))]],
    "plain spans": [[{"trace_id": "t", "span_id": "b1", "name": "x", "attributes": llm(), "start_time": "2026-03-01T12:00:00Z"}]],
    "phoenix": [{"data": [{"name": "x", "context": {"trace_id": "t", "span_id": "b1"}, "span_kind": "LLM", "attributes": llm()}]}],
    "jaeger": [{"data": [{"traceID": "t", "spans": [{"traceID": "t", "spanID": "b1", "operationName": "x", "startTime": 1795399684689844,
        "duration": 5, "tags": [{"key": k, "type": "string", "value": v} for k, v in llm().items()]}]}]}],
    "a span a line": [{"traceId": "t", "spanId": "b1", "name": "x", "attributes": attributes(llm())},
                      {"traceId": "t", "spanId": "b1", "name": "x", "attributes": attributes(llm())}],
}  # fmt: skip


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_every_spelling_is_read(tmp_path, spelling):
    done, cassette = imported(tmp_path, *SPELLINGS[spelling])
    assert len(cassette.calls) == 1 and done.files[0].format == "otlp"


def test_duplicate_ids_and_circles_end_and_are_told(tmp_path):
    spans = [
        span("b1", {}, "b2"),
        span("b2", {}, "b1"),
        span("b3", llm(), "b1"),
        span("b3", llm(), "b1"),
    ]
    done, cassette = imported(tmp_path, request(*spans))
    assert len(cassette.calls) == 1
    assert any("cycle" in note for note in done.files[0].notes)
    assert done.files[0].reasons == {"a record sent twice: the last one counts": 1}


def test_zero_ids_are_no_ids_and_nan_and_a_cut_text_do_no_harm(tmp_path):
    told = llm(**{"output.value": json.dumps(SAID)[:40]})
    text = json.dumps(request(span("0" * 16, told), span("0" * 16, llm(odd=1.5)))).replace(
        "1.5", "NaN"
    )
    done, cassette = imported(tmp_path, text=text)
    assert done.files[0].spans == 1 and len(cassette.calls) == 1


def test_references_are_never_fetched(tmp_path, monkeypatch):
    import socket

    monkeypatch.setattr(socket, "socket", lambda *_, **__: pytest.fail("a connection"))
    told = genai(
        **{
            "gen_ai.input.messages_ref": "http://127.0.0.1:9/x",
            "gen_ai.output.messages_ref": "file:///etc/passwd",
        }
    )
    del told["gen_ai.input.messages"]
    done, cassette = imported(tmp_path, request(span("b1", told)))
    assert not cassette.calls and "root:" not in done.path.read_text()


def test_terminal_escapes_of_a_name_reach_no_terminal(tmp_path):
    _, cassette = imported(
        tmp_path, request(span("b1", {}, "", "\x1b[2Jagent"), span("b2", llm(), "b1"))
    )
    assert cassette.calls[0].head()["span"] == "[2Jagent"


def test_a_record_that_is_not_as_it_should_be_spoils_no_other(tmp_path):
    odd = span("b2", genai())
    odd["events"] = [3]
    done, cassette = imported(tmp_path, request(odd, span("b1", llm())))
    assert len(cassette.calls) == 1 and any(
        "not as its format has it" in reason for reason in done.files[0].reasons
    )


@pytest.mark.parametrize("depth", [100, 10_000])
def test_what_a_tool_gave_is_kept_however_deep_it_is_nested(tmp_path, depth):
    deep = "[" * depth + "]" * depth
    tool = {
        "openinference.span.kind": "TOOL",
        "tool.name": "x",
        "input.value": "{}",
        "output.value": deep,
    }
    _, cassette = imported(tmp_path, request(span("b1", tool)))
    assert cassette.calls[0].reply().value == deep


def test_keys_in_attributes_never_land(tmp_path):
    key = "sk-proj-" + "a1B2c3D4" * 5
    asked = {**ASKED, "messages": [{"role": "user", "content": f"my key is {key}"}]}
    done, cassette = imported(
        tmp_path, request(span("b1", llm(asked, **{"user.id": key}), name=f"chat {key}"))
    )
    assert (
        len(cassette.calls) == 1
        and key not in done.path.read_text()
        and "<secret:" in done.path.read_text()
    )


OURS = {
    "no reads that fit": {"reads": [5, -2, 9], "waits": ["x"]},
    "reads that are none": {"reads": "many", "waits": {}},
    "an end that is none": {"end": ["complete"]},
    "a status that is none": {"status": "two hundred"},
    "headers that are none": {"headers": [["a"], "b", ["c", "d"]]},
}


@pytest.mark.parametrize("name", OURS)
def test_what_stands_in_for_one_of_our_own_calls_does_no_harm(tmp_path, name):
    reply = {"status": 200, "headers": [], "text": "hello", **OURS[name]}
    told = {
        "kind": "model",
        "request": {"method": "POST", "url": "https://a.example/v1/messages", "text": "{}"},
        "reply": reply,
    }
    done, cassette = imported(tmp_path, request(span("b1", {"tape.call": json.dumps(told)})))
    assert [call.reply().body for call in cassette.calls] == [b"hello"] * done.files[0].calls
    assert done.files[0].calls + sum(done.files[0].reasons.values()) == 1


def test_an_exception_of_one_of_our_own_calls_runs_nothing(tmp_path):
    error = {"<type>": "exception", "class": "os:system", "args": [f"touch {tmp_path}/pwned"]}
    told = {"kind": "tool", "name": "f", "arguments": {}, "error": error}
    _, cassette = imported(tmp_path, request(span("b1", {"tape.call": json.dumps(told)})))
    from tape_jupyter.encoding.values import registry
    from tape_jupyter.errors import TapeError

    with pytest.raises(TapeError):
        raise registry.thaw_error(cassette.calls[0].reply().error)
    assert not (tmp_path / "pwned").exists()


@pytest.mark.parametrize("first", ["logs", "spans"])
def test_spans_and_their_log_records_in_two_files_are_one_trace(tmp_path, first):
    """A collector writes traces and logs apart: read together they are what one file with both would be."""
    told = genai(**{"gen_ai.request.temperature": 0.5})
    messages = {name: told.pop(name) for name in list(told) if name.endswith(".messages")}
    inner = span("b1", told, parentSpanId="a1" * 8)
    record = {"timeUnixNano": "1772366400000000000", "eventName": "gen_ai.client.inference.operation.details",
              "attributes": attributes(messages), "traceId": inner["traceId"], "spanId": inner["spanId"]}  # fmt: skip
    logs = {"resourceLogs": [{"scopeLogs": [{"logRecords": [record]}]}]}
    names = {"spans": "b.json", "logs": "a.json" if first == "logs" else "c.json"}
    (tmp_path / "t").mkdir()
    outer = {**span("a1", {}, name="agent"), "spanId": "a1" * 8}
    (tmp_path / "t" / names["spans"]).write_text(json.dumps(request(inner, outer)))
    (tmp_path / "t" / names["logs"]).write_text(json.dumps(logs))
    done = tape.import_trace(tmp_path / "t", cassette=tmp_path / "x.tapes" / "main.tape.yaml")
    (call,) = Cassette.open(done.path, check="whole").calls
    assert call.head()["span"] == "agent" and len(Cassette.open(done.path).runs) == 1
    asked = json.loads(call.request().body)
    assert asked["temperature"] == told["gen_ai.request.temperature"] and "Who?" in str(asked)
    assert {Path(each.file).name: each.calls for each in done.files} == {
        names["spans"]: 1, names["logs"]: 0
    }  # fmt: skip
    assert not any("without their messages" in note for each in done.files for note in each.notes)


def test_a_file_that_fails_takes_nothing_of_it_into_a_trace_that_it_shares(tmp_path, monkeypatch):
    from tape_jupyter.importers import source

    monkeypatch.setattr(source, "RECORD_CAP", 20_000)
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "a.jsonl").write_text(json.dumps(request(span("b1", llm()))))
    torn = json.dumps(request(span("b2", llm())))
    (tmp_path / "t" / "b.jsonl").write_text(f'{torn}\n{{"x": "{"y" * 30_000}"}}\n')
    done = tape.import_trace(tmp_path / "t", cassette=tmp_path / "x.tapes" / "main.tape.yaml")
    assert [each.calls for each in done.files] == [1, 0] and "longer than" in done.files[1].error
    assert len(Cassette.open(done.path, check="whole").calls) == 1
