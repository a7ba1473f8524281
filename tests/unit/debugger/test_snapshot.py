"""The notebook as it was before a cell: put back as often as wanted, with the very same objects."""

import os
import random
import sys
import types

import anthropic
import pytest

from tape_jupyter.dataflow.tracing.variables import Variables
from tape_jupyter.debugger.snapshot import Lost, NamespaceSnapshot, reached
from tests.harness.provider import Provider


@pytest.fixture
def shell(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [1, {"a": [2]}]
    return types.SimpleNamespace(
        user_ns={"rows": rows, "same": rows, "count": 1, "_oh": {1: "one"}, "_i": "source"}
    )


def before(shell, source):
    variables = Variables(shell.user_ns)
    return NamespaceSnapshot(shell, variables, reached(source, variables))


def test_names_objects_and_results_are_put_back_again_and_again(shell):
    rows = shell.user_ns["rows"]
    kept = before(shell, "rows.append(3)\nrows[1]['a'].append(4)\ncount = 2\nnew = 1\ndel same")
    for _ in range(2):
        rows.append(3)
        rows[1]["a"].append(4)
        shell.user_ns.update(count=2, new=1, _i="later")
        del shell.user_ns["same"]
        shell.user_ns["_oh"][2] = "two"
        assert kept.restore() == Lost([], [])
        assert shell.user_ns["rows"] is rows is shell.user_ns["same"] and rows == [1, {"a": [2]}]
        assert shell.user_ns["count"] == 1 and "new" not in shell.user_ns
        assert shell.user_ns["_oh"] == {1: "one"} and shell.user_ns["_i"] == "later"
    kept.end()


def test_files_that_were_written_are_what_they_were(shell, tmp_path):
    (tmp_path / "old.txt").write_text("before")
    kept = before(shell, "open('old.txt', 'w')")
    for _ in range(2):
        with open("old.txt", "w") as old, open("new.txt", "w") as new:
            old.write("after")
            new.write("made")
        assert kept.restore() == Lost([], [])
        assert (tmp_path / "old.txt").read_text() == "before" and not (
            tmp_path / "new.txt"
        ).exists()
    kept.end()


def test_ambient_state_and_modules_that_it_names_are_put_back(shell, monkeypatch):
    module = types.ModuleType("their_settings")
    module.level = 1
    monkeypatch.setitem(sys.modules, "their_settings", module)
    shell.user_ns["settings"] = module
    random.seed(1)
    kept = before(shell, "settings.level = 2\nimport os, random")
    drawn = random.random()
    os.environ["STEPPED"] = "yes"
    module.level = 2
    kept.restore()
    assert "STEPPED" not in os.environ and module.level == 1 and random.random() == drawn
    kept.end()


def test_what_has_no_copy_is_named_where_it_has_changed(shell):
    class Closing:
        def __del__(self):
            pass

    shell.user_ns |= {"lines": (line for line in "ab"), "closing": Closing(), "idle": Closing()}
    kept = before(shell, "next(lines)\nclosing.used = idle")
    next(shell.user_ns["lines"])
    shell.user_ns["closing"].used = True
    assert kept.restore() == Lost(["closing", "lines"], [])
    kept.end()


def test_a_client_that_was_only_asked_is_not_said_to_be_lost(shell):
    with Provider() as provider, anthropic.Anthropic(api_key="sk", base_url=provider.url) as claude:
        shell.user_ns["claude"] = claude
        kept = before(shell, "claude.messages.create()")
        asked = [{"role": "user", "content": "hi"}]
        claude.messages.create(max_tokens=9, model="m", messages=asked)
        assert kept.restore() == Lost([], [])
        claude.api_key = "another"
        assert kept.restore() == Lost(["claude"], [])
        kept.end()
