"""What a page holds of spans: packed, and never told twice."""

import base64
import json
import re
import zlib

from hypothesis import given
from hypothesis import strategies as st

from tape_jupyter.reports.page import fold_spans, packed_block, plain_block, shared
from tests.harness.pages import _joined, unfolded

TEXTS = st.text(alphabet="ab\U0001f642\u00e9", max_size=60)


def span(name, kind, turns=(), texts=("", "", "", "")):
    asked, said, sent, got = ({"text": text} for text in texts)
    detail = {
        "id": name,
        "kind": kind,
        "turns": list(turns),
        "request": asked | {"json": True},
        "reply": said,
    }
    return {"detail": detail, "raw": {"request": sent | {"total": 1}, "reply": got}}


@given(TEXTS, TEXTS, TEXTS)
def test_a_text_comes_back_from_what_it_shares_with_another(common, old, own):
    for before, text in (
        (common + old + common, common + own + common),
        (old, own),
        (common, common),
    ):
        assert _joined(before, *shared(before, text)) == text


def test_little_in_common_is_not_told():
    assert shared("abc", "abd") == (0, 0, "abd")
    assert shared("x" * 100, "x" * 100 + "y") == (100, 0, "y")


def test_spans_come_back_whole_and_take_what_they_share_from_the_one_of_their_kind():
    long = "history " * 50
    spans = [
        span("m1", "model", ["a", "b"], [long + "1", "r", long, ""]), span("t1", "tool", (), ["x", "y", "x", "y"]),
        span("m2", "model", ["a", "b", "c"], [long + "12", "r", long, ""]), span("m3", "model", ["z"], ["", "", "", "q"]),
    ]  # fmt: skip
    block = fold_spans(spans)
    assert list(unfolded(block).values()) == spans
    assert block[2]["turns"] == [2, ["c"]] and block[2]["texts"][0] == (len(long) + 1, 0, "2")


def test_no_block_holds_what_could_end_it():
    evil = {"</script>": "<!--<script>\u2028"}
    assert (
        json.loads(re.fullmatch(r"<script [^>]*>([^<]*)</script>\n", plain_block("a", evil))[1])
        == evil
    )
    data = re.fullmatch(
        r'<script type="text/plain" id="a">([\w+/=]*)</script>\n', packed_block("a", evil)
    )[1]
    assert json.loads(zlib.decompress(base64.b64decode(data))) == evil
