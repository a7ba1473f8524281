"""Hostile bundles of each kind through the real commands: a clear line, within limits, and no canary touched.
TAPE_NIGHTLY asks for all of them (tests/trials/hostile_bundles.py).
"""

import os
import subprocess
import sys

import pytest

COUNT = 10_000 if os.environ.get("TAPE_NIGHTLY") else 14


@pytest.mark.night
@pytest.mark.skipif(not hasattr(os, "fork"), reason="commands are forked from a warm process")
def test_hostile_bundles_end_in_a_line_and_touch_nothing():
    command = [
        sys.executable,
        "-m",
        "tests.trials.hostile_bundles",
        "--rounds",
        str(COUNT),
        "--seconds",
        "0",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
