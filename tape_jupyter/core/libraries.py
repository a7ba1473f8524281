"""Who wrote a class or a function: the user, or an installed library. Only looks."""

from __future__ import annotations

import functools
import site
import sys
import sysconfig
from pathlib import Path
from typing import Any


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
    """The standard library, an installed package, or this package."""
    path = Path(file)
    return any(path.is_relative_to(folder) for folder in _list_library_folders())


@functools.cache
def _list_library_folders() -> tuple[Path, ...]:
    paths = {sysconfig.get_paths()[key] for key in ("stdlib", "platstdlib", "purelib", "platlib")}
    return tuple(
        Path(p)
        for p in {*paths, *site.getsitepackages(), site.getusersitepackages(), _find_own_package()}
    )


def _find_own_package() -> str:
    return str(Path(__file__).parents[1])
