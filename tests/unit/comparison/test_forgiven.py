"""The closed list of what outputs may differ in: each thing on it is forgiven, and nothing that only looks like it."""

import warnings
from pathlib import Path

import pytest

from tape_jupyter.comparison import outputs
from tape_jupyter.comparison.outputs import diff_outputs, same_outputs

UUIDS = "7f3a5b1c-0001-4aaa-8bbb-123456789abc", "0a0b0c0d-ffff-4fff-9fff-abcdefabcdef"


def stream(text):
    return [{"output_type": "stream", "name": "stdout", "text": text}]


def html(text):
    return [{"output_type": "display_data", "data": {"text/html": text}, "metadata": {}}]


def svg(text):
    return [{"output_type": "display_data", "data": {"image/svg+xml": text}, "metadata": {}}]


def error(*lines):
    return [
        {"output_type": "error", "ename": "ValueError", "evalue": "no", "traceback": list(lines)}
    ]


PLOTLY = '<div id="{0}"></div><script>Plotly.newPlot("{0}", [{1}])</script>'
FORGIVEN = {
    "which mode the tape is in": (
        stream("tape record: every following cell goes live and is recorded\n"),
        stream("TAPE_MODE=replay wins: %tape record is ignored\n"),
    ),
    "that there is a mode": (stream("tape record: every following cell goes live and is recorded\n"), []),
    "a call that was recorded after its cell": (
        stream("one\ntape: a call ended after its cell did; it is kept under that cell's run\ntwo\n"),
        stream("one\ntwo\n"),
    ),
    "that only such a call is told of": (
        stream("tape: a connection is spoken on after its cell; that is kept under that cell's run\n"), [],
    ),
    "an address": (stream("<C object at 0x7f01a2b3>\n"), stream("<C object at 0x55d0>\n")),
    "an address in HTML": (html("&lt;C at 0x7f01a2b3&gt;"), html("&lt;C at 0x7f01a2b4&gt;")),
    "the id of a link in a terminal's text": (
        stream("\x1b]8;id=15184902;file:///a.py\x1b\\a.py\x1b]8;;\x1b\\\n"),
        stream("\x1b]8;id=16537159;file:///a.py\x1b\\a.py\x1b]8;;\x1b\\\n"),
    ),
    "where a package lies": (
        error("File ~/a/lib/python3.11/site-packages/sdk/_base.py:120, in post(self)", "--> 120 raise"),
        error("File /tmp/new venv/lib/site-packages/sdk/_base.py:120, in post(self)", "--> 120 raise"),
    ),
    "where a printed traceback's file lies": (
        stream('  File "/home/ada/x/mine.py", line 3, in f\n'), stream('  File "C:\\Users\\bo\\mine.py", line 3, in f\n'),
    ),
    "where a warning comes from": (
        stream("/a/site-packages/tqdm/auto.py:21: TqdmWarning: IProgress not found\n"),
        stream("/b c/site-packages/tqdm/auto.py:21: TqdmWarning: IProgress not found\n"),
    ),
    "a warning of a cell": (
        stream("/tmp/ipykernel_77/1924.py:1: DeprecationWarning: old\n"),
        stream("/tmp/ipykernel_8/28946.py:1: DeprecationWarning: old\n"),
    ),
    "a warning whose name does not say that it is one": (
        stream("/tmp/ipykernel_77/1924.py:3: DeprecatedSinceV10: old\n"),
        stream("/tmp/ipykernel_8/1924.py:3: DeprecatedSinceV10: old\n"),
    ),
    "time": (
        stream("CPU times: user 3 ms, sys: 1 ms, total: 4 ms\nWall time: 5 ms\n"),
        stream("CPU times: user 9 ms, sys: 2 ms, total: 11 ms\nWall time: 1 s\n"),
    ),
    "timeit": (
        stream("12.1 ns ± 0.2 ns per loop (mean ± std. dev. of 7 runs, 100,000,000 loops each)\n"),
        stream("9.01 μs ± 1.1 ns per loop (mean ± std. dev. of 7 runs, 1,000 loops each)\n"),
    ),
    "tqdm": (stream("100%|###| 3/3 [00:09<00:00,  3.01s/it]\n"), stream("100%|###| 3/3 [00:00<00:00, 88.7it/s]\n")),
    "tqdm without a total": (stream("3it [00:09,  3.01s/it]\n"), stream("3it [00:00, 88.7it/s]\n")),
    "a styled table": (
        html('<style>#T_1f0a3_row0_col0 {color: red}</style><table id="T_1f0a3"><td id="T_1f0a3_row0_col0">1</td>'),
        html('<style>#T_99bcd_row0_col0 {color: red}</style><table id="T_99bcd"><td id="T_99bcd_row0_col0">1</td>'),
    ),
    "plotly": (html(PLOTLY.format(UUIDS[0], 1)), html(PLOTLY.format(UUIDS[1], 1))),
    "altair": (
        html(f'<div id="altair-viz-{"a1" * 16}"></div>'), html(f'<div id="altair-viz-{"b2" * 16}"></div>'),
    ),
    "matplotlib's svg": (
        svg('<dc:date>2026-11-22T10:00:00</dc:date><path id="m0123456789"/><use xlink:href="#m0123456789"/>'),
        svg('<dc:date>2027-01-01T10:00:00</dc:date><path id="mabcdef0123"/><use xlink:href="#mabcdef0123"/>'),
    ),
}  # fmt: skip
KEPT = {
    "what a program says of tapes": (stream("tape recorder: 3\n"), stream("tape recorder: 4\n")),
    "what a program says as the tape would": (stream("tape: a call ended\n"), []),
    "a call that was refused after its cell": ([], stream("tape: UnmatchedCall: POST https://h/v1/messages\n")),
    "a number in hexadecimal": (stream("0x7f01a2b3\n"), stream("0x7f01a2b4\n")),
    "a line of a traceback": (error("File /a/sdk.py:120, in post"), error("File /a/sdk.py:121, in post")),
    "the name of a file": (error("File /a/sdk.py:120, in post"), error("File /a/other.py:120, in post")),
    "a path that a program prints": (stream("/a/data.csv\n"), stream("/b/data.csv\n")),
    "what a warning says": (stream("/a/x.py:1: UserWarning: one\n"), stream("/a/x.py:1: UserWarning: two\n")),
    "a model that speaks of time": (stream("The wall time: 3 s\n"), stream("The wall time: 4 s\n")),
    "how far a bar came": (stream("66%|##-| 2/3 [00:01<00:00, 1it/s]\n"), stream("100%|###| 3/3 [00:01<00:00, 1it/s]\n")),
    "a list of numbers": (stream("[10:20, 3]\n"), stream("[10:20, 4]\n")),
    "what plotly draws": (html(PLOTLY.format(UUIDS[0], 1)), html(PLOTLY.format(UUIDS[0], 2))),
    "a uuid that is no element's": (html(f"<p>order {UUIDS[0]}</p>"), html(f"<p>order {UUIDS[1]}</p>")),
    "which element is which": (
        svg('<path id="m0123456789"/><path id="mabcdef0123"/><use href="#m0123456789"/>'),
        svg('<path id="m0123456789"/><path id="mabcdef0123"/><use href="#mabcdef0123"/>'),
    ),
    "a colour": (svg('<path style="fill:#0123456789"/>'), svg('<path style="fill:#abcdef0123"/>')),
}  # fmt: skip


@pytest.mark.parametrize("case", FORGIVEN)
def test_what_is_forgiven_is_the_same(case):
    saved, new = FORGIVEN[case]
    assert same_outputs(saved, new), diff_outputs(saved, new)


@pytest.mark.parametrize("case", KEPT)
def test_what_only_looks_like_it_counts(case):
    assert not same_outputs(*KEPT[case])


def test_the_folder_that_a_notebook_ran_in_counts_as_its_folder(tmp_path):
    here, there = tmp_path / "here", tmp_path / "a b ü" / "there"
    where = outputs.places(here, Path("/home/ada")) | outputs.places(there, tmp_path)
    saved = stream(f"{here}/data.csv of /home/ada\n")
    assert same_outputs(saved, stream(f"{there}/data.csv of {tmp_path}\n"), where)
    assert not same_outputs(saved, stream(f"{there}/data.tsv of {tmp_path}\n"), where)
    assert not same_outputs(stream(f"{here}x\n"), stream(f"{there}x\n"), where)


def test_every_thing_on_the_list_is_told_in_words():
    words = outputs.forgiven_words()
    assert len(words) == len(set(words)) == len(outputs.STRUCTURE) + len(outputs.RULES) + 1


def test_real_libraries_draw_what_is_forgiven():
    pd = pytest.importorskip("pandas")
    pytest.importorskip("jinja2")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        one, two = (pd.DataFrame({"a": [1]}).style.highlight_max()._repr_html_() for _ in range(2))
    assert one != two and same_outputs(html(one), html(two))


def test_matplotlibs_svg_repeats_itself():
    figure = pytest.importorskip("matplotlib.figure")
    import io

    def drawn():
        made, file = figure.Figure(), io.StringIO()
        made.subplots().plot([1, 3, 2])
        made.savefig(file, format="svg")
        return file.getvalue()

    one, two = drawn(), drawn()
    assert one != two and same_outputs(svg(one), svg(two)), diff_outputs(svg(one), svg(two))
