"""Values: a header is found whatever its case; a reply's body is its chunks; values do not change."""

import dataclasses

import pytest

from tape_jupyter.core.call import Reply, Request, header_value

HEADERS = (("Content-Type", "a"), ("X-Id", "1"), ("x-id", "2"))


def test_the_first_header_of_a_name_counts_whatever_its_case():
    assert header_value(HEADERS, "x-id") == "1" and header_value(HEADERS, "content-type") == "a"
    assert (
        Request("GET", "http://h/", HEADERS).header("none") == ""
        and Reply(200, HEADERS).header("none", "-") == "-"
    )


def test_a_replys_body_is_its_chunks():
    assert (
        Reply(200, (), (b"ab", b"", b"c"), (0.1, 0.1, 0.2)).body == b"abc"
        and Reply(None).body == b""
    )


@pytest.mark.parametrize("value", [Request("GET", "http://h/"), Reply(200)])
def test_a_value_cannot_be_changed(value):
    with pytest.raises(dataclasses.FrozenInstanceError):
        value.headers = ()
