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

SAID = {
    "a generator that is seeded by what changed": (
        ["import random", R + "mood = ask()", "dice = random.Random(len(mood)); w = dice.random()", R + "zs = ask('v') + str(dice.random())", "print(w, zs)"], "bbb",
    ),
}  # fmt: skip
"""Where a whole run cannot be told from one that began elsewhere: that is said."""
