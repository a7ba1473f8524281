"""Bundles: `tape export` of 1,000 calls with its proof, `tape verify` of 1,000, and `tape open` of 10,000 from the
command to the first painted row.

`seconds` are those that pass, a Python that starts, imports and reads among them: they hold on a quiet machine. `cpu_ms`
is the processor time of `tape` and of the kernels that it starts, on a busy machine the truer number. The browser is running already, as people's are.
Needs playwright, a Chromium (`CHROMIUM=/path`, else the one on PATH) and the built bundles (`make ui`).
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

import long_run
import nbformat
import psutil
import server
import viewer
from harness import report, say, workplace
from playwright.sync_api import Browser, sync_playwright

ROUNDS, EXPORTS, OPENED = 5, 3, 2
CELLS, CALLS = 10, 1_000
SETUP = """import anthropic
claude = anthropic.Anthropic(base_url="URL", api_key="sk-none")
def ask(number):
    asked = [{"role": "user", "content": f"Ticket {number}: " + "river stone quiet lantern copper meadow " * 9}]
    return claude.messages.create(model="m", max_tokens=400, messages=asked).content[0].text"""
TAPE = [sys.executable, "-m", "tape_jupyter"]


def main() -> int:
    chromium = (
        os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    )
    with workplace() as folder:
        small, large = (made(folder, spans) for spans in (1_000, 10_000))
        verified(small, "<= 2 s", 2.0)
        verified(large, "told, no bar", None)
        exported(session(folder))
        if chromium is None or not (viewer.STATIC / "page.js").exists():
            say("no Chromium, or no bundles (`make ui`): nothing is opened")
            return 0
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=chromium, args=viewer.ARGS)
            opened(browser, large, folder)
            browser.close()
    return 0


def made(folder: Path, spans: int) -> Path:
    """A bundle of a recording of at least so many calls, without what only a replay needs."""
    from tape_jupyter.bundle import archive
    from tape_jupyter.bundle.archive import manifest

    cassette = folder / f"{spans}" / "churn.tapes" / "main.tape.yaml"
    cassette.parent.mkdir(parents=True)
    long_run.write(cassette, spans)
    notebook = nbformat.writes(nbformat.v4.new_notebook()).encode()
    content = {
        "session/churn.ipynb": notebook,
        "session/churn.tapes/main.tape.yaml": cassette.read_bytes(),
    }
    roles = {"session/churn.ipynb": "notebook", "session/churn.tapes/main.tape.yaml": "cassette"}
    said = manifest.Manifest(
        "tape-jupyter", "session/churn.ipynb", {"name": "python3", "language": "python"},
        tuple(manifest.describe_file(path, content[path], roles[path]) for path in sorted(content)), {}, (),
        manifest.LockState(hashed=True, index="none"),
    )  # fmt: skip
    path = folder / f"{spans}.tape.zip"
    with path.open("wb") as out:
        archive.pack(out, said, content)
    return path


def run(*words: str, env: dict[str, str] | None = None) -> tuple[subprocess.Popen[str], float]:
    return subprocess.Popen(
        [*TAPE, *words], stdout=subprocess.PIPE, text=True, env=env
    ), time.perf_counter()


def ended(process: subprocess.Popen[str]) -> tuple[str, float]:
    """What it printed, and its processor time in ms."""
    text = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{process.args} ended with {process.returncode}: {text}")
    return text, 1000 * (usage.ru_utime + usage.ru_stime)


def session(folder: Path) -> Path:
    """A notebook of CELLS cells that make CALLS calls, recorded by a kernel from a server on loopback."""
    say(f"a notebook of {CALLS:,} calls is recorded (not measured)")
    path, each = folder / "session" / "churn.ipynb", CALLS // CELLS
    path.parent.mkdir()
    with server.serving() as url:
        cells = [SETUP.replace("URL", url)]
        cells += [
            f"for n in range({n * each}, {n * each + each}): text = ask(n)\nprint(text)"
            for n in range(CELLS)
        ]
        made = [
            nbformat.v4.new_code_cell(source, id=f"cell-{number}")
            for number, source in enumerate(cells)
        ]
        path.write_text(nbformat.writes(nbformat.v4.new_notebook(cells=made)), encoding="utf-8")
        text, _ = ended(run("record", str(path), "--json")[0])
    bad = [cell for cell in json.loads(text)["cells"] if cell["status"] != "ok"]
    if bad:
        raise SystemExit(f"not recorded: {bad}")
    return path


def exported(notebook: Path) -> None:
    seconds, busy, told = [], [], {}
    for number in range(EXPORTS):
        say(f"export {number + 1} of {EXPORTS}")
        process, start = run("export", str(notebook), "--no-index", "--json")
        text, used = ended(process)
        seconds.append(time.perf_counter() - start)
        busy.append(used)
        told = json.loads(text)
    if told["calls"] != CALLS or told["differences"]:
        raise SystemExit(f"not the session that was recorded: {told}")
    taken = statistics.median(seconds)
    report(
        f"bundle: export {told['calls']:,} calls, proven", "<= 20 s", taken <= 20.0,
        seconds=round(taken, 2), least=round(min(seconds), 2), cpu_ms=round(min(busy)),
        cassette_mb=round(notebook.with_suffix(".tapes").joinpath("main.tape.yaml").stat().st_size / 1e6, 2),
        mb=round(told["bytes"] / 1e6, 2), ratio_of_bar=round(taken / 20.0, 2),
    )  # fmt: skip


def verified(bundle: Path, bar: str, most: float | None) -> None:
    seconds, busy = [], []
    say(f"verify {bundle.name}, {ROUNDS} times")
    for _ in range(ROUNDS):
        process, start = run("verify", str(bundle), "--json")
        text, used = ended(process)
        seconds.append(time.perf_counter() - start)
        busy.append(used)
    told = json.loads(text)
    taken = statistics.median(seconds)
    report(
        f"bundle: verify {told['calls']:,} calls", bar, None if most is None else taken <= most,
        seconds=round(taken, 2), least=round(min(seconds), 2), cpu_ms=round(min(busy)),
        **({} if most is None else {"ratio_of_bar": round(taken / most, 2)}),
        mb=round(told["size"] / 1e6, 1), packed_mb=round(bundle.stat().st_size / 1e6, 2),
    )  # fmt: skip


def opened(browser: Browser, bundle: Path, folder: Path) -> None:
    """`tape open`: what it gives a browser is given to ours."""
    line, command = folder / "line", folder / "browser"
    os.mkfifo(line)
    command.write_text(f'#!/bin/sh\necho "$1" > {line}\n')
    command.chmod(0o755)
    seconds, whole, until, busy = [], [], [], []
    for number in range(OPENED + 1):
        say(f"open {number} of {OPENED}")
        process, start = run("open", str(bundle), env={**os.environ, "BROWSER": f"{command} %s"})
        view = viewer.shown(browser, line.read_text().strip())
        view.evaluate("() => painted")
        first, worked = (
            time.perf_counter() - start,
            sum(psutil.Process(process.pid).cpu_times()[:2]),
        )
        view.evaluate("() => whole")
        _, used = ended(process)
        if number:  # the first round warms the browser's caches
            seconds.append(first)
            until.append(1000 * worked)
            whole.append(time.perf_counter() - start)
            busy.append(used)
        view.close()
    taken = statistics.median(seconds)
    report(
        "bundle: open 10,560 calls, from the command to the first rows", "<= 2 s", taken <= 2.0,
        seconds=round(taken, 2), least=round(min(seconds), 2), all_there=round(statistics.median(whole), 1),
        cpu_ms_until_then=round(min(until)), cpu_ms=round(min(busy)), ratio_of_bar=round(taken / 2.0, 2),
    )  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
