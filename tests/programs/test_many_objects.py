"""A tool that makes many objects is recorded and replayed in a time that grows as they do, not as their square."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field

import pytest

import tape_jupyter as tape


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@dataclass
class Thing:
    name: str
    tags: list = field(default_factory=list)
    peer: object = None


things: list[Thing] = []
by_name: dict[str, Thing] = {}


@tape.tool
def make(count):
    for number in range(count):
        peer = things[-1] if things else None
        thing = Thing(str(number), [number], peer)
        things.append(thing)
        by_name[thing.name] = thing
    return things


def count_calls(run):
    """How many functions are called, whatever the machine does beside it."""
    count = 0

    def note(_frame, event, _arg):
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(before)
    return count


def test_twice_as_many_objects_take_twice_as_long_to_record_and_to_replay():
    counts = []
    for number in (200, 400):
        for open_tape in (tape.recording, tape.replaying):
            things.clear()
            by_name.clear()
            with open_tape(f"{number}.tape.yaml"):
                counts.append(count_calls(lambda number=number: make(number)))
            assert len(things) == number and by_name["7"] is things[7]
            assert things[8].peer is things[7]
    recorded, replayed, recorded_more, replayed_more = counts
    assert recorded_more < 2.5 * recorded
    assert replayed_more < 2.5 * replayed
