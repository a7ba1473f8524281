"""A cassette keeps what it was told to the byte, finds it at once, and survives whoever else has the file open."""

import json
import random
import threading
from dataclasses import replace

import pytest

from tape_jupyter.core.call import FunctionCall, Reply, Request, Value, Where
from tape_jupyter.cassette.cassette import Cassette
from tape_jupyter.cassette.cassette import open as tape_open
from tape_jupyter.errors import CassetteError
from tape_jupyter.encoding.values.registry import freeze, freeze_error, thaw
from tape_jupyter.cassette.match_key import match_key
from tape_jupyter.cassette.records import Head
from tape_jupyter.secrets.registry import Secrets
from tests.harness.recorder import CALLS, JSON, KEY, SSE, Recorder, reply, request, talk


@pytest.fixture
def path(tmp_path):
    return tmp_path / "churn.tapes" / "main.tape.yaml"


# ---------------------------------------------------------------- what goes in comes out


def test_every_call_comes_back_as_it_was(path):
    recorder = Recorder(path)
    entries = [recorder.add(call, answer, lineage=str(n)) for n, (call, answer) in enumerate(CALLS)]
    recorder.end()
    for tape in (recorder.tape, Cassette.open(path, check="whole"), tape_open(path, check="marks")):
        assert len(tape) == len(CALLS) and tape.notes == []
        for entry, ours, (call, answer) in zip(tape.calls, entries, CALLS, strict=True):
            assert (entry.run, entry.id, entry.match, entry.lineage) == (
                ours.run,
                ours.id,
                ours.match,
                ours.lineage,
            )
            back, edited = tape.reply(entry)
            assert not edited and not entry.edited()
            if isinstance(answer, Reply):
                assert (back.status, back.headers, back.chunks, back.end) == (
                    answer.status,
                    answer.headers,
                    answer.chunks,
                    answer.end,
                )
                assert back.waits == answer.waits and back.error == answer.error
                assert (entry.request().body, entry.request().url) == (call.body, call.url)
            else:
                assert (back.value, back.error) == (answer.value, answer.error)
                assert {k: thaw(v) for k, v in entry.request().arguments.items()} == dict(
                    call.arguments
                )
        assert tape.matching(entries[0].match) == tape.calls[:2]
        assert tape.matching("nothing") == () and tape.call(recorder.run, entries[1].id).order == 2
        assert list(tape.ended) == [recorder.run] and tape.runs[0]["mode"] == "record"


def test_a_cassette_is_a_file_any_yaml_tool_reads_the_same(path):
    yaml = pytest.importorskip("yaml")
    recorder = Recorder(path)
    for call, answer in CALLS:
        recorder.add(call, answer)
    theirs = list(yaml.safe_load_all(path.read_text().replace("\n...\n", "\n")))
    assert len(theirs) == 2 + len(CALLS)
    assert theirs[2]["call"] == recorder.tape.calls[0].id


def test_random_calls_come_back_exactly(path):
    r = random.Random(7)
    recorder, expected = Recorder(path), []
    words = [
        "a",
        "\n",
        "---\n",
        "...\n",
        "\r\n",
        "data: ",
        "\u2028",
        "{",
        '"',
        "<from>",
        "<asset>",
        "\ud800",
        "é",
        "# ",
        "x" * 70000,
    ]
    for n in range(150):
        text = "".join(r.choices(words[:-1], k=r.randrange(40))) + (
            words[-1] if r.random() < 0.1 else ""
        )
        value = r.choice(
            [
                {"t": text, "<from>": text},
                [text, {"<asset>": "x"}],
                {"messages": [{"c": text}] * r.randrange(4)},
                text,
            ]
        )
        data = r.choice(
            [
                json.dumps(value).encode(),
                json.dumps(value, indent=1, ensure_ascii=False).encode("utf-8", "surrogatepass"),
                r.randbytes(n),
            ]
        )
        cuts = sorted(r.choices(range(len(data) + 1), k=r.randrange(4)))
        chunks = tuple(data[a:b] for a, b in zip([0, *cuts], [*cuts, len(data)], strict=True))
        recorder.add(
            request(data),
            Reply(
                200,
                (
                    (
                        "Content-Type",
                        r.choice(["text/plain", "application/json", "text/event-stream"]),
                    ),
                ),
                chunks,
            ),
        )
        expected.append((data, chunks))
    tape = Cassette.open(path, check="whole")
    for entry, (data, chunks) in zip(tape.calls, expected, strict=True):
        assert entry.request().body == data
        assert [c for c in entry.reply().chunks if c] == [c for c in chunks if c]
        assert not entry.edited()


def test_a_key_too_long_for_the_text_is_kept_too(path):
    recorder = Recorder(path)
    body = {"k" * 5000: 1}
    recorder.add(request(body), Reply(200, JSON, (json.dumps(body).encode(),), (0.0,)))
    (entry,) = Cassette.open(path, check="whole").calls
    assert json.loads(entry.request().body) == json.loads(entry.reply().body) == body


# ---------------------------------------------------------------- history and assets


def test_a_conversation_is_stored_once_and_comes_back_whole(path):
    recorder = Recorder(path)
    for turns in range(1, 150):
        recorder.add(request(talk(turns)), reply(f"answer {turns}"))
    unique = len(json.dumps(talk(149)))
    assert path.stat().st_size < 4 * unique
    for check in ("marks", "whole"):
        tape = Cassette.open(path, check)
        for turns, entry in reversed(list(enumerate(tape.calls, 1))):
            assert json.loads(entry.request().body) == talk(turns)
        assert not any(entry.edited() for entry in tape.calls)


def test_a_second_run_refers_to_the_first_and_a_new_kernel_to_nothing(path):
    first = Recorder(path)
    first.add(request(talk(20)), reply())
    second = Recorder(path, cassette=first.tape)
    second.add(request(talk(21)), reply())
    assert f'"{first.run}/{first.tape.calls[0].id} messages[0:20]"' in path.read_text()
    third = Recorder(path)
    third.add(request(talk(21)), reply())
    tape = Cassette.open(path, check="whole")
    assert [len(json.loads(entry.request().body)["messages"]) for entry in tape.calls] == [
        20,
        21,
        21,
    ]


def test_a_long_text_lies_beside_the_cassette_and_comes_back(path):
    recorder, picture = Recorder(path), "picture" * 20_000
    recorder.add(request({"image": picture, "n": 1}), reply(picture))
    recorder.add(request({"image": picture, "n": 2}), Reply(200, (), (picture.encode(),), (0.0,)))
    assert len(list((path.parent / "assets").iterdir())) == 1 and path.stat().st_size < 5_000
    tape = Cassette.open(path, check="whole")
    assert [json.loads(entry.request().body)["image"] for entry in tape.calls] == [picture] * 2
    assert tape.calls[1].reply().body == picture.encode()


def test_late_bytes_of_a_reply_follow_it(path):
    recorder = Recorder(path)
    first, second = (
        recorder.add(request({"n": n}), Reply(200, SSE, (b"data: [DONE]\n\n",), (0.1,)))
        for n in (1, 2)
    )
    recorder.tape.append_more(
        first, Reply(200, SSE, (b": bye\n\n", b"\n"), (0.2, 0.3)), recorder.secrets
    )
    recorder.tape.append_more(
        second, Reply(200, SSE, (), (), "error", freeze_error(OSError("r"))), recorder.secrets
    )
    for tape in (recorder.tape, Cassette.open(path, check="whole")):
        one, two = (entry.reply() for entry in tape.calls)
        assert (one.chunks, one.waits) == (
            (b"data: [DONE]\n\n", b": bye\n\n", b"\n"),
            (0.1, 0.2, 0.3),
        )
        assert (two.end, two.chunks) == ("error", (b"data: [DONE]\n\n",))
        assert not any(entry.edited() for entry in tape.calls)


# ---------------------------------------------------------------- others at the same file


def test_two_kernels_that_record_at_once_both_keep_everything(path):
    one = Recorder(path)
    one.add(request({"k": 1}), reply())
    two = Recorder(path)
    for n in range(20):
        one.add(request(talk(n + 1, run=1)), reply(f"one {n}"))
        two.add(request(talk(n + 1, run=2)), reply(f"two {n}"))
    one.end()
    two.end()
    tape = Cassette.open(path, check="whole")
    assert len(tape.calls) == 41 and len(tape.runs) == 2 and len(tape.ended) == 2
    assert one.tape.refresh() and not one.tape.refresh()
    assert {(e.run, e.id, e.offset) for e in one.tape.calls} == {
        (e.run, e.id, e.offset) for e in tape.calls
    }
    assert sorted(e.offset for e in one.tape.calls) == [e.offset for e in one.tape.calls]


def test_threads_that_record_at_once_are_all_kept(path):
    recorder = Recorder(path)
    recorder.names = None

    def work(k):
        for n in range(20):
            call = request(talk(n + 1, run=k))
            match = match_key(call, recorder.secrets)
            head = Head(match[:8], recorder.run, match, "model", Where("c", str(k)), "now", 0.0)
            recorder.tape.append_call(head, call, reply(f"{k} {n}"), recorder.secrets)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    tape = Cassette.open(path, check="whole")
    assert len(tape.calls) == 160
    for entry in tape.calls:
        body = json.loads(entry.request().body)
        assert body == talk(len(body["messages"]), run=int(entry.lineage))


def edited_in_place(path):
    path.write_text(path.read_text().replace("turn 1", "turn 9"))


def edited_longer(path):
    path.write_text(path.read_text().replace("turn 1", "turn 1 and more"))


def cut_to_the_header(path):
    text = path.read_text()
    path.write_text(text[: text.index("...\n") + 4])


def removed(path):
    path.unlink()


def removed_with_its_folder(path):
    path.unlink()
    path.parent.rmdir()


def emptied(path):
    path.write_text("")


def replaced(path):
    new = path.with_name("new")
    text = path.read_text()
    new.write_text(text[: text.index("...\n") + 4])
    new.replace(path)


def broken(path):
    path.write_text(path.read_text().replace("turn 1", "turn\t1").replace("run:", "run ~", 1))


@pytest.mark.parametrize(
    "change",
    [
        edited_in_place,
        edited_longer,
        cut_to_the_header,
        removed,
        removed_with_its_folder,
        emptied,
        replaced,
    ],
)
def test_a_file_that_is_changed_in_the_midst_of_a_recording_stays_whole(path, change):
    recorder = Recorder(path)
    for turns in range(1, 10):
        recorder.add(request(talk(turns)), reply())
    change(path)
    for turns in range(10, 20):
        recorder.add(request(talk(turns)), reply(f"answer {turns}"))
    recorder.end()
    tape = Cassette.open(path, check="whole")
    bodies = [json.loads(entry.request().body) for entry in tape.calls][-10:]
    assert bodies == [talk(turns) for turns in range(10, 20)]
    assert [run["run"] for run in tape.runs] == [recorder.run] and list(tape.ended) == [
        recorder.run
    ]
    assert recorder.tape.calls[-1].reply().body == tape.calls[-1].reply().body


def test_a_call_is_kept_even_when_the_file_was_broken_meanwhile(path):
    recorder = Recorder(path)
    recorder.add(request(talk(1)), reply())
    broken(path)
    recorder.add(request(talk(2)), reply("paid for"))
    recorder.add(request(talk(3)), reply("this too"))
    recorder.end()
    assert "paid for" in path.read_text() and "this too" in path.read_text()
    with pytest.raises(CassetteError):
        recorder.tape.refresh()
    with pytest.raises(CassetteError):
        Cassette.open(path)


def test_late_bytes_of_a_call_that_is_gone_are_refused_and_break_nothing(path):
    recorder = Recorder(path)
    entry = recorder.add(request(talk(1)), reply())
    removed(path)
    with pytest.raises(CassetteError):
        recorder.tape.append_more(entry, reply(), recorder.secrets)
    recorder.add(request(talk(2)), reply())
    assert len(Cassette.open(path, check="whole").calls) == 1


def test_the_same_call_of_a_run_is_not_recorded_twice(path):
    recorder = Recorder(path)
    recorder.add(*CALLS[0])
    recorder.names.clear()
    with pytest.raises(CassetteError, match="already"):
        recorder.add(*CALLS[0])
    assert len(Cassette.open(path, check="whole").calls) == 1


# ---------------------------------------------------------------- secrets


@pytest.mark.parametrize(
    ("method", "status", "why"),
    [
        ("POST", 99, "status 99 is not a number"),
        ("POST", 1000, "status 1000 is not a number"),
        ("PASSWORD", 200, "taken for a secret"),
    ],
)
def test_a_call_that_no_reader_would_take_is_refused_and_the_others_stay(path, method, status, why):
    recorder = Recorder(path)
    recorder.add(request({"q": 1}), reply("good"))
    with pytest.raises(CassetteError, match=why):
        recorder.add(
            Request(method, "http://127.0.0.1:8011/v1/users"), replace(reply("odd"), status=status)
        )
    recorder.add(request({"q": 2}), reply("good as well"))
    said = [
        json.loads(entry.reply().body)["content"]
        for entry in Cassette.open(path, check="whole").calls
    ]
    assert said == ["good", "good as well"]


def test_a_pattern_that_masks_a_whole_url_costs_that_call_and_no_other(path):
    recorder = Recorder(path)
    recorder.secrets.pattern(r"https://private\S+", "private")
    recorder.add(request({"q": 1}), reply("good"))
    with pytest.raises(CassetteError, match="taken for a secret"):
        recorder.add(request({"q": 2}, "https://private.example/x"), reply("hidden"))
    assert len(Cassette.open(path, check="whole").calls) == 1


def test_a_known_secret_is_nowhere_in_the_file(path):
    secrets = Secrets()
    secrets.learn("MY_KEY", KEY)
    recorder = Recorder(path, secrets)
    recorder.tape.start_run({"mode": "record", "kit": {"tags": {"user": KEY}}}, {}, secrets)
    recorder.tape.add_kit(recorder.run, {"argv": [KEY]}, secrets)
    body = json.dumps({"echo": KEY}).encode()
    recorder.add(
        request({"auth": KEY}, url=f"https://h/{KEY}"),
        Reply(200, (("x-echo", KEY),), (body[:9], body[9:]), (0.1, 0.2)),
    )
    entry = recorder.add(
        request({"q": 2}), Reply(401, JSON, (b'{"error":"no"}',), (0.1,)),
        kit={"x": KEY}, name=f"n {KEY}", failed=f"AuthenticationError: {KEY}", exact="a" * 16,
    )  # fmt: skip
    recorder.tape.append_more(entry, Reply(401, (), (f"late {KEY}".encode(),), (0.3,)), secrets)
    recorder.add(FunctionCall("f", {"key": KEY}), Value(freeze({"got": [KEY]})))
    recorder.end(error=f"AuthenticationError: {KEY}")
    text = path.read_text()
    assert KEY not in text and "<secret:MY_KEY>" in text
    tape = Cassette.open(path, check="whole")
    assert json.loads(tape.calls[0].reply().body)["echo"] == "<secret:MY_KEY>"
    assert not any(entry.edited() for entry in tape.calls)
