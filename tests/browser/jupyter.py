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

from tests.notebook import ROOT, clean_env

START_SECONDS = 90
STOP_SECONDS = 15
expect.set_options(timeout=30_000)  # eight kernels may start on two cores
PROMPT = re.compile(r"\[\d+\]")
PANEL = (
    "[...window.jupyterapp.shell.widgets('main')].find(w => w.sessionContext && w.context && w.context.path === path)"
)
READY = f"""path => {{
  const panel = {PANEL}, session = panel && panel.sessionContext, kernel = session && session.session && session.session.kernel;
  return Boolean(kernel && session.isReady && kernel.status === 'idle' && kernel.connectionStatus === 'connected');
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
        return f"{self.url}/lab/tree/{path}?reset" if self.app == "lab" else f"{self.url}/notebooks/{path}"

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
    """A server with settings of its own, and the labextension of this checkout."""
    root, config, log = where / "root", where / "config", where / "server.log"
    labextensions = where / "jupyter" / "labextensions"
    for folder in (root, config, labextensions):
        folder.mkdir(parents=True)
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
    port = free_port()
    command = [sys.executable, "-m", "jupyterlab" if app == "lab" else "notebook"]
    command += [
        "--no-browser",
        "--allow-root",
        f"--port={port}",
        "--ServerApp.port_retries=0",
        "--expose-app-in-browser",
    ]
    command += ["--IdentityProvider.token=", "--ServerApp.password=", f"--ServerApp.root_dir={root}"]
    with log.open("w") as out:
        server = subprocess.Popen(
            command,
            stdout=out,
            stderr=subprocess.STDOUT,
            env=clean_env(where, {**own, **(env or {})}),
            start_new_session=True,
        )
    try:
        url = f"http://127.0.0.1:{port}"
        wait_for_server(url, server, log)
        yield Server(app, url, root, settings)
    finally:
        server.send_signal(signal.SIGTERM)
        try:
            server.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(server.pid, signal.SIGKILL)
            server.wait()


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
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook, path)
    return path


class Notebook:
    """A notebook that is open in the browser."""

    def __init__(self, page: Page, server: Server, path: Path) -> None:
        self.page, self.server, self.path = page, server, path
        self.name = path.relative_to(server.root).as_posix()

    def open(self, *, kernel: bool = True) -> Notebook:
        """Open it, and wait until its kernel can be used (the toolbar says idle too early)."""
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
        """Click beside the cell's text: the middle of a long line can lie under something else."""
        self.cell(number).locator(".jp-InputPrompt").click()

    def run(self, number: int, *, wait: bool = True) -> None:
        self.select(number)
        self.page.keyboard.press("Control+Enter")
        if wait:
            expect(self.cell(number).locator(".jp-InputPrompt")).to_have_text(PROMPT)
            self.idle()

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
