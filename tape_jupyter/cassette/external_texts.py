"""Texts too long for a cassette lie beside it, one file per text, named by its digest."""

from __future__ import annotations

import hashlib
import os
import re
import threading
from pathlib import Path
from typing import Any

from tape_jupyter.core.atomic_write import replacing
from tape_jupyter.core.large_body import LargeBody
from tape_jupyter.errors import CassetteError

MARK = "<asset>"
BYTES = "<bytes>"
"""The same for a large body: its bytes lie there as they are, and are read in blocks (large.py)."""
LIMIT = 64 * 1024  # characters of one text that stay in the cassette
CAP = 512 * 1024 * 1024
_REPEATED = 4
"""Times that a record may be larger than the long texts it refers to: one of them may stand in it
more than once.
"""
_FREE = 64 * 1024 * 1024
"""Characters that it may have however often they stand there."""
_KEPT = 32 * 1024 * 1024
"""Characters of texts that were read last and are kept: turns of a conversation refer to the same
ones.
"""
_NAME = re.compile(r"[0-9a-f]{64}\Z")


def put_away(value: Any, folder: Path) -> Any:
    """The structure with every text over LIMIT replaced by {"<asset>": sha256}, its file written
    and synced.

    Keys of recorded data never begin with "<" (bodies and frozen see to it), so no mark is mistaken
    for data. Raises OSError.
    """
    if isinstance(value, str):
        return {MARK: _write_text(value, folder)} if len(value) > LIMIT else value
    if isinstance(value, dict):
        return {key: put_away(item, folder) for key, item in value.items()}
    if isinstance(value, list):
        return [put_away(item, folder) for item in value]
    return value


def restore_texts(value: Any, folder: Path) -> Any:
    """The inverse of put_away. Raises CassetteError naming an asset that is missing, changed or
    outside.
    """
    return _Reading(folder).restore_texts(value)


def check_asset(name: str, folder: Path, *, is_body: bool = False) -> None:
    """Raises CassetteError where the asset, or the large body, is missing or changed."""
    if is_body:
        require_sound(read_large_body({BYTES: name}, folder))
    else:
        _read_asset(name, folder)


def read_large_body(mark: Any, folder: Path) -> LargeBody:
    """The large body that a mark of BYTES stands for. Raises CassetteError where its file is
    missing or outside.
    """
    if not isinstance(mark, dict) or set(mark) != {BYTES}:
        raise CassetteError(f"large: says where a body lies, like {BYTES}: sha256")
    name = mark[BYTES]
    target = _find_asset(name, folder)
    try:
        return LargeBody(None, target.stat().st_size, name, path=target)
    except OSError as error:
        raise CassetteError(f"asset {name} cannot be read: {error.strerror or error}") from error


def require_sound(body: LargeBody) -> None:
    """Raises CassetteError where the bytes of a large body are others than its name says. Each file
    is read once.
    """
    if body.path is None:
        return
    name = body.path.name
    try:
        about = body.path.stat()
        seen = (str(body.path), about.st_ino, about.st_size, about.st_mtime_ns)
        if seen in _sound:
            return
        digest = hashlib.sha256()
        for block in body.blocks():
            digest.update(block)
    except OSError as error:
        raise CassetteError(f"asset {name} cannot be read: {error.strerror or error}") from error
    if digest.hexdigest() != body.sha256:
        raise CassetteError(
            f"asset {name} has other bytes than its name says; restore it, or record again"
        )
    _sound.add(seen)


_sound: set[tuple[str, int, int, int]] = set()


def put_body(body: LargeBody, folder: Path) -> LargeBody:
    """The body under its name in the folder: its file gets that name, or is copied. Raises OSError."""
    target = folder / body.sha256
    if not _has_sound_body(target, body):
        folder.mkdir(parents=True, exist_ok=True)
        if not (body.path is None and _link_unnamed(body, target)):
            with replacing(target) as draft, draft.open("r+b") as file:
                for block in body.blocks():
                    file.write(block)
    about = target.stat()
    _sound.add((str(target), about.st_ino, about.st_size, about.st_mtime_ns))
    return LargeBody(
        None, body.size, body.sha256, path=target, sent=body.sent, learned=body.learned
    )


def _has_sound_body(target: Path, body: LargeBody) -> bool:
    try:
        if target.is_symlink() or target.stat().st_size != body.size:
            return False
        require_sound(LargeBody(None, body.size, body.sha256, path=target))
    except (OSError, CassetteError):
        return False
    return True


def _link_unnamed(body: LargeBody, target: Path) -> bool:
    """Give a file that has no name its name; whether that could be done."""
    place = os.open(target.parent, os.O_RDONLY)
    try:
        target.unlink(missing_ok=True)
        os.link(f"/proc/self/fd/{body.fileno()}", target, src_dir_fd=place)
    except (OSError, NotImplementedError):
        return False
    finally:
        os.close(place)
    return True


class _Reading:
    """The assets of one structure: each is read once, and together they may not be larger than CAP,
    nor many times what lies on the disk.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._texts: dict[str, str] = {}
        self._size = self._read = 0

    def restore_texts(self, value: Any) -> Any:
        if isinstance(value, dict):
            if MARK in value:
                return self._read_marked_text(value)
            return {key: self.restore_texts(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self.restore_texts(item) for item in value]
        return value

    def _read_marked_text(self, mark: dict[str, Any]) -> str:
        name = mark[MARK]
        if len(mark) > 1:
            raise CassetteError(
                f"beside the asset {str(name)[:80]!r} there are other keys; remove them"
            )
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


def assets_size(value: Any, folder: Path) -> int:
    """Bytes of the assets that the structure refers to, each as often as it does; one that is
    missing has none.
    """
    if isinstance(value, dict):
        mark = next((each for each in (MARK, BYTES) if each in value), None)
        if mark is None:
            return sum(assets_size(item, folder) for item in value.values())
        target = folder / str(value[mark])
        if _NAME.match(str(value[mark])) and target.is_file():
            return target.stat().st_size
        return 0
    if isinstance(value, list):
        return sum(assets_size(item, folder) for item in value)
    return 0


def asset_names(value: Any) -> set[str]:
    """Digests of every asset that the structure refers to, large bodies too."""
    return _collect_names(value, (MARK, BYTES))


def bodies(value: Any) -> set[str]:
    """Digests of the large bodies alone."""
    return _collect_names(value, (BYTES,))


def _collect_names(value: Any, marks: tuple[str, ...]) -> set[str]:
    names, waiting = set[str](), [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict):
            found = {str(each[mark]) for mark in marks if mark in each}
            names |= found
            each = () if found else each.values()
        elif not isinstance(each, list):
            continue
        waiting += [item for item in each if isinstance(item, dict | list)]
    return names


def _write_text(text: str, folder: Path) -> str:
    data = text.encode("utf-8", "surrogatepass")
    name = hashlib.sha256(data).hexdigest()
    target = folder / name
    if not _has_content(target, data):
        folder.mkdir(parents=True, exist_ok=True)
        with replacing(target, lasting=True) as draft:
            draft.write_bytes(data)
    return name


def _has_content(target: Path, data: bytes) -> bool:
    try:
        return (
            not target.is_symlink()
            and target.stat().st_size == len(data)
            and target.read_bytes() == data
        )
    except OSError:
        return False


class _Recent:
    """The texts that were read last, as long as their files are the same."""

    def __init__(self) -> None:
        self._texts: dict[tuple[str, int, int, int], str] = {}
        self._lock = threading.Lock()

    def read(self, name: Any, folder: Path) -> str:
        key = self._build_key(name, folder)
        with self._lock:
            text = self._texts.get(key) if key else None
        if text is None:
            text = _read_asset(name, folder)
            if key:
                self._cache_text(key, text)
        return text

    def _build_key(self, name: Any, folder: Path) -> tuple[str, int, int, int] | None:
        try:
            about = (folder / str(name)).lstat()
        except (OSError, ValueError):
            return None
        return str(folder / str(name)), about.st_ino, about.st_size, about.st_mtime_ns

    def _cache_text(self, key: tuple[str, int, int, int], text: str) -> None:
        with self._lock:
            self._texts[key] = text
            while sum(map(len, self._texts.values())) > _KEPT:
                del self._texts[next(iter(self._texts))]


_recent = _Recent()


def _find_asset(name: Any, folder: Path) -> Path:
    if not isinstance(name, str) or not _NAME.match(name):
        raise CassetteError(
            f"asset {str(name)[:80]!r} is not a sha256 name; assets lie in {folder.name}/ only"
        )
    target = folder / name
    if target.is_symlink() or not target.is_file():
        raise CassetteError(f"asset {name} is not a file of {folder}; restore it, or record again")
    return target


def _read_asset(name: Any, folder: Path) -> str:
    target = _find_asset(name, folder)
    try:
        if target.stat().st_size > CAP:
            raise CassetteError(f"asset {name} is larger than {CAP // 1024 // 1024} MiB")
        data = target.read_bytes()
    except OSError as error:
        raise CassetteError(f"asset {name} cannot be read: {error.strerror or error}") from error
    if hashlib.sha256(data).hexdigest() != name:
        raise CassetteError(
            f"asset {name} has other bytes than its name says; restore it, or record again"
        )
    try:
        return data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        raise CassetteError(f"asset {name} is not UTF-8; restore it, or record again") from None
