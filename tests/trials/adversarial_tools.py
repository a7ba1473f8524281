"""Notebooks of agents whose tools keep state, in which a changed reply goes another way: name -> (cells, reply, policy).

`ask(q)` is a taped call: for "q" its recorded reply is "a". R begins a taped cell.
"""

R = "%%tape record\n"
ADD = "@tape.tool\ndef add(item):\n    todo.append(item)\n    return len(todo)"

SAID = {
    "a tool that reads what changed, where nothing may go live": (
        [
            "todo = []\n" + ADD,
            R + "mood = ask()",
            R + "if mood == 'a': add('milk')",
            R + "k = add('eggs')",
            "print(todo, k)",
        ],
        "b",
        "stop",
    ),
    "tools that ran beside each other": (
        [
            "import asyncio\nseen = []\n@tape.tool\nasync def look(x):\n    await asyncio.sleep(0); seen.append(x); return x",
            R + "mood = ask()\nrs = await asyncio.gather(look(mood), look('y'))",
            "print(rs, sorted(seen))",
        ],
    ),
    "a generator that is left earlier": (
        [
            "log = []\n@tape.tool\ndef stream(x):\n    try:\n        for c in x: log.append(c); yield c\n"
            "    finally: log.append('end')",
            R
            + "mood = ask()\ng = stream('xyz')\nfirst = next(g)\nif mood == 'a': next(g)\ng.close()",
            "print(log)",
        ],
    ),
}
"""Where a recorded value may be another in a whole run, or what a tool changed: that is said."""

STOCK = "stock = {'n': 5}\n@tape.tool\ndef take(k):\n    stock['n'] -= k; return stock['n']"
COUNT = (
    "class Counter:\n    def __init__(self): self.n = 0\n    @tape.tool\n"
    "    def add(self, x): self.n += len(x); return self.n\nc = Counter()"
)
KEPT = (
    "import json, pathlib\np = pathlib.Path('s.json'); _ = p.write_text('{}')\n@tape.tool\ndef put(k, v):\n"
    "    d = json.loads(p.read_text()); d[k] = v; p.write_text(json.dumps(d)); return len(d)"
)
READING = {
    "a tool that reads what changed": (
        [
            "todo = []\n" + ADD,
            R + "mood = ask()",
            R + "if mood == 'a': add('milk')",
            R + "k = add('eggs')",
            "print(todo, k)",
        ],
    ),
    "a tool that is called more often now": (
        [
            STOCK,
            R + "mood = ask()\nfor _ in mood: left = take(1)",
            R + "end = take(2)",
            "print(stock, left, end)",
        ],
        "bbb",
    ),
    "a method whose object is another now": (
        [
            COUNT,
            R + "mood = ask()\nk = c.add(mood); m = c.add('zz')",
            R + "n = c.add('yy')",
            "print(k, m, n, c.n)",
        ],
        "bbb",
    ),
    "a file that a tool reads and writes over": (
        [KEPT, R + "mood = ask()\nput(mood, 1)", R + "put('z', 2)", "print(p.read_text())"],
    ),
    "a generator that appends to what differs": (
        [
            "log = []\n@tape.tool\ndef stream(x):\n    for c in x:\n        log.append(c); yield c.upper()",
            R + "mood = ask()\nout = list(stream(mood + 'z'))",
            R + "more = list(stream('kk'))",
            "print(out, more, log)",
        ],
        "bc",
    ),
}
"""Tools that read what is not as it was: where requests that changed may go live, they go live, too."""

TOOLS = {
    "list, in a cell that does not depend": (
        ["todo = []\n" + ADD, R + "mood = ask()", R + "n = add('milk')", "print(mood)"],
    ),
    "list, in the changed cell": (["todo = []\n" + ADD, R + "mood = ask()\nn = add('milk')", "print(mood, todo)"],),
    "list, in a cell that depends": (["todo = []\n" + ADD, R + "mood = ask()", R + "n = add('milk')\nm = mood", "print(mood, todo)"],),
    "list, with another argument": (["todo = []\n" + ADD, R + "mood = ask()", R + "n = add('milk for ' + mood)", "print(todo)"],),
    "list, not called any more": (
        ["todo = []\n" + ADD, R + "mood = ask()", R + "if mood == 'a':\n    n = add('milk')", "print(todo)"],
    ),
    "list, called now": (["todo = []\n" + ADD, R + "mood = ask()", R + "if mood == 'b':\n    n = add('milk')", "print(todo)"],),
    "list, before the change": (["todo = []\n" + ADD, R + "k = add('eggs')", R + "mood = ask()\nn = add('milk')", "print(mood, todo)"],),
    "file, in the changed cell": (
        [
            "@tape.tool\ndef note(text):\n    with open('notes.txt', 'a') as f: f.write(text)\n    return 'ok'",
            R + "mood = ask()\nnote('one')",
            "print(mood)",
        ],
    ),
    "file, in a cell that depends": (
        [
            "@tape.tool\ndef note(text):\n    with open('notes.txt', 'a') as f: f.write(text)\n    return 'ok'",
            R + "mood = ask()",
            R + "note('one')\nm = mood",
            R + "note('two')",
            "print(open('notes.txt').read(), m)",
        ],
    ),
    "file, with another text": (
        [
            "@tape.tool\ndef note(text):\n    with open('notes.txt', 'a') as f: f.write(text)\n    return 'ok'",
            R + "note('zero ')",
            R + "mood = ask()",
            R + "note(mood)",
            R + "note(' two')",
            "print(open('notes.txt').read())",
        ],
    ),
    "file, only the old reply writes it": (
        [
            "@tape.tool\ndef note(text):\n    with open('notes.txt', 'w') as f: f.write(text)\n    return 'ok'",
            R + "mood = ask()",
            R + "if mood == 'a': note('x')",
            "import os\nprint(os.path.exists('notes.txt'))",
        ],
    ),
    "object's method": (
        [
            "class Cart:\n    def __init__(self): self.items = []\n    @tape.tool\n    def add(self, item):\n        self.items.append(item)\n        return len(self.items)\ncart = Cart()",
            R + "mood = ask()\nn = cart.add('tea')",
            "print(mood, cart.items)",
        ],
    ),
    "global counter": (
        [
            "count = 0\n@tape.tool\ndef tick():\n    global count\n    count += 1\n    return count",
            R + "mood = ask()\nn = tick()",
            R + "m = tick()\nk = mood",
            "print(count, mood)",
        ],
    ),
    "dict, memo": (
        [
            "memo = {}\n@tape.tool\ndef look(k):\n    if k not in memo: memo[k] = k.upper()\n    return memo[k]",
            R + "mood = ask()\nx = look('x')",
            R + "y = look(mood)",
            "print(memo)",
        ],
    ),
    "frame": (
        [
            "import pandas as pd\ndf = pd.DataFrame({'x': []})\n@tape.tool\ndef row(x):\n    df.loc[len(df)] = [x]\n    return len(df)",
            R + "mood = ask()\nrow('1')",
            R + "row(mood)",
            "print(list(df.x))",
        ],
    ),
    "closure": (
        [
            "def make():\n    seen = []\n    @tape.tool\n    def see(x):\n        seen.append(x)\n        return len(seen)\n    return see, seen\nsee, seen = make()",
            R + "mood = ask()\nsee('1')",
            R + "see(mood)",
            "print(seen)",
        ],
    ),
    "database": (
        [
            "import sqlite3\ndb = sqlite3.connect(':memory:')\ndb.execute('create table t (x)')\n@tape.tool\ndef put(x):\n    db.execute('insert into t values (?)', (x,))\n    return 'ok'",
            R + "mood = ask()\nput('1')",
            R + "put(mood)",
            "rows = db.execute('select x from t').fetchall()\nprint(rows)",
        ],
    ),
    "result is the state": (
        ["todo = []\n@tape.tool\ndef add(item):\n    todo.append(item)\n    return todo", R + "mood = ask()\nn = add('milk')", "n.append('x')\nprint(todo, mood)"],
    ),
    "state in a module": (
        [
            "%%writefile shop.py\nBASKET = []\ndef add(x):\n    BASKET.append(x)\n    return len(BASKET)",
            "import shop\nadd = tape.tool(shop.add)",
            R + "mood = ask()\nadd('1')",
            R + "add(mood)",
            "print(shop.BASKET)",
        ],
    ),
    "state changed between by hand": (
        ["todo = []\n" + ADD, R + "mood = ask()\nadd('milk')", "todo.append('by hand')", R + "add('eggs')", "print(todo, mood)"],
    ),
    "state reset between": (
        ["todo = []\n" + ADD, R + "mood = ask()\nadd('milk')", "todo.clear()", R + "add('eggs')", "print(todo, mood)"],
    ),
    "environment": (
        ["import os\n@tape.tool\ndef put(x):\n    os.environ['T_K'] = x\n    return x", R + "mood = ask()\nput('1')", "e = os.environ.get('T_K')\nprint(mood)"],
    ),
    "handlers in a dict": (
        [
            "todo = []\ndef find(q):\n    todo.append(q)\n    return 'order ' + q\nHANDLERS = {'find': find}\ntape_tools = 0",
            R.replace("record", "record --tools find") + "mood = ask()\nx = HANDLERS['find']('1')",
            R.replace("record", "record --tools find") + "y = HANDLERS['find'](mood)",
            "print(todo, x, y)",
        ],
    ),
}  # fmt: skip

DRAWING = {
    "first figure in a re-run cell": (
        [
            "import matplotlib",
            R + "mood = ask()",
            "import matplotlib.pyplot as plt\nplt.plot([1, 2]); m = mood; t = 1",
            "on = matplotlib.rcParams['interactive']",
        ],
    ),
    "first figure of a pyplot imported before": (
        ["import matplotlib.pyplot as plt", R + "mood = ask()", "_ = plt.plot([1, len(mood)])", "_ = plt.plot([3, 4])"],
        "bbb",
    ),
    "figures through the cells": (
        [
            "import matplotlib.pyplot as plt",
            R + "mood = ask()",
            "plt.figure(figsize=(3, 2)); plt.title(mood); plt.show()",
            "plt.plot([1, 2, 3]); plt.show()",
            "print(plt.get_fignums())",
        ],
        "bbb",
    ),
    "first figure in a branch": (
        [
            "import matplotlib",
            R + "mood = ask()",
            "if mood == 'b':\n    import matplotlib.pyplot as plt\n    plt.plot([1, 2])",
            "print(mood)",
        ],
    ),
    "a person's own setting": (
        ["import matplotlib.pyplot as plt", R + "mood = ask()", "if mood == 'a': plt.ioff()", "print(mood)"],
    ),
}  # fmt: skip

ASK = "import os\ndef ask(q='q'):\n    return os.environ['T_REPLY'] if q == 'q' else 're ' + q\n"
T = "%%tape record --tools ask,find\n"
HANDLERS = {
    "plain handlers": (
        [
            "todo = []\ndef find(x):\n    todo.append(x)\n    return 'order ' + x\n" + ASK + "HANDLERS = {'ask': ask, 'find': find}",
            T + "mood = HANDLERS['ask']()\nx = HANDLERS['find']('1')",
            T + "y = HANDLERS['find'](mood)",
            "print(todo, x, y)",
        ],
    ),
    "plain handlers by globals": (
        [
            "todo = []\ndef find(x):\n    todo.append(x)\n    return 'order ' + x\n" + ASK,
            T + "mood = globals()['ask']()\nx = globals()['find']('1')",
            T + "y = globals()['find'](mood)",
            "print(todo, x, y)",
        ],
    ),
    "plain handlers in an agent": (
        [
            ASK + "class Agent:\n    def __init__(self, tools):\n        self.tools, self.log = tools, []\n"
            "    def run(self, name, *given):\n        self.log.append(name)\n        return self.tools[name](*given)",
            "def find(x):\n    return 'order ' + x\nagent = Agent({t.__name__: t for t in (ask, find)})",
            T + "mood = agent.run('ask')",
            T + "y = agent.run('find', mood)",
            "print(agent.log, y)",
        ],
    ),
    "plain handlers in partials and lists": (
        [
            ASK + "import functools\ndef find(x, y):\n    return x + y\nTOOLS = [ask, functools.partial(find, 'order ')]",
            T + "mood = TOOLS[0]()",
            T + "y = TOOLS[1](mood)",
            "def dispatch(n, *given):\n    return TOOLS[n](*given)",
            T + "z = dispatch(1, mood + '!')",
            "print(y, z)",
        ],
    ),
    "plain handlers in a closure": (
        [
            ASK + "def find(x):\n    return 'order ' + x\ndef agent(*tools):\n    known = {t.__name__: t for t in tools}\n"
            "    return lambda n, *given: known[n](*given)\nrun = agent(ask, find)",
            T + "mood = run('ask')",
            T + "y = run('find', mood)",
            "print(y)",
        ],
    ),
    "decorated handlers in a registry": (
        [
            "REG = {}\ndef register(f):\n    REG[f.__name__] = f\n    return f\nimport os\n@register\n@tape.tool\ndef ask(q='q'):\n    return os.environ['T_REPLY'] if q == 'q' else q\n"
            "@register\n@tape.tool\ndef find(x):\n    return 'order ' + x",
            R + "mood = REG['ask']()",
            R + "y = REG['find'](mood)",
            "print(y, sorted(REG))",
        ],
    ),
}  # fmt: skip

PROCESSES = {
    "bash": (
        [
            R + "mood = ask()",
            "%%bash -s $mood\necho mood $1 > said.txt",
            "print(open('said.txt').read())",
        ],
    ),
    "subprocess": (
        [
            "import subprocess, sys",
            R + "mood = ask()",
            "out = subprocess.run([sys.executable, '-c', f'print({mood!r})'], capture_output=True, text=True).stdout",
            "print(out)",
        ],
    ),
    "shell": ([R + "mood = ask()", "out = !echo $mood", "print(list(out)); n = len(out[0])"],),
    "script": (
        [
            R + "mood = ask()",
            "%%script sh\nls > names.txt",
            "t = open('names.txt').read(); m = mood",
        ],
    ),
}

RELEASES = "import os, pathlib\nfor name in 'ab': os.makedirs(f'releases/{name}', exist_ok=True); pathlib.Path('releases', name, 'page').write_text(name)"
POINT = "def point(to):\n    if os.path.lexists('current'): os.unlink('current')\n    os.symlink(f'releases/{to}', 'current')\n    return 'ok'"

LINKS = {
    "a link that a cell points elsewhere": (
        [
            RELEASES + "\n" + POINT,
            R + "mood = ask()",
            "point(mood)",
            "print(os.readlink('current'), open('current/page').read())",
        ],
    ),
    "a link that a tool points elsewhere": (
        [
            RELEASES + "\n@tape.tool\n" + POINT,
            R + "mood = ask()",
            R + "done = point('a')",
            R + "done = mood",
            "print(os.readlink('current'), open('current/page').read())",
        ],
    ),
    "a file that is written through a link": (
        [
            RELEASES + "\n" + POINT + "\npoint('a')",
            R + "mood = ask()",
            "open('current/page', 'w').write(mood)",
            "print(open('releases/a/page').read())",
        ],
        "bbb",
    ),
    "a folder in whose place a cell puts a link": (
        [
            RELEASES + "\nimport shutil",
            R + "mood = ask()",
            "if mood == 'a':\n    shutil.rmtree('releases/a')\n    os.symlink('b', 'releases/a')\nelse:\n    open('releases/a/page', 'a').write(mood)",
            "print(open('releases/a/page').read(), open('releases/b/page').read())",
        ],
    ),
    "a link only where the mood is good": (
        [
            RELEASES + "\n" + POINT,
            R + "mood = ask()",
            "if mood == 'a': point('a')",
            "print(os.path.lexists('current'), sorted(os.listdir('releases')))",
        ],
    ),
}

BETWEEN = {
    "a task that ends between two cells": (
        [
            "import asyncio\nasync def work(): return mood * 2",
            R + "mood = ask()",
            "task = asyncio.create_task(work())",
            "answer = await task\ndel task\nprint(answer)",
        ],
    ),
    "a task that fills a list between two cells": (
        [
            "import asyncio\nfound = []\nasync def work(): found.append(mood)",
            R + "mood = ask()",
            "asyncio.ensure_future(work()).add_done_callback(lambda _: found.append('done'))",
            "await asyncio.sleep(0.01); print(found)",
        ],
    ),
}

RESEARCH = "kept = []\n@tape.tool\ndef research(topic):\n    kept.append(ask())\n    return topic + ': ' + kept[-1]"
DEEPER = "@tape.tool\ndef report(topic):\n    with open('log.txt', 'a') as f: f.write(topic)\n    return research(topic).upper()"

INSIDE = {
    "inside a tool": (
        [RESEARCH, R + "note = research('cats')", "size = len(note)\nprint(note, kept)"],
    ),
    "inside a tool inside a tool": (
        [
            RESEARCH,
            DEEPER,
            R + "note = report('cats')",
            R + "second = ask('dogs')",
            "print(note, second, kept)",
        ],
    ),
    "inside a tool that then calls others": (
        [
            "@tape.tool\ndef research(topic):\n    mood = ask()\n    return mood + (ask('more') if mood == 'a' else '')",
            R + "note = research('cats')",
            "print(note)",
        ],
    ),
    "inside a coroutine": (
        [
            "@tape.tool\nasync def research(topic):\n    return topic + ask()",
            R + "note = await research('x')",
            "print(note)",
        ],
    ),
}
"""The changed call is made in the body of a tool."""

NOTEBOOKS = {**READING, **TOOLS, **DRAWING, **HANDLERS, **PROCESSES, **LINKS, **BETWEEN, **INSIDE}
