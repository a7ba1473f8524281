"""Harness: a real JupyterLab or Notebook server, and a notebook open in a real Chromium.

One server an application serves all tests; each test has a folder of its own below its root, and a page of its own.
Nothing sleeps: every wait is for what a person would wait for.
"""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
from playwright.sync_api import Locator, Page, expect

from tests.harness.notebook import ROOT, clean_env

START_SECONDS = 90
STOP_SECONDS = 15
expect.set_options(timeout=60_000)  # eight kernels may start on two cores
_TOKEN = "tests"
PANEL = "[...window.jupyterapp.shell.widgets('main')].find(w => w.sessionContext && w.context && w.context.path === path)"
READY = f"""path => {{
  const panel = {PANEL}, session = panel && panel.sessionContext, kernel = session && session.session && session.session.kernel;
  return Boolean(kernel && session.isReady && kernel.status === 'idle' && kernel.connectionStatus === 'connected');
}}"""
RAN = f"""({{path, numbers}}) => {{
  const panel = {PANEL}, cells = panel.content.widgets.filter(({{model}}) => model.type === 'code');
  const ran = numbers.every(number => cells[number - 1].model.executionState !== 'running' && cells[number - 1].model.executionCount);
  return ran && panel.sessionContext.session.kernel.status === 'idle';
}}"""
SELECT = f"""({{path, number}}) => {{
  const notebook = {PANEL}.content, cell = notebook.widgets.filter(({{model}}) => model.type === 'code')[number - 1];
  window.dispatchEvent(new PointerEvent('pointerdown'));  // as a click begins: no late focus elsewhere
  notebook.deselectAll();
  notebook.mode = 'command';
  notebook.activeCellIndex = notebook.widgets.indexOf(cell);
  notebook.activate();
  cell.node.focus();
}}"""
IDLE = f"path => {PANEL}.sessionContext.session.kernel.status === 'idle'"


@dataclass(frozen=True)
class Server:
    """A running Jupyter server: `app` is "lab" or "notebook"; notebooks lie below `root`."""

    app: str
    url: str
    root: Path
    settings: Path

    def address(self, notebook: Path) -> str:
        path = notebook.relative_to(self.root).as_posix()
        return (
            f"{self.url}/lab/tree/{path}?reset"
            if self.app == "lab"
            else f"{self.url}/notebooks/{path}"
        )

    def start_kernel(self, notebook: str) -> None:
        """Start a notebook's kernel as its page would; does not wait for it."""
        asked = {
            "path": notebook,
            "name": Path(notebook).name,
            "type": "notebook",
            "kernel": {"name": "python3"},
        }
        headers = {
            "Content-Type": "application/json",
            "X-XSRFToken": _TOKEN,
            "Cookie": f"_xsrf={_TOKEN}",
        }
        request = urllib.request.Request(
            f"{self.url}/api/sessions", json.dumps(asked).encode(), headers
        )
        urllib.request.urlopen(request, timeout=START_SECONDS).close()

    @contextmanager
    def without_extension(self) -> Iterator[None]:
        """As it is for people who have not installed the labextension (pages that are opened meanwhile)."""
        config = self.settings.parent / "labconfig" / "page_config.json"
        config.parent.mkdir(exist_ok=True)
        config.write_text(json.dumps({"disabledExtensions": {"tape-jupyter": True}}))
        try:
            yield
        finally:
            config.unlink()


@contextmanager
def serve(app: str, where: Path, env: Mapping[str, str] | None = None) -> Iterator[Server]:
    """A server that can be used, and is stopped in the end."""
    launch = Launch(app, where, env)
    try:
        yield launch.ready()
    finally:
        launch.stop()
        launch.wait()


class Launch:
    """A server that comes up: with settings of its own, and the labextension of this checkout.

    `ready` waits until it answers; `stop` asks it to end, `wait` waits for that: several do both side by side.
    """

    def __init__(
        self,
        app: str,
        where: Path,
        env: Mapping[str, str] | None = None,
        python: Path | None = None,
    ) -> None:
        """`python`: of an environment of its own, whose labextension is then the installed one."""
        self._log = where / "server.log"
        port = free_port()
        root, settings, own = _prepare(where, linked=python is None)
        if python is not None:
            own |= {"PYTHONPATH": "", "PATH": str(python.parent)}
        self.server = Server(app, f"http://127.0.0.1:{port}", root, settings)
        with self._log.open("w") as out:
            self._process = subprocess.Popen(
                _command(app, port, root, python),
                stdout=out,
                stderr=subprocess.STDOUT,
                env=clean_env(where, {**own, **(env or {})}),
                start_new_session=True,
            )

    def ready(self) -> Server:
        wait_for_server(self.server.url, self._process, self._log)
        return self.server

    def stop(self) -> None:
        self._process.send_signal(signal.SIGTERM)

    def wait(self) -> None:
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()


def _prepare(where: Path, *, linked: bool) -> tuple[Path, Path, dict[str, str]]:
    """Its root, its settings, and its environment; with this checkout's labextension where that is `linked`."""
    root, config = where / "root", where / "config"
    labextensions = where / "jupyter" / "labextensions"
    for folder in (root, config, labextensions):
        folder.mkdir(parents=True)
    if linked:
        (labextensions / "tape-jupyter").symlink_to(ROOT / "tape_jupyter" / "labextension")
    settings = config / "user-settings"
    quiet(settings)
    own = {
        "JUPYTER_CONFIG_DIR": str(config),
        "JUPYTERLAB_SETTINGS_DIR": str(settings),
        "JUPYTERLAB_WORKSPACES_DIR": str(config / "workspaces"),
        "JUPYTER_PATH": str(where / "jupyter"),
        "JUPYTER_PREFER_ENV_PATH": "1",
    }
    return root, settings, own


def _command(app: str, port: int, root: Path, python: Path | None) -> list[str]:
    command = [str(python or sys.executable), "-m", "jupyterlab" if app == "lab" else "notebook"]
    command += [
        "--no-browser",
        "--allow-root",
        f"--port={port}",
        "--ServerApp.port_retries=0",
        "--expose-app-in-browser",
    ]
    return [
        *command,
        "--IdentityProvider.token=",
        "--ServerApp.password=",
        f"--ServerApp.root_dir={root}",
    ]


def quiet(settings: Path) -> None:
    """No news, no look for updates: they would ask the network, and stand in the way of clicks."""
    folder = settings / "@jupyterlab" / "apputils-extension"
    folder.mkdir(parents=True)
    told = {"fetchNews": "false", "checkForUpdates": False, "doNotDisturbMode": False}
    (folder / "notification.jupyterlab-settings").write_text(json.dumps(told))


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for_server(url: str, server: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end and server.poll() is None:
        try:
            urllib.request.urlopen(url + "/api", timeout=5).close()
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)
        else:
            return
    raise RuntimeError(f"the server did not start:\n{log.read_text()[-3000:]}")


def write(path: Path, *sources: str, outputs: Mapping[int, list[Any]] | None = None) -> Path:
    """A notebook with these code cells, named cell-1, cell-2, ...; `outputs` of cells by number, from 0."""
    cells = []
    for number, source in enumerate(sources):
        cell = nbformat.v4.new_code_cell(source, id=f"cell-{number + 1}")
        cell.outputs = list((outputs or {}).get(number, ()))
        cells.append(cell)
    notebook = nbformat.v4.new_notebook(cells=cells)
    notebook.metadata["kernelspec"] = {
        "name": "python3",
        "display_name": "Python 3",
        "language": "python",
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook, path)
    return path


class Notebook:
    """A notebook that is open in the browser."""

    def __init__(self, page: Page, server: Server, path: Path) -> None:
        self.page, self.server, self.path = page, server, path
        self.name = path.relative_to(server.root).as_posix()

    def open(self, *, kernel: bool = True) -> Notebook:
        """Open it, and wait until its kernel can be used (the toolbar says idle too early).

        The kernel starts while the page loads, as where a notebook is opened that runs already.
        """
        if kernel:
            self.server.start_kernel(self.name)
        self.page.goto(self.server.address(self.path))
        self.page.wait_for_selector(".jp-NotebookPanel .jp-Cell", state="visible")
        if kernel:
            self.page.wait_for_function(READY, arg=self.name)
        return self

    @property
    def cells(self) -> Locator:
        return self.page.locator(".jp-NotebookPanel:visible .jp-Notebook .jp-CodeCell")

    def cell(self, number: int) -> Locator:
        """A cell by its number, from 1."""
        return self.cells.nth(number - 1)

    def select(self, number: int) -> None:
        """Select a cell as a click beside its text does."""
        self._activate(number)
        self.cell(number).locator(".jp-InputPrompt").dispatch_event("click")

    def _activate(self, number: int) -> None:
        """Have the focus in a cell.

        No pointer: Jupyter selects the cell below it when the button is let go, which is another one where
        the output of a cell above came in between.
        """
        cell = self.cell(number)
        cell.scroll_into_view_if_needed()
        self.page.evaluate(SELECT, {"path": self.name, "number": number})
        expect(cell).to_have_class(re.compile("jp-mod-active"))

    def run(self, *numbers: int, wait: bool = True) -> None:
        """Run cells one after another, as they queue up; `wait` for the end of all."""
        for number in numbers:
            self._activate(number)
            self.page.keyboard.press("Control+Enter")
        if wait:
            told = {"path": self.name, "numbers": numbers}
            self.page.wait_for_function(RAN, arg=told, timeout=30_000 * len(numbers))

    def idle(self) -> None:
        self.page.wait_for_function(IDLE, arg=self.name)

    def output(self, number: int) -> Locator:
        return self.cell(number).locator(".jp-OutputArea-output")

    def text(self, number: int) -> str:
        return "\n".join(self.output(number).all_inner_texts())

    def javascript(self, body: str, **arguments: Any) -> Any:
        """Run `body` in the page, where `panel` is this notebook's; arguments by name."""
        names = "".join(f"const {name} = given.{name};" for name in arguments)
        return self.page.evaluate(
            f"async ({{path, given}}) => {{ const panel = {PANEL}; {names} {body} }}",
            {"path": self.name, "given": arguments},
        )

    def python(self, code: str) -> str:
        """Run code in the kernel, beside the notebook; what it printed."""
        return str(
            self.javascript(
                "let out = ''; const future = panel.sessionContext.session.kernel.requestExecute({code, store_history: false});"
                "future.onIOPub = m => { if (m.header.msg_type === 'stream') out += m.content.text;"
                " if (m.header.msg_type === 'error') out += m.content.ename + ': ' + m.content.evalue; };"
                "await future.done; return out;",
                code=code,
            )
        )

    def rename(self, name: str) -> None:
        """Rename its file, in its folder."""
        self.javascript("await panel.context.rename(name);", name=name)
        self.path = self.path.with_name(name)
        self.name = self.path.relative_to(self.server.root).as_posix()

    def until(self, code: str, wanted: str | re.Pattern[str]) -> str:
        """Run code again and again until `wanted` is in what it prints: pages do things in their own time."""
        for _ in range(200):
            if re.search(wanted, said := self.python(code)):
                return said
            self.page.wait_for_timeout(50)
        raise AssertionError(f"{wanted!r} is not in what {code!r} prints: {said!r}")

    def save(self) -> dict[str, Any]:
        """Save it; the file's content then."""
        self.javascript("await panel.context.save();")
        return json.loads(self.path.read_text())
