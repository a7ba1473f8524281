"""`tape override` and `%tape override`, as people type them."""

import json
import shlex

import pytest
from click.testing import CliRunner

import tape_jupyter as tape
from tape_jupyter.commands import override
from tape_jupyter.cassette.takes import files
from tape_jupyter.cli import tape as command
from tape_jupyter.core.call import Reply, Request
from tape_jupyter.errors import TapeUsageError
from tests.harness.tapes import JSON, Recorder, churn
from tests.unit.cassette.takes.test_edits import MESSAGE
from tests.unit.cassette.takes.test_edits import path as agent  # noqa: F401  # a fixture


@pytest.fixture
def path(tmp_path):
    return churn(tmp_path)


def run(*words):
    done = CliRunner().invoke(command, [str(word) for word in words])
    assert done.exit_code in (0, 1, 2), done.exception
    return done


def text(path, take, number=1):
    return json.loads(tape.open(path).take(take).calls[number].reply().body)["content"][0]["text"]


def name_of(path, number=1):
    entry = tape.open(path).calls[number]
    return f"{entry.run}/{entry.id}"


def test_a_text_goes_into_a_take_and_the_recording_stays_as_it_is(path):
    before = path.read_bytes()
    said = run("override", path, name_of(path), "--text", "East", "--take", "angry")
    assert said.exit_code == 0, said.output
    assert (
        "take angry: call" in said.output
        and "usage stale" in said.output
        and "takes undo angry" in said.output
    )
    assert text(path, "angry") == "East" and path.read_bytes() == before
    told = json.loads(
        run(
            "override", path, name_of(path), "--message", '{"stop_reason": "max_tokens"}', "--json"
        ).output
    )
    assert told["take"] == "override" and told["edit"] == "message" and told["usage"] == "stale"


def test_the_magics_line_is_read_as_it_stands(path):
    said = override.parse_override(
        f"{name_of(path)} --text 'no {{x}} $HOME `ls` \"quotes\"' --take angry"
    )
    override.write_override(path, said)
    assert text(path, "angry") == 'no {x} $HOME `ls` "quotes"'
    more = override.parse_override(f"{name_of(path)} --text West --of angry")
    assert files.take_name(override.write_override(path, more).take.path) == "angry-2"
    assert tape.open(path).take("angry-2").chain == ("main", "angry", "angry-2")


def test_faults_values_and_bodies(path):
    assert (
        run(
            "override", path, name_of(path), "--fault", "rate_limit:retry_after=5", "--take", "busy"
        ).exit_code
        == 0
    )
    assert tape.open(path).take("busy").calls[1].reply().header("retry-after") == "5"
    assert (
        run(
            "override", path, name_of(path, 2), "--value", '{"name": "Bob"}', "--take", "bob"
        ).exit_code
        == 0
    )
    assert tape.open(path).take("bob").calls[2].reply().value == {"name": "Bob"}
    assert (
        run(
            "override", path, name_of(path), "--reply", "gone", "--status", "404", "--take", "gone"
        ).exit_code
        == 0
    )
    reply = tape.open(path).take("gone").calls[1].reply()
    assert (reply.status, reply.body) == (404, b"gone")


def test_what_is_odd_is_said_and_written(agent):  # noqa: F811
    tool = {**MESSAGE["content"][2], "name": "erase", "id": "toolu_9"}
    said = run(
        "override",
        agent,
        name_of(agent, 0),
        "--message",
        json.dumps({"content": [tool]}),
        "--take",
        "odd",
    )
    assert (
        "the request offers no tool 'erase'" in said.output
        and "hands back the result of toolu_1" in said.output
    )
    assert "stop_reason" not in said.output


@pytest.mark.parametrize(
    "words",
    [
        "", "NAME", "NAME --text a --fault reset", "NAME --status 500", "NAME --text a --status 500", "nobody --text a",
        "NAME --fault explode", "NAME --message {", "NAME --value 1", "NAME --text a --take ../x", "NAME --text a --of gone",
        "NAME --reply x --status 99", "NAME --reply x --status many", "NAME --texts a", "NAME --text 'a",
    ],
)  # fmt: skip
def test_words_that_make_no_sense_are_usage_errors_and_nothing_is_written(path, words):
    line = words.replace("NAME", name_of(path))
    with pytest.raises(TapeUsageError):
        override.write_override(path, override.parse_override(line))
    if "'" not in words:
        assert run("override", path, *shlex.split(line)).exit_code == 2
    assert not (path.parent / "takes").exists()


def test_a_take_is_chosen_undone_and_put_aside_by_words(path):
    run("override", path, name_of(path), "--text", "East", "--take", "angry")
    assert (
        "take angry is replayed when no take is named"
        in run("takes", path, "default", "angry").output
    )
    assert "(take of: main)  default" in run("takes", path).output
    assert json.loads(run("takes", path, "--json").output)[0]["takes"][0]["default"] is True
    assert (
        "the recording is replayed" in run("takes", path, "default", "main").output
        and files.default_take(path) == ""
    )
    assert "is kept" in run("takes", path, "keep", "angry").output
    assert (
        "was moved to" in run("takes", path, "discard", "angry").output
        and tape.open(path).takes() == []
    )
    assert "take angry is back" in run("takes", path, "undo", "angry").output
    assert "answers as recorded again" in run("takes", path, "undo", "angry").output
    assert (
        run("takes", path, "default", "angry").exit_code == 2
        and run("takes", path, "undo", "no").exit_code == 2
    )


def test_a_reply_inside_a_tool_is_overridden_and_the_tools_body_runs_again_on_the_tape(tmp_path):
    ran = []

    @tape.tool
    def look_up(name):
        ran.append("look_up")
        return "paid"

    @tape.tool
    def describe(name):
        ran.append("describe")
        return f"{name} is {look_up(name)}"

    @tape.tool
    def report(name):
        ran.append("report")
        return describe(name).upper()

    def replayed(take=None):
        ran.clear()
        with tape.replaying(path, take=take):
            return report("r_8821"), look_up("r_9000")

    path, whole = tmp_path / "orders.tape.yaml", ["report", "describe", "look_up", "look_up"]
    with tape.recording(path):
        recorded = report("r_8821"), look_up("r_9000")
    calls = {entry.title: entry for entry in reversed(tape.open(path).calls)}
    inner, middle = calls["tool look_up"], calls["tool describe"]
    done = override.write_override(
        path, override.parse_override(f"{inner.name} --value '\"open\"' --take open")
    )
    assert f"made inside tool describe (call {middle.id}), whose body runs again" in done.text()
    assert (
        f"override {middle.id} --value JSON" in done.text() and "inside tool report" in done.text()
    )
    assert replayed("open") == ("R_8821 IS OPEN", "paid") and ran == whole
    assert replayed() == recorded and ran == whole
    line = f"{middle.name} --value '\"nobody knows\"' --of open --take unknown"
    override.write_override(path, override.parse_override(line))
    assert replayed("unknown") == ("NOBODY KNOWS", "paid")


@pytest.mark.parametrize(
    ("number", "body", "edit"),
    [
        (1, "two\nlines {x} $HOME", "text"),
        (1, '{"mood": "bad"}', "text"),
        (1, '{"stop_reason": "max_tokens"}', "message"),
        (2, '{"name": "Bob"}', "value"),
        (2, "nobody", "text"),
    ],
)
def test_the_body_of_a_cell_is_the_new_text_or_json(path, number, body, edit):
    said = override.parse_override(f"{name_of(path, number)} --take other")
    done = override.write_override(path, said, body)
    assert done.record()["edit"] == edit
    if edit == "text" and number == 1:
        assert text(path, "other") == body
    with pytest.raises(TapeUsageError, match="say one of"):
        override.write_override(
            path, override.parse_override(f"{name_of(path, number)} --fault reset"), body
        )


def test_text_does_not_go_into_json_that_is_no_message(tmp_path):
    vectors = b'{"object": "list", "data": [{"object": "embedding", "index": 0, "embedding": "AACAPw=="}]}'
    path = tmp_path / "vectors.tape.yaml"
    request = Request(
        "POST", "https://api.openai.com/v1/embeddings", JSON, b'{"model": "m", "input": "x"}'
    )
    Recorder(path).run("embed('x')", (request, Reply(200, JSON, (vectors,), (0.1,))))
    with pytest.raises(
        TapeUsageError, match="no text to change in it. Give all of its body: --reply JSON"
    ):
        override.write_override(path, override.parse_override(f"{name_of(path, 0)} --text hello"))
    body = vectors.replace(b"AACAPw==", b"AAAAQA==").decode()
    done = override.write_override(
        path, override.parse_override(f"{name_of(path, 0)} --take two"), body
    )
    assert done.take.calls[0].reply().body.decode() == body
