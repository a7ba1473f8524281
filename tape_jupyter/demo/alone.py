"""Doors room: one recording or replay of a notebook in a process of its own, told line by line as JSON on stdout.

With --cut it was started in a network namespace of its own (`unshare -rn`): it turns the loopback on, which Jupyter
needs to talk to its kernel, and nothing else is there. While replaying it listens where the provider was: whoever
still asks it is counted.
"""

from __future__ import annotations

import argparse
import json
import socket
import struct
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from tape_jupyter import headless

_SET_FLAGS = 0x8914  # SIOCSIFFLAGS of Linux's <linux/sockios.h>
_UP_AND_RUNNING = 0x41  # IFF_UP | IFF_RUNNING of <linux/if.h>


def loopback_up() -> None:
    """Turn `lo` on. Raises RuntimeError where anything but `lo` is there: the network is not cut off then."""
    import fcntl

    others = [name for _, name in socket.if_nameindex() if name != "lo" and _is_up(name)]
    if others:
        raise RuntimeError(f"the network is not cut off: {', '.join(others)} is up")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        fcntl.ioctl(control, _SET_FLAGS, struct.pack("16sH14x", b"lo", _UP_AND_RUNNING))


def _is_up(name: str) -> bool:
    """Tunnels that every namespace starts with (sit0, tunl0) are down."""
    return bool(int(Path(f"/sys/class/net/{name}/flags").read_text(encoding="ascii"), 16) & 1)


@dataclass
class Tripwire:
    """A listener on a port of loopback that counts who connects."""

    port: int
    count: int = 0
    _server: socket.socket = field(init=False)

    def __enter__(self) -> Self:
        self._server = socket.create_server(("127.0.0.1", self.port))
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.close()

    def _accept(self) -> None:
        while True:
            try:
                self._server.accept()[0].close()
            except OSError:
                return
            self.count += 1


def tell(event: str, **told: Any) -> None:
    print(json.dumps({"event": event, **told}), flush=True)  # noqa: T201  # the protocol


def starting(number: int, count: int, title: str) -> None:
    tell("starting", number=number, count=count, title=title)


def ran(run: headless.CellRun) -> None:
    tell("ran", **run.record())


def main() -> None:
    parser = argparse.ArgumentParser(description="Record or replay one notebook.")
    parser.add_argument("mode", choices=("record", "replay"))
    parser.add_argument("notebook", type=Path)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--cut", action="store_true")
    options = parser.parse_args()
    if options.cut:
        loopback_up()
    if options.mode == "record":
        headless.record(options.notebook, starting, ran)
        return
    with Tripwire(options.port) as wire:
        headless.replay(options.notebook, starting, ran)
    tell("reached", count=wire.count)


if __name__ == "__main__":
    main()
