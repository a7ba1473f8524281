"""Our own wheel, made of the tape-jupyter that is installed here: a bundle must not depend on its
being published. The same installation gives the same bytes.
"""

from __future__ import annotations

import importlib.metadata
from functools import lru_cache
from pathlib import Path

from tape_jupyter.bundle.environment import build_backend
from tape_jupyter.bundle.environment.requirements import OURS, installed_as
from tape_jupyter.errors import BundleError

_PACKAGE = Path(__file__).resolve().parents[2]
_SHARED = "share/jupyter/labextensions/tape-jupyter"
_LEFT = frozenset({"__pycache__", ".ipynb_checkpoints"})


@lru_cache(maxsize=1)
def own_wheel() -> tuple[str, bytes]:
    """Name and bytes of our wheel. Raises BundleError where tape-jupyter runs without having been
    installed.
    """
    try:
        installed = installed_as(importlib.metadata.distribution(OURS))
    except importlib.metadata.PackageNotFoundError:
        raise BundleError(
            "tape-jupyter is not installed here, so that its wheel cannot be put into the bundle: pip install it "
            "(an editable installation will do)"
        ) from None
    files = {inside: Path(path) for inside, path in installed.files.items()}
    if installed.kind == "editable":
        files.update(_collect_package_files(installed.dist_info.removesuffix(".dist-info")))
    wheel = {inside: path.read_bytes() for inside, path in files.items()}
    return build_backend.pack_wheel({**wheel, f"{installed.dist_info}/WHEEL": _WHEEL})


_WHEEL = b"Wheel-Version: 1.0\nGenerator: tape-jupyter\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def _collect_package_files(name: str) -> dict[str, Path]:
    """Of a checkout: the package with its built viewer, and the labextension where JupyterLab looks
    for it.
    """
    files: dict[str, Path] = {}
    for path in sorted(_PACKAGE.rglob("*")):
        inside = path.relative_to(_PACKAGE)
        if not path.is_file() or _LEFT.intersection(inside.parts) or path.suffix == ".pyc":
            continue
        if inside.parts[0] == "labextension":
            files[f"{name}.data/data/{_SHARED}/{inside.relative_to('labextension').as_posix()}"] = (
                path
            )
        else:
            files[f"{_PACKAGE.name}/{inside.as_posix()}"] = path
    return files
