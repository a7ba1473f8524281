"""Cells in a real shell with the tracker, asked what the last statement depends on. `outside` is no code of the user's."""

import flow_score
import pytest

from tape_jupyter.dataflow.plan import plan_rerun
from tape_jupyter.dataflow.tracing.tracker import Tracker

ASK = "import copy\ndef outside(text): return copy.copy(text)\n"


@pytest.fixture
def tracked(tmp_path, monkeypatch):
    """A shell in a folder of its own, and the tracker of its cells, which made no mistake in the end."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / ".ipython"))
    shell = flow_score._shell()
    tracker = Tracker(shell)
    tracker.install()
    yield shell, tracker
    tracker.uninstall()
    assert tracker.failures == []
    shell.clear_instance()


@pytest.fixture
def run(tracked):
    shell, tracker = tracked

    def cells(*sources, changed=None):
        """The last step of the last cell; with `changed`, the cells that depend on that one."""
        for source in (ASK, *sources):
            shell.run_cell(source, store_history=True)
        if changed is not None:
            planned = plan_rerun(tracker.history, {changed: (1,)})
            return {cell.entry for cell in planned.cells if cell.role == "downstream"}
        return tracker.history[len(tracker.history) - 1].steps[-1]

    def after(lines):
        """The cells that depend on the calls at these lines, by cell."""
        planned = plan_rerun(tracker.history, lines)
        return {cell.entry for cell in planned.cells if cell.role == "downstream"} - lines.keys()

    cells.after = after
    return cells
