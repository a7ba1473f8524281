"""`tape_jupyter.testing`: what people assert on."""

import pytest
from click.testing import CliRunner

import tape_jupyter as tape
from tape_jupyter import testing
from tape_jupyter.bundle.archive import manifest
from tape_jupyter.cli import tape as command
from tests.harness import bundles
from tests.harness.notebook import clean_env, notebook
from tests.harness.provider import Provider
from tests.harness.tapes import ASK, Recorder, answered, asked, churn


def test_the_spans_of_a_recording_are_those_of_each_cells_newest_run(tmp_path):
    churn(tmp_path)
    found = testing.spans(tmp_path / "churn.tapes" / "main.tape.yaml")
    assert [(each.kind, each.name, each.depth) for each in found if each.is_call] == [
        ("model", "claude-sonnet-4-5-20250929", 1),
        ("tool", "lookup", 1),
    ]
    model, tool = testing.calls(tmp_path / "churn.ipynb")
    assert (
        model.text == "South"
        and model.status == 200
        and model.asked["messages"][0]["content"] == "Which region?"
    )
    assert tool.asked == {"id": 7} and tool.answered == {"name": "Ada"} and tool.status is None


def test_a_take_a_name_and_what_is_not_there(tmp_path):
    path = churn(tmp_path)
    cassette = tape.open(path)
    cassette.override(cassette.calls[1], text="West", take="west")
    assert testing.calls(path, take="west")[0].text == "West"
    Recorder(path.with_name("alt.tape.yaml")).run("x", (asked("Q"), answered("A")))
    assert [each.text for each in testing.calls(tmp_path / "churn.ipynb", name="alt")] == ["A"]
    for wrong in ({"place": tmp_path / "gone.ipynb"}, {"place": path, "take": "gone"}):
        with pytest.raises(tape.TapeError):
            testing.spans(**wrong)


def test_the_spans_of_a_bundle_are_read_and_nothing_of_it_runs(tmp_path):
    tapes = churn(tmp_path / "made").read_bytes()
    content = {**bundles.CONTENT, "session/churn.tapes/main.tape.yaml": tapes}
    path = bundles.written(tmp_path, content)
    assert [each.name for each in testing.calls(path)] == ["claude-sonnet-4-5-20250929", "lookup"]
    assert manifest.NAME not in [each.name for each in tmp_path.iterdir()]


def test_a_notebook_is_recorded_and_then_asserted_on(tmp_path):
    tool = "import tape_jupyter as tape\n@tape.tool\ndef find(user):\n    return {'user': user}"
    env = clean_env(tmp_path)
    with Provider() as provider:
        cells = [
            "%load_ext tape_jupyter",
            ASK.replace("URL", provider.url),
            tool,
            "with tape.span('plan'):\n    a = ask('one')\nprint(find('ada'), a)",
        ]
        path = notebook(tmp_path / "nb.ipynb", *cells)
        heard = []
        recorded = testing.run_notebook(path, "record", env=env, told=heard.append)
    assert recorded.good and [each.status for each in heard] == ["ok"] * 4
    run = testing.assert_replays(path, env=env)
    assert [(each.kind, each.path) for each in run.calls] == [("model", ("plan",)), ("tool", ())]
    assert (
        run.calls[1].answered["user"] == "ada"
        and "{'user': 'ada'}" in run.shown(4)
        and run.text() == ""
    )
    assert [each.kind for each in run.spans] == ["cell", "span", "model", "tool"]

    path.write_text(path.read_text().replace("find('ada')", "find('eve')"))
    with pytest.raises(AssertionError, match="cell 4 .*missed") as caught:
        testing.assert_replays(path, env=env)
    assert "eve" in str(caught.value) and "ada" in str(caught.value)


def test_calls_that_went_live_in_a_replayed_cell_are_among_the_runs(tmp_path):
    tool = "%load_ext tape_jupyter\nimport tape_jupyter as tape\n@tape.tool\ndef ask(q):\n    return 're ' + q"
    taped = "%%tape record\nmood = ask('mood')\nletter = ask('a letter: ' + mood)\nlast = ask('last')\nprint(letter)"
    path, env = notebook(tmp_path / "nb.ipynb", tool, taped), clean_env(tmp_path)
    assert len(testing.run_notebook(path, "record", env=env).calls) == 3
    cassette = tape.open(tmp_path / "nb.tapes" / "main.tape.yaml")
    cassette.override(cassette.calls[0], value="bad", take="bad")
    done = CliRunner().invoke(
        command, ["rerun", str(path), "--take", "bad", "--on-divergence", "live"]
    )
    assert done.exit_code == 0, done.output
    run = testing.run_notebook(path, take="bad", env=env)
    assert sorted(call.answered for call in run.calls) == ["bad", "re a letter: bad", "re last"]


def test_what_is_public_is_documented():
    for name in testing.__all__:
        assert getattr(testing, name).__doc__
