"""What the files of a bundle say, each text with the place where a person finds it."""

import bz2
import gzip
import io
import json
import lzma
import sqlite3
import zipfile
import zlib

from tape_jupyter.secrets import passages
from tape_jupyter.core.call import FunctionCall, Reply, Value
from tape_jupyter.encoding.values.registry import freeze
from tests.harness.recorder import JSON, SSE, Recorder, reply, request, talk


def said(path, data):
    """Place -> texts."""
    out = {}
    for passage in passages.file_passages(path, data):
        out.setdefault(passage.place(0), []).append(passage.text)
    return out


def texts(path, data):
    return [passage.text for passage in passages.file_passages(path, data)]


def taped(folder, *calls):
    recorder = Recorder(folder / "main.tape.yaml")
    names = [recorder.add(*call).id for call in calls]
    recorder.end()
    return (folder / "main.tape.yaml").read_bytes(), recorder.run, names


def events(*data):
    return tuple(f"data: {json.dumps(each)}\n\n".encode() for each in data)


def test_a_call_is_told_by_its_id_its_run_its_line_and_the_address(tmp_path):
    data, run, (name, tool) = taped(
        tmp_path,
        (
            request(
                {"messages": [{"content": "which region?"}]},
                "https://api.example.com/v1?tenant=acme",
            ),
            reply("north"),
        ),
        (FunctionCall("look_up", {"id": "C-17"}), Value(freeze({"name": "Ada"}))),
    )
    found = said("session/churn.tapes/main.tape.yaml", data)
    line = data.decode()[
        : data.decode().index(
            f'call: "{name}"' if f'call: "{name}"' in data.decode() else f"call: {name}"
        )
    ].count("\n")
    call = f"session/churn.tapes/main.tape.yaml, call {name} of {run}, line {line}"
    assert found[f"{call}, request.body.messages.0.content"] == ['"content": "which region?"']
    assert found[f"{call}, request.post"] == ['"post": "https://api.example.com/v1?tenant=acme"']
    assert found[f"{call}, response.body.content"] == ['"content": "north"']
    assert any(
        place.endswith("request.arguments.id") and f"call {tool}" in place for place in found
    )
    assert any(place.endswith("response.value.name") for place in found)


def test_a_stream_is_told_as_what_it_said_in_the_end_however_it_was_cut(tmp_path):
    pieces = ["to be ", "cut ", "in ", "pieces"]
    part = lambda text, index: {
        "type": "content_block_delta",
        "index": index,
        "delta": {"text": text},
    }
    mixed = [
        event
        for piece in pieces
        for event in (part(piece, 0), {"type": "ping", "n": [1]}, part("word ", 1))
    ]
    chat = [
        {"choices": [{"index": 0, "delta": {"content": piece}, "n": [n]}]}
        for n, piece in enumerate(pieces)
    ]
    for body in (mixed, chat):
        data, _, _ = taped(
            tmp_path / str(len(body)),
            (request({"stream": True}), Reply(200, SSE, events(*body), tuple(0.1 for _ in body))),
        )
        assert any("to be cut in pieces" in text for text in texts("main.tape.yaml", data))


def test_a_stream_that_stands_as_plain_text_is_read_too():
    section = 'data: {"t": "to be "}\n: odd\ndata: {"t": "cut"}\n\n'
    record = {"call": "aaaaaaaa", "run": "r-1", "response": {"text": section}}
    from tape_jupyter.encoding.yaml import emitter

    assert any("to be cut" in text for text in texts("a.tape.yaml", emitter.emit(record).encode()))


def test_packed_and_binary_bodies_are_opened(tmp_path):
    body = gzip.compress(b'{"content": "from the depth"}')
    headers = (*JSON, ("content-encoding", "gzip"))
    raw = Reply(200, (), (b"\xff\xfe\x00" + b"legible text in bytes",), (0.1,))
    data, _, _ = taped(
        tmp_path,
        (request({"q": 1}), Reply(200, headers, (body,), (0.1,))),
        (request({"q": 2}), raw),
    )
    found = texts("main.tape.yaml", data)
    assert any("from the depth" in text for text in found) and any(
        "legible text in bytes" in text for text in found
    )


def test_what_is_no_cassette_is_read_as_text():
    assert "half a record" in " ".join(texts("a.tape.yaml", b"---\ncall: [\n...\nhalf a record"))
    assert "not UTF-8 at all" in " ".join(texts("a.tape.yaml", b"\xff not UTF-8 at all"))


def test_cells_are_told_by_number_source_lines_and_outputs():
    outputs = [
        {"output_type": "stream", "name": "stdout", "text": ["one\n", "two\n"]},
        {
            "output_type": "display_data",
            "data": {"text/html": ["<b>bold", "er</b>"]},
            "metadata": {"who": "Ada"},
        },
        {"output_type": "error", "ename": "E", "evalue": "bad", "traceback": ["at 1", "at 2"]},
    ]
    cell = {
        "cell_type": "code",
        "id": "c1",
        "source": ["a = 1\n", "b = 2"],
        "outputs": outputs,
        "metadata": {"tags": ["t"]},
    }
    book = {
        "cells": [{"cell_type": "markdown", "source": "hello"}, cell],
        "metadata": {"title": "churn"},
    }
    found = said("session/churn.ipynb", json.dumps(book).encode())
    assert found["session/churn.ipynb, cell 1, source, line 1"] == ["hello"]
    assert found["session/churn.ipynb, cell 2, source, line 1"] == ["a = 1\nb = 2"]
    assert "one\ntwo\n" in found["session/churn.ipynb, cell 2, output 1, text"]
    assert "<b>bolder</b>" in found["session/churn.ipynb, cell 2, output 2, data.text/html"]
    assert found["session/churn.ipynb, cell 2, output 2, metadata.who"] == ['"who": "Ada"']
    assert '"evalue": "bad"' in found["session/churn.ipynb, cell 2, output 3, evalue"]
    assert '"title": "churn"' in found["session/churn.ipynb, metadata.title"]
    assert "broken {" in " ".join(texts("a.ipynb", b"broken {"))


def test_a_place_in_a_text_has_its_line():
    (passage,) = passages.file_passages("session/a.csv", b"a\nb\nc")
    assert (
        passage.place(passage.text.index("c")) == "session/a.csv, line 3"
        and passage.place() == "session/a.csv"
    )


def test_archives_are_read_three_levels_deep():
    inner = b"a note in an archive"
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("deep/note.txt", inner)
        archive.writestr("again.gz", gzip.compress(gzip.compress(b"the third level down")))
        archive.writestr("deeper.gz", gzip.compress(gzip.compress(gzip.compress(b"the fourth"))))
    found = said("d.zip", packed.getvalue())
    assert found["d.zip!deep/note.txt, line 1"] == [inner.decode()]
    assert found["d.zip!again.gz, line 1"] == ["the third level down"]
    assert found["d.zip, names in it"] == ["deep/note.txt\nagain.gz\ndeeper.gz"]
    assert not any("the fourth" in text for text in texts("d.zip", packed.getvalue()))
    for pack in (gzip.compress, bz2.compress, lzma.compress):
        assert inner.decode() in texts("note.txt.x", pack(inner))
    assert texts("d.zip", b"PK\x03\x04 but broken off here")


def test_archives_in_archives_have_room_together(monkeypatch):
    monkeypatch.setattr(passages, "CAP", 100_000)
    layer = b"x" * 90_000
    for _ in range(2):
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
            for number in range(50):
                archive.writestr(str(number), layer)
        layer = packed.getvalue()
    assert sum(map(len, texts("bomb.zip", layer))) < 2_000_000


def test_bytes_are_read_as_far_as_they_are_legible(tmp_path):
    base = sqlite3.connect(tmp_path / "a.db")
    base.execute("create table t (note)")
    base.execute("insert into t values ('a note in a database')")
    base.commit()
    base.close()
    assert any(
        "a note in a database" in text for text in texts("a.db", (tmp_path / "a.db").read_bytes())
    )
    wide = b"\x00\xff" + "a note in wide letters".encode("utf-16-le")
    assert any("a note in wide letters" in text for text in texts("a.bin", wide))


def png(*chunks):
    body = b"".join(
        len(data).to_bytes(4) + kind + data + zlib.crc32(kind + data).to_bytes(4)
        for kind, data in chunks
    )
    return b"\x89PNG\r\n\x1a\n" + body


def test_what_a_picture_says_of_itself_is_read():
    picture = png(
        (b"IHDR", bytes(13)),
        (b"tEXt", b"Comment\0plain words"),
        (b"zTXt", b"Note\0\0" + zlib.compress(b"packed words")),
        (b"IEND", b""),
    )
    found = "\n".join(texts("a.png", picture))
    assert "plain words" in found and "packed words" in found


def test_history_that_a_request_repeats_is_read_where_it_stands_first(tmp_path):
    data, _, _ = taped(tmp_path, (request(talk(2)), reply()), (request(talk(3)), reply()))
    assert sum("0 turn 0" in text for text in texts("main.tape.yaml", data)) == 1


def piece(text, **more):
    return {"data": {"delta": {"text": text}}, **more}


def test_what_a_stream_says_several_times_over_is_read_as_often():
    assert "say: 0011" in passages.joined_texts(
        [piece("say: "), piece("0", times=2), piece("1", times=2)]
    )
    counted = piece("ab", times=3, vary=[{"at": "n", "count": 4}])
    counted["data"]["n"] = 0
    assert list(passages.joined_texts([counted, piece("c")])) == ["abababc"]
    for odd in (
        piece("0", times=0),
        piece("0", times="2"),
        piece("0", times=2, vary=[{}]),
        piece("0", times=10**9),
    ):
        assert list(passages.joined_texts([odd, piece("1")])) == ["01"]
