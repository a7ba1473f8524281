"""Records the example notebook anew from the real model: `python example_notebooks/record.py`, or `make examples`.

The recording runs in a folder outside of any repository and with an environment of PATH and HOME alone, so that its
kit tells nothing of this machine; the kernel's release, which such a run still sees, is taken out by hand. The notebook
is then replayed, and saved as it came out of that: with `%%tape replay` in its cells.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient

from tape_jupyter import outputs
from tape_jupyter.demo import server, texts
from tape_jupyter.demo.runs import KEYS

HERE = Path(__file__).resolve().parent
NAME = "01_record_and_replay"
NO_KEY = "a-local-model-asks-for-none"


def environment(home: Path, key: str = "") -> dict[str, str]:
    """PATH and HOME, where this environment's Python and its kernels are found; and a key, if any."""
    path = f"{Path(sys.executable).parent}{os.pathsep}/usr/bin{os.pathsep}/bin"
    return {"PATH": path, "HOME": str(home), **(dict.fromkeys(KEYS, key) if key else {})}


def record(folder: Path) -> Path:
    """Record the pipeline in `folder` from the model; the notebook's path."""
    notebook = folder / f"{NAME}.ipynb"
    with tempfile.TemporaryDirectory() as logs, server.serving(Path(logs), NO_KEY, live=True) as url:
        if url != texts.URL:
            raise SystemExit(f"port {texts.PORT} is taken; the notebook's address would be {url}")
        notebook.write_text(texts.to_record(texts.pipeline(), url, {}), encoding="utf-8")
        words = [sys.executable, "-m", "tape_jupyter", "record", str(notebook)]
        subprocess.run(words, env=environment(folder / "home", NO_KEY), check=True)  # noqa: S603  # our own command
    return notebook


def replay(notebook: Path) -> None:
    """Replay the notebook and save it as that comes out. Raises SystemExit where a cell's outputs differ."""
    notebook.write_text(texts.to_replay(notebook.read_text(encoding="utf-8")), encoding="utf-8")
    recorded = nbformat.read(notebook, as_version=4)
    replayed = nbformat.reads(nbformat.writes(recorded), as_version=4)
    client = NotebookClient(replayed, record_timing=False, resources={"metadata": {"path": str(notebook.parent)}})
    client.execute(env=environment(notebook.parent / "home"))
    for before, after in zip(recorded.cells, replayed.cells, strict=True):
        if before.cell_type == "code":
            after.outputs = outputs.merged(after.outputs)
            if not outputs.same(before.outputs, after.outputs):
                raise SystemExit(f"cell {after.id} replays differently: {outputs.diff(before.outputs, after.outputs)}")
    notebook.write_text(nbformat.writes(replayed) + "\n", encoding="utf-8")


def impersonal(cassette: Path) -> None:
    """Take the kernel's release (which may be a machine's own build) out of the kit's platform."""
    text = cassette.read_text(encoding="utf-8")
    cassette.write_text(text.replace(f"{platform.system()}-{platform.release()}-", f"{platform.system()}-"), "utf-8")


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "home").mkdir()
        notebook = record(folder)
        impersonal(folder / f"{NAME}.tapes" / "main.tape.yaml")
        replay(notebook)
        shutil.rmtree(HERE / f"{NAME}.tapes", ignore_errors=True)
        shutil.copytree(folder / f"{NAME}.tapes", HERE / f"{NAME}.tapes")
        shutil.copyfile(notebook, HERE / notebook.name)
    print(f"recorded: {HERE / NAME}.ipynb and its .tapes")


if __name__ == "__main__":
    main()
