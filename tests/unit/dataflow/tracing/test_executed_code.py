"""Which code ran."""

import os
import sys

from tape_jupyter.dataflow.tracing import executed_code
from tape_jupyter.dataflow.tracing.executed_code import CodeWatch


def ran(source, **names):
    space = {"__name__": "__main__", **names}
    exec("def inner(): return 1\ndef outer(): return inner()\ndef never(): return 2", space)
    watch = CodeWatch(space)
    watch.begin()
    exec(source, space)
    told = watch.end()
    watch.close()
    return told


def names(told):
    return {code.co_name for place, code in told.codes if place == ""}


def test_functions_that_ran_are_told_and_others_are_not():
    told = ran("outer()")
    assert {"outer", "inner"} <= names(told) and "never" not in names(told) and told.complete


def test_functions_of_c_are_told():
    assert any(name.endswith(".getcwd") for name in ran("import os\nos.getcwd()").builtins)


def test_after_its_first_thousands_it_looks_no_more_and_says_so(monkeypatch):
    monkeypatch.setattr(executed_code, "EVENTS", 50)
    told = ran("for i in range(200): abs(i)")
    assert not told.whole_builtins


def test_somebody_elses_profiler_is_left_alone():
    if sys.version_info >= (3, 12):
        return
    mine = lambda *a: None
    sys.setprofile(mine)
    try:
        told = ran("os.getcwd()", os=os)
        assert sys.getprofile() is mine and not told.complete
    finally:
        sys.setprofile(None)


def test_a_library_is_told_by_its_package_and_its_functions():
    told = ran("import json\njson.dumps({'a': 1}, indent=1)")
    assert "json" in told.packages and "json.dumps" in told.functions


def test_what_runs_in_a_thread_of_the_cell_is_told():
    assert "inner" in names(
        ran("import threading\nt = threading.Thread(target=inner)\nt.start()\nt.join()")
    )


def test_what_runs_after_an_error_is_told_too():
    assert {"outer", "inner"} <= names(
        ran("try:\n    1 / 0\nexcept ZeroDivisionError:\n    outer()")
    )


def test_between_cells_nobody_looks():
    space = {"__name__": "__main__"}
    exec("def f(): return 1", space)
    watch = CodeWatch(space)
    watch.begin()
    told = watch.end()
    space["f"]()
    watch.close()
    assert names(told) == set() and sys.getprofile() is None
