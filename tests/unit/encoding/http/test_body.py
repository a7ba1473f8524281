"""Body sections: exact bytes -> readable structure -> the same bytes; edits, hostile sections, real traffic."""

import base64
import collections
import copy
import gzip
import json
import os
import random
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tape_jupyter.encoding.yaml import emitter
from tape_jupyter.encoding.http.body import TerminalWatch, cut, decode, fold_body, renewed, restore
from tape_jupyter.encoding.http import aws_event_stream
from tape_jupyter.encoding.http.content_encoding import sealed
from tape_jupyter.errors import CassetteError
from tape_jupyter.cassette.match_key import json_value
from tests.harness.timing import at_once, growth, ratio


def written_and_read(section):
    """The section as it comes back from a cassette's text."""
    return emitter.parse_record(emitter.emit({"response": section}))["response"]


def kept(raw, content_type="", content_encoding=""):
    """The section of a body, proven through the cassette's text."""
    section = fold_body(raw, content_type, content_encoding)
    back = written_and_read(section)
    assert back == section
    assert restore(back) == (raw, False)
    return section


def sse(*events, space=" ", end="\n", **style):
    style = {"ensure_ascii": False, "separators": (",", ":"), **style}
    out = []
    for event in events:
        name, data = event if isinstance(event, tuple) else (None, event)
        lines = [f"event:{space}{name}"] if name else []
        lines.append(f"data:{space}{data if isinstance(data, str) else json.dumps(data, **style)}")
        out.append(end.join(lines) + end * 2)
    return "".join(out).encode()


def delta(text, index=0):
    return (
        "content_block_delta",
        {
            "type": "content_block_delta",
            "index": index,
            "delta": {"type": "text_delta", "text": text},
        },
    )


STOP = ("message_stop", {"type": "message_stop"})


# ---------------------------------------------------------------- JSON


DOCUMENT = {
    "model": "m",
    "n": 1,
    "x": [1.5, None, True, {"ü": "a <b> & 'c' \u2028 \x07"}],
    "empty": [{}, []],
}


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"separators": (",", ":"), "ensure_ascii": False}, "compact"),
        ({"separators": (",", ":")}, "ascii"),
        ({"ensure_ascii": False}, "spaced"),
        ({}, "plain"),
        ({"separators": (",", ": "), "ensure_ascii": False}, "colon"),
        ({"indent": 2, "ensure_ascii": False}, "indent 2"),
        ({"indent": 2}, "indent 2 ascii"),
        ({"indent": 4, "ensure_ascii": False}, "indent 4"),
        ({"indent": "\t"}, "indent tab ascii"),
    ],
)
def test_json_is_kept_as_structure_in_the_dialect_it_was_written_in(options, name):
    raw = json.dumps(DOCUMENT, **options).encode()
    section = kept(raw)
    assert (section["json"], section["body"]) == (name, DOCUMENT)


def test_white_space_around_json_is_kept():
    section = kept(b'\n   \n{"a":1}\n')
    assert {k: section[k] for k in ("json", "body", "head", "tail")} == {
        "json": "compact",
        "body": {"a": 1},
        "head": "\n   \n",
        "tail": "\n",
    }


@pytest.mark.parametrize(
    ("raw", "name"),
    [
        (b'{\n  "p": -0.026397113800048829\n}\n', "indent 2 c-floats"),
        (b'{"cost":0.000072,"tiny":1e-7,"vast":1.5e+21}', "compact js-floats"),
        (b'{"a":1e-5,"b":2.5e-7,"c":0.5}', "compact rust-floats"),
        (b'{"text": "a \\u003c b \\u003e c"}', "spaced html"),
        (b'{"text":"\\u00e9 \\u0026 \\u003c"}', "compact ascii html"),
    ],
)
def test_floats_and_escapes_of_other_encoders_are_known(raw, name):
    section = kept(raw)
    assert section["json"] == name


@pytest.mark.parametrize(
    "raw",
    [
        b'{"a":1,"a":2}',
        b'{"a":1.10}',
        b'{"a":1E5}',
        b'{"a":1.0,"b":1e0}',
        b'{"a":-0}',
        b'{"a":NaN}',
        b'{"a":1e400}',
        b'{"a":' + b"9" * 500 + b"}",
        b'{"a":' + b"9" * 5000 + b"}",
        b'{"a": 1,"b":2}',
        b'{"a":"\\/"}',
        b'{"a":"\\ud800"} \xc3\xa9'[:14] + b',"b":"\xc3\xa9"}',
        b'{"<from>":"78a670b1 messages[0:1]"}',
        b'[{"a":[{"<asset>":"x"}]}]',
        b'{"\\u003cfrom>":1}',
        b"[" * 49 + b"]" * 49,
        b"[" * 100_000,
        b'{"a":1}{"b":2}',
        b"{",
        b"{}x",
    ],
)
def test_json_that_structure_would_change_stays_text(raw):
    assert kept(raw, "application/json")["text"] == raw.decode()


def test_json_nested_as_deeply_as_allowed_is_structure():
    assert "body" in kept(b"[" * 48 + b"]" * 48)


@pytest.mark.parametrize("raw", [b"null", b"true", b'"text"', b"12", b"{}", b"[]", b"[1.5,2]"])
def test_json_that_is_one_value_is_structure_when_the_header_says_json(raw):
    assert kept(raw, "application/json")["body"] == json.loads(raw)


def test_lone_surrogates_survive():
    assert kept(b'{"a":"\\ud800"}')["body"] == {"a": "\ud800"}


@settings(deadline=None)
@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
        max_leaves=12,
    ),
    st.sampled_from(
        [
            {},
            {"indent": 2},
            {"separators": (",", ":")},
            {"separators": (",", ":"), "ensure_ascii": False},
        ]
    ),
)
def test_any_json_in_any_spelling_comes_back(value, options):
    kept(json.dumps(value, **options).encode("utf-8", "replace"), "application/json")


# ---------------------------------------------------------------- text and bytes


def test_no_bytes_are_no_section():
    assert fold_body(b"") == {}
    assert restore({"status": 204, "headers": {}}) == (b"", False)


def test_text_is_text():
    assert kept("grüße\nzeile".encode())["text"] == "grüße\nzeile"


def test_text_with_crlf_reads_as_lines():
    section = kept(b"v=0\r\no=-\r\n", "application/sdp")
    assert (section["newline"], section["text"]) == ("crlf", "v=0\no=-\n")
    assert kept(b"a\r\nb\rc\nd")["text"] == "a\r\nb\rc\nd"


@pytest.mark.parametrize(
    "raw", [b"\xff\xfe", b"RIFF\xde>\x00\x00WEBP" * 30, b"a\x00b", "\x1b[0m".encode()]
)
def test_what_cannot_be_read_is_base64_in_short_lines(raw):
    section = kept(raw, "image/webp")
    assert base64.b64decode(section["base64"]) == raw
    assert max(map(len, section["base64"].split("\n"))) <= 100


@settings(deadline=None)
@given(st.binary(max_size=300))
@example(b"\xef\xbb\xbf{}")
@example(b"data: {}\n\n\xc3")
@example(b"\x00\x00\x00\x10")
def test_any_bytes_come_back(raw):
    kept(raw)
    kept(raw, "text/event-stream")
    kept(raw, "application/vnd.amazon.eventstream", "gzip")


# ---------------------------------------------------------------- server-sent events


def test_a_stream_reads_as_in_the_cassette_format():
    raw = sse(
        delta("North lost"), delta(" the most: 31 %\n"), delta("of its customers left."), STOP
    )
    assert kept(raw, "text/event-stream")["events"] == [
        {
            "event": "content_block_delta",
            "data": {
                "type": "content_block_delta",
                "index": 0,
                "delta": {"type": "text_delta", "text": ""},
            },
            "at": "delta.text",
            "text": "North lost the most: 31 %\nof its customers left.",
            "cuts": [10, 16, 22],
        },
        {"event": "message_stop", "data": {"type": "message_stop"}},
    ]


def test_streams_without_deviations_have_no_style_keys():
    assert kept(sse(delta("a"), STOP)).keys() == {"sha256", "events"}


def test_other_leaves_that_vary_stand_beside_the_text():
    raw = sse(
        *(
            {
                "type": "d",
                "delta": t,
                "sequence_number": 4 + i,
                "obfuscation": "xyzw"[i:],
                "usage": {"n": i * i},
            }
            for i, t in enumerate(["No", "rth", " lost"])
        )
    )
    (entry,) = kept(raw)["events"]
    assert (entry["at"], entry["text"], entry["cuts"]) == ("delta", "North lost", [2, 3, 5])
    assert entry["vary"] == [
        {"at": "obfuscation", "text": "xyzwyzwzw", "cuts": [4, 3, 2]},
        {"at": "sequence_number", "count": 4},
        {"at": "usage.n", "numbers": [0, 1, 4]},
    ]


def test_padding_before_the_last_brace_is_a_number():
    padded = b"".join(
        e[:-3] + b" " * n + e[-3:]
        for e, n in zip([sse(delta(t)) for t in "abc"], [3, 0, 14], strict=True)
    )
    (entry,) = kept(padded)["events"]
    assert (entry["text"], entry["pad"]) == ("abc", [3, 0, 14])


def test_texts_of_different_blocks_are_not_joined():
    entries = kept(sse(delta("a"), delta("b"), delta("c", index=1), delta("d", index=1)))["events"]
    assert [entry["text"] for entry in entries] == ["ab", "cd"]


def test_a_text_that_grows_from_event_to_event_is_kept_once():
    whole = "North lost the most customers of all."
    (entry,) = kept(sse(*({"output": {"text": whole[:n]}} for n in (5, 15, 30, len(whole)))))[
        "events"
    ]
    assert (entry["text"], entry["upto"]) == (whole, [5, 15, 30, len(whole)])


def test_equal_events_are_counted():
    (comment, last) = kept(b": PROCESSING\n\n" * 5 + sse(STOP))["events"]
    assert comment == {"comment": "PROCESSING", "times": 5}
    assert last == {"event": "message_stop", "data": {"type": "message_stop"}}


def test_data_that_is_no_json_stays_text():
    assert kept(sse(STOP, "[DONE]"))["events"][1] == {"text": "[DONE]"}


@pytest.mark.parametrize(
    ("space", "end", "style"),
    [("", "\n", "tight"), (" ", "\r\n", "crlf"), ("", "\r\n", "crlf tight")],
)
def test_line_styles_are_named_once(space, end, style):
    section = kept(sse(delta("a"), delta("b"), STOP, space=space, end=end))
    assert section["sse"] == style
    assert section["events"][0]["text"] == "ab"


def test_an_event_in_another_dialect_says_so():
    raw = sse(delta("a")) + b'event: ping\ndata: {"type": "ping"}\n\n' + sse(delta("b"))
    assert kept(raw)["events"][1] == {"event": "ping", "data": {"type": "ping"}, "json": "spaced"}


def test_a_stream_of_escaped_letters_is_one_text():
    section = kept(
        sse(
            *(delta(t) for t in ["plain", " é", " ", "ü<", "\x1b"]),
            separators=(", ", ": "),
            ensure_ascii=True,
        )
    )
    assert section["json"] == "plain"
    assert [entry["text"] for entry in section["events"]] == ["plain é ü<\x1b"]


def test_the_order_of_an_events_fields_is_kept():
    raw = (
        b'data: {"a":1}\nid: 1\nevent: x\n\nid: 2\nretry: 3000\nevent: x\ndata: {"a":1}\n: note\n\n'
    )
    assert [list(entry) for entry in kept(raw)["events"]] == [
        ["data", "id", "event"],
        ["id", "retry", "event", "data", "comment"],
    ]


def test_data_of_several_lines_is_one_text():
    assert kept(sse(STOP) + b"data: a\ndata: b\n\n")["events"][1] == {"text": "a\nb"}


@pytest.mark.parametrize(
    "odd",
    [
        b"data:x\n\n",
        b"data\n\n",
        b"foo: bar\n\n",
        b"\n\n\n",
        b"data: a\r\n\r\n",
        b"data: a\nevent: b\ndata: c\n\n",
        b":\n\n",
    ],
)
def test_an_event_that_fits_no_rule_is_kept_raw_and_the_rest_stays_readable(odd):
    entries = kept(sse(delta("a"), delta("b")) + odd + sse(STOP))["events"]
    assert entries[0]["text"] == "ab"
    assert "raw" in entries[1] or "text" in entries[1]


def test_a_stream_that_was_cut_is_kept_to_the_last_byte():
    raw = sse(delta("a"), delta("é"))
    for end in range(60, len(raw)):
        assert "events" in kept(raw[:end], "text/event-stream") or end < len(sse(delta("a")))


def test_a_stream_whose_keys_look_like_marks_keeps_them_as_text():
    assert kept(sse(STOP, '{"<from>":"x"}'))["events"][1] == {"text": '{"<from>":"x"}'}


def test_numbers_that_are_equal_but_not_the_same_are_kept():
    kept(
        sse(
            {"x": 1, "t": "a"},
            {"x": 1.0, "t": "b"},
            {"x": 1, "t": "c"},
            {"x": True, "t": "d"},
            {"x": 0.0, "t": "e"},
        )
    )
    kept(sse({"a": 1, "b": 2, "t": "x"}, {"b": 2, "a": 1, "t": "y"}))


def test_halves_of_a_surrogate_pair_in_two_events_are_kept():
    kept(sse(delta("\ud83d"), delta("\ude00"), ensure_ascii=True))


def test_placeholders_cannot_be_forged():
    kept(sse(*({"t": t, "s": "mark0:mark~1:%s%%"} for t in ["mark0:", '"mark1:"', "%s"])))


LEAVES = st.one_of(
    st.text(max_size=4), st.integers(-3, 3), st.floats(-2, 2), st.booleans(), st.none()
)
EVENTS = st.lists(
    st.tuples(
        st.sampled_from(["", "event: a\n", "event: b\nid: 1\n", ": c\n"]),
        st.dictionaries(
            st.sampled_from(["t", "type", "n", "x.y", "", "0"]),
            LEAVES | st.lists(LEAVES, max_size=2),
            max_size=3,
        ),
        st.sampled_from(["\n\n", "\n\n", "\n\n", "\r\n\r\n", "\n", " \n\n"]),
        st.integers(0, 2),
    ),
    max_size=8,
)


@settings(max_examples=300, deadline=None)
@given(EVENTS, st.booleans(), st.booleans())
def test_any_stream_comes_back(events, ascii_only, spaced):
    separators = (", ", ": ") if spaced else (",", ":")
    raw = "".join(
        f"{head}data: {json.dumps(data, ensure_ascii=ascii_only, separators=separators)[:-1]}{' ' * pad}}}{end}"
        for head, data, end, pad in events
    ).encode("utf-8", "replace")
    kept(raw, "text/event-stream")
    kept(raw.replace(b"data: ", b""), "application/x-ndjson")


# ---------------------------------------------------------------- JSON lines, frames


def test_json_lines_fold_like_events():
    rows = [
        {"model": "m", "message": {"role": "assistant", "content": t}, "done": False}
        for t in ["No", "rth"]
    ]
    raw = b"".join(
        json.dumps(row, separators=(",", ":")).encode() + b"\n" for row in [*rows, {"done": True}]
    )
    assert kept(raw, "application/x-ndjson")["lines"] == [
        {
            "data": {"model": "m", "message": {"role": "assistant", "content": ""}, "done": False},
            "at": "message.content",
            "text": "North",
            "cuts": [2, 3],
        },
        {"data": {"done": True}},
    ]
    kept(raw[:-4])
    kept(raw.replace(b"\n", b"\r\n"))


def frame(name, data, kind="event"):
    payload = data if isinstance(data, bytes) else json.dumps(data, separators=(",", ":")).encode()
    return aws_event_stream.encode_frame(
        {":event-type": name, ":content-type": "application/json", ":message-type": kind}, payload
    )


def test_bedrock_frames_fold_like_events():
    text = [
        frame("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": t}, "p": "abcd"})
        for t in ["No", "rth"]
    ]
    raw = b"".join(
        [
            frame("messageStart", {"role": "assistant"}),
            *text,
            frame("messageStop", {"stopReason": "end_turn"}),
        ]
    )
    assert kept(raw, "application/vnd.amazon.eventstream")["frames"][1] == {
        "event": "contentBlockDelta",
        "data": {"contentBlockIndex": 0, "delta": {"text": ""}, "p": "abcd"},
        "at": "delta.text",
        "text": "North",
        "cuts": [2, 3],
    }
    assert "frames" in kept(raw)
    kept(raw[:-3])
    kept(raw + b"\x00\x00")


def test_the_events_inside_bedrock_chunks_can_be_read_and_edited():
    inner = [json.dumps(delta(t)[1], separators=(",", ":")).encode() for t in ["No", "rth"]]
    raw = b"".join(
        frame("chunk", {"bytes": base64.b64encode(b).decode(), "p": "ab"}) for b in inner
    )
    section = kept(raw, "application/vnd.amazon.eventstream")
    (entry,) = section["frames"]
    assert (entry["at"], entry["text"], entry["opened"]) == ("bytes.delta.text", "North", "compact")
    entry["text"] = "South"
    edited, changed = restore(section)
    assert changed
    chunks = [
        json.loads(aws_event_stream.frame_payload(f))["bytes"]
        for f in aws_event_stream.split_frames(edited)
    ]
    assert [json.loads(base64.b64decode(c))["delta"]["text"] for c in chunks] == ["So", "uth"]


def test_frames_with_other_headers_or_payloads_are_kept():
    odd = aws_event_stream.encode_frame(
        {":message-type": "exception", ":exception-type": "throttlingException"},
        b'{"message":"slow"}',
    )
    section = kept(odd + frame("x", b"\xff\xfe") + frame("y", b"") + frame("z", b"plain"))
    assert section["frames"][0]["headers"][":exception-type"] == "throttlingException"
    assert "base64" in section["frames"][1]
    assert section["frames"][2:] == [{"event": "y", "text": ""}, {"event": "z", "text": "plain"}]


# ---------------------------------------------------------------- content-encodings


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "zstd", "gzip, br"])
def test_an_encoded_reply_can_be_read_and_gives_its_exact_bytes(coding):
    wire = sealed(b'{\n  "id": 1\n}', coding)
    section = kept(wire, "application/json", coding)
    assert (section["encoding"], section["json"], section["body"]) == (
        coding,
        "indent 2",
        {"id": 1},
    )


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "zstd", "gzip, br"])
def test_an_edited_reply_is_encoded_afresh(coding):
    section = kept(sealed(b'{"id":1}', coding), "application/json", coding)
    section["body"]["id"] = 2
    wire, edited = restore(section)
    assert edited
    assert decode(wire, coding) == b'{"id":2}'


def test_an_encoded_stream_folds():
    section = kept(gzip.compress(sse(delta("a"), delta("b"), STOP)), "text/event-stream", "gzip")
    assert section["events"][0]["text"] == "ab"


def test_a_bomb_is_kept_as_bytes_and_said_to_be_too_large():
    wire = gzip.compress(bytes(65 * 2**20))
    section = kept(wire, "application/json", "gzip")
    assert section["too large to open"] is True
    assert section["base64"]


@pytest.mark.parametrize(
    "wire",
    [b'{"a":1}', b"\x1f\x8b\x08garbage", gzip.compress(b"x" * 100)[:8], gzip.compress(b"")],
    ids=["json", "garbage", "a head alone", "nothing"],
)
def test_a_body_that_is_not_in_the_encoding_its_header_names_is_kept(wire):
    assert "encoding" not in kept(wire, "application/json", "gzip")


def test_a_cut_gzip_stream_is_kept_and_read_as_far_as_it_goes():
    wire = gzip.compress(b'{"a":"' + random.Random(1).randbytes(3000).hex().encode() + b'"}')
    assert kept(wire[:1500], "application/json", "gzip")["text"].startswith('{"a":"')


def test_a_masked_section_gets_new_digests_and_bytes():
    for coding in ("", "gzip"):
        section = fold_body(sealed(b'{"key":"sk-1"}', coding), "application/json", coding)
        section["body"]["key"] = "masked"
        fresh, raw = renewed(section)
        assert restore(written_and_read(fresh)) == (raw, False)
        assert decode(raw, coding) == b'{"key":"masked"}'


# ---------------------------------------------------------------- edits by hand


def test_an_edited_text_is_cut_again_into_as_many_events():
    section = fold_body(sse(delta("North"), delta(" lost"), delta(" most"), STOP))
    for text, parts in [
        ("South lost most", ["South", " lost", " most"]),
        ("South lost the most by far", ["South", " lost", " the most by far"]),
        ("So", ["So", "", ""]),
        ("", ["", "", ""]),
    ]:
        section["events"][0]["text"] = text
        raw, edited = restore(section)
        assert edited is (text != "North lost most")
        assert raw == sse(*map(delta, parts), STOP)


def test_an_edit_back_to_the_recorded_text_is_no_edit():
    section = fold_body(sse(delta("North"), delta(" lost")))
    section["events"][0]["text"] = "South lost"
    assert restore(section)[1]
    section["events"][0]["text"] = "North lost"
    assert not restore(section)[1]


def test_a_reply_written_by_hand_needs_no_digest():
    assert restore({"json": "compact", "body": {"a": 1}}) == (b'{"a":1}', True)
    assert restore({"body": [1]}) == (b"[1]", True)
    assert restore({"text": "hello"}) == (b"hello", True)
    assert restore({"events": [{"text": "[DONE]"}]}) == (b"data: [DONE]\n\n", True)


# ---------------------------------------------------------------- what is malformed


@pytest.mark.parametrize(
    ("section", "words"),
    [
        ({"sha256": "0"}, "the body is missing"),
        ({"sha256": "0", "body": 1, "text": "x"}, "one body only: body and text"),
        ({"json": "yaml", "body": 1}, "'yaml' is not a known dialect"),
        ({"json": 7, "body": 1}, "7 is not a known dialect"),
        ({"body": float("nan")}, "cannot be made into bytes"),
        ({"body": {"a": b"x"}}, "cannot be made into bytes"),
        ({"text": 5}, "text: 5 is not text"),
        ({"text": "\ud800"}, "cannot be made into bytes"),
        ({"text": "x", "newline": "cr"}, "neither lf nor crlf"),
        ({"base64": "!!!"}, "base64 is not base64"),
        ({"base64": "é"}, "base64 is not base64"),
        ({"base64": ["x"]}, "base64 is not text"),
        ({"events": {}}, "list of `key: value` entries"),
        ({"events": ["x"]}, "list of `key: value` entries"),
        ({"events": [{"evnt": "x"}]}, "an entry has no 'evnt'"),
        ({"events": [], "sse": "cr"}, "crlf and tight"),
        ({"events": [], "sse": None}, "cannot be made"),
        ({"events": [{"event": 1, "data": {}}]}, "event: 1 is not text"),
        ({"events": [{"data": {"a": ""}, "text": "x"}]}, "both only with `at`"),
        ({"events": [{"data": {"a": ""}, "at": "b", "text": "x", "cuts": [1]}]}, "KeyError: 'b'"),
        (
            {"events": [{"data": {"a": ""}, "at": "a.b", "text": "x", "cuts": [1]}]},
            "cannot be made",
        ),
        ({"events": [{"data": {"a": ""}, "at": "a", "text": "x"}]}, "KeyError: 'cuts'"),
        ({"events": [{"data": {"a": ""}, "at": "a", "text": "x", "cuts": []}]}, "equally long"),
        (
            {"events": [{"data": {"a": ""}, "at": "a", "text": "x", "cuts": [-1, 2]}]},
            "character counts",
        ),
        (
            {"events": [{"data": {"a": ""}, "at": "a", "text": "x", "cuts": [True]}]},
            "character counts",
        ),
        ({"events": [{"data": {"a": ""}, "at": "a", "text": 1, "cuts": [1]}]}, "character counts"),
        (
            {"events": [{"data": {"a": ""}, "at": "a", "text": "x", "cuts": [1], "times": 2}]},
            "equally long",
        ),
        (
            {"events": [{"data": {"a": ""}, "at": "a", "text": "x", "cuts": [1], "pad": [1, 2]}]},
            "equally long",
        ),
        (
            {"events": [{"data": {"a": 0}, "vary": [{"at": "a", "count": "1"}]}]},
            "count is the first number",
        ),
        (
            {"events": [{"data": {"a": 0}, "vary": [{"at": "a", "numbers": ["1"]}]}]},
            "not a JSON number",
        ),
        (
            {"events": [{"data": {"a": 0}, "vary": [{"at": "a", "numbers": [True]}]}]},
            "not a JSON number",
        ),
        (
            {"events": [{"data": {"a": 0}, "vary": [{"at": "a", "count": 1}] * 2}]},
            "the same address",
        ),
        ({"events": [{"data": {"a": 0}, "vary": {"at": "a"}}]}, "cannot be made"),
        ({"events": [{"data": {}, "times": 10**12}]}, "too large"),
        ({"events": [{"data": {}, "times": 0}]}, "equally long"),
        ({"events": [{"data": {}, "times": "2"}]}, "equally long"),
        ({"events": [{"data": {}, "pad": -1}]}, "number of spaces"),
        ({"events": [{"data": {}, "pad": 10**9}]}, "number of spaces"),
        ({"events": [{"raw": "x", "times": 10**12}]}, "too large"),
        ({"events": [{"text": "x", "times": 10**12}]}, "too large"),
        ({"events": [{"base64": "eA==", "times": 10**12}]}, "too large"),
        (
            {"events": [{"data": {"a": 0}, "vary": [{"at": "a", "count": 1}], "times": 10**12}]},
            "too large",
        ),
        ({"events": [{"data": {}, "json": "nope"}]}, "is not a known dialect"),
        ({"frames": [{"data": {}}]}, "KeyError: 'event'"),
        ({"frames": [{"headers": {"a": 1}, "data": {}}]}, "cannot be made"),
        ({"frames": [{"headers": {"a" * 300: "x"}, "data": {}}]}, "cannot be made"),
        ({"frames": [{"base64": "?"}]}, "cannot be made"),
        ({"frames": [{"event": "chunk", "opened": "compact", "data": {}}]}, "cannot be made"),
        ({"lines": [{}]}, "KeyError: 'text'"),
        ({"encoding": "lzma", "text": "x"}, "not one of gzip"),
        ({"encoding": 5, "text": "x"}, "not text"),
        (
            {
                "encoding": "gzip",
                "wire": "x",
                "plain": "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881",
                "text": "x",
            },
            "wire is not base64",
        ),
    ],
)
def test_a_malformed_section_is_a_cassette_error_that_says_what(section, words):
    caught = at_once(lambda: pytest.raises(CassetteError, restore, section))
    assert words in str(caught.value)


def places(value, path=()):
    yield path
    items = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for key, item in items:
        yield from places(item, (*path, key))


def mutated(section, rng):
    section = copy.deepcopy(section)
    path = rng.choice([p for p in places(section) if p])
    holder = section
    for step in path[:-1]:
        holder = holder[step]
    junk = [
        None,
        True,
        -1,
        10**30,
        1.5,
        "",
        "x",
        "\ud800",
        [],
        {},
        [1],
        {"a": 1},
        ["x"],
        3,
        "delta.text",
        [[]],
    ]
    if rng.random() < 0.3:
        del holder[path[-1]]
    else:
        holder[path[-1]] = rng.choice(junk)
    return section


def test_a_mutated_section_gives_bytes_or_a_cassette_error():
    rng = random.Random(7)
    sources = [
        fold_body(sse(delta("a"), delta("b"), STOP, "[DONE]") + b": x\n\n: x\n\nodd\n\n"),
        fold_body(
            sse(*({"d": t, "n": i, "m": i * i, "o": t} for i, t in enumerate("abc"))), "", ""
        ),
        fold_body(
            frame("a", {"x": 1})
            + frame("chunk", {"bytes": base64.b64encode(b'{"a":1}').decode()})
            + b"xx"
        ),
        fold_body(b'{"a":"x"}\n{"a":"y"}\nz'),
        fold_body(gzip.compress(b'{"a":[1,2]}'), "", "gzip"),
        fold_body(b"\xff"),
    ]
    for _ in range(6000):
        section = mutated(rng.choice(sources), rng)
        try:
            raw, edited = restore(section)
        except CassetteError:
            continue
        assert isinstance(raw, bytes)
        assert isinstance(edited, bool)


# ---------------------------------------------------------------- network reads


def test_recorded_reads_cut_the_body_as_it_arrived():
    assert cut(b"abcdef", [2, 0, 4]) == [b"ab", b"", b"cdef"]
    assert cut(b"", []) == []
    assert cut(b"abc", []) == [b"abc"]


def test_an_edited_stream_is_cut_between_events():
    old, new = sse(*map(delta, "abcd"), STOP), sse(*(delta(t * 50) for t in "abcd"), STOP)
    reads = [len(e) for e in old.split(b"\n\n")[:-1]]
    reads = [n + 2 for n in reads]
    assert sum(reads) == len(old)
    chunks = cut(new, reads, "text/event-stream")
    assert b"".join(chunks) == new
    assert 1 < len(chunks) <= len(reads)
    assert all(chunk.endswith(b"\n\n") for chunk in chunks)


@settings(deadline=None)
@given(st.binary(max_size=60), st.lists(st.integers(0, 40), max_size=8))
def test_cutting_never_loses_a_byte(body, reads):
    chunks = cut(body, reads)
    assert b"".join(chunks) == body
    assert len(chunks) <= max(len(reads), 1)


# ---------------------------------------------------------------- terminal events


def hits(raw, size, content_type="", content_encoding="", length=None):
    """Offsets of the last bytes of the network reads that completed a terminal event."""
    watch = TerminalWatch(content_type, content_encoding, length)
    return [
        min(i + size, len(raw)) for i in range(0, len(raw), size) if watch.feed(raw[i : i + size])
    ]


GEMINI = {"candidates": [{"content": {"parts": [{"text": "x"}]}, "finishReason": "STOP"}]}
ENDS = {
    "anthropic": sse(delta("a"), STOP),
    "an error": sse(
        delta("a"), ("error", {"type": "error", "error": {"type": "overloaded_error"}})
    ),
    "chat": sse({"choices": [{"delta": {"content": "a"}, "finish_reason": None}]}, "[DONE]"),
    "chat error": sse({"choices": []}, {"error": {"message": "boom"}}),
    "responses": sse(
        ("response.output_text.delta", {"delta": "a"}),
        ("response.completed", {"type": "response.completed"}),
    ),
    "responses, no names": sse(
        {"type": "response.output_text.delta"}, {"type": "response.incomplete"}
    ),
    "gemini": sse({"candidates": [{"content": {}}]}, GEMINI, separators=(",", ": "), end="\r\n"),
    "cohere": sse(
        ("content-delta", {"type": "content-delta"}), ("message-end", {"type": "message-end"})
    ),
    "mcp": sse(
        ("message", {"jsonrpc": "2.0", "method": "n"}),
        ("message", {"jsonrpc": "2.0", "id": 1, "result": {}}),
        end="\r\n",
    ),
    "ollama": b'{"message":{"content":"\\"done\\":true"},"done":false}\n{"done": true}\n',
    "converse": frame("contentBlockDelta", {"delta": {"text": "messageStop"}})
    + frame("messageStop", {}),
    "invoke": frame("chunk", {"bytes": base64.b64encode(b'{"type":"x"}').decode()})
    + frame("chunk", {"bytes": base64.b64encode(b'{"type":"message_stop"}').decode()}),
    "exception": frame("x", {})
    + frame("throttlingException", {"message": "slow"}, kind="exception"),
}


@pytest.mark.parametrize("name", ENDS)
@pytest.mark.parametrize("size", [1, 2, 3, 7, 64, 10**6])
def test_the_terminal_event_is_seen_with_its_last_byte(name, size):
    kind = (
        "application/x-ndjson"
        if name == "ollama"
        else ""
        if name != "anthropic"
        else "text/event-stream"
    )
    assert hits(ENDS[name], size, kind) == [len(ENDS[name])]


@pytest.mark.parametrize("name", ["anthropic", "gemini"])
@pytest.mark.parametrize("coding", ["gzip", "br", "zstd", "deflate"])
def test_the_terminal_event_is_seen_through_a_content_encoding(name, coding):
    wire = sealed(ENDS[name], coding)
    assert hits(wire, 5, "text/event-stream", coding)


@pytest.mark.parametrize(
    "text",
    [
        "[DONE]",
        "data: [DONE]\n\n",
        'event: message_stop\ndata: {"type":"message_stop"}\n\n',
        '"finishReason":"STOP"',
        "error",
    ],
)
@pytest.mark.parametrize("size", [1, 10**6])
def test_words_of_the_model_end_nothing(text, size):
    assert (
        hits(
            sse(delta(text), {"choices": [{"delta": {"content": text}}]}), size, "text/event-stream"
        )
        == []
    )


def test_the_last_declared_byte_ends_a_reply():
    assert hits(b'{"a":1}', 3, "application/json", "", 7) == [7]
    assert hits(b'{"a":1}', 3, "application/json") == []


@settings(deadline=None)
@given(
    st.lists(st.binary(max_size=30), max_size=10),
    st.sampled_from(["", "text/event-stream", "application/x-ndjson", "x.amazon.eventstream"]),
)
def test_watching_never_raises(chunks, kind):
    watch = TerminalWatch(kind, "gzip" if len(chunks) % 2 else "")
    assert all(isinstance(watch.feed(chunk), bool) for chunk in chunks)


def test_watching_one_endless_event_is_linear():
    def watched(n):
        def work():
            watch = TerminalWatch("text/event-stream")
            for _ in range(n):
                watch.feed(b"data: x")

        return work

    assert growth(watched, 10_000, 80_000) < 4


# ---------------------------------------------------------------- speed (generous: ten times what is measured)


def test_a_2000_event_stream_folds_and_unfolds_quickly():
    raw = sse(*(delta(f"word {i} ") for i in range(2000)), STOP)
    section = fold_body(raw, "text/event-stream")
    assert restore(section) == (raw, False)
    assert len(section["events"]) == 2

    def events_as_json():
        return [
            json.dumps(json.loads(event[6:]))
            for event in raw.split(b"\n\n")
            if event.startswith(b"data: {")
        ]

    assert ratio(lambda: fold_body(raw, "text/event-stream"), events_as_json) < 300
    assert ratio(lambda: restore(section), events_as_json) < 25


# ---------------------------------------------------------------- real traffic


CORPUS = (
    Path(os.environ.get("TAPE_CORPUS", Path(__file__).parents[5] / "shared" / "corpus"))
    / "corpus_dev.jsonl.gz"
)


def corpus():
    with gzip.open(CORPUS, "rt", encoding="utf-8") as file:
        for line in file:
            record = json.loads(line)
            if record["fidelity"] in ("wire", "decoded"):
                yield record


def body_of(part):
    return (
        base64.b64decode(part["body_b64"])
        if "body_b64" in part
        else part.get("body_text", "").encode()
    )


def header_of(part, name):
    return next((value for key, value in part["headers"] if key.lower() == name), "")


@pytest.mark.skipif(not CORPUS.exists(), reason=f"no corpus at {CORPUS}; set TAPE_CORPUS")
def test_real_traffic_comes_back_byte_for_byte_and_nearly_all_of_it_is_readable(record_property):
    forms = collections.Counter()
    for record in corpus():
        for part in (record["request"], record["response"]):
            raw = body_of(part)
            section = kept(
                raw, header_of(part, "content-type"), header_of(part, "content-encoding")
            )
            forms[
                next(
                    (
                        f
                        for f in ("body", "events", "lines", "frames", "text", "base64")
                        if f in section
                    ),
                    "none",
                )
            ] += 1
            assert not any(
                "raw" in entry
                for entry in section.get("events", ())[:-1]
                if record["id"] != "8f38c6f76cce-000"
            )
    print(dict(forms))
    record_property("forms", dict(forms))
    readable = forms["body"] + forms["events"] + forms["frames"] + forms["lines"]
    assert readable / (sum(forms.values()) - forms["none"]) > 0.985


@pytest.mark.skipif(not CORPUS.exists(), reason=f"no corpus at {CORPUS}; set TAPE_CORPUS")
def test_the_end_of_nearly_every_real_stream_is_seen():
    seen, streamed = 0, 0
    for record in corpus():
        raw, part = body_of(record["response"]), record["response"]
        if record["stream"] and raw and part["status"] == 200:
            streamed += 1
            seen += bool(
                hits(raw, 50, header_of(part, "content-type"), header_of(part, "content-encoding"))
            )
    assert seen / streamed > 0.97, f"{seen} of {streamed}"


@pytest.mark.parametrize(
    "text", ['{"a": 1.0}', '{"a":1e3}', '{"a":[1,2.5],"b":"x"}', '{"a":1}', '{"<a":1}', "[1.50]"]
)
def test_a_body_that_was_parsed_already_is_kept_as_one_that_was_not(text):
    raw = text.encode()
    told = fold_body(raw, "application/json", parsed=json_value(raw))
    assert told == fold_body(raw, "application/json")
    assert restore(told) == (raw, False)


def test_an_event_of_many_lines_takes_time_in_proportion():
    def folded(count):
        text = "".join(f"data: line {n} of a table\n" for n in range(count)) + "\n"
        return lambda: fold_body(text.encode(), "text/event-stream")

    assert growth(folded, 2_000, 16_000) < 4
