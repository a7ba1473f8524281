"""Recording ten thousand asyncio tasks of which most are cancelled, in random order, against the same untaped.

The tasks of the first figure wait for an hour each, those of the second for a few milliseconds, and every other one of
them is cancelled.
"""

from __future__ import annotations

import asyncio
import itertools
import random
import time

from harness import PASSED, ratio, report, rounds, workplace

import tape_jupyter as tape

TASKS, PAIRS, BAR = 10_000, 5, 1.5
FIGURES = {"that wait": (3600.0, 1), "that wake": (0.01, 2)}


def main():
    with workplace() as folder:
        for what, (longest, each) in FIGURES.items():
            compare(folder, what, longest, each)


def compare(folder, what, longest, each):
    number = itertools.count()

    def record():
        with tape.recording(folder / f"{what}-{next(number)}.tape.yaml".replace(" ", "-")):
            asyncio.run(cancel(longest, each))

    contestants = {"floor": lambda: asyncio.run(cancel(longest, each)), "ours": record}
    passed = ratio(rounds(contestants, PAIRS, clock=PASSED), "ours")
    worked = ratio(rounds(contestants, PAIRS, clock=time.process_time), "ours")
    figure = f"recording of {TASKS:,} tasks {what}, cancelled at random"
    report(figure, f"<= {BAR} x untaped", passed <= BAR, ratio=passed, processor_ratio=worked)


async def cancel(longest, each):
    chance = random.Random(3)
    tasks = [asyncio.create_task(asyncio.sleep(longest * chance.random())) for _ in range(TASKS)]
    await asyncio.sleep(0)
    for number, task in enumerate(chance.sample(tasks, TASKS)):
        if number % each == 0:
            task.cancel()
        if number % 50 == 0:
            await asyncio.sleep(0)
    await asyncio.gather(*tasks, return_exceptions=True)


if __name__ == "__main__":
    main()
