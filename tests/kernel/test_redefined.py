"""Tools that a person defines anew between cells, or amid one: the newest is taped, and each gets its code back."""

import pytest

from tests.harness.notebook import Kernel, notebook
from tests.harness.provider import Provider

SET_UP = """
import json, urllib3
from tests.harness.tool_runs import Witness
ran = Witness()
schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}

def ask(name, messages):
    body = {"model": "m", "max_tokens": 9, "messages": messages, "tools": [{"name": name, "input_schema": schema}]}
    return urllib3.PoolManager().request("POST", "BASE/v1/messages", json=body, retries=False).json()["content"]

def agent(name, handle):
    messages = [{"role": "user", "content": "weather in Oslo"}]
    while True:
        content = ask(name, messages)
        uses = [block for block in content if block["type"] == "tool_use"]
        if not uses:
            return content[0]["text"]
        results = [{"type": "tool_result", "tool_use_id": use["id"], "content": str(handle(use["name"], use["input"]))} for use in uses]
        messages += [{"role": "assistant", "content": uses}, {"role": "user", "content": results}]
"""
ASK = "agent('weather', lambda name, given: globals()[name](**given))"
NEW = "def weather(city):\n    ran.append('VERSION')\n    return 'VERSION ' + city"


def version(name):
    return NEW.replace("VERSION", name)


@pytest.fixture(scope="module")
def provider():
    with Provider(vary=True) as provider:
        yield provider


@pytest.fixture
def kernel(tmp_path, provider):
    with Kernel(tmp_path, {"TAPE_NOTEBOOK": str(notebook(tmp_path / "nb.ipynb", "x"))}) as kernel:
        assert kernel.execute("%load_ext tape_jupyter" + SET_UP.replace("BASE", provider.url)).ok
        yield kernel


def test_the_newest_definition_is_taped_and_the_old_one_runs_its_own_code_again(kernel):
    assert kernel.execute(version("old") + "\nold = weather").ok
    first = kernel.execute(f"%%tape record first\n{ASK}")
    assert first.ok and "not taped" not in first.summary, first.traceback
    assert kernel.execute(version("new")).ok
    second = kernel.execute(f"%%tape record second\n{ASK}")
    assert second.ok and "not taped" not in second.summary, second.traceback
    assert kernel.execute("ran").result == "['old', 'new']"
    assert (
        kernel.execute("(old('x'), weather('x'), ran)").result
        == "('old x', 'new x', ['old', 'new', 'old', 'new'])"
    )
    assert kernel.execute("[f.__dict__ for f in (old, weather)]").result == "[{}, {}]"
    kernel.execute("ran.clear()")
    again = kernel.execute(f"%%tape replay second\n{ASK}")
    assert (again.ok, again.result) == (True, second.result), again.traceback
    assert kernel.execute("ran").result == "[]"


@pytest.mark.slow
def test_a_tool_defined_anew_amid_its_cell_is_taped_from_then_on(kernel):
    cell = "\n".join([version("old"), ASK, version("new"), ASK])
    live = kernel.execute(f"%%tape record amid\n{cell}")
    assert live.ok and "not taped" not in live.summary, live.traceback
    assert kernel.execute("ran").result == "['old', 'new']"
    again = kernel.execute(f"%%tape replay amid\n{cell}")
    assert (again.ok, again.result) == (True, live.result), again.traceback
    assert kernel.execute("ran").result == "['old', 'new']"


IMPL = "def _impl(city):\n    ran.append(city)\n    return len(ran)\n"
STATION = "class Station:\n    def measure(self, city):\n        ran.append(city)\n        return len(ran)\nstation = Station()\n"
TOOL = "class Tool:\n    def __init__(self, name, fn): self.name, self.fn = name, fn\n"

OWN = {
    "a dict of handlers": (IMPL + "HANDLERS = {'measure': _impl}", "HANDLERS['measure']"),
    "a lambda": (
        "HANDLERS = {'measure': lambda city: (ran.append(city), len(ran))}",
        "HANDLERS['measure']",
    ),
    "a bound method": (STATION + "HANDLERS = {'measure': station.measure}", "HANDLERS['measure']"),
    "a method called by its name": (STATION, "station.measure"),
    "a list of tool objects": (TOOL + IMPL + "TOOLS = [Tool('measure', _impl)]", "TOOLS[0].fn"),
    "a dict that is filled in place": (
        "HANDLERS = globals().get('HANDLERS', {})\nHANDLERS['measure'] = lambda city: (ran.append(city), len(ran))",
        "HANDLERS['measure']",
    ),
}


@pytest.mark.slow
@pytest.mark.spread(3)
@pytest.mark.parametrize("name", OWN)
def test_handlers_that_a_cell_makes_itself_run_when_it_is_recorded_and_never_in_replay(
    kernel, name
):
    define, handler = OWN[name]
    cell = f"{define}\nagent('measure', lambda name, given: {handler}(**given))"
    live = kernel.execute(f"%%tape record own\n{cell}")
    assert live.ok and "not taped" not in live.summary, live.traceback
    for _ in range(2):
        again = kernel.execute(f"%%tape replay own\n{cell}")
        assert (again.ok, again.result) == (True, live.result), again.traceback
    assert kernel.execute("ran").result == "['Oslo']"
    assert kernel.execute(f"%%tape record own\n{cell}").ok
    assert kernel.execute("ran").result == "['Oslo', 'Oslo']"
    assert "not taped" not in kernel.execute("%tape gaps own").displays[0]


def test_a_replayed_cell_that_ran_a_tool_it_defined_too_late_fails_and_says_so(kernel):
    reply = "reply = ask('weather', [{'role': 'user', 'content': 'in Oslo'}])\n"
    assert kernel.execute(version("old")).ok
    assert kernel.execute(f"%%tape record late\n{reply}weather('Oslo')", cell_id="c1").ok
    late = kernel.execute(
        f"%%tape replay late\n{reply}{version('new')}\nweather('Oslo')", cell_id="c1"
    )
    assert (late.status, late.ename) == ("error", "UnmatchedCall")
    assert "This was noticed at the end of the cell; the cell fails here" in late.traceback
    assert (
        "tool weather: a played reply asks for it, and a recorded call of it was not played"
        in late.summary
    )


def test_a_tool_whose_module_is_edited_and_reloaded_is_taped_as_it_is_then(kernel):
    module, body = (
        kernel.cwd / "weather_tools.py",
        "def weather(city):\n    print('ran VERSION')\n    return 'VERSION'\n",
    )

    def edit(version):
        module.write_text(body.replace("VERSION", version))
        kernel.execute("os.utime('weather_tools.py', (when := when + 10, when))")

    assert kernel.execute(
        "import os, time\nwhen = time.time()\n%load_ext autoreload\n%autoreload 2"
    ).ok
    edit("old")
    assert kernel.execute("from weather_tools import weather").ok
    live = kernel.execute(f"%%tape record reloaded\n{ASK}")
    assert live.stdout == "ran old\n"
    edit("new")
    again = kernel.execute(f"%%tape replay reloaded\n{ASK}")
    assert (again.stdout, again.result) == (live.stdout, live.result), (
        "what the recorded one printed"
    )
    edit("newest")
    before = kernel.execute(
        "%%tape replay reloaded\nagent('weather', lambda name, given: weather(city='Oslo'))"
    )
    assert (before.stdout, before.result) == ("ran old\n", live.result), before.traceback
    anew = kernel.execute(f"%%tape record reloaded\n{ASK}")
    assert anew.stdout == "ran newest\n" and "not taped" not in anew.summary
    assert kernel.execute("weather('x')").stdout == "ran newest\n"


@pytest.mark.slow
def test_a_tool_that_is_held_while_it_is_recorded_does_not_run_in_the_next_replay(kernel):
    assert kernel.execute("def charge(n):\n    ran.append(n)\n    return {'ok': False}").ok
    for line in (
        "record held --stub 'tool:charge={\"ok\": true}'",
        "record held --freeze tool:charge",
    ):
        assert kernel.execute(f"%%tape {line}\ncharge(5)").result == "{'ok': True}"
        again = kernel.execute("%%tape replay held\ncharge(5)")
        assert (again.result, kernel.execute("ran").result) == ("{'ok': True}", "[]")
    assert kernel.execute("%%tape record named --tools charge\ncharge(6)").ok
    assert kernel.execute("%%tape replay named\ncharge(6)").result == "{'ok': False}"
    assert kernel.execute("ran").result == "[6]"


@pytest.mark.slow
def test_a_decorated_tool_may_be_defined_anew_as_another_sort_of_function(kernel):
    assert kernel.execute(
        "import tape_jupyter as tape\n@tape.tool\ndef rows(n):\n    return list(range(n))"
    ).ok
    first = kernel.execute("%%tape record sorts\nrows(2)")
    assert kernel.execute("@tape.tool\ndef rows(n):\n    ran.append(n)\n    yield from range(n)").ok
    assert kernel.execute("%%tape record sorts-too\nlist(rows(3))").result == "[0, 1, 2]"
    assert kernel.execute("%%tape replay sorts-too\nlist(rows(3))").result == "[0, 1, 2]"
    assert kernel.execute("ran").result == "[3]"
    assert kernel.execute("%%tape replay sorts\nlist(rows(2))").result == first.result == "[0, 1]"


@pytest.mark.slow
def test_a_generator_function_that_a_model_may_call_is_taped_where_it_stands(kernel):
    define = "def weather(city):\n    for part in ('sun', 'rain'):\n        ran.append(part)\n        yield part + ' in ' + city"
    program = "agent('weather', lambda name, given: ' then '.join(globals()[name](**given)))"
    assert kernel.execute(define).ok
    live = kernel.execute(f"%%tape record generator\n{program}")
    assert live.ok and "not taped" not in live.summary, live.traceback
    again = kernel.execute(f"%%tape replay generator\n{program}")
    assert (again.ok, again.result) == (True, live.result), again.traceback
    assert kernel.execute("ran").result == "['sun', 'rain']"
    assert kernel.execute(
        "import inspect\n(inspect.isgeneratorfunction(weather), list(weather('x')))"
    ).result == ("(True, ['sun in x', 'rain in x'])")


def test_a_generator_that_is_read_over_several_cells_replays_over_them(kernel):
    define = "import tape_jupyter as tape\n@tape.tool\ndef ticks(n):\n    for i in range(n):\n        ran.append(i)\n        yield i"
    assert kernel.execute(define).ok
    assert kernel.execute("%%tape record spread\nt = ticks(4)\nnext(t)").result == "0"
    assert kernel.execute("[next(t), next(t)]").result == "[1, 2]"
    assert kernel.execute("list(t)").result == "[3]"
    kernel.execute("ran.clear()")
    assert kernel.execute("%%tape replay spread\nt = ticks(4)\nnext(t)").result == "0"
    assert kernel.execute("[next(t), next(t)], list(t), ran").result == "([1, 2], [3], [])"


@pytest.mark.slow
def test_a_method_of_a_taped_class_is_no_untaped_tool(kernel):
    define = (
        "import tape_jupyter as tape\n@tape.tool\nclass Station:\n    def __init__(self): self.n = 0\n"
        "    def measure(self, city):\n        ran.append(city)\n        return 'sun in ' + city\nstation = Station()"
    )
    program = "agent('measure', lambda name, given: getattr(station, name)(**given))"
    assert kernel.execute(define).ok
    live = kernel.execute(f"%%tape record method\n{program}")
    assert live.ok and "not taped" not in live.summary, live.summary
    again = kernel.execute(f"%%tape replay method\n{program}")
    assert (again.ok, again.result) == (True, live.result), again.traceback
    assert kernel.execute("ran").result == "['Oslo']"
