"""What a tool sets for the whole process, in registries of Python and of libraries: it comes back, or it is said."""

from __future__ import annotations

import ast
import subprocess
import sys
import types

import pytest

import tape_jupyter as tape
from tests.harness.tool_runs import ran as bodies
from tests.harness.tool_runs import program_of, replayed, same

COMES_BACK = {
    "a dialect": (
        "import csv\nif 'mine' in csv.list_dialects():\n    csv.unregister_dialect('mine')",
        "csv.register_dialect('mine', delimiter=';')",
        "csv.get_dialect('mine').delimiter",
    ),
    "a dialect by another name": (
        "import csv\nfrom csv import register_dialect as keep\nif 'mine' in csv.list_dialects():\n    csv.unregister_dialect('mine')",
        "keep('mine', quotechar='~')",
        "csv.get_dialect('mine').quotechar",
    ),
    "a dialect that is another one now": (
        "import csv\ncsv.register_dialect('mine', delimiter=';')",
        "csv.register_dialect('mine', delimiter='|')",
        "csv.get_dialect('mine').delimiter",
    ),
    "a dialect that is gone": (
        "import csv\ncsv.register_dialect('mine')",
        "csv.unregister_dialect('mine')",
        "'mine' not in csv.list_dialects()",
    ),
    "a type of files": (
        "import mimetypes\nmimetypes.init()",
        "mimetypes.add_type('model/gltf', '.zz')",
        "mimetypes.guess_type('a.zz'), mimetypes.guess_extension('model/gltf')",
    ),
    "a common type of files": (
        "import mimetypes\nfrom mimetypes import add_type as known\nmimetypes.init()",
        "known('model/gltf', '.zz', strict=False)",
        "mimetypes.guess_type('a.zz'), mimetypes.guess_type('a.zz', strict=False)",
    ),
    "types of files in a file": (
        "import mimetypes\nmimetypes.init()\nopen('types', 'w').write('model/gltf zz')",
        "mimetypes.init(['types'])",
        "mimetypes.guess_type('a.zz')",
    ),
    "a style of matplotlib's": (
        "import matplotlib\nmatplotlib.rcdefaults()",
        "matplotlib.style.use('ggplot')",
        "matplotlib.rcParams['axes.facecolor'], str(matplotlib.rcParams['axes.prop_cycle'])",
    ),
    "a zone that no clock heeds yet": (
        "import os, time\nos.environ.pop('TZ', None)\ntime.tzset()",
        "os.environ['TZ'] = 'Asia/Tokyo'",
        "os.environ['TZ'], time.tzname",
    ),
    "a command": (
        "import click\n@click.group()\ndef cli():\n    pass\n@click.command()\ndef sub():\n    pass",
        "cli.add_command(sub)",
        "[*cli.commands], cli.commands['sub'] is sub",
    ),
    "a graph's order": (
        "import graphlib\norder = graphlib.TopologicalSorter({'a': ['b']})",
        "order.add('c', 'a')",
        "[*order.static_order()]",
    ),
    "what is printed to a console": (
        "import io, rich.console\nout = io.StringIO()\nconsole = rich.console.Console(file=out, width=40)",
        "console.print('hi')",
        "out.getvalue()",
    ),
    "a place in mapped memory": (
        "import mmap\nopen('mapped', 'wb').write(b'0' * 9)\nfile = open('mapped', 'r+b')\nmapped = mmap.mmap(file.fileno(), 9)",
        "mapped.write(b'abc')",
        "mapped[:], mapped.tell(), mapped.close(), file.close()",
    ),
    "a pattern with a flag": (
        "import re\nkept = {}",
        "kept['word'] = re.compile('a+', re.IGNORECASE)",
        "kept['word'].findall('aA'), kept['word'].flags",
    ),
    "a part of an array": (
        "import numpy as np\nnumbers, kept = np.arange(6), {}",
        "kept['part'] = numbers[1:4]\nkept['same'] = kept['part']\nkept['column'] = numbers.reshape(2, 3)[:, 1]",
        "np.copyto(kept['part'], 9), np.copyto(kept['column'], 5), numbers.tolist(), kept['part'] is kept['same']",
    ),
    "a file that nobody else may read": (
        "import os, pathlib\npathlib.Path('own').unlink(missing_ok=True)",
        "os.close(os.open('own', os.O_CREAT | os.O_WRONLY, 0o600))",
        "oct(os.stat('own').st_mode)",
    ),
    "two names of a file": (
        "import os, pathlib\npathlib.Path('one').write_text('1')\npathlib.Path('two').unlink(missing_ok=True)",
        "os.link('one', 'two')\npathlib.Path('two').write_text('2')",
        "pathlib.Path('one').read_text(), pathlib.Path('two').read_text()",
    ),
    "a file put in the place of another": (
        "import os, pathlib, tempfile\npathlib.Path('kept').write_text('1')\nos.chmod('kept', 0o644)",
        "handle, name = tempfile.mkstemp(dir='.')\nos.write(handle, b'2')\nos.close(handle)\nos.replace(name, 'kept')",
        "pathlib.Path('kept').read_text(), oct(os.stat('kept').st_mode)",
    ),
    "weak references": (
        "import weakref\nclass Thing:\n    pass\nthing, kept = Thing(), {}",
        "kept[weakref.ref(thing)] = made = Thing()\nmade.above = weakref.ref(made)",
        "kept[weakref.ref(thing)].above() is kept[weakref.ref(thing)]",
    ),
    "a template": (
        "import jinja2\nopen('t', 'w').write('hi {{ x }}')\nsites = jinja2.Environment(loader=jinja2.FileSystemLoader('.'))",
        "page = sites.get_template('t').render(x=1)\nwith open('page', 'w') as file:\n        file.write(page)",
        "sites.get_template('t').render(x=2)",
    ),
    "a function of the program's for `open`": (
        "import builtins, io\nbuiltins.open = io.open",
        "real, builtins.open = builtins.open, lambda *_: None\nbuiltins.open = real",
        "open is io.open",
    ),
}

CLOSED = "'file' in globals() and file.close()"
"""What is looked at where nothing is."""

IS_SAID = {
    "what handles errors of codecs": (
        "import codecs",
        "codecs.register_error('mine', lambda error: ('?', error.end))",
        "codecs.register_error",
    ),
    "what finds codecs": (
        "from codecs import register as keep",
        "keep(lambda name: None)",
        "codecs.register",
    ),
    "a variable for processes only": ("import os", "os.putenv('ZZ', '1')", "os.putenv"),
    "how a class of a library is pickled": (
        "import copyreg, fractions\ncopyreg.dispatch_table.pop(fractions.Fraction, None)",
        "copyreg.pickle(fractions.Fraction, lambda each: (str, ('x',)))",
        "copyreg",
    ),
    "what interrupts": (
        "import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)",
        "signal.signal(signal.SIGINT, signal.SIG_IGN)",
        "how a signal is handled",
    ),
    "what is called at exit": (
        "from atexit import register as keep\nimport atexit\ndef end():\n    pass",
        "keep(end)",
        "called at exit",
    ),
    "what is called when an object goes": (
        "import weakref\nclass Thing:\n    pass\nthing, log = Thing(), []",
        "weakref.finalize(thing, log.append, 1)",
        "when an object goes",
    ),
    "a filter of a logger": (
        "import logging\nlogging.getLogger('zz').filters.clear()",
        "logging.getLogger('zz').addFilter(lambda record: False)",
        "the filters of the logger 'zz'",
    ),
    "a handler's level": (
        "import logging\nlogging.getLogger('zz').handlers[:] = [logging.NullHandler()]",
        "logging.getLogger('zz').handlers[0].setLevel(40)",
        "a handler of the logger 'zz'",
    ),
    "what faults are told to": (
        "import faulthandler, signal\nfaulthandler.unregister(signal.SIGUSR1)\nfile = open('faults', 'w')",
        "faulthandler.register(signal.SIGUSR1, file)",
        "faulthandler.register",
    ),
    "what counts as a class of a library's": (
        "import collections.abc\nclass Thing:\n    pass",
        "collections.abc.Sequence.register(Thing)",
        "collections.abc.Sequence (register)",
    ),
    "a table in a class of a library's": (
        "import configparser\nconfigparser.ConfigParser.BOOLEAN_STATES.pop('si', None)",
        "configparser.ConfigParser.BOOLEAN_STATES['si'] = True",
        "configparser.ConfigParser.BOOLEAN_STATES",
    ),
    "what a class of a library's makes of a tag": (
        "import yaml\nvars(yaml.SafeLoader).get('yaml_constructors', {}).pop('!zz', None)",
        "yaml.SafeLoader.add_constructor('!zz', lambda *_: 7)",
        "yaml.SafeLoader.yaml_constructors",
    ),
    "the same by a function": (
        "import yaml\nvars(yaml.SafeLoader).get('yaml_constructors', {}).pop('!zz', None)",
        "yaml.add_constructor('!zz', lambda *_: 7, yaml.SafeLoader)",
        "yaml.SafeLoader.yaml_constructors",
    ),
    "a context that stands in a module": (
        "import decimal\ndecimal.BasicContext.prec = 9",
        "decimal.BasicContext.prec = 3",
        "decimal.BasicContext",
    ),
    "a name that all code has": (
        "import builtins, gettext\nvars(builtins).pop('_', None)",
        "gettext.install('zz')",
        "a name that all code has",
    ),
    "values of another context": (
        "import contextvars\nvariable = contextvars.ContextVar('variable')\ncontext = contextvars.copy_context()",
        "context.run(variable.set, 5)",
        "context:",
    ),
    "what a session has not written": (
        "import sqlalchemy as sa\nfrom sqlalchemy.orm import Session, declarative_base\nBase = declarative_base()\n"
        "class Row(Base):\n    __tablename__ = 'rows'\n    id = sa.Column(sa.Integer, primary_key=True)\n"
        "session = Session(sa.create_engine('sqlite://'))",
        "session.add(Row(id=1))",
        "it left changes in session",
    ),
    "what is kept by an address": (
        "class Thing:\n    pass\nthing, kept = Thing(), {}",
        "kept[id(thing)] = 1",
        "by the id of thing",
    ),
    "an array that processes share": (
        "import multiprocessing\nshared = multiprocessing.Array('i', 3)",
        "shared[1] = 5",
        "shared",
    ),
    "how text is written": (
        "file = open('text', 'w')",
        "file.reconfigure(line_buffering=True)",
        "it changed how file is written",
    ),
}


@pytest.fixture(autouse=True)
def as_before(tmp_path, monkeypatch):
    """Each test in a folder of its own; what cannot be put back else ends with the test."""
    import builtins
    import decimal
    import faulthandler
    import logging
    import signal
    import warnings

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.setattr(builtins, "open", open)
    interrupt, precision = signal.getsignal(signal.SIGINT), decimal.BasicContext.prec
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        yield
    signal.signal(signal.SIGINT, interrupt)
    decimal.BasicContext.prec = precision
    logger = logging.getLogger("zz")
    logger.filters.clear()
    logger.handlers.clear()
    vars(builtins).pop("_", None)
    faulthandler.unregister(signal.SIGUSR1)


def text_of(setup, body, look):
    lines = "\n    ".join(["bodies.append(1)", *body.splitlines()])
    return (
        f"{setup}\n@tape.tool\ndef work():\n    {lines}\nwork()\ndef found():\n    return {look}\n"
    )


@pytest.mark.parametrize("what", COMES_BACK)
def test_what_a_tool_set_comes_back(what, monkeypatch):
    assert same(program_of(text_of(*COMES_BACK[what]), monkeypatch))


@pytest.mark.parametrize("what", IS_SAID)
def test_what_does_not_is_said(what, monkeypatch):
    setup, body, said = IS_SAID[what]
    _, _, recorded, report = replayed(program_of(text_of(setup, body, CLOSED), monkeypatch))
    assert said in str(report.unheld)
    assert said in str(recorded.warnings)


LATE = {
    "pandas": (
        "pandas.set_option('display.precision', 2)",
        "pandas.get_option('display.precision')",
    ),
    "mimetypes": ("mimetypes.add_type('model/gltf', '.zz')", "mimetypes.guess_type('a.zz')"),
    "matplotlib": (
        "matplotlib.rcParams['lines.linewidth'] = 9",
        "matplotlib.rcParams['lines.linewidth']",
    ),
    "multiprocessing": (
        "multiprocessing.set_start_method('spawn')",
        "multiprocessing.get_start_method()",
    ),
    "calendar": ("calendar.setfirstweekday(6)", "calendar.firstweekday()"),
}


@pytest.mark.spread(2)
@pytest.mark.parametrize("module", LATE)
def test_settings_of_a_library_that_the_tool_is_the_first_to_import(module, tmp_path):
    body, look = LATE[module]
    (tmp_path / "program.py").write_text(
        f"""
import sys
import tape_jupyter as tape

@tape.tool
def work():
    import {module}
    {body}
    return "ran"

with getattr(tape, sys.argv[1])("a.tape.yaml") as block:
    sys.modules.pop("{module}", None)
    work()
import {module}
print(repr(({look}, block.report.warnings, block.report.unheld)))
"""
    )
    told = [
        subprocess.run(
            [sys.executable, "program.py", how],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for how in ("recording", "replaying")
    ]
    assert told[0] == told[1] and ast.literal_eval(told[0])[1:] == ([], [])


def test_a_method_that_is_called_like_a_function_of_codecs_is_not_said_to_be_that(monkeypatch):
    text = """
import codecs
class Kinds:
    def __init__(self):
        self.names = []
    def register(self, name):
        self.names.append(name)
kinds = Kinds()

@tape.tool
def work():
    bodies.append(1)
    kinds.register("a")
    return codecs.encode("a", "rot13")

def found():
    return work(), kinds.names
"""
    assert same(program_of(text, monkeypatch)) == ("n", ["a"])
