"""What a view may ask of an import: a notebook beside this one, made by `tape import` in a process of its own."""

import json
import threading

import pytest

from tape_jupyter.jupyter.viewer.server import Viewer
from tape_jupyter.session.session import TapeSession

HAR = {
    "log": {
        "version": "1.2",
        "creator": {"name": "x", "version": "1"},
        "entries": [
            {
                "startedDateTime": "2026-01-01T00:00:00Z",
                "time": 5,
                "request": {
                    "method": "GET",
                    "url": "https://example.com/a",
                    "headers": [],
                    "queryString": [],
                },
                "response": {
                    "status": 200,
                    "statusText": "OK",
                    "headers": [],
                    "content": {"size": 2, "mimeType": "text/plain", "text": "hi"},
                },
            }
        ],
    }
}


class Cells:
    def __init__(self, path):
        self.deck, self.path = TapeSession(), path

    def notebook(self):
        return self.path


@pytest.fixture
def view(tmp_path):
    (tmp_path / "churn.ipynb").write_text("{}")
    ended, said = threading.Event(), []

    def hear(message):
        said.append(message)
        if message.get("about") == "import" and message.get("state") in ("done", "failed"):
            ended.set()

    made = Viewer(Cells(tmp_path / "churn.ipynb"), hear)
    made.said, made.ended = said, ended
    yield made
    made.close()


def ask(view, **fields):
    answered = []
    view.receive({"type": "ask", "id": "1", "about": "import", **fields}, answered.append)
    return answered[0] if answered else None


def test_a_file_becomes_a_notebook_beside_this_one_and_nothing_is_overwritten(view, tmp_path):
    (tmp_path / "traces").mkdir()
    (tmp_path / "traces" / "trace.har").write_text(json.dumps(HAR))
    (tmp_path / "trace.ipynb").write_text("mine")
    assert ask(view, look=True)["answer"]["files"] == ["traces/trace.har"]
    assert ask(view, file="traces/trace.har")["answer"]["state"] == "running"
    assert view.ended.wait(60)
    end = view.said[-1]
    assert (end["state"], end["path"]) == ("done", "trace-2.ipynb"), end
    assert "1 run, 1 call" in end["text"] and (tmp_path / "trace-2.ipynb").exists()
    assert (tmp_path / "trace.ipynb").read_text() == "mine"


def test_what_is_in_the_way_is_said(view, tmp_path):
    assert "there is no such file" in ask(view, file="gone.json")["error"]
    assert "name the file" in ask(view, file=" ")["error"]
    assert ask(view, file="--from") is None, "what no view of ours sends is dropped"
    (tmp_path / "notes.json").write_text('{"a": 1}')
    ask(view, file="notes.json")
    assert view.ended.wait(60)
    assert view.said[-1]["state"] == "failed" and "notes.json" in view.said[-1]["text"]
