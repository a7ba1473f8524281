"""Reading ahead changes how often the file is read, and nothing else."""

from dataclasses import dataclass

import pytest

from tape_jupyter.cassette.reader import BYTES, CALLS, ReadAhead, as_far_as_sound
from tape_jupyter.errors import CassetteError


@dataclass
class Item:
    place: int
    length: int = 100


ITEMS = [Item(place) for place in range(100)]


def reader(flawed=()):
    reads = []

    def one(item):
        if item.place in flawed:
            raise CassetteError(f"flaw {item.place}")
        return item.place * 10

    def read(items):
        reads.append([item.place for item in items])
        return as_far_as_sound(items, one)

    return ReadAhead(read), reads


def test_calls_asked_for_in_order_are_read_a_few_at_a_time():
    ahead, reads = reader()
    assert [ahead.get(item, ITEMS) for item in ITEMS] == [place * 10 for place in range(100)]
    assert len(reads) < 12
    assert max(map(len, reads)) == CALLS


def test_calls_asked_for_in_another_order_are_read_one_by_one():
    ahead, reads = reader()
    assert [ahead.get(ITEMS[place], ITEMS) for place in (7, 3, 50, 2, 99)] == [70, 30, 500, 20, 990]
    assert [len(read) for read in reads] == [1] * 5


def test_a_flawed_call_fails_when_it_is_asked_for_and_not_before():
    ahead, _ = reader(flawed={20})
    assert [ahead.get(item, ITEMS) for item in ITEMS[:20]] == [place * 10 for place in range(20)]
    with pytest.raises(CassetteError, match="flaw 20"):
        ahead.get(ITEMS[20], ITEMS)
    assert ahead.get(ITEMS[21], ITEMS) == 210


def test_what_is_read_ahead_stays_small():
    large = [Item(place, BYTES // 3) for place in range(20)]
    ahead, reads = reader()
    for item in large:
        ahead.get(item, large)
    assert max(map(len, reads)) == 3


def test_a_call_that_is_asked_for_again_is_read_again():
    ahead, reads = reader()
    assert [ahead.get(ITEMS[0], ITEMS) for _ in range(3)] == [0, 0, 0]
    assert len(reads) == 3
