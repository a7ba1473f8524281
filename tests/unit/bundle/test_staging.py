"""What goes into a bundle, and under which name."""

import hashlib
import json
from types import SimpleNamespace

import pytest

from tape_jupyter.bundle.proof.collection import Collected, Left
from tape_jupyter.bundle.proof.inputs import InputFile
from tape_jupyter.bundle.session import Session
from tape_jupyter.bundle.staging import EXCLUDED, HOOK, staged
from tape_jupyter.errors import BundleError, TapeUsageError


def read(path, text):
    return InputFile(path, len(text), hashlib.sha256(text.encode()).hexdigest())


@pytest.fixture
def top(tmp_path):
    for name in (
        "work/churn.ipynb",
        "work/churn.tapes/main.tape.yaml",
        "shared/data.csv",
        "work/helper.py",
        "work/conftest.py",
        "work/plan.txt",
        "work/huge.bin",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("1")
    (tmp_path / "work" / "churn.ipynb").write_text("{}")
    return tmp_path


def session(top):
    files = {"churn.ipynb": "notebook", "churn.tapes/main.tape.yaml": "cassette"}
    return Session(top / "work" / "churn.ipynb", SimpleNamespace(), files, ())


def collected(root="", **more):
    return Collected(
        **{
            "root": root,
            "data": (read("shared/data.csv", "1"),),
            "modules": (read("work/helper.py", "1"),),
            **more,
        }
    )


def test_paths_are_those_below_the_nearest_folder_that_holds_all(top):
    made = staged(session(top), top, collected())
    assert made.notebook == "session/work/churn.ipynb"
    assert made.roles == {
        "session/shared/data.csv": "data",
        "session/work/churn.ipynb": "notebook",
        "session/work/churn.tapes/main.tape.yaml": "cassette",
        "session/work/helper.py": "module",
    }
    made = staged(session(top), top, collected("work", data=()), include=["plan.txt"])
    assert made.notebook == "session/churn.ipynb" and made.roles["session/plan.txt"] == "data"


def test_what_is_left_out_is_listed_with_its_digest_and_why(top):
    left = (
        Left("work/huge.bin", 1, "0" * 64, "larger than 100 MB"),
        Left("…/etc.cfg", 2, "1" * 64, "elsewhere"),
    )
    hooked = collected(
        modules=(read("work/conftest.py", "1"), read("work/helper.py", "1")), left_out=left
    )
    made = staged(session(top), top, hooked, exclude=["helper.py"])
    assert [(each.path, each.why) for each in made.left] == [
        ("work/conftest.py", HOOK),
        ("work/helper.py", EXCLUDED),
        ("work/huge.bin", "larger than 100 MB"),
        ("…/etc.cfg", "elsewhere"),
    ]
    assert made.lacking == {"session/work/huge.bin": "work/huge.bin"}, (
        "a replay needs it beside the session"
    )
    assert "work/helper.py" not in made.carried


def test_a_file_that_changed_since_it_was_read_refuses_the_export(top):
    (top / "shared" / "data.csv").write_text("2")
    with pytest.raises(BundleError, match="data.csv was changed while it was being exported"):
        staged(session(top), top, collected())


def test_the_session_itself_cannot_be_left_out(top):
    with pytest.raises(TapeUsageError, match="leaves out churn.tapes/main.tape.yaml"):
        staged(session(top), top, collected(), exclude=["churn.tapes"])


def tape_answer(text, **more):
    return {
        "output_type": "display_data",
        "data": {"text/plain": text, **more},
        "metadata": {"tape": {"summary": True}},
    }


def test_what_the_notebook_says_of_its_bundle_is_not_in_the_bundle(top):
    printed = {"output_type": "stream", "name": "stdout", "text": "two\n"}
    failed = {"output_type": "error", "ename": "NotExported", "evalue": "", "traceback": []}
    calls = tape_answer("● replayed  2 calls", **{"text/html": "<div>"})
    sha = tape_answer("  sha256 abab")
    cells = [
        (["%tape export --test"], [sha], []),
        ("# is it whole?\n%tape verify churn.tape.zip", [sha, failed], []),
        ("%tape export\n%tape why [2]", [sha, failed], [failed]),
        ("%%tape replay\nprint('two')\n%tape export", [printed, sha, calls], [printed, calls]),
        ("%tape why [2]", [sha], [sha]),
        ("export = 1", [printed, calls], [printed, calls]),
    ]
    path = top / "work" / "churn.ipynb"

    def carried():
        return staged(session(top), top, collected()).content["session/work/churn.ipynb"]

    path.write_text(
        json.dumps({"cells": [{"source": source, "outputs": out} for source, out, _ in cells]})
    )
    assert [cell["outputs"] for cell in json.loads(carried())["cells"]] == [
        kept for *_, kept in cells
    ]
    path.write_text(
        json.dumps({"cells": [{"source": source, "outputs": kept} for source, _, kept in cells]})
    )
    assert carried() == path, "nothing to leave out: the file itself, byte for byte"
