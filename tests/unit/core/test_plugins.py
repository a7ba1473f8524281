"""What other packages add by entry points: the examples of the documentation, as written."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[3] / "docs" / "contributing" / "extend.md"
ACME = '''
"""A client library that sends over a socket of its own, counts money in a class of its own and has chance of its own."""
import os
import random

chance = random.Random()


class Money:
    def __init__(self, amount):
        self.amount = amount


class Client:
    def ask(self, question: str) -> Money:
        return Money(os.getpid())
'''
PROGRAM = """
import sys
import tape_jupyter as tape

def program():
    import acme
    paid = acme.Client().ask("how much?")
    return type(paid).__name__, paid.amount, acme.chance.random()

mode = getattr(tape, sys.argv[1])
with mode("run.tape.yaml") as block:
    done = program()
print(*done)
print(*block.report.warnings)
"""


@pytest.fixture
def acme(tmp_path):
    """A folder where ACME and the package of the page are installed."""
    page = PAGE.read_text(encoding="utf-8")
    (tmp_path / "acme.py").write_text(ACME)
    (tmp_path / "tape_acme.py").write_text(
        "\n".join(re.findall(r"```python\n(.*?)```", page, re.S))
    )
    install(tmp_path, re.search(r"```toml\n(.*?)```", page, re.S)[1])
    return tmp_path


def install(folder, declared):
    info = folder / "tape_acme-1.0.dist-info"
    info.mkdir(exist_ok=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: tape-acme\nVersion: 1.0\n")
    written = re.sub(r'\[project\.entry-points\."(.*?)"\]', r"[\1]", declared)
    written = re.sub(r" +#.*", "", written).replace('"', "")
    (info / "entry_points.txt").write_text(written)


def run(folder, *words):
    env = {**os.environ, "PYTHONPATH": str(folder)}
    done = subprocess.run(
        [sys.executable, *words], env=env, cwd=folder, capture_output=True, text=True
    )
    return done.stdout, done.stderr, done.returncode


def test_a_client_its_values_and_its_chance_are_recorded_and_replayed(acme):
    recorded, wrong, _ = run(acme, "-c", PROGRAM, "recording")
    assert recorded.startswith("Money ") and "not replayed" not in recorded, recorded + wrong
    assert "acme:\n    seed: " in (acme / "run.tape.yaml").read_text()
    replayed, wrong, _ = run(acme, "-c", PROGRAM, "replaying")
    assert replayed == recorded, wrong  # another process would have answered with its own id


def test_a_command_stands_in_the_help_and_runs(acme):
    run(acme, "-c", PROGRAM, "recording")
    said, wrong, code = run(acme, "-m", "tape_jupyter", "acme-total", "run.tape.yaml")
    assert (said, code) == ("1 calls\n", 0), wrong
    assert "acme-total" in run(acme, "-m", "tape_jupyter", "--help")[0]


def test_a_package_that_cannot_be_loaded_is_named_and_harms_nothing(acme):
    (acme / "tape_acme.py").write_text("import gone")
    said, wrong, code = run(acme, "-m", "tape_jupyter", "acme-total", "run.tape.yaml")
    assert code == 2 and "tape-acme: its entry point 'acme-total'" in wrong, wrong
    assert "No module named 'gone'" in wrong
    program = PROGRAM.replace('acme.Client().ask("how much?")', "acme.Money(1)")
    said, wrong, _ = run(acme, "-c", program, "recording")
    assert said.startswith("Money 1 "), wrong
    assert "acme is not replayed" in said and "tape-acme" in said, (said, wrong)


def test_what_is_of_another_kind_is_named(acme):
    install(acme, '[project.entry-points."tape_jupyter.commands"]\nacme-total = "acme:Money"\n')
    _, wrong, code = run(acme, "-m", "tape_jupyter", "acme-total")
    assert code == 2 and "which is no Command" in wrong
