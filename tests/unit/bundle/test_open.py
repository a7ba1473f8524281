"""`tape open`: our page of a bundle's recordings, sent to who knows its address, and to nobody else."""

import json
import re
import socket
import tempfile
import threading
import urllib.error
import urllib.request
import webbrowser
from concurrent.futures import Future
from pathlib import Path

import pytest
from click.testing import CliRunner

from tape_jupyter import bundle as bundles
from tape_jupyter.reports import page
from tape_jupyter.bundle import open as bundle_open
from tape_jupyter.cassette.cassette import Cassette
from tape_jupyter.cli import tape as command
from tape_jupyter.errors import BundleError, TapeUsageError
from tests.harness.bundles import CONTENT, recording, written
from tests.harness.spanned import answered
from tests.unit.reports.test_page import blocks

EVIL = b"<script>evil()</script>"


@pytest.fixture(autouse=True)
def scripts(monkeypatch, tmp_path_factory):
    """Stand in for the built bundle: this is about how the page is sent. Pages that are left as files go with the tests'."""
    monkeypatch.setattr(page, "script", lambda name: f"// {name}\n")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path_factory.mktemp("left")))


@pytest.fixture
def bundle(tmp_path):
    return written(tmp_path, recording(tmp_path / "session") | {"page.html": EVIL})


def got(address, **headers):
    with urllib.request.urlopen(
        urllib.request.Request(address, headers=headers), timeout=20
    ) as answer:
        return dict(answer.headers), answer.read().decode()


@pytest.fixture
def browser(monkeypatch):
    """A browser that reads the page it is given; what it got."""
    reads = []

    def read(address):
        reads.append(Future())
        threading.Thread(target=lambda: reads[-1].set_result(got(address))).start()
        return True

    monkeypatch.setattr(webbrowser, "open", read)
    return reads


def test_the_browser_gets_our_page_of_the_recordings_and_not_the_one_in_the_bundle(bundle, browser):
    done = CliRunner().invoke(command, ["open", str(bundle)])
    assert (
        done.exit_code == 0 and "its page was made here, and nothing in it was run" in done.output
    )
    headers, text = browser[0].result(20)
    assert blocks(text)["tape-rows"]["name"][1:] == [
        '"negative"',
        'lookup(key="negative")',
        "GET orders",
    ]
    assert "evil" not in text and "default-src 'none'" in text
    assert (
        headers["Content-Security-Policy"] == "frame-ancestors 'none'"
        and headers["Cache-Control"] == "no-store"
    )


def test_without_a_browser_it_is_a_file(bundle, monkeypatch):
    monkeypatch.setattr(webbrowser, "open", lambda _: False)
    done = CliRunner().invoke(command, ["open", str(bundle)])
    path = Path(done.output.splitlines()[-1])
    assert done.exit_code == 0 and "lookup" in path.read_text() and path.name == "churn.tape.html"


def test_json_names_a_file_and_opens_nothing(bundle, monkeypatch):
    monkeypatch.setattr(webbrowser, "open", None)
    done = CliRunner().invoke(command, ["open", str(bundle), "--json"])
    record = json.loads(done.stdout)
    assert (
        done.exit_code == 0
        and record["recordings"] == ["main"]
        and "lookup" in Path(record["page"]).read_text()
    )


def test_who_does_not_know_the_address_gets_nothing(bundle):
    with (
        bundle_open.recordings(bundle) as (_, cassettes),
        bundle_open.Pages(cassettes[0]).served() as address,
    ):
        origin = address.rsplit("/", 2)[0]
        for other in (
            origin,
            f"{origin}/churn.tape.html",
            f"{origin}/x/churn.tape.html",
            f"{address}x",
            f"{origin}/../../etc/passwd",
        ):
            with pytest.raises(urllib.error.HTTPError, match="404"):
                got(other)
        for host in ("evil.example", f"evil.example:{origin.rpartition(':')[2]}", "localhost"):
            with pytest.raises(urllib.error.HTTPError, match="404"):
                got(address, Host=host)
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/[\w-]{32}/churn\.tape\.html", address)
        assert "lookup" in got(address)[1] == got(address)[1]
    with pytest.raises(urllib.error.URLError):
        got(address)


def test_what_stands_on_the_browsers_command_line_leads_to_the_page_one_time(bundle):
    """Other users of the machine can read it: the address of the page itself is told to the browser alone."""
    with bundle_open.recordings(bundle) as (_, cassettes):
        pages = bundle_open.Pages(cassettes[0])
        with pages.served() as address:
            once = pages.once
            assert not address.startswith(once)
            with pytest.raises(urllib.error.HTTPError, match="404"):
                got(once, Host="evil.example")
            assert "lookup" in got(once)[1]
            with pytest.raises(urllib.error.HTTPError, match="404") as refused:
                got(once)
            assert (
                b"good for one time" in refused.value.read()
                and address.encode() not in refused.value.read()
            )
            assert "lookup" in got(address)[1], "and the page can be loaded again"


def test_the_browser_is_given_no_other_address(bundle, monkeypatch):
    given = []
    monkeypatch.setattr(
        webbrowser, "open", lambda address: given.append(address) or bool(got(address))
    )
    done = CliRunner().invoke(command, ["open", str(bundle)])
    assert done.exit_code == 0 and len(given) == 1 and "churn.tape.html" not in given[0]


def test_the_first_rows_are_sent_before_the_last_details_are_made(bundle):
    made = []
    with bundle_open.recordings(bundle) as (_, cassettes):
        for piece in bundle_open.Pages(cassettes[0], lambda *told: made.append(told)).pieces():
            if b'id="tape-rows"' in piece:
                assert made == []
    assert made == [("making the page", 4, 4)]


def names(done):
    return blocks(Path(done.page).read_text())["tape-rows"]["name"]


def test_a_take_or_another_recording_is_shown_by_its_name(tmp_path):
    folder = tmp_path / "session"
    recording(folder)
    tape = Cassette.open(folder / "churn.tapes" / "main.tape.yaml")
    tape.override(tape.calls[0], reply=answered("positive"), take="glad")
    other = recording(tmp_path / "other" / "session", "quiet")
    files = [each for each in folder.rglob("*") if each.is_file()]
    content = CONTENT | {
        f"session/{each.relative_to(folder).as_posix()}": each.read_bytes() for each in files
    }
    content["session/churn.tapes/second.tape.yaml"] = other["session/churn.tapes/main.tape.yaml"]
    bundle = written(tmp_path, content)
    done = bundle_open.write_page_file(bundle)
    assert done.recordings == ("main", "second") and names(done)[1] == '"negative"'
    assert names(bundle_open.write_page_file(bundle, take="glad"))[1] == '"positive"'
    assert names(bundle_open.write_page_file(bundle, "second"))[1] == '"quiet"'
    with pytest.raises(TapeUsageError, match="no recording third; there are: main, second"):
        bundle_open.write_page_file(bundle, "third")
    with pytest.raises(TapeUsageError, match="has no take 'sad'; there are: glad"):
        bundle_open.write_page_file(bundle, take="sad")


def test_what_cannot_be_shown_is_an_error_and_waits_for_nobody(tmp_path, browser):
    with pytest.raises(TapeUsageError, match="no recording in it; there are: none"):
        bundle_open.show_page(written(tmp_path / "none"))
    content = recording(tmp_path / "session")
    name = "session/churn.tapes/main.tape.yaml"
    newer = content[name].replace(b"tape: 1", b"tape: 99", 1)
    with pytest.raises(TapeUsageError, match="newer version"):
        bundle_open.show_page(written(tmp_path / "newer", {**content, name: newer}))
    with pytest.raises(BundleError, match="is not what the manifest says"):
        bundle_open.show_page(changed(written(tmp_path / "changed", content)))
    assert browser == []


def changed(path):
    """The same, unpacked, and a reply in it is another."""
    with bundles.opened(path) as it:
        folder = it.extract(path.parent / "unpacked")
    name = folder / "session" / "churn.tapes" / "main.tape.yaml"
    name.write_bytes(name.read_bytes().replace(b"text: negative", b"text: positive"))
    return folder


def test_a_reader_that_goes_away_is_not_the_end(bundle):
    with bundle_open.recordings(bundle) as (_, cassettes):
        pages = bundle_open.Pages(cassettes[0])
        with pages.served() as address:
            host, port = pages.host.split(":")
            with socket.create_connection((host, int(port))) as line:
                line.sendall(b"GET / HTTP/1.0\r\n")
            assert "lookup" in got(address)[1]
            assert pages.sent.wait(20)
