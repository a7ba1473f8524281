"""How a cell came out in the proof, in words that say what to do."""

import pytest
from nbformat.v4 import new_code_cell, new_output

from tape_jupyter.bundle.proof import process, run
from tests.harness.exported import churn, whole  # noqa: F401 - fixtures


def stream(text):
    return new_output("stream", name="stdout", text=text)


def error(name, value="no"):
    return new_output("error", ename=name, evalue=value, traceback=[f"{name}: {value}"])


def judged(saved, given, *, ran=True, count=1, unheld=()):
    cell = new_code_cell("ask()", outputs=saved, execution_count=count)
    return run.judge(cell, process.ProofOutput(3, 5, "ask()", tuple(given), 0.1, ran, unheld), {})


@pytest.mark.parametrize(
    ("saved", "given", "why"),
    [
        ([stream("a")], [stream("a")], ""),
        ([error("ValueError")], [error("ValueError")], ""),
        ([stream("a")], [stream("b")], run.DIFFERS),
        ([stream("a")], [error("ValueError")], run.RAISED),
        ([error("ValueError", "no")], [error("ValueError", "yes")], run.DIFFERS),
        ([error("ValueError")], [stream("a")], run.DIFFERS),
        ([stream("a")], [error("UnmatchedCall", "POST x is not on the tape")], run.MISSED),
        ([error("UnmatchedCall")], [error("UnmatchedCall")], run.MISSED),
        ([], [error("BlockedConnection", "to 1.2.3.4")], run.UNTAPED),
    ],
)
def test_a_cell_is_as_saved_or_it_is_said_why_not(saved, given, why):
    cell = judged(saved, given)
    assert cell.why == why and bool(cell.lines) == bool(why)
    assert cell.text() == f"[3] ask(): {why}"


def test_what_a_recorded_tool_did_and_a_replay_does_not_is_a_difference_though_the_outputs_are_equal():
    told = ("tool note: it wrote /tmp/x, which is not in the notebook's folder",)
    cell = judged([stream("a")], [stream("a")], unheld=told)
    assert cell.why == run.UNHELD and cell.lines == told


def test_a_cell_that_nobody_ran_counts_when_it_shows_something():
    assert judged([], [stream("a")], count=None).why == run.NEVER_RUN
    assert judged([], [], count=None).why == ""
    assert judged([stream("a")], [], ran=False).why == run.NOT_RUN
    assert judged([], [], ran=False).why == ""


@pytest.mark.parametrize(
    ("why", "advice"),
    [
        (run.MISSED, "record that cell again"),
        (run.UNTAPED, "put %%tape record on the cells that go to the network"),
        (run.UNHELD, "have the tool return its result"),
        (run.NEVER_RUN, "run the whole notebook and save it"),
        (run.DIFFERS, "from its first cell to its last"),
    ],
)
def test_what_is_told_ends_with_what_to_do(why, advice):
    found = run.ProofRun((run.CellProof(1, "a"), run.CellProof(2, "b", why, ("-1", "+2"))), ())
    told = run.changed_cells(found)
    assert "(1 of 2 cells); nothing was written" in told[0] and told[1] == f"  [2] b: {why}"
    assert told[2:4] == ["      -1", "      +2"]
    assert advice in told[-1] and "--allow-differences" in told[-1]


@pytest.mark.slow
def test_a_cell_that_asks_otherwise_or_goes_to_the_network_untaped_is_named(churn):
    import nbformat

    from tape_jupyter.bundle.export import Options, export_bundle
    from tape_jupyter.errors import NotExported

    node = nbformat.read(churn, as_version=4)
    node.cells[1].source = node.cells[1].source.replace("ask('one')", "ask('another')")
    node.cells[3].source = "import urllib.request; urllib.request.urlopen('http://127.0.0.1:9')"
    node.cells[1].outputs, node.cells[1].metadata["tags"] = (
        [error("ValueError")],
        ["raises-exception"],
    )
    nbformat.write(node, churn)
    with pytest.raises(NotExported) as caught:
        export_bundle(churn, options=Options(ask_index=False))
    assert f"print('said:', text): {run.MISSED}" in str(caught.value)
    assert "recorded: 'one'" in str(caught.value) and "now:      'another'" in str(caught.value)
    assert "[4] import urllib.request" in str(caught.value)


@pytest.mark.night
def test_a_tool_that_writes_elsewhere_is_not_exported_as_proven(tmp_path, monkeypatch):
    from tape_jupyter.bundle.export import Options, export_bundle
    from tape_jupyter.errors import NotExported
    from tests.harness.exported import newcomer, taped

    newcomer(tmp_path, monkeypatch)
    elsewhere = tmp_path / "elsewhere" / "note.txt"
    elsewhere.parent.mkdir()
    source = (
        "%%tape record\nimport tape_jupyter as tape\n\n@tape.tool\ndef note(text):\n"
        f"    open({str(elsewhere)!r}, 'w').write(text)\n    return 'noted'\n\nprint(note('late'))"
    )
    (tmp_path / "work").mkdir()
    path = taped(tmp_path / "work" / "churn.ipynb", "%load_ext tape_jupyter", source)
    with pytest.raises(NotExported) as caught:
        export_bundle(path, options=Options(ask_index=False))
    assert run.UNHELD in str(caught.value) and "note.txt" in str(caught.value)
    done = export_bundle(path, options=Options(ask_index=False, allow_differences=True))
    assert [each.why for each in done.manifest.differences] == [run.UNHELD]


def test_where_a_take_replays_nobody_is_told_to_record_anew():
    """That would leave the take behind, with what a person changed in it."""
    found = run.ProofRun((run.CellProof(1, "a", run.DIFFERS, ("-1", "+2")),), ())
    told = "\n".join(run.changed_cells(found, "fix"))
    assert "tape rerun NB --take fix --output NEW.ipynb" in told
    assert "tape record" not in told
