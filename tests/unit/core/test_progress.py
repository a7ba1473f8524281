"""Long work says how far it is, often enough to be seen and seldom enough to cost nothing."""

import pytest

from tape_jupyter.reports import diff, gaps
from tape_jupyter.cassette import merge, prune
from tape_jupyter.cassette.cassette import Cassette
from tape_jupyter.core.progress import count_items, ignore_progress
from tests.harness.tapes import Recorder, answered, asked


def heard(count):
    told = []
    assert list(count_items(range(count), "calls", lambda *step: told.append(step))) == list(
        range(count)
    )
    return told


def test_each_of_few_is_told_of():
    assert heard(3) == [("calls", 1, 3), ("calls", 2, 3), ("calls", 3, 3)]
    assert heard(0) == []


@pytest.mark.parametrize("count", [100, 1_001, 12_345])
def test_of_many_the_first_the_last_and_about_a_hundred_are(count):
    told = heard(count)
    assert told[0][1] == 1 and told[-1][1] == count and 100 <= len(told) <= 112
    assert all(one[1] < other[1] for one, other in zip(told, told[1:], strict=False))


def test_nobody_hears_nothing():
    assert list(count_items("ab", "letters", ignore_progress)) == ["a", "b"]


@pytest.fixture
def tapes(tmp_path):
    """A recording of 30 calls, and the same with 3 more."""
    one, other = tmp_path / "one.tape.yaml", tmp_path / "other.tape.yaml"
    Recorder(one).run("aaaa", *((asked(f"Q{n}"), answered("A")) for n in range(30)))
    other.write_bytes(one.read_bytes())
    Recorder(other, "s9").run("bbbb", *((asked(f"P{n}"), answered("B")) for n in range(3)))
    return one, other


@pytest.mark.parametrize(
    ("work", "what", "total"),
    [
        (lambda a, _, tell: gaps.report_gaps([a], tell), "calls of one.tape.yaml", 30),
        (lambda a, b, tell: diff.diff(a, b, tell), "comparing calls", 33),
        (
            lambda a, b, tell: diff.drifts(*map(Cassette.open, (a, b)), tell),
            "looking for what changed around calls",
            33,
        ),
        (
            lambda a, b, tell: merge.merge_cassettes(a, b, on_progress=tell),
            "records of other.tape.yaml",
            None,
        ),
        (
            lambda a, _, tell: prune.prune_cassette(a, on_progress=tell),
            "records of one.tape.yaml",
            None,
        ),
    ],
)
def test_work_on_recordings_tells_each_call_or_record_that_it_is_at(tapes, work, what, total):
    told = []
    work(*tapes, lambda *step: told.append(step))
    mine = [step for step in told if step[0] == what]
    assert [done for _, done, _ in mine] == list(range(1, mine[0][2] + 1))
    assert mine[0][2] == total if total else mine[0][2] >= 30


def test_of_several_cassettes_it_says_which(tapes):
    told = []
    gaps.report_gaps(list(tapes), lambda *step: told.append(step[0]))
    assert (
        "calls of other.tape.yaml, cassette 2 of 2" in told
        and "reading one.tape.yaml, cassette 1 of 2" in told
    )
