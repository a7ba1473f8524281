"""What the extension costs a notebook that tapes nothing: loading it, against `import anthropic` in the same process, and
cells in two real kernels, one of them without it, in turns.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

from harness import report, say, workplace

MODULES, SHARE, BAR = 60, 0.1, 1.1
CELLS, ROUNDS = 1000, 21
LOAD = """
import sys, time
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config
shell = InteractiveShell(config=Config({"HistoryManager": {"enabled": False}}))
began = time.process_time()
shell.run_line_magic("load_ext", "tape_jupyter")
loaded = time.process_time()
ours = sum(name.partition(".")[0] == "tape_jupyter" for name in sys.modules)
import anthropic
print(ours, loaded - began, time.process_time() - loaded)
"""
SMALL = (
    "text = 'ticket {i}: billing page is locked ' * 4",
    "words = text.split()\nlen(words)",
    "def clean(text, n={i}):\n    return text.strip().lower()[n % 7:]\n\nresult = clean(text)",
    "counts['{i}'] = {{word: len(word) for word in words}}\nlog.append(result)",
    "print(f'{{len(log)}} of {{len(counts)}}, last: {{result[:20]}} {i}')",
    "for word in words:\n    if len(word) > {i} % 9:\n        seen.add(word)\nsorted(seen)[:3]",
    "best = max(counts, key=lambda k: len(counts[k]))  # {i}",
    "v{i} = [*words, result, {i}]",
)
SETUP = "counts, log, seen, text, words, result = {}, [], set(), '', [], ''"
LARGE = {
    "a list of 200,000 dicts": (
        "docs = [{'id': i, 'text': 'a' * 20, 'seen': 0} for i in range(200_000)]",
        "docs[5]['seen'] = {i}\nsum(each['seen'] for each in docs)",
    ),
    "200,000 rows of pandas": (
        "import numpy as np, pandas as pd\nkinds = np.array(['x', 'y', 'z'], dtype=object)\n"
        "df = pd.DataFrame({'a': np.arange(200_000), 'b': np.resize(kinds, 200_000)})",
        "g = df.groupby('b').a.mean()\ndf['c'] = df.a * {i}",
    ),
    "200,000 rows of polars": (
        "import polars as pl\n"
        "df = pl.DataFrame({'a': range(200_000), 'b': ['x', 'y', 'z', 'x'] * 50_000})",
        "g = df.group_by('b').agg(pl.col('a').mean())\ndf = df.with_columns((pl.col('a') * {i}).alias('c'))",
    ),
}


class Kernel:
    """A real kernel, with the extension or without."""

    def __init__(self, folder: Path, *, loaded: bool):
        from jupyter_client.manager import start_new_kernel

        self.manager, self.client = start_new_kernel(kernel_name="python3", cwd=str(folder))
        if loaded:
            self.run("%load_ext tape_jupyter")
        self.run(SETUP)

    def run(self, source):
        """Seconds of a cell, as a front end waits for it."""
        began = time.perf_counter()
        reply = self.client.execute_interactive(source, output_hook=lambda _: None)
        took = time.perf_counter() - began
        assert reply["content"]["status"] == "ok", reply["content"]
        return took

    def end(self):
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)


def main():
    loading()
    with workplace() as folder:
        os.environ["IPYTHONDIR"] = str(folder / "ipython")
        (folder / "work").mkdir()
        kernels = [Kernel(folder / "work", loaded=loaded) for loaded in (False, True)]
        sources = (SMALL[i % len(SMALL)].format(i=i) for i in range(CELLS))
        pairs(kernels, f"{CELLS:,} small cells of a notebook that tapes nothing", sources)
        for what, (setup, source) in LARGE.items():
            for kernel in kernels:
                kernel.run(setup)
            pairs(kernels, what, (source.format(i=i) for i in range(ROUNDS)))
        for kernel in kernels:
            kernel.end()


def loading():
    rounds = []
    for _ in range(5):
        done = subprocess.run(
            [sys.executable, "-c", LOAD], capture_output=True, text=True, check=True
        )
        modules, ours, sdk = map(float, done.stdout.split())
        rounds.append(ours / sdk)
    share = statistics.median(rounds)
    report(
        "%load_ext, against `import anthropic`", f"<= {SHARE} x and <= {MODULES} modules of ours",
        share <= SHARE and modules <= MODULES, ratio=round(share, 3), modules=int(modules),
    )  # fmt: skip


def pairs(kernels, what, sources):
    taken = ([], [])
    for number, source in enumerate(sources):
        for place in (0, 1) if number % 2 else (1, 0):
            taken[place].append(kernels[place].run(source))
    added = [with_us - without for without, with_us in zip(*taken, strict=True)]
    ratio = statistics.median(taken[1]) / statistics.median(taken[0])
    say(f"{what}: {statistics.median(taken[0]) * 1e3:.2f} ms without us")
    report(
        what, f"<= {BAR} x a kernel without us", ratio <= BAR, ratio=round(ratio, 3),
        added_ms=round(statistics.median(added) * 1e3, 2),
    )  # fmt: skip


if __name__ == "__main__":
    main()
