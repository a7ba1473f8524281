"""A command that waits for a kernel ends, whatever becomes of the kernel, and says so in a line."""

import importlib
import json
import os
import signal
import socket
import subprocess
import sys

import nbformat
import pytest
from jupyter_client.connect import LocalPortCache

from tape_jupyter.headless import kernel, run as headless_run
from tape_jupyter.errors import TapeUsageError
from tests.harness.notebook import clean_env, notebook


@pytest.fixture(autouse=True)
def newcomer(tmp_path, monkeypatch):
    for name, value in clean_env(tmp_path).items():
        monkeypatch.setenv(name, value)


def nobody(*_):
    """Hears nothing."""


def statuses(path):
    return [
        (run.status, *run.messages[:1])
        for run in headless_run.record_notebook(path, nobody, nobody)[0]
    ]


def of_kernel(path, home, *argv):
    """Have the notebook name a kernel that is this command."""
    spec = home / ".home" / "data" / "kernels" / "broken"
    spec.mkdir(parents=True)
    (spec / "kernel.json").write_text(
        json.dumps({"argv": argv, "display_name": "broken", "language": "python"})
    )
    node = nbformat.read(path, as_version=4)
    node.metadata["kernelspec"]["name"] = "broken"
    nbformat.write(node, path)


def tape(*words):
    return [sys.executable, "-m", "tape_jupyter", *map(str, words)]


def test_a_kernel_that_dies_while_it_starts_is_one_line(tmp_path):
    path = notebook(tmp_path / "n.ipynb", "print(1)")
    of_kernel(path, tmp_path, sys.executable, "-c", "raise SystemExit(3)")
    done = subprocess.run(tape("record", path), capture_output=True, text=True, check=False)
    said = [line for line in done.stderr.splitlines() if line.strip()]
    assert done.returncode == 2 and len(said) == 1, done.stderr
    assert (
        "its kernel (broken) did not start: Kernel died" in said[0] and "Nothing was run" in said[0]
    )


def test_what_processes_of_a_notebook_print_is_in_its_outputs_and_not_in_the_commands(tmp_path):
    path = notebook(tmp_path / "n.ipynb", "import os\nstatus = os.system('echo printed')")
    done = subprocess.run(tape("record", path, "--json"), capture_output=True, check=True)
    assert json.loads(done.stdout)["ok"]
    assert b"\nprinted\n" not in done.stdout + done.stderr


def test_a_kernel_whose_port_another_program_took_is_started_again(tmp_path, monkeypatch):
    find = LocalPortCache.find_available_port
    asked = []

    def race(self, ip):
        asked.append(ip)
        return held.getsockname()[1] if len(asked) == 1 else find(self, ip)

    monkeypatch.setattr(LocalPortCache, "find_available_port", race)
    with socket.create_server(("127.0.0.1", 0)) as held:
        assert statuses(notebook(tmp_path / "n.ipynb", "print(1)")) == [("ok",)]
    assert len(asked) == 10, "five ports of each of two kernels"


@pytest.mark.slow
def test_a_kernel_none_of_whose_ports_is_ever_free_is_one_line(tmp_path, monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as held:
        taken = held.getsockname()[1]
        monkeypatch.setattr(LocalPortCache, "find_available_port", lambda *_: taken)
        with pytest.raises(TapeUsageError, match="did not start: Kernel died"):
            headless_run.record_notebook(notebook(tmp_path / "n.ipynb", "print(1)"), nobody, nobody)


def test_a_kernel_that_never_says_that_it_is_there_is_not_waited_for(tmp_path, monkeypatch):
    monkeypatch.setattr(kernel, "READY", 2)
    path = notebook(tmp_path / "n.ipynb", "print(1)")
    of_kernel(path, tmp_path, sys.executable, "-c", "import time; time.sleep(600)")
    with pytest.raises(TapeUsageError, match="did not start: Kernel didn't respond in 2 seconds"):
        headless_run.record_notebook(path, nobody, nobody)


def test_standard_input_is_at_its_end_and_a_kernel_that_ends_amid_a_cell_fails_it(tmp_path):
    path = notebook(
        tmp_path / "n.ipynb",
        "import os, subprocess, sys\nprint([sys.stdin.read(), subprocess.run(['cat'], capture_output=True).stdout])",
        "os._exit(3)",
        "print('never')",
    )
    assert statuses(path) == [("ok",), ("failed", "DeadKernelError: Kernel died"), ("not run",)]
    assert nbformat.read(path, as_version=4).cells[0].outputs[0].text == "['', b'']\n"


def test_input_that_nobody_can_give_fails_the_cell(tmp_path):
    path = notebook(tmp_path / "n.ipynb", "name = input('who? ')", "print(name)")
    (first, said), second = statuses(path)
    assert (
        first == "failed" and said.startswith("StdinNotImplementedError") and second == ("not run",)
    )


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="no process can be stopped here")
def test_a_kernel_that_stands_still_is_given_up(tmp_path, monkeypatch):
    monkeypatch.setattr(kernel, "SILENCE", 2.0)
    path = notebook(
        tmp_path / "n.ipynb",
        "import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)",
        "print('never')",
    )
    (first, said), second = statuses(path)
    assert first == "failed" and said.startswith("DeadKernelError") and second == ("not run",)


@pytest.mark.spread(2)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_command_that_is_ended_keeps_what_ran_and_takes_its_kernel_with_it(tmp_path, number):
    path = notebook(
        tmp_path / "n.ipynb",
        "import os, time\nprint(os.getpid())",
        f"open({str(tmp_path / 'here')!r}, 'w').close(); time.sleep(600)",
    )
    os.mkfifo(tmp_path / "here")
    running = subprocess.Popen(tape("record", path), stderr=subprocess.PIPE, text=True)
    (tmp_path / "here").open().close()  # the second cell runs
    running.send_signal(number)
    said = running.communicate()[1]
    assert (
        running.returncode == 130
        and said.splitlines()[-1] == "tape: interrupted"
        and "Traceback" not in said
    ), said
    pid = int(nbformat.read(path, as_version=4).cells[0].outputs[0].text)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_what_is_asked_of_a_kernel_with_another_version_has_the_same_names_for_ever():
    """A bundle's kernel has the tape-jupyter that recorded it: these names are as good as a format."""
    asked = [
        ("tape_jupyter.session.session", "get"),
        ("tape_jupyter.jupyter.magics", "loaded"),
        ("tape_jupyter.bundle.proof.collection", "begin"),
        ("tape_jupyter.bundle.proof.collection", "told"),
        ("tape_jupyter.jupyter.rerun.followed", "follow"),
        ("tape_jupyter", "load_ipython_extension"),
    ]
    for module, name in asked:
        assert callable(getattr(importlib.import_module(module), name))
    assert {"session_mode", "take_remarks"} <= set(dir(importlib.import_module(asked[0][0]).get()))


LINGERS = """import time
session = get_ipython().kernel.session
send = session.send
def answer_and_linger(stream, kind, *words, **more):
    sent = send(stream, kind, *words, **more)
    if kind == "execute_reply":
        time.sleep(1)
    return sent
session.send = answer_and_linger"""


@pytest.mark.slow
def test_a_kernel_that_lingers_after_its_answer_is_not_interrupted(tmp_path):
    """It ended with `KeyboardInterrupt caught in kernel.` on stderr: its shutdown begins with an interrupt."""
    path = notebook(tmp_path / "n.ipynb", LINGERS)
    done = subprocess.run(tape("record", path), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "KeyboardInterrupt" not in done.stderr, done.stderr
