"""Bodies too large for a cassette lie beside it once, come back as they were, and are missed where somebody took or changed
them. (tests/trials/large_bodies.py sends such through each client.)
"""

import dataclasses
import hashlib

import pytest

from tape_jupyter.cassette import external_texts
from tape_jupyter.cassette.cassette import Cassette
from tape_jupyter.cassette.match_key import match_key
from tape_jupyter.cassette.merge import merge_cassettes
from tape_jupyter.cassette.prune import prune_cassette
from tape_jupyter.core.call import Reply, Request
from tape_jupyter.core.large_body import JoinedChunks, LargeChunks
from tape_jupyter.errors import CassetteError
from tape_jupyter.secrets.registry import Secrets
from tape_jupyter.secrets.spooling import spooled
from tests.harness.tapes import Recorder, answered, asked

DATA = bytes(range(256)) * 300
SIZES = (70_000, 6_000, 800)
NAME = hashlib.sha256(DATA).hexdigest()
SECRET = "sk-ant-made-0123456789abcdefghij"


def large_reply(folder, data=DATA, secrets=None):
    body = spooled([data], folder, secrets or Secrets())
    headers = (("content-type", "application/octet-stream"),)
    return Reply(200, headers, LargeChunks(body, SIZES), (0.1, 0.2, 0.3))


def large_request(folder, data=DATA, boundary="", secrets=None):
    headers = (("content-type", f"multipart/form-data; boundary={boundary}"),) if boundary else ()
    large = spooled([data], folder, secrets or Secrets())
    return Request("PUT", "https://files.example.com/up", headers, large=large)


@pytest.fixture
def path(tmp_path):
    folder = tmp_path / "one"
    folder.mkdir()
    return folder / "main.tape.yaml"


@pytest.fixture
def tape(path):
    """A cassette with a large upload and a large download, of the same bytes."""
    recorder = Recorder(path)
    folder = path.parent / "spool"
    recorder.run("aaaa", (large_request(folder), large_reply(folder)))
    return path


def reopened(path):
    (call,) = Cassette.open(path, check="whole").calls
    return call


def test_they_lie_once_beside_the_cassette_and_come_back_in_the_reads_they_came_in(tape):
    assert [file.name for file in (tape.parent / "assets").iterdir()] == [NAME]
    assert (tape.parent / "assets" / NAME).read_bytes() == DATA
    assert tape.stat().st_size < 3_000
    call = reopened(tape)
    assert [len(chunk) for chunk in call.reply().chunks] == list(SIZES)
    assert b"".join(call.reply().chunks) == DATA and call.reply().waits == (0.1, 0.2, 0.3)
    assert b"".join(call.request().large.blocks()) == DATA and call.request().body == b""
    assert not list(Cassette.open(tape).edited())


def test_the_same_body_again_takes_no_more_room_and_a_spoiled_one_is_mended(tape):
    file = tape.parent / "assets" / NAME
    before = file.stat().st_ino
    recorder = Recorder(tape, "s2")
    recorder.run("bbbb", (asked("a"), large_reply(tape.parent / "spool")))
    assert file.stat().st_ino == before and len(list(file.parent.iterdir())) == 1
    for spoiled in (DATA[:-1], b"\1" + DATA[1:]):
        file.write_bytes(spoiled)
        recorder.run("cccc", (asked(str(len(spoiled))), large_reply(tape.parent / "spool")))
        assert file.read_bytes() == DATA
    target = tape.parent / "elsewhere"
    file.rename(target)
    file.symlink_to(target)
    recorder.run("dddd", (asked("b"), large_reply(tape.parent / "spool")))
    assert not file.is_symlink() and file.read_bytes() == DATA


def test_a_body_that_lies_there_already_is_taken_as_it_is(tape):
    told = reopened(tape).reply()
    recorder = Recorder(tape, "s2")
    recorder.run("bbbb", (asked("again"), told))
    again = Cassette.open(tape, check="whole").calls[-1].reply()
    assert b"".join(again.chunks) == DATA and len(list((tape.parent / "assets").iterdir())) == 1


def test_a_record_finds_its_body_in_another_folder_alike(tape, tmp_path):
    other = tmp_path / "other" / "main.tape.yaml"
    other.parent.mkdir()
    Recorder(other).run("aaaa", (asked("moved"), reopened(tape).reply()))
    assert (other.parent / "assets" / NAME).read_bytes() == DATA
    assert b"".join(reopened(other).reply().chunks) == DATA


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (lambda file: file.unlink(), "is not a file of"),
        (lambda file: file.write_bytes(DATA[:-1]), "has other bytes than its name says"),
        (lambda file: file.write_bytes(b"\1" + DATA[1:]), "has other bytes than its name says"),
        (lambda file: (file.rename(file.with_name("x")), file.symlink_to("x")), "is not a file of"),
        (lambda file: (file.unlink(), file.mkdir()), "is not a file of"),
    ],
)
def test_a_body_that_is_gone_or_changed_is_named(tape, spoil, why):
    spoil(tape.parent / "assets" / NAME)
    with pytest.raises(CassetteError, match=f"asset {NAME} {why}"):
        Cassette.open(tape, check="whole").check()


MARK = f'"<bytes>": {NAME}'


@pytest.mark.parametrize(
    ("new", "why"),
    [
        ('"<bytes>": "../../etc/passwd"', "is not a sha256 name; assets lie in"),
        ('"<bytes>": 7', "is not a sha256 name"),
        (f'"<asset>": {NAME}', "large: says where a body lies|is not UTF-8"),
        (f"{MARK}\n    more: 1", "large: says where a body lies, like <bytes>: sha256"),
    ],
)
def test_a_mark_that_says_something_else_is_told(tape, new, why):
    tape.write_text(tape.read_text().replace(MARK, new))
    with pytest.raises(CassetteError, match=why):
        (call,) = Cassette.open(tape).calls
        call.reply()


def test_another_body_put_in_its_place_by_hand_counts_as_edited(tape):
    other = hashlib.sha256(b"other").hexdigest()
    (tape.parent / "assets" / other).write_bytes(b"other")
    before, after = tape.read_text().split("response:")
    tape.write_text(f"{before}response:{after.replace(MARK, MARK.replace(NAME, other))}")
    cassette = Cassette.open(tape, check="whole")
    assert [entry.reply().body for entry in cassette.edited()] == [b"other"]
    assert len(cassette.calls[0].reply().chunks) == 3


def test_they_go_with_the_last_recording_that_names_them_and_come_along_where_two_are_joined(
    tape, tmp_path
):
    other = tmp_path / "two" / "main.tape.yaml"
    Recorder(other, "s9").run("zzzz", (asked("a"), answered("b")))
    joined = merge_cassettes(other, tape, tmp_path / "two" / "joined.tape.yaml").path
    assert (joined.parent / "assets" / NAME).read_bytes() == DATA
    assert any(entry.reply().size == len(DATA) for entry in Cassette.open(joined).calls)
    Recorder(tape, "s2").run("aaaa", (asked("new"), answered("small")))
    assert prune_cassette(tape).assets == (NAME,)
    assert not (tape.parent / "assets" / NAME).exists()


def test_what_a_structure_names_is_measured_each_time_it_is_named(tape):
    folder = tape.parent / "assets"
    mark = {"large": {"<bytes>": NAME}}
    assert external_texts.assets_size([mark, {"a": mark, "b": "text"}, 7], folder) == 2 * len(DATA)
    assert external_texts.assets_size({"<asset>": "0" * 64}, folder) == 0
    assert external_texts.assets_size({"<asset>": "../main.tape.yaml"}, folder) == 0
    assert external_texts.bodies([mark, {"<asset>": "f" * 64}]) == {NAME}
    assert external_texts.asset_names([mark, {"<asset>": "f" * 64}]) == {NAME, "f" * 64}


def test_a_secret_in_one_is_masked_and_said_to_be(path):
    secrets = Secrets()
    secrets.learn("ANTHROPIC_API_KEY", SECRET)
    recorder = Recorder(path)
    recorder.secrets = secrets
    data = DATA + SECRET.encode() + DATA
    sent = large_request(path.parent / "spool", data, secrets=secrets)
    recorder.run("aaaa", (sent, large_reply(path.parent / "spool", data, secrets)))
    masked = data.replace(SECRET.encode(), b"<secret:ANTHROPIC_API_KEY>")
    (file,) = (path.parent / "assets").iterdir()
    assert file.read_bytes() == masked and path.read_text().count("scrubbed: true") == 2
    assert reopened(path).reply().body == masked


def test_a_secret_that_was_learned_after_it_came_is_masked_all_the_same(path):
    recorder = Recorder(path)
    data = DATA + SECRET.encode()
    sent, told = (
        large_request(path.parent / "spool", data),
        large_reply(path.parent / "spool", data),
    )
    recorder.secrets.learn("ANTHROPIC_API_KEY", SECRET)
    recorder.run("aaaa", (sent, told))
    assert [SECRET.encode() in file.read_bytes() for file in (path.parent / "assets").iterdir()] == [False]  # fmt: skip


def test_a_form_counts_without_its_boundary_which_is_drawn_anew(tmp_path):
    keys = [
        match_key(large_request(tmp_path, b"--%s\r\n" % name + end, name.decode()), Secrets())
        for name, end in ((b"one", DATA), (b"two", DATA), (b"two", DATA + b"!"))
    ]
    plain = [match_key(large_request(tmp_path, data), Secrets()) for data in (DATA, DATA + b"!")]
    assert keys[0] == keys[1] != keys[2] and plain[0] != plain[1]


def test_a_file_where_the_folder_should_be_is_told_and_small_replies_are_kept(path):
    recorder = Recorder(path)
    told = large_reply(path.parent / "spool")
    (path.parent / "assets").write_text("in the way")
    with pytest.raises(CassetteError, match="a large body cannot be written to assets/: "):
        recorder.run("aaaa", (asked("a"), told))
    recorder.run("bbbb", (asked("b"), answered("kept")))
    assert reopened(path).reply().status == 200


def test_a_reply_in_pieces_some_of_them_large_is_one_body(path):
    told = large_reply(path.parent / "spool")
    joined = dataclasses.replace(told, chunks=JoinedChunks([(b"begin",), told.chunks]), waits=(0.0, 0.1, 0.2, 0.3))  # fmt: skip
    Recorder(path).run("aaaa", (asked("a"), joined))
    assert reopened(path).reply().body == b"begin" + DATA
    assert [len(each) for each in reopened(path).reply().chunks] == [5, *SIZES]
