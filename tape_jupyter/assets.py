"""Store room: texts too long for a cassette lie beside it, one file per text, named by its digest."""

from __future__ import annotations

import hashlib
import re
import threading
from pathlib import Path
from typing import Any

from tape_jupyter.drafts import replacing
from tape_jupyter.errors import CassetteError

MARK = "<asset>"
LIMIT = 64 * 1024  # characters of one text that stay in the cassette
CAP = 512 * 1024 * 1024
_REPEATED = 4
"""Times that a record may be larger than the long texts it refers to: one of them may stand in it more than once."""
_FREE = 64 * 1024 * 1024
"""Characters that it may have however often they stand there."""
_KEPT = 32 * 1024 * 1024
"""Characters of texts that were read last and are kept: turns of a conversation refer to the same ones."""
_NAME = re.compile(r"[0-9a-f]{64}\Z")


class Budget:
    """How much of long texts a command may still put together: one text may stand in any number of calls."""

    EACH, ALL = 32 << 20, 256 << 20  # bytes

    def __init__(self) -> None:
        self._left = self.ALL

    def allows(self, size: int) -> bool:
        """Whether texts of so many bytes may be; they are counted then."""
        allowed = size <= min(self.EACH, self._left)
        self._left -= size if allowed else 0
        return allowed


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
    """The assets of one structure: each is read once, and together they may not be larger than CAP, nor many times what
    lies on the disk.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._texts: dict[str, str] = {}
        self._size = self._read = 0

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
            text = self._texts[name] = _recent.read(name, self._folder)
            self._read += len(text)
        self._size += len(text)
        if self._size > min(CAP, max(_FREE, _REPEATED * self._read)):
            raise CassetteError(
                f"the assets of this record are larger than {CAP // 1024 // 1024} MiB together"
                if self._size > CAP
                else f"asset {name} stands so often in this record that it would have over {self._size:,} characters"
            )
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


class _Recent:
    """The texts that were read last, as long as their files are the same."""

    def __init__(self) -> None:
        self._texts: dict[tuple[str, int, int, int], str] = {}
        self._lock = threading.Lock()

    def read(self, name: Any, folder: Path) -> str:
        key = self._key(name, folder)
        with self._lock:
            text = self._texts.get(key) if key else None
        if text is None:
            text = _read(name, folder)
            if key:
                self._keep(key, text)
        return text

    def _key(self, name: Any, folder: Path) -> tuple[str, int, int, int] | None:
        try:
            about = (folder / str(name)).lstat()
        except (OSError, ValueError):
            return None
        return str(folder / str(name)), about.st_ino, about.st_size, about.st_mtime_ns

    def _keep(self, key: tuple[str, int, int, int], text: str) -> None:
        with self._lock:
            self._texts[key] = text
            while sum(map(len, self._texts.values())) > _KEPT:
                del self._texts[next(iter(self._texts))]


_recent = _Recent()


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
