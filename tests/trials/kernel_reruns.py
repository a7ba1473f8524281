"""A changed reply, re-run in a real kernel with its tape, against a whole run in another kernel whose call really gives
the changed reply: tools run there, and what they do is what must be there at the end.

`python tests/trials/kernel_reruns.py [NAME...]` says how each notebook ends, in place and fresh.
"""

import json
import re
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1]))

from tests.harness.notebook import Kernel, notebook  # noqa: E402

SET_UP = """%load_ext tape_jupyter
import tape_jupyter as tape
@tape.tool
def ask(q="q"):
    import os
    return os.environ["T_REPLY"] if q == "q" else "re " + q"""
LOOK = """def look():
    import sys, json
    sys.path.insert(0, "HERE")
    import whole_runs
    found = whole_runs.world(get_ipython())
    with open("OUT", "w") as out: out.write(json.dumps(found))
look()
del look"""
SHOWN = """def shown():
    from tape_jupyter.jupyter import magics; from tape_jupyter.jupyter.rerun import rerunner as rerun
    import json
    rerunner = rerun.rerunner_of(magics.loaded(get_ipython()))
    found = {}
    for entry in rerunner.history:
        outputs = rerunner.displayed.find_outputs(entry.index)
        own = [o for o in outputs if not (o.get("metadata") or {}).get("tape")]
        texts = [o.get("text") or o.get("evalue") or o.get("data", {}).get("text/plain", "") for o in own]
        found[rerunner.parents.cell_id(entry.index) or entry.cell] = "".join(texts)
    with open("OUT", "w") as out: out.write(json.dumps({k: v for k, v in found.items() if k[0] == "c" and v}))
shown()
del shown"""
JOIN = """def join():
    from tape_jupyter.jupyter import magics; from tape_jupyter.jupyter.rerun import rerunner as rerun
    import json
    rerunner = rerun.rerunner_of(magics.loaded(get_ipython()))
    if rerunner.freshening: rerunner.freshening.join()
    if rerunner.proving: rerunner.proving.join()
    told = rerunner.compared
    with open("OUT", "w") as out:
        out.write(json.dumps("running" if rerunner.running and not rerunner.parked else told.record() if told else {}))
join()
del join"""


def session(folder, reply):
    path = notebook(folder / "nb.ipynb", "x")
    return Kernel(folder, {"TAPE_NOTEBOOK": str(path), "T_REPLY": reply})


def aside(kernel, code, out):
    ran = kernel.execute(
        code.replace("OUT", str(out)).replace("HERE", str(HERE)), silent=True, store_history=False
    )
    assert ran.ok, ran.traceback
    return json.loads(out.read_text()) if out.exists() else None


def joined(kernel, out):
    """How the re-run ended; cells that await take their turns among the messages."""
    while (compared := aside(kernel, JOIN, out)) == "running":
        pass
    return compared


def run(kernel, cells):
    """In turn; the same source again is the same cell, run again."""
    shown = {}
    sources = (SET_UP, *cells)
    for number, cell in enumerate(sources):
        ran = kernel.execute(cell, f"c{sources.index(cell)}")
        shown[number] = ran.stdout, ran.evalue
    return shown


def files(folder):
    return {
        str(path.relative_to(folder)): path.read_text(errors="replace") if path.is_file() else ""
        for path in sorted(folder.rglob("*"))
        if not {"nb.ipynb", "nb.tapes", "__pycache__", ".ipython", ".home"}
        & {*path.relative_to(folder).parts}
        and not path.name.startswith(".")
    }


def whole(folder, cells, reply):
    folder.mkdir()
    with session(folder, reply) as kernel:
        shown = run(kernel, cells)
        return shown, aside(kernel, LOOK, folder.parent / "truth.json"), files(folder)


def changed(folder, cells, reply, policy="live", lines=(), look=LOOK):
    """Recorded with the reply "a", overridden and re-run; what it says is the fourth. `lines`: what is said
    instead, each once what came of the one before is known.
    """
    folder.mkdir()
    with session(folder, "a") as kernel:
        run(kernel, cells)
        (cassette,) = folder.glob("nb.tapes/main.tape.yaml")
        found = re.search(
            r'^call: "?([0-9a-f]{8})"?\n(?:.*\n){3,4}?name: ask\n',
            cassette.read_text(),
            re.MULTILINE,
        )
        call = found[1]
        overridden = kernel.execute(f"%tape override {call} --value '\"{reply}\"' --take new", "o")
        assert overridden.ok, overridden.traceback
        plan = kernel.execute("%tape plan new", "p").stdout
        for line in lines or [f"%tape rerun new --on-divergence {policy}"]:
            said = kernel.execute(line, "r")
            compared = joined(kernel, folder.parent / "compared.json")
        kernel.execute("%tape rerun", "x", silent=True)
        world = aside(kernel, look, folder.parent / "world.json")
        return world, files(folder), plan + said.stdout + said.traceback, compared or {}


def judged(cells, reply="b", policy="live"):
    with tempfile.TemporaryDirectory(prefix="flow", ignore_cleanup_errors=True) as root:
        folder = Path(root).resolve()
        _, truth, truth_files = whole(folder / "truth", cells, reply)
        world, left, said, compared = changed(folder / "live", cells, reply, policy)
    proof = compared.get("proof", {})
    if not proof or compared.get("stopped"):
        return "stopped", f"{said}\n{compared.get('stopped')} {compared.get('note')}"
    if "run fresh" in (compared.get("note") or ""):
        return "fresh", compared["note"]
    found = [
        f"{k}: {world.get(k)} is {truth.get(k)}"
        for k in {**world, **truth}
        if world.get(k) != truth.get(k)
    ]
    found += [
        f"{k}: {left.get(k)!r} is {truth_files.get(k)!r}"
        for k in {**left, **truth_files}
        if left.get(k) != truth_files.get(k)
    ]
    if not found:
        return "right", f"{proof}"
    how = "wrong in silence" if proof.get("state") == "proved" else "wrong and said"
    return how, f"{found} {proof}\n{said}"


def judged_fresh(cells, reply="b"):
    """The same where all runs in a fresh process: what the cells show."""
    line = "%tape rerun new --fresh --on-divergence live"
    with tempfile.TemporaryDirectory(prefix="flow", ignore_cleanup_errors=True) as root:
        folder = Path(root).resolve()
        (folder / "truth").mkdir()
        with session(folder / "truth", reply) as kernel:
            run(kernel, cells)
            truth = aside(kernel, SHOWN, folder / "truth.json")
        *_, said, compared = changed(folder / "live", cells, reply, lines=[line], look=SHOWN)
        shown = json.loads((folder / "world.json").read_text())
    differing = [k for k in {**shown, **truth} if shown.get(k) != truth.get(k)]
    found = [f"{k}: {shown.get(k)!r} is {truth.get(k)!r}" for k in differing]
    proof = compared.get("proof", {}).get("state")
    if not found and not compared.get("stopped"):
        return "right", f"{proof}"
    return (
        "wrong in silence" if proof == "proved" else "wrong and said",
        f"{found} {compared}\n{said}",
    )


def main():
    from tests.trials import adversarial_builders
    from tests.trials import adversarial_kernel
    from tests.trials import adversarial_strangers
    from tests.trials import adversarial_tools

    asked = sys.argv[1:]
    notebooks = {
        **adversarial_builders.SAID,
        **adversarial_builders.NOTEBOOKS,
        **adversarial_tools.SAID,
        **adversarial_tools.NOTEBOOKS,
        **adversarial_kernel.NOTEBOOKS,
        **adversarial_strangers.NOTEBOOKS,
    }
    for name, (cells, *reply) in notebooks.items():
        if not asked or any(each in name for each in asked):
            print("==", name, *judged(cells, *reply), flush=True)
            print("== fresh:", name, *judged_fresh(cells, *reply[:1]), flush=True)


if __name__ == "__main__":
    main()
