"""Notebooks of people who build agents: tools that do things, each as (state and tools, the taped cell).

Every notebook begins with SET_UP. `agent(name, handle, times)` asks the model, runs the tool that it asks for, hands the
result back, until it is done; `handle(name, arguments)` runs the tool as the notebook does.
"""

from __future__ import annotations

SET_UP = """%load_ext tape_jupyter
import anthropic, asyncio, collections, contextlib, contextvars, dataclasses, functools, io, itertools, json, logging, os
import pathlib, random, sqlite3, sys, threading, warnings
from concurrent.futures import ThreadPoolExecutor
from IPython.display import HTML, Markdown, clear_output, display
client = anthropic.Anthropic(base_url="BASE", api_key="k")
schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}

def agent(name, handle, times=2):
    said = []
    for turn in range(times):
        messages = [{"role": "user", "content": f"weather in Oslo, turn {turn}"}]
        while True:
            reply = client.messages.create(model="m", max_tokens=9, messages=messages, tools=[{"name": name, "input_schema": schema}])
            uses = [block for block in reply.content if block.type == "tool_use"]
            if not uses:
                said.append(reply.content[0].text)
                break
            results = [{"type": "tool_result", "tool_use_id": use.id, "content": str(handle(use.name, use.input))} for use in uses]
            messages += [{"role": "assistant", "content": [use.model_dump(mode="json", exclude_none=True) for use in uses]}, {"role": "user", "content": results}]
    return said

def by_name(name, given):
    return globals()[name](**given)
"""

PLAIN = "agent('{}', by_name)"

NOTEBOOKS: dict[str, tuple[str, str]] = {
    "todo list and an alias": (
        "todo = []\nalias = todo\ndef add_todo(city):\n    todo.append(city)\n    print('added', city)\n    return 'ok'",
        PLAIN.format("add_todo") + "\nprint(todo, alias is todo)",
    ),
    "a cart with nested objects": (
        "class Line:\n    def __init__(self, item):\n        self.item, self.count = item, 1\n"
        "class Cart:\n    total = 0\n    def __init__(self):\n        self.lines, self.last = {}, None\n"
        "    def add(self, city):\n        line = self.lines.get(city)\n        if line is None:\n            line = self.lines[city] = Line(city)\n"
        "        else:\n            line.count += 1\n        self.last = line\n        Cart.total += 1\n        return line.count\ncart = Cart()",
        "agent('add', lambda name, given: getattr(cart, name)(**given))\nprint(cart.last is [*cart.lines.values()][-1], cart.last.count)",
    ),
    "a ledger of dataclasses": (
        "@dataclasses.dataclass\nclass Entry:\n    city: str\n    price: float\n    tags: list = dataclasses.field(default_factory=list)\n"
        "ledger = {}\ndef book(city):\n    entry = ledger.setdefault(city, Entry(city, 1.5))\n    entry.tags.append(len(entry.tags))\n    return entry",
        PLAIN.format("book"),
    ),
    "a cache in a dict": (
        "cache, hits = {}, collections.Counter()\ndef fetch(city):\n    if city in cache:\n        hits[city] += 1\n        return cache[city]\n"
        "    cache[city] = {'city': city, 'rain': 3}\n    return cache[city]",
        PLAIN.format("fetch"),
    ),
    "a global counter": (
        "count = 0\ndef visit(city):\n    global count, last\n    count += 1\n    last = city\n    return count",
        PLAIN.format("visit"),
    ),
    "a closure's counter": (
        "def make():\n    count, seen = 0, []\n    def visit(city):\n        nonlocal count\n        count += 1\n        seen.append((city, count))\n        return count\n"
        "    return visit, lambda: (count, seen)\nvisit, state = make()",
        PLAIN.format("visit") + "\nprint(state())",
    ),
    "a logger with a handler of its own": (
        "records = []\nclass Keep(logging.Handler):\n    def emit(self, record):\n        records.append((record.levelname, record.getMessage()))\n"
        "log = logging.getLogger('agent')\nlog.setLevel('INFO')\nlog.addHandler(Keep())\nlog.addHandler(logging.StreamHandler(sys.stdout))\n"
        "def look(city):\n    log.info('looking for %s', city)\n    try:\n        1 / 0\n    except ZeroDivisionError:\n        log.exception('failed')\n    return 'ok'",
        PLAIN.format("look"),
    ),
    "a table that grows": (
        "import pandas as pd\nframe = pd.DataFrame({'city': [], 'n': []})\nfixed = pd.DataFrame({'n': [1, 2]})\nsame = fixed\n"
        "def add_row(city):\n    global frame\n    frame = pd.concat([frame, pd.DataFrame({'city': [city], 'n': [len(frame)]})], ignore_index=True)\n"
        "    fixed.loc[len(fixed)] = len(fixed)\n    fixed['twice'] = fixed['n'] * 2\n    return len(frame)",
        PLAIN.format("add_row") + "\nprint(same is fixed)\nframe",
    ),
    "an array": (
        "import numpy as np\ngrid = np.zeros((2, 3))\nview = grid\ndef mark(city):\n    grid[0, int(grid.sum()) % 3] += 1\n    return float(grid.sum())",
        PLAIN.format("mark") + "\nprint(view is grid)",
    ),
    "sqlite in memory": (
        "db = sqlite3.connect(':memory:')\ndb.execute('CREATE TABLE orders (city)')\ndef order(city):\n    db.execute('INSERT INTO orders VALUES (?)', (city,))\n    return db.total_changes",
        PLAIN.format("order") + "\nprint(db.execute('SELECT count(*) FROM orders').fetchall())",
    ),
    "sqlite in a file": (
        "db = sqlite3.connect('orders.db')\ndb.execute('CREATE TABLE IF NOT EXISTS orders (city)')\ndef order(city):\n    with db:\n        db.execute('INSERT INTO orders VALUES (?)', (city,))\n    return 'ok'",
        PLAIN.format("order") + "\nprint(db.execute('SELECT count(*) FROM orders').fetchall())",
    ),
    "a json file": (
        "def save(city):\n    path = pathlib.Path('notes.json')\n    notes = json.loads(path.read_text()) if path.exists() else []\n    path.write_text(json.dumps([*notes, city]))\n    return len(notes)",
        PLAIN.format("save") + "\nprint(open('notes.json').read())",
    ),
    "text, csv, a folder, a file removed": (
        "open('old.txt', 'w').write('old')\ndef write(city):\n    os.makedirs('out', exist_ok=True)\n    with open('out/log.txt', 'a') as file:\n        file.write(city + '\\n')\n"
        "    with open('table.csv', 'w') as file:\n        file.write('a,b\\n1,2\\n')\n    if os.path.exists('old.txt'):\n        os.remove('old.txt')\n    return 'ok'",
        PLAIN.format("write") + "\nprint(sorted(os.listdir('.')), open('out/log.txt').read())",
    ),
    "a file that is open": (
        "out = open('log.txt', 'w')\nout.write('begin\\n')\ndef note(city):\n    out.write(city + '\\n')\n    return out.tell()",
        PLAIN.format("note") + "\nout.write('end\\n')\nout.close()\nprint(open('log.txt').read())",
    ),
    "displays and updates": (
        "def show(city):\n    display(Markdown(f'**{city}**'))\n    handle = display(HTML('<b>0</b>'), display_id=True)\n    handle.update(HTML('<b>1</b>'))\n    print('shown', file=sys.stderr)\n    return 'ok'",
        PLAIN.format("show"),
    ),
    "clear_output and a progress line": (
        "def work(city):\n    for n in range(3):\n        clear_output(wait=True)\n        print('step', n)\n    return 'ok'",
        "print('before')\n" + PLAIN.format("work") + "\nprint('after')",
    ),
    "a tqdm bar": (
        "from tqdm import tqdm\ndef crunch(city):\n    return sum(tqdm(range(3), file=sys.stdout, bar_format='{n}/{total}'))",
        PLAIN.format("crunch"),
    ),
    "a figure that the tool shows": (
        "%matplotlib inline\nimport matplotlib.pyplot as plt\ndef plot(city):\n    plt.figure(figsize=(1, 1))\n    plt.plot([1, 2])\n    plt.show()\n    return 'ok'",
        PLAIN.format("plot"),
    ),
    "warnings": (
        "def old(city):\n    warnings.warn(f'{city} is old', DeprecationWarning, stacklevel=1)\n    warnings.warn('careful')\n    return 'ok'",
        PLAIN.format("old"),
    ),
    "async tools together": (
        "log = []\nasync def fetch(city):\n    log.append(f'begin {city}')\n    await asyncio.sleep(0.001)\n    log.append(f'end {city}')\n    print('fetched', city)\n    return len(log)\n"
        "async def run(name, given):\n    return await fetch(**given)",
        "agent_reply = client.messages.create(model='m', max_tokens=9, tools=[{'name': 'fetch', 'input_schema': schema}], messages=[{'role': 'user', 'content': 'in Oslo'}])\n"
        "print(await asyncio.gather(fetch('a'), fetch('b'), fetch('c')))",
    ),
    "tools in threads": (
        "lock, log = threading.Lock(), []\ndef fetch(city):\n    with lock:\n        log.append(city)\n    return city.upper()",
        "client.messages.create(model='m', max_tokens=9, tools=[{'name': 'fetch', 'input_schema': schema}], messages=[{'role': 'user', 'content': 'in Oslo'}])\n"
        "with ThreadPoolExecutor(3) as pool:\n    print(list(pool.map(fetch, 'abcdef')))\nprint(sorted(log))",
    ),
    "handlers in a dict": (
        "memo = []\ndef _impl(city):\n    memo.append(city)\n    return len(memo)\nHANDLERS = {'get_weather': _impl, 'again': functools.partial(_impl)}",
        "agent('get_weather', lambda name, given: HANDLERS[name](**given))\nprint(memo)",
    ),
    "a registry by decorator": (
        "REGISTRY, CALLS = {}, collections.defaultdict(list)\ndef register(function):\n    REGISTRY[function.__name__] = function\n    return function\n"
        "@register\ndef lookup(city):\n    CALLS['lookup'].append(city)\n    return len(CALLS['lookup'])",
        "agent('lookup', lambda name, given: REGISTRY[name](**given))\nprint(dict(CALLS))",
    ),
    "a tool that fails after it changed something": (
        "account = {'tried': 0}\ndef pay(city):\n    account['tried'] += 1\n    print('trying')\n    raise ValueError('no money')",
        "def handle(name, given):\n    try:\n        return by_name(name, given)\n    except ValueError as error:\n        return repr(error)\nagent('pay', handle)\nprint(account)",
    ),
    "a context variable and the environment": (
        "user = contextvars.ContextVar('user', default='nobody')\ndef login(city):\n    user.set(city)\n    os.environ['CHOSEN_CITY'] = city\n    return 'ok'",
        PLAIN.format("login") + "\nprint(user.get(), os.environ['CHOSEN_CITY'])",
    ),
    "ids, draws and times": (
        "ids, rng = itertools.count(1), random.Random(3)\nstamped = []\nimport time, uuid\ndef stamp(city):\n    stamped.append((next(ids), rng.random(), time.time(), str(uuid.uuid4())))\n    return len(stamped)",
        PLAIN.format("stamp") + "\nprint(stamped, next(ids), rng.random())",
    ),
    "a small vector store": (
        "import numpy as np\nclass Store:\n    def __init__(self):\n        self.texts, self.vectors = [], np.zeros((0, 3))\n    def add(self, text):\n        self.texts.append(text)\n        self.vectors = np.vstack([self.vectors, np.full((1, 3), len(text))])\n"
        "    def search(self, vector):\n        return self.texts[int((self.vectors @ vector).argmax())] if self.texts else None\nstore = Store()\ndef remember(city):\n    store.add(city)\n    return store.search(np.ones(3))",
        PLAIN.format("remember"),
    ),
    "a chat memory": (
        "class Memory:\n    def __init__(self):\n        self.turns, self.parent = [], None\n    def fork(self):\n        child = Memory()\n        child.parent = self\n        self.turns.append(child)\n        return child\nmemory = Memory()\n"
        "def note(city):\n    child = memory.fork()\n    child.turns.append({'role': 'user', 'content': city})\n    return len(memory.turns)",
        PLAIN.format("note") + "\nprint(memory.turns[0].parent is memory)",
    ),
    "a tool that calls a tool": (
        "import tape_jupyter as tape\nlog = []\n@tape.tool\ndef inner(city):\n    log.append('inner')\n    print('inner')\n    return city\ndef outer(city):\n    log.append('before')\n    inner(city)\n    log.append('after')\n    return len(log)",
        PLAIN.format("outer") + "\nprint(log)",
    ),
    "a generator as a tool": (
        "rows = []\ndef stream(city):\n    for n in range(3):\n        rows.append(n)\n        print('row', n)\n        yield f'{city} {n}'",
        "agent('stream', lambda name, given: list(stream(**given)))\nprint(rows)",
    ),
    "sets, deques, bytes": (
        "seen, recent, raw = set(), collections.deque(maxlen=2), bytearray()\ndef see(city):\n    seen.add(city)\n    recent.append(len(seen))\n    raw.extend(city.encode())\n    return len(raw)",
        PLAIN.format("see"),
    ),
    "a module of one's own": (
        "pathlib.Path('shop.py').write_text('stock = {}\\ncount = 0\\ndef put(city):\\n    global count\\n    count += 1\\n    stock[city] = count\\n    return count\\n')\nsys.path.insert(0, '')\nimport shop\nput = shop.put",
        PLAIN.format("put") + "\nprint(shop.stock, shop.count)",
    ),
    "a graph of LangGraph": (
        "from langchain_core.tools import tool\nfrom langchain_core.messages import AIMessage\nfrom langgraph.graph import StateGraph, MessagesState, START, END\nfrom langgraph.prebuilt import ToolNode\nfrom langgraph.config import get_stream_writer\n"
        "notes = []\n@tool\ndef search(city: str) -> str:\n    '''Search.'''\n    get_stream_writer()({'looking': city})\n    notes.append(city)\n    print('searching')\n    return 'rain'\n"
        "call = {'name': 'search', 'args': {'city': 'Oslo'}, 'id': 'c1', 'type': 'tool_call'}\ngraph = StateGraph(MessagesState)\ngraph.add_node('model', lambda state: {'messages': [AIMessage(content='', tool_calls=[call], id='m1')]})\n"
        "graph.add_node('tools', ToolNode([search]))\ngraph.add_edge(START, 'model')\ngraph.add_edge('model', 'tools')\ngraph.add_edge('tools', END)\napp = graph.compile()",
        "for mode, chunk in app.stream({'messages': []}, stream_mode=['custom', 'updates']):\n    print(mode, chunk if mode == 'custom' else list(chunk))",
    ),
}
