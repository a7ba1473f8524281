"""Before and after a re-run, side by side; values of people are looked at and never asked to show themselves."""

import pytest

from tape_jupyter.jupyter.rerun.comparison import (
    CellChange,
    Comparison,
    OutputChange,
    RerunProof,
    SpanChange,
    VariableChange,
    outputs_changed,
    short_value,
    shorts,
    table_csv,
    variables_changed,
)

TABLE = '<table border="1" class="dataframe"><thead><tr><th></th><th>n</th></tr></thead><tbody><tr><th>0</th><td>%s</td></tr></tbody></table>'


def stream(text, name="stdout"):
    return {"output_type": "stream", "name": name, "text": text}


def display(**data):
    return {
        "output_type": "display_data",
        "data": {kind.replace("_", "/"): value for kind, value in data.items()},
        "metadata": {},
    }


SUMMARY = {
    "output_type": "display_data",
    "data": {"text/plain": "tape 3 ms"},
    "metadata": {"tape": {"summary": True}},
}


def test_equal_outputs_are_the_same_whatever_the_tape_says_below_them():
    assert outputs_changed([stream("a\n"), SUMMARY], [stream("a"), stream("\n")]) == ()


def test_each_output_stands_beside_the_one_in_its_place():
    before = [
        stream("mood: -\n"),
        display(text_html=TABLE % 1, text_plain="1"),
        display(image_png="AAAA"),
    ]
    after = [
        stream("mood: +\n"),
        display(text_html=TABLE % 2, text_plain="2"),
        display(image_png="BBBB"),
        stream("more"),
    ]
    assert outputs_changed(before, after) == (
        OutputChange("text", "mood: -\n", "mood: +\n"),
        OutputChange("table", ",n\n0,1\n", ",n\n0,2\n"),
        OutputChange("image", "data:image/png;base64,AAAA", "data:image/png;base64,BBBB"),
        OutputChange("text", None, "more"),
    )


def test_an_error_is_told_by_its_name_and_words():
    raised = {"output_type": "error", "ename": "KeyError", "evalue": "'x'", "traceback": ["..."]}
    assert outputs_changed([stream("ok")], [raised]) == (
        OutputChange("text", "ok", None),
        OutputChange("error", None, "KeyError: 'x'"),
    )


def test_a_table_is_read_as_it_was_shown():
    html = (
        "<table><tr><th>a</th><th>b</th></tr><tr><td>1, 2</td><td>&lt;script&gt;</td></tr></table>"
    )
    assert table_csv(html) == 'a,b\n"1, 2",<script>\n'


class Shy:
    def __repr__(self):
        raise AssertionError("asked")

    __str__ = __len__ = __iter__ = __repr__


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("negative", "'negative'"),
        (3, "3"),
        ([Shy()], "[<Shy>]"),
        (Shy(), "<Shy>"),
        ({"a": (1, None)}, "{'a': (1, None)}"),
    ],
)
def test_values_are_told_in_a_word_and_no_code_of_theirs_runs(value, said):
    assert short_value(value) == said


def test_a_long_value_is_cut():
    assert len(short_value("x" * 10_000)) < 100 and len(short_value(list(range(10_000)))) < 100


def test_variables_that_changed_functions_and_modules_left_out():
    before = shorts(
        {"mood": "negative", "same": 1, "ask": print, "f": lambda: 0, "pytest": pytest},
        ["mood", "same", "f", "pytest"],
    )
    after = shorts(
        {"mood": "positive", "same": 1, "new": 2}, ["mood", "same", "new", "gone", "_hidden", "a.b"]
    )
    assert variables_changed(before, after) == (
        VariableChange("mood", "'negative'", "'positive'"),
        VariableChange("new", "", "2"),
    )


def test_it_reads_as_text_and_travels_as_protocol_ts_has_it():
    compared = Comparison(
        "angry", 2,
        cells=(CellChange("c1", 3, "classify", (OutputChange("text", "mood: -\n", "mood: +\n"),)), CellChange("c2", None, "report")),
        spans=(SpanChange("r/1", "r/1", "model m", "changed", '"-" -> "+"'), SpanChange("r/2", "r/2", "tool t", "same")),
        variables=(VariableChange("mood", "'-'", "'+'"),),
        skipped=("[4] what it depends on did not change",), proof=RerunProof("proved", "proved in a fresh kernel"),
    )  # fmt: skip
    text = compared.text()
    for line in (
        "[3] classify: changed",
        "  -mood: -",
        "  +mood: +",
        "[ ] report: the same",
        "  mood: '-' -> '+'",
    ):
        assert line in text.splitlines()
    assert (
        "tool t" not in text
        and "not run: [4]" in text
        and text.endswith("proof: proved in a fresh kernel")
    )
    record = compared.record()
    assert record["cells"][0]["same"] is False and record["cells"][1]["same"] is True
    assert record["proof"] == {"state": "proved", "text": "proved in a fresh kernel", "adopt": ()}
