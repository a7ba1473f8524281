"""The path ladder: which notebook runs here, and where its cassettes lie."""

import json
import os
import tempfile
from pathlib import Path

import pytest

from tape_jupyter.cassette import adoption
from tape_jupyter.errors import NotebookUnknown, TapeUsageError
from tape_jupyter.cassette import paths
from tape_jupyter.cassette.paths import Ladder
from tape_jupyter.cassette.cell_sources import source_hash
from tape_jupyter.core.parent_process import ParentCommand
from tests.harness.tapes import Recorder, answered, asked


def notebook(path, *sources, **metadata):
    cells = [
        {"cell_type": "code", "source": source, "metadata": {}, "outputs": []} for source in sources
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        json.dumps({"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5})
    )
    return path.resolve()


def ladder(where, **env):
    return Ladder(env=env, start=where)


def test_jupyterlab_says_the_notebook_in_its_session_name(tmp_path):
    churn = notebook(tmp_path / "churn.ipynb")
    assert ladder(tmp_path, JPY_SESSION_NAME=str(churn)).find_notebook("x", {}) == churn


def test_a_session_name_relative_to_the_servers_root_is_looked_for_in_the_working_directory(
    tmp_path,
):
    churn = notebook(tmp_path / "deep" / "churn.ipynb")
    assert (
        ladder(tmp_path / "deep", JPY_SESSION_NAME="deep/churn.ipynb").find_notebook("x", {})
        == churn
    )


@pytest.mark.parametrize("stale", ["gone.ipynb", "console-1", "", "jupyter-session-1234"])
def test_a_stale_session_name_falls_through_to_the_next_rung(tmp_path, stale):
    churn = notebook(tmp_path / "churn.ipynb", "x = 1")
    assert ladder(tmp_path, JPY_SESSION_NAME=stale).find_notebook("x = 1", {}) == churn


def test_the_front_ends_own_word_comes_first_then_vs_codes(tmp_path):
    told, code, lab = (notebook(tmp_path / f"{name}.ipynb") for name in ("told", "code", "lab"))
    steps = ladder(tmp_path, JPY_SESSION_NAME=str(lab))
    assert steps.find_notebook("x", {"__vsc_ipynb_file__": str(code)}) == code
    steps.set_notebook(str(told))
    assert steps.find_notebook("x", {"__vsc_ipynb_file__": str(code)}) == told


def test_an_environment_variable_names_the_notebook(tmp_path):
    churn = notebook(tmp_path / "sub" / "churn.ipynb")
    assert ladder(tmp_path, TAPE_NOTEBOOK="sub/churn.ipynb").find_notebook("x", {}) == churn
    with pytest.raises(NotebookUnknown, match="TAPE_NOTEBOOK"):
        ladder(tmp_path, TAPE_NOTEBOOK="nowhere/churn.ipynb").find_notebook("x", {})


def test_the_one_notebook_that_holds_the_running_source_is_found(tmp_path):
    churn = notebook(tmp_path / "churn.ipynb", "a = 1", ["%%tape record\n", "ask()\n"])
    notebook(tmp_path / "other.ipynb", "b = 2")
    (tmp_path / "broken.ipynb").write_text("{not json")
    assert ladder(tmp_path).find_notebook("%%tape record\nask()", {}) == churn


def test_the_answer_is_kept_until_the_notebook_is_gone(tmp_path):
    churn = notebook(tmp_path / "churn.ipynb", "x = 1")
    steps = ladder(tmp_path)
    assert steps.find_notebook("x = 1", {}) == steps.find_notebook("anything else", {}) == churn
    churn.rename(tmp_path / "leavers.ipynb")
    assert steps.find_notebook("x = 1", {}).name == "leavers.ipynb"


def test_several_notebooks_with_the_same_cell_are_named_and_none_is_picked(tmp_path):
    notebook(tmp_path / "a.ipynb", "x = 1")
    notebook(tmp_path / "b.ipynb", "x = 1")
    with pytest.raises(NotebookUnknown, match=r"a\.ipynb, b\.ipynb.*TAPE_NOTEBOOK"):
        ladder(tmp_path).find_notebook("x = 1", {})


def test_an_unknown_notebook_says_how_to_name_the_cassette_in_one_line(tmp_path):
    with pytest.raises(NotebookUnknown) as caught:
        ladder(tmp_path).find_notebook("x = 1", {})
    assert "%%tape record NAME" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_running_papermills_output_counts_as_its_input(tmp_path):
    churn = notebook(tmp_path / "churn.ipynb", "x = 1")
    facts = {"input_path": "churn.ipynb", "output_path": "out.ipynb", "end_time": None}
    notebook(tmp_path / "out.ipynb", "x = 1", papermill=facts)
    assert ladder(tmp_path).find_notebook("x = 1", {}) == churn
    notebook(tmp_path / "out.ipynb", "x = 1", papermill=facts | {"end_time": "2026-11-21T20:00:00"})
    assert ladder(tmp_path).find_notebook("x = 1", {}) == churn


def test_finished_outputs_of_papermill_count_only_where_nothing_else_holds_the_cell(tmp_path):
    done = {"input_path": "churn.ipynb", "end_time": "2026-11-21T20:00:00"}
    first = notebook(tmp_path / "o1.ipynb", "x = 1", papermill=done | {"output_path": "o1.ipynb"})
    assert ladder(tmp_path).find_notebook("x = 1", {}) == first
    notebook(
        tmp_path / "o2.ipynb", "x = 1", papermill=done | {"output_path": str(tmp_path / "o2.ipynb")}
    )
    with pytest.raises(NotebookUnknown, match=r"o1\.ipynb, o2\.ipynb"):
        ladder(tmp_path).find_notebook("x = 1", {})
    churn = notebook(tmp_path / "churn.ipynb", "x = 1")
    assert ladder(tmp_path).find_notebook("x = 1", {}) == churn


def test_a_copy_of_an_output_and_a_notebook_run_onto_itself_are_notebooks_that_people_edit(
    tmp_path,
):
    done = {
        "input_path": "churn.ipynb",
        "output_path": "out.ipynb",
        "end_time": "2026-11-21T20:00:00",
    }
    notebook(tmp_path / "out.ipynb", "x = 1", papermill=done)
    copy = notebook(tmp_path / "copy.ipynb", "x = 1", papermill=done)
    assert ladder(tmp_path).find_notebook("x = 1", {}) == copy
    notebook(
        tmp_path / "same.ipynb",
        "x = 1",
        papermill=done | {k: "same.ipynb" for k in ("input_path", "output_path")},
    )
    with pytest.raises(NotebookUnknown, match=r"copy\.ipynb, same\.ipynb"):
        ladder(tmp_path).find_notebook("x = 1", {})


def test_papermill_started_in_the_folder_above_leads_to_its_input(tmp_path):
    churn = notebook(tmp_path / "sub" / "churn.ipynb", "x = 1")
    facts = {"input_path": "sub/churn.ipynb", "output_path": "out/o.ipynb", "end_time": None}
    notebook(tmp_path / "out" / "o.ipynb", "x = 1", papermill=facts)
    assert ladder(tmp_path).find_notebook("x = 1", {}) == churn
    assert ladder(tmp_path / "out").find_notebook("x = 1", {}) == churn


@pytest.mark.parametrize(
    "facts",
    [
        {
            "input_path": "sub/churn.ipynb",
            "output_path": "out/o.ipynb",
            "end_time": "2026-11-21T20:00:00",
        },
        {"input_path": "s3://bucket/churn.ipynb", "output_path": "out/o.ipynb", "end_time": None},
        {"input_path": "sub/churn.ipynb", "output_path": None},
        "no mapping",
    ],
)
def test_a_papermill_run_that_cannot_be_followed_says_how_to_name_the_notebook(tmp_path, facts):
    notebook(tmp_path / "sub" / "churn.ipynb", "x = 1")
    notebook(tmp_path / "out" / "o.ipynb", "x = 1", papermill=facts)
    with pytest.raises(NotebookUnknown, match="TAPE_NOTEBOOK"):
        ladder(tmp_path).find_notebook("x = 1", {})


def test_cassettes_lie_beside_the_notebook(tmp_path, monkeypatch):
    assert (
        paths.cassette_path(tmp_path / "churn.ipynb") == tmp_path / "churn.tapes" / "main.tape.yaml"
    )
    assert (
        paths.cassette_path(tmp_path / "churn.ipynb", "b-2")
        == tmp_path / "churn.tapes" / "b-2.tape.yaml"
    )
    monkeypatch.chdir(tmp_path)
    assert paths.cassette_path(None, "demo") == tmp_path / "demo.tapes" / "main.tape.yaml"
    assert (
        paths.cassette_path(None, "demo", tmp_path / "up")
        == tmp_path / "up" / "demo.tapes" / "main.tape.yaml"
    )


def test_a_link_to_a_notebook_has_the_cassettes_of_the_notebook_that_it_leads_to(tmp_path):
    churn = notebook(tmp_path / "deep" / "churn.ipynb")
    (tmp_path / "link.ipynb").symlink_to(churn)
    assert paths.folder(tmp_path / "link.ipynb") == tmp_path.resolve() / "deep" / "churn.tapes"


def test_the_cassettes_that_are_there_are_listed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for path in (
        "churn.tapes/main.tape.yaml",
        "churn.tapes/b.tape.yaml",
        "demo.tapes/main.tape.yaml",
    ):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).touch()
    assert paths.cassette_names(tmp_path / "churn.ipynb") == ["b", "main"]
    assert paths.cassette_names(None) == ["churn", "demo"]
    monkeypatch.chdir("/")
    assert paths.cassette_names(None, tmp_path) == ["churn", "demo"]


@pytest.mark.parametrize(
    "name",
    ["../../etc/passwd", "", "A", "a b", "a.b", "$(rm -rf ~)", "{name}", "x" * 65, "é", "a\n"],
)
def test_a_name_that_could_be_a_path_or_a_command_is_refused(name):
    with pytest.raises(TapeUsageError, match="cannot name a cassette"):
        paths.check_cassette_name(name)


HASHES = {"churn.tapes": {"h1", "h2"}, "else.tapes": {"h9"}}


def tapes(where, *names):
    for name in names:
        (where / name).mkdir()
        (where / name / "main.tape.yaml").touch()


def hashes(path: Path):
    return HASHES[path.parent.name]


def test_a_renamed_notebook_is_offered_its_old_cassettes(tmp_path):
    tapes(tmp_path, "churn.tapes", "else.tapes")
    leavers = notebook(tmp_path / "leavers.ipynb")
    neighbour = adoption.adoptable(leavers, ["h1"], hashes)
    assert neighbour == tmp_path / "churn.tapes"
    assert "renamed" in adoption.offer(leavers, neighbour)
    assert "%tape set adopt=churn.tapes" in adoption.offer(leavers, neighbour)
    adoption.adopt_cassettes(leavers, "churn.tapes")
    assert (tmp_path / "leavers.tapes" / "main.tape.yaml").exists()
    assert not neighbour.exists()


def test_a_copied_notebook_gets_a_copy_of_the_cassettes(tmp_path):
    tapes(tmp_path, "churn.tapes")
    notebook(tmp_path / "churn.ipynb")
    twin = notebook(tmp_path / "churn-Copy1.ipynb")
    assert "copied" in adoption.offer(twin, adoption.adoptable(twin, ["h1", "h2"], hashes))
    adoption.adopt_cassettes(twin, "churn.tapes")
    assert (tmp_path / "churn-Copy1.tapes" / "main.tape.yaml").exists()
    assert (tmp_path / "churn.tapes" / "main.tape.yaml").exists()


def test_nothing_is_offered_when_the_folder_exists_or_the_cells_are_new_or_two_neighbours_fit(
    tmp_path,
):
    tapes(tmp_path, "churn.tapes")
    new = notebook(tmp_path / "new.ipynb")
    assert adoption.adoptable(new, ["h3"], hashes) is None
    assert adoption.adoptable(new, [], hashes) is None
    assert adoption.adoptable(tmp_path / "churn.ipynb", ["h1"], hashes) is None
    tapes(tmp_path, "b.tapes")
    assert adoption.adoptable(new, ["h1"], lambda path: {"h1"}) is None


def test_a_notebook_that_only_begins_like_its_neighbour_is_no_copy_of_it(tmp_path):
    """They share a cell that sets up; whose recording it is shows in the others."""
    tapes(tmp_path, "churn.tapes")
    setup, churn, sales = "import x", "ask('churn')", "%%tape record\nask('sales')"
    notebook(tmp_path / "churn.ipynb", setup, churn)
    other = notebook(tmp_path / "sales.ipynb", setup, sales)
    for held in ([setup, churn], [setup]):
        recorded = {source_hash(source) for source in held}
        assert (
            adoption.adoptable(other, adoption.source_hashes(other), lambda _, said=recorded: said)
            is None
        )
        copy = notebook(tmp_path / "copy.ipynb", setup, churn)
        assert (
            adoption.adoptable(copy, adoption.source_hashes(copy), lambda _, said=recorded: said)
            == tmp_path / "churn.tapes"
        )
        copy.unlink()


def test_a_copy_is_known_though_few_of_its_cells_make_calls_and_one_was_changed_since(tmp_path):
    tapes(tmp_path, "churn.tapes")
    cells = ["import x", "y = 1", "ask('one')", "ask('two')", "y + 1"]
    recorded = {source_hash(source) for source in cells[2:4]}
    notebook(tmp_path / "churn.ipynb", *cells)
    copy = notebook(tmp_path / "copy.ipynb", *cells[:4], "y + 2")
    assert (
        adoption.adoptable(copy, adoption.source_hashes(copy), lambda _: recorded)
        == tmp_path / "churn.tapes"
    )


def test_the_cells_of_what_is_no_notebook_are_none(tmp_path):
    assert adoption.source_hashes(tmp_path / "gone.ipynb") == set()
    for text in ("{", "[]"):
        (tmp_path / "odd.ipynb").write_text(text)
        assert adoption.source_hashes(tmp_path / "odd.ipynb") == set()


def test_a_recording_is_known_by_the_cells_that_made_calls(tmp_path):
    path = tmp_path / "main.tape.yaml"
    assert adoption.recorded_sources(path) == set()
    tape = Recorder(path)
    tape.run("sets up")
    assert adoption.recorded_sources(path) == {"sets up"}
    tape.run("asks", (asked("Q"), answered("A")))
    assert adoption.recorded_sources(path) == {"asks"}
    path.write_text("tape: 99\n...\n")
    assert adoption.recorded_sources(path) == set()


@pytest.mark.parametrize("name", ["../churn.tapes", "churn", "missing.tapes", "/tmp/x.tapes"])
def test_only_a_neighbouring_folder_can_be_adopted(tmp_path, name):
    tapes(tmp_path, "churn.tapes")
    with pytest.raises(TapeUsageError, match="no .tapes folder beside"):
        adoption.adopt_cassettes(tmp_path / "new.ipynb", name)


def test_of_two_copies_the_one_with_cassettes_is_taken_and_that_is_said(tmp_path):
    churn = notebook(tmp_path / "churn.ipynb", "x = 1")
    notebook(tmp_path / "copy.ipynb", "x = 1")
    steps = ladder(tmp_path)
    with pytest.raises(NotebookUnknown, match=r"several .* \(churn.ipynb, copy.ipynb\)"):
        steps.find_notebook("x = 1", {})
    (tmp_path / "churn.tapes").mkdir()
    (tmp_path / "churn.tapes" / "main.tape.yaml").write_text("tape: 1\n")
    assert steps.find_notebook("x = 1", {}) == churn
    assert "churn.ipynb has cassettes" in steps.note and "copy.ipynb" in steps.note


def executed(where, words, start=None, **env):
    """The ladder of a kernel that this command line started, in this folder."""
    command = ParentCommand(tuple(words.split()), where, f"began in {where}")
    return Ladder(env=env, start=start or where, command=lambda: command)


@pytest.mark.parametrize(
    "words",
    [
        "python jupyter-execute b.ipynb a.ipynb",
        "python -m jupyter execute b a",
        "jupyter-nbconvert --to notebook --execute b.ipynb a",
    ],
)
def test_copies_that_one_command_executes_are_told_apart_by_their_turn(
    words, tmp_path, monkeypatch
):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    notebook(tmp_path / "to.ipynb", "x = 2")
    names = [notebook(tmp_path / f"{name}.ipynb", "x = 1").name for name in "abc"]
    found = []
    for kernel in (1_000_001, 1_000_002):
        monkeypatch.setattr(os, "getpid", lambda: kernel)
        steps = [executed(tmp_path, words) for _ in range(2)]  # it may ask again
        found += [each.find_notebook("x = 1", {}).name for each in steps]
        assert (
            f"hold this cell (b.ipynb, a.ipynb): in their order, this is {found[-1]}"
            in steps[0].note
        )
    assert found == ["b.ipynb", "b.ipynb", "a.ipynb", "a.ipynb"]
    monkeypatch.setattr(os, "getpid", lambda: 1_000_003)
    with pytest.raises(NotebookUnknown, match=", ".join(names)):
        executed(tmp_path, words).find_notebook("x = 1", {})


def test_copies_in_two_folders_are_each_executed_in_its_own(tmp_path):
    for name in "ab":
        notebook(tmp_path / name / "n.ipynb", "x = 1")
        steps = executed(tmp_path, "jupyter-execute a/n.ipynb b/n.ipynb", tmp_path / name)
        if name == "b":
            assert steps.find_notebook("x = 1", {}).parent.name == "b" and steps.note == ""


def test_papermill_is_given_its_paths_where_the_shell_was_also_when_it_works_elsewhere(tmp_path):
    shop = notebook(tmp_path / "shop.ipynb", "x = 1")
    work = notebook(tmp_path / "work" / "shop.ipynb", "x = 1").parent  # an older copy
    words = f"papermill shop.ipynb out.ipynb --cwd {work}"
    assert executed(work, words, PWD=str(tmp_path)).find_notebook("x = 1", {}) == shop
