"""The support pipeline in a kernel, shown on a page: what tests of a re-run begin with."""

import pytest

from tests.harness.notebook import Kernel, notebook
from tests.harness.support import CELLS, LOAD, Page, record


@pytest.fixture
def page(tmp_path, provider):
    notebook(
        tmp_path / "support.ipynb",
        LOAD,
        *(source.replace("URL", provider.url) for source in CELLS.values()),
    )
    with Kernel(tmp_path, {"TAPE_NOTEBOOK": str(tmp_path / "support.ipynb")}) as kernel:
        page = Page(kernel, provider)
        assert page.execute(LOAD, "load").ok
        yield page


@pytest.fixture
def base(tmp_path):
    return tmp_path / "support.tapes" / "main.tape.yaml"


@pytest.fixture
def recorded(page, base, provider):
    """The five cells, run and recorded; the classification is overridden in the take `angry`."""
    return record(page, base, provider)
