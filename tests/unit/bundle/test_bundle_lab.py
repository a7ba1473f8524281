"""`tape open FILE --lab`: a stranger's session lies ready in JupyterLab, in replay mode, trusted by nobody."""

import http.cookiejar
import json
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from click.testing import CliRunner
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from tape_jupyter.bundle import jupyterlab
from tape_jupyter.bundle.replay import ReplayRequest
from tape_jupyter.cli import tape
from tape_jupyter.errors import BundleError
from tape_jupyter.isolation import sandbox
from tape_jupyter.isolation.namespaces import CUT, GUARDED, can_cut
from tests.harness.exported import newcomer
from tests.harness.notebook import ROOT, _session, _url, notebook
from tests.harness.replayed import bundle_of

HERE = ReplayRequest(env="current", yes=True)
BELOW_PYTHON = """import ctypes, socket, struct
libc = ctypes.CDLL(None, use_errno=True)
there = struct.pack("=HH4s8x", socket.AF_INET, socket.htons(PORT), bytes([127, 0, 0, 1]))
reached = libc.connect(libc.socket(socket.AF_INET, socket.SOCK_STREAM, 0), there, len(there)) == 0
print("reached" if reached else "refused")"""
"""To the server's own port, past every hook of Python; the socket guard would not see it."""


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    newcomer(tmp_path, monkeypatch)


@pytest.fixture(autouse=True)
def laid_out(monkeypatch):
    """What a test lays out puts its sockets away, as `tape open` does when JupyterLab has ended."""
    made, lay = [], jupyterlab.unpack_bundle
    monkeypatch.setattr(
        jupyterlab,
        "unpack_bundle",
        lambda *given, **said: made.append(lay(*given, **said)) or made[-1],
    )
    yield
    for each in made:
        jupyterlab.socket_bridge.remove_sockets(
            each.environment["JUPYTER_RUNTIME_DIR"], each.folder
        )


@pytest.fixture
def place(tmp_path):
    path = notebook(
        tmp_path / "mine" / "churn.ipynb",
        "%%tape record\nprint('hi')",
        "import os; os.environ['TAPE_MODE']",
    )
    return bundle_of(path, tmp_path / "shared" / "churn.tape.zip")


def test_it_lies_in_a_folder_of_its_own_with_one_kernel_that_replays(place, tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-mine")
    laid = jupyterlab.unpack_bundle(place, HERE, folder=tmp_path / "scratch")
    assert (
        laid.notebook == tmp_path / "scratch" / "session" / "session" / "churn.ipynb"
        and laid.notebook.exists()
    )
    assert laid.environment["TAPE_MODE"] == "replay" and "sk-mine" not in laid.environment.values()
    assert laid.environment["HOME"] == str(tmp_path / "scratch" / "server")
    (spec,) = Path(laid.environment["JUPYTER_DATA_DIR"]).glob("kernels/*/kernel.json")
    assert sys.executable in json.loads(spec.read_text())["argv"]
    said = "\n".join(laid.lines())
    assert str(tmp_path / "scratch") in said and "It stays" in said and "not trusted" in said
    assert not list(tmp_path.glob("scratch/home/**/nbsignatures.db"))


@pytest.mark.parametrize(("cut", "confined"), [(True, True), (True, False), (False, False)])
def test_it_says_which_guard_holds(place, tmp_path, monkeypatch, cut, confined):
    monkeypatch.setattr(jupyterlab.namespaces, "can_cut", lambda: cut)
    monkeypatch.setattr(jupyterlab.sandbox, "can_confine", lambda: confined)
    guards = jupyterlab.sandbox.GUARDS if confined else CUT if cut else GUARDED
    laid = jupyterlab.unpack_bundle(place, HERE, folder=tmp_path / "scratch")
    assert laid.guards == guards and f"guard: {'; '.join(guards)}" in laid.lines()
    assert laid.record()["guards"] == list(guards)
    argv = kernel_of(laid)["argv"]
    assert ("tape_jupyter.isolation.sandbox" in argv) == cut
    assert (str(tmp_path / "scratch" / "layers") in argv) == confined
    assert ("--KernelManager.transport=ipc" in laid.command) == cut


def kernel_of(laid):
    (spec,) = Path(laid.environment["JUPYTER_DATA_DIR"]).glob("kernels/*/kernel.json")
    return json.loads(spec.read_text())


def test_programs_of_the_bundles_environment_are_its_kernels_alone(place, tmp_path, monkeypatch):
    """Neither the namespace nor a browser is started by a program that a stranger named so."""
    theirs = tmp_path / "theirs" / "bin"
    theirs.mkdir(parents=True)
    (theirs / "unshare").write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    (theirs / "unshare").chmod(0o755)
    monkeypatch.setattr(jupyterlab.replay, "interpreter", lambda *_: str(theirs / "python"))
    laid = jupyterlab.unpack_bundle(place, HERE, folder=tmp_path / "scratch")
    kernel = kernel_of(laid)
    assert str(theirs) not in laid.environment["PATH"]
    assert kernel["env"]["PATH"].startswith(f"{theirs}:")
    if can_cut():  # and not even if it came first
        monkeypatch.setenv("PATH", f"{theirs}:{laid.environment['PATH']}")
        line = sandbox.command(["/bin/true"], tmp_path / "scratch" / "layers", [])
        subprocess.run(line, check=True)
        assert kernel["argv"][0] == sys.executable and not (tmp_path / "ran").exists()


def test_what_the_server_reads_is_not_its_kernels_to_change(place, tmp_path):
    """A kernel that changed its own kernelspec would be started anew without what holds it."""
    laid = jupyterlab.unpack_bundle(place, HERE, folder=tmp_path / "scratch")
    kernel = kernel_of(laid)
    assert kernel["env"]["HOME"] == str(tmp_path / "scratch" / "home") != laid.environment["HOME"]
    if not sandbox.can_confine():
        return
    kept = [Path(each) for each in kernel["argv"][5 : kernel["argv"].index("--")]]
    for name in ("JUPYTER_DATA_DIR", "JUPYTER_PATH", "HOME", "JUPYTER_CONFIG_DIR"):
        place = Path(laid.environment[name])
        assert not any(place.is_relative_to(each) or each.is_relative_to(place) for each in kept)


def test_it_asks_as_a_replay_does(place):
    done = CliRunner().invoke(tape, ["open", str(place), "--lab", "--here"])
    assert done.exit_code == 2 and "--yes" in done.stderr and "JupyterLab" in done.stderr


def test_without_jupyterlab_it_says_how_to_have_it(place, monkeypatch):
    monkeypatch.setattr(jupyterlab.importlib.util, "find_spec", lambda _: None)
    with pytest.raises(BundleError, match="pip install jupyterlab"):
        jupyterlab.unpack_bundle(place, HERE)


def test_what_cannot_be_laid_out_leaves_no_folder(place, tmp_path, monkeypatch):
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    with pytest.raises(BundleError, match="no take"):
        jupyterlab.unpack_bundle(place, ReplayRequest("none", "current", yes=True))
    monkeypatch.setattr(jupyterlab, "_build_environment", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        jupyterlab.unpack_bundle(place, HERE)
    assert list((tmp_path / "tmp").iterdir()) == []


class Page:
    """What a browser's page says to a kernel, and hears of it."""

    def __init__(self, url, kernel):
        self._line = connect(
            f"{url.replace('http', 'ws', 1)}api/kernels/{kernel}/channels?token=t", open_timeout=120
        )
        self._number = 0

    def execute(self, source):
        """What the source printed, and the name of its error."""
        self._number += 1
        asked = {
            "msg_id": str(self._number),
            "msg_type": "execute_request",
            "session": "page",
            "username": "",
        }
        content = {"code": source, "silent": False, "store_history": True, "allow_stdin": False}
        said = {
            "header": asked,
            "parent_header": {},
            "metadata": {},
            "content": content,
            "channel": "shell",
        }
        self._line.send(json.dumps(said))
        printed, error = "", ""
        while True:
            heard = json.loads(self._line.recv(timeout=120))
            if heard["parent_header"].get("msg_id") != asked["msg_id"]:
                continue
            content = heard["content"]
            printed += content.get("text", "") if heard["msg_type"] == "stream" else ""
            error = content["ename"] if heard["msg_type"] == "error" else error
            if heard["msg_type"] == "status" and content["execution_state"] == "idle":
                return printed, error

    def close(self):
        self._line.close()


def status(url, opener=None, **headers):
    request = urllib.request.Request(
        url, headers={name.replace("_", "-"): value for name, value in headers.items()}
    )
    try:
        with (opener or urllib.request.build_opener()).open(request) as reply:
            return reply.status
    except urllib.error.HTTPError as error:
        return error.code


def refuses_strangers(url, kernel):
    """Another page of the same browser: without the token, by a name that leads here (DNS rebinding), from its origin."""
    asked = f"{url}api/contents/churn.ipynb"
    assert status(asked, Authorization="token t") == 200
    assert status(asked) == 403 and status(asked, Authorization="token x") == 403
    port = url.rpartition(":")[2].strip("/")
    for name in ("evil.test", f"evil.test:{port}", f"192.0.2.1:{port}"):
        assert status(asked, Authorization="token t", Host=name) == 403
    jar = http.cookiejar.CookieJar()
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(jar))
    assert status(f"{url}lab?token=t", browser) == 200  # it is logged in from here on
    assert status(asked, browser) == 200
    assert status(asked, browser, Origin="http://evil.test", Referer="http://evil.test/") in (
        403,
        404,
    )
    cookies = {"Cookie": "; ".join(f"{each.name}={each.value}" for each in jar)}
    channel = f"{url.replace('http', 'ws', 1)}api/kernels/{kernel}/channels"
    with connect(channel, additional_headers=cookies, origin=url.rstrip("/"), open_timeout=120):
        pass
    for origin in ("http://evil.test", f"http://evil.test:{port}", "null"):
        with pytest.raises(InvalidStatus):
            connect(channel, additional_headers=cookies, origin=origin, open_timeout=120)
    with pytest.raises(InvalidStatus):
        connect(channel, origin=url.rstrip("/"), open_timeout=120)


def test_the_server_shows_it_untrusted_and_its_kernel_replays(place, tmp_path):
    """The real JupyterLab, asked as its front end asks."""
    laid = jupyterlab.unpack_bundle(place, HERE, folder=tmp_path / "a folder ü")
    words = [
        *laid.command,
        "--no-browser",
        "--allow-root",
        "--ServerApp.port=0",
        "--IdentityProvider.token=t",
    ]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    server = subprocess.Popen(
        words, env={**laid.environment, "PYTHONPATH": str(ROOT)}, cwd=laid.notebook.parent, **quiet
    )
    try:
        url = _url(Path(laid.environment["JUPYTER_RUNTIME_DIR"]), server)
        kernel = _session(url, laid.notebook.name)["kernel"]

        def get(path, data=None):
            request = urllib.request.Request(url + path, data, {"Authorization": "token t"})
            with urllib.request.urlopen(request) as reply:
                return json.loads(reply.read() or b"{}")

        shown = get("api/contents/churn.ipynb")
        assert [cell["metadata"].get("trusted") for cell in shown["content"]["cells"]] == [
            False,
            False,
        ]
        specs = get("api/kernelspecs")["kernelspecs"]
        assert (
            list(specs) == ["python3"]
            and specs["python3"]["spec"]["display_name"] == "churn (replay)"
        )
        assert kernel["name"] == "python3"
        page = Page(url, kernel["id"])
        assert (
            page.execute("import os; print(os.environ['TAPE_MODE'], os.getcwd())")[0].split()[0]
            == "replay"
        )
        assert (
            page.execute("import urllib.request; urllib.request.urlopen('http://192.0.2.1')")[1]
            == "UnmatchedCall"
        )
        if can_cut():
            port = url.rpartition(":")[2].strip("/")
            assert page.execute(BELOW_PYTHON.replace("PORT", port)) == ("refused\n", "")
            get(f"api/kernels/{kernel['id']}/interrupt", b"")
            get(f"api/kernels/{kernel['id']}/restart", b"")
            assert page.execute("print('again')")[0] == "again\n"
        page.close()
        refuses_strangers(url, kernel["id"])
    finally:
        server.terminate()
        server.wait()
    assert laid.notebook.exists()
