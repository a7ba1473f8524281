"""A bundle's README says the one command, what is in the bundle, and what is not."""

from dataclasses import replace

from tape_jupyter.comparison import outputs
from tape_jupyter.bundle.archive.manifest import (
    ProofDifference,
    Expected,
    BundleFile,
    LeftOut,
    LockState,
    Manifest,
    Redaction,
)
from tape_jupyter.bundle.readme import ROLES, readme

SHA = "0" * 64
WHEEL = "environment/wheels/tape_jupyter-0.1.0-py3-none-any.whl"
MADE = Manifest(
    made_by="tape-jupyter 0.1.0", notebook="session/deep/churn.ipynb", kernel={}, kit={}, lock=LockState(True, "public"),
    files=(
        BundleFile(WHEEL, 1, SHA, "wheel"), BundleFile("page.html", 1, SHA, "page"), BundleFile("session/data/a.csv", 1, SHA, "data"),
        BundleFile("session/data/deep/b.csv", 1, SHA, "data"), BundleFile("session/deep/churn.ipynb", 1, SHA, "notebook"),
    ),
    cells=(Expected(1, "a", "ask()", SHA, SHA, 2), Expected(2, "b", "ask()", SHA, SHA, 1)),
)  # fmt: skip


def test_the_one_command_stands_first():
    lines = readme(MADE).splitlines()
    assert lines[0] == "# churn" and "2 cells with the 3 model and tool calls" in lines[2]
    assert lines[lines.index("```") + 1] == "uvx tape-jupyter replay churn.tape.zip"


def test_our_own_wheel_is_a_way_where_no_index_has_it():
    assert f"uvx --from ./{WHEEL} tape-jupyter replay churn.tape.zip" in readme(MADE)
    assert "uvx --from" not in readme(replace(MADE, files=MADE.files[1:]))


def test_files_are_told_by_what_they_are_for():
    text = readme(MADE)
    assert f"| `session/deep/churn.ipynb` | {ROLES['notebook']} |" in text
    assert f"| `session/data/` (2 files) | {ROLES['data']} |" in text and ROLES["take"] not in text


def test_what_does_not_hold_is_not_kept_quiet():
    assert "every cell gave what the notebook shows" in readme(MADE)
    text = readme(
        replace(
            MADE, lock=LockState(False, "none", "no index was asked"), differences=(ProofDifference(2, "shows other than saved"),),
            left_out=(LeftOut("data/big.bin", 5_000_000, SHA, "larger than 100 MB"),),
            redactions=(Redaction("session/a.csv", "an API key", 3),),
        )
    )  # fmt: skip
    assert "Not every cell replays as saved" in text and "* cell 2: shows other than saved" in text
    assert "not all with hashes: no index was asked" in text
    assert (
        "`data/big.bin` (5,000,000 bytes): larger than 100 MB" in text
        and "3 x an API key in `session/a.csv`" in text
    )


def test_all_that_is_forgiven_is_written_down():
    text = readme(MADE)
    assert all(f"* {word}\n" in text for word in outputs.forgiven_words())


def test_it_says_how_pip_and_uv_make_the_environment():
    def said(hashed, *paths):
        files = tuple(BundleFile(path, 1, SHA, role) for path, role in paths)
        return readme(replace(MADE, files=files, lock=LockState(hashed, "public")))

    lock, wheel = ("environment/requirements.txt", "lock"), ("environment/wheels/t.whl", "wheel")
    plain = said(True, lock, wheel)
    assert "pip install --no-deps --require-hashes -r environment/requirements.txt\n" in plain
    assert (
        "pip install --no-deps ./environment/wheels/t.whl\n" in plain
        and "so can pip, from 26.1 on" in plain
    )
    own = said(
        False,
        lock,
        ("environment/sources/mine/x.py", "source"),
        ("environment/sources/mine/y.py", "source"),
        wheel,
    )
    assert "pip install --no-deps -r" in own and "pip cannot, because of the sources" in own
    assert "pip install --no-deps ./environment/wheels/t.whl ./environment/sources/mine\n" in own


def test_what_could_not_be_watched_and_what_other_platforms_need_is_said():
    left = (
        LeftOut(
            "what its packages need on another platform only",
            0,
            "",
            "the lock is of this one (pywin32)",
        ),
    )
    text = readme(replace(MADE, left_out=left, kit={"unseen": "parquet files"}))
    assert (
        "* what its packages need on another platform only: the lock is of this one (pywin32)\n"
        in text
    )
    assert "could not watch parquet files" in text
