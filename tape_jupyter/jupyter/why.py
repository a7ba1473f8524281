"""A search for a cause that is asked for in a kernel: `tape why`, of the notebook on the disk."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tape_jupyter.errors import TapeUsageError
from tape_jupyter.jupyter import long_command
from tape_jupyter.jupyter.long_command import LongCommand, LongTask
from tape_jupyter.jupyter.viewer.server import Viewer, answers, text_field

_IDLE = {"state": "idle", "step": "", "done": 0, "total": 0, "text": "", "path": "", "tree": [],
         "words": [], "layers": []}  # fmt: skip
_LONGEST = 2_000


@answers("why")
def start_why(viewer: Viewer, message: dict[str, Any]) -> dict[str, Any]:
    """{cassette, good, bad, check}: begins, and gives how it stands; with {look: true} only that.
    A side "" is the cassette itself; without a cassette the one that is shown.
    """
    if message.get("look"):
        return long_command.last_of(viewer, "why", _IDLE)
    cassette, good, bad, check = (
        text_field(message, name, "", _LONGEST).strip()
        for name in ("cassette", "good", "bad", "check")
    )
    if not check:
        raise TapeUsageError(
            "say what must hold: a Python expression, cell:N, output:N or a pytest file"
        )
    notebook = viewer.cells.notebook()
    cassette = cassette or str(viewer.session()["cassette"])
    sides = [f"--good={good or cassette}", f"--bad={bad or cassette}"]
    arguments = [str(notebook), *sides, f"--check={check}", f"--name={cassette}"]
    command = LongCommand("why", *arguments, folder=notebook.parent)
    return LongTask("why", viewer, command, _IDLE).begin(_build_findings, lambda _error: {})


@answers("why.stop")
def stop_why(viewer: Viewer, _message: dict[str, Any]) -> dict[str, Any]:
    long_command.stop_command(viewer, "why")
    return {}


def _build_findings(result: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "text": "\n".join(result["notes"]),
        "words": result["words"],
        "tree": result["tree"],
        "layers": [list(pair) for pair in result["layers"].items()],
    }
