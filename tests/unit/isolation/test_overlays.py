"""A command that sees a folder at its own path and changes nothing of it."""

import os
import subprocess
import sys

import pytest

from tape_jupyter.isolation.overlays import Overlay, prefix
from tests.harness.folders import lies


@pytest.fixture
def top(tmp_path):
    made = tmp_path / "a folder, with: odd\\ letters é"
    (made / "sub").mkdir(parents=True)
    (made / "kept").mkdir()
    (made / "a.txt").write_text("a")
    (made / "b.txt").write_text("b")
    return made


def run(overlay, folder, script):
    before = prefix(overlay, folder)
    if before is None:
        pytest.skip("this machine has no overlays")
    return subprocess.run(
        [*before, "sh", "-c", script], capture_output=True, text=True, check=True
    ).stdout


def test_what_a_command_writes_there_is_thrown_away_and_paths_are_what_they_were(top, tmp_path):
    before = lies(top)
    overlay = Overlay(top, tmp_path / "layers", hidden=[top / "b.txt"])
    out = run(
        overlay, top / "sub", 'pwd; echo c > ../c.txt; rm ../a.txt; mkdir "$PWD/new"; ls ..; id -u'
    )
    assert out.splitlines() == [str(top / "sub"), "c.txt", "kept", "sub", str(os.getuid())]
    assert lies(top) == before


def test_files_laid_before_are_found_there_and_a_kept_folder_is_the_persons_own(top, tmp_path):
    overlay = Overlay(top, tmp_path / "layers", kept=top / "kept")
    overlay.prepare()
    (overlay.upper / "a.txt").write_text("earlier")
    assert run(overlay, top, "cat a.txt; echo 1 > kept/new.txt; echo 2 > other.txt") == "earlier"
    assert (top / "kept" / "new.txt").exists() and not (top / "other.txt").exists()
    assert (top / "a.txt").read_text() == "a"


@pytest.mark.skipif(sys.platform != "linux" or os.getuid() != 0, reason="mounts something")
def test_a_folder_in_which_something_is_mounted_is_copied_instead(top, tmp_path):
    script = f"mount -t tmpfs tmpfs '{top}/sub' && exec {sys.executable} -c \"$0\""
    code = (
        "from pathlib import Path; from tape_jupyter.isolation.overlays import *; "
        f"print(prefix(Overlay(Path({str(top)!r}), Path({str(tmp_path / 'layers')!r})), Path({str(top)!r})))"
    )
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", script, code],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        pytest.skip(f"nothing can be mounted: {done.stderr}")
    assert done.stdout.strip() == "None"


def test_where_there_is_no_unshare_there_is_no_overlay(top, tmp_path, monkeypatch):
    monkeypatch.setattr("tape_jupyter.isolation.namespaces.SYSTEM_FOLDERS", ())
    assert prefix(Overlay(top, tmp_path / "layers"), top) is None
