"""A newcomer's first hour, from the wheel: an empty environment without node, JupyterLab and Notebook 7 in Chromium.

An agent with three tools is recorded, the kernel started anew and replayed; a miss is read; the wrong row is found and
changed, what depends on it runs again and is proved; the session leaves, is verified elsewhere, and pinned by a test.
Every state is looked at by axe-core in light and dark, and photographed (TAPE_PICTURES=FOLDER keeps the pictures):
light, dark, 900 px wide, and as a window of 1400 px is laid out at 125 %.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import APPS, fresh_page
from tests.browser.jupyter import Launch, Notebook, write
from tests.browser.test_axe_doors import AXE, THEME, VIOLATIONS
from tests.browser.viewing import shown, sidebar_of
from tests.harness.notebook import ROOT, clean_env
from tests.harness.scripted_model import ScriptedModel, call

pytestmark = [
    pytest.mark.night,  # installs JupyterLab in an empty environment
    pytest.mark.timeout(900),
]
PROOF = 180_000  # ms: a fresh kernel starts for it
SIZES = {"": (1400, 1000), "900": (900, 1000), "125": (1120, 800)}
SET_UP = """%load_ext tape_jupyter
import json, anthropic
claude = anthropic.Anthropic(base_url="URL", api_key="sk-test")
ORDERS = {"r_8821": {"customer": "globex", "items": "9 desks"}}
def find_order(order):
    return ORDERS[order]
def carrier_of(order):
    return "the van"
def policy(topic):
    return "within three days"
HANDLERS = {each.__name__: each for each in (find_order, carrier_of, policy)}
TOOLS = [{"name": name, "description": name, "input_schema": {"type": "object"}} for name in HANDLERS]
def agent(question):
    messages, found = [{"role": "user", "content": question}], {}
    while True:
        reply = claude.messages.create(model="claude-sonnet-5", max_tokens=99, messages=messages, tools=TOOLS)
        uses = [part for part in reply.content if part.type == "tool_use"]
        if not uses:
            return reply.content[0].text, found
        messages.append({"role": "assistant", "content": [part.model_dump() for part in reply.content]})
        results = [(use, HANDLERS[use.name](**use.input)) for use in uses]
        found.update({use.name: told for use, told in results})
        messages.append({"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": use.id, "content": json.dumps(told)} for use, told in results]})
def say(text):
    reply = claude.messages.create(model="claude-sonnet-5", max_tokens=99, messages=[{"role": "user", "content": text}])
    return reply.content[0].text"""
CELLS = (
    '%%tape record\n# Where is it\nanswer, found = agent("where is r_8821?")\nprint("answer:", answer)',
    '%%tape record\n# The mail\nmail = say("mail " + json.dumps(found["find_order"]))\nprint("mail:", mail)',
    'print("ticket:", found["find_order"]["customer"], "|", mail)',
)
SCRIPT = {
    "where is r_8821?": [
        [call("find_order", order="r_8821")],
        [call("carrier_of", order="r_8821"), call("policy", topic="late")],
        "It is on its way.",
    ],
    "globex": ["Dear Globex, your 9 desks are on their way."],
    "acme": ["Dear Acme, your 3 lamps are on their way."],
}
RIGHT = '{"customer": "acme", "items": "3 lamps"}'


@pytest.fixture(scope="module")
def newcomer(bundle, tmp_path_factory):
    """The Python of an empty environment into which the wheel was installed; no node is in reach there."""
    where = tmp_path_factory.mktemp("newcomer")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q"]
    subprocess.run([*pip, "wheel", "--no-deps", "--wheel-dir", str(where), str(ROOT)], check=True)
    subprocess.run([sys.executable, "-m", "venv", str(where / "venv")], check=True)
    python = where / "venv" / "bin" / "python"
    assert shutil.which("node", path=str(python.parent)) is None
    wanted = ["jupyterlab", "notebook", "anthropic", "pytest"]
    constraints = ["--constraint", str(ROOT / "tests" / "constraints.txt")]
    wheel = next(where.glob("tape_jupyter-*.whl"))
    install = [python, *pip[1:], "install", *constraints, wheel, *wanted]
    subprocess.run(install, env=outside(where, python), check=True)
    return python


def outside(folder: Path, python: Path):
    """Variables with which neither this checkout nor any program but those of that Python is in reach."""
    return clean_env(folder, {"PYTHONPATH": "", "PATH": str(python.parent)})


class Hour:
    """The notebook, open; what is looked at of it."""

    def __init__(self, notebook, app):
        self.notebook, self.page, self.app, self.looks = notebook, notebook.page, app, 0

    def look(self, what, *places):
        """In light and dark by axe-core, what of ours is there; pictures of both, and at other sizes."""
        self.looks += 1
        for theme in ("JupyterLab Dark", "JupyterLab Light"):
            self.page.evaluate(THEME, theme)
            self.page.wait_for_function(
                "theme => document.body.dataset.jpThemeName === theme", arg=theme
            )
            expect(self.page.locator("#jupyterlab-splash")).to_have_count(0)
            self.picture(what, theme.split()[1].lower())
            for place in places:
                self.page.evaluate(
                    "() => document.querySelector('[data-axe]')?.removeAttribute('data-axe')"
                )
                place.evaluate("node => { node.dataset.axe = ''; }")
                assert self.page.evaluate(VIOLATIONS) == [], (what, theme)
        for size in ("900", "125"):
            self.picture(what, size)

    def picture(self, what, how):
        folder = os.environ.get("TAPE_PICTURES")
        if not folder:
            return
        width, height = SIZES.get(how, SIZES[""])
        self.page.set_viewport_size({"width": width, "height": height})
        name = f"{self.app}-{self.looks:02}-{what}-{how}.png"
        self.page.screenshot(path=str(Path(folder) / name))
        width, height = SIZES[""]
        self.page.set_viewport_size({"width": width, "height": height})


@pytest.fixture(params=["lab", "notebook7"])
def hour(request, newcomer, chromium, tmp_path):
    launch = Launch(APPS[request.param], tmp_path, python=newcomer)
    try:
        server = launch.ready()
        with ScriptedModel(SCRIPT) as model, fresh_page(chromium) as page:
            path = server.root / "orders.ipynb"
            write(
                path, SET_UP.replace("URL", model.url), *CELLS, "%%tape replay\nsay('who are you?')"
            )
            notebook = Notebook(page, server, path).open()
            page.add_script_tag(path=AXE)
            yield Hour(notebook, request.param), model
    finally:
        launch.stop()
        launch.wait()


def test_from_the_first_recording_to_a_regression_test(hour, newcomer, tmp_path):
    hour, model = hour
    notebook = hour.notebook
    notebook.run(1, 2, 3, 4)
    assert "ticket: globex" in notebook.text(4)
    view = sidebar_of(notebook)
    expect(view.get_by_role("treeitem")).to_have_count(9)
    hour.look("recorded", view, notebook.cell(2).locator(".tape-output"))
    replayed(hour, model)
    missed(hour, model)
    replayed(hour, model)
    put_right(hour, model, view)
    notebook.python("get_ipython().run_line_magic('tape', 'takes default right-order')")
    notebook.save()
    leaves(notebook.path, newcomer, tmp_path)


def replayed(hour, model):
    """The kernel is started anew, set to replay, and everything runs: nothing is asked."""
    asked = len(model.requests)
    hour.notebook.javascript("await panel.sessionContext.session.kernel.restart();")
    hour.notebook.run(1)
    hour.page.locator(".tape-mode select").select_option("replay")
    hour.notebook.until("%tape status", "mode: +replay")
    hour.notebook.run(2, 3, 4)
    assert len(model.requests) == asked
    for number in (2, 3):
        expect(hour.notebook.cell(number).locator(".tape-output")).to_contain_text("replayed")
    expect(hour.page.locator(".tape-sidebar .live")).to_have_count(0)
    hour.look("replayed", hour.page.locator(".tape-sidebar"))


def missed(hour, model):
    """A question that is not on the tape: refused, with what to do. The cell is then taken out again."""
    asked = len(model.requests)
    hour.notebook.run(5)
    said = hour.notebook.text(5)
    assert "is not on the tape" in said and "Nothing was sent" in said and "Now:" in said, said
    assert len(model.requests) == asked
    hour.look("missed", hour.page.locator(".tape-sidebar"))
    hour.page.evaluate("() => window.jupyterapp.commands.execute('notebook:delete-cell')")


def put_right(hour, model, view):
    """The row that gave another customer's order is found and changed; two calls go live, and the proof holds."""
    asked = len(model.requests)
    expect(view.get_by_role("treeitem")).to_have_count(
        9
    )  # the last cell that was clicked has no calls
    view.get_by_role("searchbox").fill("find_order")
    view.get_by_role("treeitem").filter(has_text=re.compile("^find_order")).first.click()
    expect(view.get_by_role("tabpanel")).not_to_be_empty()
    hour.look("the-wrong-row", view)
    view.get_by_role("button", name="Edit reply").click()
    text = view.get_by_role("textbox").first
    expect(text).to_be_focused()
    hour.page.keyboard.press("Control+a")  # `fill` may select before the editor has drawn
    hour.page.keyboard.insert_text(RIGHT)
    expect(view.get_by_role("button", name="Save")).to_be_enabled()
    view.get_by_label("as take").fill("right-order")
    hour.look("edited", view)
    view.get_by_role("button", name="Save").click()
    shown(view.get_by_role("heading", name=re.compile("^Re-run 3 of ")))
    hour.look("the-plan", view)
    view.get_by_role("button", name="Re-run", exact=True).click()
    done = view.locator(".tape-proof", has_text="proved in a fresh kernel ✓")
    for _ in range(3):
        waits = view.get_by_role("heading", name=re.compile("the request has changed"))
        shown(waits.or_(done).first, timeout=PROOF)
        if done.count():
            break
        hour.look("diverged", view)
        view.get_by_role("button", name="Go live").click()
        expect(waits).to_have_count(0)
    shown(done, timeout=PROOF)
    assert "ticket: acme | Dear Acme, your 3 lamps" in hour.notebook.text(4)
    assert len(model.requests) == asked + 3
    hour.look("proved", view)


def leaves(path, python, elsewhere):
    """Exported, verified and replayed in another folder; the test that was written passes, and fails for another reply."""

    def tape(folder, *words):
        done = subprocess.run(
            [python, "-m", "tape_jupyter", *words],
            cwd=folder, env=outside(folder, python), capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr

    assert "every cell replayed as saved" in tape(
        path.parent, "export", path.name, "--no-index", "--test"
    )
    moved = elsewhere / "moved"
    moved.mkdir()
    shutil.copy(path.with_name("orders.tape.zip"), moved)
    tape(moved, "verify", "orders.tape.zip")
    tape(moved, "replay", "orders.tape.zip", "--yes", "--here")
    taken = path.parent / "orders.tapes" / "takes" / "main.right-order.tape.yaml"
    pinned = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_orders.py"]
    environment = outside(path.parent, python)
    assert subprocess.run(pinned, cwd=path.parent, env=environment, check=False).returncode == 0
    taken.write_text(taken.read_text().replace("your 3 lamps", "your 4 lamps"))
    assert subprocess.run(pinned, cwd=path.parent, env=environment, check=False).returncode == 1
