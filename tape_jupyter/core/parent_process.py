"""The command that started this process, where the machine tells it."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path
from typing import NamedTuple


class ParentCommand(NamedTuple):
    """The words of the parent process's command line, and the folder it runs in (None: unknown)."""

    argv: tuple[str, ...]
    folder: Path | None


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
    except OSError:
        return _find_parent_by_ps(pid)
    arguments = command_line.rstrip(b"\0").split(b"\0")
    return ParentCommand(tuple(os.fsdecode(argument) for argument in arguments), folder)


def _find_parent_by_ps(pid: int) -> ParentCommand | None:
    if os.name != "posix":
        return None
    command = ("/bin/ps", "-o", "args=", "-p", str(pid))
    try:
        completed = subprocess.run(  # noqa: S603 - the words above
            command, capture_output=True, text=True, timeout=5, check=True
        )
        return ParentCommand(tuple(shlex.split(completed.stdout)), None)
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
