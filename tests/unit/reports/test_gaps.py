"""One report over a notebook, a cassette or a folder: the nine items, the kit, the cold cases."""

import json
import shutil

import pytest
from click.testing import CliRunner

from tape_jupyter import cli
from tape_jupyter.reports import gaps
from tape_jupyter.cassette.cassette import Cassette
from tape_jupyter.errors import TapeUsageError
from tests.harness.notebook import ROOT, notebook
from tests.harness.seen_runs import chat, recorded, said, tool
from tests.harness.tapes import churn


def made(*paths):
    return gaps.report_gaps(paths)


def tape(*words):
    done = CliRunner().invoke(cli.tape, list(map(str, words)))
    return done.exit_code, done.output


def test_a_cassette_is_reported_run_by_run_and_call_by_call(tmp_path):
    path = tmp_path / "n.tapes" / "main.tape.yaml"
    _, run = recorded(path, (chat(), said()), tool())
    told = json.loads(json.dumps(made(path).record()))
    assert (
        told["summary"]["runs"] == 1
        and told["summary"]["calls"] == 2
        and told["summary"]["cold"] == 0
    )
    (one,) = told["runs"]
    assert one["run"] == run and [each["item"] for each in one["budget"]] == list(range(1, 10))
    assert {each["status"] for each in (*one["budget"], *one["kit"])} <= {
        "pinned",
        "recorded",
        "unpinnable",
        "missing",
    }
    assert [call["kind"] for call in one["calls"]] == ["model", "tool"]
    assert all("capture" in each for each in told["missing"])


def test_a_take_lies_beside_the_notebook_of_its_cassette(tmp_path):
    base, _ = recorded(tmp_path / "n.tapes" / "main.tape.yaml", tool())
    take = Cassette.open(base.path).override(base.calls[0].id, value="another", take="fix")
    for path in (base.path, take.path):
        (run,) = made(path).runs
        assert next(each for each in run.kit if each.name == "notebook").what == "n.ipynb"


def test_only_runs_that_a_replay_uses_are_reported(tmp_path):
    path = churn(tmp_path)
    newest = [run["run"] for run in Cassette.open(path).runs][1:]
    assert [run.run for run in made(path).runs] == newest


def test_what_is_missing_of_many_runs_is_told_once_with_the_runs(tmp_path):
    path = tmp_path / "n.tapes" / "main.tape.yaml"
    for n in range(5):
        recorded(path, (chat(str(n)), said()), source=f"cell {n}")
    told = {each.name: runs for each, runs in made(path).missing}
    assert len(told["user_id"]) == 5
    assert gaps.gaps_text(made(path)).count("%tape set user_id=...") == 1
    assert "and 2 more" in gaps.gaps_text(made(path))
    assert [each.what for each in made(path).budget if each.number == 2] == [
        "the request gave no seed (5 calls)"
    ]


def test_cold_cases_of_a_folder_are_listed_counted_and_grouped(tmp_path):
    for name, cold in (
        ("a", ["connection to db:5432"]),
        ("b", None),
        ("c", ["connection to db:5432"]),
    ):
        path = tmp_path / "deep" / f"{name}.tapes" / "main.tape.yaml"
        recorded(
            path, (chat(), said()), end={"cold": cold} if cold else None, kit={"tenant_id": name}
        )
    report = made(*gaps.cassettes_below(tmp_path))
    assert [case.tenant for case in report.cold] == ["a", "c"]
    text = gaps.gaps_text(report)
    assert (
        "3 runs, 3 calls in 3 cassettes: 2 cold cases" in text and "connection to db:5432" in text
    )
    assert "by model: gpt-4o-2024-08-06 2 of 3" in text and "by hour: 20:00 UTC 2 of 3" in text


def test_takes_are_not_counted_a_second_time(tmp_path):
    path = churn(tmp_path)
    Cassette.open(path).override(
        "lookup" and Cassette.open(path).calls[-1].id, value={"name": "Eve"}, take="other"
    )
    assert list(tmp_path.rglob("takes/*.tape.yaml"))
    assert gaps.cassettes_below(tmp_path) == [path]


def test_a_cassette_that_cannot_be_read_is_named_and_hides_no_other(tmp_path):
    path = churn(tmp_path)
    broken = path.with_name("broken.tape.yaml")
    broken.write_text("---\ntape: 99\n...\n")
    report = made(path, broken)
    assert len(report.runs) == 2 and list(report.broken) == [str(broken)]
    assert "newer version" in gaps.gaps_text(report)
    assert tape("gaps", path.parent)[0] == 2


def test_where_there_is_nothing_that_is_said(tmp_path):
    with pytest.raises(TapeUsageError, match="record one with"):
        gaps.cassettes_below(tmp_path)
    empty = tmp_path / "n.tapes" / "main.tape.yaml"
    empty.parent.mkdir()
    empty.touch()
    assert gaps.gaps_text(made(empty)) == gaps.NO_GAPS


def test_the_example_notebooks_can_be_reported(tmp_path):
    shutil.copytree(ROOT / "example_notebooks", tmp_path / "ex")
    code, text = tape("gaps", tmp_path / "ex")
    assert code == 0 and "gemma3-270m" in text and "retrieval freshness" in text
    code, told = tape("gaps", tmp_path / "ex", "--json")
    assert code == 0 and json.loads(told)["summary"]["calls"] >= 10


def test_every_field_of_every_run_is_there_for_the_asking(tmp_path):
    path = churn(tmp_path)
    code, text = tape("gaps", path, "--all")
    assert code == 0 and "requested model" in text and "execution count" in text
    assert tape("gaps", tmp_path / "churn.ipynb", "-n", "none")[0] == 2


def test_an_untaped_cell_that_keeps_the_clock_or_chance_is_named(tmp_path):
    recorded(tmp_path / "n.tapes" / "main.tape.yaml", tool())
    path = notebook(
        tmp_path / "n.ipynb",
        "import time, uuid",
        "started, run_id = time.time(), uuid.uuid4()\nprint(time.time())",
        "%%tape record\nbegan = time.time()",
        "print(time.time() - started)",
    )
    lines = [
        "[2] is not taped and reads the clock: `started`",
        "[2] is not taped and draws at random: `run_id`",
    ]
    status, output = tape("gaps", path)
    assert status == 0 and [line for line in output.splitlines() if "not taped" in line] == lines
    report = made(tmp_path / "n.tapes" / "main.tape.yaml")
    assert report.record()["untaped"] == lines and all(
        line in gaps.gaps_text(report) for line in lines
    )
