"""A process that is killed while it talks over a WebSocket: every turn that reached the program is on the tape."""

import json
import os
import signal
import subprocess
import sys
import textwrap

import pytest

from tape_jupyter.encoding.http.websocket import frames_of
from tape_jupyter.cassette.cassette import Cassette
from tests.harness.sockets import SocketServer

CHILD = """
import asyncio, json, sys
import tape_jupyter as tape
path, url, style = sys.argv[1:]

def threads():
    from websockets.sync.client import connect
    with connect(url + "/turns") as ws:
        ws.recv()
        for number in range(100_000):
            ws.send(json.dumps({"type": "ask", "text": f"question {number}"}))
            while "response.done" not in ws.recv():
                pass
            print(number, flush=True)

async def tasks():
    from websockets.asyncio.client import connect
    async with connect(url + "/turns") as ws:
        await ws.recv()
        for number in range(100_000):
            await ws.send(json.dumps({"type": "ask", "text": f"question {number}"}))
            while "response.done" not in await ws.recv():
                pass
            print(number, flush=True)

with tape.recording(path):
    threads() if style == "threads" else asyncio.run(tasks())
"""


@pytest.mark.spread(3)
@pytest.mark.parametrize("style", ["threads", "tasks"])
@pytest.mark.parametrize("after", [0, 5, 23])
def test_every_turn_that_reached_the_program_survives_a_kill(tmp_path, style, after):
    path = tmp_path / "main.tape.yaml"
    with SocketServer() as server:
        command = [sys.executable, "-c", textwrap.dedent(CHILD), str(path), server.url, style]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
            for line in child.stdout:
                if int(line) == after:
                    os.kill(child.pid, signal.SIGKILL)
                    break
            reached = [after, *map(int, child.stdout.read().split())]
    [entry] = Cassette.open(path, check="whole").calls
    frames = [json.loads(frame.data) for frame in frames_of(entry.reply().body) if frame.is_message]
    done = sum(frame["type"] == "response.done" for frame in frames)
    asked = [frame["text"] for frame in frames if frame["type"] == "ask"]
    assert done >= max(reached) + 1 and asked[:done] == [
        f"question {number}" for number in range(done)
    ]
