"""A sweep (`tape try`): what share of two workers' time its runs have, what the parent grows by, and that no row is lost
or doubled when workers are killed and when the parent is.

Throughput is of real runs: `RUNS` notebooks (environment; 12) as recorded and with a candidate; the issue's bar is for
1,000 bundles x 3. Kills are of rows that are quick (bundles that are none), of which there are 3,000.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import psutil
from harness import report, say, workplace

RUNS = int(os.environ.get("RUNS", "12"))
PLACES, KILLS = int(os.environ.get("PLACES", "1000")), 20
TAPE = [sys.executable, "-m", "tape_jupyter"]
RULE = '[[override]]\ntool = "stock"\nvalue = 3\n'


def main() -> int:
    with workplace() as folder:
        throughput(folder)
        kills(folder)
    return 0


def throughput(folder: Path) -> None:
    one = folder / "one.ipynb"
    cells = [
        "%load_ext tape_jupyter\nimport tape_jupyter as tape\n@tape.tool\ndef stock(n):\n    return 0",
        "%%tape record\nleft = [stock(n) for n in range(20)]",
        "assert left[-1] > 0",
    ]
    nb = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    nb.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3"}
    nbformat.write(nb, one)
    subprocess.run([*TAPE, "record", str(one), "--json"], stdout=subprocess.DEVNULL, check=False)
    runs = folder / "runs"
    for number in range(RUNS):
        place = runs / f"{number}" / "one.ipynb"
        place.parent.mkdir(parents=True)
        shutil.copy(one, place)
        shutil.copytree(one.with_suffix(".tapes"), place.with_suffix(".tapes"))
    (folder / "fix.toml").write_text(RULE)
    words = ["try", str(runs), "-c", str(folder / "fix.toml"), "--results", str(folder / "rows"), "--workers", "2"]  # fmt: skip
    began = time.perf_counter()
    process = psutil.Popen([*TAPE, *words, "--json"], stdout=subprocess.PIPE, text=True)
    grown = _grown(process)
    rows = [json.loads(line) for line in process.stdout]
    seconds = time.perf_counter() - began
    own = sum(row["seconds"] for row in rows)
    report(
        "sweep: share of two workers' time that is runs'", ">= 0.85", own / (2 * seconds) >= 0.85,
        share=round(own / (2 * seconds), 3), rows=len(rows), passing=sum(row["verdict"] == "passes" for row in rows),
        seconds=round(seconds, 1), run_seconds=round(own / max(1, len(rows)), 2),
    )  # fmt: skip
    report(
        "sweep: the parent's growth", "<= 50 MB", grown <= 50, mb=round(grown, 1), rows=len(rows)
    )


def _grown(process: psutil.Popen) -> float:
    """By how many MB a process grew from when its first worker was there, at most."""
    first = most = 0.0
    while process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
        try:
            size = process.memory_info().rss / 2**20
            first = first or (size if len(process.children(recursive=True)) > 2 else 0.0)
        except psutil.Error:
            break
        most = max(most, size)
        if (
            process.poll() is not None or not process.children()
        ) and first:  # it prints now: its pipe is read
            break
        time.sleep(0.2)
    return most - (first or most)


def kills(folder: Path) -> None:
    draw = random.Random(17)
    runs, rows = folder / "quick", folder / "quick-rows"
    runs.mkdir()
    for number in range(PLACES):
        (runs / f"{number:05}.tape.zip").write_text("no zip")
    files = []
    for name in ("one", "two"):
        files += ["-c", str(folder / f"{name}.toml")]
        Path(files[-1]).write_text(RULE.replace("3", str(len(files))))
    words = ["try", str(runs), *files, "--results", str(rows), "--workers", "2", "--yes"]
    wanted, killed, parents = 3 * PLACES, 0, 0
    marks = sorted(draw.sample(range(20, wanted - 20), KILLS))
    began = time.perf_counter()
    process = psutil.Popen([*TAPE, *words], stdout=subprocess.DEVNULL)

    while process.poll() is None:
        count = len(list((rows / "rows").glob("*.json"))) if (rows / "rows").is_dir() else 0
        workers = [each for each in process.children(recursive=True) if _is_worker(each)]
        if parents == 0 and count > wanted // 2:
            process.send_signal(signal.SIGKILL)
            process.wait()
            parents = 1
            say(f"parent killed at {count}; resumed")
            process = psutil.Popen([*TAPE, *words], stdout=subprocess.DEVNULL)
        elif marks and count >= marks[0] and workers:
            draw.choice(workers).send_signal(signal.SIGKILL)
            marks.pop(0)
            killed += 1
        time.sleep(0.05)
    seconds = time.perf_counter() - began
    made = [json.loads(each.read_text()) for each in (rows / "rows").glob("*.json")]
    pairs = {(row["place"], row["candidate"]) for row in made}
    report(
        "sweep: rows lost or doubled, workers and parent killed", "0",
        len(pairs) == len(made) == wanted and not any(row["end"] == "died" for row in made),
        rows=len(made), wanted=wanted, workers_killed=killed, parents_killed=parents,
        died=sum(row["end"] == "died" for row in made), ms_a_row=round(1000 * seconds / wanted, 2),
    )  # fmt: skip


def _is_worker(process: psutil.Process) -> bool:
    try:
        parent = process.parent()
        return parent is not None and "forkserver" in " ".join(parent.cmdline()) or "spawn_main" in " ".join(process.cmdline())  # fmt: skip
    except psutil.Error:
        return False


if __name__ == "__main__":
    raise SystemExit(main())
