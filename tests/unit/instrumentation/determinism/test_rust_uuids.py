"""Ids that are drawn in Rust are the same in replay: LangChain and LiteLLM show them in every message."""

import time
import types
import uuid

import pytest

import tape_jupyter as tape
from tape_jupyter.instrumentation.determinism import rust_uuids
from tests.harness.twice import twice

uuid_utils = pytest.importorskip("uuid_utils")
compat = pytest.importorskip("uuid_utils.compat")

DRAWS = {
    "compat.uuid7": lambda: [str(compat.uuid7()) for _ in range(3)],
    "compat.uuid4": lambda: str(compat.uuid4()),
    "uuid7": lambda: str(uuid_utils.uuid7()),
    "uuid4": lambda: str(uuid_utils.uuid4()),
    "uuid1": lambda: [str(uuid_utils.uuid1()), str(compat.uuid1())],
    "uuid6": lambda: [str(uuid_utils.uuid6()), str(compat.uuid6())],
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


def test_time_based_ids_are_of_their_version_and_time(tmp_path):
    with tape.recording(tmp_path / "a.tape.yaml"):
        first, sixth, now = compat.uuid1(), compat.uuid6(), time.time()
    assert (first.version, sixth.version) == (1, 6) and first.variant == uuid.RFC_4122
    number = uuid.UUID(str(sixth)).int
    for stamp in (first.time, number >> 80 << 12 | number >> 64 & 0xFFF):
        assert abs((stamp - 0x01B21DD213814000) / 10_000_000 - now) < 60


def test_a_package_of_fastuuids_names_is_drawn_from_the_cells_seed_too(monkeypatch, tmp_path):
    """LiteLLM asks `fastuuid.uuid4()`; that package also gives several at once, and hexadecimal strings."""
    theirs = types.ModuleType("fastuuid")
    theirs.UUID = uuid.UUID
    theirs.uuid4 = lambda: uuid.UUID(bytes=b"r" * 16)
    theirs.uuid4_bulk = lambda n: [theirs.uuid4()] * n
    theirs.uuid7_as_strings_bulk = lambda n: ["rust"] * n
    undo = rust_uuids.patch(theirs)
    try:
        draw = lambda: [str(theirs.uuid4()), *map(str, theirs.uuid4_bulk(2)), *theirs.uuid7_as_strings_bulk(n=2)]  # fmt: skip
        recorded, replayed, _ = twice(tmp_path, draw)
    finally:
        undo()
    assert recorded == replayed and len(set(recorded)) == 5
    assert [uuid.UUID(each).version for each in recorded] == [4, 4, 4, 7, 7]
    assert [len(each) for each in recorded] == [36, 36, 36, 32, 32]
    assert theirs.uuid7_as_strings_bulk(1) == ["rust"]


def test_the_real_fastuuid_is_tapped(tmp_path):
    fastuuid = pytest.importorskip("fastuuid")
    recorded, replayed, _ = twice(
        tmp_path,
        lambda: [
            *map(str, (fastuuid.uuid4(), fastuuid.uuid1(), fastuuid.uuid_v1mc(), fastuuid.uuid7())),
            *fastuuid.uuid4_as_strings_bulk(2),
        ],
    )
    assert recorded == replayed
