"""Replay per call: at most 1.3 times the floor at 200 calls, and the same at 10,000. Peers at 200."""

from __future__ import annotations

import itertools

import peers
from harness import (
    WORKED,
    ask,
    client,
    floor_client,
    forget,
    ratio,
    record_elsewhere,
    report,
    respond,
    rounds,
    say,
    workplace,
)

import tape_jupyter as tape

BAR = 1.3
STRETCH = 1_000  # calls of one round: of the long cassette another stretch each, so that none is met a second time


def ours(path, count):
    asking, floor = client(), floor_client()
    measured = min(count, STRETCH)
    starts = itertools.cycle(range(0, count, measured))
    spread = range(measured)

    def opened():
        """As in a new kernel, before its first call: opening is another figure."""
        forget(path)
        with tape.replaying(path):
            pass

    def direct():
        nonlocal spread
        start = next(starts)
        spread = range(start, start + measured)
        ask(floor, spread)

    def replay():
        with tape.replaying(path):
            ask(asking, spread)

    # Nothing waits here, so that the processor's time is all the time; and a busy machine's other work is not counted.
    taken = rounds(
        {"floor": direct, "ours": replay}, 5000 // measured + 10, before=opened, clock=WORKED
    )
    report(
        f"replay per call at {count:,}", f"<= {BAR} x floor", ratio(taken, "ours") <= BAR, ratio=ratio(taken, "ours"),
        floor_ms=round(min(taken["floor"]) / measured * 1e3, 3),
    )  # fmt: skip


def peer(name, folder, count):
    path, asking, floor = folder / f"{name}.yaml", client(respond), floor_client()
    try:
        with peers.recorded(name, path):
            ask(asking, range(count))

        def replay():
            with peers.replayed(name, path):
                ask(asking, range(count))

        taken = rounds({"floor": lambda: ask(floor, range(count)), name: replay}, count=3)
        report(
            f"replay per call at {count:,} ({name})",
            "for comparison",
            None,
            ratio=ratio(taken, name),
        )
    except BaseException as error:
        report(
            f"replay per call at {count:,} ({name})",
            "for comparison",
            None,
            failed=f"{type(error).__name__}: {error}"[:200],
        )


def main():
    with workplace() as folder:
        for count in (200, 10_000):
            path = folder / f"{count}.tape.yaml"
            say(f"recording {count:,} calls")
            record_elsewhere(path, count)
            ours(path, count)
            forget(path)
        for name in peers.PEERS:
            peer(name, folder, 200)


if __name__ == "__main__":
    main()
