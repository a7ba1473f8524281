"""Who answers a stepped cell, and the Step button: found out before anything runs. No kernel; with one: kernel/test_step.py."""

import threading
import types

import pytest

from tape_jupyter.errors import TapeUsageError
from tape_jupyter.jupyter import labextension
from tape_jupyter.jupyter.step import command
from tape_jupyter.session.session import TapeSession
from tape_jupyter.jupyter.step.terminal import Prompt
from tape_jupyter.jupyter.step.command import StepRequest, Steps
from tape_jupyter.session.options import Word


class Cells:
    def __init__(self, *, stdin):
        self.deck, self.steps = TapeSession(), None
        self.shell = types.SimpleNamespace(kernel=types.SimpleNamespace(_allow_stdin=stdin))


@pytest.fixture
def nobody(monkeypatch):
    monkeypatch.setattr(labextension, "has_pages", lambda: False)


def test_a_page_that_answers_is_who_is_asked_however_late_its_way_is_made(monkeypatch):
    knocks = []

    def knock(name, answered):
        knocks.append(name)
        if len(knocks) == 2:
            threading.Thread(target=answered).start()

    monkeypatch.setattr(labextension, "has_pages", lambda: True)
    monkeypatch.setattr(labextension, "knock", knock)
    prepared = Steps(Cells(stdin=True)).prepare(Word("step"))
    assert prepared.reach.name == "page" and knocks == ["step-1", "step-1"]


def test_a_page_that_is_silent_is_not_waited_for_longer_than_patience(monkeypatch):
    monkeypatch.setattr(labextension, "has_pages", lambda: True)
    monkeypatch.setattr(labextension, "knock", lambda *_: None)
    monkeypatch.setattr(command, "AGAIN", 0.001)
    monkeypatch.setattr(command, "PATIENCE", 0.003)
    assert isinstance(Steps(Cells(stdin=True)).prepare(Word("step")).reach, Prompt)


@pytest.mark.usefixtures("nobody")
def test_without_a_page_the_prompt_is_asked_and_without_one_it_is_refused():
    assert isinstance(Steps(Cells(stdin=True)).prepare(Word("step")).reach, Prompt)
    with pytest.raises(TapeUsageError, match="needs a viewer or an input prompt"):
        Steps(Cells(stdin=False)).prepare(Word("step"))


@pytest.mark.usefixtures("nobody")
def test_replies_come_at_once_and_edits_go_to_a_take():
    steps = Steps(Cells(stdin=True))
    prepared = steps.prepare(
        Word("step", None, {"breaks": ("tool",), "record": False, "take": "mine"})
    )
    assert prepared.mode == "replay" and prepared.options == {
        "take": "mine",
        "pace": "instant",
        "step": True,
    }
    assert (
        steps.prepare(Word("step", None, {"record": True, "pace": "order"})).options["pace"]
        == "order"
    )
    assert steps.prepare(Word("step", None, {"record": True})).mode == "record"


def test_the_button_steps_the_next_execution_of_its_cell_once():
    steps = Steps(Cells(stdin=False))
    steps.arm(StepRequest("c1", Word("step", None, {"breaks": ("error",)})))
    own = Word("replay", "other", {"live": ["llm"], "strict": True})
    assert steps.override_word("c2", own) is own
    stepped = steps.override_word("c1", own)
    assert (stepped.mode, stepped.name, stepped.options) == (
        "step",
        "other",
        {"strict": True, "breaks": ("error",)},
    )
    assert steps.override_word("c1", own) is own
    steps.arm(StepRequest("", Word("step")))
    assert steps.override_word("c9", None).mode == "step"
    with pytest.raises(TapeUsageError, match="own line"):
        steps.arm(StepRequest("", Word("step", None, {"breaks": ("1 + 1 == 2",)})))


def test_only_a_view_that_is_open_is_told():
    told = []
    view = types.SimpleNamespace(
        closed=False, send_update=lambda about, **body: told.append((about, body))
    )
    steps = command.steps_of(Cells(stdin=False))
    assert steps.watch(view) is None and steps.watch(view) is None
    steps.send_state({"revision": 1})
    assert told == [("step", {"revision": 1})]
    with pytest.raises(TapeUsageError, match="no cell is being stepped"):
        steps.require()
    command.forget_steps(steps.cells)
