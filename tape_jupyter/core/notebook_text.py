"""A notebook's text, read for all who run, compare or plan one."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tape_jupyter.core import notebook_schema
from tape_jupyter.core.plain_text import join_some

if TYPE_CHECKING:
    from nbformat import NotebookNode


_NAMED = 5


def describe_notebooks(folder: Path) -> str:
    """`one of its notebooks: a.ipynb, b.ipynb`; "" where a path is no folder with notebooks."""
    names = _list_notebooks(folder)
    return f"one of its notebooks: {join_some(names, _NAMED)}" if names else ""


def describe_absence(path: Path, what: str = "notebook") -> str:
    """`there is no such notebook; beside it: a.ipynb, b.ipynb`."""
    names = _list_notebooks(path.parent)
    beside = f"; beside it: {join_some(names, _NAMED)}" if names else ""
    return f"there is no such {what}{beside}"


def _list_notebooks(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.glob("*.ipynb")) if folder.is_dir() else []


def parse_notebook(text: str) -> NotebookNode:
    """The notebook as nbformat 4. Raises ValueError, of one line, for what is no notebook."""
    try:
        notebook: NotebookNode = notebook_schema.by_nbformat(text, 4)
    except Exception as error:  # nbformat has a dozen
        lines = str(error).splitlines() or [type(error).__name__]
        if isinstance(error, AttributeError):  # JSON that is no object
            lines = ["it does not begin with { as notebooks do"]
        elif not text.strip():
            lines = ["the file is empty"]
        elif '"cells"' not in text and text.lstrip().startswith("{"):
            lines = ["it has no cells: another program wrote it, or a part is missing"]
        elif "Unsupported nbformat version" in lines[0]:
            lines = [f"{lines[0][:100]}; pip install --upgrade nbformat may know it"]
        raise ValueError(f"not a notebook that can be read: {lines[0][:200]}") from error
    notebook_schema.require_whole_characters(notebook.cells)
    return notebook


@dataclass(frozen=True, slots=True)
class CodeCell:
    """A code cell's id ("": it has none, or another cell has it too), its source, and its outputs
    as the file has them (a text may be a list of lines).
    """

    id: str
    source: str
    outputs: Sequence[Any] = ()


def code_cells(text: str) -> list[CodeCell]:
    """The code cells of a notebook, in order. Raises ValueError as `parse_notebook`.

    A notebook of version 4 is read without nbformat, whose import takes a second or two.
    """
    notebook = None if notebook_schema.wrong(text.encode()) else json.loads(text)
    if notebook and notebook["nbformat"] == 4:
        notebook_schema.complete_notebook(notebook)
        cells = notebook["cells"]
    else:
        cells = parse_notebook(text).cells
    code = [each for each in cells if each["cell_type"] == "code"]
    ids = Counter(str(each.get("id") or "") for each in cells)
    return [
        CodeCell(name if ids[name] == 1 else "", "".join(each["source"]), each["outputs"])
        for each in code
        for name in [str(each.get("id") or "")]
    ]
