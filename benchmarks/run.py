"""Run the benchmarks, or those named: `python benchmarks/run.py [NAME ...]`. One JSON line a figure on stdout.

Exit code 1 where a bar does not hold.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
NAMES = (
    "replay",
    "loops",
    "recording",
    "opening",
    "size",
    "memory",
    "importing",
    "untaped",
    "streaming",
    "cells",
    "pins",
    "tasks",
    "graphs",
    "notebooks",
    "viewer",
    "tracking",
    "step",
    "bundle",
    "sweep",
    "imports",
    "searching",
)


def main() -> int:
    names = sys.argv[1:] or NAMES
    if unknown := [name for name in names if name not in NAMES]:
        print(f"no benchmark {', '.join(unknown)}; there are {', '.join(NAMES)}", file=sys.stderr)
        return 2
    return max(run(name) for name in names)


def run(name: str) -> int:
    print(f"{name} ...", file=sys.stderr, flush=True)
    child = subprocess.Popen(
        [sys.executable, str(HERE / f"{name}.py")], stdout=subprocess.PIPE, text=True, cwd=HERE
    )
    failed = False
    for line in child.stdout:
        print(line, end="", flush=True)
        failed |= line.startswith("{") and json.loads(line)["holds"] is False
    return 1 if child.wait() or failed else 0


if __name__ == "__main__":
    sys.exit(main())
