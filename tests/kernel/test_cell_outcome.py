"""A replayed cell that does not show or leave what the recording did says so, whatever the reason."""

import pytest

from tests.harness.notebook import Kernel, notebook

SET_UP = """%load_ext tape_jupyter
import os, sys, time
import tape_jupyter as tape

@tape.tool
def ask(words):
    return words.upper()

lines = LINES"""

TYPED = ["one", "two", "three"]


def run(folder, mode, source, lines=TYPED, **env):
    """A taped cell of this source in a fresh kernel: what it printed, and the tape's summary."""
    env["TAPE_NOTEBOOK"] = str(notebook(folder / "nb.ipynb", "x"))
    with Kernel(folder, env) as kernel:
        assert kernel.execute(SET_UP.replace("LINES", repr(lines))).ok
        ran = kernel.execute(f"%%tape {mode}\n{source}")
        assert ran.ok, ran.traceback
        return ran.stdout, ran.summary


def replay(folder, source, lines=TYPED, *, options=""):
    """The tape's summary of a replay of what was recorded, with these lines in the notebook."""
    run(folder, "record", source)
    return run(folder, f"replay{options}", source, lines)[1]


PRINTS = 'print(ask("hello"))\nfor line in lines: print(line)'


@pytest.mark.slow
def test_the_same_outputs_are_not_spoken_of(tmp_path):
    shown, _ = run(tmp_path, "record", PRINTS)
    again, summary = run(tmp_path, "replay", PRINTS)
    assert again == shown
    assert "when it was recorded" not in summary


@pytest.mark.slow
def test_lines_in_another_order_are_said_with_the_first(tmp_path):
    summary = replay(tmp_path, PRINTS, ["one", "three", "two"])
    assert "in another order: 'three' first" in summary


def test_other_lines_are_said_with_the_first(tmp_path):
    summary = replay(tmp_path, PRINTS, ["one", "2", "three"])
    assert "does not show what it showed when it was recorded: '2' first" in summary


@pytest.mark.slow
def test_lines_that_are_missing_at_the_end_are_said(tmp_path):
    summary = replay(tmp_path, PRINTS, ["one"])
    assert "does not show what it showed when it was recorded, the end of it" in summary


@pytest.mark.slow
def test_more_lines_than_have_a_digest_of_their_own_are_compared_as_a_whole(tmp_path):
    many = [str(number) for number in range(1_000)]
    run(tmp_path, "record", PRINTS, many)
    _, same = run(tmp_path, "replay", PRINTS, many)
    assert "when it was recorded" not in same
    _, otherwise = run(tmp_path, "replay", PRINTS, [*many[:-1], "another"])
    assert "does not show what it showed when it was recorded" in otherwise


LEAVES = 'ask("hello")\nkept, first = list(lines), lines[0]\n_private = lines[-1]'


def test_the_same_variables_are_not_spoken_of(tmp_path):
    summary = replay(tmp_path, LEAVES)
    assert "recorded cell left" not in summary


def test_a_variable_that_the_recorded_cell_left_otherwise_is_named(tmp_path):
    summary = replay(tmp_path, LEAVES, ["one", "2", "three"])
    assert "not as the recorded cell left them: kept. Something" in summary


@pytest.mark.slow
def test_a_variable_that_is_not_made_or_not_changed_is_named(tmp_path):
    source = 'ask("hello")\nif lines:\n    lines.append("four")\n    made = 1'
    summary = replay(tmp_path, source, [])
    assert "not as the recorded cell left them: lines, made." in summary


@pytest.mark.slow
def test_many_such_variables_are_counted(tmp_path):
    source = 'ask("hello")\na = b = c = d = e = f = g = str(lines)'
    summary = replay(tmp_path, source, ["two"])
    assert "left them: a, b, c, d, e and 2 more." in summary


@pytest.mark.slow
def test_what_a_cell_changed_in_a_module_of_the_users_is_compared(tmp_path):
    (tmp_path / "settings.py").write_text("theme = 'light'\nhistory = []")
    source = (
        "import settings\n@tape.tool\ndef choose(theme):\n    settings.history.append(theme)\n"
        "    settings.theme = theme\nchoose('dark')"
    )
    assert "recorded cell left" not in replay(tmp_path, source)
    source = "import settings\nask('hello')\nsettings.theme = lines[0]"
    assert "left them: settings:theme. Something" in replay(tmp_path, source, ["two"])


@pytest.mark.slow
def test_a_value_that_cannot_be_read_is_not_spoken_of(tmp_path):
    source = 'ask("hello")\nlock, numbers = __import__("threading").Lock(), iter(lines)'
    summary = replay(tmp_path, source, ["two"])
    assert "recorded cell left" not in summary


WRITES = """ask("hello")
os.makedirs("out", exist_ok=True)
with open("out/lines.txt", "w") as file:
    file.write(" ".join(lines))
with open(".hidden", "w") as file:
    file.write(" ".join(lines))
if os.path.exists("old.txt"):
    os.remove("old.txt")"""


@pytest.mark.slow
def test_the_same_files_are_not_spoken_of(tmp_path):
    (tmp_path / "old.txt").write_text("old")
    summary = replay(tmp_path, WRITES)
    assert "recorded cell left" not in summary


def test_a_file_that_the_recorded_cell_left_otherwise_is_named(tmp_path):
    summary = replay(tmp_path, WRITES, ["two"])
    assert "not as the recorded cell left them: the file out/lines.txt. Something" in summary


@pytest.mark.slow
def test_a_file_that_the_recorded_cell_removed_and_that_is_there_is_named(tmp_path):
    source = 'ask("hello")\nif lines:\n    os.remove("old.txt")'
    (tmp_path / "old.txt").write_text("old")
    run(tmp_path, "record", source)
    (tmp_path / "old.txt").write_text("old")
    _, summary = run(tmp_path, "replay", source, [])
    assert "not as the recorded cell left them: the file old.txt." in summary


@pytest.mark.slow
def test_a_cassette_names_no_file_outside_the_folder(tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    run(folder, "record", WRITES)
    cassette = folder / "nb.tapes" / "main.tape.yaml"
    text = cassette.read_text()
    assert "  out/lines.txt: " in text
    cassette.write_text(text.replace("  out/lines.txt: ", '  "../secret.txt": '))
    (tmp_path / "secret.txt").write_text("secret")
    _, summary = run(folder, "replay", WRITES)
    assert "secret.txt" not in summary


@pytest.mark.slow
def test_a_cell_whose_code_is_another_one_now_is_not_compared(tmp_path):
    run(tmp_path, "record", PRINTS)
    _, summary = run(tmp_path, "replay", PRINTS + '\nprint("and more")')
    assert "when it was recorded" not in summary


@pytest.mark.slow
@pytest.mark.parametrize(
    "source",
    [
        'ask("x"); print(object())',
        "%time ask('x')",
        'ask("x")\nfor _ in range(3):\n    sys.stdout.write(f"\\r{os.getpid()}")\nsys.stdout.write("\\rdone\\n")',
        'ask("x"); print(os.getcwd())',
        'ask("x"); os.write(1, f"{os.getpid()}\\n".encode()); time.sleep(0.3)',
    ],
    ids=["address", "time", "progress", "folder", "descriptor"],
)
def test_what_differs_on_every_machine_is_not_spoken_of(tmp_path, source):
    summary = replay(tmp_path, source)
    assert "when it was recorded" not in summary


def test_what_was_left_out_on_purpose_is_not_spoken_of(tmp_path):
    tool = "@tape.tool\ndef loud(): print('loud')\nloud()"
    summary = replay(tmp_path, tool, options=" --no-effects output")
    assert "when it was recorded" not in summary


def test_a_secret_that_was_shown_has_no_digest_on_the_tape(tmp_path):
    """Its placeholder has one: with another value the replay shows the same."""
    source = 'ask("x"); print(os.environ["SHOP_API_KEY"])'
    run(tmp_path, "record", source, SHOP_API_KEY="sk-3c9f71d0a4be48559bd5")
    _, summary = run(tmp_path, "replay", source, SHOP_API_KEY="sk-77aa52e09d1f4c3f8e21")
    assert "when it was recorded" not in summary
