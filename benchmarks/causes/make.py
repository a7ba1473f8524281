"""Records the planted causes: `python -m benchmarks.causes.make [NAME...]`.

Each case (cases.py, others.py, aside.py, sdks.py) is a notebook that is recorded twice, in a good world and in a bad one: the model and the tools
say what the world makes them say. Each recording is made in a fork of a process that has imported everything, by the
extension itself. What lies in the folders is what a person would have: a notebook, two cassettes, and the known answer.
"""

import json
import os
import re
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import nbformat

from benchmarks.causes.aside import ASIDE
from benchmarks.causes.cases import CASES, Case
from benchmarks.causes.others import OTHERS
from benchmarks.causes.sdks import SDKS

HERE = Path(__file__).parent
WORLDS = ("good", "bad")
PORT = 8907
SETUP = f"""%load_ext tape_jupyter
import json, os, urllib.request
import tape_jupyter as tape

def ask(text, history=()):
    body = {{"model": "claude-sonnet-4-5", "max_tokens": 200, "messages": [*history, {{"role": "user", "content": text}}]}}
    request = urllib.request.Request("http://127.0.0.1:{PORT}/v1/messages", json.dumps(body).encode(),
                                     {{"content-type": "application/json"}})
    with urllib.request.urlopen(request) as reply:
        return json.load(reply)["content"][0]["text"]"""


class Model(BaseHTTPRequestHandler):
    """Answers by the last words that a person said, in the world of now, as Anthropic's or OpenAI's host does. An
    answer that has `once` comes the first time only; then it is those words.
    """

    case: Case = None
    world = "good"
    answered: set = set()
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        asked = request["messages"][-1]["content"]
        told, seconds = self.case.answer(asked, self.world)
        time.sleep(seconds)
        told = told if isinstance(told, dict) else {"text": told}
        if "once" in told and asked in self.answered:
            told = {"text": told["once"]}
        self.answered.add(asked)
        if self.path.endswith("/chat/completions"):
            self.send(told.get("status", 200), "application/json", completion(told))
            return
        text = told["text"]
        body = {
            "id": f"msg_{os.urandom(4).hex()}",
            "type": "message",
            "role": "assistant",
            "model": "claude-sonnet-4-5-20250929",
            "content": [{"type": "text", "text": text}],
            "stop_reason": told.get("stop_reason", "end_turn"),
            "stop_sequence": None,
            "usage": {"input_tokens": len(asked), "output_tokens": told.get("tokens", len(text))},
        }
        streams = request.get("stream")
        data = b"".join(events(body)) if streams else json.dumps(body).encode()
        kind = "text/event-stream" if streams else "application/json"
        self.send(told.get("status", 200), kind, data)

    def send(self, status, kind, data):
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


def completion(told):
    """What OpenAI's host answers: a text, or calls of tools (`tool_calls`: names with arguments)."""
    made = [
        {"id": f"call_{os.urandom(4).hex()}", "type": "function", "function": {"name": name, "arguments": json.dumps(given)}}
        for name, given in told.get("tool_calls", ())
    ]  # fmt: skip
    message = {
        "role": "assistant",
        "content": told["text"],
        **({"tool_calls": made} if made else {}),
    }
    body = {
        "id": f"chatcmpl-{os.urandom(4).hex()}", "object": "chat.completion", "created": 1, "model": "gpt-4o-2024-08-06",
        "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls" if made else "stop"}],
        "usage": {"prompt_tokens": 9, "completion_tokens": 9, "total_tokens": 18},
    }  # fmt: skip
    return json.dumps(body).encode()


def events(body):
    """The same as a stream, a word a part."""
    text = body["content"][0]["text"]
    empty = {"type": "text", "text": ""}
    told = [
        {"type": "message_start", "message": {**body, "content": [], "stop_reason": None}},
        {"type": "content_block_start", "index": 0, "content_block": empty},
        *(
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": f"{word} "}}
            for word in text.split()
        ),
        {"type": "content_block_stop", "index": 0},
        {
            "type": "message_delta",
            "delta": {"stop_reason": body["stop_reason"], "stop_sequence": None},
            "usage": {"output_tokens": body["usage"]["output_tokens"]},
        },
        {"type": "message_stop"},
    ]  # fmt: skip
    for each in told:
        yield f"event: {each['type']}\ndata: {json.dumps(each)}\n\n".encode()


def write(path: Path, sources) -> None:
    cells = [
        nbformat.v4.new_code_cell(source, id=f"cell-{n}") for n, source in enumerate(sources, 1)
    ]
    made = nbformat.v4.new_notebook(cells=cells)
    made.metadata["kernelspec"] = {
        "name": "python3",
        "display_name": "Python 3",
        "language": "python",
    }
    nbformat.write(made, path)


def recorded(notebook: Path, sources, world: str, check: str) -> bool:
    """In a fork: run the cells, recording. Only what was imported before is shared. Whether the world came out as it is to."""
    child = os.fork()
    if child:
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) in (0, 3), f"{notebook}: {world}"
        return status == 0
    try:
        os.chdir(notebook.parent)
        os.environ |= {
            "TAPE_MODE": "record",
            "TAPE_NOTEBOOK": str(notebook),
            "WORLD": world,
            "PYTHONHASHSEED": "0",
        }
        from tape_jupyter import load_ipython_extension
        from tape_jupyter.dataflow.isolated.worker import execute_in_shell, shell

        live = shell()
        load_ipython_extension(live)
        for number, source in enumerate(sources, 1):
            ran = execute_in_shell(live, source, f"cell-{number}")
            if ran["error"]:
                print(
                    f"    {world}: cell {number}: {ran['text'].strip().splitlines()[-1]}",
                    flush=True,
                )
                break
        holds = (
            not ran["error"]
            if check.startswith("cell:")
            else eval(check, live.user_ns)
            if check
            else world == "good"
        )
        status = 0 if bool(holds) == (world == "good") else 3
    except BaseException as error:
        print(error, file=sys.__stderr__, flush=True)
        os._exit(1)
    os._exit(status)


def made(case: Case) -> None:
    """The folder of a case, recorded until both worlds are what they are to be (chance is real)."""
    import shutil

    from tape_jupyter.cassette.cassette import Cassette

    folder = HERE / case.folder / case.name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    Model.case = case
    files = {}
    for world in WORLDS:
        sources = [SETUP, *case.cells_of(world)]
        name = "good" if world == "good" and case.good_cells else "agent"
        notebook = folder / f"{name}.ipynb"
        write(notebook, sources)
        Model.world = world
        tape = notebook.with_suffix(".tapes") / "main.tape.yaml"
        check = "" if case.clocks else case.check
        for _ in range(40):
            tape.unlink(missing_ok=True)
            Model.answered.clear()
            if recorded(notebook, sources, world, check):
                break
        else:
            raise AssertionError(f"{case.name}: never as it is to be in the {world} world")
        text = tape.read_text(encoding="utf-8")
        for cell, wall in case.walls(world).items():
            text = moved(text, cell, wall)
        tape.write_text(text, encoding="utf-8")
        if world == "good" and not case.good_cells:
            tape = tape.rename(tape.with_name("good.tape.yaml"))
        files[world] = tape
    bad = Cassette.open(files["bad"])
    cause = {
        "kind": case.kind, "check": case.check, "bad": "main",
        "good": "good" if not case.good_cells else "good.tapes/main.tape.yaml",
        "minimal": [sorted(resolved(bad, each) for each in answer) for answer in case.minimal],
    }  # fmt: skip
    (folder / "cause.json").write_text(json.dumps(cause, indent=1) + "\n", encoding="utf-8")
    for left in folder.iterdir():
        if left.suffix not in (".ipynb", ".tapes", ".json"):
            left.unlink()


def moved(text: str, cell: int, wall: int) -> str:
    """The tape with the clock of a cell at another moment (nanoseconds since the epoch)."""
    start = text.index(f"cell: cell-{cell}\n")
    return text[:start] + re.sub(r"(wall: )\d+", rf"\g<1>{wall}", text[start:], count=1)


def resolved(tape, word: str) -> str:
    """The id of `model WORDS` (the call whose last message holds them), `tool NAME n`, `call n`; else the word itself."""
    kind, _, rest = word.partition(" ")
    if kind == "model":
        found = [e for e in tape.calls if e.head()["kind"] == "model" and rest in asked(e)]
        assert len(found) == 1, (word, found)
        return found[0].id
    if kind in ("tool", "retrieval"):
        name, _, number = rest.partition(" ")
        found = [e for e in tape.calls if e.head().get("name") == name]
        return found[int(number or 1) - 1].id
    if kind == "call":
        return tape.calls[int(rest) - 1].id
    return word


def asked(entry) -> str:
    return json.loads(entry.request().body)["messages"][-1]["content"]


def main() -> None:
    server = ThreadingHTTPServer(("127.0.0.1", PORT), Model)
    import time_machine  # noqa: F401
    import tape_jupyter.dataflow.isolated.worker
    import tape_jupyter.jupyter.magics  # noqa: F401

    wanted = sys.argv[1:]
    for case in [*CASES, *OTHERS, *ASIDE, *SDKS]:
        if wanted and case.name not in wanted:
            continue
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        print(case.name, flush=True)
        made(case)
        server.shutdown()
        thread.join()


if __name__ == "__main__":
    main()
