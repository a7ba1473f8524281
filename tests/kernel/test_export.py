"""`%tape export` in a real kernel: the bundle is that of the command line, whatever the kernel's variables are."""

import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from tests.harness.exported import churn, newcomer, taped, whole  # noqa: F401 - fixtures
from tests.harness.notebook import Kernel, clean_env
from tests.harness.tapes import ASK


@pytest.mark.slow
def test_the_kernels_bundle_is_the_command_lines_byte_for_byte(churn):
    line = [sys.executable, "-m", "tape_jupyter", "export", str(churn), "--no-index"]
    done = subprocess.run(line, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    first = churn.with_name("churn.tape.zip").read_bytes()
    with Kernel(churn.parent, {"TAPE_NOTEBOOK": str(churn)}) as kernel:
        kernel.execute("%load_ext tape_jupyter")
        kernel.execute("%tape replay\nimport os; os.environ['LANG'] = 'C'; helper = None")
        ran = kernel.execute("%tape export out.tape.zip --no-index", timeout=170)
        assert ran.ok, ran.traceback
        digest = re.search(r"sha256 ([0-9a-f]{64})", ran.summary)[1]
        assert digest in done.stdout and "churn.ipynb as last saved" in ran.summary
        assert (churn.parent / "out.tape.zip").read_bytes() == first
        assert kernel.execute("helper is None").result == "True"

        verified = kernel.execute("%tape verify out.tape.zip")
        assert verified.ok and digest in verified.summary
        (churn.parent / "out.tape.zip").write_bytes(first[:-1000])
        assert not kernel.execute("%tape verify out.tape.zip").ok


@pytest.mark.night
def test_what_is_in_the_way_is_said_in_the_cell(churn):
    with Kernel(churn.parent, {"TAPE_NOTEBOOK": str(churn)}) as kernel:
        kernel.execute("%load_ext tape_jupyter")
        refused = kernel.execute("%tape export out.txt --no-such-word")
        assert refused.ename == "TapeUsageError" and "no-such-word" in refused.evalue
        churn.write_text(churn.read_text().replace("ADA, ", "EVE, "))
        differs = kernel.execute("%tape export --no-index", timeout=170)
        assert differs.ename == "NotExported" and "-EVE, JÖRG" in differs.evalue
        assert not churn.with_name("churn.tape.zip").exists()


def run_and_save(path: Path) -> list[object]:
    """The outputs of the notebook's cells, run in a fresh kernel and saved as a front end does."""
    node = nbformat.read(path, as_version=4)
    resources = {"metadata": {"path": str(path.parent)}}
    client = NotebookClient(node, timeout=170, record_timing=False, resources=resources)
    client.execute(env=clean_env(path.parent, {"TAPE_NOTEBOOK": str(path)}))
    nbformat.write(node, path)
    return [cell.outputs for cell in node.cells]


@pytest.mark.night
@pytest.mark.timeout(600)
def test_a_notebook_that_exports_itself_gives_the_same_outputs_from_the_second_replay_on(
    tmp_path, monkeypatch
):
    newcomer(tmp_path, monkeypatch)
    path = taped(
        tmp_path / "work" / "churn.ipynb",
        f"%load_ext tape_jupyter\n{ASK}",
        "%%tape record\nprint(ask('one'))",
        "# for a colleague\n%tape export --no-index",
        "%tape verify churn.tape.zip",
        "print('two')\n%tape export two.tape.zip --no-index\n%tape verify two.tape.zip",
    )
    path.write_text(path.read_text().replace("%%tape record", "%%tape replay"))
    _, second, third = (run_and_save(path) for _ in range(3))
    assert second == third
    told = str(third)
    assert set(re.findall("[0-9a-f]{64}", str(third[2:4]))) == set(
        re.findall("[0-9a-f]{64}", str(third[4]))
    )
    assert "every cell replayed as saved" in told and "intact" in told

    line = [sys.executable, "-m", "tape_jupyter", "export", str(path), "cli.tape.zip", "--no-index"]
    done = subprocess.run(line, cwd=path.parent, env=clean_env(tmp_path), capture_output=True)
    assert done.returncode == 0, done.stderr
    bundles = [path.with_name(f"{name}.tape.zip").read_bytes() for name in ("churn", "two", "cli")]
    assert bundles[0] == bundles[1] == bundles[2]
