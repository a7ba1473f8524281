"""Scores a tool: `python -m benchmarks.causes.run [--command "tape why {notebook} --good {good} ..."] [--folder planted]`.

The command is run in the folder of each case, and prints JSON with `minimal`, a list of ids. It is right where that is the
known set (one of them, where several would each do). Prints a line a case, and one JSON line in the end. No network is
needed; where `unshare -rn` works, the command has none.
"""

import argparse
import json
import math
import shlex
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent
COMMAND = f"{shlex.quote(sys.executable)} -m tape_jupyter why {{notebook}} --good {{good}} --bad {{bad}} --check {{check}} --json"


def cases(folder):
    return sorted(path.parent for path in (HERE / folder).glob("*/cause.json"))


def asked_here(case, known):
    """The same, of `tape_jupyter.why()` in this process: without the start of a Python for each case."""
    import os

    import tape_jupyter

    os.chdir(case)
    try:
        found = tape_jupyter.why("agent.ipynb", known["good"], known["bad"], known["check"])
    except tape_jupyter.TapeError as error:
        return {"minimal": None, "error": str(error)[:300]}
    return {**found.record(), "differing": found.differing, "own": round(found.own, 3)}


def score(case, command, prefix):
    known = json.loads((case / "cause.json").read_text(encoding="utf-8"))
    if not command:
        began = time.perf_counter()
        told = asked_here(case, known)
        return row_of(case, known, told, time.perf_counter() - began)
    words = command.format(
        notebook="agent.ipynb",
        good=known["good"],
        bad=known["bad"],
        check=shlex.quote(known["check"]),
    )
    began = time.perf_counter()
    done = subprocess.run(
        [*prefix, *shlex.split(words)], cwd=case, capture_output=True, text=True, timeout=600
    )
    seconds = time.perf_counter() - began
    try:
        told = json.loads(done.stdout)
    except ValueError:
        told = {"minimal": None, "error": (done.stderr or done.stdout).strip()[-300:]}
    return row_of(case, known, told, seconds)


def row_of(case, known, told, seconds):
    exact = told["minimal"] is not None and sorted(told["minimal"]) in known["minimal"]
    return {
        "case": case.name,
        "kind": known["kind"],
        "exact": exact,
        "seconds": round(seconds, 2),
        "told": told,
        "known": known["minimal"],
        "within 4 n log2 n": _bound(told),
    }


def _bound(told):
    """Whether the trials are no more than 4 n log2 n; None where the tool tells no n (or it is 1: that allows none)."""
    n, trials = told.get("differing") or 0, told.get("trials")
    return None if n < 2 or trials is None else trials <= 4 * n * math.log2(n)


def cut():
    done = subprocess.run(["unshare", "-rn", "true"], capture_output=True)
    return ["unshare", "-rn"] if done.returncode == 0 else []


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--command", default=COMMAND)
    parser.add_argument("--api", action="store_true", help="tape_jupyter.why() in this process")
    parser.add_argument("--folder", default="planted")
    parser.add_argument("cases", nargs="*")
    said = parser.parse_args()
    prefix, rows = cut(), []
    for case in cases(said.folder):
        if said.cases and case.name not in said.cases:
            continue
        row = score(case, "" if said.api else said.command, prefix)
        rows.append(row)
        more = (
            ""
            if row["exact"]
            else f"  said {row['told'].get('minimal')} {row['told'].get('error', '')}, known {row['known']}"
        )
        print(
            f"{'exact' if row['exact'] else 'WRONG'}  {row['case']} ({row['kind']}), {row['told'].get('trials')} trials of {row['told'].get('differing')}, {row['seconds']} s (own {row['told'].get('own')}){more}",
            flush=True,
        )
    print(
        json.dumps(
            {
                "figure": "causes",
                "folder": said.folder,
                "exact": sum(row["exact"] for row in rows),
                "of": len(rows),
                "trials": sum(row["told"].get("trials") or 0 for row in rows),
                "over 4 n log2 n": sum(row["within 4 n log2 n"] is False for row in rows),
                "network": "cut off" if prefix else "open",
            }
        )
    )


if __name__ == "__main__":
    main()
