"""A call comes back from its record as it was, and a record edited by hand is read as edited or refused in words."""

import hashlib
import json

import pytest

from tape_jupyter.cassette import records
from tape_jupyter.encoding.yaml import emitter
from tape_jupyter.core.call import FunctionCall, Reply, Request, Value, Where
from tape_jupyter.errors import CassetteError
from tape_jupyter.encoding.values.registry import freeze, freeze_error, thaw
from tape_jupyter.cassette.records import (
    Head,
    section_headers,
    headers_record,
    kit_like,
    kit_whole,
    masked_record,
    section_reply,
    section_request,
    request_section,
    response_section,
    scrubbed,
    scrubbed_head,
    true_length,
    with_late,
    without_body,
)
from tape_jupyter.secrets.registry import Secrets

JSON = (("Content-Type", "application/json; charset=utf-8"),)
BODY = b'{"a":[1,2.5,"x"],"b":null}'
SECRET = "sk-ant-api03-1234567890abcdefg"


@pytest.fixture
def secrets():
    secrets = Secrets()
    secrets.learn("ANTHROPIC_API_KEY", SECRET)
    return secrets


def through_text(section):
    """As the cassette stores it."""
    record = {"call": "00000000", "section": section}
    return emitter.parse_record(emitter.emit(record))["section"]


def again(reply):
    back, edited = section_reply(through_text(response_section(reply, Secrets())))
    assert not edited
    return back


# ---------------------------------------------------------------- requests


@pytest.mark.parametrize(
    "method", ["GET", "POST", "PATCH", "DELETE", "QUERY", "HEAD", "!#$%&'*+-.^_`|~", "NULL"]
)
@pytest.mark.parametrize(
    "body", [b"", BODY, b"plain words", b"\xff\xfe\x00", b'{"a": 1}', b"a=1&b=2"]
)
def test_a_request_comes_back_with_method_url_and_bytes(method, body):
    request = Request(method, "https://api.example.com/v1?q=%20x", JSON, body)
    back = section_request(through_text(request_section(request, Secrets())))
    assert (back.method, back.url, back.body) == (method, request.url, body)
    assert back.headers == JSON


WORDS = """TOOL RETRIEVAL HEADERS JSON BODY TEXT BASE64 EVENTS LINES FRAMES ENCODING HEAD NEWLINE TAIL SHA256 PLAIN WIRE
READS SCRUBBED ARGUMENTS"""


@pytest.mark.parametrize("method", WORDS.split())
@pytest.mark.parametrize(
    "body", [b"", b" " + BODY, b"plain\r\nwords", b"\xff\xfe\x00", b'data: {"a": 1}\n\n']
)
def test_a_method_that_is_a_word_of_the_format_comes_back_too(method, body):
    asked = Request(method, "https://api.example/x", (("Content-Type", "application/json"),), body)
    section = through_text(request_section(asked, Secrets()))
    for told in (section, section | {"scrubbed": True}):
        back = section_request(told)
        assert (back.method, back.url, back.body) == (method, asked.url, body)


def test_head_stands_in_the_record_as_ever():
    assert (
        next(iter(request_section(Request("HEAD", "https://api.example/x"), Secrets()))) == "head"
    )


def test_request_headers_that_say_who_asks_are_not_kept():
    headers = (*JSON, ("x-api-key", SECRET), ("Cookie", "a=b"), ("x-request-id", "1"))
    assert request_section(Request("GET", "https://h/", headers), Secrets())["headers"] == dict(
        JSON
    )


@pytest.mark.parametrize("kind", ["tool", "retrieval"])
def test_a_function_call_comes_back_with_its_frozen_arguments(kind):
    call = FunctionCall("look_up", {"ids": (1, 2), "tool": "x", "retrieval": None}, kind)
    back = section_request(through_text(request_section(call, Secrets())))
    assert (back.name, back.kind) == ("look_up", kind)
    assert {k: thaw(v) for k, v in back.arguments.items()} == {
        "ids": (1, 2),
        "tool": "x",
        "retrieval": None,
    }


def test_an_argument_that_cannot_be_frozen_is_told_by_its_type():
    section = through_text(request_section(FunctionCall("f", {"db": object()}), Secrets()))
    assert section["arguments"]["db"] == {"<opaque>": "builtins.object"}


@pytest.mark.parametrize(
    "section",
    [
        {},
        {"headers": {"a": "b"}},
        {"post": 5},
        {"post": "no url"},
        {"post": None},
        {"tool": "x", "arguments": []},
    ]
    + [
        {"post": "https://h/", "headers": "x"},
        {"post": "https://h/", "text": 5},
        {"json": "compact", "body": {}},
    ],
)
def test_a_request_that_says_nothing_is_refused(section):
    with pytest.raises(CassetteError):
        section_request(section)


def test_a_request_without_its_body_keeps_method_url_and_headers():
    section = request_section(Request("POST", "https://h/", JSON, BODY), Secrets())
    assert section_request(without_body(section)) == Request("POST", "https://h/", JSON, b"")


# ---------------------------------------------------------------- replies


@pytest.mark.parametrize(
    "reply",
    [
        Reply(200, JSON, (BODY,), (0.1,)),
        Reply(200, JSON, (BODY[:5], BODY[5:]), (0.1, 0.2)),
        Reply(200, JSON, (BODY[:5], b"", BODY[5:]), (0.1, 0.2, 0.3)),
        Reply(204, (), (), ()),
        Reply(200, (("content-length", "500"),), (), ()),
        Reply(999, (), (b"x",), (0.0,), reason="Denied"),
        Reply(200, (), (b"x",), (0.0,), version="HTTP/2", reason=""),
        Reply(200, (), (b"x",), (0.0,), reason="Fine by me"),
        Reply(
            503,
            (("Set-A", "1"), ("Set-A", "2"), ("set-a", "3"), ("Empty", "")),
            (b"x",),
            (0.0,),
            reason="?",
        ),
        Reply(200, (), (b"part",), (0.5,), "closed"),
        Reply(200, (("content-length", "9"),), (b"part",), (0.5,), "cut short"),
        Reply(
            200, (), (b"part",), (0.5,), "error", freeze_error(ConnectionResetError(104, "reset"))
        ),
        Reply(200, (), (), (), "error", freeze_error(TimeoutError("slow"))),
        Reply(
            None, waits=(1.5,), end="error", error=freeze_error(ConnectionRefusedError(111, "no"))
        ),
        Reply(
            200,
            (("content-type", "text/event-stream"),),
            (b"data: {}\n\n", b"data: [DONE]\n\n"),
            (0.1, 0.2),
        ),
        Reply(200, (("content-type", "image/png"),), (bytes(range(256)),), (0.1,)),
    ],
)
def test_a_reply_comes_back_exactly(reply):
    if reply.status is not None and not reply.reason and reply.version == "HTTP/1.1":
        from http import HTTPStatus

        reply = Reply(
            reply.status,
            reply.headers,
            reply.chunks,
            reply.waits,
            reply.end,
            reply.error,
            reason=HTTPStatus(reply.status).phrase,
        )
    assert again(reply) == reply
    assert true_length(again(reply), False) == reply


@pytest.mark.parametrize(
    "value", [None, 5, "text", [1, {"a": ()}], {"status": 200, "error": "no"}, b"bytes"]
)
def test_a_value_comes_back_exactly(value):
    back = again(Value(freeze(value), seconds=1.0))
    assert isinstance(back, Value) and thaw(back.value) == value and back.error is None


def test_an_exception_of_a_tool_comes_back():
    back = again(Value(error=freeze_error(KeyError("ada"))))
    assert isinstance(back, Value) and back.error["class"].endswith("KeyError")


def test_a_header_folded_over_lines_is_kept_as_one_line():
    reply = Reply(200, (("x-a", "one\r\n two\r\n\tthree"),), (b"x",), (0.0,))
    assert again(reply).headers == (("x-a", "one two three"),)


def test_headers_are_a_map_unless_a_name_repeats():
    assert headers_record((("a", "1"), ("A", "2"))) == {"a": "1", "A": "2"}
    assert headers_record((("a", "1"), ("b", "3"), ("a", "2"))) == [
        {"a": "1"},
        {"b": "3"},
        {"a": "2"},
    ]
    assert section_headers([{"a": "1", "b": "2"}, {"a": "3"}]) == (
        ("a", "1"),
        ("b", "2"),
        ("a", "3"),
    )
    assert section_headers(None) == ()


@pytest.mark.parametrize(
    "headers", ["x", 5, ["x"], {"a": 5}, {"a": None}, {"a": ["b"]}, {"a": {"b": "c"}}]
)
def test_headers_that_are_none_are_refused(headers):
    with pytest.raises(CassetteError):
        section_headers(headers)


@pytest.mark.parametrize("value", ["a\r\nSet-Cookie: x=1", "a\nb", "a\rb", "a\0b"])
@pytest.mark.parametrize("place", ["name", "value"])
def test_a_header_that_splits_the_reply_is_refused(value, place):
    with pytest.raises(CassetteError, match="line break"):
        section_headers({value: "v"} if place == "name" else {"n": value})


@pytest.mark.parametrize(
    "status", ["200 OK", "200", 99, 1000, 0, -200, 200.0, True, None, [200], 10**300]
)
def test_a_status_that_is_none_is_refused(status):
    with pytest.raises(CassetteError, match="status"):
        section_reply({"status": status, "text": "x"})


@pytest.mark.parametrize("lowest", [100, 418, 599, 600, 999])
def test_every_status_a_server_may_send_is_read(lowest):
    assert section_reply({"status": lowest})[0].status == lowest


@pytest.mark.parametrize(
    "more",
    [
        {"waits": "x"}, {"waits": ["x"]}, {"waits": [-1]}, {"waits": [True]}, {"waits": [10**399]}, {"waits": {}},
        {"reads": "x"}, {"reads": [1.5]}, {"reads": [-1]}, {"reads": [True]}, {"reads": {}},
        {"end": "soon"}, {"end": 5}, {"end": None}, {"error": "boom"}, {"error": ["x"]},
        {"base64": "not base64!"}, {"base64": "YQ"}, {"base64": 5}, {"json": "klingon", "body": {}}, {"events": 5},
        {"text": "a", "base64": "YQ=="}, {"sha256": "0" * 64}, {"text": ["a"]}, {"encoding": "gzip", "text": 5},
    ],
)  # fmt: skip
def test_a_reply_that_makes_no_sense_is_refused(more):
    with pytest.raises(CassetteError):
        section_reply({"status": 200, **more})


@pytest.mark.parametrize("reads", [[], [0], [10**300], [1] * 5, [3, 0, 10**9]])
def test_reads_that_do_not_sum_to_the_body_still_give_the_whole_body(reads):
    reply, edited = section_reply(
        {
            "status": 200,
            "sha256": hashlib.sha256(b"hello").hexdigest(),
            "text": "hello",
            "reads": reads,
        }
    )
    assert (
        b"".join(reply.chunks) == b"hello" and len(reply.waits) == len(reply.chunks) and not edited
    )


# ---------------------------------------------------------------- edited by hand


def test_an_edited_reply_is_marked_and_its_length_follows():
    section = response_section(
        Reply(200, (*JSON, ("Content-Length", str(len(BODY)))), (BODY,), (0.1,)), Secrets()
    )
    section["body"]["b"] = "edited by hand"
    reply, edited = section_reply(section)
    assert edited and json.loads(b"".join(reply.chunks))["b"] == "edited by hand"
    assert true_length(reply, edited).header("content-length") == str(sum(map(len, reply.chunks)))


def test_a_reply_edited_to_nothing_is_empty():
    section = response_section(
        Reply(200, (("content-length", "5"),), (b"hello",), (0.1,)), Secrets()
    )
    section["text"] = ""
    reply, edited = section_reply(section)
    assert edited and true_length(reply, edited).header("content-length") == "0"


@pytest.mark.parametrize(
    "reply",
    [
        Reply(200, (("content-length", "500"),)),  # HEAD
        Reply(304, (("content-length", "500"),)),
        Reply(200, (("content-length", "500"),), (b"part",), (0.1,), "closed"),
        Reply(
            200,
            (("content-length", "500"),),
            (b"part",),
            (0.1,),
            "error",
            freeze_error(OSError("reset")),
        ),
        Reply(200, (("transfer-encoding", "chunked"),), (b"part",), (0.1,)),
    ],
)
def test_a_length_that_was_true_stays(reply):
    assert true_length(reply, False).headers == reply.headers


def test_a_length_that_lies_is_put_right():
    assert true_length(Reply(200, (("Content-LENGTH", "7"),), (b"a", b"b")), False).headers == (
        ("Content-LENGTH", "2"),
    )


# ---------------------------------------------------------------- late bytes


def test_bytes_after_the_terminal_event_follow_it():
    first = Reply(200, JSON, (b"one",), (0.1,))
    late, edited = with_late(
        first,
        [
            response_section(Reply(200, (), (b"two", b"three"), (0.2, 0.3)), Secrets()),
            response_section(
                Reply(200, (), (), (), "error", freeze_error(OSError("reset"))), Secrets()
            ),
        ],
    )
    assert (late.chunks, late.waits, late.end) == (
        (b"one", b"two", b"three"),
        (0.1, 0.2, 0.3),
        "error",
    )
    assert late.error["class"].endswith("OSError") and not edited


def test_edited_late_bytes_make_the_reply_edited():
    part = response_section(Reply(200, (), (b"two",), (0.2,)), Secrets())
    assert with_late(Reply(200), [{**part, "text": "2"}])[1]


# ---------------------------------------------------------------- secrets


def test_a_known_secret_in_a_reply_is_masked_and_its_digest_is_of_the_masked_bytes(secrets):
    body = json.dumps({"echo": f"your key is {SECRET}"}).encode()
    reply = Reply(
        200, (*JSON, ("content-length", str(len(body)))), (body[:20], body[20:]), (0.1, 0.2)
    )
    section = scrubbed(response_section(reply, secrets), secrets)
    assert SECRET not in json.dumps(section) and section["scrubbed"] is True
    back, edited = section_reply(through_text(section))
    back = true_length(back, edited)
    text = b"".join(back.chunks)
    assert not edited and json.loads(text)["echo"] == "your key is <secret:ANTHROPIC_API_KEY>"
    assert back.header("content-length") == str(len(text)) and len(back.chunks) == 2


def test_a_record_without_secrets_is_left_as_it_is(secrets):
    section = response_section(Reply(200, JSON, (BODY,), (0.1,)), secrets)
    assert scrubbed(section, secrets) is section


def test_a_secret_in_an_error_or_a_name_is_masked_too(secrets):
    head = Head(
        "0" * 8, "r", "0" * 32, "model", Where(span=(SECRET,)), "now", 1.0,
        kit={"tags": {"user": SECRET}}, name=SECRET, failed=f"AuthenticationError: {SECRET}", exact="1" * 16,
    )  # fmt: skip
    told = scrubbed_head(head, secrets)
    assert SECRET not in json.dumps(told) and "exact" not in told
    assert (told["call"], told["run"], told["match"]) == ("0" * 8, "r", "0" * 32)
    assert SECRET not in json.dumps(
        masked_record({"error": f"bad key {SECRET}", "kit": {"env": [SECRET]}}, secrets)
    )
    assert masked_record({"a": SECRET}, None) == {"a": SECRET}


# ---------------------------------------------------------------- heads and runs


def test_the_head_says_what_the_index_reads_first():
    head = Head(
        "78a670b1",
        "r-1",
        "f" * 32,
        "model",
        Where("c", "2.0", ("a", "b"), "p"),
        "now",
        0.123456,
        exact="e" * 16,
    )
    assert list(head.record())[:5] == ["call", "run", "match", "exact", "lineage"]
    assert head.record()["span"] == "a / b" and head.record()["seconds"] == 0.1235
    bare = Head("78a670b1", "r-1", "f" * 32, "tool", Where(), "now", 0.0).record()
    assert list(bare) == ["call", "run", "match", "kind", "at", "seconds"]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({}, {}),
        ({"python": "3.11", "git": {"commit": "a"}}, {"python": "3.11", "git": {"commit": "b"}}),
        ({"python": "3.11", "tags": {"user": "ada"}}, {"python": "3.11"}),
        ({"python": "3.11"}, {"python": "3.11", "new": [1]}),
        ({"a": 1, "b": 2}, {"c": 3}),
    ],
)
def test_a_kit_told_as_what_differs_from_another_is_whole_again(first, second):
    base, own = (
        {"run": "r-1", "kit": {"clock": "then", **first}},
        {"run": "r-2", "kit": {"clock": "now"}},
    )
    like = kit_like("r-2", second, base)
    assert like["kit"] == "r-2" and like["like"] == "r-1"
    assert kit_whole(through_text(like), own, base) == {"clock": "now", **second}
    assert kit_whole(through_text(kit_like("r-2", second, None)), own, None) == {
        "clock": "now",
        **second,
    }


def test_a_kit_that_was_edited_to_nonsense_is_refused():
    with pytest.raises(CassetteError, match="kit"):
        kit_whole({"kit": "r-2", "has": {}}, {"run": "r-2", "kit": 5}, None)
    with pytest.raises(CassetteError, match="has"):
        kit_whole({"kit": "r-2", "has": 5}, {"run": "r-2"}, None)


def test_what_tells_cells_apart_is_never_masked_by_a_pattern():
    secrets = Secrets()
    secrets.pattern(r"\d{4}", "digits")
    run = {
        "run": "r-12345678",
        "source": "2d12345678aabbcc",
        "session": "12345678",
        "kit": {"who": "call 12345"},
    }
    assert records.masked_record(run, secrets) == {**run, "kit": {"who": "call <secret:digits>5"}}
