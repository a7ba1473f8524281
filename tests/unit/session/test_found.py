"""What a taped cell found of its tools: it is sought again where something may have changed, and only there."""

import pytest

from tape_jupyter.session.tool_tracking import FOUND, ScannedTools
from tape_jupyter.instrumentation.tools import discovery


@pytest.fixture
def searches(monkeypatch):
    """The names of every search that was made."""
    made = []
    search = discovery.find_functions
    monkeypatch.setattr(
        discovery, "find_functions", lambda *asked: made.append(asked[0]) or search(*asked)
    )
    return made


@pytest.fixture
def notebook():
    namespace = {"__name__": "__main__"}
    exec("def send(to): return to\nHANDLERS = {'send_mail': send}", namespace)
    return namespace


def test_a_second_look_at_the_same_notebook_searches_nothing(notebook, searches):
    found = ScannedTools()
    taped = found.tape(("send_mail", "absent"), notebook)
    assert found.list_current_functions() == {notebook["send"]} and found.sought == {
        "send_mail": FOUND,
        "absent": 0,
    }
    assert found.tape(("send_mail", "absent"), notebook) is None
    assert searches == [("send_mail", "absent")]
    taped()
    assert found.list_current_functions() == set()


def test_a_function_that_is_put_in_a_tools_place_is_taped_beside_the_one_before(notebook):
    found = ScannedTools()
    undo = [found.tape(("send_mail",), notebook)]
    notebook["HANDLERS"]["send_mail"] = other = eval("lambda to: to", notebook)
    undo.append(found.tape(("send_mail",), notebook))
    assert found.list_current_functions() == {notebook["send"], other}
    del notebook["HANDLERS"]["send_mail"]
    assert found.tape(("send_mail",), notebook) is None and found.sought == {"send_mail": FOUND}
    codes = [each.__code__ for each in (notebook["send"], other)]
    for each in undo:
        each()
    assert all(
        each.__code__ is not code
        for each, code in zip((notebook["send"], other), codes, strict=True)
    )


def test_a_function_whose_code_was_replaced_is_taped_again(notebook, searches):
    found, send = ScannedTools(), notebook["send"]
    undo = [found.tape(("send_mail",), notebook)]
    send.__code__ = edited = (lambda to: "edited").__code__
    assert found.list_current_functions() == set()
    undo.append(found.tape(("send_mail",), notebook))
    assert found.list_current_functions() == {send} and len(searches) == 2
    for each in reversed(undo):
        each()
    assert send.__code__ is edited


def test_what_cannot_be_taped_is_told(notebook, monkeypatch):
    found = ScannedTools()
    exec("def odd(**given): return given", notebook)
    notebook["odd"].__code__ = notebook["odd"].__code__.replace(co_varnames=("not a name",))
    taped = found.tape(("odd",), notebook)
    assert (
        taped is not None and set(taped.skipped) == {"odd"} and not found.list_current_functions()
    )
