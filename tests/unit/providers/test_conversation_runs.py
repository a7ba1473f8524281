"""A changed reply, re-run in place: the notebook ends as one that ran from its start with the changed reply."""

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from tests.trials import adversarial
import flow_score
import pytest
from tests.trials import whole_runs


@pytest.fixture(scope="module")
def clean():
    """A process that no other test ran in: what those left would be the notebook's own code, and be watched."""
    with ProcessPoolExecutor(
        1, mp_context=get_context("spawn"), initializer=flow_score.prepare
    ) as pool:
        yield pool


@pytest.mark.spread(6)
@pytest.mark.parametrize("name", adversarial.NOTEBOOKS)
def test_a_re_run_leaves_what_a_whole_run_leaves(name, clean):
    how, why = clean.submit(whole_runs.judged, *adversarial.NOTEBOOKS[name], prove=False).result()
    assert how == "right", why
