"""Harness: how a folder lies, to the byte and to the nanosecond; the CLI on a notebook in it; what a notebook shows."""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import nbformat

from tests.harness.notebook import clean_env


def lies(top):
    """Every path below a folder, and itself: kind, mode, time, content."""
    found = {}
    for path in [top, *sorted(top.rglob("*"))]:
        about = path.lstat()
        content = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        link = str(path.readlink()) if path.is_symlink() else ""
        found[str(path)] = (about.st_mode, about.st_mtime_ns, content, link)
    return found


def tape(*words, home, cwd=None, **more):
    """`tape ...` in a process of its own, as a newcomer; gives what it told and its exit code."""
    command = [sys.executable, "-m", "tape_jupyter", *map(str, words)]
    env = clean_env(home) | more
    return subprocess.run(
        command, capture_output=True, text=True, check=False, env=env, cwd=cwd or home
    )


def told(done):
    """Of `--json`: the cells' statuses, and all of it."""
    report = json.loads(done.stdout)
    return [cell["status"] for cell in report["cells"]], report


def prints(notebook):
    """What each code cell of a saved notebook prints."""
    cells = nbformat.read(notebook, as_version=4).cells
    return [
        "".join(out.get("text", "") for out in cell.get("outputs", ()) if "text" in out)
        for cell in cells
    ]


def size(path):
    return os.stat(Path(path)).st_size
