"""The deck: what a cell leaves on the tape besides its calls, and what a session does between cells."""

import errno
import os
import resource
import shutil
import socket
from contextlib import contextmanager

import httpx
import pytest

import tape_jupyter as tape

from tape_jupyter import instrumentation
from tape_jupyter.errors import (
    BlockedConnection,
    CassetteError,
    NotebookUnknown,
    TapeUsageError,
    UnmatchedCall,
)
from tape_jupyter.session.session import CellRequest, TapeSession, source_hash
from tests.harness.notebook import notebook
from tests.harness.provider import Provider
from tests.harness.taped_cells import ask, on_tape, taped


@pytest.fixture(scope="module")
def provider():
    with Provider(vary=True) as provider:
        yield provider


@pytest.fixture
def path(tmp_path):
    return tmp_path / "nb.tapes" / "main.tape.yaml"


@contextmanager
def no_file_longer_than(size):
    """A full disk: a write beyond that fails, with the error that a quota gives."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_run_says_which_cell_made_it_when_and_in_which_mode(deck, provider, path):
    with taped(deck, "record", path, "ask('one')\n", cell_id="c1", count=7):
        ask(provider, "one")
    run = on_tape(path).runs[0]
    assert (run["mode"], run["cell"], run["count"]) == ("record", "c1", 7)
    assert run["source"] == source_hash("\nask('one')")
    assert run["session"] == deck.session
    assert run["at"].endswith("Z")
    assert "parent" not in run


def test_a_run_that_adds_to_a_recording_names_it_as_its_parent(deck, provider, path):
    with taped(deck, "record", path):
        ask(provider, "one")
    with taped(deck, "new_episodes", path):
        ask(provider, "two")
    first, second = on_tape(path).runs
    assert second["parent"] == first["run"]


def test_the_kit_of_a_run_is_on_the_tape_when_its_cell_is_over(deck, provider, path):
    deck.set("user_id", "ada")
    with taped(deck, "record", path):
        ask(provider, "one")
    kit = on_tape(path).runs[0]["kit"]
    assert kit["user_id"] == "ada"
    assert {"clock", "random", "python", "platform", "distributions", "variables"} <= kit.keys()


def test_a_persons_own_pattern_is_masked_from_then_on(deck, provider, path):
    deck.set("redact", r"\bcase-\d+\b")
    with taped(deck, "record", path):
        live = ask(provider, "what of case-4711")
    assert "case-4711" not in path.read_text()
    assert "case-4711" in live


@pytest.mark.parametrize("key", ["", "user id", "a.b"])
def test_what_cannot_be_set_is_said_with_an_example(deck, key):
    with pytest.raises(TapeUsageError, match="user_id=ada"):
        deck.set(key, "x")


@pytest.mark.parametrize("mode", ["record", "once", "new_episodes", "live"])
def test_a_cell_without_calls_writes_nothing(deck, path, mode):
    with taped(deck, mode, path):
        pass
    assert not path.parent.exists()


def test_a_run_ends_ok_with_the_number_of_its_calls(deck, provider, path):
    with taped(deck, "record", path):
        ask(provider, "one")
        ask(provider, "two")
    (end,) = on_tape(path).ended.values()
    assert (end["outcome"], end["calls"]) == ("ok", 2)
    assert "error" not in end and "cold" not in end


def test_a_run_whose_cell_raised_says_so_and_keeps_its_calls(deck, provider, path):
    with pytest.raises(ZeroDivisionError), taped(deck, "record", path) as cell:
        ask(provider, "one")
        1 / 0
    (end,) = on_tape(path).ended.values()
    assert (end["outcome"], end["error"], end["calls"]) == (
        "raised",
        "ZeroDivisionError: division by zero",
        1,
    )
    assert cell.report.incomplete


def test_a_run_that_was_interrupted_says_so(deck, provider, path):
    with pytest.raises(KeyboardInterrupt), taped(deck, "record", path):
        ask(provider, "one")
        raise KeyboardInterrupt
    (end,) = on_tape(path).ended.values()
    assert end["outcome"] == "interrupted"


def test_what_went_past_the_tape_marks_the_run_cold(deck, provider, path):
    with taped(deck, "record", path):
        ask(provider, "one")
        socket.create_connection(("127.0.0.1", provider.port)).close()
    (end,) = on_tape(path).ended.values()
    assert len(end["cold"]) == 1
    assert f"127.0.0.1:{provider.port}" in end["cold"][0]


def test_the_same_cell_recorded_twice_keeps_both_runs_and_replays_the_newer(deck, provider, path):
    with taped(deck, "record", path, cell_id="c"):
        ask(provider, "one")
    with taped(deck, "record", path, cell_id="c"):
        newer = ask(provider, "one")
    with taped(deck, "replay", path, cell_id="c"):
        assert ask(provider, "one") == newer
    assert len(on_tape(path).runs) == 2


def test_live_is_observed_and_not_written(deck, provider, path):
    with taped(deck, "live", path) as cell:
        ask(provider, "one")
    assert [row.kind for row in cell.report.calls] == ["model"]
    assert not path.parent.exists()


def test_a_mode_that_does_not_exist_is_refused(deck, path):
    for begin in (
        lambda: deck.set_session("recrod"),
        lambda: deck.begin(CellRequest("recrod", path=path)),
    ):
        with pytest.raises(TapeUsageError, match="'recrod' is not a mode"):
            begin()


def test_without_a_notebook_the_cassette_must_be_named(deck):
    with pytest.raises(NotebookUnknown, match="%%tape record NAME"):
        deck.begin(CellRequest("record"))


def test_a_session_that_replays_sends_nothing_between_its_cells(deck, provider):
    before = len(provider.requests)
    deck.set_session("replay")
    with pytest.raises(BlockedConnection, match="no taped cell is running"):
        ask(provider, "between")
    with pytest.raises(BlockedConnection), socket.socket() as own:
        own.connect(("127.0.0.1", provider.port))
    sent = httpx.post(f"{provider.url}/v1/traces", json={"resourceSpans": []})
    assert sent.status_code == 200  # telemetry, in silence
    assert len(provider.requests) == before
    deck.set_session("off")
    assert ask(provider, "live again")


def test_a_session_that_replays_has_placeholders_from_its_start_to_its_end(deck, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    deck.set_session("replay")
    assert os.environ["OPENAI_API_KEY"]
    deck.set_session("record")
    assert "OPENAI_API_KEY" not in os.environ


def test_a_replayed_cell_that_takes_the_tape_off_is_guarded_to_its_end(deck, provider, path):
    with taped(deck, "record", path):
        ask(provider, "known")
    before = len(provider.requests)
    with taped(deck, "replay", path):
        deck.set_session("off")
        ask(provider, "known")
        with pytest.raises(UnmatchedCall):
            ask(provider, "another")
        with pytest.raises(BlockedConnection):
            socket.create_connection(("127.0.0.1", provider.port))
    assert len(provider.requests) == before
    assert ask(provider, "live") and instrumentation.current() is None


def test_a_recorded_cell_that_takes_the_tape_off_is_on_the_tape_to_its_end(deck, provider, path):
    with taped(deck, "record", path):
        deck.set_session("off")
        ask(provider, "one")
    assert len(on_tape(path).calls) == 1 and instrumentation.current() is None


def test_a_mode_set_within_a_cell_that_took_the_tape_off_holds_after_it(deck, provider, path):
    with taped(deck, "record", path):
        deck.set_session("off")
        deck.set_session("live")
    assert instrumentation.current() is not None


def test_a_sessions_placeholders_stay_until_its_cell_is_over(deck, monkeypatch, path, provider):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with taped(deck, "record", path):
        ask(provider, "one")
    deck.set_session("replay")
    with taped(deck, "replay", path, explicit=False):
        deck.set_session("off")
        assert os.environ["OPENAI_API_KEY"]
    assert "OPENAI_API_KEY" not in os.environ


def test_an_edit_between_two_cells_is_seen_by_the_next(deck, provider, path):
    with taped(deck, "record", path):
        live = ask(provider, "one")
    with taped(deck, "replay", path):
        assert ask(provider, "one") == live
    path.write_text(path.read_text().replace(live, "Edited."))
    with taped(deck, "replay", path) as cell:
        assert ask(provider, "one") == "Edited."
    assert any("edited by hand" in note for note in cell.report.notes)


def test_a_cassette_broken_between_two_cells_is_named_and_works_again_once_it_is_mended(
    deck, provider, path
):
    with taped(deck, "record", path):
        live = ask(provider, "one")
    good = path.read_text()
    path.write_text(good.replace("status: 200", "status: 99999"))
    for _ in range(2):
        with (
            pytest.raises(CassetteError, match=r"main\.tape\.yaml:\d+: status 99999"),
            taped(deck, "replay", path),
        ):
            pytest.fail("the cell ran")
    path.write_text(good)
    with taped(deck, "replay", path):
        assert ask(provider, "one") == live


def test_a_renamed_notebook_is_offered_its_cassettes_and_nothing_starts_empty(
    deck, provider, tmp_path
):
    (tmp_path / "old.tapes").mkdir()
    with taped(deck, "record", tmp_path / "old.tapes" / "main.tape.yaml", "the source"):
        ask(provider, "one")
    for mode in ("record", "replay", "once"):
        with pytest.raises(TapeUsageError, match=r"%tape set adopt=old\.tapes"):
            deck.begin(CellRequest(mode, source="the source", notebook=tmp_path / "new.ipynb"))
    assert deck.active is None


def test_a_take_that_the_session_names_may_be_of_another_cassette_but_must_be_there(
    deck, provider, path
):
    other = path.with_name("other.tape.yaml")
    for each, text in ((path, "one"), (other, "two")):
        with taped(deck, "record", each):
            ask(provider, text)
    tape.open(path).override(tape.open(path).calls[0], text="East", take="fix")
    deck.forced = True
    deck.set_session("replay", {"take": "fix"})
    for each, text, take in ((path, "one", "fix"), (other, "two", "")):
        with taped(deck, "record", each) as cell:
            assert (ask(provider, text) == "East") is bool(take)
        assert cell.report.take == take
    deck.set_session("replay", {"take": "fixx"})
    with pytest.raises(TapeUsageError, match="main.tape.yaml has no take 'fixx'; there are: fix"):
        deck.begin(CellRequest("record", path=path))
    deck.set_session("replay", {"take": "main"})
    deck.check(CellRequest("record", path=other))


def test_what_is_typed_again_at_a_terminal_is_recorded_again(deck, provider, path):
    for _ in range(2):
        with taped(deck, "record", path, "ask('one')", typed=True):
            newest = ask(provider, "one")
    for new in (deck, TapeSession()):
        with taped(new, "replay", path, "ask('one')", typed=True) as cell:
            assert ask(provider, "one") == newest
        assert not [note for note in cell.report.notes if "recording 1" in note]


def test_where_no_ids_are_told_each_run_plays_the_next_recording_and_says_which(
    deck, provider, path
):
    said = []
    for _ in range(2):
        with taped(deck, "record", path, "ask('one')"):
            said.append(ask(provider, "one"))
    new, notes = TapeSession(), []
    for _ in range(3):
        with taped(new, "replay", path, "ask('one')") as cell:
            said.append(ask(provider, "one"))
        notes.append(
            [note for note in cell.report.notes if note.startswith("recording 1 of 2 of this cell")]
        )
    assert said[2:] == [*said[:2], said[1]] and [len(told) for told in notes] == [1, 0, 0]


def test_a_cell_without_an_id_plays_the_same_recording_in_a_take(deck, provider, path):
    for _ in range(2):
        with taped(deck, "record", path, "ask('one')"):
            newest = ask(provider, "one")
    with taped(deck, "replay", path, "ask('one')", options={"live": ["tools"]}):
        assert ask(provider, "one") == newest


def test_who_records_a_copy_beside_its_notebook_means_to_and_who_replays_it_is_told(
    deck, provider, tmp_path
):
    old, copy = (
        notebook(tmp_path / f"{name}.ipynb", "the source") for name in ("old", "old-Copy1")
    )
    with taped(
        deck, "record", tmp_path / "old.tapes" / "main.tape.yaml", "the source", notebook=old
    ):
        ask(provider, "one")
    for mode in ("replay", "once", "new_episodes"):
        with pytest.raises(
            TapeUsageError, match=r"was the notebook copied\?.*%tape set adopt=old\.tapes"
        ):
            deck.begin(CellRequest(mode, source="the source", notebook=copy))
    deck.check(CellRequest("record", source="the source", notebook=copy))


def test_a_cassette_that_cannot_be_written_is_refused_before_the_cell_runs(deck, tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(CassetteError, match="Nothing was run or sent"):
        deck.begin(CellRequest("record", path=tmp_path / "file" / "main.tape.yaml"))
    assert deck.active is None


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_folder_is_refused_before_the_cell_runs(deck, tmp_path):
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(CassetteError, match="read-only"):
            deck.begin(CellRequest("record", path=tmp_path / "main.tape.yaml"))
    finally:
        tmp_path.chmod(0o700)


def test_a_full_disk_refuses_the_first_call_before_it_is_paid_for(deck, provider, path):
    path.parent.mkdir()
    before = len(provider.requests)
    with (
        no_file_longer_than(0),
        pytest.raises(BlockedConnection, match="was not sent, since it could not be recorded"),
    ):
        with taped(deck, "record", path):
            ask(provider, "one")
    assert len(provider.requests) == before
    assert not path.exists() or not path.read_bytes()


def test_a_disk_that_fills_up_costs_no_reply_is_said_and_leaves_no_half_record(
    deck, provider, path
):
    with taped(deck, "record", path):
        first = ask(provider, "one")
    with taped(deck, "record", path) as cell:
        second = ask(provider, "two")
        full = path.stat().st_size + 50
        with no_file_longer_than(full):
            assert ask(provider, "three")
    (warning,) = [w for w in cell.report.warnings if "NOT on the tape" in w]
    assert os.strerror(errno.EFBIG) in warning
    assert path.read_bytes().endswith(b"\n...\n")
    assert any("NOT on the tape" in line for line in list(on_tape(path).ended.values())[-1]["cold"])
    with taped(deck, "replay", path):
        assert [ask(provider, "one"), ask(provider, "two")] == [first, second]


@pytest.mark.parametrize("last", [True, False])
def test_a_folder_that_vanishes_amid_a_recording_is_said_at_once(deck, provider, path, capfd, last):
    with taped(deck, "record", path) as cell:
        ask(provider, "one")
        ask(provider, "two")
        shutil.rmtree(path.parent)
        if not last:
            ask(provider, "three")
            assert "2 calls of this run are NO LONGER on the tape" in capfd.readouterr().err
    (lost,) = [warning for warning in cell.report.warnings if "NO LONGER" in warning]
    assert str(path) in lost
    assert len(on_tape(path).calls) == (0 if last else 1)


def test_a_file_that_is_written_anew_with_all_that_was_in_it_loses_nothing(deck, provider, path):
    with taped(deck, "record", path) as cell:
        ask(provider, "one")
        text = path.read_bytes()
        path.unlink()
        path.write_bytes(text)
        ask(provider, "two")
    assert not cell.report.warnings and len(on_tape(path).calls) == 2


def test_the_end_of_a_cell_takes_back_all_that_was_for_it_alone(deck, provider, path, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with taped(deck, "record", path):
        ask(provider, "one")
    with taped(deck, "replay", path):
        assert os.environ["OPENAI_API_KEY"]
    assert "OPENAI_API_KEY" not in os.environ
    assert deck.active is None
    assert ask(provider, "untaped and live")
    socket.create_connection(("127.0.0.1", provider.port)).close()


def test_a_run_whose_first_call_is_committed_at_the_cells_end_has_its_whole_kit(tmp_path):
    @tape.tool
    def items():
        yield 1
        yield 2

    path = tmp_path / "open.tape.yaml"
    with tape.recording(path):
        left_open = items()
        assert next(left_open) == 1
    assert "distributions" in tape.open(path).runs[0]["kit"]
