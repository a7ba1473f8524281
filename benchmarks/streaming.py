"""Streams: a 2,000-event stream replays in at most 1.2 times the floor; the first token while recording is not late."""

from __future__ import annotations

import statistics
import time

import anthropic
import httpx2
import peers
from harness import floor_client, ratio, report, rounds, say, workplace
from server import serving, stream_events

import tape_jupyter as tape

BAR, EVENTS, FIRST = 1.2, 2_000, 1.10
ASKED = {"model": "m", "max_tokens": EVENTS, "messages": [{"role": "user", "content": "go on"}]}


def read(asking: anthropic.Anthropic) -> float:
    """Read a whole stream; seconds until its first text."""
    start, first = time.perf_counter(), 0.0
    with asking.messages.stream(**ASKED) as stream:
        for _ in stream.text_stream:
            first = first or time.perf_counter() - start
    return first


class Chunks(httpx2.SyncByteStream):
    def __init__(self, chunks):
        self.chunks = chunks

    def __iter__(self):
        yield from self.chunks


def main():
    with workplace() as folder, serving() as url:
        path, events = folder / "a.tape.yaml", list(stream_events(EVENTS))
        floor = floor_client(
            lambda _: httpx2.Response(
                200,
                headers={"content-type": "text/event-stream; charset=utf-8"},
                stream=Chunks(events),
            )
        )
        asking = anthropic.Anthropic(api_key="sk-none", base_url=url, max_retries=0)
        with tape.recording(path):
            read(asking)

        def replay():
            with tape.replaying(path):
                read(asking)

        taken = rounds({"floor": lambda: read(floor), "ours": replay})
        found = ratio(taken, "ours")
        report(
            "replay of a 2,000-event stream",
            f"<= {BAR} x floor",
            found <= BAR,
            ratio=found,
            floor_ms=round(min(taken["floor"]) * 1e3, 1),
        )
        first_token(asking, folder)


def first_token(asking, folder):
    say("first token while recording")
    taken = {name: [] for name in ("untaped", "ours", *peers.PEERS)}
    for number in range(31):
        taken["untaped"].append(read(asking))
        with tape.recording(folder / "first.tape.yaml"):
            taken["ours"].append(read(asking))
        for name in peers.PEERS if number < 5 else ():
            try:
                with peers.recorded(name, folder / f"{name}{number}.yaml"):
                    taken[name].append(read(asking))
            except Exception as error:
                say(f"{name}: {error}")
    base = statistics.median(taken["untaped"][1:])
    for name in ("ours", *peers.PEERS):
        if taken[name][1:]:
            found = round(statistics.median(taken[name][1:]) / base, 3)
            bar = f"<= {FIRST} x untaped" if name == "ours" else "for comparison"
            report(
                f"first token while recording ({name})",
                bar,
                found <= FIRST if name == "ours" else None,
                ratio=found,
                untaped_ms=round(base * 1e3, 2),
            )


if __name__ == "__main__":
    main()
