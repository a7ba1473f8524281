"""Edits that make no sense, mean harm or come too late: cases 67 to 76, as a page asks for them.

Case 68 in a real Chromium, and 76 over the real lines of a notebook: tests/browser/test_hostile.py.
"""

import json

import pytest

import tape_jupyter as tape
from tape_jupyter.errors import UnmatchedCall
from tests.harness.taped_cells import ask
from tests.harness.tapes import Recorder
from tests.unit.cassette.takes.test_edits import EVENTS, MESSAGE, QUESTION, STREAMED, asked, message
from tests.unit.cassette.takes.test_edits import path as agent  # noqa: F401  # a fixture
from tests.unit.jupyter.viewer.test_edit import View, said

CAP = 4 * 2**20


@pytest.fixture
def view(agent, deck):  # noqa: F811
    view, before = View(agent, deck), agent.read_bytes()
    yield view
    view.viewer.close()
    assert agent.read_bytes().startswith(before), "the recording was written to"


def stands(view, take, number=0):
    """What a take answers now, as the program's SDK has it."""
    return message(tape.open(view.path).take(take).calls[number].reply())


def with_arguments(given):
    return {
        "form": "message",
        "message": json.dumps({**MESSAGE, "content": [{**MESSAGE["content"][2], "input": given}]}),
    }


def test_67_an_empty_text_is_a_reply(view):
    assert view.ask("check", span=view.spans[0], edit=said(""))["answer"] == {"problems": []}
    assert view.override(0, said(""), "silent")["answer"]["take"] == "silent"
    assert stands(view, "silent")["content"][1]["text"] == ""


@pytest.mark.parametrize(
    "evil",
    ["</script><img src=x onerror=alert(1)>", "{{7*7}}${x}", "---\n...\n", "a\u2028b\u0085c\x00"],
)
def test_68_markup_is_a_text_like_any_other(view, evil):
    view.override(0, said(evil), "evil")
    assert stands(view, "evil")["content"][1]["text"] == evil
    detail = view.ask("detail", span=view.spans[0])["answer"]
    assert {"type": "text", "text": evil} in detail["turns"][-1]["parts"]


def test_69_what_is_no_json_is_refused_for_a_result_that_is_json(view):
    for number, broken in ((1, "{oops"), (2, '"no JSON"')):
        edit = {"form": "value", "value": broken}
        assert [
            each["level"]
            for each in view.ask("check", span=view.spans[number], edit=edit)["answer"]["problems"]
        ] == ["error"]
        assert "JSON" in view.override(number, edit, accept=True)["error"]
    assert tape.open(view.path).takes() == []


def test_70_arguments_against_the_tools_schema_are_warned_of_and_need_a_tick(view):
    edit = with_arguments({"order": "seven"})
    [problem] = view.ask("check", span=view.spans[0], edit=edit)["answer"]["problems"]
    assert problem["level"] == "warning" and problem["path"] == "content[0].input.order"
    assert "tick that it is meant so" in view.override(0, edit, "odd")["error"]
    assert tape.open(view.path).takes() == []
    assert view.override(0, edit, "odd", accept=True)["answer"]["take"] == "odd"
    assert stands(view, "odd")["content"][0]["input"] == {"order": "seven"}


def test_71_a_call_that_another_kernel_recorded_again_is_refused_but_a_base_that_grew_is_fine(view):
    assert view.ask("edit", span=view.spans[0])["answer"]
    Recorder(view.path, "s9").run("bbbb", (asked(QUESTION), STREAMED))
    assert view.override(0, said("fine"), "grown")["answer"]["take"] == "grown"
    view.ask("open", cassette="main", take="")
    newer = Recorder(view.path, "s9").run("aaaa", (asked(QUESTION), STREAMED))
    assert newer in view.override(0, said("late"), "late")["error"]
    assert tape.open(view.path).takes() == ["grown"]


def test_72_a_stream_is_cut_into_chunks_anew_and_its_usage_is_kept_and_marked_stale(view):
    done = view.override(
        0, said("A text that is a good deal longer than the one that was recorded."), "long"
    )["answer"]
    assert any(note.startswith("usage stale") for note in done["notes"])
    entry = tape.open(view.path).take("long").calls[0]
    changed = [
        chunk for chunk in entry.reply().chunks if chunk not in EVENTS and b"text_delta" in chunk
    ]
    assert len(changed) > 1 and entry.head()["usage"] == "stale"
    assert stands(view, "long")["usage"] == MESSAGE["usage"]


@pytest.mark.parametrize("number", [0, 1, 3])
def test_73_ten_megabytes_are_refused_naming_the_cap(view, number):
    long = "x" * (10 * 2**20)
    edit = (
        {"form": "value", "value": json.dumps(long)}
        if number == 1
        else {"form": "raw", "status": 200, "headers": [], "body": long}
    )
    assert view.ask("edit", span=view.spans[number])["answer"]["limit"] == CAP
    [problem] = view.ask("check", span=view.spans[number], edit=edit)["answer"]["problems"]
    assert problem["level"] == "error" and "an edit may have 4" in problem["text"]
    assert "an edit may have 4" in view.override(number, edit, accept=True)["error"]
    assert tape.open(view.path).takes() == []


def test_74_a_second_edit_is_a_take_of_the_first_and_the_chain_is_shown(view):
    view.override(0, said("One."), "angry")
    session = view.override(0, said("Two."))["answer"]["session"]
    assert tape.open(view.path).take("angry-2").chain == ("main", "angry", "angry-2")
    assert (
        stands(view, "angry")["content"][1]["text"],
        stands(view, "angry-2")["content"][1]["text"],
    ) == (
        "One.",
        "Two.",
    )
    assert session["take"] == "angry-2" and {
        each["name"]: each["of"] for each in session["takes"]
    } == {
        "angry": "main",
        "angry-2": "angry",
    }


def test_75_a_changed_request_stops_with_its_nearest_call_and_is_never_given_that_calls_reply(
    tmp_path, provider
):
    path = tmp_path / "nb.tapes" / "main.tape.yaml"
    with tape.recording(path):
        ask(provider, "Answer somebody who is negative, kindly and at length.")
    provider.requests.clear()
    with pytest.raises(UnmatchedCall) as caught, tape.replaying(path):
        ask(provider, "Answer somebody who is positive, kindly and at length.")
    told = caught.value.report
    assert "negative" in told and "positive" in told
    assert provider.requests == []
    assert tape.open(path).takes() == []


@pytest.mark.parametrize("about", ["edit", "check", "override"])
@pytest.mark.parametrize(
    "span", ["r-none/00000000", "../../etc/passwd", 7, None, {"__class__": "str"}]
)
def test_76_a_call_that_there_is_not_is_dropped_and_counted_and_nothing_is_written(
    view, about, span
):
    assert view.ask(about, span=span, edit=said("x"), take="t", accept=True) is None
    assert view.viewer.dropped == 1 and tape.open(view.path).takes() == []
