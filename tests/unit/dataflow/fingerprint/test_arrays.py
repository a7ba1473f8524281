"""Arrays and frames, as fingerprints see them: equal ones are equal, one changed cell is a change."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from tape_jupyter.dataflow.fingerprint import arrays
from tape_jupyter.dataflow.identity import identity
from tape_jupyter.dataflow.fingerprint.fingerprint import fingerprint


def digest(value):
    return fingerprint(value, globals()).digest


def frame():
    return pd.DataFrame(
        {
            "n": [1, 2, 3],
            "text": ["a", "b", "c"],
            "day": pd.date_range("2020-01-01", periods=3),
            "kind": pd.Categorical(["x", "y", "x"]),
            "maybe": pd.array([1, None, 3], dtype="Int64"),
        }
    )


CELLS = {"n": 9, "text": "z", "day": pd.Timestamp("1999-01-01"), "kind": "y", "maybe": 9}


def test_two_equal_frames_have_one_digest():
    assert digest(frame()) == digest(frame())


@pytest.mark.parametrize("column", CELLS)
def test_one_changed_cell_of_a_frame_is_a_change_of_the_frame(column):
    changed = frame()
    changed.loc[2, column] = CELLS[column]
    assert digest(changed) != digest(frame())


@pytest.mark.parametrize("change", [
    lambda f: f.rename(columns={"n": "m"}), lambda f: f.rename_axis("row"), lambda f: f.set_axis([1, 2, 3]),
    lambda f: f[["text", "n", "day", "kind", "maybe"]], lambda f: f.astype({"n": "float64"}),
    lambda f: f.assign(day=f.day.dt.tz_localize("UTC")), lambda f: f.set_index(["n", "text"]), lambda f: f.iloc[::-1],
])  # fmt: skip
def test_labels_types_and_order_belong_to_a_frame(change):
    assert digest(change(frame())) != digest(frame())


def test_categories_and_their_order_belong_to_a_column():
    def column(values, categories, *, ordered=False):
        return digest(pd.Series(pd.Categorical(values, categories=categories, ordered=ordered)))

    one = column(["a", "b"], ["a", "b"])
    assert one == column(["a", "b"], ["a", "b"])
    assert one != column(["p", "q"], ["p", "q"])
    assert one != column(["b", "a"], ["b", "a"])
    assert one != column(["a", "b"], ["a", "b"], ordered=True)


def test_a_masked_column_is_seen_where_a_value_goes_missing():
    assert digest(pd.Series([1, 2], dtype="Int64")) != digest(pd.Series([1, None], dtype="Int64"))


@pytest.mark.parametrize(("one", "other"), [
    ([True, False], [False, True]), ([1, None], [1, 0]), (["a", "b"], ["ab", ""]), ([[1], [2]], [[1, 2], []]),
    ([{"a": 1}], [{"a": 2}]), ([b"x"], [b"y"]), ([1], [1.0]),
])  # fmt: skip
def test_what_polars_holds_is_told_apart_and_is_equal_however_it_lies(one, other):
    def made(rows):
        return pl.DataFrame({"c": pl.Series(rows)})

    frames = [made(one), pl.concat([made(one[:1]), made(one[1:])]), made([one[0], *one]).slice(1)]
    assert len({digest(each) for each in frames}) == 1
    assert digest(made(other)) != digest(made(one))
    assert digest(made(one)["c"]) != digest(made(other)["c"])
    assert not fingerprint(made(one)).opaque


def test_expressions_of_polars_are_told_apart_and_the_rows_of_a_query_are_not_seen():
    assert digest(pl.col("a") > 1) == digest(pl.col("a") > 1) != digest(pl.col("a") > 2)
    assert not fingerprint(pl.LazyFrame({"a": [1]})).is_whole


@pytest.mark.parametrize(("one", "other"), [
    (np.zeros(3), np.ones(3)), (np.zeros(3), np.zeros(3, "f4")), (np.zeros((2, 3)), np.zeros((3, 2))),
    (np.zeros((0, 3)), np.zeros((3, 0))), (np.array(1), np.array(2)), (np.array(["a"]), np.array(["b"])),
    (np.array([{"a": 1}], object), np.array([{"a": 2}], object)), (np.float64(1), np.float64(2)),
    (np.array(["2020"], "M8[D]"), np.array(["2020"], "M8[D]") + 1), (np.dtype("i4"), np.dtype("i8")),
    (np.ma.array([1, 2], mask=[0, 1]), np.ma.array([1, 2], mask=[1, 1])), (np.str_("a"), np.str_("b")),
])  # fmt: skip
def test_arrays_and_their_scalars_are_told_apart_and_are_not_opaque(one, other):
    assert digest(one) == digest(one.copy() if hasattr(one, "copy") else one) != digest(other)
    assert not fingerprint(one).opaque


def test_how_an_array_lies_in_memory_does_not_matter():
    assert digest(np.arange(10)[::2]) == digest(np.arange(0, 10, 2))
    assert digest(np.asfortranarray(np.arange(6).reshape(2, 3))) == digest(
        np.arange(6).reshape(2, 3)
    )


def test_a_view_tells_its_owner():
    a = np.zeros(4)
    assert identity(a) in arrays.table_of("numpy", a[1:]).ids


class Marked(np.ndarray):
    def __array_finalize__(self, _of):
        if getattr(self, "loud", False):
            raise AssertionError("the user's code was run")


class Wide(pd.DataFrame):
    @property
    def _constructor(self):
        raise AssertionError("the user's code was run")

    columns = attrs = index = values = shape = _constructor


def test_a_table_of_a_class_of_ones_own_is_seen_and_none_of_its_code_is_run():
    array = np.zeros(3).view(Marked)
    array.loud = True
    before = digest(array)
    np.ndarray.__setitem__(array, 0, 1)
    assert digest(array) != before
    one, other = pd.DataFrame({"a": [1]}), pd.DataFrame({"a": [2]})
    for each in (one, other):
        object.__setattr__(each, "__class__", Wide)
    assert digest(one) != digest(other)


def test_what_is_no_table_is_none():
    assert (
        arrays.table_of("json", {}) is None
        and arrays.table_of("numpy", np.random) is None
        and arrays.beneath({}) is None
    )


def test_a_frame_gives_buffers_not_values_one_by_one():
    table = arrays.table_of("pandas", pd.DataFrame({"n": range(100_000)}))
    assert sum(len(bytes(b)) for b in table.buffers) == 800_000
    assert sum(len(v) for v in table.values if isinstance(v, tuple)) < 10


def large(kind):
    numbers = np.arange(600_000, dtype="float64")
    return {
        "strided": lambda: np.stack([numbers, numbers], axis=1)[:, 0],
        "turned": lambda: np.asfortranarray(numbers.reshape(1_000, 600)),
        "one row": lambda: np.stack([numbers, numbers])[:, ::2],
        "objects": lambda: np.array([f"word {n}" for n in range(200_000)], dtype=object),
        "texts": lambda: pd.DataFrame({"word": [f"word {n}" for n in range(200_000)]}),
        "index": lambda: pd.Series(1, index=pd.date_range("2020-01-01", periods=200_000, freq="s")),
        "levels": lambda: pd.Series(
            1, index=pd.MultiIndex.from_product([range(200), range(1_000)])
        ),
    }[kind]()


LARGE = ["strided", "turned", "one row", "objects", "texts", "index", "levels"]


@pytest.mark.parametrize("kind", LARGE)
def test_a_large_table_is_read_in_pieces_and_only_as_long_as_there_is_time(kind, monkeypatch):
    value, read = large(kind), []

    class Counting:
        def __init__(self):
            self.update = lambda data: read.append(len(data))

    monkeypatch.setattr("tape_jupyter.dataflow.fingerprint.walker.hasher", Counting)
    assert fingerprint(value, globals(), seconds=0).vast
    assert sum(read) < 3 << 20


@pytest.mark.parametrize("kind", LARGE)
def test_large_tables_are_equal_where_their_values_are(kind):
    value = large(kind)
    before = fingerprint(value, globals(), seconds=30).digest
    assert before == fingerprint(value.copy(), globals(), seconds=30).digest
    changed = value.copy()
    if isinstance(value, np.ndarray):
        changed[(-1,) * value.ndim] = changed[(0,) * value.ndim]
    else:
        changed.iloc[-1:] = changed.iloc[:1].to_numpy() * 2
    assert before != fingerprint(changed, globals(), seconds=30).digest


def test_another_label_of_a_long_index_is_a_change():
    days = pd.date_range("2020-01-01", periods=20_000, freq="s")
    moved = pd.DatetimeIndex([*days[:-1], days[-1] + pd.Timedelta("1s")])
    assert digest(pd.Series(1, index=days)) != digest(pd.Series(1, index=moved))
    pairs = pd.MultiIndex.from_product([range(200), range(100)])
    assert digest(pd.Series(1, index=pairs)) != digest(pd.Series(1, index=pairs[::-1]))


def test_tables_that_were_made_apart_have_no_object_in_common():
    tables = [pd.DataFrame({"a": [n, n], "b": ["x", "y"]}) for n in range(20)]
    looks = [fingerprint(each).ids for each in tables]
    assert sum(map(len, looks)) == len(frozenset().union(*looks))
