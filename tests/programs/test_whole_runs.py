"""A changed reply, re-run in place: what is there at the end is what a run of all cells leaves, whether the cells before the
first call were watched or only noted.
"""

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest

from tests.trials import adversarial
from tests.trials import adversarial_state
import flow_score
from tests.trials import whole_runs

NOTEBOOKS = {**adversarial.NOTEBOOKS, **adversarial_state.NOTEBOOKS}


@pytest.fixture(scope="module")
def elsewhere():
    """A new process: all that other tests have left in this one would be forked by each notebook."""
    with ProcessPoolExecutor(
        1, mp_context=get_context("spawn"), initializer=flow_score.prepare
    ) as pool:
        yield pool


@pytest.mark.spread(92)
@pytest.mark.parametrize("name", NOTEBOOKS)
@pytest.mark.parametrize("noting", [False, True], ids=["watched", "noted"])
def test_the_re_run_leaves_what_a_whole_run_leaves(elsewhere, name, noting):
    how, why = elsewhere.submit(whole_runs.judged, *NOTEBOOKS[name], noting=noting).result()
    assert how in ("right", "fresh"), why


@pytest.mark.spread(3)
@pytest.mark.parametrize("name", adversarial_state.SAID)
def test_what_no_look_finds_is_never_proved(elsewhere, name):
    how, why = elsewhere.submit(whole_runs.judged, *adversarial_state.SAID[name]).result()
    assert how == "wrong and said", why
