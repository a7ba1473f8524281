"""Agents whose tools do things: recorded and replayed in fresh kernels, everything is as it was, or it is said what is not.

A few of the notebooks run by day; all of them at night, or by `python tests/trials/agent_runs.py`.
"""

import pytest

from tests.trials import agent_runs
from tests.working_agents import NOTEBOOKS

BY_DAY = ("todo_list", "langgraph_streams")
CASES = [
    pytest.param(name, marks=() if name in BY_DAY else pytest.mark.night) for name in NOTEBOOKS
]


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", CASES)
def test_a_replay_has_the_outputs_variables_and_files_of_the_recording_or_says_what_it_has_not(
    name, tmp_path
):
    result = agent_runs.measure(NOTEBOOKS[name], tmp_path)
    assert result.good, "\n".join(
        [result.broken, result.verdict, *map(str, result.unsaid), result.said]
    )


@pytest.mark.night
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", NOTEBOOKS)
def test_untaped_it_runs_as_when_it_is_recorded(name, tmp_path):
    result = agent_runs.measure(NOTEBOOKS[name], tmp_path, floor=True)
    assert result.good, "\n".join([result.broken, result.verdict, *map(str, result.differences)])


@pytest.mark.night
def test_what_is_lost_in_silence_is_found(tmp_path):
    """The measure itself: with what tools do left out of the recording, the same notebook does not pass."""
    written = NOTEBOOKS["todo_list"]
    left_out = [
        source.replace("%%tape MODE", "%%tape MODE --no-effects memory,output,files")
        for source in written.cells
    ]
    result = agent_runs.measure(
        agent_runs.replace(written, cells=tuple(left_out)), tmp_path, headless=False
    )
    assert result.verdict == "silent" and not result.good
    told = [str(each) for each in result.unsaid]
    assert "cell 3, variable alias: list of 2 != list of 0" in told, told
    assert any("cell 4, output" in each for each in told), told
