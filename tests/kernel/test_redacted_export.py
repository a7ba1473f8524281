"""`tape export NB --redact`: one secret at every place of a session becomes one mark, and the session is still itself.

A notebook that somebody wrote in a hurry: a token in its source, in a module beside it and in a data file; sent in
headers, in URLs and in bodies, to a tool as well; answered in pieces, printed, shown in HTML, put away in base64.
"""

import hashlib
import json
import os
import random
import zipfile

import pytest
from click.testing import CliRunner

from tape_jupyter.headless import run as headless_run
from tape_jupyter import testing
from tape_jupyter.bundle import archive
from tape_jupyter.bundle.staging import ELSEWHERE
from tape_jupyter.cassette.cassette import Cassette
from tape_jupyter.cli import tape
from tests.harness.exported import newcomer, quiet
from tests.harness.notebook import notebook
from tests.harness.plants import Plant, Search, made, opened
from tests.harness.provider import Provider, Scripted

TOKEN, _ = made("github", random.Random(12))
KNOWN = "Zq7rTq1v9WcX2bLk-4711"
MARK = "redacted-github-token-001"
CELLS = (
    """import base64, json, os, pathlib, urllib3
from urllib.parse import quote
import tape_jupyter as tape
import settings
pool = urllib3.PoolManager()
@tape.tool
def log_in(token):
    return {"token": token, "user": "ada"}""",
    """TOKEN = "PLANT"
said = log_in(TOKEN)
note = pathlib.Path("data/notes.txt").read_text()
assert settings.TOKEN == TOKEN == said["token"] and TOKEN in note""",
    """url = f"URL/v1/{quote(TOKEN)}/me?note={quote(base64.b64encode(('? ' + TOKEN).encode()).decode(), safe='')}"
body = {"note": note, "packed": base64.b64encode(TOKEN.encode()).decode(), "hex": TOKEN.encode().hex(), "api_key": TOKEN}
first = pool.request("POST", url, json=body, retries=False)
print(TOKEN, first.json()["echo"], first.headers["x-trace"])""",
    """url = f"URL/v1/{quote(TOKEN)}/me"
body = {"token": TOKEN, "api_key": TOKEN, "note": note}  # sent as a credential too: recordings name it from here on
second = pool.request("POST", url, json=body, headers={"authorization": f"Bearer {TOKEN}"}, retries=False)
print(second.json()["echo"], log_in(TOKEN)["token"])""",
    """stream = pool.request("POST", "URL/v1/stream", json={"q": "say it", "key": os.environ["ACME_API_KEY"]}, retries=False)
told = [json.loads(line[6:]) for line in stream.data.decode().splitlines() if line.startswith("data: ")]
text = "".join(each["delta"]["text"] for each in told if each["type"] == "content_block_delta")
text""",
    """class Card:
    def _repr_html_(self):
        return f"<b>{TOKEN}</b> <i>{said['user']}</i>"
    def __repr__(self):
        return f"Card({TOKEN})"
Card()""",
    """raise ValueError(f"{base64.b64encode(TOKEN.encode()).decode()} is no customer")""",
)


def streamed(text):
    """A reply that says it in pieces of three letters."""
    pieces = [text[at : at + 3] for at in range(0, len(text), 3)]
    events = [
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": p}}
        for p in pieces
    ]
    told = [f"event: {each['type']}\ndata: {json.dumps(each)}\n\n".encode() for each in events]
    return Scripted(200, {"content-type": "text/event-stream"}, told)


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    """The notebook, recorded once."""
    with pytest.MonkeyPatch.context() as patch, Provider() as provider:
        folder = tmp_path_factory.mktemp("redacted")
        newcomer(folder, patch)
        patch.setenv("ACME_API_KEY", KNOWN)
        work = folder / "work"
        (work / "data").mkdir(parents=True)
        (work / "data" / "notes.txt").write_text(f"Ada said: use {TOKEN}\n")
        (work / "settings.py").write_text(f'TOKEN = "{TOKEN}"\n')
        echo = json.dumps({"echo": f"I know {TOKEN}"}).encode()
        provider.script(
            f"/v1/{TOKEN}/me",
            Scripted(200, {"x-trace": TOKEN, "content-type": "application/json"}, [echo]),
        )
        provider.script("/v1/stream", streamed(f"The token is {TOKEN}, is it not?"))
        path = notebook(
            work / "churn.ipynb",
            *(c.replace("URL", provider.url).replace("PLANT", TOKEN) for c in CELLS),
        )
        ran, _ = headless_run.record_notebook(path, quiet, quiet)
        assert [each.status for each in ran] == ["ok"] * 6 + ["failed"]
        cassette = Cassette.open(work / "churn.tapes" / "main.tape.yaml")
        cassette.override(
            cassette.calls[1], reply=json.dumps({"echo": f"no, {TOKEN}"}), take="other"
        )
        yield path


def tree(folder):
    return {
        path: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }


def run(*words):
    return CliRunner().invoke(tape, [str(word) for word in words])


@pytest.fixture(scope="module")
def bundle(session):
    """Its bundle, and what was said of it; refused without the word."""
    before = tree(session.parent)
    refused = run("export", session, "--no-index", "--json")
    assert refused.exit_code == 1 and "github-token" in json.loads(refused.stdout)["why"]
    assert not session.with_name("churn.tape.zip").exists() and TOKEN not in refused.output
    done = run(
        "export",
        session,
        session.parent.parent / "out.tape.zip",
        "--no-index",
        "--redact",
        "--json",
    )
    assert done.exit_code == 0, done.output
    assert tree(session.parent) == before  # the person's own files are as they were
    return session.parent.parent / "out.tape.zip", json.loads(done.stdout)


@pytest.mark.slow
def test_nothing_of_it_is_left_at_any_place_in_any_spelling(bundle):
    place, said = bundle
    search = Search([Plant("github", "plain", "", each, [each]) for each in (TOKEN, KNOWN)])
    with zipfile.ZipFile(place) as zipped:
        for name in zipped.namelist():
            for text in opened(zipped.read(name)):
                assert not search.found(text), name
    assert TOKEN not in json.dumps(said) and KNOWN not in json.dumps(said)
    kinds = {each["kind"] for each in said["redactions"]}
    assert "github-token" in kinds and not said["differences"]
    assert {each["path"] for each in said["left_out"]} <= {ELSEWHERE}


@pytest.mark.slow
def test_no_beginning_of_it_is_left_where_a_title_or_an_address_was_cut(bundle):
    with archive.opened(bundle[0]) as it:
        for name in it.names():
            assert TOKEN[:12] not in it.read(name).decode("utf-8", "replace"), name


def test_the_same_secret_is_the_same_mark_everywhere(bundle):
    with archive.opened(bundle[0]) as it:
        told = {
            name: it.read(name).decode()
            for name in it.names()
            if name.startswith("session/") or name == "page.html"
        }
    for name in (
        "session/churn.ipynb",
        "session/settings.py",
        "session/data/notes.txt",
        "page.html",
    ):
        assert MARK in told[name], name
    tapes = told["session/churn.tapes/main.tape.yaml"]
    assert f"/v1/{MARK}/me" in tapes and f"use {MARK}" in tapes and MARK.encode().hex() in tapes
    shown = [
        output["data"] for output in json.loads(told["session/churn.ipynb"])["cells"][4]["outputs"]
    ]
    assert f"The token is {MARK}, is it not?" in json.dumps(shown)
    assert not any("github-token-002" in text for text in told.values())
    assert MARK in told["session/churn.tapes/takes/main.other.tape.yaml"]


def test_it_verifies_replays_equal_and_its_take_plays(bundle, tmp_path, monkeypatch):
    newcomer(tmp_path, monkeypatch)
    place, said = bundle
    assert run("verify", place).exit_code == 0
    done = run("replay", place, "--yes", "--here", "--json")
    assert done.exit_code == 0, done.output
    assert {cell["status"] for cell in json.loads(done.stdout)["cells"]} == {"same"}
    assert [call.name for call in testing.calls(place)][0] == "log_in"
    other = run("replay", place, "--yes", "--here", "--take", "other", "--json")
    differs = [cell for cell in json.loads(other.stdout)["cells"] if cell["status"] != "same"]
    assert len(differs) == 1 and f"no, {MARK}" in json.dumps(differs)


@pytest.mark.night
def test_the_same_session_masked_twice_is_the_same_bundle(session, bundle, tmp_path, monkeypatch):
    newcomer(session.parent.parent, monkeypatch)
    monkeypatch.setenv("ACME_API_KEY", KNOWN)
    again = run("export", session, tmp_path / "again.tape.zip", "--no-index", "--redact", "--json")
    assert json.loads(again.stdout)["sha256"] == bundle[1]["sha256"]
