"""What browser tests stand on: a fresh bundle, one Chromium, one server an application.

Missing parts skip the tests with one line that says what to do; under CI nothing is skipped.
"""

import importlib.util
import os
import shutil
from contextlib import contextmanager

import pytest

from tests.notebook import ROOT

CHROMIUM_FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip


def missing(what):
    """Skip, or fail where tests must not be skipped."""
    if os.environ.get("CI"):
        pytest.fail(what)
    pytest.skip(what)


@pytest.fixture(scope="session")
def bundle():
    """The notebook UI as the sources are now: built if it is not."""
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    hook = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(hook)
    built = hook.Bundle(ROOT)
    if not built.fresh():
        try:
            built.build()
        except hook.NotBuilt as reason:
            missing(f"the notebook UI is not built: {reason}")
    return built


@pytest.fixture(
    scope="module"
)  # playwright's loop counts as running in this thread while it is there: no asyncio.run
def chromium(bundle):
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        missing("there is no chromium here: make browser")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=path, headless=True, args=CHROMIUM_FLAGS
        )
        yield browser
        browser.close()


APPS = {"lab": "lab", "notebook7": "notebook"}


@pytest.fixture(scope="session", autouse=True)
def launches(request, tmp_path_factory):
    """The servers that the chosen tests need; they come up and go down side by side, while tests that need none run."""
    from tests.browser.jupyter import Launch

    wanted = {name for item in request.session.items for name in _apps_of(item)}
    launched = {name: Launch(APPS[name], tmp_path_factory.mktemp(name)) for name in sorted(wanted)}
    yield launched
    for launch in launched.values():
        launch.stop()
    for launch in launched.values():
        launch.wait()


def _apps_of(item):
    params = item.callspec.params.values() if hasattr(item, "callspec") else ()
    return APPS.keys() & {*item.fixturenames, *(each for each in params if isinstance(each, str))}


@pytest.fixture(scope="session")
def lab(bundle, launches):
    return launches["lab"].ready()


@pytest.fixture(scope="session")
def notebook7(bundle, launches):
    return launches["notebook7"].ready()


@pytest.fixture(params=["lab", "notebook7"])
def server(request):
    """Both applications, one after the other."""
    return request.getfixturevalue(request.param)


@contextmanager
def fresh_page(chromium):
    """A page in a fresh profile; an uncaught error of ours in it fails the test."""
    context = chromium.new_context(viewport={"width": 1400, "height": 1000})
    context.set_default_timeout(30_000)
    page, errors = context.new_page(), []
    page.on("pageerror", lambda error: errors.append(f"{error} {error.stack}"))
    yield page
    context.close()
    assert not [error for error in errors if "tape" in error], errors


@pytest.fixture
def page(chromium):
    with fresh_page(chromium) as page:
        yield page
