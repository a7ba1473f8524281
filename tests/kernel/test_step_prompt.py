"""Stepping by typing: a terminal on a pty, and a front end that only answers prompts."""

import re
import sys
import types

import pytest

from tape_jupyter.jupyter.step.terminal import HELP, PROMPT, can_ask
from tests.harness.notebook import Kernel, notebook, typed_terminal
from tests.harness.provider import Provider
from tests.harness.stepped import ASK, LOAD

TWO = "a = ask('one'); b = ask('two ' + a); print('both', a[:3], b[:3])"


@pytest.fixture
def provider():
    with Provider() as provider:
        yield provider


class Typist:
    """A person at a terminal; `type` gives what is shown until the next prompt."""

    def __init__(self, child):
        self.child = child

    def cell(self, line, *, until):
        for each in (*line.splitlines(), "", ""):
            self.child.send(each + "\r")
        return self._until(until)

    def type(self, line, *, until=PROMPT):
        self.child.send(line + "\r")
        return self._until(until)

    def _until(self, until):
        self.child.expect(re.escape(until) if isinstance(until, str) else until)
        return self.child.before + self.child.after


def test_in_a_terminal_a_person_steps_looks_goes_back_edits_and_stops(tmp_path, provider):
    (tmp_path / "code.py").write_text(ASK.replace("URL", provider.url))
    with typed_terminal(tmp_path, {"TAPE_NOTEBOOK": str(tmp_path / "nb.ipynb")}) as child:
        person = Typist(child)
        person.type(LOAD, until="In [2]:")
        person.type("%run -i code.py", until="In [3]:")
        assert "both You You" in person.cell(f"%%tape record\n{TWO}", until="In [4]:")
        shown = person.cell(f"%%tape step\n{TWO}", until=PROMPT)
        assert (
            "stopped before call 1, model claude-sonnet-4-5 (from the tape)" in shown
            and "reply" in shown
        )
        assert "stopped before call 2" in person.type("n")
        assert "text = " in person.type("v 0")
        assert "code.py" in person.type("w")
        assert "> :2" in person.type("l")
        assert "You wrote " in person.type("r")
        assert "go on to the next breakpoint" in person.type("what")
        assert "there are calls 1 to 2" in person.type("j 9")
        assert "stopped before call 1" in person.type("b")
        shown = person.type("e sunny")
        assert "NOT on the tape" in shown
        assert re.search(r"recorded: .*two You.*\r?\n.*now: .*two sunny", shown), shown
        shown = person.type("a windy", until="In [5]:")
        assert "both sun win" in shown
        shown = person.cell(f"%%tape replay --take step\n{TWO}", until="In [6]:")
        assert "both sun win" in shown
        person.type("a = 'before'", until="In [7]:")
        person.cell(f"%%tape step\n{TWO}", until=PROMPT)
        person.type("n")
        assert "as they were before the cell" in person.type("s", until="In [8]:")
        assert "before" in person.type("print(a)", until="In [9]:")


def test_a_front_end_that_only_answers_prompts_is_asked_there(tmp_path, provider):
    notebook(tmp_path / "nb.ipynb", LOAD)
    with Kernel(tmp_path, {"TAPE_NOTEBOOK": str(tmp_path / "nb.ipynb")}) as kernel:
        for code in (LOAD, ASK.replace("URL", provider.url), f"%%tape record\n{TWO}"):
            assert kernel.execute(code).ok
        asked = kernel.send(f"%%tape step\n{TWO}", allow_stdin=True)
        for line in ("n", "q", "d 1 2", "f rate_limit"):
            assert kernel.answer(line) == (PROMPT, False)
        ran = kernel.collect(asked)
        assert ran.ename == "HTTPError" and "429" in ran.evalue and "two You wrote" in ran.stdout
        assert kernel.execute("1 + 1").result == "2"


def test_who_can_be_asked(monkeypatch):
    kernel = types.SimpleNamespace(_allow_stdin=False)
    shell = types.SimpleNamespace(kernel=kernel)
    assert not can_ask(shell)
    kernel._allow_stdin = True
    assert can_ask(shell)
    monkeypatch.setattr(sys, "stdin", None)
    assert not can_ask(types.SimpleNamespace(kernel=None))
    assert can_ask(types.SimpleNamespace(kernel=None, prompt_for_code=print))


def test_the_help_names_every_command():
    assert all(
        f"  {word}" in HELP
        for word in ("n, Enter", "m, t", "j PLACE", "e TEXT", "live", "r, q", "d A B")
    )
