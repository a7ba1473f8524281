"""One call of a tool: what it was given, what it changed, whose child it is, and what a live body may ask of the tape."""

import asyncio
import collections
import concurrent.futures
import threading

import pytest

import tape_jupyter as tape
from tape_jupyter.errors import UnmatchedCall
from tests.harness.provider import Provider
from tests.harness.taped_cells import ask, on_tape
from tests.harness.tool_runs import both, nothing_ran_yet, path, ran


@pytest.fixture
def provider():
    with Provider(vary=True) as provider:
        yield provider


# ---------------------------------------------------------------- what a body changes in place


@tape.tool
def fill(rows, state=None, *more):
    ran.append("fill")
    rows.append({"n": len(rows)})
    if state is not None:
        state["seen"] = True
        state.setdefault("messages", []).append("hello")
    for each in more:
        each.clear()
    return len(rows)


def test_what_a_tool_does_to_the_lists_and_dicts_it_is_given_is_done_in_replay(path):
    def program():
        messages = ["old"]
        rows, state, spare = [1], {"messages": messages, "drop": 1}, [3]
        counts = [fill(rows), fill(rows, state, spare)]
        return counts, rows, state, messages, state["messages"] is messages, spare

    live, report = both(path, program)
    assert live == (
        [2, 3], [1, {"n": 1}, {"n": 2}], {"messages": ["old", "hello"], "drop": 1, "seen": True}, ["old", "hello"],
        True, [],
    )  # fmt: skip
    assert not [text for text in report.warnings if "fill" in text]


def test_the_recorded_arguments_are_those_it_was_called_with(path):
    rows = [1]
    with tape.recording(path):
        fill(rows)
    (call,) = on_tape(path).calls
    assert call.request().arguments == {"rows": [1], "state": None, "more": []}
    (change,) = [each for each in call.reply().did["memory"] if each["at"] == 'argument["rows"]']
    assert change == {"at": 'argument["rows"]', "splice": [1, 0], "of": 1, "put": [{"n": 1}]}
    with tape.replaying(path) as block:
        fill([1])
    assert block.report.misses == []


@pytest.mark.parametrize(
    "make",
    [
        dict,
        collections.OrderedDict,
        lambda: collections.defaultdict(list),
        set,
        bytearray,
        collections.deque,
    ],
)
def test_every_plain_container_is_changed_in_replay_as_it_was(path, make):
    @tape.tool
    def change(box):
        ran.append("change")
        getattr(
            box,
            {"set": "add", "bytearray": "extend", "deque": "append"}.get(
                type(box).__name__, "update"
            ),
        )({"set": 3, "bytearray": b"x", "deque": 3}.get(type(box).__name__, {"a": 1}))

    def program():
        box = make()
        change(box)
        return box, type(box)

    assert both(path, program)[0][0]


def test_a_tool_that_fails_leaves_its_arguments_as_it_left_them(path):
    @tape.tool
    def half(rows):
        ran.append("half")
        rows.append(1)
        raise ValueError("half done")

    def program():
        rows = []
        with pytest.raises(ValueError, match="half done"):
            half(rows)
        return rows

    assert both(path, program)[0] == [1]


def test_a_generator_changes_its_arguments_when_it_has_ended(path):
    @tape.tool
    def collect(into, count):
        for number in range(count):
            ran.append(number)
            into.append(number)
            yield number

    def program():
        into = []
        return list(collect(into, 3)), into

    assert both(path, program)[0] == ([0, 1, 2], [0, 1, 2])


def test_an_argument_that_comes_back_is_the_same_object_in_replay(path):
    @tape.tool
    def node(state):
        ran.append("node")
        state["steps"] = state.get("steps", 0) + 1
        return state

    @tape.tool
    async def configured(client):
        ran.append("configured")
        return client

    def program():
        state, client = {}, threading.Lock()
        assert node(state) is state and node(state) is state
        assert asyncio.run(configured(client)) is client
        return state

    live, report = both(path, program)
    assert live == {"steps": 2} and not [
        text for text in report.warnings if "node" in text or "configured" in text
    ]


def test_an_argument_that_is_no_more_cannot_come_back(path):
    with tape.recording(path):
        tape.tool(name="echo")(lambda rows: rows)([1])
    path.write_text(path.read_text().replace("name: rows", "name: lines"))
    with tape.replaying(path), pytest.raises(UnmatchedCall, match="gave back its argument lines"):
        tape.tool(name="echo")(lambda rows: rows)([1])


def test_a_table_that_is_changed_in_place_is_changed_in_replay(path):
    pandas = pytest.importorskip("pandas")

    @tape.tool
    def enrich(table):
        table["total"] = 3
        return len(table)

    def program():
        table = pandas.DataFrame({"a": [1, 2]})
        alias = table
        return enrich(table), alias.to_dict()

    with tape.recording(path) as block:
        live = program()
    assert not block.report.warnings and live == (2, {"a": {0: 1, 1: 2}, "total": {0: 3, 1: 3}})
    with tape.replaying(path):
        assert program() == live


def test_a_change_that_replay_cannot_make_is_named_when_it_is_recorded_and_when_it_is_replayed(
    path,
):
    import threading

    @tape.tool
    def lock(box):
        box["lock"] = threading.Lock()
        return "ok"

    with tape.recording(path) as block:
        lock({})
    (warning,) = [text for text in block.report.warnings if "lock" in text]
    assert "tool lock: box['lock']" in warning and "cannot freeze" in warning
    with tape.replaying(path) as block:
        lock({})
    (warning,) = [text for text in block.report.warnings if "lock" in text]
    assert "box['lock']" in warning and "did not happen in this replay" in warning


def test_a_client_among_the_arguments_is_no_matter(path):
    @tape.tool
    def query(client, text):
        ran.append(text)
        return text.upper()

    with tape.recording(path) as block:
        query(threading.Lock(), "q")
    with tape.replaying(path):
        assert query(threading.Lock(), "q") == "Q"
    assert not [text for text in block.report.warnings if "query" in text]


# ---------------------------------------------------------------- calls inside of calls


@tape.tool
def leaf(name):
    ran.append(name)
    return name


@tape.tool
def in_threads(names):
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        pooled = list(pool.map(leaf, names))
    thread = threading.Thread(target=leaf, args=("thread",))
    thread.start()
    thread.join()
    return pooled


@tape.tool
async def in_tasks(names):
    async def task(name):
        await asyncio.sleep(0)
        return leaf(name)

    return [await asyncio.gather(*map(task, names)), await asyncio.to_thread(leaf, "to thread")]


@tape.tool
def outermost():
    return [in_threads(["a", "b"]), asyncio.run(in_tasks(["c", "d"]))]


def test_calls_in_threads_and_tasks_of_a_tool_are_its_children(path):
    live, _ = both(path, lambda: [outermost(), leaf("alone")])
    assert live == [[["a", "b"], [["c", "d"], "to thread"]], "alone"]
    heads = {head["call"]: head for head in (call.head() for call in on_tape(path).calls)}
    parent = {
        (head["name"], str(heads.get(head.get("parent"), {}).get("name"))) for head in heads.values()
    }  # fmt: skip
    assert parent == {
        ("outermost", "None"), ("in_threads", "outermost"), ("in_tasks", "outermost"), ("leaf", "in_threads"),
        ("leaf", "in_tasks"), ("leaf", "None"),
    }  # fmt: skip


def test_a_live_tool_may_ask_what_is_frozen(path, provider):
    @tape.tool
    def look_up(order):
        ran.append(order)
        return f"{order}: {ask(provider, 'inside')}"

    @tape.tool
    def listed(count):
        for number in range(count):
            ran.append(number)
            yield f"{number}: {ask(provider, 'listed')}"

    def program():
        return [ask(provider, "before"), look_up("7"), *listed(2), ask(provider, "after")]

    with tape.recording(path):
        recorded = program()
    sent = len(provider.requests)
    ran.clear()
    with tape.replaying(path, live="tools") as block:
        assert program() == recorded
    assert ran == ["7", 0, 1] and len(provider.requests) == sent
    assert block.report.misses == []


def test_a_connection_inside_of_a_taped_tool_is_on_the_tape_as_its_result(path, provider):
    import socket

    def knock():
        with socket.create_connection(("127.0.0.1", provider.port)):
            return "open"

    ask_port = tape.tool(name="knock")(knock)
    with tape.recording(path) as block:
        ask_port()
    assert not [text for text in block.report.warnings if "connection" in text]
    with tape.replaying(path):
        assert ask_port() == "open"
    with tape.recording(path) as block:
        knock()
    assert [text for text in block.report.warnings if "connection" in text]
