"""Folders that a recording names by their absolute paths, where the notebook now lies elsewhere.

In a record (`folders` of what a tool did): each path that stands in it, and where that is from the
notebook's folder: `.`, or `../..` for the git work tree around it. A replay gives the program the
path as it is here, and looks for what the program then asks as it was recorded.

A folder such as `/app` is too short to be told from other texts (`GET /app/login`): it is left as it
is, and said to be.
"""

from __future__ import annotations

import base64
import binascii
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from json.encoder import encode_basestring_ascii
from pathlib import Path, PurePath
from typing import Any
from urllib.parse import quote

from tape_jupyter.core.plain_text import is_text

FOLDERS = "folders"
"""Of a record of what a tool did; on a run's end mark those of all its calls, and what they ask."""
_BEFORE = (
    r"(?<![\w.-]PATH)",
    r"(?<=\\[nrtbf]PATH)",
    r"(?<=\\u[0-9a-fA-F]{4}PATH)",
    r"(?<=\dmPATH)",
)
_BEHIND = r"(?![\w-])(?!\.\w)"
"""What may not stand around a folder's path in a text: it would be the path of another one. JSON's
escapes and the colours of a terminal (`\\n`, `[32m`) end in what looks like a letter. What stands
before it is looked at after it: a pattern that begins with a text is searched for at once.
"""
_LARGEST = 16 << 20
"""Characters of base64 that are looked into."""
_NUMBERS = {int, float}


def find_folders(structure: Any, folder: Path | None, top: Path | None) -> dict[str, str]:
    """Which of the notebook's folder and of the widest one whose files are the notebook's (`top`)
    a structure names, and where each is from the notebook's folder.
    """
    if folder is None:
        return {}
    places, spelled = _find_places(folder, top)
    named = {path for text in _iterate_texts(structure) for path in spelled.find(text)}
    return {path: places[path] for path in sorted(named)}


@lru_cache(8)
def _find_places(folder: Path, top: Path | None) -> tuple[dict[str, str], _Spelled]:
    """Where the two are from the first, by each of their paths; those paths as texts spell them."""
    places: dict[str, str] = {}
    for place in (folder, top):
        if place is not None:
            where = os.path.relpath(os.path.realpath(place), os.path.realpath(folder))
            for path in (str(place.absolute()), os.path.realpath(place)):
                places.setdefault(path, PurePath(where).as_posix())
    return places, _Spelled({path: path for path in places if _count_names(path)})


def place_folders(
    recorded: Mapping[str, Any], folder: Path | None, top: Path | None
) -> MovedFolders:
    """Where the folders of a record are here; those of which that is not known are `left`."""
    moved: dict[str, str] = {}
    left: set[str] = set()
    root = "" if folder is None else os.path.realpath(folder)
    for name, where in recorded.items():
        path = str(name)  # a recording may come from anybody
        place = os.path.normpath(os.path.join(root, str(where)))  # noqa: PTH118 - of texts
        if place == path:
            continue
        is_ours = place == root or (top is not None and place == os.path.realpath(top))
        if is_ours and is_told_apart(path):
            moved[path] = place
        else:
            left.add(path)
    return MovedFolders(moved, left)


def is_told_apart(path: str) -> bool:
    """Whether a folder's path is told from other texts."""
    return PurePath(path).is_absolute() and _count_names(path) > 1


def _count_names(path: str) -> int:
    """How many names a path is made of; of a drive's, that one more."""
    pure = PurePath(path)
    return len(pure.parts) - 1 + bool(pure.drive)


class MovedFolders:
    """Folders by their recorded paths, each with its path here."""

    def __init__(self, places: Mapping[str, str], left: Iterable[str] = ()) -> None:
        self._places = dict(places)
        self._here = _Spelled(self._places)
        self._recorded = _Spelled({here: path for path, here in self._places.items()})
        self.left: set[str] = set(left)
        """Folders that are named and left as they were recorded: it is not known where they are here,
        or they stand in bytes that are no text.
        """

    def __bool__(self) -> bool:
        return bool(self._places)

    def __or__(self, other: MovedFolders) -> MovedFolders:
        return MovedFolders({**self._places, **other._places}, self.left | other.left)

    def here(self, structure: Any) -> Any:
        """A recorded structure as it is here; the same object where it names no folder."""
        return self._replace_texts(structure, self._here)

    def recorded(self, structure: Any) -> Any:
        """A structure, a text or bytes of the program's as they were recorded."""
        return self._replace_texts(structure, self._recorded)

    def content_here(self, content: bytes) -> bytes:
        """The content of a file as it is here; what is no text is left as it is."""
        named = self._here.find(content)
        if named and not is_text(content):
            self.left |= named
            return content
        here: bytes = self._here.replace(content)
        return here

    def content_recorded(self, content: bytes) -> bytes:
        """The content of a file here as it was recorded."""
        recorded: bytes = self._recorded.replace(content) if is_text(content) else content
        return recorded

    def _replace_texts(self, structure: Any, paths: _Spelled) -> Any:
        if isinstance(structure, str | bytes):
            return paths.replace(structure)
        if isinstance(structure, list):
            if set(map(type, structure)) <= _NUMBERS:
                return structure
            items = [self._replace_texts(each, paths) for each in structure]
            same = all(one is other for one, other in zip(items, structure, strict=True))
            return structure if same else items
        if not isinstance(structure, Mapping):
            return structure
        if (held := _decode(structure)) is not None:
            self.left |= paths.find(held)
            return structure
        fields = {
            paths.replace(name): self._replace_texts(each, paths)
            for name, each in structure.items()
        }
        same = all(fields.get(name, self) is each for name, each in structure.items())
        return structure if same else fields


class _Spelled:
    """Paths to be replaced in texts, in each way that texts spell them: as they are, within JSON, in
    an address.
    """

    def __init__(self, places: Mapping[str, str]) -> None:
        self._paths: dict[str, str] = {}
        self._instead: dict[str, str] = {}
        for path, other in places.items():
            for spell in (str, _within_json, quote):
                self._paths.setdefault(spell(path), path)
                self._instead.setdefault(spell(path), spell(other))
        longest = sorted(self._paths, key=len, reverse=True)
        text = f"(?:{'|'.join(map(_build_pattern, longest))}){_BEHIND}"
        self._in_text = re.compile(text)
        self._in_bytes = re.compile(os.fsencode(text))
        self._needles = [(each, os.fsencode(each)) for each in longest]

    def find(self, text: str | bytes) -> set[str]:
        if isinstance(text, str):
            if not any(needle in text for needle, _ in self._needles):
                return set()
            return {self._paths[each] for each in self._in_text.findall(text)}
        found = [needle for needle, raw in self._needles if raw in text]
        if found and is_text(text):
            found = [os.fsdecode(each) for each in self._in_bytes.findall(text)]
        return {self._paths[each] for each in found}

    def replace(self, text: Any) -> Any:
        if not self._paths or not self.find(text):
            return text
        if isinstance(text, str):
            return self._in_text.sub(lambda match: self._instead[match[0]], text)
        return self._in_bytes.sub(
            lambda match: os.fsencode(self._instead[os.fsdecode(match[0])]), text
        )


def _build_pattern(path: str) -> str:
    return f"PATH(?:{'|'.join(_BEFORE)})".replace("PATH", re.escape(path))


def _within_json(path: str) -> str:
    return encode_basestring_ascii(path)[1:-1]


def _decode(structure: Mapping[str, Any]) -> bytes | None:
    """The bytes that a structure holds in base64 (encoding/values/stdlib.py); None where it holds none."""
    text = structure.get("base64")
    if not isinstance(text, str) or len(text) > _LARGEST:
        return None
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None


def _iterate_texts(structure: Any) -> Iterator[str | bytes]:
    waiting = [structure]
    while waiting:
        each = waiting.pop()
        if isinstance(each, str | bytes):
            yield each
        elif isinstance(each, list | tuple):
            if not set(map(type, each)) <= _NUMBERS:
                waiting += each
        elif isinstance(each, Mapping):
            held = _decode(each)
            if held is not None:
                yield held
            else:
                waiting += [*each, *each.values()]
