"""What a replay does on the machine until a stranger's kernel may begin, by its own system calls: strace sees it."""

import os
import re
import subprocess
import sys

import pytest

from tests.hostile.test_costly_bundles import with_lock
from tests.trials.hostile_bundles import CANARY, Place, state
from tests.harness.package_index import IndexServer, wheel_of
from tests.harness.system_calls import (
    OPENED,
    STRACE,
    changed_paths,
    is_for_writing,
    last_path,
    read_trace,
    strace,
)
from tests.unit.bundle.environment.test_bundle_venv import UV

pytestmark = pytest.mark.skipif(not STRACE, reason="needs strace")
EXECUTED = re.compile(r'^\d+ +execve\("([^"]*)", \[(.*?)\], \[(.*)\]\) += (-?\d+)', re.MULTILINE)
CONNECTED = re.compile(
    r"connect\(\d+(?:<[^>]*>)?, \{sa_family=AF_INET6?, sin6?_port=htons\((\d+)\)"
)
PROGRAMS = ("/usr/bin/", "/bin/", "/usr/sbin/", "/sbin/")
TAKEN = ("/dev/", "/proc/")


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path)


def traced(place, server, installer, bundle):
    """`tape replay` of it under strace: what it says, and the trace."""
    log = place.scratch / "trace"
    env = place.environment() | {
        "PATH": "/usr/bin:/bin", "PIP_INDEX_URL": server.url, "PYTHONDONTWRITEBYTECODE": "1",
        "UV_CACHE_DIR": str(place.scratch / "uv"), **({"UV": UV} if installer == "uv" else {}),
    }  # fmt: skip
    command = [
        *strace(log), sys.executable, "-P", "-m", "tape_jupyter", "replay", "--yes", bundle,
    ]  # fmt: skip
    done = subprocess.run(
        command, cwd=place.here, env=env, capture_output=True, text=True, stdin=subprocess.DEVNULL
    )
    return done, read_trace(log)


def faults(place, server, trace):
    """What of it is not allowed."""
    own = (*PROGRAMS, sys.prefix, sys.base_prefix, str(place.scratch), UV or "-")
    runs = [run for run in EXECUTED.findall(trace) if run[3] == "0"]
    assert len(runs) > 3 and OPENED.search(trace), "strace saw nothing"
    for program, words, variables, _ in runs[1:]:
        if not program.startswith(own):
            yield f"runs {program}"
        if CANARY in variables and not words.endswith('/true"'):  # whether there are namespaces
            yield f"gives variables to {words}"
    for port in CONNECTED.findall(trace):
        if port != server.host.partition(":")[2]:
            yield f"connects to port {port}"
    for words in OPENED.findall(trace):
        name = last_path(words, place.here)
        read = not is_for_writing(words)
        if read and name.startswith(str(place.home)) and os.path.isfile(name):
            yield f"reads {name}"
    for name in changed_paths(trace, place.here):
        if not name.startswith((str(place.scratch), *TAKEN)):
            yield f"writes {name}"


@pytest.mark.spread(2)
@pytest.mark.parametrize("installer", ["uv", "pip"])
def test_an_installer_does_nothing_elsewhere_cold_or_cached(place, installer):
    if installer == "uv" and not UV:
        pytest.skip("uv is not installed")
    evil = f"import os; open({str(place.home / 'evil')!r}, 'w').write(str(os.environ))\n"
    wheel = wheel_of("evil", "1.0", files={"evil.pth": evil, "evil.py": evil})
    with IndexServer([wheel]) as server:
        lock = (
            f"[[packages]]\nname='evil'\nversion='1.0'\nwheels=[{{name='{wheel[0]}',url='https://index.invalid/{wheel[0]}',"
            f"size={len(wheel[1])},hashes={{sha256='{server.sha256(wheel[0])}'}}}}]\n"
        )
        bundle = place.scratch / "evil.tape.zip"
        bundle.write_bytes(with_lock(lock.encode()))
        before = state(place.home), state(place.here)
        for _ in ("cold", "cached"):
            done, trace = traced(place, server, installer, bundle)
            assert "evil brings 'evil.pth'" in done.stderr and done.returncode == 2, done.stderr
            assert sorted(set(faults(place, server, trace))) == []
            assert (state(place.home), state(place.here)) == before and not place.connections()
            assert CANARY not in done.stdout + done.stderr
