"""The view of a stepped cell in a real Chromium, over the door of js/test/step/stage.tsx: what axe-core says of each
state, light and dark, and that nothing is cut off at the side of a narrow pane.
"""

import shutil
import subprocess

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import missing
from tests.browser.viewing import CUT
from tests.harness.notebook import ROOT

STATES = ["stopped", "edited", "two", "record", "missed", "running", "rewinding"]
JS = ROOT / "js"
TOO_WIDE = """() => [...document.querySelector('#stage').shadowRoot.querySelectorAll('.step-bar, .step-body, .step-head, .bar')]
  .filter(each => each.scrollWidth > each.clientWidth + 1 || each.getBoundingClientRect().right > innerWidth + 1)
  .map(each => each.className + ' ' + each.scrollWidth)"""


@pytest.fixture(scope="module")
def stage(bundle, tmp_path_factory):
    """The page of the stage, built from the sources as they are."""
    node = shutil.which("node")
    if node is None:
        missing("there is no node here: install node 20 or newer")
    out = tmp_path_factory.mktemp("step-stage")
    build = [node, "test/edit/stage.mjs", str(out), "test/step/stage.tsx"]
    subprocess.run(build, cwd=JS, check=True, capture_output=True)
    return out / "stage.html"


@pytest.mark.slow
@pytest.mark.parametrize("state", STATES)
def test_axe_finds_nothing_wrong_and_nothing_is_cut_off(stage, page, state):
    for scheme, widths in (("light", (1100, 250)), ("dark", (1100, 300))):
        page.emulate_media(color_scheme=scheme)
        page.set_viewport_size({"width": widths[0], "height": 800})
        page.goto(f"file://{stage}?state={state}")
        expect(page.locator(".step-says")).not_to_be_empty()
        if state not in ("running", "rewinding"):
            expect(page.locator(".step-variables")).to_be_visible()
        for button in page.locator(".step-does [aria-disabled=true]").all():
            button.hover()  # looks as it did: it does nothing
            assert button.evaluate("node => getComputedStyle(node).backgroundColor").endswith(
                ", 0)"
            )
        page.add_script_tag(path=JS / "node_modules" / "axe-core" / "axe.min.js")
        for width in widths:
            page.set_viewport_size({"width": width, "height": 800})
            expect(page.locator(".app.narrow")).to_have_count(1 if width < 560 else 0)
            assert page.evaluate(TOO_WIDE) == [], (scheme, width)
            for select in page.locator("#stage .bar select").all():
                assert select.evaluate(CUT) <= 1, (scheme, width, select.inner_text())
            found = page.evaluate("async () => (await axe.run(document)).violations")
            said = [
                (each["id"], each["nodes"][0]["html"], each["nodes"][0]["failureSummary"])
                for each in found
            ]
            assert said == [], (scheme, width)
