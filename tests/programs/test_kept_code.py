"""A tool runs functions of the program's that no name in it leads to: what those change is part of what it did."""

from __future__ import annotations

import math
import sys
import types

import pytest

import tape_jupyter as tape
from tests.harness.tool_runs import ran as bodies
from tests.harness.tool_runs import same

PROGRAMS = {
    "a factory of missing keys": (
        "from collections import defaultdict\ndef fresh():\n    log.append('made')\n    return []\nfound = defaultdict(fresh)",
        "found['a'].append(1)",
    ),
    "a method of an Enum": (
        "import enum\nclass Side(enum.Enum):\n    LEFT = 1\n    def flip(self):\n        log.append('flip')",
        "Side.LEFT.flip()",
    ),
    "a member of an Enum": (
        "import enum\nclass Side(enum.Enum):\n    LEFT = 1\n    def flip(self):\n        log.append('flip')\nside = Side.LEFT\ndel Side",
        "side.flip()",
    ),
    "an Enum that finds what is missing": (
        "import enum\nclass Side(enum.Enum):\n    LEFT = 1\n    @classmethod\n    def _missing_(cls, value):\n        log.append(value)\n        return cls.LEFT",
        "Side(9)",
    ),
    "an order": (
        "import functools\ndef compare(a, b):\n    log.append(a)\n    return a - b\norder = functools.cmp_to_key(compare)",
        "sorted([2, 1], key=order)",
    ),
    "a factory of a dataclass": (
        "import dataclasses\ndef fresh():\n    log.append('made')\n    return []\n@dataclasses.dataclass\nclass Item:\n    notes: list = dataclasses.field(default_factory=fresh)",
        "Item()",
    ),
    "a factory of a model": (
        "import pydantic\ndef fresh():\n    log.append('made')\n    return []\nclass Item(pydantic.BaseModel):\n    notes: list = pydantic.Field(default_factory=fresh)",
        "Item()",
    ),
    "a validator in an annotation": (
        "import pydantic, typing\ndef tidy(value):\n    log.append(value)\n    return value\nclass Item(pydantic.BaseModel):\n    name: typing.Annotated[str, pydantic.BeforeValidator(tidy)]",
        "Item(name='a')",
    ),
    "what is called until it gives that": (
        "def source():\n    log.append('read')\n    return 1\nlines = iter(source, 0)",
        "next(lines)",
    ),
    "a key of groups": (
        "import itertools\ndef kind(value):\n    log.append(value)\n    return value\nkeys = {'kind': kind}",
        "sum(1 for _ in itertools.groupby([1, 1, 2], **{'key': keys['kind']}))",
    ),
    "what is tried again": (
        "import tenacity\ndef note(state):\n    log.append('try')\n@tenacity.retry(stop=tenacity.stop_after_attempt(2), before=note)\ndef flaky():\n    pass",
        "flaky()",
    ),
    "a timer": (
        "import threading\ndef later():\n    log.append('late')\ntimer = threading.Timer(0, later)",
        "timer.start()\n    timer.join()",
    ),
    "what observes a trait": (
        "import traitlets\nclass Dial(traitlets.HasTraits):\n    value = traitlets.Int()\n    @traitlets.observe('value')\n    def seen(self, change):\n        log.append(change['new'])\ndial = Dial()",
        "dial.value = 4",
    ),
    "a transport of a client": (
        "import httpx\ndef answer(request):\n    log.append(request.url.path)\n    return httpx.Response(200)\nclient = httpx.Client(transport=httpx.MockTransport(answer))",
        "client.get('http://example.org/a')",
    ),
    "a function that stands for a library's": (
        "import math\nreal = math.sqrt\ndef seen(value):\n    log.append(value)\n    return real(value)\nmath.sqrt = seen",
        "math.sqrt(4)",
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_a_callback_changes_comes_back(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(math, "sqrt", math.sqrt)  # put back afterwards
    setup, body = PROGRAMS[name]
    file = tmp_path / "program.py"
    file.write_text(
        f"log = []\n{setup}\n@tape.tool\ndef work():\n    bodies.append(1)\n    {body}\n    return 'ok'\nwork()\n"
    )
    bodies.clear()

    def program():
        module = types.ModuleType("program")
        module.__file__ = str(file)
        monkeypatch.setitem(sys.modules, "program", module)
        vars(module).update(tape=tape, bodies=bodies)
        exec(compile(file.read_text(), str(file), "exec"), vars(module))  # as a file that is run
        return list(module.log)

    assert same(program)
