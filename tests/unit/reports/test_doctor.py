"""`tape doctor` finds what would go wrong, says what to do, and changes nothing."""

import json
from importlib import metadata

import pytest

from tape_jupyter.reports import doctor
from tests.harness.tapes import churn


def by_name(found):
    return {each.about: each for each in found}


def test_a_sound_environment_and_cassette_have_nothing_wrong(tmp_path):
    path = churn(tmp_path)
    before = sorted(p.name for p in path.parent.iterdir())
    found = by_name(doctor.findings([path], path.parent))
    assert {
        "python",
        "packages",
        "kernel",
        "extension",
        "folder",
        "lock",
        "tap httpx",
        "main.tape.yaml",
    } <= set(found)
    assert [each for each in found.values() if each.grade == "wrong"] == []
    assert "3 runs, 3 calls" in found["main.tape.yaml"].text
    assert sorted(p.name for p in path.parent.iterdir()) == before
    assert json.loads(doctor.doctor_json(list(found.values())))[0]["about"] == "python"


def test_another_program_of_the_commands_name_is_named(monkeypatch, tmp_path):
    ours, other = tmp_path / "ours", tmp_path / "other"
    for folder, said in ((ours, "from tape_jupyter.cli import main"), (other, "import tape")):
        folder.mkdir()
        (folder / "tape").write_text(f"#!/usr/bin/env python3\n{said}\n")
        (folder / "tape").chmod(0o755)
    for path, grade, word in (
        (str(ours), "ok", str(ours)),
        (f"{other}:{ours}", "wrong", f"{other}/tape is another program"),
        ("", "note", "python -m tape_jupyter"),
    ):
        monkeypatch.setenv("PATH", path)
        told = doctor.check_command()
        assert (told.grade, word in told.text) == (grade, True), told


@pytest.mark.parametrize(
    ("version", "grade", "word"),
    [
        (None, "note", "not installed"),
        ("0.20.0", "wrong", "too old"),
        ("0.28.1", "ok", "0.28.1"),
        ("9.0", "note", "newer"),
    ],
)
def test_a_library_is_graded_by_what_the_taps_were_tried_with(monkeypatch, version, grade, word):
    def told(_name):
        if version is None:
            raise metadata.PackageNotFoundError
        return version

    monkeypatch.setattr(metadata, "version", told)
    assert (doctor.tap("httpx").grade, word in doctor.tap("httpx").text) == (grade, True)


def test_a_broken_record_is_found_with_its_line(tmp_path):
    path = churn(tmp_path)
    path.write_text(path.read_text().replace("status: 200", "status: 99", 1))
    told = doctor.cassette(path)
    assert told.grade == "wrong" and f"{path}:" in told.text


def test_edits_torn_tails_and_runs_without_end_are_worth_a_note(tmp_path):
    path = churn(tmp_path)
    text = path.read_text().replace("text: South", "text: East")
    path.write_text(text[: text.rindex("---\nend:")] + "---\ncall: half")
    told = doctor.cassette(path)
    assert told.grade == "note"
    assert (
        "1 reply edited by hand" in told.text
        and "without an end" in told.text
        and "never finished" in told.text
    )


def test_a_folder_that_is_not_there_cannot_be_recorded_into(tmp_path):
    assert doctor.writable(tmp_path / "none").grade == "wrong"
    assert doctor.check_locks(tmp_path / "none").grade == "wrong"


def test_a_check_that_fails_is_itself_a_finding(monkeypatch, tmp_path):
    monkeypatch.setattr(doctor, "check_python", lambda: 1 / 0)
    found = by_name(doctor.findings([], tmp_path))
    assert found["python"].grade == "wrong" and "ZeroDivisionError" in found["python"].text
