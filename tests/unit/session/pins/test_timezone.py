"""A replayed cell sees the time zone of its recording; afterwards the machine's own is back."""

import os
import time
from datetime import UTC, datetime

import pytest

import tape_jupyter as tape
from tape_jupyter.determinism import timezone

pytestmark = pytest.mark.skipif(
    not timezone.HELD, reason="this system cannot change a program's zone"
)


@pytest.fixture
def zone(monkeypatch):
    def be_in(name):
        monkeypatch.setenv("TZ", name)
        time.tzset()

    yield be_in
    monkeypatch.undo()
    time.tzset()


@tape.tool
def ask():
    return 1


def local():
    ask()
    return datetime.fromtimestamp(1_750_000_000).isoformat(), time.localtime(0).tm_hour, time.tzname


def test_a_replay_sees_the_recordings_zone_and_the_next_code_its_own(tmp_path, zone):
    path = tmp_path / "a.tape.yaml"
    zone("Asia/Tokyo")
    with tape.recording(path):
        recorded = local()
    zone("America/Lima")
    with tape.replaying(path):
        assert local() == recorded
    assert os.environ["TZ"] == "America/Lima" and time.localtime(0).tm_hour == 19


def test_without_the_pin_the_replay_sees_its_own_zone(tmp_path, zone):
    path = tmp_path / "a.tape.yaml"
    zone("Asia/Tokyo")
    with tape.recording(path):
        recorded = local()
    zone("America/Lima")
    with tape.replaying(path, no_pin=["timezone"]):
        assert local() != recorded


def test_the_zone_is_back_after_a_cell_that_failed(tmp_path, zone):
    path = tmp_path / "a.tape.yaml"
    zone("Asia/Tokyo")
    with tape.recording(path):
        local()
    zone("America/Lima")
    with pytest.raises(ZeroDivisionError), tape.replaying(path):
        1 / 0
    assert time.localtime(0).tm_hour == 19


def test_a_zone_that_this_system_does_not_know_is_named(tmp_path, zone):
    path = tmp_path / "a.tape.yaml"
    zone("Asia/Tokyo")
    with tape.recording(path):
        local()
    path.write_text(path.read_text().replace("zone: Asia/Tokyo", "zone: Moon/Sea"))
    zone("UTC")
    with tape.replaying(path) as block:
        local()
    assert "timezone Moon/Sea of the recording is not used" in "\n".join(block.report.warnings)


def test_local_midnight_is_the_recordings(tmp_path, zone):
    path = tmp_path / "a.tape.yaml"
    zone("Asia/Tokyo")

    def date():
        ask()
        return datetime.fromtimestamp(1_750_000_000, UTC).astimezone().date()

    with tape.recording(path):
        recorded = date()
    zone("America/Lima")
    with tape.replaying(path):
        assert date() == recorded
