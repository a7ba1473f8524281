"""What a view may ask of an export; what is forged is dropped."""

import threading

import pytest

from tape_jupyter.errors import NotExported
from tape_jupyter.jupyter import export
from tape_jupyter.session.session import TapeSession
from tape_jupyter.jupyter.viewer.server import Viewer

DONE = {"path": "/x/churn.tape.zip", "sha256": "ab", "differences": [], "bytes": 1, "cells": 1, "calls": 1, "guards": [],
        "redactions": [], "notes": []}  # fmt: skip


class Cells:
    def __init__(self, path):
        self.deck, self.path = TapeSession(), path

    def notebook(self):
        return self.path


class Fake:
    """An export that waits until it may go on, and ends as it is told."""

    def __init__(self, notebook, words):
        self.words, self.go, self.stopped = words, threading.Event(), False
        self.error = None

    def run(self, tell):
        Fake.last = self
        tell("packing", 1, 2)
        assert self.go.wait(20)
        if self.error is not None:
            raise self.error
        return DONE

    def stop(self):
        self.stopped = True


class Said(list):
    """What a view is told, from another thread."""

    def __init__(self):
        super().__init__()
        self.more = threading.Condition()

    def append(self, message):
        with self.more:
            super().append(message)
            self.more.notify_all()

    def until(self, state):
        def found():
            return [
                each for each in self if each.get("about") == "export" and each["state"] == state
            ]

        with self.more:
            assert self.more.wait_for(found, 20), self
            return found()[0]


@pytest.fixture
def view(tmp_path, monkeypatch):
    monkeypatch.setattr(export, "Export", Fake)
    (tmp_path / "churn.ipynb").write_text("{}")
    said = Said()
    view = Viewer(Cells(tmp_path / "churn.ipynb"), said.append)
    view.said = said
    yield view
    view.close()


def ask(view, about="export", **fields):
    answered = []
    view.receive({"type": "ask", "id": "1", "about": about, **fields}, answered.append)
    return answered[0] if answered else None


def test_it_is_begun_tells_its_steps_and_its_end_to_every_view(view):
    other = Said()
    beside = Viewer(view.cells, other.append)
    assert ask(view, look=True)["answer"]["state"] == "idle"
    assert ask(view, redact=True, path="out.tape.zip")["answer"]["state"] == "running"
    assert view.said.until("running")["step"] == "packing"
    assert Fake.last.words == ["out.tape.zip", "--redact"]
    assert "already running" in ask(view)["error"]
    assert ask(beside, look=True)["answer"]["done"] == 1
    ask(view, "export.stop")
    assert Fake.last.stopped
    Fake.last.go.set()
    done = view.said.until("done")
    assert done["path"] == "/x/churn.tape.zip" and "as last saved" in done["text"]
    assert other.until("done")["sha256"] == "ab"
    assert ask(view, look=True)["answer"]["state"] == "done"
    beside.close()


def test_what_is_in_the_way_comes_with_what_may_be_asked_for_instead(view):
    ask(view)
    Fake.last.error = NotExported("cell 3 differs ... tape export NB --allow-differences")
    Fake.last.go.set()
    failed = view.said.until("failed")
    assert (
        failed["differs"] and not failed["secret"] and failed["text"].startswith("cell 3 differs")
    )


@pytest.mark.parametrize(
    "fields", [{"path": 3}, {"path": "--sign"}, {"redact": "yes"}, {"no_index": 1}]
)
def test_what_no_view_of_ours_sends_is_dropped(view, fields):
    before = view.dropped
    assert ask(view, **fields) is None and view.dropped == before + 1
