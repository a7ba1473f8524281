"""The kit in a real kernel: what lies around a cell is changed after its recording. Replay is the same all the same; the
cell recorded again says what is another.
"""

import subprocess

import pytest

from tape_jupyter.reports import gaps
from tape_jupyter.cassette.cassette import Cassette
from tests.harness.notebook import Kernel, notebook
from tests.harness.provider import Provider

SETUP = """%load_ext tape_jupyter
import os, sys, importlib, urllib3
import tape_jupyter as tape
sys.path.insert(0, os.getcwd())
import mine
http = urllib3.PoolManager(retries=False)
schema = {{"type": "object"}}

def ask(text):
    tools = [{{"name": "lookup", "description": "looks up", "input_schema": schema}}]
    body = {{"model": "claude-sonnet-4-5", "max_tokens": 9, "tools": tools, "messages": [{{"role": "user", "content": text}}]}}
    return http.request("POST", "{url}/v1/messages", json=body).json()["model"]

@tape.tool
def price():
    return mine.PRICE
"""
CELL = "print(price(), mine.__name__, tape.__name__)"


def git(folder, *words):
    who = {
        "GIT_AUTHOR_NAME": "me",
        "GIT_AUTHOR_EMAIL": "m@h",
        "GIT_COMMITTER_NAME": "me",
        "GIT_COMMITTER_EMAIL": "m@h",
    }
    import os

    subprocess.run(
        ["git", *words], cwd=folder, check=True, capture_output=True, env={**os.environ, **who}
    )


@pytest.fixture(scope="module")
def kernel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kit")
    path = notebook(folder / "kit.ipynb", "1")
    (folder / "mine.py").write_text("PRICE = 1\n")
    for words in (["init", "-q"], ["add", "mine.py", "kit.ipynb"], ["commit", "-q", "-m", "first"]):
        git(folder, *words)
    with (
        Provider() as provider,
        Kernel(folder, {"TAPE_NOTEBOOK": str(path), "LC_ALL": "C.UTF-8"}) as kernel,
    ):
        done = kernel.execute(SETUP.format(url=provider.url))
        assert done.ok, done.traceback
        yield kernel


CHANGES = {  # what is done in the kernel or its folder after the recording: what is said to be another
    "a local module": ("open('mine.py', 'w').write('PRICE = 22\\n'); importlib.reload(mine)", "local module mine changed"),
    "a tool's data": ("mine.PRICE = 333", "tool result of price changed"),
    "a library": ("import sys; sys.modules.pop('colorsys', None); import mine", ""),
    "a setting": ("os.environ['LC_ALL'] = 'nb_NO.UTF-8'", "environment LC_ALL changed: C.UTF-8 -> nb_NO.UTF-8"),
    "the user": ("%tape set user_id=ada", "user_id changed: none -> ada"),
    "the tenant": ("%tape set tenant_id=acme", "tenant_id changed: none -> acme"),
    "the session": ("%tape set session_id=s1", "session_id changed: none -> s1"),
    "the flags": ("%tape set flags=new_prompt", 'flags changed: none -> {"new_prompt": true}'),
}  # fmt: skip


@pytest.mark.parametrize("what", CHANGES)
def test_what_changed_around_a_cell_does_not_touch_its_replay_and_is_told_when_it_runs_again(
    kernel, what
):
    change, drift = CHANGES[what]
    name = what.split()[-1].replace("'s", "")
    recorded = kernel.execute(f"%%tape record {name}\n{CELL}", name)
    assert recorded.ok, recorded.traceback
    assert kernel.execute(change).ok
    replayed = kernel.execute(f"%%tape replay {name}\n{CELL}", name)
    assert (replayed.ok, replayed.stdout) == (True, recorded.stdout), replayed.traceback
    again = kernel.execute(f"%%tape record {name}\n{CELL}", name)
    if drift:
        assert drift in again.summary, again.summary
    else:
        assert "drift" not in again.summary, again.summary


def test_another_tool_schema_is_a_miss_in_replay_and_drift_when_it_runs_again(kernel):
    cell = "print(ask('hi'))"
    assert kernel.execute(f"%%tape record schema\n{cell}", "schema").ok
    assert kernel.execute("schema = {'type': 'string'}").ok
    missed = kernel.execute(f"%%tape replay schema\n{cell}", "schema")
    assert missed.ename == "UnmatchedCall" and "input_schema" in missed.traceback
    again = kernel.execute(f"%%tape record schema\n{cell}", "schema")
    assert "tool schema lookup changed" in again.summary


def test_every_field_of_the_kit_of_a_real_run_is_there_or_named(kernel):
    assert kernel.execute("%%tape record whole\nprint(ask('hi'), price())", "whole").ok
    made = gaps.report([Cassette.open(kernel.cwd / "kit.tapes" / "whole.tape.yaml")])
    (run,) = made.runs
    told = {each.name: each for each in run.kit}
    for name in ("python", "platform", "library versions", "local modules", "source hash", "execution count", "notebook", "cell id", "environment"):  # fmt: skip
        assert told[name].status == "recorded", told[name]
    for name in ("base clock", "timezone", "random state"):
        assert told[name].status == "pinned", told[name]
    assert told["local modules"].what == "mine" and told["cell id"].what == "whole"
    model, _ = run.calls
    fields = {each.name: each.what for each in model[2]}
    assert (
        fields["tool schemas"].startswith("lookup ")
        and fields["answered model"]
        and fields["start"]
    )
    assert {"first byte", "end", "attempt", "lineage", "host"} <= set(fields)
