"""Records the example notebooks from the real model: `make examples`, or `python example_notebooks/record.py NAME`.

The recording runs in a folder outside of any repository and with an environment of PATH and HOME alone, so that its
kit tells nothing of this machine; the kernel's release, which such a run still sees, is taken out by hand. The notebook
is then replayed, and saved as it came out of that: with `%%tape replay` in its cells.
"""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import nbformat
from nbclient import NotebookClient

from tape_jupyter.comparison import outputs
from tape_jupyter.demo import server, texts
from tape_jupyter.demo.runs import KEYS

HERE = Path(__file__).resolve().parent
NO_KEY = "a-local-model-asks-for-none"
RECORD, OVERRIDE, STEP = "01_record_and_replay", "02_override_and_rerun", "03_step_through"
SHARE = "04_share_a_bundle"
WHY, MONDAY = "05_why", "monday"
TRACE, TRACED = "06_from_a_trace", "06_support_run.json"
ABOUT_TRACE = """# From a trace to a notebook that replays

`06_support_run.json` is a trace as Phoenix, Langfuse or an OpenTelemetry collector hold it: OTLP JSON by
OpenInference's conventions, of the support agent of the first notebook. One line made this notebook of it:

```
tape import 06_support_run.json --out 06_from_a_trace.ipynb
```

Its cells ask as the traced program did, in the SDKs' own words, and the tape answers: no network, no key. *Run
All*, then change a prompt and run that cell again: it says which call is not on the tape, and what is nearest
to it. What the trace does not hold (headers, the bytes, a stream's chunks) and what was filled in (the
addresses) stands in each call: `tape gaps`."""
MOOD = {OVERRIDE: "classify", STEP: "agent"}
"""The cell that shows what the classifier said."""
TAKE, TRIES = "angry-customer", 12


def environment(home: Path, key: str = "") -> dict[str, str]:
    """PATH and HOME, where this environment's Python and its kernels are found; and a key, if any."""
    path = f"{Path(sys.executable).parent}{os.pathsep}/usr/bin{os.pathsep}/bin"
    return {"PATH": path, "HOME": str(home), **(dict.fromkeys(KEYS, key) if key else {})}


def tape(notebook: Path, word: str, *words: str) -> None:
    """A `tape` command about a notebook, with the model's key."""
    command = [sys.executable, "-m", "tape_jupyter", word, str(notebook), *words]
    subprocess.run(command, env=environment(notebook.parent / "home", NO_KEY), check=True)  # noqa: S603  # our own command


def record_pipeline(notebook: Path, url: str) -> None:
    notebook.write_text(texts.to_record(texts.pipeline(), url, {}), encoding="utf-8")
    tape(notebook, "record")


def record_override(notebook: Path, _url: str) -> None:
    """A notebook whose classifier takes a complaint for praise, and the take in which it does not."""
    whole = nbformat.read(HERE / notebook.name, as_version=4)
    tapes = notebook.with_suffix(".tapes")
    for _ in range(TRIES):
        shutil.rmtree(tapes, ignore_errors=True)
        notebook.write_text(to_record(whole), encoding="utf-8")
        tape(notebook, "record")
        if "positive" in texts.cell_texts(notebook)[MOOD[notebook.stem]]:
            break
    else:
        raise SystemExit(f"the model was right {TRIES} times")
    impersonal(tapes)  # now: a take holds a digest of its base
    recorded = re.findall(
        r'^call: "(\w+)"', (tapes / "main.tape.yaml").read_text(encoding="utf-8"), re.MULTILINE
    )
    tape(notebook, "override", recorded[0], "--text", " negative", "--take", TAKE)
    tape(notebook, "rerun", "--take", TAKE, "--on-divergence", "live")
    tape(notebook, "sample", recorded[0], "-k", "10", "--check", "mood", "--max-calls", "10")
    shown = {cell.id: cell.get("outputs") for cell in nbformat.read(notebook, as_version=4).cells}
    for cell in whole.cells:
        if cell.cell_type == "code":
            cell.outputs = shown.get(cell.id) or []
    nbformat.write(whole, notebook)


def record_share(notebook: Path, _url: str) -> None:
    """A session with a file of its own; its cells export and verify it when the notebook is replayed."""
    for file in data_of(notebook):
        shutil.copy(file, notebook.parent)
    notebook.write_text(
        to_record(nbformat.read(HERE / notebook.name, as_version=4)), encoding="utf-8"
    )
    tape(notebook, "record")


MAILS = {
    "Mood of: Where is my parcel": "calm",
    "Mood of: I was charged twice": "angry",
    "Mood of: Lovely shop": "happy",
}
ANSWERS = {"angry": "refund", "puzzled": "apologise"}


class Scripted(BaseHTTPRequestHandler):
    """A model that says the same words each time, but for one mood, and for how it puts the others."""

    monday = True

    def do_POST(self) -> None:  # the server's word
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        asked = body["messages"][-1]["content"]
        mood = next((said for words, said in MAILS.items() if words in asked), "")
        if mood and not self.monday:
            mood = {"angry": "puzzled", "calm": "relaxed", "happy": "glad"}[mood]
        text = mood or next((ANSWERS[each] for each in ANSWERS if each in asked), "wait")
        told = {"id": f"msg_{len(asked):04d}", "type": "message", "role": "assistant", "model": body["model"],
                "content": [{"type": "text", "text": text}], "stop_reason": "end_turn", "stop_sequence": None,
                "usage": {"input_tokens": len(asked), "output_tokens": len(text)}}  # fmt: skip
        data = json.dumps(told).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Nothing."""


def record_why() -> None:
    """Two runs of one notebook, on a model that follows a script: on Monday it was right."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "home").mkdir()
        notebook, tapes = folder / f"{WHY}.ipynb", folder / f"{WHY}.tapes"
        whole = nbformat.read(HERE / notebook.name, as_version=4)
        server = ThreadingHTTPServer(("127.0.0.1", texts.PORT), Scripted)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        for monday in (True, False):
            Scripted.monday = monday
            notebook.write_text(
                texts.to_record(nbformat.writes(whole), texts.URL, {}), encoding="utf-8"
            )
            tape(notebook, "record")
            if monday:
                (tapes / "main.tape.yaml").rename(tapes / f"{MONDAY}.tape.yaml")
        server.shutdown()
        impersonal(tapes)
        replay(notebook)
        shutil.rmtree(HERE / tapes.name, ignore_errors=True)
        shutil.copytree(tapes, HERE / tapes.name)
        shutil.copyfile(notebook, HERE / notebook.name)
    print(f"recorded: {HERE / WHY}.ipynb and its .tapes")


def from_trace() -> None:
    """A trace made of the first example's recording, without what only we would read in it, and its notebook."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "home").mkdir()
        trace, notebook = folder / TRACED, folder / f"{TRACE}.ipynb"
        tape(HERE / f"{RECORD}.ipynb", "export", "--as", "openinference", "--out", str(trace))
        trace.write_text(foreign(trace.read_text(encoding="utf-8")), encoding="utf-8")
        command = [sys.executable, "-m", "tape_jupyter", "import", TRACED, "--out", notebook.name]
        subprocess.run(command, cwd=folder, env=environment(folder / "home"), check=True)  # noqa: S603  # our own command
        made = nbformat.read(notebook, as_version=4)
        made.cells.insert(0, nbformat.v4.new_markdown_cell(ABOUT_TRACE))
        for number, cell in enumerate(made.cells):
            cell["id"] = f"trace-{number}"
        nbformat.write(made, notebook)
        replay(notebook)
        shutil.rmtree(HERE / f"{TRACE}.tapes", ignore_errors=True)
        shutil.copytree(folder / f"{TRACE}.tapes", HERE / f"{TRACE}.tapes")
        for file in (trace, notebook):
            shutil.copyfile(file, HERE / file.name)
    print(f"made: {HERE / TRACE}.ipynb, its .tapes and {TRACED}")


def foreign(trace: str) -> str:
    """A trace as another system holds it: by its convention alone."""
    told = json.loads(trace)
    for part in told["resourceSpans"][0]["scopeSpans"]:
        part["scope"] = {"name": "openinference.instrumentation", "version": "0.1.66"}
        for span in part["spans"]:
            span["attributes"] = [
                each for each in span["attributes"] if not each["key"].startswith("tape.")
            ]
    return json.dumps(told, indent=1, ensure_ascii=False) + "\n"


def data_of(notebook: Path) -> list[Path]:
    """The files that an example's cells read: they begin with its number."""
    return sorted(HERE.glob(f"{notebook.name[:3]}*.csv"))


def to_record(whole: nbformat.NotebookNode) -> str:
    """The notebook as it is recorded: without the cells that speak of the take, which is not there yet."""
    told = nbformat.reads(nbformat.writes(whole), as_version=4)
    told.cells = [
        cell for cell in told.cells if TAKE not in cell.source or cell.cell_type != "code"
    ]
    return texts.to_record(nbformat.writes(told), texts.URL, {})


def replay(notebook: Path) -> None:
    """Replay the notebook and save it as that comes out. Raises SystemExit where a cell's outputs differ."""
    notebook.write_text(texts.to_replay(notebook.read_text(encoding="utf-8")), encoding="utf-8")
    recorded = nbformat.read(notebook, as_version=4)
    replayed = nbformat.reads(nbformat.writes(recorded), as_version=4)
    client = NotebookClient(
        replayed, record_timing=False, resources={"metadata": {"path": str(notebook.parent)}}
    )
    client.execute(env=environment(notebook.parent / "home"))
    for before, after in zip(recorded.cells, replayed.cells, strict=True):
        if before.cell_type == "code":
            after.outputs = outputs.merge_streams(after.outputs)
            if before.outputs and not outputs.same_outputs(before.outputs, after.outputs):
                raise SystemExit(
                    f"cell {after.id} replays differently: {outputs.diff_outputs(before.outputs, after.outputs)}"
                )
    notebook.write_text(nbformat.writes(replayed) + "\n", encoding="utf-8")


def impersonal(tapes: Path) -> None:
    """Take the kernel's release (which may be a machine's own build) out of the kit's platform."""
    for path in tapes.rglob("*.tape.yaml"):
        text = path.read_text(encoding="utf-8")
        path.write_text(
            text.replace(f"{platform.system()}-{platform.release()}-", f"{platform.system()}-"),
            "utf-8",
        )


def example(name: str, record: Callable[[Path, str], None]) -> None:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "home").mkdir()
        notebook, tapes = folder / f"{name}.ipynb", folder / f"{name}.tapes"
        with (
            tempfile.TemporaryDirectory() as logs,
            server.serving(Path(logs), NO_KEY, live=True) as url,
        ):
            if url != texts.URL:
                raise SystemExit(
                    f"port {texts.PORT} is taken; the notebook's address would be {url}"
                )
            record(notebook, url)
        impersonal(tapes)
        replay(notebook)
        shutil.rmtree(HERE / tapes.name, ignore_errors=True)
        shutil.copytree(tapes, HERE / tapes.name)
        shutil.copyfile(notebook, HERE / notebook.name)
    print(f"recorded: {HERE / name}.ipynb and its .tapes")


def main() -> None:
    recorders = {
        RECORD: record_pipeline,
        OVERRIDE: record_override,
        STEP: record_override,
        SHARE: record_share,
    }
    alone = {TRACE: from_trace, WHY: record_why}
    for name in sys.argv[1:] or [*recorders, *alone]:
        alone[name]() if name in alone else example(name, recorders[name])


if __name__ == "__main__":
    main()
