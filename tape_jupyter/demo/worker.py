"""One recording or replay of a notebook in a process of its own, told line by line as JSON on
stdout.

With --cut it was started in a network namespace of its own (`unshare -rn`): it turns the loopback
on, which Jupyter needs to talk to its kernel, and nothing else is there. While replaying it listens
where the provider was: whoever still asks it is counted.
"""

from __future__ import annotations

import argparse
import json
import socket
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from tape_jupyter.headless import run as headless_run
from tape_jupyter.isolation.namespaces import loopback_up


@dataclass
class Tripwire:
    """A listener on a port of loopback that counts who connects."""

    port: int
    count: int = 0
    _server: socket.socket = field(init=False)

    def __enter__(self) -> Self:
        self._server = socket.create_server(("127.0.0.1", self.port))
        threading.Thread(target=self._count_connections, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.close()

    def _count_connections(self) -> None:
        while True:
            try:
                self._server.accept()[0].close()
            except OSError:
                return
            self.count += 1


def tell_event(event: str, **fields: Any) -> None:
    print(json.dumps({"event": event, **fields}), flush=True)  # noqa: T201  # the protocol


def starting(number: int, count: int, title: str) -> None:
    tell_event("starting", number=number, count=count, title=title)


def send_cell(run: headless_run.CellRun) -> None:
    tell_event("ran", **run.record())


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
        headless_run.record_notebook(options.notebook, starting, send_cell)
        return
    with Tripwire(options.port) as wire:
        headless_run.replay_notebook(options.notebook, starting, send_cell)
    tell_event("reached", count=wire.count)


if __name__ == "__main__":
    main()
