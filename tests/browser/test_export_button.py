"""A session is exported from JupyterLab's sidebar: the notebook is saved first, and the file is a proven bundle."""

import os
import re

import pytest
from playwright.sync_api import expect

from tape_jupyter.bundle import archive
from tests.browser.viewing import record, shown, sidebar_of

MINUTES = 170_000


@pytest.mark.night  # by day: test_keys_alone.py exports by keys, tests/unit/jupyter/test_viewer_export.py
@pytest.mark.timeout(400)
def test_one_click_saves_the_notebook_proves_it_and_names_the_file(lab, page, provider, tmp_path):
    page.set_viewport_size({"width": 1400, "height": 900})
    notebook = record(lab, page, provider.url, "exported")
    view = sidebar_of(notebook)
    shown(view)
    view.get_by_role("button", name="the recording").click()
    card = view.get_by_role("group", name="Export")
    card.get_by_role("button", name="Export…").click()
    expect(card.get_by_role("progressbar")).to_be_visible()
    ended = card.get_by_text(re.compile("Exported and checked|nothing was written"))
    expect(ended).to_be_visible(timeout=MINUTES)
    if pictures := os.environ.get("TAPE_PICTURES"):
        for scheme, width in (("light", 1400), ("dark", 1400), ("light", 700)):
            page.emulate_media(color_scheme=scheme)
            page.set_viewport_size({"width": width, "height": 900})
            page.screenshot(path=f"{pictures}/export-{scheme}-{width}.png")
    expect(card).to_contain_text("Exported and checked")
    place = re.search(r"(\S+\.tape\.zip):", card.inner_text())[1]
    with archive.opened(place) as bundle:
        assert sum(cell.calls for cell in bundle.manifest.cells) > 0
        assert bundle.digest in card.inner_text()
