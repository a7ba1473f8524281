"""Harness: real kernels, real front ends. No mocks of the kernel.

`Kernel` is one long-lived kernel that cells are sent to as a front end does; `run_notebook` runs a notebook file in
a fresh kernel with nbclient; `papermill`, `jupyter_execute`, `jupyterlab` and `terminal` run the other front ends
as processes.
Every one starts from `clean_env`: no keys, no proxies, no TAPE_ or session variables of the surrounding process.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nbformat
import portalocker

from tests.harness import kernel_forks

ROOT = Path(__file__).resolve().parents[2]
_SECRET = re.compile(
    r"KEY|TOKEN|SECRET|PASSWORD|PROXY|^TAPE_|^JPY_|^AWS_|^GOOGLE_|^PYTEST_", re.IGNORECASE
)
_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
TIMEOUT = 90
PYTHONPATH = os.pathsep.join(
    map(str, (ROOT, *(ROOT / "tests" / "harness" / each for each in ("left_out", "site-packages"))))
)
"""Where processes that tests start find the package, and what stands before modules that they do without."""


def clean_env(home: Path, env: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of a newcomer's kernel: this process's without its secrets, with a home of its own."""
    kept = {name: value for name, value in os.environ.items() if not _SECRET.search(name)}
    where = home / ".home"
    where.mkdir(exist_ok=True)
    own = {
        "HOME": str(where),
        "IPYTHONDIR": str(where / "ipython"),
        "JUPYTER_CONFIG_DIR": str(where / "config"),
        "JUPYTER_DATA_DIR": str(where / "data"),
        "JUPYTER_RUNTIME_DIR": str(where / "runtime"),
        "PYTHONPATH": PYTHONPATH,
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }
    return {**kept, **own, **(env or {})}


def notebook(path: Path, *sources: str) -> Path:
    """Write a notebook with these code cells."""
    nb = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources])
    nb.metadata["kernelspec"] = {
        "name": "python3",
        "display_name": "Python 3",
        "language": "python",
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(nb, path)
    return path


@dataclass
class Ran:
    """What a cell gave, as a front end sees it. `outputs` are nbformat-like dicts, streams merged."""

    status: str = ""
    ename: str = ""
    evalue: str = ""
    count: int | None = None
    outputs: list[dict[str, Any]] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        return self.status == "ok"

    @property
    def stdout(self) -> str:
        return self.stream("stdout")

    def stream(self, name: str) -> str:
        return "".join(
            out["text"]
            for out in self.outputs
            if out["output_type"] == "stream" and out["name"] == name
        )

    @property
    def result(self) -> str | None:
        """text/plain of the last expression."""
        found = [out for out in self.outputs if out["output_type"] == "execute_result"]
        return found[-1]["data"]["text/plain"] if found else None

    @property
    def displays(self) -> list[str]:
        """text/plain of what was displayed, the tape's own summary left out."""
        return [
            _plain(out)
            for out in self.outputs
            if out["output_type"] == "display_data" and not is_summary(out)
        ]

    @property
    def summary(self) -> str:
        """text/plain of the tape's summary ("" when none was shown)."""
        return "\n".join(_plain(out) for out in self.outputs if is_summary(out))

    @property
    def traceback(self) -> str:
        """The error as shown, without colours."""
        shown = [
            "\n".join(out["traceback"]) for out in self.outputs if out["output_type"] == "error"
        ]
        return _ANSI.sub("", "\n".join(shown))


def is_summary(output: Mapping[str, Any]) -> bool:
    return bool(output.get("metadata", {}).get("tape", {}).get("summary"))


def _plain(output: Mapping[str, Any]) -> str:
    text = output["data"].get("text/plain", "")
    return "".join(text) if isinstance(text, list) else text


def _count_blocks() -> Iterator[int]:
    """From a place that is a process's own, also where the first of several that are forks imported this."""
    yield from itertools.count(os.getpid() * 2_472)


_blocks = _count_blocks()


@contextmanager
def _ports() -> Iterator[dict[str, int]]:
    """Five free ports that no system hands out to who asks for any: those it may give to a test's server in the second
    between the choice and the kernel's start. Each process begins at a place of its own, and no other test takes them
    until the kernel is there.
    """
    for block in _blocks:
        first = 12_000 + block % 4_000 * 5
        lock = Path(tempfile.gettempdir(), f"tape-test-ports-{first}")
        with (
            suppress(portalocker.LockException),
            portalocker.Lock(lock, flags=_AT_ONCE, fail_when_locked=True),
        ):
            if _are_free(range(first, first + 5)):
                names = ("shell", "iopub", "stdin", "hb", "control")
                yield {f"{name}_port": first + n for n, name in enumerate(names)}
                return
    raise AssertionError("count() has no end")


_AT_ONCE = portalocker.LockFlags.EXCLUSIVE | portalocker.LockFlags.NON_BLOCKING


def _are_free(ports: Sequence[int]) -> bool:
    with ExitStack() as held, suppress(OSError):
        for port in ports:
            held.enter_context(socket.create_server(("127.0.0.1", port)))
        return True
    return False


class Kernel:
    """One real ipykernel, in a process of its own, started in `cwd`. A context manager.

    In a run of many test files it is a fork of one that has imported what kernels need (kernel_forks.py), unless
    `imports` says that its own imports are the point.
    """

    def __init__(
        self, cwd: Path, env: Mapping[str, str] | None = None, *, imports: bool = False
    ) -> None:
        from jupyter_client.manager import KernelManager

        self.cwd = cwd
        self._env = clean_env(cwd, env)
        if imports:
            self._env[kernel_forks.IMPORTS] = "1"
        with _ports() as ports:
            self._manager = KernelManager(kernel_name="python3", cache_ports=False, **ports)
            self._start()

    def _start(self) -> None:
        self._manager.start_kernel(
            cwd=str(self.cwd), env=self._env, extra_arguments=["--HistoryManager.enabled=False"]
        )
        self._connect()

    def _connect(self) -> None:
        self._client = self._manager.blocking_client()
        self._client.start_channels()
        self._client.wait_for_ready(timeout=TIMEOUT)

    @property
    def pid(self) -> int:
        return self._manager.provisioner.pid

    def send(self, code: str, cell_id: str | None = None, **content: Any) -> str:
        """Ask the kernel to run a cell, do not wait; the message's id."""
        asked = {
            "code": code, "silent": False, "store_history": True, "user_expressions": {},
            "allow_stdin": False, "stop_on_error": True, **content,
        }  # fmt: skip
        metadata = {"cellId": cell_id} if cell_id else {}
        message = self._client.session.msg("execute_request", asked, metadata=metadata)
        self._client.shell_channel.send(message)
        return message["header"]["msg_id"]

    def collect(self, asked: str, timeout: float = TIMEOUT) -> Ran:
        """Everything a sent cell gives, until the kernel is idle again."""
        ran, deadline = Ran(), time.monotonic() + timeout
        while True:
            message = self._client.get_iopub_msg(timeout=max(0.01, deadline - time.monotonic()))
            if message["parent_header"].get("msg_id") != asked:
                continue
            content = message["content"]
            if message["msg_type"] == "status" and content["execution_state"] == "idle":
                break
            put(ran, message["msg_type"], content)
        reply = self._reply(asked, deadline)["content"]
        ran.status, ran.count = reply["status"], reply.get("execution_count")
        ran.ename, ran.evalue = reply.get("ename", ""), reply.get("evalue", "")
        return ran

    def _reply(self, asked: str, deadline: float) -> dict[str, Any]:
        while True:
            message = self._client.get_shell_msg(timeout=max(0.01, deadline - time.monotonic()))
            if message["parent_header"].get("msg_id") == asked:
                return message

    def execute(
        self, code: str, cell_id: str | None = None, timeout: float = TIMEOUT, **content: Any
    ) -> Ran:
        return self.collect(self.send(code, cell_id, **content), timeout)

    def run_all(self, *cells: str) -> list[Ran]:
        """Send all cells at once, as Run All does; after an error the kernel aborts the rest.

        A cell before them waits at a prompt until they are all sent: an error may be quicker than the next message.
        """
        held = self.send("input()", allow_stdin=True)
        sent = [self.send(cell) for cell in cells]
        self.answer("")
        return [self.collect(asked) for asked in [held, *sent]][1:]

    def is_complete(self, code: str) -> str:
        """The kernel's word on unfinished input: complete, incomplete or invalid."""
        asked = self._client.is_complete(code)
        return self._reply(asked, time.monotonic() + TIMEOUT)["content"]["status"]

    def complete(self, code: str) -> list[str]:
        """The kernel's completions at the end of `code`."""
        asked = self._client.complete(code, len(code))
        return self._reply(asked, time.monotonic() + TIMEOUT)["content"]["matches"]

    def wait_for(self, asked: str, text: str, timeout: float = TIMEOUT) -> None:
        """Until a running cell has printed `text` (what was printed before is then gone from `collect`)."""
        seen, deadline = "", time.monotonic() + timeout
        while text not in seen:
            message = self._client.get_iopub_msg(timeout=max(0.01, deadline - time.monotonic()))
            if message["parent_header"].get("msg_id") == asked and message["msg_type"] == "stream":
                seen += message["content"]["text"]

    def answer(self, text: str, timeout: float = TIMEOUT) -> tuple[str, bool]:
        """Type into the prompt of a running cell (sent with `allow_stdin=True`); what it asked, and whether unseen."""
        asked = self._client.get_stdin_msg(timeout=timeout)["content"]
        self._client.input(text)
        return asked["prompt"], asked["password"]

    def interrupt(self) -> None:
        """As the stop button. ipykernel 7.4 cancels an awaiting cell only when the next message wakes its loop."""
        self._manager.interrupt_kernel()
        self._client.kernel_info()

    def kill(self) -> None:
        """kill -9, and wait until it is gone. `restart` brings a new one."""
        os.kill(self.pid, signal.SIGKILL)
        while self._manager.is_alive():
            time.sleep(0.01)

    def restart(self) -> None:
        self._client.stop_channels()
        self._manager.restart_kernel(now=True)
        self._connect()

    def close(self) -> None:
        self._client.stop_channels()
        self._manager.shutdown_kernel(now=True)
        self._manager.context.destroy(linger=0)

    def __enter__(self) -> Kernel:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@contextmanager
def jupyterlab(path: Path) -> Iterator[Kernel]:
    """The kernel that a JupyterLab server starts for a notebook, as the page does: through its sessions API."""
    from jupyter_client.blocking import BlockingKernelClient

    env = clean_env(path.parent)
    words = [
        "--no-browser",
        "--allow-root",
        "--ServerApp.port=0",
        "--IdentityProvider.token=t",
        f"--ServerApp.root_dir={path.parent}",
    ]
    server = subprocess.Popen(
        [sys.executable, "-m", "jupyterlab", *words, "--LabApp.news_url=None", "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate"],
        env=env, cwd=path.parent, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    try:
        session = _session(_url(Path(env["JUPYTER_RUNTIME_DIR"]), server), path.name)
        kernel = Kernel.__new__(Kernel)
        kernel.cwd = path.parent
        file = Path(env["JUPYTER_RUNTIME_DIR"]) / f"kernel-{session['kernel']['id']}.json"
        kernel._client = BlockingKernelClient(connection_file=str(file))
        kernel._client.load_connection_file()
        kernel._client.start_channels()
        _wait_until_ready(kernel._client)
        yield kernel
        kernel._client.stop_channels()
        kernel._client.context.destroy(linger=0)
    finally:
        server.terminate()
        server.wait(TIMEOUT)


def _wait_until_ready(client: Any) -> None:
    """Without a kernel manager the client takes a kernel for dead that misses one heartbeat: on a busy machine they do."""
    deadline = time.monotonic() + TIMEOUT
    while True:
        try:
            return client.wait_for_ready(timeout=TIMEOUT)
        except RuntimeError:
            if time.monotonic() > deadline:
                raise


def _url(runtime: Path, server: subprocess.Popen[bytes]) -> str:
    """Where the server listens; it writes a file once it does."""
    deadline = time.monotonic() + TIMEOUT
    while time.monotonic() < deadline and server.poll() is None:
        for file in runtime.glob("jpserver-*.json"):
            if text := file.read_text():
                return str(json.loads(text)["url"])
        time.sleep(0.05)
    raise RuntimeError("the server did not start")


def _session(url: str, name: str) -> dict[str, Any]:
    """Start a session for the notebook `name` of the server's root."""
    asked = {"path": name, "name": name, "type": "notebook", "kernel": {"name": "python3"}}
    request = urllib.request.Request(
        f"{url}api/sessions", json.dumps(asked).encode(),
        {"Authorization": "token t", "Content-Type": "application/json"}, method="POST",
    )  # fmt: skip
    deadline = time.monotonic() + TIMEOUT
    while True:
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT) as reply:
                return json.load(reply)
        except urllib.error.URLError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def put(ran: Ran, kind: str, content: Mapping[str, Any]) -> None:
    """Add an output message to what a cell gave."""
    last = ran.outputs[-1] if ran.outputs else {}
    if kind == "stream" and last.get("output_type") == "stream" and last["name"] == content["name"]:
        last["text"] += content["text"]
    elif kind in ("stream", "display_data", "execute_result", "error"):
        ran.outputs.append({"output_type": kind, **content})
    elif kind == "update_display_data":
        for out in ran.outputs:
            if out.get("transient", {}).get("display_id") == content["transient"]["display_id"]:
                out["data"] = content["data"]


def run_notebook(
    cells: Sequence[str] | Path,
    tmp_path: Path,
    env: Mapping[str, str] | None = None,
    name: str = "nb.ipynb",
) -> list[Ran]:
    """Run a notebook in a fresh kernel with nbclient, in the notebook's folder; what each code cell gave.

    `cells` are sources (written to `tmp_path/name` first), or the path of a notebook that is there. Cells after a
    failed one were not run: their status is "".
    """
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError

    path = cells if isinstance(cells, Path) else notebook(tmp_path / name, *cells)
    nb = nbformat.read(path, as_version=4)
    client = NotebookClient(
        nb,
        timeout=TIMEOUT,
        resources={"metadata": {"path": str(path.parent)}},
        kernel_name="python3",
    )
    try:
        client.execute(env=clean_env(tmp_path, env))
    except CellExecutionError:
        pass
    return [_ran(cell) for cell in nb.cells if cell.cell_type == "code"]


def _ran(cell: Mapping[str, Any]) -> Ran:
    """A cell of an executed notebook; not run: status ""."""
    outputs = [dict(out) for out in cell["outputs"]]
    error = next((out for out in outputs if out["output_type"] == "error"), {})
    timing = cell["metadata"].get("execution", {})
    status = "error" if error else "ok" if cell["execution_count"] is not None or timing else ""
    return Ran(
        status, error.get("ename", ""), error.get("evalue", ""), cell["execution_count"], outputs
    )


def executed(path: Path) -> list[Ran]:
    """What each code cell of an executed notebook file gave."""
    return [
        _ran(cell) for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"
    ]


def process(
    words: Sequence[str], cwd: Path, env: Mapping[str, str] | None = None, stdin: str | None = None
) -> subprocess.CompletedProcess[str]:
    """A program of the test's environment, run to its end."""
    return subprocess.run(
        [sys.executable, *words], cwd=cwd, env=clean_env(cwd, env), input=stdin,
        capture_output=True, text=True, timeout=TIMEOUT, check=False,
    )  # fmt: skip


def papermill(
    path: Path, out: Path, env: Mapping[str, str] | None = None, *options: str
) -> list[Ran]:
    """`papermill NB OUT` in the notebook's folder."""
    words = ["-m", "papermill", path.name, str(out), "--no-progress-bar", *options]
    done = process(words, path.parent, env)
    assert out.exists(), done.stderr
    return executed(out)


def jupyter_execute(
    path: Path, env: Mapping[str, str] | None = None, cwd: Path | None = None
) -> list[Ran]:
    """`jupyter execute --inplace NB`, from another folder if `cwd` is given."""
    done = process(
        ["-m", "jupyter", "execute", "--inplace", "--allow-errors", str(path)],
        cwd or path.parent,
        env,
    )
    assert done.returncode == 0, done.stderr
    return executed(path)


def terminal(lines: str, cwd: Path, env: Mapping[str, str] | None = None) -> str:
    """What a terminal IPython prints when these lines come in on its standard input (no prompt toolkit)."""
    words = [
        "-m",
        "IPython",
        "--simple-prompt",
        "--no-banner",
        "--no-confirm-exit",
        "--colors=NoColor",
    ]
    done = process(words, cwd, env, stdin=lines)
    return _ANSI.sub("", done.stdout + done.stderr)


@contextmanager
def typed_terminal(cwd: Path, env: Mapping[str, str] | None = None) -> Iterator[Any]:
    """A terminal IPython on a pty, as a person has it: a pexpect child that is at its first prompt."""
    import pexpect

    child = pexpect.spawn(
        sys.executable, ["-m", "IPython", "--no-banner", "--no-confirm-exit", "--colors=NoColor"],
        cwd=str(cwd), env={**clean_env(cwd, env), "TERM": "dumb"}, encoding="utf-8", timeout=TIMEOUT, dimensions=(50, 200),
    )  # fmt: skip
    try:
        child.expect(r"In \[1\]:")
        yield child
    finally:
        child.close(force=True)
