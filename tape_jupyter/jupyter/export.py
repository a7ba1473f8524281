"""An export that is asked for in a kernel: `tape export`, of the notebook as it lies on the disk.

What a view asks of an export: begin it, how far is it, stop it.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tape_jupyter.core.plain_text import format_count
from tape_jupyter.core.progress import Tell
from tape_jupyter.errors import NotExported, TapeError
from tape_jupyter.jupyter import long_command
from tape_jupyter.jupyter.long_command import LongCommand, LongTask
from tape_jupyter.jupyter.viewer.server import Forged, Viewer, answers


class Export(LongCommand):
    """One `tape export`."""

    def __init__(self, notebook: Path, arguments: Sequence[str] = ()) -> None:
        super().__init__("export", str(notebook), *arguments, "--python", sys.executable)

    def run(self, on_progress: Tell) -> dict[str, Any]:
        """What it says of the bundle that it wrote.

        Raises NotExported where a cell differs or a secret was found, TapeUsageError for all else
        that is in the way.
        """
        result = super().run(on_progress)
        if not result.get("ok"):
            raise NotExported(str(result.get("why", "it gave no reason")))
        return result


def export_text(result: Mapping[str, Any], notebook: Path) -> str:
    """What a person reads of a bundle that was written."""
    if result["differences"]:
        outcome = "NOT every cell replayed as saved"
    else:
        outcome = "every cell replayed as saved"
    lines = [
        (
            f"{result['path']}: {format_count(result['bytes'], 'byte')}, "
            f"{format_count(result['cells'], 'cell')}, {format_count(result['calls'], 'call')}"
        ),
        f"  sha256 {result['sha256']}",
        f"  {notebook.name} as last saved; {outcome}, in a fresh kernel; {'; '.join(result['guards'])}",
        *(
            f"  {each['count']} x {each['kind']} in {each['where']}, masked"
            for each in result["redactions"]
        ),
        *(f"  ! {note}" for note in result["notes"]),
        *([f"  test: {_shorten_path(notebook, Path(result['test']))}"] if "test" in result else []),
    ]
    return "\n".join(lines)


def _shorten_path(notebook: Path, file: Path) -> str:
    if file.parent.resolve() == notebook.parent.resolve():
        return file.name
    return str(file)


def step(what: str, done: int, total: int, name: str = "tape export") -> str:
    """A step in one line."""
    return f"{name}: {what}" + (f" ({done} of {total})" if total else "")


_FLAGS = {
    "redact": "--redact",
    "allow_differences": "--allow-differences",
    "no_index": "--no-index",
}


_IDLE = {"state": "idle", "step": "", "done": 0, "total": 0, "text": "", "path": "", "sha256": "",
         "differs": False, "secret": False}  # fmt: skip


@answers("export")
def start_export(viewer: Viewer, message: dict[str, Any]) -> dict[str, Any]:
    """{path?, redact?, allow_differences?, no_index?}: begins, and gives how it stands; with {look:
    true} only that.
    """
    if message.get("look"):
        return long_command.last_of(viewer, "export", _IDLE)
    path = message.get("path", "")
    flags = [flag for name, flag in _FLAGS.items() if _read_flag(message, name)]
    if not isinstance(path, str) or path.startswith("-"):
        raise Forged("path")
    notebook = viewer.cells.notebook()
    command = Export(notebook, [*([path] if path else []), *flags])
    return LongTask("export", viewer, command, _IDLE).begin(
        lambda result: {
            "text": export_text(result, notebook),
            "path": result["path"],
            "sha256": result["sha256"],
            "differs": bool(result["differences"]),
        },
        _describe_refusal,
    )


def _describe_refusal(error: TapeError) -> Mapping[str, Any]:
    why = str(error)
    return {"differs": "--allow-differences" in why, "secret": "--redact" in why}


@answers("export.stop")
def stop_export(viewer: Viewer, _message: dict[str, Any]) -> dict[str, Any]:
    long_command.stop_command(viewer, "export")
    return {}


def _read_flag(message: dict[str, Any], name: str) -> bool:
    value = message.get(name, False)
    if not isinstance(value, bool):
        raise Forged(name)
    return value
