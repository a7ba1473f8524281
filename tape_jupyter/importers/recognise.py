"""Which format a file is in. A format is a module, found by the entry-point group
`tape_jupyter.importers`.

A module has `TITLE` (what people call it), `recognises(source) -> int` (0 no, 100 certainly; it
looks at the file's head) and `read(source) -> Iterator[Item]`. The surest wins; `--from
NAME` asks nobody. It may have `begin() -> Joined`.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from functools import cache
from types import ModuleType
from typing import Protocol, cast

from tape_jupyter.core import plugins
from tape_jupyter.errors import TapeUsageError
from tape_jupyter.importers import formats
from tape_jupyter.importers.source import Source, TraceError
from tape_jupyter.importers.trace import Item

GROUP = "tape_jupyter.importers"


class UnknownFormat(TraceError):
    """A file in no format that is known; whoever knows better may name it."""


class Format(Protocol):
    """What a format's module has."""

    TITLE: str

    def recognises(self, source: Source) -> int: ...
    def read(self, source: Source) -> Iterator[Item]: ...


class Joined(Protocol):
    """What a format's `begin()` gives, where it has one: it reads the files of one import together,
    and a trace that stands in several of them is one run. `rest` gives what waited for the last,
    each with its file.
    """

    def read(self, source: Source) -> Iterator[Item]: ...
    def rest(self) -> Iterator[tuple[Source, Item]]: ...


@cache
def known_formats() -> dict[str, Format]:
    """Every format by its name: our own, and those of installed packages. Ours keep their names."""
    builtin_modules = {
        each.name: f"{formats.__name__}.{each.name}"
        for each in pkgutil.iter_modules(formats.__path__)
    }
    known: dict[str, Format] = {
        name: importlib.import_module(module) for name, module in sorted(builtin_modules.items())
    }
    for name, point in plugins.entry_points_of(GROUP).items():
        if name not in known:
            known[name] = cast("Format", plugins.load_entry_point(point, ModuleType))
    return known


def named_format(name: str) -> Format:
    """Raises TapeUsageError for a name that is none."""
    if name not in known_formats():
        raise TapeUsageError(
            f"{name}: there is no such format; there are: {', '.join(sorted(known_formats()))}"
        )
    return known_formats()[name]


def recognised(source: Source) -> tuple[str, Format]:
    """The format of a file. Raises UnknownFormat for a file in none of them, TraceError for an empty
    one.
    """
    if not source.head.strip():
        raise source.failed("is empty")
    best = _find_surest(source)
    if not best and source.look_further():  # what tells may come after a long first record
        best = _find_surest(source)
    if not best:
        raise UnknownFormat(
            f"is in no format that is known: {', '.join(sorted(known_formats()))}", path=source.name
        )
    return best, known_formats()[best]


def _find_surest(source: Source) -> str:
    sure = {name: each.recognises(source) for name, each in known_formats().items()}
    best = max(sure, key=lambda name: sure[name], default="")
    return best if best and sure[best] > 0 else ""
