"""Bundles for tests: good ones from a few files, and a zip put together by hand, which may say anything."""

import hashlib
import io
import json
import struct
import zlib

from tape_jupyter.headless import run
from tape_jupyter.comparison import outputs
from tape_jupyter.bundle import archive
from tape_jupyter.bundle.proof import expected
from tape_jupyter.bundle.archive import manifest

CELL = {
    "cell_type": "code",
    "id": "one",
    "metadata": {},
    "execution_count": 1,
    "outputs": [],
    "source": "1 + 1",
}
NOTEBOOK = json.dumps(
    {"cells": [CELL], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
).encode()
CONTENT = {
    "README.md": b"how to replay",
    "session/churn.ipynb": NOTEBOOK,
    "session/data/orders.csv": b"order,late\n12,true\n" * 50,
    "session/data/é.csv": b"",
}
ROLES = {"README.md": "readme", "page.html": "page", "session/churn.ipynb": "notebook"}


def role_of(path):
    if path in ROLES:
        return ROLES[path]
    if path.startswith("environment/"):
        return "wheel" if path.endswith(".whl") else "source" if "/sources/" in path else "lock"
    if path.endswith(".tape.yaml"):
        return "take" if "/takes/" in path else "cassette"
    if path.endswith(".default"):
        return "take"
    return "asset" if "/assets/" in path else "data"


def cells_of(notebook):
    """What a manifest says of the cells of a notebook; of one that is none, one cell."""
    try:
        cells = json.loads(notebook)["cells"]
        code = [
            {**cell, "source": outputs.join_lines(cell["source"])}
            for cell in cells
            if cell["cell_type"] == "code"
        ]
        return tuple(
            manifest.Expected(
                number, cell.get("id", ""), run.first_line(cell["source"]),
                hashlib.sha256(cell["source"].encode()).hexdigest(), expected.outputs_digest(cell["outputs"]), 0,
                outputs.failure_of(cell["outputs"])[0],
            )
            for number, cell in enumerate(code, 1)
        )  # fmt: skip
    except (ValueError, KeyError, TypeError, RecursionError):
        return (manifest.Expected(1, "one", "1 + 1", "0" * 64, "1" * 64, 0),)


def made(content=CONTENT, roles=(), **said):
    """The manifest of a bundle of these files."""
    files = [
        manifest.describe_file(path, content[path], dict(roles).get(path, role_of(path)))
        for path in sorted(content)
    ]
    told = {
        "made_by": "tape-jupyter 0.1.0",
        "notebook": "session/churn.ipynb",
        "kernel": {"name": "python3", "language": "python"},
        "files": tuple(files),
        "kit": {"python": "3.11.2", "distributions": ["anthropic==2.12.0"]},
        "cells": cells_of(content.get("session/churn.ipynb", b"")),
        "lock": manifest.LockState(hashed=True, index="public"),
        "guards": ("no network: a namespace of its own",),
    }
    return manifest.check_manifest(manifest.Manifest(**{**told, **said}))


def packed(content=CONTENT, said=None):
    """The bytes of a bundle of these files."""
    out = io.BytesIO()
    archive.pack(out, said or made(content), content)
    return out.getvalue()


def written(folder, content=CONTENT, said=None, name="churn.tape.zip"):
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_bytes(packed(content, said))
    return path


class Raw:
    """A zip by hand: entries as they are told, with any field of the local or the central header other than it should."""

    def __init__(self):
        self.body, self.central, self.count = b"", b"", 0

    def add(
        self,
        name,
        data=b"",
        *,
        packed=None,
        method=8,
        local=(),
        central=(),
        at=None,
        extra=b"",
        comment=b"",
    ):
        """`local` and `central`: {field: value}, in the words of FIELDS."""
        name = name if isinstance(name, bytes) else name.encode("utf-8", "surrogatepass")
        if packed is None:
            packer = zlib.compressobj(9, zlib.DEFLATED, -15)
            packed = packer.compress(data) + packer.flush() if method == 8 else data
        flags = 0 if name.isascii() else 0x800
        told = {
            "needs": 20,
            "flags": flags,
            "method": method,
            "time": 0,
            "date": 33,
            "crc": zlib.crc32(data),
        }
        told |= {"packed": len(packed), "size": len(data), "name": len(name), "extra": len(extra)}
        offset = len(self.body) if at is None else at
        here = told | dict(local)
        there = told | {"made_by": 0x314, "comment": len(comment), "disk": 0, "internal": 0} | {
            "external": 0o100644 << 16, "offset": offset
        } | dict(central)  # fmt: skip
        if at is None:
            head = [
                here[each]
                for each in "needs flags method time date crc packed size name extra".split()
            ]
            self.body += (
                struct.pack("<4s5H3L2H", b"PK\x03\x04", *head)
                + dict(local).get("text", name)
                + extra
                + packed
            )
        order = "made_by needs flags method time date crc packed size name extra comment disk internal external offset"
        self.central += struct.pack(
            "<4s6H3L5H2L", b"PK\x01\x02", *(there[each] for each in order.split())
        )
        self.central += name + extra + comment
        self.count += 1
        return self

    def bytes(
        self,
        *,
        before=b"",
        between=b"",
        after=b"",
        count=None,
        start=None,
        size=None,
        comment=b"",
        end=None,
    ):
        count = self.count if count is None else count
        start = len(self.body) + len(between) if start is None else start
        size = len(self.central) if size is None else size
        end = (
            struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, count, count, size, start, len(comment))
            if end is None
            else end
        )
        return before + self.body + between + self.central + end + comment + after


def by_hand(content=CONTENT, said=None, skip=()):
    """A good bundle by hand: what differs from it afterwards is what makes a bad one bad."""
    raw = Raw()
    said = said or made({path: data for path, data in content.items()})
    raw.add("manifest.json", said if isinstance(said, bytes) else said.to_bytes())
    for path in sorted(content):
        if path not in skip:
            raw.add(path, content[path])
    return raw


def recording(folder, text="negative"):
    """A notebook of one cell and its cassette, with three calls: the files of a bundle's session, by their names in it."""
    from tests.harness.spanned import Recording, answered, asked, fetched, tool

    tape = Recording(folder / "churn.tapes" / "main.tape.yaml")
    tape.run(title=text)
    tape.add(asked("q", text), answered(text))
    tape.add(*tool("lookup", text, key=text))
    tape.add(*fetched("https://h.test/orders", text.encode()))
    tape.end()
    found = {
        f"session/{each.relative_to(folder).as_posix()}": each.read_bytes()
        for each in folder.rglob("*")
        if each.is_file()
    }
    return CONTENT | {"session/churn.ipynb": notebook(text)} | found


def notebook(source="1 + 1", outputs=(), **metadata):
    cell = {**CELL, "source": source, "outputs": list(outputs)}
    told = {"cells": [cell], "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    return f"{json.dumps(told, indent=1)}\n".encode()
