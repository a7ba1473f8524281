"""The functions behind declared tools are found wherever a notebook keeps them, and only the user's own."""

import functools
import json
import sys
import types

import pytest

from tape_jupyter.instrumentation.tools.discovery import (
    decorated_names,
    find_functions,
    list_search_ids,
    unwrap,
)
from tape_jupyter.instrumentation.tools.decorators import tool

NOTEBOOK = """
import functools, json, dataclasses
from math import sqrt

def get_weather(city): return city
def lookup(q): return q
def add(a, b): return a + b

class Agent:
    client = None
    def __init__(self): self.handlers = {"send_mail": self._send}
    def _send(self, to): return to
    def book(self, room): return room
    @property
    def cancel(self): raise RuntimeError("properties are not run")

agent = Agent()
handlers = {"search": lookup, "plus": functools.partial(add, 1), "twice": lambda x: 2 * x}
described = {"rate": {"function": add, "schema": {"type": "object"}}}
agents = {"first": agent}
dumps = json.dumps
TOOLS = [("calc", add), lookup]
_1 = {"get_weather": lambda city: "old"}
"""


@pytest.fixture
def notebook():
    """A namespace as a kernel has it: the notebook's own module is __main__."""
    namespace = {"__name__": "__main__"}
    exec(compile(NOTEBOOK, "<cell 1>", "exec"), namespace)
    return namespace


def names(found):
    return {name: [f.__qualname__ for f in functions] for name, functions in found.items()}


def test_a_function_of_that_name_is_found(notebook):
    assert names(find_functions(["get_weather", "absent"], notebook)) == {
        "get_weather": ["get_weather"]
    }


def test_a_dict_of_handlers_leads_to_its_functions(notebook):
    assert names(find_functions(["search", "plus", "twice", "rate"], notebook)) == {
        "search": ["lookup"],
        "plus": ["add"],
        "twice": ["<lambda>"],
        "rate": ["add"],
    }


def test_methods_of_objects_and_handlers_kept_in_objects_are_found(notebook):
    assert names(find_functions(["book", "send_mail", "cancel"], notebook)) == {
        "book": ["Agent.book"],
        "send_mail": ["Agent._send"],
    }


def test_a_library_function_is_never_taped(notebook):
    assert find_functions(["dumps", "sqrt", "partial", "print"], notebook | {"print": print}) == {}
    assert find_functions(["dumps"], {"tools": {"dumps": json.dumps}}) == {}


def test_two_functions_that_go_by_one_name_are_both_found():
    def search(q):
        return q

    def other(q):
        return q

    found = find_functions(["search"], {"search": search, "handlers": {"search": other}})
    assert found == {"search": (search, other)}


def test_the_users_function_inside_a_librarys_decorator_is_found():
    from tenacity import retry

    def fetch(url):
        return url

    @functools.wraps(fetch)
    def mine(*args):
        return fetch(*args)

    assert unwrap(functools.lru_cache(fetch)) == [fetch]
    assert unwrap(retry(fetch)) == [fetch]
    assert unwrap(mine) == [mine]
    assert unwrap(functools.partial(functools.partial(fetch))) == [fetch]
    assert unwrap(staticmethod(fetch)) == [fetch]


def test_a_method_whose_answers_are_cached_is_found():
    class Map:
        @functools.lru_cache(maxsize=2)
        def route(self, to):
            return to

    found = find_functions(["route"], {"city": Map()})
    assert found == {"route": (Map.route.__wrapped__,)}


def test_a_method_that_stands_for_two_tools_is_not_taped_under_either():
    class Handler:
        def __init__(self, kind):
            self.kind = kind

        def __call__(self, x):
            return self.kind, x

    assert find_functions(["a", "b"], {"h": {"a": Handler("a"), "b": Handler("b")}}) == {}
    assert names(find_functions(["a"], {"h": {"a": Handler("a")}})) == {
        "a": [Handler.__call__.__qualname__]
    }


def test_a_decorated_tool_is_not_taped_a_second_time():
    @tool
    def search(q):
        return q

    assert find_functions(["search"], {"search": search, "tools": [search]}) == {}


def test_what_an_earlier_execution_left_in_the_history_is_not_looked_at(notebook):
    (found,) = find_functions(["get_weather"], notebook)["get_weather"]
    assert found("Oslo") == "Oslo"


def test_modules_cycles_and_wide_containers_do_no_harm(notebook):
    loop = {"self": None}
    loop["self"] = loop
    namespace = {
        **notebook,
        "loop": loop,
        "sys": sys,
        "wide": list(range(10**6)),
        "t": types.SimpleNamespace(a=loop),
    }
    assert set(find_functions(["search"], namespace)) == {"search"}


SHOP = """
class Cart:
    def add(self, item): return item

class Basket:
    def add(self, item): return item

cart = Cart()
"""


@pytest.fixture
def shop():
    namespace = {"__name__": "__main__"}
    exec(compile(SHOP, "<cell 2>", "exec"), namespace)
    return namespace


def test_a_method_that_only_has_a_tools_name_is_left_alone_where_a_function_has_it(shop, notebook):
    add = notebook["add"]
    for holder in (
        {"add": add},
        {"handlers": {"add": add}},
        {"tools": [add]},
        {"add": tool(add)},
        {"add": abs},
    ):
        found = find_functions(["add"], {**shop, **holder}).get("add", ())
        assert [f.__qualname__ for f in found] in ([], ["add"])


def test_a_method_counts_where_it_is_the_only_one_of_its_name(shop):
    cart = shop["Cart"].add
    assert find_functions(["add"], shop) == {"add": (cart,)}
    assert find_functions(
        ["add"], {**shop, "other": shop["Cart"](), "carts": [shop["Cart"]()]}
    ) == {"add": (cart,)}
    assert find_functions(["add"], {**shop, "baskets": {"first": shop["Basket"]()}}) == {}


def test_a_class_that_was_defined_anew_is_found_in_both_its_versions(shop):
    kept = {"kept": [shop["cart"]]}
    first = shop["Cart"].add
    exec(compile(SHOP, "<cell 3>", "exec"), shop)
    assert set(find_functions(["add"], {**shop, **kept})["add"]) == {first, shop["Cart"].add}


CHANGES = {
    "a function of that name": "def search(q): return q",
    "an entry of a dict": "handlers['search'] = lambda q: q",
    "an entry of a described dict": "described['rate']['function'] = lambda q: q",
    "an item of a list": "TOOLS.append(get_weather)",
    "a handler that an object keeps": "agent.handlers['send_mail'] = lookup",
    "an attribute of an object": "agent.search = lambda q: q",
    "an object of a class": "agents['second'] = Agent()",
    "a method of a class": "Agent.book = lambda self, room: room",
    "another dict, filled alike": "handlers = {**handlers, 'search': lambda q: q}",
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_may_lead_to_another_function_is_seen_at_a_look(notebook, change):
    names = ["search", "send_mail", "book", "rate"]
    before = list_search_ids(names, notebook)
    assert before is not None and list_search_ids(names, notebook) == before
    exec(CHANGES[change], notebook)
    assert list_search_ids(names, notebook) != before


def test_a_look_does_not_mind_data_that_grows_as_an_agent_runs(notebook):
    notebook["messages"] = [{"role": "user"}]
    before = list_search_ids(["search"], notebook)
    notebook["messages"].append({"role": "assistant"})
    notebook |= {"turn": 2, "text": "so far", "_": notebook["lookup"], "seen": ["a", {"b": 1}]}
    assert list_search_ids(["search"], notebook) == before


def test_nobody_can_tell_what_an_object_that_raises_hides(notebook):
    assert list_search_ids(["search"], notebook | {"odd": Hostile()}) is None


class Proxy:
    """As a web framework's, outside of a request."""

    @property
    def __dict__(self):
        raise RuntimeError("outside of request context")

    __class__ = __dict__

    def __getattr__(self, name):
        raise RuntimeError("outside of request context")


class Hostile(dict):
    def __len__(self):
        raise RuntimeError("no")

    def __missing__(self, key):
        raise AssertionError("filled in what was missing")

    values = keys = __iter__ = __len__


def test_objects_that_raise_when_looked_at_hide_nothing_but_themselves(notebook):
    namespace = {
        "request": Proxy(),
        "search": Proxy(),
        "odd": Hostile(),
        "mixed": [Proxy(), notebook["lookup"]],
    }
    found = find_functions(
        ["search", "lookup", "plus"], {**namespace, "handlers": {"plus": notebook["add"]}}
    )
    assert names(found) == {"lookup": ["lookup"], "plus": ["add"]}
    assert decorated_names("search", namespace) == set()


def looks(*arguments, by=find_functions):
    """How many functions were entered: a measure of work that is the same on every machine."""
    count = 0

    def note(frame, event, arg):
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(note)
    try:
        by(*arguments)
    finally:
        sys.setprofile(None)
    return count


def test_large_data_in_the_namespace_costs_no_more_than_small(notebook):
    numpy, pandas = pytest.importorskip("numpy"), pytest.importorskip("pandas")
    matrix = [[0.5] * 1000 for _ in range(1000)]
    data = {
        "matrix": matrix,
        "rows": [{"a": row} for row in matrix[:150]],
        "big": {f"k{n}": [n, {"a": matrix}] for n in range(10**5)},
        "array": numpy.zeros((1000, 1000)),
        "frame": pandas.DataFrame({"a": range(10**5)}),
    }
    small = {name: [] for name in data}
    wanted = ["search", "absent"]
    find_functions(wanted, {**notebook, **data})  # fills the cache of library files
    assert looks(wanted, {**notebook, **data}) < looks(wanted, {**notebook, **small}) + 1000


def test_three_hundred_names_cost_a_few_looks_each(notebook):
    namespace = {
        **notebook,
        **{f"n{n}": [n, str(n), {"a": n}] if n % 3 else float(n) for n in range(300)},
    }
    find_functions(["search"], namespace)
    assert looks(["search"], namespace) < 30 * len(namespace)


def test_a_look_costs_less_than_half_of_a_search(notebook):
    messages = [{"role": "user", "content": [{"type": "text", "text": "x"}]} for _ in range(100)]
    namespace = {
        **notebook,
        **{f"n{n}": [n, {"a": n}] if n % 3 else lambda: 0 for n in range(100)},
        "m": messages,
    }
    list_search_ids(["search"], namespace)
    find_functions(["search"], namespace)
    assert looks(["search"], namespace, by=list_search_ids) < looks(["search"], namespace) / 2
