"""What other installed packages add to tape-jupyter, by entry points.

Each registry names its group and says what an entry point of it gives. docs/contributing/extend.md
has an example of each.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, TypeVar

from tape_jupyter.errors import TapeUsageError

_Kind = TypeVar("_Kind")


@cache
def entry_points_of(group: str) -> Mapping[str, EntryPoint]:
    """The entry points of a group, by name. Packages installed later count from the next start."""
    return {point.name: point for point in _read_entry_points().select(group=group)}


def load_entry_point(point: EntryPoint, kind: type[_Kind]) -> _Kind:
    """The object that an entry point names.

    Raises TapeUsageError, with the package's name, where it cannot be imported or is no `kind`.
    """
    package = point.dist.name if point.dist is not None else "an installed package"
    context = f"{package}: its entry point {point.name!r} of {point.group}"
    try:
        loaded = point.load()
    except Exception as error:
        raise TapeUsageError(
            f"{context} cannot be loaded ({type(error).__name__}: {error})"
        ) from error
    if not isinstance(loaded, kind):
        raise TapeUsageError(f"{context} gives {loaded!r}, which is no {kind.__name__}")
    return loaded


def load_all(group: str, kind: type[_Kind]) -> dict[str, _Kind]:
    """All objects of a group, by name. One that cannot be loaded is named in a warning, and left
    out.
    """
    loaded = {}
    for name, point in entry_points_of(group).items():
        try:
            loaded[name] = load_entry_point(point, kind)
        except TapeUsageError as error:
            warnings.warn(str(error), RuntimeWarning, stacklevel=2)
    return loaded


@cache
def _read_entry_points() -> Any:
    """All entry points, of a class that differs between Python 3.11 and 3.12; both can `select`.

    Read once: it opens a file of every installed package.
    """
    return entry_points()
