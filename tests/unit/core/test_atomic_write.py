"""A file is the old one or the new one, whole, whatever happens while it is written."""

import os
import stat

import pytest
from tape_jupyter.core.atomic_write import replacing


@pytest.fixture(autouse=True)
def usual_umask():
    before = os.umask(0o022)
    yield
    os.umask(before)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_until_the_block_ends_there_is_the_old_file_and_then_the_new_one(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("old")
    with replacing(path) as draft:
        draft.write_text("new")
        assert path.read_text() == "old" and draft.parent == path.parent
    assert path.read_text() == "new" and names(tmp_path) == ["notes.txt"]


@pytest.mark.parametrize("error", [OSError("no space left"), KeyboardInterrupt()])
def test_what_ends_early_leaves_the_old_file_and_no_other(tmp_path, error):
    path = tmp_path / "notes.txt"
    path.write_text("old")
    with pytest.raises(type(error)), replacing(path) as draft:
        draft.write_text("half of the n")
        raise error
    assert path.read_text() == "old" and names(tmp_path) == ["notes.txt"]


def test_two_that_write_at_once_do_not_meet(tmp_path):
    path = tmp_path / "notes.txt"
    with replacing(path) as one, replacing(path) as other:
        one.write_text("one")
        other.write_text("other")
    assert path.read_text() == "one" and names(tmp_path) == ["notes.txt"]


def test_what_is_private_is_so_before_anything_is_in_it(tmp_path):
    for private, expected in ((True, 0o600), (False, 0o644)):
        with replacing(tmp_path / "notes.txt", private=private) as draft:
            assert mode(draft) == expected
        assert mode(tmp_path / "notes.txt") == expected


def test_it_may_be_made_unreadable_in_the_block_and_is_on_the_disk_all_the_same(
    tmp_path, monkeypatch
):
    synced = []
    real = os.fsync
    monkeypatch.setattr(
        os, "fsync", lambda file: (synced.append(os.fstat(file).st_size), real(file))
    )
    with replacing(tmp_path / "notes.txt", lasting=True) as draft:
        draft.write_bytes(b"all of it")
        draft.chmod(0o000)
    assert synced == [9] and mode(tmp_path / "notes.txt") == 0


def test_where_nothing_can_be_written_that_is_an_error_and_nothing_is_left(tmp_path):
    with pytest.raises(OSError), replacing(tmp_path / "none" / "notes.txt"):
        pytest.fail("there is nothing to write to")
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError), replacing(tmp_path / "folder"):
        pass
    assert names(tmp_path) == ["folder"]
