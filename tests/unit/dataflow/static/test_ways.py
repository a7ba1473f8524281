"""By which ways an expression goes into the value of a name."""

import ast

import pytest

from tape_jupyter.dataflow.static.ways import read_ways

EACH, LEN = ("each", ""), ("len", "")


@pytest.mark.parametrize(
    ("text", "ways"),
    [
        ("x['a'].b[0]", {(("item", "a"), ("attr", "b"), ("item", 0))}),
        ("x[-1]", {(("item", -1),)}),
        ("print(x.a, len(x), len(x.b))", {(("attr", "a"),), (LEN,), (("attr", "b"), LEN)}),
        ("x.a.upper()", {(("attr", "a"),)}),
        ("x.get('k', 0)", {(("get", "k"),)}),
        ("[m['r'] for m in x]", {(LEN,), (EACH, ("item", "r"))}),
        ("[m for m in x.log if m.ok]", {(("attr", "log"), LEN), (("attr", "log"), EACH), (("attr", "log"), EACH, ("attr", "ok"))}),
        ("[t for m in x for t in m['tags']]", {(LEN,), (EACH, ("item", "tags"), LEN), (EACH, ("item", "tags"), EACH)}),
        ("[a for a, b in x['rows']]", {(("item", "rows"), EACH)}),
    ],
)  # fmt: skip
def test_the_parts_that_are_read_are_told(text, ways):
    assert read_ways(ast.parse(text).body[0], "x") == ways


@pytest.mark.parametrize(
    "text",
    ["x", "f(x)", "x.clear()", "x[k]", "x.a + str(x)", "x['a'] = 1", "x.n += 1", "del x[0]", "y",
     "[x for x in x]", "[x for x in x['a']]", "[m['a'] for m in x] + [x]", "for m in x: print(m)",
     "[f(m) for m in x for x in m]", "lambda: x", "f'{x}'"],
)  # fmt: skip
def test_a_name_that_is_used_in_another_way_is_used_as_a_whole(text):
    assert read_ways(ast.parse(text).body[0], "x") is None
