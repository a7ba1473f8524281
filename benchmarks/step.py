"""Stepping, in a real kernel with a page played by hand: what a step takes in the kernel (processor time of all its
threads), and a jump to span 50 of a 50-span run. And in JupyterLab in a real Chromium, on ipykernel 7 and on 6.31: from
the moment the page hears that the cell runs to the frame in which the first stop is drawn.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from harness import report
from tests.harness import old_kernel
from tests.harness.notebook import Kernel, notebook
from tests.harness.provider import Provider
from tests.harness.stepped import ASK, LOAD, Stepper

CALLS = 50
SHOWN = 7
"""Times that a cell is begun in the browser; the median counts, and the first not at all: it loads the stepper."""
FIRST_STOP = """
const kernel = panel.sessionContext.session.kernel;
const drawn = () => [...document.querySelectorAll('.tape-sidebar .tape-door')].some((door) =>
  [...(door.shadowRoot?.querySelectorAll('[role=status]') ?? [])].some((said) => said.textContent.startsWith('Stopped before call 1')));
window.tapeFirstStop = new Promise((resolve) => {
  const heard = (_, { header }) => {
    if (header.msg_type !== 'execute_input') return;
    kernel.iopubMessage.disconnect(heard);
    const began = performance.now();
    const look = () => (drawn() ? requestAnimationFrame(() => resolve(performance.now() - began)) : requestAnimationFrame(look));
    look();
  };
  kernel.iopubMessage.connect(heard);
});"""
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
    in_the_browser()


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
            tell("step: cell to first stop told", first, "s", 0.5)
            tell("step: kernel time of a step, median of 20", 1000 * sorted(steps)[10], "ms", 50)
            tell(f"step: run on to span {CALLS}", ahead[0], "s", 0.5, kernel=ahead[1])
            tell(f"step: from span 1 to span {CALLS}", back[0], "s", 0.5, kernel=back[1])


def in_the_browser() -> None:
    """The first stop as a person sees it, on both kernels."""
    from playwright.sync_api import sync_playwright

    from tests.browser.conftest import CHROMIUM_FLAGS
    from tests.browser.jupyter import serve

    path = shutil.which("chromium") or shutil.which("chromium-browser")
    with (
        tempfile.TemporaryDirectory() as folder,
        sync_playwright() as playwright,
        Provider() as provider,
    ):
        chromium = playwright.chromium.launch(
            executable_path=path, headless=True, args=CHROMIUM_FLAGS
        )
        for version, env in (
            ("7", {}),
            ("6.31", old_kernel.installed(Path(folder) / "ipykernel-6")),
        ):
            where = Path(folder) / f"lab-{version}"
            where.mkdir()
            with serve("lab", where, env) as server:
                first = shown_first(server, chromium.new_page(), provider.url)
            tell(
                f"step: first stop drawn in JupyterLab, ipykernel {version}, median of {SHOWN}",
                first,
                "s",
                0.5,
            )
        chromium.close()


def shown_first(server: Any, page: Any, url: str) -> float:
    """Seconds from `execute_input` to the frame with the first stop."""
    from tests.browser.jupyter import Notebook, write
    from tests.browser.viewing import SETUP, sidebar_of

    cells = [SETUP.format(url=url), "%%tape record\nask('one')", "%%tape step\nask('one')"]
    opened = Notebook(page, server, write(server.root / "churn.ipynb", *cells)).open()
    opened.run(1, 2)
    bar = sidebar_of(opened).get_by_role("group", name="Step", exact=True)
    taken = []
    for _ in range(SHOWN + 1):
        opened.javascript(FIRST_STOP)
        opened.run(3, wait=False)
        taken.append(page.evaluate("() => window.tapeFirstStop"))
        bar.get_by_role("button", name="Continue").click()
        bar.get_by_role("button", name="Close").click()
        opened.idle()
    return sorted(taken[1:])[SHOWN // 2] / 1000


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
    report(what, f"<= {bar} {unit}", value <= bar, value=round(value, 3), unit=unit, **more)


if __name__ == "__main__":
    main()
