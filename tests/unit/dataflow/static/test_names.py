"""Names that a cell's text reads, binds and deletes."""

import argparse
import builtins
import dis
import inspect
import types
from pathlib import Path

import pytest

from tape_jupyter.dataflow.static.names import cell_names, code_names, transform, used_names


def only(source):
    return cell_names(transform(source)).statements[-1]


def reads(source):
    return {name for name in only(source).code.reads if not hasattr(builtins, name)}


def test_locals_of_functions_and_comprehensions_are_no_names_of_the_notebook():
    code = only("ys = [x + k for x in xs]").code
    assert code.reads == {"xs", "k"} and code.stores == {"ys"}
    code = only("def f(a):\n    b = a + g\n    return b").code
    assert code.reads == set() and code.later_reads == {"g"} and code.stores == {"f"}


@pytest.mark.parametrize(("source", "names"), [
    ("[[y for y in x] for x in xs]", {"xs"}), ("{k: v for k, v in pairs}", {"pairs"}),
    ("{x for x in xs if x in ok}", {"xs", "ok"}), ("sum(w * x for x in xs)", {"w", "xs"}),
    ("f'{a!r:{width}}'", {"a", "width"}), ("x += 1", {"x"}), ("a.b[i].c = v", {"a", "i", "v"}),
    ("await ask(q)", {"ask", "q"}), ("with lock: go()", {"lock", "go"}), ("lambda x=start: x + later", {"start"}),
    ("match v:\n    case {'a': 1} if least: pass", {"v", "least"}),
])  # fmt: skip
def test_what_a_statement_reads_as_it_runs(source, names):
    assert reads(source) == names


def test_a_comprehensions_walrus_binds_a_name_of_the_notebook():
    assert only("[y for x in xs if (y := f(x))]").code.stores == {"y"}


def test_a_class_body_reads_at_once_and_binds_its_own():
    code = only("class C(Base):\n    header = style\n    def m(self): return tone").code
    assert {"Base", "style"} <= code.reads and code.later_reads == {"tone"} and code.stores == {"C"}


def test_a_function_in_a_function_reads_the_notebook_when_it_is_called():
    code = only("def f(a=start):\n    def g():\n        return a, deep\n    return g").code
    assert code.reads == {"start"} and code.later_reads == {"deep"}
    assert only("@deco(k)\nasync def f(x: 'T') -> None: await later()").code.reads == {"deco", "k"}


def test_what_is_bound_on_every_way_is_told_from_what_may_be():
    assert only("if q:\n    a = 1\n    b = 1\nelse:\n    a = 2").always == {"a"}
    assert only("a, (b, *c) = v").always == {"a", "b", "c"}
    assert only("try:\n    a = f()\nexcept E:\n    pass").always == set()
    assert only("for x in xs: last = x").always == set()
    assert only("import a.b, c as d").always == {"a", "d"}


def test_del_removes_a_name_and_nothing_else():
    statement = only("del old, log[0]")
    assert (
        statement.code.deletes == {"old"}
        and statement.always == {"old"}
        and "log" in statement.code.reads
    )


def test_globals_that_functions_bind_and_stars():
    assert only("def f():\n    global G\n    G = 1").code.later_stores == {"G"}
    assert only("def f():\n    global G\n    del G").code.later_stores == {"G"}
    assert only("from math import *").code.star and not only("from math import pi").code.star


def test_a_name_that_except_binds_is_gone_afterwards():
    statement = only("try:\n    f()\nexcept E as e:\n    print(e)")
    assert statement.caught == {"e"} and "e" not in statement.always


def test_magics_run_what_they_say():
    assert only("%%time\ns = r").code.stores == {"s"}
    assert "r" in only("%time u = r").code.reads
    assert {"f", "q"} <= only("%timeit -n 3 -r 1 f(q)").code.reads
    assert only("%%tape record\ns = r").code.reads == {"r"}
    assert only("%%tape record\n%%time\ns = r").code.stores == {"s"}
    assert only("x = !echo $r").uses.magics[0].line == "echo $r"
    assert only("x = !echo $r").always == {"x"}


def test_a_cell_that_captures_reads_what_its_body_reads():
    statement = only("%%capture out\nprint(a)")
    assert "a" in statement.code.reads and statement.uses.magics[0].line == "out"


def test_a_text_that_is_run_and_stands_there_is_read():
    assert only("exec('z = 1 + w')").code.reads >= {"w"}
    assert only("exec(code)").uses.dynamic == {"exec"}
    assert cell_names("exec(code)").dynamic and not cell_names("print(code)").dynamic


@pytest.mark.parametrize("source", ["x = = 1", "if", "a = '", "(" * 5000, "a\0b"])
def test_what_is_no_python_is_said(source):
    assert cell_names(transform(source)).broken


def test_an_empty_cell_is_no_broken_one():
    for source in ("", "\n\n", "# a comment"):
        cell = cell_names(transform(source))
        assert cell.statements == () and not cell.broken


def test_lines_are_those_of_the_cell_as_it_is_shown():
    first, second = cell_names(transform("%%tape record\na = 1\nb = (\n  a\n)")).statements
    assert (first.line, second.line, second.end) == (2, 3, 5)


def test_a_functions_own_code_counts_as_running():
    def f(a):
        return tone + a  # noqa: F821

    assert code_names(f.__code__).reads == {"tone"}


def test_what_cannot_raise_for_another_reply():
    assert only("r = llm('q')").calm_call and not only("r = int(llm('q'))").calm_call
    assert only("print(r)").calm and not only("x = r[0]").calm
    assert not only("a, b = r").calm and not only("x = 1 if r else 2").calm


def test_the_last_expression_is_shown():
    first, last = cell_names("a\nb").statements
    assert last.displayed and not first.displayed and not only("b = 1").displayed


def test_the_bytecode_is_read_as_dis_reads_it():
    def codes(code):
        return [
            code,
            *(
                inner
                for const in code.co_consts
                if isinstance(const, types.CodeType)
                for inner in codes(const)
            ),
        ]

    many = "\n".join(f"name_{n} = other_{n}" for n in range(300))  # more names than one byte counts
    texts = [Path(module.__file__).read_text() for module in (dis, inspect, argparse)]
    for text in [
        *texts,
        many,
        "from os import *",
        "def f():\n    global g\n    del g\n    g = len",
    ]:
        for code in codes(compile(text, "<t>", "exec")):
            told = {name for kind, name in used_names(code) if kind != "star"}
            said = {
                "LOAD_NAME",
                "LOAD_GLOBAL",
                "LOAD_FROM_DICT_OR_GLOBALS",
                "STORE_NAME",
                "STORE_GLOBAL",
                "DELETE_NAME",
            }
            said |= {"DELETE_GLOBAL", "IMPORT_NAME"}
            assert told == {
                each.argval for each in dis.get_instructions(code) if each.opname in said
            }
    assert ("star", "*") in used_names(compile("from os import *", "<t>", "exec"))
