"""What a view may ask of a stepped cell; what is forged is dropped and changes nothing. In kernels: kernel/test_step.py."""

import pytest

from tape_jupyter.errors import NotebookUnknown
from tape_jupyter.jupyter.step import command
from tape_jupyter.jupyter.viewer import step
from tape_jupyter.session.session import TapeSession
from tape_jupyter.jupyter.viewer.server import Viewer


class Cells:
    def __init__(self):
        self.deck, self.steps, self.reports = TapeSession(), None, []

    def cassette_path(self):
        raise NotebookUnknown("not known")


@pytest.fixture
def view():
    cells, said = Cells(), []
    view = Viewer(cells, said.append)
    view.said = said
    yield view
    view.close()
    command.forget_steps(cells)


def ask(view, about, **fields):
    view.said.clear()
    view.receive({"type": "ask", "id": "1", "about": about, **fields})
    return view.said[0] if view.said else None


def test_before_any_step_there_is_no_state_and_nothing_to_do(view):
    assert ask(view, "step")["answer"] is None
    assert "no cell is being stepped" in ask(view, "step.do", do="over")["error"]
    assert "no cell is being stepped" in ask(view, "step.frames", strand="")["error"]
    assert ask(view, "step.here")["answer"] == {}


def test_the_button_arms_a_cell(view):
    assert (
        ask(view, "step.arm", cell="c1", breaks=["tool"], record=False, take="mine")["answer"] == {}
    )
    armed = command.steps_of(view.cells).armed
    assert armed.cell == "c1" and armed.word.options == {
        "breaks": ("tool",),
        "record": False,
        "take": "mine",
    }
    assert (
        "own line"
        in ask(view, "step.arm", cell="", breaks=["print('x')"], record=False, take="")["error"]
    )
    assert (
        "cannot name a take"
        in ask(view, "step.arm", cell="", breaks=[], record=False, take="../x")["error"]
    )


@pytest.mark.parametrize(
    "fields",
    [
        {"do": "explode"}, {"do": ["over"]}, {"do": "over", "strand": 3}, {"do": "over", "revision": "1"},
        {"do": "over", "revision": True}, {"do": "edit"}, {"do": "edit", "edit": {"form": "raw"}}, {"do": "answer", "text": 1},
        {"do": "fault", "name": "x", "options": "y"}, {"do": "to", "place": {}},
    ],
)  # fmt: skip
def test_what_no_view_of_ours_sends_is_dropped(view, fields):
    before = view.dropped
    assert ask(view, "step.do", **fields) is None and view.dropped == before + 1


@pytest.mark.parametrize(
    ("about", "fields"),
    [
        ("step.variables", {"strand": "", "frame": "0"}), ("step.variables", {"strand": 1, "frame": 0}),
        ("step.compare", {"a": "", "b": ""}), ("step.arm", {"cell": 1}), ("step.arm", {"cell": "", "breaks": "tool"}),
        ("step.arm", {"cell": "", "breaks": [1], "record": False, "take": ""}),
        ("step.arm", {"cell": "", "breaks": [], "record": "yes", "take": ""}),
    ],
)  # fmt: skip
def test_so_are_other_forged_messages(view, about, fields):
    before = view.dropped
    answered = ask(view, about, **fields)
    assert (
        answered is None and view.dropped == before + 1
    ) or "no cell is being stepped" in answered["error"]


def test_every_word_of_the_protocol_is_known():
    from pathlib import Path

    protocol = (Path(__file__).parents[4] / "js" / "src" / "view" / "protocol.ts").read_text(
        encoding="utf-8"
    )
    words = protocol.partition("STEP_WORDS = [")[2].partition("]")[0]
    assert [word.strip(' "\n') for word in words.split(",") if word.strip()] == list(step.WORDS)
