"""Frames as lines of a cassette, and back to the byte; and what an edited one does."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tape_jupyter as tape
from tape_jupyter.encoding.http import body as http_body
from tape_jupyter.encoding.http.websocket import TurnWatch, parse_frame, frames_of, line_of
from tape_jupyter.core.call import Reply, Request
from tape_jupyter.core.websocket import WebSocketFrame
from tape_jupyter.errors import CassetteError, UnmatchedCall
from tests.harness.tapes import Recorder

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)
SPELLED = st.builds(
    lambda value, style: json.dumps(value, **style).encode("utf-8", "surrogatepass"),
    st.dictionaries(st.text(max_size=5), JSON, max_size=3) | st.lists(JSON, max_size=3),
    st.sampled_from(
        [{}, {"separators": (",", ":")}, {"indent": 2}, {"ensure_ascii": False}, {"indent": "\t"}]
    ),
)
DATA = (
    st.binary(max_size=40)
    | SPELLED
    | st.text(max_size=20).map(lambda text: text.encode())
    | SPELLED.map(lambda d: b" " + d + b"\n")
)


def message(by, kind, data, cut, whole):
    parts = (cut, max(0, len(data) - cut)) if cut is not None or not whole else ()
    parts = (min(cut or 0, len(data)), len(data) - min(cut or 0, len(data))) if parts else ()
    return WebSocketFrame(by, kind, data, parts=parts, complete=whole)


FRAMES = st.lists(
    st.builds(
        message,
        st.sampled_from(["got", "sent"]),
        st.sampled_from(["text", "binary"]),
        DATA,
        st.none() | st.integers(0, 9),
        st.just(True),
    )
    | st.builds(
        lambda by, code, reason: WebSocketFrame(by, "close", reason.encode(), code),
        st.sampled_from(["got", "sent"]),
        st.integers(1000, 4999),
        st.text(max_size=9),
    )
    | st.builds(
        lambda code: WebSocketFrame("sent", "failed", b"why", code), st.integers(1000, 4999)
    ),
    min_size=1,
    max_size=6,
)

UNHURRIED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""A busy machine makes the frames slowly: that says nothing of them."""


@UNHURRIED
@given(FRAMES)
def test_every_frame_is_one_line_and_comes_back_to_the_byte(frames):
    lines = [line_of(frame) for frame in frames]
    assert all(line.endswith(b"\n") and line.count(b"\n") == 1 for line in lines)
    assert list(frames_of(b"".join(lines))) == frames


@UNHURRIED
@given(FRAMES)
def test_a_dialogue_is_kept_readable_and_restored_exactly(frames):
    body = b"".join(line_of(frame) for frame in frames)
    section = http_body.fold_body(body)
    assert http_body.restore(section) == (body, False)


@pytest.mark.parametrize(
    ("data", "kind", "line"),
    [
        (b'{"type":"x"}', "text", b'{"got":{"type":"x"}}'),
        (b'{"type": "x"}', "text", b'{"got": {"type": "x"}}'),
        (b"hello", "text", b'{"got":"hello"}'),
        (b'{"a":1}', "binary", b'{"got":{"a":1},"as":"binary"}'),
        (b"\x00\x01", "binary", b'{"got":"AAE=","as":"base64"}'),
        (b"\xff", "text", b'{"got":"/w==","as":"base64 text"}'),
        (
            b'{\n  "a": {}\n}\n',
            "binary",
            b'{"got":{"a":{}},"json":"indent 2","tail":"\\n","as":"binary"}',
        ),
    ],
)
def test_a_line_reads_as_what_was_said(data, kind, line):
    assert line_of(WebSocketFrame("got", kind, data)) == line + b"\n"


@pytest.mark.parametrize(
    "line",
    [b"", b"x", b"[]", b"{}", b'{"said":1}', b'{"got":"%","as":"base64"}', b'{"got":"x","as":"rot13"}', b'{"got close":"1000"}', b'{"got close":7}', b'{"got":1}', b'{"got":"x","parts":["a"]}', b"\xff"],
)  # fmt: skip
def test_a_line_that_tells_no_frame_is_an_error_that_shows_it(line):
    if line == b'{"got":1}':  # a person may write a number: it is sent as one
        assert parse_frame(line).data == b"1"
        return
    with pytest.raises(CassetteError, match="tells no frame"):
        parse_frame(line)


def test_a_frame_written_by_hand_in_an_order_of_its_own_is_read():
    assert parse_frame(b'{"as":"binary","got":{"b": 1, "a":[]}}') == WebSocketFrame(
        "got", "binary", b'{"b":1,"a":[]}'
    )


@pytest.mark.parametrize(
    ("line", "ends"),
    [
        (b'{"got":{"type":"response.done","response":{}}}', True),
        (b'{"got":{"type":"response.output_text.delta","delta":"response.done"}}', False),
        (b'{"got":{"type":"x","note":"\\"response.done\\""}}', False),
        (b'{"sent": {"type": "response.done"}}', False),
        (b'{"got":{"serverContent":{"turnComplete":true}},"json":"indent 2","as":"binary"}', True),
        (b'{"got":{"toolCall":{"functionCalls":[]}}}', True),
        (b'{"got":{"serverContent":{"modelTurn":{}}}}', False),
        (b'{"got close":1000,"reason":""}', True),
        (b'{"sent close":1000,"reason":""}', True),
        (b'{"failed":1009,"reason":""}', True),
        (b'{"got":"done"}', False),
        (b'{"got":{"error":', False),
    ],
)
def test_the_end_of_a_turn_is_told_by_its_structure_not_by_its_words(line, ends):
    assert TurnWatch().feed(line + b"\n") is ends


def test_a_recorded_line_that_an_edit_broke_refuses_the_call_and_says_where(tmp_path):
    from websockets.sync.client import connect

    path = tmp_path / "main.tape.yaml"
    reply = Reply(
        101,
        (("Upgrade", "websocket"),),
        (b'{"got":"x","as":"morse"}\n',),
        (0.1,),
        reason="Switching Protocols",
    )
    Recorder(path).run("x", (Request("GET", "ws://example.com/x"), reply))
    with (
        pytest.raises(UnmatchedCall, match="cannot be replayed.*tells no frame.*morse"),
        tape.replaying(path),
    ):
        connect("ws://example.com/x")
