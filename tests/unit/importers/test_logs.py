"""Logs of providers, batches and evals (Bedrock, Vertex, Azure, OpenAI, Anthropic, inspect_ai) become calls."""

import json
import zipfile

import pytest

import tape_jupyter as tape
from tape_jupyter.cassette.cassette import Cassette
from tape_jupyter.errors import TapeError

CHAT = {"model": "gpt-4o-mini", "messages": [{"role": "user", "content": "Who?"}]}
SAID = {"id": "c1", "object": "chat.completion", "created": 1, "model": "gpt-4o-mini",
        "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "North"}}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 1, "total_tokens": 4}}  # fmt: skip


def imported(folder, *rows, name="log.jsonl", text=None):
    (folder / name).write_text("\n".join(map(json.dumps, rows)) if text is None else text)
    done = tape.import_trace(folder / name, cassette=folder / "x.tapes" / "main.tape.yaml")
    return done, Cassette.open(done.path, check="whole") if done.path else None


def chat(**more):
    import openai

    client = openai.OpenAI(api_key="none", max_retries=0)
    return client.chat.completions.create(**CHAT, **more).choices[0].message.content


# ---------------------------------------------------------------- Bedrock

CONVERSE = {
    "messages": [{"role": "user", "content": [{"text": "Who?"}]}],
    "inferenceConfig": {"maxTokens": 9},
}
CONVERSED = {"output": {"message": {"role": "assistant", "content": [{"text": "North"}]}}, "stopReason": "end_turn",
             "metrics": {"latencyMs": 5}, "usage": {"inputTokens": 3, "outputTokens": 1, "totalTokens": 4}}  # fmt: skip
MODEL = "arn:aws:bedrock:eu-west-1:111122223333:inference-profile/eu.anthropic.claude"


def bedrock(operation, asked, said, **more):
    return {"schemaType": "ModelInvocationLog", "timestamp": "2026-03-01T12:00:00Z", "region": "eu-west-1", "requestId": "r1",
            "operation": operation, "modelId": MODEL, "input": {"inputBodyJson": asked, "inputTokenCount": 3},
            "output": {"outputBodyJson": said, "outputTokenCount": 1}, **more}  # fmt: skip


@pytest.fixture
def client(monkeypatch):
    import boto3
    from botocore.config import Config

    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "none")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "none")
    return boto3.client(
        "bedrock-runtime", region_name="eu-west-1", config=Config(retries={"total_max_attempts": 1})
    )


def test_a_converse_call_of_bedrocks_log_replays_by_boto3(tmp_path, client):
    done, cassette = imported(tmp_path, bedrock("Converse", CONVERSE, CONVERSED))
    with tape.replaying(done.path):
        said = client.converse(modelId=MODEL, **CONVERSE)
    assert said["output"]["message"]["content"] == [{"text": "North"}]
    kit = cassette.calls[0].head()["kit"]
    assert kit["grade"] == "J" and not any(
        "url" in each for each in kit["missing"] + kit.get("assumed", [])
    )


def test_a_converse_stream_is_a_sound_event_stream_again(tmp_path, client):
    use = {"toolUse": {"toolUseId": "t1", "name": "look", "input": {"at": 1}}}
    said = {
        **CONVERSED,
        "output": {"message": {"role": "assistant", "content": [{"text": "North"}, use]}},
    }
    done, _ = imported(tmp_path, bedrock("ConverseStream", CONVERSE, said))
    with tape.replaying(done.path):
        events = list(client.converse_stream(modelId=MODEL, **CONVERSE)["stream"])
    deltas = [each["contentBlockDelta"]["delta"] for each in events if "contentBlockDelta" in each]
    assert deltas == [{"text": "North"}, {"toolUse": {"input": '{"at": 1}'}}]
    assert events[-1]["metadata"]["usage"]["totalTokens"] == 4


def test_chunks_of_an_invoke_stream_are_framed_one_by_one_and_the_logs_own_end_is_none_of_them(
    tmp_path, client
):
    body = {
        "anthropic_version": "bedrock-2023-05-31",
        "max_tokens": 9,
        "messages": [{"role": "user", "content": "Who?"}],
    }
    chunks = [
        {"type": "message_start"},
        {"type": "content_block_delta", "delta": {"text": "North"}},
    ]
    done, cassette = imported(
        tmp_path, bedrock("InvokeModelWithResponseStream", body, [*chunks, "[DONE]"])
    )
    with tape.replaying(done.path):
        stream = client.invoke_model_with_response_stream(modelId=MODEL, body=json.dumps(body))[
            "body"
        ]
        assert [json.loads(each["chunk"]["bytes"]) for each in stream] == chunks
    assert any("DONE" in each for each in cassette.calls[0].head()["kit"]["assumed"])


def test_a_throttled_call_is_that_error_again(tmp_path, client):
    row = bedrock("Converse", CONVERSE, None, errorCode="ThrottlingException")
    del row["output"]
    done, _ = imported(tmp_path, row)
    with (
        tape.replaying(done.path),
        pytest.raises(client.exceptions.ClientError, match="429|Throttling"),
    ):
        client.converse(modelId=MODEL, **CONVERSE)


def test_bodies_in_s3_are_counted_and_never_fetched(tmp_path, monkeypatch):
    import socket

    def refused(*_, **__):
        raise AssertionError("something was fetched")

    monkeypatch.setattr(socket, "create_connection", refused)
    monkeypatch.setattr(socket.socket, "connect", refused)
    asked = bedrock(
        "Converse", CONVERSE, CONVERSED, input={"inputBodyS3Path": "s3://bucket/a.json.gz"}
    )
    said = bedrock(
        "Converse", CONVERSE, CONVERSED, output={"outputBodyS3Path": "file:///etc/passwd"}
    )
    done, cassette = imported(tmp_path, asked, said)
    assert done.files[0].reasons == {
        "an invocation whose request lies in S3, and is not fetched": 1,
        "an invocation whose reply lies in S3, and is not fetched": 1,
    }
    assert "s3://bucket/a.json.gz" in str(cassette.ended) and "root:" not in str(cassette.ended)


def test_cloudwatchs_records_hold_the_log_as_text(tmp_path):
    done, _ = imported(
        tmp_path,
        {
            "events": [
                {"timestamp": 1, "message": json.dumps(bedrock("Converse", CONVERSE, CONVERSED))}
            ]
        },
    )
    assert done.files[0].calls == 1


# ---------------------------------------------------------------- Vertex, Azure


def test_a_row_of_vertex_is_spelled_as_the_api_spells_it(tmp_path):
    asked = {"contents": [{"role": "user", "parts": [{"function_response": {"name": "f", "response": {"snake_case": 1}}}]}],
             "generation_config": {"max_output_tokens": 9}, "model": "projects/p/locations/europe-west1/publishers/google/models/gemini-2.5-pro"}  # fmt: skip
    said = {
        "candidates": [
            {"content": {"role": "model", "parts": [{"text": "North"}]}, "finish_reason": "STOP"}
        ],
        "usage_metadata": {"prompt_token_count": 3},
    }
    row = {
        "logging_time": "2026-03-01T12:00:00Z",
        "request_id": "1",
        "api_method": "GenerateContent",
        "full_request": json.dumps(asked),
        "full_response": said,
    }
    _, cassette = imported(tmp_path, row)
    request = cassette.calls[0].request()
    assert (
        request.url
        == "https://europe-west1-aiplatform.googleapis.com/v1/projects/p/locations/europe-west1/publishers/google/models/gemini-2.5-pro:generateContent"
    )
    told = json.loads(request.body)
    assert told["generationConfig"] == {"maxOutputTokens": 9} and "model" not in told
    assert told["contents"][0]["parts"][0]["functionResponse"]["response"] == {"snake_case": 1}
    assert json.loads(cassette.calls[0].reply().body)["candidates"][0]["finishReason"] == "STOP"


AZURE = {
    "category": "RequestResponse",
    "resourceId": "/SUBSCRIPTIONS/X/COGNITIVESERVICES",
    "operationName": "ChatCompletions_Create",
    "properties": {"requestLength": 128},
}


def test_azures_diagnostic_logs_are_refused_because_they_hold_no_content(tmp_path):
    with pytest.raises(TapeError, match="times and sizes, no requests and no replies"):
        imported(tmp_path, AZURE)
    assert [each.name for each in tmp_path.iterdir()] == ["log.jsonl"]


def test_api_managements_logs_hold_bodies_and_a_cut_one_says_so(tmp_path):
    told = {"method": "POST", "backendUrl": "https://x.openai.azure.com/openai/deployments/d/chat/completions?api-version=1",
            "responseCode": 200, "backendRequestBody": json.dumps(CHAT), "backendResponseBody": json.dumps(SAID)[:-20]}  # fmt: skip
    done, cassette = imported(
        tmp_path, {**AZURE, "category": "GatewayLogs", "properties": json.dumps(told)}, AZURE
    )
    assert done.files[0].calls == 1 and sum(done.files[0].reasons.values()) == 1
    assert "the rest of the reply body: it is cut" in cassette.calls[0].head()["kit"]["missing"]


# ---------------------------------------------------------------- batches, Evals


def batch(own="a", **body):
    return {
        "custom_id": own,
        "method": "POST",
        "url": "/v1/chat/completions",
        "body": {**CHAT, **body},
    }


def result(own="a", **more):
    return {
        "id": "b",
        "custom_id": own,
        "response": {"status_code": 200, "request_id": "q", "body": SAID},
        "error": None,
        **more,
    }


def test_results_of_a_batch_find_their_requests_beside_them_in_any_order(tmp_path):
    (tmp_path / "requests.jsonl").write_text("\n".join(json.dumps(batch(own)) for own in "ab"))
    done, cassette = imported(tmp_path, result("b"), result("a"))
    with tape.replaying(done.path):
        assert chat() == "North"
    assert [entry.head()["kit"]["grade"] for entry in cassette.calls] == ["J", "J"]
    assert any("requests.jsonl" in note for note in done.files[0].notes)


def test_where_two_files_could_hold_the_requests_none_is_taken(tmp_path):
    for name in ("one.jsonl", "two.jsonl"):
        (tmp_path / name).write_text(json.dumps(batch(seed=len(name))))
    done, cassette = imported(tmp_path, result())
    kit = cassette.calls[0].head()["kit"]
    assert kit["grade"] == "T" and any("request body" in each for each in kit["missing"])
    assert any("none was taken" in note for note in done.files[0].notes)


def test_requests_without_results_are_counted(tmp_path):
    done, cassette = imported(tmp_path, batch(), batch("b"))
    assert cassette is None and sum(done.files[0].reasons.values()) == 2


def test_a_failed_result_of_a_batch_keeps_its_status(tmp_path):
    import openai

    (tmp_path / "requests.jsonl").write_text(json.dumps(batch()))
    done, _ = imported(
        tmp_path,
        result(response={"status_code": 400, "body": {"error": {"message": "no such model"}}}),
    )
    with tape.replaying(done.path), pytest.raises(openai.BadRequestError, match="no such model"):
        chat()


def test_results_of_anthropics_batch_replay(tmp_path):
    import anthropic

    params = {
        "model": "claude-sonnet-5",
        "max_tokens": 9,
        "messages": [{"role": "user", "content": "Who?"}],
    }
    message = {"id": "m", "type": "message", "role": "assistant", "model": "claude-sonnet-5", "content": [{"type": "text", "text": "North"}],
               "stop_reason": "end_turn", "stop_sequence": None, "usage": {"input_tokens": 3, "output_tokens": 1}}  # fmt: skip
    failed = {"type": "error", "error": {"type": "overloaded_error", "message": "too busy"}}
    asks = [
        {"custom_id": "a", "params": params},
        {"custom_id": "b", "params": {**params, "max_tokens": 8}},
        {"custom_id": "c", "params": params},
    ]
    (tmp_path / "requests.json").write_text(json.dumps({"requests": asks}))
    rows = [
        {"custom_id": "a", "result": {"type": "succeeded", "message": message}},
        {"custom_id": "b", "result": {"type": "errored", "error": failed}},
        {"custom_id": "c", "result": {"type": "expired"}},
    ]
    done, _ = imported(tmp_path, *rows)
    sdk = anthropic.Anthropic(api_key="none", max_retries=0)
    with tape.replaying(done.path):
        assert sdk.messages.create(**params).content[0].text == "North"
        with pytest.raises(anthropic.APIStatusError, match="too busy"):
            sdk.messages.create(**{**params, "max_tokens": 8})
    assert done.files[0].reasons == {"a result without a reply: expired": 1}


def test_items_of_hosted_evals_are_rebuilt(tmp_path):
    sample = {"input": CHAT["messages"], "output": [{"role": "assistant", "content": "North"}], "model": "gpt-4o-mini", "temperature": 0.5,
              "seed": None, "finish_reason": "stop", "error": {"code": "", "message": ""}, "usage": {"prompt_tokens": 3, "completion_tokens": 1}}  # fmt: skip
    item = {
        "object": "eval.run.output_item",
        "id": "o",
        "run_id": "r",
        "eval_id": "e",
        "created_at": 1772366400,
        "datasource_item": {},
        "results": [{"name": "grade", "passed": True, "score": 1.0}],
        "sample": sample,
    }
    done, cassette = imported(
        tmp_path, {"object": "list", "data": [item], "has_more": False}, name="items.json"
    )
    with tape.replaying(done.path):
        assert chat(temperature=0.5) == "North"
    kit = cassette.calls[0].head()["kit"]
    assert kit["grade"] == "P" and "tools" in kit["missing"] and kit["tags"]["results"][0]["passed"]


def test_logs_of_the_open_evals_are_rebuilt(tmp_path):
    sampled = {
        "run_id": "r",
        "event_id": 0,
        "sample_id": "s.1",
        "type": "sampling",
        "data": {"prompt": CHAT["messages"], "sampled": ["North"], "model": "gpt-4o-mini"},
        "created_at": "2026-03-01 12:00:00.000000+00:00",
    }
    match = {
        "run_id": "r",
        "event_id": 1,
        "sample_id": "s.1",
        "type": "match",
        "data": {"correct": True},
    }
    done, _ = imported(tmp_path, {"spec": {"run_id": "r", "eval_name": "facts"}}, sampled, match)
    with tape.replaying(done.path):
        assert chat() == "North"
    assert done.files[0].reasons == {"a record of kind match: no call": 1}


# ---------------------------------------------------------------- inspect_ai


def model(**more):
    return {"event": "model", "uuid": "m", "span_id": "s", "timestamp": "2026-03-01T12:00:00+00:00", "completed": "2026-03-01T12:00:01+00:00", "model": "openai/gpt-4o-mini",
            "input": CHAT["messages"], "tools": [], "tool_choice": "none", "config": {}, "output": {"model": "gpt-4o-mini", "choices": [{"message": {"role": "assistant", "content": "North"}, "stop_reason": "stop"}]}, **more}  # fmt: skip


def sample(*events, **more):
    begin = {
        "event": "span_begin",
        "id": "s",
        "parent_id": None,
        "type": "solver",
        "name": "solve",
        "timestamp": "2026-03-01T12:00:00+00:00",
    }
    return {
        "id": 1,
        "epoch": 1,
        "messages": [],
        "events": [begin, *events, {"event": "span_end", "id": "s"}],
        "attachments": {},
        "scores": {"match": {"value": "C"}},
        **more,
    }


def log(folder, *samples, way=zipfile.ZIP_DEFLATED, name="a.eval"):
    with zipfile.ZipFile(folder / name, "w", way) as archive:
        archive.writestr(
            "header.json", json.dumps({"version": 2, "status": "success", "eval": {"task": "t"}})
        )
        for number, each in enumerate(samples):
            archive.writestr(f"samples/{number}_epoch_1.json", json.dumps(each))
    done = tape.import_trace(folder / name, cassette=folder / "x.tapes" / "main.tape.yaml")
    return done, Cassette.open(done.path, check="whole")


def test_what_inspect_sent_replays_with_its_texts_in_place_and_without_its_nulls(tmp_path):
    request = {
        "messages": [{"role": "user", "content": "attachment://h1"}],
        "model": "gpt-4o-mini",
        "tools": None,
    }
    done, cassette = log(
        tmp_path,
        sample(model(call={"request": request, "response": SAID}), attachments={"h1": "Who?"}),
    )
    with tape.replaying(done.path):
        assert chat() == "North"
    head = cassette.calls[0].head()
    assert (
        head["kit"]["grade"] == "J"
        and head["span"] == "solve"
        and "nulls of the request were not sent" in head["kit"]["assumed"]
    )


def test_messages_that_inspect_keeps_once_are_in_each_call(tmp_path):
    refs = {"input": [], "input_refs": [[0, 1]]}
    done, cassette = log(
        tmp_path, sample(model(**refs), events_data={"messages": CHAT["messages"], "calls": []})
    )
    with tape.replaying(done.path):
        assert chat() == "North"
    assert cassette.calls[0].head()["kit"]["grade"] == "M"


def test_requests_that_inspect_keeps_in_pieces_are_whole(tmp_path):
    call = {
        "request": {"model": "gpt-4o-mini"},
        "response": SAID,
        "call_key": "messages",
        "call_refs": [[0, 1]],
    }
    done, cassette = log(
        tmp_path, sample(model(call=call), events_data={"messages": [], "calls": CHAT["messages"]})
    )
    with tape.replaying(done.path):
        assert chat() == "North"
    assert cassette.calls[0].head()["kit"]["grade"] == "J"


def test_tools_of_inspect_are_calls_and_what_is_neither_is_counted(tmp_path):
    tool = {
        "event": "tool",
        "id": "t",
        "function": "bash",
        "arguments": {"cmd": "ls"},
        "result": "a.txt",
        "timestamp": "2026-03-01T12:00:02+00:00",
    }
    failed = {**tool, "id": "u", "result": "", "error": {"type": "timeout", "message": "too slow"}}
    cached = model(cache="read")
    done, cassette = log(tmp_path, sample(tool, failed, cached, {"event": "score"}))
    one, two = cassette.calls
    assert (
        one.request().arguments == {"cmd": "ls"}
        and one.reply().value == "a.txt"
        and "too slow" in two.head()["failed"]
    )
    assert done.files[0].reasons == {
        "a model call that was answered from inspect's cache": 1, "an event of kind score: no call": 1, "the end of a span": 1,
    }  # fmt: skip


def test_a_log_of_inspect_that_is_json_is_read_too(tmp_path):
    done, _ = imported(
        tmp_path,
        {"version": 2, "status": "success", "eval": {"task": "t"}, "samples": [sample(model())]},
        name="log.json",
    )
    assert done.files[0].calls == 1 and len(done.files[0].runs) == 1


def zstd(folder, entries, name="z.eval"):
    """A zip whose files are compressed by zstandard, as inspect writes them: made by hand, as zipfile cannot."""
    import struct
    import zlib

    import zstandard

    out, listing = b"", b""
    for own, data in entries.items():
        packed, size = data if isinstance(data, tuple) else (zstandard.compress(data), len(data))
        crc = 0 if isinstance(data, tuple) else zlib.crc32(data)
        fields = struct.pack("<HHHHHIIIHH", 63, 0, 93, 0, 33, crc, len(packed), size, len(own), 0)
        listing += (
            b"PK\x01\x02"
            + struct.pack("<H", 63)
            + fields
            + struct.pack("<HHHII", 0, 0, 0, 0, len(out))
            + own.encode()
        )
        out += b"PK\x03\x04" + fields + own.encode() + packed
    end = struct.pack("<HHHHIIH", 0, 0, len(entries), len(entries), len(listing), len(out), 0)
    (folder / name).write_bytes(out + listing + b"PK\x05\x06" + end)
    return folder / name


def test_a_log_that_is_compressed_by_zstandard_is_read(tmp_path):
    path = zstd(
        tmp_path,
        {"header.json": b"{}", "samples/1_epoch_1.json": json.dumps(sample(model())).encode()},
    )
    assert (
        tape.import_trace(path, cassette=tmp_path / "x.tapes" / "main.tape.yaml").files[0].calls
        == 1
    )


def test_without_zstandard_it_is_said_how_to_get_it(tmp_path, monkeypatch):
    import sys

    if hasattr(zipfile, "ZIP_ZSTANDARD"):
        pytest.skip("this Python reads zstandard itself")
    path = zstd(tmp_path, {"samples/1_epoch_1.json": b"{}"})
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(TapeError, match=r"tape-jupyter\[interop\]"):
        tape.import_trace(path)


def zstd_bomb(folder):
    import zstandard

    return zstd(folder, {"samples/1_epoch_1.json": (zstandard.compress(b" " * 200_000_000), 100)})


def zip_bomb(folder):
    with zipfile.ZipFile(folder / "b.eval", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("samples/1_epoch_1.json", b" " * 200_000_000)
    return folder / "b.eval"


def attachment_bomb(folder):
    with zipfile.ZipFile(folder / "c.eval", "w", zipfile.ZIP_DEFLATED) as archive:
        asked = [{"role": "user", "content": "attachment://h"}] * 3000
        archive.writestr(
            "samples/1_epoch_1.json",
            json.dumps(sample(model(input=asked), attachments={"h": "x" * 1_000_000})),
        )
    return folder / "c.eval"


def torn(folder):
    log(folder, sample(model()), name="d.eval")
    data = (folder / "d.eval").read_bytes()
    (folder / "d.eval").write_bytes(data[: len(data) // 2])
    import shutil

    shutil.rmtree(folder / "x.tapes")
    return folder / "d.eval"


def broken_zstd(folder):
    return zstd(folder, {"samples/1_epoch_1.json": (b"not zstd at all", 100)})


HOSTILE = {
    zstd_bomb: "larger than it says",
    zip_bomb: "expands to",
    torn: "not a sound zip",
    broken_zstd: "not a sound zstd",
}


@pytest.mark.parametrize("make", HOSTILE, ids=lambda each: each.__name__)
def test_an_archive_that_is_hostile_or_broken_is_one_error_that_names_it(tmp_path, make):
    path = make(tmp_path)
    with pytest.raises(TapeError, match=HOSTILE[make]) as told:
        tape.import_trace(path, cassette=tmp_path / "x.tapes" / "main.tape.yaml")
    assert path.name in str(told.value) and not (tmp_path / "x.tapes").exists()


def test_texts_that_are_named_often_may_not_become_gigabytes(tmp_path):
    path = attachment_bomb(tmp_path)
    done = tape.import_trace(path, cassette=tmp_path / "x.tapes" / "main.tape.yaml")
    assert done.files[0].calls == 0 and any(
        "expand to too much data" in each for each in done.files[0].reasons
    )


def test_names_in_an_archive_are_no_paths(tmp_path):
    with zipfile.ZipFile(tmp_path / "e.eval", "w") as archive:
        archive.writestr("header.json", "{}")
        archive.writestr("samples/../../../evil.json", json.dumps(sample(model())))
    done = tape.import_trace(tmp_path / "e.eval", cassette=tmp_path / "x.tapes" / "main.tape.yaml")
    assert done.files[0].calls == 1 and not list(tmp_path.parent.glob("evil*"))
