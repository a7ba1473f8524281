"""A notebook's text, read by nbformat, for all who run, compare or plan one."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nbformat import NotebookNode


def parse_notebook(text: str) -> NotebookNode:
    """The notebook as nbformat 4.

    What nbformat mends (cells without an id, two cells with one id) is mended without its warnings.
    Raises ValueError, of one line, for what is no notebook.
    """
    import nbformat

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            notebook: NotebookNode = nbformat.reads(text, as_version=4)  # type: ignore[no-untyped-call]
            # A key that its version does not know hinders nobody: nbclient runs such a notebook.
            nbformat.validate(notebook, relax_add_props=True)
    except Exception as error:  # nbformat has a dozen
        lines = str(error).splitlines() or [type(error).__name__]
        raise ValueError(f"not a notebook that can be read: {lines[0]}") from error
    return notebook
