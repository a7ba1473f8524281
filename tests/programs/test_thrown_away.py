"""What a program throws away is gone at once, as without a tape: weak references, `__del__` and the like
see no difference.
"""

from __future__ import annotations

import asyncio
import gc
import weakref
from concurrent.futures import ThreadPoolExecutor

import pytest

import tape_jupyter as tape
from tests.harness.tool_runs import both, path, ran  # noqa: F401


class Bid:
    def __init__(self, who):
        self.who = who
        alive[who] = self
        kept.append(self)

    @tape.tool
    def raise_by(self, amount):
        ran.append(amount)
        return amount


alive: weakref.WeakValueDictionary = weakref.WeakValueDictionary()
kept: list = []


@tape.tool
def bid(who):
    ran.append(who)
    Bid(who)
    return who


@tape.tool
def give(who):
    ran.append(who)
    return Bid(who)


@tape.tool
def outer(who):
    return bid(who)


@tape.tool
def refuse(one, who):
    ran.append(who)
    Bid(who)
    raise ValueError(who)


@tape.tool
async def bid_later(who):
    await asyncio.sleep(0)
    return Bid(who).who


@tape.tool
def bid_twice(who):
    yield Bid(who).who
    yield Bid(f"{who} again").who


@tape.tool
async def bid_twice_later(who):
    yield Bid(who).who
    yield Bid(f"{who} again").who


@tape.tool
def close():
    ran.append("close")
    kept.clear()


def give_and_hand_in():
    give("a").raise_by(3)


def be_refused():
    try:
        refuse(Bid("a"), "b")
    except ValueError as error:
        return str(error)


async def bid_beside():
    await asyncio.gather(bid_later("a"), bid_later("b"))
    return [each async for each in bid_twice_later("c")]


def bid_in_threads():
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(bid, "ab"))


BIDS = {
    "plain": lambda: bid("a"),
    "given": give_and_hand_in,
    "inside": lambda: outer("a"),
    "raised": be_refused,
    "tasks": lambda: asyncio.run(bid_beside()),
    "generator": lambda: list(bid_twice("a")),
    "generator read in part": lambda: next(bid_twice("a")),
    "threads": bid_in_threads,
}


@pytest.mark.parametrize("name", BIDS)
def test_what_a_tool_made_and_nobody_keeps_is_gone_at_once(name, path):  # noqa: F811
    def program():
        gc.collect()
        gc.disable()
        kept.clear()
        try:
            BIDS[name]()
            before = sorted(alive)
            close()
            return before, sorted(alive)
        finally:
            gc.enable()

    before, after = both(path, program)[0]
    assert before
    assert not after
