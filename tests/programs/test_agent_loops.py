"""Agents that send their whole history each turn: what is on the tape is what was sent, byte for byte."""

import json
import random

import httpx
import pytest

import tape_jupyter as tape
from tests.harness.provider import Provider


def dumped(body, ascii_):
    return json.dumps(body, separators=(",", ":"), ensure_ascii=ascii_).encode()


@pytest.mark.spread(3)
@pytest.mark.parametrize("key", ["messages", "input", "contents"])
def test_loops_beside_each_other_are_on_the_tape_as_they_were_sent(tmp_path, key):
    rng, path = random.Random(key), tmp_path / "main.tape.yaml"
    sent, replies = [], []
    tools = [{"name": "look", "description": "looks up an order " * 20}]
    talks = [[{"role": "user", "content": f"agent {n}: " + "über " * 60}] for n in range(3)]
    with Provider(vary=True) as provider:
        url = f"{provider.url}/v1/anything"

        def ask(content):
            return httpx.post(url, content=content, headers={"content-type": "application/json"})

        with tape.recording(path):
            for turn in range(45):
                talk = rng.choice(talks)
                body = {"model": "m", key: talk, "tools": tools, "temperature": 1.0, "top_p": 0.5}
                sent.append(dumped(body, ascii_=turn % 7 == 0))
                replies.append(reply := ask(sent[-1]).text)
                talk.append({"role": "assistant", "content": reply, "score": 2.0})
                talk.append({"role": "user", "content": f"turn {turn} " * 20})
                if rng.random() < 0.1:
                    del talk[rng.randrange(1, len(talk)) :]  # went back, and on another way
    cassette = tape.open(path)
    assert [entry.request().body for entry in cassette.calls] == sent
    assert path.read_text("utf-8").count(f" {key}[0:") > 40  # each but the first of a talk
    with tape.replaying(path):
        assert [ask(content).text for content in sent] == replies
