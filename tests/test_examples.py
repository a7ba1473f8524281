"""The committed example replays as it was recorded: fresh kernels, no key, no network, no model.

`TAPE_EXAMPLE_RUNS=20` replays it that often; where Linux allows it each run is in a network namespace of its own, and
where strace is installed every connect, of every process, is counted (the kernel's own ports and Unix sockets aside).
"""

import json
import os
import platform
import re
import shlex
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from tape_jupyter.comparison import outputs
from tape_jupyter.bundle.staging import ELSEWHERE
from tape_jupyter.demo import local_model, texts
from tape_jupyter.isolation.namespaces import can_cut, without_network
from tests.harness.notebook import ROOT, clean_env, notebook

EXAMPLES = ROOT / "example_notebooks"
NAME = "01_record_and_replay"
SHARED = "04_share_a_bundle"
TRACED = "06_from_a_trace"
NAMES = (NAME, "02_override_and_rerun", "03_step_through", SHARED, "05_why", TRACED)
ASSUMED = {TRACED: {"api.anthropic.com", "api.openai.com"}}
"""Addresses that an import fills in: those of the providers, since the trace holds none."""
RUNS = int(os.environ.get("TAPE_EXAMPLE_RUNS", "1"))
STRACE = shutil.which("strace")

RUN = """
import json, sys
import nbformat
from nbclient import NotebookClient
if sys.argv[2] == "cut":
    from tape_jupyter.isolation.namespaces import loopback_up
    loopback_up()
nb = nbformat.read(sys.argv[1], as_version=4)
client = NotebookClient(nb, kernel_name="python3", resources={"metadata": {"path": sys.argv[3]}})
with client.setup_kernel():
    with open(client.km.connection_file) as file:
        ports = [value for key, value in json.load(file).items() if key.endswith("_port")]
    for index, cell in enumerate(nb.cells):
        client.execute_cell(cell, index)
print(json.dumps({"ports": ports, "notebook": nb}))
"""
CONNECT = re.compile(
    r"connect\(\d+(?:<[^>]*>)?, \{sa_family=(AF_INET6?), sin6?_port=htons\((\d+)\)"
)


@pytest.fixture(params=NAMES)
def example(request, tmp_path):
    """The notebook, its recordings and its data, in a folder of their own."""
    return copied(request.param, tmp_path / "ex") / f"{request.param}.ipynb"


def copied(name: str, folder: Path) -> Path:
    folder.mkdir()
    for each in EXAMPLES.glob(f"{name[:3]}*"):
        shutil.copytree(each, folder / each.name) if each.is_dir() else shutil.copy(each, folder)
    return folder


def replayed(path: Path, trace: Path | None):
    """The notebook as it comes out of a fresh kernel, and the connects to other ports than the kernel's (None: not counted)."""
    cut = can_cut()
    words = [sys.executable, "-c", RUN, str(path), "cut" if cut else "", str(path.parent)]
    if trace:
        words = [STRACE, "-f", "-qq", "-e", "trace=connect", "-o", str(trace), *words]
    env = clean_env(path.parent)
    assert not [name for name in env if name.endswith("_API_KEY")]
    done = subprocess.run(
        [*without_network(cut=cut), *words],
        env=env,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    connects = None
    if trace:
        made = CONNECT.findall(trace.read_text(errors="replace"))
        assert made, "strace saw not even the kernel's own connections"
        connects = [(family, int(port)) for family, port in made if int(port) not in told["ports"]]
    return nbformat.from_dict(told["notebook"]), connects


def code_cells(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


@pytest.mark.spread(6)
def test_the_committed_example_replays_with_the_outputs_it_was_saved_with(example, tmp_path):
    saved = code_cells(nbformat.read(example, as_version=4))
    for run in range(RUNS):
        trace = tmp_path / f"trace-{run}" if STRACE and RUNS > 1 else None
        ran, connects = replayed(example, trace)
        for before, after in zip(saved, code_cells(ran), strict=True):
            after.outputs = outputs.merge_streams(after.outputs)
            assert outputs.diff_outputs(before.outputs, after.outputs) == []
        assert not connects
    print(
        f"{RUNS} replays, cut off: {can_cut()}, connects: {'not counted' if RUNS == 1 or not STRACE else 0}"
    )


@pytest.mark.skipif(not STRACE, reason="strace counts the connects")
def test_the_count_of_connects_would_see_one(tmp_path):
    call = "import socket; s = socket.socket(); print(s.connect_ex(('127.0.0.1', 9))); s.close()"
    made = notebook(tmp_path / "dials" / "out.ipynb", call)
    assert replayed(made, tmp_path / "trace")[1] == [("AF_INET", 9)]


def test_its_cells_are_those_of_the_demo():
    saved = json.loads((EXAMPLES / f"{NAME}.ipynb").read_text(encoding="utf-8"))
    sources = [[cell["id"], "".join(cell["source"])] for cell in saved["cells"]]
    assert sources == [
        [cell["id"], "".join(cell["source"])] for cell in json.loads(texts.pipeline())["cells"]
    ]


@pytest.mark.parametrize("name", NAMES)
def test_it_holds_nothing_of_the_machine_it_was_recorded_on(name):
    files = [path for path in (EXAMPLES / f"{name}.tapes").rglob("*") if path.is_file()] + [
        EXAMPLES / f"{name}.ipynb"
    ]
    assert len(files) > 1
    for path in files:
        text = path.read_text(encoding="utf-8")
        hosts = (
            set(re.findall(r"https?://([^/\s\"'\\:]+)", text))
            - {"127.0.0.1"}
            - ASSUMED.get(name, set())
        )
        assert not hosts, f"{path.name} names {hosts}"
        assert not re.findall(
            r"(?<![\w.:/*])/(?:home|root|tmp|usr|opt|work|Users|var|etc|mnt|srv)\b[^\s\"]*", text
        )
        for own in (socket.gethostname(), platform.release(), str(Path.home()), str(ROOT)):
            assert len(own) < 4 or own not in text, f"{path.name} names {own}"
        assert "a-local-model-asks-for-none" not in text


@pytest.mark.skipif(
    not local_model.installed(), reason=f"needs the real model: {local_model.INSTALL}"
)
def test_recorded_twice_live_it_gives_different_texts(tmp_path):
    from tape_jupyter.demo import runs, server

    class Nobody:
        def starting(self, number, count, title): ...
        def print_cell(self, run): ...

    said = []
    with server.serving(tmp_path, "no-key-is-asked-for", live=True) as url:
        source = texts.to_record(texts.pipeline(), url, {})
        for name in ("first", "second"):
            (tmp_path / name).mkdir()
            path = tmp_path / name / "support.ipynb"
            path.write_text(source, encoding="utf-8")
            runs.record_demo(path, "no-key-is-asked-for", Nobody())
            said.append(texts.cell_texts(path))
    assert said[0] != said[1]
    assert said[0]["summary"] != said[1]["summary"]


def test_the_changed_reply_reaches_what_depends_on_it_and_nothing_else(tmp_path):
    shutil.copytree(EXAMPLES, tmp_path / "ex", ignore=shutil.ignore_patterns(".*", "__pycache__"))
    path = tmp_path / "ex" / f"{NAMES[1]}.ipynb"
    words = [
        sys.executable,
        "-m",
        "tape_jupyter",
        "rerun",
        str(path),
        "--take",
        "angry-customer",
        "--json",
    ]
    done = subprocess.run(
        words, env=clean_env(tmp_path), capture_output=True, text=True, timeout=150, check=False
    )
    assert done.returncode == 0, done.stderr
    changed = {
        cell["title"] for cell in json.loads(done.stdout)["comparison"]["cells"] if not cell["same"]
    }
    assert {title.strip("# ") for title in changed} == {
        "Read the mood", "Answer in that mood", "The ticket, as it is filed",
    }  # fmt: skip


@pytest.mark.slow
def test_the_shared_session_is_proven_replayed_and_kept_as_a_test(tmp_path):
    """What its last cells tell a reader to do, on the saved notebook and nothing else."""
    folder = copied(SHARED, tmp_path / "shared")
    bundle, pin = f"{SHARED}.tape.zip", f"test_{SHARED}.py"

    def ran(*words):
        line = [sys.executable, "-m", *words]
        env = {**clean_env(tmp_path), "PYTHONPATH": str(ROOT)}
        done = subprocess.run(
            line, cwd=folder, env=env, capture_output=True, text=True, timeout=600, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    told = json.loads(
        ran("tape_jupyter", "export", f"{SHARED}.ipynb", "--no-index", "--test", "--json")
    )
    assert (told["differences"], told["redactions"]) == ([], [])
    assert not [each for each in told["left_out"] if each["path"] != ELSEWHERE]
    assert json.loads(ran("tape_jupyter", "verify", bundle, "--json"))["ok"]
    replay = json.loads(ran("tape_jupyter", "replay", bundle, "--here", "--yes", "--json"))
    assert {cell["status"] for cell in replay["cells"]} == {"same"}
    pinned = (folder / pin).read_text(encoding="utf-8")
    assert "def test_lookup_order_never_answers_about_another_order" in pinned
    assert re.search(
        r"^[1-9]\d* passed", ran("pytest", "-q", "-p", "no:cacheprovider", pin).splitlines()[-1]
    )


def test_the_traced_run_is_imported_as_the_notebook_says(tmp_path):
    folder = copied(TRACED, tmp_path / "traced")
    line = [
        sys.executable,
        "-m",
        "tape_jupyter",
        "import",
        "06_support_run.json",
        "--out",
        "new.ipynb",
        "--json",
    ]
    done = subprocess.run(line, cwd=folder, env={**clean_env(tmp_path), "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=150, check=False)  # fmt: skip
    assert done.returncode == 0, done.stderr
    made, saved = (
        code_cells(nbformat.read(folder / name, as_version=4))
        for name in ("new.ipynb", f"{TRACED}.ipynb")
    )
    assert [cell.source for cell in made] == [cell.source for cell in saved]


def shown(words, folder):
    """What a command prints in a folder with no key and nothing else of this machine."""
    env = {**clean_env(folder), "HOME": str(folder)}
    line = [sys.executable, "-m", "tape_jupyter", *words]
    done = subprocess.run(line, cwd=folder, env=env, capture_output=True, text=True, timeout=500)
    assert done.returncode in (0, 1), done.stderr
    return done.stdout


def fenced(page, word):
    """The lines of a page's block that begins with this."""
    return next(block for block in page.split("```\n") if block.startswith(word)).splitlines()


@pytest.mark.night
def test_the_samples_of_the_real_model_are_played_without_it(tmp_path):
    folder = copied("02_override_and_rerun", tmp_path / "ex")
    page = (ROOT / "docs" / "how-to" / "sample.md").read_text().split("## A real model")[1]
    words = fenced(page, "tape sample")[0].split()[1:]
    printed = shown(words, folder)
    assert all(line in printed for line in fenced(page, "mood")), printed


@pytest.mark.night
@pytest.mark.timeout(600)
def test_the_three_candidates_come_out_as_the_example_says(tmp_path):
    folder = copied("05_why", tmp_path / "ex")
    last = nbformat.read(folder / "05_why.ipynb", 4).cells[-1].source
    command, *table = fenced(last, "tape try")
    printed = shown(shlex.split(command)[1:], folder)
    assert len(table) == 4 and all(line in printed for line in table), printed
