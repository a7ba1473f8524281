"""How two tables differ is said cell by cell, in the names that a person sees at their edges."""

import pandas as pd
import pytest

from tape_jupyter.comparison import tables


def html(*rows, head=()):
    told = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    names = (
        f"<thead><tr>{''.join(f'<th>{name}</th>' for name in head)}</tr></thead>" if head else ""
    )
    return f"<table>{names}<tbody>{told}</tbody></table>"


def diff(before, after):
    return tables.compare_tables(before, after).text()


def test_a_frame_is_read_with_the_names_of_its_rows_and_columns():
    frame = pd.DataFrame({"region": ["north", "south"], "lost": [3, 9]}, index=["n", "s"])
    assert tables.read_table(frame._repr_html_()) == tables.HtmlTable(
        ("region", "lost"), ("n", "s"), (("north", "3"), ("south", "9"))
    )


def test_an_index_with_a_name_does_not_shift_the_columns():
    frame = pd.DataFrame({"lost": [3, 9]}, index=pd.Index(["n", "s"], name="region"))
    assert diff(frame._repr_html_(), frame.assign(lost=[3, 8])._repr_html_()) == [
        "@@ row s, column lost",
        "-9",
        "+8",
    ]


def test_rows_that_only_moved_are_compared_by_their_names():
    frame = pd.DataFrame({"lost": [3, 9]}, index=["n", "s"])
    told = diff(frame._repr_html_(), frame.iloc[::-1].assign(lost=[9, 4])._repr_html_())
    assert told == ["@@ row n, column lost", "-3", "+4"]


def test_names_that_do_not_tell_rows_apart_are_numbered():
    frame = pd.DataFrame({"lost": [1, 2]}, index=["n", "n"])
    assert (
        diff(frame._repr_html_(), frame.assign(lost=[1, 5])._repr_html_())[0]
        == "@@ row 1 (n), column lost"
    )


def test_a_table_written_by_hand_has_a_heading_without_a_thead():
    rows = "<tr><th>who</th><th>paid</th></tr><tr><td>Ada</td><td>{}</td></tr>"
    before, after = (f"<table>{rows.format(paid)}</table>" for paid in ("yes", "no"))
    assert diff(before, after) == ["@@ row 0, column paid", "-yes", "+no"]


def test_what_came_and_went_is_named_beside_the_sizes():
    before, after = html(["1", "2"], head=("a", "b")), html(["1", "2"], ["3", "4"], head=("a", "c"))
    assert diff(before, after) == [
        "@@ 1 rows x 2 columns expected, 2 rows x 2 columns replayed", "- column b", "+ column c", "+ row 1",
    ]  # fmt: skip


def test_a_thousand_changed_cells_are_counted_and_not_all_told():
    before, after = html(*[[n] for n in range(1000)]), html(*[[n + 1] for n in range(1000)])
    found = tables.compare_tables(before, after)
    assert (
        len(found.changed) == tables.MOST
        and found.more == 800
        and found.text()[-1] == "... and 800 more cells"
    )


def test_new_columns_past_the_first_are_counted():
    after = html(range(500), head=[f"c{n}" for n in range(500)])
    told = tables.compare_tables(html(["1"], head=["c0"]), after).shape()
    assert "+ and 299 more columns" in told and len(told) == 1 + tables.MOST + 1


def test_a_long_cell_is_cut_where_it_is_told_and_compared_whole():
    before, after = html(["x" * 5000 + "a"]), html(["x" * 5000 + "b"])
    lines = diff(before, after)
    assert len(lines) == 3 and all(len(line) <= tables.LONG + 1 for line in lines[1:])


def test_text_is_compared_as_it_is_seen():
    assert tables.compare_tables(html(["a  &amp;\n b"]), html(["<b>a</b> &#38; b"])) is None


@pytest.mark.parametrize(
    "markup", ["", "<b>no table</b>", "<table></table>", "<table", "&lt;table&gt;"]
)
def test_what_holds_no_table_is_not_compared(markup):
    assert tables.read_table(markup) is None and tables.compare_tables(markup, html(["1"])) is None


@pytest.mark.parametrize(
    "markup",
    [
        "<table><tr><td colspan='999999999999'>1</td></tr></table>",
        "<table><tr><td colspan='x'>1</td></tr></table>",
        "<table><td>outside a row</td></table>",
        "<table><tr><td><table><tr><td>inner</td></tr></table></td></tr>",
        "<table>" * 5000,
        "<table><tr>" + "<td>" * 3000,
        "</table></td></tr><table><tr><td>1",
    ],
)
def test_markup_of_a_stranger_is_read_without_harm(markup):
    found = tables.read_table(markup)
    assert found is None or sum(map(len, found.cells)) <= 5000
    tables.compare_tables(markup, html(["1"]))


def test_a_table_inside_a_cell_does_not_add_rows():
    inner = "<table><tr><td>x</td></tr></table>"
    assert len(tables.read_table(html([f"1{inner}"], ["2"])).rows) == 2


def test_more_html_than_anybody_reads_is_left_alone():
    assert tables.read_table("<table>" + " " * tables.LARGEST) is None


def test_only_html_is_looked_into():
    assert [tables.may_hold_table(mime) for mime in ("text/html", "text/plain", "image/png")] == [
        True,
        False,
        False,
    ]
