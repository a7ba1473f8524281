"""The stack and the variables at a stop: the person's own frames, no code of theirs run, no secret shown."""

import sys
import types

import pytest

from tape_jupyter.debugger.stack import (
    mask_named_keys,
    stack,
    value_text,
    namespace_texts,
    describe_variable,
    frame_variables,
    walk_stack,
)

THEIRS = "def outer(city):\n    token = 'abc'\n    rows = [1, 2]\n    return inner(call)\ndef inner(go):\n    return go()\n"


@pytest.fixture
def cell(tmp_path):
    """A module of the person's, that stands at a call."""
    module = types.ModuleType("theirs")
    exec(compile(THEIRS, str(tmp_path / "theirs.py"), "exec"), vars(module))
    (tmp_path / "theirs.py").write_text(THEIRS)
    return module


def standing(cell, look):
    """Look at the stack while it stands; sorted() is a library's frame between."""
    cell.call = lambda: look(sys._getframe())
    return cell.outer("Rome")


def test_the_stack_has_the_persons_frames_with_the_source_around_the_line(cell):
    told = standing(cell, lambda frame: stack(walk_stack(frame)))
    inner, outer = (frame for frame in told if frame.file.endswith("theirs.py"))
    assert (inner.function, inner.line, outer.function, outer.line) == ("inner", 6, "outer", 4)
    assert outer.source[outer.line - outer.first] == "    return inner(call)"
    assert inner.record()["source"] == list(inner.source)


def test_frames_of_libraries_and_of_ours_are_left_out(cell):
    def look(frame):
        return [each.f_code.co_filename for each, _ in walk_stack(frame)]

    files = standing(cell, look)
    assert sum("theirs.py" in file for file in files) == 2
    assert all("pluggy" not in file and "_pytest" not in file for file in files)


def test_variables_of_a_frame_are_told_but_those_named_like_keys(cell):
    told = standing(cell, lambda frame: frame_variables(frame.f_back.f_back))
    by_name = {each["name"]: each["text"] for each in told["variables"]}
    assert (
        by_name["city"] == "'Rome'"
        and by_name["rows"] == "[1, 2]"
        and "abc" not in by_name["token"]
    )
    assert told["total"] == 3


class Loud:
    said = 0

    def __init__(self):
        self.name, self.api_key = "Ada", "sk-1"

    def __repr__(self):
        Loud.said += 1
        return "loud"

    __str__ = __repr__

    @property
    def __class__(self):
        Loud.said += 1
        return int


class LoudList(list):
    def __repr__(self):
        raise AssertionError

    __iter__ = __len__ = __repr__


class LoudMeta(type):
    def __repr__(cls):
        raise AssertionError


def test_no_code_of_a_persons_class_is_run_to_show_a_value():
    class Made(metaclass=LoudMeta):
        pass

    values = {"a": Loud(), "b": [Loud()], "c": LoudList([1]), "d": {"k": LoudList()}, "e": Made}
    told = {name: describe_variable(name, value)["text"] for name, value in values.items()}
    assert Loud.said == 0
    assert "Loud" in told["a"] and told["c"].startswith("<LoudList")
    assert "sk-1" not in "".join(told.values())


def test_what_is_long_or_deep_is_cut_and_says_so():
    assert value_text("x" * 10_000)[1] is False and len(value_text("x" * 10_000)[0]) <= 2_000
    endless = []
    endless.append(endless)
    assert value_text(list(range(10_000)))[1] is False and value_text(endless)[0]
    assert value_text([1, "two", None]) == ("[1, 'two', None]", True)


def test_arrays_and_tables_are_told_by_their_size():
    numpy = pytest.importorskip("numpy")
    assert value_text(numpy.zeros((3, 4)))[0] == "<ndarray 3x4>"


def test_fields_named_like_keys_are_hidden_in_texts():
    assert "s3cret" not in mask_named_keys(
        "{'api_key': 's3cret', 'city': 'Rome'}"
    ) and "Rome" in mask_named_keys("{'city': 'Rome'}")
    assert "s3cret" not in describe_variable("config", {"PASSWORD": "s3cret"})["text"]


def test_the_variables_of_two_stops_are_compared_without_functions_and_modules():
    told = namespace_texts(
        {"a": 1, "_b": 2, "sys": sys, "f": lambda: 1, "K": Loud, "In": [], "text": "t"}, str.upper
    )
    assert told == {"a": "1", "text": "'T'"}
