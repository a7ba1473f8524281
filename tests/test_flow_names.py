"""Names that a cell's text reads and binds."""

from tape_jupyter.flow.names import cell_names, names_of, transform


def only(source):
    return cell_names(transform(source)).statements[-1]


def test_locals_of_functions_and_comprehensions_are_no_names_of_the_notebook():
    code = only("ys = [x + k for x in xs]").code
    assert code.reads == {"xs", "k"} and code.stores == {"ys"}
    code = only("def f(a):\n    b = a + g\n    return b").code
    assert code.reads == set() and code.later_reads == {"g"} and code.stores == {"f"}


def test_a_class_body_reads_at_once_and_binds_its_own():
    code = only("class C(Base):\n    header = style\n    def m(self): return tone").code
    assert {"Base", "style"} <= code.reads and code.later_reads == {"tone"} and code.stores == {"C"}


def test_what_is_bound_on_every_way_is_told_from_what_may_be():
    assert only("if q:\n    a = 1\n    b = 1\nelse:\n    a = 2").always == {"a"}
    assert only("a, (b, *c) = v").always == {"a", "b", "c"}
    assert only("try:\n    a = f()\nexcept E:\n    pass").always == set()


def test_globals_that_functions_bind_and_stars():
    assert only("def f():\n    global G\n    G = 1").code.later_stores == {"G"}
    assert only("from math import *").code.star


def test_magics_run_what_they_say():
    assert only("%%time\ns = r").code.stores == {"s"}
    assert "r" in only("%time u = r").code.reads
    assert only("%%tape record\ns = r").code.reads == {"r"}
    assert only("x = !echo $r").uses.magics[0].line == "echo $r"


def test_a_text_that_is_run_and_stands_there_is_read():
    assert only("exec('z = 1 + w')").code.reads >= {"w"}
    assert only("exec(code)").uses.dynamic == {"exec"}


def test_what_is_no_python_is_said():
    assert cell_names("x = = 1").broken


def test_a_functions_own_code_counts_as_running():
    def f(a):
        return tone + a  # noqa: F821

    assert names_of(f.__code__).reads == {"tone"}


def test_what_cannot_raise_for_another_reply():
    assert only("r = llm('q')").calm_call and not only("r = int(llm('q'))").calm_call
    assert only("print(r)").calm and not only("x = r[0]").calm
