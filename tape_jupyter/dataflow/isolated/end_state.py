"""What a namespace and its files hold at the end of a history, so that two kernels can be compared."""

from __future__ import annotations

import reprlib
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tape_jupyter.dataflow.fingerprint.fingerprint import fingerprint
from tape_jupyter.dataflow.fingerprint.walker import hasher
from tape_jupyter.files.databases import SQLITE, dump_rows, read_whole
from tape_jupyter.files.stand_ins import stand_in

SECONDS = 1.0
"""How long one value may take to be looked at."""
_ABSENT: Any = object()
_PLAIN = (str, int, float, bool, complex, bytes, type(None))
_BOXES = (list, tuple, dict, set, frozenset)


@dataclass(frozen=True, slots=True)
class EndValue:
    """What one name holds. `digest` is "" where it is not there; `dark`: why it cannot be looked
    into, "" where it can; `short`: its value in a few letters, where that needs no code of the
    user's.
    """

    digest: str = ""
    dark: str = ""
    short: str = ""


@dataclass(frozen=True, slots=True)
class End:
    """By name, also of modules' globals ("shop:basket"); files by path, "" where there is none."""

    names: Mapping[str, EndValue] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)

    def record(self) -> dict[str, Any]:
        names = {
            name: [value.digest, value.dark, value.short] for name, value in self.names.items()
        }
        return {"names": names, "files": dict(self.files)}

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> End:
        return cls(
            {name: EndValue(*fields) for name, fields in record["names"].items()}, record["files"]
        )


def look_at_end(namespace: Mapping[str, Any], names: Iterable[str], files: Iterable[str]) -> End:
    """How it is now."""
    return End(
        {name: _read_value(namespace, name) for name in names},
        {path: digest_path(path) for path in files},
    )


def _read_value(namespace: Mapping[str, Any], resource: str) -> EndValue:
    module, colon, name = resource.rpartition(":")
    home = namespace
    if colon:
        home = vars(sys.modules[module]) if module in sys.modules else {}
    value = home.get(name, _ABSENT)
    if value is _ABSENT:
        return EndValue()
    print_ = fingerprint(value, namespace, seconds=SECONDS)
    kind = type(value).__name__
    if print_.vast:
        dark = f"{kind}, too large to look at"
    elif print_.opaque:
        dark = kind
    else:
        dark = ""
    return EndValue(print_.digest, dark, _format_short(value))


def _format_short(value: Any) -> str:
    return reprlib.repr(value)[:60] if _is_plain_data(value) else ""


def _is_plain_data(value: Any, depth: int = 2) -> bool:
    if type(value) in _PLAIN:
        return True
    if depth == 0 or type(value) not in _BOXES or len(value) > 1_000:
        return False
    inside = [*value, *value.values()] if type(value) is dict else value
    return all(_is_plain_data(each, depth - 1) for each in inside)


def digest_path(path: str) -> str:
    """Of a file as it is now; "" where nothing can be read."""
    file = Path(path)
    if (mark := stand_in(path)) is not None:
        return digest_content(mark)
    try:
        return digest_content(read_whole(file) if file.is_file() else None)
    except OSError:
        return ""


def digest_content(content: bytes | None) -> str:
    """Of what a file holds; "" where there is none. Of a database of SQLite, what a program finds
    in it.
    """
    if content is None:
        return ""
    digest = hasher()
    digest.update(dump_rows(content) if content.startswith(SQLITE) else content)
    return digest.hexdigest()
