"""Notebooks that show things as only a kernel does, as `adversarial_tools.py` has them: name -> (cells, reply)."""

R = "%%tape record\n"

SHOWN = {
    "a wide frame": (["import pandas as pd", R + "mood = ask()", "df = pd.DataFrame([[mood * 12] * 12], columns=[f'column_{i}' for i in range(12)])\nprint(df)", "df"],),
    "capture": ([R + "mood = ask()", "%%capture out\nprint(mood)", "print(out.stdout.upper())"],),
    "capture, everything": (["from IPython.display import display, HTML", R + "mood = ask()", "%%capture out\nprint(mood); display(HTML('<b>x</b>'))", "n = len(out.outputs), out.stdout\nprint(n)"],),
    "store": ([R + "mood = ask()", "kept = mood * 2\n%store kept", "del kept", "%store -r kept\nprint(kept)"],),
    "widgets": (["import ipywidgets as w\nlabel = w.Label('x')", R + "mood = ask()", "label.value = mood", "label", "print(label.value)"],),
    "a widget that is observed": (["import ipywidgets as w\nlog = []\ns = w.IntSlider(value=1)\ns.observe(lambda c: log.append(c['new']), 'value')", R + "mood = ask()", "s.value = len(mood) + 3", "print(log)"], "bb"),
    "a widget's output": (["import ipywidgets as w\nout = w.Output()", R + "mood = ask()", "with out: print(mood)", "n = len(mood)\nprint(n)"], "bb"),
    "time": ([R + "mood = ask()", "%time x = mood.upper()", "%%time\ny = x * 2\nprint(y)", "print(x, y)"],),
    "timeit": ([R + "mood = ask()", "%timeit -n1 -r1 mood.upper()", "print(mood)"],),
    "patched json": (["import json\nreal = json.dumps", R + "mood = ask()", "if mood == 'a': json.dumps = lambda *a, **k: 'patched'", "print(json.dumps([1]))", "json.dumps = real"],),
    "json patched for good": (["import json\n_dumps = json.dumps\njson.dumps = lambda o, *a, **k: _dumps(o, *a, **k).upper()", R + "mood = ask()", "t = json.dumps({'m': mood})\nprint(t)", "json.dumps = _dumps"],),
    "json's encoder patched": (["import json", "json.JSONEncoder.default = lambda self, o: sorted(o) if isinstance(o, set) else repr(o)", R + "mood = ask()", "t = json.dumps({mood})\nprint(t)"],),
    "open patched": (["import builtins\n_open = builtins.open\nseen = []\ndef opening(f, *a, **k):\n    seen.append(str(f)[-5:]) if str(f).endswith('n.txt') else None\n    return _open(f, *a, **k)\nbuiltins.open = opening", R + "mood = ask()", "with open('n.txt', 'w') as f: _ = f.write(mood)\ndel f", "print(seen, open('n.txt').read())", "builtins.open = _open"],),
    "print patched": (["import builtins\n_print = print\nprint = lambda *a: _print('>', *a)", R + "mood = ask()", "print(mood)", "print('n', len(mood))"],),
    "a progress bar": (["from tqdm.auto import tqdm", R + "mood = ask()", "total = 0\nfor x in tqdm(range(3)): total += len(mood)", "print(total)"], "bbb"),
    "a display that is updated": (["from IPython.display import display", R + "mood = ask()", "h = display('wait', display_id='d1')", "h2 = display(mood, display_id='d1', update=True)", "print(mood)"],),
    "output cleared": (["from IPython.display import clear_output", R + "mood = ask()", "print('one'); clear_output(); print(mood)", "print('end')"],),
    "a figure": (["%matplotlib inline\nimport matplotlib.pyplot as plt", R + "mood = ask()", "_ = plt.plot([1, len(mood)]); plt.show()", "n = len(plt.get_fignums())\nprint(n)"], "bbb"),
    "a figure kept": (["import matplotlib.pyplot as plt\nfig, ax = plt.subplots(); plt.close(fig)", R + "mood = ask()", "_ = ax.set_title(mood)", "print(ax.get_title())"],),
    "html and markdown": (["from IPython.display import HTML, Markdown", R + "mood = ask()", "HTML(f'<b>{mood}</b>')", "Markdown('**x**')", "print(mood)"],),
    "stderr": (["import sys", R + "mood = ask()", "print(mood, file=sys.stderr)", "print(len(mood))"], "bb"),
    "logging": (["import logging\nlogging.basicConfig(level='INFO', force=True)\nlog = logging.getLogger('app')", R + "mood = ask()", "log.info('mood %s', mood)", "print(mood)"],),
    "a warning": (["import warnings", R + "mood = ask()", "warnings.warn('mood ' + mood)", "print(mood)"],),
    "precision": ([R + "mood = ask()", "if mood == 'a':\n    get_ipython().run_line_magic('precision', '2')", "1.23456", "%precision %r"],),
    "writefile and run": ([R + "mood = ask()", "%%writefile job.py\nM = 'x'", "%run job.py", "print(M, mood)"],),
    "env magic": ([R + "mood = ask()", "%env T_M=$mood", "import os\nm = os.environ['T_M']", "print(m)"],),
    "cd magic": (["import os\nos.makedirs('da', exist_ok=True); os.makedirs('db', exist_ok=True)", R + "mood = ask()", "%cd -q d$mood", "w = os.path.basename(os.getcwd())\nprint(w)", "%cd -q .."],),
    "who and whos": ([R + "mood = ask()", "if mood == 'a': extra = 1", "ks = sorted(k for k in get_ipython().run_line_magic('who_ls', '') if k in ('extra', 'mood'))\nprint(ks)"],),
    "macro of history": ([R + "mood = ask()", "x = mood.upper()", "print(In[-2][:10], _i)", "y = x"],),
    "alias magic": ([R + "mood = ask()", "%alias say echo", "%say $mood", "print(mood)"],),
    "autoreload": (["%load_ext autoreload\n%autoreload 2\nopen('au.py', 'w').write('V = 1')\nimport sys; sys.path.insert(0, ''); sys.dont_write_bytecode = True", "import au", R + "mood = ask()", "open('au.py', 'w').write(f'V = {mood!r}; N = 100')", "print(au.V)"],),
    "rich": (["from rich.console import Console\nc = Console(width=60)", R + "mood = ask()", "c.print(f'[bold]{mood}[/bold]')", "print(mood)"],),
    "an event loop's task": (["import asyncio\nlog = []\nasync def work(x):\n    await asyncio.sleep(0); log.append(x)", R + "mood = ask()", "t = asyncio.create_task(work(mood))", "await t\ndel t\nprint(log)"],),
    "async gather": (["import asyncio\nasync def up(x):\n    await asyncio.sleep(0.001); return x.upper()", R + "mood = ask()", "r = await asyncio.gather(*(up(c) for c in mood))", "print(r)"], "bcd"),
    "a group of tasks": (["import asyncio\nasync def up(s): return s.upper()", R + "r = ask()", "async with asyncio.TaskGroup() as tg:\n    ts = [tg.create_task(up(r + c)) for c in 'xy']", "x = [t.result() for t in ts]", "print(x)"],),
    "a future": (["import asyncio\nf = asyncio.get_running_loop().create_future()", R + "r = ask()", "f.set_result(r)", "x = await f", "print(x)"],),
    "a thread that prints": (["import threading", R + "mood = ask()", "t = threading.Thread(target=print, args=(mood,)); t.start(); t.join()\ndel t", "print('end')"],),
    "styled frame": (["import pandas as pd", R + "mood = ask()", "pd.DataFrame({'m': [mood]}).style", "print(mood)"],),
    "latex and json": (["from IPython.display import JSON, Latex", R + "mood = ask()", "JSON({'m': mood})", "print(mood)"],),
    "custom repr": (["class Card:\n    def __init__(self, t): self.t = t\n    def _repr_html_(self): return f'<i>{self.t}</i>'\n    def __repr__(self): return f'Card {self.t}'", R + "mood = ask()", "card = Card(mood)\ncard", "print(card)"],),
    "a formatter of one's own": (["class P:\n    def __init__(self, x): self.x = x\nget_ipython().display_formatter.formatters['text/plain'].for_type(P, lambda p, pp, c: pp.text('P!' + p.x))", R + "mood = ask()", "P(mood)", "print(mood)"],),
    "an error that is shown": ([R + "mood = ask()", "try:\n    {'a': 1}[mood]\nexcept KeyError as e: print('no', e)", "print('end')"],),
}  # fmt: skip

MODELS = {
    "three turns": (["msgs = []", R + "msgs.append(ask()); msgs.append(ask('x')); msgs.append(ask('y'))", "print(msgs)"],),
    "loop of turns with the reply": (["msgs = []", R + "t = ask()\nwhile t in ('a', 'b') and len(msgs) < 3:\n    msgs.append(t); t = ask(t + str(len(msgs)))", "print(msgs, t)"],),
    "agent with tools in a registry": (
        ["HANDLERS = {}\ndef tool(f):\n    HANDLERS[f.__name__] = tape.tool(f)\n    return HANDLERS[f.__name__]\nstock = {'milk': 3}\n@tool\ndef take(item, n=1):\n    stock[item] -= n\n    return stock[item]", R + "mood = ask()\nleft = HANDLERS['take']('milk', len(mood))", "print(left, stock)"], "bb",
    ),
    "tool's state in a class": (
        ["class Shop:\n    def __init__(self): self.orders = []\n    @tape.tool\n    def order(self, what):\n        self.orders.append(what); return len(self.orders)\nshop = Shop()", R + "mood = ask()\nn = shop.order(mood)", R + "m = shop.order('z')", "print(shop.orders, n, m)"],
    ),
    "tool that is memoised": (
        ["import functools\n@functools.cache\ndef price(x): return len(x) * 2\n@tape.tool\ndef quote(x): return price(x)", R + "mood = ask()\nq = quote(mood)", "print(q, price.cache_info().currsize)"], "bbb",
    ),
    "tool writes a file, a cell reads it": (
        ["@tape.tool\ndef save(t):\n    with open('out.txt', 'w') as f: f.write(t)\n    return 'saved'", R + "mood = ask()\nsave(mood)", "t = open('out.txt').read()\nprint(t)"],
    ),
    "tool through an older handle": (
        ["log = open('log.txt', 'w')\n@tape.tool\ndef note(t):\n    log.write(t + '\\n'); log.flush(); return 'ok'", R + "mood = ask()\nnote(mood)", "print(open('log.txt').read())", "log.close(); del log"],
    ),
    "async tool": (
        ["seen = []\n@tape.tool\nasync def look(t):\n    seen.append(t); return t * 2", R + "mood = ask()\nx = await look(mood)", "print(x, seen)"],
    ),
    "tool that raises": (
        ["tries = []\n@tape.tool\ndef risky(t):\n    tries.append(t)\n    if t == 'b': raise ValueError('bad ' + t)\n    return 'fine'", R + "mood = ask()\ntry: x = risky(mood)\nexcept ValueError as e: x = str(e)", "print(x, tries)"],
    ),
    "results shown otherwise since": (
        ["d = {i: 'x' * 30 for i in range(6)}", R + "mood = ask()\nd['m'] = mood", "mood\nd", "from IPython.core.interactiveshell import InteractiveShell\nInteractiveShell.ast_node_interactivity = 'all'", "%pprint", "mood\nd"], "bb",
    ),
    "a callback of the loop": (
        ["import asyncio\nlog = []", R + "mood = ask()", "h = asyncio.get_event_loop().call_soon(log.append, mood)", "await asyncio.sleep(0.05)", "print(log)"], "bb",
    ),
    "tools in threads": (
        ["from concurrent.futures import ThreadPoolExecutor\n@tape.tool\ndef up(t): return t.upper()", R + "mood = ask()\nwith ThreadPoolExecutor(2) as ex: xs = list(ex.map(up, [mood, 'x', 'y']))", "print(xs)"],
    ),
}  # fmt: skip

PROCESS = {
    "argv": (["import sys\nsys.argv = ['prog']", R + 'mood = ask()', 'sys.argv.append(mood)', 'n = sys.argv[-1]\nprint(n)', 'print(len(sys.argv))'],),
    "argv rebound": (['import sys', R + 'mood = ask()', "sys.argv = ['prog', mood]", "import argparse\np = argparse.ArgumentParser(); _ = p.add_argument('m')", 'a = p.parse_args()\nprint(a.m)'],),
    "in sys.modules": (['import sys, types', R + 'mood = ask()', "if mood == 'a': sys.modules['t_stub'] = types.ModuleType('t_stub')", "flag = 't_stub' in sys.modules\nprint(flag)"],),
    "builtins read": (['import builtins', R + 'mood = ask()', 'builtins.t_mood = mood', 'm = t_mood.upper()\nprint(m)', 'k = builtins.t_mood\nprint(k)'],),
    "finalizer": (['import weakref\nlog = []\nclass Tmp: pass', R + 'mood = ask()', 't = Tmp(); f = weakref.finalize(t, log.append, mood)', 'del t', 'print(log)'],),
    "del method": (['log = []\nclass Tmp:\n    def __init__(self, n): self.n = n\n    def __del__(self): log.append(self.n)', R + 'mood = ask()', 't = Tmp(mood)', 't = None', 'print(log)'],),
}  # fmt: skip

PARTS = {
    "message rows, role by role": (["msgs = [{'role': 'system', 'content': 's'}]", R + 'mood = ask()', "msgs.append({'role': 'assistant', 'content': mood})", "roles = [m['role'] for m in msgs]\nprint(roles)", "for m in msgs: m['n'] = len(m['content'])", "last = msgs[-1]; last['role'] = 'tool' if mood == 'b' else 'x'", "print([m['role'] for m in msgs], [m['n'] for m in msgs])"], 'b',),
    "one row, two names": (["rows = [{'k': 1, 't': 'x'}, {'k': 2, 't': 'y'}]; first = rows[0]", R + 'mood = ask()', "for r in rows: r['t'] = mood + str(r['k'])", "print(first['t'])", "first['k'] = len(mood)", "print([r['k'] for r in rows])"], 'bbb',),
    "class default seen through instances": (["class Base:\n    tone = 'n'\n    kinds = []\n    def say(self): return self.tone\nclass Kid(Base): pass\nclass Own(Base): tone = 'own'\nk, o = Kid(), Own()", R + 'mood = ask()', 'Base.tone = mood\nKid.kinds.append(mood)', 'a = k.tone, o.tone, Kid.tone', "k.tone = 'mine'", 'print(a, k.say(), o.kinds, Kid().tone)'],),
    "same list in many places": (["shared = []\nd = {'in': shared, 'out': [shared], 'n': 0}\nclass Box: pass\nbx = Box(); bx.items = shared; bx.me = bx", R + 'mood = ask()', "d['in'].append(mood)", "d['n'] += 1", "print(d['out'], d['n'])", 'print(bx.me.items, bx.items)'],),
}  # fmt: skip

UNHEARD = (
    "import os, sys, types, sqlite3\npolars = sys.modules['polars'] = types.ModuleType('polars')\n"
    "def save(path, x):\n    c = sqlite3.connect(':memory:'); c.execute('create table t(m)'); c.execute('insert into t values (?)', [x])\n"
    "    c.commit(); c.execute(f\"VACUUM INTO '{path}'\")\n"
    "def load(path):\n    c = sqlite3.connect(':memory:'); c.execute(f\"ATTACH '{path}' AS o\")\n"
    "    return c.execute('select m from o.t').fetchone()[0]\n"
    "polars.save, polars.load = save, load\ndel save, load"
)
"""SQLite opens these files itself, as polars does: Python hears of none."""
FILES = {
    "a file that only one world writes, unheard": ([UNHEARD, R + "mood = ask()", "if mood == 'a': polars.save('m.db', mood)", "print(os.path.exists('m.db'))"],),
    "a file written and read unheard": ([UNHEARD, R + "mood = ask()", "polars.save('n.db', mood)", "x = polars.load('n' + '.db')\nprint(x)", "y = x * 2\nprint(y)"],),
}  # fmt: skip

NOTEBOOKS = {**SHOWN, **MODELS, **PROCESS, **PARTS, **FILES}
