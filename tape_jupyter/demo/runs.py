"""One run of the demo's notebook in a process of its own: with the key, or without key and network."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from tape_jupyter.errors import TapeUsageError
from tape_jupyter.headless.run import CellRun
from tape_jupyter.isolation.namespaces import can_cut, without_network

KEYS = ("ANTHROPIC_API_KEY", "OPENAI_API_KEY")
_LEFT_OUT = re.compile(
    r"KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL|PROXY|^TAPE_|^JPY_|_BASE_URL$", re.IGNORECASE
)


class Audience(Protocol):
    """Who is told how a run gets on."""

    def starting(self, number: int, count: int, title: str) -> None: ...
    def print_cell(self, run: CellRun) -> None: ...


@dataclass(frozen=True, slots=True)
class DemoRun:
    """A run: its cells, and how many connections it tried (None where nothing counted them: while
    recording).
    """

    cells: tuple[CellRun, ...]
    connections: int | None = None

    @property
    def seconds(self) -> float:
        """Of the taped cells alone: without the kernel's start and the imports."""
        return sum(cell.seconds for cell in self.cells if cell.tape)


def demo_environment(key: str = "") -> dict[str, str]:
    """The environment of the demo itself without keys, tokens and proxies; `key` under the names
    that the SDKs read.
    """
    kept = {name: value for name, value in os.environ.items() if not _LEFT_OUT.search(name)}
    quiet = {"PYDEVD_DISABLE_FILE_VALIDATION": "1"}
    return {**kept, **quiet, **(dict.fromkeys(KEYS, key) if key else {})}


def record_demo(notebook: Path, key: str, audience: Audience) -> DemoRun:
    """Record with the key. Raises TapeUsageError where a cell fails: a demo that did not record has
    nothing to show.
    """
    run = _run_worker(["record", str(notebook)], demo_environment(key), audience)
    for cell in run.cells:
        if not cell.good:
            raise TapeUsageError(f"{cell.title}: {cell.status}: {' '.join(cell.messages)}")
    return run


def replay_demo(notebook: Path, port: int, audience: Audience) -> DemoRun:
    """Replay without a key and without network; connections to the provider's port are counted."""
    arguments = ["replay", str(notebook), "--port", str(port)]
    return _run_worker(
        [*arguments, "--cut"] if can_cut() else arguments,
        demo_environment(),
        audience,
        cut=can_cut(),
    )


def _run_worker(
    arguments: Sequence[str], env: Mapping[str, str], audience: Audience, *, cut: bool = False
) -> DemoRun:
    command = [
        *without_network(cut=cut),
        sys.executable,
        "-P",
        "-m",
        "tape_jupyter.demo.worker",
        *arguments,
    ]
    cells, reached = [], None
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as errors:
        with subprocess.Popen(  # noqa: S603
            command, env=env, stdout=subprocess.PIPE, stderr=errors, text=True
        ) as process:
            for event in _read_events(process):
                if event.pop("event") == "starting":
                    audience.starting(**event)
                elif "count" in event:
                    reached = int(event["count"])
                else:
                    cells.append(CellRun.from_record(event))
                    audience.print_cell(cells[-1])
        errors.seek(0)
        if process.returncode:
            raise TapeUsageError(f"the notebook could not be run: {errors.read().strip()[-2000:]}")
    blocked = sum("BlockedConnection" in line for cell in cells for line in cell.messages[:1])
    return DemoRun(tuple(cells), None if reached is None else reached + blocked)


def _read_events(process: subprocess.Popen[str]) -> Iterator[dict[str, Any]]:
    """Lines of its protocol; whatever else a kernel wrote to the same stream is passed over."""
    for line in process.stdout or ():
        if line.startswith('{"event": '):
            yield json.loads(line)
