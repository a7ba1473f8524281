"""Frames as values."""

import pytest

from tape_jupyter.core.websocket import WebSocketFrame


@pytest.mark.parametrize(
    ("data", "parts", "fragments"),
    [
        (b"abcdef", (), [b"abcdef"]),
        (b"abcdef", (6,), [b"abcdef"]),
        (b"abcdef", (2, 4), [b"ab", b"cdef"]),
        (b"abcdef", (2, 4, 0), [b"ab", b"cdef", b""]),
        (b"abcdefgh", (2, 2, 2), [b"ab", b"cd", b"efgh"]),
        (b"a", (2, 2), [b"a", b""]),
    ],
)
def test_a_message_keeps_its_fragments_and_after_an_edit_the_last_takes_the_rest(
    data, parts, fragments
):
    assert WebSocketFrame("got", "text", data, parts=parts).fragments == fragments


def test_only_text_and_binary_are_messages():
    assert [
        WebSocketFrame("got", kind).is_message
        for kind in ("text", "binary", "close", "failed", "lost")
    ] == [True] * 2 + [False] * 3
