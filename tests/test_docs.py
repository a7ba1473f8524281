"""The pages are built without a warning; the example notebooks in them are replayed on the way."""

import subprocess
import sys

import pytest

from tests.harness.notebook import ROOT


@pytest.mark.timeout(600)
def test_the_pages_are_built_and_the_tutorials_replay(tmp_path):
    words = ["-W", "--keep-going", "-b", "html", "-d", str(tmp_path / "trees")]
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", *words, "docs", str(tmp_path / "html")],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    page = (tmp_path / "html" / "tutorials" / "01_record_and_replay.html").read_text(
        encoding="utf-8"
    )
    assert "replayed" in page
