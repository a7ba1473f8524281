"""Tools and retrievals: recorded once, answered from the tape without running, by decorator or without any change."""

import asyncio
import concurrent.futures
import contextvars
import functools
import gc
import inspect
import json
import threading
import types
import weakref

import pytest

from tape_jupyter.encoding.values import registry
from tape_jupyter import instrumentation
from tape_jupyter.core.call import Play, Tape, Value
from tape_jupyter.errors import UnmatchedCall
from tape_jupyter.core.context import ORIGIN, PARENT, SPAN, Origin
from tape_jupyter.instrumentation.http import replayed_response
from tape_jupyter.instrumentation.tools.decorators import (
    find_functions,
    retrieval,
    span,
    tape_functions,
    tool,
)


class MemoryTape(Tape):
    """A tape of function calls in memory: text in, text out, as a cassette would hold them."""

    def __init__(self, calls=(), *, replay=False):
        self.calls, self.replay, self.kinds, self.parents, self.spans = (
            list(calls),
            replay,
            [],
            [],
            [],
        )

    def begin(self, call):
        key = json.dumps([call.name, registry.freeze(dict(call.arguments))])
        (
            self.kinds.append(call.kind),
            self.parents.append(PARENT.get()),
            self.spans.append(SPAN.get()),
        )
        if not self.replay:
            return MemoryCapture(self, key, f"call-{len(self.kinds)}")
        for i, (known, reply) in enumerate(self.calls):
            if known == key:
                del self.calls[i]
                return Play(Value(**json.loads(reply)))
        raise UnmatchedCall(f"{key} is not on the tape")


class MemoryCapture:
    def __init__(self, tape, key, call_id):
        self.tape, self.key, self.id, self.closed = tape, key, call_id, False
        self.did = {}

    def value(self, value):
        self.tape.calls.append((self.key, json.dumps({"value": registry.freeze(value)})))

    def fail(self, error):
        told = {"error": registry.freeze_error(error), "did": self.did}
        self.tape.calls.append((self.key, json.dumps(told)))

    def awaited(self):
        self.did = {"awaited": True}

    def close(self):
        self.closed = True
        self.tape.calls.append((self.key, "closed"))


@pytest.fixture
def recording():
    tape = MemoryTape()
    instrumentation.install(tape)
    yield tape
    instrumentation.remove_tape()


def replay(tape):
    """From here on the same tape, played."""
    instrumentation.install(MemoryTape(tape.calls, replay=True))


ran = []


@pytest.fixture(autouse=True)
def nothing_ran_yet():
    ran.clear()
    before = ORIGIN.get()
    yield
    ORIGIN.set(before)


@tool
def weather(city, *days, unit="C", **more):
    """The weather of a city."""
    ran.append(city)
    return (city, days, unit, more)


@tool(name="search")
async def find_pages(query):
    ran.append(query)
    await asyncio.sleep(0)
    return {query}


class Shop:
    def __init__(self, name):
        self.name = name

    @tool
    def price(self, item):
        ran.append(item)
        return len(item)

    @staticmethod
    @tool
    def tax(amount):
        ran.append(amount)
        return amount // 5

    @tool
    @classmethod
    def stock(cls, item):
        ran.append(item)
        return cls.__name__ + item


def test_a_tool_without_a_tape_is_the_plain_function():
    assert weather("Oslo", 1, unit="F", x=2) == ("Oslo", (1,), "F", {"x": 2})
    assert weather.__name__ == "weather" and weather.__doc__ == "The weather of a city."
    assert str(inspect.signature(weather)) == "(city, *days, unit='C', **more)"
    assert inspect.iscoroutinefunction(find_pages) and not inspect.iscoroutinefunction(weather)


def test_a_recorded_tool_is_answered_from_the_tape_and_does_not_run(recording):
    live = weather("Oslo", 1, 2, x=3)
    assert ran == ["Oslo"]
    replay(recording)
    assert weather("Oslo", 1, 2, unit="C", x=3) == live == ("Oslo", (1, 2), "C", {"x": 3})
    assert ran == ["Oslo"]


def test_a_tool_asked_something_new_in_replay_is_refused_and_does_not_run(recording):
    weather("Oslo")
    replay(recording)
    with pytest.raises(UnmatchedCall, match="Bergen"):
        weather("Bergen")
    assert ran == ["Oslo"]


def test_an_async_tool_is_awaited_and_replays(recording):
    assert asyncio.run(find_pages("q")) == {"q"}
    assert "search" in recording.calls[0][0]
    replay(recording)
    assert asyncio.run(find_pages("q")) == {"q"}
    assert ran == ["q"]


def test_methods_are_called_by_their_arguments_without_the_object(recording):
    shop = Shop("a")
    live = [shop.price("tea"), Shop.tax(10), shop.tax(15), Shop.stock("x")]
    assert [json.loads(key)[1] for key, _ in recording.calls] == [
        {"item": "tea"},
        {"amount": 10},
        {"amount": 15},
        {"item": "x"},
    ]
    replay(recording)
    other = Shop("b")
    assert [other.price("tea"), Shop.tax(10), other.tax(15), Shop.stock("x")] == live
    assert len(ran) == 4


def test_an_error_is_raised_again_as_its_own_class(recording):
    @tool
    def broken(x):
        ran.append(x)
        return {}["nothing"]

    with pytest.raises(KeyError, match="nothing"):
        broken(1)
    replay(recording)
    with pytest.raises(KeyError, match="nothing"):
        broken(1)
    assert ran == [1]


def test_a_wrong_call_raises_the_functions_own_type_error_and_is_no_call(recording):
    with pytest.raises(TypeError, match="city"):
        weather()
    assert recording.kinds == []


def test_a_retrieval_says_so(recording):
    @retrieval
    def documents(query):
        return [query]

    @retrieval(name="docs")
    async def more(query):
        return [query]

    documents("a"), asyncio.run(more("b"))
    assert recording.kinds == ["retrieval", "retrieval"]


def test_a_plain_function_that_gives_a_coroutine_gives_one_in_replay(recording):
    async def work(x):
        ran.append(x)
        return (x,)

    @tool
    def start(x):
        return work(x)

    assert asyncio.run(start(1)) == (1,)
    replay(recording)
    assert asyncio.run(start(1)) == (1,)
    assert ran == [1]


def test_a_coroutine_that_is_dropped_is_closed(recording):
    @tool
    async def slow():
        await asyncio.sleep(100)

    async def main():
        task = asyncio.create_task(slow())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert "CancelledError" in recording.calls[0][1]
    running = slow()
    running.close()
    assert len(recording.calls) == 1  # it never began

    @tool
    async def waits():
        await pause()

    import types

    @types.coroutine
    def pause():
        yield

    started = waits()
    started.send(None)
    started.close()
    assert recording.calls[1][1] == "closed"


def test_a_refusal_inside_a_tool_is_not_the_tools_reply(recording):
    @tool
    def asks():
        raise UnmatchedCall("no such call")

    with pytest.raises(UnmatchedCall):
        asks()
    assert recording.calls[0][1] == "closed"


def test_a_builtin_or_partial_is_taped_by_its_arguments(recording):
    longest = tool(name="longest")(max)
    assert longest(1, 5) == 5
    assert json.loads(recording.calls[0][0]) == ["longest", {"args": [1, 5], "kwargs": {}}]
    half = tool(name="half")(functools.partial(weather.__wrapped__, unit="F"))
    assert half("Oslo")[2] == "F"
    replay(recording)
    assert longest(1, 5) == 5 and half("Oslo")[2] == "F"


def test_calls_made_in_a_tools_body_know_their_parent_and_leave_the_callers_numbering_alone(
    recording,
):
    ORIGIN.set(Origin("cell", "3"))
    strands = []

    @tool
    def outer(x):
        strands.append(ORIGIN.get().spawn().lineage)
        return weather(x)

    outer("Oslo"), outer("Rome")
    assert recording.parents == ["", "call-1", "", "call-3"]
    assert strands == ["3/outer.0", "3/outer.0"]
    assert ORIGIN.get().spawn().lineage == "3.0" and PARENT.get() == ""


def test_two_async_tools_at_once_do_not_mix_up_their_parents(recording):
    @tool
    async def outer(x):
        await asyncio.sleep(0)
        return await find_pages(x)

    async def main():
        return await asyncio.gather(*(outer(x) for x in "abc"))

    assert asyncio.run(main()) == [{"a"}, {"b"}, {"c"}]
    assert sorted(recording.parents) == ["", "", "", "call-1", "call-2", "call-3"]


def test_spans_nest_in_with_blocks_async_blocks_and_decorated_functions(recording):
    @span("plan")
    def plan():
        with span("inner"):
            return weather("Oslo")

    @span("plan async")
    async def plan_async():
        async with span("inner"):
            return await find_pages("q")

    plan(), asyncio.run(plan_async()), weather("Rome")
    assert recording.spans == [("plan", "inner"), ("plan async", "inner"), ()]
    assert inspect.iscoroutinefunction(plan_async)
    with pytest.raises(ZeroDivisionError), span("broken"):
        1 / 0
    assert SPAN.get() == ()


# --------------------------------------------------- without any change to the code


def plain(city, /, day=1, *rest, unit="C", **more):
    """Plain."""
    ran.append(city)
    return (city, day, rest, unit, more)


async def plain_async(query: str, limit=3):
    ran.append(query)
    await asyncio.sleep(0)
    return [query] * limit


def test_a_plain_function_is_taped_wherever_it_is_held_and_untaped_cleanly(recording):
    before, handlers, alias = plain.__code__, {"get": plain}, functools.partial(plain, unit="K")
    signature = inspect.signature(plain)
    undo = tape_functions({"get_weather": plain})
    live = [handlers["get"]("Oslo", 2, 3, z=4), alias("Rome"), plain("Bonn", unit="F")]
    assert live == [
        ("Oslo", 2, (3,), "C", {"z": 4}),
        ("Rome", 1, (), "K", {}),
        ("Bonn", 1, (), "F", {}),
    ]
    assert (
        inspect.signature(plain) == signature
        and plain.__doc__ == "Plain."
        and plain.__name__ == "plain"
    )
    assert "ran.append(city)" in inspect.getsource(plain)
    assert json.loads(recording.calls[0][0]) == [
        "get_weather",
        {"city": "Oslo", "day": 2, "rest": [3], "unit": "C", "more": {"z": 4}},
    ]
    replay(recording)
    assert [handlers["get"]("Oslo", 2, 3, z=4), alias("Rome"), plain("Bonn", unit="F")] == live
    assert ran == ["Oslo", "Rome", "Bonn"]
    undo()
    assert plain.__code__ is before
    assert plain("Oslo") == ("Oslo", 1, (), "C", {}) and len(ran) == 4
    undo()
    assert plain.__code__ is before


def test_a_call_that_is_untaped_while_it_begins_gives_what_the_function_gives(recording):
    def lazy(stop):
        return (number for number in range(stop))

    def generator(stop):
        return (yield from lazy(stop))

    undo = tape_functions({"lazy": lazy, "generator": generator})
    begun = [
        types.FunctionType(f.__code__, globals(), closure=f.__closure__) for f in (lazy, generator)
    ]
    undo()
    assert [list(function(3)) for function in begun] == [
        [0, 1, 2],
        [0, 1, 2],
    ] and recording.calls == []


def test_an_async_function_stays_one(recording):
    undo = tape_functions({"search": plain_async})
    assert inspect.iscoroutinefunction(plain_async)
    live = asyncio.run(plain_async("q", limit=2))
    replay(recording)
    assert asyncio.run(plain_async("q", 2)) == live == ["q", "q"]
    assert ran == ["q"]
    undo()


def test_closures_and_methods_and_super_keep_working(recording):
    class Base:
        def run(self, x):
            return f"base {x}"

    class Agent(Base):
        def __init__(self, name):
            self.name = name

        def run(self, x):
            ran.append(x)
            return f"{self.name} {super().run(x)} {__class__.__name__}"

    def make(offset):
        def add(x, *, twice=False):
            nonlocal offset
            ran.append(x)
            offset += 1
            return (x + offset) * (2 if twice else 1)

        return add

    agent, add = Agent("a"), make(10)
    bound = agent.run
    undo = tape_functions({"run": bound, "add": add})
    live = [bound("x"), agent.run("y"), add(1), add(1, twice=True)]
    assert live == ["a base x Agent", "a base y Agent", 12, 26]
    assert json.loads(recording.calls[0][0]) == ["run", {"x": "x"}]
    replay(recording)
    assert [bound("x"), agent.run("y"), add(1), add(1, twice=True)] == live
    assert len(ran) == 4
    undo()
    assert agent.run("z") == "a base z Agent" and add(1) == 14


def test_taping_twice_is_taping_once_and_the_last_undo_counts(recording):
    before = plain.__code__
    first, second = tape_functions({"get": plain}), tape_functions({"get": plain})
    plain("Oslo")
    assert len(recording.calls) == 1
    first(), first()
    plain("Rome")
    assert len(recording.calls) == 2
    second()
    assert plain.__code__ is before


def test_code_that_somebody_else_put_in_meanwhile_is_left_alone(recording):
    def mine(x):
        return x

    undo = tape_functions({"mine": mine})
    other = (lambda x: x * 2).__code__
    mine.__code__ = other
    undo()
    assert mine.__code__ is other


def test_a_function_that_was_reloaded_is_taped_anew_and_keeps_the_new_code(recording):
    def mine(x):
        return x

    def edited(x):
        ran.append(x)
        return x * 2

    first = tape_functions({"mine": mine})
    assert first.current_functions == [mine]
    code = mine.__code__ = edited.__code__
    mine.__dict__ = edited.__dict__  # as %autoreload does: the two share it
    assert first.current_functions == []
    second, third = tape_functions({"mine": mine}), tape_functions({"mine": edited})
    live = [mine(1), edited(2)]
    replay(recording)
    assert [mine(1), edited(2)] == live == [2, 4] and ran == [1, 2]
    third(), second(), first()
    assert mine.__code__ is edited.__code__ is code and vars(mine) == {}


def test_a_recursive_function_records_its_inner_calls_below_the_outer(recording):
    undo = tape_functions({"countdown": countdown})
    assert countdown(2) == [2, 1, 0]
    assert recording.parents == ["", "call-1", "call-2"]
    replay(recording)
    assert countdown(2) == [2, 1, 0] and len(ran) == 3
    undo()


def countdown(n):
    ran.append(n)
    return [n, *(countdown(n - 1) if n else [])]


def test_what_cannot_be_taped_is_left_as_it_is_and_said():
    undo = tape_functions({"len": len, "weather": weather})
    assert set(undo.skipped) == {"len"}  # weather is taped: by its decorator
    assert "no Python code" in undo.skipped["len"]


def test_taped_functions_are_forgotten_with_the_function():
    def make():
        def again(n):
            return n and again(n - 1)

        return again

    function = make()
    tape_functions({"again": function})
    assert function(3) == 0
    gone = weakref.ref(function)
    del function
    gc.collect()
    assert gone() is None


def test_threads_may_tape_call_and_undo_at_once(recording):
    before = plain.__code__

    def work(i):
        undo = tape_functions({"get": plain})
        result = plain(f"city {i}")
        undo()
        return result[0]

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert list(pool.map(work, range(100))) == [f"city {i}" for i in range(100)]
    assert plain.__code__ is before and len(recording.calls) == 100


# --------------------------------------------------- with real tool objects


def test_an_anthropic_tool_is_taped_behind_its_object(recording):
    from anthropic import beta_async_tool, beta_tool

    @beta_tool
    def get_time(zone: str, short: bool = False) -> str:
        """The time.

        Args:
            zone: where
        """
        ran.append(zone)
        return f"noon in {zone}"

    @beta_async_tool
    async def get_date(zone: str) -> str:
        """The date."""
        ran.append(zone)
        return f"today in {zone}"

    names = {"get_time", "get_date"}
    found = find_functions(names, {"runner_tools": [get_time, get_date]})
    assert set(found) == names
    undo = tape_functions(found)
    live = [get_time.call({"zone": "UTC"}), asyncio.run(get_date.call({"zone": "UTC"}))]
    assert json.loads(recording.calls[0][0]) == ["get_time", {"zone": "UTC", "short": False}]
    replay(recording)
    assert [get_time.call({"zone": "UTC"}), asyncio.run(get_date.call({"zone": "UTC"}))] == live
    assert ran == ["UTC", "UTC"]
    undo()


def test_a_langchain_tool_is_taped_behind_its_object(recording):
    from langchain_core.tools import BaseTool, StructuredTool
    from langchain_core.tools import tool as langchain_tool

    @langchain_tool
    def multiply(a: int, b: int) -> int:
        """Multiply."""
        ran.append(a)
        return a * b

    @langchain_tool("search_web")
    async def look_up(query: str) -> str:
        """Search."""
        ran.append(query)
        return query.upper()

    def add(a: int, b: int = 2) -> int:
        """Add."""
        ran.append(a)
        return a + b

    class Shout(BaseTool):
        name: str = "shout"
        description: str = "Shout."

        def _run(self, text: str) -> str:
            ran.append(text)
            return text.upper()

    structured, shout = StructuredTool.from_function(add, name="plus"), Shout()
    namespace = {"multiply": multiply, "tools": [look_up, structured], "by_name": {"shout": shout}}
    found = find_functions(["multiply", "search_web", "plus", "shout"], namespace)
    assert {name: [f.__name__ for f in fs] for name, fs in found.items()} == {
        "multiply": ["multiply"],
        "search_web": ["look_up"],
        "plus": ["add"],
        "shout": ["_run"],
    }
    undo = tape_functions(found)

    def run():
        return [
            multiply.invoke({"a": 3, "b": 4}),
            asyncio.run(look_up.ainvoke({"query": "q"})),
            structured.invoke({"a": 1}),
            shout.invoke({"text": "hi"}),
        ]

    live = run()
    assert live == [12, "Q", 3, "HI"] and len(recording.calls) == 4
    replay(recording)
    assert run() == live and len(ran) == 4
    undo()


def test_the_decorator_goes_on_a_tool_object_as_well(recording):
    from langchain_core.tools import tool as langchain_tool

    @tool
    @langchain_tool
    def divide(a: int, b: int) -> float:
        """Divide."""
        ran.append(a)
        return a / b

    assert divide.invoke({"a": 6, "b": 4}) == 1.5
    replay(recording)
    assert divide.invoke({"a": 6, "b": 4}) == 1.5
    assert ran == [6]


def test_a_tool_that_runs_in_a_worker_thread_is_taped_there(recording):
    tape_context = contextvars.copy_context()
    results = []
    thread = threading.Thread(target=lambda: results.append(tape_context.run(weather, "Oslo")))
    thread.start(), thread.join()
    replay(recording)
    thread = threading.Thread(target=lambda: results.append(weather("Oslo")))
    thread.start(), thread.join()
    assert results[0] == results[1] and ran == ["Oslo"]


@tool
async def sleeps(seconds):
    ran.append(seconds)
    await asyncio.sleep(seconds)


@tool
def gives_a_coroutine(seconds):
    async def sleep():
        await asyncio.sleep(seconds)

    return sleep()


async def by_wait_for(function):
    try:
        await asyncio.wait_for(function(60), 0.02)
    except TimeoutError:
        return "timed out"


async def by_timeout(function):
    try:
        async with asyncio.timeout(0.02):
            await function(60)
    except TimeoutError:
        return "timed out"


async def by_cancel(function):
    task = asyncio.ensure_future(function(60))
    await asyncio.sleep(0.02)
    task.cancel()
    await asyncio.wait({task})
    return task.cancelled()


@pytest.mark.parametrize("program", [by_wait_for, by_timeout, by_cancel])
@pytest.mark.parametrize("function", [sleeps, gives_a_coroutine])
def test_a_tool_that_the_program_cancelled_waits_to_be_cancelled_again(
    recording, program, function
):
    recorded = asyncio.run(program(function))
    replay(recording)
    ran.clear()
    assert asyncio.run(program(function)) == recorded is not None
    assert ran == []


def test_a_cancellation_that_never_comes_again_ends_the_wait(recording, monkeypatch):
    asyncio.run(by_wait_for(sleeps))
    replay(recording)
    monkeypatch.setattr(replayed_response, "PATIENCE", 0.01)
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(sleeps(60))
