"""A file of another system becomes a notebook that gives the recorded replies: fresh kernel, no network, no key."""

import json
import os

import pytest
from click.testing import CliRunner

from tape_jupyter.cli import tape
from tape_jupyter.core.call import Reply
from tape_jupyter.cassette.cassette import Cassette
from tape_jupyter.errors import TapeError
from tape_jupyter.importers import replaying_notebook
from tape_jupyter.importers.assemble import import_trace
from tests.harness import imported
from tests.unit.importers.test_otlp import llm, request, span

SAMPLES = imported.samples()
ALL = (
    sorted(p for p in SAMPLES.rglob("*") if p.is_file() and "_truth" not in p.parts)
    if SAMPLES
    else []
)
FIRST = {file.parent: file for file in reversed(ALL)}
FILES = ALL if os.environ.get("TAPE_NIGHTLY") else sorted(FIRST.values())
"""One of each system; all of them at night: each takes a kernel."""


def found_in(told):
    return sum(map(imported.leaves, told), imported.Counter())


@pytest.mark.slow
@pytest.mark.spread(9)
@pytest.mark.skipif(not FILES, reason="the samples are not here")
@pytest.mark.skipif(not imported.namespaces(), reason="no network namespaces on this machine")
@pytest.mark.timeout(400)
@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}/{file.name}")
def test_the_notebook_of_a_sample_gives_the_replies_of_its_source(tmp_path, file):
    out = tmp_path / "x.ipynb"
    try:
        path = import_trace(file, cassette=tmp_path / "x.tapes" / "main.tape.yaml").path
    except TapeError as error:
        pytest.skip(str(error))
    if path is None:
        pytest.skip("nothing in it is a call")
    calls = [
        each for each in Cassette.open(path).calls if each.head()["kit"]["grade"] in ("W", "J")
    ]
    if not calls:
        pytest.skip("no call of grade W or J")
    left = replaying_notebook.write_replaying_notebook(out, path)
    done = imported.run_offline(out)
    text = imported.shown(done)
    assert not imported.errors(done) and "Pydantic" not in imported.shown(done, "stderr")
    found, shown = imported.printed(text), imported.documents(text)
    for call in calls:
        reply = call.reply()
        if (
            call.name in " ".join(left)
            or not isinstance(reply, Reply)
            or (reply.status or 999) >= 400
        ):
            continue
        told = [  # what an SDK does not show as it came is read as that SDK reads it
            each
            if any(imported.stands_in(each, one) for one in shown)
            else imported.told_by_sdk(each, call.request().url)
            for each in imported.said(reply)
        ]
        wanted = found_in(told)
        lacking = {each: count for each, count in wanted.items() if found[each] < count}
        assert not lacking, (call.name, lacking, text[:3000])
        apart = [each for each in told if not any(imported.stands_in(each, one) for one in shown)]
        assert not apart, (call.name, "its values stand in other places", apart, text[:3000])
        if not told and reply.body:
            assert reply.body.decode("utf-8", "replace").strip()[:200] in text or reply.header(
                "content-encoding"
            )


@pytest.mark.slow
@pytest.mark.skipif(not imported.namespaces(), reason="no network namespaces on this machine")
def test_a_changed_prompt_is_a_call_that_differs_and_it_is_said_where(tmp_path):
    (tmp_path / "trace.json").write_text(json.dumps(request(span("b1", llm()))))
    out = tmp_path / "x.ipynb"
    import_trace(tmp_path / "trace.json", cassette=tmp_path / "x.tapes" / "main.tape.yaml")
    assert (
        replaying_notebook.write_replaying_notebook(out, tmp_path / "x.tapes" / "main.tape.yaml")
        == []
    )
    done = imported.run_offline(out)
    assert not imported.errors(done) and "North" in imported.shown(done)
    (tmp_path / "done.ipynb").unlink()  # a notebook with the same cells is a copy of it
    out.write_text(out.read_text().replace("Who?", "Where?"))
    error = imported.errors(imported.run_offline(out))[0]
    assert error.startswith("UnmatchedCall") and "Who?" in error and "Where?" in error


@pytest.mark.slow
def test_a_notebook_fresh_from_an_import_replays_and_says_that_it_has_no_outputs_to_compare(
    tmp_path,
):
    (tmp_path / "trace.json").write_text(json.dumps(request(span("b1", llm()))))
    out = tmp_path / "x.ipynb"
    words = ["import", str(tmp_path / "trace.json"), "--out", str(out)]
    assert CliRunner().invoke(tape, words).exit_code == 0
    done = CliRunner().invoke(tape, ["replay", str(out)])
    assert done.exit_code == 0, done.stderr
    assert "1 ran, with no saved output to compare with" in done.stdout
    assert "there is no output to compare with" in done.stderr and "differs" not in done.stderr
    out.write_text(out.read_text().replace("Who?", "Where?"))
    done = CliRunner().invoke(tape, ["replay", str(out)])
    assert done.exit_code == 1 and "1 missed" in done.stdout
