"""Libraries: whether one is imported, and whether it or the user wrote a class or a function. Only
looks.
"""

from __future__ import annotations

import functools
import site
import sys
import sysconfig
from pathlib import Path
from typing import Any


def imported_module(name: str) -> Any:
    """The module of that name; None where it is not imported, or another thread is at it."""
    module = sys.modules.get(name)
    if module is None or getattr(getattr(module, "__spec__", None), "_initializing", False):
        return None
    return module


def is_library_class(cls: type) -> bool:
    """Whether somebody else wrote the class: an installed library, or Python itself."""
    name = cls.__module__
    if name == "builtins" or not isinstance(name, str):
        return True
    file = getattr(sys.modules.get(name), "__file__", None)
    return name != "__main__" and not (isinstance(file, str) and not is_library_path(file))


def is_library_file(code: Any) -> bool:
    return is_library_path(code.co_filename)


@functools.cache
def is_library_path(file: str) -> bool:
    """The standard library, an installed package (wherever it was installed to), or this package."""
    path = Path(file)
    return not _INSTALLED.isdisjoint(path.parts) or any(
        path.is_relative_to(folder) for folder in _list_library_folders()
    )


_INSTALLED = frozenset({"site-packages", "dist-packages"})


@functools.cache
def _list_library_folders() -> tuple[Path, ...]:
    paths = {sysconfig.get_paths()[key] for key in ("stdlib", "platstdlib", "purelib", "platlib")}
    return tuple(
        Path(p)
        for p in {*paths, *site.getsitepackages(), site.getusersitepackages(), _find_own_package()}
    )


def _find_own_package() -> str:
    return str(Path(__file__).parents[1])
