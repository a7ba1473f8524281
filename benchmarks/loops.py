"""An agent loop that sends its whole history each turn: recorded and replayed, against the same loop without a tape.

Both clocks are reported; bars hold by the time that passed. The floor of recording is the loop against a server on
loopback, that of replay the loop answered from memory.
"""

from __future__ import annotations

import itertools

import anthropic
from harness import (
    PASSED,
    WORKED,
    client,
    floor_client,
    forget,
    prose,
    ratio,
    report,
    rounds,
    workplace,
)
from server import message, serving

import tape_jupyter as tape

TURNS = (50, 200, 400)
RECORDING, REPLAYING = 1.3, 1.2
WORDS = 60
PAIRS = 3


def main():
    with workplace() as folder, serving() as url:
        for turns in TURNS:
            recording(folder, url, turns)
            replaying(folder, turns)


def loop(asking, turns):
    messages = []
    for turn in range(turns):
        messages.append({"role": "user", "content": f"turn {turn}: {prose(turn, WORDS)}"})
        reply = asking.messages.create(model="m", max_tokens=400, messages=messages)
        messages.append({"role": "assistant", "content": reply.content[0].text})


def recording(folder, url, turns):
    asking = anthropic.Anthropic(api_key="sk-none", base_url=url, max_retries=0)
    number = itertools.count()

    def record():
        with tape.recording(folder / f"recorded-{turns}-{next(number)}.tape.yaml"):
            loop(asking, turns)

    compare("recording", turns, RECORDING, {"floor": lambda: loop(asking, turns), "ours": record})


def replaying(folder, turns):
    path = folder / f"replayed-{turns}.tape.yaml"
    with tape.recording(path):
        loop(client(respond), turns)
    asking, floor = client(), floor_client(respond)

    def opened():
        forget(path)
        with tape.replaying(path):
            pass

    def replay():
        with tape.replaying(path):
            loop(asking, turns)

    compare(
        "replay",
        turns,
        REPLAYING,
        {"floor": lambda: loop(floor, turns), "ours": replay},
        before=opened,
    )


def respond(request):
    import httpx2

    turn = request.content.count(b'"role":"user"')
    return httpx2.Response(200, json=message([{"type": "text", "text": prose(turn, WORDS)}]))


def compare(what, turns, bar, contestants, before=lambda: None):
    passed = ratio(rounds(contestants, PAIRS, before=before, clock=PASSED), "ours")
    worked = ratio(rounds(contestants, PAIRS, before=before, clock=WORKED), "ours")
    figure = f"{what} of an agent loop of {turns} turns"
    report(figure, f"<= {bar} x floor", passed <= bar, ratio=passed, processor_ratio=worked)


if __name__ == "__main__":
    main()
