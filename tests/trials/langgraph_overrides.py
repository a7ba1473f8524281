"""The first reply of a LangGraph notebook that is a text, overridden and re-run, in place and headless, against a kernel in
which the model really says it.

`python tests/trials/langgraph_overrides.py [--in-place | --headless] [NAME...]` says how each notebook of `langgraph_notebooks.py`
and of `notebooks_of_others/langgraph` ends.
"""

import hashlib
import json
import re
import subprocess
import sys
import tempfile
import traceback
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
if __name__ == "__main__":
    sys.path[0] = str(ROOT)

import nbformat

import tape_jupyter as tape
from tests.harness import notebook as kernels
from tests.harness import provider
from tests.harness import support
from tests.trials.kernel_reruns import JOIN
from tests.trials.langgraph_notebooks import NOTEBOOKS, R
from tests.harness.notebook import Kernel, clean_env, is_summary, notebook
from tests.harness.scripted_model import _anthropic, _chat
from tests.harness.support import Page

CHANGED = "Changed, entirely"
OTHERS = ROOT / "tests" / "notebooks_of_others" / "langgraph"
SECONDS = 240
MOST = 12
"""Divergences of one re-run that are answered."""
_VARYING = re.compile(
    r"0x[0-9a-f]{6,}|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
    r"|(?:input|output|total)_tokens.: \d+|\d{4}-\d\d-\d\d[T ][\d:.]+\+00:00|\b[0-9a-f]{32}\b|ipykernel_\d+|(?<=-)\d{32}\.0\.\d+|\d+\.\d{6,}"
)


class Model(provider.Provider):
    """Answers by rules, else as any Provider; `changed`: the request, and how often it came before, that gets CHANGED."""

    def __init__(self, rules):
        super().__init__()
        self.rules, self.came, self.changed = rules, Counter(), None

    def begin(self, changed=None):
        """Another kernel asks now."""
        self.came.clear()
        self.changed = changed

    def _model(self, seen):
        key = counted(self.came, seen.body)
        body = seen.json
        turn = CHANGED if key == self.changed else self._turn(body)
        if turn is None:
            return super()._model(seen)
        wire = _anthropic if seen.path.partition("?")[0].endswith("/messages") else _chat
        parts = [turn] if isinstance(turn, str) else list(turn)
        whole, events = wire(body, parts, hashlib.sha256(seen.body).hexdigest()[:16])
        if body.get("stream"):
            return provider.Scripted(200, {"content-type": "text/event-stream"}, events)
        answer = [json.dumps(whole).encode()]
        return provider.Scripted(200, {"content-type": "application/json"}, answer)

    def _turn(self, body):
        if (body.get("tool_choice") or {}).get("type") in ("tool", "any"):
            return None
        last = " ".join(_texts((body.get("messages") or [{}])[-1]))
        return next((turn for words, turn in self.rules.items() if re.search(words, last)), None)


def _texts(part):
    if isinstance(part, str):
        yield part
    for each in part if isinstance(part, list) else ():
        yield from _texts(each)
    if isinstance(part, dict):
        yield from _texts(part.get("text") or part.get("content") or "")


def counted(came, body):
    """(digest, how often it came before)."""
    digest = hashlib.sha256(body).hexdigest()
    came[digest] += 1
    return digest, came[digest] - 1


def environment(model, path):
    return {
        "TAPE_NOTEBOOK": str(path), "ANTHROPIC_API_KEY": "sk-ant-api03-Zq7rTq1v9WcX2bLkH5nM8pRs",
        "ANTHROPIC_BASE_URL": model.url, "ANTHROPIC_API_URL": model.url, "LANGSMITH_TRACING": "false",
        "MPLBACKEND": "module://matplotlib_inline.backend_inline",
    }  # fmt: skip


def shown(outputs):
    """What a cell shows, without what is other in every run."""
    found = []
    for each in outputs:
        if is_summary(each) or each.get("metadata", {}).get("tape"):
            continue
        if each["output_type"] == "stream":
            found.append("".join(each["text"]))
        elif each["output_type"] == "error":
            found.append(f"{each['ename']}: {each['evalue']}\n")
        else:
            found.append("".join(each["data"].get("text/plain", "")) + "\n")
    return _VARYING.sub("~", "".join(found))


def first_text(cassette):
    """(the call, its request as the model counts it) of the first reply that is a text alone."""
    came = Counter()
    for call in cassette.calls:
        asked = call.request()
        if hasattr(asked, "body"):
            key = counted(came, asked.body)
            if not re.search(rb"tool_use|tool_calls", b"".join(call.reply().chunks)):
                return call, key
    raise AssertionError("no reply is a text")


def run_all(kernel, model, cells):
    page = Page(kernel, model, {f"c{n}": cell for n, cell in enumerate(cells)})
    for cell in page.cells:
        page.run(cell)
    return page


def texts(page):
    return {cell: shown(page.shown[cell].outputs) for cell in page.cells}


def whole(folder, model, cells):
    """What each cell shows where the model itself answers otherwise."""
    folder.mkdir()
    path = notebook(folder / "nb.ipynb", *cells)
    with Kernel(folder, environment(model, path)) as kernel:
        return texts(run_all(kernel, model, cells))


def rerun(page, out):
    """(what was said, the comparison), every divergence sent live."""
    end = {}
    for number in range(MOST):
        line = "--on-divergence live" if number else "new"
        page.execute(f"%tape rerun {line}", f"r{number}")
        for code in (JOIN, "pass", JOIN):  # what a thread asked of the main one is done between
            page.execute(code.replace("OUT", str(out)), "aside", silent=True, store_history=False)
        end = json.loads(out.read_text()) if out.exists() else {}
        asks = "not on the tape" in page.shown[f"r{number}"].stdout
        if end.get("proof") or not asks:
            break
    said = "".join(
        page.shown[c].stdout + page.shown[c].traceback for c in page.shown if c[0] == "r"
    )
    return said, end


def in_place(folder, cells, rules):
    """(right, said, silent, stopped or traceback; why)."""
    cells = [f"%load_ext tape_jupyter\n{cells[0]}", *cells[1:]]
    folder.mkdir()
    with Model(rules) as model:
        path = notebook(folder / "nb.ipynb", *cells)
        with Kernel(folder, environment(model, path)) as kernel:
            page = run_all(kernel, model, cells)
            recorded = texts(page)
            base = tape.open(folder / "nb.tapes" / "main.tape.yaml")
            call, key = first_text(base)
            base.override(call, text=CHANGED, take="new")
            plan = page.execute("%tape plan new", "plan").stdout
            model.begin(key)
            said, end = rerun(page, folder / "compared.json")
            left = texts(page)
        model.begin(key)
        truth = whole(folder.parent / "truth", model, cells)
    wrong = {c: (left[c][-300:], truth[c][-300:]) for c in truth if left[c] != truth[c]}
    proof = end.get("proof") or {}
    where = "fresh" if "ran in a fresh process" in said else "in place"
    moved = sum(truth[c] != recorded[c] for c in truth)
    state = f"{where}, {proof.get('state')}: {proof.get('text', '')}; {moved} cells change"
    if "Traceback" in said:
        return "traceback", said
    if not proof:
        return "stopped", f"{plan}\n{said} {end}"
    if wrong or (moved and "0 changed" in said):
        how = "silent" if proof.get("state") == "proved" else "said"
        return how, f"{state}\n{json.dumps(wrong, indent=1)}\n{plan}\n{said}"
    return "right", state


def headless(folder, cells, rules):
    """(right, wrong, or traceback; why): with `tape rerun`, first where nothing may go live."""
    cells = [cell.removeprefix(R) for cell in cells]
    folder.mkdir()
    with Model(rules) as model:
        path = notebook(folder / "nb.ipynb", *cells)
        env = clean_env(folder, environment(model, path))
        _tape(folder, env, "record", "nb.ipynb")
        call, key = first_text(tape.open(folder / "nb.tapes" / "main.tape.yaml"))
        _tape(folder, env, "override", "nb.ipynb", call.id, "--text", CHANGED, "--take", "new")
        stops = _tape(folder, env, "rerun", "nb.ipynb", "--take", "new")
        model.begin(key)
        live = ("--on-divergence", "live", "--output", "new.ipynb")
        ends = _tape(folder, env, "rerun", "nb.ipynb", "--take", "new", *live)
        model.begin(key)
        notebook(folder / "truth.ipynb", *cells)
        _tape(folder, env, "record", "truth.ipynb")
    said = f"{stops.stdout}{stops.stderr}\n{ends.stdout}{ends.stderr}"
    if "Traceback (most recent" in stops.stderr + ends.stderr:
        return "traceback", said
    recorded, truth, left = (_saved(folder / f"{name}.ipynb") for name in ("nb", "truth", "new"))
    wrong = {n: (left[n], truth[n]) for n in range(len(truth)) if left[n] != truth[n]}
    moved = recorded != truth
    asked = stops.returncode == 0 or "is not on the tape" in stops.stdout
    if wrong or not asked or (moved and "0 changed" in ends.stdout):
        return "wrong", f"{json.dumps(wrong, indent=1)}\n{said}"
    return "right", "asked" if stops.returncode else "ended"


def _tape(folder, env, *words):
    return subprocess.run(
        [sys.executable, "-m", "tape_jupyter", *words], cwd=folder, env=env,
        capture_output=True, text=True, timeout=SECONDS, check=False,
    )  # fmt: skip


def _saved(path):
    cells = nbformat.read(path, as_version=4).cells
    return [shown(cell.outputs) for cell in cells if cell.cell_type == "code"]


def others():
    """Those that others wrote and whose packages are here."""
    for path in sorted(OTHERS.glob("*.ipynb")):
        cells = [c.source for c in nbformat.read(path, as_version=4).cells if c.cell_type == "code"]
        if "langchain_openai" not in "".join(cells):
            yield path.stem, ([cells[0], *(R + cell for cell in cells[1:])], {})


def judged(judge, cells, rules):
    before = kernels.TIMEOUT, support.TIMEOUT
    kernels.TIMEOUT = support.TIMEOUT = SECONDS
    try:
        with tempfile.TemporaryDirectory(prefix="graph", ignore_cleanup_errors=True) as root:
            return judge(Path(root).resolve() / "nb", cells, rules)
    finally:
        kernels.TIMEOUT, support.TIMEOUT = before


def main():
    ways = {"--in-place": in_place, "--headless": headless}
    asked = [word for word in sys.argv[1:] if word not in ways]
    for name, (cells, rules) in {**NOTEBOOKS, **dict(others())}.items():
        if asked and not any(each in name for each in asked):
            continue
        for way in [word for word in ways if word in sys.argv] or ways:
            try:
                print("==", name, way, *judged(ways[way], cells, rules), flush=True)
            except Exception:  # one notebook's trouble is that notebook's
                print("==", name, way, "broken", traceback.format_exc(), flush=True)


if __name__ == "__main__":
    main()
