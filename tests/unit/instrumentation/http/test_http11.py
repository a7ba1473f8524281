"""The wire of http.client: where a chunked body ends, and what is read of one that is sloppy or broken."""

from __future__ import annotations

import http.client
import urllib.request
from typing import Any

import pytest
import requests

from tape_jupyter.instrumentation.http.http11 import Chunked
from tests.harness.provider import Scripted
from tests.harness.wire_runs import provider, tape, twice

__all__ = ["provider", "tape"]

HEAD = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
WHOLE = {
    "no line behind the last chunk": b"3\r\nabc\r\n0\r\n",
    "half a trailer": b"3\r\nabc\r\n0\r\nx-sum: 1",
    "trailers": b"3\r\nabc\r\n0\r\nx-sum: 1\r\n\r\n",
    "other bytes behind a chunk": b"2\r\nab--1;x=y\r\nc\r\n0\r\n\r\n",
}
BROKEN = {
    "garbage for a size": b"3\r\nabc\r\nzz\r\n",
    "garbage for the first size": b"zz\r\nabc\r\n0\r\n\r\n",
    "no size": b"3\r\nabc\r\n\r\n\r\n",
    "a size below nothing": b"-3\r\nabc\r\n0\r\n\r\n",
    "nothing behind a chunk": b"3\r\nabc2\r\nde\r\n0\r\n\r\n",
    "closed behind a chunk": b"3\r\nabc",
    "closed in the line end of a chunk": b"3\r\nabc\r",
    "closed before a size": b"3\r\nabc\r\n",
    "closed in a size": b"3\r\nabc\r\n1",
    "closed in a chunk": b"3\r\nabc\r\n5\r\nde",
    "closed before all": b"",
    "a size without end": b"3\r\nabc\r\n" + b"1" * 70_000,
}


def by_requests(url: str) -> Any:
    try:
        return requests.get(url, timeout=5).content
    except (requests.RequestException, ValueError) as error:
        return type(error), str(error)


def by_urllib(url: str) -> Any:
    try:
        with urllib.request.urlopen(url, timeout=5) as reply:
            return reply.read()
    except http.client.IncompleteRead as error:
        return type(error), error.partial
    except (http.client.HTTPException, ValueError) as error:
        return type(error), str(error)


@pytest.mark.parametrize("by", [by_requests, by_urllib])
@pytest.mark.parametrize("sent", WHOLE.values(), ids=WHOLE)
def test_a_sloppy_end_is_an_end_live_and_in_replay(provider, tape, by, sent):
    provider.script("/sloppy", Scripted(0, (), [HEAD + sent], then="close"))
    assert twice(tape, provider, lambda: by(f"{provider.url}/sloppy")) == b"abc"


@pytest.mark.parametrize("by", [by_requests, by_urllib])
@pytest.mark.parametrize("sent", BROKEN.values(), ids=BROKEN)
def test_a_broken_body_fails_in_replay_as_it_failed_live(provider, tape, by, sent):
    provider.script("/broken", Scripted(0, (), [HEAD + sent], then="close"))
    kind, _ = twice(tape, provider, lambda: by(f"{provider.url}/broken"))
    assert issubclass(kind, (requests.RequestException, http.client.HTTPException, ValueError))


@pytest.mark.parametrize(
    "sent", [sent for sent in (*WHOLE.values(), *BROKEN.values()) if len(sent) < 100]
)
@pytest.mark.parametrize("lenient", [False, True])
def test_a_body_is_understood_alike_however_it_is_cut(sent, lenient):
    def heard(size: int) -> Any:
        framing = Chunked(lenient=lenient)
        chunks = [
            chunk
            for at in range(0, len(sent), size)
            for chunk in framing.feed(sent[at : at + size])
        ]
        return chunks, framing.rest(), framing.done, framing.broken, framing.last, framing.between()

    assert all(heard(size) == heard(70_000) for size in (1, 2, 3, 5))


def test_a_line_feed_alone_will_do_for_who_is_lenient():
    sent = b"3\nabc\n2\r\nde\n0\n\n"
    assert list(Chunked(lenient=True).feed(sent)) == [b"abc", b"de"]
    assert list(Chunked().feed(sent)) == [b"abc"]
