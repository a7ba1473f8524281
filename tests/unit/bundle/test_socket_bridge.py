"""Where the sockets lie that a server and its kernel without network speak over."""

from pathlib import Path

import pytest

from tape_jupyter.bundle import socket_bridge
from tape_jupyter.errors import BundleError


def test_the_sockets_lie_where_their_paths_are_short_enough(tmp_path, monkeypatch):
    fits = Path("/tmp") / ("f" * (socket_bridge.LONGEST - socket_bridge.NAME - len("/tmp/")))
    assert socket_bridge._is_short_enough(fits) and not socket_bridge._is_short_enough(
        Path(f"{fits}f")
    )
    made = socket_bridge.runtime(tmp_path / ("long" * 20) / "run")
    assert socket_bridge._is_short_enough(made) and made.stat().st_mode & 0o077 == 0
    socket_bridge.remove_sockets(made, made.parent)
    assert made.exists()
    socket_bridge.remove_sockets(made, tmp_path)
    assert not made.exists()
    monkeypatch.setattr(
        socket_bridge.tempfile,
        "mkdtemp",
        lambda **_: (_ for _ in ()).throw(PermissionError(13, "denied")),
    )
    with pytest.raises(BundleError, match="TMPDIR"):
        socket_bridge.runtime(tmp_path / ("long" * 20) / "run")
