"""Harness: a page that steps a cell in a real kernel, played by hand: it answers the kernel's probe, asks and hears as
the labextension does, over the control channel (tests/browser/test_step.py has the real one).
"""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable
from typing import Any

from tests.harness.notebook import TIMEOUT, Kernel, Ran, put

LOAD = "%load_ext tape_jupyter"
ASK = """import json, urllib.request
def ask(text, **more):
    body = json.dumps({"model": "claude-sonnet-4-5", "max_tokens": 50, "messages": [{"role": "user", "content": text}]})
    request = urllib.request.Request("URL/v1/messages", body.encode(), {"Content-Type": "application/json"})
    return json.load(urllib.request.urlopen(request))["content"][0]["text"]"""
THREADS = """import threading
found = {}
def work(name):
    found[name] = [ask(name), ask(name + " again")]
threads = [threading.Thread(target=work, args=(name,)) for name in ("x", "y")]
[each.start() for each in threads]
[each.join() for each in threads]
done = len(found)"""


class Stepper:
    """A page. `states` are those that were told, the newest last; `ran` what the running cell gave so far."""

    def __init__(self, kernel: Kernel, name: str = "page", *, answers: bool = True) -> None:
        self.kernel, self.name, self.answers = kernel, name, answers
        self.states: list[dict[str, Any]] = []
        self.probes: list[str] = []
        self.ran = Ran()
        self.cleared = 0
        self._asked, self._done = "", True
        self._ids = itertools.count(1)
        self._replies: dict[str, dict[str, Any]] = {}
        self.open()

    def open(self) -> None:
        """As a page that is loaded: its comm, and the question where things stand."""
        self._comm = f"comm-{self.name}-{next(self._ids)}"
        self._send("comm_open", target_name="tape-jupyter", data={"client": self.name})

    def close(self) -> None:
        self._send("comm_close", data={})

    def _send(self, kind: str, **content: Any) -> None:
        message = self.kernel._client.session.msg(kind, {"comm_id": self._comm, **content})
        self.kernel._client.control_channel.send(message)

    # ------------------------------------------------------------ asking

    def ask(self, about: str, **fields: Any) -> Any:
        """The answer. An error is raised, in its words."""
        name = self.send(about, **fields)
        self.until(lambda: name in self._replies)
        reply = self._replies.pop(name)
        if "error" in reply:
            raise Refused(reply["error"])
        return reply["answer"]

    def send(self, about: str, **fields: Any) -> str:
        name = str(next(self._ids))
        message = {"type": "ask", **fields, "id": name, "about": about}
        self._send("comm_msg", data={"type": "view", "view": "v", "message": message})
        return name

    def do(self, word: str, **fields: Any) -> None:
        self.ask("step.do", do=word, **fields)

    def hello(self) -> dict[str, Any] | None:
        state = self.ask("step")
        if state is not None:
            self.states.append(state)
        return state

    # ------------------------------------------------------------ the cell

    def run(self, code: str, cell: str | None = None, **content: Any) -> None:
        """Ask the kernel to run a cell; do not wait."""
        self.ran, self._done, self.cleared = Ran(), False, 0
        self._asked = self.kernel.send(code, cell, **content)

    def stop_at(self, *, calls: int = 1) -> dict[str, Any]:
        """Until that many strands stand at a call that was not known; the state."""
        seen = len(self.states)
        self.until(
            lambda: any(
                len(s["strands"]) >= calls and s["state"] == "stopped" for s in self.states[seen:]
            )
        )
        return self.states[-1]

    def moved(self, word: str, *, calls: int = 1, **fields: Any) -> dict[str, Any]:
        """Do it, and wait for the next stop."""
        before = self.states[-1]["revision"]
        self.do(word, **fields)
        self.until(
            lambda: any(
                len(s["strands"]) >= calls and s["state"] == "stopped" and s["revision"] > before
                for s in self.states
            )
        )
        return self.states[-1]

    def end(self) -> Ran:
        """Until the cell is over; what it gave."""
        self.until(lambda: self._done)
        reply = self.kernel._reply(self._asked, time.monotonic() + TIMEOUT)["content"]
        self.ran.status, self.ran.ename, self.ran.evalue = (
            reply["status"],
            reply.get("ename", ""),
            reply.get("evalue", ""),
        )
        return self.ran

    @property
    def over(self) -> bool:
        return self._done

    def until(self, known: Callable[[], Any], timeout: float = TIMEOUT) -> None:
        """Listen until something is so."""
        deadline = time.monotonic() + timeout
        while not known():
            self._hear(
                self.kernel._client.get_iopub_msg(timeout=max(0.01, deadline - time.monotonic()))
            )

    def _hear(self, message: dict[str, Any]) -> None:
        kind, content, parent = (
            message["msg_type"],
            message["content"],
            message["parent_header"].get("msg_id"),
        )
        data = content.get("data", {}) if kind == "comm_msg" else {}
        if data.get("client") == self.name:
            self._told(data)
        if parent != self._asked:
            return
        if kind == "status" and content["execution_state"] == "idle":
            self._done = True
        elif kind == "clear_output":
            self.ran.outputs.clear()
            self.cleared += 1
        else:
            put(self.ran, kind, content)

    def _told(self, data: dict[str, Any]) -> None:
        if data.get("type") == "stepping":
            self.probes.append(data["id"])
            if self.answers:
                self._send("comm_msg", data={"type": "stepping", "id": data["id"]})
        message = data.get("message", {})
        if message.get("type") == "answer":
            self._replies[message["id"]] = message
        elif message.get("about") == "step":
            self.states.append(json.loads(json.dumps(message)))


class Refused(Exception):
    """The kernel's words for why something cannot be done."""
