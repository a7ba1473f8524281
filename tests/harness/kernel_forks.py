"""Kernels as forks of processes that have imported ipykernel and the package, and have run nothing.

A kernel's imports are most of what a short test in one costs. `serve` starts such processes and names their sockets in
the environment, so that the processes that a test run forks find them. `launch` stands in jupyter_client's place and
has one of them fork the kernel: a process of its own session with the environment, folder and output that it was given.
What an interpreter reads only once, as it starts (PYTHONPATH, a library to load first, the language), it cannot be given
anew; a kernel for which that is otherwise is started as ever, and so is one with the variable `IMPORTS`.
"""

from __future__ import annotations

import importlib.util
import itertools
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from jupyter_client.launcher import launch_kernel

SOCKETS = "KERNELS_OF_TESTS"
IMPORTS = "IMPORTS_OF_TESTS"
NEEDED = ("ipykernel.kernelapp", "ipykernel.zmqshell", "tape_jupyter.jupyter.magics")
_AT_START = ("PYTHON", "LD_", "LC_", "LANG", "MALLOC", "GLIBC")
"""How the names begin of variables that are read as an interpreter starts."""


class ForkedKernel:
    """What jupyter_client asks of a kernel's process, of one that is no child of this one."""

    stdin = stdout = stderr = None

    def __init__(self, pid: int) -> None:
        self.pid, self._handle = pid, os.pidfd_open(pid)

    def poll(self) -> int | None:
        """None while it lives. How it ended is its parent's to know."""
        return 0 if select.select([self._handle], [], [], 0)[0] else None

    def wait(self, timeout: float | None = None) -> int:
        if not select.select([self._handle], [], [], timeout)[0]:
            raise subprocess.TimeoutExpired("kernel", timeout or 0.0)
        return 0

    def send_signal(self, number: int) -> None:
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._handle, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def __del__(self) -> None:
        os.close(self._handle)


def launch(
    command: Sequence[str],
    *,
    env: Mapping[str, str] | None = None,
    cwd: str | None = None,
    **more: Any,
) -> ForkedKernel | subprocess.Popen[bytes]:
    """As jupyter_client.launcher.launch_kernel: a fork where there can be one."""
    env = dict(os.environ if env is None else env)
    sockets = _find_sockets(env)
    if not sockets or "ipykernel_launcher" not in command or command[0] != sys.executable:
        return launch_kernel(command, env=env, cwd=cwd, **more)
    words = command[command.index("ipykernel_launcher") + 1 :]
    with socket.socket(socket.AF_UNIX) as asked, open(os.devnull) as nothing:
        asked.connect(sockets[next(_turns) % len(sockets)])
        socket.send_fds(asked, [b"kernel"], [nothing.fileno(), 1, 2])
        asked.sendall(json.dumps([words, env, cwd or os.getcwd()]).encode())
        asked.shutdown(socket.SHUT_WR)
        return ForkedKernel(int(asked.makefile().read()))


def _find_sockets(env: Mapping[str, str]) -> list[str]:
    """Of the processes that were started as this environment says; none where imports are the point."""
    if IMPORTS in env:
        return []
    served = json.loads(os.environ.get(SOCKETS, "[]"))
    return [name for name, read in served if read == _list_read_at_start(env)]


_turns = itertools.count()


@contextmanager
def serve(environments: Sequence[Mapping[str, str]]) -> Iterator[None]:
    """Have kernels with such environments be forks from here on, also in processes that this one forks.

    Does nothing where a system has no handle of a process.
    """
    if not hasattr(os, "pidfd_open") or not hasattr(signal, "pidfd_send_signal"):
        yield
        return
    with tempfile.TemporaryDirectory(prefix="kernels-") as folder:
        names = [f"{folder}/{number}" for number in range(len(environments))]
        servers = [
            subprocess.Popen(
                [sys.executable, __file__, name],
                env=dict(env),
                cwd=folder,
                stdin=subprocess.PIPE,
                start_new_session=True,  # a Ctrl-C is the test run's own
            )
            for name, env in zip(names, environments, strict=True)
        ]
        for name in names:
            _wait_for(Path(name), servers)
        read = map(_list_read_at_start, environments)
        os.environ[SOCKETS] = json.dumps(list(zip(names, read, strict=True)))
        try:
            yield
        finally:
            del os.environ[SOCKETS]
            for server in servers:
                server.communicate()  # it ends with its input


def _wait_for(path: Path, servers: Sequence[subprocess.Popen[bytes]]) -> None:
    while not path.exists():
        if any(server.poll() is not None for server in servers):
            raise RuntimeError("a process that kernels are forks of did not start")
        time.sleep(0.02)


def _list_read_at_start(env: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in env.items() if name.startswith(_AT_START)}


def _serve_forks(name: str) -> None:
    """In the process that is forked: until its input ends."""
    del sys.path[0]  # this file's folder, whose modules no kernel knows
    os.environ["JPY_PARENT_PID"] = str(os.getpid())  # a kernel ends with it
    for module in NEEDED:
        importlib.import_module(module)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # no kernel that ended waits to be asked for
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(f"{name}.starting")
        server.listen(64)
        os.rename(f"{name}.starting", name)
        while True:
            ready, _, _ = select.select([server, sys.stdin], [], [])
            if sys.stdin in ready:
                return
            asked, _ = server.accept()
            _, files, _, _ = socket.recv_fds(asked, len(b"kernel"), 3)
            text = b"".join(iter(lambda: asked.recv(65536), b""))
            if not os.fork():
                server.close()
                os.setsid()  # before anybody hears of it and signals its group
                asked.sendall(str(os.getpid()).encode())
                asked.close()
                _become_kernel(files, *json.loads(text))
            asked.close()
            for each in files:
                os.close(each)


def _become_kernel(files: Sequence[int], words: list[str], env: dict[str, str], cwd: str) -> None:
    """In the fork: what a process is given as it starts, then the kernel, to its end."""
    status = 1
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for number, file in enumerate(files):
            os.dup2(file, number)
            os.close(file)
        os.environ.clear()
        os.environ.update(env)
        time.tzset()
        os.chdir(cwd)
        sys.argv = [str(importlib.util.find_spec("ipykernel_launcher").origin), *words]
        from ipykernel import kernelapp

        kernelapp.launch_new_instance()
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 1
    finally:
        _leave(status)


def _leave(status: int) -> None:
    """As an interpreter ends, without going back to what the fork was made in."""
    import atexit
    import threading

    threading._shutdown()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


if __name__ == "__main__":
    _serve_forks(sys.argv[1])
