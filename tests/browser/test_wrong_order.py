"""r_8821 in JupyterLab, with plain functions in a dict of handlers: the tool gave another customer's order. Its value is
changed, what depends on it runs again and asks twice, the proof holds; the session leaves with the take as its default,
replays elsewhere, and pins all nine calls in a test.
"""

import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.jupyter import Notebook, write
from tests.browser.viewing import shown, sidebar_of
from tests.harness.notebook import clean_env
from tests.harness.scripted_model import ScriptedModel
from tests.harness.wrong_order import CELLS, RIGHT, SCRIPT, SET_UP


def tape(folder, *words):
    done = subprocess.run(
        [sys.executable, "-m", "tape_jupyter", *words],
        cwd=folder, env=clean_env(folder), capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


@pytest.mark.night
@pytest.mark.timeout(600)
def test_the_wrong_order_is_put_right_proved_exported_and_pinned(lab, page, tmp_path):
    page.set_viewport_size({"width": 1400, "height": 900})
    with ScriptedModel(SCRIPT) as model:
        path = write(
            lab.root / "wrong-order" / "orders.ipynb", SET_UP.replace("URL", model.url), *CELLS
        )
        notebook = Notebook(page, lab, path).open()
        notebook.run(*range(1, 7))
        assert "ticket: globex" in notebook.text(6)
        view = sidebar_of(notebook)
        view.get_by_role("treeitem").filter(has_text=re.compile("^find_order")).first.click()
        view.get_by_role("button", name="Edit reply").click()
        view.get_by_role("textbox").first.fill(RIGHT)
        view.get_by_label("as take").fill("right-order")
        view.get_by_role("button", name="Save").click()
        shown(view.get_by_role("heading", name="Re-run 3 of 6 cells"))
        expect(view.get_by_text("may go live: 2 (asks first)")).to_be_visible()
        rerun(view, model)
        assert "ticket: acme | Dear Acme, your 3 lamps" in notebook.text(6)
        assert "other: It waits." in notebook.text(4)
        notebook.python("get_ipython().run_line_magic('tape', 'takes default right-order')")
        notebook.save()
    leaves(path, tmp_path)


def rerun(view, model):
    """Three clicks and the proof."""
    began, asked = time.monotonic(), len(model.requests)
    view.get_by_role("button", name="Re-run", exact=True).click()
    for cell in ("Where is it", "The mail"):
        shown(view.get_by_role("heading", name=f"{cell}: the request has changed"))
        expect(view.get_by_role("row").filter(has_text="3 lamps").first).to_be_visible()
        view.get_by_role("button", name="Go live").click()
    shown(view.locator(".tape-proof", has_text="proved in a fresh kernel ✓"), timeout=120_000)
    assert len(model.requests) == asked + 2
    print(f"from the click to the proof: {time.monotonic() - began:.1f} s")


def leaves(path: Path, elsewhere: Path):
    """Exported with the take as default, verified, replayed in another folder; the test pins all nine calls."""
    code, said = tape(path.parent, "export", path.name, "--no-index", "--test")
    assert code == 0 and "every cell replayed as saved" in said, said
    bundle = path.with_name("orders.tape.zip")
    code, said = tape(path.parent, "verify", bundle.name)
    assert code == 0, said
    moved = elsewhere / "moved"
    moved.mkdir()
    (moved / bundle.name).write_bytes(bundle.read_bytes())
    code, said = tape(moved, "replay", bundle.name, "--yes", "--here")
    assert code == 0, said
    pinned = path.with_name("test_orders.py")
    assert pinned.read_text().count('    ("model", "claude-sonnet-5"),') == 7
    assert pinned.read_text().count('    ("tool", "find_order"),') == 2
    assert suite(pinned) == 0
    taken = path.parent / "orders.tapes" / "takes" / "main.right-order.tape.yaml"
    taken.write_text(taken.read_text().replace("text: It is on its way.", "text: It is lost."))
    assert suite(pinned) == 1


def suite(test):
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(test)],
        cwd=test.parent, env=clean_env(test.parent), capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.returncode
