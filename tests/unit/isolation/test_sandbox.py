"""A stranger's process changes only its own folders, sees nobody, and leaves nothing that runs."""

import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from tape_jupyter.isolation import namespaces, sandbox

pytestmark = pytest.mark.skipif(
    not sandbox.can_confine(), reason="needs user, mount and process namespaces"
)


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Runs Python so, in a home of the test's; gives what it printed as JSON."""
    layers, kept = tmp_path / "layers", tmp_path / "kept"
    layers.mkdir()
    kept.mkdir()

    def go(source, *words, **more):
        line = sandbox.command([sys.executable, "-c", source, *words], layers, [kept])
        done = subprocess.run(line, capture_output=True, text=True, timeout=60, check=True, **more)
        return json.loads(done.stdout)

    go.kept, go.layers = kept, layers
    return go


WRITE = """
import json, sys
told = {}
for path in sys.argv[1:]:
    try:
        with open(path, "a") as file:
            file.write("mine")
        told[path] = open(path).read()
    except OSError as error:
        told[path] = type(error).__name__
print(json.dumps(told))
"""


def test_what_it_writes_elsewhere_is_thrown_away(run, tmp_path):
    """It sees its own writes, as a notebook does that writes a file and reads it."""
    (tmp_path / "thesis.txt").write_text("theirs, ")
    home = Path(os.path.expanduser("~"), "tape-sandbox-canary")
    told = run(WRITE, str(run.kept / "a"), str(tmp_path / "thesis.txt"), str(tmp_path / "new"))
    assert (run.kept / "a").read_text() == "mine"
    assert told[str(tmp_path / "thesis.txt")] == "theirs, mine"
    assert (tmp_path / "thesis.txt").read_text() == "theirs, "
    assert told[str(tmp_path / "new")] == "mine" and not (tmp_path / "new").exists()
    run(WRITE, str(home))
    assert not home.exists()


def test_it_has_temporary_files_and_its_folder_also_where_a_disk_is_mounted_nearby(tmp_path):
    for folder in ("disk", "layers", "work"):
        (tmp_path / folder).mkdir()
    code = "import tempfile; tempfile.TemporaryFile(); print(open('new', 'w').write('mine'))"
    line = sandbox.command([sys.executable, "-c", code], tmp_path / "layers", [])
    done = subprocess.run(
        ["unshare", "-rm", "sh", "-c", f"mount -t tmpfs tmpfs '{tmp_path / 'disk'}'; exec \"$@\""]
        + ["sh", *line],
        capture_output=True,
        text=True,
        cwd=tmp_path / "work",
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    assert done.stdout == "4\n", done.stderr
    assert not (tmp_path / "work" / "new").exists()


def test_its_folders_may_lie_in_one_another(run, tmp_path):
    inner = run.kept / "inner"
    (inner / "layers").mkdir(parents=True)
    for kept in ([run.kept, inner], [inner, run.kept]):
        line = [
            sys.executable,
            "-c",
            WRITE,
            str(inner / "a"),
            str(run.kept / "b"),
            str(tmp_path / "c"),
        ]
        subprocess.run(sandbox.command(line, inner / "layers", kept), check=True)
    assert (inner / "a").read_text() == (run.kept / "b").read_text() == "minemine"
    assert not (tmp_path / "c").exists()


def test_a_second_one_at_once_has_layers_of_its_own(run, tmp_path):
    for _ in range(2):
        assert run(WRITE, str(tmp_path / "new"))[str(tmp_path / "new")] == "mine"


@pytest.mark.parametrize(
    "path", ["/etc/tape-canary", "/proc/sys/kernel/core_pattern", "/sys/kernel/uevent_helper"]
)
def test_the_system_cannot_be_changed_even_by_root(run, path):
    assert run(WRITE, path)[path] in ("OSError", "PermissionError", "FileNotFoundError")


UNDO = """
import json, shutil, subprocess, sys
def tried(*words):
    return subprocess.run(words, capture_output=True).returncode if shutil.which(words[0]) else 1
print(json.dumps([tried("umount", sys.argv[1]), tried("mount", "-o", "remount,bind,rw", "/"),
    tried("unshare", "-rm", "sh", "-c", "mount -o remount,bind,rw / && touch /etc/tape-canary"),
    tried("unshare", "-rm", "umount", "-l", sys.argv[1])]))
"""


def test_what_holds_it_cannot_be_undone_from_inside(run, tmp_path):
    assert 0 not in run(UNDO, "/tmp")
    assert not Path("/etc/tape-canary").exists()


CONNECT = """
import json, socket, sys
told = []
for path in sys.argv[1:]:
    try:
        socket.socket(socket.AF_UNIX).connect(path)
        told.append("connected")
    except OSError as error:
        told.append(type(error).__name__)
print(json.dumps(told))
"""


def test_an_agent_that_listens_on_a_socket_is_not_reached(run, tmp_path):
    """As ssh-agent, a desktop's bus or a daemon of containers do."""
    paths = [str(tmp_path / "agent"), str(tmp_path / "with a blank"), "\0tape-sandbox-test"]
    listening = [socket.socket(socket.AF_UNIX) for _ in paths]
    for each, path in zip(listening, paths, strict=True):
        each.bind(path)
        each.listen()
    told = run(CONNECT, *paths[:2])
    told += run(CONNECT.replace("sys.argv[1:]", f"[{paths[2]!r}]"))
    assert "connected" not in told and len(told) == 3
    for each in listening:
        each.close()


def test_it_sees_no_process_of_the_persons_and_no_network(run):
    told = run(
        "import json, os, socket; print(json.dumps([[p for p in os.listdir('/proc') if p.isdigit()],"
        "len(open('/proc/net/route').readlines()), [n for _, n in socket.if_nameindex()],"
        "socket.create_server(('127.0.0.1', 0)).getsockname()[0]]))"
    )
    assert len(told[0]) <= 4 and told[1] <= 1 and "lo" in told[2] and told[3] == "127.0.0.1"


STAY = """
import os, subprocess, sys, json
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)", sys.argv[1]], start_new_session=True)
print(json.dumps(child.pid))
"""


def alive(mark):
    return [
        each for each in psutil.process_iter(["cmdline"]) if mark in (each.info["cmdline"] or [])
    ]


def test_a_process_that_it_leaves_behind_ends_with_it(run):
    mark = f"tape-left-{os.getpid()}-{time.monotonic_ns()}"
    run(STAY, mark)
    assert gone(mark)


def gone(mark):
    end = time.monotonic() + 30
    while alive(mark) and time.monotonic() < end:
        time.sleep(0.05)
    return not alive(mark)


def test_all_of_it_ends_when_its_first_process_is_killed(run, tmp_path):
    mark = f"tape-left-{os.getpid()}-{time.monotonic_ns()}"
    line = sandbox.command(
        [sys.executable, "-u", "-c", f"{STAY}\nimport time; time.sleep(600)", mark],
        run.layers,
        [run.kept],
    )
    child = subprocess.Popen(line, stdout=subprocess.PIPE)
    assert child.stdout.readline().strip().isdigit() and alive(mark)
    child.kill()
    child.communicate()
    assert gone(mark)


def test_its_exit_code_is_the_commands(run):
    for code in (0, 3):
        line = sandbox.command([sys.executable, "-c", f"exit({code})"], run.layers, [run.kept])
        assert subprocess.run(line, check=False).returncode == code


def test_where_it_cannot_be_made_nothing_is_run(run, tmp_path):
    line = sandbox.command(
        [sys.executable, "-c", f"open({str(run.kept / 'ran')!r}, 'w')"],
        tmp_path / "no such folder",
        [run.kept],
    )
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "tape: the process cannot be kept apart" in done.stderr
    assert not (run.kept / "ran").exists()


def test_a_machine_without_them_has_what_it_had_and_says_so(monkeypatch):
    monkeypatch.setattr(sandbox, "can_confine", lambda: False)
    for cut in (True, False):
        monkeypatch.setattr(namespaces, "can_cut", lambda cut=cut: cut)
        words = sandbox.command(["true"], Path("layers"), [Path("kept")])
        assert words[-1] == "true" and (len(words) > 1) == cut and "kept" not in words
        assert sandbox.guards() == (namespaces.CUT if cut else namespaces.GUARDED)
    monkeypatch.setattr(namespaces, "can_cut", lambda: True)
    told = subprocess.run(
        sandbox.command(
            [sys.executable, "-c", "print(len(open('/proc/net/route').readlines()))"], Path(), []
        ),
        capture_output=True,
        text=True,
        check=True,
    )
    assert told.stdout.strip() in ("0", "1")
