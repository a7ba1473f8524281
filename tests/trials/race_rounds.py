"""Rounds of programs that end as their replies come: recorded with replies 0 to 40 ms apart, replayed, compared.

    python -m tests.trials.race_rounds [--rounds 200] [--busy 2] [--only first_wins,queue] [--json]

Each line: the rounds of one program, how many ended otherwise in replay with a word of the tape, and how many without
one. The last number is to be 0. `--busy` has so many processes compute beside it.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import operator
import os
import queue
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, as_completed, wait
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing.pool import ThreadPool
from pathlib import Path
from typing import Annotated, Any, TypedDict

import httpx

import tape_jupyter as tape

APART = 0.04
"""Seconds within which the replies of a round come."""

PER_BLOCK = 10
"""Rounds that are recorded together."""

Program = Callable[[str], Any]


# ---------------------------------------------------------------- a provider whose replies come when they like


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm, apart = True, APART

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("content-length") or 0))
        time.sleep(random.random() * self.apart)
        body = json.dumps({"x": os.urandom(4).hex()}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        if self.path == "/stream":
            self.send_header("transfer-encoding", "chunked")
            self.end_headers()
            for _ in range(3):
                self.wfile.write(b"%x\r\n%s\r\n" % (len(body), body))
                time.sleep(random.random() * self.apart / 4)
            self.wfile.write(b"0\r\n\r\n")
        else:
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Says nothing."""


class Server(ThreadingHTTPServer):
    daemon_threads, request_queue_size = True, 256

    def handle_error(self, *_: Any) -> None:
        """A client that was cancelled."""


@contextlib.contextmanager
def provider(apart: float = APART) -> Iterator[str]:
    serve = "from tests.trials.race_rounds import Server, Handler; s = Server(('127.0.0.1', 0), Handler); "
    serve += f"Handler.apart = {apart}; "
    serve += "print(s.server_port, flush=True); s.serve_forever()"
    with subprocess.Popen(
        [sys.executable, "-c", serve], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{process.stdout.readline().strip()}"
        finally:
            process.terminate()


@contextlib.contextmanager
def busy(processes: int) -> Iterator[None]:
    """So many processes compute meanwhile."""
    running = [
        subprocess.Popen([sys.executable, "-c", "while True: sum(range(10**5))"])
        for _ in range(processes)
    ]
    try:
        yield
    finally:
        for process in running:
            process.terminate()
            process.wait()


# ---------------------------------------------------------------- programs of tasks


async def ask(client: httpx.AsyncClient, url: str) -> str:
    return str((await client.post(f"{url}/ask", json={"q": "same"})).json()["x"])


async def first_wins(url: str, client: httpx.AsyncClient) -> Any:
    tasks = [asyncio.create_task(ask(client, url)) for _ in range(4)]
    done, left = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)
    return [(tasks.index(task), task.result()) for task in tasks if task in done]


async def completed(url: str, client: httpx.AsyncClient) -> Any:
    return [await each for each in asyncio.as_completed([ask(client, url) for _ in range(8)])]


async def group(url: str, client: httpx.AsyncClient) -> Any:
    """The first that answers ends the group."""
    done = []

    async def one(number: int) -> None:
        answer = await ask(client, url)
        done.append((number, answer))
        if len(done) == 2:
            raise RuntimeError("enough")

    with contextlib.suppress(ExceptionGroup):
        async with asyncio.TaskGroup() as tasks:
            for number in range(5):
                tasks.create_task(one(number))
    return done


async def queued(url: str, client: httpx.AsyncClient) -> Any:
    """Four workers put what they get where one takes it."""
    answers: asyncio.Queue[Any] = asyncio.Queue()

    async def work(number: int) -> None:
        for _ in range(2):
            await answers.put((number, await ask(client, url)))

    workers = [asyncio.create_task(work(number)) for number in range(4)]
    seen = [await answers.get() for _ in range(8)]
    await asyncio.gather(*workers)
    return seen


async def timeouts(url: str, client: httpx.AsyncClient) -> Any:
    """Who answers within half the time, with a ticking clock beside it."""
    told: list[Any] = []

    async def one(number: int) -> None:
        try:
            told.append((number, await asyncio.wait_for(ask(client, url), APART / 2)))
        except TimeoutError:
            told.append((number, "late"))

    async def tick() -> None:
        for number in range(5):
            await asyncio.sleep(APART / 5)
            told.append(f"tick {number}")

    await asyncio.gather(tick(), *(one(number) for number in range(4)))
    return told


async def streams(url: str, client: httpx.AsyncClient) -> Any:
    """Chunks of three streams, as they come."""
    told: list[Any] = []

    async def one(number: int) -> None:
        async with client.stream("POST", f"{url}/stream", json={"q": "same"}) as reply:
            told.append((number, "began"))
            async for chunk in reply.aiter_raw():
                told.append((number, chunk.decode()))
        told.append((number, "ended"))

    await asyncio.gather(*(one(number) for number in range(3)))
    return told


async def first_wins_aiohttp(url: str, _: httpx.AsyncClient) -> Any:
    import aiohttp

    async with aiohttp.ClientSession() as session:

        async def one() -> Any:
            async with session.post(f"{url}/ask", json={"q": "same"}) as reply:
                return (await reply.json())["x"]

        tasks = [asyncio.create_task(one()) for _ in range(4)]
        done, left = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        return [(tasks.index(task), task.result()) for task in tasks if task in done]


async def tools(url: str, client: httpx.AsyncClient) -> Any:
    """Async tools that take as long as they like."""
    told: list[Any] = []

    @tape.tool
    async def look(number: int) -> int:
        await asyncio.sleep(random.random() * APART)
        return number

    async def one(number: int) -> None:
        told.append(await look(number))
        told.append(await ask(client, url))

    await asyncio.gather(*(one(number) for number in range(4)))
    return told


async def workers(url: str, client: httpx.AsyncClient) -> Any:
    """Three workers take jobs from one queue: which takes which hangs on who is done first."""
    jobs: asyncio.Queue[int] = asyncio.Queue()
    told: list[Any] = []
    for number in range(8):
        jobs.put_nowait(number)

    async def work(name: str) -> None:
        while not jobs.empty():
            job = jobs.get_nowait()
            told.append((name, job, await ask(client, url)))

    await asyncio.gather(*(work(name) for name in "abc"))
    return told


async def behind_a_semaphore(url: str, client: httpx.AsyncClient) -> Any:
    told: list[Any] = []
    two = asyncio.Semaphore(2)

    async def one(number: int) -> None:
        async with two:
            told.append((number, await ask(client, url)))

    await asyncio.gather(*(one(number) for number in range(6)))
    return told


async def merged(url: str, client: httpx.AsyncClient) -> Any:
    """Three async generators, merged as their items come."""

    async def items(name: str) -> Any:
        for number in range(2):
            yield name, number, await ask(client, url)

    told: list[Any] = []
    generators = [items(name) for name in "abc"]
    waiting = {asyncio.ensure_future(anext(each)): each for each in generators}
    while waiting:
        done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        for task in [each for each in waiting if each in done]:
            generator = waiting.pop(task)
            with contextlib.suppress(StopAsyncIteration):
                told.append(task.result())
                waiting[asyncio.ensure_future(anext(generator))] = generator
    return told


async def nursery(url: str, client: httpx.AsyncClient) -> Any:
    """Trio's way: the first that is done cancels the others; what they got goes through a channel."""
    import anyio

    send, receive = anyio.create_memory_object_stream[Any](8)
    told: list[Any] = []

    async def one(number: int) -> None:
        async with send.clone() as own:
            await own.send((number, await ask(client, url)))

    async with anyio.create_task_group() as tasks:
        for number in range(5):
            tasks.start_soon(one, number)
        async for item in receive:
            told.append(item)
            if len(told) == 3:
                tasks.cancel_scope.cancel()
    send.close()
    receive.close()
    return told


async def deadlines(url: str, client: httpx.AsyncClient) -> Any:
    """Some are cut off by a deadline of anyio's."""
    import anyio

    told: list[Any] = []

    async def one(number: int) -> None:
        with anyio.move_on_after(APART * number / 4) as scope:
            told.append((number, await ask(client, url)))
        if scope.cancelled_caught:
            told.append((number, "late"))

    async with anyio.create_task_group() as tasks:
        for number in range(1, 5):
            tasks.start_soon(one, number)
    return told


async def in_threads(url: str, _: httpx.AsyncClient) -> Any:
    """Blocking calls that a loop hands to threads."""
    told: list[Any] = []

    def one(number: int) -> str:
        told.append(f"began {number}")
        with httpx.Client() as client:
            return post(client, url)

    async def each(number: int) -> None:
        told.append((number, await asyncio.to_thread(one, number)))

    await asyncio.gather(*(each(number) for number in range(4)))
    return told


def of_tasks(program: Callable[[str, httpx.AsyncClient], Any]) -> Program:
    def run(url: str) -> Any:
        async def main() -> Any:
            async with httpx.AsyncClient() as client:
                return [await program(url, client) for _ in range(PER_BLOCK)]

        return asyncio.run(main())

    return run


# ---------------------------------------------------------------- programs of threads


def post(client: httpx.Client, url: str) -> str:
    return str(client.post(f"{url}/ask", json={"q": "same"}).json()["x"])


def first_done(url: str, client: httpx.Client) -> Any:
    with ThreadPoolExecutor(4) as pool:
        futures = [pool.submit(post, client, url) for _ in range(4)]
        done, _ = wait(futures, return_when=FIRST_COMPLETED)
        return [(futures.index(future), future.result()) for future in futures if future in done]


def futures_completed(url: str, client: httpx.Client) -> Any:
    with ThreadPoolExecutor(8) as pool:
        return [
            future.result()
            for future in as_completed([pool.submit(post, client, url) for _ in range(8)])
        ]


def listed(url: str, client: httpx.Client) -> Any:
    """Threads that append to one list."""
    told: list[Any] = []

    def one(number: int) -> None:
        for _ in range(2):
            told.append((number, post(client, url)))

    threads = [threading.Thread(target=one, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return told


def thread_queue(url: str, client: httpx.Client) -> Any:
    answers: queue.Queue[Any] = queue.Queue()

    def one(number: int) -> None:
        answers.put((number, post(client, url)))

    threads = [threading.Thread(target=one, args=(number,)) for number in range(5)]
    for thread in threads:
        thread.start()
    told = [answers.get() for _ in threads]
    for thread in threads:
        thread.join()
    return told


def woken(url: str, client: httpx.Client) -> Any:
    """Who wakes another thread goes on, and so does the other: through a queue, an event, a future."""
    told: list[Any] = []
    answers: queue.Queue[Any] = queue.Queue()
    last = threading.Event()

    def one(number: int) -> str:
        answer = post(client, url)
        answers.put(number)
        told.append(f"put {number}")
        if number == 2:
            last.set()
            told.append("it was the last")
        return answer

    def wait_for_last() -> None:
        last.wait()
        told.append("heard of the last")

    with ThreadPoolExecutor(5) as pool:
        heard = [pool.submit(wait_for_last) for _ in range(2)]
        futures = [pool.submit(one, number) for number in range(3)]
        for future in futures:
            future.add_done_callback(lambda _: told.append("called back"))
        for _ in futures:
            told.append(f"got {answers.get()}")
        for future in (*futures, *heard):
            told.append(future.result())
    return told


def timer(url: str, client: httpx.Client) -> Any:
    """A `threading.Timer` goes off amid the replies; another is cancelled by the third."""
    told: list[Any] = []
    rung, cancelled = (
        threading.Timer(APART / 2, told.append, [name]) for name in ("rung", "never")
    )

    def one(number: int) -> None:
        told.append((number, post(client, url)))
        if len(told) == 3:
            cancelled.cancel()

    threads = [
        rung,
        cancelled,
        *(threading.Thread(target=one, args=(number,)) for number in range(4)),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return told


def slept(url: str, client: httpx.Client) -> Any:
    """Threads that sleep, beside threads that ask."""
    told: list[Any] = []

    def sleep(number: int) -> None:
        time.sleep(APART * number / 4)
        told.append(f"slept {number}")

    def one(number: int) -> None:
        told.append((number, post(client, url)))

    with ThreadPoolExecutor(6) as pool:
        wait(
            [
                *(pool.submit(sleep, n) for n in range(1, 4)),
                *(pool.submit(one, n) for n in range(3)),
            ]
        )
    return told


def one_after_the_other(url: str, client: httpx.Client) -> Any:
    """Tools in a pool whose calls hardly ever overlap, and no reply tells which came first."""
    told: list[Any] = []

    @tape.tool
    def first(x: int) -> int:
        return x

    @tape.tool
    def second(x: int) -> int:
        raise ValueError(x)

    def work(function: Callable[[int], int], x: int, out: list[str]) -> None:
        with contextlib.suppress(ValueError):
            function(x)
        out.append(function.__name__)

    with ThreadPoolExecutor(4) as pool:
        for number in range(4):
            out: list[str] = []
            wait([pool.submit(work, second, number, out), pool.submit(work, first, number, out)])
            told.append(">".join(out))
    return told


def begun(url: str, client: httpx.Client) -> Any:
    """More work than threads: each says that it began before it asks, and who waits says what came."""
    told: list[Any] = []

    def one(number: int) -> str:
        told.append(f"began {number}")
        answer = post(client, url)
        told.append(f"got {number}")
        return answer

    with ThreadPoolExecutor(3) as pool:
        futures = [pool.submit(one, number) for number in range(7)]
        told.append("all are handed out")
        for future in as_completed(futures):
            told.append((futures.index(future), future.result()))
    return told


def pooled(url: str, client: httpx.Client) -> Any:
    """`multiprocessing.pool.ThreadPool`, as its items come."""
    told: list[Any] = []

    def one(number: int) -> Any:
        told.append(f"began {number}")
        return number, post(client, url)

    with ThreadPool(3) as pool:
        for item in pool.imap_unordered(one, range(6)):
            told.append(item)
    return told


def streams_in_threads(url: str, client: httpx.Client) -> Any:
    told: list[Any] = []

    def one(number: int) -> None:
        with client.stream("POST", f"{url}/stream", json={"q": "same"}) as reply:
            for chunk in reply.iter_raw():
                told.append((number, chunk.decode()))
        told.append((number, "ended"))

    threads = [threading.Thread(target=one, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return told


def streams_of_requests(url: str, _: httpx.Client) -> Any:
    """The same by requests, whose bodies urllib3 reads."""
    import requests

    told: list[Any] = []

    def one(number: int) -> None:
        with requests.post(f"{url}/stream", json={"q": "same"}, stream=True) as reply:
            for chunk in reply.iter_content(None):
                told.append((number, chunk.decode()))
        told.append((number, "ended"))

    threads = [threading.Thread(target=one, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return told


def against_a_timer(url: str, client: httpx.Client) -> Any:
    """Whoever is first sets what the others then find set: three replies and a timer."""
    won: list[Any] = []
    first = threading.Event()

    def claim(who: Any) -> None:
        if not first.is_set():
            first.set()
            won.append(who)

    timer = threading.Timer(APART / 4, claim, ["the timer"])
    threads = [
        threading.Thread(target=lambda number=number: claim((number, post(client, url))))
        for number in range(3)
    ]
    for thread in (timer, *threads):
        thread.start()
    for thread in (timer, *threads):
        thread.join()
    return won


def handed_on(url: str, client: httpx.Client) -> Any:
    """Producers and consumers around a condition."""
    told: list[Any] = []
    ready: list[Any] = []
    there = threading.Condition()

    def produce(number: int) -> None:
        answer = post(client, url)
        with there:
            ready.append((number, answer))
            there.notify()

    def consume(name: str) -> None:
        for _ in range(2):
            with there:
                there.wait_for(lambda: ready)
                item = ready.pop(0)
            told.append((item, post(client, url)))

    threads = [threading.Thread(target=produce, args=(number,)) for number in range(4)]
    threads += [threading.Thread(target=consume, args=(name,)) for name in "xy"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return told


def semaphore(url: str, client: httpx.Client) -> Any:
    """Threads behind a semaphore: which of them goes on is the machine's choice, and has to be said."""
    told: list[Any] = []
    two = threading.Semaphore(2)

    def one(number: int) -> None:
        with two:
            told.append((number, post(client, url)))

    with ThreadPoolExecutor(6) as pool:
        wait([pool.submit(one, number) for number in range(6)])
    return told


def of_threads(program: Callable[[str, httpx.Client], Any]) -> Program:
    def run(url: str) -> Any:
        with httpx.Client() as client:
            return [program(url, client) for _ in range(PER_BLOCK)]

    return run


# ---------------------------------------------------------------- LangGraph


class State(TypedDict):
    got: Annotated[list[Any], operator.add]


def graph(node: Callable[[str], Any], names: str = "abcd") -> Any:
    from langgraph.graph import START, StateGraph

    made = StateGraph(State)
    for name in names:
        made.add_node(name, node(name))
        made.add_edge(START, name)
    return made.compile()


def langgraph(url: str, client: httpx.Client) -> Any:
    """Parallel branches with equal requests, streamed: LangGraph's own threads."""
    from langgraph.config import get_stream_writer

    def node(name: str) -> Any:
        def answered(state: State) -> Any:
            write = get_stream_writer()
            answer = post(client, url)
            write((name, answer))
            return {"got": [(name, answer)]}

        return answered

    return list(graph(node).stream({"got": []}, stream_mode=["updates", "custom"]))


def langgraph_prints(url: str, client: httpx.Client) -> Any:
    """More branches than LangGraph has threads; each tells that it began, and the reader what came."""
    told: list[Any] = []

    def node(name: str) -> Any:
        def answered(state: State) -> Any:
            told.append(f"adding {name} to {len(state['got'])}")
            return {"got": [(name, post(client, url))]}

        return answered

    for update in graph(node, "abcdefgh").stream({"got": []}, {"max_concurrency": 3}):
        told.append(update)
    return told


def langgraph_writes(url: str, client: httpx.Client) -> Any:
    """Branches and their tools write to the stream between other things that they do."""
    from langgraph.config import get_stream_writer

    told: list[Any] = []

    @tape.tool
    def work(name: str) -> str:
        for number in range(3):
            get_stream_writer()((name, number))
            time.sleep(random.random() * APART / 8)
        return name

    def node(name: str) -> Any:
        def answered(state: State) -> Any:
            get_stream_writer()((name, "begins"))
            told.append(f"{name} began")
            work(name)
            told.append(f"{name} worked")
            return {"got": [(name, post(client, url))]}

        return answered

    for update in graph(node, "ab").stream({"got": []}, stream_mode=["updates", "custom"]):
        told.append(update)
    return told


async def langgraph_tasks(url: str, client: httpx.AsyncClient) -> Any:
    def node(name: str) -> Any:
        async def answered(state: State) -> Any:
            return {"got": [(name, await ask(client, url))]}

        return answered

    return [update async for update in graph(node).astream({"got": []}, stream_mode="updates")]


TASKS = (
    first_wins,
    completed,
    group,
    queued,
    timeouts,
    streams,
    tools,
    first_wins_aiohttp,
    workers,
    behind_a_semaphore,
    merged,
    nursery,
    deadlines,
    in_threads,
    langgraph_tasks,
)
THREADS = (
    first_done, futures_completed, listed, thread_queue, woken, timer, slept, one_after_the_other, semaphore, begun, pooled,
    streams_in_threads, streams_of_requests, against_a_timer, handed_on, langgraph, langgraph_prints, langgraph_writes,
)  # fmt: skip
PROGRAMS: dict[str, Program] = {
    **{program.__name__: of_tasks(program) for program in TASKS},
    **{program.__name__: of_threads(program) for program in THREADS},
}


# ---------------------------------------------------------------- rounds


def rounds(program: Program, url: str, count: int, *, tell: bool = False) -> dict[str, Any]:
    """What came of so many rounds: how many ended otherwise in replay and the tape said so, or did not."""
    said = silent = warned = 0
    for _ in range(0, count, PER_BLOCK):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "race.tape.yaml"
            with tape.recording(path):
                recorded = program(url)
            with tape.replaying(path) as block:
                replayed = program(url)
            differ = sum(before != after for before, after in zip(recorded, replayed, strict=True))
            told = bool(block.report.warnings)
            warned += told
            said, silent = said + (differ if told else 0), silent + (0 if told else differ)
            if differ and tell:
                pair = next(
                    pair for pair in zip(recorded, replayed, strict=True) if pair[0] != pair[1]
                )
                print(*pair, *block.report.warnings, sep="\n  ", file=sys.stderr)
    return {
        "rounds": count,
        "otherwise_and_said": said,
        "otherwise_in_silence": silent,
        "warned_blocks": warned,
    }


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--busy", type=int, default=0)
    parser.add_argument("--only", default="")
    parser.add_argument("--tell", action="store_true", help="show what differs")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    names = [name for name in asked.only.split(",") if name] or list(PROGRAMS)
    silent = 0
    with provider() as url, busy(asked.busy):
        for name in names:
            began = time.monotonic()
            found = {"program": name, **rounds(PROGRAMS[name], url, asked.rounds, tell=asked.tell)}
            silent += found["otherwise_in_silence"]
            if asked.json:
                print(json.dumps({**found, "busy": asked.busy}), flush=True)
            else:
                counts = (
                    f"{found['rounds']} rounds, otherwise {found['otherwise_and_said']} said and "
                )
                counts += (
                    f"{found['otherwise_in_silence']} in silence; {found['warned_blocks']} of "
                )
                counts += f"{found['rounds'] // PER_BLOCK} blocks warned, {time.monotonic() - began:.0f} s"
                print(f"{name:20} {counts}", flush=True)
    return 1 if silent else 0


if __name__ == "__main__":
    sys.exit(main())
