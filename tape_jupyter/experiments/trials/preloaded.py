"""Modules that a notebook's cells import, so that not each of its trials imports them again."""

from __future__ import annotations

import importlib
import os
import sys
import warnings
from collections.abc import Collection, Iterable
from contextlib import redirect_stderr, redirect_stdout, suppress


def imported_since(before: Collection[str]) -> list[str]:
    """The modules that were imported since then, in their order: of the interpreter and of installed
    packages alone, since a notebook's own may change or do anything.
    """
    return [name for name in list(sys.modules) if name not in before and _is_installed(name)]


def _is_installed(name: str) -> bool:
    spec = getattr(sys.modules.get(name), "__spec__", None)
    origin = str(getattr(spec, "origin", None) or "")
    return getattr(spec, "name", "") == name and origin.startswith((sys.prefix, sys.base_prefix))


def import_modules(names: Iterable[str]) -> None:
    """Import them; what they print is lost, and one that cannot be imported is left out."""
    with (
        open(os.devnull, "w", encoding="utf-8") as nothing,  # noqa: PTH123 - a device
        redirect_stdout(nothing), redirect_stderr(nothing), warnings.catch_warnings(),
    ):  # fmt: skip
        for name in names:
            with suppress(Exception):
                importlib.import_module(name)
