"""What a call tells beside its facts: tier, build, region, whom a gateway asked, which attempt it was."""

import json

import pytest

from tape_jupyter.core.call import Reply, Request
from tape_jupyter.providers.metadata import particulars, user_of
from tests.harness.seen_runs import chat, said


@pytest.mark.parametrize(
    "body", [{"user": "ada"}, {"safety_identifier": "ada"}, {"metadata": {"user_id": "ada"}}]
)
def test_whom_a_request_serves_is_read_from_it(body):
    assert user_of(body) == "ada"
    assert user_of({"user": 7, "metadata": []}) == ""


def test_tier_build_region_and_edge_are_read_from_the_reply():
    headers = (("x-ms-region", "Sweden Central"), ("cf-ray", "8f2a-OSL"), ("retry-after", "20"))
    told = particulars(
        chat(service_tier="auto"),
        said(system_fingerprint="fp_1", service_tier="default", headers=headers),
    )
    assert (told.tier, told.fingerprint, told.region, told.edge) == (
        "default",
        "fp_1",
        "Sweden Central",
        "OSL",
    )
    assert told.retry_after == "20"


def test_a_stream_tells_them_in_its_first_or_last_events():
    events = [
        {"model": "m", "system_fingerprint": "fp_2", "choices": []},
        *[{"choices": [{"delta": {"content": "x"}}]}] * 50,
    ]
    body = b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events)
    reply = Reply(200, (("content-type", "text/event-stream"),), (body,), (0.1,))
    assert particulars(chat(stream=True), reply).fingerprint == "fp_2"


def test_a_gateway_tells_whom_it_asked_and_the_request_may_have_fixed_it():
    told = particulars(chat(provider={"order": ["Groq"]}), said(provider="Groq"))
    assert (told.upstream, told.routed) == ("Groq", True)
    assert not particulars(chat(), said()).routed


@pytest.mark.parametrize(
    ("header", "attempt"), [("", 1), ("0", 1), ("2", 3), ("x", 1), ("9999", 1), ("²", 1)]
)
def test_the_attempt_is_counted_from_the_sdks_retries(header, attempt):
    assert (
        particulars(chat(headers=(("X-Stainless-Retry-Count", header),)), None).attempt == attempt
    )


@pytest.mark.parametrize(
    "body", [b"", b"[1]", b"null", b"{", b'{"usage": 7, "provider": {"order": 7}}', b"\xff"]
)
def test_nonsense_tells_nothing_and_never_raises(body):
    request = Request(
        "POST", "https://h/v1/chat/completions", (("content-type", "application/json"),), body
    )
    for headers in ((), (("content-encoding", "gzip"),), (("content-type", "text/event-stream"),)):
        assert particulars(request, Reply(200, headers, (body,), (0.1,))).fingerprint == ""
