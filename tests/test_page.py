"""A cassette as one page: all of it in one file, nothing of it runs, nothing a person made is overwritten."""

import base64
import hashlib
import json
import re

import pytest
from click.testing import CliRunner

from tape_jupyter import page
from tape_jupyter.cassette import Cassette
from tape_jupyter.cli import tape as command
from tape_jupyter.errors import TapeUsageError
from tests.spanned import Recording, answered, asked, failed, fetched, tool

EVIL = "</script><img src=x onerror=alert(1)><!--<script>"


@pytest.fixture(autouse=True)
def scripts(monkeypatch):
    """Stand in for the built bundle: this is about the page around it."""
    monkeypatch.setattr(page, "script", lambda name: f"// {name}\n")


def recorded(folder, text="negative"):
    tape = Recording(folder / "n.tapes" / "main.tape.yaml")
    tape.run(title=text)
    tape.add(asked("q", text), answered(text))
    tape.add(*tool(f"look_{len(text)}", text, key=text))
    tape.add(*fetched("https://h.test/<b>?q=</script>", text.encode()))
    tape.add(asked("late"), failed())
    tape.end()
    return tape.cassette.path


def blocks(text):
    return {
        name: json.loads(told)
        for name, told in re.findall(r'<script type="application/json" id="([\w-]+)">(.*?)</script>', text, re.DOTALL)
    }


def test_rows_and_details_stand_in_the_page(tmp_path):
    out, notes = page.write(Cassette.open(recorded(tmp_path)))
    assert out == tmp_path / "n.tape.html" and notes == []
    told = blocks(out.read_text())
    rows, details = told["tape-rows"], told["tape-details-0"]
    assert rows["name"] == [
        "[2] negative",
        '"negative"',
        'look_8(key="negative")',
        "GET <b>?q=</script>",
        "429 rate_limit",
    ]
    assert set(details) == set(rows["id"])
    assert details[rows["id"][1]]["detail"]["turns"][-1]["parts"] == [{"type": "text", "text": "negative"}]
    assert "negative" in details[rows["id"][1]]["raw"]["reply"]["text"]
    assert told["tape-state"]["session"]["totals"]["calls"] == 4 and told["tape-state"]["state"]["door"] == "page"


def test_nothing_in_a_recording_can_end_its_block_and_only_our_scripts_may_run(tmp_path):
    out, _ = page.write(Cassette.open(recorded(tmp_path, EVIL)))
    text = out.read_text()
    scripts = re.findall(r"<script[^>]*>", text)
    assert [tag for tag in scripts if "application/json" not in tag] == [
        '<script type="text/plain" id="tape-side">',
        "<script>",
    ]
    assert "<img" not in text and "<!--" not in text and blocks(text)["tape-rows"]["total"] == 5
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', text)[1]
    for name in ("page", "page-side"):
        digest = base64.b64encode(hashlib.sha256(f"// {name}\n".encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none'") and "unsafe-eval" not in policy and "http" not in policy


def test_nothing_of_a_person_is_overwritten_but_a_page_is_written_anew(tmp_path):
    cassette = Cassette.open(recorded(tmp_path))
    mine = tmp_path / "mine.html"
    mine.write_text("my own words")
    with pytest.raises(TapeUsageError, match="is no page of tape-jupyter's"):
        page.write(cassette, mine)
    with pytest.raises(TapeUsageError, match="ends in .html"):
        page.write(cassette, tmp_path / "n.ipynb")
    assert mine.read_text() == "my own words"
    out, _ = page.write(cassette)
    assert page.write(cassette)[0] == out


def test_a_take_has_a_page_of_its_own(tmp_path):
    cassette = Cassette.open(recorded(tmp_path))
    take = cassette.override(cassette.calls[0], reply=answered("positive"), take="glad")
    out, _ = page.write(take)
    assert out.name == "n.glad.tape.html" and '"positive"' in blocks(out.read_text())["tape-rows"]["name"]


def test_more_rows_than_a_page_of_rows_stand_in_blocks_one_after_the_other(tmp_path, monkeypatch):
    monkeypatch.setattr(page, "LIMIT", 2)
    monkeypatch.setattr(page, "BLOCK", 2)
    monkeypatch.setattr(page, "MOST_DETAILS", 4)
    out, notes = page.write(Cassette.open(recorded(tmp_path)))
    told = blocks(out.read_text())
    assert [told[name]["from"] for name in ("tape-rows", "tape-rows-1", "tape-rows-2")] == [0, 2, 4]
    assert len(told["tape-details-0"]) == len(told["tape-details-1"]) == 2 and "tape-details-2" not in told
    assert "lists all 5 spans" in notes[0] and notes[0] in told["tape-state"]["session"]["notes"]


def test_details_stop_where_the_page_would_become_too_large(tmp_path, monkeypatch):
    monkeypatch.setattr(page, "BLOCK", 1)
    monkeypatch.setattr(page, "MOST_BYTES", 4000)
    _, notes = page.write(Cassette.open(recorded(tmp_path)))
    assert "the others would make it too large" in notes[0]


def test_a_script_that_holds_a_tag_is_not_put_into_a_page(tmp_path, monkeypatch):
    monkeypatch.setattr(page, "script", lambda name: "x = '</script>'")
    with pytest.raises(TapeUsageError, match="holds a tag"):
        page.write(Cassette.open(recorded(tmp_path)))


def test_an_empty_cassette_gives_a_page(tmp_path):
    assert blocks("".join(page.page(Cassette.open(tmp_path / "none.tape.yaml"), [])))["tape-rows"]["total"] == 0


def test_tape_show_html_writes_it_and_says_where(tmp_path):
    recorded(tmp_path)
    (tmp_path / "n.ipynb").write_text('{"cells": []}')
    ran = CliRunner().invoke(command, ["show", str(tmp_path / "n.ipynb"), "--html"])
    assert ran.exit_code == 0, ran.output
    assert ran.output.strip() == str(tmp_path / "n.tape.html")
    out = tmp_path / "sub" / "other.html"
    ran = CliRunner().invoke(command, ["show", str(tmp_path / "n.ipynb"), "--html", str(out), "--json"])
    assert json.loads(ran.output) == [{"page": str(out), "notes": []}]
