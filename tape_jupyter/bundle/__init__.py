"""The bundle, one file that holds a notebook's session whole and proves itself (`churn.tape.zip`).

`opened` is the way in for whoever reads one: what it gives was checked to the last byte, and
nothing in it has run.
"""

from tape_jupyter.bundle.archive import Bundle, opened
from tape_jupyter.bundle.archive.manifest import Manifest

__all__ = ["Bundle", "Manifest", "opened"]
