"""What every test module leaves behind it: nothing. The deck is one per process, and its taps stay on until taken off."""

import sys

import pytest


@pytest.fixture(autouse=True, scope="module")
def taps_are_off_after_each_module():
    yield
    if "tape_jupyter.notebook.deck" in sys.modules:
        from tape_jupyter import airgap
        from tape_jupyter.notebook import deck

        deck.get().set_session("off")
        for guard in list(airgap._armed):  # of decks that a test made for itself
            guard.disarm()
        deck._decks.clear()  # the next module's session knows no tools and no secrets of this one's
