"""What `tape show` and `tape calls` tell of a cassette."""

import json

import pytest

from tape_jupyter.reports import listing
from tape_jupyter.core.call import Reply
from tape_jupyter.cassette.cassette import Cassette
from tape_jupyter.errors import TapeUsageError
from tests.harness.tapes import Recorder, answered, asked, churn


@pytest.fixture
def tape(tmp_path):
    return Cassette.open(churn(tmp_path))


def test_a_notebook_a_folder_and_a_file_all_name_the_cassette(tmp_path):
    path = churn(tmp_path)
    other = path.with_name("alt.tape.yaml")
    other.write_bytes(path.read_bytes())
    assert listing.list_cassettes(tmp_path / "churn.ipynb") == [path, other]
    assert listing.list_cassettes(tmp_path / "churn.tapes", "alt") == [other]
    assert listing.list_cassettes(path) == [path]


def test_a_cassette_that_is_not_there_is_said_with_those_that_are(tmp_path):
    churn(tmp_path)
    with pytest.raises(TapeUsageError, match="no cassette alt; there are: main"):
        listing.list_cassettes(tmp_path / "churn.ipynb", "alt")
    with pytest.raises(TapeUsageError, match=r"other\.ipynb: there is no such notebook"):
        listing.list_cassettes(tmp_path / "other.ipynb")
    (tmp_path / "an other.ipynb").touch()
    with pytest.raises(TapeUsageError) as caught:
        listing.list_cassettes(tmp_path / "an other.ipynb")
    assert str(caught.value).endswith(f"record one with: tape record '{tmp_path}/an other.ipynb'")
    with pytest.raises(TapeUsageError, match=r"name one of its notebooks: an other\.ipynb"):
        listing.list_cassettes(tmp_path)
    with pytest.raises(TapeUsageError, match="no such cassette or notebook"):
        listing.list_cassettes(tmp_path / "x.tape.yaml")


def test_runs_tell_which_of_them_replay_uses(tape):
    told = listing.run_records(tape)
    assert [(run["calls"], run["outcome"], run["replayed"]) for run in told] == [
        (1, "ok", False),
        (1, "ok", True),
        (1, "raised", True),
    ]
    text = "\n".join(listing.runs_text(tape))
    assert "3 runs, 3 calls" in text and "superseded" in text and "raised" in text


def test_calls_tell_model_tokens_and_cost(tape):
    model, _, tool = listing.call_records(tape)
    assert (model["name"], model["tokens_in"], model["tokens_out"]) == (
        "claude-sonnet-4-5-20250929",
        1000,
        100,
    )
    assert float(model["cost"]) == pytest.approx(0.0045)
    assert (tool["kind"], tool["name"], tool["edited"]) == ("tool", "lookup", False)
    assert json.loads(json.dumps([model, tool]))
    assert "claude-sonnet-4-5" in listing.calls_text(tape) and "lookup" in listing.calls_text(tape)
    assert "1 is of a recording that a newer one replaced" in listing.calls_text(tape)


def test_a_call_is_found_by_id_and_the_newest_run_counts(tape):
    first, second, tool = tape.calls
    assert listing.find_call_record([tape], first.id) is second
    assert listing.find_call_record([tape], f"{first.run}/{first.id}") is first
    assert listing.find_call_record([tape], tool.id) is tool
    with pytest.raises(TapeUsageError, match="near: " + first.id):
        listing.find_call_record([tape], first.id[:4] + "zzzz")


def test_a_call_is_shown_in_full(tape):
    told = listing.call_record(tape.calls[1])
    assert told["request"]["body"]["messages"][0]["content"] == "Which region?"
    assert told["reply"]["body"]["content"][0]["text"] == "South"
    assert (told["reply"]["status"], told["reply"]["reads"], told["edited"]) == (200, 2, False)
    assert told["where"].endswith(f"main.tape.yaml:{tape.calls[1].line}")
    text = "\n".join(listing.call_text(tape.calls[1]))
    assert '"Which region?"' in text and "request-id: req_1" in text
    tool = listing.call_record(tape.calls[2])
    assert tool["request"] == {"tool": "lookup", "arguments": {"id": 7}} and tool["reply"]["value"]


def test_a_body_that_is_no_text_is_told_by_its_size(tmp_path):
    recorder = Recorder(tmp_path / "main.tape.yaml")
    recorder.run(
        "c", (asked("x"), Reply(200, (("content-type", "image/png"),), (b"\x89PNG\xff",), (0.1,)))
    )
    recorder.run("d", (asked("y"), answered("z" * 50_000)))
    picture, long = recorder.cassette.calls
    assert listing.call_record(picture)["reply"]["body"] == "(not text: 5 bytes)"
    assert "more characters" in "\n".join(listing.call_text(long))


def test_a_reply_edited_by_hand_is_marked(tmp_path):
    path = churn(tmp_path)
    path.write_text(path.read_text().replace("text: South", "text: East"))
    assert [call["edited"] for call in listing.call_records(Cassette.open(path))] == [
        False,
        True,
        False,
    ]
