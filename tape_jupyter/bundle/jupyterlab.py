"""A bundle in JupyterLab (`tape open FILE --lab`): its session in a scratch folder, its packages,
and every cell in replay mode, whatever it says itself. Where the machine has namespaces its kernel
has no network (bundle/socket_bridge.py).

It is a stranger's code that a person may now run, so the same is asked as before a replay. Jupyter
is not told to trust the notebook: what its saved outputs would run in the browser stays off until
the person says so there. The server is this Python's, so that nothing of the bundle runs until a
kernel is started; the kernel is that of its own environment.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tape_jupyter.bundle import replay, socket_bridge, trust
from tape_jupyter.bundle.archive import Bundle, opened
from tape_jupyter.bundle.environment import caches
from tape_jupyter.bundle.proof import process
from tape_jupyter.bundle.replay import BundleListener, ReplayRequest
from tape_jupyter.core.plain_text import format_count
from tape_jupyter.core.temp_dirs import clean
from tape_jupyter.errors import BundleError
from tape_jupyter.isolation import namespaces, sandbox

KERNEL = "python3"
"""The kernel's name in the scratch folder: what most notebooks name, so that nobody has to choose."""


@dataclass(frozen=True)
class UnpackedBundle:
    """A bundle that lies ready: the folder, the notebook in it, and the words and variables that
    start JupyterLab.
    """

    folder: Path
    notebook: Path
    command: tuple[str, ...]
    environment: dict[str, str]
    notes: tuple[str, ...] = ()
    guards: tuple[str, ...] = ()
    """What keeps its kernel from the network, in words."""

    def record(self) -> dict[str, Any]:
        """For --json."""
        return {
            "folder": str(self.folder), "notebook": str(self.notebook), "command": list(self.command),
            "guards": list(self.guards), "notes": list(self.notes),
        }  # fmt: skip

    def lines(self) -> list[str]:
        """What a person is told."""
        return [
            *(f"! {note}" for note in self.notes),
            f"folder: {self.folder}",
            "It stays when JupyterLab ends, with what you change in it; the bundle is as it was. Remove it when done.",
            f"guard: {'; '.join(self.guards)}",
            "Every cell replays (TAPE_MODE=replay): no key, no network. There are no terminals.",
            "The notebook is not trusted: Jupyter shows its saved outputs without running what they hold.",
        ]


def unpack_bundle(
    place: str | Path,
    options: ReplayRequest | None = None,
    listener: BundleListener | None = None,
    folder: Path | None = None,
) -> UnpackedBundle:
    """Take a bundle out into a folder (by itself a new scratch folder) and make its environment;
    nothing has run then.

    Raises BundleError where it cannot be used, or may not run, or where JupyterLab is not
    installed.
    """
    want, hear = options or ReplayRequest(), listener or BundleListener()
    _require_lab()
    with opened(place, hear.on_step) as bundle:
        replay.runnable(bundle, want)
        notes = [trust.ask_trust(bundle, lab_facts(bundle, want), yes=want.yes, answer=hear.answer)]
        where = folder or Path(tempfile.mkdtemp(prefix=f"tape-{_find_stem(bundle)}-"))
        sockets = None
        try:
            python = replay.interpreter(bundle, want, hear.on_step, where, notes)
            notebook, odd = replay.laid_out(bundle, where / "session")
            sockets = socket_bridge.runtime(where / "run") if namespaces.can_cut() else None
            environment = _build_environment(where, python, notebook, want, sockets)
        except BaseException:
            socket_bridge.remove_sockets(sockets or where, where)
            if folder is None:
                clean(where)
            raise
    lab = (sys.executable, "-P", "-m", "jupyterlab", f"--ServerApp.root_dir={notebook.parent}")
    command = (*lab, *_yield_settings(), *(socket_bridge.SERVER if sockets else ()), str(notebook))
    return UnpackedBundle(
        where, notebook, command, environment, tuple(filter(None, [*notes, *odd])), sandbox.guards()
    )


def run_lab(unpacked: UnpackedBundle) -> int:
    """Start JupyterLab and wait for its end; gives its exit code. An interrupt ends it, the folder
    stays.
    """
    try:
        return _run_lab(unpacked)
    finally:
        socket_bridge.remove_sockets(unpacked.environment["JUPYTER_RUNTIME_DIR"], unpacked.folder)


def _run_lab(unpacked: UnpackedBundle) -> int:
    # ours
    with subprocess.Popen(  # noqa: S603
        unpacked.command, env=unpacked.environment, cwd=unpacked.notebook.parent
    ) as child:
        while True:
            try:
                return child.wait()
            except KeyboardInterrupt:
                with contextlib.suppress(subprocess.TimeoutExpired, KeyboardInterrupt):
                    return child.wait(process.PATIENCE)
                child.terminate()


def lab_facts(bundle: Bundle, want: ReplayRequest) -> list[str]:
    """What a person is told before it is laid out."""
    packages = (
        "the packages of its lock" if want.env == "lock" else "this interpreter's packages (--here)"
    )
    cells = format_count(len(bundle.manifest.cells), "cell")
    return [
        f"In JupyterLab its code can run on this machine, as you: {cells}, with {packages}.",
        "Its kernel gets an empty home folder and none of your environment variables, but can read what you can read.",
        f"What restricts its kernel: {'; '.join(sandbox.guards())}.",
    ]


def _require_lab() -> None:
    if importlib.util.find_spec("jupyterlab") is None:
        raise BundleError(
            "JupyterLab is not installed beside tape-jupyter: pip install jupyterlab (or: uvx --with jupyterlab "
            "tape-jupyter open ... --lab). Without it: tape open shows the recording, tape replay runs it"
        )


def _find_stem(bundle: Bundle) -> str:
    name = bundle.manifest.notebook.rpartition("/")[2].removesuffix(".ipynb")
    return "".join(each if each.isascii() and each.isalnum() else "-" for each in name)[:24]


ENCLOSED = "tape_jupyter.bundle.enclosed_contents.EnclosedContents"
"""What the server reads and writes files by: it is loaded there alone."""


def _yield_settings() -> Iterator[str]:
    """Of the server: no news and updates from elsewhere, no settings of the folder, nothing to
    install, no terminals, no file outside of its folder.
    """
    yield "--LabApp.news_url=None"
    yield "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate"
    yield "--LabApp.extension_manager=readonly"
    yield "--ServerApp.terminals_enabled=False"
    yield f"--ServerApp.contents_manager_class={ENCLOSED}"
    yield "--KernelSpecManager.ensure_native_kernel=False"
    # whatever kernel of this machine the notebook names
    yield f"--KernelSpecManager.allowed_kernelspecs={KERNEL}"


def _build_environment(
    where: Path, python: str, notebook: Path, want: ReplayRequest, sockets: Path | None
) -> dict[str, str]:
    """Of JupyterLab: a home of its own, replay mode, and one kernel to choose.

    The kernel has another home: what the server reads there (kernels, extensions) is not a
    stranger's to change. The bundle's programs come first on the kernel's PATH alone: the server
    starts a browser and kernels by its own.
    """
    env, theirs = process.isolated_environment(where / "server", python), where / "home"
    data = Path(env["JUPYTER_DATA_DIR"])
    runtime = sockets or where / "server" / "runtime"
    for folder in (runtime, theirs, where / "layers"):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    kernel_env = {
        **process.isolated_environment(theirs, python),
        "JUPYTER_RUNTIME_DIR": str(runtime),
    }
    kernel = _Kernel(
        python, notebook, kernel_env, where / "layers", (where / "session", theirs, runtime)
    )
    kernel.install(data / "kernels" / KERNEL)
    desktop_variables = (
        "DISPLAY",
        "WAYLAND_DISPLAY",
        "XAUTHORITY",
        "BROWSER",
        "XDG_SESSION_TYPE",
        "DBUS_SESSION_BUS_ADDRESS",
    )
    options_text = process.kernel_options(want.take, want.pace)
    options = {"TAPE_OPTIONS": options_text} if options_text else {}
    return {
        **env, **{name: os.environ[name] for name in desktop_variables if name in os.environ},
        **caches.cache_variables(), **options,
        "PATH": os.environ.get("PATH", os.defpath), "TAPE_MODE": "replay",
        "PYTHONHASHSEED": process.hash_seed(notebook), "JUPYTER_NO_CONFIG": "1", "JUPYTER_RUNTIME_DIR": str(runtime),
        "JUPYTER_PATH": str(data),  # before the kernels of the server's own environment
    }  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Kernel:
    """A kernel that loads the tape before the first cell, as a replay's does, and is held as one."""

    python: str
    notebook: Path
    environment: dict[str, str]
    layers: Path
    kept: tuple[Path, ...]

    def install(self, folder: Path) -> None:
        from tape_jupyter.headless.kernel import LOAD, START

        exec_lines = f"--InteractiveShellApp.exec_lines={LOAD}"
        command = [self.python, "-c", START, "-f", "{connection_file}", exec_lines]
        # to jupyter_client `$NAME` is a variable's value
        env = {name: value.replace("$", "$$") for name, value in self.environment.items()}
        spec = {
            "argv": sandbox.command(command, self.layers, self.kept), "language": "python", "env": env,
            "display_name": f"{self.notebook.stem} (replay)",
        }  # fmt: skip
        folder.mkdir(parents=True)
        (folder / "kernel.json").write_text(json.dumps(spec, indent=1), encoding="utf-8")
