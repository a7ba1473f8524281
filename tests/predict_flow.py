"""Which cells depend on a changed reply, and what all cells show once they ran again: `python tests/predict_flow.py CASES.json`.

A case: `cells` (sources), `history` (executions in order: {"cell": index or "d0"} with `source` where it was another one or
the cell is deleted), `edit` (the cell whose reply changes), `responses` (prompt -> reply), `perturb` (prompt -> replies: the
first of the first is the change). Each runs in a process of its own: a real IPython shell, the tracker hooked in, the
recorded history; then the change, the plan, the re-run in place (or fresh, where the plan says that only that is right), the proof.

One JSON line a case on standard output, in the order of the file:

    name        the case's
    downstream  cells that depend on the change (without the edited one); deleted ones as their text
    cells_run   cells that ran again, in order; `restores`: those among them that only put something back
    text        cell -> what it shows after the re-run: what it printed to standard output, then the text/plain of each
                display and result (each ends its line), then `Type: message` if it raised. Nothing is normalised.
    strategy    "in place" or "fresh"; `why`: the reason for the latter
    verdict     "proved", "differs" or "not provable", with `proof`, the sentence, and `proof_cells`
    ms          planning and running again, in milliseconds; `plan_ms`, `proof_ms`
    error       instead of all these, where the case could not be run
"""

import argparse
import json
import multiprocessing
import os
import sys
import tempfile
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
SETTING = {"MPLBACKEND": "module://matplotlib_inline.backend_inline", "PYTHONHASHSEED": "0"}
SECONDS = 60


class Live:
    """A case's shell, tracker and texts; made in the process and the folder that are the case's own."""

    def __init__(self, case):
        import tapereplies

        from tape_jupyter.dataflow.isolated import worker
        from tape_jupyter.dataflow.tracing.tracker import Tracker

        self.case, self.stub, self.fresh = case, tapereplies, worker
        self.sources = [
            h.get("source", case["cells"][h["cell"]] if isinstance(h["cell"], int) else "")
            for h in case["history"]
        ]
        tapereplies.set_replies(case["responses"], {})
        self.shell = worker.shell()
        self.tracker = Tracker(self.shell)
        self.tracker.install()
        tapereplies.tell(self.tracker.calling)
        self.history = self.tracker.history
        self.texts, self.images, self.asked = {}, {}, {}

    def run(self, index, source):
        """Execute one entry; the tracker's new Entry for it."""
        ran = self.fresh.execute_in_shell(self.shell, source)
        self.texts[index], self.images[index] = ran["text"], ran["images"]
        return self.history[-1]

    def record(self):
        for index, source in enumerate(self.sources):
            entry = self.run(index, source)
            entry.cell = str(self.case["history"][index]["cell"])
            self.asked[index] = self.stub.asked()
        self.lines = dict(self.tracker.lines)

    def override(self):
        prompt = next(iter(self.case["perturb"]))
        return {prompt: self.case["perturb"][prompt][0]}

    def changed(self):
        """The entries that hold a changed reply, of the edited cell and of whoever else asked the same; and the line at
        which each made its first call.
        """
        prompts = self.override().keys()
        holds = {i for i, asked in self.asked.items() if prompts & set(asked)}
        holds |= {i for i, h in enumerate(self.case["history"]) if h["cell"] == self.case["edit"]}
        return {i: self.lines.get(i) for i in sorted(holds)}

    def job(self, override):
        from tape_jupyter.dataflow.isolated import process as isolated_process

        setup = f"import tapereplies\ntapereplies.set_replies({self.case['responses']!r}, {override!r})\ndel tapereplies"
        return isolated_process.job(self.history, setup=setup, env=SETTING, seconds=SECONDS)


def predict(case):
    from tape_jupyter.dataflow.isolated import process as isolated_process, verify
    from tape_jupyter.dataflow.plan import plan_rerun
    from tape_jupyter.dataflow.restore.rerun import Rerun

    live = Live(case)
    live.record()
    cells = [h["cell"] for h in case["history"]]
    recorded, recorded_texts = type(live.history)(live.history), dict(live.texts)
    again, baseline_again = live.job(live.override()), live.job({})
    live.stub.set_replies(case["responses"], live.override())
    start = time.perf_counter()
    planned = plan_rerun(live.history, live.changed())
    planning = time.perf_counter() - start
    rerun = Rerun(live.history, planned, live.shell, on_error="go on", resync=live.tracker.resync)
    why, replayed = planned.hermetic or rerun.doubt, None
    if why is None:
        while (entry := rerun.next()) is not None:
            rerun.prepare(entry)
            rerun.record_outcome(entry, live.run(entry.index, entry.source))
        rerun.finish()
        there = rerun.end()
        ran = rerun.ran
    else:
        replayed = isolated_process.replay_job(again)
        ran = [each.index for each in replayed.ran]
        live.texts.update({each.index: each.text for each in replayed.ran})
    running = time.perf_counter() - start

    def unsteady():
        return set(
            verify.differing_entries(
                recorded, recorded_texts, isolated_process.replay_job(baseline_again)
            )
        )

    start = time.perf_counter()
    if replayed is None:
        verdict = verify.verify_rerun(
            live.history, live.texts, isolated_process.replay_job(again), unsteady, there
        )
    elif replayed.failed is None:
        verdict = verify.RerunVerdict("proved", "all cells were run fresh")
    else:
        verdict = verify.RerunVerdict("not provable", replayed.failed)
    downstream = {cells[i] for i in [*planned.downstream, *rerun.found, *live.changed()]} - {
        case["edit"]
    }
    return {
        "name": case["name"],
        "downstream": sorted(downstream, key=str),
        "cells_run": [cells[i] for i in ran],
        "restores": [cells[c.entry] for c in planned.cells if c.role == "restores"],
        "text": {str(cells[i]): live.texts.get(i, "") for i in range(len(cells))},
        "strategy": "in place" if replayed is None else "fresh",
        "why": why,
        "verdict": verdict.state,
        "proof": verdict.text,
        "proof_cells": [cells[i] for i in verdict.cells],
        "ms": round(running * 1000, 1),
        "plan_ms": round(planning * 1000, 2),
        "proof_ms": round((time.perf_counter() - start) * 1000, 1),
    }  # fmt: skip


def child(case, answer):
    """In the case's own process, in a folder of its own; what cells print by themselves goes nowhere."""
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)
    for module in ("__mp_main__", "__main__", "predict_flow", "tapereplies"):
        if module in sys.modules:
            sys.modules[module].__file__ = None  # the harness is no module of the notebook's user
    with tempfile.TemporaryDirectory(prefix="flow-", ignore_cleanup_errors=True) as folder:
        os.chdir(os.path.realpath(folder))
        try:
            answer.send(predict(case))
        except BaseException:
            answer.send({"name": _name(case), "error": traceback.format_exc()[-2000:]})
        os.chdir("/")
    answer.close()
    os._exit(0)  # a cell's threads do not hold us


def _name(case):
    return case.get("name") if isinstance(case, dict) else None


def one(case):
    here, there = CONTEXT.Pipe(duplex=False)
    process = CONTEXT.Process(target=child, args=(case, there))
    process.start()
    there.close()
    try:
        said = (
            here.recv()
            if here.poll(4 * SECONDS)
            else {"name": _name(case), "error": "it took too long"}
        )
    except EOFError:
        said = {"name": _name(case), "error": "its process ended without a word"}
    process.kill()
    process.join()
    return said


CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(
    [
        "numpy",
        "pandas",
        "matplotlib.pyplot",
        "tape_jupyter.dataflow.restore.rerun",
        "tape_jupyter.dataflow.isolated.verify",
    ]
)


def predictions(cases, workers=2):
    with ThreadPoolExecutor(workers) as pool:
        yield from pool.map(one, cases)


def main():
    parser = argparse.ArgumentParser(
        description="One JSON line a case: see this file's first words."
    )
    parser.add_argument("cases", type=Path)
    parser.add_argument(
        "--only", action="append", default=[], help="the name of a case; may be repeated"
    )
    asked = parser.parse_args()
    if any(os.environ.get(key) != value for key, value in SETTING.items()):
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **SETTING})
    cases = json.loads(asked.cases.read_text(encoding="utf-8"))
    for said in predictions([c for c in cases if not asked.only or _name(c) in asked.only]):
        print(json.dumps(said), flush=True)


if __name__ == "__main__":
    main()
