"""Takes as people use them: which one plays, what a resent answer becomes, calls by their names, and files that others moved."""

import dataclasses
import errno
import os

import pytest

import tape_jupyter as tape
from tape_jupyter.cassette.cassette import Cassette
from tape_jupyter.cassette.merge import merge_cassettes
from tape_jupyter.cassette.prune import find_cassette_of_run, prune_cassette
from tape_jupyter.cassette.records import Head
from tape_jupyter.cassette.takes import files, overrides
from tape_jupyter.cassette.takes.promotion import promote
from tape_jupyter.cassette.takes.undo import undo
from tape_jupyter.core.call import FunctionCall, Value, Where
from tape_jupyter.errors import CassetteError, TapeUsageError
from tests.harness.tapes import Recorder, answered, asked, churn


@pytest.fixture
def path(tmp_path):
    return churn(tmp_path)


@pytest.fixture
def takes(path):
    """Three takes: two of the first cassette, `quiet` the newest; none of the second."""
    main = tape.open(path)
    for number, name in enumerate(("angry", "calm", "quiet")):
        take = main.override(main.calls[1], reply=answered(name), take=name).path
        os.utime(take, ns=(number * 10**9, number * 10**9))
    other = churn(path.parent.parent / "more")
    return [other, path]


def test_the_named_take_plays_else_the_chosen_one_else_the_newest(takes):
    other, path = takes
    assert files.choose_take(takes) == (path, "quiet")
    assert files.choose_take(takes, "calm") == (path, "calm")
    files.choose(path, "angry")
    assert files.choose_take(takes) == (path, "angry")
    assert files.choose_take(takes, "calm") == (path, "calm")
    with pytest.raises(TapeUsageError, match=r"main.tape.yaml has no take 'gone'"):
        files.choose_take(takes, "gone")
    with pytest.raises(
        TapeUsageError, match=r"main.tape.yaml has no takes: override a reply first"
    ):
        files.choose_take([other])


@pytest.mark.parametrize(
    ("word", "option", "name"),
    [("a", None, "a"), (None, "a", "a"), ("a", "a", "a"), (None, None, ""), ("", "b", "b")],
)
def test_a_take_is_named_once(word, option, name):
    assert files.require_one_name(word, option) == name


def test_two_names_for_one_take_are_refused():
    with pytest.raises(TapeUsageError, match="two takes are named, 'a' and 'b': name one"):
        files.require_one_name("a", "b")


def test_undoing_one_of_two_changes_keeps_the_take_chosen_and_undoing_the_last_does_not(path):
    main = tape.open(path)
    take = main.override(main.calls[1], reply=answered("East"), take="angry")
    take.override(main.calls[2], value=7)
    files.choose(path, "angry")
    undo(path, "angry")
    assert files.default_take(path) == "angry"
    undo(path, "angry")
    assert files.default_take(path) == "" and files.put_aside(path, "none") == []
    assert len(files.put_aside(path, "angry")) == 2


def resent(path, reply, at="2026-11-22T09:00:00.000Z", of=None):
    """A take with an answer to the second call's request, sent again; gives the take."""
    main = Cassette.open(path)
    call = of or main.calls[1]
    take = Cassette.open(path).take("resend")
    recorder = Recorder(path, "s7")
    recorder.cassette = take
    run = take.start_run({"mode": "resend", "resend of": call.name, "at": at}, {})
    recorder.call(run, call.request(), reply, {})
    return Cassette.open(take.path)


def test_a_resent_answer_plays_where_it_is_promoted_and_the_newest_counts(path):
    resent(path, answered("first"))
    take = resent(path, answered("second"))
    assert [entry.name for entry in promote(take)] == [take.calls[1].name]
    (override,) = Cassette.open(take.path).overrides
    assert b"second" in override.reply().body
    assert b"South" in Cassette.open(path).calls[1].reply().body


def test_what_was_promoted_is_not_promoted_again(path):
    take = resent(path, answered("first"))
    promote(take)
    with pytest.raises(TapeUsageError, match="take resend has no answer to promote"):
        promote(Cassette.open(take.path))
    with pytest.raises(
        TapeUsageError, match="has no answer to promote; make one with: tape resend"
    ):
        promote(Cassette.open(path).take("empty"))


@pytest.mark.parametrize(
    ("reply", "what"),
    [
        (answered("no", 400), r"an error \(400\)"),
        (answered("no", 529), r"an error \(529\)"),
        (dataclasses.replace(answered("half"), end="cut short"), "cut short"),
    ],
)
def test_an_answer_that_is_an_error_is_not_promoted(path, reply, what):
    take = resent(path, reply)
    with pytest.raises(TapeUsageError, match=f"is {what}: it stays in take resend"):
        promote(take)
    assert Cassette.open(take.path).overrides == []


def test_an_answer_short_of_an_error_is_promoted(path):
    assert len(promote(resent(path, answered("moved", 399)))) == 1


def test_a_call_is_named_by_its_id_or_with_its_run(path):
    book = Cassette.open(path)
    old, new, tool = book.calls
    assert old.id == new.id
    assert overrides.find_call(book, new.id) is new and overrides.find_call(book, new) is new
    assert overrides.find_call(book, old.name) is old
    assert overrides.find_call(book, tool.id) is tool
    with pytest.raises(TapeUsageError, match=f"no call 'r-0/{new.id}' in main.tape.yaml; near: "):
        overrides.find_call(book, f"r-0/{new.id}")
    with pytest.raises(TapeUsageError, match=f"near: {tool.id}$"):
        overrides.find_call(book, f"{tool.id[:3]}zzzzz")
    with pytest.raises(TapeUsageError, match="no call 'zzz'.*; tape calls lists them"):
        overrides.find_call(book, "zzz")


def test_a_call_of_several_cells_is_told_by_its_run(path):
    Recorder(path, "s3").run("cccc", (asked("Which region?"), answered("West")))
    book = Cassette.open(path)
    south, west = book.calls[1], book.calls[-1]
    with pytest.raises(TapeUsageError, match=f"several runs hold a call {west.id}; say which: {south.name}, {west.name}"):  # fmt: skip
        overrides.find_call(book, west.id)
    assert overrides.find_call(book, south.name) is south


def inside(path):
    """A tool that asked another tool, which asked a model: the three calls."""
    recorder = Recorder(path)
    run = recorder.run("aaaa", outcome="")
    names = []
    for number, (call, reply) in enumerate((
        (FunctionCall("outer", {}), Value(1)), (FunctionCall("inner", {}), Value(2)), (asked("in"), answered("there")),
    )):  # fmt: skip
        head = Head(f"{number:08x}", run, f"{number:032x}", "tool", Where(parent=names[-1] if names else ""), "2026-11-21T20:41:07.600Z", 0.5)  # fmt: skip
        recorder.cassette.append_call(head, call, reply, recorder.secrets)
        names.append(head.call)
    return Cassette.open(path)


def test_a_call_knows_in_whose_body_it_was_made(tmp_path):
    book = inside(tmp_path / "main.tape.yaml")
    outer, inner, model = book.calls
    assert list(overrides.callers(book, model)) == [inner.id, outer.id]
    assert list(overrides.callers(book, inner)) == [outer.id]
    assert overrides.callers(book, outer) == {}


def test_a_caller_that_is_gone_or_is_the_call_itself_ends_the_chain(tmp_path):
    path = tmp_path / "main.tape.yaml"
    inside(path)
    text = path.read_text()
    path.write_text(text.replace('parent: "00000001"', 'parent: "00000009"'))
    book = Cassette.open(path)
    assert overrides.callers(book, book.calls[-1]) == {}
    path.write_text(text.replace('parent: "00000000"', 'parent: "00000001"'))
    book = Cassette.open(path)
    assert list(overrides.callers(book, book.calls[-1])) == ["00000001"]


def test_an_overridden_call_is_found_in_the_bodies_around_it_until_these_are_overridden(tmp_path):
    book = inside(tmp_path / "main.tape.yaml")
    take = book.override(book.calls[2], reply=answered("other"), take="t")
    outer, inner, model = (take.by_name[call.run, call.id] for call in book.calls)
    assert overrides.overridden_inside(take, outer) == [model]
    assert overrides.overridden_inside(take, inner) == [model]
    assert overrides.overridden_inside(take, model) == []
    take = take.override(inner, value=7)
    outer, inner, model = (take.by_name[call.run, call.id] for call in book.calls)
    assert overrides.overridden_inside(take, inner) == []
    assert {each.id for each in overrides.overridden_inside(take, outer)} == {inner.id, model.id}


def test_a_take_plays_over_a_base_whose_line_ends_git_changed(path):
    main = tape.open(path)
    take = main.override(main.calls[1], reply=answered("East"), take="t").path
    Recorder(path, "s9").run("eeee", (asked("more"), answered("after")))
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    again = Cassette.open(take, check="whole")
    assert b"East" in again.calls[1].reply().body and len(again.calls) == 3
    path.write_bytes(path.read_bytes().replace(b"North", b"Nerth"))
    with pytest.raises(CassetteError, match="those were changed since"):
        Cassette.open(take)


@pytest.mark.parametrize("header", ["bytes: 0", "bytes: x", "bytes: -1", "bytes: true"])
def test_a_take_says_how_much_it_is_of(path, header):
    take = tape.open(path).override(tape.open(path).calls[1], reply=answered("East"), take="t").path
    take.write_text(take.read_text().replace(f"bytes: {path.stat().st_size}", header))
    with pytest.raises(CassetteError, match="needs `base:` with `bytes` and `sha256` of its base"):
        Cassette.open(take)
    with pytest.raises(CassetteError, match=r"does not say how much of main.tape.yaml it is based"):
        files.extent(path)


def test_takes_move_where_a_disk_has_no_links_and_are_never_written_over(path, monkeypatch):
    main = tape.open(path)
    take = main.override(main.calls[1], reply=answered("East"), take="one")
    data = take.path.read_bytes()
    monkeypatch.setattr(os, "link", _refuse_link)
    moved = files.rename(path, "one", "two")
    assert moved.read_bytes() == data and not take.path.exists()
    main.override(main.calls[1], reply=answered("West"), take="three")
    with pytest.raises(TapeUsageError, match="a take 'two' exists already; nothing is overwritten"):
        files.rename(path, "three", "two")
    assert moved.read_bytes() == data
    monkeypatch.setattr(type(path), "rename", _refuse_link)
    with pytest.raises(CassetteError, match="cannot be moved: Operation not permitted"):
        files.rename(path, "two", "four")


def _refuse_link(*_, **__):
    raise OSError(errno.EPERM, os.strerror(errno.EPERM))


def test_cassettes_are_joined_where_a_disk_has_no_links(path, tmp_path, monkeypatch):
    other = churn(tmp_path / "more")
    monkeypatch.setattr(os, "link", _refuse_link)
    goal = tmp_path / "joined.tape.yaml"
    assert merge_cassettes(path, other, goal).path == goal
    assert len(Cassette.open(goal, check="whole").calls) == 6
    assert [each.name for each in tmp_path.glob(".*")] == []


def test_a_file_that_came_in_between_is_not_written_over(path, tmp_path, monkeypatch):
    goal = tmp_path / "joined.tape.yaml"

    def link(*_, **__):
        goal.write_text("theirs")
        raise FileExistsError

    monkeypatch.setattr(os, "link", link)
    with pytest.raises(TapeUsageError, match="was created by another program meanwhile"):
        merge_cassettes(path, churn(tmp_path / "more"), goal)
    assert goal.read_text() == "theirs"


def test_a_full_disk_is_told_when_cassettes_are_joined(path, tmp_path, monkeypatch):
    def sync(_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    other = churn(tmp_path / "more")
    monkeypatch.setattr(os, "fsync", sync)
    with pytest.raises(CassetteError, match="cannot be written: No space left on device"):
        merge_cassettes(path, other, tmp_path / "joined.tape.yaml")
    assert not (tmp_path / "joined.tape.yaml").exists()


def test_of_several_cassettes_the_one_that_holds_a_run_is_pruned(path, tmp_path):
    other = churn(tmp_path / "more")
    run = Cassette.open(path).runs[0]["run"]
    assert find_cassette_of_run([other, path], run) == path
    assert find_cassette_of_run([other], run) == other
    other.write_text("broken")
    assert find_cassette_of_run([other, path], run) == path
    with pytest.raises(TapeUsageError, match="r-0 is not a run of any cassette of the notebook"):
        find_cassette_of_run([path, other], "r-0")


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_a_cassette_saved_without_its_last_line_end_is_whole(path, tmp_path, end):
    data = path.read_bytes().replace(b"\n", end)
    path.write_bytes(data.removesuffix(end))
    assert len(Cassette.open(path, check="whole").calls) == 3 and Cassette.open(path).torn == 0
    joined = merge_cassettes(path, churn(tmp_path / "more"), tmp_path / "joined.tape.yaml").path
    assert len(Cassette.open(joined, check="whole").calls) == 6
    assert prune_cassette(path).calls == 1
    assert [entry.id for entry in Cassette.open(path, check="whole").calls][-1]
    Recorder(path, "s9").run("zzzz", (asked("more"), answered("kept")))
    assert len(Cassette.open(path, check="whole").calls) == 3


def test_two_who_put_a_take_aside_at_once_lose_nothing(path, monkeypatch):
    main = tape.open(path)
    data = main.override(main.calls[1], reply=answered("East"), take="t").path.read_bytes()
    link, met = os.link, []

    def theirs_first(source, goal, **more):
        if not met:
            met.append(goal)
            goal.write_text("theirs")
        link(source, goal, **more)

    monkeypatch.setattr(os, "link", theirs_first)
    aside = files.delete(path, "t")
    assert aside.name == "main.t-2.tape.yaml" and aside.read_bytes() == data
    assert met[0].read_text() == "theirs"
