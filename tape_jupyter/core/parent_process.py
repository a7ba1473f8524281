"""The command that started this process, where the machine tells it."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path
from typing import NamedTuple

_DATE_WORDS = 5
"""Of `ps -o lstart=`: Sat Nov 28 18:03:38 2026."""


class ParentCommand(NamedTuple):
    """The words of the parent process's command line, the folder it runs in (None: unknown), and when
    it began, in words of the machine's ("": unknown): a number is another process's one day.
    """

    argv: tuple[str, ...]
    folder: Path | None
    began: str = ""


def parent_command() -> ParentCommand | None:
    """What started this process; None where that cannot be found out (Windows, a parent of
    another user).

    Linux tells both in /proc; elsewhere `ps` tells the words, where a path with a blank falls into
    two.
    """
    pid = os.getppid()
    try:
        command_line = Path(f"/proc/{pid}/cmdline").read_bytes()
        folder = Path(f"/proc/{pid}/cwd").resolve(strict=True)
        # behind the name, which may hold anything, the 20th: clock ticks since the machine started
        began = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[19].decode()
    except OSError:
        return _find_parent_by_ps(pid)
    arguments = command_line.rstrip(b"\0").split(b"\0")
    return ParentCommand(tuple(os.fsdecode(argument) for argument in arguments), folder, began)


def _find_parent_by_ps(pid: int) -> ParentCommand | None:
    if os.name != "posix":
        return None
    command = ("/bin/ps", "-o", "lstart=", "-o", "args=", "-p", str(pid))
    try:
        completed = subprocess.run(  # noqa: S603 - the words above
            command, capture_output=True, text=True, timeout=5, check=True
        )
        words = shlex.split(completed.stdout)
        return ParentCommand(tuple(words[_DATE_WORDS:]), None, " ".join(words[:_DATE_WORDS]))
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
