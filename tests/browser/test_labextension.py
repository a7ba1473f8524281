"""The labextension in JupyterLab and in Notebook 7: loads, connects, and runs cells where they stand."""

import pytest
from playwright.sync_api import expect

from tests.browser.jupyter import Notebook, write

LOAD = "%load_ext tape_jupyter"


@pytest.fixture
def opened(server, page, tmp_path_factory, request):
    """Write a notebook with these cells, and open it."""

    def opened(*sources, **options):
        folder = server.root / f"{request.node.name.split('[')[0]}-{server.app}"
        return Notebook(page, server, write(folder / "churn.ipynb", *sources)).open(**options)

    return opened


def test_extension_loads_and_connects_when_the_kernel_says_it_is_there(opened):
    notebook = opened(LOAD, "1 + 1")
    page = notebook.page
    expect(page.locator(".tape-mode select")).to_be_visible()
    notebook.run(1)
    expect(page.locator(".tape-door .tape-view")).to_have_count(1)
    assert "churn.ipynb" in notebook.python(
        "from tape_jupyter.notebook import lab; print(lab._labs[0].cells.ladder.told, lab.route())"
    )
