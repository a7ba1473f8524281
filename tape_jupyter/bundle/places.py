"""Doors room: where bundles lie: a zip, an unpacked folder, or a URL (`s3://`, `gs://`; extra `remote`)."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from tape_jupyter.errors import BundleError


@contextlib.contextmanager
def fetched(place: str | Path) -> Iterator[Path]:
    """The zip or folder at a place, on this machine."""
    path = Path(place)
    if not path.exists():
        raise BundleError("there is no such file or folder", place=str(place))
    yield path
