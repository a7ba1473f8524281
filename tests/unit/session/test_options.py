"""What a person says to the tape, understood or explained."""

import pytest

from tape_jupyter.errors import TapeUsageError
from tape_jupyter.session.cell_words import is_quiet
from tape_jupyter.session.options import check_mode, parse_line


@pytest.mark.parametrize(
    ("line", "mode", "name", "options"),
    [
        (" record", "record", None, {}),
        (" replay demo-2 ", "replay", "demo-2", {}),
        (" once --strict", "once", None, {"strict": True}),
        (
            " new_episodes x --ignore $.id --ignore '$.a b'",
            "new_episodes",
            "x",
            {"ignore": ["$.id", "$.a b"]},
        ),
        (" record --tools a,b", "record", None, {"tools": ["a", "b"]}),
        (" replay --cut-short", "replay", None, {"cut_short": True}),
        (
            " replay --no-pin clock,random --no-pin random",
            "replay",
            None,
            {"no_pin": ("clock", "random")},
        ),
        (" replay --take angry", "replay", None, {"take": "angry"}),
        (" replay --live llm --live=tool:a", "replay", None, {"live": ["llm", "tool:a"]}),
        (" record --freeze tools", "record", None, {"freeze": ["tools"]}),
        (
            """ record --stub 'tool:mail={"sent": [1, "a=b"]}'""",
            "record",
            None,
            {"stub": {"tool:mail": {"sent": [1, "a=b"]}}},
        ),  # fmt: skip
    ],
)
def test_a_line_says_mode_name_and_options(line, mode, name, options):
    word = parse_line(line)
    assert (word.mode, word.name) == (mode, name)
    assert {name: told for name, told in word.options.items() if told} == options


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("", "Usage: %%tape record|replay|once|new_episodes"),
        ("recrod", "did you mean record?"),
        ("live", "is not a mode"),
        ("xyzzy", "there are: record, replay"),
        ("replay ../../etc/passwd", "cannot name a cassette"),
        ("record {name}", "cannot name a cassette"),
        ("record $HOME", "cannot name a cassette"),
        ("record 'x", "No closing quotation"),
        ("--strict", "required: mode"),
        ("record a b c", "unrecognized arguments: b c"),
        ("record --on-divergence live", "goes with replay"),
        ("record --live host:x", "--live goes with replay"),
        ("replay --live llm --freeze llm", "a boundary is one or the other"),
        ("replay --live model", "'model' names no calls: write llm, tools, tool:NAME"),
        ("replay --take ../../etc", "cannot name a take"),
        ("replay --take", "expected one argument"),
        ("record --stub tool:mail", "it has no =JSON; write --stub 'tool:NAME="),
        ("record --stub tool:mail=sent", "is not JSON"),
        ("record --stub host:x=1", "names no tool"),
        ("record --ignore", "expected one argument"),
        (
            "record --strct",
            "unrecognized arguments: --strct: did you mean --strict? What there is: %tape help",
        ),
        (
            "record --no-pin randon",
            "'randon' is no pin: did you mean random? (there are: clock, sleep, random, timezone)",
        ),
    ],
)
def test_a_line_that_makes_no_sense_is_explained(line, said):
    with pytest.raises(TapeUsageError) as caught:
        parse_line(line)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_mode_is_known_or_the_nearest_is_named():
    assert check_mode("live") == "live"
    with pytest.raises(
        TapeUsageError, match="TAPE_MODE: 'reply' is not a mode: did you mean replay"
    ):
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


def test_step_takes_breakpoints_a_take_and_may_record():
    word = parse_line("step demo --break tool=look* --break 'nth == 3' --take mine --record")
    assert (word.mode, word.name, word.options["take"], word.options["record"]) == (
        "step",
        "demo",
        "mine",
        True,
    )
    assert word.options["breaks"] == ("tool=look*", "nth == 3")
    assert "breaks" not in parse_line("replay").options


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("replay --break tool", "goes with step"), ("record --record", "goes with step"), ("step --break nope", "not a breakpoint"),
        ("step --live llm", "at each stop"), ("step --on-divergence live", "stops at a call that is not on the tape"),
    ],
)  # fmt: skip
def test_step_takes_nothing_else(line, said):
    with pytest.raises(TapeUsageError, match=said):
        parse_line(line)
