import os
import time
from datetime import UTC, datetime

import pytest

from tape_jupyter.determinism import timezone

pytestmark = pytest.mark.skipif(
    not timezone.HELD, reason="this system cannot change a program's zone"
)


def hour():
    return datetime.fromtimestamp(0).hour


def test_a_zone_is_held_and_given_back(monkeypatch):
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    undo = timezone.hold_zone("America/Lima")
    assert (timezone.current_zone(), hour()) == ("America/Lima", 19)
    undo()
    assert (timezone.current_zone(), hour()) == ("Asia/Tokyo", 9)
    monkeypatch.undo()
    time.tzset()


def test_where_no_zone_was_told_none_is_afterwards(monkeypatch):
    monkeypatch.delenv("TZ", raising=False)
    time.tzset()
    before = hour()
    undo = timezone.hold_zone("Asia/Tokyo")
    assert hour() == 9
    undo()
    assert "TZ" not in os.environ and hour() == before


def test_a_zone_that_the_program_set_itself_stays(monkeypatch):
    monkeypatch.setenv("TZ", "UTC")
    undo = timezone.hold_zone("Asia/Tokyo")
    os.environ["TZ"] = "America/Lima"
    undo()
    assert os.environ["TZ"] == "America/Lima"
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize(
    ("offset", "zone"),
    [(0, "UTC0"), (7200, "<+02>-02"), (-10800, "<-03>+03"), (19800, "<+0530>-05:30")],
)
def test_an_offset_is_a_zone_in_the_words_of_posix(offset, zone):
    assert timezone.posix(offset) == zone and timezone.is_known_zone(zone)
    undo = timezone.hold_zone(zone)
    assert datetime.now(UTC).astimezone().utcoffset().total_seconds() == offset
    undo()


@pytest.mark.parametrize(
    ("zone", "known"),
    [("Europe/Berlin", True), ("UTC", True), ("Etc/UTC", True), ("EST5EDT", True), ("Nowhere/City", False),
     ("../../etc/passwd", False), ("", False), ("/etc/localtime", False)],
)  # fmt: skip
def test_zones_that_this_system_does_not_know_are_told_apart(zone, known):
    assert timezone.is_known_zone(zone) is known


def test_where_the_system_names_no_zone_its_offset_stands_in(monkeypatch):
    monkeypatch.delenv("TZ", raising=False)
    monkeypatch.setattr(timezone, "_LOCALTIME", timezone.Path("/nowhere"))
    assert timezone.is_known_zone(timezone.current_zone())
