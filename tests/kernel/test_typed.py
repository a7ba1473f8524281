"""What people type in a set-up cell, in real kernels: answered through stdin once, and in replay by nobody."""

import pytest

from tests.harness.notebook import Kernel, notebook, run_notebook

NAME = "name = input('Your name? ')\nname"
KEY = "import os\nos.environ['SERVICE'] = key = getpass('Service API key: ')\n(type(key).__name__, len(key) > 8)"
SECRET = "hunter2-plainly-mine-41d8"


@pytest.fixture(scope="module")
def kernel(tmp_path_factory):
    where = tmp_path_factory.mktemp("prompts")
    with Kernel(where, {"TAPE_NOTEBOOK": str(notebook(where / "nb.ipynb", "x"))}) as kernel:
        assert kernel.execute("from getpass import getpass\n%load_ext tape_jupyter").ok
        yield kernel


def typed(kernel, code, text):
    asked = kernel.send(code, allow_stdin=True)
    prompt = kernel.answer(text)
    return kernel.collect(asked), prompt


def tape(kernel, name):
    return (kernel.cwd / "nb.tapes" / f"{name}.tape.yaml").read_text()


def test_an_answer_is_recorded_and_replayed_where_nobody_can_be_asked(kernel):
    live, prompt = typed(kernel, f"%%tape record name\n{NAME}", "Ada")
    assert (live.result, prompt) == ("'Ada'", ("Your name? ", False)), live.traceback
    again = kernel.execute(f"%%tape replay name\n{NAME}", allow_stdin=False)
    assert (again.ok, again.result) == (True, "'Ada'"), again.traceback
    missed = kernel.execute("%%tape replay name\ninput('Your address? ')", allow_stdin=False)
    assert missed.ename == "UnmatchedCall" and "Your address? " in missed.traceback


def test_what_getpass_reads_is_never_written_and_a_placeholder_replays(kernel):
    live, prompt = typed(kernel, f"%%tape record key\n{KEY}", SECRET)
    assert (live.result, prompt) == ("('str', True)", ("Service API key: ", True)), live.traceback
    assert SECRET not in tape(kernel, "key") and "SERVICE_API_KEY" in tape(kernel, "key")
    again = kernel.execute(f"%%tape replay key\n{KEY}", allow_stdin=False)
    assert (again.ok, again.result) == (True, live.result), again.traceback
    assert SECRET not in kernel.execute("key").result


def test_a_secret_that_input_reads_is_not_written_either_nor_where_it_is_used(kernel):
    program = (
        "import tape_jupyter as tape\n@tape.tool\ndef log_in(token):\n    return f'welcome {token}'\n"
        "log_in(input('Paste your token: '))[:7]"
    )
    live, _ = typed(kernel, f"%%tape record token\n{program}", SECRET)
    assert live.result == "'welcome'", live.traceback
    assert SECRET not in tape(kernel, "token")
    again = kernel.execute(f"%%tape replay token\n{program}", allow_stdin=False)
    assert (again.ok, again.result) == (True, "'welcome'"), again.traceback


def test_after_the_tape_prompts_ask_as_ever(kernel):
    assert kernel.execute("%tape off").ok
    live, prompt = typed(kernel, "input('Again? ')", "yes")
    assert (live.result, prompt) == ("'yes'", ("Again? ", False))
    assert typed(kernel, "getpass('Secret? ')", "psst")[0].result == "'psst'"
    assert kernel.execute("input('nobody?')").ename == "StdinNotImplementedError"


def test_a_notebook_with_prompts_replays_headless(kernel, tmp_path):
    cells = ["from getpass import getpass", f"%%tape record set-up\n{NAME}\n{KEY}"]
    asked = kernel.send(cells[1], allow_stdin=True)
    kernel.answer("Ada"), kernel.answer(SECRET)
    assert kernel.collect(asked).ok
    source = kernel.cwd / "nb.tapes" / "set-up.tape.yaml"
    folder = tmp_path / "nb.tapes"
    folder.mkdir()
    (folder / "set-up.tape.yaml").write_bytes(source.read_bytes())
    path = notebook(tmp_path / "nb.ipynb", "%load_ext tape_jupyter", *cells, "name")
    ran = run_notebook(path, tmp_path, {"TAPE_MODE": "replay"})
    assert ran[-1].result == "'Ada'", "\n".join(each.traceback for each in ran)
