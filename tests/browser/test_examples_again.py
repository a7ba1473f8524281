"""Restart and Run All of every example, three times, as a person does it in JupyterLab with the toolbar set to replay."""

import re
import subprocess

import pytest
from playwright.sync_api import expect

from tests.browser.jupyter import PANEL, Notebook
from tests.test_examples import EXAMPLES, copied
from tests.browser.viewing import sidebar_of

pytestmark = [pytest.mark.night, pytest.mark.timeout(600)]  # one exports, and proves it, each time
NAMES = [path.stem for path in sorted(EXAMPLES.glob("*.ipynb"))]
OVER = f"""path => {{
  const panel = {PANEL}, cells = panel.content.widgets.filter(({{model}}) => model.type === 'code' && model.sharedModel.source.trim());
  const over = ({{model}}) => model.executionCount && model.executionState !== 'running';
  return cells.every(over) && panel.sessionContext.session.kernel.status === 'idle';
}}"""


@pytest.mark.parametrize("name", NAMES)
def test_a_second_replay_changes_no_byte_and_no_viewer_runs_on(lab, page, name):
    path = copied(name, lab.root / f"again-{name}") / f"{name}.ipynb"
    git(path.parent, "init", "-q")
    notebook = Notebook(page, lab, path).open()
    sidebar_of(notebook)
    page.locator(".tape-mode select").select_option("replay")
    notebook.until("%tape status", re.compile("mode: +replay"))
    for run in range(3):
        restart_and_run_all(notebook)
        expect(page.locator(".live")).to_have_count(0)
        expect(page.locator(".tape-status")).not_to_contain_text("so far")
        expect(page.locator(".tape-line", has_text="recording")).to_have_count(0)
        expect(page.locator(".tape-mode select")).to_have_value("replay")
        notebook.save()
        if run == 0:
            git(path.parent, "add", "-A")
            git(path.parent, "commit", "-q", "-m", "replayed once")
        else:
            assert git(path.parent, "diff") == "", run


def restart_and_run_all(notebook):
    page = notebook.page
    # what ran before must not pass for what runs now
    page.evaluate("() => window.jupyterapp.commands.execute('notebook:clear-all-cell-outputs')")
    page.evaluate("() => void window.jupyterapp.commands.execute('notebook:restart-run-all')")
    page.locator(".jp-Dialog .jp-mod-accept").click()
    page.wait_for_function(OVER, arg=notebook.name, timeout=180_000)


def git(folder, *words):
    who = ["-c", "user.name=t", "-c", "user.email=t@example.invalid"]
    return subprocess.run(
        ["git", *who, *words], cwd=folder, check=True, capture_output=True, text=True
    ).stdout
