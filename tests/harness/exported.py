"""A small session to export: a model asked over a tapped transport, a module and a file of its own, an error that counts."""

import os
import shutil
from pathlib import Path

import pytest

from tape_jupyter.headless import run
from tests.harness.notebook import clean_env, notebook
from tests.harness.provider import Provider
from tests.harness.tapes import ASK

CELLS = (
    ASK + "\nimport os\nimport helper",
    "text = ask('one'); print('said:', text)",
    "print(helper.loud(open('data/names.txt').read()), os.getcwd()); object()",
    "raise ValueError(text)",
)


def newcomer(folder: Path, monkeypatch) -> None:
    """This process's environment becomes a newcomer's: without keys, with a home of its own."""
    wanted = clean_env(folder)
    for name in set(os.environ) - set(wanted):
        monkeypatch.delenv(name)
    for name, value in {**wanted, "XDG_CONFIG_HOME": str(folder / ".home" / "config")}.items():
        monkeypatch.setenv(name, value)


def quiet(*_: object) -> None:
    """Hears nothing."""


def recorded(folder: Path, *cells: str, name: str = "churn.ipynb") -> Path:
    """A notebook that was recorded in a fresh kernel, beside a module and a file that its cells read."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "data").mkdir(exist_ok=True)
    (folder / "data" / "names.txt").write_text("Ada, Jörg")
    (folder / "data" / "unread.bin").write_bytes(bytes(1000))
    (folder / "helper.py").write_text("def loud(text):\n    return text.upper()\n")
    return taped(folder / name, *(cells or CELLS))


def taped(path: Path, *cells: str, vary: bool = True, env: dict[str, str] | None = None) -> Path:
    """A notebook that was recorded in a fresh kernel; URL in its cells is the provider's, who is gone."""
    with Provider(vary=vary) as provider:
        notebook(path, *(cell.replace("URL", provider.url) for cell in cells))
        run.record_notebook(path, quiet, quiet, env=env or {})
    return path


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The session, recorded once for the module."""
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("whole")
        newcomer(folder, patch)
        yield recorded(folder / "work")


@pytest.fixture
def churn(whole, tmp_path, monkeypatch):
    """A copy of it, to do with as one likes; what was saved in the first folder is as if saved here."""
    newcomer(tmp_path, monkeypatch)
    folder = tmp_path / "my work"
    shutil.copytree(whole.parent, folder)
    path = folder / whole.name
    path.write_text(
        path.read_text(encoding="utf-8").replace(str(whole.parent), str(folder)), encoding="utf-8"
    )
    return path
