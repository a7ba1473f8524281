"""Whether a tool that is called with the same arguments may give another value, since what it reads changed."""

import linecache

import pytest

from tape_jupyter.dataflow.fingerprint.fingerprint import SECONDS
from tape_jupyter.dataflow.static.lookups import asks_for, looks_at
from tape_jupyter.dataflow.tracing.variables import Variables

HELPER = "def helper(): return len(todo)\n"


@pytest.fixture
def asked():
    """What a tool `add` with this body reads of `todo`, which differs."""

    return lambda source: asks_for("add", {"todo"}, known(source))


def known(source):
    """The variables of a notebook with this cell."""
    file = f"<remembered {source}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    space = {"__name__": "__main__", "todo": []}
    exec(compile(source, file, "exec"), space)
    variables = Variables(space)
    variables.refresh(set(space), SECONDS)
    return variables


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


LOOKING = [
    "def add(p): return open(p).read()\n",
    "def add(p): return p.read_text()\n",
    "import os\ndef add(p): return os.path.exists(p)\n",
    "def table(p): return pd.read_csv(p)\ndef add(p): return len(table(p))\n",
    "def add(p):\n    with open(p, 'r+') as f: f.write('x')\n",
]
ONLY_WRITING = [
    "def add(p):\n    with open(p, 'a') as f: f.write('x')\n",
    "def add(p):\n    with p.open(mode='wb') as f: f.write(b'x')\n",
    "def add(p): p.write_text('x')\n",
    "def other(p): return open(p).read()\ndef add(p): return p\n",
]


@pytest.mark.parametrize("source", LOOKING)
def test_a_tool_that_looks_at_files_may_give_another_value(source):
    assert looks_at("add", ["file:/near"], known(source))


@pytest.mark.parametrize("source", ONLY_WRITING)
def test_a_tool_that_only_writes_them_gives_the_same(source):
    assert not looks_at("add", ["file:/near"], known(source))


STATE = {
    "ambient:environment": "import os\ndef add(): return os.environ['A']\n",
    "ambient:cwd": "def add(): return open('near').read()\n",
    "ambient:decimal": "from decimal import Decimal\ndef third(): return Decimal(1) / 3\ndef add(): return third()\n",
    "ambient:module textwrap": "import textwrap\ndef add(t): return textwrap.shorten(t, 3)\n",
    "file:/folder/near": "def add(): return open('near').read()\n",
}


@pytest.mark.parametrize("state", STATE)
def test_a_tool_that_looks_at_the_process_state_may_give_another_value(state):
    assert looks_at("add", [state], known(STATE[state])) == {state}
    assert looks_at("add", [state], known("def add(item): return item\n")) == set()
