"""What tools of a notebook did is done again in a fresh kernel, without a provider: outputs, variables, files."""

import json
import re
import subprocess
import sys

import pytest

from tests.harness.notebook import Kernel, clean_env, notebook
from tests.harness.provider import Provider

SET_UP = """%load_ext tape_jupyter
import dataclasses, logging, os, plain_claude, sqlite3, sys, warnings
import pandas as pd
from IPython.display import display, Markdown, clear_output
client = plain_claude.Claude(base_url="BASE", api_key="k")
todo, ledger, seen, records = [], {}, set(), []
frame = pd.DataFrame({"item": []})
count = 0
alias = todo
database = sqlite3.connect(":memory:")
database.execute("CREATE TABLE orders (item)")

class Keep(logging.Handler):
    def emit(self, record):
        records.append(record.getMessage())

log = logging.getLogger("shop")
log.addHandler(Keep())

@dataclasses.dataclass
class Entry:
    item: str
    price: float

class Cart:
    def __init__(self):
        self.items = []
    def add(self, item):
        self.items.append(item)
        return len(self.items)

cart = Cart()

def add_todo(item):
    global count, frame
    count += 1
    todo.append(item)
    seen.add(item)
    ledger[item] = Entry(item, 1.5)
    frame = pd.concat([frame, pd.DataFrame({"item": [item]})], ignore_index=True)
    database.execute("INSERT INTO orders VALUES (?)", (item,))
    log.warning("%s is dear", item)
    print("added", item)
    print("careful", file=sys.stderr)
    shown = display(Markdown(f"**{item}**"), display_id=True)
    shown.update(Markdown(f"*{item}*"))
    with open("todo.txt", "a") as file:
        file.write(item + "\\n")
    return "ok"

HANDLERS = {"add_todo": add_todo, "add": cart.add}
TOOLS = [{"name": n, "input_schema": {"type": "object", "properties": {"item": {"type": "string"}}}} for n in HANDLERS]
"""

AGENT = """%%tape MODE
reply = client.messages.create(model='m', max_tokens=9, messages=[{'role': 'user', 'content': 'weather in Oslo'}], tools=TOOLS)
print(HANDLERS["add_todo"]("milk"), HANDLERS["add_todo"]("eggs"), HANDLERS["add"]("tea"))"""

STATE = """print(todo, alias is todo, sorted(seen), ledger, cart.items, count, list(frame["item"]), records)
print(database.execute("SELECT item FROM orders").fetchall(), open("todo.txt").read())"""


@pytest.fixture(scope="module")
def provider():
    with Provider() as provider:
        yield provider


def session(folder, mode, provider):
    """The outputs of the three cells in a fresh kernel; files lie in the folder."""
    set_up = SET_UP.replace("BASE", provider.url)
    with Kernel(folder, {"TAPE_NOTEBOOK": str(notebook(folder / "nb.ipynb", "x"))}) as kernel:
        ran = [kernel.execute(source) for source in (set_up, AGENT.replace("MODE", mode), STATE)]
        assert all(each.ok for each in ran), "".join(each.traceback[-900:] for each in ran)
        return [
            [_plain(output) for output in each.outputs if not _is_summary(output)] for each in ran
        ], ran[1].summary


def _is_summary(output):
    return "tape" in output.get("metadata", {})


def _plain(output):
    return (
        output.get("text")
        or output.get("data", {}).get("text/markdown")
        or output.get("data", {}).get("text/plain")
    )


def test_a_notebook_in_another_folder_has_the_same_outputs_variables_and_files(tmp_path, provider):
    recorded, other = tmp_path / "recorded", tmp_path / "other"
    recorded.mkdir(), other.mkdir()
    live, _ = session(recorded, "record", provider)
    (recorded / "nb.tapes").rename(other / "nb.tapes")
    sent = len(provider.requests)
    replayed, summary = session(other, "replay", provider)
    assert replayed == live
    assert (
        "added milk" in str(live[1]) and "*milk*" in str(live[1]) and "milk is dear" in str(live[2])
    )
    assert (other / "todo.txt").read_text() == "milk\neggs\n"
    assert len(provider.requests) == sent
    assert "did not happen" not in summary


HELD = """import tape_jupyter as tape, threading
box = {}
@tape.tool
def work(name):
    box["lock"] = threading.Lock()
    return name"""


def run_tape(folder, *words, **env):
    return subprocess.run(
        [sys.executable, "-m", "tape_jupyter", *words],
        env=clean_env(folder) | env,
        cwd=folder,
        capture_output=True,
        text=True,
    )


@pytest.mark.slow
def test_tape_replay_ends_1_where_a_tool_did_what_is_not_held(tmp_path):
    path = notebook(tmp_path / "nb.ipynb", HELD, "work('a')")
    assert run_tape(tmp_path, "record", str(path)).returncode == 0
    replayed = run_tape(tmp_path, "replay", str(path), "--json")
    assert replayed.returncode == 1, replayed.stdout + replayed.stderr
    cells = json.loads(replayed.stdout)["cells"]
    assert "box['lock']" in str(cells) and "did not happen in this replay" in str(cells)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("cell", "ends"),
    [
        ("note('a')\nkept.append(os.environ['WHO_ASKS'])", 1),
        ("note('a')\nwho = os.environ['WHO_ASKS']\nfolder, number = os.getcwd(), os.getpid()", 0),
        ("look()\nkept.append(os.environ['WHO_ASKS'])", 0),
    ],
    ids=["what a tool may have changed", "what the cell itself assigned", "without a tool"],
)
def test_tape_replay_ends_1_where_a_cell_that_played_tools_leaves_another_value(
    tmp_path, cell, ends
):
    set_up = """%load_ext tape_jupyter
import contextlib, os
import httpx
import tape_jupyter as tape
kept = []
@tape.tool
def note(word):
    return word
def look():
    with contextlib.suppress(httpx.ConnectError):
        httpx.get("http://127.0.0.1:9")"""
    path = notebook(tmp_path / "nb.ipynb", set_up, cell)
    assert run_tape(tmp_path, "record", str(path), WHO_ASKS="ada").returncode == 0
    same = run_tape(tmp_path, "replay", str(path), WHO_ASKS="ada")
    assert same.returncode == 0, same.stdout + same.stderr
    other = run_tape(tmp_path, "replay", str(path), WHO_ASKS="bob")
    assert other.returncode == ends, other.stdout + other.stderr
    if ends:
        assert "not as the recorded cell left them: kept" in other.stderr


PRINTS_AND_WRITES = """%load_ext tape_jupyter
import tape_jupyter as tape
kept = []
@tape.tool
def note(word):
    print("noting", word)
    kept.append(word)
    return word"""


@pytest.mark.slow
@pytest.mark.parametrize("command", ["record", "replay", "rerun"])
def test_commands_leave_out_what_tools_do_besides_returning(tmp_path, command):
    path = notebook(
        tmp_path / "nb.ipynb", PRINTS_AND_WRITES, "note('milk')", "print('kept', len(kept))"
    )
    left_out = ["--no-effects", "output,memory"]
    assert run_tape(tmp_path, "record", str(path)).returncode == 0
    if command == "record":
        assert run_tape(tmp_path, "record", str(path), *left_out).returncode == 0
        ran = run_tape(tmp_path, "replay", str(path))
    elif command == "rerun":
        call = json.loads(run_tape(tmp_path, "calls", str(path), "--json").stdout)[0]["call"]
        words = ["override", str(path), call, "--value", '"tea"', "--take", "tea"]
        assert run_tape(tmp_path, *words).returncode == 0
        ran = run_tape(tmp_path, "rerun", str(path), "--take", "tea", *left_out)
    else:
        ran = run_tape(tmp_path, "replay", str(path), *left_out)
    said = ran.stdout + ran.stderr
    assert "-noting milk" in said and "-kept 1" in said and "+kept 0" in said, said
    assert "recorded cell left" not in said


def both(folder, cells):
    """Of each (set-up, taped cell, look), recorded in one kernel and replayed in another: what the
    last two showed, and the summary.
    """
    (folder / "recorded").mkdir(), (folder / "replayed").mkdir()
    live = _run_each(folder / "recorded", "record", cells)
    (folder / "recorded" / "nb.tapes").rename(folder / "replayed" / "nb.tapes")
    return live, _run_each(folder / "replayed", "replay", cells)


def _run_each(folder, mode, cells):
    given = []
    env = {"TAPE_NOTEBOOK": str(notebook(folder / "nb.ipynb", "x")), "SHOP_API_KEY": SHOP_KEY}
    with Kernel(folder, env) as kernel:
        assert kernel.execute(f"%load_ext tape_jupyter\n{NAMES}").ok
        for number, (set_up, taped, look) in enumerate(cells):
            taped_cell = f"%%tape {mode}\nnumber = {number}\n{taped}"
            ran = [kernel.execute(each) for each in (set_up, taped_cell, look)]
            assert all(each.ok for each in ran), "".join(each.traceback[-900:] for each in ran)
            shown = [
                [_plain(output) for output in each.outputs if not _is_summary(output)]
                for each in ran[1:]
            ]
            given.append((re.sub(r"ipykernel_\d+", "ipykernel", str(shown)), ran[1].summary))
    return given


SHOP_KEY = "sk-shop-5f1c9be2a7d04c6e8b3a"

NAMES = """
import asyncio, contextlib, io, logging, os, subprocess, sys, warnings
import matplotlib.pyplot as plt
import tape_jupyter as tape
from IPython.display import ProgressBar, clear_output, display, update_display
from IPython.utils.capture import capture_output
%matplotlib inline
"""

GIVEN_BACK = {
    "the handle of a display": (
        "@tape.tool\ndef show_2(x):\n    handle.update(x)",
        "handle = display('start', display_id=True)\nshow_2('new')",
        "handle.update('last')",
    ),
    "a handle in an object, and its id": (
        "class Board:\n    def __init__(self):\n        self.handle = display('start', display_id=True)\n"
        "    @tape.tool\n    def put(self, x):\n        self.handle.update(x)\n"
        "@tape.tool\ndef show_by_id(x):\n    update_display(x, display_id=shown_as)",
        "Board().put('a')\nshown_as = display('b', display_id=True).display_id\nshow_by_id('c')",
        "",
    ),
    "a progress bar": (
        "@tape.tool\ndef move(x):\n    bar.progress = x",
        "bar = ProgressBar(3)\nbar.display()\nmove(2)",
        "print(bar.progress)",
    ),
    "capture_output around a tool": (
        "@tape.tool\ndef show_5(x):\n    print('p', x)\n    display(x)\n    clear_output(wait=True)\n    print('last')",
        "with capture_output() as kept:\n    show_5('a')",
        "print(repr(kept.stdout), [each.data for each in kept.outputs])",
    ),
    "what a tool catches of a tool that it calls": (
        "@tape.tool\ndef inner_6(x):\n    print('in', x)\n    display(x)\n    warnings.warn('w' + x)\n"
        "@tape.tool\ndef outer_6(x):\n    with capture_output() as kept, warnings.catch_warnings(record=True) as ws:\n"
        "        warnings.simplefilter('always')\n        inner_6(x)\n    print('got', kept.stdout, len(ws))",
        "outer_6('a')",
        "inner_6('b')",
    ),
    "redirect_stdout in a tool": (
        "buffer = io.StringIO()\n"
        "@tape.tool\ndef show_7(x):\n    with contextlib.redirect_stdout(buffer):\n        print('p', x)",
        "show_7('a')",
        "print(repr(buffer.getvalue()))",
    ),
    "catch_warnings in a tool and around it": (
        "@tape.tool\ndef warn_8(x):\n    with warnings.catch_warnings(record=True) as ws:\n"
        "        warnings.simplefilter('always')\n        warnings.warn('inner')\n"
        "    warnings.warn('outer')\n    return [str(each.message) for each in ws]",
        "with warnings.catch_warnings(record=True) as around:\n    warnings.simplefilter('always')\n    print(warn_8(1))",
        "print([str(each.message) for each in around])",
    ),
    "a handler that keeps records and their arguments": (
        "records = []\nclass Keep(logging.Handler):\n    def emit(self, record):\n"
        "        records.append(record)\n        kept.append((record.msg, record.args, record.filename == os.path.basename(record.pathname)))\n"
        "kept = []\nlog = logging.getLogger('shop')\nlog.addHandler(Keep())\nlog.propagate = False\n"
        "@tape.tool\ndef work_9(x):\n    log.warning('hi %s', x)\n    kept.append('own')\n    log.warning('%d left', 2)",
        "work_9('a')",
        "print(kept, [each.getMessage() for each in records])",
    ),
    "a function of the notebook that shows warnings": (
        "seen = []\ndef on_warning(message, category, *more):\n    seen.append((str(message), more[-1]))\n"
        "@tape.tool\ndef warn_10(x):\n    seen.append('own')\n    warnings.warn('w' + x)",
        "before, warnings.showwarning = warnings.showwarning, on_warning\nwarn_10('a')\nwarnings.showwarning = before",
        "print(seen)",
    ),
    "a stream of the notebook's": (
        "class Parts:\n    def __init__(self):\n        self.parts = []\n    def write(self, text):\n"
        "        self.parts.append(text)\n    def flush(self):\n        pass\nparts = Parts()\n"
        "@tape.tool\ndef show_11(x):\n    print('p', x)\n    return len(parts.parts)",
        "with contextlib.redirect_stdout(parts):\n    show_11('a')",
        "print(''.join(parts.parts))",
    ),
    "names with an underscore": (
        "_list = []\n@tape.tool\ndef work_12(x):\n    globals()['_name'] = x\n    globals()['_list'].append(x)",
        "work_12('a')",
        "print(_name, _list)",
    ),
    "the memory behind a graph, a chain and a node of tools": (
        "from langchain_core.messages import AIMessage\nfrom langchain_core.runnables import RunnableLambda\n"
        "from langchain_core.tools import StructuredTool\nfrom langgraph.checkpoint.memory import InMemorySaver\n"
        "from langgraph.graph import START, MessagesState, StateGraph\nfrom langgraph.prebuilt import ToolNode\n"
        "def make(wrap):\n    seen = []\n    def count(x: str) -> str:\n        'Count.'\n        seen.append(x)\n"
        "        return str(len(seen))\n    return wrap(count)\n"
        "def graph_of(node, **more):\n"
        "    graph = StateGraph(MessagesState)\n    graph.add_node('n', node)\n    graph.add_edge(START, 'n')\n"
        "    return graph.compile(**more)\n"
        "agent = graph_of(lambda state: {'messages': [AIMessage('hi')]}, checkpointer=InMemorySaver())\n"
        "chain = (RunnableLambda(str) | make(RunnableLambda)).with_config(tags=['t'])\n"
        "counting = graph_of(ToolNode([make(lambda f: StructuredTool.from_function(f, name='count'))]))\n"
        "asked = AIMessage('', tool_calls=[{'name': 'count', 'args': {'x': 'q'}, 'id': '1', 'type': 'tool_call'}])\n"
        "thread = {'configurable': {'thread_id': '1'}}\n"
        "@tape.tool\ndef ask_13(x):\n    agent.invoke({'messages': [('user', x)]}, thread)\n"
        "    return chain.invoke(x), counting.invoke({'messages': [asked]})['messages'][-1].content",
        "print(ask_13('a'))",
        "print([each.content for each in agent.get_state(thread).values['messages']], chain.invoke('b'),"
        " counting.invoke({'messages': [asked]})['messages'][-1].content)",
    ),
    "what processes print, and what is written past sys.stdout": (
        "@tape.tool\ndef run_14(x):\n    print('before')\n    subprocess.run(['echo', x])\n    os.system('echo shell ' + x)\n"
        "    subprocess.run(['mkdir', '-p', 'made'])\n    os.write(1, b'descriptor\\n')\n"
        "    sys.__stdout__.write('original\\n')\n    sys.__stdout__.flush()\n"
        "@tape.tool\ndef fail_14(x):\n    subprocess.run(['sh', '-c', 'echo error >&2'])",
        "os.system('echo mine')\nrun_14('a')\nos.system('echo mine too')\nfail_14('a')",
        "",
    ),
    "what the program's own process printed before a tool that only prints": (
        "@tape.tool\ndef say_14(x):\n    subprocess.run(['echo', 'early'])\n    print('said', x)",
        "os.system('sleep 0.05; echo mine')\nsay_14('a')\n_ = os.system('echo between')\nsay_14('b')",
        "",
    ),
    "files that are read packed, and files that are only in memory": (
        "import bz2, tempfile\nwith bz2.open('a.bz2', 'wb') as file:\n    _ = file.write(b'abcdef')\n"
        "packed, spooled = bz2.open('a.bz2'), tempfile.SpooledTemporaryFile()\n"
        "@tape.tool\ndef read_15(count):\n    _ = spooled.write(b'kept')\n    return packed.read(count)",
        "print(read_15(2))",
        "print(packed.read(), spooled.tell(), spooled.seek(0), spooled.read())",
    ),
    "tokens of a model that a tool calls, to the graph around it": (
        "from langchain_core.language_models.fake_chat_models import GenericFakeChatModel\n"
        "model = GenericFakeChatModel(messages=iter([AIMessage('big world') for _ in range(9)]))\n"
        "@tape.tool\ndef ask_16(x):\n    return model.invoke(x).content\n"
        "@tape.tool\nasync def wait_16(x):\n    return (await model.ainvoke(x)).content\n"
        "async def node_16(state):\n    return {'messages': [AIMessage(ask_16('q') + await wait_16('q'))]}\n"
        "streaming = graph_of(node_16)\n",
        "async for each, about in streaming.astream({'messages': [('user', 'a')]}, stream_mode='messages'):\n"
        "    print(each.content, about['langgraph_node'], sorted(about))",
        "",
    ),
    "the handler that a first `logging.warning` makes": (
        "@tape.tool\ndef warn_17(x):\n    logging.getLogger('early').error('early %s', x)\n    logging.warning('low on %s', x)",
        "warn_17('tea')\nwarn_17('milk')",
        "logging.error('after')\nprint(logging.root.handlers)\nlogging.root.handlers.clear()",
    ),
    "a handler by `logging.basicConfig`": (
        "@tape.tool\ndef warn_18(x):\n    logging.basicConfig(level='INFO', format='{levelname}|{message}', style='{')\n"
        "    logging.info('low on %s', x)",
        "warn_18('tea')",
        "logging.info('after')\nlogging.root.handlers.clear()\nlogging.root.setLevel('WARNING')",
    ),
}


@pytest.mark.slow
def test_where_a_tool_shows_and_keeps_things_a_replay_does(tmp_path):
    live, again = both(tmp_path, GIVEN_BACK.values())
    for name, (recorded, _), (replayed, summary) in zip(GIVEN_BACK, live, again, strict=True):
        assert replayed == recorded, name
        assert "did not happen" not in summary, name


NAMED = {
    "it left open the figure 1 of pyplot": (
        "@tape.tool\ndef draw(x):\n    plt.plot([1, x])",
        "draw(2)",
        "",
    ),
    "it drew in the figure 1 of pyplot": (
        "@tape.tool\ndef draw(x):\n    plt.plot([1, x])",
        "_ = plt.figure()\ndraw(2)",
        "",
    ),
    "holds SHOP_API_KEY, and a marker": (
        "held = {}\n@tape.tool\ndef look_1(x):\n    print('key', os.environ['SHOP_API_KEY'])",
        "look_1(1)",
        "",
    ),
    "what it gave or did holds SHOP_API_KEY": (
        "@tape.tool\ndef look_2(x):\n    held['key'] = os.environ['SHOP_API_KEY']\n    return 1",
        "look_2(1)",
        "",
    ),
    "what the process python did after it returned": (
        "@tape.tool\ndef start_3(x):\n"
        "    subprocess.Popen(['python', '-c', 'import time; time.sleep(2)'], stdout=subprocess.DEVNULL)",
        "start_3(1)",
        "",
    ),
    "a recording does not keep what a client sends": (
        "import httpx, requests\nsession, client = requests.Session(), httpx.Client()\n"
        "@tape.tool\ndef login_4(x):\n    session.headers['Authorization'] = x",
        "login_4('a')",
        "",
    ),
    "client: $: cannot freeze a httpx.Client": (
        "@tape.tool\ndef login_5(x):\n    client.cookies.set('sid', x)",
        "login_5('a')",
        "",
    ),
    "what was written to it and is compressed is not recorded": (
        "import bz2, gzip\npacked = gzip.open('a.gz', 'wt')\n"
        "@tape.tool\ndef pack_6(x):\n    packed.write(x)",
        "pack_6('a')",
        "",
    ),
    "it ran callbacks of a Told": (
        "from langchain_core.callbacks import BaseCallbackHandler\nfrom langchain_core.messages import AIMessage\n"
        "from langchain_core.language_models.fake_chat_models import GenericFakeChatModel\n"
        "from langchain_core.runnables import RunnableLambda\n"
        "model = GenericFakeChatModel(messages=iter([AIMessage('big world')]))\nheard = []\n"
        "class Told(BaseCallbackHandler):\n    def on_llm_end(self, *args, **kwargs):\n        heard.append('end')\n"
        "@tape.tool\ndef ask_7(x):\n    return model.invoke(x).content",
        "print(RunnableLambda(lambda x: ask_7(x)).invoke('q', {'callbacks': [Told()]}))",
        "",
    ),
}


@pytest.mark.slow
def test_what_a_tool_did_and_a_replay_does_not_is_named(tmp_path):
    live, again = both(tmp_path, NAMED.values())
    for what, (_, recorded), (_, replayed) in zip(NAMED, live, again, strict=True):
        assert what in recorded, what
        assert what in replayed, what
        assert "SHOP_API_KEY" in what or "did not happen in this replay" in replayed, what
