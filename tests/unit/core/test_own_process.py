"""A command starts without what only other people's programs need."""

import subprocess
import sys

LOOK = """import sys
from tape_jupyter.core.own_process import without_grammars
without_grammars()
import jsonschema
heavy = {"tape_jupyter.headless.run", "nbformat", "nbclient", "lark", "rich"} & {n for n in sys.modules if sys.modules[n]}
print(sorted(heavy))"""
HELP = """import sys
from tape_jupyter import cli
try:
    sys.argv = ["tape", "--help"]
    cli.main()
finally:
    heavy = {"tape_jupyter.headless.run", "tape_jupyter.cassette.cassette", "nbformat", "nbclient", "rich", "httpx"} & set(sys.modules)
    print(sorted(heavy), file=sys.stderr)"""


def run(source):
    return subprocess.run(
        [sys.executable, "-c", source], capture_output=True, text=True, check=True
    )


def test_a_notebook_is_checked_without_grammars_for_formats_that_it_has_not():
    assert run(LOOK).stdout.strip() == "[]"


def test_help_is_there_before_anything_of_a_notebook_is_imported():
    said = run(HELP)
    assert said.stdout.startswith("Usage: tape") and said.stderr.strip() == "[]"
