"""How the %%tape line is read and taken off. What IPython then makes of the cell: tests/kernel."""

from types import SimpleNamespace

import pytest
from IPython.core.inputtransformer2 import TransformerManager

from tape_jupyter.errors import TapeUsageError
from tape_jupyter.notebook.cells import LineTaker, check_mode, is_quiet, parse_line, rejection, running


@pytest.fixture
def manager():
    manager = TransformerManager()
    taker = LineTaker(SimpleNamespace(input_transformers_cleanup=manager.cleanup_transforms))
    manager.cleanup_transforms.append(taker)
    manager.taker = taker
    return manager


@pytest.mark.parametrize(
    ("line", "mode", "name", "options"),
    [
        (" record", "record", None, {}),
        (" replay demo-2 ", "replay", "demo-2", {}),
        (" once --strict", "once", None, {"strict": True}),
        (" new_episodes x --ignore $.id --ignore '$.a b'", "new_episodes", "x", {"ignore": ["$.id", "$.a b"]}),
        (" record --tools a,b", "record", None, {"tools": ["a", "b"]}),
    ],
)
def test_a_line_says_mode_name_and_options(line, mode, name, options):
    word = parse_line(line)
    assert (word.mode, word.name) == (mode, name)
    assert word.options == {"strict": False, "ignore": [], "tools": []} | options


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("", "Usage: %%tape record|replay|once|new_episodes"),
        ("recrod", "did you mean record?"),
        ("live", "is no mode"),
        ("xyzzy", "there are: record, replay"),
        ("replay ../../etc/passwd", "cannot name a cassette"),
        ("record {name}", "cannot name a cassette"),
        ("record $HOME", "cannot name a cassette"),
        ("record 'x", "No closing quotation"),
        ("--strict", "required: mode"),
        ("record a b c", "unrecognized arguments: b c"),
        ("record --live host:x", "not in this version"),
        ("record --take=b", "not in this version"),
        ("record --ignore", "expected one argument"),
    ],
)
def test_a_line_that_makes_no_sense_is_explained(line, said):
    with pytest.raises(TapeUsageError) as caught:
        parse_line(line)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_mode_is_known_or_the_nearest_is_named():
    assert check_mode("live") == "live"
    with pytest.raises(TapeUsageError, match="TAPE_MODE: 'reply' is no mode: did you mean replay"):
        check_mode("reply", where="TAPE_MODE: ")


@pytest.mark.parametrize(
    ("source", "quiet"),
    [
        ("%load_ext tape_jupyter", True),
        ("# a note\n\n%load_ext tape_jupyter\n%tape record", True),
        ("%tape record\nx = 1", False),
        ("x = 1", False),
        ("%tapes", False),
        ("%matplotlib inline", False),
    ],
)
def test_cells_that_only_set_up_are_not_taped_by_the_session(source, quiet):
    assert is_quiet(source) is quiet


@pytest.mark.parametrize(
    ("cell", "seen"),
    [
        ("%%tape record\nx = 1\n", "\nx = 1\n"),
        ("%%tape record\n\n\nx = 1\n", "\n\n\nx = 1\n"),
        ("\n\n%%tape record\nx = 1\n", "\nx = 1\n"),
        ("  %%tape record\n  x = 1\n", "\nx = 1\n"),
        ("%%tape record\n    x = 1\n    y = 2\n", "\nx = 1\ny = 2\n"),
        ("%%tape record\n>>> x = 1\n", "\nx = 1\n"),
        ("%%tape record", "\n"),
        ("%%tape\nx = 1\n", "\nx = 1\n"),
        ("%%tape record\n\n%%time\nx\n", "get_ipython().run_cell_magic('time', '', 'x\\n')\n"),
        ("%%taper record\nx\n", "get_ipython().run_cell_magic('taper', 'record', 'x\\n')\n"),
        ("x = 1\n%%tape record\n", "x = 1\nget_ipython().run_line_magic('%tape', 'record')\n"),
    ],
)
def test_the_line_is_taken_off_and_the_others_keep_their_numbers(manager, cell, seen):
    assert manager.transform_cell(cell) == seen


def test_taking_the_line_off_changes_nothing_else(manager):
    for _ in range(2):
        assert manager.transform_cell("%%tape record\nx = 1\n") == "\nx = 1\n"


@pytest.mark.parametrize(
    ("cell", "line", "source"),
    [
        ("%%tape record demo\nx = 1\ny", " record demo\n", "x = 1\ny"),
        ("\n  %%tape once\n  x\n", " once\n", "x"),
        ("%%tape", "", ""),
        ("x = 1\n", None, "x = 1\n"),
        ("%%time\n%%tape record\nx", None, "%%time\n%%tape record\nx"),
    ],
)
def test_a_cell_splits_into_its_tape_line_and_its_source(manager, cell, line, source):
    assert manager.taker.split(cell) == (line, source)


def test_a_console_waits_for_a_blank_line_as_below_any_cell_magic(manager):
    assert manager.check_complete("%%tape record\nx = 1")[0] == "incomplete"
    assert manager.check_complete("%%tape record\nx = 1\n\n")[0] == "complete"


def test_no_cell_runs_here():
    assert running() == 0


def test_a_rejection_shows_the_errors_own_name_and_words():
    rejected = rejection(TapeUsageError("say what"))
    assert type(rejected).__name__ == "TapeUsageError"
    assert str(rejected) == "say what"
    assert rejected._render_traceback_() == ["TapeUsageError: say what"]
