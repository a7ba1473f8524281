"""What is known of an execution."""

from tape_jupyter.dataflow.tracing.executed_code import ExecutedCode
from tape_jupyter.dataflow.tracing.files import Touched
from tape_jupyter.dataflow.static.names import ParsedCell
from tape_jupyter.dataflow.tracing.observations import ExecutionFacts
from tape_jupyter.dataflow.tracing.steps import build
from tape_jupyter.dataflow.tracing.variables import Variables


def test_a_cell_without_a_statement_has_no_step():
    assert (
        build(
            ExecutionFacts(ParsedCell(broken=True), Variables({}), {}, ExecutedCode(), Touched())
        ).steps
        == ()
    )
