"""The code cells of a saved notebook, by its JSON alone: for those who only look what it holds, of any
notebook that lies about. Who runs or compares one reads it by core/notebook_text.py.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple


class SavedCell(NamedTuple):
    """A code cell's id ("": it has none) and its source."""

    id: str
    source: str


def read_saved_cells(notebook: Path) -> list[SavedCell]:
    """Of a file; none where it cannot be read, or is no notebook of version 4."""
    try:
        return load_saved_cells(notebook.read_bytes())
    except OSError:
        return []


def load_saved_cells(content: bytes) -> list[SavedCell]:
    """Of a file's content; none where it is no notebook of version 4."""
    try:
        notebook = json.loads(content)
    except (ValueError, RecursionError):
        return []
    return list_saved_cells(notebook) if isinstance(notebook, dict) else []


def list_saved_cells(notebook: Mapping[str, Any]) -> list[SavedCell]:
    """In order; what is no cell is passed over."""
    cells = notebook.get("cells")
    code = [
        each
        for each in (cells if isinstance(cells, list) else ())
        if isinstance(each, dict) and each.get("cell_type") == "code"
    ]
    return [
        SavedCell(str(each.get("id") or ""), _join_source(each.get("source", ""))) for each in code
    ]


def _join_source(source: Any) -> str:
    return "".join(map(str, source)) if isinstance(source, list) else str(source)
