"""LlamaIndex's workflows in a kernel: a cell runs again beside its earlier runs, and a refusal reaches who reads events."""

import os

import pytest

from tests.trials.agent_runs import KEYS, LOAD
from tests.harness.notebook import Kernel, notebook
from tests.harness.scripted_model import ScriptedModel
from tests.working_agents import NOTEBOOKS
from tests.working_agents.written import TAPED

AGENT = NOTEBOOKS["llama_index_context"]
SHOWN = "progress: name Ada\ntool: set_name ok\ntool: add_point 3\ntool: add_point 7\nSeven points, Ada.\n"
TAPED_CELL = AGENT.cells[2].replace(TAPED, "%%tape MODE\nctx = Context(agent)", 1)
STATE = "print(names[-1], await ctx.store.get('state'), await ctx.store.get('points'))"


@pytest.fixture
def kernel(tmp_path):
    with (
        ScriptedModel(AGENT.script) as model,
        Kernel(
            tmp_path,
            {
                **KEYS,
                "OPENAI_BASE_URL": f"{model.url}/v1",
                "TAPE_NOTEBOOK": str(notebook(tmp_path / "nb.ipynb", "x")),
                "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
            },
        ) as kernel,
    ):
        for source in (LOAD, *AGENT.cells[:2], TAPED_CELL.replace("MODE", "record")):
            ran = kernel.execute(source)
            assert ran.ok, ran.traceback
        yield kernel


def test_a_cell_replays_in_the_kernel_that_recorded_it_while_its_handlers_are_kept(kernel):
    for kept in ("first", "second"):
        assert kernel.execute(f"{kept} = handler").ok
        ran = kernel.execute(TAPED_CELL.replace("MODE", "replay"))
        assert ran.ok, ran.traceback
        assert ran.stdout == SHOWN
        assert kernel.execute(STATE).stdout == "Ada {'name': 'Ada'} 7\n"
    asked = kernel.execute(
        "print(first.is_done(), second.is_done(), await first.ctx.store.get('points'))"
    )
    assert asked.stdout == "True True 7\n"


@pytest.mark.slow
def test_a_refusal_ends_the_events_of_the_workflow_that_it_ended(kernel):
    other = TAPED_CELL.replace("MODE", "replay").replace("3 and 4 points", "5 and 6 points")
    ran = kernel.execute(other, timeout=60)
    assert ran.ename == "UnmatchedCall", ran
    assert "5 and 6 points" in ran.evalue
