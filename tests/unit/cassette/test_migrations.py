"""Cassettes of older formats are read as the present one; the file is not touched."""

import pytest

from tape_jupyter.cassette.cassette import Cassette
from tape_jupyter.errors import CassetteError
from tape_jupyter.cassette.match_key import match_key
from tape_jupyter.cassette.migrations import VERSION, migrated
from tape_jupyter.replay.player import Player
from tape_jupyter.secrets.registry import Secrets

HEADER = "---\ntape: 0\nnotebook: churn.ipynb\n...\n"
CALL = """---
call: {n}
request:
  post: "https://api.example.com/v1"
  json: compact
  body:
    q: {q}
reply:
  status: 200
  text: answer {n}
...
"""


@pytest.fixture
def path(tmp_path):
    return tmp_path / "main.tape.yaml"


def test_format_0_is_read_and_the_file_is_as_it_was(path):
    text = (
        HEADER
        + CALL.format(n=1, q="North")
        + CALL.format(n=2, q="South")
        + CALL.format(n=3, q="North")
    )
    path.write_text(text)
    tape = Cassette.open(path, check="whole")
    assert [entry.reply().chunks for entry in tape.calls] == [
        (b"answer 1",),
        (b"answer 2",),
        (b"answer 3",),
    ]
    assert [entry.request().body for entry in tape.calls] == [
        b'{"q":"North"}',
        b'{"q":"South"}',
        b'{"q":"North"}',
    ]
    first, second, third = (entry.id for entry in tape.calls)
    assert third == f"{first}-2" != second
    assert all(entry.match == match_key(entry.request(), Secrets()) for entry in tape.calls)
    assert len(tape.notes) == 1 and "format 0" in tape.notes[0]
    assert path.read_text() == text
    assert not tape.refresh()


def test_its_calls_are_played(path):
    path.write_text(HEADER + CALL.format(n=1, q="North"))
    tape = Cassette.open(path)
    player = Player(tape.matching, lambda: tape.runs)
    from tape_jupyter.cassette.runs import CellIdentity

    execution = player.start(CellIdentity("", "x", "s"), "replay")
    assert player.decide(execution, tape.calls[0].match) is tape.calls[0]


def test_nothing_is_recorded_into_an_older_format(path):
    path.write_text(HEADER + CALL.format(n=1, q="North"))
    tape = Cassette.open(path)
    assert "older format" in tape.writable()
    with pytest.raises(CassetteError, match="older format"):
        tape.start_run({"mode": "record"}, {})
    assert path.read_text() == HEADER + CALL.format(n=1, q="North")


@pytest.mark.parametrize("size", range(0, 60, 7))
def test_records_of_any_length_do_not_confuse_the_copy_in_memory(path, size):
    """The copy's records lie at other offsets than the file's, or by chance at the same."""
    path.write_text(
        HEADER.replace("churn", "c" * (size + 1)) + CALL.format(n=1, q="Q" * (size + 1))
    )
    assert len(Cassette.open(path).calls) == 1


@pytest.mark.parametrize(
    "record",
    [
        "---\nrun: r-1\n...\n",
        "---\ncall: 1\n...\n",
        "---\ncall: 1\nrequest: 5\nreply: 5\n...\n",
        "---\ncall: 1\nrequest:\n  post: nowhere\nreply:\n  status: 200\n...\n",
        '---\ncall: 1\nrequest:\n  post: "https://h/"\n...\n',
        '---\ncall: 1\nrequest:\n  post: "https://h/"\n  json: compact\n  body:\n    "<from>": "1 q"\nreply:\n  status: 200\n...\n',
        '---\ncall: 1\nrequest:\n  post: "http://[::1"\n  base64: "!"\nreply:\n  status: 200\n...\n',
    ],
)
def test_what_cannot_be_migrated_is_told(path, record):
    path.write_text(HEADER + record)
    with pytest.raises(CassetteError) as caught:
        Cassette.open(path)
    assert str(path) in str(caught.value)


def test_a_torn_tail_of_an_older_format_is_told_too(path):
    path.write_text(HEADER + CALL.format(n=1, q="North") + "---\ncall: 2\nreq")
    tape = Cassette.open(path)
    assert len(tape.calls) == 1 and len(tape.notes) == 2


def test_the_present_format_is_left_as_it_is():
    records = [{"tape": VERSION}, {"call": "x"}]
    assert migrated(records, VERSION) is records
