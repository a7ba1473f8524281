"""Recording costs cells of LangGraph at most 10 %: graphs as its documentation writes them, replies 0 to 40 ms late; with
`--as-late-as-recorded`, fewer runs, as late as Anthropic's own headers said in recorded traffic.

The cells run in shells of their own, in turns one without the extension and one that records; the medians of all
their runs are compared. Each run is a new cell of its notebook, as when a notebook is recorded for the first time.
Both clocks are reported, the processor's for all threads of the process; bars hold by the time that passed.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from harness import report, say, workplace

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.harness.provider import Provider, Scripted, Seen  # noqa: E402

BAR = 1.10


@dataclass(frozen=True)
class Pace:
    """How late replies come, in seconds, and how often cells run with them: in how many processes of each kind, and in
    each of those. `words`: what the figure says of it.
    """

    delays: tuple[float, ...]
    processes: int
    runs: int
    words: str = ""


PACES = {
    "loopback": Pace(tuple(drawn / 255 * 0.04 for drawn in range(256)), 3, 8),
    # the middles of ten equal parts of 201 `x-envoy-upstream-service-time` in Anthropic's replies of the corpus
    "recorded": Pace(
        (0.079, 0.796, 1.040, 1.203, 1.341, 1.439, 1.586, 1.880, 2.302, 2.808),
        1,
        2,
        ", replies as late as recorded",
    ),
}

SETUP = """
import operator
import sqlite3
from typing import Annotated, TypedDict
from langchain_anthropic import ChatAnthropic
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.config import get_stream_writer
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.types import Command, Send, interrupt

model = ChatAnthropic(model="claude-sonnet-4-6", max_tokens=200, base_url=URL, api_key="none")

@tool
def weather(city: str) -> str:
    "The weather in a city."
    return f"sunny in {city}"

class State(TypedDict):
    topic: str
    got: Annotated[list, operator.add]

def ask(words):
    return model.invoke(words).content

def node(name, words=None):
    def answered(state):
        return {"got": [(name, ask(words or f"{name} about {state['topic']}"))]}
    return answered

def chat(state):
    return {"messages": [model.bind_tools([weather]).invoke(state["messages"])]}

def say(state):
    return {"messages": [model.invoke(state["messages"])]}
"""

CELLS = {
    "tools": """
made = StateGraph(MessagesState)
made.add_node("chat", chat)
made.add_node("tools", ToolNode([weather]))
made.add_edge(START, "chat")
made.add_conditional_edges("chat", tools_condition)
made.add_edge("tools", "chat")
agent = made.compile()
for chunk in agent.stream({"messages": [("user", "What is the weather in Ulm?")]}, stream_mode="values"):
    chunk["messages"][-1].pretty_print()
""",
    "branches": """
made = StateGraph(State)
for name in "abcd":
    made.add_node(name, node(name, "the same"))
    made.add_edge(START, name)
    made.add_edge(name, "join")
made.add_node("join", node("join"))
branches = made.compile()
print(branches.invoke({"topic": "cats", "got": []}))
""",
    "map_reduce": """
made = StateGraph(State)
made.add_node("joke", node("joke"))
made.add_node("best", node("best"))
made.add_conditional_edges(START, lambda state: [Send("joke", {"topic": f"cat {n}"}) for n in range(6)], ["joke"])
made.add_edge("joke", "best")
for step in made.compile().stream({"topic": "cats", "got": []}):
    print(step)
""",
    "subgraphs": """
inner = StateGraph(State)
inner.add_node("one", node("one"))
inner.add_node("two", node("two"))
inner.add_edge(START, "one")
inner.add_edge("one", "two")
made = StateGraph(State)
made.add_node("inner", inner.compile())
made.add_node("beside", node("beside"))
made.add_edge(START, "inner")
made.add_edge(START, "beside")
for chunk in made.compile().stream({"topic": "cats", "got": []}, stream_mode="updates", subgraphs=True):
    print(len(chunk), chunk[1])
""",
    "streaming": """
def told(name):
    def answered(state):
        write = get_stream_writer()
        write({"began": name})
        return {"got": [ask(f"{name} on {state['topic']}")]}
    return answered

made = StateGraph(State)
for name in ("poem", "joke"):
    made.add_node(name, told(name))
    made.add_edge(START, name)
for mode, chunk in made.compile().stream({"topic": "ice", "got": []}, stream_mode=["updates", "custom", "messages"]):
    print(mode, chunk[0].content if mode == "messages" else chunk)
""",
    "interrupt": """
def approve(state):
    return {"got": [interrupt("Shall I?")]}

made = StateGraph(State)
for name, run in (("draft", node("draft")), ("approve", approve), ("send", node("send"))):
    made.add_node(name, run)
made.add_edge(START, "draft")
made.add_edge("draft", "approve")
made.add_edge("approve", "send")
flow = made.compile(checkpointer=InMemorySaver())
thread = {"configurable": {"thread_id": "1"}}
print(flow.invoke({"topic": "mail", "got": []}, thread))
print(flow.invoke(Command(resume="yes"), thread))
""",
    "sqlite": """
from langgraph.checkpoint.sqlite import SqliteSaver
made = StateGraph(MessagesState)
made.add_node("say", say)
made.add_edge(START, "say")
memory = made.compile(checkpointer=SqliteSaver(sqlite3.connect(":memory:", check_same_thread=False)))
thread = {"configurable": {"thread_id": "7"}}
for words in ("I am Ada", "Who am I?"):
    print(memory.invoke({"messages": [("user", words)]}, thread)["messages"][-1].content)
print(len(list(memory.get_state_history(thread))))
""",
    "tasks": """
async def one(state):
    return {"got": [(await model.ainvoke("the same")).content]}

made = StateGraph(State)
for name in "abcd":
    made.add_node(name, one)
    made.add_edge(START, name)
async for update in made.compile().astream({"topic": "cats", "got": []}, stream_mode="updates"):
    print(update)
""",
}


class Late(Provider):
    """Answers a request late, by what it says: recorded as late as untaped."""

    delays = PACES["loopback"].delays

    def answer(self, seen: Seen) -> Scripted:
        time.sleep(self.delays[hashlib.sha256(seen.body).digest()[0] % len(self.delays)])
        return super().answer(seen)


def asked_pace() -> str:
    """The name of the pace that the command line asks for."""
    return "recorded" if "--as-late-as-recorded" in sys.argv else "loopback"


@contextlib.contextmanager
def provider(pace: str) -> Iterator[str]:
    """In a process of its own: its threads are none of the kernel's."""
    serve = (
        "from graphs import PACES, Late; import time; p = Late(); "
        f"p.delays = PACES[{pace!r}].delays; p.start(); print(p.url, flush=True); time.sleep(9999)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", serve], stdout=subprocess.PIPE, text=True, cwd=ROOT / "benchmarks"
    ) as it:
        assert it.stdout is not None
        try:
            yield it.stdout.readline().strip()
        finally:
            it.terminate()


def run_cells(kind: str, pace: str, names: list[str]) -> dict[str, list[tuple[float, float]]]:
    """Seconds that passed and that the processor worked in each run of each cell, in this process: `kind` is "plain" or
    "recorded".
    """
    from IPython.testing.globalipapp import start_ipython

    first = "%%tape record bench\n" if kind == "recorded" else ""
    seconds: dict[str, list[tuple[float, float]]] = {name: [] for name in names}
    with workplace() as folder, provider(pace) as url:
        os.chdir(folder)
        shell = start_ipython()

        def run(source: str) -> tuple[float, float]:
            with contextlib.redirect_stdout(io.StringIO()):
                began, worked = time.perf_counter(), time.process_time()
                ran = shell.run_cell(source)
                took = time.perf_counter() - began, time.process_time() - worked
            ran.raise_error()
            return took

        if first:
            shell.run_line_magic("load_ext", "tape_jupyter")
        run(f"URL = {url!r}\n{SETUP}")
        for number in range(PACES[pace].runs + 1):
            for name in names:
                took = run(f"{first}{CELLS[name]}\n# {number}")
                if number:
                    seconds[name].append(took)
        os.chdir("/")
    return seconds


def main() -> None:
    names = [each for each in sys.argv[1:] if each in CELLS] or list(CELLS)
    pace = asked_pace()
    seconds: dict[str, dict[str, list[tuple[float, float]]]] = {
        kind: {name: [] for name in names} for kind in ("plain", "recorded")
    }
    for _ in range(PACES[pace].processes):
        for kind, all_runs in seconds.items():
            command = [sys.executable, __file__, "--one", kind, pace, *names]
            done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
            for name, runs in json.loads(done.stdout.splitlines()[-1]).items():
                all_runs[name] += runs
    plain, recorded = (medians(all_runs, 0) for all_runs in seconds.values())
    worked_plain, worked_recorded = (medians(all_runs, 1) for all_runs in seconds.values())
    ratios = {name: round(recorded[name] / plain[name], 3) for name in names}
    for name in names:
        worked = f"{worked_plain[name] * 1e3:.0f} -> {worked_recorded[name] * 1e3:.0f} ms"
        passed = f"{plain[name] * 1e3:.0f} -> {recorded[name] * 1e3:.0f} ms"
        say(f"{name}: {ratios[name]} ({passed}; of the processor's {worked})")
    whole = round(sum(recorded.values()) / sum(plain.values()), 3)
    worked_whole = round(sum(worked_recorded.values()) / sum(worked_plain.values()), 3)
    report(
        "recording cells of LangGraph" + PACES[pace].words,
        f"<= {BAR}x",
        whole <= BAR,
        ratio=whole,
        processor_ratio=worked_whole,
        **ratios,
    )


def medians(all_runs: dict[str, list[tuple[float, float]]], clock: int) -> dict[str, float]:
    return {name: statistics.median(run[clock] for run in runs) for name, runs in all_runs.items()}


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        print(json.dumps(run_cells(*sys.argv[2:4], sys.argv[4:])))
    else:
        main()
