"""The support pipeline in five cells (setup, classify, answer, unrelated, report), and a page that shows what they give,
as JupyterLab does. For tests of what is re-run after the classification was overridden.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import tape_jupyter as tape
from tests.harness.notebook import TIMEOUT, Kernel, Ran, put
from tests.harness.provider import Provider

LOAD = "%load_ext tape_jupyter"
SETUP = """import json, urllib3
pool = urllib3.PoolManager()
def ask(text, stream=False):
    body = {"model": "claude-sonnet-4-5", "max_tokens": 50, "stream": stream, "messages": [{"role": "user", "content": text}]}
    reply = pool.request("POST", "URL/v1/messages", json=body, retries=False)
    if not stream:
        return "".join(block["text"] for block in reply.json()["content"])
    told = [json.loads(line[6:]) for line in reply.data.decode().splitlines() if line.startswith("data: ")]
    return "".join(each["delta"].get("text", "") for each in told if each["type"] == "content_block_delta")
message = "I cannot open my invoice." """
CLASSIFY = '%%tape record\nmood = ask(f"Is the sentiment of this positive or negative? {message}", stream=True)\nprint("mood:", mood)'
ANSWER = '%%tape record\nanswer = ask(f"Reply to a {mood} customer: {message} {mood}")\nprint("answer:", answer)'
UNRELATED = 'print("unrelated")\nother = len(message)'
REPORT = 'report = f"{mood}/{answer}"\nprint("report:", report)\nreport'
CELLS = {
    "setup": SETUP,
    "classify": CLASSIFY,
    "answer": ANSWER,
    "unrelated": UNRELATED,
    "report": REPORT,
}


class Page:
    """A front end that keeps listening for the outputs of every cell that it ever asked for, as JupyterLab does."""

    def __init__(
        self, kernel: Kernel, provider: Provider, cells: Mapping[str, str] = CELLS
    ) -> None:
        self.kernel, self.provider, self.cells = kernel, provider, dict(cells)
        self.asked: dict[str, str] = {}
        self.shown: dict[str, Ran] = {}

    def run(self, cell: str) -> Ran:
        code = self.cells[cell].replace("URL", self.provider.url)
        return self.execute(code, cell)

    def execute(self, code: str, cell: str = "said", **content: Any) -> Ran:
        asked = self.kernel.send(code, cell, **content)
        self.asked[asked] = cell
        self.shown[cell] = Ran()
        return self.until_idle(asked)

    def until_cleared(self, cell: str) -> None:
        """Collect what comes, until a cell shows nothing."""
        self._until(lambda: not self.shown[cell].outputs)

    def until_shown(self, cell: str, text: str) -> None:
        """Collect what comes, until a cell shows this text."""
        self._until(lambda: text in self.shown[cell].stdout)

    def _until(self, known: Callable[[], bool]) -> None:
        while not known():
            message = self.kernel._client.get_iopub_msg(timeout=TIMEOUT)
            if (parent := message["parent_header"].get("msg_id")) in self.asked:
                self.show(self.asked[parent], message["msg_type"], message["content"])

    def until_idle(self, asked: str) -> Ran:
        """Collect what comes for whatever cell, until this one is done."""
        while True:
            message = self.kernel._client.get_iopub_msg(timeout=TIMEOUT)
            parent, kind, content = (
                message["parent_header"].get("msg_id"),
                message["msg_type"],
                message["content"],
            )
            if kind == "status" and content["execution_state"] == "idle" and parent == asked:
                break
            if parent in self.asked:
                self.show(self.asked[parent], kind, content)
        reply = self.kernel._reply(asked, time.monotonic() + TIMEOUT)["content"]
        ran = self.shown[self.asked[asked]]
        ran.status, ran.ename, ran.evalue = (
            reply["status"],
            reply.get("ename", ""),
            reply.get("evalue", ""),
        )
        return ran

    def show(self, cell: str, kind: str, content: Mapping[str, Any]) -> None:
        if kind == "clear_output":
            self.shown[cell].outputs.clear()
        else:
            put(self.shown[cell], kind, content)

    def text(self, cell: str) -> str:
        return self.shown[cell].stdout


def record(page: Page, base: Path, provider: Provider) -> str:
    """Run and record the cells; the classification is overridden in the take `angry`. Gives the recording's digest."""
    for cell in CELLS:
        assert page.run(cell).ok, page.shown[cell].traceback
    assert page.text("classify") == "mood: negative\n"
    override(base, "positive")
    provider.requests.clear()
    return digest(base)


def override(base: Path, text: str, take: str = "angry") -> Any:
    """The classification's reply says something else in a take."""
    cassette = tape.open(base)
    call = cassette.calls[0]
    reply = call.reply()
    chunks = tuple(chunk.replace(b"negative", text.encode()) for chunk in reply.chunks)
    return cassette.override(call, reply=replace(reply, chunks=chunks), take=take)


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
