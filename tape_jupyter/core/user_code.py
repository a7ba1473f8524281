"""Whose code a module is: the user's own (the notebook, files beside it), or a library's."""

from __future__ import annotations

import builtins
import os
import re
import sys
import sysconfig
import types
from functools import lru_cache
from pathlib import Path
from typing import Any

MACHINERY = frozenset(
    {
        "IPython",
        "ipykernel",
        "tape_jupyter",
        "traitlets",
        "tornado",
        "zmq",
        "jupyter_client",
        "comm",
        "matplotlib_inline",
    }
)
"""Packages that run the notebook: what they do is none of the cell's doing."""


SDKS = frozenset(
    {
        "aiohttp",
        "anthropic",
        "boto3",
        "botocore",
        "cohere",
        "google",
        "groq",
        "httpx",
        "httpx2",
        "litellm",
        "mistralai",
        "openai",
        "requests",
    }
)
"""Packages whose clients ask models: to read a reply of theirs, as it comes, changes none of them."""


def bag(text: str) -> frozenset[str]:
    """The words of a text."""
    return frozenset(text.split())


def _find_installed_folders() -> tuple[str, ...]:
    paths = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    folders = {str(Path(p)) for p in paths if p} | {str(Path(p).resolve()) for p in paths if p}
    return tuple(sorted(folders))


INSTALLED = _find_installed_folders()


_HEAP = 1 << 9  # Py_TPFLAGS_HEAPTYPE: a class statement made it
_CELL_FILE = re.compile(r"ipykernel_\d+[/\\]|^<ipython-input-")


def is_cell(path: str) -> bool:
    """Whether ipykernel or IPython named a cell's code so (`ipykernel_launcher.py` is none)."""
    return _CELL_FILE.search(path) is not None


def name_cells(text: str) -> str:
    """A text (a traceback, say) that names the code of cells as in any kernel: ipykernel puts it into a
    folder that is named by its process.
    """
    return _CELL_FOLDER.sub("ipykernel/", text) if "ipykernel_" in text else text


_CELL_FOLDER = re.compile(r"""[^\s"'<>|]*ipykernel_\d+[/\\]+""")


def is_installed(path: str) -> bool:
    """Whether a file belongs to an installation of Python or of a package."""
    return (
        path.startswith((*INSTALLED, "<frozen"))
        or "site-packages" in path
        or "dist-packages" in path
    )


def is_users(module: str) -> bool:
    """Whether a module is the notebook itself or a file of the user's."""
    return module == "__main__" or (module in sys.modules and _is_users(module))


@lru_cache(4096)
def _is_users(name: str) -> bool:
    if not name or name.partition(".")[0] in MACHINERY or name in sys.builtin_module_names:
        return False
    path = getattr(sys.modules[name], "__file__", None)
    return isinstance(path, str) and path.endswith(".py") and not is_installed(path)


def is_class_of_users(kind: type) -> bool:
    """Whether the notebook made this class, a file of the user's, or a text given to exec(): in such a
    namespace a class calls itself one of `builtins`.
    """
    module = kind.__module__
    if module == "builtins":
        return is_class_statement(kind) and getattr(builtins, kind.__name__, None) is not kind
    return isinstance(module, str) and is_users(module)


def is_class_statement(kind: type) -> bool:
    """Whether Python code made the class; extensions make classes of `builtins`, too (polars)."""
    has_attributes = kind.__dictoffset__ != 0 or "__slots__" in vars(kind)
    return bool(kind.__flags__ & _HEAP) and has_attributes


def is_registered(module: types.ModuleType) -> bool:
    """Whether it was imported, so that others who import its name get it; else it is a value like
    any other: one that was made by hand, or from a file's spec.
    """
    name, spec = module.__name__, vars(module).get("__spec__")
    return sys.modules.get(name) is module and (spec is not None or name == "__main__")


def is_environment(value: Any) -> bool:
    """Whether this is the process' own environment: `os.environ`, `os.environb`."""
    return value is os.environ or (value is not None and value is getattr(os, "environb", None))


def root_module(value: Any) -> str:
    """The package that a class, function or module belongs to; "" unknown."""
    name = getattr(value, "__module__", None)
    if not isinstance(name, str):
        owner = getattr(value, "__self__", None)
        name = type(owner).__module__ if owner is not None else None
    return name.partition(".")[0] if isinstance(name, str) else ""
