"""The values that outcomes are reckoned with."""

import ast
import linecache

import pytest

from tape_jupyter.dataflow.static.outcomes.values import (
    NewObject,
    OutcomeValue,
    leaves_block,
    part_root,
    source_of,
    sum_kind,
)


@pytest.mark.parametrize(
    ("path", "root"),
    [("log[0].text", "log"), ("agent.log", "agent"), ("log", "log"), ("helpers:STATE['a:b']", "helpers:STATE"), ("memo['a:b']", "memo"), (":reply", ":reply")],
)  # fmt: skip
def test_a_part_is_of_a_variable(path, root):
    assert part_root(path) == root


def test_a_sum_of_like_kinds_does_not_raise():
    text, number, unknown = OutcomeValue(kind=str), OutcomeValue(kind=int), OutcomeValue()
    assert sum_kind(ast.Add(), text, text) is str
    assert sum_kind(ast.Mult(), number, OutcomeValue(kind=float)) is float
    assert sum_kind(ast.Add(), text, number) is None
    assert sum_kind(ast.Div(), number, number) is None
    assert sum_kind(ast.Add(), unknown, text) is None


def test_what_is_put_into_a_new_thing_is_what_it_depends_on():
    made = OutcomeValue(fresh=NewObject())
    made.fresh.deps |= {"mood"}
    made.fresh.refs |= {("log", True)}
    assert "mood" in made.all and ("log", True) in made.inside


def test_a_loop_that_may_be_left_is_told():
    assert leaves_block(ast.parse("for x in xs:\n    if x: break"))
    assert not leaves_block(ast.parse("for x in xs: y = x"))


def test_functions_on_one_line_are_told_apart_by_their_places():
    text = "f = lambda: 1; g = lambda: (lambda x: x + 2)\ndef h(): return 3\n"
    linecache.cache["<two>"] = (len(text), None, text.splitlines(keepends=True), "<two>")
    space = {}
    exec(compile(text, "<two>", "exec"), space)
    assert ast.unparse(source_of(space["f"].__code__)) == "lambda: 1"
    assert ast.unparse(source_of(space["g"].__code__)) == "lambda: lambda x: x + 2"
    assert ast.unparse(source_of(space["g"]().__code__)) == "lambda x: x + 2"
    assert source_of(space["h"].__code__).name == "h"
