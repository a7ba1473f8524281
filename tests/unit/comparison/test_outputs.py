"""When a replayed cell counts as the same, and how a difference reads."""

import pytest

from tape_jupyter.comparison.diff import compare_cells
from tape_jupyter.comparison.outputs import (
    diff_outputs,
    failure_of,
    merge_streams,
    same_outputs,
    summary_of,
)


def stream(text, name="stdout"):
    return {"output_type": "stream", "name": name, "text": text}


def shown(text, kind="text/plain", **more):
    return {"output_type": "display_data", "data": {kind: text}, "metadata": {}, **more}


def result(text, count):
    return {
        "output_type": "execute_result",
        "data": {"text/plain": text},
        "metadata": {},
        "execution_count": count,
    }


def error(value, count=3, colour=""):
    trace = [f"{colour}ValueError\x1b[0m", f"Cell In[{count}], line 2", f"ValueError: {value}"]
    return {"output_type": "error", "ename": "ValueError", "evalue": value, "traceback": trace}


SUMMARY = shown("tape replay · 3 calls", metadata={"tape": {"summary": True}})


@pytest.mark.parametrize(
    ("saved", "replayed"),
    [
        ([result("7", 3)], [result("7", 1)]),
        ([stream("a"), stream("b\n")], [stream("ab\n")]),
        ([stream(["a\n", "b\n"])], [stream("a\nb\n")]),
        ([stream("a"), stream("!", "stderr"), stream("b")], [stream("ab"), stream("!", "stderr")]),
        ([shown("x"), SUMMARY], [shown("x")]),
        ([stream("1%\r2%\r100%\n")], [stream("100%\n")]),
        ([error("no", 3, "\x1b[31m")], [error("no", 1)]),
        ([shown({"model_id": "1"}, "application/vnd.jupyter.widget-view+json")], [shown({"model_id": "2"}, "application/vnd.jupyter.widget-view+json")]),
        ([shown("<C at 0x7f01>")], [shown("<C at 0x7f02>")]),
        ([shown({"b": 1, "a": 2}, "application/json")], [shown({"a": 2, "b": 1}, "application/json")]),
    ],
)  # fmt: skip
def test_what_a_person_sees_is_what_counts(saved, replayed):
    assert same_outputs(saved, replayed) and diff_outputs(saved, replayed) == []


@pytest.mark.parametrize(
    ("saved", "replayed"),
    [
        ([result("7", 3)], [result("8", 3)]),
        ([result("7", 3)], []),
        ([], [stream("new\n")]),
        ([stream("a\n")], [stream("a\n", "stderr")]),
        ([stream("a\n"), shown("x"), stream("b\n")], [stream("a\nb\n"), shown("x")]),
        ([error("no")], [error("yes")]),
        ([shown("x", "text/html")], [shown("x")]),
        ([shown("a\u2028b")], [shown("a\nb")]),
    ],
)
def test_anything_else_is_a_difference(saved, replayed):
    assert not same_outputs(saved, replayed) and diff_outputs(saved, replayed)


def test_a_difference_reads_like_a_diff():
    found = diff_outputs([stream("one\ntwo\nthree\n")], [stream("one\n2\nthree\n")])
    assert found == ["@@ -1,4 +1,4 @@", " [stdout]", " one", "-two", "+2", " three"]


def test_a_huge_difference_is_cut_short_and_says_so():
    found = diff_outputs([stream("".join(f"{i}\n" for i in range(1000)))], [])
    assert len(found) == 61 and found[-1] == "... and 942 more lines"


def test_a_line_of_megabytes_is_cut_short_and_says_so():
    told = diff_outputs([stream("x" * 10_000_000)], [stream("y")])
    assert sum(map(len, told)) < 10_000 and any("more characters" in line for line in told)
    (part,) = compare_cells([stream("x" * 10_000_000)], [stream("y")])
    assert sum(map(len, part.text())) < 10_000


def test_neighbouring_stream_messages_are_saved_as_one():
    assert merge_streams(
        [stream("a"), stream(["b", "c"]), shown("x"), stream("d"), stream("e", "stderr")]
    ) == [
        stream("abc"),
        shown("x"),
        stream("d"),
        stream("e", "stderr"),
    ]


def test_the_error_and_the_tapes_word_are_found():
    assert failure_of([stream("x"), error("no")]) == ("ValueError", "no")
    assert failure_of([]) == ("", "")
    assert summary_of([shown("x"), SUMMARY]) == "tape replay · 3 calls"
