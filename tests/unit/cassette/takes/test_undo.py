"""What a person did to a take, taken back; and the take that replays where none is named."""

import pytest

import tape_jupyter as tape
from tape_jupyter.cassette.takes import files
from tape_jupyter.errors import TapeUsageError
from tape_jupyter.cassette.takes.undo import undo
from tests.harness.tapes import answered, churn


@pytest.fixture
def path(tmp_path):
    return churn(tmp_path)


def replies(cassette):
    return [entry.reply() for entry in cassette.calls]


def test_undoing_the_only_change_puts_the_take_aside_and_the_recorded_reply_answers(path):
    main = tape.open(path)
    take = main.override(main.calls[1], reply=answered("East"), take="angry")
    data = take.path.read_bytes()
    assert "answers as recorded again; take angry was moved to" in undo(path, "angry")
    assert tape.open(path).takes() == [] and replies(tape.open(path)) == replies(main)
    assert undo(path, "angry") == "take angry is back" and take.path.read_bytes() == data
    with pytest.raises(TapeUsageError, match="no take 'gone', and none was put aside"):
        undo(path, "gone")


def test_undoing_takes_the_last_change_alone_and_what_the_take_was_is_kept(path):
    main = tape.open(path)
    take = main.override(main.calls[1], reply=answered("East"), take="angry")
    before = replies(take)
    take.override(main.calls[2], value=7)
    data = take.path.read_bytes()
    assert "answers in take angry as it did before" in undo(path, "angry")
    (aside,) = (path.parent / "takes" / "deleted").iterdir()
    assert aside.read_bytes() == data
    assert replies(tape.open(take.path)) == before


def test_an_open_take_follows_an_undo(path):
    main = tape.open(path)
    take = main.override(main.calls[1], reply=answered("East"), take="angry")
    before = replies(take)
    take.override(main.calls[2], value=7)
    undo(path, "angry")
    assert take.refresh() and replies(take) == before


def test_a_take_that_others_are_based_on_is_not_undone_under_them(path):
    main = tape.open(path)
    first = main.override(main.calls[1], reply=answered("East"), take="angry")
    first.override(first.calls[1], reply=answered("West"))
    with pytest.raises(TapeUsageError, match="takes are based on 'angry': angry-2"):
        undo(path, "angry")
    undo(path, "angry-2")
    undo(path, "angry")


# ---------------------------------------------------------------- the default take


def test_the_choice_of_a_take_follows_its_name_and_goes_with_it(path):
    main = tape.open(path)
    assert files.default_take(path) == ""
    take = main.override(main.calls[1], reply=answered("East"), take="angry")
    before = path.read_bytes()
    files.choose(path, "angry")
    assert files.default_take(path) == "angry" and path.read_bytes() == before
    assert main.takes() == ["angry"], "the file with the choice is not a take"
    take.rename("calm")
    assert files.default_take(path) == "calm"
    with pytest.raises(TapeUsageError, match="no take 'gone'"):
        files.choose(path, "gone")
    with pytest.raises(TapeUsageError, match="cannot name a take"):
        files.choose(path, "../main")
    tape.open(path).take("calm").delete()
    assert files.default_take(path) == ""


def test_a_choice_that_is_no_name_or_of_no_take_is_none(path):
    main = tape.open(path)
    main.override(main.calls[1], reply=answered("East"), take="angry")
    file = path.parent / "takes" / "main.default"
    for text in ("gone\n", "../../etc/passwd\n", "\xff", "x" * 100):
        file.write_text(text, encoding="latin-1")
        assert files.default_take(path) == ""


def test_the_chosen_take_replays_without_a_word_and_the_recording_by_its_own_name(
    provider, tmp_path
):
    from tests.harness.taped_cells import ask

    path = tmp_path / "nb.tapes" / "main.tape.yaml"
    with tape.recording(path):
        recorded = ask(provider, "which order?")
    main = tape.open(path)
    main.override(main.calls[0], text="none at all", take="angry")
    with tape.replaying(path) as block:
        assert ask(provider, "which order?") == recorded
    files.choose(path, "angry")
    with tape.replaying(path) as block:
        assert ask(provider, "which order?") != recorded
    assert block.report.take == "angry"
    with tape.replaying(path, take="main") as block:
        assert ask(provider, "which order?") == recorded
    assert block.report.take == ""
    with tape.replaying(main.override(main.calls[0], text="another", take="calm").path):
        assert ask(provider, "which order?") == "another", (
            "a take that is opened by its file is that one"
        )
    files.choose(path, "main")
    with tape.replaying(path):
        assert ask(provider, "which order?") == recorded
