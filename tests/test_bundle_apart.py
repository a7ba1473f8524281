"""A kernel without network below a server that has one."""

import subprocess
import sys
from pathlib import Path

import pytest

from tape_jupyter.bundle import apart
from tape_jupyter.errors import BundleError
from tape_jupyter.namespaces import can_cut

needs_cut = pytest.mark.skipif(not can_cut(), reason="needs unshare -rn")
NETWORK = "import os, socket; print(os.getpid(), socket.create_server(('127.0.0.1', 0)).getsockname()[0])"


@needs_cut
def test_the_command_runs_in_the_same_process_and_reaches_itself_alone():
    child = subprocess.Popen(apart.command([sys.executable, "-c", NETWORK]), stdout=subprocess.PIPE, text=True)
    told, _ = child.communicate()
    assert told.split() == [str(child.pid), "127.0.0.1"] and child.returncode == 0


def test_where_the_network_is_not_gone_nothing_is_run(monkeypatch):
    monkeypatch.setattr(apart.namespaces, "loopback_up", lambda: (_ for _ in ()).throw(RuntimeError("eth0 is up")))
    monkeypatch.setattr(apart.os, "execv", lambda *_: pytest.fail("it ran"))
    with pytest.raises(RuntimeError, match="eth0"):
        apart.main(["true"])


def test_the_sockets_lie_where_their_paths_are_short_enough(tmp_path, monkeypatch):
    fits = Path("/tmp") / ("f" * (apart.LONGEST - apart.NAME - len("/tmp/")))
    assert apart._fits(fits) and not apart._fits(Path(f"{fits}f"))
    made = apart.runtime(tmp_path / ("long" * 20) / "run")
    assert apart._fits(made) and made.stat().st_mode & 0o077 == 0
    apart.remove(made, made.parent)
    assert made.exists()
    apart.remove(made, tmp_path)
    assert not made.exists()
    monkeypatch.setattr(apart.tempfile, "mkdtemp", lambda **_: (_ for _ in ()).throw(PermissionError(13, "denied")))
    with pytest.raises(BundleError, match="TMPDIR"):
        apart.runtime(tmp_path / ("long" * 20) / "run")
