"""ipykernel 6.31, the last line without subshells, in a folder of its own: kernels that find it first use it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.harness.notebook import PYTHONPATH

OLD = ("ipykernel==6.31.0", "nest-asyncio")


def installed(where: Path) -> dict[str, str]:
    """What a kernel's environment needs to be of that version. Skips the test where there is none to be had."""
    pip = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--target",
        str(where),
        *OLD,
    ]
    done = subprocess.run(pip, capture_output=True, text=True, check=False)
    if done.returncode:
        why = f"no ipykernel 6.31 from the package index: {done.stderr.strip()[-300:]}"
        if os.environ.get("CI"):
            pytest.fail(why)
        pytest.skip(why)
    return {"PYTHONPATH": f"{where}{os.pathsep}{PYTHONPATH}"}
