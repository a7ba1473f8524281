"""What a run's record says of chance, and what a replay makes of it, however it was edited."""

import random
import re
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

import tape_jupyter as tape
from tape_jupyter.cassette.cassette import Cassette
from tape_jupyter.session.session import TapeSession
from tests.harness.taped_cells import taped
from tests.harness.twice import scramble, twice


@tape.tool
def tool():
    return 1


def draw():
    tool()
    return random.random(), str(uuid.uuid4())


def test_a_seed_stands_on_the_record_and_no_draw(tmp_path):
    recorded, _, _ = twice(tmp_path, draw)
    text = (tmp_path / "a.tape.yaml").read_text()
    assert recorded[1] not in text and str(recorded[0]) not in text
    (run,) = Cassette.open(tmp_path / "a.tape.yaml").runs
    told = run["pins"]["random"]
    assert re.fullmatch("[0-9a-f]{64}", told["seed"]) and set(told["at"]) >= {"random"}


def test_runs_of_a_session_share_the_long_part_of_a_state(tmp_path):
    path = tmp_path / "a.tape.yaml"
    random.seed(1)
    for _ in range(5):
        with tape.recording(path):
            tool()
            random.random()
    assert path.read_text().count("state of random: |") == 1, "the long part is written once"
    assert [run["pins"]["random"]["at"]["random"]["index"] for run in Cassette.open(path).runs] == [
        0,
        2,
        4,
        6,
        8,
    ]


def test_every_run_of_a_session_replays_from_where_it_stood(tmp_path):
    path = tmp_path / "a.tape.yaml"
    recorded, first = [], TapeSession()
    for seed in (None, 1, None, None):
        if seed:
            random.seed(seed)
        with taped(first, "record", path):
            recorded.append(draw())
        random.random()
    again = TapeSession()
    for expected in recorded:
        scramble()
        with taped(again, "replay", path):
            assert draw() == expected
    again.unhook()


@pytest.mark.parametrize(
    ("pattern", "put", "said"),
    [
        (r"seed: \S+", "seed: nothex", "random is not replayed"),
        (r"seed: \S+", "seed: abcd", "a seed has 32 bytes"),
        (r"seed: \S+", "seed: 5", "random is not replayed"),
        (r"index: \d+", "index: 9999", "random is not replayed"),
        (r"at:\n +random:", "at:\n      other:\n        index: 5\n      random:", ""),
        (r"state of random\"?: \|-\n +\S+", 'state of random: "AAAA"', "random is not replayed"),
        (
            r"state of random\"?: \|-\n +\S+",
            'state of random: "' + "A" * 30_000 + '"',
            "longer than any",
        ),
    ],
)
def test_a_record_that_was_edited_to_nonsense_is_named_and_the_cell_runs(
    tmp_path, pattern, put, said
):
    path = tmp_path / "a.tape.yaml"
    with tape.recording(path):
        draw()
    text, times = re.subn(pattern, put, path.read_text(), count=1)
    assert times
    path.write_text(text)
    with tape.replaying(path) as block:
        assert draw()
    assert said in "\n".join(block.report.warnings)


def test_a_seed_that_a_person_writes_is_used(tmp_path):
    path, seen = tmp_path / "a.tape.yaml", []
    with tape.recording(path):
        draw()
    path.write_text(re.sub(r"seed: \S+", f'seed: "{"ab" * 32}"', path.read_text()))
    for _ in range(2):
        with tape.replaying(path) as block:
            seen.append(draw())
        assert not [text for text in block.report.warnings if "random" in text]
    assert seen[0] == seen[1]


def test_a_recording_that_was_cut_off_says_what_is_not_held(tmp_path):
    path = tmp_path / "a.tape.yaml"
    with tape.recording(path):
        tool()
    text = path.read_text()
    path.write_text(text[: text.rindex("---\nend:")])
    with tape.replaying(path) as block:
        tool()
    assert "random is not replayed: the recording was cut off" in "\n".join(block.report.warnings)
    path.write_text(text)
    with tape.replaying(path) as block:
        tool()
    assert "random is not replayed" not in "\n".join(block.report.warnings)


def test_a_cell_that_moves_no_generator_has_no_state_on_the_tape(tmp_path):
    path = tmp_path / "a.tape.yaml"
    with tape.recording(path):
        tool()
        uuid.uuid4()
    assert "state of" not in path.read_text()


SETS = """
import sys
from pathlib import Path
import tape_jupyter as tape
@tape.tool
def ask(words): return 1
with getattr(tape, sys.argv[2])(Path(sys.argv[1])) as block:
    try: ask(list({"north", "south", "east", "west", "up", "down"}))
    except BaseException: pass
"""


def test_that_sets_come_in_another_order_is_said_where_it_matters(tmp_path):
    def run(mode, seed):
        code = (
            SETS + "print(*block.report.warnings)"
            if mode == "recording"
            else SETS.replace(
                "with getattr",
                "block = getattr(tape, sys.argv[2])(Path(sys.argv[1]))\ntry:\n  with block:\n    ask(list({'north', 'south', 'east', 'west', 'up', 'down'}))\nexcept BaseException: pass\nprint(*block.report.warnings)\nsys.exit()\nwith getattr",
            )
        )
        return subprocess.run(
            [sys.executable, "-c", code, str(tmp_path / "a.tape.yaml"), mode],
            check=True, capture_output=True, text=True, cwd=Path(__file__).parents[4],
            env={"PYTHONHASHSEED": seed, "PATH": ""},
        ).stdout  # fmt: skip

    run("recording", "1")
    assert "PYTHONHASHSEED" not in run("replaying", "1")
    assert "sets of strings are ordered differently" in run("replaying", "2")


def test_more_variables_than_anybody_has_are_not_all_held(tmp_path):
    path = tmp_path / "a.tape.yaml"
    for number in range(50):
        globals()[f"made_{number}"] = random.Random(number)
    try:
        with tape.recording(path):
            tool()
        (run,) = Cassette.open(path).runs
        assert (
            len([name for name in run["pins"]["random"]["at"] if name.startswith("variable ")])
            == 20
        )
    finally:
        for number in range(50):
            del globals()[f"made_{number}"]
