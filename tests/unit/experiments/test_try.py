"""`tape try WHERE... --candidate FILE...`: candidate fixes over recorded runs, offline; no row is lost or doubled."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from xml.etree import ElementTree as ET

import nbformat
import pytest
from click.testing import CliRunner

import tape_jupyter as tape
from tape_jupyter.cli import tape as command
from tape_jupyter.errors import TapeUsageError
from tape_jupyter.experiments.check import Check, CheckedRun
from tape_jupyter.experiments.sweep import attempt as attempts
from tape_jupyter.core.call import Request
from tape_jupyter.experiments.sampling.budget import Budget
from tape_jupyter.experiments.sweep import asking, candidate, engine, places
from tape_jupyter.experiments.sweep.attempt import Attempt
from tape_jupyter.experiments.sweep.limits import RunLimits
from tape_jupyter.experiments.sweep.store import RowStore
from tape_jupyter.experiments.sweep.summary import SweepSummary, signature
from tests.harness.notebook import ROOT, clean_env, notebook
from tests.harness.support import digest
from tests.harness.tapes import ASK, JSON, Recorder, answered, churn

TOOL = """import tape_jupyter as tape
@tape.tool
def stock(item):
    return {"item": item, "left": 0}"""
RESTOCK = '[[override]]\ntool = "stock"\nvalue = { item = "lamp", left = 3 }\n'


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """A notebook whose last cell fails, recorded once for all tests of this file."""
    from tests.harness.provider import Provider

    folder = tmp_path_factory.mktemp("shop")
    env = clean_env(folder)
    with Provider() as provider:
        setup = "%load_ext tape_jupyter\n%tape set tenant_id=acme\n" + ASK.replace("URL", provider.url)  # fmt: skip
        path = notebook(
            folder / "shop.ipynb", setup, TOOL, '%%tape record\nsaid = ask("The mood?")\nleft = stock("lamp")["left"]',
            "assert left > 0, left",
        )  # fmt: skip
        line = [sys.executable, "-m", "tape_jupyter", "record", str(path), "--json"]
        done = subprocess.run(line, env=env, capture_output=True, text=True, timeout=170)
        assert done.returncode == 1, done.stderr
    return path


@pytest.fixture
def path(recorded, tmp_path, monkeypatch):
    shutil.copytree(recorded.with_suffix(".tapes"), tmp_path / "shop.tapes")
    shutil.copy(recorded, tmp_path / "shop.ipynb")
    wanted = clean_env(tmp_path)
    for name in set(os.environ) - set(wanted):
        monkeypatch.delenv(name)
    for name, value in wanted.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "shop.ipynb"


def run(*words):
    return CliRunner().invoke(command, [str(word) for word in words])


def write(path, text):
    path.write_text(text)
    return path


@pytest.mark.slow
def test_a_candidate_is_tried_offline_and_the_rows_count_again(path, tmp_path):
    fix = write(tmp_path / "restock.toml", RESTOCK)
    ask = write(tmp_path / "ask.toml", '[[cell]]\nmatch = "mood"\nreplace = "The mood"\nwith = "What mood"\n')  # fmt: skip
    write(tmp_path / "broken.tape.zip", "no zip")
    before = {file: digest(file) for file in (path, *path.with_suffix(".tapes").rglob("*.yaml"))}
    words = ["try", tmp_path, "-c", fix, "-c", ask, "--yes", "--workers", "1"]
    done = run(*words, "--html", "r.html", "--junit", "r.xml", "--out", "rows.jsonl")
    assert done.exit_code == 1, done.output
    assert "as recorded                  0 of 2 pass" in done.stdout
    assert "restock                      1 of 2 pass, 1 of 2 now pass" in done.stdout
    assert "AssertionError, tool stock, model claude-sonnet-4-5, tenant acme" in done.stdout
    assert "3 rows: broken" in done.stdout
    rows = {
        (Path(row["place"]).name, row["candidate"]): row
        for row in map(json.loads, Path("rows.jsonl").read_text().splitlines())
    }
    assert len(rows) == 6 and rows["shop.ipynb", "restock"]["calls"] == 2
    asked = rows["shop.ipynb", "ask"]
    assert asked["verdict"] == "unresolved" and asked["diverged"] == 1 and "is not on the tape" in asked["asked"]  # fmt: skip
    assert all(row["live"] == 0 and row["cost"] == 0 for row in rows.values())
    assert len(ET.parse("r.xml").findall(".//testcase")) == 6
    page = Path("r.html").read_text()
    links = [part.split('"')[0] for part in page.split('href="')[1:]]
    assert len(links) == 3 and all("<html" in Path(link).read_text()[:200] for link in links)
    assert "+said = ask(&quot;What mood?&quot;)" in page and page.count("<details>") == 1
    assert {file: digest(file) for file in before} == before
    again = run("try", path, "-c", fix, "-c", ask, "--workers", "1")
    assert "3 existed already" in again.stdout, again.output
    shutil.rmtree("tape-try/pages")  # as where nobody asked for a page before
    run("try", path, "-c", fix, "-c", ask, "--workers", "1", "--html", "r.html")
    page = Path("r.html").read_text()
    assert page.count('href="tape-try/pages/') == 3 and page.count("<details>") == 1
    frame = tape.try_candidates(path, [fix, ask], workers=ThreadPoolExecutor(1)).frame()
    assert list(frame["verdict"]) == ["fails", "passes", "unresolved"]


@pytest.mark.slow
def test_a_check_that_tells_nothing_is_said_before_any_candidate_is_tried(path, tmp_path):
    ask = write(tmp_path / "ask.toml", '[[request]]\nmodel = ".*"\nset = { temperature = 0 }\n')
    words = ("try", path, "-c", ask, "--max-calls", "3", "--workers", "1")
    done = run(*words, "--check", "1 == 1")
    assert done.exit_code == 2 and "reads nothing of the notebook" in done.stderr
    assert not (tmp_path / "tape-try").exists()
    ran = nbformat.read(path, 4)
    del ran.cells[-1]  # the one that fails
    nbformat.write(ran, path)
    done = run(*words, "--check", "nobody > 1")
    assert done.exit_code == 2 and "NameError" in done.stderr and "nothing was asked" in done.stderr
    assert len(list((tmp_path / "tape-try" / "rows").iterdir())) == 1
    done = run("try", path, "--check", "test_it.py")
    assert done.exit_code == 2 and "`tape why` and `tape sample` alone" in done.stderr


def jobs(tmp_path, count):
    """Attempts that are quick: of bundles that are none."""
    tried = [candidate.Candidate().record(), candidate.Candidate("two", packages=["x==1"]).record()]
    return [
        Attempt(f"{number:04}{which}", str(number), str(tmp_path / f"{number}.tape.zip"), "bundle", told, "", str(tmp_path / "rows"))
        for number in range(count) for which, told in enumerate(tried)
    ]  # fmt: skip


@pytest.mark.night
def test_workers_that_are_killed_lose_and_double_no_row(tmp_path):
    rows, wanted = [], jobs(tmp_path, 150)
    pool = engine.Processes(2)
    made = []

    class Watched(engine.Processes):
        def executor(self):
            made.append(super().executor())
            return made[-1]

    def done(row):
        rows.append(row["key"])
        if len(rows) in (50, 170):  # kill a worker of the pool that runs
            os.kill(next(iter(made[-1]._processes)), signal.SIGKILL)

    store = RowStore(str(tmp_path / "rows"))
    engine.run_jobs(iter(wanted), store, Watched(pool.count), done)
    assert sorted(rows) == sorted(job.key for job in wanted) and len(set(rows)) == len(rows)
    assert sorted(key for key, _ in store.rows()) == sorted(rows) and len(made) > 1
    assert {row["end"] for _, row in store.rows()} == {"broken"}


def test_a_run_that_kills_its_worker_each_time_is_a_row_that_says_so(tmp_path, monkeypatch):
    class Dying(ThreadPoolExecutor):
        def submit(self, work, job):
            future = super().submit(work, job)
            if job.key == "00010":
                future = super().submit(_raise)
            return future

    def _raise():
        raise MemoryError("the worker is gone")

    rows, store = {}, RowStore(str(tmp_path / "rows"))
    with Dying(2) as pool:
        engine.run_jobs(iter(jobs(tmp_path, 3)), store, engine.BorrowedExecutor(pool, 2), lambda row: rows.update({row["key"]: row}))  # fmt: skip
    assert len(rows) == 6 and rows["00010"]["end"] == "died"
    assert [row["end"] for row in rows.values()].count("broken") == 5


def test_copies_of_a_bundle_are_runs_of_their_own(tmp_path):
    for name in ("a", "b"):
        write(tmp_path / f"{name}.tape.zip", "no zip")
    results = tmp_path / "rows"
    with ThreadPoolExecutor(1) as pool:
        told = tape.try_candidates(tmp_path, [], workers=pool, results=results)
    assert [Path(row["place"]).name for row in told.rows()] == ["a.tape.zip", "b.tape.zip"]
    assert told.summary.runs == 2 and len(list(RowStore(str(results)).rows())) == 2


@pytest.mark.night
def test_workers_of_a_dask_scheduler_give_the_same_rows(tmp_path, monkeypatch):
    distributed = pytest.importorskip("distributed")
    wanted, rows = jobs(tmp_path, 5), []
    store = RowStore(str(tmp_path / "rows"))
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, dashboard_address="127.0.0.1:0"
    ) as cluster:
        with engine.workers_of(cluster.scheduler_address) as workers:
            assert workers.count == 1
            engine.run_jobs(wanted, store, workers, rows.append)
        with distributed.Client(cluster) as client:
            engine.run_jobs(wanted, store, engine.given_executor(client), rows.append)
    with pytest.raises(TapeUsageError, match="a int is not an executor"):
        tape.try_candidates([], [], workers=2)
    monkeypatch.setattr(engine, "PATIENCE", 1.0)
    with distributed.LocalCluster(n_workers=0, dashboard_address="127.0.0.1:0") as cluster:
        with pytest.raises(TapeUsageError, match="has had no workers"):
            with engine.workers_of(cluster.scheduler_address) as workers:
                engine.run_jobs(wanted, store, workers, rows.append)
    told = lambda row: {**row, "seconds": 0}  # noqa: E731
    here = [told(attempts.attempt(job)) for job in wanted]
    by_key = sorted(map(told, rows), key=lambda row: row["key"])
    assert by_key[::2] == by_key[1::2] == here
    with pytest.raises(TapeUsageError, match="the scheduler cannot be reached"):
        with engine.workers_of("tcp://127.0.0.1:9"):
            pass


def test_what_a_candidate_asks_again_is_paid_once_and_within_the_limit(tmp_path, provider):
    path = tmp_path / "churn.tapes" / "main.tape.yaml"
    body = {"model": "claude-sonnet-4-5", "max_tokens": 50, "messages": [{"role": "user", "content": "Which?"}]}  # fmt: skip
    requests = [Request("POST", f"{provider.url}/v1/messages", JSON, json.dumps({**body, "temperature": n / 10}).encode()) for n in (1, 2)]  # fmt: skip
    Recorder(path).run("ask()", *((each, answered("Bo")) for each in requests))
    notebook(tmp_path / "churn.ipynb", "ask()")
    found = places.found_places([str(tmp_path / "churn.ipynb")])
    wanted = candidate.Candidate("cold", requests=[{"model": "claude.*", "set": {"temperature": 0}, "replace": "Which", "with": "What"}])  # fmt: skip
    store, key = RowStore(str(tmp_path / "rows")), asking.key_of(found[0], wanted)
    with pytest.raises(TapeUsageError, match=r"--max-cost USD.*Nothing was sent"):
        asking.request_missing(found, [wanted], store, Budget())
    asking.request_missing(found, [wanted], store, Budget(max_calls=1))
    assert len(provider.requests) == 1 and not asking.kept_answers(store, key).complete
    asking.request_missing(found, [wanted], store, Budget(max_cost=Decimal(1)))
    asking.request_missing(found, [wanted], store, Budget(max_cost=Decimal(1)))
    made = asking.kept_answers(store, key)
    assert len(provider.requests) == 2 and made.complete and made.live == 2 and made.cost > 0
    sent = [each.json for each in provider.requests]
    assert all(each["temperature"] == 0 and each["messages"][0]["content"] == "What?" for each in sent)  # fmt: skip
    own = tmp_path / "own" / "churn.tapes"
    shutil.copytree(path.parent, own)
    made.write_files(own)
    take = tape.open(own / "main.tape.yaml").take("try")
    assert len(take.overrides) == 2 and tape.open(path).takes() == []


def test_a_row_that_cannot_be_kept_ends_the_sweep_in_one_line(tmp_path):
    (tmp_path / "rows").write_text("a file, where a folder was")
    kept = []
    with (
        ThreadPoolExecutor(1) as pool,
        pytest.raises(TapeUsageError, match="a row cannot be kept in .*rows: "),
    ):
        engine.run_jobs(
            jobs(tmp_path, 2),
            RowStore(str(tmp_path / "rows")),
            engine.BorrowedExecutor(pool, 1),
            kept.append,
        )
    assert kept == [] and (tmp_path / "rows").read_text() == "a file, where a folder was"


def test_a_run_that_hangs_or_eats_memory_is_ended_with_all_its_processes():
    for limits, work, end in (
        (RunLimits(seconds=0.5), "import time; time.sleep(60)", "timed out"),
        (
            RunLimits(memory=100 << 20),
            "x = bytearray(300 << 20); import time; time.sleep(60)",
            "memory",
        ),
    ):
        child = "import subprocess, sys; subprocess.run([sys.executable, '-c', sys.argv[1]])"
        with (
            limits.watch_limits(),
            subprocess.Popen([sys.executable, "-c", child, work]) as process,
        ):
            limits.started(process.pid)
            assert process.wait(timeout=50) == -signal.SIGKILL
        assert limits.ended == end


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "it changes nothing"),
        ("[[cell]", "it is not TOML"),
        ("colour = 1", "there is no such key; there are: cell, git"),
        ("[[cell]]\nsource = 'x'", "named by one of number, id and match"),
        ("[[cell]]\nnumber = 1", "has source, or replace"),
        ("[[override]]\ntext = 'x'", "says of which calls"),
        ("[[override]]\ntool = '('\ntext = 'x'", "is not a regular expression"),
        ("[[override]]\ntool = 'a'", "has one of text, message, value, fault"),
        ("override = 1", "write each override as a table of its own"),
        ("packages = 'x'", "packages is a list"),
        ("notebook = 'gone.ipynb'", "there is no such notebook"),
        ("name = 'as recorded'\npackages = ['x']", "name it otherwise"),
    ],
)
def test_a_candidate_that_cannot_be_read_is_one_clear_line(tmp_path, text, told):
    file = write(tmp_path / "fix.toml", text)
    with pytest.raises(TapeUsageError, match=told.replace("(", r"\(")):
        candidate.read_candidate(file)


def test_words_that_cannot_be_used_are_one_clear_line_and_nothing_is_lost(tmp_path, monkeypatch):
    churn(tmp_path)
    nb = notebook(tmp_path / "churn.ipynb", "x = 1")
    fix = write(tmp_path / "fix.toml", "[[cell]]\nnumber = 9\nsource = ''\n")
    mine = write(tmp_path / "rows.jsonl", "mine")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    (tmp_path / "empty").mkdir()
    for words, told in (
        (
            [tmp_path / "gone.ipynb"],
            "there is no such notebook, bundle or folder; beside it: churn.ipynb",
        ),
        ([tmp_path / "empty"], "no notebook with a recording"),
        ([nb, "--check", "x ="], "not a Python expression"),
        ([nb, "--workers", "many"], "say how many processes, or where a Dask scheduler is"),
        ([nb, "--out", mine], "is not overwritten"),
        ([nb, "-c", fix, "-c", fix], "two candidates have one name"),
        ([nb, "--results", tmp_path / "file"], "results cannot be written there"),
        ([nb, "--memory", "much"], "is no size"),
        ([nb, "--html", "r.txt"], "ends in .html"),
    ):
        done = run("try", *words)
        assert done.exit_code == 2 and told in done.stderr, (words, done.output, done.exc_info)
    assert mine.read_text() == "mine"


def row(place, name, verdict, **more):
    return {
        "key": f"{place}{name}", "place": place, "candidate": name, "verdict": verdict, "end": "", "error": "",
        "asked": "", "tool": "", "model": "", "tenant": "", "fits": 1, "calls": 1, "live": 0, "diverged": 0, "cost": 0.0,
        "seconds": 1.0, "cold": 0, **more,
    }  # fmt: skip


def test_failures_that_are_alike_are_one_line_and_cold_cases_are_counted():
    summary = SweepSummary(["as recorded", "fix", "idle"])
    for number in range(6):
        kind = {"error": "KeyError", "tool": "stock", "tenant": "a"} if number < 4 else {}
        told = ("fails", kind) if number < 5 else ("passes", {})
        summary.add(row(f"n{number}", "as recorded", told[0], cold=number == 1, **told[1]))
        summary.add(row(f"n{number}", "fix", "passes" if number % 2 == 0 else "fails"))
        summary.add(row(f"n{number}", "idle", told[0], fits=0))
    first, second = summary.clusters()
    assert first.label == "KeyError, tool stock, tenant a" and first.runs == 4
    assert first.passing == {"fix": 2, "idle": 0} and second.passing == {"fix": 1, "idle": 0}
    assert summary.now_pass("fix") == 3 and summary.no_longer("fix") == 1
    text = "\n".join(summary.lines())
    assert (
        "cold cases: what a replay needs is missing in 1 of 6 runs" in text
        and "idle changes nothing in any of these runs" in text
    )
    asked = row(
        "n",
        "as recorded",
        "unresolved",
        asked="POST https://x/v1 is not on the tape (main). Nothing",
    )
    assert signature(asked)[1] == "POST https://x/v1"


def test_a_notebooks_digest_follows_what_it_may_read_and_not_what_the_sweep_writes(tmp_path):
    churn(tmp_path)
    nb = notebook(tmp_path / "churn.ipynb", "x = 1")

    def told():
        return places.found_places([str(nb)], [tmp_path / "tape-try", tmp_path / "r.html"])[
            0
        ].digest

    first = told()
    RowStore(str(tmp_path / "tape-try")).put_row("k", {})
    write(tmp_path / "r.html", "page")
    assert told() == first
    write(tmp_path / "data.csv", "1")
    second = told()
    assert second != first
    notebook(nb, "x = 2")
    assert told() not in (first, second)


def test_rows_lie_in_a_folder_or_behind_a_url(tmp_path):
    for place in (str(tmp_path / "rows"), f"memory://{tmp_path.name}/rows"):
        store = RowStore(place)
        store.prepare()
        store.put_row("a", {"n": 1})
        store.put_row("a", {"n": 2})
        store.write_file("rows/b.json", b'{"n": ')  # of a machine that lost its power
        assert list(store.rows()) == [("a", {"n": 2})]


def test_cells_of_a_revision_and_of_another_notebook_take_the_place_of_the_recorded_ones(tmp_path):
    def git(*words):
        line = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b", *words]
        subprocess.run(line, check=True, capture_output=True)

    nb = notebook(tmp_path / "churn.ipynb", "x = 1", "y = 1")
    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "one")
    old = nbformat.read(nb, 4)
    new = nbformat.read(nb, 4)
    new.cells[1].source = "y = 2"
    nbformat.write(new, nb)
    made = candidate.Candidate("old", git="HEAD").changed(new, nb)
    assert [cell.source for cell in made.cells] == ["x = 1", "y = 1"]
    head = candidate.Candidate("old", git="HEAD")
    before = head.digest_for(nb)
    git("commit", "-qam", "two")
    assert head.digest_for(nb) != before and head.digest_for(None) == head.digest
    nbformat.write(old, tmp_path / "other.ipynb")
    file = write(tmp_path / "fix.toml", 'notebook = "other.ipynb"')
    assert candidate.read_candidate(file).changed(new, nb).cells[1].source == "y = 1"
    with pytest.raises(TapeUsageError, match="git = 'gone'"):
        candidate.Candidate("old", git="gone").changed(new, nb)
    with pytest.raises(candidate.FitsNothing):
        candidate.Candidate("x", cells=[{"number": 3, "source": ""}]).changed(new, nb)
