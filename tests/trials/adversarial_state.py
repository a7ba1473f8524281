"""Notebooks that keep state where a tracker may not look, as `adversarial.py` has them: name -> (cells, reply).

`ask()` is a call whose recorded reply is "a"; the changed one is "b" where none is named.
"""

RANDOMNESS = {
    "generator drawn in a cell that depends": (
        [
            "import numpy as np\nrng = np.random.default_rng(1)",
            "r = ask()",
            "x = rng.integers(100, size=len(r))",
            "y = rng.integers(100)",
            "print(x, y)",
        ],
        "bbb",
    ),
    "generator drawn once more": (
        [
            "import numpy as np\nrng = np.random.default_rng(1)",
            "r = ask()",
            "if r == 'a': rng.random()",
            "y = rng.random()",
            "print(y)",
        ],
    ),
    "generator drawn in a branch, nobody reads": (
        [
            "import numpy as np\nrng = np.random.default_rng(1)",
            "r = ask()",
            "if r == 'a': rng.random(5)",
        ],
    ),
    "RandomState drawn in a branch": (
        [
            "import numpy as np\nrs = np.random.RandomState(3)",
            "r = ask()",
            "if r == 'a': rs.rand(4)",
            "z = rs.rand()",
            "print(z)",
        ],
    ),
    "random.Random of one's own": (
        [
            "import random\nd = random.Random(5)",
            "r = ask()",
            "picks = [d.random() for _ in r]",
            "nxt = d.random()",
            "print(nxt)",
        ],
        "bb",
    ),
    "global random, seeded": (
        [
            "import random\nrandom.seed(5)",
            "r = ask()",
            "picks = [random.random() for _ in r]",
            "nxt = random.random()",
            "print(nxt)",
        ],
        "bb",
    ),
    "numpy's global generator, seeded": (
        [
            "import numpy as np\nnp.random.seed(5)",
            "r = ask()",
            "picks = [np.random.rand() for _ in r]",
            "nxt = np.random.rand()",
            "print(nxt)",
        ],
        "bb",
    ),
    "generator in a class": (
        [
            "import numpy as np\nclass Sampler:\n    def __init__(self): self.rng = np.random.default_rng(2)\n    def draw(self, n): return self.rng.integers(9, size=n)\ns = Sampler()",
            "r = ask()",
            "x = s.draw(len(r))",
            "y = s.draw(1)",
            "print(x, y)",
        ],
        "bbbb",
    ),
    "two names of one generator": (
        [
            "import numpy as np\nrng = np.random.default_rng(2); other = rng",
            "r = ask()",
            "x = rng.random(len(r))",
            "y = other.random()",
        ],
        "bbbb",
    ),
    "spawned generators": (
        [
            "import numpy as np\nseq = np.random.SeedSequence(4)",
            "r = ask()",
            "kids = seq.spawn(len(r))",
            "more = seq.spawn(1)\nn = more[0].spawn_key",
        ],
        "bbbb",
    ),
    "shuffle in place": (
        [
            "import random\nd = random.Random(5); deck = list(range(20))",
            "r = ask()",
            "if r == 'a': d.shuffle(deck)",
            "top = deck[0]",
            "print(deck)",
        ],
    ),
}

LARGE = {
    "vector store of 3,000": (
        [
            "import numpy as np\nclass Store:\n    def __init__(self): self.docs, self.vecs = [], []\n    def add(self, d, v): self.docs.append(d); self.vecs.append(v)\nstore = Store()\nfor i in range(3000): store.add(f'doc {i}', np.full(64, i, dtype=float))",
            "r = ask()",
            "store.add(r, np.ones(64))",
            "n = len(store.docs); last = store.docs[-1]",
            "print(n, last)",
        ],
    ),
    "vector store, rows in dicts": (
        [
            "store = [{'id': i, 'text': f'doc {i}', 'vec': [float(i)] * 32} for i in range(3000)]",
            "r = ask()",
            "store.append({'id': -1, 'text': r, 'vec': []})",
            "print(len(store), store[-1]['text'])",
        ],
    ),
    "vector store, one marked": (
        [
            "store = [{'id': i, 'text': f'doc {i}', 'vec': [float(i)] * 32} for i in range(3000)]",
            "r = ask()",
            "store[5 if r == 'a' else 7]['seen'] = True",
            "seen = [d['id'] for d in store if d.get('seen')]",
            "print(seen)",
        ],
    ),
    "long queue": (
        [
            "from collections import deque\nq = deque({'n': i} for i in range(20000))",
            "r = ask()",
            "head = q.popleft() if r == 'a' else q.pop()",
            "n = len(q), q[0]['n'], q[-1]['n']",
            "print(n)",
        ],
    ),
    "list of 100,000 dicts, one marked": (
        [
            "docs = [{'i': i} for i in range(100_000)]",
            "r = ask()",
            "docs[5 if r == 'a' else 7]['seen'] = 1",
            "s = [d['i'] for d in docs if 'seen' in d]",
            "print(s)",
        ],
    ),
    "list of 100,000 dicts, grown": (
        [
            "docs = [{'i': i} for i in range(100_000)]",
            "r = ask()",
            "docs.append({'i': r})",
            "last = docs[-1]['i'], len(docs)",
            "print(last)",
        ],
    ),
    "large dict of objects": (
        [
            "class D:\n    def __init__(self, n): self.n = n\ndb = {i: D(i) for i in range(60_000)}",
            "r = ask()",
            "db[3].n = r",
            "t = db[3].n",
            "print(t)",
        ],
    ),
    "large frame, a column": (
        [
            "import pandas as pd\ndf = pd.DataFrame({'t': [f'text {i}' for i in range(60_000)], 'n': range(60_000)})",
            "r = ask()",
            "df['mood'] = r",
            "m = df.mood.iloc[0]",
            "print(m)",
        ],
    ),
    "large frame, one value in place": (
        [
            "import pandas as pd\ndf = pd.DataFrame({'t': [f'text {i}' for i in range(60_000)], 'n': range(60_000)})",
            "r = ask()",
            "df.loc[0, 't'] = r",
            "m = df.t.iloc[0]",
            "print(m)",
        ],
    ),
    "large array, a view": (
        [
            "import numpy as np\nm = np.zeros((2000, 500)); row = m[3]",
            "r = ask()",
            "row[:] = len(r)",
            "s = m.sum()",
            "print(s)",
        ],
        "bbb",
    ),
    "large set": (
        [
            "seen = set(range(200_000))",
            "r = ask()",
            "if r == 'a': seen.discard(5)",
            "n = len(seen)",
            "print(n)",
        ],
    ),
    "large bytearray": (
        ["buf = bytearray(5_000_000)", "r = ask()", "buf[7] = ord(r)", "b = buf[7]", "print(b)"],
    ),
}

VIEWS = {
    "numpy view of a slice": (
        [
            "import numpy as np\na = np.arange(10); v = a[2:5]",
            "r = ask()",
            "v[0] = ord(r)",
            "t = a.sum()",
            "print(a)",
        ],
    ),
    "numpy view of a file": (
        [
            "import numpy as np\nmm = np.memmap('m.dat', dtype='int32', mode='w+', shape=(4,))",
            "r = ask()",
            "mm[0] = len(r); mm.flush()",
            "print(np.fromfile('m.dat', dtype='int32').tolist())",
            "del mm",
        ],
        "bb",
    ),
    "numpy reshape and transpose": (
        [
            "import numpy as np\na = np.arange(6); m = a.reshape(2, 3).T",
            "r = ask()",
            "m[0, 0] = ord(r)",
            "print(a)",
        ],
    ),
    "memoryview": (
        ["b = bytearray(b'xyz'); m = memoryview(b)", "r = ask()", "m[0] = ord(r)", "print(b)"],
    ),
    "alias of an inner list": (
        ["d = {'k': [1]}; inner = d['k']", "r = ask()", "inner.append(r)", "print(d)"],
    ),
    "dict view": (
        ["d = {'x': 1}; ks = d.keys()", "r = ask()", "d[r] = 2", "n = list(ks)", "print(n)"],
    ),
    "ChainMap": (
        [
            "from collections import ChainMap\nbase = {'x': 1}; over = {}; c = ChainMap(over, base)",
            "r = ask()",
            "c['m'] = r",
            "print(over, c['x'])",
        ],
    ),
    "mappingproxy": (
        [
            "import types\nd = {'x': 1}; p = types.MappingProxyType(d)",
            "r = ask()",
            "d['y'] = r",
            "z = p.get('y')",
            "print(z)",
        ],
    ),
    "default mutable argument": (
        [
            "def add(x, log=[]):\n    log.append(x)\n    return list(log)",
            "r = ask()",
            "p = add(r)",
            "q = add('z')",
            "print(p, q)",
        ],
    ),
    "class attribute shared": (
        ["class A:\n    log = []\nx, y = A(), A()", "r = ask()", "x.log.append(r)", "print(y.log)"],
    ),
    "class attribute by type()": (
        ["class A: n = 1\nx = A()", "r = ask()", "type(x).n = r", "print(A.n)"],
    ),
    "closure counter": (
        [
            "def make():\n    n = 0\n    def inc(k):\n        nonlocal n\n        n += k\n        return n\n    return inc\ninc = make()",
            "r = ask()",
            "a = inc(len(r))",
            "b = inc(1)",
            "print(a, b)",
        ],
        "bbb",
    ),
    "function attribute": (
        [
            "def f(): f.n += 1; return f.n\nf.n = 0",
            "r = ask()",
            "xs = [f() for _ in r]",
            "y = f()",
            "print(xs, y)",
        ],
        "bbb",
    ),
    "property that counts": (
        [
            "class C:\n    n = 0\n    @property\n    def v(self):\n        self.n += 1\n        return self.n\nc = C()",
            "r = ask()",
            "xs = [c.v for _ in r]",
            "y = c.v",
            "print(y)",
        ],
        "bbb",
    ),
    "descriptor that stores apart": (
        [
            "STORE = {}\nclass Field:\n    def __get__(self, o, t=None): return STORE.get('v')\n    def __set__(self, o, v): STORE['v'] = v\nclass M: f = Field()\nm = M(); m.f = 0",
            "r = ask()",
            "m.f = r",
            "print(M().f, STORE)",
        ],
    ),
    "slots": (
        [
            "class P:\n    __slots__ = ('a',)\np = P(); p.a = 1",
            "r = ask()",
            "if r == 'a': p.a = 2",
            "print(p.a)",
        ],
    ),
    "dataclass with a factory": (
        [
            "from dataclasses import dataclass, field\n@dataclass\nclass S:\n    log: list = field(default_factory=list)\ns = S(); t = s",
            "r = ask()",
            "s.log.append(r)",
            "print(t)",
        ],
    ),
    "__getattr__ that makes": (
        [
            "class Lazy:\n    def __getattr__(self, k):\n        v = [k]; setattr(self, k, v); return v\nz = Lazy()",
            "r = ask()",
            "getattr(z, r).append(1)",
            "print(sorted(vars(z)))",
        ],
    ),
    "weak references": (
        [
            "import weakref\nclass N: pass\nn = N(); w = weakref.ref(n)",
            "r = ask()",
            "n.tag = r",
            "t = w().tag",
            "print(t)",
        ],
    ),
    "a weak reference to what is deleted": (
        [
            "import weakref\nclass N: pass\nn = N(); w = weakref.ref(n)",
            "r = ask()",
            "del n; gone = w() is None",
            "print(gone, r)",
        ],
    ),
    "a weak reference to what is deleted, made after it": (
        [
            "import weakref\nclass N: pass\nn = N()",
            "w = weakref.ref(n)",
            "r = ask()",
            "del n; gone = w() is None",
            "print(gone, r)",
        ],
    ),
    "a tree whose nodes refer weakly to what is above": (
        [
            "import weakref\nclass Node:\n    def __init__(self, v, up=None):\n        self.v, self.below, self._up = v, [], up and weakref.ref(up)\n        if up: up.below.append(self)",
            "top = Node('top')",
            "r = ask()",
            "_ = Node(r, top)",
            "last = Node('z', top)",
            "print([n.v for n in top.below], last._up().v)",
        ],
    ),
    "WeakValueDictionary": (
        [
            "import weakref\nclass N: pass\nn = N(); reg = weakref.WeakValueDictionary(); reg['n'] = n",
            "r = ask()",
            "reg['n'].tag = r",
            "print(n.tag)",
        ],
    ),
    "contextvar": (
        [
            "import contextvars\ncv = contextvars.ContextVar('cv', default='none')",
            "r = ask()",
            "tok = cv.set(r)",
            "v = cv.get()",
            "print(v)",
        ],
    ),
    "thread local": (
        [
            "import threading\nloc = threading.local(); loc.v = 1",
            "r = ask()",
            "loc.v = r",
            "print(loc.v)",
        ],
    ),
    "enum and namedtuple": (
        [
            "import enum, collections\nclass E(enum.Enum):\n    A = 'a'\n    B = 'b'\nPt = collections.namedtuple('Pt', 'x y')",
            "r = ask()",
            "e = E(r); p = Pt(r, 1)",
            "print(e, p)",
        ],
    ),
    "module attribute patched": (
        [
            "import json\nORIG = json.dumps",
            "r = ask()",
            "if r == 'a': json.dumps = lambda *a, **k: 'patched'",
            "out = json.dumps([1])",
            "json.dumps = ORIG\nprint(out)",
        ],
    ),
    "method patched on a class": (
        [
            "class A:\n    def hi(self): return 'hi'\na = A()",
            "r = ask()",
            "if r == 'a': A.hi = lambda self: 'patched'",
            "print(a.hi())",
        ],
    ),
    "sys.modules stub": (
        [
            "import sys, types",
            "r = ask()",
            "m = types.ModuleType('T_stub'); m.v = r; sys.modules['T_stub'] = m",
            "import T_stub\nv = T_stub.v",
            "print(v)",
        ],
    ),
}

ITERATORS = {
    "list iterator half consumed": (
        [
            "it = iter([1, 2, 3, 4, 5])",
            "r = ask()",
            "xs = [next(it) for _ in r]",
            "y = next(it)",
            "print(xs, y)",
        ],
        "bbb",
    ),
    "generator half consumed": (
        [
            "def g():\n    for i in range(9): yield i\nit = g()",
            "r = ask()",
            "xs = [next(it) for _ in r]",
            "y = next(it)",
            "print(xs, y)",
        ],
        "bbb",
    ),
    "generator, not in what depends": (
        [
            "def g():\n    for i in range(9): yield i\nit = g(); first = next(it)",
            "r = ask()",
            "m = r.upper()",
            "second = next(it)",
            "print(m, second)",
        ],
    ),
    "count and cycle": (
        [
            "import itertools\nids = itertools.count(); cyc = itertools.cycle('xyz')",
            "r = ask()",
            "xs = [(next(ids), next(cyc)) for _ in r]",
            "y = next(ids), next(cyc)",
            "print(xs, y)",
        ],
        "bbb",
    ),
    "tee": (
        [
            "import itertools\np, q = itertools.tee(range(9))",
            "r = ask()",
            "xs = [next(p) for _ in r]",
            "y = next(p), next(q)",
            "print(xs, y)",
        ],
        "bbb",
    ),
    "map over a list": (
        [
            "xs = [1, 2, 3]; m = map(str, xs)",
            "r = ask()",
            "a = next(m) if r == 'a' else ''",
            "b = next(m)",
            "print(a, b)",
        ],
    ),
    "zip and enumerate": (
        [
            "z = enumerate('uvwxyz')",
            "r = ask()",
            "a = [next(z) for _ in r]",
            "b = next(z)",
            "print(a, b)",
        ],
        "bb",
    ),
    "csv reader over lines": (
        [
            "import csv\nrows = csv.reader(['a,b', 'c,d', 'e,f'])",
            "r = ask()",
            "a = [next(rows) for _ in r]",
            "b = next(rows)",
            "print(a, b)",
        ],
        "bb",
    ),
    "StringIO": (
        [
            "import io\nlog = io.StringIO()",
            "r = ask()",
            "_ = log.write(r)",
            "_ = log.write('z')",
            "print(log.getvalue())",
        ],
    ),
    "regex finditer": (
        [
            "import re\nm = re.finditer('[a-z]', 'qwerty')",
            "r = ask()",
            "a = [next(m).group() for _ in r]",
            "b = next(m).group()",
            "print(a, b)",
        ],
        "bb",
    ),
    "deque and heap": (
        [
            "import heapq\nh = [5, 3, 9]; heapq.heapify(h)",
            "r = ask()",
            "a = [heapq.heappop(h) for _ in r]",
            "print(a, h)",
        ],
        "bb",
    ),
    "queue.Queue": (
        [
            "import queue\nq = queue.Queue()\nfor i in range(5): q.put(i)",
            "r = ask()",
            "a = [q.get() for _ in r]",
            "b = q.get()",
            "print(a, b, q.qsize())",
        ],
        "bbb",
    ),
    "asyncio.Queue": (
        [
            "import asyncio\nq = asyncio.Queue()\nfor i in range(5): q.put_nowait(i)",
            "r = ask()",
            "a = [q.get_nowait() for _ in r]",
            "b = await q.get()",
            "print(a, b)",
        ],
        "bbb",
    ),
    "async generator half consumed": (
        [
            "async def g():\n    for i in range(9): yield i\nit = g()",
            "r = ask()",
            "a = [await anext(it) for _ in r]",
            "b = await anext(it)",
            "print(a, b)",
        ],
        "bbb",
    ),
}

CACHES = {
    "lru_cache": (
        [
            "import functools\nCALLS = []\n@functools.lru_cache\ndef f(x):\n    CALLS.append(x)\n    return x * 2",
            "r = ask()",
            "a = f(r)",
            "b = f('a')",
            "print(a, b, CALLS)",
        ],
    ),
    "lru_cache, info read": (
        [
            "import functools\n@functools.cache\ndef f(x): return x * 2",
            "r = ask()",
            "a = f(r)",
            "b = f('a')",
            "info = f.cache_info()",
            "print(info)",
        ],
    ),
    "memo dict in a closure": (
        [
            "def memo(f):\n    m = {}\n    def g(x):\n        if x not in m: m[x] = f(x)\n        return m[x], len(m)\n    return g\n@memo\ndef f(x): return x * 2",
            "r = ask()",
            "a = f(r)",
            "b = f('a')",
            "print(a, b)",
        ],
    ),
    "cached_property": (
        [
            "import functools\nclass A:\n    def __init__(self): self.src = 'x'\n    @functools.cached_property\n    def up(self): return self.src.upper()\nz = A()",
            "r = ask()",
            "z.src = r\nif r == 'a': z.up",
            "z.src = 'late'",
            "print(z.up)",
        ],
    ),
    "cached model call": (
        [
            "import functools\n@functools.cache\ndef say(q): return ask(q)",
            "a = say('q')",
            "b = say('q')",
            "c = say('z')",
            "print(a, b, c)",
        ],
    ),
    "singledispatch": (
        [
            "import functools\n@functools.singledispatch\ndef f(x): return 'base'",
            "r = ask()",
            "if r == 'a':\n    @f.register\n    def _(x: int): return 'int'",
            "print(f(1))",
        ],
    ),
    "memo on disk": (
        [
            "import json, os\ndef cached(k, make):\n    p = f'cache_{k}.json'\n    if os.path.exists(p): return json.load(open(p))\n    v = make(); json.dump(v, open(p, 'w')); return v",
            "r = ask()",
            "v = cached(r, lambda: r * 3)",
            "w = cached('a', lambda: 'made late')",
            "print(v, w)",
        ],
    ),
    "pickle on disk": (
        [
            "import pickle",
            "r = ask()",
            "pickle.dump({'r': r}, open('s.pkl', 'wb'))",
            "s = pickle.load(open('s.pkl', 'rb'))",
            "print(s)",
        ],
    ),
    "shelve": (
        [
            "import shelve",
            "r = ask()",
            "with shelve.open('db') as db: db[r] = 1",
            "with shelve.open('db') as db: ks = sorted(db)",
            "print(ks)",
        ],
    ),
    "sqlite in memory": (
        [
            "import sqlite3\nc = sqlite3.connect(':memory:'); _ = c.execute('create table t(x)')",
            "r = ask()",
            "_ = c.execute('insert into t values (?)', (r,))",
            "rows = c.execute('select x from t').fetchall()",
            "print(rows)",
        ],
    ),
    "sqlite file": (
        [
            "import sqlite3\nc = sqlite3.connect('t.db'); _ = c.execute('create table t(x)'); c.commit(); c.close()",
            "r = ask()",
            "c = sqlite3.connect('t.db'); _ = c.execute('insert into t values (?)', (r,)); c.commit(); c.close()",
            "c = sqlite3.connect('t.db'); rows = c.execute('select x from t').fetchall(); c.close()",
            "print(rows); del c",
        ],
    ),
}

FILES = {
    "handle opened earlier": (
        [
            "f = open('log.txt', 'w')",
            "r = ask()",
            "_ = f.write(r + '\\n'); f.flush()",
            "_ = f.write('end\\n'); f.flush()",
            "print(open('log.txt').read())",
            "f.close(); del f",
        ],
    ),
    "handle opened earlier, closed by the reader": (
        [
            "f = open('log.txt', 'w')",
            "r = ask()",
            "_ = f.write(r)",
            "f.close()",
            "t = open('log.txt').read(); del f",
            "print(t)",
        ],
    ),
    "handle opened earlier, not in what depends": (
        [
            "f = open('log.txt', 'w'); _ = f.write('head '); f.flush()",
            "r = ask()",
            "m = r.upper()",
            "_ = f.write('tail'); f.close()",
            "t = open('log.txt').read(); del f",
            "print(m, t)",
        ],
    ),
    "handle read on": (
        [
            "open('in.txt', 'w').write('1\\n2\\n3\\n4\\n'); f = open('in.txt')",
            "r = ask()",
            "a = [f.readline() for _ in r]",
            "b = f.readline()",
            "f.close(); del f; print(a, b)",
        ],
        "bb",
    ),
    "csv writer over a handle": (
        [
            "import csv\nf = open('o.csv', 'w', newline=''); w = csv.writer(f)",
            "r = ask()",
            "_ = w.writerow([r, 1])",
            "f.close(); del f, w",
            "print(open('o.csv').read())",
        ],
    ),
    "logging to a file": (
        [
            "import logging\nlg = logging.getLogger('T_l'); h = logging.FileHandler('t.log'); lg.addHandler(h); lg.setLevel('INFO')",
            "r = ask()",
            "lg.info('got %s', r)",
            "t = open('t.log').read()",
            "print(t); lg.removeHandler(h); h.close()",
        ],
    ),
    "module written, then imported": (
        [
            "import sys; sys.path.insert(0, '')",
            "r = ask()",
            "open('gen_mod.py', 'w').write(f'V = {r!r}')",
            "import gen_mod",
            "v = gen_mod.V",
            "print(v)",
        ],
    ),
    "module written, read by importlib": (
        [
            "import sys, importlib; sys.path.insert(0, '')",
            "r = ask()",
            "open('gen_m2.py', 'w').write(f'V = {r!r}')",
            "m = importlib.import_module('gen_m2'); v = m.V",
            "print(v)",
        ],
    ),
    "module written, run by runpy": (
        [
            "import runpy",
            "r = ask()",
            "open('s.py', 'w').write(f'V = {r!r}')",
            "v = runpy.run_path('s.py')['V']",
            "print(v)",
        ],
    ),
    "file appended by name": (
        [
            "open('l', 'w').write('x')",
            "r = ask()",
            "open('l', 'a').write(r)",
            "open('l', 'a').write('z')",
            "print(open('l').read())",
        ],
    ),
    "file renamed": (
        [
            "import os\nopen('p', 'w').write('x')",
            "r = ask()",
            "os.rename('p', 'p_' + r)",
            "ls = sorted(x for x in os.listdir() if x.startswith('p'))",
            "print(ls)",
        ],
    ),
    "folder tree": (
        [
            "import os, shutil",
            "r = ask()",
            "os.makedirs(f'd/{r}/e'); open(f'd/{r}/e/f', 'w').write(r)",
            "shutil.copytree('d', 'd2')",
            "ls = sorted(str(p) for p in __import__('pathlib').Path('d2').rglob('*'))",
            "print(ls)",
        ],
    ),
    "symlink": (
        [
            "import os\nopen('one', 'w').write('1'); open('two', 'w').write('2')",
            "r = ask()",
            "os.symlink('one' if r == 'a' else 'two', 'cur')",
            "t = open('cur').read()",
            "print(t)",
        ],
    ),
    "temporary folder": (
        [
            "import tempfile, os, pathlib\nd = tempfile.mkdtemp(dir='.', prefix='T_')",
            "r = ask()",
            "p = pathlib.Path(d) / 'x'; _ = p.write_text(r)",
            "t = p.read_text()",
            "print(t); import shutil; shutil.rmtree(d); del d, p",
        ],
    ),
    "json rewritten in place": (
        [
            "import json\njson.dump({'n': 0}, open('st.json', 'w'))",
            "r = ask()",
            "s = json.load(open('st.json')); s['n'] += len(r); json.dump(s, open('st.json', 'w'))",
            "s = json.load(open('st.json')); s['n'] += 10; json.dump(s, open('st.json', 'w'))",
            "print(open('st.json').read())",
        ],
        "bbb",
    ),
    "zip archive": (
        [
            "import zipfile",
            "r = ask()",
            "with zipfile.ZipFile('z.zip', 'w') as z: z.writestr(zipfile.ZipInfo('n'), r)",
            "t = zipfile.ZipFile('z.zip').read('n')",
            "print(t); del z",
        ],
    ),
}

LIBRARIES = {
    "decimal context": (
        [
            "import decimal",
            "r = ask()",
            "decimal.getcontext().prec = 5 if r == 'a' else 9",
            "x = decimal.Decimal(1) / 3",
            "print(x)",
            "decimal.getcontext().prec = 28",
        ],
    ),
    "decimal, nothing changed": (
        ["import decimal\nx = decimal.Decimal('1.10')", "r = ask()", "y = x * len(r)", "print(y)"],
        "bbb",
    ),
    "decimal flags": (
        [
            "import decimal",
            "r = ask()",
            "y = decimal.Decimal(1) / (3 if r == 'a' else 2)",
            "f = bool(decimal.getcontext().flags[decimal.Inexact])",
            "print(f)",
        ],
    ),
    "decimal local context": (
        [
            "import decimal",
            "r = ask()",
            "with decimal.localcontext() as c:\n    c.prec = 4 if r == 'a' else 6\n    y = decimal.Decimal(2).sqrt()",
            "z = decimal.Decimal(2).sqrt()",
            "print(y, z); del c",
        ],
    ),
    "locale": (
        [
            "import locale",
            "r = ask()",
            "locale.setlocale(locale.LC_NUMERIC, 'C.UTF-8' if r == 'a' else 'C')",
            "l = locale.setlocale(locale.LC_NUMERIC)",
            "print(l)",
            "locale.setlocale(locale.LC_NUMERIC, 'C')",
        ],
    ),
    "logging level": (
        [
            "import logging\nlg = logging.getLogger('T_x')",
            "r = ask()",
            "lg.setLevel('DEBUG' if r == 'a' else 'ERROR')",
            "n = lg.getEffectiveLevel()",
            "print(n)",
        ],
    ),
    "logging handler added": (
        [
            "import logging, io\nlg = logging.getLogger('T_h'); buf = io.StringIO()",
            "r = ask()",
            "if r == 'a': lg.addHandler(logging.StreamHandler(buf))",
            "lg.warning('hm')",
            "print(buf.getvalue()); lg.handlers.clear()",
        ],
    ),
    "rcParams": (
        [
            "import matplotlib",
            "r = ask()",
            "matplotlib.rcParams['lines.linewidth'] = 5 if r == 'a' else 7",
            "w = matplotlib.rcParams['lines.linewidth']",
            "print(w)",
        ],
    ),
    "rcParams in a branch": (
        [
            "import matplotlib",
            "r = ask()",
            "if r == 'a': matplotlib.rcParams['font.size'] = 5",
            "w = matplotlib.rcParams['font.size']",
            "print(w)",
        ],
    ),
    "rcParams by a function, in a branch": (
        [
            "import matplotlib.pyplot as plt",
            "r = ask()",
            "if r == 'a': plt.rc('font', size=20)",
            "w = plt.rcParams['font.size']",
            "print(w)",
        ],
    ),
    "rcParams under another name": (
        [
            "import matplotlib.pyplot as plt\nparams = plt.rcParams",
            "r = ask()",
            "if r == 'a': params['font.size'] = 20",
            "w = plt.rcParams['font.size']",
            "print(w)",
        ],
    ),
    "pandas option, looked up by its path": (
        [
            "import pandas as pd",
            "r = ask()",
            "if r == 'a': pd.set_option('display.max_rows', 5)",
            "w = pd.options.display.max_rows",
            "print(w)",
        ],
    ),
    "style used": (
        [
            "import matplotlib.pyplot as plt",
            "r = ask()",
            "plt.style.use('ggplot' if r == 'a' else 'default')",
            "w = plt.rcParams['axes.facecolor']",
            "print(w)",
        ],
    ),
    "pandas option": (
        [
            "import pandas as pd",
            "r = ask()",
            "pd.set_option('display.max_rows', 5 if r == 'a' else 7)",
            "w = pd.get_option('display.max_rows')",
            "print(w)",
            "pd.reset_option('display.max_rows')",
        ],
    ),
    "pandas option, a frame shown": (
        [
            "import pandas as pd\ndf = pd.DataFrame({'x': [1.23456, 2]})",
            "r = ask()",
            "pd.options.display.precision = 1 if r == 'a' else 3",
            "df",
            "pd.reset_option('display.precision')",
        ],
    ),
    "numpy print options": (
        [
            "import numpy as np",
            "r = ask()",
            "np.set_printoptions(precision=2 if r == 'a' else 4)",
            "np.array([1.23456789])",
            "np.set_printoptions(precision=8)",
        ],
    ),
    "numpy error state": (
        [
            "import numpy as np",
            "r = ask()",
            "old = np.seterr(divide='ignore' if r == 'a' else 'raise')",
            "try:\n    x = np.array([1.0]) / 0; e = ''\nexcept FloatingPointError as err: e = str(err); x = None",
            "print(e)",
            "_ = np.seterr(**old)",
        ],
    ),
    "recursion limit": (
        [
            "import sys",
            "r = ask()",
            "sys.setrecursionlimit(3000 if r == 'a' else 4000)",
            "n = sys.getrecursionlimit()",
            "print(n)",
        ],
    ),
    "warnings filters": (
        [
            "import warnings",
            "r = ask()",
            "if r == 'a': warnings.filterwarnings('error', message='T_')",
            "try:\n    warnings.warn('T_ x'); e = 0\nexcept UserWarning: e = 1",
            "print(e)",
        ],
    ),
    "socket timeout": (
        [
            "import socket",
            "r = ask()",
            "socket.setdefaulttimeout(3 if r == 'a' else 4)",
            "n = socket.getdefaulttimeout()",
            "print(n)",
            "socket.setdefaulttimeout(None)",
        ],
    ),
    "env by putenv and pop": (
        [
            "import os\nos.environ['T_A'] = '1'",
            "r = ask()",
            "if r == 'a': os.environ.pop('T_A')",
            "v = os.getenv('T_A')",
            "print(v)",
        ],
    ),
    "env in a dict of settings": (
        [
            "import os\ndef settings(): return {k: v for k, v in os.environ.items() if k.startswith('T_K')}",
            "r = ask()",
            "os.environ['T_K' + r] = '1'",
            "s = settings()",
            "print(s)",
        ],
    ),
    "sys.path": (
        [
            "import sys",
            "r = ask()",
            "sys.path.append('T_' + r)",
            "n = [p for p in sys.path if p.startswith('T_')]",
            "print(n)",
        ],
    ),
    "sys.path removed": (
        [
            "import sys; sys.path.append('T_x')",
            "r = ask()",
            "if r == 'a': sys.path.remove('T_x')",
            "n = 'T_x' in sys.path",
            "print(n)",
        ],
    ),
    "csv dialect": (
        [
            "import csv, io",
            "r = ask()",
            "csv.register_dialect('T_d', delimiter=';' if r == 'a' else '|')",
            "row = next(csv.reader(['1;2|3'], 'T_d'))",
            "print(row)",
        ],
    ),
    "codec and mime types": (
        [
            "import mimetypes",
            "r = ask()",
            "mimetypes.add_type('text/x-' + r, '.tq')",
            "t = mimetypes.guess_type('a.tq')[0]",
            "print(t)",
        ],
    ),
    "time zone": (
        [
            "import os, time",
            "r = ask()",
            "os.environ['TZ'] = 'UTC' if r == 'a' else 'Asia/Tokyo'; time.tzset()",
            "h = time.localtime(0).tm_hour",
            "print(h)",
            "os.environ['TZ'] = 'UTC'; time.tzset()",
        ],
    ),
    "atexit": (
        [
            "import atexit\ndef bye(): pass",
            "r = ask()",
            "if r == 'a': _ = atexit.register(bye)",
            "n = len(r)",
            "print(n)",
        ],
    ),
    "__init_subclass__ registry": (
        [
            "class Plugin:\n    reg = {}\n    def __init_subclass__(cls): Plugin.reg[cls.__name__] = cls",
            "r = ask()",
            "if r == 'a':\n    class P1(Plugin): pass",
            "print(sorted(Plugin.reg))",
        ],
    ),
}

ANNOTATIONS = {
    "function annotations": (
        ["r = ask()", "def f(x: r) -> int: return 1", "ann = f.__annotations__['x']", "print(ann)"],
    ),
    "annotations of a class": (
        ["r = ask()", "class A:\n    x: r = 1", "ann = A.__annotations__['x']", "print(ann)"],
    ),
    "annotations read by typing": (
        [
            "import typing\nr = ask()",
            "def f(x: r) -> int: return 1",
            "ann = typing.get_type_hints(f) if False else f.__annotations__",
            "print(ann)",
        ],
    ),
    "schema of a tool": (
        [
            "import inspect\nr = ask()",
            "def tool(x: str = r) -> str:\n    'Looks up.'\n    return x",
            "sig = str(inspect.signature(tool))",
            "print(sig)",
        ],
    ),
    "docstring": (
        ["r = ask()", "def f(): pass\nf.__doc__ = 'says ' + r", "d = f.__doc__", "print(d)"],
    ),
    "annotated Literal": (
        [
            "from typing import Literal\nr = ask()",
            "def pick(x: Literal['z', 'y'] = r): return x",
            "t = pick()",
            "print(t)",
        ],
    ),
    "pydantic model": (
        [
            "from pydantic import BaseModel, create_model\nr = ask()",
            "M = create_model('M', x=(str, r))",
            "m = M().x",
            "print(m)",
        ],
    ),
    "dataclass field default": (
        [
            "from dataclasses import dataclass\nr = ask()",
            "@dataclass\nclass D:\n    x: str = r",
            "d = D().x",
            "print(d)",
        ],
    ),
}

CONTROL = {
    "context manager with state": (
        [
            "class Tx:\n    log = []\n    def __enter__(self): Tx.log.append('in'); return self\n    def __exit__(self, *e): Tx.log.append('err' if e[0] else 'out'); return True",
            "r = ask()",
            "with Tx():\n    {'a': 1}[r]",
            "print(Tx.log)",
        ],
    ),
    "ExitStack left open": (
        [
            "import contextlib\ns = contextlib.ExitStack(); log = []",
            "r = ask()",
            "_ = s.callback(log.append, r)",
            "s.close()",
            "print(log)",
        ],
    ),
    "patch as a context": (
        [
            "from unittest import mock\nclass A: v = 1",
            "r = ask()",
            "with mock.patch.object(A, 'v', r): seen = A.v",
            "print(seen, A.v)",
        ],
    ),
    "patch started": (
        [
            "from unittest import mock\nclass A: v = 1\np = mock.patch.object(A, 'v', 2)",
            "r = ask()",
            "if r == 'a': _ = p.start()",
            "print(A.v)",
        ],
    ),
    "best-so-far over replies": (
        [
            "best = None; scores = []",
            "for p in ('q', 'z', 'y'):\n    t = ask(p); scores.append(len(t))\n    if best is None or len(t) > len(best): best = t",
            "print(best, scores)",
        ],
        "bbbbbbbb",
    ),
    "retry loop": (
        [
            "tries = 0; out = None",
            "while out is None and tries < 3:\n    tries += 1\n    t = ask()\n    out = t if t == 'a' else None",
            "print(tries, out)",
        ],
    ),
    "early exit by raise": (
        [
            "state = {'step': 0}",
            "r = ask()",
            "state['step'] = 1\nif r == 'b': raise ValueError('stop')\nstate['step'] = 2",
            "print(state)",
        ],
    ),
    "late finally": (
        [
            "log = []",
            "r = ask()",
            "try:\n    log.append('try')\n    if r == 'b': raise KeyError\nexcept KeyError:\n    log.append('except')\nelse:\n    log.append('else')\nfinally:\n    log.append('finally')",
            "print(log)",
        ],
    ),
    "del item in a branch": (
        ["d = {'x': 1, 'y': 2}", "r = ask()", "if r == 'a': del d['x']", "print(d)"],
    ),
    "list cleared": (
        [
            "xs = [1, 2]; ys = xs",
            "r = ask()",
            "xs.clear() if r == 'a' else xs.reverse()",
            "print(ys)",
        ],
    ),
    "sorted in place": (
        ["xs = [3, 1, 2]", "r = ask()", "if r == 'a': xs.sort()", "first = xs[0]", "print(first)"],
    ),
    "exec with a namespace": (
        [
            "ns = {'n': 0}",
            "r = ask()",
            "exec(f'n += {len(r)}', ns)",
            "v = ns['n']; ns.pop('__builtins__', None)",
            "print(v)",
        ],
        "bbb",
    ),
    "eval of a reply": (
        ["x = 1; y = 2", "r = ask()", "v = eval({'a': 'x', 'b': 'y'}[r])", "y = 5", "print(v)"],
    ),
    "setattr by a reply": (
        [
            "class C: pass\nc = C()",
            "r = ask()",
            "setattr(c, r, 1)",
            "ks = sorted(vars(c))",
            "print(ks)",
        ],
    ),
    "globals by a reply": (
        [
            "r = ask()",
            "globals()[f'out_{r}'] = 1",
            "ks = sorted(k for k in globals() if k.startswith('out_'))",
            "print(ks)",
        ],
    ),
    "lambda late bound": (
        [
            "r = ask()",
            "fs = [lambda: r for _ in range(2)]",
            "r2 = fs[0]()",
            "r = 'later'",
            "print(fs[1]())",
        ],
    ),
    "recursion with memo": (
        [
            "memo = {}\ndef fib(n):\n    if n not in memo: memo[n] = n if n < 2 else fib(n - 1) + fib(n - 2)\n    return memo[n]",
            "r = ask()",
            "x = fib(len(r))",
            "y = fib(4)",
            "print(x, y, len(memo))",
        ],
        "bbbbbbbb",
    ),
    "out and underscore": (
        ["r = ask()", "r.upper()", "x = _", "y = Out[2] if 2 in Out else None", "print(x)"],
    ),
    "star import": (
        [
            "open('st.py', 'w').write('K = []\\ndef put(x): K.append(x)')\nimport sys; sys.path.insert(0, '')",
            "from st import *",
            "r = ask()",
            "put(r)",
            "put('z')",
            "print(K)",
        ],
    ),
    "reload of a module": (
        [
            "open('rl.py', 'w').write('V = 1')\nimport sys, importlib; sys.path.insert(0, ''); sys.dont_write_bytecode = True\nimport rl",
            "r = ask()",
            "open('rl.py', 'w').write(f'V = {r!r}; W = 22')\n_ = importlib.reload(rl)",
            "print(rl.V)",
        ],
    ),
    "threads append": (
        [
            "import threading\nlog = []",
            "r = ask()",
            "t = threading.Thread(target=log.append, args=(r,)); t.start(); t.join(); del t",
            "print(log)",
        ],
    ),
    "executor kept": (
        [
            "from concurrent.futures import ThreadPoolExecutor\nex = ThreadPoolExecutor(1); log = []",
            "r = ask()",
            "_ = ex.submit(log.append, r).result()",
            "ex.shutdown(); del ex; print(log)",
        ],
    ),
    "task without await, in what depends": (
        [
            "import asyncio\nlog = []\nasync def w(x): log.append(x)",
            "r = ask()",
            "t = asyncio.create_task(w(r))",
            "await t; del t; print(log)",
        ],
    ),
    "conversation history": (
        [
            "msgs = [{'role': 'user', 'content': 'q'}]",
            "r = ask()\nmsgs.append({'role': 'assistant', 'content': r})",
            "msgs.append({'role': 'user', 'content': 'z'})\ns = ask('z')\nmsgs.append({'role': 'assistant', 'content': s})",
            "n = len(msgs)",
            "print(msgs)",
        ],
    ),
    "conversation cut": (
        [
            "msgs = ['s']",
            "msgs.append(ask())",
            "msgs[:] = msgs[-1:]",
            "msgs += ['z']",
            "print(msgs)",
        ],
    ),
    "agent object of one's own": (
        [
            "class Agent:\n    def __init__(self): self.msgs = []; self.cost = 0\n    def run(self, q):\n        t = ask(q); self.msgs.append(t); self.cost += len(t); return t\nag = Agent()",
            "x = ag.run('q')",
            "y = ag.run('z')",
            "print(ag.msgs, ag.cost)",
        ],
        "bbb",
    ),
    "plan, then steps": (
        [
            "done = []",
            "plan = ask()",
            "for step in plan: done.append(step.upper())",
            "report = ' '.join(done)",
            "print(report)",
        ],
        "bcd",
    ),
    "wide frame shown": (
        [
            "import pandas as pd\nr = ask()",
            "df = pd.DataFrame([[r * 12] * 12], columns=[f'column_{i}' for i in range(12)])",
            "print(df)",
            "df",
        ],
    ),
}

ORDERS = {
    "a cache that moves what it gave to its end": (
        [
            "from collections import OrderedDict\nclass LRU:\n    def __init__(self, n): self.n, self.d = n, OrderedDict()\n"
            "    def get(self, k):\n        self.d.move_to_end(k); return self.d[k]\n"
            "    def put(self, k, v):\n        self.d[k] = v\n        while len(self.d) > self.n: self.d.popitem(last=False)\n"
            "cache = LRU(2); cache.put('x', 1); cache.put('y', 2)",
            "r = ask()",
            "if r == 'a': cache.get('x')",
            "cache.put('z', 3)",
            "print(list(cache.d))",
        ],
    ),
    "an order, nobody reads": (
        [
            "from collections import OrderedDict\nd = OrderedDict(a=1, b=2)",
            "r = ask()",
            "if r == 'a': d.move_to_end('a')",
        ],
    ),
    "a dict's order": (["d = dict(a=1, b=2)", "r = ask()", "if r == 'a': d['a'] = d.pop('a')"],),
}

BOUND = {
    "append kept as a name": (
        [
            "xs = []\nadd = xs.append\ndel xs",
            "r = ask()",
            "if r == 'a': add(1)",
            "print(add.__self__)",
        ],
    ),
    "a generator's method kept as a name": (
        [
            "import random\ndraw = random.Random(1).random",
            "r = ask()",
            "if r == 'a': draw()",
            "print(draw())",
        ],
    ),
    "a lock left held": (
        [
            "import threading\nlock = threading.Lock()",
            "r = ask()",
            "if r == 'a': lock.acquire()",
            "print(lock.locked())",
        ],
    ),
    "an array that is closed to writes": (
        [
            "import numpy as np\nv = np.zeros(3)",
            "r = ask()",
            "if r == 'a': v.flags.writeable = False",
            "try:\n    v[0] = 1\nexcept ValueError: pass",
            "print(v)",
        ],
    ),
}

PLUGINS = {
    "a module from a file's spec": (
        [
            "_ = open('plug.py', 'w').write('STATE = []\\ndef run(x):\\n    STATE.append(x)\\n    return len(STATE)\\n')\n"
            "import importlib.util as iu\nspec = iu.spec_from_file_location('plug', 'plug.py')\n"
            "plug = iu.module_from_spec(spec); spec.loader.exec_module(plug); del spec",
            "r = ask()",
            "if r == 'a': plug.run('k')",
            "n = plug.run('z')",
            "print(n, plug.STATE)",
        ],
    ),
    "a module made by hand": (
        [
            "import types\nm = types.ModuleType('m')\nexec('n = 0\\ndef inc():\\n    global n\\n    n += 1', m.__dict__)",
            "r = ask()",
            "if r == 'a': m.inc()",
            "print(m.n)",
        ],
    ),
    "what a function that exec made keeps": (
        [
            "def make():\n    ns = {}\n    exec('n = 0\\ndef up(k):\\n    global n\\n    n += k; return n', ns)\n    return ns['up']\nup = make()",
            "r = ask()",
            "_ = up(len(r))",
            "x = up(1)",
            "print(x)",
        ],
        "bbb",
    ),
    "an object of a class that exec made": (
        [
            "ns = {}",
            "r = ask()",
            "exec(f'class Made:\\n    v = {r!r}', ns)",
            "made = ns['Made']()",
            "print(made.v)",
        ],
    ),
    "a namespace that exec filled": (
        [
            "ns = {}\nexec('n = 0\\ndef inc():\\n    global n\\n    n += 1', ns)",
            "r = ask()",
            "if r == 'a': ns['inc']()",
            "print(ns['n'])",
        ],
    ),
}

LIBRARY_OBJECTS = {
    "mode of a file": (
        [
            "import os\nopen('x.sh', 'w').write('x'); os.chmod('x.sh', 0o644)",
            "r = ask()",
            "if r == 'a': os.chmod('x.sh', 0o755)",
            "m = oct(os.stat('x.sh').st_mode & 0o777)",
            "print(m)",
        ],
    ),
    "json default encoder": (
        [
            "import json",
            "r = ask()",
            "if r == 'a': json.JSONEncoder.default = lambda s, o: 'X'",
            "try:\n    t = json.dumps({1, 2})\nexcept TypeError: t = 'no'",
            "print(t)",
        ],
    ),
}

IN = "if r == 'a':\n    "
HANDLERS = {
    "handler called with options": (
        [
            "log = []\ndef f(x): log.append(x); return 1\ndef g(x, **k): log.append(-x); return 2\nH = {'a': f, 'b': g}\nargs = {'x': 1}",
            "r = ask()",
            "y = H[r](**args)",
            "print(y, log)",
            "args['x'] = 7",
            "print(log)",
        ],
    ),
    "handler called with options, in a function": (
        [
            "log = []\ndef f(x): log.append(x); return 1\ndef g(x): log.append(-x); return 2\nH = {'a': f, 'b': g}\n"
            "def run(n, *a, **k): return H[n](*a, **k)",
            "r = ask()",
            "y = run(r, x=5)",
            "print(y, log)",
        ],
    ),
    "handler changes what it is handed": (
        [
            "def f(box): box.append(1)\ndef g(box): box.clear()\nH = {'a': f, 'b': g}; b = [9]; options = {'box': b}",
            "r = ask()",
            "H[r](**options)",
            "print(b)",
            "n = len(b)",
        ],
    ),
    "handler binds a name": (
        [
            "n = 0\ndef f(**k):\n    global n\n    n += 1\ndef g(**k):\n    global n\n    n += 10\nH = dict(a=f, b=g)",
            "r = ask()",
            "H[r](**{'z': 1})",
            "print(n)",
            "m = n * 2",
        ],
    ),
}
UNUSUAL = {
    "umask": (["import os", "r = ask()", "old = os.umask(0o077 if r == 'a' else 0o022)", "cur = os.umask(0o022)", "print(cur)"],),
    "umask, a file made later": (["import os", "r = ask()", IN + "_ = os.umask(0o077)", "open('f', 'w').close()\nprint(oct(os.stat('f').st_mode))", "_ = os.umask(0o022)"],),
    "abc registration": (
        ["import abc\nclass Base(abc.ABC): pass\nclass K: pass", "r = ask()", IN + "_ = Base.register(K)", "x = isinstance(K(), Base)", "print(x)"],
    ),
    "an object's class assigned": (["class A: x = 1\nclass B: x = 2\nos_ = [A(), A()]", "r = ask()", IN + "os_[1].__class__ = B", "print([o.x for o in os_])"],),
    "a mask where there was none": (["import numpy as np\nm = np.ma.array([1, 2, 3])", "r = ask()", IN + "m[1] = np.ma.masked", "print(m, repr(m))"],),
    "a ctypes buffer": (["import ctypes\nb = ctypes.create_string_buffer(b'abc')", "r = ask()", IN + "ctypes.memmove(b, b'xyz', 3)", "print(b.value)"],),
    "a ctypes array": (["import ctypes\na = (ctypes.c_int * 3)(1, 2, 3)", "r = ask()", IN + "a[1] = 50", "print(list(a))"],),
    "a query asks for a variable": (["import pandas as pd\ndf = pd.DataFrame({'x': [1, 2, 3]}); t = 1", "r = ask()", IN + "t = 2", "print(df.query('x > @t'))"],),
    "a query in a function": (
        ["import pandas as pd\ndf = pd.DataFrame({'x': [1, 2, 3]}); t = 1\ndef q(): return df.query('x > @t')", "r = ask()", IN + "t = 2", "print(len(q()))"],
    ),
    "times of a file": (["import os\nopen('f', 'w').write('x'); os.utime('f', (1, 1))", "r = ask()", IN + "os.utime('f', (5, 5))", "print(os.stat('f').st_mtime)"],),
    "signal handler": (["import signal", "r = ask()", IN + "signal.signal(signal.SIGUSR1, print)", "print(signal.getsignal(signal.SIGUSR1))"],),
    "decimal's default context": (["import decimal", "r = ask()", IN + "decimal.DefaultContext.prec = 5", "print(decimal.Context().prec)"],),
    "name of a level": (["import logging", "r = ask()", IN + "logging.addLevelName(35, 'NOTE')", "print(logging.getLevelName(35))"],),
    "first day of the week": (["import calendar", "r = ask()", IN + "calendar.setfirstweekday(6)", "print(calendar.firstweekday())"],),
    "code of a function": (["def f(): return 1\ndef g(): return 2", "r = ask()", IN + "f.__code__ = g.__code__", "print(f())"],),
    "xml tree": (["import xml.etree.ElementTree as E\nt = E.fromstring('<a><b/></a>')", "r = ask()", IN + "t.append(E.Element('c')); t[0].set('k', '1')", "print(E.tostring(t))"],),
    "hash that is fed": (["import hashlib\nh = hashlib.sha256()", "r = ask()", IN + "h.update(b'x')", "print(h.hexdigest()[:8])"],),
    "shared memory": (
        ["from multiprocessing import shared_memory as sm\ns = sm.SharedMemory(create=True, size=4)", "r = ask()", IN + "s.buf[0] = 7", "print(s.buf[0])", "s.close(); s.unlink(); del s"],
    ),
    "a process that is talked to": (
        [
            "import subprocess, sys\nbody = 'n = 0\\nwhile True:\\n input()\\n n += 1\\n print(n, flush=True)'\n"
            "p = subprocess.Popen([sys.executable, '-uc', body], stdin=-1, stdout=-1, text=True)\n"
            "def say():\n    p.stdin.write('x\\n'); p.stdin.flush(); return p.stdout.readline()",
            "r = ask()",
            IN + "_ = say()",
            "print(say())",
            "p.kill(); _ = p.wait(); p.stdin.close(); p.stdout.close(); del p",
        ],
    ),
}  # fmt: skip

NOTEBOOKS = {
    **LIBRARY_OBJECTS,
    **ORDERS,
    **BOUND,
    **PLUGINS,
    **RANDOMNESS,
    **LARGE,
    **VIEWS,
    **ITERATORS,
    **CACHES,
    **FILES,
    **LIBRARIES,
    **ANNOTATIONS,
    **CONTROL,
    **UNUSUAL,
    **HANDLERS,
}

SAID = {
    "subclasses of a class": (
        [
            "class P: pass",
            "r = ask()",
            IN + "class K(P): pass",
            "print([k.__name__ for k in P.__subclasses__()])",
        ],
    ),
    "a pipe": (
        [
            "import os\na, b = os.pipe()",
            "r = ask()",
            IN + "_ = os.write(b, b'xy')",
            "_ = os.write(b, b'z'); print(os.read(a, 10))",
            "os.close(a); os.close(b); del a, b",
        ],
    ),
    "builtin patched": (
        [
            "import builtins\norig = builtins.len",
            "r = ask()",
            "if r == 'a': builtins.T_flag = 1",
            "import builtins\nx = hasattr(builtins, 'T_flag')",
            "print(x)",
        ],
    ),
    "copyreg and pickles": (
        [
            "import copyreg, pickle\nclass Z: pass",
            "r = ask()",
            "if r == 'a': copyreg.pickle(Z, lambda z: 'Z')",
            "import copyreg\nx = Z in copyreg.dispatch_table",
            "print(x)",
        ],
    ),
    "annotations of the module": (
        ["r = ask()", "n: r = 1", "ann = __annotations__['n']", "print(ann)"],
    ),
}
"""What is wrong in place, and said by the proof: state where nobody looks."""
