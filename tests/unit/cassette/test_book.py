"""A cassette is read to the byte, at once however large, and as people left it after editing it by hand."""

import gc
import json
import subprocess
import sys
import tracemalloc

import pytest

from tape_jupyter.cassette import records
from tape_jupyter.encoding.yaml import emitter
from tape_jupyter.core.call import Where
from tape_jupyter.cassette.cassette import WHOLE_CHECK, Cassette
from tape_jupyter.errors import CassetteError
from tape_jupyter.cassette.match_key import exact_digest
from tape_jupyter.cassette.records import Head
from tests.harness.recorder import CALLS, JSON, URL, Recorder, held, reply, request, talk
from tests.harness.timing import growth, ratio


@pytest.fixture
def path(tmp_path):
    return tmp_path / "churn.tapes" / "main.tape.yaml"


def test_a_file_that_is_not_there_is_empty_and_is_not_made(path):
    tape = Cassette.open(path)
    assert (len(tape), tape.runs, tape.notes, path.parent.exists()) == (0, [], [], False)


def test_the_head_is_read_without_the_rest(path):
    recorder = Recorder(path)
    entry = recorder.add(*CALLS[0], kit={"model": "m"}, name="n")
    head = entry.head()
    assert head["kit"] == {"model": "m"} and head["call"] == entry.id and "request" not in head
    assert entry.line == path.read_text().splitlines().index(
        f"call: {emitter.emit({'x': entry.id}).splitlines()[1][3:]}"
    )


def test_the_exact_digest_leads_to_the_match_key(path):
    recorder = Recorder(path)
    recorder.add(*CALLS[0], exact=exact_digest(CALLS[0][0]))
    for tape in (recorder.tape, Cassette.open(path)):
        assert tape.match_of(exact_digest(CALLS[0][0])) == tape.calls[0].match
        assert tape.match_of("0" * 16) == ""


def test_a_word_changed_by_hand_is_what_is_replayed(path):
    recorder = Recorder(path)
    recorder.add(request({"q": 1}), reply("North lost the most", chunks=3))
    path.write_text(path.read_text().replace("North lost", "South lost"))
    assert recorder.tape.refresh() and not recorder.tape.refresh()
    for tape in (recorder.tape, Cassette.open(path)):
        (entry,) = tape.edited()
        body = entry.reply().body
        assert json.loads(body) == {"content": "South lost the most"}
        assert (
            entry.reply().header("content-length") == str(len(body))
            and len(entry.reply().chunks) == 3
        )


def test_a_length_changed_by_hand_is_put_right(path):
    recorder = Recorder(path)
    recorder.add(request({"q": 1}), reply())
    path.write_text(path.read_text().replace('content-length: "18"', 'content-length: "7"'))
    (entry,) = Cassette.open(path).calls
    assert entry.reply().header("content-length") == "18" == str(len(entry.reply().body))


def test_windows_line_ends_change_nothing(path):
    recorder = Recorder(path)
    for call, answer in CALLS:
        recorder.add(call, answer)
    recorder.add(request(talk(3)), reply("line\nline\r\nline\r"))
    recorder.end()
    before = held(Cassette.open(path))
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert held(Cassette.open(path, check="whole")) == before
    Recorder(path).add(*CALLS[0])
    assert held(Cassette.open(path, check="whole"))[:-1] == before


def test_an_entry_of_a_file_that_was_edited_meanwhile_is_not_misread(path):
    recorder = Recorder(path)
    entries = [recorder.add(request({"q": n}), reply(f"answer {n}")) for n in range(9)]
    path.write_text(path.read_text().replace("answer 0", "a much longer answer 0"))
    for entry in entries[1:]:
        with pytest.raises(CassetteError, match="changed while it was in use"):
            entry.reply()


def test_what_the_check_of_a_small_file_restored_is_not_made_again(path, monkeypatch):
    recorder = Recorder(path)
    for n in range(9):
        recorder.add(request({"q": n}), reply(f"answer {n}"))
    tape = Cassette.open(path)
    made = []
    restored = records.section_reply
    monkeypatch.setattr(
        records, "section_reply", lambda section: made.append(section) or restored(section)
    )
    for _ in range(2):
        assert [json.loads(entry.reply().body)["content"] for entry in tape.calls] == [
            f"answer {n}" for n in range(9)
        ]
    assert not made


def test_what_was_kept_is_forgotten_when_the_file_changes_or_a_reply_goes_on(path):
    recorder = Recorder(path)
    first, other = (recorder.add(request({"q": n}), reply(f"answer {n}")) for n in range(2))
    tape = Cassette.open(path)
    recorder.tape.append_more(first, reply(" and more"), recorder.secrets)
    assert tape.refresh()
    assert (
        tape.calls[0].reply().body
        == first.reply().body
        != tape.calls[1].reply().body
        == other.reply().body
    )
    path.write_text(path.read_text().replace("answer 1", "ANSWER 1"))
    assert tape.refresh() and b"ANSWER 1" in tape.calls[1].reply().body and tape.calls[1].edited()


def test_of_a_large_file_and_of_large_replies_nothing_is_kept(path, monkeypatch):
    recorder = Recorder(path)
    entries = [
        recorder.add(request({"q": n}), reply("long " * 5_000, chunks=5_000)) for n in range(9)
    ]
    for size in (WHOLE_CHECK, 0):
        monkeypatch.setattr("tape_jupyter.cassette.reader.WHOLE_CHECK", size)
        tape = Cassette.open(path, check="whole")
        assert [entry.reply() for entry in tape.calls] == [entry.reply() for entry in entries]
        assert len(tape._kept) == (size and 3)  # 2 MiB hold three replies of 5,000 chunks


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """10,000 calls of an SDK's usual shape, 4 KB each."""
    path = tmp_path_factory.mktemp("large") / "main.tape.yaml"
    words = [f"word{n % 977}" for n in range(400)]
    recorder = Recorder(path)
    texts = [path.read_text()]
    for n in range(10_000):
        match = f"{n:032x}"
        head = Head(
            f"{n:08x}",
            recorder.run,
            match,
            "model",
            Where("c", f"{n % 16}"),
            "2026-11-21T20:41:07.512Z",
            1.5,
            exact=f"{n:016x}",
        )
        ask = {
            "post": URL,
            "json": "compact",
            "body": {
                "model": "m",
                "messages": [{"role": "user", "content": " ".join(words[n % 99 : n % 99 + 200])}],
            },
        }
        answer = {
            "status": 200,
            "headers": dict(JSON),
            "json": "compact",
            "body": {"content": [{"type": "text", "text": " ".join(words[n % 50 : n % 50 + 300])}]},
        }
        texts.append(
            emitter.emit({**head.record(), "request": ask, "response": {**answer, "waits": [0.5]}})
        )
    path.write_text("".join(texts))
    return path


def test_an_open_cassette_of_ten_thousand_calls_takes_little_memory(large):
    Cassette.open(large)
    gc.collect()
    tracemalloc.start()
    tape = Cassette.open(large)
    gc.collect()
    kept, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(tape.calls) == 10_000
    assert kept < 8e6 and peak < 25e6  # 4 MB blocks are read on the way


def test_checking_a_small_cassette_takes_time_in_proportion_to_its_history(tmp_path):
    def opened(turns):
        path = tmp_path / f"{turns}.tape.yaml"
        recorder = Recorder(path)
        for n in range(turns):
            recorder.add(request(talk(n + 1)), reply())
        assert path.stat().st_size < WHOLE_CHECK
        return lambda: Cassette.open(path)

    assert growth(opened, 50, 400) < 4


def test_opening_imports_nothing_heavy(path):
    code = "import sys; from tape_jupyter.cassette.cassette import Cassette; print([m for m in ('numpy', 'pandas', 'IPython', 'httpx', 'yaml') if m in sys.modules])"
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip()
        == "[]"
    )


def test_what_another_kernel_appends_is_read_in_place(path):
    mine = Recorder(path)
    mine.add(*CALLS[0])
    entry = mine.tape.calls[0]
    other = Recorder(path)
    other.add(*CALLS[3])
    assert mine.tape.refresh()
    assert mine.tape.calls[0] is entry and len(mine.tape.calls) == 2 and len(mine.tape.runs) == 2


@pytest.mark.parametrize(
    "name", ["xyz", "78a670b", "78a670b1-x", "78a670b1-", "78A670B1", "78a670b1-" + "9" * 5000]
)
def test_a_call_with_an_id_that_is_none_is_refused(path, name):
    recorder = Recorder(path)
    entry = recorder.add(*CALLS[0])
    path.write_text(
        path.read_text()
        .replace("call: ", "was: ", 1)
        .replace(f"was: {entry.id}", f'call: "{name}"')
        .replace(f'was: "{entry.id}"', f'call: "{name}"')
    )
    with pytest.raises(CassetteError, match="not a call id"):
        Cassette.open(path)


def test_appending_costs_the_same_at_the_end_of_a_large_cassette(large, tmp_path):
    copy = tmp_path / "copy.tape.yaml"
    copy.write_bytes(large.read_bytes())
    asked = iter([request(talk(5, run=n)) for n in range(120)])
    answer = reply("word " * 200)

    def appended(path):
        recorder = Recorder(path)
        return lambda: recorder.add(next(asked), answer)

    assert ratio(appended(copy), appended(tmp_path / "small.tape.yaml"), rounds=60) < 4


def test_a_reply_that_was_edited_before_others_appended_is_the_edited_one(path):
    recorder = Recorder(path)
    entry = recorder.add(request("q"), reply("lost 31 % of all"))
    mine = Cassette.open(path)
    assert b"31 %" in mine.calls[0].reply().body
    data = path.read_bytes()
    with path.open("r+b") as file:  # as an editor that keeps the file
        file.seek(data.index(b"31 %"))
        file.write(b"51 %")
    Cassette.open(path)
    recorder = Recorder(path)
    recorder.add(request("other"), reply("x"))
    assert mine.refresh() and b"51 %" in mine.calls[0].reply().body
    assert mine.calls[0].id == entry.id
