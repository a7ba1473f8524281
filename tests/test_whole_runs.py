"""A changed reply, re-run in place: what is there at the end is what a run of all cells leaves, whether the cells before the
first call were watched or only noted. TAPE_NIGHTLY=1 takes every notebook.
"""

import os
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest

import adversarial
import adversarial_state
import flow_score
import whole_runs

EVERY = 1 if os.environ.get("TAPE_NIGHTLY") else 12
NOTEBOOKS = {**adversarial.NOTEBOOKS, **adversarial_state.NOTEBOOKS}


@pytest.fixture(scope="module")
def elsewhere():
    """A new process: all that other tests have left in this one would be forked by each notebook."""
    with ProcessPoolExecutor(
        1, mp_context=get_context("spawn"), initializer=flow_score.prepare
    ) as pool:
        yield pool


@pytest.mark.spread(8)
@pytest.mark.parametrize("name", list(NOTEBOOKS)[::EVERY])
@pytest.mark.parametrize("noting", [False, True], ids=["watched", "noted"])
def test_the_re_run_leaves_what_a_whole_run_leaves(elsewhere, name, noting):
    how, why = elsewhere.submit(whole_runs.judged, *NOTEBOOKS[name], noting=noting).result()
    assert how in ("right", "fresh"), why


SAID = list(adversarial_state.SAID)[:: 1 if os.environ.get("TAPE_NIGHTLY") else 3]


@pytest.mark.parametrize("name", SAID)
def test_what_no_look_finds_is_never_proved(elsewhere, name):
    how, why = elsewhere.submit(whole_runs.judged, *adversarial_state.SAID[name]).result()
    assert how == "wrong and said", why
