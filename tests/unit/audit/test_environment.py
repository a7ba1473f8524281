import hashlib
import importlib
import os
import random
import subprocess
import sys
import time
import types
from datetime import UTC, datetime
from types import ModuleType

import pytest

from tape_jupyter.audit import installed_packages, environment
from tape_jupyter.cassette import records
from tape_jupyter.isolation.network_guard import Guard, Policy
from tests.harness.timing import ratio


def git(folder, *arguments):
    names = {
        "GIT_AUTHOR_NAME": "me",
        "GIT_AUTHOR_EMAIL": "me@h",
        "GIT_COMMITTER_NAME": "me",
        "GIT_COMMITTER_EMAIL": "me@h",
    }
    done = subprocess.run(
        ["git", *arguments],
        cwd=folder,
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, **names},
    )
    return done.stdout.strip()


@pytest.fixture
def repo(tmp_path):
    git(tmp_path, "init", "-q", "-b", "main")
    (tmp_path / "code.py").write_text("x = 1\n")
    (tmp_path / "n.tapes").mkdir()
    (tmp_path / "n.tapes" / "main.tape.yaml").write_text("old\n")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-q", "-m", "first")
    return tmp_path


@pytest.fixture(autouse=True)
def _fresh_look_at_git():
    environment._read_git_state.cache_clear()


# ---- the moment


def test_the_clock_is_utc_with_the_zone_told_beside_it():
    before = datetime.now(UTC)
    told = environment.collect_fast()["clock"]
    assert before <= datetime.fromisoformat(told["utc"]) <= datetime.now(UTC)
    assert told["zone"] and told["offset"][0] in "+-"


def test_the_state_of_random_is_told_by_a_digest_that_moves_with_it():
    random.seed(7)
    first = environment.collect_fast()["random"]["random"]
    random.random()
    second = environment.collect_fast()["random"]["random"]
    random.seed(7)
    assert first == environment.collect_fast()["random"]["random"] != second


def test_numpys_state_is_told_too_and_untouched():
    numpy = pytest.importorskip("numpy")
    numpy.random.seed(7)
    first = environment.collect_fast()["random"]["numpy"]
    assert first == environment.collect_fast()["random"]["numpy"]
    drawn = numpy.random.random()
    assert first != environment.collect_fast()["random"]["numpy"]
    numpy.random.seed(7)
    assert drawn == numpy.random.random()


def test_the_moment_costs_a_few_digests_of_randoms_state():
    environment.collect_fast()
    digest = lambda: hashlib.sha256(repr(random.getstate()).encode()).hexdigest()
    assert ratio(environment.collect_fast, digest, rounds=10) < 12  # measured: 1.2


def test_generators_that_the_notebook_holds_are_told_by_name():
    numpy = pytest.importorskip("numpy")
    namespace = {"rng": numpy.random.default_rng(7), "dice": random.Random(7), "x": 1}
    told = environment.collect(namespace)["generators"]
    assert set(told) == {"rng", "dice"}
    assert (
        told["rng"]
        == environment.collect({"rng": numpy.random.default_rng(7)})["generators"]["rng"]
    )


def test_a_library_that_another_thread_just_imports_costs_nothing_of_what_is_told(monkeypatch):
    half = types.ModuleType("numpy.random")
    half.__spec__ = types.SimpleNamespace(_initializing=True)
    monkeypatch.setitem(sys.modules, "numpy.random", half)
    assert "numpy" not in environment.collect_fast()["random"]
    assert set(environment.collect({"dice": random.Random(7)})["generators"]) == {"dice"}


# ---- the rest


def test_a_kit_is_plain_structure_without_empty_parts(tmp_path):
    told = environment.collect({}, {"user_id": "u1"}, folder=tmp_path)
    assert told["user_id"] == "u1"
    assert told["python"].startswith(f"{sys.version_info.major}.{sys.version_info.minor}.")
    assert "git" not in told and "generators" not in told

    def plain(value):
        if isinstance(value, dict):
            return all(isinstance(k, str) and plain(v) for k, v in value.items())
        return (
            all(map(plain, value))
            if isinstance(value, list)
            else isinstance(value, (str, bool, int))
        )

    assert plain(told)


def test_after_the_first_time_the_whole_kit_costs_a_few_looks_at_the_modules(repo):
    environment.collect(folder=repo)
    looked = lambda: [os.path.exists(path) for _, path in installed_packages.imported_modules()]
    assert (
        ratio(lambda: environment.collect(folder=repo), looked) < 6
    )  # measured: 0.6; the first time: 90


def test_tags_never_replace_what_was_found(tmp_path):
    assert environment.collect({}, {"python": "2.7"}, folder=tmp_path)["python"] != "2.7"


def test_values_of_variables_land_only_if_they_are_settings():
    told = environment.settings_of_environment(
        {
            "LANG": "C.UTF-8",
            "PYTHONHASHSEED": "0",
            "OPENAI_API_KEY": "sk-1",
            "OPENAI_BASE_URL": "http://h/v1",
        }
        | {
            "AWS_REGION": "us-east-1",
            "PROXY_BASE_URL": "http://me:pw@h/",
            "X_ENDPOINT": "https://h/?sig=1",
            "SECRET": "s",
        }
    )
    assert told == {
        "AWS_REGION": "us-east-1",
        "LANG": "C.UTF-8",
        "OPENAI_BASE_URL": "http://h/v1",
        "PYTHONHASHSEED": "0",
    }


def test_of_other_variables_only_the_names_land(tmp_path, monkeypatch):
    monkeypatch.setenv("MY_API_KEY", "sk-very-secret-1234")
    told = environment.collect(folder=tmp_path)
    assert "MY_API_KEY" in told["variables"].split()
    assert "sk-very-secret-1234" not in repr(told)


def test_changed_tells_what_differs_from_an_earlier_kit():
    told = records.kit_like("r-2", {"a": 1, "b": 2}, {"run": "r-1", "kit": {"a": 1, "b": 1}})
    assert told["has"] == {"b": 2}


# ---- git


def test_a_clean_tree_is_told_by_its_commit(repo):
    told = environment.git(repo)
    assert told == {"commit": git(repo, "rev-parse", "HEAD"), "branch": "main", "dirty": False}
    (repo / "sub").mkdir()
    assert environment.git(repo / "sub") == told


def test_changes_not_committed_are_told_by_a_digest(repo):
    (repo / "code.py").write_text("x = 2\n")
    first = environment.git(repo)
    assert first["dirty"] is True
    environment._read_git_state.cache_clear()
    (repo / "code.py").write_text("x = 3\n")
    assert environment.git(repo)["diff"] != first["diff"]


def test_a_cassette_that_grew_does_not_make_the_tree_dirty(repo):
    (repo / "n.tapes" / "main.tape.yaml").write_text("new\n")
    assert environment.git(repo)["dirty"] is False


def test_a_new_commit_is_seen_at_once(repo):
    before = environment.git(repo)["commit"]
    (repo / "code.py").write_text("x = 2\n")
    git(repo, "commit", "-qam", "second")
    assert environment.git(repo)["commit"] != before


def test_outside_a_repository_there_is_no_git_and_no_child_process(tmp_path):
    seen = []
    guard = Guard()
    guard.arm(Policy("record", on_event=seen.append))
    try:
        assert environment.git(tmp_path) == {}
    finally:
        guard.disarm()
    assert seen == []


def test_our_own_git_is_not_reported_by_an_armed_guard(repo):
    seen = []
    guard = Guard()
    guard.arm(Policy("record", on_event=seen.append))
    try:
        assert environment.git(repo)["commit"]
    finally:
        guard.disarm()
    assert seen == []


def test_a_repository_that_git_cannot_read_is_said(tmp_path):
    (tmp_path / ".git").write_text("nonsense")
    assert "unknown" in environment.git(tmp_path)


def test_without_git_on_the_machine_that_is_said(repo, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    assert environment.git(repo) == {"unknown": "git is not installed"}


def test_nothing_that_the_repository_configures_is_run(repo):
    trap = repo / "trap.sh"
    trap.write_text(f"#!/bin/sh\ntouch {repo}/sprung\n")
    trap.chmod(0o755)
    for key in ("core.fsmonitor", "diff.external"):
        git(repo, "config", key, str(trap))
    (repo / "code.py").write_text("x = 2\n")
    assert environment.git(repo)["dirty"] is True
    assert not (repo / "sprung").exists()


@pytest.mark.parametrize("kind", ["clean", "process", "smudge"])
@pytest.mark.parametrize("place", ["own", "included", "worktree", "submodule"])
def test_no_filter_of_a_repository_that_was_handed_over_is_run(repo, tmp_path, kind, place):
    trap = tmp_path / "trap.sh"
    trap.write_text(f"#!/bin/sh\ntouch {tmp_path}/sprung\ncat\n")
    trap.chmod(0o755)
    inside = repo
    if place == "submodule":
        inside = repo / "part"
        inside.mkdir()
        git(inside, "init", "-q")
        (inside / "code.py").write_text("x = 1\n")
        git(inside, "add", ".")
        git(inside, "commit", "-q", "-m", "one")
        git(repo, "add", "part")
        git(repo, "commit", "-q", "-m", "part")
    settings = {"included": ("-f", str(tmp_path / "more")), "worktree": ("--worktree",)}
    if place == "included":
        git(inside, "config", "include.path", str(tmp_path / "more"))
    if place == "worktree":
        git(inside, "config", "extensions.worktreeConfig", "true")
    git(inside, "config", *settings.get(place, ()), f"filter.a name.{kind}", str(trap))
    git(inside, "config", *settings.get(place, ()), "filter.X.required", "true")
    (inside / ".git" / "info" / "attributes").write_text("* filter=X\n")
    git(inside, "config", *settings.get(place, ()), f"filter.X.{kind}", str(trap))
    (inside / "code.py").write_text("x = 2\n")
    found = environment.git(repo)
    assert "unknown" not in found
    assert found["dirty"] is (place != "submodule")
    assert not (tmp_path / "sprung").exists()


def test_a_filter_that_cannot_be_turned_off_keeps_git_from_being_asked(repo, tmp_path):
    git(repo, "config", "filter.a=b.clean", f"touch {tmp_path}/sprung")
    (repo / ".git" / "info" / "attributes").write_text("* filter=a=b\n")
    (repo / "code.py").write_text("x = 2\n")
    assert "'a=b' cannot be turned off" in environment.git(repo)["unknown"]
    assert not (tmp_path / "sprung").exists()


# ---- modules


def test_imported_modules_of_ones_own_are_told_by_digest(tmp_path, monkeypatch):
    (tmp_path / "helper_of_mine.py").write_text("A = 1\n")
    (tmp_path / "unused_of_mine.py").write_text("B = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    importlib.import_module("helper_of_mine")
    monkeypatch.delitem(sys.modules, "helper_of_mine", raising=False)
    importlib.import_module("helper_of_mine")
    digest = hashlib.sha256(b"A = 1\n").hexdigest()[:16]
    assert environment.local_modules(tmp_path) == {"helper_of_mine": digest}
    (tmp_path / "helper_of_mine.py").write_text("A = 22\n")
    os.utime(tmp_path / "helper_of_mine.py", ns=(time.time_ns(), time.time_ns() + 10**9))
    assert environment.local_modules(tmp_path)["helper_of_mine"] != digest
    monkeypatch.delitem(sys.modules, "helper_of_mine")


def test_installed_packages_and_we_ourselves_are_not_local_modules():
    from pathlib import Path

    assert not any(
        name.startswith(("tape_jupyter", "pytest")) for name in environment.local_modules(Path("/"))
    )


# ---- what people told


def test_what_people_told_is_told_apart_from_what_was_found(tmp_path):
    told = environment.collect(
        {}, {"user_id": "u1", "flags": {"new": True}, "redact": ["email"]}, folder=tmp_path
    )
    assert environment.tags_of({**told, "state of numpy": "123"}) == {
        "user_id": "u1",
        "flags": {"new": True},
    }


def test_what_was_imported_is_looked_at_once_and_not_by_each_cell(tmp_path, monkeypatch):
    """The program waits meanwhile: a session that has LangChain and pandas holds some 5,000 modules."""

    def steps():
        environment.collect(folder=tmp_path)  # the first time it looks
        taken = []
        sys.setprofile(lambda *_: taken.append(1))
        try:
            environment.collect(folder=tmp_path)
        finally:
            sys.setprofile(None)
        return len(taken)

    before = steps()
    for number in range(3000):
        module = ModuleType(f"of_mine_{number}")
        module.__file__ = f"/x/site-packages/of_mine_{number}.py"
        monkeypatch.setitem(sys.modules, module.__name__, module)
    assert steps() < before + 1000, "where each is looked at: 15,000 more"
