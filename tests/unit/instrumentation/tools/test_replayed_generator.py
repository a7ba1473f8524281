"""A recorded generator does what it did, whatever it is sent, thrown or closed with; another conversation is refused."""

import asyncio
import contextlib
import functools
import os
import random

import pytest

import tape_jupyter as tape
from tape_jupyter.core.call import Play, Tape, Value
from tape_jupyter.errors import UnmatchedCall
from tape_jupyter.instrumentation import install, remove_tape
from tests.harness.tool_runs import nothing_ran_yet, path, ran


@tape.tool
def counted(stop):
    ran.append(stop)
    yield from range(stop)


@tape.tool
async def searched(query):
    ran.append(query)
    yield query


async def listed(items):
    return [item async for item in items]


def test_a_played_generator_passes_its_gate_before_each_item_and_says_what_is_last():
    passed = []

    class Gate:
        each = ends = False

        def wait(self, seconds, *, last=False):
            passed.append((seconds, last))

        async def wait_async(self, seconds, *, last=False):
            passed.append((seconds, last))

    class PlayingTape(Tape):
        def __init__(self, value):
            self.value = value

        def begin(self, call):
            return Play(Value(self.value), Gate())

    steps = {"<type>": "generator", "items": [1, 2], "end": "complete", "waits": [0.5, 1.5, 2]}
    try:
        install(PlayingTape(steps))
        assert list(counted(2)) == [1, 2] and passed == [(0.5, False), (1.5, False), (2.0, True)]
        passed.clear()
        install(PlayingTape({**steps, "async": True, "end": "closed"}))
        numbers = searched("q")
        assert asyncio.run(anext(numbers)) == 1
        assert asyncio.run(anext(numbers)) == 2 and passed == [(0.5, False), (1.5, True)]
    finally:
        remove_tape()


# ---------------------------------------------------------------- send, throw, close


def machine_body(seed):
    """What a body may do with what it is sent and thrown: use it, swallow it, turn it into another, end."""
    ran.append(seed)
    chance, kept = random.Random(seed), 0
    for turn in range(chance.randrange(1, 7)):
        try:
            got = yield (turn, kept)
            kept += got or 1
        except (ValueError, GeneratorExit) as error:
            fate = chance.randrange(5)
            if fate == 0:
                raise
            if fate == 1:
                raise KeyError(seed, type(error).__name__) from error
            if fate == 2:
                return "swallowed"
            if isinstance(error, ValueError):
                yield "went on"
    if chance.random() < 0.3:
        raise LookupError(seed)
    return kept


machine = tape.tool(name="machine")(machine_body)


@tape.tool
async def async_machine(seed):
    body = machine_body(seed)
    step = body.__next__
    while True:
        await asyncio.sleep(0)
        try:
            found = step()
        except StopIteration:
            return
        try:
            sent = yield found
        except GeneratorExit:
            while body.gi_frame is not None:
                with contextlib.suppress(BaseException):
                    body.throw(GeneratorExit())
            raise
        except Exception as error:
            step = functools.partial(body.throw, error)
        else:
            step = functools.partial(body.send, sent)


def orders(seed):
    chance = random.Random(f"orders {seed}")
    kinds = chance.choices(
        ["next", "send", "throw", "close"], [6, 3, 2, 1], k=chance.randrange(1, 9)
    )
    return ["next", *kinds]


def drive(generator, order, number):
    if order == "close":
        return generator.close()
    if order == "throw":
        return generator.throw(ValueError(number))
    return generator.send(number) if order == "send" else next(generator)


def outcomes(function, seed, orders):
    generator, told = function(seed), []
    for number, order in enumerate(orders):
        try:
            told.append(drive(generator, order, number))
        except UnmatchedCall:
            raise
        except BaseException as error:
            told.append((type(error), error.args, type(error.__cause__)))
    while generator.gi_frame is not None:  # a body may well ignore that it is closed, for a while
        with contextlib.suppress(Exception):
            generator.close()
    return told


async def async_outcomes(function, seed, orders):
    generator, told = function(seed), []
    drives = {
        "close": lambda _: generator.aclose(),
        "throw": lambda n: generator.athrow(ValueError(n)),
    }
    drives |= {"send": generator.asend, "next": lambda _: anext(generator)}
    for number, order in enumerate(orders):
        try:
            told.append(await drives[order](number))
        except UnmatchedCall:
            raise
        except BaseException as error:
            told.append((type(error), error.args, type(error.__cause__)))
    while generator.ag_frame is not None:
        with contextlib.suppress(Exception):
            await generator.aclose()
    return told


SEEDS = range(250 if os.environ.get("TAPE_NIGHTLY") else 120)


def test_whatever_is_sent_thrown_or_closed_a_generator_does_in_replay_as_it_did(path):
    plain = [outcomes(machine.__wrapped__, seed, orders(seed)) for seed in SEEDS]
    ran.clear()
    with tape.recording(path):
        assert [outcomes(machine, seed, orders(seed)) for seed in SEEDS] == plain
    ran.clear()
    with tape.replaying(path) as block:
        assert [outcomes(machine, seed, orders(seed)) for seed in SEEDS] == plain
    assert ran == [] and block.report.misses == []


def test_whatever_is_sent_thrown_or_closed_an_async_generator_does_in_replay_as_it_did(path):
    async def all_of(function):
        return [await async_outcomes(function, seed, orders(seed)) for seed in SEEDS]

    plain = asyncio.run(all_of(async_machine.__wrapped__))
    with tape.recording(path):
        assert asyncio.run(all_of(async_machine)) == plain
    ran.clear()
    with tape.replaying(path) as block:
        assert asyncio.run(all_of(async_machine)) == plain
    assert ran == [] and block.report.misses == []


@pytest.mark.parametrize("seed", range(0, 60, 3))
def test_asking_in_another_way_is_refused_and_asking_less_is_not(path, seed):
    recorded = ["next", "send"]
    if any(isinstance(told[0], type) for told in outcomes(machine_body, seed, recorded)):
        return  # it ended before
    with tape.recording(path):
        outcomes(machine, seed, recorded)
    for other in (["next", "next"], ["next", "throw"], [*recorded, "next"]):
        with tape.replaying(path), pytest.raises(UnmatchedCall, match="machine: "):
            outcomes(machine, seed, other)
    with tape.replaying(path) as block:
        outcomes(machine, seed, ["next"])
    assert block.report.misses == []


# ---------------------------------------------------------------- another sort of function than was recorded


def test_a_recorded_list_is_yielded_where_the_function_is_a_generator_now(path):
    def sort(function):
        return tape.tool(name="rows")(function)

    def generates(n):
        yield ran.append(n)

    async def generates_async(n):
        yield ran.append(n)

    async def waits(n):
        ran.append(n)

    with tape.recording(path):
        (
            sort(lambda n: list(range(n)))(3),
            sort(lambda n: {"n": n})(4),
            list(sort(lambda n: (yield n))(5)),
        )
    ran.clear()
    with tape.replaying(path):
        assert list(sort(generates)(3)) == [0, 1, 2]
        with pytest.raises(UnmatchedCall, match="rows is a generator now"):
            next(sort(generates)(4))
    with tape.replaying(path):
        assert asyncio.run(listed(sort(generates_async)(3))) == [0, 1, 2]
        with pytest.raises(UnmatchedCall, match="rows is awaited now"):
            asyncio.run(sort(waits)(5))
    assert ran == []


def test_a_stub_of_a_generator_is_the_list_of_its_items(path):
    with tape.recording(path, stub={"tool:counted": [1, 2]}):
        assert list(counted(5)) == [1, 2]
    assert ran == []
