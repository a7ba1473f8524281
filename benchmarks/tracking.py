"""What listening to the notebook's cells costs, of the processor's time: an ordinary cell, a heavy one, a plan.

Two real IPython shells run the same cells in turns, one with the tracker and one without; the median of the
differences is quoted.
"""

from __future__ import annotations

import contextlib
import gc
import io
import os
import statistics
import time

from harness import report, say, workplace

BAR, NAMES, CELLS = 2, (20, 100, 1000), 1000
SHARE, CALLS, ROUNDS = 5, 10_000_000, 9
PLAN = 50

ORDINARY = (
    "text = 'ticket {i}: billing page is locked ' * 4",
    "words = text.split()\nlen(words)",
    "def clean(text, n={i}):\n    return text.strip().lower()[n % 7:]\n\nresult = clean(text)",
    "counts['{i}'] = {{word: len(word) for word in words}}\nlog.append(result)",
    "print(f'{{len(log)}} of {{len(counts)}}, last: {{result[:20]}} {i}')",
    "frame = pd.DataFrame({{'n': range(50), 'k': {i}}})\nmeans = frame.groupby('k').n.mean()",
    "for word in words:\n    if len(word) > {i} % 9:\n        seen.add(word)\nsorted(seen)[:3]",
    "client.ask('hello {i}')\nreply = client.said[-1]",
    "best = max(counts, key=lambda k: len(counts[k]))  # {i}",
    "v{i} = words + [result, {i}]",
)
"""Cells as people write them; each is new text."""
SETUP = """
import json, os, re
import numpy as np
import pandas as pd
counts, log, seen, text, words, result = {}, [], set(), "", [], ""
class Client:
    def __init__(self):
        self.said = []
    def ask(self, text):
        self.said = [*self.said[-3:], text]
client = Client()
"""
VALUES = (
    "'a text of some words'",
    "[1, 2, 3]",
    "{'a': 1, 'b': [2]}",
    "3.25",
    "('x', 1)",
    "lambda x: x + 1",
)


class Shell:
    """A real shell, with the tracker or without."""

    def __init__(self, *, tracked: bool):
        from IPython.core.interactiveshell import InteractiveShell
        from traitlets.config import Config

        from tape_jupyter.dataflow.tracing.tracker import Tracker

        config = Config()
        config.HistoryManager.enabled = False
        self.shell = InteractiveShell(config=config)
        self.tracker = Tracker(self.shell) if tracked else None
        if self.tracker is not None:
            self.tracker.install()

    def run(self, source):
        """Processor time of a cell, in seconds."""
        with contextlib.redirect_stdout(io.StringIO()):
            began = time.thread_time()
            result = self.shell.run_cell(source, store_history=True)
            took = time.thread_time() - began
        result.raise_error()
        return took

    def end(self):
        if self.tracker is not None:
            self.tracker.uninstall()
            assert not self.tracker.failures, self.tracker.failures[0]


def main():
    with workplace() as folder:
        os.chdir(folder)
        os.environ["IPYTHONDIR"] = str(folder)
        history = [ordinary(names) for names in NAMES][-1]
        plan(history)
        heavy()
        os.chdir("/")


def ordinary(names):
    """Cells at the end of a thousand, in a notebook that has `names` variables besides."""
    plain, tracked = Shell(tracked=False), Shell(tracked=True)
    for shell in plain, tracked:
        shell.run(SETUP)
        for first in range(0, names, 20):
            shell.run("\n".join(f"x{n} = {VALUES[n % 6]}" for n in range(first, first + 20)))
    added = []
    gc.collect()
    gc.disable()
    for i in range(CELLS):
        source = ORDINARY[i % len(ORDINARY)].format(i=i if i % 10 < 9 else i % names)
        costs = [shell.run(source) for shell in ((plain, tracked) if i % 2 else (tracked, plain))]
        added.append((costs[1] - costs[0]) * (1 if i % 2 else -1))
        if not i % 100:
            gc.collect()
    gc.enable()
    last = added[-300:]
    by_cell = {
        f"{k}": round(statistics.median(added[-300:][k :: len(ORDINARY)]) * 1e3, 2)
        for k in range(len(ORDINARY))
    }
    say(
        f"{names} names, by cell: {by_cell}; the first hundred: {statistics.median(added[:100]) * 1e3:.2f}"
    )
    report(
        f"tracking an ordinary cell, {names} names, after {CELLS} cells", f"median adds <= {BAR} ms",
        (middle := statistics.median(last) * 1e3) <= BAR, added_ms=round(middle, 3),
        mean_ms=round(statistics.fmean(last) * 1e3, 3), dearest_kind_ms=max(by_cell.values()),
    )  # fmt: skip
    for shell in plain, tracked:
        shell.end()
    return tracked.tracker.history


def plan(history):
    """The whole plan of a thousand cells and more: what depends on one of them, why, and what must run before it."""
    from tape_jupyter.dataflow.plan import plan_rerun as made

    nearly = {"little depends on": "means = ", "much depends on": "counts['"}
    for what, words in nearly.items():
        index = next(e.index for e in history if words in e.source and e.index > 60)
        costs = []
        for _ in range(9):
            gc.collect()
            began = time.thread_time()
            planned = made(history, {index: None})
            costs.append((time.thread_time() - began) * 1e3)
        report(
            f"the plan of {len(history)} cells, when a cell changes that {what}", f"first and median <= {PLAN} ms",
            max(costs[0], statistics.median(costs)) <= PLAN, first_ms=round(costs[0], 2),
            ms=round(statistics.median(costs), 2), least_ms=round(min(costs), 2), planned=len(planned.cells),
        )  # fmt: skip


HEAVY = f"""
def score(n):
    return n & 7

frame['c0'] = frame['c0'] + 1.0
total = 0
for n in range({CALLS}):
    total += score(n)
"""
FRAME = """
import numpy as np
import pandas as pd
frame = pd.DataFrame({f'c{k}': np.arange(6_250_000, dtype='float64') for k in range(19)})
frame['word'] = np.resize(np.array(['billing', 'praise', 'other'], dtype=object), 6_250_000)
"""


def heavy():
    """A cell that changes a column of a frame of 1 GB and calls a function of the notebook ten million times: of each
    shell's rounds the one that other programs disturbed least.
    """
    plain, tracked = Shell(tracked=False), Shell(tracked=True)
    tracked.run(FRAME)
    frame = tracked.shell.user_ns["frame"]
    gigabytes = frame.memory_usage(deep=False).sum() / 1e9
    plain.shell.user_ns |= {"frame": frame}
    costs = {plain: [], tracked: []}
    for round_ in range(ROUNDS):
        for shell in (plain, tracked) if round_ % 2 else (tracked, plain):
            costs[shell].append(shell.run(HEAVY + f"# {round_}"))
    least = [min(costs[shell]) for shell in (plain, tracked)]
    share = (least[1] / least[0] - 1) * 100
    pairs = [round((b / a - 1) * 100, 1) for a, b in zip(costs[plain], costs[tracked], strict=True)]
    report(
        f"tracking a cell with a frame of {gigabytes:.2f} GB and {CALLS:,} calls", f"adds <= {SHARE} %", share <= SHARE,
        added_percent=round(share, 2), seconds=round(least[0], 3), rounds=pairs,
    )  # fmt: skip
    for shell in plain, tracked:
        shell.end()


if __name__ == "__main__":
    main()
