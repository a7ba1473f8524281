"""What browser tests stand on: a fresh bundle, one Chromium, one server an application.

Missing parts skip the tests with one line that says what to do; under CI nothing is skipped.
"""

import importlib.util
import os
import shutil
from contextlib import contextmanager
from urllib.parse import urlsplit

import pytest

from tests.harness.notebook import ROOT

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


@pytest.fixture(params=["lab", pytest.param("notebook7", marks=pytest.mark.night)])
def server(request):
    """JupyterLab; at night Notebook 7, too."""
    return request.getfixturevalue(request.param)


@contextmanager
def fresh_page(chromium):
    """A page in a profile that holds nothing but scripts; an uncaught error of ours in it fails the test.

    What Chromium compiled of JupyterLab stays with its context: a page takes 0.7 s of a processor, the first two 3.7 each.
    While another page is open in it, one has a context of its own.
    """
    shared = chromium.contexts[0] if chromium.contexts else None
    if shared is None or shared.pages:
        context = chromium.new_context(viewport={"width": 1400, "height": 1000})
        context.set_default_timeout(60_000)
    else:
        context = shared
    page, errors = context.new_page(), []
    page.on("pageerror", lambda error: errors.append(f"{error} {error.stack}"))
    yield page
    if context is chromium.contexts[0]:
        forget(context)
    else:
        context.close()
    assert not [error for error in errors if "tape" in error], errors


def forget(context):
    """Close its pages; the profile forgets what they stored."""
    pages = list(context.pages)
    origins = {
        urlsplit(page.url)._replace(path="", query="", fragment="")
        for page in pages
        if page.url.startswith("http")
    }
    blank = context.new_page()
    for page in pages:
        page.close()
    asked = context.new_cdp_session(blank)
    for origin in origins:
        kinds = "cookies,file_systems,indexeddb,local_storage,service_workers,cache_storage"
        asked.send("Storage.clearDataForOrigin", {"origin": origin.geturl(), "storageTypes": kinds})
    context.clear_cookies()
    context.clear_permissions()
    blank.close()


@pytest.fixture
def page(chromium):
    with fresh_page(chromium) as page:
        yield page
