"""Files of a Jupyter server that serves a stranger's notebook: none outside of its folder, whatever
links the notebook put there.

Loaded by that server alone (bundle/jupyterlab.py).
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from jupyter_server.services.contents.filecheckpoints import AsyncFileCheckpoints
from jupyter_server.services.contents.largefilemanager import AsyncLargeFileManager
from tornado.web import HTTPError


def require_inside(path: str, root: str) -> None:
    """Raises HTTPError (403) where a file lies outside of a folder, links followed."""
    if not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(root)):
        raise HTTPError(403, f"{Path(path).name} leads out of the folder of this bundle")


class EnclosedCheckpoints(AsyncFileCheckpoints):
    """Where Jupyter keeps the older state of a file."""

    def checkpoint_path(self, checkpoint_id: str, path: str) -> Any:
        found = super().checkpoint_path(checkpoint_id, path)  # type: ignore[no-untyped-call]
        require_inside(found, self.root_dir)
        return found


class EnclosedContents(AsyncLargeFileManager):
    """The files that Jupyter lists, reads and writes."""

    def _get_os_path(self, path: str) -> Any:
        found = super()._get_os_path(path)  # type: ignore[no-untyped-call]
        require_inside(found, self.root_dir)
        return found

    def _checkpoints_class_default(self) -> Any:
        return EnclosedCheckpoints
