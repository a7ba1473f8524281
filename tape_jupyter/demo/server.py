"""Starts the demo's provider in a process of its own, and stops it so that nothing listens any
more.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tape_jupyter.demo import local_model
from tape_jupyter.demo.texts import PORT
from tape_jupyter.errors import TapeUsageError


@contextmanager
def serving(folder: Path, key: str, *, live: bool) -> Iterator[str]:
    """The address of the stand-in, or of the real model; gone when the block ends. Logs into
    `folder`.

    Raises TapeUsageError where it does not start.
    """
    if live and not local_model.installed():
        raise TapeUsageError(f"--live needs the local model: {local_model.INSTALL}")
    module = f"tape_jupyter.demo.{'local_model' if live else 'provider'}"
    log = folder / "provider.log"
    with log.open("w", encoding="utf-8") as file:
        process = subprocess.Popen(  # noqa: S603  # our own modules
            [sys.executable, "-P", "-m", module, "--port", str(PORT)],
            env={**os.environ, "DEMO_KEY": key},
            stdout=subprocess.PIPE,
            stderr=file,
            text=True,
        )
    try:
        yield _read_address(process, log)
    finally:
        stop_server(process)


def _read_address(process: subprocess.Popen[str], log: Path) -> str:
    """The first line it prints that is an address; what else it prints is its own affair."""
    for line in process.stdout or ():
        if line.startswith("http://"):
            return line.strip()
    last = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-1:]
    raise TapeUsageError(f"the provider did not start: {' '.join(last) or 'it said nothing'}")


def stop_server(process: subprocess.Popen[str]) -> None:
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process.stdout:
        process.stdout.close()
