"""A take that is being written when the process is killed: what was committed is there, its base untouched."""

import os
import signal
import subprocess
import sys
import textwrap

import pytest

import tape_jupyter as tape
from tape_jupyter.cassette.cassette import Cassette
from tests.harness.tapes import Recorder, answered, asked

N = 12
CHILD = """
import sys
import tape_jupyter as tape
main = tape.open(sys.argv[1])
take = main.take("t")
for n, entry in enumerate(main.calls):
    take.override(entry, reply=f"answer {n} " + "long " * 20_000)
    print(n, flush=True)
"""


@pytest.fixture
def base(tmp_path):
    path = tmp_path / "nb.tapes" / "main.tape.yaml"
    Recorder(path).run("aaaa", *((asked(f"q{n}"), answered(f"a{n}")) for n in range(N)))
    return path


@pytest.mark.spread(3)
@pytest.mark.parametrize("after", [0, 3, 7])
def test_every_acknowledged_override_survives_a_kill(base, after):
    before = base.read_bytes()
    with subprocess.Popen([sys.executable, "-c", textwrap.dedent(CHILD), base], stdout=subprocess.PIPE, text=True) as child:  # fmt: skip
        for line in child.stdout:
            if int(line) == after:
                os.kill(child.pid, signal.SIGKILL)
                break
        acknowledged = [after, *map(int, child.stdout.read().split())]
    take = Cassette.open(tape.open(base).take("t").path, check="whole")
    bodies = [entry.reply().body for entry in take.calls]
    for n in range(max(acknowledged) + 1):
        assert bodies[n].startswith(f"answer {n} long".encode())
    assert base.read_bytes() == before


@pytest.mark.spread(2)
@pytest.mark.parametrize("share", [0.02, 0.1, 0.35, 0.6, 0.97])
def test_a_take_torn_anywhere_plays_what_is_whole_and_goes_on(base, share):
    main = tape.open(base)
    take = main.take("t")
    take.override(main.calls[0], reply="zero")
    take.override(main.calls[1], reply="one")
    whole = take.path.read_bytes()
    take.path.write_bytes(whole[: int(len(whole) * share)])
    torn = tape.open(base).take("t")
    assert [e.id for e in torn.calls] == [e.id for e in main.calls], (
        "the base is there, whatever became of the header"
    )
    torn.override(main.calls[5], reply="five")
    again = Cassette.open(torn.path, check="whole")
    assert again.calls[5].reply().body == b"five" and again.notes == []
    assert again.calls[0].reply().body in (b"zero", main.calls[0].reply().body)
