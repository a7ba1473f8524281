"""What every test module leaves behind it: nothing. The deck is one per process, and its taps stay on until taken off.

And what many tests begin with: a deck of their own, the path of a cassette, a provider to ask.
"""

import compileall
import gc
import os
import signal
import sys
from collections import Counter
from pathlib import Path

import pytest

from jupyter_client.provisioning import local_provisioner

from tests.harness import kernel_forks
from tests.harness.provider import Provider

sys.dont_write_bytecode = (
    False  # pytest rewrites the package's modules, as a plugin's: once, not in each process
)
# Where jsonschema finds it, nbformat's import compiles 38 grammars that none of its schemas asks for.
sys.modules.setdefault("rfc3987_syntax", None)

local_provisioner.launch_kernel = kernel_forks.launch

signal.signal(
    signal.SIGINT, signal.default_int_handler
)  # a shell lets what it runs in the background ignore it


def pytest_configure(config):
    """Each of the hundreds of programs that tests start would compile the package anew where PYTHONDONTWRITEBYTECODE
    is set, or a notebook's folder may not be written to.
    """
    if not hasattr(config, "workerinput"):
        tests = Path(__file__).parent
        for folder in (tests.parent / "tape_jupyter", tests):
            compileall.compile_dir(folder, quiet=2)


def pytest_collection_modifyitems(config, items):
    """Leave out what a push does not run: tests marked `slow` (`make test-all` runs them), tests marked `night`, and
    all but each nth case of one marked `spread(n)` (`make test-long`).

    What is named on the command line by `file::test` runs in any case.
    """
    if os.environ.get("TAPE_NIGHTLY") or any("::" in each for each in config.args):
        return
    left_out = {"night"} if os.environ.get("TAPE_ALL") else {"night", "slow"}
    cases = Counter()
    run, rest = [], []
    for item in items:
        spread = item.get_closest_marker("spread")
        function = item.nodeid.split("[")[0]
        is_other_case = spread is not None and cases[function] % spread.args[0]
        cases[function] += 1
        is_left_out = any(mark.name in left_out for mark in item.iter_markers())
        where = rest if is_other_case or is_left_out else run
        where.append(item)
    items[:] = run
    config.hook.pytest_deselected(items=rest)


def pytest_collection_finish():
    """What collecting made stays as long as the tests: each collection of garbage would walk its 1.5 million objects."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def provider():
    """A model's server on this machine, whose answers all differ."""
    with Provider(vary=True) as provider:
        yield provider


@pytest.fixture(autouse=True)
def nobody_times_the_collector():
    """hypothesis does, wherever it strikes: in the midst of a taped cell, whose reading of the clock that would be."""
    gc.callbacks[:] = [
        each
        for each in gc.callbacks
        if not getattr(each, "__module__", "").startswith("hypothesis")
    ]


@pytest.fixture(autouse=True, scope="module")
def taps_are_off_after_each_module():
    yield
    if "tape_jupyter.session.session" in sys.modules:
        from tape_jupyter.isolation import network_guard
        from tape_jupyter.session import session as deck

        deck.get().set_session("off")
        for guard in list(network_guard._armed):  # of decks that a test made for itself
            guard.disarm()
        deck._decks.clear()  # the next module's session knows no tools and no secrets of this one's


@pytest.fixture(autouse=True, scope="module")
def no_shell_is_left_after_each_module():
    """A process has one shell: another kind of it cannot be made while one stands."""
    yield
    if "IPython.core.interactiveshell" in sys.modules:
        from IPython.core.interactiveshell import InteractiveShell

        if InteractiveShell.initialized():
            type(InteractiveShell.instance()).clear_instance()


@pytest.fixture
def deck():
    from tape_jupyter.session.session import TapeSession

    deck = TapeSession()
    yield deck
    deck.set_session("off")
    deck.unhook()  # also where a cell was left open


@pytest.fixture
def path(tmp_path):
    return tmp_path / "main.tape.yaml"
