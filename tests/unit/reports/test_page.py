"""A cassette as one page: all of it in one file, nothing of it runs, nothing a person made is overwritten."""

import base64
import hashlib
import json
import random
import re
import tracemalloc
import zlib

import pytest
from click.testing import CliRunner

from tape_jupyter.reports import page
from tape_jupyter.core.call import Request
from tape_jupyter.cassette.cassette import Cassette
from tape_jupyter.cli import tape as command
from tape_jupyter.errors import TapeUsageError
from tests.harness.pages import unfolded
from tests.harness.spanned import Recording, answered, asked, failed, fetched, tool
from tests.harness.tapes import JSON

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
    """All blocks of data of a page: those of details put together again."""
    plain = re.findall(
        r'<script type="application/json" id="([\w-]+)">(.*?)</script>', text, re.DOTALL
    )
    packed = re.findall(
        r'<script type="text/plain" id="(tape-base|tape-(?:rows|details)-\d+)">([\w+/=]*)</script>',
        text,
    )
    found = {name: json.loads(told) for name, told in plain}
    found |= {name: json.loads(zlib.decompress(base64.b64decode(told))) for name, told in packed}
    return {name: unfolded(told) if "details" in name else told for name, told in found.items()}


def test_rows_and_details_stand_in_the_page(tmp_path):
    out, notes = page.write_page(Cassette.open(recorded(tmp_path)))
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
    assert details[rows["id"][1]]["detail"]["turns"][-1]["parts"] == [
        {"type": "text", "text": "negative"}
    ]
    assert "negative" in details[rows["id"][1]]["raw"]["reply"]["text"]
    assert (
        told["tape-state"]["session"]["totals"]["calls"] == 4
        and told["tape-state"]["state"]["door"] == "page"
    )


def test_a_page_is_called_as_its_notebook_and_cassette_or_as_the_cassette_alone(tmp_path):
    alone = Recording(tmp_path / "shop.tape.yaml")
    alone.run()
    for path, title in ((recorded(tmp_path), "n: main"), (alone.cassette.path, "shop")):
        out, _ = page.write_page(Cassette.open(path))
        assert f"<title>{title}</title>" in out.read_text()


def test_a_page_tells_nothing_of_where_it_was_made(tmp_path):
    out, _ = page.write_page(Cassette.open(recorded(tmp_path)))
    details = blocks(out.read_text())["tape-details-0"].values()
    assert {each["detail"]["path"] for each in details} == {"n.tapes/main.tape.yaml"}
    assert str(tmp_path) not in json.dumps(blocks(out.read_text()))


def test_nothing_in_a_recording_can_end_its_block_and_only_our_scripts_may_run(tmp_path):
    out, _ = page.write_page(Cassette.open(recorded(tmp_path, EVIL)))
    text = out.read_text()
    scripts = re.findall(r"<script[^>]*>", text)
    assert scripts.count("<script>") == 1 and all(
        "application/json" in tag or "text/plain" in tag for tag in scripts[:2]
    )
    assert [tag for tag in scripts if " type=" not in tag] == ["<script>"]
    assert "<img" not in text and "<!--" not in text and blocks(text)["tape-rows"]["total"] == 5
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', text)[1]
    for name in ("page", "page-side"):
        digest = base64.b64encode(hashlib.sha256(f"// {name}\n".encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy
    assert (
        policy.startswith("default-src 'none'")
        and "unsafe-eval" not in policy
        and "http" not in policy
    )


def test_nothing_of_a_person_is_overwritten_but_a_page_is_written_anew(tmp_path):
    cassette = Cassette.open(recorded(tmp_path))
    mine = tmp_path / "mine.html"
    mine.write_text("my own words")
    with pytest.raises(TapeUsageError, match="is not a page of tape-jupyter's"):
        page.write_page(cassette, mine)
    with pytest.raises(TapeUsageError, match="ends in .html"):
        page.write_page(cassette, tmp_path / "n.ipynb")
    assert mine.read_text() == "my own words"
    out, _ = page.write_page(cassette)
    assert page.write_page(cassette)[0] == out


def test_a_take_has_a_page_of_its_own(tmp_path):
    cassette = Cassette.open(recorded(tmp_path))
    take = cassette.override(cassette.calls[0], reply=answered("positive"), take="glad")
    out, _ = page.write_page(take)
    assert (
        out.name == "n.glad.tape.html"
        and '"positive"' in blocks(out.read_text())["tape-rows"]["name"]
    )


def test_a_takes_page_opens_at_what_is_another_than_in_the_recording(tmp_path):
    cassette = Cassette.open(recorded(tmp_path))
    take = cassette.override(cassette.calls[0], reply=answered("positive"), take="glad")
    told = blocks(page.write_page(take)[0].read_text())
    opened = told["tape-state"]["state"]["span"]
    assert list(told["tape-base"]) == [opened]
    assert "negative" in told["tape-base"][opened]["left"] and "positive" in told["tape-base"][opened]["right"]  # fmt: skip
    told = blocks(page.write_page(cassette)[0].read_text())
    assert told["tape-state"]["state"]["span"] is None and told["tape-base"] == {}


def test_more_rows_than_are_drawn_at_once_stand_in_blocks_one_after_the_other(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(page, "FIRST", 1)
    monkeypatch.setattr(page, "LIMIT", 2)
    monkeypatch.setattr(page, "BLOCK", 2)
    heard = []
    out, notes = page.write_page(
        Cassette.open(recorded(tmp_path)), on_progress=lambda *told: heard.append(told)
    )
    told = blocks(out.read_text())
    assert [told[name]["from"] for name in ("tape-rows", "tape-rows-1", "tape-rows-2")] == [0, 1, 3]
    assert [len(told[f"tape-details-{number}"]) for number in range(3)] == [2, 2, 1] and notes == []
    assert heard == [(2, 5), (4, 5), (5, 5)]


def test_the_script_stands_before_what_is_not_drawn_at_once(tmp_path):
    text = page.write_page(Cassette.open(recorded(tmp_path)))[0].read_text()
    places = [
        text.index(part)
        for part in ('id="tape-rows"', 'id="tape-side"', "<script>", 'id="tape-details-0"')
    ]
    assert places == sorted(places)


def test_details_stop_where_the_page_would_become_too_large(tmp_path, monkeypatch):
    monkeypatch.setattr(page, "BLOCK", 1)
    monkeypatch.setattr(page, "MOST_BYTES", 1700)
    out, notes = page.write_page(Cassette.open(recorded(tmp_path)))
    told = blocks(out.read_text())
    assert re.search(
        r"lists all 5 spans, .* of the first [1-4]: the others would make it too large", notes[0]
    )
    assert notes[0] in told["tape-state"]["session"]["notes"] and "tape-details-4" not in told


def test_a_loop_that_repeats_its_history_makes_a_page_in_proportion_to_what_it_said(tmp_path):
    sizes = []
    for turns in (20, 80):
        tape = Recording(tmp_path / f"n{turns}.tapes" / "main.tape.yaml")
        tape.run()
        said, chance = [], random.Random(turns)
        for _ in range(turns):
            said.append({"role": "user", "content": chance.randbytes(600).hex()})
            body = json.dumps({"model": "claude-sonnet-5", "messages": said}).encode()
            tape.add(
                Request("POST", "https://api.anthropic.com/v1/messages", JSON, body),
                answered("yes"),
            )
        tape.end()
        sizes.append(len("".join(page.page_pieces(tape.cassette, []))))
    empty = len("".join(page.page_pieces(Cassette.open(tmp_path / "none.tape.yaml"), [])))
    assert sizes[1] - empty < 4.5 * (sizes[0] - empty)


def test_a_script_that_holds_a_tag_is_not_put_into_a_page(tmp_path, monkeypatch):
    monkeypatch.setattr(page, "script", lambda name: "x = '</script>'")
    with pytest.raises(TapeUsageError, match="holds a tag"):
        page.write_page(Cassette.open(recorded(tmp_path)))


def test_an_empty_cassette_gives_a_page(tmp_path):
    assert (
        blocks("".join(page.page_pieces(Cassette.open(tmp_path / "none.tape.yaml"), [])))[
            "tape-rows"
        ]["total"]
        == 0
    )


def test_tape_show_html_writes_it_and_says_where(tmp_path):
    recorded(tmp_path)
    (tmp_path / "n.ipynb").write_text('{"cells": []}')
    ran = CliRunner().invoke(command, ["show", str(tmp_path / "n.ipynb"), "--html"])
    assert ran.exit_code == 0, ran.output
    assert ran.output.strip() == str(tmp_path / "n.tape.html")
    out = tmp_path / "sub" / "other.html"
    ran = CliRunner().invoke(
        command, ["show", str(tmp_path / "n.ipynb"), "--html", str(out), "--json"]
    )
    assert json.loads(ran.output) == [{"page": str(out), "notes": []}]


def test_what_calls_said_is_not_held_while_a_page_is_written(tmp_path, monkeypatch):
    monkeypatch.setattr(page, "BLOCK", 10)
    peaks = []
    for calls in (20, 80):
        tape = Recording(tmp_path / f"n{calls}.tapes" / "main.tape.yaml")
        tape.run()
        for number in range(calls):
            tape.add(
                *fetched(
                    f"https://h.test/{number}",
                    random.Random(number).randbytes(60_000).hex().encode(),
                )
            )
        tape.end()
        cassette = Cassette.open(tape.cassette.path)
        page.write_page(cassette, tmp_path / "warm.html")
        tracemalloc.start()
        page.write_page(cassette, tmp_path / "measured.html")
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.5 * peaks[0]
