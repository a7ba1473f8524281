"""When two calls are the same, and how two that are not differ."""

import gzip
import json

import pytest

from tape_jupyter.core.call import FunctionCall, Request
from tape_jupyter.errors import TapeUsageError
from tape_jupyter.cassette.growing_history import BodyHistory
from tape_jupyter.cassette.match_key import (
    IgnorePath,
    match_request as asked_of,
    asked_function,
    exact_digest,
    field_diff,
    compared_fields,
    scalar_leaves,
    likeness,
    match_key,
    nearest,
)
from tape_jupyter.secrets.registry import Secrets
from tests.harness.timing import ratio

URL = "https://api.anthropic.com/v1/messages"
BODY = {
    "model": "m",
    "max_tokens": 9,
    "temperature": 1.0,
    "messages": [{"role": "user", "content": "North?"}],
}
KEY = "sk-ant-api03-1234567890abcdefg"


def asked(body=BODY, url=URL, method="POST", headers=()):
    return Request(
        method, url, tuple(headers), body if isinstance(body, bytes) else json.dumps(body).encode()
    )


def key(call, secrets=None, ignore=()):
    return match_key(call, secrets or Secrets(), [IgnorePath(path) for path in ignore])


def same(a, b, **more):
    return key(a, **more) == key(b, **more)


def test_a_key_is_32_hex_digits_and_always_the_same():
    assert len(key(asked())) == 32 and int(key(asked()), 16)
    assert key(asked()) == key(asked())


@pytest.mark.parametrize(
    "other",
    [
        asked(json.dumps(BODY, indent=2).encode()),
        asked(json.dumps(BODY, separators=(",", ":"), sort_keys=True).encode()),
        asked({**BODY, "temperature": 1, "max_tokens": 9.0}),
        asked({**BODY, "idempotency_key": "x"}),
        asked(
            headers=[
                ("x-api-key", "other"),
                ("x-stainless-retry-count", "2"),
                ("traceparent", "00-1"),
            ]
        ),
        asked(gzip.compress(json.dumps(BODY).encode()), headers=[("content-encoding", "gzip")]),
        asked(url="https://API.anthropic.com/v1/messages"),
        asked(url=URL + "#fragment"),
    ],
)
def test_what_says_the_same_is_the_same(other):
    assert same(asked(), other)


@pytest.mark.parametrize(
    "other",
    [
        asked({**BODY, "model": "n"}),
        asked({**BODY, "max_tokens": 10}),
        asked({**BODY, "temperature": True}),
        asked({**BODY, "temperature": "1"}),
        asked({**BODY, "temperature": None}),
        asked({k: v for k, v in BODY.items() if k != "temperature"}),
        asked({**BODY, "messages": BODY["messages"] * 2}),
        asked({**BODY, "messages": [{"role": "user", "content": "North? "}]}),
        asked(method="PUT"),
        asked(url=URL + "/count"),
        asked(url=URL + "?beta=true"),
        asked(url="http://api.anthropic.com/v1/messages"),
        asked(url="https://api.anthropic.com:8443/v1/messages"),
        asked(b""),
        asked(b"plain"),
    ],
)
def test_what_says_something_else_is_not_the_same(other):
    assert not same(asked(), other)


def test_the_order_of_a_list_counts():
    assert not same(asked({"a": [1, 2]}), asked({"a": [2, 1]}))


def test_query_keys_count_in_any_order_but_repeated_ones_in_theirs():
    assert same(asked(url=URL + "?b=2&a=1"), asked(url=URL + "?a=1&b=2"))
    assert same(asked(url=URL + "?q=a+b"), asked(url=URL + "?q=a%20b"))
    assert not same(asked(url=URL + "?a=1&a=2"), asked(url=URL + "?a=2&a=1"))
    assert not same(asked(url=URL + "?a="), asked(url=URL))


def test_a_key_or_a_token_that_is_somebodys_data_counts():
    kv = "https://store.example.com/get"
    assert not same(asked(url=kv + "?key=apple"), asked(url=kv + "?key=pear"))
    assert not same(asked(url=kv + "?token=apple"), asked(url=kv + "?token=pear"))
    assert not same(asked(url=kv + "?st=1&se=2"), asked(url=kv + "?st=1&se=3"))
    assert not same(asked(url=kv + "?x-amz-meta=1"), asked(url=kv + "?x-amz-meta=2"))


def test_credentials_in_the_url_do_not_count():
    google = "https://generativelanguage.googleapis.com/v1beta/models/g:generateContent"
    assert same(
        asked(url=google + "?key=AIzaSyA12345678901234567890&alt=sse"),
        asked(url=google + "?alt=sse"),
    )
    assert same(asked(url=google + "?key=k&alt=sse"), asked(url=google + "?alt=sse"))
    strong = "https://h/v1?key=a8s7df6a8s7df6a8s7d"
    assert same(asked(url=strong), asked(url="https://h/v1"))
    assert same(asked(url="https://h/v1?api_key=short"), asked(url="https://h/v1"))
    assert same(asked(url="https://ada:pass1234word@h/v1"), asked(url="https://h/v1"))
    aws = "https://b.s3.amazonaws.com/k?X-Amz-Date={}&X-Amz-Signature={}&X-Amz-Credential=A{}&versionId=7"
    assert same(asked(url=aws.format(1, 2, 3)), asked(url=aws.format(4, 5, 6)))
    azure = "https://a.blob.core.windows.net/c/b?sv=2020&se={}&sig={}"
    assert same(asked(url=azure.format(1, 2)), asked(url=azure.format(3, 4)))


def test_a_known_secret_counts_as_its_name_and_so_does_its_marker():
    secrets = Secrets()
    secrets.learn("MY_KEY", KEY)
    secrets.learn("MY_KEY", KEY[::-1])
    for one in (KEY, KEY[::-1], "<secret:MY_KEY>"):
        assert same(asked({"auth": KEY}), asked({"auth": one}), secrets=secrets)
        assert same(
            asked(url=f"https://h/{KEY}/x"), asked(url=f"https://h/{one}/x"), secrets=secrets
        )


def test_multipart_bodies_do_not_differ_by_their_boundary():
    def form(boundary, text):
        data = f"--{boundary}\r\ncontent-disposition: form-data\r\n\r\n{text}\r\n--{boundary}--\r\n".encode()
        return asked(data, headers=[("content-type", f"multipart/form-data; boundary={boundary}")])

    assert same(form("abc123", "hi"), form("xyz789", "hi"))
    assert not same(form("abc123", "hi"), form("abc123", "ho"))


@pytest.mark.parametrize(
    "body",
    [
        b"\xff\xfe",
        b'{"a":',
        b"[1,2",
        b"{}",
        b"[]",
        b"null",
        b'{"a":NaN}',
        b'{"a":1e999}',
        b'{"a":"\\ud800"}',
        b"\xef\xbb\xbf{}",
    ]
    + [
        b'{"a":' + b"9" * 5000 + b"}",
        b"[" * 100_000,
        b'{"a":' * 900 + b"1" + b"}" * 900,
        b"\x1f\x8b broken",
    ],
)
def test_any_bytes_have_a_key_and_only_equal_ones_the_same(body):
    assert same(asked(body), asked(body))
    assert not same(asked(body), asked(body + b" x"))
    encoded = [("content-encoding", "gzip")]
    assert same(asked(body, headers=encoded), asked(body, headers=encoded))
    assert compared_fields(asked(body))["method"] == "POST"


def test_the_exact_digest_is_of_every_byte():
    assert exact_digest(asked()) == exact_digest(asked())
    assert (
        len(
            {
                exact_digest(asked(other))
                for other in (BODY, {**BODY, "n": 1}, json.dumps(BODY, indent=1).encode())
            }
        )
        == 3
    )
    assert exact_digest(asked()) != exact_digest(asked(method="PUT"))


# ---------------------------------------------------------------- tools


class Handle:
    pass


@pytest.mark.parametrize(
    ("ours", "theirs", "equal"),
    [
        ({"id": 7}, {"id": 7}, True),
        ({"id": 7, "b": 1}, {"b": 1, "id": 7}, True),
        ({"id": 7}, {"id": 8}, False),
        ({"id": 7}, {"id": "7"}, False),
        ({"id": 7}, {"ID": 7}, False),
        ({"ids": (1, 2)}, {"ids": [1, 2]}, False),
        ({"ids": {1, 2}}, {"ids": {2, 1}}, True),
        ({"db": Handle()}, {"db": Handle()}, True),
        ({"db": Handle()}, {"db": object()}, False),
        ({}, {}, True),
    ],
)
def test_tools_are_the_same_by_name_and_bound_arguments(ours, theirs, equal):
    assert same(FunctionCall("f", ours), FunctionCall("f", theirs)) is equal


def test_a_tool_a_retrieval_and_another_tool_are_three_things():
    calls = [FunctionCall("f", {}), FunctionCall("g", {}), FunctionCall("f", {}, "retrieval")]
    assert len({key(call) for call in calls}) == 3


# ---------------------------------------------------------------- --ignore


@pytest.mark.parametrize(
    ("path", "left"),
    [
        ("$.a", {"b": [{"id": 1, "t": "x"}, {"id": 2, "t": "y"}], "c": {"d": {"e": 1}}}),
        ("a", {"b": [{"id": 1, "t": "x"}, {"id": 2, "t": "y"}], "c": {"d": {"e": 1}}}),
        ("b[*].id", {"a": 1, "b": [{"t": "x"}, {"t": "y"}], "c": {"d": {"e": 1}}}),
        ("b[1].id", {"a": 1, "b": [{"id": 1, "t": "x"}, {"t": "y"}], "c": {"d": {"e": 1}}}),
        ("$.b[0]", {"a": 1, "b": [{"id": 2, "t": "y"}], "c": {"d": {"e": 1}}}),
        ("b[*]", {"a": 1, "b": [], "c": {"d": {"e": 1}}}),
        ("c.d.e", {"a": 1, "b": [{"id": 1, "t": "x"}, {"id": 2, "t": "y"}], "c": {"d": {}}}),
        ("c.*.e", {"a": 1, "b": [{"id": 1, "t": "x"}, {"id": 2, "t": "y"}], "c": {"d": {}}}),
        ("nothing.here[3]", None),
        ("a.b", None),
        ("b[7].id", None),
    ],
)
def test_an_ignored_path_is_left_out(path, left):
    value = {"a": 1, "b": [{"id": 1, "t": "x"}, {"id": 2, "t": "y"}], "c": {"d": {"e": 1}}}
    assert IgnorePath(path).drop(value) == (value if left is None else left)
    assert value["a"] == 1 and value["b"][0]["id"] == 1  # not changed itself


@pytest.mark.parametrize("path", ["", "$", "a..b", "a[", "a[x]", "a[-1]", "[", "..", "a]", "$."])
def test_what_is_no_path_is_refused(path):
    with pytest.raises(TapeUsageError, match="JSON path"):
        IgnorePath(path)


def test_ignored_paths_make_calls_the_same():
    one, other = ({**BODY, "metadata": {"ts": n}} for n in (1, 2))
    assert not same(asked(one), asked(other))
    assert same(asked(one), asked(other), ignore=["$.metadata.ts"])
    assert not same(asked(one), asked({**other, "model": "n"}), ignore=["$.metadata.ts"])


# ---------------------------------------------------------------- differences


def test_fields_are_flat_and_name_places():
    flat = compared_fields(
        asked({"a": [{"b": 1}, "x"], "c": {}, "d": [], "url": "mine", "method": "his"})
    )
    assert flat == {
        "method": "POST", "url": URL, "a[0].b": 1, "a[1]": "x", "c": {}, "d": [], "body.url": "mine", "body.method": "his",
    }  # fmt: skip
    assert compared_fields(asked(b"plain"))["body"] == "plain"
    assert compared_fields(FunctionCall("f", {"x": {"y": 1}})) == {"tool": "f", "x.y": 1}


def test_a_deep_body_has_fields_too():
    deep = []
    for _ in range(50_000):
        deep = [deep]
    assert len(list(scalar_leaves(deep))) == 1


def test_a_secret_in_the_url_is_not_shown():
    shown = compared_fields(asked(url=f"https://h/?api_key={KEY}"), secrets=Secrets())
    assert KEY not in str(shown)


def test_the_nearest_is_the_most_alike_and_the_first_of_equals():
    ours = compared_fields(asked())
    others = [("far", compared_fields(asked({"x": 1}))), ("near", compared_fields(asked({**BODY, "max_tokens": 8}))), ("twin", compared_fields(asked({**BODY, "max_tokens": 7})))]  # fmt: skip
    assert nearest(ours, others)[0] == "near"
    assert nearest(ours, []) is None
    assert likeness(ours, ours) == 1.0 and likeness(ours, {}) == 0.0


def test_a_diff_names_each_field_and_cuts_around_the_difference():
    long = "the same beginning " * 50
    recorded, now = (
        compared_fields(asked({"q": long + "North", "n": 1, "gone": True})),
        compared_fields(asked({"q": long + "South", "n": 2, "new": None})),
    )
    text = "\n".join(field_diff(recorded, now))
    assert "North'" in text and "South'" in text and "..." in text and len(text) < 1500
    assert "gone\n    recorded: True\n    now:      (absent)" in text
    assert "new\n    recorded: (absent)\n    now:      None" in text
    many = field_diff(
        {f"f{n}": n for n in range(20)}, {f"f{n}": -n - 1 for n in range(20)}, limit=3
    )
    assert many[-1] == "  ... and 17 more fields differ" and len(many) == 10
    assert field_diff(recorded, recorded) == []


def test_a_diff_of_a_text_that_only_goes_on_shows_its_end():
    text = "the same beginning " * 50
    lines = field_diff({"q": text}, {"q": text + "and one word more"})
    assert "and one word more" in lines[2] and "and one word more" not in lines[1]
    assert all(len(line) < 150 for line in lines)


def test_a_key_of_a_long_conversation_costs_a_few_times_its_json():
    body = {"messages": [{"role": "user", "content": "word " * 200} for _ in range(1000)]}
    call, secrets = asked(body), Secrets()
    assert (
        ratio(lambda: key(call, secrets), lambda: json.dumps(json.loads(call.body))) < 25
    )  # measured: 2.5


def test_queries_in_other_bytes_than_utf_8_are_told_apart():
    keys = {
        match_key(Request("GET", f"https://h.example/find?q=caf%{code}"), Secrets())
        for code in ("E9", "E8", "C3%A9")
    }
    assert len(keys) == 3


def test_what_is_not_masked_yet_tells_calls_apart_that_are_equal_once_it_is():
    secrets = Secrets()
    secrets.pattern(r"[\w.]+@[\w.]+\w", "email")
    ann, bob = (FunctionCall("lookup", {"email": f"{name}@x.org"}) for name in ("ann", "bob"))
    ann, bob = asked_function(ann, secrets), asked_function(bob, secrets)
    assert (
        ann.match == bob.match
        and ann.discriminator == bob.discriminator == ""
        and ann.plain != bob.plain
    )


def test_a_traceback_that_goes_to_the_model_is_the_same_from_any_kernel():
    """`return traceback.format_exc()` of a tool: ipykernel names the code of cells by its process."""

    def told(folder):
        text = f'Traceback (most recent call last):\n  File "{folder}/ipykernel_{len(folder)}/77.py", line 3, in f\n'
        messages = [{"role": "user", "content": "x" * 2000}, {"role": "tool", "content": text}]
        body = json.dumps({"model": "m", "messages": messages}).encode()
        return asked(body, "http://x/v1/chat/completions")

    def keys(folder):
        history, request = BodyHistory(), told(folder)
        growing = asked_of(request, Secrets(), growing=history.build_growing_body(request.body))
        call = FunctionCall("report", {"text": request.body.decode()}, "tool")
        return growing.match, match_key(request, Secrets()), match_key(call, Secrets())

    there = keys("/var/folders/zz/T")
    assert keys("/tmp") == there
    assert there[0] == there[1]
