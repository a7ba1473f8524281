"""What a person says to the tape, understood or explained."""

import pytest

from tape_jupyter.errors import TapeUsageError
from tape_jupyter.notebook.words import check_mode, is_quiet, parse_line


@pytest.mark.parametrize(
    ("line", "mode", "name", "options"),
    [
        (" record", "record", None, {}),
        (" replay demo-2 ", "replay", "demo-2", {}),
        (" once --strict", "once", None, {"strict": True}),
        (" new_episodes x --ignore $.id --ignore '$.a b'", "new_episodes", "x", {"ignore": ["$.id", "$.a b"]}),
        (" record --tools a,b", "record", None, {"tools": ["a", "b"]}),
        (" replay --cut-short", "replay", None, {"cut_short": True}),
    ],
)
def test_a_line_says_mode_name_and_options(line, mode, name, options):
    word = parse_line(line)
    assert (word.mode, word.name) == (mode, name)
    assert word.options == {"strict": False, "cut_short": False, "ignore": [], "tools": []} | options


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
