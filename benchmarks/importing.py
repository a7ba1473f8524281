"""`import tape_jupyter` after the SDK is imported: at most 60 ms. Also what touching every public name then costs."""

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
first = time.perf_counter()
tape.recording, tape.replaying, tape.tool, tape.span
print((first - start) * 1e3, (time.perf_counter() - start) * 1e3)
"""


def main():
    for sdk in ("anthropic", "openai"):
        taken = [measured(sdk) for _ in range(7)]
        found = round(statistics.median(first for first, _ in taken), 1)
        report(f"import tape_jupyter after {sdk}", f"<= {BAR} ms", found <= BAR, ms=found)
        whole = round(statistics.median(every for _, every in taken), 1)
        report(f"the same and every public name touched, after {sdk}", "no bar", None, ms=whole)


def measured(sdk: str) -> tuple[float, float]:
    code = CODE.format(sdk=sdk)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    first, every = done.stdout.split()
    return float(first), float(every)


if __name__ == "__main__":
    main()
