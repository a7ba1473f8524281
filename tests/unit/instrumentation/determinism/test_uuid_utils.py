"""Ids that uuid-utils draws in Rust are the same in replay: LangChain shows them in every message."""

import time
import uuid

import pytest

import tape_jupyter as tape
from tests.twice import twice

uuid_utils = pytest.importorskip("uuid_utils")
compat = pytest.importorskip("uuid_utils.compat")

DRAWS = {
    "compat.uuid7": lambda: [str(compat.uuid7()) for _ in range(3)],
    "compat.uuid4": lambda: str(compat.uuid4()),
    "uuid7": lambda: str(uuid_utils.uuid7()),
    "uuid4": lambda: str(uuid_utils.uuid4()),
    "a time that is given": lambda: str(compat.uuid7(timestamp=1_700_000_000, nanos=5)),
}


@pytest.mark.parametrize("name", DRAWS)
def test_an_id_is_the_same_in_replay_and_another_in_another_recording(tmp_path, name):
    recorded, replayed, _ = twice(tmp_path, DRAWS[name])
    assert recorded == replayed
    with tape.recording(tmp_path / "b.tape.yaml"):
        assert DRAWS[name]() != recorded


def test_it_is_an_id_of_its_version_and_rises(tmp_path):
    with tape.recording(tmp_path / "a.tape.yaml"):
        drawn = [compat.uuid7() for _ in range(50)]
        now, other = time.time(), uuid_utils.uuid4()
    assert all(
        type(each) is uuid.UUID and each.version == 7 and each.variant == uuid.RFC_4122
        for each in drawn
    )
    assert drawn == sorted(drawn) and len(set(drawn)) == 50
    assert abs((drawn[-1].int >> 80) / 1000 - now) < 60
    assert type(other) is uuid_utils.UUID and other.version == 4


def test_outside_of_a_cell_it_is_rusts_own(tmp_path):
    seen = {str(compat.uuid4()) for _ in range(3)} | {str(uuid_utils.uuid7()) for _ in range(3)}
    assert len(seen) == 6


def test_what_langchain_shows_is_the_same(tmp_path):
    uuids = pytest.importorskip("langchain_core.utils.uuid")
    recorded, replayed, _ = twice(
        tmp_path, lambda: [str(uuids.uuid7()), str(uuids.uuid7(1_700_000_000_123_456_789))]
    )
    assert recorded == replayed
