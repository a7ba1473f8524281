"""`input()` and `getpass()` in any Python program: asked once, and in replay never. (Kernels: kernel/test_typed.py.)"""

import builtins
import getpass
import io
import os
import pdb
import subprocess
import sys

import pexpect
import pytest

import tape_jupyter as tape
from tape_jupyter.session import session
from tests.harness.notebook import ROOT
from tests.harness.taped_cells import on_tape


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a.tape.yaml"


def type_in(monkeypatch, text):
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))
    monkeypatch.setattr(sys, "stdout", io.StringIO())


def test_an_answer_is_recorded_and_given_again_without_asking(path, monkeypatch):
    type_in(monkeypatch, "Ada\n7\n")
    with tape.recording(path):
        live = input("Name: "), int(input())
    type_in(monkeypatch, "")
    with tape.replaying(path):
        assert (input("Name: "), int(input())) == live == ("Ada", 7)
    assert [call.request().arguments for call in on_tape(path).calls] == [
        {"prompt": "Name: "},
        {"prompt": ""},
    ]


def test_the_end_of_input_is_an_answer_too(path, monkeypatch):
    type_in(monkeypatch, "")
    with tape.recording(path), pytest.raises(EOFError):
        input("Name: ")
    type_in(monkeypatch, "Ada\n")
    with tape.replaying(path), pytest.raises(EOFError):
        input("Name: ")


def test_untaped_input_asks_as_ever_and_the_taps_leave_no_trace(monkeypatch):
    session.get().set_session("live")
    type_in(monkeypatch, "Ada\n")
    assert input("Name: ") == "Ada" and input.__name__ == "input"
    session.get().set_session("off")
    assert type(builtins.input).__name__ == "builtin_function_or_method"


def test_what_a_debugger_asks_is_no_call_of_the_program(path, monkeypatch):
    def program():
        return input("Name: ")

    def debugged():
        debugger = pdb.Pdb(nosigint=True, readrc=False)
        debugger.use_rawinput = 1
        return debugger.runcall(program)

    type_in(monkeypatch, "p 1 + 1\nc\nAda\n")
    with tape.recording(path):
        assert debugged() == "Ada"
    type_in(monkeypatch, "p 1 + 1\nc\n")
    with tape.replaying(path):
        assert debugged() == "Ada"
    assert len(on_tape(path).calls) == 1


PROGRAM = """
import sys
from getpass import getpass  # before the taps
import tape_jupyter as tape

path, mode = sys.argv[1:]
with (tape.recording if mode == "record" else tape.replaying)(path):
    key = getpass("Service key: ")
print(len(key) > 8, key == "correct-horse-battery")
"""


def test_a_terminal_is_asked_for_a_secret_once_and_the_secret_is_written_nowhere(path, tmp_path):
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    child = pexpect.spawn(
        sys.executable, [str(script), str(path), "record"], encoding="utf-8", timeout=30, env=_env()
    )
    child.expect("Service key: ")
    child.waitnoecho()
    child.sendline("correct-horse-battery")
    child.expect("True True")
    child.expect(pexpect.EOF)
    child.close()
    assert "correct-horse" not in path.read_text() and "SERVICE_KEY" in path.read_text()
    done = subprocess.run(
        [sys.executable, script, path, "replay"],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, env=_env(), timeout=60, check=False,
    )  # fmt: skip
    assert done.stdout.strip() == "True False", done.stderr


def _env():
    return {**os.environ, "PYTHONPATH": str(ROOT)}


def test_a_secret_that_was_typed_while_nothing_was_taped_is_a_placeholder_in_replay(
    path, monkeypatch
):
    type_in(monkeypatch, "Ada\n")
    with tape.recording(path):
        input("Name: ")
    monkeypatch.setattr(sys, "stdin", None)
    with tape.replaying(path) as block:
        assert input("Name: ") == "Ada"
        assert getpass.getpass("Never asked: ").startswith("tape-")
    assert block.report.misses == []
