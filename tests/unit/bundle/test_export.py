"""A session becomes one file: what is in it, that it is the same each time, that nothing is half written."""

import json
import subprocess
import sys

import nbformat
import pytest
from click.testing import CliRunner

from tape_jupyter.bundle import archive
from tape_jupyter.bundle.export import Options, export_bundle, kernel_python
from tape_jupyter.cli import tape
from tape_jupyter.errors import BundleError, NotExported, TapeUsageError
from tests.harness.exported import churn, quiet, whole  # noqa: F401 - fixtures

HERE = Options(ask_index=False)


def files(folder):
    return sorted(
        path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()
    )


def test_all_that_the_session_needs_is_in_the_bundle_and_nothing_else(churn):
    before = files(churn.parent)
    told = []
    done = export_bundle(churn, options=HERE, on_progress=lambda *step: told.append(step[0]))
    assert files(churn.parent) == sorted([*before, "churn.tape.zip"])
    with archive.opened(done.place) as bundle:
        roles = {
            each.path: each.role
            for each in bundle.manifest.files
            if not each.path.startswith("environment/")
        }
        assert roles == {
            "README.md": "readme",
            "page.html": "page",
            "session/churn.ipynb": "notebook",
            "session/churn.tapes/main.tape.yaml": "cassette",
            "session/data/names.txt": "data",
            "session/helper.py": "module",
        }
        assert bundle.read("session/churn.ipynb") == churn.read_bytes()
        assert bundle.digest == done.digest
        assert [(cell.calls, cell.raises) for cell in bundle.manifest.cells] == [
            (0, ""),
            (1, ""),
            (0, ""),
            (0, "ValueError"),
        ]
        assert "uvx tape-jupyter replay churn.tape.zip" in bundle.read("README.md").decode()
        said = bundle.manifest.to_bytes().decode()
        assert str(churn.parent.parent) not in said and ".home" not in said
    assert told[0] == "reading the notebook and its recording" and "packing" in told
    assert any("without network" in step for step in told)


@pytest.mark.slow
def test_the_same_session_gives_the_same_bytes_under_any_name_and_from_the_command_line(
    churn, tmp_path
):
    one = export_bundle(churn, options=HERE)
    first = churn.with_name("churn.tape.zip").read_bytes()
    two = export_bundle(churn, tmp_path / "other.zip", HERE)
    assert (tmp_path / "other.zip").read_bytes() == first and one.digest == two.digest
    line = [sys.executable, "-m", "tape_jupyter", "export", str(churn), "--no-index", "--json"]
    done = subprocess.run(line, capture_output=True, text=True, cwd=tmp_path)
    assert json.loads(done.stdout)["sha256"] == one.digest, done.stderr
    assert churn.with_name("churn.tape.zip").read_bytes() == first


def test_a_cell_that_differs_is_named_with_its_difference_and_nothing_is_written(churn):
    churn.write_text(churn.read_text().replace("ADA, ", "EVE, "))
    before = files(churn.parent)
    done = CliRunner().invoke(tape, ["export", str(churn), "--no-index"])
    assert done.exit_code == 1
    assert (
        "(1 of 4 cells); nothing was written" in done.output
        and "[3] print(helper.loud" in done.output
    )
    assert "-EVE, JÖRG" in done.output and "+ADA, JÖRG" in done.output
    assert files(churn.parent) == before


@pytest.mark.slow
def test_allowed_differences_mark_the_bundle_the_same_way_each_time(churn, tmp_path):
    churn.write_text(churn.read_text().replace("ADA, ", "EVE, "))
    allowing = Options(ask_index=False, allow_differences=True)
    one, two = (
        export_bundle(churn, tmp_path / "1.zip", allowing),
        export_bundle(churn, tmp_path / "2.zip", allowing),
    )
    assert [(each.cell, each.why) for each in one.manifest.differences] == [
        (3, "shows something other than what is saved")
    ]
    assert one.digest == two.digest
    with archive.opened(one.place) as bundle:
        assert "Not every cell replays as saved" in bundle.read("README.md").decode()


def test_a_secret_in_a_file_is_named_and_not_told_and_nothing_is_written(churn, monkeypatch):
    secret = "hunter2-is-no-password-4711"
    monkeypatch.setenv("ACME_API_KEY", secret)
    names = churn.parent / "data" / "names.txt"
    names.write_text(f"{names.read_text()}")
    (churn.parent / "notes.txt").write_text(f"the key is {secret}")
    with pytest.raises(NotExported) as caught:
        export_bundle(churn, options=Options(ask_index=False, include=("notes.txt",)))
    assert "session/notes.txt" in str(caught.value) and "ACME_API_KEY" in str(caught.value)
    assert secret not in str(caught.value) and not churn.with_name("churn.tape.zip").exists()


def test_nothing_of_a_persons_is_overwritten_and_a_bundle_is_replaced(churn):
    goal = churn.with_name("churn.tape.zip")
    goal.write_text("mine")
    with pytest.raises(TapeUsageError, match="is not a bundle"):
        export_bundle(churn, options=HERE)
    assert goal.read_text() == "mine"
    with pytest.raises(TapeUsageError, match="cannot be written to"):
        export_bundle(churn, goal / "below.tape.zip", HERE)


def test_an_interrupted_export_leaves_nothing(churn):
    before = files(churn.parent)

    def interrupt(what, *_):
        if what == "packing":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        export_bundle(churn, options=HERE, on_progress=interrupt)
    assert files(churn.parent) == before


def test_a_file_that_is_left_out_is_listed_and_missed_in_the_proof(churn):
    with pytest.raises(NotExported) as caught:
        export_bundle(churn, options=Options(ask_index=False, exclude=("data",)))
    assert "FileNotFoundError" in str(caught.value) and "[3]" in str(caught.value)
    with pytest.raises(TapeUsageError, match="without which there is no session"):
        export_bundle(churn, options=Options(ask_index=False, exclude=("*.tapes",)))


def test_the_interpreter_is_that_of_the_notebooks_kernel(tmp_path):
    node = nbformat.v4.new_notebook()
    assert kernel_python(node) == sys.executable
    node.metadata["kernelspec"] = {"name": "no-such-kernel"}
    assert kernel_python(node) == sys.executable


def test_what_changes_while_it_is_exported_is_no_bundle(churn):
    def change(what, *_):
        if what.startswith("starting a kernel"):
            (churn.parent / "data" / "names.txt").write_text("Eve")

    with pytest.raises(BundleError, match="names.txt was changed while it was being exported"):
        export_bundle(churn, options=HERE, on_progress=change)
