"""A copy of a notebook's folder: what a run may read is there, what nobody reads is not."""

import os
import subprocess

import pytest

from tape_jupyter.files import originals
from tape_jupyter.files import copies
from tape_jupyter.errors import BundleError
from tests.harness.exported import quiet


def lay(folder, *names):
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)


@pytest.fixture
def git(tmp_path):
    top = tmp_path / "repo"
    lay(
        top,
        "work/churn.ipynb",
        "work/churn.tapes/main.tape.yaml",
        "shared/data.csv",
        "setup.cfg",
        "ignored/big.bin",
    )
    lay(
        top,
        "work/ignored.csv",
        "work/.venv/pyvenv.cfg",
        "work/.venv/lib/x.py",
        "work/__pycache__/x.pyc",
    )
    lay(
        top,
        "work/other.ipynb",
        "work/other.tapes/main.tape.yaml",
        "work/old.tape.zip",
        "work/.git-blame-ignore",
    )
    (top / ".gitignore").write_text("ignored*\n")
    subprocess.run(["git", "init", "-q", str(top)], check=True)
    return top / "work" / "churn.ipynb"


def test_of_a_work_tree_the_notebooks_folder_is_copied_whole_and_of_the_rest_what_git_would_take(
    git, tmp_path
):
    top = originals.top_of(git)
    copy = copies.copied(git, top, tmp_path / "goal", quiet)
    assert top == git.parent.parent and copy.notebook == tmp_path / "goal" / "work" / "churn.ipynb"
    assert copy.files == {
        ".gitignore", "setup.cfg", "shared/data.csv", "work/.git-blame-ignore", "work/churn.ipynb",
        "work/churn.tapes/main.tape.yaml", "work/ignored.csv", "work/other.ipynb",
    }  # fmt: skip
    found = {p.relative_to(copy.top).as_posix() for p in copy.top.rglob("*") if p.is_file()}
    assert found == copy.files and copy.missing == ()


def test_without_git_it_is_the_notebooks_folder(tmp_path):
    lay(tmp_path, "work/churn.ipynb", "beside.csv")
    assert originals.top_of(tmp_path / "work" / "churn.ipynb") == tmp_path / "work"


def test_a_home_folder_under_git_is_not_copied_whole(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    lay(tmp_path, ".git/HEAD", "work/churn.ipynb")
    assert originals.top_of(tmp_path / "work" / "churn.ipynb") == tmp_path / "work"


def test_what_is_too_much_is_named_and_what_lies_nearest_goes_first(git, tmp_path, monkeypatch):
    monkeypatch.setattr(copies, "MOST_FILES", 5)
    copy = copies.copied(git, originals.top_of(git), tmp_path / "goal", quiet)
    assert copy.files >= {"work/churn.ipynb", "work/churn.tapes/main.tape.yaml", "work/ignored.csv"}
    assert "shared/data.csv" in copy.missing


def test_links_are_followed_and_what_is_no_file_is_passed_by(tmp_path):
    lay(tmp_path, "elsewhere/data.csv", "work/churn.ipynb")
    (tmp_path / "work" / "data").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "work" / "round").symlink_to(tmp_path / "work")
    (tmp_path / "work" / "gone").symlink_to(tmp_path / "nowhere")
    os.mkfifo(tmp_path / "work" / "pipe")
    path = tmp_path / "work" / "churn.ipynb"
    copy = copies.copied(path, originals.top_of(path), tmp_path / "goal", quiet)
    assert copy.files == {"churn.ipynb", "data/data.csv"}
    (copy.top / "data" / "data.csv").write_text("changed")
    assert (tmp_path / "elsewhere" / "data.csv").read_text() == "elsewhere/data.csv"


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(BundleError, match="gone.csv"):
        copies.copy_file(tmp_path / "gone.csv", tmp_path / "goal" / "gone.csv")
