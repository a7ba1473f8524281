"""Takes that somebody edited, moved or made by hand: refused in words that name the files, or read; never half."""

import re

import pytest

import tape_jupyter as tape
from tape_jupyter.cassette.cassette import Cassette
from tape_jupyter.errors import CassetteError, TapeUsageError
from tests.harness.tapes import Recorder, answered, asked, churn


@pytest.fixture
def path(tmp_path):
    return churn(tmp_path)


@pytest.fixture
def take(path):
    main = tape.open(path)
    return main.override(main.calls[1], reply=answered("East"), take="angry")


def edit(take, pattern, new):
    text, count = re.subn(pattern, new, take.path.read_text(), count=1, flags=re.DOTALL)
    assert count, pattern
    take.path.write_text(text)


@pytest.mark.parametrize(
    ("pattern", "new", "said"),
    [
        (
            r'take of: "\.\./main.tape.yaml"',
            'take of: "../../etc/passwd"',
            r":2: `take of: \.\./\.\./etc/passwd` is no",
        ),
        (r'take of: "\.\./main.tape.yaml"', "take of: /etc/passwd", "is not a file of this folder"),
        (r'take of: "\.\./main.tape.yaml"', 'take of: ".."', "is not a file of this folder"),
        (
            r'take of: "\.\./main.tape.yaml"',
            "take of: main.angry.tape.yaml",
            "is a take of .*main.angry.tape.yaml",
        ),
        (r'take of: "\.\./main.tape.yaml"\n', "", "an override stands in a take only"),
        (r"base:\n  bytes: \d+\n  sha256: \S+\n", "", "needs `base:` with `bytes` and `sha256`"),
        (r"bytes: \d+", "bytes: -1", "needs `base:`"),
        (r"bytes: \d+", "bytes: 0", "needs `base:`"),
        (r"bytes: \d+", "bytes: 99999999999", "first 99,999,999,999 bytes"),
        (r"bytes: \d+", "bytes: 100", "were changed since"),
        (
            r"override: \S+",
            'override: "00000000"',
            "overrides call 00000000 of run .*, which is neither in main",
        ),
        (r"run: \S+", "run: r-0", "of run r-0, which is neither"),
        (r"response:\n", "reply:\n", "holds a `response:`"),
        (r"status: 200", "status: 99", "not a number from 100"),
        (
            r"response:\n.*\.\.\.\n",
            "response:\n  value: 1\n...\n",
            "answered by a status, headers and a body",
        ),
    ],
)
def test_a_take_that_was_edited_into_nonsense_is_refused_with_its_line(
    path, take, pattern, new, said
):
    before = path.read_bytes()
    edit(take, pattern, new)
    broken = take.path.read_bytes()
    with pytest.raises(CassetteError, match=said) as caught:
        Cassette.open(take.path, check="whole")
    assert "main.angry.tape.yaml" in str(caught.value)
    assert path.read_bytes() == before and take.path.read_bytes() == broken


def test_a_prefix_that_ends_in_the_midst_of_a_record_is_no_base(path, take):
    from tape_jupyter.cassette.takes import files

    size = path.stat().st_size - 40
    edit(
        take,
        r"bytes: \d+\n  sha256: \S+",
        f'bytes: {size}\n  sha256: "{files.digest_start(path, size)[1]}"',
    )
    with pytest.raises(CassetteError, match="cut in the midst of a record"):
        Cassette.open(take.path)


def test_an_edited_override_plays_as_edited_and_is_marked(take):
    edit(take, "East", "Far East")
    again = Cassette.open(take.path, check="whole")
    assert b"Far East" in again.calls[1].reply().body and again.calls[1].edited()


def test_line_ends_that_git_changed_change_no_take(path, take):
    before = [entry.reply() for entry in take.calls]
    for file in (path, take.path):
        file.write_bytes(file.read_bytes().replace(b"\n", b"\r\n"))
    again = Cassette.open(take.path, check="whole")
    assert [entry.reply() for entry in again.calls] == before
    made = tape.open(path).override(
        again.calls[2], value="made of the other line ends", take="windows"
    )
    for file in (path, take.path):
        file.write_bytes(file.read_bytes().replace(b"\r\n", b"\n"))
    assert [entry.reply() for entry in Cassette.open(made.path, check="whole").calls][:2] == [e.reply() for e in tape.open(path).calls][:2]  # fmt: skip
    assert [entry.reply() for entry in Cassette.open(take.path, check="whole").calls] == before


def test_late_bytes_belong_to_no_call_of_the_base(path, take):
    call = take.calls[0]
    with take.path.open("a") as file:
        file.write(f'---\nmore: "{call.id}"\nrun: {call.run}\ntext: x\n...\n')
    with pytest.raises(CassetteError, match="belongs to no call before it"):
        Cassette.open(take.path)


def test_an_override_in_a_cassette_is_refused(path):
    with path.open("a") as file:
        file.write('---\noverride: "00000000"\nrun: r-1\nresponse:\n  value: 1\n...\n')
    with pytest.raises(
        CassetteError, match=r"main.tape.yaml:\d+: an override stands in a take only"
    ):
        tape.open(path)


def test_of_two_overrides_of_one_call_the_last_counts(take):
    text = take.path.read_text()
    record = text[text.index("---\noverride") :]
    take.path.write_text(text + record.replace("East", "West"))
    again = Cassette.open(take.path, check="whole")
    assert b"West" in again.calls[1].reply().body
    assert b"East" in again.calls[1].replaced.reply().body


def test_thousands_of_overrides_of_one_call_are_read(take):
    text = take.path.read_text()
    record = text[text.index("---\noverride") :]
    take.path.write_text(text + record * 3000)
    again = Cassette.open(take.path, check="whole")
    assert b"East" in again.calls[1].reply().body and again.calls[1].head()["kind"] == "model"


def test_a_take_that_is_a_link_out_of_its_folder_is_not_followed(path, take, tmp_path):
    elsewhere = tmp_path / "elsewhere.tape.yaml"
    take.path.rename(elsewhere)
    take.path.symlink_to(elsewhere)
    with pytest.raises(CassetteError, match="link out of its folder"):
        tape.open(path).take("angry")


def test_a_base_that_is_a_pipe_is_not_read(path, take):
    import os

    path.unlink()
    os.mkfifo(path)
    with pytest.raises(CassetteError, match="is a take of"):
        tape.open(take.path)


def test_takes_of_takes_have_a_bottom(path, take):
    for _ in range(40):
        try:
            take = take.override(take.calls[1], reply=answered("East"))
        except CassetteError as error:
            assert "deep" in str(error)
            break
    else:
        raise AssertionError("40 takes deep")


def test_a_call_that_another_kernel_recorded_again_is_refused_naming_the_newer_run(path):
    mine = tape.open(path)
    newer = Recorder(path, "other kernel").run("aaaa", (asked("Which region?"), answered("East")))
    with pytest.raises(TapeUsageError, match=newer):
        mine.override(mine.calls[1], reply="x")
    assert not (path.parent / "takes").exists()


@pytest.mark.parametrize(
    "name", ["", "..", "../x", "a/b", "A", "a.b", "x" * 65, "a b", "é", "$(x)", "a\n"]
)
def test_names_that_are_paths_or_worse_name_no_take(path, name):
    with pytest.raises(TapeUsageError, match="cannot name a take"):
        tape.open(path).take(name)
