"""The Python side of a view: answers what it asks, drops what is forged, and tells what happens as it happens."""

import json
import threading
from types import SimpleNamespace

import pytest

from tape_jupyter.cassette.cassette import Cassette
from tape_jupyter.cassette import paths
from tape_jupyter.jupyter.viewer import server as viewer, live
from tape_jupyter.jupyter.line_taker import LineTaker
from tape_jupyter.session.session import TapeSession
from tape_jupyter.jupyter.viewer.server import Forged, Viewer
from tape_jupyter.session.options import Word
from tests.harness.provider import Provider
from tests.harness.spanned import Recording, answered, asked, tool
from tests.harness.taped_cells import ask, taped


class Shell:
    """As much of a shell's hooks as a view asks for: a notebook, a deck, what ran so far."""

    def __init__(self, folder):
        self.deck, self.folder, self.reports = TapeSession(), folder, []
        self.shell = SimpleNamespace(
            history_manager=SimpleNamespace(input_hist_raw=[]), input_transformers_cleanup=[]
        )
        self.taker = LineTaker(self.shell)

    history, mode_typed = None, False

    def notebook(self, raw=""):
        return self.folder / "n.ipynb"

    notebook_or_none = notebook

    def cassette_path(self, name=paths.MAIN):
        return paths.cassette_path(self.notebook(), name)

    def cassette_names(self):
        return paths.cassette_names(self.notebook())

    def set_session(self, word: Word):
        self.deck.set_session(word.mode, word.options)
        return ""


@pytest.fixture
def cells(tmp_path):
    made = Shell(tmp_path)
    yield made
    made.deck.set_session("off")


class View:
    """A page: what it was sent, and ways to wait for it."""

    def __init__(self, cells):
        self.heard, self.news = [], threading.Condition()
        self.viewer = Viewer(cells, self._take)

    def _take(self, message):
        json.dumps(message, allow_nan=False)
        with self.news:
            self.heard.append(message)
            self.news.notify_all()

    def ask(self, about, **body):
        before = len([m for m in self.heard if m["type"] == "answer"])
        self.viewer.receive({"type": "ask", "id": str(before), "about": about, **body})
        answers = [message for message in self.heard if message["type"] == "answer"][before:]
        return answers[0].get("answer", answers[0].get("error")) if answers else None

    def until(self, wanted):
        """The first tell that is wanted."""
        with self.news:
            assert self.news.wait_for(lambda: any(map(wanted, self.tells())), timeout=30), (
                self.heard
            )
        return next(filter(wanted, self.tells()))

    def tells(self):
        return [message for message in self.heard if message["type"] == "tell"]


@pytest.fixture
def view(cells):
    made = View(cells)
    yield made
    made.viewer.close()


def recorded(folder, name="main"):
    tape = Recording(folder / "n.tapes" / f"{name}.tape.yaml")
    tape.run(title="classify")
    tape.add(asked("which mood?"), answered("negative"))
    tape.add(*tool("look", {"name": "Ada"}, id=7))
    tape.end()
    return tape


def test_a_notebook_without_a_tape_is_empty_and_says_where_it_would_lie(view):
    session = view.ask("session")
    assert (session["cassette"], session["totals"]["spans"], session["running"]) == (
        "main",
        0,
        None,
    )
    page = view.ask("spans", **{"from": 0, "limit": 5000})
    assert page["total"] == 0 and page["id"] == []


def test_rows_then_one_span_then_its_bytes(view, tmp_path):
    recorded(tmp_path)
    page = view.ask("spans", **{"from": 0, "limit": 5000})
    assert page["name"] == ["[2] classify", '"negative"', "look(id=7)"]
    call = page["id"][1]
    assert view.ask("detail", span=call)["turns"][1]["parts"] == [
        {"type": "text", "text": "negative"}
    ]
    assert (
        "negative" in view.ask("raw", span=call, side="reply", **{"from": 0, "size": 1000})["text"]
    )
    assert view.ask("candidates", span=call) == {"spans": []}
    assert view.ask("find", words="NEGATIVE", **{"from": 0}) == {
        "spans": [call],
        "next": None,
        "total": 3,
    }
    assert view.ask("select", span=call, cell="x") == {} and view.viewer.selected == call
    assert "nothing to compare" in view.ask("diff", span=call, other="base")
    assert "no bytes of its own" in view.ask("raw", span=page["id"][0], side="reply")


def test_pages_of_as_many_rows_as_were_asked_for(view, tmp_path):
    tape = Recording(tmp_path / "n.tapes" / "main.tape.yaml")
    tape.run()
    for number in range(250):
        tape.add(*tool("look", number, n=number))
    names, start, total = [], 0, 1
    while start < total:
        page = view.ask("spans", **{"from": start, "limit": 100})
        assert 0 < len(page["id"]) <= 100 and page["from"] == start
        names, start, total = names + page["name"], start + len(page["id"]), page["total"]
    assert len(names) == 251 and names[-1] == "look(n=249)"


FORGED = [
    None, 7, "ask", [], {}, {"type": "ask"}, {"type": "ask", "id": 1, "about": "session"},
    {"type": "ask", "id": "1", "about": "nonsense"}, {"type": "ask", "id": "1", "about": "__class__"},
    {"type": "answer", "id": "1", "about": "session"}, {"type": "ask", "id": "1", "about": ["session"]},
    {"type": "ask", "id": "1", "about": "detail"}, {"type": "ask", "id": "1", "about": "detail", "span": {"a": 1}},
    {"type": "ask", "id": "1", "about": "raw", "span": "x", "side": "both"},
    {"type": "ask", "id": "1", "about": "find", "words": ["x"], "from": 0},
    {"type": "ask", "id": "1", "about": "spans", "from": -1}, {"type": "ask", "id": "1", "about": "spans", "from": True},
    {"type": "ask", "id": "1", "about": "spans", "from": "0"}, {"type": "ask", "id": "1", "about": "mode", "mode": "rm -rf"},
    {"type": "ask", "id": "1", "about": "spans", "limit": 2**70}, {"type": "ask", "id": "x" * 100_000, "about": "session"},
]  # fmt: skip


def test_forged_messages_are_dropped_and_counted(view, tmp_path):
    recorded(tmp_path)
    for number, message in enumerate(FORGED, start=1):
        view.viewer.receive(message)
        assert (view.viewer.dropped, view.heard) == (number, [])
    assert view.ask("session")["mode"] == "off"


def test_a_span_that_is_gone_is_told_and_a_forged_one_is_no_entry(view, tmp_path):
    tape = recorded(tmp_path)
    assert "no span r-gone/12345678 here" in view.ask("detail", span="r-gone/12345678")
    for span in ("r-gone/12345678", "", None, 7, f"{tape.name}/nope"):
        with pytest.raises(Forged):
            view.viewer.entry(span)
    assert (
        view.viewer.entry(f"{tape.name}/{tape.cassette.calls[0].id}").id
        == tape.cassette.calls[0].id
    )


def test_another_cassette_and_a_take_are_opened_by_name_never_by_path(view, tmp_path):
    tape = recorded(tmp_path)
    recorded(tmp_path, "other")
    tape.cassette.override(tape.cassette.calls[0], reply=answered("glad"), take="glad")
    session = view.ask("open", cassette="main", take="glad")
    assert (session["cassette"], session["take"], session["cassettes"]) == (
        "main",
        "glad",
        ["main", "other"],
    )
    assert [(take["name"], take["of"], take["overrides"]) for take in session["takes"]] == [
        ("glad", "main", 1)
    ]
    assert '"glad"' in view.ask("spans", **{"from": 0, "limit": 10})["name"]
    assert view.ask("open", cassette="other", take="")["cassette"] == "other"
    assert "has no take" in view.ask("open", cassette="main", take="none")
    assert "cannot name" in view.ask("open", cassette="../../etc", take="")


def test_the_mode_is_set_as_the_magic_sets_it_but_never_beneath_a_running_cell(
    view, cells, tmp_path
):
    assert view.ask("mode", mode="record")["mode"] == "record"
    view.until(lambda told: told["about"] == "changed")
    with taped(cells.deck, "record", tmp_path / "n.tapes" / "main.tape.yaml"):
        assert "a taped cell is running" in view.ask("mode", mode="off")
        assert cells.deck.session_mode == "record"


def test_a_cell_that_has_not_asked_yet_is_said_to_run(view, cells, tmp_path):
    with taped(cells.deck, "record", paths.cassette_path(tmp_path / "n.ipynb")):
        told = view.until(lambda told: told["about"] == "changed" and told["running"] is not None)
        assert (told["running"]["mode"], told["running"]["calls"]) == ("record", 0)
    view.until(lambda told: told["about"] == "changed" and told["running"] is None)


def test_a_cell_that_ends_while_the_session_is_read_is_not_said_to_run(
    view, cells, tmp_path, monkeypatch
):
    """It counted on for ever in the sidebar: its end was looked at before the answer went out."""
    reading, ended, path = threading.Event(), threading.Event(), paths.cassette_path(tmp_path / "n")
    root_of = viewer.files.cassette_of

    def slow(given):
        reading.set()
        assert ended.wait(30)
        return root_of(given)

    with taped(cells.deck, "record", path):
        view.until(lambda told: told["about"] == "changed" and told["running"] is not None)
        monkeypatch.setattr(viewer.files, "cassette_of", slow)
        asking = threading.Thread(target=view.ask, args=["session"])
        asking.start()
        assert reading.wait(30)
        monkeypatch.setattr(viewer.files, "cassette_of", root_of)
    view.until(lambda told: told["about"] == "changed" and told["running"] is None)
    ended.set()
    asking.join()
    assert view.heard[-1]["type"] == "answer" and view.heard[-1]["answer"]["running"] is None


def test_the_end_of_a_cell_is_told_though_somebody_asked_before_it_was(
    view, cells, tmp_path, monkeypatch
):
    """The bars ask on the line that the sidebar hears on: their answer is not its own."""
    with taped(cells.deck, "record", paths.cassette_path(tmp_path / "n.ipynb")):
        view.until(lambda told: told["about"] == "changed" and told["running"] is not None)
        look = view.viewer.send_changes
        monkeypatch.setattr(view.viewer, "send_changes", lambda: None)
    assert view.ask("session")["running"] is None
    view.heard.clear()
    monkeypatch.setattr(view.viewer, "send_changes", look)
    cells.deck.changed()
    view.until(lambda told: told["about"] == "changed" and told["running"] is None)


def test_while_a_cell_records_its_spans_appear_as_they_happen(view, cells, tmp_path):
    view.ask("spans", **{"from": 0, "limit": 5000})
    path = paths.cassette_path(tmp_path / "n.ipynb")
    with Provider() as provider, taped(cells.deck, "record", path, source="# ask\nx"):
        for text in ("one", "two"):
            ask(provider, text)
            told = view.until(lambda told: text in str((told.get("page") or {"name": ""})["name"]))
            assert told["running"]["mode"] == "record" and told["page"]["total"] == told["total"]
    done = view.until(lambda told: told["running"] is None and told["page"])
    assert (
        done["page"]["from"] == 0 and len(done["page"]["id"]) == 3 and 5 not in done["page"]["mark"]
    )


def test_a_view_that_has_rows_gets_only_those_that_are_new(view, cells, tmp_path):
    recorded(tmp_path)
    assert view.ask("spans", **{"from": 0, "limit": 5000})["total"] == 3
    with (
        Provider() as provider,
        taped(cells.deck, "record", paths.cassette_path(tmp_path / "n.ipynb"), source="y"),
    ):
        ask(provider, "new")
        told = view.until(lambda told: "new" in str((told.get("page") or {"name": ""})["name"]))
        assert told["page"]["from"] >= 3


def test_a_call_that_runs_is_shown_before_it_is_answered(view, cells, tmp_path):
    view.ask("spans", **{"from": 0, "limit": 5000})
    deck, path = cells.deck, paths.cassette_path(tmp_path / "n.ipynb")
    with Provider() as provider, taped(deck, "record", path, source="z") as running:
        cell = running.cell
        ask(provider, "first")
        from tape_jupyter.core.call import Request, Where
        from tape_jupyter.cassette.match_key import MatchedRequest
        from tape_jupyter.session.http_recorder import HttpCapture

        request = Request(
            "POST",
            "https://api.anthropic.com/v1/messages?key=sk-ant-api03-1234567890abcdefg",
            (),
            b"{}",
        )
        where = Where(cell.recording.run, "", (), "")
        HttpCapture(
            cell,
            deck.secrets,
            MatchedRequest("ab" * 16, json={"model": "claude-x"}),
            "model",
            where,
            request,
        )
        told = view.until(lambda told: "claude-x" in str((told.get("page") or {}).get("note")))
        assert told["page"]["mark"][-1] == 5 and "sk-ant" not in json.dumps(told)


def test_a_view_that_was_closed_is_told_nothing_and_its_thread_ends(cells):
    made = View(cells)
    made.viewer.close()
    cells.deck.changed()
    assert made.viewer not in live.updates_of(cells.deck)._views and not cells.deck.watchers
    made.viewer.send_update("changed")
    assert made.heard == []


def test_recording_waits_for_no_view(cells, tmp_path, monkeypatch):
    """What a call does for those who watch is to set an event."""
    stuck, release = threading.Event(), threading.Event()

    def look(self):
        stuck.set()
        release.wait(30)

    monkeypatch.setattr(Viewer, "send_changes", look)
    made = View(cells)
    try:
        with Provider() as provider, taped(cells.deck, "record", tmp_path / "main.tape.yaml"):
            ask(provider, "one")
            assert stuck.wait(30)
            ask(provider, "two")
        assert len(Cassette.open(tmp_path / "main.tape.yaml").calls) == 2
    finally:
        release.set()
        made.viewer.close()


def test_a_cassette_that_cannot_be_read_is_a_note_and_an_error_of_what_is_asked(view, tmp_path):
    path = recorded(tmp_path).cassette.path
    path.write_text("no tape at all\n")
    assert "main.tape.yaml" in view.ask("session")["notes"][0]
    assert "main.tape.yaml" in view.ask("spans", **{"from": 0, "limit": 10})


def test_an_answer_of_a_module_to_come_is_registered_by_name(view, monkeypatch):
    monkeypatch.setitem(viewer.ANSWERS, "hello", viewer.ANSWERS.get("hello"))
    viewer.answers("hello")(lambda viewer, message: {"said": message["word"]})
    assert view.ask("hello", word="x") == {"said": "x"}
    assert "KeyError" in view.ask("hello")
