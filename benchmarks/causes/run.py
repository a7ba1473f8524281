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


def score(case, command, prefix):
    known = json.loads((case / "cause.json").read_text(encoding="utf-8"))
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
    exact = told["minimal"] is not None and sorted(told["minimal"]) in known["minimal"]
    return {
        "case": case.name,
        "kind": known["kind"],
        "exact": exact,
        "seconds": round(seconds, 2),
        "told": told,
        "known": known["minimal"],
    }


def cut():
    done = subprocess.run(["unshare", "-rn", "true"], capture_output=True)
    return ["unshare", "-rn"] if done.returncode == 0 else []


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--command", default=COMMAND)
    parser.add_argument("--folder", default="planted")
    parser.add_argument("cases", nargs="*")
    said = parser.parse_args()
    prefix, rows = cut(), []
    for case in cases(said.folder):
        if said.cases and case.name not in said.cases:
            continue
        row = score(case, said.command, prefix)
        rows.append(row)
        more = (
            ""
            if row["exact"]
            else f"  said {row['told'].get('minimal')} {row['told'].get('error', '')}, known {row['known']}"
        )
        print(
            f"{'exact' if row['exact'] else 'WRONG'}  {row['case']} ({row['kind']}), {row['told'].get('trials')} trials, {row['seconds']} s{more}",
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
                "network": "cut off" if prefix else "open",
            }
        )
    )


if __name__ == "__main__":
    main()
