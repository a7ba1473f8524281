"""Which code ran."""

import ast
import asyncio
import os
import sys
import textwrap
import types

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


def test_what_the_shell_does_before_the_cells_code_begins_is_no_doing_of_the_cell():
    space = {"__name__": "__main__"}
    watch = CodeWatch(space)
    watch.begin()
    textwrap.dedent("a")
    exec("x = 1", space)
    if sys.version_info < (3, 12):
        textwrap.indent("a", " ")
    told = watch.end()
    watch.close()
    assert "textwrap" not in told.packages and told.complete


def test_what_sends_the_output_of_a_cell_to_its_page_is_no_doing_of_the_cell():
    sender = {"__name__": "jupyter_client.session", "textwrap": textwrap}
    exec("def send(): return textwrap.dedent('a')", sender)
    send = sender["send"]
    assert "textwrap" not in ran("send()", send=send).packages
    assert "textwrap" in ran("send()\ndedent('b')", send=send, dedent=textwrap.dedent).packages


def test_what_runs_while_a_cell_waits_is_told():
    space = {"__name__": "__main__", "asyncio": asyncio, "dedent": textwrap.dedent}
    text = "task = asyncio.ensure_future(asyncio.to_thread(int))\nawait task\ndedent('a')"
    code = compile(text, "<cell>", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    watch = CodeWatch(space)
    watch.begin()
    asyncio.run(eval(code, space))
    told = watch.end()
    watch.close()
    assert {"asyncio", "textwrap"} <= told.packages


def test_of_a_shell_whose_names_are_no_modules_the_cells_code_is_known_too():
    from IPython.core.interactiveshell import InteractiveShell

    shell = InteractiveShell(user_module=types.ModuleType("app"), user_ns={})
    assert shell.user_ns is not shell.user_global_ns
    watch = CodeWatch(shell.user_ns)
    watch.begin()
    shell.run_cell("import textwrap\nx = textwrap.dedent('a')")
    told = watch.end()
    watch.close()
    assert "textwrap" in told.packages
