"""A changed reply, re-run in place: the notebook ends as one that ran from its start with the changed reply."""

import adversarial
import flow_score
import pytest
import whole_runs


@pytest.fixture(scope="module", autouse=True)
def imported():
    flow_score.prepare()


@pytest.mark.parametrize("name", adversarial.NOTEBOOKS)
def test_a_re_run_leaves_what_a_whole_run_leaves(name):
    how, why = whole_runs.judged(*adversarial.NOTEBOOKS[name], prove=False)
    assert how == "right", why
