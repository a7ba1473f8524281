"""A disk on which one system call fails: the nth of all that change what lies below a folder, in every process of a
command (tests/harness/faulty_disk.c, which a compiler of C makes and the loader puts before libc).

    with FaultyDisk(scratch) as disk:
        whole = disk.run(folder, "tape", "export", "churn.ipynb")
        failed = disk.run(folder, "tape", "export", "churn.ipynb", fault=Fault(3, errno.ENOSPC))

Commands are forked from a warm process.
"""

from __future__ import annotations

import json
import os
import runpy
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.harness.notebook import clean_env

CC = shutil.which("cc") if sys.platform == "linux" else None
SOURCE = Path(__file__).with_suffix(".c")
COUNTER = bytes(4096)


class Fault(NamedTuple):
    """Call number `at` fails (0: none); with `stays` all after it, too.

    An `error` of 0 moves the folder `moves` away at that moment instead. `only`: of these calls alone.
    """

    at: int = 0
    error: int = 0
    stays: bool = False
    only: str = ""
    moves: str = ""


class Ended(NamedTuple):
    """A command's end; `calls` are those that were counted (`3 write /a/b FAILS`), `said_after` the
    seconds from the first failure to where it is named at the terminal (None: it is not).
    """

    code: int
    out: str
    seconds: float
    calls: Sequence[str]
    said_after: float | None

    @property
    def failed(self) -> str:
        return next((call for call in self.calls if call.endswith(" FAILS")), "")


class FaultyDisk:
    """Runs commands on it."""

    def __init__(self, scratch: Path) -> None:
        self.counter, self.log, self.out = (scratch / name for name in ("counter", "calls", "out"))
        self.library = scratch / "faulty_disk.so"
        self.home = scratch

    def __enter__(self) -> FaultyDisk:
        made = [str(CC), "-shared", "-fPIC", "-O1", "-o", str(self.library), str(SOURCE), "-ldl"]
        subprocess.run(made, check=True)
        self.counter.write_bytes(COUNTER)
        env = clean_env(self.home) | {
            "LD_PRELOAD": str(self.library),
            "FAULT_COUNT": str(self.counter),
            "FAULT_LOG": str(self.log),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        self._warm = subprocess.Popen(
            [sys.executable, "-m", "tests.harness.faulty_disk"],
            env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        return self

    def __exit__(self, *_: object) -> None:
        self._warm.communicate()

    def run(self, folder: Path, *words: object, fault: Fault = Fault(), **env: str) -> Ended:
        """`tape WORDS`, or `python FILE`, in a folder whose changes are counted."""
        with self.counter.open("r+b") as counter:
            counter.write(COUNTER)
        self.log.unlink(missing_ok=True)
        told = {
            "FAULT_UNDER": str(folder), "FAULT_AT": str(fault.at), "FAULT_ERRNO": str(fault.error),
            "FAULT_ONLY": fault.only, "FAULT_MOVES": fault.moves, "FAULT_STAYS": "1" if fault.stays else "",
            "XDG_CONFIG_HOME": str(folder / "config"), "XDG_CACHE_HOME": str(folder / "cache"),
            "XDG_STATE_HOME": str(folder / "state"), "XDG_DATA_HOME": str(folder / "share"), **env,
        }  # fmt: skip
        asked = {"words": [*map(str, words)], "folder": str(folder), "env": told, "out": str(self.out)}  # fmt: skip
        assert self._warm.stdin is not None and self._warm.stdout is not None
        self._warm.stdin.write(json.dumps(asked) + "\n")
        self._warm.stdin.flush()
        code, seconds = json.loads(self._warm.stdout.readline())
        lines = self.log.read_text("utf-8", "replace").splitlines() if self.log.exists() else []
        calls = [line for line in lines if not line.startswith("said ")]
        said = [int(line.partition(" ")[2]) / 1000 for line in lines if line not in calls]
        out = self.out.read_text("utf-8", "replace")
        return Ended(code, out, seconds, calls, min(said, default=None))


def _run(words: Sequence[str], folder: str, env: Mapping[str, str], out: str) -> int:
    """Run it in a fork, and give its exit code."""
    process = os.fork()
    if process:
        return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    code = 70
    try:
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(os.open(out, os.O_CREAT | os.O_WRONLY | os.O_TRUNC), 1)
        os.dup2(1, 2)
        os.chdir(folder)
        os.environ.update(env)
        tempfile.tempdir = None
        code = _exit_code(words)
    except BaseException:
        import traceback

        traceback.print_exc()
        code = 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _exit_code(words: Sequence[str]) -> int:
    from tape_jupyter.cli import main

    sys.argv = [*words]
    try:
        if words[0] == "tape":
            main()
        else:
            runpy.run_path(words[0], run_name="__main__")
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    return 0


def main() -> None:
    import tape_jupyter.bundle.export
    import tape_jupyter.bundle.open
    import tape_jupyter.bundle.verify
    import tape_jupyter.cli
    import tape_jupyter.headless.run
    import tape_jupyter.session.session  # noqa: F401

    for line in sys.stdin:
        began = time.monotonic()
        code = _run(**json.loads(line))
        print(json.dumps([code, time.monotonic() - began]), flush=True)


if __name__ == "__main__":
    main()
