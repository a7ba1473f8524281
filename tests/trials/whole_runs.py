"""A changed reply, re-run in a live shell, against a plain shell that runs all cells with the changed reply: for each of
both, what every cell shows, and the whole of what is there at the end: names, files, surroundings.

`python tests/trials/whole_runs.py [NAME...]` says how each notebook of `adversarial.py` ends.
"""

import asyncio
import hashlib
import itertools
import logging
import os
import re
import sys
import types
from dataclasses import dataclass, field
from pathlib import Path

# This file may be a program, or imported in a kernel; the replies of a notebook lie in tests/.
sys.path[:0] = [str(Path(__file__).resolve().parents[n]) for n in (1, 2)]

_ADDRESS = re.compile(
    r"0x[0-9A-Fa-f]+|/tmp/flow\w+(?:/live|/truth)?|/tmp/ipykernel_\d+|(?<=id=.)\d+|(?<= at )[0-9A-F]{8,}|Task-\d+"
)
_OURS = frozenset({"ask", "In", "Out", "get_ipython", "exit", "quit", "open", "look", "join"})


@dataclass
class Ended:
    """How a notebook ended. `fresh`: why the live kernel was not used; `verdict`: of the proof."""

    texts: dict
    names: dict
    files: dict
    around: dict
    fresh: str = ""
    verdict: str = ""
    proof: str = ""
    ran: list = field(default_factory=list)

    @property
    def state(self):
        return self.texts, self.names, self.files, self.around


def _shell(replies):
    import tapereplies

    from tape_jupyter.dataflow.isolated import worker as fresh

    tapereplies.set_replies({"q": "a"}, replies)
    shell = fresh.shell()
    shell.user_ns["ask"] = _ask
    return shell


def _ask(prompt="q"):
    import tape_replies

    return tape_replies.reply(prompt)


_ask.__module__ = "tape_replies"


def value_of(value, depth=0):
    """What can be compared between two processes."""
    if isinstance(value, types.ModuleType):
        return value.__name__
    if isinstance(value, types.FunctionType):
        value = getattr(value, "__wrapped__", value)
        code = value.__code__
        consts = [c.co_code if isinstance(c, types.CodeType) else repr(c) for c in code.co_consts]
        return value.__name__, code.co_code, consts
    if isinstance(value, asyncio.AbstractEventLoop):
        return type(value).__name__
    if isinstance(value, types.GeneratorType):
        return value.__qualname__, value.gi_frame and value.gi_frame.f_lasti, _local(value, depth)
    if type(value).__name__.endswith("iterator"):
        return type(value).__name__, [repr(each) for each in itertools.islice(value, 5)]
    if type(value).__name__ == "Generator":
        return repr(value.bit_generator.state)
    if type(value).__name__ == "RandomState":
        return repr(value.get_state())
    if type(value).__module__.startswith("polars."):
        return type(value).__name__, _rows(value)
    if type(value).__name__ in ("DataFrame", "Series"):
        return type(value).__name__, value.to_csv()
    if isinstance(value, logging.Logger):  # all others hang on it, with what they remember
        handlers = [(type(each).__name__, each.level) for each in value.handlers]
        return value.name, value.level, value.disabled, value.propagate, handlers
    if type(value).__module__.startswith("matplotlib."):
        return type(value).__name__, _ADDRESS.sub("", repr(value)), _pixels(value)
    if type(value).__module__.startswith("ipywidgets"):
        return type(value).__name__, repr(value)
    if isinstance(value, type) and value.__module__ != "__main__":
        return value.__name__
    if type(value).__module__.startswith(("concurrent", "rich")):
        return type(value).__name__
    if isinstance(value, dict) and depth < 4:
        return type(value).__name__, [(repr(k), value_of(v, depth + 1)) for k, v in value.items()]
    if isinstance(value, (list, tuple)) and depth < 4:
        return type(value).__name__, [value_of(each, depth + 1) for each in value]
    if hasattr(value, "__dict__") and not isinstance(value, type) and depth < 4:
        return type(value).__name__, value_of(vars(value), depth + 1), _ADDRESS.sub("", repr(value))
    if isinstance(value, type):
        return value.__name__, sorted(
            (k, value_of(v, depth + 1)) for k, v in vars(value).items() if k[:2] != "__"
        )
    return type(value).__name__, _ADDRESS.sub("", repr(value))


def _pixels(value):
    """How the figure looks that something of matplotlib belongs to; "" of what belongs to none."""
    if (figure := getattr(value, "figure", None)) is None:
        return ""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return hashlib.sha256(canvas.buffer_rgba()).hexdigest()


def _rows(value):
    """Of what polars makes."""
    kind = type(value).__name__
    if kind == "LazyFrame":
        return value.explain(optimized=False)
    if kind not in ("DataFrame", "Series"):
        return _ADDRESS.sub("", str(value))
    frame = value.to_frame() if kind == "Series" else value
    return repr(frame.schema), repr(frame.rows())


def _local(generator, depth):
    inside = generator.gi_frame.f_locals if generator.gi_frame else {}
    return value_of(dict(inside), depth + 1) if depth < 4 else ""


def _look(shell, texts, **how):
    names = {
        n: value_of(v) for n, v in sorted(shell.user_ns.items()) if n[0] != "_" and n not in _OURS
    }
    files = {
        str(path.relative_to(".")): path.read_bytes() if path.is_file() else b"folder"
        for path in sorted(Path().rglob("*"))
        if ".ipython" not in path.parts and "__pycache__" not in path.parts
    }
    drawing = sys.modules.get("matplotlib")
    around = {
        "env": {k: v for k, v in os.environ.items() if k.startswith("T_") and k != "T_REPLY"},
        "interactive": drawing is not None and drawing.rcParams["interactive"],
        "path": [each for each in sys.path if each.startswith("T_")],
        "cwd": _ADDRESS.sub("", str(Path.cwd())),
    }
    return Ended({i: _ADDRESS.sub("", t) for i, t in texts.items()}, names, files, around, **how)


def world(shell):
    """As JSON: all that the notebook's names hold, and what is around them."""
    found = _look(shell, {})
    told = {f"name {n}": repr(v) for n, v in found.names.items()}
    return told | {f"around {k}": repr(v) for k, v in found.around.items() if k != "cwd"}


def whole(cells, reply):
    """All cells with the changed reply."""
    from tape_jupyter.dataflow.isolated import worker as fresh

    shell = _shell({"q": reply})
    return _look(
        shell, {i: fresh.execute_in_shell(shell, source)["text"] for i, source in enumerate(cells)}
    )


def rerun(cells, reply, prove=True, noting=False):
    """Recorded, then changed and re-run in place, or fresh where that is said to be needed; and the proof.

    `noting`: as in a session that tapes nothing before the first cell with a call.
    """
    import tapereplies

    from tape_jupyter.dataflow.isolated import worker as fresh, process, verify
    from tape_jupyter.dataflow.plan import plan_rerun
    from tape_jupyter.dataflow.restore.rerun import Rerun
    from tape_jupyter.dataflow.tracing.tracker import Tracker

    shell = _shell({})
    tracker = Tracker(shell, tapes=lambda source: not noting or "ask(" in source)
    tracker.install()
    tapereplies.tell(tracker.calling)
    history, texts, changed = tracker.history, {}, {}

    def run(index, source):
        texts[index] = fresh.execute_in_shell(shell, source)["text"]
        return history[-1]

    for index, source in enumerate(cells):
        tapereplies.asked()
        run(index, source).calls |= "ask(" in source
        if "q" in tapereplies.asked():
            changed[index] = tracker.lines.get(index)
    setup = (
        f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})\nimport whole_runs\n"
        f"ask = whole_runs._ask\nimport tapereplies\ntapereplies.set_replies({{'q': 'a'}}, {{'q': {reply!r}}})\n"
        "del sys, whole_runs, tapereplies"
    )
    tapereplies.set_replies({"q": "a"}, {"q": reply})
    planned = plan_rerun(history, changed)
    machine = Rerun(history, planned, shell, on_error="go on", resync=tracker.resync)
    if why := planned.hermetic or machine.doubt:
        return Ended({}, {}, {}, {}, fresh=why)
    while (entry := machine.next()) is not None:
        machine.prepare(entry)
        machine.record_outcome(entry, run(entry.index, entry.source))
    machine.finish()
    assert not tracker.failures, tracker.failures
    job = process.job(history, setup=setup, seconds=40)
    verdict = (
        verify.verify_rerun(history, texts, process.replay_job(job), live=machine.end())
        if prove
        else verify.RerunVerdict("not provable", "")
    )
    return _look(shell, texts, verdict=verdict.state, proof=verdict.text, ran=machine.ran)


def differences(one, other):
    """In words, how two ends differ."""
    said = []
    for what in ("texts", "names", "files", "around"):
        a, b = getattr(one, what), getattr(other, what)
        said += [
            f"{what[:-1]} {k}: {a.get(k)!r} is {b.get(k)!r}"
            for k in {**a, **b}
            if a.get(k) != b.get(k)
        ]
    return said


def judged(cells, reply="b", *, prove=True, noting=False):
    """("right" | "fresh" | "wrong and said" | "wrong in silence" | "crashed", in words)."""
    import flow_score

    state, told = flow_score.apart(rerun, cells, reply, prove, noting)
    if state != "ok":
        return "crashed", told
    if told.fresh:
        return "fresh", told.fresh
    state, truth = flow_score.apart(whole, cells, reply)
    assert state == "ok", truth
    found = differences(told, truth)
    if not found:
        return "right", f"ran {told.ran}, {told.verdict}: {told.proof}"
    return (
        "wrong in silence" if told.verdict == "proved" else "wrong and said"
    ), f"{found} {told.verdict} {told.proof}"


def main():
    from tests.trials import adversarial
    from tests.trials import adversarial_state
    import flow_score

    flow_score.prepare()
    asked = sys.argv[1:]
    notebooks = {**adversarial.NOTEBOOKS, **adversarial_state.NOTEBOOKS}
    for name, (cells, *reply) in notebooks.items():
        if not asked or any(each in name for each in asked):
            print(name, *judged(cells, *reply), flush=True)


if __name__ == "__main__":
    import whole_runs  # a shell takes the place of __main__

    whole_runs.main()
