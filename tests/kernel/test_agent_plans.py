"""What depends on a changed reply in a notebook of agents that share a client and a dict of plain handlers: the cells that
read what came of it, and no others; also where the kernel has threads of its own, as in JupyterLab.
"""

import re

import pytest

from tests.harness.notebook import Kernel, notebook
from tests.harness.scripted_model import ScriptedModel
from tests.harness.wrong_order import CELLS, RIGHT, SCRIPT, SET_UP

SUBSHELL = """import ipykernel.subshell, threading
stop = threading.Event()
thread = ipykernel.subshell.SubshellThread("s", __import__("zmq").Context.instance())
thread.run = stop.wait
thread.daemon = True
thread.start()"""


@pytest.mark.slow
@pytest.mark.parametrize("subshell", [False, True])
def test_the_plan_has_the_cells_that_read_what_came_of_it(tmp_path, subshell):
    with (
        ScriptedModel(SCRIPT) as model,
        Kernel(tmp_path, {"TAPE_NOTEBOOK": str(notebook(tmp_path / "nb.ipynb", "x"))}) as kernel,
    ):
        cells = [SET_UP.replace("URL", model.url), *CELLS]
        for number, cell in enumerate(cells):
            assert (ran := kernel.execute(cell, f"c{number}")).ok, ran.traceback
            if not number and subshell:
                began = kernel.execute(SUBSHELL, "s", silent=True, store_history=False)
                assert began.ok, began.traceback
        tape = (tmp_path / "nb.tapes" / "main.tape.yaml").read_text()
        found = re.findall(
            r'^call: "?([0-9a-f]{8})"?\n(?:.*\n){2,6}?name: find_order', tape, re.MULTILINE
        )
        kernel.execute(f"%tape override {found[0]} --value '{RIGHT}' --take new", "o")
        said = kernel.execute("%tape plan new", "p").stdout
    assert "Re-run 3 of 6 cells" in said and "2 may go live: 1 of [2], 1 of [3]" in said, said
