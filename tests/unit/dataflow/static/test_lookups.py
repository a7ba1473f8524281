"""Whether a tool that is called with the same arguments may give another value, since what it reads changed."""

import linecache

import pytest

from tape_jupyter.dataflow.fingerprint.fingerprint import SECONDS
from tape_jupyter.dataflow.static.lookups import asks_for
from tape_jupyter.dataflow.tracing.variables import Variables

HELPER = "def helper(): return len(todo)\n"


@pytest.fixture
def asked():
    """What a tool `add` with this body reads of `todo`, which differs."""

    def reads(source):
        file = f"<remembered {source}>"
        linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
        space = {"__name__": "__main__", "todo": []}
        exec(compile(source, file, "exec"), space)
        variables = Variables(space)
        variables.refresh(set(space), SECONDS)
        return asks_for("add", {"todo"}, variables)

    return reads


def test_a_tool_that_only_adds_gives_the_same(asked):
    assert asked("def add(item):\n    todo.append(item)\n    return 'ok'\n") == set()
    assert asked("def add(item):\n    todo[0] = item\n    return 'ok'\n") == set()
    assert asked("def add(item):\n    return 'ok'\n") == set()


def test_a_tool_that_reads_may_give_another_value(asked):
    assert asked("def add(item):\n    todo.append(item)\n    return len(todo)\n") == {"todo"}
    assert asked("def add(item):\n    global todo\n    todo += [item]\n    return 'ok'\n") == {
        "todo"
    }
    assert asked(HELPER + "def add(item):\n    return helper()\n") == {"todo"}


def test_one_in_a_dict_of_handlers_is_found(asked):
    assert asked("def add(item):\n    return todo[-1:]\nHANDLERS = {'put': add}\ndel add\n") == {
        "todo"
    }
