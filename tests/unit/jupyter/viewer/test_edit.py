"""Editing from a view: messages as a page sends them, forged ones too, and what is then on disk."""

import json
from types import SimpleNamespace

import pytest

import tape_jupyter as tape
from tape_jupyter.cassette.takes import files
from tape_jupyter.cassette import paths
from tape_jupyter.jupyter.viewer.server import Viewer
from tests.harness.tapes import Recorder
from tests.unit.cassette.takes.test_edits import (
    DONE,
    EVENTS,
    MESSAGE,
    QUESTION,
    STREAMED,
    asked,
    message,
)
from tests.unit.cassette.takes.test_edits import path as agent  # noqa: F401  # a fixture


class View:
    """A page: `ask` gives what it is answered, None where the message was dropped."""

    def __init__(self, path, deck):
        self.path = path
        notebook = path.parent.with_name("agent.ipynb")
        shell = SimpleNamespace(user_ns={}, history_manager=None)
        reports = [SimpleNamespace(path=path, calls=[])]
        cells = SimpleNamespace(
            deck=deck,
            reports=reports,
            notebook=lambda: notebook,
            notebook_or_none=lambda: notebook,
            shell=shell,
            history=None,
            mode_typed=False,
            cassette_path=lambda name="main": paths.cassette_path(notebook, name),
            cassette_names=lambda: paths.cassette_names(notebook),
            list_cells_of=lambda path: ["c4"] if path == files.path_of(self.path, "angry") else [],
        )
        self.viewer = Viewer(cells, lambda told: None)
        self.spans = [f"{entry.run}/{entry.id}" for entry in tape.open(path).calls]

    def ask(self, about, **told):
        heard = []
        self.viewer.receive({"type": "ask", "id": "7", "about": about, **told}, heard.append)
        return heard[0] if heard else None

    def override(self, number, edit, take="", accept=False):
        return self.ask("override", span=self.spans[number], edit=edit, take=take, accept=accept)


@pytest.fixture
def view(agent, deck):  # noqa: F811
    view = View(agent, deck)
    yield view
    view.viewer.close()


def said(text):
    content = [MESSAGE["content"][0], {"type": "text", "text": text}, MESSAGE["content"][2]]
    return {"form": "message", "message": json.dumps({**MESSAGE, "content": content})}


def test_a_reply_is_opened_changed_checked_and_written_to_a_take(view):
    before = view.path.read_bytes()
    shown = view.ask("edit", span=view.spans[0])["answer"]
    assert (shown["form"], shown["take"], shown["limit"]) == ("message", "edited", 4 * 2**20)
    assert view.ask("check", span=view.spans[0], edit=said("No."))["answer"] == {"problems": []}
    done = view.override(0, said("No."), "angry")["answer"]
    assert (
        done["take"] == "angry"
        and done["session"]["take"] == "angry"
        and done["session"]["takes"][0]["overrides"] == 1
    )
    assert any(note.startswith("usage stale") for note in done["notes"])
    assert (
        message(tape.open(view.path).take("angry").calls[0].reply())["content"][1]["text"] == "No."
    )
    assert view.path.read_bytes() == before
    again = view.ask("edit", span=view.spans[0])["answer"]
    assert (
        json.loads(again["recorded"]) == MESSAGE
        and "No." in again["current"]
        and again["take"] == "angry-2"
    )


def test_a_second_change_of_a_call_is_a_take_of_the_take_and_another_call_goes_into_it(view):
    view.override(0, said("One."), "angry")
    assert (
        view.override(
            3, {"form": "message", "message": json.dumps(DONE).replace("shipped", "lost")}
        )["answer"]["take"]
        == "angry"
    )
    second = view.override(0, said("Two."))["answer"]
    assert second["take"] == "angry-2" and tape.open(view.path).take("angry-2").chain == (
        "main",
        "angry",
        "angry-2",
    )
    assert (
        "exists already and is not overwritten"
        in view.override(1, {"form": "value", "value": "1"}, "angry")["error"]
    )


def test_errors_keep_an_edit_from_being_written_and_warnings_need_a_tick(view):
    odd = {**MESSAGE, "content": [{**MESSAGE["content"][2], "input": {"order": "x"}}]}
    edit = {"form": "message", "message": json.dumps(odd)}
    problems = view.ask("check", span=view.spans[0], edit=edit)["answer"]["problems"]
    assert [problem["level"] for problem in problems] == ["warning"] and "schema" in problems[0][
        "text"
    ]
    assert "tick that it is meant so" in view.override(0, edit)["error"]
    assert view.override(0, edit, accept=True)["answer"]["take"] == "edited"
    broken = {"form": "message", "message": "{"}
    assert "not JSON" in view.override(0, broken, accept=True)["error"]
    long = {"form": "value", "value": json.dumps("x" * (4 * 2**20))}
    assert "an edit may have 4" in view.override(1, long, accept=True)["error"]
    assert tape.open(view.path).takes() == ["edited"]


def test_text_of_a_page_is_data_and_an_empty_text_a_reply(view):
    evil = "</script><img src=x onerror=alert(1)>{{7*7}}${x}"
    name = view.override(0, said(evil))["answer"]["take"]
    assert message(tape.open(view.path).take(name).calls[0].reply())["content"][1]["text"] == evil
    view.ask("open", cassette="main", take="")
    assert view.override(0, said(""), "silent")["answer"]["take"] == "silent"


def test_faults_values_and_raw_bodies(view):
    fault = {"form": "fault", "name": "reset", "options": {"after": 2}}
    assert view.override(0, fault, "reset")["answer"]["take"] == "reset"
    assert tape.open(view.path).take("reset").calls[0].reply().body == b"".join(EVENTS[:2])
    raw = {
        "form": "raw",
        "status": 503,
        "headers": [["content-type", "text/plain"]],
        "body": "down",
    }
    assert view.override(3, raw)["answer"]["take"] == "reset"
    assert view.override(1, {"form": "value", "value": "null"})["answer"]["take"] == "reset"
    replies = [entry.reply() for entry in tape.open(view.path).take("reset").calls]
    assert replies[3].status == 503 and replies[1].value is None
    assert "there is no fault 'explode'" in view.override(2, {**fault, "name": "explode"})["error"]


def test_undo_discard_keep_and_default(view):
    view.override(0, said("One."), "angry")
    view.override(3, {"form": "message", "message": json.dumps(DONE).replace("shipped", "lost")})
    session = view.ask("undo", take="angry")["answer"]
    assert session["take"] == "angry" and session["takes"][0]["overrides"] == 1
    assert (
        view.ask("default", take="angry")["answer"]["default_take"]
        == "angry"
        == files.default_take(view.path)
    )
    assert view.ask("keep", take="angry")["answer"]["take"] == "angry"
    session = view.ask("undo", take="angry")["answer"]
    assert (session["take"], session["takes"], session["default_take"]) == ("", [], "")
    assert "answers as recorded again" in session["notes"][-1]
    assert view.ask("undo", take="angry")["answer"]["take"] == "angry"
    session = view.ask("discard", take="angry")["answer"]
    assert session["takes"] == [] and session["cells"] == ["c4"]  # they show what is gone
    assert "no take 'gone'" in view.ask("discard", take="gone")["error"]


def test_a_call_that_was_recorded_again_meanwhile_is_refused_naming_the_newer_run(view):
    newer = Recorder(view.path, "s9").run("aaaa", (asked(QUESTION), STREAMED))
    assert newer in view.override(0, said("x"))["error"] and tape.open(view.path).takes() == []


@pytest.mark.spread(3)
@pytest.mark.parametrize(
    "forged",
    [
        {"span": "r-none/00000000"}, {"span": "../../etc/passwd"}, {"span": 7}, {"span": None}, {"span": ["x"]},
        {"edit": None}, {"edit": "text"}, {"edit": {}}, {"edit": {"form": "eval", "code": "1"}},
        {"edit": {"form": "text", "text": "x"}}, {"edit": {"form": "message", "message": {"a": 1}}},
        {"edit": {"form": "raw", "status": True, "headers": [], "body": ""}}, {"edit": {"form": "raw", "status": "200", "headers": [], "body": ""}},
        {"edit": {"form": "fault", "name": ["reset"], "options": {}}}, {"edit": {"form": "fields", "fields": "x"}},
        {"edit": {"form": ["message"]}}, {"take": 7}, {"take": None},
    ],
)  # fmt: skip
def test_a_forged_message_is_dropped_and_counted(view, forged):
    told = {"span": view.spans[0], "edit": said("x"), "take": "t", "accept": True, **forged}
    before = view.viewer.dropped
    assert view.ask("override", **told) is None and view.viewer.dropped == before + 1
    assert not (view.path.parent / "takes").exists()


@pytest.mark.parametrize("name", ["../main", "a/b", "A", "x" * 65, "a\n", "$(x)"])
def test_a_name_that_is_a_path_or_worse_is_refused(view, name):
    for about in ("undo", "discard", "keep", "default"):
        assert "cannot name a take" in view.ask(about, take=name)["error"]
    assert "cannot name a take" in view.override(0, said("x"), name)["error"]
    assert view.ask("undo") is None and view.ask("default", take=["angry"]) is None


@pytest.mark.parametrize("edit", [
    {"form": "fields", "fields": [{"path": "__class__", "value": "x"}]}, {"form": "fields", "fields": [7]},
    {"form": "fault", "name": "reset", "options": {"after": {}}}, {"form": "fault", "name": "error", "options": {"class": "eval"}},
    {"form": "raw", "status": 200, "headers": [["a"]], "body": ""}, {"form": "raw", "status": 200, "headers": [[1, 2]], "body": ""},
    {"form": "raw", "status": 200, "headers": [["x", "a\r\nset-cookie: b"]], "body": ""},
    {"form": "value", "value": '{"<type>": "exception", "class": "os:system", "args": ["ls"]}'},
])  # fmt: skip
def test_a_well_typed_edit_that_means_nothing_is_an_error_and_nothing_is_written(view, edit):
    number = 1 if edit["form"] == "value" else 0
    assert view.override(number, edit, accept=True)["error"]
    assert not (view.path.parent / "takes").exists()
