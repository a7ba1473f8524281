"""Libraries that patch and the tape, in any order: no sequence kills its kernel or leaves anything behind.
TAPE_SEQUENCE_COUNT says how many (tests/trials/patch_sequences.py).
"""

import os
import subprocess
import sys

import pytest

COUNT = int(os.environ.get("TAPE_SEQUENCE_COUNT", "12"))


@pytest.mark.slow
@pytest.mark.spread(2)
@pytest.mark.skipif(not hasattr(os, "fork"), reason="sequences are forked from a warm process")
@pytest.mark.parametrize("imported", ["--warm", "--cold"])
def test_no_order_of_patches_kills_a_kernel_or_leaves_anything_behind(imported):
    command = [
        sys.executable,
        "-m",
        "tests.trials.patch_sequences",
        imported,
        "--rounds",
        str(COUNT),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
