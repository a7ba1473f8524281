"""Makes a wheel of files that lie as they are installed. It is copied into a bundle beside such
files, as the build backend (PEP 517) of a package that no index has: any pip builds it, with no
index and no build tools.

Only the standard library, and nothing of tape-jupyter: it runs alone. The same files give the same
bytes.
"""

from __future__ import annotations

import base64
import hashlib
import io
import re
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

FOLDER = "package"
"""Beside this file: what is in it becomes the wheel."""


def build_wheel(
    wheel_directory: str,
    config_settings: Any = None,  # noqa: ARG001
    metadata_directory: Any = None,  # noqa: ARG001
) -> str:
    """The wheel of the folder beside this file, written into `wheel_directory`; its name."""
    root = Path(__file__).resolve().parent / FOLDER
    files = {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in root.rglob("*")
        if path.is_file()
    }
    name, data = pack_wheel(
        {inside: data for inside, data in files.items() if "__pycache__" not in inside}
    )
    Path(wheel_directory, name).write_bytes(data)
    return name


def pack_wheel(files: Mapping[str, bytes]) -> tuple[str, bytes]:
    """Name and bytes of the wheel of these files. One folder of them is `NAME-VERSION.dist-info`
    with WHEEL in it.
    """
    about = next(
        inside.partition("/")[0]
        for inside in sorted(files)
        if re.fullmatch(r"[^/]+\.dist-info/WHEEL", inside)
    )
    record = f"{about}/RECORD"
    rest = {inside: data for inside, data in files.items() if inside != record}
    lines = [
        f"{_quoted(inside)},sha256={_hash(data)},{len(data)}\n"
        for inside, data in sorted(rest.items())
    ]
    rest[record] = "".join([*lines, f"{record},,\n"]).encode()
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for inside in sorted(
            rest, key=lambda name: (name.startswith(about), name)
        ):  # metadata last, as PEP 427 has it
            entry = zipfile.ZipInfo(inside, (1980, 1, 1, 0, 0, 0))
            entry.external_attr, entry.create_system = 0o100644 << 16, 3
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, rest[inside])
    return f"{about.removesuffix('.dist-info')}-{_tag(rest[f'{about}/WHEEL'])}.whl", out.getvalue()


def _tag(wheel: bytes) -> str:
    """The tags of the file's name: `py3-none-any`; of several each part with all of them, joined by
    dots.
    """
    tags = [
        tag.split("-")
        for tag in re.findall(r"^Tag:\s*(\S+)\s*$", wheel.decode("utf-8", "replace"), re.MULTILINE)
    ]
    columns = zip(*(tag for tag in tags if len(tag) == 3), strict=True)
    return "-".join(".".join(sorted(set(column))) for column in columns) or "py3-none-any"


def _quoted(inside: str) -> str:
    return '"' + inside.replace('"', '""') + '"' if "," in inside or '"' in inside else inside


def _hash(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
