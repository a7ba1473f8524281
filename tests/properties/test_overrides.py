"""Any answer that a person gives, or a live run gets, comes back from its take exactly; the base is as it was."""

import hashlib
import itertools
from datetime import UTC, datetime
from decimal import Decimal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tape_jupyter.encoding.values import registry
from tape_jupyter.cassette import records
from tape_jupyter.core.call import FunctionCall, Reply, Value
from tape_jupyter.cassette.cassette import Cassette
from tape_jupyter.encoding.values.registry import freeze_error
from tests.harness.tapes import Recorder, answered, asked

SETTINGS = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
CALLS = [*((asked(f"q{n}"), answered(f"a{n}")) for n in range(4)), *((FunctionCall("f", {"n": n}), Value(n)) for n in range(4))]  # fmt: skip

token = st.text(
    st.characters(min_codepoint=33, max_codepoint=126, blacklist_characters=':"'),
    min_size=1,
    max_size=12,
)
headers = st.lists(st.tuples(token.map(lambda t: f"x-{t}"), st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=20).map(str.strip)), max_size=3).map(tuple)  # fmt: skip
bodies = st.one_of(
    st.binary(max_size=60),
    st.text(max_size=40).map(lambda t: t.encode("utf-8", "surrogatepass")),
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(max_size=8),
        lambda inner: (
            st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
        ),
        max_leaves=6,
    ).map(lambda v: __import__("json").dumps(v).encode()),  # fmt: skip
    st.lists(st.text(max_size=9).filter(lambda t: "\n" not in t and "\r" not in t), max_size=4).map(
        lambda ts: "".join(f"data: {t}\n\n" for t in ts).encode()
    ),  # fmt: skip
)
errors = st.sampled_from(
    [TimeoutError("slow"), ConnectionResetError(104, "reset"), ValueError("x", 1), KeyError("k")]
)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=9) | st.binary(max_size=9)
    | st.sampled_from([Decimal("1.10"), datetime(2026, 1, 2, tzinfo=UTC), (1, 2), {1, 2}, frozenset({"a"})]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3) | st.tuples(inner, inner),
    max_leaves=8,
)  # fmt: skip


@st.composite
def replies(draw):
    body, end = draw(bodies), draw(st.sampled_from(["complete", "closed", "error", "cut short"]))
    cuts = sorted(
        {draw(st.integers(0, len(body))) for _ in range(draw(st.integers(0, 3)))} - {0, len(body)}
    )
    chunks = tuple(body[a:b] for a, b in itertools.pairwise([0, *cuts, len(body)])) if body else ()
    waits = tuple(round(draw(st.floats(0, 9)), 4) for _ in chunks)
    status = draw(st.sampled_from([200, 204, 404, 429, 500, 529]))
    kind = draw(
        st.sampled_from(
            [(), (("content-type", "application/json"),), (("content-type", "text/event-stream"),)]
        )
    )
    error = freeze_error(draw(errors)) if end == "error" else None
    return Reply(
        status, (*kind, *draw(headers)), chunks, waits, end, error, reason=records.phrase(status)
    )


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    path = tmp_path_factory.mktemp("base") / "main.tape.yaml"
    Recorder(path).run("aaaa", *CALLS)
    return path


@SETTINGS
@given(given_replies=st.dictionaries(st.integers(0, 3), replies(), max_size=3), given_values=st.dictionaries(st.integers(4, 7), values | errors, max_size=3))  # fmt: skip
def test_what_is_put_in_a_calls_place_comes_back_and_nothing_else_changes(
    base, given_replies, given_values
):
    digest, main = hashlib.sha256(base.read_bytes()).digest(), Cassette.open(base)
    take = main.take("t")
    expected = {n: entry.reply() for n, entry in enumerate(main.calls)}
    for n, reply in given_replies.items():
        take.override(main.calls[n], reply=reply)
        expected[n] = reply
    for n, value in given_values.items():
        failed = isinstance(value, BaseException)
        take.override(main.calls[n], **{"error" if failed else "value": value})
        expected[n] = Value(error=freeze_error(value)) if failed else Value(registry.freeze(value))
    try:
        again = Cassette.open(take.path, check="whole") if take.path.exists() else take
        assert {n: entry.reply() for n, entry in enumerate(again.calls)} == expected
        assert not any(entry.edited() for entry in again.calls)
        for n, value in given_values.items():
            if not isinstance(value, BaseException):
                back = registry.thaw(again.calls[n].reply().value)
                assert repr(back) == repr(value) or back == value
    finally:
        take.path.unlink(missing_ok=True)
    assert hashlib.sha256(base.read_bytes()).digest() == digest
