"""Notebooks of agents whose tools keep state where few look, as `adversarial_tools.py` has them: name -> (cells, reply)."""

R = "%%tape record\n"

NOTEBOOKS = {
    "a memoised store that a tool fills": (
        ["import functools\n@functools.cache\ndef store(kind): return {'kind': kind, 'docs': []}\n@tape.tool\ndef index(kind, doc):\n    store(kind)['docs'].append(doc); return len(store(kind)['docs'])", R + "mood = ask()\nn = index('notes', mood)", R + "m = index('notes', 'z')", R + "k = index(mood, 'other')", "print(n, m, k, store('notes'), store.cache_info())"],
    ),
    "a memoised helper of few entries": (
        ["import functools\nran = []\n@functools.lru_cache(maxsize=2)\ndef norm(x):\n    ran.append(x); return x.upper()\n@tape.tool\ndef look(x): return norm(x) + norm('z')", "norm('p')", R + "mood = ask()\nq = look(mood)", "w = norm('p'), norm('z')", "print(q, w, ran, norm.cache_info())"],
    ),
    "a memoised method and a memoised cell": (
        ["import functools\nclass Rates:\n    calls = 0\n    @functools.lru_cache(maxsize=None)\n    def of(self, x, *, scale=1):\n        Rates.calls += 1; return len(x) * scale\nrates = Rates()\n@tape.tool\ndef quote(x): return rates.of(x, scale=3)", R + "mood = ask()\nq = quote(mood)", "direct = rates.of(mood, scale=3), rates.of(mood)", "print(q, direct, Rates.calls, Rates.of.cache_info()[:2])"], "bbb",
    ),
    "a cache that is cleared by a tool": (
        ["import functools\n@functools.cache\ndef prompt(name): return ['you are', name]\nprompt('x')\n@tape.tool\ndef reset(name):\n    prompt.cache_clear(); prompt(name).append('!'); return name", R + "mood = ask()\nreset(mood)", "p = prompt(mood), prompt('x')", "print(p, prompt.cache_info())"],
    ),
    "a default argument that a tool collects in": (
        ["@tape.tool\ndef remember(x, log=[]):\n    log.append(x); return list(log)\nview = remember.__wrapped__.__defaults__[0] if hasattr(remember, '__wrapped__') else remember.__defaults__[0]", R + "mood = ask()\na = remember(mood)", R + "b = remember('z')", "print(a, b, view)"],
    ),
    "a closure of counters, made by a factory": (
        ["def meter(limit):\n    used, refused = 0, []\n    @tape.tool\n    def spend(what):\n        nonlocal used\n        used += len(what)\n        if used > limit: refused.append(what); return 'no'\n        return limit - used\n    return spend, lambda: (used, list(refused))\nspend, seen = meter(4)", R + "mood = ask()\na = spend(mood)", R + "b = spend('zz')", "c = seen()\nprint(a, b, c)"], "bbb",
    ),
    "sqlite in a file, a row a call": (
        ["import sqlite3\ndb = sqlite3.connect('log.db', isolation_level=None)\n_ = db.execute('CREATE TABLE log (id INTEGER PRIMARY KEY AUTOINCREMENT, what TEXT)')\n@tape.tool\ndef note(what): return db.execute('INSERT INTO log (what) VALUES (?)', (what,)).lastrowid", R + "mood = ask()\nids = [note(c) for c in mood]", R + "last = note('z')", "rows = db.execute('SELECT id, what FROM log ORDER BY id').fetchall()\nprint(ids, last, rows)", "db.close(); del db"], "bcd",
    ),
    "sqlite in memory with a row that is updated": (
        ["import sqlite3\ndb = sqlite3.connect(':memory:', isolation_level=None)\n_ = db.executescript('CREATE TABLE s (k TEXT PRIMARY KEY, n INT); INSERT INTO s VALUES (\"q\", 5)')\n@tape.tool\ndef take(n):\n    db.execute('UPDATE s SET n = n - ?', (n,)); return db.execute('SELECT n FROM s').fetchone()[0]", R + "mood = ask()\nleft = take(len(mood))", R + "then = take(1)", "rows = db.execute('SELECT * FROM s').fetchall()\nprint(left, then, rows)"], "bbb",
    ),
    "a context variable that a tool moves on": (
        ["import contextvars\ntrail = contextvars.ContextVar('trail', default=())\n@tape.tool\ndef step(x):\n    trail.set((*trail.get(), x)); return len(trail.get())", R + "mood = ask()\na = step(mood)", R + "b = step('z')", "c = trail.get()\nprint(a, b, c)"],
    ),
    "a queue between two tools": (
        ["import queue\njobs = queue.PriorityQueue()\n@tape.tool\ndef plan(x):\n    for n, c in enumerate(reversed(x)): jobs.put((ord(c), n, c))\n    return jobs.qsize()\n@tape.tool\ndef work(): return jobs.get_nowait()[2] if not jobs.empty() else None", R + "mood = ask()\nn = plan(mood)", R + "one = work()", R + "two = work()", "print(n, one, two, jobs.qsize())"], "cb",
    ),
    "numpy's generator, drawn by a tool and by a cell": (
        ["import numpy as np\nrng = np.random.default_rng(11)\n@tape.tool\ndef sample(k): return rng.integers(100, size=k).tolist()", R + "mood = ask()\nxs = sample(len(mood))", "y = int(rng.integers(100))", R + "zs = sample(2)", "print(xs, y, zs)"], "bbb",
    ),
    "the process' own generator, drawn by taped cells": (
        ["import random\nrandom.seed(3)", R + "mood = ask()\nxs = [random.random() for _ in mood]", "y = random.random()", R + "zs = ask('z') + str(random.random())", R + "k = ask('z' + str(random.randrange(1000)))", "print(xs, y, zs, k)"], "bbb",
    ),
    "numpy's own generator, drawn by a tool": (
        ["import numpy as np\nnp.random.seed(3)\n@tape.tool\ndef jitter(n): return np.random.rand(n).round(3).tolist()", R + "mood = ask()\nxs = jitter(len(mood))", "w = np.random.rand(1).tolist()", R + "zs = jitter(2); v = ask('v' + str(zs))", "print(xs, w, zs, v)"], "bbb",
    ),
    "a registry of classes by a hook": (
        ["class Tool:\n    kinds = {}\n    def __init_subclass__(cls, **k):\n        super().__init_subclass__(**k); Tool.kinds[cls.__name__] = cls; cls.used = 0\nclass Echo(Tool):\n    @tape.tool\n    def run(self, x):\n        type(self).used += 1; return x * 2", R + "mood = ask()\na = Tool.kinds['Echo']().run(mood)", "if mood == 'b':\n    class Loud(Echo):\n        def run(self, x): return super().run(x).upper()", R + "b = [k().run('z') for k in list(Tool.kinds.values())]", "print(a, b, {n: k.used for n, k in Tool.kinds.items()})"],
    ),
    "a file that grows and is read back with its place": (
        ["log = open('events.log', 'w+')\n@tape.tool\ndef event(x):\n    log.seek(0, 2); log.write(f'{x}\\n'); log.flush(); return log.tell()", R + "mood = ask()\na = event(mood)", R + "b = event('z')", "log.seek(0); lines = log.read().split()\nprint(a, b, lines)", "log.close(); del log"], "bbb",
    ),
    "a heap and a counter in one object with slots": (
        ["import heapq, itertools\nclass Agenda:\n    __slots__ = ('heap', 'count')\n    def __init__(self): self.heap, self.count = [], itertools.count()\n    @tape.tool\n    def add(self, what):\n        heapq.heappush(self.heap, (-len(what), next(self.count), what)); return self.heap[0][2]\nagenda = Agenda()", R + "mood = ask()\na = agenda.add(mood)", R + "b = agenda.add('zz')", "print(a, b, agenda.heap, next(agenda.count))"], "bbb",
    ),
    "a memoised tool in a handler table with async": (
        ["import asyncio, functools\nhits = {}\n@functools.cache\ndef embed(x):\n    hits[x] = hits.get(x, 0) + 1; return tuple(map(ord, x))\n@tape.tool\nasync def search(q):\n    await asyncio.sleep(0); return sum(embed(q)) + sum(embed('base'))\nHANDLERS = {'search': search}", R + "mood = ask()\na = await HANDLERS['search'](mood)", R + "b = await HANDLERS['search']('z' + mood)", "c = embed('base'), embed(mood)", "print(a, b, c, hits, embed.cache_info())"],
    ),
}  # fmt: skip

KINDS = {
    "class-level state behind a property setter": (["class Policy:\n    limit = 3; log = []\n    def __init__(self): self._m = 'x'\n    @property\n    def mood(self): return self._m\n    @mood.setter\n    def mood(self, v):\n        Policy.limit -= len(v); type(self).log.append(v); self._m = v\np = Policy()", R + 'mood = ask()', 'p.mood = mood', "q = Policy(); q.mood = 'zz'", 'print(Policy.limit, Policy.log, p.mood, q.limit)'], 'bbb'),
    "setattr hook that logs": (['seen = []\nclass Bag:\n    def __setattr__(self, k, v):\n        seen.append(k); object.__setattr__(self, k, v)\nb = Bag(); b.a = 1', R + 'mood = ask()', 'setattr(b, mood, 2)', 'b.c = 3', 'print(seen, sorted(vars(b)))'], 'bbb'),
    "nonlocal counter kept over cells": (["def meter():\n    n, parts = 0, []\n    def add(x):\n        nonlocal n, parts\n        n += len(x); parts = parts + [x]; return n\n    return add, lambda: (n, parts)\nadd, total = meter(); add('p')", R + 'mood = ask()', 'k = add(mood)', "m = add('zz')", 'print(k, m, total())'], 'bbb'),
    "generator with send": (['def talk():\n    got, heard = None, []\n    while True:\n        got = yield list(heard)\n        heard.append(got)\ng = talk(); next(g)', R + 'mood = ask()', 'a = g.send(mood)', "b = g.send('z')", 'print(a, b)'], 'bb'),
    "heap of tuples": (["import heapq\nheap = [(3, 'c')]; heapq.heapify(heap)", R + 'mood = ask()', 'heapq.heappush(heap, (len(mood), mood))', 'first = heapq.heappop(heap)', "heapq.heapreplace(heap, (9, 'w'))", 'print(first, sorted(heap))'], 'bbbb'),
    "deque with maxlen, rotated": (["from collections import deque\nd = deque(['1', '2', '3'], maxlen=3)", R + 'mood = ask()', 'd.append(mood)', 'd.rotate(len(mood))', "d.appendleft('z')", 'print(list(d), d.maxlen)'], 'bb'),
    "defaultdict with a factory that counts": (["from collections import defaultdict\nmade = []\ndef fac():\n    made.append(len(made)); return made[-1]\nd = defaultdict(fac); d['x']", R + 'mood = ask()', 'd[mood]', "d['x'], d['y']", 'print(dict(d), made)'], 'x'),
    "Counter, subtract and elements": (["from collections import Counter\nc = Counter('aab')", R + 'mood = ask()', 'c.subtract(mood)', "c += Counter('z')", 'print(sorted(c.elements()), c.most_common(1))'], 'b'),
    "ExitStack over cells": (["from contextlib import ExitStack, contextmanager\nlog = []\n@contextmanager\ndef step(n):\n    log.append('in ' + n); yield n; log.append('out ' + n)\nst = ExitStack(); st.enter_context(step('p'))", R + 'mood = ask()', 'x = st.enter_context(step(mood))', "st.callback(log.append, 'cb')", 'st.close()', 'print(log)'],),
    "asyncio queue over cells": (["import asyncio\nq = asyncio.Queue(); q.put_nowait('p')", R + 'mood = ask()', 'await q.put(mood)', 'one = await q.get()', "two = q.get_nowait(); q.put_nowait('z')", 'print(one, two, q.qsize())'],),
    "pandas view and copy": (["import pandas as pd\ndf = pd.DataFrame({'a': [1, 2, 3], 'b': ['x', 'y', 'z']}); sub = df[df.a > 1]; col = df['b']", R + 'mood = ask()', "df.loc[1, 'b'] = mood", "df.loc[df.b == 'b', 'a'] = 9", 'print(df.values.tolist(), sub.b.tolist(), col.tolist())'],),
    "numpy out= and in-place sort": (['import numpy as np\na = np.array([3., 1., 2.]); v = a[:2]; out = np.zeros(3)', R + 'mood = ask()', 'np.multiply(a, len(mood), out=out)', 'out.sort(); np.add(v, 1, out=v)', 'a.sort()', 'print(a.tolist(), v.tolist(), out.tolist())'], 'bbb'),
    "sort by a key that counts": (["calls = []\ndef key(x):\n    calls.append(x); return len(x)\nxs = ['ccc', 'dd']", R + 'mood = ask()', 'xs.append(mood); xs.sort(key=key)', 'ys = sorted(xs, key=key, reverse=True)', 'print(xs, ys, len(calls))'], 'bbbb'),
    "dict order, popped and put back": (["d = {'x': 1, 'a': 2, 'b': 3}", R + 'mood = ask()', 'd[mood] = d.pop(mood)', 'first = next(iter(d)); last = d.popitem()', 'print(list(d), first, last)'], 'b'),
    "set algebra in place": (['s = {1, 2, 3}; f = frozenset(s)', R + 'mood = ask()', 's.discard(len(mood)); s ^= {3, 9}', 't = s & f', 's |= {len(mood) * 5}', 'print(sorted(s), sorted(t))'], 'b'),
    "weak dictionary of replies": (["import weakref\nclass Doc:\n    def __init__(self, t): self.t = t\nkept = [Doc('p')]; idx = weakref.WeakValueDictionary({'p': kept[0]})", R + 'mood = ask()', 'kept.append(Doc(mood)); idx[mood] = kept[-1]', "if mood == 'a': kept.pop()", 'import gc; gc.collect(); ks = sorted(idx)', 'print(ks, [k.t for k in kept])'],),
    "singleton by __new__": (["class Conf:\n    _one = None\n    def __new__(cls, *a):\n        if cls._one is None:\n            cls._one = super().__new__(cls); cls._one.seen = []\n        return cls._one\n    def __init__(self, t='p'): self.seen.append(t); self.t = t\nConf()", R + 'mood = ask()', 'c = Conf(mood)', "d = Conf('z')", 'print(c is d, c.seen, Conf().t, len(c.seen))'],),
    "lru_cache cleared and wrapped": (["import functools\nran = []\n@functools.lru_cache(2)\ndef up(x):\n    ran.append(x); return x.upper()\nup('p')", R + 'mood = ask()', 'u = up(mood)', "up('q'); up('p')", 'w = up(mood), up.cache_info()', 'print(u, w, ran)'],),
    "monkeypatched library": (['import textwrap, json\n_sh = textwrap.shorten', R + 'mood = ask()', 'textwrap.shorten = lambda t, width, **k: t[:width] + mood', "s = textwrap.shorten('hello world', 5)", 'textwrap.shorten = _sh', "print(s, textwrap.shorten('hello world', 8))"],),
    "try, finally and a return": (["log = []\ndef run(x):\n    try:\n        if x == 'a': raise ValueError(x)\n        return x\n    except ValueError as e:\n        log.append(str(e)); return 'caught'\n    finally:\n        log.append('fin')", R + 'mood = ask()', 'r = run(mood)', "run('z')", 'print(r, log)'],),
    "walrus and match in one": (['kinds = []', R + 'mood = ask()', 'if (n := len(mood)) > 1: kinds.append(n)', "match {'m': mood, 'n': n}:\n    case {'m': 'a', **rest}: what = ('first', rest)\n    case {'m': str(s), 'n': k} if k > 1: what = (s, k)\n    case _: what = None", "print(kinds, what, 'rest' in globals(), 's' in globals())"], 'bbb'),
    "star unpacking": (["xs = list('pqr')", R + 'mood = ask()', 'head, *mid, tail = [*mood, *xs]', 'mid.append(head)', 'xs[1:2] = mid', 'a, (b, *c) = mood, xs', 'print(head, mid, tail, xs, c)'], 'bcd'),
    "del of names, items and slices": (["d = {'a': 1, 'b': 2}; xs = [1, 2, 3, 4]; tmp = 5", R + 'mood = ask()', 'del d[mood]', "del xs[:len(mood) + (1 if mood == 'b' else 0)]", "if mood == 'a': del tmp", "print(d, xs, 'tmp' in globals())"], 'b'),
    "exec, eval and globals": (["scope = {'n': 1}", R + 'mood = ask()', "exec('n += len(m); name = m', scope, None) if scope.update(m=mood) is None else 0", "v = eval('n * 2', scope); globals()['dyn_' + mood] = v", "print(v, scope['name'], sorted(k for k in globals() if k.startswith('dyn_')))"], 'bbb'),
    "underscore and Out": ([R + 'mood = ask()', 'mood * 2', "x = _ + '!'", 'x', 'print(Out[max(Out)], _, __)'],),
    "run of a script": (['open(\'job.py\', \'w\').write(\'S = globals().get("S", []) + [M]\\nprint(S)\')\nS = [\'p\']', R + 'mood = ask()', 'M = mood\n%run -i job.py', '%run -i job.py', 'print(S)'],),
    "user_ns by hand": (['acc = []', R + 'mood = ask()', "get_ipython().user_ns['key_' + mood] = 1; get_ipython().user_ns['acc'].append(mood)", "get_ipython().push({'z': len(acc)})", "print(acc, z, sorted(k for k in get_ipython().user_ns if k.startswith('key_')))"],),
    "conditional expression with effect": (["log = ['x']", R + 'mood = ask()', "log.append('y') if mood == 'b' else None", 'n = len(log)', 'print(n, log[-1])'],),
    "and, or with effect": (["log = ['x']; d = {'k': 1}", R + 'mood = ask()', "_ = mood == 'a' and log.append('y')", "_ = mood == 'b' or d.update(z=2)", 'n = len(log), len(d)', "print(n, log[-1], d.get('z'))"],),
    "settings replaced": (["from dataclasses import dataclass, replace, field\n@dataclass(frozen=True)\nclass S:\n    model: str = 'm'\n    system: str = 's'\n    tags: list = field(default_factory=list)\nbase = S()", R + 'mood = ask()', 'cfg = replace(base, system=mood)', "cfg.tags.append('t')", "hot = replace(cfg, model='h')", 'print(hot.model, hot.tags)', 'print(hot, base)'],),
    "rows, then a frame": (["import pandas as pd\nrows = [{'k': c, 'n': i} for i, c in enumerate('xyz')]", R + 'mood = ask()', "for r in rows: r['v'] = mood + r['k']", 'df = pd.DataFrame(rows)', "t = df['n'].sum()", "df['w'] = df['v'].str.len()", "print(t, df['k'].tolist())", 'print(df.values.tolist(), df.dtypes.astype(str).tolist())'],),
    "named tuple state": (["from typing import NamedTuple\nclass St(NamedTuple):\n    phase: str = 'start'\n    hist: tuple = ()\nst = St()", R + 'mood = ask()', 'st = st._replace(phase=mood)', "st = st._replace(hist=(*st.hist, 'x'))", 'h = st.hist', 'st = st._replace(hist=(*st.hist, st.phase))', 'print(h, st, st[0])'],),
    "environment by update and pop": (["import os\nos.environ.update(TQ_A='1')", R + 'mood = ask()', "os.environ.update(TQ_M=mood, TQ_N='n')", "n = os.environ['TQ_N']", "os.environ.setdefault('TQ_O', os.environ['TQ_M'] * 2)", "g = os.environ.pop('TQ_M'), os.environ.pop('TQ_O')", "print(n, g, 'TQ_M' in os.environ)", "del os.environ['TQ_A'], os.environ['TQ_N']"],),
    "context variables two": (["import contextvars\nu = contextvars.ContextVar('u', default='n'); t = contextvars.ContextVar('t', default=())", R + 'mood = ask()', 'tok = t.set((mood,))', "u.set('ann')", 'w = u.get()', 't.set((*t.get(), w))', 'print(w, t.get())'],),
}  # fmt: skip
"""State of other kinds: of a class, a closure, a heap, a queue, a view, a patched library, a name by hand."""

SAID = {
    "a generator that is seeded by what changed": (
        ["import random", R + "mood = ask()", "dice = random.Random(len(mood)); w = dice.random()", R + "zs = ask('v') + str(dice.random())", "print(w, zs)"], "bbb",
    ),
}  # fmt: skip
"""Where a whole run cannot be told from one that began elsewhere: that is said."""
