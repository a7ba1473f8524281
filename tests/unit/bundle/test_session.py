"""Which files are a notebook's session, and where there is none: in words."""

import hashlib
import json

import nbformat
import pytest

from tape_jupyter.headless import run
from tape_jupyter.cassette.takes import files
from tape_jupyter.bundle.session import excluded, included, session_of
from tape_jupyter.errors import BundleError, TapeUsageError
from tests.harness.notebook import notebook
from tests.harness.tapes import Recorder, answered, asked


def saved(path, *sources):
    """A notebook whose cells were run."""
    notebook(path, *sources)
    node = nbformat.read(path, as_version=4)
    for count, cell in enumerate(node.cells, 1):
        cell.execution_count = count
    nbformat.write(node, path)
    return path


@pytest.fixture
def churn(tmp_path):
    from tape_jupyter.cassette.cell_sources import source_hash

    path = saved(tmp_path / "churn.ipynb", "%%tape record\nask()")
    recorder = Recorder(tmp_path / "churn.tapes" / "main.tape.yaml")
    recorder.run(source_hash("ask()"), (asked("one"), answered("x" * 100_000)))
    return path


def test_a_session_is_the_notebook_its_cassettes_takes_and_the_long_texts_they_refer_to(churn):
    tapes = churn.parent / "churn.tapes"
    asset = next((tapes / "assets").iterdir())
    (tapes / "assets" / hashlib.sha256(b"nobody's").hexdigest()).write_bytes(b"nobody's")
    (tapes / "main.tape.yaml.torn").write_text("half")
    Recorder(tapes / "other.tape.yaml").run("abc")
    take = tapes / "takes" / "main.angry.tape.yaml"
    take.parent.mkdir()
    (take.parent / "deleted").mkdir()
    (take.parent / "deleted" / "main.old.tape.yaml").write_text("")
    take.write_text((tapes / "main.tape.yaml").read_text())
    files.choose(tapes / "main.tape.yaml", "angry")
    (churn.parent / "elsewhere.csv").write_text("1")

    session = session_of(churn)
    assert session.files == {
        "churn.ipynb": "notebook",
        f"churn.tapes/assets/{asset.name}": "asset",
        "churn.tapes/main.tape.yaml": "cassette",
        "churn.tapes/other.tape.yaml": "cassette",
        "churn.tapes/takes/main.angry.tape.yaml": "take",
        "churn.tapes/takes/main.default": "take",
    }
    assert [path.name for path in session.cassettes] == ["main.tape.yaml", "other.tape.yaml"]


def test_a_long_text_that_is_gone_is_named(churn):
    asset = next((churn.parent / "churn.tapes" / "assets").iterdir())
    asset.unlink()
    with pytest.raises(BundleError, match=asset.name):
        session_of(churn)


def test_a_notebook_that_was_never_recorded_or_never_run_says_what_to_do(churn, tmp_path):
    with pytest.raises(
        TapeUsageError, match="other.ipynb has no recording .*tape record other.ipynb"
    ):
        session_of(saved(tmp_path / "other.ipynb", "1"))
    notebook(churn, "1 + 1")
    with pytest.raises(TapeUsageError, match="no cell of the saved notebook was run"):
        session_of(churn)


def test_a_renamed_notebook_is_told_whose_recording_it_may_adopt(churn):
    renamed = churn.rename(churn.with_name("loss.ipynb"))
    with pytest.raises(
        TapeUsageError, match="loss.ipynb has no cassettes of its own, but churn.tapes was recorded"
    ):
        session_of(renamed)


@pytest.mark.parametrize("content", ["", "{", json.dumps({"cells": 3})])
def test_what_is_no_notebook_is_refused(tmp_path, content):
    path = tmp_path / "n.ipynb"
    path.write_text(content)
    with pytest.raises(TapeUsageError):
        session_of(path)
    assert run  # the same reader as every command's


def test_include_names_files_of_the_folder_only(tmp_path):
    (tmp_path / "data" / "deep").mkdir(parents=True)
    for name in ("a.csv", "deep/b.csv"):
        (tmp_path / "data" / name).write_text("1")
    assert included(tmp_path, ["data/*.csv"]) == ["data/a.csv"]
    assert included(tmp_path, ["data"]) == ["data/a.csv", "data/deep/b.csv"]
    for glob in ("../*", "/etc/passwd", "nothing*", ""):
        with pytest.raises(TapeUsageError, match="--include"):
            included(tmp_path, [glob])


def test_exclude_names_a_path_a_folder_or_a_name():
    names = ["churn.ipynb", "data/a.csv", "data/deep/b.csv", "plan.txt"]
    assert (
        excluded(names, ["data"])
        == excluded(names, ["data/*"])
        == excluded(names, ["data/"])
        == set(names[1:3])
    )
    assert excluded(names, ["*.csv"]) == set(names[1:3]) and excluded(names, ["b.csv"]) == {
        "data/deep/b.csv"
    }
    with pytest.raises(TapeUsageError, match="--exclude"):
        excluded(names, ["../x"])
