"""A kernel lives on though a variable stands for memory that is not there."""

import pytest

from tests.harness.notebook import Kernel, notebook
from tests.harness.support import LOAD

START = {
    "an address that nobody owns": "import ctypes\nthing = ctypes.c_int.from_address(8)",
    "a file that was cut short": (
        "import numpy as np\nopen('m.bin', 'wb').write(bytes(1 << 16))\n"
        "thing = np.memmap('m.bin', dtype='u1', mode='r+')\nview = thing[100:]\nopen('m.bin', 'wb').close()"
    ),
}
TAPED = """%%tape record
@tape.tool
def look(name):
    return name, type(thing).__name__
print(look('a'), len(globals()) > 0)"""


@pytest.mark.parametrize("name", START)
def test_it_is_not_read(tmp_path, name):
    notebook(tmp_path / "nb.ipynb", LOAD)
    with Kernel(tmp_path, {"TAPE_NOTEBOOK": str(tmp_path / "nb.ipynb")}) as kernel:
        for cell in (LOAD, "import tape_jupyter as tape", START[name]):
            assert kernel.execute(cell).ok
        shown = kernel.execute(TAPED)
        assert "('a', " in shown.stdout, shown.traceback
        assert kernel.execute("print('alive')").stdout == "alive\n"
