"""`tape merge`: two cassettes that diverged are one again, and nothing of either is lost or changed."""

import random
import shutil

import pytest

import tape_jupyter as tape
from tape_jupyter.reports import listing
from tape_jupyter.cassette import merge
from tape_jupyter.core.call import FunctionCall, Value
from tape_jupyter.cassette.cassette import Cassette
from tests.harness.tapes import Recorder, answered, asked


def diverged(tmp_path):
    """A recording that two people went on with, each in a copy."""
    a, b = tmp_path / "a" / "main.tape.yaml", tmp_path / "b" / "main.tape.yaml"
    Recorder(a, "s0").run("cell-1", (asked("Which region?"), answered("North")))
    b.parent.mkdir()
    shutil.copy(a, b)
    Recorder(a, "s1").run("cell-2", (asked("Ours"), answered("one")), at="2026-11-22T09:00:00.000Z")
    Recorder(b, "s2").run(
        "cell-3", (asked("Theirs"), answered("two")), at="2026-11-22T08:00:00.000Z"
    )
    return a, b


def replies(path):
    return {
        (entry.run, entry.id): entry.reply() for entry in Cassette.open(path, check="whole").calls
    }


def test_both_branches_calls_are_there_and_neither_file_changed(tmp_path):
    a, b = diverged(tmp_path)
    before = a.read_bytes(), b.read_bytes()
    done = merge.merge_cassettes(a, b)
    assert (a.read_bytes(), b.read_bytes()) == before
    assert done.path == tmp_path / "a" / "main-merged.tape.yaml"
    assert replies(done.path) == {**replies(a), **replies(b)}
    assert not done.conflicts and not done.superseded and done.both == 4


def test_what_was_recorded_earlier_comes_first(tmp_path):
    a, b = diverged(tmp_path)
    merged = Cassette.open(merge.merge_cassettes(a, b).path)
    assert [run["source"] for run in merged.runs] == ["cell-1", "cell-3", "cell-2"]


def test_it_does_not_matter_which_is_named_first(tmp_path):
    a, b = diverged(tmp_path)
    one, two = (
        merge.merge_cassettes(a, b, tmp_path / "one.tape.yaml"),
        merge.merge_cassettes(b, a, tmp_path / "two.tape.yaml"),
    )
    assert one.path.read_bytes() == two.path.read_bytes()


def test_joining_what_was_joined_changes_nothing(tmp_path):
    a, b = diverged(tmp_path)
    once = merge.merge_cassettes(a, b).path
    assert merge.merge_cassettes(once, b).path.read_bytes() == once.read_bytes()
    assert (
        merge.merge_cassettes(a, once, tmp_path / "again.tape.yaml").path.read_bytes()
        == once.read_bytes()
    )


def test_a_cell_recorded_on_both_sides_replays_the_newer_and_the_older_is_named(tmp_path):
    a, b = diverged(tmp_path)
    old = Recorder(a, "s3").run(
        "cell-4", (asked("Q"), answered("old")), at="2026-11-22T10:00:00.000Z"
    )
    new = Recorder(b, "s4").run(
        "cell-4", (asked("Q"), answered("new")), at="2026-11-22T11:00:00.000Z"
    )
    done = merge.merge_cassettes(b, a)
    assert done.superseded == {old: new}
    used = {run["run"] for run in listing.run_records(Cassette.open(done.path)) if run["replayed"]}
    assert new in used and old not in used
    assert f"run {old} no longer counts: {new} is newer" in merge.merge_text(done, b, a)


def test_a_reply_edited_in_one_of_them_is_a_conflict_that_is_named_and_nothing_is_written(tmp_path):
    a, b = diverged(tmp_path)
    b.write_text(b.read_text().replace("North", "South"))
    done = merge.merge_cassettes(a, b)
    call = Cassette.open(a).calls[0]
    assert done.path is None and [each.what for each in done.conflicts] == [
        f"call {call.id} of run {call.run}"
    ]
    assert f"{a}:{call.line}" in merge.merge_text(done, a, b) and "--prefer" in merge.merge_text(
        done, a, b
    )
    assert sorted(path.name for path in a.parent.iterdir()) == ["main.tape.yaml"]


@pytest.mark.parametrize(("prefer", "said"), [("a", "North"), ("b", "South")])
def test_a_person_says_whose_counts(tmp_path, prefer, said):
    a, b = diverged(tmp_path)
    b.write_text(b.read_text().replace("North", "South"))
    done = merge.merge_cassettes(a, b, prefer=prefer)
    assert (
        said.encode() in Cassette.open(done.path).calls[0].reply().body and len(done.conflicts) == 1
    )


def test_no_file_is_ever_overwritten(tmp_path):
    a, b = diverged(tmp_path)
    for there in (a, b):
        with pytest.raises(tape.TapeUsageError, match="exists already"):
            merge.merge_cassettes(a, b, there)
    first, second = merge.merge_cassettes(a, b).path, merge.merge_cassettes(a, b).path
    assert second.name == "main-merged-2.tape.yaml" and first.read_bytes() == second.read_bytes()


def test_long_texts_come_along(tmp_path):
    a, b = diverged(tmp_path)
    long = "long " * 20_000
    Recorder(b, "s5").run("cell-5", (FunctionCall("read", {}), Value(long)))
    done = merge.merge_cassettes(a, b, tmp_path / "out.tape.yaml")
    found = [entry.reply() for entry in Cassette.open(done.path, check="whole").calls]
    assert [reply.value for reply in found if isinstance(reply, Value)] == [long]


def test_a_record_that_was_never_finished_is_left_out_and_said(tmp_path):
    a, b = diverged(tmp_path)
    a.write_bytes(a.read_bytes() + b"---\ncall: 12345678\nrun: r-")
    done = merge.merge_cassettes(a, b)
    assert replies(done.path) == {**replies(a), **replies(b)}
    assert any("never finished" in note for note in done.notes)


def test_takes_of_one_cassette_are_joined_and_the_later_override_counts(tmp_path):
    main = tmp_path / "main.tape.yaml"
    Recorder(main).run("cell", (asked("Q"), answered("one")), (asked("R"), answered("two")))
    cassette = Cassette.open(main)
    first, second = cassette.calls
    ours = cassette.override(first, text="ours", take="ours")
    theirs = cassette.override(first, text="theirs", take="theirs")
    theirs.override(second, text="theirs too")
    done = merge.merge_cassettes(ours.path, theirs.path)
    merged = Cassette.open(done.path, check="whole")
    assert done.path.name == "main.ours-merged.tape.yaml" and len(merged.overrides) == 3
    assert (
        b"theirs" in merged.calls[0].reply().body and b"theirs too" in merged.calls[1].reply().body
    )
    assert any("overridden in both" in note for note in done.notes)


def test_a_take_and_a_cassette_are_not_joined(tmp_path):
    a, b = diverged(tmp_path)
    cassette = Cassette.open(a)
    take = cassette.override(cassette.calls[0], text="x", take="x")
    with pytest.raises(tape.TapeUsageError, match="is a take and"):
        merge.merge_cassettes(take.path, b)


@pytest.mark.parametrize(
    "content", ["", "no cassette", "---\ntape: 99\n...\n", "---\ntape: 1\n...\n<<<<<<< ours\n"]
)
def test_what_is_no_sound_cassette_is_refused_and_nothing_is_written(tmp_path, content):
    a, b = diverged(tmp_path)
    b.write_text(content)
    for pair in ((a, b), (b, a), (a, tmp_path / "gone.tape.yaml")):
        with pytest.raises(tape.TapeError):
            merge.merge_cassettes(*pair, tmp_path / "out.tape.yaml")
    assert (
        sorted(each.name for each in tmp_path.rglob("*") if each.is_file())
        == ["main.tape.yaml"] * 2
    )


@pytest.mark.parametrize("seed", range(20))
def test_however_two_kernels_went_on_every_record_is_kept_once_in_its_order(tmp_path, seed):
    draw = random.Random(seed)
    a, b = diverged(tmp_path)
    for number in range(draw.randrange(1, 8)):
        path = draw.choice((a, b))
        at = f"2026-11-{draw.randrange(10, 28)}T10:00:00.000Z"
        calls = [
            (asked(f"{seed}-{number}-{n}"), answered(str(n))) for n in range(draw.randrange(3))
        ]
        Recorder(path, f"k{number}").run(f"cell-{draw.randrange(4)}", *calls, at=at)
    out = merge.merge_cassettes(a, b).path
    merged = records(out)
    assert sorted(merged) == sorted({*records(a), *records(b)})
    for path in (a, b):
        own = records(path)
        assert [each for each in merged if each in set(own)] == own
    Cassette.open(out, check="whole")


def records(path):
    return [each for each in path.read_text().split("...\n") if each and "tape: 1" not in each]
