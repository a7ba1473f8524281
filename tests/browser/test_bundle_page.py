"""`tape open` in Chromium: a stranger's bundle, of which every word would run if it were markup, shows as text."""

import re
import socket
import tempfile

import pytest
from playwright.sync_api import expect

from tape_jupyter.bundle import open as bundle_open
from tests.browser.payloads import HOSTILE, Watch
from tests.browser.test_hostile_doors import DENSE, PARTS, record, visit
from tests.harness.bundles import CONTENT, made, notebook, written

EVIL_PAGE = b"<script>globalThis.pwned=1</script><img src=https://evil.example/x>"


@pytest.fixture(scope="module")
def evil(tmp_path_factory):
    """A bundle that its maker filled with payloads wherever text may stand."""
    folder = tmp_path_factory.mktemp("hostile")
    record(folder / "session" / "churn.tapes" / "main.tape.yaml")
    content = CONTENT | {"page.html": EVIL_PAGE, "README.md": EVIL_PAGE}
    content["session/churn.ipynb"] = notebook(
        HOSTILE[0],
        [
            {"output_type": "display_data", "metadata": {}, "data": {"text/html": text}}
            for text in HOSTILE
        ],
    )
    for path in (folder / "session").rglob("*.yaml"):
        content[path.relative_to(folder).as_posix()] = path.read_bytes()
    said = made(content, made_by=HOSTILE[0], guards=tuple(HOSTILE))
    return written(folder, content, said)


@pytest.fixture(autouse=True)
def left(monkeypatch, tmp_path):
    """Where pages go that are left as files."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


@pytest.mark.slow
def test_nothing_runs_in_the_page_that_is_sent(evil, page):
    with (
        bundle_open.recordings(evil) as (_, cassettes),
        bundle_open.Pages(cassettes[0]).served() as address,
    ):
        watch, answers = Watch(page, address), []
        page.on("response", lambda answer: answers.append(answer))
        page.goto(address)
        shows_all(page)
        watch.nothing_ran()
        assert answers[0].headers["content-security-policy"] == "frame-ancestors 'none'"


def test_nothing_runs_in_the_page_as_a_file(evil, page):
    done = bundle_open.write_page_file(evil)
    watch = Watch(page, f"file://{done.page}")
    page.goto(f"file://{done.page}")
    shows_all(page)
    watch.nothing_ran()


def test_the_policy_of_the_page_lets_nothing_foreign_in(evil, page):
    done = bundle_open.write_page_file(evil)
    page.goto(f"file://{done.page}")
    policy = page.locator("meta[http-equiv=Content-Security-Policy]").get_attribute("content")
    told = dict(part.strip().split(" ", 1) for part in policy.split(";"))
    assert (
        told["default-src"] == "'none'" and told["img-src"] == "data:" and "connect-src" not in told
    )
    assert all(re.fullmatch(r"'sha256-[\w+/=]+'", each) for each in told["script-src"].split())
    tried = """async (url) => {
      const image = new Image();
      const shown = new Promise((done) => { image.onload = () => done("loaded"); image.onerror = () => done("refused"); });
      image.src = url;
      const asked = await fetch(url).then(() => "fetched", () => "refused");
      return [await shown, asked];
    }"""
    with socket.create_server(("127.0.0.1", 0)) as foreign:
        foreign.setblocking(False)
        address = f"http://127.0.0.1:{foreign.getsockname()[1]}/evil.png"
        assert page.evaluate(tried, address) == ["refused", "refused"]
        with pytest.raises(BlockingIOError):  # nobody came
            foreign.accept()


def shows_all(page):
    expect(page.locator("#tape").get_by_role("tree")).to_be_visible()
    seen, shown = visit(page.locator("#tape"), (DENSE + 2) * PARTS)
    assert seen["rows"] >= 5 * len(HOSTILE) and shown == len(HOSTILE)


def test_what_would_have_run_is_noticed(evil, page, tmp_path):
    """The bundle's own page, which nobody is shown: it does run, and the marks above see it."""
    path = tmp_path / "page.html"
    path.write_bytes(EVIL_PAGE)
    watch = Watch(page, path.as_uri())
    page.goto(path.as_uri())
    with pytest.raises(AssertionError, match="evil.example"):
        watch.nothing_ran()
