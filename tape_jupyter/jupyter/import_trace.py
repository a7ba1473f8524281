"""An import that is asked for in a view: `tape import`, into a notebook beside this one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tape_jupyter.cassette import paths
from tape_jupyter.errors import TapeUsageError
from tape_jupyter.jupyter import long_command
from tape_jupyter.jupyter.long_command import LongCommand, LongTask
from tape_jupyter.jupyter.viewer.server import Forged, Viewer, answers

MOST = 100
"""Names that are proposed."""
_SUFFIXES = frozenset(
    {".json", ".jsonl", ".ndjson", ".har", ".yaml", ".yml", ".eval", ".gz", ".zst", ".zip", ".flow", ".mitm",
     ".log", ".parquet", ".msgpack", ".db", ".sqlite"}
)  # fmt: skip
_IDLE = {"state": "idle", "step": "", "done": 0, "total": 0, "text": "", "path": ""}


@answers("import")
def start_import(viewer: Viewer, message: dict[str, Any]) -> dict[str, Any]:
    """{file}: begins, and gives how it stands; with {look: true} that, and the names of files that
    may be meant.
    """
    folder = viewer.cells.notebook().parent
    if message.get("look"):
        return {**long_command.last_of(viewer, "import", _IDLE), "files": _propose_files(folder)}
    file_text = message.get("file", "")
    if not isinstance(file_text, str) or file_text.startswith("-"):
        raise Forged("file")
    if not file_text.strip():
        raise TapeUsageError("name the file: its path, from this notebook's folder")
    file = Path(file_text.strip()).expanduser()
    if not (folder / file).exists():
        raise TapeUsageError(f"{file}: there is no such file in {folder}, where the kernel looks")
    goal = _find_free_notebook(folder, file.name.split(".", 1)[0] or "trace")
    command = LongCommand("import", str(file), "--out", goal.name, folder=folder)
    return LongTask("import", viewer, command, _IDLE).begin(
        lambda result: {
            "text": _format_import(result),
            "path": Path(result.get("notebook") or "").name,
        },
        lambda _error: {},
    )


@answers("import.stop")
def stop_import(viewer: Viewer, _message: dict[str, Any]) -> dict[str, Any]:
    long_command.stop_command(viewer, "import")
    return {}


def _propose_files(folder: Path) -> list[str]:
    """Files of the notebook's folder and the folders in it that look like recordings."""
    candidates = (
        each
        for place in (folder, *_find_folders(folder))
        for each in sorted(place.iterdir())
        if each.suffix in _SUFFIXES and not each.name.startswith(".") and each.is_file()
    )
    return [str(each.relative_to(folder)) for each, _ in zip(candidates, range(MOST), strict=False)]


def _find_folders(folder: Path) -> Iterator[Path]:
    for each in sorted(folder.iterdir()):
        hidden = each.name.startswith((".", "_")) or each.suffix == ".tapes"
        if each.is_dir() and not hidden and each.name != "node_modules":
            yield each


def _find_free_notebook(folder: Path, stem: str) -> Path:
    """A notebook that is not there, nor its cassettes."""
    numbers = ("", *(f"-{number}" for number in range(2, 1000)))
    for each in (folder / f"{stem}{number}.ipynb" for number in numbers):
        if not each.exists() and not paths.folder(each).exists():
            return each
    raise TapeUsageError(f"{stem}-2 to {stem}-999 are there already: rename or remove some")


def _format_import(result: Mapping[str, Any]) -> str:
    """What became of each file, and of what could not be called again."""
    left = [f"    not in the notebook: {each}" for each in result.get("not called", ())]
    from tape_jupyter.importers import assemble

    return "\n".join([assemble.assembly_text(assemble.Imported.of_record(result)), *left])
