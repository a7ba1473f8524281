"""Files as other versions, exporters and shells write them: each record comes in, or it is said what became of it."""

import base64
import csv
import gzip
import io
import json
import zipfile
import zlib

import pytest

import tape_jupyter as tape
from tape_jupyter.cassette.cassette import Cassette
from tape_jupyter.core.call import Request
from tape_jupyter.errors import TapeError
from tape_jupyter.providers import editing, http
from tests.unit.importers.test_otlp import ASKED, SAID, attributes, genai, llm, request, span
from tests.unit.importers.test_recorded import flow, tnet

TEXT = json.dumps
BODY, REPLY = TEXT(ASKED), TEXT(SAID)
ZIPPED = gzip.compress(REPLY.encode())


def lines(*rows):
    return "\n".join(map(TEXT, rows))


def imported(folder, name, content):
    """(report, calls): of a model's call its request's and its reply's JSON, of a tool's its name and arguments."""
    content = TEXT(content) if isinstance(content, (dict, list)) else content
    (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    done = tape.import_trace(folder / name, cassette=folder / "x.tapes" / "main.tape.yaml")
    calls = []
    for entry in Cassette.open(done.path, check="whole").calls if done.path else ():
        asked, said = entry.request(), entry.reply()
        if isinstance(asked, Request):
            whole = editing.reply_message(asked, said) or http.loads(
                http.decoded_body(said.headers, said.body) or b"null"
            )
            data = http.decoded_body(asked.headers, asked.body)
            calls.append((asked.url, http.loads(data) if data else None, whole, said.status))
        else:
            calls.append(
                (asked.name, dict(asked.arguments), said.value, "failed" if said.error else "")
            )
    return done.files[0], calls


# ---------------------------------------------------------------- how a file is stored

ROWS = [{"id": n, "custom_id": f"c{n}", "response": {"status_code": 200, "body": SAID}, "error": None} for n in range(3)]  # fmt: skip
STORED = {
    "as it is": lines(*ROWS).encode(),
    "with CRLF": lines(*ROWS).replace("\n", "\r\n").encode(),
    "with a BOM": b"\xef\xbb\xbf" + lines(*ROWS).encode(),
    "UTF-16": lines(*ROWS).encode("utf-16"),
    "UTF-16 without a BOM": lines(*ROWS).encode("utf-16-le"),
    "gzip": gzip.compress(lines(*ROWS).encode()),
    "gzip in members": gzip.compress(lines(*ROWS[:2]).encode() + b"\n") + gzip.compress(lines(ROWS[2]).encode()),
    "zlib": zlib.compress(lines(*ROWS).encode()),
    "gzip of UTF-16": gzip.compress(lines(*ROWS).encode("utf-16")),
    "blank lines": ("\n" + lines(*ROWS).replace("\n", "\n\n") + "\n\n").encode(),
    "in another order": lines(*[dict(reversed(row.items())) for row in ROWS]).encode(),
    "a list": TEXT(ROWS).encode(),
    "several documents": "\n".join(TEXT(row, indent=2) for row in ROWS).encode(),
}  # fmt: skip


@pytest.mark.parametrize("how", STORED)
def test_a_file_is_read_however_it_is_stored(tmp_path, how):
    report, calls = imported(tmp_path, "x.jsonl", STORED[how])
    assert (report.format, len(calls)) == ("openai_batch", 3)
    assert all(each[2] == SAID for each in calls)
    assert not report.reasons


def test_zstd_is_read(tmp_path):
    zstandard = pytest.importorskip("zstandard")
    report, calls = imported(
        tmp_path, "x.jsonl.zst", zstandard.ZstdCompressor().compress(STORED["as it is"])
    )
    assert len(calls) == 3


@pytest.mark.parametrize(
    ("torn", "left"),
    [
        (lines(*ROWS) + '\n{"id": 4, "cus', 3),
        ('{"id": 4, "cus\n' + lines(*ROWS), 3),
        (lines(ROWS[0]) + "\n" + TEXT(ROWS[1])[:40] + "\n" + lines(ROWS[2]), 2),
        ('"massive error"\n' + lines(*ROWS), 3),
    ],
    ids=["at its end", "at its beginning", "in the middle", "by a text"],
)
def test_a_torn_line_costs_itself_alone_and_is_kept(tmp_path, torn, left):
    report, calls = imported(tmp_path, "x.jsonl", torn)
    assert len(calls) == left
    assert sum(report.reasons.values()) == 1 and len(report.runs) == 1
    kept = Cassette.open(tmp_path / "x.tapes" / "main.tape.yaml").ended
    assert "text" in str(kept), "what was torn is kept as text"


def test_a_torn_line_of_spans_costs_itself_alone(tmp_path):
    whole = [request(span(f"b{n}" * 8, llm())) for n in (1, 2, 3)]
    told = f"{TEXT(whole[0])}\n{TEXT(whole[1])[:300]}\n{TEXT(whole[2])}"
    report, calls = imported(tmp_path, "x.jsonl", told)
    assert [each[1:3] for each in calls] == [(ASKED, SAID)] * 2
    assert sum(report.reasons.values()) == 1


def test_a_compressed_file_that_breaks_off_gives_what_came_and_says_so(tmp_path):
    many = [{**row, "custom_id": f"{n}", "salt": f"{hash((n, 1)):x}" * 9} for n, row in enumerate(ROWS * 40)]  # fmt: skip
    report, calls = imported(tmp_path, "x.gz", gzip.compress(lines(*many).encode())[:-400])
    assert 20 < len(calls) < 120
    assert any("breaks off" in each for each in report.notes)


def test_what_is_no_utf_8_is_said(tmp_path):
    text = lines(*ROWS).replace("North", "N\u00f6rth", 1)
    text = text.replace("\\u00f6", "\u00f6").encode("latin-1")
    report, calls = imported(tmp_path, "x.jsonl", text)
    assert len(calls) == 3 and any("not UTF-8" in each for each in report.notes)


def test_a_format_is_known_by_what_comes_after_a_very_long_first_record(tmp_path):
    row = {"inputs": {**ASKED, "messages": [{"role": "user", "content": "x" * 3_000_000}]}, "outputs": SAID,
           "id": "1", "run_type": "llm", "trace_id": "t", "parent_run_id": None, "name": "ChatOpenAI"}  # fmt: skip
    report, calls = imported(tmp_path, "x.json", [row])
    assert (report.format, len(calls)) == ("langsmith", 1)


# ---------------------------------------------------------------- OpenTelemetry

CONSOLE = {"name": "chat", "context": {"trace_id": "0x1", "span_id": "0x2"}, "kind": "SpanKind.CLIENT", "parent_id": None,
           "start_time": "2024-05-01T10:00:00Z", "end_time": "2024-05-01T10:00:01Z", "status": {"status_code": "UNSET"},
           "attributes": llm(), "events": [], "links": []}  # fmt: skip
AROUND = {
    "Tempo": {"trace": request(span("b1" * 8, llm()))},
    "Tempo's batches": {"batches": request(span("b1" * 8, llm()))["resourceSpans"]},
    "a list of traces": {"traces": [request(span("b1" * 8, llm()))]},
    "the console exporter": TEXT(CONSOLE, indent=4),
    "no operation's name": None,
}


@pytest.mark.parametrize("way", list(AROUND)[:-1])
def test_spans_are_found_in_what_stands_around_them(tmp_path, way):
    report, calls = imported(tmp_path, "x.json", AROUND[way])
    assert [each[1:3] for each in calls] == [(ASKED, SAID)], report


def test_spans_of_the_console_keep_their_parents_whatever_key_comes_first(tmp_path):
    first = {key: each for key, each in CONSOLE.items() if key != "parent_id"}
    first["attributes"] = {"openinference.span.kind": "CHAIN"}
    second = {"parent_id": "0x2", **first, "context": {"trace_id": "0x1", "span_id": "0x3"}, "attributes": llm()}  # fmt: skip
    failed = {**second, "context": {"trace_id": "0x1", "span_id": "0x4"},
              "status": {"status_code": "ERROR", "description": "Error code: 429 - slow"}}  # fmt: skip
    report, calls = imported(tmp_path, "x.jsonl", lines(first, second, failed))
    assert [each[3] for each in calls] == [200, 200] or [each[3] for each in calls] == [200, 429]
    assert report.spans == 1 and not report.notes
    assert [each.head().get("failed") for each in Cassette.open(tmp_path / "x.tapes" / "main.tape.yaml").calls] == [None, "Error code: 429 - slow"]  # fmt: skip


def test_what_is_no_span_is_counted(tmp_path):
    told = lines(request(span("b1" * 8, llm())), {"resourceMetrics": [{"scopeMetrics": []}]})
    report, calls = imported(tmp_path, "x.jsonl", told)
    assert len(calls) == 1 and sum(report.reasons.values()) == 1


def log(name, body):
    return {"timeUnixNano": "1", "eventName": name, "traceId": "aa" * 16, "spanId": "b1" * 8,
            "body": {"kvlistValue": {"values": attributes(body)}}}  # fmt: skip


def test_messages_that_stand_in_the_span_and_in_log_records_are_one_call(tmp_path):
    records = [log("gen_ai.user.message", {"content": "Who?"}), log("gen_ai.choice", {"content": "South"})]  # fmt: skip
    logs = {"resourceLogs": [{"scopeLogs": [{"logRecords": records}]}]}
    report, calls = imported(tmp_path, "x.jsonl", lines(request(span("b1" * 8, llm())), logs))
    assert [each[2] for each in calls] == [SAID]
    assert sum(report.reasons.values()) == 2


def test_a_span_sent_twice_whose_messages_are_elsewhere_is_counted_twice(tmp_path):
    told = {"gen_ai.operation.name": "chat", "gen_ai.input.messages_ref": "s3://bucket/x.json"}
    report, calls = imported(
        tmp_path, "x.json", request(span("b1" * 8, told), span("b1" * 8, told))
    )
    assert not calls and report.spans == 1 and sum(report.reasons.values()) == 1
    assert "are stored elsewhere, and are not fetched" in report.notes[0]


def test_messages_without_an_operations_name_are_a_call_and_numbers_may_be_texts(tmp_path):
    told = {key: each for key, each in genai().items() if key != "gen_ai.operation.name"}
    told["gen_ai.request.temperature"] = "0.5"
    report, [call] = imported(tmp_path, "x.json", request(span("b1" * 8, told)))
    assert call[1]["temperature"] == 0.5 and report.grade == "M"


def test_an_error_of_jaeger_is_an_error(tmp_path):
    tags = [{"key": key, "value": each} for key, each in genai(error=True).items()]
    thrown = [{"key": "event", "value": "exception"}, {"key": "exception.type", "value": "openai.RateLimitError"},
              {"key": "exception.message", "value": "slow"}]  # fmt: skip
    told = {"data": [{"traceID": "t", "spans": [{"traceID": "t", "spanID": "s", "operationName": "chat", "tags": tags,
            "startTime": 1714557600000000, "duration": 10, "logs": [{"timestamp": 1, "fields": thrown}]}]}]}  # fmt: skip
    _, [call] = imported(tmp_path, "x.json", told)
    assert call[3] == 429


def test_an_object_that_vercels_sdk_generated_is_the_reply(tmp_path):
    told = {"ai.operationId": "ai.generateObject.doGenerate", "ai.model.id": "gpt-4o", "ai.model.provider": "openai.chat",
            "ai.prompt.messages": TEXT([{"role": "user", "content": [{"type": "text", "text": "Hi"}]}]),
            "ai.response.object": '{"a":1}', "ai.response.finishReason": "stop"}  # fmt: skip
    _, [call] = imported(tmp_path, "x.json", request(span("b1" * 8, told)))
    assert call[2]["choices"][0]["message"]["content"] == '{"a":1}'


# ---------------------------------------------------------------- an SDK's arguments are no body

ARGUMENTS = {
    "model": "gemini-2.5-flash",
    "contents": "Hi",
    "config": {"temperature": 0.1, "system_instruction": "S"},
}
DUMP = {"candidates": [{"content": {"parts": [{"text": "Yo"}], "role": "model"}, "finish_reason": "STOP"}],
        "usage_metadata": {"prompt_token_count": 3}}  # fmt: skip
SENT = {"contents": [{"parts": [{"text": "Hi"}], "role": "user"}], "systemInstruction": {"parts": [{"text": "S"}], "role": "user"},
        "generationConfig": {"temperature": 0.1}}  # fmt: skip


def mlflow(asked, said, form):
    told = {"mlflow.spanType": "CHAT_MODEL", "mlflow.spanInputs": asked, "mlflow.spanOutputs": said, "mlflow.message.format": form}  # fmt: skip
    return {"name": "c", "trace_id": "t", "span_id": "s", "start_time_unix_nano": 1714557600000000000,
            "attributes": {name: TEXT(each) for name, each in told.items()}}  # fmt: skip


@pytest.mark.parametrize("system", ["openinference", "mlflow", "weave"])
def test_the_arguments_of_google_genai_are_the_body_that_it_sends(tmp_path, system):
    told = {
        "openinference": request(span("b1" * 8, {**llm(ARGUMENTS, DUMP), "llm.system": "google"})),
        "mlflow": {"spans": [mlflow(ARGUMENTS, DUMP, "gemini")]},
        "weave": {"id": "1", "op_name": "weave:///e/p/op/google.genai.models.generate_content:1", "trace_id": "t",
                  "inputs": ARGUMENTS, "output": DUMP},
    }[system]  # fmt: skip
    _, [(url, asked, said, _)] = imported(tmp_path, "x.json", told)
    assert url.endswith("/v1beta/models/gemini-2.5-flash:generateContent") and asked == SENT
    assert said["usageMetadata"] == {"promptTokenCount": 3}


def test_the_arguments_of_boto3_are_its_body_and_its_address(tmp_path):
    asked = {"messages": [{"role": "user", "content": [{"text": "Hi"}]}]}
    said = {"output": {"message": {"role": "assistant", "content": [{"text": "Yo"}]}}, "stopReason": "end_turn"}  # fmt: skip
    told = {"spans": [mlflow({"modelId": "eu.claude", **asked}, said, "bedrock")]}
    _, [(url, body, reply, _)] = imported(tmp_path, "x.json", told)
    assert url.endswith("/model/eu.claude/converse") and (body, reply) == (asked, said)


# ---------------------------------------------------------------- HTTP recordings

VCR = {"request": {"method": "post", "uri": "https://api.openai.com/v1/chat/completions", "body": BODY, "headers": {}},
       "response": {"status": {"code": 200, "message": None}, "headers": {"content-type": "application/json"}, "body": {"string": REPLY}}}  # fmt: skip


@pytest.mark.parametrize("way", ["comment", "metadata first", "json", "iterator", "gzip"])
def test_cassettes_of_vcrpy_as_its_versions_write_them(tmp_path, way):
    yaml = pytest.importorskip("yaml")
    told = {"interactions": [VCR], "version": 1}
    if way == "iterator":
        told["interactions"] = [{**VCR, "request": {**VCR["request"], "body": iter([BODY[:9].encode(), BODY[9:].encode()])}}]  # fmt: skip
    if way == "gzip":
        headers = {"content-type": ["application/json"], "content-encoding": ["gzip"]}
        told["interactions"] = [{**VCR, "response": {**VCR["response"], "headers": headers, "body": {"string": ZIPPED}}}]  # fmt: skip
    content = TEXT(told, indent=4) if way == "json" else yaml.dump(told, sort_keys=way != "json")
    if way == "comment":
        content = f"# recorded by x\n---\n{content}"
    if way == "metadata first":
        content = f"metadata:\n  a: 1\n{content}"
    report, calls = imported(tmp_path, "x.yaml", content)
    assert [each[1:3] for each in calls] == [(ASKED, SAID)] and report.grade == "W"


def test_a_bare_list_of_vcrpy_names_its_migration(tmp_path):
    yaml = pytest.importorskip("yaml")
    with pytest.raises(TapeError, match="migration"):
        imported(tmp_path, "x.yaml", yaml.dump([VCR]))


def polly(order):
    part = [base64.b64encode(each).decode() for each in (ZIPPED[:20], ZIPPED[20:])]
    asked = {
        "method": "POST",
        "url": "https://api.openai.com/v1/chat/completions",
        "headers": [],
        "postData": {"text": BODY},
    }
    return {"_id": "aa", "_order": order, "startedDateTime": "2024-01-01T00:00:00Z", "time": 3, "request": asked,
            "response": {"status": 200, "headers": [{"name": "content-encoding", "value": "gzip"}],
                         "content": {"mimeType": "application/json", "encoding": "base64", "text": TEXT(part)}}}  # fmt: skip


def test_a_request_that_polly_recorded_twice_is_two_calls(tmp_path):
    report, calls = imported(
        tmp_path, "x.har", {"log": {"creator": {}, "entries": [polly(0), polly(1)]}}
    )
    assert [each[2] for each in calls] == [SAID, SAID] and not report.reasons


def test_one_record_that_is_wrong_spoils_no_other(tmp_path):
    fine = {"request": {"method": "GET", "uri": "https://x.test/"}, "response": {"status": {"code": 200}, "body": {"string": "hi"}}}  # fmt: skip
    told = {
        "vcr.json": {"http_interactions": [fine, {"request": {}}, 7], "recorded_with": "VCR 6"},
        "nock.json": [{"scope": "https://x.test:443", "method": "GET", "path": "/", "status": 200, "response": "hi",
                       "rawHeaders": {"content-type": "text/plain"}}, {"bad": 1}, 7],
        "hoverfly.json": {"data": {"pairs": [{"request": {"destination": [{"matcher": "exact", "value": "x.test"}],
                          "path": [{"matcher": "exact", "value": "/"}]}, "response": {"status": 200, "body": "hi"}}, 7, {"request": 8}],
                          "globalActions": {}}, "meta": {"schemaVersion": "v5"}},
        "wiremock.json": {"mappings": [{"request": {"url": "/"}, "response": {"body": "hi"}}, 7, {"request": 8, "response": {"body": ""}}]},
    }  # fmt: skip
    for name, content in told.items():
        (tmp_path / name).mkdir()
        report, calls = imported(tmp_path / name, name, content)
        assert len(calls) == 1 and sum(report.reasons.values()) == 2, (name, report)


def test_what_wiremock_tells_apart_from_the_path_is_in_the_address_and_states_are_an_order(
    tmp_path,
):
    def mapping(own, **more):
        asked = {
            "urlPath": "/v1/messages",
            "method": "POST",
            "bodyPatterns": [{"equalToJson": TEXT({"n": own})}],
        }
        asked["queryParameters"] = (
            {"beta": {"equalTo": "true"}}
            if own == 1
            else {"beta": {"hasExactly": [{"equalTo": "true"}]}}
        )
        return {"scenarioName": "s", "request": asked, "response": {"jsonBody": {"n": own}}, **more}  # fmt: skip

    told = [mapping(2, requiredScenarioState="two"), mapping(1, requiredScenarioState="Started", newScenarioState="two")]  # fmt: skip
    _, calls = imported(tmp_path, "x.json", {"mappings": told})
    assert [each[1]["n"] for each in calls] == [1, 2]
    assert all(each[0] == "https://api.anthropic.com/v1/messages?beta=true" for each in calls)


# ---------------------------------------------------------------- platforms

ANTHROPIC = {"id": "m", "type": "message", "role": "assistant", "model": "claude", "stop_reason": "end_turn", "stop_sequence": None,
             "content": [{"type": "text", "text": "Yo"}], "usage": {"input_tokens": 1, "output_tokens": 2}}  # fmt: skip


def observation(**more):
    return {"id": "o", "traceId": "t", "type": "GENERATION", "level": "DEFAULT", "name": "n", "parentObservationId": None,
            "startTime": "2024-05-01T10:00:00Z", "input": ASKED["messages"], "output": "North", "model": "gpt-4o", **more}  # fmt: skip


def test_a_text_beside_a_tools_call_is_in_the_reply(tmp_path):
    said = [{"type": "text", "text": "Let me see"}, {"type": "tool_use", "id": "t", "name": "f", "input": {"a": 1}}]  # fmt: skip
    told = {"trace": {"id": "t"}, "observations": [observation(model="claude-4", output=said)]}
    _, [call] = imported(tmp_path, "x.json", told)
    assert [block["type"] for block in call[2]["content"]] == ["text", "tool_use"]


def test_parameters_that_were_not_given_are_not_sent_and_counts_may_be_texts(tmp_path):
    told = observation(modelParameters={"temperature": "0.5", "max_tokens": "None", "seed": "null"}, usageDetails={"input": "3"})  # fmt: skip
    report, [call] = imported(tmp_path, "x.json", {"trace": {"id": "t"}, "observations": [told]})
    assert {key: call[1][key] for key in call[1] if key != "messages"} == {"model": "gpt-4o", "temperature": 0.5}  # fmt: skip
    assert call[2]["usage"]["prompt_tokens"] == 3


def test_messages_alone_are_no_request_as_it_was_sent(tmp_path):
    item = {"id": "o", "run_id": "r", "eval_id": "e", "created_at": 1714557600, "datasource_item": {},
            "sample": {"input": ASKED["messages"], "output": [], "model": "gpt-4o", "temperature": 1, "error": {"code": "x", "message": "boom"}}}  # fmt: skip
    _, [call] = imported(tmp_path, "x.jsonl", TEXT(item))
    assert call[1] == {"messages": ASKED["messages"], "model": "gpt-4o", "temperature": 1}
    assert call[3] == 500


def test_a_message_that_langsmiths_wrapper_put_into_another_object_is_the_reply(tmp_path):
    asked = {"model": "claude", "max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}], "stream": True}  # fmt: skip
    row = {"id": "1", "run_type": "llm", "trace_id": "t", "parent_run_id": None, "name": "ChatAnthropic", "inputs": asked,
           "outputs": {"message": ANTHROPIC}, "extra": {"metadata": {"ls_provider": "anthropic"}}}  # fmt: skip
    _, [call] = imported(tmp_path, "x.json", {"runs": [row], "cursors": {}})
    assert call[1] == asked and call[2]["content"] == ANTHROPIC["content"]


def test_records_whose_fields_are_called_as_a_list_of_an_export_are_records(tmp_path):
    row = {"run_id": "r", "event_id": 0, "sample_id": "s", "type": "sampling",
           "data": {"prompt": ASKED["messages"], "sampled": ["North"]}}  # fmt: skip
    report, calls = imported(tmp_path, "x.jsonl", lines(row, {**row, "type": "match"}))
    assert len(calls) == 1 and sum(report.reasons.values()) == 1


def test_parts_of_a_span_that_braintrusts_sdk_sent_are_put_together(tmp_path):
    first = {
        "id": "1",
        "span_id": "s",
        "root_span_id": "s",
        "span_attributes": {"name": "n", "type": "llm"},
        "_is_merge": False,
        "input": ASKED["messages"],
        "metadata": {"model": "gpt-4o-mini", "provider": "openai"},
        "metrics": {"start": 1714557600},
    }
    last = {"id": "1", "span_id": "s", "root_span_id": "s", "output": SAID["choices"], "metrics": {"end": 1714557601}, "_is_merge": True}  # fmt: skip
    report, [call] = imported(tmp_path, "x.json", {"rows": [first, last]})
    assert call[2]["choices"] == SAID["choices"] and sum(report.reasons.values()) == 1


def test_bedrock_serves_openais_api_too(tmp_path):
    row = {"schemaType": "ModelInvocationLog", "operation": "ChatCompletions", "modelId": "openai.gpt-oss", "region": "eu-west-1",
           "timestamp": "2024-05-01T10:00:00Z", "requestId": "r", "input": {"inputBodyJson": BODY}, "output": {"outputBodyJson": REPLY}}  # fmt: skip
    report, [call] = imported(tmp_path, "x.json", row)
    assert call[:3] == ("https://bedrock-runtime.eu-west-1.amazonaws.com/openai/v1/chat/completions", ASKED, SAID)  # fmt: skip
    assert report.assumed


# ---------------------------------------------------------------- sessions, recorders, archives


def test_a_session_in_one_line_keeps_each_of_its_answers(tmp_path):
    said = [{"id": str(n), "type": "gemini", "content": f"answer {n}", "model": "gemini-2.5-pro"} for n in range(3)]  # fmt: skip
    told = {
        "sessionId": "s",
        "projectHash": "h",
        "startTime": "2024-05-01T10:00:00Z",
        "messages": said,
    }
    report, calls = imported(tmp_path, "x.json", told)
    assert [each[2]["candidates"][0]["content"]["parts"] for each in calls] == [[{"text": f"answer {n}"}] for n in range(3)]  # fmt: skip
    assert not report.reasons


def test_recordings_of_agent_rewind_one_after_another_are_runs(tmp_path):
    rows = [{"rewind_format": 2}, {"seq": 0, "kind": "tool", "name": "f", "fingerprint": "x", "request": {"args": [1], "kwargs": {}},
             "response": 2, "ts": "2024-05-01T10:00:00Z"}]  # fmt: skip
    report, calls = imported(tmp_path, "x.gz", gzip.compress(lines(*rows, *rows).encode()))
    assert len(report.runs) == len(calls) == 2 and not report.reasons


def test_a_tool_of_agenttape_keeps_both_kinds_of_arguments_and_a_body_that_is_json(tmp_path):
    asked = {"name": "f", "args": [1], "kwargs": {"b": 2}}
    tool = {
        "index": 0,
        "kind": "tool",
        "boundary": "f",
        "request": asked,
        "response": 3,
        "match_key": "k",
    }
    web = {"index": 1, "kind": "http", "boundary": "h", "request": {"method": "GET", "url": "https://x.test/"},
           "response": {"status": 200, "body": {"a": 1}}, "match_key": "k"}  # fmt: skip
    told = {"version": "1", "run_id": "r", "interactions": [tool, web]}
    _, calls = imported(tmp_path, "x.json", told)
    assert calls[0][1] == {"0": 1, "b": 2} and calls[1][2] == {"a": 1}


def test_a_sample_of_an_archive_that_is_torn_spoils_no_other(tmp_path):
    event = {"event": "tool", "id": "t", "function": "f", "arguments": {"a": 1}, "result": "ok"}
    sample = TEXT({"id": "a", "epoch": 1, "events": [event]})
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr("samples/a_epoch_1.json", sample)
        archive.writestr("samples/b_epoch_1.json", sample[:40])
    report, calls = imported(tmp_path, "x.eval", made.getvalue())
    assert len(calls) == 1 and sum(report.reasons.values()) == 1


# ---------------------------------------------------------------- tables

COLUMNS = {
    "weave": {"id": "w", "project_id": "p", "op_name": "weave:///e/p/op/openai.chat.completions.create:abc", "trace_id": "t",
              "started_at": "2026-03-01T12:00:00Z", "inputs": BODY, "output": REPLY},
    "helicone": {"request_id": "r", "request_created_at": "2026-03-01 12:00:00", "request_path": "/v1/chat/completions",
                 "target_url": "https://api.openai.com/v1/chat/completions", "request_body": BODY, "response_id": "s",
                 "response_status": "200", "response_body": REPLY, "provider": "OPENAI", "delay_ms": "1500"},
    "langfuse": {"id": "o", "traceId": "t", "type": "GENERATION", "name": "chat", "startTime": "2026-03-01T12:00:00Z",
                 "parentObservationId": "", "level": "DEFAULT", "model": "gpt-4o-mini", "input": BODY, "output": REPLY},
    "braintrust": {"id": "1", "span_id": "s", "root_span_id": "r", "span_parents": "[]", "span_attributes": TEXT({"name": "chat", "type": "llm"}),
                   "input": TEXT(ASKED["messages"]), "output": TEXT(SAID["choices"]),
                   "metadata": TEXT({**{k: v for k, v in ASKED.items() if k != "messages"}, "provider": "openai"}), "metrics": "{}"},
}  # fmt: skip


def table(row, delimiter=","):
    made = io.StringIO()
    writer = csv.DictWriter(made, list(row), delimiter=delimiter)
    writer.writeheader()
    writer.writerow(row)
    return made.getvalue()


@pytest.mark.parametrize("delimiter", [",", "\t"])
@pytest.mark.parametrize("system", COLUMNS)
def test_a_table_of_a_platform_is_read_as_its_json_is(tmp_path, system, delimiter):
    report, calls = imported(tmp_path, "rows.csv", table(COLUMNS[system], delimiter))
    assert report.format == system and report.grades == {"J": 1}
    ((url, asked, said, _),) = calls
    assert url.endswith("/chat/completions") and asked == ASKED
    assert said["choices"][0]["message"]["content"] == "North"


def test_columns_of_what_was_nested_are_put_together_and_that_is_said(tmp_path):
    row = COLUMNS["weave"] | {f"inputs.{name}": TEXT(value) for name, value in ASKED.items()}
    del row["inputs"]
    report, calls = imported(tmp_path, "rows.csv", table(row | {"inputs.model": ASKED["model"]}))
    assert calls[0][1] == ASKED and any("cells are texts" in note for note in report.notes)


def test_a_cell_of_a_table_may_be_long_and_hold_lines(tmp_path):
    asked = {**ASKED, "messages": [{"role": "user", "content": 'a "b"\n,c;' * 30_000}]}
    _, calls = imported(tmp_path, "rows.csv", table(COLUMNS["helicone"] | {"request_body": TEXT(asked, indent=1)}))  # fmt: skip
    assert calls[0][1] == asked and csv.field_size_limit() == 131_072


# ---------------------------------------------------------------- embeddings, models without a provider

EMBEDS = {"model": "text-embedding-3-small", "input": ["a", "b"]}
VECTORS = {"object": "list", "data": [{"object": "embedding", "index": 0, "embedding": [0.5]}], "model": EMBEDS["model"],
           "usage": {"prompt_tokens": 2, "total_tokens": 2}}  # fmt: skip


@pytest.mark.parametrize("given", [["a", "b"], "a", [1, 2], [[1, 2], [3]]])
def test_what_was_embedded_is_a_request_of_that_kind(tmp_path, given):
    row = {"id": "w", "project_id": "p", "op_name": "weave:///e/p/op/openai.embeddings.create:a", "trace_id": "t",
           "inputs": {**EMBEDS, "input": given}, "output": VECTORS}  # fmt: skip
    _, calls = imported(tmp_path, "x.json", [row])
    assert calls == [("https://api.openai.com/v1/embeddings", row["inputs"], VECTORS, 200)]


def test_texts_in_a_list_are_embedded_whatever_the_model_is_called(tmp_path):
    asked = {"model": "voyage-3", "input": ["a", "b"]}
    row = {"id": "w", "project_id": "p", "op_name": "weave:///e/p/op/litellm.embedding:a", "trace_id": "t",
           "inputs": asked, "output": VECTORS}  # fmt: skip
    _, calls = imported(tmp_path, "x.json", [row])
    assert calls[0][0].endswith("/embeddings") and calls[0][1] == asked


def test_a_model_whose_provider_is_not_told_goes_to_the_provider_of_its_name(tmp_path):
    row = {"type": "llm", "id": "m", "name": "c", "input": [{"role": "user", "content": "Who?"}], "redacted_input": None,
           "output": {"role": "assistant", "content": "North"}, "model": "claude-sonnet-4-5", "metrics": {}}  # fmt: skip
    report, calls = imported(tmp_path, "x.jsonl", lines(row))
    assert calls[0][0] == "https://api.anthropic.com/v1/messages"
    assert report.assumed["provider anthropic, from the model's name"] == 1


def test_tools_of_gemini_stay_in_a_request_that_is_rebuilt(tmp_path):
    tools = [{"function_declarations": [{"name": "look", "parameters": {"type": "object"}}]}]
    told = [{"role": "user", "content": [{"type": "text", "text": "Who?"}]},
            {"role": "assistant", "content": [{"type": "text", "text": "North"}]}]  # fmt: skip
    row = {"id": 1, "prompt_blueprint": {"prompt_template": {"type": "chat", "messages": told, "tools": tools},
           "metadata": {"model": {"provider": "google", "name": "gemini-2.5-flash"}}}}  # fmt: skip
    _, calls = imported(tmp_path, "x.json", row)
    assert calls[0][1]["tools"][0]["functionDeclarations"][0]["name"] == "look"


# ---------------------------------------------------------------- what proxies write in a body's or an address's place


def test_helicones_word_for_a_body_elsewhere_is_no_body(tmp_path):
    word = {"helicone_message": "fetching body from signed_url... contact us"}
    row = {**COLUMNS["helicone"], "request_body": word, "response_body": word, "signed_body_url": "https://x.test/b?sig=1"}  # fmt: skip
    report, calls = imported(tmp_path, "x.jsonl", lines(row))
    assert not calls and list(report.reasons) == [
        "a request whose bodies are behind a URL, which is not fetched"
    ]


@pytest.mark.parametrize(
    "told",
    [
        {"authority": b"api.openai.com:443"},
        {"host": "104.18.7.192", "headers": [[b"Host", b"api.openai.com"]]},
        {"host": "api.openai.com"},
    ],
)
def test_a_flow_has_the_address_that_was_asked_for(tmp_path, told):
    made = flow()
    made["request"].update(told)
    _, calls = imported(tmp_path, "x.mitm", tnet(made))
    assert calls[0][0] == "https://api.openai.com/v1/chat/completions"


def test_an_error_that_vertex_logged_has_its_status(tmp_path):
    row = {"api_method": "GenerateContent", "logging_time": "2026-03-01 12:00:00 UTC", "request_id": "1",
           "full_request": {"model": "projects/p/locations/l1/publishers/google/models/g", "contents": []},
           "full_response": {"error": {"code": 429, "message": "slow", "status": "RESOURCE_EXHAUSTED"}}}  # fmt: skip
    _, calls = imported(tmp_path, "x.jsonl", lines(row))
    assert calls[0][3] == 429


# ---------------------------------------------------------------- what may not expand


@pytest.mark.slow
def test_a_bomb_of_zstd_is_one_error_that_names_the_file(tmp_path):
    zstandard = pytest.importorskip("zstandard")
    (tmp_path / "x.jsonl.zst").write_bytes(zstandard.compress(lines(*ROWS).encode() + b" " * 2**30))
    with pytest.raises(TapeError, match=r"x\.jsonl\.zst.*expands to more than"):
        tape.import_trace(tmp_path / "x.jsonl.zst", cassette=tmp_path / "x.tapes" / "m.tape.yaml")
    assert not (tmp_path / "x.tapes").exists()
