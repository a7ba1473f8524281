"""Where a notebook is replayed in a copy of its folder, the folder itself cannot be changed."""

import subprocess
import sys

from tape_jupyter.core.copied_folder import CopiedFolder, copied_folder

HERE = CopiedFolder("/tmp/tape-x/work", "/home/ada/work")


def test_the_environment_tells_it():
    assert copied_folder(HERE.variable()) == HERE and copied_folder({}) is None


CHANGES = (
    "open(OWN / 'a', 'w')",
    "os.remove(OWN / 'a')",
    "os.utime(OWN / 'a')",
    "os.chmod(OWN / 'a', 0o600)",
    "os.link(OWN / 'a', COPY / 'b')",
    "os.symlink(OWN / 'a', COPY / 'b')",
    "os.rename(COPY / 'a', OWN / 'b')",
    "shutil.move(COPY / 'a', OWN / 'b')",
    "os.mkdir(OWN / 'b')",
    "sqlite3.connect(OWN / 'b')",
)


def test_no_kind_of_change_reaches_the_folder_itself_and_the_copy_is_free(tmp_path):
    own, copy = tmp_path / "own", tmp_path / "copy"
    for folder in (own, copy):
        folder.mkdir()
        (folder / "a").write_text("as it was")
    tried = f"""
import os, pathlib, shutil, sqlite3
from tape_jupyter.core.copied_folder import CopiedFolder
OWN, COPY = pathlib.Path({str(own)!r}), pathlib.Path({str(copy)!r})
CopiedFolder(str(COPY), str(OWN)).guard()
for change in {CHANGES!r}:
    try:
        eval(change)
    except PermissionError as error:
        assert "works in a copy" in str(error), error
    else:
        print("went through:", change)
os.utime(COPY / "a")
os.chmod(COPY / "a", 0o600)
(COPY / "a").write_text("changed")
os.rename(COPY / "a", COPY / "c")
print(open(OWN / "a").read())
"""
    done = subprocess.run(
        [sys.executable, "-c", tried], capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("as it was\n", "")
    assert [each.name for each in own.iterdir()] == ["a"]
