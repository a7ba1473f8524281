"""Store room: texts too long for a cassette lie beside it, one file per text, named by its digest."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any

from tape_jupyter.drafts import replacing
from tape_jupyter.errors import CassetteError

MARK = "<asset>"
LIMIT = 64 * 1024  # characters of one text that stay in the cassette
CAP = 512 * 1024 * 1024
_NAME = re.compile(r"[0-9a-f]{64}\Z")


def put_away(value: Any, folder: Path) -> Any:
    """The structure with every text over LIMIT replaced by {"<asset>": sha256}, its file written and synced.

    Keys of recorded data never begin with "<" (bodies and frozen see to it), so no mark is mistaken for data.
    Raises OSError.
    """
    if isinstance(value, str):
        return {MARK: _write(value, folder)} if len(value) > LIMIT else value
    if isinstance(value, dict):
        return {key: put_away(item, folder) for key, item in value.items()}
    if isinstance(value, list):
        return [put_away(item, folder) for item in value]
    return value


def bring_back(value: Any, folder: Path) -> Any:
    """The inverse of put_away. Raises CassetteError naming an asset that is missing, changed or outside."""
    return _Reading(folder).whole(value)


def check(name: str, folder: Path) -> None:
    """Raises CassetteError where the asset is missing or changed."""
    _read(name, folder)


class _Reading:
    """The assets of one structure: each is read once, and together they may not be larger than CAP."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._texts: dict[str, str] = {}
        self._left = CAP

    def whole(self, value: Any) -> Any:
        if isinstance(value, dict):
            if MARK in value:
                return self._text(value)
            return {key: self.whole(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self.whole(item) for item in value]
        return value

    def _text(self, mark: dict[str, Any]) -> str:
        name = mark[MARK]
        if len(mark) > 1:
            raise CassetteError(f"beside the asset {str(name)[:80]!r} stand other keys; take them out")
        text = self._texts.get(name) if isinstance(name, str) else None
        if text is None:
            text = self._texts[name] = _read(name, self._folder)
        self._left -= len(text)
        if self._left < 0:
            raise CassetteError(f"the assets of this record are larger than {CAP // 1024 // 1024} MiB together")
        return text


def size(value: Any, folder: Path) -> int:
    """Bytes of the assets that the structure refers to, each as often as it does; one that is missing has none."""
    if isinstance(value, dict):
        if MARK not in value:
            return sum(size(item, folder) for item in value.values())
        target = folder / str(value[MARK])
        return target.stat().st_size if _NAME.match(str(value[MARK])) and target.is_file() else 0
    return sum(size(item, folder) for item in value) if isinstance(value, list) else 0


def names(value: Any) -> set[str]:
    """Digests of every asset that the structure refers to."""
    if isinstance(value, dict):
        return {str(value[MARK])} if MARK in value else set().union(*map(names, value.values()))
    return set().union(*map(names, value)) if isinstance(value, list) else set()


def _write(text: str, folder: Path) -> str:
    data = text.encode("utf-8", "surrogatepass")
    name = hashlib.sha256(data).hexdigest()
    target = folder / name
    if not _holds(target, data):
        folder.mkdir(parents=True, exist_ok=True)
        with replacing(target, lasting=True) as draft:
            draft.write_bytes(data)
    return name


def _holds(target: Path, data: bytes) -> bool:
    try:
        return not target.is_symlink() and target.stat().st_size == len(data) and target.read_bytes() == data
    except OSError:
        return False


def _read(name: Any, folder: Path) -> str:
    if not isinstance(name, str) or not _NAME.match(name):
        raise CassetteError(f"asset {str(name)[:80]!r} is not a sha256 name; assets lie in {folder.name}/ only")
    target = folder / name
    if target.is_symlink() or not target.is_file():
        raise CassetteError(f"asset {name} is not a file of {folder}; restore it, or record again")
    try:
        if target.stat().st_size > CAP:
            raise CassetteError(f"asset {name} is larger than {CAP // 1024 // 1024} MiB")
        data = target.read_bytes()
    except OSError as error:
        raise CassetteError(f"asset {name} cannot be read: {error.strerror or error}") from error
    if hashlib.sha256(data).hexdigest() != name:
        raise CassetteError(f"asset {name} has other bytes than its name says; restore it, or record again")
    try:
        return data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        raise CassetteError(f"asset {name} is not UTF-8; restore it, or record again") from None
