"""multiprocessing's ThreadPool: each item knows who handed it over, and a refusal reaches who waits."""

from __future__ import annotations

import contextvars
import multiprocessing.pool
import random
import threading
from collections.abc import Callable, Iterator
from multiprocessing.pool import ThreadPool
from typing import Any

import pytest

from tape_jupyter.errors import RefusedInPool, UnmatchedCall
from tape_jupyter.core.context import ORIGIN, SPAN, Origin
from tape_jupyter.instrumentation.concurrency import threads, thread_pools


@pytest.fixture(autouse=True)
def patched() -> Iterator[None]:
    undone = threads.patch(), thread_pools.patch(multiprocessing.pool)
    yield
    for undo in undone:
        undo()


@pytest.fixture
def pool() -> Iterator[ThreadPool]:
    """Made before any cell."""
    pool = ThreadPool(4)
    yield pool
    pool.terminate()
    pool.join()


def in_cell(program: Callable[[], Any]) -> Any:
    def run() -> Any:
        ORIGIN.set(Origin("cell"))
        return program()

    return contextvars.copy_context().run(run)


def where(*labels: object) -> tuple[Any, ...]:
    """The labels of a call and the strand it runs in; takes a random while, so that items overtake each other."""
    threading.Event().wait(random.random() * 0.002)
    threads.settle_origin()
    origin = ORIGIN.get()
    return (*labels, origin and origin.lineage)


def numbered(count: int) -> list[tuple[int, str]]:
    """The items of one call: their strands lie below the strand of the call, the first of its cell."""
    return [(n, f"where-0.{n}") for n in range(count)]


WAYS: dict[str, tuple[Callable[[ThreadPool], Any], Any]] = {
    "map": (lambda pool: pool.map(where, range(9)), numbered(9)),
    "map of a generator": (lambda pool: pool.map(where, (n for n in range(9))), numbered(9)),
    "map in chunks": (lambda pool: pool.map(where, range(9), 4), numbered(9)),
    "map of nothing": (lambda pool: pool.map(where, []), []),
    "map_async": (lambda pool: pool.map_async(where, range(9)).get(10), numbered(9)),
    "starmap": (
        lambda pool: pool.starmap(where, [(0, "a"), (1, "b")]),
        [(0, "a", "where-0.0"), (1, "b", "where-0.1")],
    ),
    "apply": (lambda pool: pool.apply(where, (1,)), (1, "where-0")),
    "apply_async": (
        lambda pool: [
            r.get(10) for r in [pool.apply_async(func=where, args=(n,)) for n in range(9)]
        ],
        [(n, f"where-{n}") for n in range(9)],
    ),
    "imap": (lambda pool: list(pool.imap(where, iter(range(9)))), numbered(9)),
    "imap in chunks": (lambda pool: list(pool.imap(where, range(9), chunksize=4)), numbered(9)),
    "imap_unordered": (lambda pool: sorted(pool.imap_unordered(where, range(9))), numbered(9)),
    "imap of calls": (
        lambda pool: list(pool.imap(where, map(where, "ab"))),
        [(("a", "where-0"), "where-0.0"), (("b", "where-0"), "where-0.1")],
    ),
}


@pytest.mark.parametrize("way", WAYS)
def test_each_item_has_a_strand_in_the_programs_order(pool, way):
    run, expected = WAYS[way]
    for _ in range(3):
        assert in_cell(lambda: run(pool)) == expected
    assert pool.apply(where) == (None,)


def test_a_pool_made_in_a_cell_takes_no_numbers_however_many_workers_it_has():
    def program() -> Any:
        with ThreadPool(3) as pool:
            return pool.map(where, range(2)), pool.apply(where)

    assert in_cell(program) == (numbered(2), ("where-1",))


def test_open_spans_travel_with_the_items(pool):
    def program() -> Any:
        SPAN.set(("plan",))
        return pool.map(lambda _: SPAN.get(), range(2)), list(
            pool.imap(lambda _: SPAN.get(), range(2))
        )

    assert in_cell(program) == ([("plan",)] * 2, [("plan",)] * 2)
    assert pool.apply(SPAN.get) == ()


def refuse(n: int) -> int:
    if n == 1:
        raise UnmatchedCall("x is not on the tape")
    return n


REFUSED: dict[str, Callable[[ThreadPool], Any]] = {
    "map": lambda pool: pool.map_async(refuse, range(3)).get(10),
    "starmap": lambda pool: pool.starmap_async(refuse, [(1,)]).get(10),
    "apply": lambda pool: pool.apply_async(refuse, (1,)).get(10),
    "imap": lambda pool: [pool.imap(refuse, [1]).next(10)],
    "the iterable of imap": lambda pool: [pool.imap(int, map(refuse, [1])).next(10)],
}


@pytest.mark.parametrize("way", REFUSED)
def test_a_refusal_reaches_who_waits_and_the_pool_lives_on(pool, way):
    for _ in range(5):  # more than there are workers
        with pytest.raises(RefusedInPool, match="^x is not on the tape$") as caught:
            in_cell(lambda: REFUSED[way](pool))
        assert isinstance(caught.value.__cause__, UnmatchedCall)
    assert pool.map_async(abs, [-1, 2]).get(10) == [1, 2]


def test_errors_of_the_program_and_callbacks_pass(pool):
    told: list[Any] = []
    with pytest.raises(ZeroDivisionError):
        in_cell(lambda: pool.starmap(divmod, [(1, 0)]))
    with pytest.raises(TypeError, match="must be an iterable"):
        in_cell(lambda: pool.starmap(divmod, [1]))
    with pytest.raises(TypeError, match="not iterable"):
        in_cell(lambda: list(pool.imap(abs, 1)))
    in_cell(lambda: pool.apply_async(dict, ([("a", 1)],), {"b": 2}, told.append).get(10))
    assert told == [{"a": 1, "b": 2}]


def test_the_undo_is_complete():
    names = ("__init__", "apply_async", "_map_async", "imap", "imap_unordered")
    assert all(
        hasattr(vars(multiprocessing.pool.Pool)[name], "__tape_original__") for name in names
    )
    again = thread_pools.patch(multiprocessing.pool)
    again()
    assert all(
        hasattr(vars(multiprocessing.pool.Pool)[name], "__tape_original__") for name in names
    )


def test_a_process_pool_is_none_of_ours():
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert in_cell(
            lambda: (pool.map(abs, [-1]), pool.apply(abs, (-2,)), list(pool.imap(abs, [-3])))
        ) == (
            [1],
            2,
            [3],
        )
