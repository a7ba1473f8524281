"""Pins cost a taped cell at most 5 ms, and its own computing at most 3 %: `pd.read_csv` of 100 MB, taped and untaped.

The same cell in a real IPython shell, in pairs one right after the other: with all pins, with none, and untaped. A cell
that reads the clock is written to the cassette for it, which is counted too.
"""

from __future__ import annotations

import contextlib
import io
import os
import statistics
from pathlib import Path

from harness import report, timed, workplace

BAR, CELLS, ROUNDS = 5, 20, 9
SHARE, READS, MEGABYTES = 3, 15, 100
NONE = "--no-pin clock,sleep,random,timezone"
READING = "import time, random, uuid; time.time(), random.random(), uuid.uuid4(); "


def main():
    from IPython.testing.globalipapp import start_ipython

    with workplace() as folder:
        os.chdir(folder)
        shell = start_ipython()
        shell.run_line_magic("load_ext", "tape_jupyter")

        def run(source, times=CELLS):
            with contextlib.redirect_stdout(io.StringIO()):
                for number in range(times):
                    shell.run_cell(f"{source}x = {number}").raise_error()

        cells(run)
        read_csv(run, folder)
        os.chdir("/")


def cells(run):
    for what, source in ("without a read", ""), ("that reads clock and chance", READING):
        record = added(run, f"%%tape record pins\n{source}", f"%%tape record none {NONE}\n{source}")
        report(
            f"pins, recording a cell {what}",
            f"add <= {BAR} ms",
            record <= BAR,
            added_ms=round(record, 3),
        )
    replay = added(run, f"%%tape replay pins\n{READING}", f"%%tape replay pins {NONE}\n{READING}")
    report(
        "pins, replaying a cell that reads clock and chance",
        f"add <= {BAR} ms",
        replay <= BAR,
        added_ms=round(replay, 3),
    )


def added(run, pinned, plain):
    run(pinned, 1), run(plain, 1)
    pairs = [(timed(lambda: run(pinned)), timed(lambda: run(plain))) for _ in range(ROUNDS)]
    return statistics.median(a - b for a, b in pairs) / CELLS * 1e3


def read_csv(run, folder):
    path = Path(folder) / "big.csv"
    line = ",".join(f"{number * 1.37:.4f}" for number in range(12))
    lines = MEGABYTES * 10**6 // (len(line) + 8)
    with path.open("w") as file:
        file.write(",".join(f"c{number}" for number in range(13)) + "\n")
        for number in range(lines):
            file.write(f"{line},{number % 10**6}\n")
    source = f"import pandas as pd; frame = pd.read_csv({str(path)!r}); "
    run(source, 1)
    took = {"": [], "%%tape record csv\n": []}
    for round_ in range(READS):
        for way in took if round_ % 2 else [*took][::-1]:
            took[way].append(timed(lambda: run(way + source, 1)))
    plain, taped = map(min, took.values())  # of each the round that others disturbed least
    ratio = taped / plain
    report(
        "pd.read_csv of 100 MB in a taped cell",
        f"within {SHARE} % of untaped",
        ratio <= 1 + SHARE / 100,
        ratio=round(ratio, 4),
    )


if __name__ == "__main__":
    main()
