"""A cassette keeps what it was told to the byte, finds it at once, and survives whoever else has the file open."""

import gc
import json
import os
import random
import subprocess
import sys
import threading
import time
import tracemalloc

import pytest

from tape_jupyter import tapetext
from tape_jupyter.calls import FunctionCall, Reply, Request, Value, Where
from tape_jupyter.cassette import WHOLE_CHECK, Cassette
from tape_jupyter.cassette import open as tape_open
from tape_jupyter.errors import CassetteError
from tape_jupyter.frozen import freeze, freeze_error, thaw
from tape_jupyter.matching import exact_digest, match_key
from tape_jupyter.records import Head
from tape_jupyter.secrets import Secrets

URL = "https://api.example.com/v1/messages"
JSON = (("content-type", "application/json"),)
SSE = (("content-type", "text/event-stream"),)
KEY = "sk-ant-api03-1234567890abcdefg"


@pytest.fixture
def path(tmp_path):
    return tmp_path / "churn.tapes" / "main.tape.yaml"


def request(body, url=URL):
    data = body if isinstance(body, bytes) else json.dumps(body, separators=(",", ":")).encode()
    return Request("POST", url, JSON, data)


def reply(text="fine", chunks=1):
    data = json.dumps({"content": text}, separators=(",", ":")).encode()
    size = max(1, len(data) // chunks)
    parts = [data[i : i + size] for i in range(0, len(data), size)]
    return Reply(
        200, (*JSON, ("content-length", str(len(data)))), tuple(parts), tuple(round(0.1 * (n + 1), 1) for n in range(len(parts)))
    )


class Recorder:
    """Appends calls as a cell does."""

    def __init__(self, path, secrets=None, cassette=None):
        self.tape, self.secrets = cassette or Cassette.open(path), secrets or Secrets()
        self.run = self.tape.start_run({"mode": "record", "source": "x"}, {"notebook": "churn.ipynb"}, self.secrets)
        self.names = {}

    def add(self, call, answer, lineage="", **head):
        match = match_key(call, self.secrets)
        self.names[match] = count = self.names.get(match, 0) + 1
        name = match[:8] + (f"-{count}" if count > 1 else "")
        told = Head(name, self.run, match, "model", Where("c", lineage), "2026-11-21T20:41:07.512Z", 0.5, **head)
        return self.tape.append_call(told, call, answer, self.secrets)

    def end(self, **told):
        self.tape.end_run(self.run, {"outcome": "ok", **told}, self.secrets)


def held(tape):
    return [(e.run, e.id, e.match, e.lineage, e.request(), e.reply()) for e in tape.calls]


# ---------------------------------------------------------------- what goes in comes out


CALLS = [
    (request({"q": 1}), reply()),
    (request({"q": 1}), reply("again")),
    (request(b"plain \xff\x00"), Reply(200, (), (bytes(range(256)),), (0.0,))),
    (request({"q": "ünï – 😀 \ud83d\ude00"}), reply("日本\u2028\x85\x00", chunks=7)),
    (request(b""), Reply(204)),
    (request({"stream": True}), Reply(200, SSE, tuple(f'data: {{"t":"{n}"}}\n\n'.encode() for n in range(50)) + (b"data: [DONE]\n\n",), tuple(round(n / 10, 1) for n in range(51)))),
    (request({"q": "gone"}), Reply(None, (), (), (0.5,), "error", freeze_error(ConnectionRefusedError(111, "no")))),
    (request({"q": "half"}), Reply(200, JSON, (b'{"ha',), (0.5,), "error", freeze_error(ConnectionResetError(104, "r")))),
    (request({"q": "cut"}), Reply(200, SSE, (b"data: 1\n\n", b"da"), (0.5, 0.6), "closed")),
    (FunctionCall("look_up", {"id": 7, "on": True}), Value(freeze({"name": "Ada", "at": (1, 2)}))),
    (FunctionCall("look_up", {"id": 8}), Value(error=freeze_error(KeyError("ada")))),
    (FunctionCall("search", {"q": "x"}, "retrieval"), Value(freeze([1.0, None]))),
]  # fmt: skip


def test_every_call_comes_back_as_it_was(path):
    recorder = Recorder(path)
    entries = [recorder.add(call, answer, lineage=str(n)) for n, (call, answer) in enumerate(CALLS)]
    recorder.end()
    for tape in (recorder.tape, Cassette.open(path, check="whole"), tape_open(path, check="marks")):
        assert len(tape) == len(CALLS) and tape.notes == []
        for entry, ours, (call, answer) in zip(tape.calls, entries, CALLS, strict=True):
            assert (entry.run, entry.id, entry.match, entry.lineage) == (ours.run, ours.id, ours.match, ours.lineage)
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
                assert {k: thaw(v) for k, v in entry.request().arguments.items()} == dict(call.arguments)
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


def test_a_file_that_is_not_there_is_empty_and_is_not_made(path):
    tape = Cassette.open(path)
    assert (len(tape), tape.runs, tape.notes, path.parent.exists()) == (0, [], [], False)


def test_the_head_is_read_without_the_rest(path):
    recorder = Recorder(path)
    entry = recorder.add(*CALLS[0], kit={"model": "m"}, name="n")
    head = entry.head()
    assert head["kit"] == {"model": "m"} and head["call"] == entry.id and "request" not in head
    assert entry.line == path.read_text().splitlines().index(
        f"call: {tapetext.emit({'x': entry.id}).splitlines()[1][3:]}"
    )


def test_the_exact_digest_leads_to_the_match_key(path):
    recorder = Recorder(path)
    recorder.add(*CALLS[0], exact=exact_digest(CALLS[0][0]))
    for tape in (recorder.tape, Cassette.open(path)):
        assert tape.match_of(exact_digest(CALLS[0][0])) == tape.calls[0].match
        assert tape.match_of("0" * 16) == ""


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
        text = "".join(r.choices(words[:-1], k=r.randrange(40))) + (words[-1] if r.random() < 0.1 else "")
        value = r.choice(
            [{"t": text, "<from>": text}, [text, {"<asset>": "x"}], {"messages": [{"c": text}] * r.randrange(4)}, text]
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
            Reply(200, (("Content-Type", r.choice(["text/plain", "application/json", "text/event-stream"])),), chunks),
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


def talk(turns, run=0):
    return {
        "system": "Be careful. " * 40,
        "messages": [{"role": "user", "content": f"{run} turn {n} " + "word " * 40} for n in range(turns)],
    }


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
    assert [len(json.loads(entry.request().body)["messages"]) for entry in tape.calls] == [20, 21, 21]


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
    first, second = (recorder.add(request({"n": n}), Reply(200, SSE, (b"data: [DONE]\n\n",), (0.1,))) for n in (1, 2))
    recorder.tape.append_more(first, Reply(200, SSE, (b": bye\n\n", b"\n"), (0.2, 0.3)), recorder.secrets)
    recorder.tape.append_more(second, Reply(200, SSE, (), (), "error", freeze_error(OSError("r"))), recorder.secrets)
    for tape in (recorder.tape, Cassette.open(path, check="whole")):
        one, two = (entry.reply() for entry in tape.calls)
        assert (one.chunks, one.waits) == ((b"data: [DONE]\n\n", b": bye\n\n", b"\n"), (0.1, 0.2, 0.3))
        assert (two.end, two.chunks) == ("error", (b"data: [DONE]\n\n",))
        assert not any(entry.edited() for entry in tape.calls)


# ---------------------------------------------------------------- edited by hand


def test_a_word_changed_by_hand_is_what_is_replayed(path):
    recorder = Recorder(path)
    recorder.add(request({"q": 1}), reply("North lost the most", chunks=3))
    path.write_text(path.read_text().replace("North lost", "South lost"))
    assert recorder.tape.refresh() and not recorder.tape.refresh()
    for tape in (recorder.tape, Cassette.open(path)):
        (entry,) = tape.edited()
        body = entry.reply().body
        assert json.loads(body) == {"content": "South lost the most"}
        assert entry.reply().header("content-length") == str(len(body)) and len(entry.reply().chunks) == 3


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
    assert {(e.run, e.id, e.offset) for e in one.tape.calls} == {(e.run, e.id, e.offset) for e in tape.calls}
    assert sorted(e.offset for e in one.tape.calls) == [e.offset for e in one.tape.calls]


def test_what_another_kernel_appends_is_read_in_place(path):
    mine = Recorder(path)
    mine.add(*CALLS[0])
    entry = mine.tape.calls[0]
    other = Recorder(path)
    other.add(*CALLS[3])
    assert mine.tape.refresh()
    assert mine.tape.calls[0] is entry and len(mine.tape.calls) == 2 and len(mine.tape.runs) == 2


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
    "change", [edited_in_place, edited_longer, cut_to_the_header, removed, removed_with_its_folder, emptied, replaced]
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
    assert [run["run"] for run in tape.runs] == [recorder.run] and list(tape.ended) == [recorder.run]
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


def test_a_known_secret_is_nowhere_in_the_file(path):
    secrets = Secrets()
    secrets.learn("MY_KEY", KEY)
    recorder = Recorder(path, secrets)
    recorder.tape.start_run({"mode": "record", "kit": {"tags": {"user": KEY}}}, {}, secrets)
    recorder.tape.add_kit(recorder.run, {"argv": [KEY]}, secrets)
    body = json.dumps({"echo": KEY}).encode()
    recorder.add(
        request({"auth": KEY}, url=f"https://h/{KEY}"), Reply(200, (("x-echo", KEY),), (body[:9], body[9:]), (0.1, 0.2))
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


# ---------------------------------------------------------------- what it costs


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
            "body": {"model": "m", "messages": [{"role": "user", "content": " ".join(words[n % 99 : n % 99 + 200])}]},
        }
        answer = {
            "status": 200,
            "headers": dict(JSON),
            "json": "compact",
            "body": {"content": [{"type": "text", "text": " ".join(words[n % 50 : n % 50 + 300])}]},
        }
        texts.append(tapetext.emit({**head.record(), "request": ask, "response": {**answer, "waits": [0.5]}}))
    path.write_text("".join(texts))
    return path


def best(work, times=3):
    taken = []
    for _ in range(times):
        gc.collect()
        started = time.perf_counter()
        work()
        taken.append(time.perf_counter() - started)
    return min(taken)


def test_ten_thousand_calls_are_opened_faster_than_their_json_is_parsed(large, tmp_path):
    tape = Cassette.open(large)
    assert len(tape.calls) == 10_000 and large.stat().st_size > WHOLE_CHECK
    lines = tmp_path / "calls.jsonl"
    lines.write_text("".join(json.dumps(tapetext.parse(tape.text(e.offset, e.length))) + "\n" for e in tape.calls))

    def parsed():
        with lines.open() as file:
            return [json.loads(line) for line in file]

    def replayed():
        tape = Cassette.open(large)
        return tape.matching(f"{9_999:032x}")[0].reply()

    ours, theirs = best(replayed), best(parsed)
    assert ours < theirs, f"open and first replay {ours:.3f} s, json.loads {theirs:.3f} s"
    assert ours < 0.3


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


def test_appending_costs_the_same_at_the_end_of_a_large_cassette(large, tmp_path):
    copy = tmp_path / "copy.tape.yaml"
    os.link(large, copy) if False else copy.write_bytes(large.read_bytes())
    recorder = Recorder(copy)
    taken = []
    for n in range(60):
        body = talk(5, run=n)
        started = time.perf_counter()
        recorder.add(request(body), reply("word " * 200))
        taken.append(time.perf_counter() - started)
    assert sorted(taken)[30] < 0.005


def test_a_small_cassette_with_a_long_history_is_checked_in_time(path):
    recorder = Recorder(path)
    for turns in range(1, 400):
        recorder.add(request(talk(turns)), reply())
    assert path.stat().st_size < WHOLE_CHECK
    started = time.process_time()
    Cassette.open(path)
    assert time.process_time() - started < 2


def test_opening_imports_nothing_heavy(path):
    code = "import sys; from tape_jupyter.cassette import Cassette; print([m for m in ('numpy', 'pandas', 'IPython', 'httpx', 'yaml') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"
