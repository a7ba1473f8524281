"""Recording costs the cells of LangGraph's notebooks at most 10 %: each in a kernel of its own, replies 0 to 40 ms late; with
`--as-late-as-recorded` as late as Anthropic's own headers said in recorded traffic.

What a cell takes is the kernel's own time from its start to its end, the first taped cell and the loading included.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from graphs import BAR, PACES, Late, asked_pace
from harness import report, say

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.trials.langgraph_notebooks import NOTEBOOKS, R  # noqa: E402
from tests.trials.langgraph_overrides import Model, environment  # noqa: E402
from tests.harness.notebook import Kernel, notebook  # noqa: E402


class LateModel(Late, Model):
    """Follows a notebook's rules, late."""

    delays = PACES[asked_pace()].delays


def run_notebook(name: str, *, taped: bool) -> float:
    """Seconds that its cells take together."""
    cells, rules = NOTEBOOKS[name]
    sources = ["%load_ext tape_jupyter", *cells] if taped else [c.replace(R, "") for c in cells]
    with LateModel(rules) as model, tempfile.TemporaryDirectory() as folder:
        path = notebook(Path(folder, "nb.ipynb"), "x")
        with Kernel(Path(folder), environment(model, path)) as kernel:
            kernel.execute("1", "ready")
            began = time.perf_counter()
            for number, source in enumerate(sources):
                kernel.execute(source, f"c{number}")
            return time.perf_counter() - began


def main() -> None:
    plain = recorded = 0.0
    for name in [each for each in NOTEBOOKS if each in sys.argv[1:]] or NOTEBOOKS:
        before, after = (run_notebook(name, taped=taped) for taped in (False, True))
        say(f"{name}: {after / before:.3f} ({before * 1e3:.0f} -> {after * 1e3:.0f} ms)")
        plain, recorded = plain + before, recorded + after
    whole = round(recorded / plain, 3)
    figure = "recording notebooks of LangGraph" + PACES[asked_pace()].words
    report(figure, f"<= {BAR}x", whole <= BAR, ratio=whole)


if __name__ == "__main__":
    main()
