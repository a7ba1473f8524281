"""A function is the same with and without the tape around it: for fingerprints, and for what is put back."""

import types

import tape_jupyter as tape
from tape_jupyter.dataflow.fingerprint.fingerprint import fingerprint
from tape_jupyter.dataflow.restore.snapshots import remember_value
from tape_jupyter.dataflow.fingerprint.unwrapped import attributes_of, unwrap, code_of
from tape_jupyter.instrumentation.tools.decorators import tape_functions

SEEN = []


def find(order):
    SEEN.append(order)
    return order


def made():
    """One of a notebook, with the namespace that it is in."""
    space = {"__name__": "__main__"}
    exec(
        "seen = []\ndef find(order):\n    seen.append(order)\n    return order\nHANDLERS = {'find': find}",
        space,
    )
    return space


def test_a_function_that_is_taped_where_it_stands_has_its_own_code_and_attributes():
    code = find.__code__
    undo = tape_functions({"find": find})
    try:
        assert find.__code__ is not code and code_of(find) is code and attributes_of(find) == {}
    finally:
        undo()
    assert code_of(find) is code


def test_a_decorated_function_is_what_it_stands_around():
    assert unwrap(tape.tool(find)) is find and unwrap(find) is find


def test_handlers_in_a_dict_look_the_same_while_they_are_taped():
    space = made()
    before = fingerprint(space["HANDLERS"], space)
    undo = tape_functions({"find": space["find"]})
    try:
        taped = fingerprint(space["HANDLERS"], space)
    finally:
        undo()
    assert before.digest == taped.digest and before.codes == taped.codes


def test_what_is_put_back_leaves_our_code_where_it_stands():
    space = made()
    function: types.FunctionType = space["find"]
    memento = remember_value(function)
    undo = tape_functions({"find": function})
    function.note = "new"
    memento.restore()
    assert function.__code__ is not code_of(function) and attributes_of(function) == {}
    taped = remember_value(function)
    undo()
    taped.restore()
    assert function.__code__ is code_of(function) and function("x") == "x" and vars(function) == {}


def test_a_decorated_function_can_be_put_back():
    space = made()
    space["find"] = tape.tool(space["find"])
    memento = remember_value(space["find"])
    assert memento.possible()
    space["seen"].append(1)
    assert fingerprint(space["find"], space).codes
