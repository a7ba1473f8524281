"""How well downstream cells are told, on cases whose truth was found by running them again.

`python tests/flow_score.py CASES.json [NAME...]`: recall, precision, per category; with names, their reasons. That is of
the plan, which must hold for any other reply. With `--ran` before the file: the cells that ran again with the reply that
the case changes, and what all cells show then, beside a whole run.
Each case runs in a forked process with a real shell and the tracker; its calls come from a stand-in for a provider.
"""

import contextlib
import io
import json
import os
import pickle
import re
import shutil
import signal
import sys
import tempfile
import traceback
import warnings
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path


def predict(case):
    """By cell, the reasons of those that are downstream of the edited one, which is left out; and our own errors."""
    from tape_jupyter.dataflow.plan import plan_rerun
    from tape_jupyter.dataflow.tracing.tracker import Tracker

    shell = _shell()
    import tapereplies

    tapereplies.set_replies(case["responses"], {})
    tracker = Tracker(shell)
    tapereplies.tell(tracker.calling)
    tracker.install()
    for step in case["history"]:
        source = step.get(
            "source", case["cells"][step["cell"]] if isinstance(step["cell"], int) else None
        )
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            shell.run_cell(source, store_history=True)
    entries = [i for i, h in enumerate(case["history"]) if h["cell"] == case["edit"]]
    planned = plan_rerun(tracker.history, {i: tracker.lines.get(i) for i in entries})
    found = {cell.entry: cell.reasons for cell in planned.cells if cell.role != "restores"}
    reasons = defaultdict(list)
    for index, why in found.items():
        reasons[case["history"][index]["cell"]] += why
    reasons.pop(case["edit"], None)
    steps = [
        [(s.line, sorted(s.reads), sorted(s.strong), sorted(s.weak), dict(s.via)) for s in e.steps]
        for e in tracker.history
    ]
    return {
        "cells": {c: w for c, w in reasons.items()},
        "failures": tracker.failures,
        "steps": steps,
        "n": len(tracker.history),
    }


def rerun(case):
    """The cells that ran again in place (those that only put something back left out), and what all cells show then; None
    for a case that only a fresh process gets right.
    """
    import predict_flow

    from tape_jupyter.dataflow.plan import plan_rerun
    from tape_jupyter.dataflow.restore.rerun import Rerun

    live = predict_flow.Live(case)
    live.record()
    cells = [step["cell"] for step in case["history"]]
    live.stub.set_replies(case["responses"], live.override())
    planned = plan_rerun(live.history, live.changed())
    again = Rerun(live.history, planned, live.shell, on_error="go on", resync=live.tracker.resync)
    if planned.hermetic or again.doubt:
        return None
    while (entry := again.next()) is not None:
        again.prepare(entry)
        again.record_outcome(entry, live.run(entry.index, entry.source))
    again.finish()
    restores = {cell.entry for cell in planned.cells if cell.role == "restores"}
    ran = {cells[index] for index in again.ran if index not in restores} - {case["edit"]}
    return ran, {str(cell): live.texts[index] for index, cell in enumerate(cells)}


def whole_run(case):
    """What each cell shows in a run of all of them with the changed reply."""
    import tapereplies

    from tape_jupyter.dataflow.isolated import worker

    prompt = next(iter(case["perturb"]))
    tapereplies.set_replies(case["responses"], {prompt: case["perturb"][prompt][0]})
    shell, texts = worker.shell(), {}
    for step in case["history"]:
        source = step.get(
            "source", case["cells"][step["cell"]] if isinstance(step["cell"], int) else ""
        )
        texts[str(step["cell"])] = worker.execute_in_shell(shell, source)["text"]
    return texts


_UNSTEADY = re.compile(r"0x[0-9a-f]+| at [0-9a-f]{6,}|[\d.e+]+ (?:[num\u03bc\u00b5]?s|min)\b")
"""What no two runs have in common: addresses, and what %time prints."""


def score_reruns(cases):
    """(rows: name, cells that ran needlessly, cells that ran rightly, cells that show another thing than in a whole run;
    failures). `expected` holds for several other replies, of which one is tried: who does not run is judged by what is shown.
    """
    rows, failures = [], []
    for case in (each for each in cases if each.get("expected") is not None):
        (state, told), (whole_state, whole) = apart(rerun, case), apart(whole_run, case)
        if state != "ok" or whole_state != "ok":
            failures.append((case["name"], told if state != "ok" else whole))
        elif told is not None:
            ran, shown = told
            ran = {cell for cell in ran if isinstance(cell, int)}
            other = {
                cell
                for cell, text in whole.items()
                if _UNSTEADY.sub("", text) != _UNSTEADY.sub("", shown.get(cell, ""))
            }
            expected = set(case["expected"])
            rows.append((case["name"], ran - expected, ran & expected, other))
    return rows, failures


def print_reruns(cases):
    rows, failures = score_reruns(cases)
    for name, needless, _, other in rows:
        if needless or other:
            print("needless", sorted(needless), "WRONG" if other else "", *sorted(other), name)
    for name, told in failures:
        print("FAILED", name, told[-1500:])
    needless, right = (sum(len(row[place]) for row in rows) for place in (1, 2))
    precision = right / max(1, right + needless)
    wrong = sum(bool(row[3]) for row in rows)
    print(f"ran {right + needless}, precision {precision:.3f}, {wrong} wrong,", len(rows), "cases")


def _shell():
    os.environ.setdefault("MPLBACKEND", "module://matplotlib_inline.backend_inline")
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    config = Config()
    config.HistoryManager.enabled = False
    config.HistoryManager.hist_file = ":memory:"
    InteractiveShell.clear_instance()
    InteractiveShell.enable_gui = lambda self, gui=None: None
    return InteractiveShell.instance(config=config)


def apart(function, *args, seconds=60):
    """What a function returns, run in a forked process and a folder of its own; an error's traceback as text."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(read)
            signal.alarm(seconds)
            folder = os.path.realpath(tempfile.mkdtemp(prefix="flow"))
            os.chdir(folder)
            os.environ["IPYTHONDIR"] = folder + "/.ipython"
            warnings.filterwarnings("ignore")
            try:
                told = ("ok", function(*args))
            except BaseException:
                told = ("error", traceback.format_exc())
            with os.fdopen(write, "wb") as f:
                pickle.dump(told, f)
            shutil.rmtree(folder, ignore_errors=True)
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as f:
        data = f.read()
    os.waitpid(pid, 0)
    return pickle.loads(data) if data else ("error", "the process died")


def prepare():
    """Imports that every case would pay for."""
    os.environ.setdefault("MPLBACKEND", "module://matplotlib_inline.backend_inline")
    with contextlib.suppress(ImportError):
        import matplotlib.pyplot
        import numpy
        import pandas
    import IPython.core.interactiveshell
    import tapereplies
    import tapestub

    assert tapestub.llm
    assert tapereplies.asked() == []


def score(cases):
    """(rows: name, category, missed, needless, right; failures)."""
    rows, failures = [], []
    for case in cases:
        if case.get("expected") is None:
            continue
        state, told = apart(predict, case)
        if state != "ok":
            failures.append((case["name"], told))
            told = {"cells": {}, "failures": []}
        failures += [(case["name"], each) for each in told["failures"]]
        got = {c for c in told["cells"] if isinstance(c, int)}
        expected = set(case["expected"])
        rows.append(
            (
                case["name"],
                case.get("category", ""),
                expected - got,
                got - expected,
                expected & got,
                told,
            )
        )
    return rows, failures


def score_elsewhere(cases, scoring=score):
    """`score` in a new process: all that other tests have left in this one would be forked, and looked at, by each case."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn"), initializer=prepare) as pool:
        return pool.submit(scoring, cases).result()


def sums(rows):
    """(recall, precision) of some rows."""
    missed, needless, right = (sum(len(r[i]) for r in rows) for i in (2, 3, 4))
    return right / max(1, right + missed), right / max(1, right + needless)


def main():
    given = [each for each in sys.argv[1:] if each != "--ran"]
    only = set(given[1:])
    cases = json.loads(Path(given[0]).read_text())
    cases = [c for c in cases if not only or c["name"] in only]
    prepare()
    if len(given) < len(sys.argv) - 1:
        print_reruns(cases)
        return
    rows, failures = score(cases)
    by_category = defaultdict(list)
    for row in rows:
        by_category[row[1]].append(row)
        if row[2] or row[3]:
            print(
                ("MISSED " + str(sorted(row[2])) if row[2] else "")
                + (" needless " + str(sorted(row[3])) if row[3] else ""),
                row[0],
            )
        for cell, why in row[5]["cells"].items():
            if only or cell in row[3]:
                print("     ", cell, why)
        if only:
            for number, steps in enumerate(row[5].get("steps", [])):
                for step in steps:
                    print("   ", number, *step)
    for category, some in sorted(by_category.items()):
        print(f"{category:14} recall {sums(some)[0]:.2f} precision {sums(some)[1]:.2f}")
    for name, told in failures:
        print("FAILED", name, told[-1500:])
    print("recall {:.3f} precision {:.3f}".format(*sums(rows)), len(rows), "cases")


if __name__ == "__main__":
    main()
