"""Notebooks like those of people who build agents, in which a changed reply goes another way: name -> (cells, reply).

`ask()` is a call whose recorded reply is "a". Each cell is one string.
"""

BRANCHES = {
    "default overwritten": (['status = "open"', 'mood = ask()\nif mood == "a":\n    status = "closed"', "print(status)"],),
    "default overwritten, nobody reads": (['status = "open"', 'mood = ask()\nif mood == "a":\n    status = "closed"'],),
    "default in a cell of calls": (['r0 = ask("z"); status = "open"', 'mood = ask()\nif mood == "a": status = "closed"'],),
    "default, call in an earlier cell": (['status = "open"', "mood = ask()", 'if mood == "a":\n    status = "closed"'],),
    "default, read later": (
        ['status = "open"', "mood = ask()", 'if mood == "a":\n    status = "closed"', "n = len(status)"],
    ),
    "none, then try": (
        ["result = None", "try:\n    result = {'a': 1}[ask()]\nexcept KeyError:\n    pass", "print(result)"],
    ),
    "none, then try, nobody reads": (["result = None", "try:\n    result = {'a': 1}[ask()]\nexcept KeyError:\n    pass"],),
    "try in a function": (
        ["result = None", "def g(x):\n    return {'a': 1}[x]", "r = ask()", "try:\n    result = g(r)\nexcept KeyError:\n    print('no')"],
    ),
    "suppress": (
        ["from contextlib import suppress\nresult = None", "with suppress(KeyError):\n    result = {'a': 1}[ask()]"],
    ),
    "error leaves the old": (["x = 1", "r = ask()\nx = {'a': 2}[r]", "y = 3"],),
    "best so far": (
        [
            "best, score = None, 0",
            "for text in [ask(), 'x']:\n    if text == 'a':\n        best, score = text, 5",
            "print(best, score)",
        ],
    ),
    "best so far, larger": (
        ["best = ''", "words = [ask(), 'cc', 'd']", "for w in words:\n    if len(w) > len(best) and w != 'zzz': best = w", "print(best)"],
        "bbb",
    ),
    "def in a branch": (
        ["def f(): return 1", "if ask() == 'a':\n    def f(): return 2", "print(f())"],
    ),
    "def in a branch, new": (["r = ask()", "if r == 'a':\n    def f(): return 2", "n = 'f' in globals()"],),
    "class in a branch": (["class A: n = 1", "if ask() == 'a':\n    class A: n = 2", "print(A.n)"],),
    "import in a branch": (["import json as codec", "if ask() == 'a':\n    import csv as codec", "print(codec.__name__)"],),
    "import in a branch, new": (["r = ask()", "if r == 'a':\n    import csv"],),
    "del in a branch": (["x = [1, 2]", "if ask() == 'a':\n    del x", "print('x' in globals())"],),
    "del in a branch, nobody reads": (["x = [1, 2]", "r = ask()", "if r == 'a':\n    del x"],),
    "del and a read in a branch": (["x = [1, 2]", "r = ask()", "if r == 'a':\n    del x", "if r == 'b':\n    y = len(x)"],),
    "large default": (["big = list(range(9000))", "r = ask()", "if r == 'a':\n    big = []", "print(len(big))"],),
    "large default, nobody reads": (["big = list(range(9000))", "r = ask()", "if r == 'a':\n    big = []"],),
    "name only the old reply makes": (["r = ask()", "if r == 'a':\n    extra = 5", "print('extra' in globals())"],),
    "name only the new reply makes": (["r = ask()", "if r == 'b':\n    extra = 5", "print('extra' in globals())"],),
    "list grown in a branch": (["todo = []", "if ask() == 'a':\n    todo.append('milk')", "print(todo)"],),
    "list grown in a branch, nobody reads": (["todo = []", "if ask() == 'a':\n    todo.append('milk')"],),
    "list grown in a branch by the new": (["todo = []", "if ask() == 'b':\n    todo.append('milk')", "todo.append('x')"],),
    "key in a branch": (["memo = {'k': 1}", "if ask() == 'a':\n    memo['k'] = 2\n    memo['n'] = 3"],),
    "attribute in a branch": (
        ["class State: pass\ns = State(); s.status = 'open'", "if ask() == 'a':\n    s.status = 'closed'; s.extra = 1", "print(s.status)"],
    ),
    "attribute of a class in a branch": (["class State:\n    status = 'open'", "if ask() == 'a':\n    State.status = 'closed'", "print(State.status)"],),
    "file in a branch": (["r = ask()\nif r == 'a':\n    open('f', 'w').write('x')", "import os\nprint(os.path.exists('f'))"],),
    "file overwritten in a branch": (["open('f', 'w').write('1')", "if ask() == 'a':\n    open('f', 'w').write('2')"],),
    "file removed in a branch": (["import os\nopen('f', 'w').write('1')", "if ask() == 'a':\n    os.remove('f')"],),
    "environment in a branch": (
        ["import os\nos.environ['T_X'] = '1'", "if ask() == 'a':\n    os.environ['T_X'] = '2'; os.environ['T_Y'] = '3'"],
    ),
    "folder in a branch": (["import os", "if ask() == 'a':\n    os.mkdir('d'); os.chdir('d')", "print(os.path.basename(os.getcwd()) == 'd')"],),
    "path in a branch": (["import sys", "if ask() == 'a':\n    sys.path.insert(0, 'T_lib')"],),
    "match": (
        ["kind = 'none'", "r = ask()", "match r:\n    case 'a':\n        kind = 'first'\n    case 'c':\n        kind = 'third'"],
    ),
    "while": (
        ["n = 0; last = None", "r = ask()", "while n < 3 and r == 'a':\n    n += 1; last = n"],
    ),
    "while else": (["done = 'no'", "for x in [ask()]:\n    if x == 'a': break\nelse:\n    done = 'yes'"],),
    "break out of it": (["done = 'no'", "for x in [ask()]:\n    if x == 'b': break\nelse:\n    done = 'yes'"],),
    "walrus": (["hit = None", "r = ask()", "ok = r == 'a' and (hit := r.upper())"],),
    "comprehension walrus": (["hit = None", "r = ask()", "found = [hit := w for w in r if w == 'a']"],),
    "global in a function": (
        ["status = 'open'", "def close(r):\n    global status\n    if r == 'a': status = 'closed'", "close(ask())", "print(status)"],
    ),
    "global in a function, nobody reads": (
        ["status = 'open'", "def close(r):\n    global status\n    if r == 'a': status = 'closed'", "r = ask()", "close(r)"],
    ),
    "global new in a function": (
        ["def close(r):\n    global status\n    if r == 'a': status = 'closed'", "r = ask()", "close(r)"],
    ),
    "globals() in a branch": (["status = 'open'", "r = ask()", "if r == 'a':\n    globals()['status'] = 'closed'", "print(status)"],),
    "exec in a branch": (["status = 'open'", "r = ask()", "if r == 'a':\n    exec('status = \"closed\"')", "print(status)"],),
    "rebound twice": (["s = 1", "r = ask()", "if r == 'a':\n    s = 2", "if r == 'a':\n    s = 3", "print(s)"],),
    "rebound, then for certain": (["s = 1", "r = ask()", "if r == 'a':\n    s = 2", "t = s", "s = 9"],),
    "unpacked in a branch": (["a1, b1 = 1, 2", "r = ask()", "if r == 'a':\n    a1, b1 = b1, a1"],),
    "augmented in a branch": (["n = 1", "r = ask()", "if r == 'a':\n    n += 5", "print(n)"],),
    "loop variable": (["i = 'none'", "r = ask()", "for i in range(len(r) if r == 'a' else 0): pass", "print(i)"],),
    "with as": (["f = None; import io", "r = ask()", "if r == 'a':\n    with io.StringIO('x') as f: t = f.read()", "print(f is None)"],),
    "except as": (["e = 'kept'; r = ask()", "try:\n    {'b': 1}[r]\nexcept KeyError as e:\n    print('no')", "print(e)"],),
    "conditional expression object": (["xs = [1]; r = ask()", "ys = xs if r == 'a' else [2]", "ys.append(3)", "print(xs)"],),
    "shared then grown in a branch": (["xs = [1]; view = xs", "if ask() == 'a':\n    xs = xs + [2]", "view.append(9)", "print(xs)"],),
    "set and deque in a branch": (
        ["from collections import deque, Counter\nseen = set(); q = deque(); c = Counter()", "if ask() == 'a':\n    seen.add(1); q.append(2); c['x'] += 1"],
    ),
    "frame column in a branch": (
        ["import pandas as pd\ndf = pd.DataFrame({'x': [1, 2]})", "if ask() == 'a':\n    df['y'] = df.x * 2", "print(list(df.columns))"],
    ),
    "array in a branch": (["import numpy as np\nv = np.zeros(3)", "if ask() == 'a':\n    v[1] = 5", "print(v)"],),
    "async branch": (["status = 'open'", "import asyncio\nasync def f():\n    return ask()", "if (await f()) == 'a':\n    status = 'closed'"],),
    "semicolon line": (["s = 1; r = ask()", "if r == 'a': s = 2; t = 3"],),
    "nested branches": (["s = 1; r = ask()", "if r:\n    if r == 'a':\n        try:\n            s = 2\n        finally:\n            u = 1"],),
    "both branches": (["s = 1; r = ask()", "if r == 'a':\n    s = 2\nelse:\n    s = 3"],),
    "type alias and annotation": (["n: int = 1; r = ask()", "if r == 'a':\n    n: int = 2"],),
    "capture magic": (["out = None; r = ask()", "if r == 'a':\n    out = get_ipython().run_line_magic('pwd', '') and 1"],),
}  # fmt: skip

NAMES = {
    "file": (["file = 'x'", "r = ask()", "file = file + r", "n = len(file)", "file = 'z'"],),
    "ambient": (["ambient = ['x']", "r = ask()", "ambient.append(r)", "n = len(ambient)", "ambient = 0"],),
    "file, bound in a branch": (["file = None", "r = ask()", "if r == 'a':\n    file = open('f', 'w')\n    file.close(); file = 1"],),
    "library and output": (["library = [1]; output = [2]", "r = ask()", "library.append(r); output.append(r)", "library = 5"],),
    "a module called file": (
        ["open('file.py', 'w').write('STATE = []')", "import sys; sys.path.insert(0, '')\nimport file", "r = ask()", "file.STATE.append(r)", "print(file.STATE)"],
    ),
}  # fmt: skip

SHOP = "open('shop.py', 'w').write('STATE = []\\ndef add(x): STATE.append(x)')\nimport sys; sys.path.insert(0, '')"
MODULES = {
    "a module's state": ([SHOP, "import shop", "r = ask()", "shop.add(r)", "shop.add('z')", "print(shop.STATE)"],),
    "a module imported by the changed cell": ([SHOP, "import shop; r = ask(); shop.add(r)", "shop.add('z')", "print(shop.STATE)"],),
    "a module imported in a branch": ([SHOP, "r = ask()", "if r == 'a':\n    import shop\n    shop.add(r)", "print('shop' in globals())"],),
    "names out of a module": ([SHOP, "from shop import STATE, add", "r = ask()", "add(r)", "print(STATE)"],),
}  # fmt: skip

TASKS = {
    "a task without an await": (
        ["import asyncio\nasync def work():\n    return 1", "r = ask()", "t = asyncio.create_task(work()); n = len(r)", "m = await t\ndel t\nprint(m)"],
        "bb",
    ),
}  # fmt: skip

LOOKED_UP = {
    "a variable of the environment": (["import os\nr = ask()\nos.environ['T_X'] = r", "y = os.environ['T_X']", "print(y)"],),
    "whether a variable is in the environment": (["import os\nr = ask()\nif r == 'b':\n    os.environ['T_X'] = '1'", "flag = 'T_X' in os.environ", "flag"],),
    "the first of sys.path": (["import sys\nr = ask()\nsys.path.insert(0, 'T_' + r)", "p = sys.path[0]", "p"],),
    "the limit of csv": (["import csv\nr = ask()\nn = csv.field_size_limit(1000 if r == 'a' else 2000)", "n = csv.field_size_limit()", "n"],),
    "the filters of warnings": (["import warnings\nr = ask()\nwarnings.simplefilter('ignore' if r == 'a' else 'always')", "n = warnings.filters[0][0]", "n"],),
}  # fmt: skip

NOTEBOOKS = {**TASKS, **BRANCHES, **NAMES, **MODULES, **LOOKED_UP}
