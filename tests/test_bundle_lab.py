"""`tape open FILE --lab`: a stranger's session lies ready in JupyterLab, in replay mode, trusted by nobody."""

import json
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from click.testing import CliRunner

from tape_jupyter.bundle import lab
from tape_jupyter.bundle.replaying import Wanted
from tape_jupyter.cli import tape
from tape_jupyter.errors import BundleError
from tests.notebook import ROOT, _url, clean_env, notebook
from tests.replayed import bundle_of

HERE = Wanted(env="current", yes=True)


@pytest.fixture(autouse=True)
def newcomer(tmp_path, monkeypatch):
    for name, value in clean_env(tmp_path).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


@pytest.fixture
def place(tmp_path):
    path = notebook(
        tmp_path / "mine" / "churn.ipynb", "%%tape record\nprint('hi')", "import os; os.environ['TAPE_MODE']"
    )
    return bundle_of(path, tmp_path / "shared" / "churn.tape.zip")


def test_it_lies_in_a_folder_of_its_own_with_one_kernel_that_replays(place, tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-mine")
    laid = lab.lay(place, HERE, folder=tmp_path / "scratch")
    assert laid.notebook == tmp_path / "scratch" / "session" / "session" / "churn.ipynb" and laid.notebook.exists()
    assert laid.environment["TAPE_MODE"] == "replay" and "sk-mine" not in laid.environment.values()
    assert laid.environment["HOME"] == str(tmp_path / "scratch" / "home")
    (spec,) = Path(laid.environment["JUPYTER_DATA_DIR"]).glob("kernels/*/kernel.json")
    assert json.loads(spec.read_text())["argv"][0] == sys.executable
    said = "\n".join(laid.lines())
    assert str(tmp_path / "scratch") in said and "It stays" in said and "not trusted" in said
    assert not list(tmp_path.glob("scratch/home/**/nbsignatures.db"))


def test_it_asks_as_a_replay_does(place):
    done = CliRunner().invoke(tape, ["open", str(place), "--lab", "--here"])
    assert done.exit_code == 2 and "--yes" in done.stderr and "JupyterLab" in done.stderr


def test_without_jupyterlab_it_says_how_to_have_it(place, monkeypatch):
    monkeypatch.setattr(lab.importlib.util, "find_spec", lambda _: None)
    with pytest.raises(BundleError, match="pip install jupyterlab"):
        lab.lay(place, HERE)


def test_what_cannot_be_laid_out_leaves_no_folder(place, tmp_path, monkeypatch):
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    with pytest.raises(BundleError, match="no take"):
        lab.lay(place, Wanted("none", "current", yes=True))
    monkeypatch.setattr(lab, "_environment", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        lab.lay(place, HERE)
    assert list((tmp_path / "tmp").iterdir()) == []


def test_the_server_shows_it_untrusted_and_its_kernel_replays(place, tmp_path):
    """The real JupyterLab, asked as its front end asks."""
    laid = lab.lay(place, HERE, folder=tmp_path / "a folder ü")
    words = [*laid.command, "--no-browser", "--allow-root", "--ServerApp.port=0", "--IdentityProvider.token=t"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    server = subprocess.Popen(
        words, env={**laid.environment, "PYTHONPATH": str(ROOT)}, cwd=laid.notebook.parent, **quiet
    )
    try:
        url = _url(Path(laid.environment["JUPYTER_RUNTIME_DIR"]), server)

        def get(path, data=None):
            request = urllib.request.Request(url + path, data, {"Authorization": "token t"})
            with urllib.request.urlopen(request) as reply:
                return json.load(reply)

        shown = get("api/contents/churn.ipynb")
        assert [cell["metadata"].get("trusted") for cell in shown["content"]["cells"]] == [False, False]
        specs = get("api/kernelspecs")["kernelspecs"]
        assert list(specs) == ["python3"] and specs["python3"]["spec"]["display_name"] == "churn (replay)"
        assert get("api/kernels", b"{}")["name"] == "python3"
    finally:
        server.terminate()
        server.wait()
    assert laid.notebook.exists()
