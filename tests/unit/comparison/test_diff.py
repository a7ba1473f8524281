"""What a person is shown where a cell changed: lines of text, cells of a table, the share of a picture."""

import base64
import io

import pandas as pd
import pytest
from PIL import Image
from tape_jupyter.comparison import diff


def stream(text, name="stdout"):
    return {"output_type": "stream", "name": name, "text": text}


def shown(**kinds):
    data = {kind.replace("_", "/"): value for kind, value in kinds.items()}
    return {"output_type": "display_data", "data": data, "metadata": {}}


def frame(df):
    return shown(text_html=df._repr_html_(), text_plain=repr(df))


def png(color, size=(40, 30), spot=0, **how):
    image = Image.new("RGB", size, color)
    image.paste((255, 255, 255), (0, 0, spot, spot))
    out = io.BytesIO()
    image.save(out, "PNG", **how)
    return base64.b64encode(out.getvalue()).decode() + "\n"


def told(before, after):
    return [line for each in diff.compare_cells(before, after) for line in each.text()]


def test_what_is_the_same_is_nothing():
    cell = [stream("a\n"), shown(text_plain="1"), stream("b\n", "stderr")]
    assert diff.compare_cells(cell, [stream("a"), stream("\n"), *cell[1:]]) == []


def test_text_is_a_unified_diff_under_the_name_of_its_stream():
    before, after = [stream("one\ntwo\nthree\n")], [stream("one\n2\nthree\n")]
    assert told(before, after) == ["stdout:", "@@ -1,3 +1,3 @@", " one", "-two", "+2", " three"]


def test_both_streams_are_told_apart_and_a_line_that_looks_like_a_heading_is_a_line():
    before = [stream("[not a heading]\nx\n"), stream("warn\n", "stderr")]
    after = [stream("[not a heading]\ny\n"), stream("warn\n", "stderr")]
    assert told(before, after) == ["stdout:", "@@ -1,2 +1,2 @@", " [not a heading]", "-x", "+y"]


def test_a_frame_tells_which_cell_changed_by_row_and_column_and_says_it_once():
    before = pd.DataFrame({"region": ["north", "south"], "lost": [3, 9]}, index=["n", "s"])
    after = before.assign(lost=[3, 8])
    assert told([frame(before)], [frame(after)]) == [
        "text/html:",
        "@@ row s, column lost",
        "-9",
        "+8",
    ]


def test_a_frame_that_grew_names_its_new_rows_and_columns():
    before = pd.DataFrame({"a": [1, 2]})
    after = pd.DataFrame({"a": [1, 2, 3], "b": [0, 0, 0]})
    assert told([frame(before)], [frame(after)]) == [
        "text/html:", "@@ 2 rows x 1 columns expected, 3 rows x 2 columns replayed", "+ column b", "+ row 2",
    ]  # fmt: skip


def test_columns_of_several_levels_have_the_names_of_all():
    before = pd.DataFrame({("x", "a"): [1], ("x", "b"): [2]})
    after = pd.DataFrame({("x", "a"): [1], ("x", "b"): [3]})
    assert told([frame(before)], [frame(after)])[1:] == ["@@ row 0, column x b", "-2", "+3"]


def test_html_that_is_no_table_is_text():
    assert told([shown(text_html="<b>a</b>")], [shown(text_html="<b>b</b>")]) == [
        "text/html:", "@@ -1 +1 @@", "-<b>a</b>", "+<b>b</b>",
    ]  # fmt: skip


def test_a_table_that_holds_the_same_in_other_markup_is_shown_as_text():
    before, after = (
        "<table><tr><td style='%s'>1</td></tr></table>" % style for style in ("a", "b")
    )
    (one,) = diff.compare_cells([shown(text_html=before)], [shown(text_html=after)])
    assert one.table is None and any("style='b'" in line for line in one.lines)


def test_a_picture_tells_sizes_and_the_share_of_pixels():
    (one,) = diff.compare_cells(
        [shown(image_png=png("navy"))], [shown(image_png=png("navy", spot=6))]
    )
    assert one.images.share == pytest.approx(36 / 1200)
    assert "40 x 30 pixels" in one.text()[1] and one.text()[-1] == "@@ 3.00% of the pixels differ"
    marked = Image.open(io.BytesIO(one.images.marked))
    assert marked.size == (40, 30) and marked.getpixel((2, 2)) == (215, 0, 50) != marked.getpixel(
        (20, 20)
    )


def test_pictures_of_two_sizes_have_no_share():
    (one,) = diff.compare_cells(
        [shown(image_png=png("red"))], [shown(image_png=png("red", (41, 30)))]
    )
    assert one.images.share is None and "41 x 30" in one.text()[2]


@pytest.mark.parametrize(
    "junk", ["", "AAAA", "not base64!", base64.b64encode(b"\x89PNG\r\n\x1a\nxxxx").decode()]
)
def test_a_picture_that_is_none_is_said_to_differ_all_the_same(junk):
    (one,) = diff.compare_cells([shown(image_png=png("red"))], [shown(image_png=junk)])
    assert one.images.why.startswith("the pixels could not be compared")


def test_a_picture_too_large_to_unpack_is_not_unpacked():
    bomb = io.BytesIO()
    Image.new("1", (30_000, 30_000)).save(bomb, "PNG")
    (one,) = diff.compare_cells(
        [shown(image_png=png("red"))], [shown(image_png=base64.b64encode(bomb.getvalue()).decode())]
    )
    assert one.images.share is None and "could not be compared" in one.images.why


def test_what_is_missing_and_what_is_new_are_said():
    before = [stream("hello\n"), shown(text_plain="1")]
    after = [
        shown(text_plain="1"),
        {"output_type": "error", "ename": "KeyError", "evalue": "'x'", "traceback": ["t"]},
    ]
    assert told(before, after) == [
        "stdout: missing in the replay", "-hello", "KeyError: 'x': new in the replay", "+t",
    ]  # fmt: skip
    (gone,) = diff.compare_cells([shown(image_png=png("red"))], [])
    assert gone.only == "expected" and gone.images.size == (40, 30) and not gone.images.replayed


def test_an_error_of_many_lines_has_a_heading_of_one():
    error = {
        "output_type": "error",
        "ename": "UnmatchedCall",
        "evalue": "POST /x\n  recorded: 1",
        "traceback": ["a", "b"],
    }
    (new,) = diff.compare_cells([], [error])
    assert (
        new.heading == "UnmatchedCall: POST /x …"
        and new.text()[0] == "UnmatchedCall: POST /x …: new in the replay"
    )


def test_a_part_that_was_moved_does_not_make_its_neighbours_differ():
    cell = [shown(text_plain=str(n)) for n in range(6)]
    assert told(cell, [cell[0], *cell[2:]]) == ["text/plain: missing in the replay", "-1"]


def test_a_long_diff_is_cut_in_the_terminal():
    before, after = (
        [stream("\n".join(map(str, range(500))))],
        [stream("\n".join(map(str, range(1000, 1500))))],
    )
    lines = told(before, after)
    assert len(lines) == diff.LINES + 2 and lines[-1].startswith("... and ")
