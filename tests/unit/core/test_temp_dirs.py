"""Folders that are thrown away: nothing of them is left, whatever stood in them and whoever was killed."""

import os
import subprocess
import sys
import tempfile
import time

import pytest

from tape_jupyter.core import temp_dirs
from tape_jupyter.errors import TapeError
from tests.harness.ordinary_user import ordinary_user

pytestmark = pytest.mark.skipif(
    os.name != "posix", reason="processes are asked for by their numbers"
)


@pytest.fixture(autouse=True)
def temporary(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


@pytest.fixture
def ended():
    """The number of a process that is no more."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def aged(folder):
    folder.mkdir()
    (folder / "file").write_text("1")
    then = time.time() - temp_dirs.LEFT - 1
    os.utime(folder, (then, then))
    return folder


def test_a_folder_goes_whatever_was_left_in_it():
    with temp_dirs.scratch("proof") as place:
        locked = place / "locked"
        locked.mkdir()
        (locked / "file").write_text("1")
        (locked / "file").chmod(0)
        locked.chmod(0o500)
    assert not place.exists()


def test_a_person_who_is_not_root_can_remove_what_an_overlay_left():
    code = """import os; from tape_jupyter.core import temp_dirs
with temp_dirs.scratch('replay') as place:
    os.mkdir(place / 'work'); os.mkdir(place / 'work' / 'work', 0)
print(place.exists())"""
    env = {**os.environ, "TMPDIR": tempfile.gettempdir()}
    command = [*ordinary_user(), sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, env=env, check=False)
    assert (done.stdout, done.returncode) == ("False\n", 0), done.stderr


def test_the_folder_around_it_is_left_as_it_was(temporary):
    temporary.chmod(0o755)
    with temp_dirs.scratch("proof") as place:
        place.rmdir()  # it is gone before we remove it
    temp_dirs.clean(place)
    assert temporary.stat().st_mode & 0o777 == 0o755


def test_what_a_link_in_it_points_to_is_left_as_it_was(temporary):
    far = temporary / "far"
    far.write_text("1")
    far.chmod(0o444)
    with temp_dirs.scratch("proof") as place:
        (place / "in").mkdir()
        (place / "in" / "link").symlink_to(far)
        (place / "in").chmod(0o500)
    assert not place.exists() and far.stat().st_mode & 0o777 == 0o444


def test_it_goes_where_the_work_in_it_fails():
    with pytest.raises(ZeroDivisionError), temp_dirs.scratch("proof") as place:
        raise ZeroDivisionError
    assert not place.exists()


def test_what_a_killed_process_left_goes_with_the_next_one(temporary, ended):
    left = aged(temporary / f"tape-proof-{ended}-abc")
    with temp_dirs.scratch("replay"):
        assert not left.exists()


def test_folders_of_living_processes_of_today_and_of_others_stay(temporary, ended):
    kept = [
        aged(temporary / f"tape-proof-{os.getpid()}-abc"),
        aged(temporary / "tape-proof-abc"),
        aged(temporary / f"mine-{ended}-abc"),
    ]
    today = temporary / f"tape-proof-{ended}-new"
    today.mkdir()
    far = aged(temporary / "far")
    (temporary / f"tape-proof-{ended}-link").symlink_to(far)
    temp_dirs.sweep_folders()
    assert all(each.exists() for each in (*kept, today, far / "file"))


def test_a_full_or_missing_place_is_said(monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "none"))
    with pytest.raises(TapeError, match="Set TMPDIR"), temp_dirs.scratch("proof"):
        pass
