"""A kernel without network below a server that has one."""

import subprocess
import sys
from pathlib import Path

import pytest

from tape_jupyter.bundle import socket_bridge
from tape_jupyter.errors import BundleError
from tape_jupyter.isolation.namespaces import can_cut

needs_cut = pytest.mark.skipif(not can_cut(), reason="needs unshare -rn")
NETWORK = (
    "import os, socket; print(os.getpid(), socket.create_server(('127.0.0.1', 0)).getsockname()[0])"
)


@needs_cut
def test_the_command_runs_in_the_same_process_and_reaches_itself_alone():
    child = subprocess.Popen(
        socket_bridge.command([sys.executable, "-c", NETWORK]), stdout=subprocess.PIPE, text=True
    )
    told, _ = child.communicate()
    assert told.split() == [str(child.pid), "127.0.0.1"] and child.returncode == 0


def test_where_the_network_is_not_gone_nothing_is_run(monkeypatch):
    monkeypatch.setattr(
        socket_bridge.namespaces,
        "loopback_up",
        lambda: (_ for _ in ()).throw(RuntimeError("eth0 is up")),
    )
    monkeypatch.setattr(socket_bridge.os, "execv", lambda *_: pytest.fail("it ran"))
    with pytest.raises(RuntimeError, match="eth0"):
        socket_bridge.main(["true"])


def test_the_sockets_lie_where_their_paths_are_short_enough(tmp_path, monkeypatch):
    fits = Path("/tmp") / ("f" * (socket_bridge.LONGEST - socket_bridge.NAME - len("/tmp/")))
    assert socket_bridge._fits(fits) and not socket_bridge._fits(Path(f"{fits}f"))
    made = socket_bridge.runtime(tmp_path / ("long" * 20) / "run")
    assert socket_bridge._fits(made) and made.stat().st_mode & 0o077 == 0
    socket_bridge.remove(made, made.parent)
    assert made.exists()
    socket_bridge.remove(made, tmp_path)
    assert not made.exists()
    monkeypatch.setattr(
        socket_bridge.tempfile,
        "mkdtemp",
        lambda **_: (_ for _ in ()).throw(PermissionError(13, "denied")),
    )
    with pytest.raises(BundleError, match="TMPDIR"):
        socket_bridge.runtime(tmp_path / ("long" * 20) / "run")
