"""Bundles of real notebooks for the tests of their replay: recorded on loopback, packed without the export."""

import nbformat

from tape_jupyter.bundle import archive
from tape_jupyter.bundle.proof import expected
from tape_jupyter.bundle.archive import manifest
from tape_jupyter.bundle.session import session_of
from tape_jupyter.headless import run
from tests.harness.bundles import role_of
from tests.harness.notebook import notebook

SETUP = """%load_ext tape_jupyter
import json, urllib.request
def ask(text):
    body = json.dumps({"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": text}]}).encode()
    request = urllib.request.Request("URL/v1/messages", body, {"content-type": "application/json", "x-api-key": "k"})
    with urllib.request.urlopen(request) as reply:
        return json.load(reply)["content"][0]["text"]"""
CELLS = (
    SETUP,
    "%%tape record\nprint(ask('which region lost most customers?'))",
    "import pandas as pd\npd.DataFrame({'region': ['north', 'south'], 'lost': [3, 9]}, index=['n', 's'])",
    "from PIL import Image\nImage.new('RGB', (30, 20), 'navy')",
    "open('data.csv').read()",
)
LIGHT = (*CELLS[:2], "{'lost': 9}", "1 + 1", CELLS[4])
"""The same without what takes long to import."""


def recorded(folder, provider, *cells):
    """A notebook beside its data, recorded."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "data.csv").write_text("a,b\n1,2\n")
    path = notebook(
        folder / "churn.ipynb", *(each.replace("URL", provider.url) for each in cells or CELLS)
    )
    runs, _ = run.record_notebook(path, lambda *_: None, lambda _: None)
    assert all(each.good for each in runs), [each.messages for each in runs]
    return path


def changed(path, change, name="changed.ipynb"):
    """The same session, of which somebody changed what is saved: change(cells)."""
    saved = nbformat.read(path, as_version=4)
    change(saved.cells)
    nbformat.write(saved, path)
    return path


def bundle_of(path, out, extra=(), **said):
    """The notebook's folder as a bundle. `extra`: more files, of their names in the bundle."""
    folder = path.parent
    found = [
        each
        for each in sorted(folder.rglob("*"))
        if each.is_file() and not each.relative_to(folder).parts[0].startswith(".")
    ]
    content = {
        f"session/{each.relative_to(folder).as_posix()}": each.read_bytes() for each in found
    } | dict(extra)
    notebook = f"session/{path.name}"
    taped = list(folder.glob("*.tapes/*.tape.yaml"))
    cells = expected.of_session(session_of(path)) if taped else ()
    roles = {notebook: "notebook"}
    files = [
        manifest.describe_file(name, content[name], roles.get(name) or role_of(name))
        for name in sorted(content)
    ]
    told = {
        "made_by": "tape-jupyter 0.1.0",
        "notebook": notebook,
        "kernel": {"name": "python3", "language": "python"},
        "files": tuple(files),
        "kit": {},
        "cells": cells,
        "lock": manifest.LockState(hashed=False, index="none"),
    }
    made = manifest.check_manifest(manifest.Manifest(**{**told, **said}))
    out.parent.mkdir(parents=True, exist_ok=True)
    with out.open("wb") as file:
        archive.pack(file, made, content)
    return out
