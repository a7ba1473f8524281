"""Which later cells a changed reply reaches, where it is only a part of something that several cells use."""

import pytest

from tests.flow_cells import run, tracked  # noqa: F401 - fixtures

PLAIN = "class P:\n    header = 'x'"
FILLED = f"{PLAIN}\n    def __init__(self): self.own = 1\n    def text(self): return self.header"
DATA = "from dataclasses import dataclass\n@dataclass\nclass P:\n    n: int = 1\n    header = 'x'"


@pytest.mark.parametrize(
    ("made", "new", "use"),
    [
        (PLAIN, "p = P()", "print(p.header)"),
        (FILLED, "p = P()", "print(p.text())"),
        (DATA, "p = P(2)", "print(p.header)"),
        (f"{PLAIN}\nclass Q(P): pass", "p = Q()", "print(p.header)"),
    ],
)
def test_an_object_has_from_its_class_what_another_reply_changed_there(run, made, new, use):
    assert run(made, "P.header = outside('q')", new, use, changed=2) >= {3, 4}


def test_an_object_is_another_where_its_class_says_otherwise_how_it_is_shown(run):
    shown = "P.__str__ = lambda self, r=outside('q'): r"
    assert run(FILLED, shown, "p = P()", "print(p)", changed=2) == {3, 4}


def test_what_is_at_other_keys_is_found_whatever_is_at_the_new_one(run):
    first, change = "d = {'a': 'x'}\ndef say(k): return d[k]", "d['b'] = outside('q') + '!'"
    assert run(first, change, "print(say('a'))", "print(d['b'])", "print(len(d))", changed=2) == {
        4,
        5,
    }


@pytest.mark.parametrize("removed", ["del d[outside('a')]", "d.pop(outside('a'))", "d.clear()"])
def test_a_key_may_be_gone_where_nobody_knows_which_one_went(run, removed):
    first = "d = {'a': 1, 'b': 2}\ndef say(k): return d.get(k)"
    source = removed if "outside" in removed else f"if outside('q'): {removed}"
    assert 3 in run(first, source, "print(say('b'))", changed=2)


def test_the_elements_that_a_cell_adds_to_a_list_are_told_apart(run):
    added = "xs = ['a']\nxs.append('b')\nxs += [outside('q')]\nxs.append('c')"
    shown = [f"print(xs[{place}])" for place in range(4)]
    assert run(added, *shown) is not None
    lines = {1: (3,)}
    assert run.after(lines) == {4}


@pytest.mark.parametrize(
    "added",
    [
        "xs = ['a', 'b']\nxs.append(outside('q'))\nxs.pop(0)",
        "xs = ['a', 'b']\nxs.append(outside('q'))\nxs.reverse()",
        "xs = ['a', 'b']\nxs.append(outside('q'))\nxs.insert(0, 'z')",
        "xs = ['a', 'b']\nys = xs\nys.append(outside('q'))\nxs.append(1)\nys.sort(key=str)",
        "xs = ['a']\ndef put(i):\n    xs.append('b')\n    xs[i] = outside('q')\nput(len(xs) - 1)",
        "xs = ['a']\nxs.append(outside('q'))\nxs = xs[::-1]",
    ],
)
def test_elements_that_are_moved_or_set_besides_are_not_numbered(run, added):
    assert run(added, "print(xs[0])") is not None
    assert run.after({1: None}) == {2}


@pytest.mark.parametrize(
    "change",
    [
        "h[0] = {'r': outside('q'), 'c': 'y'}",
        "h[0].update(r=outside('q'))",
        "h[0].update({'r': outside('q')})",
    ],
)
def test_what_a_key_is_given_is_of_no_matter_at_another(run, change):
    shown = ("print(h[0]['c'])", "print(h[0].get('r'))", "print([e['c'] for e in h])", "print(h)")
    assert run("h = [{'r': 'u', 'c': 'x'}]", change, *shown, changed=2) == {4, 6}


def test_a_dict_that_is_taken_over_whole_may_have_any_key(run):
    change = "h[0].update(outside({'c': 'z'}))"
    assert 3 in run("h = [{'r': 'u', 'c': 'x'}]", change, "print(h[0]['c'])", changed=2)


def test_a_function_with_any_number_of_arguments_is_read(run):
    first = "log = {'a': [], 'n': 1}\ndef put(*texts, **more): log['a'].append(texts)"
    found = run(first, "put(outside('q'), k=1)", "print(log['n'])", "print(log['a'])", changed=2)
    assert found == {4}


def test_a_function_with_any_number_of_arguments_may_change_one_of_them(run):
    first = "xs = []\ndef put(*boxes, **more):\n    for box in boxes: box.append(more['r'])"
    assert run(first, "put(xs, r=outside('q'))", "print(xs)", changed=2) == {3}


def test_environment_variables_are_told_apart(run):
    cells = (
        "import os\ndef mode(): return os.environ.get('FLOW_B')",
        "os.environ['FLOW_A'] = outside('q')",
        "print(mode())",
        "os.environ.pop('FLOW_A');",
        "print(os.environ.get('FLOW_A'))",
        "%env FLOW_C=1",
        "print(os.environ['FLOW_C'])",
    )
    assert run(*cells, changed=2) & {3, 5, 7} == set()


@pytest.mark.parametrize(
    "reader",
    [
        "e = os.environ\nprint(e['FLOW_A'])",
        "print(dict(os.environ)['FLOW_A'])",
        "def f(env=os.environ): return env['FLOW_' + 'A']\nprint(f())",
        "%env FLOW_B={os.environ['FLOW_A']}",
    ],
)
def test_who_looks_at_an_environment_variable_in_another_way_depends_on_it(run, reader):
    assert 3 in run("import os", "os.environ['FLOW_A'] = outside('q')", reader, changed=2)


def test_a_variable_that_may_be_set_where_another_is_removed_is_not_gone(run):
    first = "import os\nos.environ['FLOW_A'] = outside('q')\nd = {'x': 1, 'q': 1}"
    popped = "d.pop(os.environ.setdefault('FLOW_A', 'x'));"
    found = run(first, popped, "print(os.environ['FLOW_A'])")
    assert found is not None
    assert 3 in run.after({1: (2,)})


ROWS = (
    "from collections import namedtuple\nRow = namedtuple('Row', 'id text')\nrows = [Row(1, 'k')]"
)


def test_of_rows_that_are_tuples_only_the_element_that_differs_counts(run):
    shown = (
        "print([i for i, _ in rows])",
        "print([t for _, t in rows])",
        "for row in rows: print(row[0])",
        "print([row for row in rows])",
    )
    assert run("rows = [(1, 'k')]", "rows.append((2, outside('q')))", *shown, changed=2) == {4, 6}


def test_of_rows_that_are_named_tuples_only_the_field_that_differs_counts(run):
    shown = ("print([r.id for r in rows])", "print([r.text for r in rows])", "print(rows[1][0])")
    assert run(ROWS, "rows.append(Row(2, outside('q')))", *shown, changed=2) == {4}


@pytest.mark.parametrize(
    "change",
    [
        "rows.append(outside((2, 'q')))",
        "rows[0] = outside((2, 'q'))",
        "rows += outside([(2, 'q')])",
        "rows = outside([(2, 'q')])",
    ],
)
def test_a_row_that_is_not_written_down_may_be_of_another_kind(run, change):
    assert 3 in run("rows = [(1, 'k')]", change, "print([i for i, _ in rows])", changed=2)


def test_which_columns_a_frame_has_does_not_depend_on_what_is_in_them(run):
    frame = "import pandas as pd\ndf = pd.DataFrame({'n': [1, 2]})"
    shown = ("print(df.shape)", "print(df.columns.tolist())", "print(df['t'].tolist())")
    assert run(frame, "df['t'] = [outside('q'), 'x']", *shown, changed=2) == {5}


@pytest.mark.parametrize(
    "change",
    [
        "df[outside('t')] = 1",
        "df.columns = [outside('t')]",
        "df.columns.name = outside('t')",
        "df.drop(columns=outside('n'), inplace=True)",
        "if outside(''): df['t'] = 1",
        "df.loc[outside(5)] = 1",
    ],
)
def test_which_columns_a_frame_has_may_differ(run, change):
    frame = "import pandas as pd\ndf = pd.DataFrame({'n': [1, 2]})"
    assert 3 in run(frame, change, "print(df.columns, df.shape)", changed=2)
