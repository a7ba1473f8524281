"""What a bundle says of itself, `manifest.json`: one canonical form, whose sha256 is its identity.

It is data from strangers: a key that format 1 does not know, another type, a name that may not be,
a duplicate, or bytes that are not canonical refuse the bundle. What it says of the proof is its
maker's word; what can be checked is.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, NoReturn, TypeVar

from tape_jupyter.bundle.archive import names
from tape_jupyter.core.parse_limits import require_few_values
from tape_jupyter.errors import BundleError

FORMAT = 1
NAME = "manifest.json"
ROLES = (
    "notebook",
    "cassette",
    "take",
    "asset",
    "module",
    "data",
    "lock",
    "wheel",
    "source",
    "page",
    "readme",
)
INDEXES = ("public", "private", "none")


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _are_texts(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(map(_is_text, value))


def _is_flat(value: Any) -> bool:
    return isinstance(value, Mapping) and all(
        isinstance(each, str | bool | int | None) for each in value.values()
    )


def _are_flat(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(map(_is_flat, value))


KIT: Mapping[str, Callable[[Any], bool]] = {
    "python": _is_text, "implementation": _is_text, "platform": _is_text, "distributions": _are_texts,
    "unhashed": _are_texts, "timezone": _is_text, "models": _are_flat, "variables": _are_texts, "git": _is_flat,
    "unseen": _is_text, "pace": _is_text,
}  # fmt: skip
"""What `kit` may hold; each may be missing. `unhashed`: the distributions that the lock gives no
hash for; `unseen`: what the export could not watch cells read, in words; `pace`: the one it was
proved at, where a person said one.
"""

PACES = ("instant", "order", "recorded")

MOST_FILES = 10_000
MOST_BYTES = 512 * 1024 * 1024
"""Of all files of a bundle together, unpacked, with the manifest."""
MOST_MANIFEST = 16 * 1024 * 1024
MOST_VALUES = 1_000_000
MOST_ITEMS = 20_000
"""Of each of its other lists and objects: cells, packages, what was left out or masked."""
DEEPEST = 8
"""Objects and lists in one another that are read; a manifest has four."""
LARGEST = 1 << 53
"""Of numbers: what every reader of JSON holds exactly."""

_SHA = re.compile(r"[0-9a-f]{64}")
T = TypeVar("T")


@dataclass(frozen=True)
class BundleFile:
    """One file of the bundle: its name in it, bytes, digest (hex) and what it is for (ROLES)."""

    path: str
    size: int
    sha256: str
    role: str


@dataclass(frozen=True)
class LeftOut:
    """A file that a cell reads (or packages that the lock lacks) and that is not in the bundle,
    with why.
    """

    path: str
    size: int
    sha256: str
    why: str


@dataclass(frozen=True)
class Expected:
    """A code cell as it ran in the proof: digests of its source and its normalised outputs, calls,
    error name or "".
    """

    number: int
    id: str
    title: str
    source: str
    outputs: str
    calls: int
    raises: str = ""


@dataclass(frozen=True)
class ProofDifference:
    """A cell (its number) that did not come out as saved, in the proof of a bundle that was made
    all the same.
    """

    cell: int
    why: str


@dataclass(frozen=True)
class Redaction:
    where: str
    kind: str
    count: int


@dataclass(frozen=True)
class LockState:
    """What the lock is: has every package a hash, which index was asked (INDEXES), and why it is
    not better.
    """

    hashed: bool
    index: str
    why: str = ""


@dataclass(frozen=True)
class Manifest:
    """All a bundle says of itself. `kit` is as in KIT, `kernel` has name and language; files are
    sorted by path.
    """

    made_by: str
    notebook: str
    kernel: Mapping[str, str]
    files: tuple[BundleFile, ...]
    kit: Mapping[str, Any]
    cells: tuple[Expected, ...]
    lock: LockState
    differences: tuple[ProofDifference, ...] = ()
    guards: tuple[str, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    redactions: tuple[Redaction, ...] = ()
    format: int = field(default=FORMAT, kw_only=True)

    def to_bytes(self) -> bytes:
        """The canonical form. Raises BundleError for text that is no Unicode."""
        record = {**asdict(self), "kernel": dict(self.kernel), "kit": dict(self.kit)}
        try:
            text = json.dumps(
                record, sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False
            )
            return f"{text}\n".encode()
        except (ValueError, TypeError, RecursionError) as error:
            raise BundleError(f"the manifest cannot be written: {error}") from error

    @property
    def digest(self) -> str:
        """The bundle's identity: sha256 (hex) of the canonical form."""
        return hashlib.sha256(self.to_bytes()).hexdigest()

    def file(self, path: str) -> BundleFile | None:
        return next((each for each in self.files if each.path == path), None)

    @property
    def size(self) -> int:
        """Bytes of all files, unpacked."""
        return sum(each.size for each in self.files)


def describe_file(path: str, data: bytes, role: str) -> BundleFile:
    """What the manifest says of a file with these bytes."""
    return BundleFile(path, len(data), hashlib.sha256(data).hexdigest(), role)


def parse_manifest(data: bytes) -> Manifest:
    """The manifest in these bytes. Raises BundleError for all that a manifest of format 1 is not."""
    record = _load_json(data)
    if record.get("format") != FORMAT:
        raise BundleError(
            f"the manifest's format is {_shorten_value(record.get('format'))}, this tape-jupyter reads {FORMAT}: "
            "a newer version made it, or it is not a bundle"
        )
    try:
        manifest = Manifest(**_parse_fields(Manifest, record, "the manifest"))
    except RecursionError:
        raise BundleError("the manifest is nested too deeply") from None
    check_manifest(manifest)
    if manifest.to_bytes() != data:
        raise BundleError(
            "the manifest is not in its canonical form; it was changed after the export"
        )
    return manifest


def check_manifest(manifest: Manifest) -> Manifest:
    """The manifest, if all its parts go together: whoever packs one asks this as well as who reads
    one.
    """
    paths = [each.path for each in manifest.files]
    names.check_all([NAME, *paths])
    for each in manifest.files:
        _require_size(each.size, each.path)
        _require_sha256(each.sha256, each.path)
        _require_one_of(each.role, ROLES, f"the role of {each.path!a}")
        if each.path.startswith("session/") and (hook := names.startup_hook(each.path)):
            raise BundleError(
                f"{each.path!a} cannot be in a bundle: {hook} is run automatically just because it exists. Leave it out"
            )
    if paths != sorted(paths):
        _refuse_manifest("its files are not sorted by path")
    if len(paths) >= MOST_FILES:
        raise BundleError(f"it has {len(paths) + 1:,} files, a bundle has at most {MOST_FILES:,}")
    if manifest.size > MOST_BYTES:
        raise BundleError(
            f"its files have {manifest.size:,} bytes, a bundle has at most {MOST_BYTES:,}"
        )
    if not any(
        each.role == "notebook" and each.path == manifest.notebook for each in manifest.files
    ):
        _refuse_manifest(f"the notebook {manifest.notebook!a} is not among its files")
    _require_one_of(manifest.lock.index, INDEXES, "the lock's index")
    if set(manifest.kernel) - {"name", "language"} or not all(
        isinstance(each, str) for each in manifest.kernel.values()
    ):
        _refuse_manifest(
            "kernel has other keys than name and language, or values that are not text"
        )
    _check_kit(manifest.kit)
    listed = {**vars(manifest), **{f"kit: {name}": each for name, each in manifest.kit.items()}}
    for name, each in listed.items():
        if isinstance(each, list | tuple | Mapping) and len(each) > MOST_ITEMS:
            _refuse_manifest(f"{name} has {len(each):,} items, at most {MOST_ITEMS:,} are read")
    return manifest


def _check_kit(kit: Mapping[str, Any]) -> None:
    for key, value in kit.items():
        if key not in KIT:
            _refuse_manifest(f"kit has a key that format 1 does not know: {_shorten_value(key)}")
        if not KIT[key](value):
            _refuse_manifest(f"kit: {key} is {_shorten_value(value)}")
    _require_one_of(kit.get("pace", ""), ("", *PACES), "the kit's pace")


def _load_json(data: bytes) -> dict[str, Any]:
    if len(data) > MOST_MANIFEST:
        raise BundleError(
            f"the manifest has {len(data):,} bytes, at most {MOST_MANIFEST:,} are read"
        )
    try:
        require_few_values(data, MOST_VALUES)
        record = json.loads(
            data.decode("utf-8"),
            object_pairs_hook=_require_unique_keys,
            parse_constant=_refuse_constant,
        )
    except (ValueError, RecursionError) as error:
        raise BundleError(f"the manifest is not JSON: {_shorten_value(str(error))}") from error
    if not isinstance(record, dict):
        _refuse_manifest("it is not a JSON object")
    _require_bounded(record)
    return record


def _require_bounded(record: dict[str, Any]) -> None:
    """Neither deep nor with numbers that take long to write: what comes after need not ask."""
    level: list[Any] = [record]
    for _ in range(DEEPEST):
        inside: list[Any] = []
        for each in level:
            if isinstance(each, dict):
                inside += each.values()
            elif isinstance(each, list):
                inside += each
            if isinstance(each, float) or (isinstance(each, int) and abs(each) > LARGEST):
                _refuse_manifest(f"{_shorten_value(each)[:40]} is not a number that it may hold")
        level = inside
    if level:
        _refuse_manifest(f"it is nested deeper than {DEEPEST}")


def _require_unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    mapping = dict(pairs)
    if len(mapping) != len(pairs):
        _refuse_manifest("a key stands twice")
    return mapping


def _refuse_constant(name: str) -> NoReturn:
    _refuse_manifest(f"{name} is not JSON")


PARTS: dict[str, type] = {
    "files": BundleFile,
    "cells": Expected,
    "differences": ProofDifference,
    "left_out": LeftOut,
    "redactions": Redaction,
}
_TYPES: dict[str, type] = {"str": str, "int": int, "bool": bool}


def _parse_fields(kind: type, record: dict[str, Any], where: str) -> dict[str, Any]:
    """The constructor's arguments: every key known, none missing, each of its type."""
    known = {each.name: str(each.type) for each in fields(kind)}
    for key in record:
        if key not in known:
            _refuse_manifest(
                f"{where} has a key that format 1 does not know: {_shorten_value(key)}"
            )
    for key in known:
        if key not in record:
            _refuse_manifest(f"{where} lacks {key}")
    return {key: _parse_value(key, kind_, record[key], where) for key, kind_ in known.items()}


def _parse_value(key: str, kind: str, value: Any, where: str) -> Any:
    if kind in _TYPES:
        if type(value) is not _TYPES[kind]:
            _refuse_manifest(f"{where}: {key} is no {kind}")
    elif kind.startswith("Mapping"):
        if type(value) is not dict:
            _refuse_manifest(f"{where}: {key} is not an object")
    elif kind == LockState.__name__:
        return LockState(
            **_parse_fields(LockState, _parse_value(key, "Mapping", value, where), key)
        )
    else:
        return _parse_list(key, value)
    return value


def _parse_list(key: str, value: Any) -> tuple[Any, ...]:
    if type(value) is not list:
        _refuse_manifest(f"{key} is not a list")
    part = PARTS.get(key)
    if part is None:
        return tuple(
            _parse_value(f"{key}[{at}]", "str", each, "the manifest")
            for at, each in enumerate(value)
        )
    rows = [
        _parse_value(f"{key}[{at}]", "Mapping", each, "the manifest")
        for at, each in enumerate(value)
    ]
    return tuple(part(**_parse_fields(part, row, f"{key}[{at}]")) for at, row in enumerate(rows))


def _require_size(value: int, where: str) -> None:
    if value < 0:
        _refuse_manifest(f"{where!a} has {value} bytes")


def _require_sha256(value: str, where: str) -> None:
    if not _SHA.fullmatch(value):
        _refuse_manifest(f"the sha256 of {where!a} is not a sha256")


def _require_one_of(value: str, choices: tuple[str, ...], where: str) -> None:
    if value not in choices:
        _refuse_manifest(f"{where} is {_shorten_value(value)}, not one of {' '.join(choices)}")


def _refuse_manifest(what: str) -> NoReturn:
    raise BundleError(f"the manifest cannot be used: {what}")


def _shorten_value(value: Any) -> str:
    return ascii(value)[:120]
