"""Store room: texts too long for a cassette lie beside it, one file per text, named by its digest."""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from pathlib import Path
from typing import Any

from tape_jupyter.errors import CassetteError

MARK = "<asset>"
LIMIT = 64 * 1024  # characters of one text that stay in the cassette
CAP = 512 * 1024 * 1024
_NAME = re.compile(r"[0-9a-f]{64}\Z")


def put_away(value: Any, folder: Path) -> Any:
    """The structure with every text over LIMIT replaced by {"<asset>": sha256}, its file written and synced."""
    if isinstance(value, str):
        return {MARK: _write(value, folder)} if len(value) > LIMIT else value
    if isinstance(value, dict):
        return {key: put_away(item, folder) for key, item in value.items()}
    if isinstance(value, list):
        return [put_away(item, folder) for item in value]
    return value


def bring_back(value: Any, folder: Path) -> Any:
    """The inverse of put_away. Raises CassetteError naming an asset that is missing, changed or outside."""
    if isinstance(value, dict):
        if MARK in value:
            return _read(value[MARK], folder)
        return {key: bring_back(item, folder) for key, item in value.items()}
    if isinstance(value, list):
        return [bring_back(item, folder) for item in value]
    return value


def names(value: Any) -> set[str]:
    """Digests of every asset that the structure refers to."""
    if isinstance(value, dict):
        return {str(value[MARK])} if MARK in value else set().union(*map(names, value.values()))
    return set().union(*map(names, value)) if isinstance(value, list) else set()


def _write(text: str, folder: Path) -> str:
    data = text.encode("utf-8", "surrogatepass")
    name = hashlib.sha256(data).hexdigest()
    target = folder / name
    if target.is_symlink() or not target.exists() or target.stat().st_size != len(data):
        folder.mkdir(parents=True, exist_ok=True)
        handle, draft = tempfile.mkstemp(dir=folder, prefix=".draft-")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            Path(draft).replace(target)
        except BaseException:
            Path(draft).unlink(missing_ok=True)
            raise
    return name


def _read(name: Any, folder: Path) -> str:
    if not isinstance(name, str) or not _NAME.match(name):
        raise CassetteError(f"asset {str(name)[:80]!r} is not a sha256 name; assets lie in {folder.name}/ only")
    target = folder / name
    if target.is_symlink() or not target.is_file():
        raise CassetteError(f"asset {name} is not a file of {folder}; restore it, or record again")
    if target.stat().st_size > CAP:
        raise CassetteError(f"asset {name} is larger than {CAP // 1024 // 1024} MiB")
    data = target.read_bytes()
    if hashlib.sha256(data).hexdigest() != name:
        raise CassetteError(f"asset {name} has other bytes than its name says; restore it, or record again")
    return data.decode("utf-8", "surrogatepass")
