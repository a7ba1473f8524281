"""A changed reply, re-run in a notebook whose tools keep state: what is there at the end is what a whole run leaves whose
call really gives the changed reply. TAPE_NIGHTLY=1 takes every notebook.
"""

import os

import pytest

from tests import adversarial_kernel, adversarial_tools
from tests.kernel_reruns import judged

NIGHTLY = bool(os.environ.get("TAPE_NIGHTLY"))
EVERY = 1 if NIGHTLY else 3


@pytest.mark.parametrize("name", list(adversarial_tools.NOTEBOOKS)[::EVERY])
def test_the_re_run_leaves_what_a_whole_run_leaves(name):
    how, why = judged(*adversarial_tools.NOTEBOOKS[name])
    assert how == "right", why


@pytest.mark.parametrize(
    "name",
    [
        name
        for name in list(adversarial_kernel.NOTEBOOKS)[:: 1 if NIGHTLY else 9]
        if name not in adversarial_kernel.NOT_YET
    ],
)
def test_what_only_a_kernel_shows_is_proved_as_it_shows_it(name):
    how, why = judged(*adversarial_kernel.NOTEBOOKS[name])
    assert how == "right" and "proved" in why, why


@pytest.mark.parametrize("name", adversarial_tools.SAID)
def test_a_recorded_value_that_a_whole_run_may_not_give_is_never_proved(name):
    how, why = judged(*adversarial_tools.SAID[name])
    assert how == "wrong and said" and "which it reads, differs now" in why, why
