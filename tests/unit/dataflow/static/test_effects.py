"""What a use may change, also where it changed nothing this time."""

import ast
import types

import pytest

from tape_jupyter.dataflow.static.effects import code_changes, keeps_state, may_change
from tape_jupyter.dataflow.static.uses import statement_uses


def may(source, value, function=None):
    touch = next(t for t in statement_uses(ast.parse(source).body[0]).touches if t.root == "x")
    return may_change(touch, value, function)


@pytest.mark.parametrize(
    ("source", "value", "changes"),
    [
        ("x.add(r)", {1}, True),
        ("x.union(r)", {1}, False),
        ("x.append(r)", [], True),
        ("x.index(r)", [], False),
        ("x['a'] = r", {}, True),
        ("x += r", [], True),
        ("x += r", 1, False),
        ("print(x)", [], False),
        ("heappush(x, r)", [], True),
        ("next(x)", iter([]), True),
        ("x.upper()", "a", False),
        ("x.sqrt(r)", types, False),
    ],
)
def test_uses_of_builtin_values(source, value, changes):
    assert may(source, value) is changes


@pytest.mark.parametrize(
    ("source", "changes"),
    [
        ("line, = x.plot(r)", True),
        ("t = x.set_title(r)", True),
        ("t = x.get_title()", False),
        ("out = lineplot(r, ax=x)", True),
        ("print(x)", False),
    ],
)
def test_whoever_has_axes_draws_on_them(source, changes):
    figure = pytest.importorskip("matplotlib.figure")
    assert may(source, figure.Figure().subplots()) is changes


def test_a_function_of_the_users_is_read_not_run():
    def adds(s, v):
        if v:
            s.append(v)

    def looks(s):
        return len(s)

    assert code_changes(adds.__code__) and not code_changes(looks.__code__)
    adds.__module__ = looks.__module__ = "__main__"
    assert may("adds(x, r)", [], adds) and not may("looks(x)", [], looks)


def test_a_function_with_a_default_outlasts_its_call():
    def f(a, acc=[]):
        acc.append(a)

    assert keeps_state(f) and not keeps_state(lambda: 1)


def test_a_frame_changes_where_it_is_told_to():
    import pandas as pd

    frame = pd.DataFrame({"a": [1]})
    assert may("x.drop(columns=['a'], inplace=True)", frame) and not may(
        "x.drop(columns=['a'])", frame
    )
