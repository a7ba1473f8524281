"""`import tape_jupyter` after the SDK is imported: at most 60 ms. Also what a first taped block then costs."""

from __future__ import annotations

import statistics
import subprocess
import sys

from harness import report

BAR = 60
CODE = """
import time, {sdk}
start = time.perf_counter()
import tape_jupyter as tape
tape.recording, tape.replaying, tape.tool, tape.span
print((time.perf_counter() - start) * 1e3)
"""


def main():
    for sdk in ("anthropic", "openai"):
        taken = [
            float(
                subprocess.run(
                    [sys.executable, "-c", CODE.format(sdk=sdk)], capture_output=True, text=True, check=True
                ).stdout
            )
            for _ in range(7)
        ]
        found = round(statistics.median(taken), 1)
        report(f"import tape_jupyter after {sdk}, every public name touched", f"<= {BAR} ms", found <= BAR, ms=found)


if __name__ == "__main__":
    main()
