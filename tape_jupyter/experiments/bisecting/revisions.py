"""`tape bisect NB --git GOOD BAD`: the first commit whose code makes the check fail, on the recording
that is there now.

git's own bisection runs in a worktree of its own, which is gone afterwards: the checkout is not
touched. `try_here` is one step of it, for `git bisect run`.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tape_jupyter.cassette import paths
from tape_jupyter.core.plain_text import format_count
from tape_jupyter.core.progress import Tell, ignore_progress
from tape_jupyter.errors import BundleError, TapeError, TapeUsageError
from tape_jupyter.experiments import checked_run, environments
from tape_jupyter.experiments.bisecting.packages import read_lock
from tape_jupyter.experiments.check import Check, CheckedRun
from tape_jupyter.experiments.checked_run import ReplayOptions
from tape_jupyter.isolation.namespaces import git_command

GOOD, BAD, SKIP = 0, 1, 125
"""Exit codes of `git bisect run`."""


@dataclass(frozen=True, slots=True)
class GuiltyCommit:
    """The answer. `commits` are several where some between could not be tried; `tried` says what
    came out of each.
    """

    commits: Sequence[str]
    subject: str
    tried: Sequence[tuple[str, str]]
    seconds: float

    def record(self) -> dict[str, Any]:
        return {
            "commits": list(self.commits), "subject": self.subject, "seconds": round(self.seconds, 3),
            "tried": [{"commit": commit, "came out": outcome} for commit, outcome in self.tried],
        }  # fmt: skip

    def text(self) -> str:
        rows = [f"  {commit[:12]}  {outcome}" for commit, outcome in self.tried]
        if len(self.commits) == 1:
            head = f"{self.commits[0][:12]} is the first bad commit: {self.subject}"
        else:
            names = ", ".join(commit[:12] for commit in self.commits)
            head = f"the first bad commit is one of these, which could not all be tried: {names}"
        return "\n".join(
            [head, *rows, f"{format_count(len(self.tried), 'commit')} tried, {self.seconds:.1f} s"]
        )


def try_here(
    notebook: Path, check: Check, lock: Path | None = None, recording: Path | None = None,
    code: Path | None = None, pace: str = "",
) -> CheckedRun:  # fmt: skip
    """One step: the notebook as it lies here. `lock`: with its packages; `recording`: a .tapes
    folder that answers in place of its own; `code`: a folder that modules are imported from first;
    `pace`: when recorded replies arrive. What cannot be installed or run is unresolved.
    """
    try:
        python = None
        if lock is not None:
            pins = [f"{name}=={version}" for name, version in read_lock(lock).items()]
            python = str(environments.make_environment(pins))
        if recording is None:
            files = {}
        else:
            files = _read_files(recording, paths.folder(notebook.resolve()))
        with _put_first_on_path(code):
            options = ReplayOptions(pace=pace, files=files, python=python)
            return checked_run.replay_and_check(notebook, check, options)
    except BundleError as error:
        return CheckedRun("unresolved", why=error.reason)
    except TapeError as error:
        return CheckedRun("unresolved", why=str(error).splitlines()[0])


def exit_code(run: CheckedRun) -> int:
    return {"passes": GOOD, "fails": BAD}.get(run.verdict, SKIP)


def bisect_revisions(
    notebook: Path,
    good: str,
    bad: str,
    check: Check,
    lock: str = "",
    on_progress: Tell = ignore_progress,
    pace: str = "",
) -> GuiltyCommit:
    """Find it. `lock` is a file of the repository that names its packages. Raises TapeUsageError
    where GOOD and BAD are not told apart, or this is no git repository.
    """
    began = time.perf_counter()
    notebook = notebook.resolve()
    top = Path(_run_git(notebook.parent, "rev-parse", "--show-toplevel")).resolve()
    recording, inside = paths.folder(notebook), notebook.relative_to(top)
    tried: list[tuple[str, str]] = []

    def try_commit(tree: Path) -> CheckedRun:
        commit = _run_git(tree, "rev-parse", "HEAD")
        on_progress(f"commit {commit[:12]}", 0, 0)
        there = tree / lock if lock else None
        run = try_here(tree / inside, check, there, recording, tree, pace)
        tried.append((commit, f"{run.verdict}{f': {run.why}' if run.why else ''}"))
        return run

    with _open_worktree(top, bad) as tree:
        for revision, expected in ((bad, "fails"), (good, "passes")):
            _run_git(tree, "checkout", "-q", "--detach", _resolve_commit(top, revision))
            run = try_commit(tree)
            if run.verdict != expected:
                reason = run.why or f"the check {run.verdict}"
                raise TapeUsageError(
                    f"--git: at {revision} the check should be one that {expected}: {reason}"
                )
        git_output = _run_git(
            tree, "bisect", "start", _resolve_commit(top, bad), _resolve_commit(top, good)
        )
        while not (commits := _find_first_bad(git_output)):
            mark = {GOOD: "good", BAD: "bad"}.get(exit_code(try_commit(tree)), "skip")
            git_output = _run_git(tree, "bisect", mark, failing=True)
        if len(commits) == 1:
            subject = _run_git(top, "show", "-s", "--format=%s", commits[0])
        else:
            subject = ""
    return GuiltyCommit(commits, subject, tried, time.perf_counter() - began)


def _find_first_bad(git_output: str) -> list[str]:
    """The commits that git's words name as the first bad one; none while it goes on."""
    if one := re.search(r"^([0-9a-f]{40,64}) is the first bad commit", git_output, re.MULTILINE):
        return [one[1]]
    if "first bad commit could be any of" in git_output:
        return re.findall(r"^([0-9a-f]{40,64})$", git_output, re.MULTILINE)
    if "Bisecting:" in git_output:
        return []
    raise TapeUsageError(f"git bisect: {' '.join(git_output.split())[:300]}")


@contextmanager
def _open_worktree(top: Path, revision: str) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="tape-bisect-") as folder:
        tree = Path(folder).resolve() / "tree"
        _run_git(
            top, "worktree", "add", "-q", "--detach", str(tree), _resolve_commit(top, revision)
        )
        try:
            yield tree
        finally:
            _run_git(top, "worktree", "remove", "--force", str(tree), failing=True)


def _resolve_commit(top: Path, revision: str) -> str:
    arguments = ("--verify", "--end-of-options", f"{revision}^{{commit}}")
    return _run_git(top, "rev-parse", *arguments).splitlines()[-1]


def _run_git(folder: Path, *arguments: str, failing: bool = False) -> str:
    """What git says. Raises TapeUsageError where it fails, unless that is an answer too."""
    try:
        line = git_command(folder, *arguments)
    except OSError as error:
        raise TapeUsageError(f"--git: {error}") from None
    done = subprocess.run(line, capture_output=True, text=True, check=False)  # noqa: S603 - git, no shell
    if done.returncode and not failing:
        lines = (done.stderr.strip() or done.stdout.strip()).splitlines()
        raise TapeUsageError(f"git {arguments[0]}: {lines[0] if lines else 'it failed'}")
    return (done.stdout + (done.stderr if failing else "")).strip()


def _read_files(recording: Path, goal: Path) -> dict[Path, bytes]:
    recorded_files = [
        file for file in recording.rglob("*") if file.is_file() and file.suffix != ".lock"
    ]
    if not recorded_files:
        raise TapeUsageError(f"{recording}: there is no recording in it")
    return {goal / file.relative_to(recording): file.read_bytes() for file in recorded_files}


@contextmanager
def _put_first_on_path(code: Path | None) -> Iterator[None]:
    """Modules are imported from this folder, and from `src` in it, before any other."""
    before = os.environ.get("PYTHONPATH")
    if code is not None:
        folders = [str(code), str(code / "src"), *filter(None, [before])]
        os.environ["PYTHONPATH"] = os.pathsep.join(folders)
    try:
        yield
    finally:
        if code is not None:
            os.environ.pop("PYTHONPATH")
            if before is not None:
                os.environ["PYTHONPATH"] = before
