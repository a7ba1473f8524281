"""`tape bisect NB`: the package or the commit that makes a recorded run fail."""

import json
import os
import subprocess
import sys

import pytest
from click.testing import CliRunner

from tape_jupyter.cli import tape as command
from tape_jupyter.errors import TapeUsageError
from tape_jupyter.experiments import environments
from tape_jupyter.experiments.bisecting import packages, revisions
from tape_jupyter.experiments.check import Check, CheckedRun
from tests.harness.notebook import clean_env, notebook
from tests.harness.support import digest
from tests.harness.tapes import churn


def run(*words):
    return CliRunner().invoke(command, [str(word) for word in words])


def lock(path, **pins):
    path.write_text("".join(f"{name}=={version}\n" for name, version in pins.items()))
    return str(path)


def trials(*guilty, odd=lambda pins: False):
    """Runs that fail with all of these packages at version 2; those that are `odd` cannot be made."""

    def tried(pins):
        if odd(pins):
            return CheckedRun("unresolved", why="they do not go together")
        return CheckedRun("fails" if all(pins.get(name) == "2" for name in guilty) else "passes")

    return tried


@pytest.mark.parametrize("guilty", [["c"], ["a", "f"], ["b", "d", "h"]])
def test_the_fewest_packages_that_matter_are_found(tmp_path, guilty):
    names = "abcdefgh"
    good = lock(tmp_path / "good.txt", **dict.fromkeys(names, "1"), same="3")
    bad = lock(tmp_path / "bad.txt", **dict.fromkeys(names, "2"), same="3")
    found = packages.bisect_packages(tmp_path / "n.ipynb", good, bad, Check(), run=trials(*guilty))
    assert [name for name, *_ in found.packages] == guilty and found.differing == 8
    assert found.packages[0][1:] == ("1", "2") and found.trials <= 4 * 8 * 3


def test_sets_that_do_not_go_together_are_unresolved_and_the_search_goes_on(tmp_path):
    good = lock(tmp_path / "good.txt", a="1", b="1", c="1", d="1")
    bad = lock(tmp_path / "bad.txt", a="2", b="2", c="2", d="2", new="2")
    odd = lambda pins: pins["a"] != pins["b"]  # noqa: E731 - they need each other
    found = packages.bisect_packages(
        tmp_path / "n.ipynb", good, bad, Check(), run=trials("a", odd=odd)
    )
    assert [name for name, *_ in found.packages] == ["a", "b"] and found.unresolved
    assert "2 packages together make the difference, of 5" in found.text()


def test_a_range_of_dates_is_halved_to_the_day(tmp_path, monkeypatch):
    asked = []

    def resolved(lines, before):
        asked.append(before)
        return ["a==2" if before >= "2026-09-20" else "a==1", "b==2" if before >= "2026-09-05" else "b==1"]  # fmt: skip

    monkeypatch.setattr(environments, "resolved", resolved)
    (tmp_path / "r.in").write_text("a\nb\n")
    found = packages.bisect_packages(
        tmp_path / "n.ipynb", "2026-09-01", "2026-10-01", Check(), tmp_path / "r.in", run=trials("a")
    )  # fmt: skip
    assert found.between == ("2026-09-19", "2026-09-20") and list(found.packages) == [
        ("a", "1", "2")
    ]
    assert len(asked) <= 7 and found.record()["between"] == ["2026-09-19", "2026-09-20"]


def test_locks_of_each_kind_are_read(tmp_path):
    (tmp_path / "pylock.toml").write_text('[[packages]]\nname = "Ab.c"\nversion = "1"\n')
    (tmp_path / "uv.lock").write_text('[[package]]\nname = "ab-c"\nversion = "1"\n')
    (tmp_path / "r.txt").write_text("# x\nAb_c[extra]==1 ; python_version > '3' --hash=sha256:aa\n    # via d\n")  # fmt: skip
    for name in ("pylock.toml", "uv.lock", "r.txt"):
        assert packages.read_lock(tmp_path / name) == {"ab-c": "1"}


def test_words_that_cannot_be_used_are_one_clear_line(tmp_path, monkeypatch):
    churn(tmp_path)
    nb = notebook(tmp_path / "churn.ipynb", "x = 1")
    one, two = lock(tmp_path / "one.txt", a="1"), lock(tmp_path / "two.txt", a="2")
    (tmp_path / "empty.txt").write_text("")
    monkeypatch.chdir(tmp_path)
    for words, told in (
        ([], "say one of --packages GOOD BAD, --git GOOD BAD and --step"),
        (["--step", "--git", "a", "b"], "say one of"),
        (["--packages", one, one], "hold the same packages"),
        (["--packages", one, tmp_path / "gone.txt"], "it cannot be read"),
        (["--packages", one, tmp_path / "empty.txt"], "names no package with its version"),
        (["--packages", one, "2026-01-01"], "two locks or two dates"),
        (["--packages", "2026-01-01", "2026-02-01"], "--requirements FILE"),
        (["--packages", "2026-02-30", one], "day is out of range"),
        (["--step", "--check", "x ="], "not a Python expression"),
        (["--git", "a", "b"], "git rev-parse"),
    ):
        done = run("bisect", nb, *words)
        assert done.exit_code == 2 and told in done.stderr, (words, done.output, done.exc_info)
    for told, tried in (("is passes", trials("gone")), ("is fails", trials())):
        with pytest.raises(TapeUsageError, match="the check (passes|fails)"):
            packages.bisect_packages(nb, one, two, Check(), run=tried)
    step = run("bisect", nb, "--step", "--lock", tmp_path / "gone.txt")
    assert step.exit_code == 125 and "cannot be read" in step.stdout  # for git bisect run: skip it


def test_the_first_bad_commit_is_found_in_a_worktree_of_its_own(tmp_path, monkeypatch):
    env = clean_env(tmp_path)
    for name in set(os.environ) - set(env):
        monkeypatch.delenv(name)
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    top = tmp_path / "repo"
    nb = notebook(top / "nb" / "n.ipynb", "%load_ext tape_jupyter\nimport os", "from shop import left", "left > 0")  # fmt: skip
    churn(top / "nb").parent.rename(top / "nb" / "n.tapes")

    def git(*words):
        line = ["git", "-C", str(top), "-c", "user.name=a", "-c", "user.email=a@b", *words]
        return subprocess.run(line, check=True, capture_output=True, text=True).stdout.strip()

    git("init", "-q")
    commits = []
    for number, text in enumerate(["left = 3", "left = 2", "left = 0", "left = -1"]):
        (top / "shop.py").write_text(text)
        git("add", "shop.py", "nb/n.ipynb")
        git("commit", "-qm", f"step {number}")
        commits.append(git("rev-parse", "HEAD"))
    (top / "shop.py").write_text("mine = 'not committed'")
    before = {file: digest(file) for file in top.rglob("*.ipynb")} | {top / "shop.py": digest(top / "shop.py")}  # fmt: skip
    done = run("bisect", nb, "--git", commits[0], "HEAD", "--check", "left > 0", "--json")
    assert done.exit_code == 0, (done.output, done.exc_info)
    told = json.loads(done.stdout)
    assert (
        told["commits"] == [commits[2]] and told["subject"] == "step 2" and len(told["tried"]) <= 4
    )
    assert {file: digest(file) for file in before} == before
    assert git("worktree", "list").count("\n") == 0 and "bisect" not in git("status")


def test_the_exit_codes_are_those_of_git_bisect_run():
    codes = [revisions.exit_code(CheckedRun(verdict)) for verdict in ("passes", "fails", "unresolved")]  # fmt: skip
    assert codes == [0, 1, 125]


def test_what_git_says_is_read():
    one = "a" * 40
    assert revisions._find_first_bad(f"{one} is the first bad commit\ncommit {one}") == [one]
    both = f"There are only 'skip'ped commits left to test.\nThe first bad commit could be any of:\n{one}\n{'b' * 40}\nWe cannot bisect more!"  # fmt: skip
    assert revisions._find_first_bad(both) == [one, "b" * 40]
    assert revisions._find_first_bad("Bisecting: 3 revisions left to test after this (roughly 2 steps)") == []  # fmt: skip
    with pytest.raises(TapeUsageError, match="git bisect: fatal"):
        revisions._find_first_bad("fatal: not possible")
