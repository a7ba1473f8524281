"""Pruning drops what no replay can use, and nothing else, in one step."""

import os

import pytest

from tape_jupyter.cassette.cassette import Cassette
from tape_jupyter.errors import CassetteError, TapeUsageError
from tape_jupyter.cassette.runs import current_runs, run_of
from tape_jupyter.cassette.prune import prune_cassette
from tests.harness.tapes import Recorder, answered, asked, churn


def replayable(path):
    tape = Cassette.open(path, check="whole")
    used = {run.id for run in current_runs([run_of(run) for run in tape.runs])}
    return [(e.run, e.id, e.match, e.reply()) for e in tape.calls if e.run in used]


def test_only_recordings_that_were_replaced_go(tmp_path):
    path = churn(tmp_path)
    before, (old, *_) = replayable(path), [run["run"] for run in Cassette.open(path).runs]
    told = prune_cassette(path)
    assert (told.runs, told.calls) == ((old,), 1)
    assert told.after == path.stat().st_size < told.before
    assert (
        replayable(path) == before
        and "South" in path.read_text()
        and "North" not in path.read_text()
    )
    assert prune_cassette(path).runs == ()


def test_a_dry_run_tells_the_same_and_changes_nothing(tmp_path):
    path = churn(tmp_path)
    bytes_before = path.read_bytes()
    dry = prune_cassette(path, dry=True)
    assert path.read_bytes() == bytes_before
    assert prune_cassette(path) == dry


def test_an_old_run_stays_when_a_newer_request_takes_its_history_from_it(tmp_path):
    path = tmp_path / "main.tape.yaml"
    long = "a long opening that is worth referring to " * 20
    recorder = Recorder(path)
    recorder.run("aaaa", (asked(long), answered("one")))
    recorder.session = "s2"
    recorder.run("bbbb", (asked(long, "one", "and then?"), answered("two")))
    recorder.run("aaaa", (asked("short"), answered("three")))
    assert "<from>" in path.read_text()
    before = replayable(path)
    assert prune_cassette(path).runs == ()
    assert replayable(path) == before


def test_runs_that_add_to_the_newest_recording_stay(tmp_path):
    path = tmp_path / "main.tape.yaml"
    recorder = Recorder(path)
    first = recorder.run("aaaa", (asked("x"), answered("1")))
    recorder.run("aaaa", (asked("y"), answered("2")), mode="new_episodes", parent=first)
    assert prune_cassette(path).runs == ()
    recorder = Recorder(path, "s2")
    recorder.run("aaaa", (asked("x"), answered("3")))
    assert len(prune_cassette(path).runs) == 2


def test_a_run_that_others_tell_their_kit_by_loses_its_calls_only(tmp_path):
    path = tmp_path / "main.tape.yaml"
    first = Recorder(path)
    first.run("aaaa", (asked("x"), answered("old")))
    first.run("bbbb", (asked("y"), answered("kept")))
    Recorder(path, "s2").run("aaaa", (asked("x"), answered("new")))
    assert "like: " in path.read_text()
    kits, before = [run["kit"] for run in Cassette.open(path).runs], replayable(path)
    assert prune_cassette(path).calls == 1
    assert [run["kit"] for run in Cassette.open(path).runs] == kits and replayable(path) == before
    assert prune_cassette(path).runs == () and "old" not in path.read_text()


def test_long_texts_beside_the_cassette_go_with_the_last_call_that_names_them(tmp_path):
    path = tmp_path / "main.tape.yaml"
    Recorder(path).run(
        "aaaa", (asked("x"), answered("o" * 70_000)), (asked("s"), answered("s" * 70_000))
    )
    Recorder(path, "s2").run(
        "aaaa", (asked("x"), answered("n" * 70_000)), (asked("s"), answered("s" * 70_000))
    )
    assert len(list((tmp_path / "assets").iterdir())) == 3
    before = replayable(path)
    assert len(prune_cassette(path).assets) == 1
    assert replayable(path) == before and len(list((tmp_path / "assets").iterdir())) == 2


def test_a_torn_tail_goes_on_being_one(tmp_path):
    path = churn(tmp_path)
    with path.open("ab") as file:
        file.write(b"---\ncall: half")
    prune_cassette(path)
    assert path.read_bytes().endswith(b"...\n---\ncall: half")
    assert len(Cassette.open(path).calls) == 2


def test_what_takes_are_based_on_stays_to_the_byte(tmp_path):
    path = churn(tmp_path)
    main = Cassette.open(path)
    take = main.override(main.calls[1], reply="x", take="shorter")
    size = path.stat().st_size
    assert prune_cassette(path).runs == (), (
        "the run that was replaced stands before what the take needs"
    )
    Recorder(path, "s3").run("cccc", (asked("new?"), answered("old")))
    Recorder(path, "s4").run("cccc", (asked("new?"), answered("new")))
    Recorder(path, "s5").run("bbbb", (asked("other"), answered("bbbb anew")))
    before, base = replayable(path), path.read_bytes()[:size]
    assert prune_cassette(path).calls == 1
    assert path.read_bytes()[:size] == base and replayable(path) == before
    assert [e.reply() for e in Cassette.open(take.path).calls] == [e.reply() for e in take.calls]


def test_a_take_is_not_pruned(tmp_path):
    main = Cassette.open(churn(tmp_path))
    take = main.override(main.calls[1], reply="x", take="shorter")
    with pytest.raises(CassetteError, match="a take is not pruned"):
        prune_cassette(take.path)


def test_a_take_that_cannot_be_read_holds_all_of_its_cassette(tmp_path):
    path = churn(tmp_path)
    take = path.parent / "takes" / "main.shorter.tape.yaml"
    take.parent.mkdir()
    take.write_text("---\ntape: 1\n...\n")
    with pytest.raises(
        CassetteError, match="main.shorter.tape.yaml: does not say how much of main"
    ):
        prune_cassette(path)


def test_a_broken_cassette_is_left_as_it_is(tmp_path):
    path = churn(tmp_path)
    path.write_text(path.read_text().replace("status: 200", "status: 99", 1))
    broken = path.read_bytes()
    with pytest.raises(CassetteError):
        prune_cassette(path)
    assert path.read_bytes() == broken


@pytest.mark.parametrize("failing", ["fsync", "replace"])
def test_a_disk_that_fails_midway_leaves_the_cassette_and_no_litter(tmp_path, monkeypatch, failing):
    path = churn(tmp_path)
    whole = path.read_bytes()

    def fail(*_args, **_kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, failing, fail)
    with pytest.raises(CassetteError, match="No space left"):
        prune_cassette(path)
    assert path.read_bytes() == whole and [p.name for p in path.parent.iterdir()] == [path.name]


def test_a_file_that_cannot_be_written_is_said(tmp_path):
    with pytest.raises(CassetteError, match="cannot be opened"):
        prune_cassette(tmp_path / "none.tape.yaml")


def test_the_recording_before_is_gone_back_to_with_what_was_added_to_it(tmp_path):
    path = tmp_path / "main.tape.yaml"
    recorder = Recorder(path)
    first = recorder.run("aaaa", (asked("x"), answered("1")))
    recorder.run("aaaa", (asked("more"), answered("1+")), mode="new_episodes", parent=first)
    before = replayable(path)
    recorder.session = "s2"
    second = recorder.run("aaaa", (asked("x"), answered("2")))
    recorder.run("aaaa", (asked("more"), answered("2+")), mode="new_episodes", parent=second)
    recorder.session = "s3"
    recorder.run("aaaa", (asked("x"), answered("3")))
    text = path.read_bytes()
    dry = prune_cassette(path, dry=True, back_to=first)
    assert (len(dry.runs), dry.calls) == (3, 3) and path.read_bytes() == text
    assert prune_cassette(path, back_to=first) == dry
    assert replayable(path) == before


def test_no_recording_goes_that_a_take_is_based_on(tmp_path):
    path = churn(tmp_path)
    first = Cassette.open(path).runs[0]["run"]
    main = Cassette.open(path)
    main.override(main.calls[1], reply=answered("East"), take="mine")
    text = path.read_bytes()
    with pytest.raises(CassetteError, match="cannot be dropped: a take is based on it"):
        prune_cassette(path, back_to=first)
    with pytest.raises(TapeUsageError, match="r-none is not a run of it"):
        prune_cassette(path, back_to="r-none")
    assert path.read_bytes() == text
