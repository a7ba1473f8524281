"""Verify: what can be known of a bundle without running any of it, said apart from what its maker says."""

import dataclasses
import json
import subprocess
import sys

import pytest
from click.testing import CliRunner

from tape_jupyter.bundle.archive import manifest
from tape_jupyter.bundle.verify import verify_bundle
from tape_jupyter.cli import tape as command
from tape_jupyter.errors import BundleError
from tests.harness.bundles import CONTENT, made, notebook, recording, written

LOCK = """lock-version = "1.0"
created-by = "tape-jupyter"
[[packages]]
name = "evil"
version = "1.0"
{}
"""


def told(*args):
    done = CliRunner().invoke(command, ["verify", *map(str, args)])
    return done.exit_code, done.output


def test_a_good_bundle_is_told_with_what_is_known_and_what_is_said(tmp_path):
    content = recording(tmp_path / "session")
    verdict = verify_bundle(written(tmp_path, content))
    assert (
        verdict.good
        and (verdict.cassettes, verdict.calls) == (1, 3)
        and verdict.digest == made(content).digest
    )
    code, text = told(tmp_path / "churn.tape.zip")
    assert code == 0 and "intact: 5 files" in text and "1 recording with 3 calls" in text
    assert "not signed: nothing shows who made it" in text and "Nothing in it was run." in text
    assert "its maker says: tape-jupyter 0.1.0; 1 of 1 cell came out as saved in the proof" in text
    assert made(content).digest in text


def test_json_holds_all_of_it(tmp_path):
    code, text = told(written(tmp_path), "--json")
    record = json.loads(text)
    assert (
        code == 0
        and record["ok"]
        and record["problems"] == []
        and record["signed"]["state"] == "none"
    )
    assert record["digest"] == made().digest and record["notebook"] == "session/churn.ipynb"


def test_a_bundle_that_is_not_what_it_says_is_exit_code_1_and_nothing_to_check_is_2(tmp_path):
    path = written(tmp_path)
    path.write_bytes(path.read_bytes()[:-1])
    code, text = told(path)
    assert code == 1 and "wrong" in text and "was cut off" in text and "do not use it" in text
    code, text = told(path, "--json")
    assert code == 1 and json.loads(text)["ok"] is False
    assert told(tmp_path / "none.tape.zip")[0] == 2
    assert told(tmp_path / "none.tape.zip")[1].count("there is no such file or folder") == 1


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "is not a notebook"),
        (b"{}", "is not a notebook"),
        (b"[" * 100_000, "is not a notebook"),
        (
            b'{"cells": 1, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}',
            "its cells are no list",
        ),
        (notebook(outputs=[{"output_type": 1}]), "output 1 of cell 1"),
        (b"\xff\xfe", "is not a notebook"),
    ],
)
def test_a_notebook_that_is_none_is_a_problem(tmp_path, data, said):
    verdict = verify_bundle(written(tmp_path, CONTENT | {"session/churn.ipynb": data}))
    assert (
        not verdict.good
        and len(verdict.problems) == 1
        and "session/churn.ipynb" in verdict.problems[0]
        and said in verdict.problems[0]
    )


@pytest.mark.parametrize("change", [
    lambda text: text.replace(b"---\n", b"--- !!python/object:os.system\n", 1),
    lambda text: text + b"---\ncall: x\n...\n",
    lambda text: text.replace(b"tape: 1", b"tape: 99", 1),
    lambda text: b"\xef\xbb\xbf" + text,
])  # fmt: skip
def test_a_recording_that_cannot_be_read_is_a_problem_that_names_it(tmp_path, change):
    content = recording(tmp_path / "session")
    name = "session/churn.tapes/main.tape.yaml"
    verdict = verify_bundle(written(tmp_path, {**content, name: change(content[name])}))
    assert not verdict.good and any(problem.startswith(name) for problem in verdict.problems)


def test_a_take_that_replays_where_none_is_named_is_a_choice_and_no_recording(tmp_path):
    content = recording(tmp_path / "session")
    cassette = content["session/churn.tapes/main.tape.yaml"]
    takes = {
        "session/churn.tapes/takes/main.fix.tape.yaml": cassette,
        "session/churn.tapes/takes/main.default": b"fix\n",
    }
    verdict = verify_bundle(written(tmp_path, {**content, **takes}))
    assert verdict.good and verdict.cassettes == 2, verdict.problems
    takes["session/churn.tapes/takes/main.default"] = b"gone\n"
    verdict = verify_bundle(written(tmp_path, {**content, **takes}))
    assert not verdict.good and "main.default names the take 'gone', which is not in it" in str(
        verdict.problems
    )


def test_a_reply_that_somebody_edited_is_told(tmp_path):
    content = recording(tmp_path / "session")
    name = "session/churn.tapes/main.tape.yaml"
    changed = content[name].replace(b"text: negative", b"text: positive")
    verdict = verify_bundle(written(tmp_path, {**content, name: changed}))
    assert changed != content[name] and verdict.good
    assert any("edited by hand: 2 replies" in note for note in verdict.notes), verdict.notes


@pytest.mark.parametrize("way", [
    'archive = {url = "file:///etc/passwd", hashes = {sha256 = "%s"}}' % ("0" * 64),
    'vcs = {type = "git", url = "git+ssh://git@internal.test/x", commit-id = "%s"}' % ("0" * 40),
    'index = "https://pypi.internal.test/simple"\nwheels = [{url = "https://pypi.internal.test/x-1.0-py3-none-any.whl", hashes = {sha256 = "%s"}}]'
    % ("0" * 64),
])  # fmt: skip
def test_packages_from_odd_places_are_shown(tmp_path, way):
    verdict = verify_bundle(
        written(tmp_path, CONTENT | {"environment/pylock.toml": LOCK.format(way).encode()})
    )
    assert verdict.good and any(
        "environment/pylock.toml" in note and "evil" in note for note in verdict.notes
    )


def test_packages_without_digests_are_one_line(tmp_path):
    listed = ", ".join(f'"package-{number}==1.0"' for number in range(60))
    lock = f'lock-version = "1.0"\ncreated-by = "x"\npackages = []\n[tool.tape-jupyter]\nunhashed = [{listed}]\n'
    notes = verify_bundle(
        written(tmp_path, CONTENT | {"environment/pylock.toml": lock.encode()})
    ).notes
    assert len(notes) == 1 and "no digest" in notes[0] and "package-0" in notes[0]


def test_a_lock_that_is_none_is_a_problem(tmp_path):
    verdict = verify_bundle(written(tmp_path, CONTENT | {"environment/pylock.toml": b"= ="}))
    assert not verdict.good and "environment/pylock.toml cannot be used" in verdict.problems[0]


def test_what_its_maker_says_is_told_as_that_and_what_is_missing_as_well(tmp_path):
    said = made(
        differences=(manifest.ProofDifference(1, "the outputs differ"),),
        left_out=(manifest.LeftOut("data/all.parquet", 9_000_000_000, "0" * 64, "too large"),),
        redactions=(manifest.Redaction("session/churn.ipynb", "API key", 2),),
        lock=manifest.LockState(hashed=False, index="none", why="no index could be asked"),
    )
    verdict = verify_bundle(written(tmp_path, said=said))
    assert verdict.good
    text = "\n".join(line for _, line in verdict.lines())
    for line in (
        "0 of 1 cell came out as saved", "cell 1 differs: the outputs differ", "its maker masked 2 x API key",
        "data/all.parquet is not in it (9,000,000,000 bytes): too large", "have digests: no index could be asked",
    ):  # fmt: skip
        assert line in text


def test_nothing_in_it_writes_to_the_terminal_but_text(tmp_path):
    said = made(guards=("\x1b[2J\x1b]0;owned\x07 \u202eevil",), made_by="x\ny")
    code, text = told(written(tmp_path, said=said))
    assert (
        code == 0
        and "\x1b" not in text
        and "\x07" not in text
        and "\u202e" not in text
        and "x y" in text
    )


WATCHED = """
import sys
bad = []
def hear(event, args):
    if event in ("pickle.find_class", "os.exec", "os.system", "os.posix_spawn", "subprocess.Popen", "socket.connect"):
        bad.append(event)
    if event == "exec" and "evil" in getattr(args[0], "co_filename", ""):
        bad.append(args[0].co_filename)
    if event == "import" and "evil" in str(args[0]):
        bad.append(args[0])
from tape_jupyter.cli import tape
sys.addaudithook(hear)
try:
    tape(sys.argv[1:])
except SystemExit as end:
    print(end.code, bad)
"""


def test_no_code_of_it_runs(tmp_path):
    evil = b"open('/tmp/evil', 'w'); raise SystemExit('evil ran')\n"
    content = recording(tmp_path / "session") | {
        "session/evil.py": evil, "session/churn.ipynb": notebook("import evil"), "session/state.pkl": b"cos\nsystem\n(S'evil'\ntR.",
        "environment/sources/evil/setup.py": evil, "environment/sources/evil/evil/__init__.py": evil, "page.html": b"<script>evil</script>",
    }  # fmt: skip
    path = written(tmp_path / "evil", content)
    done = subprocess.run(
        [sys.executable, "-c", WATCHED, "verify", path],
        capture_output=True,
        text=True,
        cwd=tmp_path / "evil",
    )
    assert done.stdout.endswith("0 []\n"), done.stdout + done.stderr


def test_a_place_that_cannot_be_checked_is_an_error(tmp_path):
    with pytest.raises(BundleError, match="there is no such file or folder"):
        verify_bundle(tmp_path / "none.tape.zip")
    with pytest.raises(BundleError, match="there is no such signature"):
        verify_bundle(written(tmp_path), signature=tmp_path / "none.sig")


def test_the_notebooks_cells_are_those_of_the_manifest(tmp_path):
    content = recording(tmp_path / "session")
    good = made(content).cells
    cases = {
        "another source": [dataclasses.replace(good[0], source="0" * 64)],
        "another title": [dataclasses.replace(good[0], title="print(1)")],
        "another error": [dataclasses.replace(good[0], raises="ValueError")],
        "another number, id": [dataclasses.replace(good[0], number=2, id="two")],
        "the notebook has 1 code cells, the manifest 2": [
            *good,
            dataclasses.replace(good[0], number=2),
        ],
    }
    for said, cells in cases.items():
        verdict = verify_bundle(
            written(tmp_path / said, content, made(content, cells=tuple(cells)))
        )
        assert len(verdict.problems) == 1 and verdict.problems[0].endswith(said), verdict.problems


def test_saved_outputs_that_are_not_those_expected_are_a_note(tmp_path):
    content = recording(tmp_path / "session")
    cells = (dataclasses.replace(made(content).cells[0], outputs="1" * 64),)
    verdict = verify_bundle(written(tmp_path, content, made(content, cells=cells)))
    assert verdict.good and any(
        ": 1. The cause may be folder names" in note for note in verdict.notes
    )


def test_what_could_not_be_watched_is_told(tmp_path):
    content = recording(tmp_path / "session")
    verdict = verify_bundle(
        written(tmp_path, content, made(content, kit={"unseen": "parquet files"}))
    )
    assert (
        verdict.good
        and "its maker could not watch parquet files: what a cell reads so may be missing"
        in verdict.notes
    )
