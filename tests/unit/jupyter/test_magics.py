"""The magics in a shell of this process: what they answer, what they refuse, what they complete."""

import subprocess
import sys

import pytest
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from tape_jupyter.errors import CassetteError, TapeUsageError
from tape_jupyter.jupyter import line_commands, magics
from tests.harness.notebook import notebook


@pytest.fixture
def shell(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TAPE_MODE", raising=False)
    monkeypatch.setenv("TAPE_NOTEBOOK", str(notebook(tmp_path / "churn.ipynb", "x")))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / ".ipython"))
    shell = InteractiveShell(config=Config({"HistoryManager": {"enabled": False}}))
    magics.load_magics(shell)
    yield shell
    magics.unload(shell)


def test_status_tells_mode_notebook_and_cassettes(shell, capsys):
    shell.run_line_magic("tape", "status")
    said = capsys.readouterr().out
    assert "mode:         off" in said
    assert "churn.ipynb" in said
    assert "cassettes:    none" in said


def test_help_is_for_cells_and_for_the_session(shell, capsys):
    shell.run_line_magic("tape", "help")
    said = capsys.readouterr().out
    assert "  %%tape record [NAME]" in said and "  %tape off" in said


def test_the_mode_is_set_and_taken_back(shell, capsys):
    for mode in ("record", "live", "off"):
        shell.run_line_magic("tape", mode)
        assert f"tape {mode}:" in capsys.readouterr().out
        assert magics.loaded(shell).deck.session_mode == mode


@pytest.mark.parametrize(
    ("line", "said"),
    [("statsu", "did you mean status"), ("record A", "cannot name"), ("set x", "KEY=VALUE")],
)
def test_a_wrong_word_is_explained_without_a_traceback(shell, line, said):
    with pytest.raises(TapeUsageError, match=said) as caught:
        shell.run_line_magic("tape", line)
    assert len(caught.value._render_traceback_()) == 1


@pytest.mark.parametrize("line", ["calls --help", "plan -h", "record --help", "set --help"])
def test_help_of_a_word_is_its_page(shell, capsys, line):
    shell.run_line_magic("tape", line)
    word = line.split()[0]
    assert f"%tape {word}" in capsys.readouterr().out
    assert magics.loaded(shell).deck.session_mode == "off"


@pytest.mark.parametrize("word", ["sample", "rows", "doctor", "import"])
def test_a_command_of_the_terminal_is_named_as_that(shell, word):
    with pytest.raises(TapeUsageError) as caught:
        shell.run_line_magic("tape", f"{word} x.ipynb")
    assert f"%tape {word} is typed in a terminal: tape {word}" in str(caught.value)
    assert f"!tape {word}" in str(caught.value)


@pytest.mark.parametrize(
    "line", ["calls 'x", "takes 'x", "set 'x=1", "prune 'x", "plan 'x", "override 'x", "verify 'x"]
)
def test_a_quote_that_is_not_closed_is_one_line(shell, line):
    with pytest.raises((TapeUsageError, CassetteError)) as caught:
        shell.run_line_magic("tape", line)
    assert len(caught.value._render_traceback_()) == 1


def test_names_are_not_expanded(shell):
    shell.user_ns["name"] = "demo"
    with pytest.raises(TapeUsageError, match=r"'\{name\}' cannot name a cassette"):
        shell.run_line_magic("tape", "record {name}")


@pytest.mark.parametrize("word", ["calls", "show", "gaps", "view"])
def test_asking_for_a_cassette_that_is_not_there_lists_the_others(shell, word, tmp_path):
    (tmp_path / "churn.tapes").mkdir()
    (tmp_path / "churn.tapes" / "main.tape.yaml").touch()
    with pytest.raises(
        CassetteError, match=r"missing\.tape\.yaml: there is no such cassette; there are: main"
    ):
        shell.run_line_magic("tape", f"{word} missing")


@pytest.mark.parametrize(
    "line",
    [
        "calls",
        "show",
        "gaps",
        "frame",
        "prune",
        "prune --back-to r-1",
        "view nope",
        "plan",
        "rerun",
        "takes",
        "override 78a670b1 --text x",
    ],
)
def test_where_nothing_is_recorded_yet_the_way_to_record_is_told(shell, line):
    with pytest.raises(CassetteError, match="nothing is recorded yet: put %%tape record on top"):
        shell.run_line_magic("tape", line)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("step", "%%tape step, on its first line"),
        ("diff", "name the two: %tape diff A B"),
        ("diff main", "name the two: %tape diff A B"),
    ],
)
def test_what_a_newcomer_types_wrong_is_answered_with_what_to_type(shell, line, said):
    with pytest.raises(TapeUsageError) as caught:
        shell.run_line_magic("tape", line)
    assert said in str(caught.value)


@pytest.mark.parametrize("above", ["# a comment", "x = 1"])
def test_the_line_that_tapes_is_said_to_be_the_first_of_its_cell(shell, above, capsys):
    ran = shell.run_cell(f"{above}\n%%tape record\ny = 1")
    assert "stands on that cell's first line: not below a comment" in str(ran.error_in_exec)
    assert "not found" not in capsys.readouterr().out and "y" not in shell.user_ns


def test_an_empty_cassette_is_fine_to_ask(shell, tmp_path, capsys):
    (tmp_path / "churn.tapes").mkdir()
    (tmp_path / "churn.tapes" / "main.tape.yaml").touch()
    for word, said in (("calls", "no calls yet"), ("show", "0 calls"), ("gaps", "no gaps")):
        shell.run_line_magic("tape", word)
        assert said in capsys.readouterr().out


def test_a_renamed_notebook_adopts_its_cassettes(shell, tmp_path, capsys):
    (tmp_path / "old.tapes").mkdir()
    shell.run_line_magic("tape", "set adopt=old.tapes")
    assert "churn.tapes now holds the cassettes of old.tapes" in capsys.readouterr().out
    assert (tmp_path / "churn.tapes").is_dir()


def test_words_and_names_complete(shell, tmp_path):
    cells = magics.loaded(shell)
    (tmp_path / "churn.tapes").mkdir()
    (tmp_path / "churn.tapes" / "demo.tape.yaml").touch()
    assert "record" in line_commands.complete(cells, "%tape re")
    assert "status" not in line_commands.complete(cells, "%%tape re")
    assert line_commands.complete(cells, "%%tape replay d") == ["demo"]
    assert "--strict" in line_commands.complete(cells, "%%tape replay demo --")


def test_loading_twice_hooks_once(shell):
    magics.load_magics(shell)
    assert (
        len([hook for hook in shell.events.callbacks["pre_run_cell"] if "CellRunner" in repr(hook)])
        == 1
    )


def test_importing_the_package_leaves_heavy_things_for_later():
    heavy = "IPython httpx httpx2 pandas genai_prices pydantic asyncio".split()
    code = (
        f"import sys; import tape_jupyter as tape; print([m for m in {heavy} if m in sys.modules]); "
        "tape.UnmatchedCall; print('UnmatchedCall' in dir(tape))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["[]", "True"]


def test_importing_the_package_costs_less_than_importing_asyncio():
    def cost(module):
        code = f"import time; began = time.process_time(); import {module}; print(time.process_time() - began)"
        return float(
            subprocess.run(
                [sys.executable, "-c", code], capture_output=True, text=True, check=True
            ).stdout
        )

    ours, theirs = zip(*((cost("tape_jupyter"), cost("asyncio")) for _ in range(4)), strict=True)
    assert min(ours) < min(theirs)  # measured: a fifth


def test_every_public_name_is_there():
    import tape_jupyter

    for name in tape_jupyter.__all__:
        assert getattr(tape_jupyter, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        tape_jupyter.nothing


def test_prune_tells_what_goes(shell, tmp_path, capsys):
    (tmp_path / "churn.tapes").mkdir()
    (tmp_path / "churn.tapes" / "main.tape.yaml").touch()
    for line, said in (("prune --dry-run", "would drop 0 runs"), ("prune main", "dropped 0 runs")):
        shell.run_line_magic("tape", line)
        assert said in capsys.readouterr().out
    with pytest.raises(TapeUsageError, match="unrecognized arguments: --all"):
        shell.run_line_magic("tape", "prune --all")
    with pytest.raises(TapeUsageError, match="--dry: did you mean --dry-run"):
        shell.run_line_magic("tape", "prune --dry")
