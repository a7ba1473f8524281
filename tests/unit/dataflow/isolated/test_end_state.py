"""What is there at the end of a history: equal in two kernels where it holds the same."""

from tape_jupyter.dataflow.isolated.end_state import End, digest_content, digest_path, look_at_end


def test_equal_values_look_the_same_and_what_is_not_there_is_nothing():
    here, there = (
        look_at_end({"x": [1, {"a": 2}]}, ["x", "y"], []),
        look_at_end({"x": [1, {"a": 2}]}, ["x", "y"], []),
    )
    assert (
        here == there and here.names["y"].digest == "" and here.names["x"].short == "[1, {'a': 2}]"
    )
    assert look_at_end({"x": [2]}, ["x"], []).names["x"].digest != here.names["x"].digest


def test_what_cannot_be_looked_into_says_what_it_is():
    class Odd:
        def __repr__(self):
            raise AssertionError("code of the user's")

    told = look_at_end({"g": (n for n in [1]), "o": [Odd()]}, ["g", "o"], [])
    assert told.names["g"].dark == "generator" and told.names["o"].short == ""


def test_it_goes_through_json_and_files_are_told_by_what_they_hold(tmp_path):
    (tmp_path / "f").write_bytes(b"x")
    told = look_at_end({}, [], [str(tmp_path / "f"), str(tmp_path / "none"), str(tmp_path)])
    assert list(told.files.values()) == [digest_content(b"x"), "", digest_path(str(tmp_path))]
    assert End.from_record(told.record()) == told
