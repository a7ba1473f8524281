"""Arrays, tables and images come back with every bit, dtype, index and name."""

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from pandas.testing import assert_frame_equal, assert_index_equal, assert_series_equal
from PIL import Image

from tape_jupyter.encoding.values.registry import CannotFreeze, freeze, thaw


def again(value):
    text = json.dumps(freeze(value), allow_nan=False)
    back = thaw(json.loads(text))
    assert type(back) is type(value)
    return back


ARRAYS = [
    np.arange(6).reshape(2, 3),
    np.array([1.5, np.nan, -0.0, np.inf, -np.inf], "f4"),
    np.array([0x7FF8000000000001, 0xFFF8000000000000], "u8").view("f8"),
    np.zeros((0, 3)),
    np.zeros((2, 0, 3), "i1"),
    np.array(3),
    np.array(["a", "bc", "é\ud800"]),
    np.array([b"a\0b", b""]),
    np.array([1 + 2j, np.nan]),
    np.array(["2026-01-01", "NaT"], "M8[ns]"),
    np.array(["2026-01-01"], "M8[D]"),
    np.array([1, 2], "m8[s]"),
    np.zeros(3, dtype=[("a", "<f4"), ("b", ">i2", (2,)), ("c", [("d", "U2")])]),
    np.asfortranarray(np.arange(6).reshape(2, 3)),
    np.arange(12).reshape(3, 4)[::2, ::-1],
    np.arange(10000.0),
    np.array([True, False]),
    np.array([1.1], "g"),
    np.array([1.1], ">f8"),
    np.array([2**64 - 1], "u8"),
    np.float16([0.1, 65504]),
]


@pytest.mark.parametrize("array", ARRAYS, ids=lambda a: f"{a.dtype} {a.shape}")
def test_an_array_keeps_dtype_shape_order_and_every_bit(array):
    back = again(array)
    assert (
        back.dtype == array.dtype
        and back.shape == array.shape
        and back.tobytes() == array.tobytes()
    )
    assert back.flags.f_contiguous == array.flags.f_contiguous or not array.flags.c_contiguous
    assert back.flags.writeable


def test_small_arrays_can_be_read_in_the_text():
    assert freeze(np.array([1, 2]))["values"] == [1, 2]
    assert freeze(np.array([0.5, np.nan]))["values"] == [0.5, "nan"]
    assert freeze(np.array(["2026-01-01"], "M8[D]"))["values"] == ["2026-01-01"]
    assert "base64" in freeze(np.zeros(5000))


def test_an_object_array_keeps_nested_values():
    array = np.array([[1, None], ["a", None]], dtype=object)
    array[0, 1], array[1, 1] = [1, (2,)], {"a": np.float32(1)}
    back = again(array)
    assert (
        back.shape == (2, 2)
        and back.tolist() == array.tolist()
        and type(back[1, 1]["a"]) is np.float32
    )


@pytest.mark.parametrize(
    "scalar",
    [
        np.float32(1.1),
        np.float64("nan"),
        np.int64(3),
        np.uint8(255),
        np.bool_(True),
        np.str_("a"),
        np.bytes_(b"x"),
        np.complex64(1j),
        np.datetime64("2026-01-01T00:00", "m"),
        np.timedelta64(3, "ns"),
        np.datetime64("NaT"),
    ],
    ids=repr,
)
def test_a_numpy_scalar_keeps_its_type(scalar):
    back = again(scalar)
    assert back.dtype == scalar.dtype and back.tobytes() == scalar.tobytes()


@pytest.mark.parametrize(
    "value",
    [
        np.ma.masked_array([1], [True]),
        np.matrix([1]) if sys.version_info < (3,) else np.recarray(1, "f8"),
        np.zeros(1, [("a", "O")]),
        np.zeros(1, np.dtypes.StringDType()),
    ],
    ids=lambda v: f"{type(v).__name__} {v.dtype}",
)
def test_arrays_that_would_come_back_as_something_else_are_refused(value):
    with pytest.raises(CannotFreeze):
        freeze(value)


def everything():
    zone = pd.date_range("2026-10-25", periods=3, freq="h", tz="Europe/Berlin")
    return pd.DataFrame(
        {
            "int": [1, 2, 3],
            "float": [1.0, np.nan, -0.0],
            "text": ["a", None, "é"],
            "object": [[1, (2,)], {"a": pd.Timestamp("2026-01-01")}, None],
            "category": pd.Categorical(["x", None, "x"], categories=["y", "x"], ordered=True),
            "number category": pd.Categorical([1, 2, 1]),
            "day": pd.date_range("2026-01-01", periods=3),
            "zone": zone + pd.Timedelta(hours=1),
            "nullable": pd.array([1, None, 2**62 + 1], dtype="Int64"),
            "flag": pd.array([True, None, False], dtype="boolean"),
            "real": pd.array([1.5, None, 2], dtype="Float32"),
            "string": pd.array(["a", None, "b"], dtype="string"),
            "delta": pd.to_timedelta([1, 2, None], unit="s"),
            "period": pd.period_range("2026-01", periods=3, freq="M"),
            "interval": pd.interval_range(0, 3),
            "uint": np.array([1, 2, 255], "u1"),
            "complex": [1j, 2, 3],
        },
        index=pd.Index([10, 20, 20], name=("i", 1)),
    )


FRAMES = {
    "everything": everything,
    "grouped": lambda: (
        everything().groupby(["category", "int"], observed=True)[["float", "uint"]].sum()
    ),
    "wide": lambda: pd.DataFrame(
        np.arange(8).reshape(2, 4),
        columns=pd.MultiIndex.from_product([["a", "b"], [1, 2]], names=["u", None]),
        index=pd.date_range("2026", periods=2, freq="D", name="when"),
    ),
    "repeated names": lambda: pd.DataFrame([[1, "a"], [2, "b"]], columns=["x", "x"]),
    "empty": pd.DataFrame,
    "no rows": lambda: everything().iloc[:0],
    "no columns": lambda: pd.DataFrame(index=["a", "b"]),
    "large": lambda: pd.DataFrame({"a": np.arange(20000) / 7, "b": ["x", "y"] * 10000}),
    "odd names": lambda: pd.DataFrame(
        {None: [1], 1: [2], (1, "a"): [3], pd.Timestamp("2026"): [4]}
    ),
}


@pytest.mark.parametrize("name", FRAMES)
def test_a_frame_keeps_dtypes_index_columns_and_names(name):
    frame = FRAMES[name]()
    assert_frame_equal(
        again(frame), frame, check_exact=True, check_freq=True, check_column_type=True
    )


def test_a_series_keeps_name_and_attributes():
    series = pd.Series([1, None], name=("a", 1), index=["x", "y"], dtype="Int8")
    series.attrs = {"source": "a"}
    assert_series_equal(again(series), series)
    assert again(series).attrs == {"source": "a"}


@pytest.mark.parametrize(
    "index",
    [
        pd.RangeIndex(3, 9, 2, name="r"),
        pd.Index([1, 2]),
        pd.Index(["a", None]),
        pd.Index([]),
        pd.CategoricalIndex(["a", "b"]),
        pd.DatetimeIndex([]),
        pd.date_range("2026", periods=3, freq="ME"),
        pd.IntervalIndex.from_breaks([0, 1.5], closed="left"),
        pd.TimedeltaIndex([1]),
        pd.Index([(1, 2), (3, 4)], tupleize_cols=False),
        pd.Index([1, None], dtype="Int8"),
        pd.PeriodIndex(["2026Q1"], freq="Q"),
        pd.MultiIndex.from_tuples([(1, "a"), (None, "b")], names=["x", None]),
    ],
    ids=lambda i: f"{type(i).__name__} {i.dtype}",
)
def test_an_index_keeps_its_kind(index):
    assert_index_equal(again(index), index, exact=True)


@pytest.mark.parametrize(
    "value",
    [
        pd.Timestamp("2026-01-01 01:02:03.000000004"),
        pd.Timestamp("2026-10-25 01:30", tz="UTC").tz_convert("Europe/Berlin"),
        pd.Timestamp("2026-01-01").as_unit("s"),
        pd.Timedelta(3, "ns"),
        pd.Timedelta("-1 days +2h").as_unit("s"),
        pd.Period("2026-01"),
        pd.Interval(1, 2, closed="both"),
        pd.Interval(pd.Timestamp("2026"), pd.Timestamp("2027")),
    ],
    ids=repr,
)
def test_a_pandas_scalar_comes_back(value):
    back = again(value)
    assert (
        back == value
        and repr(back) == repr(value)
        and getattr(back, "unit", 0) == getattr(value, "unit", 0)
    )


def test_missing_values_are_the_very_objects():
    assert again(pd.NA) is pd.NA and again(pd.NaT) is pd.NaT


def test_a_column_that_cannot_be_frozen_is_named():
    with pytest.raises(CannotFreeze, match=r"\$\.data\[1\]"):
        freeze(pd.DataFrame({"a": [1], "b": pd.arrays.SparseArray([1])}))
    with pytest.raises(CannotFreeze, match=r"\$\.data\[0\]\.values\[0\]: .*object"):
        freeze(pd.DataFrame({"a": [object()]}))


def noise(mode, size):
    image = Image.new(mode, size)
    data = np.random.default_rng(1).integers(0, 255, len(image.tobytes()), dtype=np.uint8)
    if data.size:
        image.frombytes((data & 0xFE if mode == "1" else data).tobytes())
    return image


@pytest.mark.parametrize(
    "mode", ["1", "L", "LA", "RGB", "RGBA", "RGBa", "CMYK", "YCbCr", "LAB", "HSV", "I", "F", "I;16"]
)
@pytest.mark.parametrize("size", [(7, 5), (0, 3)])
def test_an_image_keeps_mode_size_and_every_pixel(mode, size):
    image = noise(mode, size)
    back = again(image)
    assert (back.mode, back.size, back.tobytes()) == (image.mode, image.size, image.tobytes())


def test_an_image_keeps_its_palette_and_transparency():
    image = noise("P", (16, 16))
    image.putpalette(bytes(range(240)))
    image.info["transparency"] = 3
    back = again(image)
    assert back.getpalette() == image.getpalette() and back.tobytes() == image.tobytes()
    assert back.convert("RGBA").tobytes() == image.convert("RGBA").tobytes()


def test_an_image_from_a_file_comes_back_as_a_plain_image(tmp_path):
    noise("RGB", (9, 9)).save(tmp_path / "a.jpg")
    with Image.open(tmp_path / "a.jpg") as image:
        back = thaw(freeze(image))
        assert type(back) is Image.Image and back.tobytes() == image.tobytes()


def test_freezing_plain_values_imports_no_library():
    code = (
        "import sys, tape_jupyter.encoding.values.registry as f; f.thaw(f.freeze({'a': (1, b'x')})); f.thaw_error(f.freeze_error(KeyError(1)));"
        "assert not {'numpy', 'pandas', 'PIL', 'pydantic', 'httpx', 'dateutil'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
