"""Speed as a ratio: one thing against another, measured in turns in the same run, so that a slow or loaded machine
slows both. No test of ours asserts a number of seconds, but to stop a hang.

ratio(work, floor)            how many times the floor the work costs
growth(made, 1000, 8000)      how much more of each the larger costs: 1 in proportion, 8 in proportion to the square
passes(work, text)            how many times the text could have been walked through meanwhile
at_once(work, units=10)       what the work gives, which costs less than ten of a fixed piece of work
Expires(limit)                an event that lets an asyncio.timeout run out, in place of seconds in which to come there
"""

import asyncio
import gc
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from json import dumps, loads
from time import process_time
from typing import Any, TypeVar

T = TypeVar("T")
Work = Callable[[], Any]


@contextmanager
def nothing_collected() -> Iterator[None]:
    """The collector walks what all tests before left: its turn would be charged to whoever allocates next."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def seconds(work: Work) -> float:
    """Of this process's processors: what other programs do meanwhile is not counted, nor is waiting."""
    began = process_time()
    work()
    return process_time() - began


def least(*works: Work, rounds: int = 5) -> list[float]:
    """What each costs when nothing disturbs it: the least of rounds in which all take their turn."""
    with nothing_collected():
        taken = [[seconds(work) for work in works] for _ in range(rounds)]
    return [max(min(column), 1e-9) for column in zip(*taken, strict=True)]


def ratio(work: Work, floor: Work, rounds: int = 5) -> float:
    ours, theirs = least(work, floor, rounds=rounds)
    return ours / theirs


def growth(made: Callable[[int], Work], small: int, large: int, rounds: int = 3) -> float:
    """`made(size)` is work of that size, ready to begin."""
    return ratio(made(large), made(small), rounds) * small / large


def walk(text: Iterable[Any]) -> None:
    deque((character for character in text), maxlen=0)


def passes(work: Work, text: Iterable[Any], rounds: int = 3) -> float:
    return ratio(work, lambda: walk(text), rounds)


@cache
def unit() -> float:
    """A thousand short lists written as JSON and read again, ten times over: 10 ms on a server of 2022."""
    lists = [[f"word {n}", n, n / 7, None] for n in range(1000)]
    return least(lambda: [loads(dumps(lists)) for _ in range(10)])[0]


def at_once(work: Callable[[], T], units: float = 10) -> T:
    """Where the first time is over the limit, as when memory is collected meanwhile, the least of five counts."""
    most = units * unit()
    began = process_time()
    given = work()
    if process_time() - began > most:
        cost = least(work)[0]
        assert cost < most, f"{cost / unit():.1f} units of work, {units} at most"
    return given


class Expires(asyncio.Event):
    """Lets the time run out once it is set, however long the machine took to come there."""

    def __init__(self, limit: asyncio.Timeout) -> None:
        super().__init__()
        self.limit = limit

    def set(self) -> None:
        super().set()
        self.limit.reschedule(asyncio.get_running_loop().time() + 0.05)
