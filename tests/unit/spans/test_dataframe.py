"""The spans of a cassette as a pandas frame: one row a span, typed columns."""

import sys

import pandas as pd
import pytest

from tape_jupyter.cassette.cassette import Cassette
from tape_jupyter.errors import TapeUsageError
from tape_jupyter.spans.dataframe import TYPES
from tests.harness.spanned import Recording, answered, asked, failed, tool


def framed(tmp_path, text="negative"):
    tape = Recording(tmp_path / "main.tape.yaml")
    tape.run(title=text)
    tape.add(asked("q"), answered(text), span=("agent", "step"))
    tape.add(*tool("look", 1, key=text))
    tape.add(asked("r"), failed())
    tape.end()
    return Cassette.open(tape.cassette.path).frame()


def test_one_row_a_span_with_typed_columns(tmp_path):
    frame = framed(tmp_path)
    assert {name: str(kind) for name, kind in frame.dtypes.items()} == TYPES
    assert list(frame["kind"]) == ["cell", "span", "span", "model", "tool", "model"]
    model = frame[frame["kind"] == "model"].iloc[0]
    assert (model["name"], model["tokens_in"], model["tokens_out"]) == ('"negative"', 1000, 100)
    assert (
        model["cost"] == pytest.approx(0.0045)
        and model["path"] == "agent / step"
        and model["first"] == 0.1
    )
    assert model["start"] == pd.Timestamp("2026-11-21T20:00:02Z") and model["seconds"] == 0.5
    assert (
        frame["tokens_in"].sum() == 1000
        and pd.isna(frame.iloc[0]["cost"])
        and frame.iloc[0]["number"] == 2
    )


def test_an_empty_cassette_gives_an_empty_frame_of_the_same_columns(tmp_path):
    frame = Cassette.open(tmp_path / "none.tape.yaml").frame()
    assert list(frame.columns) == list(TYPES) and len(frame) == 0


def test_text_of_a_recording_is_text_where_the_frame_is_shown(tmp_path):
    evil = "<img src=x onerror=alert(1)></td><script>alert(2)</script>"
    shown = framed(tmp_path, evil)._repr_html_()
    assert "<img" not in shown and "<script>alert" not in shown and "&lt;img" in shown


def test_without_pandas_it_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(TapeUsageError, match="pip install pandas"):
        Cassette.open(tmp_path / "none.tape.yaml").frame()
