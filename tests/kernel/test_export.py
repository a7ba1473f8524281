"""`%tape export` in a real kernel: the bundle is that of the command line, whatever the kernel's variables are."""

import re
import subprocess
import sys

import pytest

from tests.exported import churn, whole  # noqa: F401 - fixtures
from tests.notebook import Kernel


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
        assert digest in done.stdout and "churn.ipynb as it was saved at" in ran.summary
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
