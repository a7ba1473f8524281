"""Who is calling: the same program gives the same lineages, whatever order its threads and tasks run in."""

from __future__ import annotations

import asyncio
import contextvars
import decimal
import functools
import gc
import random
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, as_completed, wait
from typing import Any

import pytest
from tqdm import TMonitor, tqdm

from tape_jupyter.core.context import ORIGIN, PARENT, SENDING, SPAN, Origin
from tape_jupyter.instrumentation.concurrency import threads as concurrency_threads


@pytest.fixture(autouse=True)
def patched() -> Iterator[None]:
    undo = concurrency_threads.patch()
    yield
    undo()


class Cell:
    """A cell's execution: notes who calls under which label, and lets callers through in random order."""

    def __init__(self, seed: int, *, counted: bool = False) -> None:
        self.counted = counted
        self.random = random.Random(seed)
        self.seen: dict[str, str | None] = {}
        self.gates: list[threading.Event] = []

    def call(self, label: str) -> str:
        concurrency_threads.settle_origin()
        origin = ORIGIN.get()
        assert label not in self.seen
        self.seen[label] = origin and origin.lineage
        return label

    def gated(self, label: str) -> str:
        """A call that waits until `release` lets it, so that the order is the seed's."""
        gate = threading.Event()
        self.gates.append(gate)
        assert gate.wait(10)
        return self.call(label)

    def release(self, count: int) -> None:
        while len(self.gates) < count:
            threading.Event().wait(0.001)
        order, self.gates = self.gates, []
        self.random.shuffle(order)
        for gate in order:
            gate.set()

    async def soon(self) -> None:
        for _ in range(self.random.randrange(4)):
            await asyncio.sleep(0)

    def run(self, program: Callable[[Cell], Any]) -> dict[str, str | None]:
        def in_cell() -> None:
            ORIGIN.set(Origin("cell", counted=self.counted))
            program(self)

        contextvars.copy_context().run(in_cell)
        return self.seen


def threads(cell: Cell) -> None:
    started = [threading.Thread(target=cell.gated, args=(f"t{n}",)) for n in range(4)]
    for thread in started:
        thread.start()
    cell.release(4)
    for thread in started:
        thread.join()
    cell.call("end")


def a_subclass_of_thread(cell: Cell) -> None:
    class Worker(threading.Thread):
        def run(self) -> None:
            cell.call("inside")

    worker = Worker()
    worker.start()
    worker.join()


def a_timer(cell: Cell) -> None:
    timer = threading.Timer(0, cell.call, ["rung"])
    timer.start()
    timer.join()


def a_pool(cell: Cell) -> None:
    with ThreadPoolExecutor(4) as pool:
        futures = [pool.submit(cell.gated, f"p{n}") for n in range(4)]
        cell.release(4)
        wait(futures)
        pool.submit(cell.call, "reused").result()


def a_pool_map(cell: Cell) -> None:
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(cell.call, "abcdefgh")) == list("abcdefgh")


def pools_in_pools(cell: Cell) -> None:
    def outer(name: str) -> None:
        with ThreadPoolExecutor(2) as inner:
            futures = [inner.submit(cell.gated, f"{name}{n}") for n in range(2)]
            wait(futures)
        cell.call(name)

    with ThreadPoolExecutor(3) as pool:
        futures = [pool.submit(outer, name) for name in "abc"]
        cell.release(6)
        wait(futures)


def completed_in_any_order(cell: Cell) -> None:
    with ThreadPoolExecutor(4) as pool:
        futures: list[Future[str]] = [pool.submit(cell.gated, f"f{n}") for n in range(4)]
        cell.release(4)
        for future in as_completed(futures):
            future.result()


def gathered(cell: Cell) -> None:
    async def ask(label: str) -> None:
        await cell.soon()
        cell.call(label)

    async def main() -> None:
        await asyncio.gather(*(ask(f"g{n}") for n in range(6)))
        cell.call("main")

    asyncio.run(main())


def grouped(cell: Cell) -> None:
    async def ask(label: str, depth: int) -> None:
        await cell.soon()
        cell.call(label)
        async with asyncio.TaskGroup() as group:
            for n in range(2 if depth else 0):
                group.create_task(ask(f"{label}.{n}", depth - 1))

    asyncio.run(ask("root", 2))


def tasks_as_completed(cell: Cell) -> None:
    async def ask(label: str) -> None:
        await cell.soon()
        cell.call(label)

    async def main() -> None:
        for done in asyncio.as_completed([ask(f"c{n}") for n in range(5)]):
            await done
        cell.call("main")

    asyncio.run(main())


def tasks_in_threads_of_tasks(cell: Cell) -> None:
    async def ask(label: str) -> None:
        await cell.soon()
        await asyncio.to_thread(cell.call, label)
        await asyncio.get_running_loop().run_in_executor(None, cell.call, f"{label} executor")

    async def main() -> None:
        await asyncio.gather(*(ask(f"k{n}") for n in range(4)))

    asyncio.run(main())


def two_to_thread_in_one_task(cell: Cell) -> None:
    async def main() -> None:
        first, second = asyncio.to_thread(cell.call, "1"), asyncio.to_thread(cell.call, "2")
        await first
        await second

    asyncio.run(main())


def tasks_in_contexts_of_their_own(cell: Cell) -> None:
    """LangGraph makes each task in a copy of the submitter's context."""

    async def ask(label: str) -> None:
        await cell.soon()
        cell.call(label)

    async def main() -> None:
        create = asyncio.get_running_loop().create_task
        await asyncio.gather(
            *(create(ask(str(n)), context=contextvars.copy_context()) for n in range(3))
        )

    asyncio.run(main())


def copied_contexts(cell: Cell) -> None:
    """LangChain's executors run each item in a copy of the submitter's context."""
    with ThreadPoolExecutor(3) as pool:
        contexts = [contextvars.copy_context() for _ in range(3)]
        list(pool.map(lambda label: contexts.pop().run(cell.call, label), "xyz"))
        pool.submit(
            functools.partial(contextvars.copy_context().run, cell.call, "partial")
        ).result()
        pool.submit(contextvars.copy_context().run, cell.call, "direct").result()


PROGRAMS = {
    threads: {"t0": "gated-0", "t1": "gated-1", "t2": "gated-2", "t3": "gated-3", "end": ""},
    a_subclass_of_thread: {"inside": "Worker-0"},
    a_timer: {"rung": "call-0"},
    a_pool: {
        "p0": "gated-0",
        "p1": "gated-1",
        "p2": "gated-2",
        "p3": "gated-3",
        "reused": "call-0",
    },
    a_pool_map: {letter: f"call-{n}" for n, letter in enumerate("abcdefgh")},
    pools_in_pools: {
        f"{x}{n}": f"outer-{i}.gated-{n}" for i, x in enumerate("abc") for n in range(2)
    }
    | {"a": "outer-0", "b": "outer-1", "c": "outer-2"},
    completed_in_any_order: {f"f{n}": f"gated-{n}" for n in range(4)},
    gathered: {f"g{n}": f"ask-{n}" for n in range(6)} | {"main": ""},
    grouped: None,
    tasks_as_completed: {f"c{n}": f"ask-{n}" for n in range(5)} | {"main": ""},
    tasks_in_threads_of_tasks: {f"k{n}": f"ask-{n}.call-0" for n in range(4)}
    | {f"k{n} executor": f"ask-{n}.call-1" for n in range(4)},
    two_to_thread_in_one_task: {"1": "call-0", "2": "call-1"},
    copied_contexts: {
        "x": "lambda-0",
        "y": "lambda-1",
        "z": "lambda-2",
        "partial": "call-0",
        "direct": "call-1",
    },
    tasks_in_contexts_of_their_own: {"0": "ask-0", "1": "ask-1", "2": "ask-2"},
}
"""What each program's calls are told apart by."""

COUNTED = {
    a_pool: {"p0": "0", "p1": "1", "p2": "2", "p3": "3", "reused": "4"},
    pools_in_pools: {f"{x}{n}": f"{i}.{n}" for i, x in enumerate("abc") for n in range(2)}
    | {"a": "0", "b": "1", "c": "2"},
    gathered: {f"g{n}": str(n) for n in range(6)} | {"main": ""},
    tasks_in_threads_of_tasks: {f"k{n}": f"{n}.0" for n in range(4)}
    | {f"k{n} executor": f"{n}.1" for n in range(4)},
    tasks_in_contexts_of_their_own: {"0": "", "1": "", "2": ""},
}
"""The same as recordings of earlier versions have it."""


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_the_same_program_gives_the_same_lineages_in_any_order(program):
    first = Cell(0).run(program)
    if PROGRAMS[program] is not None:
        assert strand_of_run(first) == PROGRAMS[program]
    assert len(set(first.values())) == len(first)
    for seed in range(1, 20):
        assert Cell(seed).run(program) == first


@pytest.mark.parametrize("program", COUNTED, ids=lambda program: program.__name__)
def test_a_replay_of_an_earlier_versions_recording_counts_as_that_did(program):
    assert Cell(0, counted=True).run(program) == COUNTED[program]


def test_what_a_library_submits_in_between_shifts_nobody():
    """LangGraph submits the function that waits for its queue as often as the clock has it."""

    def program(cell: Cell, waits: int) -> None:
        def wait_for_queue() -> None: ...

        def node(label: str) -> None:
            cell.call(label)

        with ThreadPoolExecutor(1) as pool:
            for n in range(3):
                for _ in range(waits):
                    pool.submit(contextvars.copy_context().run, wait_for_queue).result()
                pool.submit(contextvars.copy_context().run, node, str(n)).result()

    seen = [Cell(0).run(functools.partial(program, waits=waits)) for waits in (0, 1, 5)]
    assert seen == [{"0": "node-0", "1": "node-1", "2": "node-2"}] * 3


def strand_of_run(seen: dict[str, str | None]) -> dict[str, str | None]:
    """`asyncio.run` makes one task for its main coroutine, which is the program's: its number is taken off."""
    if (
        all(value is not None and value.split(".")[0] == "main-0" for value in seen.values())
        and "main" in seen
    ):
        return {label: (value or "")[7:] for label, value in seen.items()}
    return seen


def test_a_pool_made_before_the_patch_is_covered():
    concurrency_threads.patch()
    with ThreadPoolExecutor(1) as pool:
        pool.submit(int).result()
        cell = Cell(0)
        cell.run(lambda cell: pool.submit(cell.call, "in").result())
        assert cell.seen == {"in": "call-0"}
        assert pool.submit(ORIGIN.get).result() is None


def test_a_worker_started_for_one_item_is_nobodys_afterwards():
    with ThreadPoolExecutor(1) as pool:
        Cell(0).run(lambda cell: pool.submit(cell.call, "in").result())
        assert pool.submit(ORIGIN.get).result() is None


def test_spans_and_parents_travel_and_the_programs_own_variables_do_not():
    own: contextvars.ContextVar[str] = contextvars.ContextVar("own", default="unset")
    found: list[Any] = []

    def look() -> None:
        found.append(
            (SPAN.get(), PARENT.get(), SENDING.get(), own.get(), decimal.getcontext().prec)
        )

    def program(_: Cell) -> None:
        SPAN.set(("outer",))
        PARENT.set("78a670b1")
        own.set("set")
        with decimal.localcontext(prec=3), ThreadPoolExecutor(1) as pool:
            pool.submit(look).result()
            thread = threading.Thread(target=look)
            thread.start()
            thread.join()

    Cell(0).run(program)
    assert found == [(("outer",), "78a670b1", False, "unset", 28)] * 2


def test_what_a_tap_starts_while_sending_takes_no_number_and_is_known_to_be_sending():
    def program(cell: Cell) -> None:
        with ThreadPoolExecutor(1) as pool:
            SENDING.set(True)
            assert pool.submit(SENDING.get).result()
            SENDING.set(False)
            pool.submit(cell.call, "first").result()

    assert Cell(0).run(program) == {"first": "call-0"}


def test_outside_a_cell_nothing_is_wrapped():
    def work() -> None: ...

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert "run" not in vars(thread)
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(lambda: ORIGIN.get()).result() is None


def test_a_thread_keeps_nothing_of_ours_once_it_runs():
    inside: list[bool] = []

    def program(_: Cell) -> None:
        thread = threading.Thread(target=lambda: inside.append("run" in vars(thread)))
        thread.start()
        thread.join()

    Cell(0).run(program)
    assert inside == [False]


def test_a_thread_started_twice_is_the_same_error():
    def program(_: Cell) -> None:
        thread = threading.Thread(target=int)
        thread.start()
        thread.join()
        with pytest.raises(RuntimeError, match="threads can only be started once"):
            thread.start()

    Cell(0).run(program)


def test_errors_results_and_arguments_pass_through_a_pool():
    def program(_: Cell) -> None:
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(dict, [("a", 1)], b=2).result() == {"a": 1, "b": 2}
            with pytest.raises(ZeroDivisionError):
                pool.submit(divmod, 1, 0).result()

    Cell(0).run(program)


def test_closing_a_dropped_async_generator_takes_no_number():
    async def endless() -> Any:
        while True:
            yield

    def program(cell: Cell) -> None:
        async def main() -> None:
            async for _ in endless():
                break
            gc.collect()
            await asyncio.sleep(0)
            await asyncio.gather(called("a"))

        async def called(label: str) -> None:
            cell.call(label)

        asyncio.run(main())

    gc.collect()  # what other tests dropped starts tasks of its own
    assert Cell(0).run(program) == {"a": "called-0"}


def test_a_task_with_a_context_of_its_own_keeps_that_context():
    seen: list[str] = []

    def program(_: Cell) -> None:
        mine = contextvars.copy_context()

        async def look() -> None:
            seen.append(ORIGIN.get().lineage)
            SPAN.set(("left behind",))

        async def main() -> None:
            await asyncio.get_running_loop().create_task(look(), context=mine)
            assert mine[SPAN] == ("left behind",)

        asyncio.run(main())

    Cell(0).run(program)
    assert seen == ["look-0"]


def test_a_loop_with_a_task_factory_of_the_old_kind_still_works():
    def program(cell: Cell) -> None:
        async def called(label: str) -> None:
            cell.call(label)

        async def main() -> None:
            loop = asyncio.get_running_loop()
            loop.set_task_factory(lambda loop, coro: asyncio.Task(coro, loop=loop))
            await asyncio.gather(called("a"), called("b"))

        asyncio.run(main())

    assert Cell(0).run(program) == {"a": "called-0", "b": "called-1"}


def test_the_undo_is_complete():
    owners = [
        (threading.Thread, "start"),
        (ThreadPoolExecutor, "submit"),
        (asyncio.BaseEventLoop, "create_task"),
    ]
    ours = [vars(owner)[name] for owner, name in owners]
    assert all(hasattr(each, "__tape_original__") for each in ours)
    again = concurrency_threads.patch()
    assert [vars(owner)[name] for owner, name in owners] == ours
    again()
    assert [vars(owner)[name] for owner, name in owners] == ours


def test_an_asyncio_runner_kept_from_cell_to_cell_runs_for_whoever_uses_it():
    """It runs everything in one context, which remembers the cell that used it first."""

    async def origin() -> Any:
        return ORIGIN.get()

    found: list[Any] = []
    with asyncio.Runner() as runner:
        runner.run(origin())
        for name in ("one", "other"):
            contextvars.copy_context().run(
                in_cell, name, lambda: found.append(runner.run(origin()).cell)
            )
        assert found == ["one", "other"] and runner.run(origin()) is None


def in_cell(name: str, program: Callable[[], None]) -> None:
    ORIGIN.set(Origin(name))
    program()


def test_a_librarys_own_thread_that_is_started_once_a_process_shifts_nobodys_number():
    """tqdm starts one with the first progress bar; a kernel that has shown one before does not start it again."""

    def program(cell: Cell, *, first: bool) -> None:
        monitor = TMonitor(tqdm, 10) if first else None
        with ThreadPoolExecutor(1) as pool:
            pool.submit(cell.call, "a").result()
        thread = threading.Thread(target=cell.call, args=("b",))
        thread.start()
        thread.join()
        if monitor is not None:
            monitor.exit()

    started, known = (
        Cell(0).run(functools.partial(program, first=first)) for first in (True, False)
    )
    assert started == known == {"a": "call-0", "b": "call-1"}


def test_work_is_named_alike_whether_opentelemetry_stands_over_our_stand_in_or_under_it():
    """Imported before the first taped cell of a recording it stands under it, in a replay over it: strands-agents."""

    def execute() -> None: ...

    def instrument(original_func: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped_func(*args: Any) -> Any:
            return original_func(*args)

        wrapped_func.__module__ = "opentelemetry.instrumentation.threading"
        return wrapped_func

    run = contextvars.copy_context().run
    name = concurrency_threads.function_name
    assert name(instrument(run), (execute,)) == name(run, (execute,)) == "execute"
