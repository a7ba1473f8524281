"""Stepping, in a real kernel with a page played by hand: from the cell to the first stop that is shown, what a step
takes in the kernel (processor time of all its threads), and a jump to span 50 of a 50-span run.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.notebook import Kernel, notebook
from tests.provider import Provider
from tests.stepped import ASK, LOAD, Stepper

CALLS = 50
CELL = f"for number in range({CALLS}):\n    last = ask(f'question {{number}}')"


def main() -> None:
    """Print the figures, a JSON line each."""
    with tempfile.TemporaryDirectory() as folder, Provider() as provider:
        where = Path(folder)
        notebook(where / "nb.ipynb", LOAD)
        with Kernel(where, {"TAPE_NOTEBOOK": str(where / "nb.ipynb")}) as kernel:
            for code in (LOAD, ASK.replace("URL", provider.url), f"%%tape record\n{CELL}"):
                assert kernel.execute(code, timeout=60).ok
            figures(Stepper(kernel))


def figures(page: Stepper) -> None:
    """Everything is done twice; the second time counts, since the first imports."""
    page.hello()
    for last in (False, True):
        page.states.clear()
        began = time.perf_counter()
        page.run(f"%%tape step\n{CELL}")
        page.stop_at()
        first = time.perf_counter() - began
        steps = []
        for _ in range(20):
            before = used(page.kernel.pid)
            page.moved("over")
            steps.append(used(page.kernel.pid) - before)
        ahead = jump(page, f":{CALLS}")
        jump(page, ":1")
        back = jump(page, f":{CALLS}")
        page.do("stop")
        page.end()
        if last:
            tell("step: cell to first stop shown", first, "s", 0.5)
            tell("step: kernel time of a step, median of 20", 1000 * sorted(steps)[10], "ms", 50)
            tell(f"step: run on to span {CALLS}", ahead[0], "s", 0.5, kernel=ahead[1])
            tell(f"step: from span 1 to span {CALLS}", back[0], "s", 0.5, kernel=back[1])


def jump(page: Stepper, place: str) -> tuple[float, float]:
    """Seconds until the stop is shown, and the kernel's processor seconds."""
    began, before = time.perf_counter(), used(page.kernel.pid)
    page.moved("to", place=place)
    return time.perf_counter() - began, round(used(page.kernel.pid) - before, 3)


def used(pid: int) -> float:
    """Processor seconds of a process so far, from the scheduler's own count of nanoseconds."""
    tasks = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(each.read_text().split()[0]) for each in tasks) / 1e9


def tell(what: str, value: float, unit: str, bar: float, **more: float) -> None:
    print(json.dumps({"figure": what, "value": round(value, 3), "unit": unit, "bar": bar, **more}), flush=True)


if __name__ == "__main__":
    main()
