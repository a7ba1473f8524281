"""A taped cell that makes no call costs at most 5 ms over the same cell untaped, in a real IPython shell."""

from __future__ import annotations

import contextlib
import io
import os
import statistics

from harness import report, timed, workplace

BAR, CELLS = 5, 40


def main():
    from IPython.testing.globalipapp import start_ipython

    with workplace() as folder:
        os.chdir(folder)
        shell = start_ipython()
        shell.run_line_magic("load_ext", "tape_jupyter")

        def run(source):
            with contextlib.redirect_stdout(io.StringIO()):
                for number in range(CELLS):
                    shell.run_cell(f"{source}x = {number}")

        plain, taped = [], []
        for _ in range(9):
            plain.append(timed(lambda: run("")))
            taped.append(timed(lambda: run("%%tape record bench\n")))
        added = (
            statistics.median(a - b for a, b in zip(taped[1:], plain[1:], strict=True))
            / CELLS
            * 1e3
        )
        report(
            "a taped cell that makes no call",
            f"adds <= {BAR} ms",
            added <= BAR,
            added_ms=round(added, 3),
        )
        os.chdir("/")


if __name__ == "__main__":
    main()
