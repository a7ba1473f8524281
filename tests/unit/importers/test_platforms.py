"""Traces of observability platforms (Langfuse, LangSmith, MLflow, Braintrust, Opik, Weave, Helicone, ...) become calls."""

import json

import pytest

import tape_jupyter as tape
from tape_jupyter.cassette.cassette import Cassette
from tape_jupyter.errors import TapeError

ASKED = {"model": "gpt-4o-mini", "messages": [{"role": "user", "content": "Who?"}], "seed": 7}
SAID = {"id": "c1", "object": "chat.completion", "created": 1, "model": "gpt-4o-mini",
        "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "North"}}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 1, "total_tokens": 4}}  # fmt: skip
TOOL = {
    "type": "function",
    "function": {"name": "look", "description": "Look.", "parameters": {"type": "object"}},
}
START, END = "2026-03-01T12:00:00.000Z", "2026-03-01T12:00:02.000Z"


def imported(folder, *rows, name="trace.json", text=None):
    (folder / name).write_text("\n".join(map(json.dumps, rows)) if text is None else text)
    done = tape.import_trace(folder / name, cassette=folder / "x.tapes" / "main.tape.yaml")
    return done, Cassette.open(done.path, check="whole")


def asks(**more):
    import openai

    client = openai.OpenAI(api_key="none", max_retries=0)
    return client.chat.completions.create(model="gpt-4o-mini", messages=ASKED["messages"], **more)


def said(done, **more):
    with tape.replaying(done.path):
        return asks(**more).choices[0].message.content


def heads(cassette):
    return [entry.head() for entry in cassette.calls]


def body(entry):
    return json.loads(entry.request().body)


# ---------------------------------------------------------------- Langfuse


def observation(own, kind="GENERATION", parent=None, **more):
    return {"id": own, "traceId": "t", "type": kind, "name": own, "startTime": START, "endTime": END, "level": "DEFAULT",
            "parentObservationId": parent, "model": "gpt-4o-mini", **more}  # fmt: skip


def langfuse(*observations):
    return {
        "trace": {"id": "t", "name": "my trace", "timestamp": START, "userId": "u"},
        "observations": list(observations),
    }


@pytest.mark.slow
def test_a_trace_of_langfuses_page_replays(tmp_path):
    generation = observation("g", parent="a", input=json.dumps(json.dumps(ASKED["messages"])), output=json.dumps("North"),
                             modelParameters={"temperature": "0.5", "seed": 7}, metadata=json.dumps({"ls_provider": "openai"}),
                             usageDetails={"input": 3, "output": 1})  # fmt: skip
    done, cassette = imported(tmp_path, langfuse(generation, observation("a", "SPAN")))
    assert said(done, temperature=0.5, seed=7) == "North"
    (head,) = heads(cassette)
    assert head["span"] == "a" and head["kit"]["grade"] == "M" and head["kit"]["rebuilt"]
    assert head["kit"]["usage"] == {"input": 3, "output": 1} and head["kit"]["origin"]["id"] == "g"


def test_what_opentelemetry_told_langfuse_wins_over_what_langfuse_made_of_it(tmp_path):
    told = {
        "openinference.span.kind": "LLM",
        "llm.system": "openai",
        "input.value": json.dumps(ASKED),
        "output.value": json.dumps(SAID),
    }
    generation = observation("g", input="[]", output='"other"', metadata={"attributes": told})
    done, cassette = imported(tmp_path, langfuse(generation))
    assert said(done, seed=7) == "North" and heads(cassette)[0]["kit"]["grade"] == "J"


def test_tools_that_langchain_puts_among_the_messages_are_the_tools_of_the_request(tmp_path):
    asked = [{"role": "user", "content": "Who?"}, {"role": "tool", "content": TOOL}]
    answer = {
        "role": "assistant",
        "content": "",
        "additional_kwargs": {
            "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
            ]
        },
    }
    generation = observation("g", input=asked, output=answer, metadata={"ls_provider": "openai"})
    done, cassette = imported(tmp_path, langfuse(generation))
    assert (
        body(cassette.calls[0])["tools"] == [TOOL] and len(body(cassette.calls[0])["messages"]) == 1
    )
    with tape.replaying(done.path):
        assert asks(tools=[TOOL]).choices[0].message.tool_calls[0].function.name == "look"


def test_rows_of_langfuses_export_without_their_content_are_spans(tmp_path):
    rows = [
        {
            "id": "g",
            "trace_id": "t",
            "type": "GENERATION",
            "name": "g",
            "start_time": START,
            "level": "DEFAULT",
            "parent_observation_id": None,
        }
    ]
    done, _ = imported(tmp_path, *rows, {"id": "s"}, name="observations.jsonl")
    assert done.files[0].spans == 1 and done.files[0].reasons == {
        "a record that is neither a trace nor an observation": 1
    }


def test_what_the_source_tells_of_a_request_beside_its_messages_is_in_it(tmp_path):
    about = {
        "attributes": {
            "gen_ai.system": "openai",
            "gen_ai.request.model": "gpt-4o-mini",
            "gen_ai.system_instructions": '[{"type": "text", "content": "Be brief."}]',
        }
    }
    whole = observation(
        "g", model="gpt-4o-mini-2024-07-18", input=ASKED["messages"], output="North", metadata=about
    )
    last = observation(
        "h", input={"role": "user", "content": "And?"}, output="South", completionStartTime=START
    )
    _, cassette = imported(tmp_path, langfuse(whole, last))
    assert body(cassette.calls[0]) == {
        "messages": [{"role": "system", "content": "Be brief."}, *ASKED["messages"]],
        "model": "gpt-4o-mini",
    }
    kit = heads(cassette)[1]["kit"]
    assert any("earlier messages" in each for each in kit["missing"]) and any(
        "stream: true" in each for each in kit["assumed"]
    )


def test_media_that_langfuse_keeps_elsewhere_are_missing(tmp_path):
    asked = [
        {
            "role": "user",
            "content": [
                {
                    "type": "image_url",
                    "image_url": {"url": "@@@langfuseMedia:type=image/png|id=x@@@"},
                }
            ],
        }
    ]
    _, cassette = imported(tmp_path, langfuse(observation("g", input=asked, output="a cat")))
    assert any("media" in each for each in heads(cassette)[0]["kit"]["missing"])


# ---------------------------------------------------------------- LangSmith


def run(own, kind="llm", **more):
    return {"id": own, "trace_id": "t", "run_type": kind, "name": "ChatOpenAI", "start_time": START, "end_time": END,
            "dotted_order": f"20260301T120000000000Z{own}", "extra": {"metadata": {"ls_provider": "openai", "ls_model_name": "gpt-4o-mini"}}, **more}  # fmt: skip


def test_what_wrap_openai_kept_replays(tmp_path):
    outputs = {
        **{k: v for k, v in SAID.items() if k != "usage"},
        "usage_metadata": {"input_tokens": 3, "output_tokens": 1, "total_tokens": 4},
    }
    done, cassette = imported(
        tmp_path,
        [
            run(
                "r",
                inputs={**ASKED, "extra_headers": None, "extra_body": {"user": "u"}},
                outputs=outputs,
            )
        ],
    )
    assert said(done, seed=7, user="u") == "North"
    assert (
        heads(cassette)[0]["kit"]["grade"] == "J"
        and json.loads(cassette.calls[0].reply().body)["usage"] == SAID["usage"]
    )


def test_a_batch_of_the_sdk_is_put_together_and_a_patch_without_an_id_finds_its_run(tmp_path):
    post = {k: v for k, v in run("r", inputs=ASKED).items() if k != "end_time"}
    patch = {"dotted_order": post["dotted_order"], "end_time": END, "outputs": SAID}
    done, _ = imported(tmp_path, {"post": [post], "patch": [patch]})
    assert said(done, seed=7) == "North" and done.files[0].calls == 1


def test_langchains_messages_are_rebuilt_and_the_run_around_them_is_a_span(tmp_path):
    human = {
        "lc": 1,
        "type": "constructor",
        "id": ["langchain", "schema", "messages", "HumanMessage"],
        "kwargs": {"content": "Who?", "type": "human"},
    }
    answer = {
        "lc": 1,
        "type": "constructor",
        "id": ["langchain", "schema", "messages", "AIMessage"],
        "kwargs": {"content": "North"},
    }
    model = run("r", inputs={"messages": [[human]]}, parent_run_id="c",
                outputs={"generations": [[{"text": "North", "message": answer, "generation_info": {"finish_reason": "stop"}}]]},
                extra={"invocation_params": {"model": "gpt-4o-mini", "temperature": 0.1}, "metadata": {"ls_provider": "openai", "ls_model_name": "gpt-4o-mini"}})  # fmt: skip
    done, cassette = imported(tmp_path, [model, run("c", "chain", inputs={}, outputs={})])
    assert said(done, temperature=0.1) == "North"
    assert heads(cassette)[0]["span"] == "ChatOpenAI" and heads(cassette)[0]["kit"]["grade"] == "M"


@pytest.mark.slow
def test_an_answer_that_calls_a_tool_says_so_even_where_the_source_does_not(tmp_path):
    """Agents' loops go on while the reply says that it stopped for a tool."""
    import anthropic

    answer = {"lc": 1, "type": "constructor", "id": ["langchain", "schema", "messages", "AIMessage"],
              "kwargs": {"content": [{"type": "tool_use", "id": "t1", "name": "look", "input": {}}], "tool_calls": [{"id": "t1", "name": "look", "args": {}}],
                         "usage_metadata": {"input_tokens": 3, "output_tokens": 1}}}  # fmt: skip
    about = {
        "metadata": {
            "ls_provider": "anthropic",
            "ls_model_name": "claude-sonnet-5",
            "ls_max_tokens": 9,
        }
    }
    model = run(
        "r",
        inputs={"messages": [[{"type": "human", "content": "Who?"}]]},
        outputs={"generations": [[{"text": "", "message": answer}]]},
        extra=about,
    )
    tool = run(
        "u",
        "tool",
        name="look",
        inputs={},
        outputs={"output": {"type": "tool", "content": "seen", "tool_call_id": "t1"}},
    )
    done, cassette = imported(tmp_path, [model, tool])
    sdk = anthropic.Anthropic(api_key="none")
    with tape.replaying(done.path):
        said = sdk.messages.create(
            model="claude-sonnet-5", max_tokens=9, messages=ASKED["messages"]
        )
    assert said.stop_reason == "tool_use" and len(said.content) == 1
    assert (
        heads(cassette)[0]["kit"]["usage"] == {"input": 3, "output": 1}
        and cassette.calls[1].reply().value == "seen"
    )


def test_chunks_that_an_older_sdk_kept_are_the_stream_with_its_times(tmp_path):
    def chunk(text, stop=None):
        return {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "gpt-4o-mini",
                "choices": [{"index": 0, "delta": {"content": text}, "finish_reason": stop}]}  # fmt: skip

    events = [
        {
            "name": "new_token",
            "time": f"2026-03-01T12:00:0{second}.000Z",
            "kwargs": {"token": chunk(text)},
        }
        for second, text in ((1, "No"), (2, "rth"))
    ]
    done, cassette = imported(
        tmp_path, [run("r", inputs={**ASKED, "stream": True}, outputs=SAID, events=events)]
    )
    with tape.replaying(done.path):
        assert [each.choices[0].delta.content for each in asks(stream=True, seed=7)] == [
            "No",
            "rth",
        ]
    assert cassette.calls[0].reply().waits[:2] == (1.0, 2.0)


def test_an_error_keeps_its_class_and_its_traceback_is_cut(tmp_path):
    import openai

    failed = "RateLimitError(\"Error code: 429 - {'error': {'message': 'slow down'}}\")Traceback (most recent call last):\n  File x"
    done, _ = imported(tmp_path, [run("r", inputs=ASKED, outputs=None, error=failed)])
    with tape.replaying(done.path), pytest.raises(openai.RateLimitError, match="slow down"):
        asks(seed=7)


def test_inputs_that_langsmith_keeps_in_s3_are_not_fetched(tmp_path):
    done, _ = imported(
        tmp_path,
        [
            run(
                "r",
                inputs={},
                outputs=SAID,
                inputs_s3_urls={"ROOT": {"presigned_url": "http://127.0.0.1:9/x"}},
            )
        ],
    )
    assert done.files[0].calls == 0 and done.files[0].spans == 1


# ---------------------------------------------------------------- MLflow


def span(own, parent=None, kind="CHAT_MODEL", events=(), **told):
    return {"trace_id": "QNbBig1nOhBui94ey5iBZQ==", "span_id": own, "parent_span_id": parent, "name": own,
            "start_time_unix_nano": 1795399836000000000, "end_time_unix_nano": 1795399837000000000, "events": list(events),
            "status": {"code": "STATUS_CODE_OK"}, "attributes": {"mlflow.spanType": json.dumps(kind), **{f"mlflow.{k}": json.dumps(v) for k, v in told.items()}}}  # fmt: skip


def mlflow(*spans):
    return {
        "info": {"trace_id": "tr-1", "tags": {"mlflow.traceName": "agent"}, "trace_metadata": {}},
        "data": {"spans": list(spans)},
    }


def test_a_trace_of_mlflow_replays_and_its_chunks_keep_their_times(tmp_path):
    chunks = [
        {
            "id": "c1",
            "object": "chat.completion.chunk",
            "created": 1,
            "model": "m",
            "choices": [
                {"index": 0, "delta": {"content": text, "role": None}, "finish_reason": None}
            ],
        }
        for text in ("No", "rth")
    ]
    events = [
        {
            "name": f"mlflow.chunk.item.{n}",
            "time_unix_nano": 1795399836000000000 + (n + 1) * 250_000_000,
            "attributes": {"mlflow.chunk.value": json.dumps(each)},
        }
        for n, each in reversed(list(enumerate(chunks)))
    ]
    streamed = span(
        "c3BhbjE=",
        "cm9vdA==",
        events=events,
        spanInputs={**ASKED, "stream": True},
        spanOutputs=SAID,
    )
    done, cassette = imported(
        tmp_path, mlflow(streamed, span("cm9vdA==", kind="AGENT", spanInputs={"q": 1}))
    )
    with tape.replaying(done.path):
        assert [each.choices[0].delta.content for each in asks(stream=True, seed=7)] == [
            "No",
            "rth",
        ]
    assert (
        cassette.calls[0].reply().waits[:2] == (0.25, 0.5)
        and heads(cassette)[0]["span"] == "cm9vdA=="
    )


def test_mlflows_files_of_spans_and_several_traces_are_read(tmp_path):
    tool = span("dG9vbA==", kind="TOOL", spanInputs={"city": "Paris"}, spanOutputs={"t": 18})
    done, cassette = imported(
        tmp_path,
        {"spans": [span("Yw==", spanInputs=ASKED, spanOutputs=SAID), tool]},
        name="traces.json",
    )
    assert said(done, seed=7) == "North"
    assert cassette.calls[1].request().arguments == {"city": "Paris"} and cassette.calls[
        1
    ].reply().value == {"t": 18}


# ---------------------------------------------------------------- Braintrust, Opik


def row(own, kind="llm", **more):
    return {"id": own, "span_id": own, "root_span_id": "t", "span_attributes": {"type": kind, "name": own}, "created": START,
            "metrics": {"start": 1772366400.0, "end": 1772366402.0, "prompt_tokens": 3, "completion_tokens": 1}, **more}  # fmt: skip


def braintrust(**more):
    about = {"provider": "openai", "model": "gpt-4o-mini", "seed": 7, **more}
    return row(
        "c", input=ASKED["messages"], output=SAID["choices"], metadata=about, span_parents=["a"]
    )


def test_rows_of_braintrust_replay_and_what_its_answer_tells_beside_them_is_no_record(tmp_path):
    done, cassette = imported(
        tmp_path,
        {"data": [braintrust(), row("a", "task")], "schema": {"type": "array"}, "warnings": []},
    )
    assert said(done, seed=7) == "North" and not done.files[0].reasons
    assert heads(cassette)[0]["kit"]["grade"] == "J" and heads(cassette)[0]["span"] == "a"
    assert any("envelope" in each for each in heads(cassette)[0]["kit"]["assumed"])


def test_rows_that_came_to_braintrust_by_opentelemetry_are_less_and_say_so(tmp_path):
    about = {"request_base_uri": "http://127.0.0.1:9", "request_path": "chat/completions"}
    _, cassette = imported(tmp_path, [braintrust(**about)])
    kit = heads(cassette)[0]["kit"]
    assert kit["grade"] == "M" and "tools and parameters of the request" in kit["missing"]
    assert cassette.calls[0].request().url == "http://127.0.0.1:9/chat/completions"


def test_anthropics_system_text_that_stands_behind_the_messages_is_put_back(tmp_path):
    about = {"provider": "anthropic", "model": "claude-sonnet-5", "max_tokens": 50}
    asked = [{"role": "user", "content": "Who?"}, {"role": "system", "content": "Be brief."}]
    _, cassette = imported(
        tmp_path,
        [row("c", input=asked, output=[{"type": "text", "text": "North"}], metadata=about)],
    )
    assert body(cassette.calls[0]) == {
        "messages": asked[:1],
        "system": "Be brief.",
        "model": "claude-sonnet-5",
        "max_tokens": 50,
    }


def opik(**more):
    about = {
        "model": "gpt-4o-mini",
        "seed": 7,
        "created_from": "openai",
        "type": "openai_chat",
        "id": "c1",
        "object": "chat.completion",
        "created": 1,
        "service_tier": None,
    }
    return {"id": "s", "trace_id": "t", "type": "llm", "name": "chat", "start_time": START, "end_time": END, "metadata": about,
            "input": {"messages": ASKED["messages"]}, "output": {"choices": SAID["choices"]}, "model": "gpt-4o-mini", "provider": "openai", **more}  # fmt: skip


def test_an_export_of_opik_replays_with_its_spans_beside_or_inside_the_trace(tmp_path):
    trace = {
        "id": "t",
        "name": "agent",
        "start_time": START,
        "thread_id": None,
        "feedback_scores": [],
        "project_name": "p",
    }
    done, _ = imported(tmp_path, {"trace": trace, "spans": [opik()]})
    assert said(done, seed=7) == "North"
    (tmp_path / "b").mkdir()
    outer = {
        "id": "o",
        "trace_id": "t",
        "type": "general",
        "name": "outer",
        "start_time": START,
        "spans": [opik()],
    }
    done, cassette = imported(tmp_path / "b", [{**trace, "spans": [outer]}])
    assert said(done, seed=7) == "North" and heads(cassette)[0]["span"] == "outer"


# ---------------------------------------------------------------- Weave, Helicone, PromptLayer, Galileo


def weave(op="openai.chat.completions.create", **more):
    return {"id": "w", "project_id": "p", "op_name": f"weave:///e/p/op/{op}:abc", "trace_id": "t", "parent_id": None, "started_at": START,
            "ended_at": END, "inputs": {"self": "weave:///x", **ASKED}, "output": SAID, "attributes": {}, "summary": {"usage": {"gpt-4o-mini": {"prompt_tokens": 3, "completion_tokens": 1}}}, **more}  # fmt: skip


def test_calls_of_weave_replay_and_other_ops_are_spans(tmp_path):
    done, cassette = imported(
        tmp_path,
        weave(parent_id="a"),
        weave("my_agent", id="a", inputs={"q": 1}),
        name="calls.jsonl",
    )
    assert said(done, seed=7) == "North" and heads(cassette)[0]["span"] == "my_agent"
    assert heads(cassette)[0]["kit"]["grade"] == "J"


def test_objects_that_weave_keeps_elsewhere_are_missing(tmp_path):
    _, cassette = imported(
        tmp_path, weave(inputs={**ASKED, "tools": "weave:///e/p/object/tools:1"})
    )
    kit = heads(cassette)[0]["kit"]
    assert kit["grade"] == "P" and any("Weave's store" in each for each in kit["missing"])


def helicone(**more):
    return {"request_id": "r", "response_id": "s", "request_created_at": START, "response_created_at": END, "request_path": "/v1/chat/completions",
            "target_url": "https://api.openai.com/v1/chat/completions", "request_body": ASKED, "response_body": SAID, "response_status": 200,
            "model": "gpt-4o-mini", "provider": "OPENAI", "request_properties": {"Helicone-Session-Id": "s1", "Helicone-Session-Path": "/plan/ask"}, **more}  # fmt: skip


def test_requests_of_helicone_replay_and_their_session_is_a_run_of_spans(tmp_path):
    done, cassette = imported(tmp_path, helicone(), name="h.jsonl")
    assert said(done, seed=7) == "North" and heads(cassette)[0]["span"] == "plan / ask"
    assert "url" not in heads(cassette)[0]["kit"]["missing"]


def test_an_error_that_helicone_saw_keeps_its_status_and_its_body(tmp_path):
    import openai

    done, _ = imported(
        tmp_path,
        helicone(response_status=429, response_body={"error": {"message": "slow down"}}),
        name="h.jsonl",
    )
    with tape.replaying(done.path), pytest.raises(openai.RateLimitError, match="slow down"):
        asks(seed=7)


def test_bodies_of_helicone_that_lie_behind_a_url_are_counted_and_not_fetched(tmp_path):
    row = helicone(
        request_body=None, response_body=None, signed_body_url="http://127.0.0.1:9/b?sig=secret"
    )
    done, cassette = imported(tmp_path, row, helicone(), name="h.jsonl")
    assert done.files[0].reasons == {
        "a request whose bodies are behind a URL, which is not fetched": 1
    }
    assert "secret" not in cassette.path.read_text()


def test_a_request_of_promptlayer_is_rebuilt(tmp_path):
    told = [
        {"role": "user", "content": [{"type": "text", "text": "Who?"}]},
        {"role": "assistant", "content": [{"type": "text", "text": "North"}]},
    ]
    row = {
        "id": 4,
        "prompt_blueprint": {
            "prompt_template": {"type": "chat", "messages": told},
            "metadata": {
                "model": {"provider": "openai", "name": "gpt-4o-mini", "parameters": {"seed": 7}}
            },
        },
    }
    done, cassette = imported(tmp_path, row)
    assert said(done, seed=7) == "North" and heads(cassette)[0]["kit"]["grade"] == "P"


def test_records_of_galileo_are_rebuilt_with_their_tools_inside_them(tmp_path):
    metrics = {"num_input_tokens": 3, "num_output_tokens": 1, "duration_ns": 5_000_000}
    model = {
        "type": "llm",
        "id": "m",
        "name": "chat",
        "created_at": START,
        "input": ASKED["messages"],
        "output": {"role": "assistant", "content": "North"},
        "model": "gpt-4o-mini",
        "finish_reason": "stop",
        "metrics": metrics,
        "redacted_input": None,
    }
    tool = {
        "type": "tool",
        "id": "u",
        "name": "look",
        "created_at": START,
        "input": '{"at": 1}',
        "output": "seen",
        "metrics": metrics,
    }
    done, cassette = imported(
        tmp_path,
        {
            "type": "trace",
            "id": "t",
            "name": "run",
            "spans": [{"type": "agent", "id": "a", "name": "agent", "spans": [model, tool]}],
        },
        name="g.jsonl",
    )
    assert said(done) == "North" and [head["kind"] for head in heads(cassette)] == ["model", "tool"]
    assert cassette.calls[1].request().arguments == {"at": 1}


# ---------------------------------------------------------------- what is hostile or broken


ROWS = {
    "langfuse": lambda own, up: {
        **observation(own, parent=up, input=ASKED["messages"], output="North")
    },
    "langsmith": lambda own, up: run(own, inputs=ASKED, outputs=SAID, parent_run_id=up),
    "mlflow": lambda own, up: span(own, up, spanInputs=ASKED, spanOutputs=SAID),
    "braintrust": lambda own, up: {**braintrust(), "span_id": own, "span_parents": [up]},
    "weave": lambda own, up: weave(id=own, parent_id=up),
}


@pytest.mark.parametrize("system", ROWS)
def test_parents_in_a_circle_ids_that_come_twice_and_a_torn_end_are_told(tmp_path, system):
    make = ROWS[system]
    rows = [make("a", "b"), make("b", "a"), make("c", "nobody"), make("c", "nobody")]
    done, cassette = imported(
        tmp_path, text="\n".join(map(json.dumps, rows)) + '\n{"id": "torn', name="x.jsonl"
    )
    report = done.files[0]
    assert (
        report.format == system and report.reasons["a record sent twice: the last one counts"] == 1
    )
    assert any("cycle" in note for note in report.notes) and any(
        "not in the file" in note for note in report.notes
    )
    assert any("breaks off" in reason for reason in report.reasons) and "torn" in str(
        cassette.ended
    )


@pytest.mark.parametrize("system", ROWS)
def test_a_record_that_is_not_as_it_should_be_spoils_no_other(tmp_path, system):
    good = ROWS[system]("a", "")
    bad = {
        name: [7]
        if isinstance(value, (dict, str))
        and name not in ("id", "type", "run_type", "op_name", "dotted_order")
        else value
        for name, value in ROWS[system]("b", "").items()
    }
    done, _ = imported(tmp_path, good, bad, 42, name="x.jsonl")
    report = done.files[0]
    assert report.calls >= 1 and report.calls + report.spans + sum(report.reasons.values()) >= 3


def test_keys_in_messages_are_masked(tmp_path):
    key = "sk-proj-" + "a1B2c3D4" * 5
    done, _ = imported(
        tmp_path,
        [
            run(
                "r",
                inputs={"messages": [{"role": "user", "content": f"use {key}"}], "model": "m"},
                outputs=SAID,
            )
        ],
    )
    assert key not in done.path.read_text()


def test_an_export_as_parquet_is_recognised_and_read(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    import pyarrow.parquet

    row = {
        **run("r"),
        "inputs": json.dumps(ASKED),
        "outputs": json.dumps(SAID),
        "extra": json.dumps(run("r")["extra"]),
    }
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist([row]), tmp_path / "runs.parquet")
    done = tape.import_trace(
        tmp_path / "runs.parquet", cassette=tmp_path / "x.tapes" / "main.tape.yaml"
    )
    assert said(done, seed=7) == "North" and done.files[0].format == "langsmith"


def test_a_parquet_file_without_its_reader_says_how_to_get_it_and_a_broken_one_is_one_error(
    tmp_path, monkeypatch
):
    import sys

    (tmp_path / "runs.parquet").write_bytes(b"PAR1 nothing here PAR1")
    try:
        import pyarrow.parquet
    except ImportError:
        pass
    else:
        with pytest.raises(TapeError, match="not a sound Parquet"):
            tape.import_trace(tmp_path / "runs.parquet")
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(TapeError, match=r"tape-jupyter\[interop\]"):
        tape.import_trace(tmp_path / "runs.parquet")
