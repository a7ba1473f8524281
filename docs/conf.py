"""Sphinx: the pages of docs/, and the example notebooks as tutorials, replayed while they are built."""

import os
import shutil
from pathlib import Path

from sphinx.application import Sphinx

DOCS = Path(__file__).parent
TUTORIALS = DOCS / "tutorials"

# The notebooks are built from copies: MyST-NB executes each beside its cassettes, from the tape.
shutil.rmtree(TUTORIALS, ignore_errors=True)
shutil.copytree(
    DOCS.parent / "example_notebooks",
    TUTORIALS,
    ignore=shutil.ignore_patterns("*.py", "__pycache__"),
)
for notebook in TUTORIALS.glob("*.ipynb"):
    text = notebook.read_text(encoding="utf-8")
    notebook.write_text(text.replace("(../docs/", "(../"), encoding="utf-8")  # pictures
os.environ["TAPE_MODE"] = "replay"

project = "tape-jupyter"
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx_click"]
html_theme = "pydata_sphinx_theme"
exclude_patterns = ["_build"]
suppress_warnings = ["mystnb.unknown_mime_type"]  # the viewer's tree; its HTML form is shown
myst_heading_anchors = 3
nb_execution_mode = "force"
nb_execution_timeout = 180
nb_execution_raise_on_error = True


def setup(app: Sphinx) -> None:
    app.connect("sphinx-click-process-epilog", show_examples_as_typed)
    app.connect("source-read", link_to_tutorials)


def link_to_tutorials(_app: Sphinx, _page: str, source: list[str]) -> None:
    """Pages link to the notebooks where the repository has them; here they are among the pages."""
    source[0] = source[0].replace("(../../example_notebooks/", "(../tutorials/")


def show_examples_as_typed(_app: Sphinx, _context: object, lines: list[str]) -> None:
    """A command's examples are no reStructuredText (`--exclude 'data/*'`)."""
    shown = [line.removeprefix("| ") for line in lines]
    shown = [line for line in shown if line.strip() != "Examples:"]
    lines[:] = [".. code-block:: text", "", *(f"   {line}" for line in shown), ""]
