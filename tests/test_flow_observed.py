"""What is known of an execution."""

from tape_jupyter.flow.executed import Ran
from tape_jupyter.flow.files import Touched
from tape_jupyter.flow.names import Cell
from tape_jupyter.flow.observed import Seen
from tape_jupyter.flow.steps import build
from tape_jupyter.flow.variables import Variables


def test_a_cell_without_a_statement_has_no_step():
    assert build(Seen(Cell(broken=True), Variables({}), {}, Ran(), Touched())).steps == ()
