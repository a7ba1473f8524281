"""Commands of the shell: which say, read, write."""

import sys

import pytest

from tape_jupyter.dataflow.tracing import surroundings
from tape_jupyter.dataflow.tracing.folders import may_write
from tape_jupyter.dataflow.static.uses import Touch
from tests.flow_cells import run, tracked  # noqa: F401 - fixtures


@pytest.mark.parametrize(("command", "says", "writes"), [
    ("echo hi", True, False), ("cat a.txt", False, False), ("echo hi > a", True, True), ("python x.py", False, True),
])  # fmt: skip
def test_commands(command, says, writes):
    assert surroundings._is_printing_command(command) is says and may_write(command) is writes


def test_a_call_that_sets_something_is_told_from_one_that_says_something():
    told = surroundings.Surroundings._is_for_effect
    assert told(Touch("csv", "method", "register_dialect", kept=False), "csv")
    assert not told(Touch("json", "method", "dump", kept=False), "json")
    assert not told(Touch("lg", "method", "info", kept=False), "logging")


def test_an_import_depends_on_the_files_that_it_found_not_on_others_beside_them(
    run,
    tmp_path,
    monkeypatch,  # noqa: F811
):
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.delitem(sys.modules, "colorsys", raising=False)
    cells = [
        "mood = outside('a')",
        "from pathlib import Path\n_ = Path('out.txt').write_text(mood), Path('moods.py').write_text(f'V = {mood!r}')",
        "import colorsys",
        "from moods import V",
        "print(V)",
    ]
    assert run(*cells, changed=1) == {2, 4, 5}
