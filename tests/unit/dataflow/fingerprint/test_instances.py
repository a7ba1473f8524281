"""An object is what its attributes and the builtin class beneath it hold, and no code of its class is run."""

import asyncio
import datetime
import decimal
import operator
import random
import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor

import pytest
from IPython.display import HTML

from tape_jupyter.dataflow.fingerprint.fingerprint import fingerprint
from tape_jupyter.instrumentation.determinism import clock
from tape_jupyter.instrumentation.patching import is_replacement


class Loud:
    """Every hook that a curious tool could set off."""

    def __init__(self):
        self.v = 1

    def _no(self, *_a, **_k):
        raise AssertionError("the user's code was run")

    __reduce__ = __reduce_ex__ = __eq__ = __hash__ = __repr__ = __len__ = __iter__ = __bool__ = (
        __getattr__
    ) = _no
    __getstate__ = __sizeof__ = _no
    prop = property(_no)


def test_nothing_of_an_object_is_run():
    one = Loud()
    before = fingerprint(one).digest
    one.__dict__["v"] = 2
    assert fingerprint(one).digest != before
    assert not fingerprint(one).opaque


class Tag(str):
    __str__ = __eq__ = __hash__ = Loud._no


class Count(int):
    __repr__ = __eq__ = __hash__ = Loud._no


class Share(float):
    __repr__ = __eq__ = __hash__ = Loud._no


class Raw(bytes):
    __getitem__ = __eq__ = __hash__ = Loud._no


class Buffer(bytearray):
    __getitem__ = __eq__ = Loud._no


class Day(datetime.datetime):
    __reduce__ = __reduce_ex__ = __eq__ = __hash__ = Loud._no


class Price(decimal.Decimal):
    __str__ = __reduce__ = __eq__ = __hash__ = Loud._no


class Refused(Exception):
    __str__ = __reduce__ = Loud._no


@pytest.mark.parametrize(("kind", "one", "other"), [
    (Tag, ["a"], ["b"]), (Count, [1], [2]), (Share, [0.5], [0.25]), (Raw, [b"a"], [b"b"]), (Buffer, [b"a"], [b"b"]),
    (Day, [2020, 1, 1], [2021, 1, 1]), (Price, ["1.5"], ["2.5"]), (Refused, ["no"], ["never"]),
    (ValueError, ["a"], ["b"]),
])  # fmt: skip
def test_values_of_classes_made_of_builtin_ones_are_told_apart(kind, one, other):
    assert (
        fingerprint(kind(*one)).digest
        == fingerprint(kind(*one)).digest
        != fingerprint(kind(*other)).digest
    )


def test_a_file_that_is_open_is_opaque_and_a_closed_one_is_not(tmp_path):
    with (tmp_path / "a").open("w") as file:
        assert fingerprint(file).opaque
    assert not fingerprint(file).opaque


def test_a_task_is_what_became_of_it():
    async def answer(value):
        return value

    async def answered(value):
        task = asyncio.get_running_loop().create_task(answer(value))
        before = fingerprint(task).digest
        await task
        return before, fingerprint(task).digest

    waiting, one = asyncio.run(answered("one"))
    assert waiting != one
    assert asyncio.run(answered("one"))[1] == one != asyncio.run(answered("two"))[1]


def test_an_object_of_a_library_is_not_what_waits_in_its_event_loop():
    async def group():
        async with asyncio.TaskGroup() as group:
            group.create_task(asyncio.sleep(0))
        before = fingerprint(group).digest
        later = asyncio.get_running_loop().call_later(60, print)
        assert fingerprint(group).digest == before
        later.cancel()

    asyncio.run(group())


def test_which_threads_an_executor_had_and_its_number_say_nothing_of_it():
    def pool(tasks):
        with ThreadPoolExecutor(2) as made:
            [each.result() for each in [made.submit(int) for _ in range(tasks)]]
        return made

    assert fingerprint(pool(1)).digest == fingerprint(pool(5)).digest


def test_a_clock_of_ours_is_the_one_that_it_stands_for():
    before = fingerprint([time.monotonic]).digest
    undo = clock.patch()
    try:
        during = fingerprint([time.monotonic]).digest
        assert is_replacement(time.monotonic) and during == before
    finally:
        undo()


class Kept:
    """What weak proxies stand for."""


KEPT = [Kept(), Kept()]


def local(number):
    made = threading.local()
    made.number = number
    return made


def address(number):
    return pytest.importorskip("pydantic").HttpUrl(f"http://h{number}.com")


def period(number):
    return pytest.importorskip("pandas").Period(f"2020-0{number + 1}")


def client(number):
    httpx = pytest.importorskip("httpx")
    return httpx.Client(transport=httpx.MockTransport(lambda _request, number=number: number))


class Dice(random.Random):
    """What C keeps is not among its attributes."""


@pytest.mark.parametrize(
    "make",
    [
        local,
        address,
        period,
        client,
        Dice,
        lambda n: HTML(str(n)),
        lambda n: weakref.proxy(KEPT[n]),
    ],
)
def test_what_differs_in_a_way_that_no_attribute_shows_is_never_known_to_be_equal(make):
    one, other = fingerprint(make(0)), fingerprint(make(1))
    assert one.digest != other.digest or not (one.is_whole or other.is_whole)


@pytest.mark.parametrize("take", [operator.itemgetter, operator.attrgetter, operator.methodcaller])
def test_what_a_getter_takes_is_told_also_within_an_object_of_a_library(take):
    lambdas = pytest.importorskip("langchain_core.runnables").RunnableLambda
    one, same, other = (fingerprint(lambdas(take(name))) for name in ("a", "a", "b"))
    assert one.digest == same.digest != other.digest and one.is_whole
    assert fingerprint(take("a")).digest != fingerprint(take("b")).digest


def test_figures_that_look_the_same_are_the_same():
    plt = pytest.importorskip("matplotlib.pyplot")
    drawn = []
    for title in ("one", "one", "two"):
        figure, axes = plt.subplots()
        axes.set_title(title)
        plt.close(figure)
        drawn.append(fingerprint(axes, seconds=9).digest)
    assert drawn[0] == drawn[1] != drawn[2]


def test_tables_of_sqlalchemy_are_the_same_however_many_were_made_before():
    sql = pytest.importorskip("sqlalchemy")
    one, other = (
        fingerprint(sql.Table("t", sql.MetaData(), sql.Column("id", sql.Integer)), seconds=9).digest
        for _ in range(2)
    )
    assert one == other
