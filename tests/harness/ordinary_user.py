"""Somebody who may not read and write everything, also where the tests are run by root."""

import os
import shutil
import sys
from collections.abc import Sequence

import pytest

RIGHTS = "-dac_override,-dac_read_search,-fowner,-sys_admin"


def ordinary_user() -> Sequence[str]:
    """What stands before a command that such a person runs; nothing where we are one. Where we are
    not, and cannot become one, the test is skipped.
    """
    if sys.platform != "linux" or os.getuid() != 0:
        return ()
    program = shutil.which("setpriv")
    if program is None:
        pytest.skip("setpriv is not installed")
    return (program, f"--bounding-set={RIGHTS}", f"--inh-caps={RIGHTS}")
