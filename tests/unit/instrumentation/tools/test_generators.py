"""Generators as tools: recorded as they yield, replayed as they are asked, to the same item, value and error."""

import asyncio
import contextlib
import gc
import inspect
import types

import pytest

import tape_jupyter as tape
from tape_jupyter.errors import UnmatchedCall
from tape_jupyter.core.context import PARENT
from tests.harness.taped_cells import on_tape
from tests.harness.tool_runs import nothing_ran_yet, path, ran


@tape.tool
def counted(stop, *, step=1):
    """Counts."""
    ran.append("begin")
    for number in range(0, stop, step):
        ran.append(number)
        yield {"number": number}
    return f"after {stop}"


@tape.tool
async def searched(query, pages=3):
    ran.append("begin")
    for page in range(pages):
        await asyncio.sleep(0)
        ran.append(page)
        yield (query, page)


async def listed(items):
    return [item async for item in items]


# ---------------------------------------------------------------- as they yield


def test_a_taped_generator_function_is_one_with_its_own_signature(path):
    assert inspect.isgeneratorfunction(counted) and inspect.isasyncgenfunction(searched)
    assert str(inspect.signature(counted)) == "(stop, *, step=1)" and counted.__doc__ == "Counts."
    assert isinstance(counted(1), types.GeneratorType) and list(counted(2)) == [
        {"number": 0},
        {"number": 1},
    ]
    with pytest.raises(TypeError, match="stop"):
        counted()
    with tape.recording(path) as block:
        counted(3)  # never asked for an item: its body never began
    assert len(block.report.calls) == 0


def test_items_are_handed_on_as_they_come_and_nothing_is_drained(path):
    with tape.recording(path):
        numbers = counted(100)
        assert next(numbers) == {"number": 0} and ran == ["begin", 0]
        assert next(numbers) == {"number": 1} and ran == ["begin", 0, 1]
        numbers.close()
    assert ran == ["begin", 0, 1]
    (call,) = on_tape(path).calls
    assert (
        call.reply().value["items"] == [{"number": 0}, {"number": 1}]
        and call.reply().value["end"] == "closed"
    )


def test_a_recorded_generator_replays_lazily_and_returns_what_it_returned(path):
    def program():
        given = yield from counted(4, step=2)
        return given

    with tape.recording(path):
        live = list(program()), list(counted(1))
        generator = program()
        next(generator), next(generator)
        with pytest.raises(StopIteration) as end:
            next(generator)
    ran.clear()
    with tape.replaying(path):
        assert (list(program()), list(counted(1))) == live
        generator = program()
        next(generator), next(generator)
        with pytest.raises(StopIteration) as again:
            next(generator)
    assert again.value.value == end.value.value == "after 4" and ran == []


def test_an_async_generator_replays(path):
    async def program():
        async for first in searched("x"):
            break
        return (
            first,
            await listed(searched("q")),
            await asyncio.gather(*(listed(searched(q, 2)) for q in "abc")),
        )

    with tape.recording(path):
        live = asyncio.run(program())
    ran.clear()
    with tape.replaying(path):
        assert asyncio.run(program()) == live
    assert ran == []


def test_an_item_is_kept_as_it_was_when_it_was_yielded(path):
    @tape.tool
    def growing():
        rows = []
        for number in range(3):
            rows.append(number)
            yield rows

    with tape.recording(path):
        assert [len(rows) for rows in growing()] == [1, 2, 3]
    with tape.replaying(path):
        assert list(growing()) == [[0], [0, 1], [0, 1, 2]]


def test_reading_past_an_early_close_is_refused(path):
    with tape.recording(path):
        for row in counted(9):
            if row["number"] == 2:
                break
    with tape.replaying(path) as block:
        numbers = counted(9)
        assert [next(numbers)["number"] for _ in range(3)] == [0, 1, 2]
        with pytest.raises(UnmatchedCall, match="counted: the recording ends here.* after 3 items"):
            next(numbers)
    with tape.replaying(path) as block:
        assert next(counted(9)) == {"number": 0}  # and reading less is fine
    assert block.report.misses == []


def test_the_same_holds_for_an_async_generator(path):
    async def program(count):
        numbers = searched("q", pages=9)
        try:
            return [await anext(numbers) for _ in range(count)]
        finally:
            await numbers.aclose()

    with tape.recording(path):
        live = asyncio.run(program(2))
    for count in (2, 1):
        with tape.replaying(path):
            assert asyncio.run(program(count)) == live[:count]
    with tape.replaying(path), pytest.raises(UnmatchedCall, match="after 2 items"):
        asyncio.run(program(3))


class QuotaError(Exception):
    def __init__(self, left):
        super().__init__(f"{left} left")
        self.left = left


def test_an_error_midway_comes_back_as_its_own_class_after_the_same_items(path):
    @tape.tool
    def fails():
        yield 1
        yield 2
        raise QuotaError(3)

    def program():
        got = []
        with pytest.raises(QuotaError) as error:
            got.extend(fails())
        return got, type(error.value), error.value.left

    with tape.recording(path):
        live = program()
    with tape.replaying(path):
        assert program() == live == ([1, 2], QuotaError, 3)


def test_a_plain_function_that_gives_a_generator_gives_one_in_replay(path):
    @tape.tool
    def pages(count):
        ran.append("called")
        return (number for number in range(count))

    @tape.tool
    def shouted(words):
        return map(str.upper, words)

    @tape.tool
    def streamed(query):
        return searched.__wrapped__(query, 2)

    with tape.recording(path):
        live = [list(pages(3)), list(shouted(["a", "b"])), asyncio.run(listed(streamed("x")))]
    ran.clear()
    with tape.replaying(path):
        assert [
            list(pages(3)),
            list(shouted(["a", "b"])),
            asyncio.run(listed(streamed("x"))),
        ] == live
    assert ran == []


def test_a_generator_that_a_cell_leaves_open_is_kept_and_what_it_does_later_is_added(path):
    with tape.recording(path):
        numbers = counted(4)
        next(numbers), next(numbers)
    assert on_tape(path).calls[0].reply().value["items"] == [{"number": 0}, {"number": 1}]
    assert list(numbers) == [{"number": 2}, {"number": 3}]
    assert path.read_text().count("\nmore: ") == 1
    ran.clear()
    with tape.replaying(path):
        numbers = counted(4)
        next(numbers)
    assert list(numbers) == [{"number": 1}, {"number": 2}, {"number": 3}] and ran == []


def test_a_generator_that_is_dropped_after_its_cell_adds_nothing(path):
    with tape.recording(path):
        numbers = counted(4)
        next(numbers)
    size = path.stat().st_size
    del numbers
    gc.collect()
    assert path.stat().st_size == size


def test_an_item_that_cannot_be_written_is_named_and_its_stand_in_refuses(path):
    @tape.tool
    def handles():
        yield open(__file__)  # noqa: SIM115  # closed below
        yield 2

    def program(use):
        first, second = handles()
        use(first)
        return second

    with tape.recording(path) as block:
        assert program(lambda handle: handle.close()) == 2
    (warning,) = [text for text in block.report.warnings if "handles" in text]
    assert "_io.TextIOWrapper" in warning
    with tape.replaying(path):
        assert program(lambda handle: None) == 2
    with (
        tape.replaying(path),
        pytest.raises(UnmatchedCall, match=r"_io.TextIOWrapper .* uses it.close"),
    ):
        program(lambda handle: handle.close())


def test_calls_that_a_generator_makes_are_its_children_whoever_pulls_it(path):
    @tape.tool
    def inner(number):
        return number

    @tape.tool
    def outer(count):
        for number in range(count):
            yield inner(number)

    with tape.recording(path):
        assert list(zip(outer(2), outer(2), strict=True)) == [(0, 0), (1, 1)]
        assert PARENT.get() == ""
        inner(9)
    heads = [call.head() for call in on_tape(path).calls]
    named = {head["call"]: head["name"] for head in heads}
    parents = [(head["name"], named.get(head.get("parent"))) for head in heads]
    assert sorted(map(str, parents)) == sorted(
        map(str, [("outer", None)] * 2 + [("inner", "outer")] * 4 + [("inner", None)])
    )
    with tape.replaying(path):
        assert list(zip(outer(2), outer(2), strict=True)) == [(0, 0), (1, 1)]


def test_an_event_loop_that_closes_open_generators_finds_nothing_to_complain_of(path):
    complaints = []

    async def program():
        asyncio.get_running_loop().set_exception_handler(
            lambda _loop, context: complaints.append(context)
        )
        numbers = searched("q", 9)
        await anext(numbers)
        return numbers

    with tape.recording(path):
        kept = asyncio.run(program())
    assert complaints == [] and kept is not None


def test_a_program_that_cancels_an_async_generator_does_so_again(path):
    @tape.tool
    async def slow():
        yield 1
        await asyncio.sleep(60)
        yield 2

    async def program():
        got = []
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(0.05):
                async for item in slow():
                    got.append(item)
        return got

    with tape.recording(path):
        assert asyncio.run(program()) == [1]
    with tape.replaying(path):
        assert asyncio.run(program()) == [1]
