"""Replies are handed on in the recorded order, whatever the program waits with, and nobody is locked up.

The programs are made at random: workers (threads or tasks) that each make a chain of calls, 2 to 50 at a time. What a
recording of one would hold is computed, not waited for: each call's start, its duration, and so the order in which the
calls ended. TAPE_PROPERTY_COUNT says how many programs are tried.
"""

import asyncio
import heapq
import os
import queue
import random
import threading
from concurrent.futures import ThreadPoolExecutor, as_completed
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tape_jupyter.core.call import FunctionCall, Value, Where
from tape_jupyter.cassette.cassette import Cassette
from tape_jupyter.cassette.match_key import match_key
from tape_jupyter.session.session import TapeSession
from tape_jupyter.cassette.records import Head
from tape_jupyter.secrets.registry import Secrets
from tape_jupyter.instrumentation.tools.decorators import tool
from tests.harness.taped_cells import taped

COUNT = min(int(os.environ.get("TAPE_PROPERTY_COUNT", "24")), 1000)
START = datetime(2026, 3, 1, tzinfo=UTC)


@tool
def work(name):
    raise AssertionError("the body of a played call ran")


@tool
async def awork(name):
    raise AssertionError("the body of a played call ran")


class Program:
    """Chains of calls, one a worker; `ended` is the order in which a recording sees their ends."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.workers = self.random.randint(2, 50)
        length = self.random.choice([1, 1, 2, 3])
        self.chains = [
            [f"{w}.{i}" for i in range(self.random.randint(1, length))] for w in range(self.workers)
        ]
        self.calls: list[tuple[str, str, float, float]] = []
        moments = self.random.sample(range(1, 5000), sum(map(len, self.chains)))
        due = [(moments.pop(), w, 0) for w in range(self.workers)]
        began = dict.fromkeys(range(self.workers), 0)
        heapq.heapify(due)
        while due:
            end, worker, index = heapq.heappop(due)
            self.calls.append(
                (
                    self.chains[worker][index],
                    str(worker),
                    began[worker] / 1000,
                    (end - began[worker]) / 1000,
                )
            )
            began[worker] = end
            if index + 1 < len(self.chains[worker]):
                heapq.heappush(due, (end + moments.pop(), worker, index + 1))
        self.ended = [name for name, *_ in self.calls]

    def record(self, path: Path, function: str) -> None:
        cassette, secrets = Cassette.open(path), Secrets()
        run = cassette.start_run(
            {"mode": "record", "source": "", "at": START.isoformat()}, {"cassette": "main"}
        )
        for name, lineage, began, seconds in self.calls:
            call = FunctionCall(function, {"name": name})
            match, at = (
                match_key(call, secrets),
                (START + timedelta(seconds=began)).isoformat(timespec="milliseconds"),
            )
            head = Head(
                match[:8], run, match, "tool", Where(lineage=lineage), at, seconds, name=function
            )
            cassette.append_call(head, call, Value(name), secrets)
        cassette.end_run(run, {"outcome": "ok"})


# Programs: each gives the names of its calls in the order in which it saw them end.


def with_a_pool(program: Program, chains: list[list[str]]) -> list[str]:
    seen = []
    with ThreadPoolExecutor(len(chains)) as pool:
        for done in as_completed([pool.submit(work, chain[0]) for chain in chains]):
            seen.append(done.result())
    return seen


def with_threads(program: Program, chains: list[list[str]]) -> list[str]:
    seen = []
    threads = [
        threading.Thread(target=lambda c=chain: [seen.append(work(name)) for name in c])
        for chain in chains
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return seen


def with_a_queue(program: Program, chains: list[list[str]]) -> list[str]:
    done = queue.Queue()
    for chain in chains:
        threading.Thread(target=lambda c=chain: [done.put(work(name)) for name in c]).start()
    return [done.get() for _ in range(sum(map(len, chains)))]


def with_a_lock_around_what_is_done(program: Program, chains: list[list[str]]) -> list[str]:
    seen, lock = [], threading.Lock()

    def run(chain: list[str]) -> None:
        for name in chain:
            got = work(name)
            with lock:
                seen.append(got)

    with ThreadPoolExecutor(len(chains)) as pool:
        list(pool.map(run, chains))
    return seen


def with_tasks(program: Program, chains: list[list[str]]) -> list[str]:
    async def main() -> list[str]:
        seen = []

        async def run(chain: list[str]) -> None:
            for name in chain:
                seen.append(await awork(name))

        await asyncio.gather(*map(run, chains))
        return seen

    return asyncio.run(main())


def with_tasks_as_completed(program: Program, chains: list[list[str]]) -> list[str]:
    async def main() -> list[str]:
        return [await done for done in asyncio.as_completed([awork(chain[0]) for chain in chains])]

    return asyncio.run(main())


def with_tasks_and_a_queue(program: Program, chains: list[list[str]]) -> list[str]:
    async def main() -> list[str]:
        done: asyncio.Queue[str] = asyncio.Queue()

        async def run(chain: list[str]) -> None:
            for name in chain:
                await done.put(await awork(name))

        async with asyncio.TaskGroup() as group:
            for chain in chains:
                group.create_task(run(chain))
            return [await done.get() for _ in range(sum(map(len, chains)))]

    return asyncio.run(main())


def with_threads_of_tasks(program: Program, chains: list[list[str]]) -> list[str]:
    async def main() -> list[str]:
        seen = []

        async def run(chain: list[str]) -> None:
            for name in chain:
                seen.append(await asyncio.to_thread(work, name))

        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(len(chains)))
        await asyncio.gather(*map(run, chains))
        return seen

    return asyncio.run(main())


FIRST_ONLY = (with_a_pool, with_tasks_as_completed)
PROGRAMS = (
    with_a_pool, with_threads, with_a_queue, with_a_lock_around_what_is_done, with_tasks, with_tasks_as_completed,
    with_tasks_and_a_queue, with_threads_of_tasks,
)  # fmt: skip


@pytest.mark.parametrize("run", PROGRAMS, ids=lambda run: run.__name__)
def test_calls_end_in_the_recorded_order_and_also_where_some_are_no_longer_made(run, tmp_path):
    for seed in range(max(1, COUNT // len(PROGRAMS))):
        program = Program(seed * len(PROGRAMS) + PROGRAMS.index(run))
        path = tmp_path / f"{seed}.tape.yaml"
        program.record(
            path, "work" if "task" not in run.__name__ or run is with_threads_of_tasks else "awork"
        )
        chains = [chain[:1] for chain in program.chains] if run in FIRST_ONLY else program.chains
        if seed % 2:  # the program has changed: a quarter of its workers are gone
            chains = [chain for chain in chains if program.random.random() > 0.25] or chains
        made = {name for chain in chains for name in chain}
        wanted = [name for name in program.ended if name in made]
        with taped(TapeSession(), "replay", path, source="", options={"pace": "order"}):
            seen = run(program, chains)
        assert seen == wanted, f"seed {seed}: {program.workers} workers"
