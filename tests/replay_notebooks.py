"""Notebooks that others wrote, unmodified: recorded against a provider on loopback, exported, verified, replayed.

    python tests/replay_notebooks.py FOLDER --keep DIR [--env current|lock] [--provider FAKE_PROVIDER.py] [--match TEXT] [--no-index]
        [--replays N] [--busy N]

One JSON line a notebook on stdout: {notebook, recorded, exported, verified, replayed, cells: [{number, status, calls,
digest_recorded, digest_replayed, same}], connections, sha256, error}; a summary as the last. Exit 0 when all cells of all
notebooks came out equal. The bundles stay in DIR/bundles, the recorded copies of FOLDER in DIR/sessions, reports in
DIR/reports.

A notebook is recorded as `tape record NB` does it, in a fresh kernel, on the internet of tests/harness/away.py: whatever host it
asks, the provider answers. Keys that it names are there, and made up. It is exported (with its proof), verified, and
replayed by `tape replay` in a new process without key, home or network, under strace where there is one: `connections`
are those to other ports than the kernel's own (null: nothing counted them). `--replays 3` replays the notebook itself so
often first, in fresh kernels, `--busy 2` with so many processes computing beside it: a cell is `same` if it always was.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
if __name__ == "__main__":
    sys.path[0] = str(ROOT)

import nbformat

from tape_jupyter.headless import run as headless_run
from tape_jupyter.bundle.proof import expected
from tape_jupyter.bundle import opened, verify
from tape_jupyter.comparison.outputs import places
from tests.harness import away
from tests.harness.notebook import clean_env
from tests.trials.race_rounds import busy

CONNECT = re.compile(
    r"connect\(\d+(?:<[^>]*>)?, \{sa_family=(AF_INET6?), sin6?_port=htons\((\d+)\)"
)
NAMED = re.compile(r"\b[A-Z][A-Z0-9_]*(?:_KEY|_TOKEN|_SECRET)\b")
KEYS = {
    "ANTHROPIC_API_KEY": "sk-ant-api03-Zq7rTq1v9WcX2bLkH5nM8pRsD3fGjA6yEuQ4tVwBxC0iOzKlNmJhYgTr",
    "OPENAI_API_KEY": "sk-proj-Jw8hTq2x5NcR7vBmK4pLsD9fGzA3yEuQ6tVwXcH1iOnZjMrYgUbF0kSe",
    "MISTRAL_API_KEY": "Kf83hQmZ1xWv7TnCbR5pLsD9",
    "CO_API_KEY": "Wm4TqR8vBxC2nHs6KdJ9fLzA1yEuG5pQ3tViOgXj",
    "AWS_ACCESS_KEY_ID": "AKIAQ7ZT3MVKW5XN2YHC",
    "AWS_SECRET_ACCESS_KEY": "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",
}
SETTINGS = {
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true",
}
GOOGLE = ("GEMINI_API_KEY", "GOOGLE_API_KEY")
SKIPPED = {".ipynb_checkpoints", ".git", "node_modules", "__pycache__", ".venv"}
CELL_SECONDS = 300
LARGEST = 500 << 20
"""Bytes of FOLDER that are copied whole; of a larger one only each notebook's own folder is."""


def notebooks(folder: Path, match: str = "") -> list[Path]:
    """Those below a folder, in order; without checkpoints."""
    found = sorted(folder.rglob("*.ipynb")) if folder.is_dir() else [folder]
    return [path for path in found if not SKIPPED & set(path.parts) and match in str(path)]


def keys(notebook: Path) -> dict[str, str]:
    """Made-up keys: those that SDKs look for, and any other that the notebook names."""
    named = set(NAMED.findall(notebook.read_text(encoding="utf-8", errors="replace")))
    google = [name for name in GOOGLE if name in named] or [GOOGLE[1]]
    return {
        **{name: f"fake-{name.lower()}-4f9a1c7e2b8d6053" for name in sorted(named - set(GOOGLE))},
        **{name: "AIzaSyA9f2KqL7wXcV3nB5mT8rYpZ1dGhJkQsWe" for name in google},
        **KEYS,
    }


def copied(folder: Path, goal: Path) -> Path:
    """FOLDER's copy: notebooks may read each other's data."""
    goal.parent.mkdir(parents=True, exist_ok=True)
    shutil.copytree(folder, goal, ignore=shutil.ignore_patterns(*SKIPPED, "*.tapes"), symlinks=True)
    return goal


def bare(notebook: Path) -> None:
    """Without outputs: what is compared is what this run gave."""
    node = nbformat.read(notebook, as_version=4)
    for cell in node.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    nbformat.write(node, notebook)


class Session:
    """One notebook on its way; `line` is what is told of it."""

    no_index = False
    replays = 0

    def __init__(self, notebook: Path, name: str, keep: Path, env: str, provider: Path) -> None:
        self.notebook, self.keep, self.env, self.provider = notebook, keep, env, provider
        self.slug = re.sub(r"[^\w.-]+", "-", name.removesuffix(".ipynb")).strip("-")
        self.home = keep / "homes" / self.slug
        self.home.mkdir(parents=True, exist_ok=True)
        self.bundle = keep / "bundles" / f"{self.slug}.tape.zip"
        self.bundle.parent.mkdir(exist_ok=True)
        (keep / "reports").mkdir(exist_ok=True)
        self.line: dict[str, Any] = {
            "notebook": name, "recorded": False, "exported": False, "verified": False, "replayed": False, "cells": [],
            "connections": None, "sha256": "", "seconds": {}, "error": "",
        }  # fmt: skip

    def run(self) -> dict[str, Any]:
        for step in (self.record, self.again, self.export, self.verify, self.replay):
            began = time.perf_counter()
            try:
                step()
            except Exception as error:  # one notebook's trouble is that notebook's
                self.line["error"] = (
                    f"{step.__name__}: {type(error).__name__}: {str(error)[-3000:]}"
                )
            self.line["seconds"][step.__name__] = round(time.perf_counter() - began, 1)
            if self.line["error"]:
                break
        return self.line

    def _tape(
        self, *words: str, env: dict[str, str] | None = None, before: tuple[str, ...] = ()
    ) -> tuple[int, str, str]:
        done = subprocess.run(
            [*before, sys.executable, "-m", "tape_jupyter", *words],
            env=clean_env(self.home, env), capture_output=True, text=True, check=False,
        )  # fmt: skip
        return done.returncode, done.stdout, done.stderr

    def record(self) -> None:
        bare(self.notebook)
        words = ["record", str(self.notebook), "--timeout", str(CELL_SECONDS), "--json"]
        ca = self.home / "ca.pem"
        env = {**keys(self.notebook), **SETTINGS, **away.variables(ca)}
        command = away.command(self.provider, ca, [sys.executable, "-m", "tape_jupyter", *words])
        done = subprocess.run(
            command, env=clean_env(self.home, env), capture_output=True, text=True, check=False
        )
        if done.returncode == 2 or not done.stdout:
            raise RuntimeError(done.stderr)
        shown = nbformat.read(self.notebook, as_version=4).cells
        where = places(self.notebook.parent, self.home / ".home")
        digests = [
            expected.outputs_digest(cell.outputs, where)
            for cell in shown
            if headless_run.has_code(cell)
        ]
        for run, digest in zip(json.loads(done.stdout)["cells"], digests, strict=True):
            self.line["cells"].append(
                {"number": run["number"], "title": run["title"], "recorded": run["status"], "said": run["said"][:1],
                 "digest_recorded": digest, "digest_replayed": "", "same": False}
            )  # fmt: skip
        self.line["recorded"] = True

    def again(self) -> None:
        """`tape replay NB`, as often as it was asked for."""
        for _ in range(self.replays):
            words = ["replay", str(self.notebook), "--timeout", str(CELL_SECONDS), "--json"]
            code, out, err = self._tape(*words)
            if code == 2 or not out:
                raise RuntimeError(err or out)
            for cell, ran in zip(self.line["cells"], json.loads(out)["cells"], strict=True):
                if ran["status"] != "same":
                    cell.setdefault("otherwise", []).append([ran["status"], *ran["said"]][:30])

    def export(self) -> None:
        words = ["--allow-differences", "--json", *(["--no-index"] if self.no_index else [])]
        code, out, err = self._tape("export", str(self.notebook), str(self.bundle), *words)
        if code or not self.bundle.exists():
            raise RuntimeError(err or out)
        self.line["exported"] = True
        self.line["differences"] = json.loads(out)["differences"]

    def verify(self) -> None:
        verdict = verify.verify_bundle(self.bundle)
        if not verdict.good:
            raise RuntimeError("; ".join(verdict.problems))
        self.line.update(verified=True, sha256=verdict.digest)

    def replay(self) -> None:
        trace = self.home / "trace"
        strace = shutil.which("strace")
        before = (strace, "-f", "-qq", "-e", "trace=connect", "-o", str(trace)) if strace else ()
        report = self.keep / "reports" / f"{self.slug}.html"
        where = ["--here"] if self.env == "current" else []
        code, out, err = self._tape(
            "replay", str(self.bundle), "--yes", *where, "--report", str(report), "--json",
            "--timeout", str(CELL_SECONDS), before=before,
        )  # fmt: skip
        if code == 2 or not out:
            raise RuntimeError(err)
        told = json.loads(out)
        with opened(self.bundle) as bundle:
            wanted = {cell.number: cell.outputs for cell in bundle.manifest.cells}
        for cell, ran in zip(self.line["cells"], told["cells"], strict=True):
            cell |= {
                "status": ran["status"], "calls": ran["calls"], "digest_replayed": ran["replayed"],
                "same": ran["replayed"] == cell["digest_recorded"] == wanted[cell["number"]]
                and not cell.get("otherwise"),
            }  # fmt: skip
            if not cell["same"]:
                cell["diff"] = [
                    *ran["said"],
                    *(line for each in ran["differences"] for line in each["lines"]),
                ][:30]
        if strace:
            made = CONNECT.findall(trace.read_text(errors="replace"))
            own = set(told["kernel_ports"])
            self.line["connections"] = sum(int(port) not in own for _, port in made)
            trace.unlink()
        self.line["guards"] = told["guards"]
        self.line["replayed"] = all(cell["same"] for cell in self.line["cells"])


def sessions(folder: Path, options: argparse.Namespace) -> Iterator[Session]:
    found = notebooks(folder, options.match)
    base = folder if folder.is_dir() else folder.parent
    whole = sum(path.stat().st_size for path in base.rglob("*") if path.is_file()) <= LARGEST
    root = options.keep / "sessions"
    if whole:
        copied(base, root)
    for path in found:
        name = path.relative_to(base).as_posix()
        copy = root / name
        if not whole:
            copied(path.parent, copy.parent) if not copy.parent.exists() else None
        yield Session(copy, name, options.keep, options.env, options.provider)


def main() -> int:
    corpus = Path(os.environ.get("TAPE_CORPUS", ROOT.parent / "shared" / "corpus"))
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--keep", type=Path, required=True, help="a new folder")
    parser.add_argument("--env", choices=("current", "lock"), default="current")
    parser.add_argument("--provider", type=Path, default=corpus / "fake_provider.py")
    parser.add_argument("--match", default="", help="only notebooks with this in their path")
    parser.add_argument(
        "--no-index", action="store_true", help="export without asking a package index for digests"
    )
    parser.add_argument("--replays", type=int, default=0, help="of the notebook itself, first")
    parser.add_argument("--busy", type=int, default=0, help="processes that compute meanwhile")
    options = parser.parse_args()
    Session.no_index, Session.replays = options.no_index, options.replays
    options.keep = options.keep.resolve()
    if (options.keep / "sessions").exists():
        parser.error(f"--keep {options.keep}: there are sessions already; give a new folder")
    if not options.provider.is_file():
        parser.error(f"there is no {options.provider}: say --provider, or TAPE_CORPUS")
    if not away.possible():
        parser.error(
            "this machine gives no namespaces (`unshare -rnm`): the notebooks cannot be sent to the provider"
        )
    lines = []
    with busy(options.busy):
        for session in sessions(options.folder.resolve(), options):
            lines.append(session.run())
            print(json.dumps(lines[-1], ensure_ascii=False), flush=True)
    cells = [cell for line in lines for cell in line["cells"]]
    summary = {
        "notebooks": len(lines), "replayed_equal": sum(line["replayed"] for line in lines), "cells": len(cells),
        "cells_same": sum(cell["same"] for cell in cells),
        "cells_that_raised": sum(cell["recorded"] == "failed" for cell in cells),
        "connections": sum(line["connections"] or 0 for line in lines), "environment": options.env,
    }  # fmt: skip
    print(json.dumps({"summary": summary}))
    return 0 if lines and all(line["replayed"] for line in lines) else 1


if __name__ == "__main__":
    sys.exit(main())
