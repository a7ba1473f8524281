"""Deadlines of tasks, and what time anyio says that it is."""

import asyncio
import time

import anyio
import pytest

import tape_jupyter as tape


def compute(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


async def cut_off_by_anyio(seconds, computed):
    scope = anyio.move_on_after(seconds)
    compute(computed)
    with scope:
        await asyncio.Event().wait()


async def cut_off_by_asyncio(seconds, computed):
    limit = asyncio.timeout(seconds)
    compute(computed)
    try:
        async with limit:
            await asyncio.Event().wait()
    except TimeoutError:
        pass


@pytest.mark.parametrize("cut_off", [cut_off_by_anyio, cut_off_by_asyncio])
def test_a_deadline_that_is_over_before_its_task_waits_comes_in_its_recorded_place(
    tmp_path, cut_off
):
    """A busy machine can take the processor away just there, which no replay repeats."""

    async def main():
        ended = []

        async def one(name, seconds, computed):
            await cut_off(seconds, computed)
            ended.append(name)

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(one("soon", 0.01, 0))
            tasks.create_task(one("computes", 0.02, 0.04))
        return ended, time.time()

    with tape.recording(tmp_path / "a.tape.yaml"):
        recorded = asyncio.run(main())
    with tape.replaying(tmp_path / "a.tape.yaml") as block:
        assert asyncio.run(main()) == recorded
    assert block.report.warnings == []


def test_what_anyio_says_of_the_time_is_said_again(tmp_path):
    async def main():
        began = anyio.current_time()
        compute(0.02)
        with anyio.move_on_after(0.01):
            await anyio.sleep(1)
        return anyio.current_time() - began

    with tape.recording(tmp_path / "a.tape.yaml"):
        recorded = asyncio.run(main())
    assert recorded >= 0.03
    with tape.replaying(tmp_path / "a.tape.yaml"):
        assert asyncio.run(main()) == recorded
