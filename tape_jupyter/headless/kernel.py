"""A fresh kernel that tapes: started, asked whether it does, and never waited for without end.

A kernel that does not start, that dies, or whose process stands still (it has no heartbeat any
more) ends the wait. Standard input is at its end: nobody is there to answer. A cell that merely
takes long is waited for.
"""

from __future__ import annotations

import ast
import asyncio
import copy
import importlib.util
import json
import logging
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from jupyter_client.kernelspec import KernelSpec, NoSuchKernel
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbclient.exceptions import DeadKernelError
from nbclient.util import ensure_async, run_sync

from tape_jupyter.comparison.outputs import count_characters
from tape_jupyter.errors import TapeUsageError

if TYPE_CHECKING:
    from nbformat import NotebookNode


Mode = Literal["record", "replay"]
LOAD = "__import__('tape_jupyter').load_ipython_extension(get_ipython())"
"""Not `extra_extensions`: the notebook's own `%load_ext tape_jupyter` would then print that it is
loaded already.
"""
START = "import sys; del sys.path[0]; from ipykernel.kernelapp import launch_new_instance; launch_new_instance()"
"""Python that becomes a kernel. Not `-m ipykernel_launcher`: that imports of the standard library
before it takes the notebook's folder off the path, and a file there may have a module's name.
"""
PROBE = "__import__('tape_jupyter.session.session', fromlist=['get']).get().session_mode"
REMARKS = "__import__('tape_jupyter.session.session', fromlist=['get']).get().take_remarks()"
"""Asked of the kernel's own tape-jupyter, which may be another version (a bundle brings its own):
the names in it stay. So does what headless/questions.py asks.
"""
KERNEL = "TAPE_KERNEL"
"""The environment variable that names a kernel in place of the notebook's own."""
READY = 120
"""Seconds that a kernel gets to start, and then to say whether it tapes: a busy machine takes long
to import.
"""
STARTS = 3
"""Times that a kernel is started one of whose ports another program took between its choice and its
use.
"""
SILENCE = 60.0
"""Seconds without a heartbeat after which a kernel that runs has stopped. It beats whatever a cell
computes.
"""
IDLE = 5.0
"""Seconds after which a kernel that has answered counts as idle, whatever it says."""
PARTING = 4.0
"""Seconds that a cell gets to end when the command is interrupted."""


class WatchedClient(NotebookClient):
    """A client that also gives up on a kernel whose process is there and stands still, and keeps no
    more of a cell's output than `most_output` characters (None: all).
    """

    _silent: float | None = None
    _beaten = False
    most_output: int | None = None
    overflowing_cell: int | None = None
    """The index of the first cell that gave more."""
    _output_size = (-1, 0)  # of which cell, and its characters so far

    def output(
        self,
        outs: list[NotebookNode],
        msg: dict[str, Any],
        display_id: str | None,
        cell_index: int,
    ) -> NotebookNode | None:
        if self.most_output is not None:
            cell, size = self._output_size
            size = count_characters([msg["content"]]) + (size if cell == cell_index else 0)
            self._output_size = (cell_index, size)
            if size > self.most_output:
                if self.overflowing_cell is None:
                    self.overflowing_cell = cell_index
                return None
        return super().output(outs, msg, display_id, cell_index)

    async def _async_check_alive(self) -> None:  # asked each second while a cell runs
        await super()._async_check_alive()
        beating = self.kc is None or self.kc.hb_channel.is_beating()
        self._beaten = self._beaten or beating
        if beating or not self._beaten:
            self._silent = None
            return
        self._silent = self._silent or time.monotonic()
        if time.monotonic() - self._silent > SILENCE:
            raise DeadKernelError(f"the kernel does not respond: no heartbeat for {SILENCE:.0f} s")


@contextmanager
def start_kernel(
    notebook: NotebookNode,
    path: Path,
    mode: Mode,
    timeout: float | None = None,
    env: Mapping[str, str] = MappingProxyType({}),
    python: str | None = None,
    prefix: Sequence[str] = (),
) -> Iterator[WatchedClient]:
    """A fresh kernel in the notebook's folder that tapes in this mode. Raises TapeUsageError if it
    does not.

    `python`: an interpreter that runs it, whatever kernel the notebook names; `env` is then its
    whole environment. `prefix`: words before the kernel's command, which they run. `TAPE_KERNEL`
    (in `env` or in the environment) is the name of a kernel in place of the notebook's own.
    """
    client = WatchedClient(
        notebook,
        timeout=timeout,
        startup_timeout=READY,
        record_timing=False,
        coalesce_streams=False,
        extra_arguments=[
            f"--InteractiveShellApp.exec_lines={LOAD}",
            "--IPKernelApp.log_level=ERROR",
        ],
        resources={"metadata": {"path": str(path.resolve().parent)}},
    )
    if name := env.get(KERNEL) or os.environ.get(KERNEL):
        client.kernel_name = name
    client.log = _build_quiet_log()
    # a set of texts is in the same order again
    base_env = {"PYTHONHASHSEED": "0", **os.environ} if python is None else {}
    kernel_env = {**base_env, "TAPE_MODE": mode, "TAPE_NOTEBOOK": str(path.resolve()), **env}
    kernel_env.pop("JPY_SESSION_NAME", None)  # in a terminal of Jupyter: some other notebook's
    try:
        _start_kernel(client, path, kernel_env, python, prefix)
        _require_taping(client, mode)
        yield client
    except KeyboardInterrupt:
        _interrupt_cell(client)
        raise
    finally:
        if client.km is not None:
            with suppress(KeyError):  # one that never came to start has no ports to give back
                # its own context leaves one that was interrupted while it started
                client._cleanup_kernel()  # noqa: SLF001


def _build_quiet_log() -> logging.Logger:
    """Of nbclient: what goes wrong is raised, and told once."""
    log = logging.getLogger(__name__)
    log.disabled = True
    return log


def _start_kernel(
    client: NotebookClient,
    path: Path,
    env: Mapping[str, str],
    python: str | None,
    prefix: Sequence[str],
) -> None:
    for left in reversed(range(STARTS)):
        ports: list[int] = []
        try:
            client.km = _build_manager(python) if python else client.create_kernel_manager()
            if prefix:
                _prefix_command(client.km, prefix)
            # what processes of its cells print is in their outputs; ours is for what we tell
            silent = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL}
            client.start_new_kernel(env=dict(env), **silent)
            ports = client.km.ports  # once it has died they are forgotten
            client.start_new_kernel_client()
        except NoSuchKernel as error:
            missing = importlib.util.find_spec("ipykernel") is None
            now = "pip install ipykernel" if missing else "jupyter kernelspec list"
            raise TapeUsageError(
                f"{path}: its kernel {error.name!r} is not installed ({now}); to run "
                f"it in another one: --kernel NAME, or {KERNEL}=NAME"
            ) from error
        except (RuntimeError, OSError) as error:
            if left and _is_in_use(ports):
                continue
            raise TapeUsageError(
                f"{path}: its kernel ({client.kernel_name or 'default'}) did not start: {error}. Nothing was run"
            ) from error
        return


def _is_in_use(ports: Iterable[int]) -> bool:
    """Whether somebody listens on one of these, now that their kernel is gone."""
    for port in ports:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, os.name == "posix")
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                return True
    return False


def _interrupt_cell(client: NotebookClient) -> None:
    """Have the cell that runs end as one that a person interrupted, so that what it recorded is
    whole.
    """

    async def end_cell() -> None:
        assert client.km is not None
        waiting = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in waiting:
            task.cancel()  # they would take the answer for their own
        await asyncio.gather(*waiting, return_exceptions=True)
        await ensure_async(client.km.interrupt_kernel())
        await _execute_source(client, "", PARTING, {})

    with suppress(Exception):  # what does not end so is ended otherwise
        run_sync(end_cell)()


def _build_manager(python: str) -> AsyncKernelManager:
    """Of a kernel of that interpreter. Not with -P: IPython would then leave the notebook's folder
    out of its path.
    """
    manager = AsyncKernelManager()
    # the only door for a kernel that is installed nowhere
    manager._kernel_spec = KernelSpec(  # noqa: SLF001
        argv=[python, "-c", START, "-f", "{connection_file}"], language="python"
    )
    return manager


def _prefix_command(manager: Any, prefix: Sequence[str]) -> None:
    """Have the kernel's command run by another."""
    spec = copy.copy(manager.kernel_spec)
    first, *more = spec.argv
    # jupyter_client's rule, for the first word of a command
    if re.fullmatch(r"python(3(\.\d+)?)?", first):
        first = sys.executable
    spec.argv = [*prefix, first, *more]
    manager._kernel_spec = spec  # noqa: SLF001 - as above


def _require_taping(client: NotebookClient, mode: Mode) -> None:
    """Ask the kernel itself, before anything runs: an extension that does not load only prints a
    warning.
    """
    name = client.kernel_name or "default"
    try:
        reply = ask_kernel(client, "", READY, mode=PROBE)
    except DeadKernelError as error:
        raise TapeUsageError(
            f"the notebook's kernel ({name}) ended while it started: {error}. Nothing was run"
        ) from None
    mode_result = (reply.get("user_expressions") or {}).get("mode") or {}
    if (mode_result.get("data") or {}).get("text/plain") != repr(mode):
        why = mode_result.get("evalue") or mode_result.get("data") or "no answer"
        raise TapeUsageError(
            f"the notebook's kernel ({name}) does not {mode}: {why}. Install tape-jupyter "
            "in that kernel's environment, or run tape from there. Nothing was run"
        )


def ask_kernel(
    client: NotebookClient, source: str, patience: float | None = None, **expressions: str
) -> dict[str, Any]:
    """Run a source that is no cell, and these expressions; gives the content of the kernel's reply.

    Raises DeadKernelError where there is none, also after `patience` seconds (None: as long as the
    kernel lives).
    """
    reply: dict[str, Any] = run_sync(_execute_source)(client, source, patience, expressions)
    return reply


def remarks(client: NotebookClient) -> dict[str, list[str]]:
    """What the kernel's cells said of themselves (outputs.REMARKS) since this was asked last,
    whatever became of their outputs. Nothing from a kernel that is gone, or whose tape-jupyter is
    older than the question.
    """
    try:
        reply = ask_kernel(client, "", READY, told=REMARKS)
        result = (reply.get("user_expressions") or {}).get("told") or {}
        remarks_by_kind = json.loads(ast.literal_eval(result["data"]["text/plain"]))
    except (DeadKernelError, KeyError, ValueError, SyntaxError):
        return {}
    return {str(kind): [str(each) for each in texts] for kind, texts in remarks_by_kind.items()}


async def _execute_source(
    client: NotebookClient, source: str, patience: float | None, expressions: Mapping[str, str]
) -> dict[str, Any]:
    from queue import Empty

    assert client.kc is not None
    began = time.monotonic()
    number = client.kc.execute(
        source, silent=True, store_history=False, user_expressions=dict(expressions)
    )
    while patience is None or time.monotonic() - began < patience:
        with suppress(Empty):
            message = await ensure_async(client.kc.shell_channel.get_msg(timeout=1))
            if message["parent_header"].get("msg_id") == number:
                await _wait_until_idle(client, number)
                return dict(message["content"])
            continue
        await client._async_check_alive()  # noqa: SLF001 - ours, above
    raise DeadKernelError(f"no answer in {patience:.0f} s")


async def _wait_until_idle(client: NotebookClient, number: str) -> None:
    """A kernel answers before it has left the handler of the question. The interrupt that its
    shutdown begins with would be raised there, and named on its stderr.
    """
    assert client.kc is not None
    # the word may have been read with something else, and a thread of the notebook's may talk on
    with suppress(TimeoutError):
        async with asyncio.timeout(IDLE):
            while True:
                message = await ensure_async(client.kc.iopub_channel.get_msg())
                is_own = message["parent_header"].get("msg_id") == number
                if is_own and message["content"].get("execution_state") == "idle":
                    return
