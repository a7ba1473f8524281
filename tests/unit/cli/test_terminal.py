"""Nothing of a recording or a notebook acts on the terminal that it is shown on; a pipe gets every byte."""

import os
import re
import subprocess
import sys

import pytest

from tests.harness.notebook import clean_env, notebook
from tests.harness.tapes import churn

ACTS = re.compile(r"\x1b(?!\[[0-9;]*m)|[\x07\x9b\u202e]")
EVIL = r"\u001b]0;evil\u0007\u202e\u009b2J\u001b[2J"


@pytest.fixture
def hostile(tmp_path):
    """A notebook's cassette whose models are named so that they would act."""
    path = churn(tmp_path)
    named = re.compile(r'model: "?([\w.-]+)"?')
    path.write_text(named.sub(lambda found: f'model: "{EVIL}{found[1]}"', path.read_text()))
    path.with_name("other.tape.yaml").write_text(churn(tmp_path / "other").read_text())
    return path


def shown(words, folder, stream="stdout"):
    """What a terminal gets of it. (On stderr progress is drawn, which moves the cursor.)"""
    ours, theirs = os.openpty()
    env = clean_env(folder) | {"TERM": "xterm", "COLUMNS": "200"}
    command = [sys.executable, "-m", "tape_jupyter", *words]
    streams = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, stream: theirs}
    with subprocess.Popen(command, cwd=folder, env=env, **streams) as process:
        os.close(theirs)
        told = b""
        while True:
            try:
                told += os.read(ours, 65536)
            except OSError:  # Linux's word for the end
                break
            if process.poll() is not None and not told:
                break
    os.close(ours)
    return told.decode("utf-8", "replace")


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="needs a terminal")
@pytest.mark.parametrize(
    "words",
    [["show"], ["show", "CALL"], ["calls"], ["gaps"], ["diff", "B"]],
    ids=lambda words: " ".join(words),
)
def test_a_terminal_is_not_acted_on(hostile, words):
    call = re.search(r'\ncall: "?([\w-]+)', hostile.read_text())[1]
    named = {"CALL": call, "B": str(hostile.with_name("other.tape.yaml"))}
    told = shown([words[0], str(hostile), *(named[word] for word in words[1:])], hostile.parent)
    assert "Traceback" not in told and told.strip()
    assert not ACTS.findall(told), ACTS.findall(told)


def test_a_pipe_gets_what_was_recorded(hostile):
    words = ["diff", str(hostile), str(hostile.with_name("other.tape.yaml"))]
    done = subprocess.run(
        [sys.executable, "-m", "tape_jupyter", *words],
        env=clean_env(hostile.parent), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "\x1b]0;evil\x07" in done.stdout


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="needs a terminal")
def test_a_notebooks_own_cells_do_not_act_either(tmp_path):
    (tmp_path / "n.tapes").mkdir()
    (tmp_path / "n.tapes" / "main.tape.yaml").write_bytes(churn(tmp_path / "x").read_bytes())
    path = notebook(tmp_path / "n.ipynb", "'\\x1b[2J\\x1b]0;evil\\x07'; print('\\x1b]0;evil\\x07')")
    path.write_text(path.read_text().replace(r"\\x1b", r"\u001b").replace(r"\\x07", r"\u0007"))
    told = shown(["replay", str(path)], tmp_path, "stderr")
    assert "\x1b]" not in told and "\x1b[2J" not in told and "evil" in told


def test_half_of_a_character_in_a_cell_is_said(tmp_path):
    path = notebook(tmp_path / "n.ipynb", "print('half')")
    path.write_text(path.read_text().replace("half", r"\ud800"))
    (tmp_path / "n.tapes").mkdir()
    (tmp_path / "n.tapes" / "main.tape.yaml").write_bytes(churn(tmp_path / "x").read_bytes())
    done = subprocess.run(
        [sys.executable, "-m", "tape_jupyter", "replay", str(path)],
        env=clean_env(tmp_path), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert "cell 1 holds half of a character" in done.stderr and "Traceback" not in done.stderr
