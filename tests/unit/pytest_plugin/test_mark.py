"""`@pytest.mark.tape` and the `tape` fixture, in test sessions of their own, as somebody else's project has them."""

import os
import re
import subprocess
import sys

import pytest

from tape_jupyter.pytest_plugin import mark
from tape_jupyter.cassette.cassette import Cassette
from tests.harness.notebook import ROOT, clean_env
from tests.harness.provider import Provider

pytest_plugins = ["pytester"]
ASK = """
import httpx, json, pytest, time, threading
def ask(text, url="URL"):
    body = {"model": "claude-sonnet-4-5", "max_tokens": 9, "messages": [{"role": "user", "content": text}]}
    return httpx.post(f"{url}/v1/messages", json=body).json()["content"][0]["text"]
async def ask_async(text, url="URL"):
    body = {"model": "claude-sonnet-4-5", "max_tokens": 9, "messages": [{"role": "user", "content": text}]}
    async with httpx.AsyncClient() as client:
        return (await client.post(f"{url}/v1/messages", json=body)).json()["content"][0]["text"]
"""


class Project:
    """A project of somebody's: its tests, the provider that they ask, and pytest run on them as a shell does."""

    def __init__(self, pytester, provider):
        self.pytester, self.provider = pytester, provider

    def file(self, source, name="test_it"):
        self.pytester.makepyfile(**{name: ASK.replace("URL", self.provider.url) + source})
        return self

    def run(self, *words):
        """Every warning is an error. No plugin but ours, and those that are named: the others take seconds to load."""
        return self.pytester.runpytest_subprocess(
            "-p", "tape_jupyter.pytest_plugin", "-W", "error", *words
        )

    def asked(self):
        return len(self.provider.requests)

    def cassettes(self):
        found = sorted((self.pytester.path / "tapes").rglob("*.tape.yaml"))
        return [path.relative_to(self.pytester.path).as_posix() for path in found]


@pytest.fixture
def project(pytester, provider, monkeypatch):
    for name in [name for name in os.environ if re.search("KEY|TOKEN|^TAPE_|^PYTEST", name)]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]))
    return Project(pytester, provider)


PLAIN = {  # files of one project: recorded in one session, replayed in another with the provider gone
    "one": """
@pytest.mark.tape
def test_one():
    assert ask("one")
""",
    "fixture": """
import tape_jupyter
@tape_jupyter.tool
def lookup_order(order, user):
    return {"order": order, "user": user}
def test_one(tape):
    with tape_jupyter.span("plan"):
        said = ask("one")
    assert [(each.kind, each.name) for each in tape.calls] == [("model", "claude-sonnet-4-5")]
    lookup_order(7, user="ada")
    model, tool = tape.calls
    assert model.asked["messages"][0]["content"] == "one" and model.text == said and model.path == ("plan",)
    assert model.status == 200 and not model.error
    assert tool.kind == "tool" and tool.name == "lookup_order" and tool.asked == {"order": 7, "user": "ada"}
    assert tool.answered == {"order": 7, "user": "ada"}
    assert {each.kind for each in tape.spans} == {"cell", "span", "model", "tool"}
    assert tape.path.name == "test_one.tape.yaml" and len(tape.cassette.calls) == 2
""",
    "parameters": """
@pytest.mark.tape
class TestOrders:
    @pytest.mark.parametrize("text", ["one", "two / three", "Two / three"])
    def test_ask(self, text, tape):
        assert ask(text) and len(tape.calls) == 1

@pytest.mark.parametrize("text", ["one", pytest.param("two", marks=pytest.mark.tape)])
def test_a_mark_on_one_parameter_tapes_that_one_alone(text, request):
    assert ("tape" in request.fixturenames) == (text == "two")
    if text == "two":
        ask(text)
""",
    "names": """
@pytest.mark.tape("shared")
def test_one():
    ask("one")
@pytest.mark.tape("tapes/by/path.tape.yaml")
def test_two():
    ask("two")
""",
    "asyncio": """
import asyncio
@pytest.fixture
def anyio_backend(): return "asyncio"
@pytest.mark.anyio
@pytest.mark.tape
async def test_one(tape):
    one, two = await asyncio.gather(ask_async("one"), ask_async("two"))
    assert one != two and len(tape.calls) == 2
    start = time.monotonic()
    await asyncio.sleep(0.1)
    assert time.monotonic() - start >= 0.1
""",
    "threads": """
from concurrent.futures import ThreadPoolExecutor
@pytest.mark.tape
def test_one(tape):
    with ThreadPoolExecutor(4) as pool:
        assert len(set(pool.map(ask, "abcd"))) == 4
    found = []
    thread = threading.Thread(target=lambda: found.append(ask("late")))
    thread.start(); thread.join()
    assert found and len(tape.calls) == 5
""",
    "unittest": """
import unittest
@pytest.mark.tape
class TestOrders(unittest.TestCase):
    def test_ask(self):
        assert ask("one")
""",
}
CASSETTES = {
    "one": ["test_one"], "fixture": ["test_one"], "names": ["shared"], "asyncio": ["test_one"], "threads": ["test_one"],
    "unittest": ["TestOrders-test_ask"],
}  # fmt: skip


@pytest.fixture(scope="module")
def sessions(tmp_path_factory):
    """That project, recorded and then replayed: its folder, and what either session says of each test."""
    folder = tmp_path_factory.mktemp("project")
    words = [
        sys.executable,
        "-m",
        "pytest",
        "-rA",
        "-W",
        "error",
        "-p",
        "tape_jupyter.pytest_plugin",
        "-p",
        "anyio",
    ]
    env = {**clean_env(folder), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    with Provider() as provider:
        for name, source in PLAIN.items():
            (folder / f"test_{name}.py").write_text(ASK.replace("URL", provider.url) + source)
        recorded = subprocess.run(
            [*words, "--tape-mode", "once"], env=env, cwd=folder, capture_output=True, text=True
        )
    replayed = subprocess.run(words, env=env, cwd=folder, capture_output=True, text=True)
    return folder, recorded.stdout, replayed.stdout


@pytest.mark.parametrize("name", PLAIN)
def test_what_is_recorded_once_replays_with_the_provider_gone(sessions, name):
    _, *said = sessions
    tests = PLAIN[name].count("def test_") + (3 if name == "parameters" else 0)
    for session in said:
        assert session.count(f"PASSED test_{name}.py::") == tests, session


@pytest.mark.parametrize("name", CASSETTES)
def test_its_cassette_lies_beside_it_by_module_and_test(sessions, name):
    folder = sessions[0] / "tapes" / f"test_{name}"
    assert (
        sorted(path.name.removesuffix(".tape.yaml") for path in folder.iterdir()) == CASSETTES[name]
    )


def test_every_parameter_has_a_cassette_of_its_own_and_a_path_is_a_path(sessions):
    names = {path.name for path in (sessions[0] / "tapes" / "test_parameters").iterdir()}
    assert len(names) == 4 and "TestOrders-test_ask-one.tape.yaml" in names
    assert (sessions[0] / "tapes" / "by" / "path.tape.yaml").exists()


def test_without_a_recording_the_test_does_not_run_and_says_how_to_record_it(project):
    project.file("@pytest.mark.tape\ndef test_one():\n    ask('one')")
    done = project.run()
    done.assert_outcomes(errors=1)
    done.stdout.fnmatch_lines(
        ["*no recording of this test (tapes/test_it/test_one.tape.yaml)*--tape-mode once*"]
    )
    assert project.asked() == 0 and "pytest_taped.py" not in done.stdout.str()


SWALLOWED = """
@pytest.mark.tape
def test_one():
    import os
    text = os.environ.get("SAY", "Which region lost most?")
    try:
        ask(text)
    except BaseException:
        pass
"""


@pytest.mark.slow
def test_a_miss_fails_the_test_with_the_nearest_call_even_where_it_was_swallowed(
    project, monkeypatch
):
    project.file(SWALLOWED).run("--tape-mode", "once").assert_outcomes(passed=1)
    before = project.asked()
    monkeypatch.setenv("SAY", "Which region won most?")
    done = project.run()
    done.assert_outcomes(failed=1)
    said = done.stdout.str()
    done.stdout.fnmatch_lines(
        [
            "*UnmatchedCall*" if "UnmatchedCall" in said else "*is not on the tape*",
            "*messages?0?.content*",
        ]
    )
    assert "lost most" in said and "won most" in said and "in test_one" in said
    assert "pytest_taped.py" not in said and "httpx/_transports" not in said
    assert project.asked() == before


@pytest.mark.night
def test_a_miss_that_reached_pytest_is_told_the_same_way(project, monkeypatch):
    source = (
        "@pytest.mark.tape\ndef test_one():\n    import os\n    ask(os.environ.get('SAY', 'one'))"
    )
    project.file(source).run("--tape-mode", "once").assert_outcomes(passed=1)
    monkeypatch.setenv("SAY", "two")
    done = project.run()
    done.assert_outcomes(failed=1)
    assert "is not on the tape" in done.stdout.str() and "boundary.py" not in done.stdout.str()


def test_a_failed_assertion_keeps_its_own_report_and_the_miss_stands_beside_it(
    project, monkeypatch
):
    source = """
@pytest.mark.tape
def test_one():
    import os
    try:
        found = ask(os.environ.get("SAY", "one"))
    except BaseException:
        found = ""
    assert found
"""
    project.file(source).run("--tape-mode", "once").assert_outcomes(passed=1)
    monkeypatch.setenv("SAY", "two")
    done = project.run()
    done.assert_outcomes(failed=1)
    assert "assert ''" in done.stdout.str() and "is not on the tape" in done.stdout.str()


def test_modes_of_the_mark_and_of_the_command_line(project, monkeypatch):
    project.file(
        "@pytest.mark.tape(mode='record')\ndef test_one(tape):\n    ask('one')\n    print('mode', tape.mode)"
    )
    project.run().assert_outcomes(passed=1)
    project.run().assert_outcomes(passed=1)
    assert project.asked() == 2
    project.run("--tape-mode", "replay").assert_outcomes(passed=1)
    monkeypatch.setenv("TAPE_MODE", "replay")
    project.run("--tape-mode", "record").assert_outcomes(passed=1)
    assert project.asked() == 2
    assert project.run("--tape-mode", "frob").ret == 4


@pytest.mark.slow
def test_new_episodes_plays_what_is_known_and_adds_the_rest(project, monkeypatch):
    project.file(
        "@pytest.mark.tape\ndef test_one():\n    import os\n    for text in os.environ['SAY']: ask(text)"
    )
    monkeypatch.setenv("SAY", "a")
    project.run("--tape-mode", "once").assert_outcomes(passed=1)
    monkeypatch.setenv("SAY", "ab")
    project.run().assert_outcomes(failed=1)
    project.run("--tape-mode", "new_episodes").assert_outcomes(passed=1)
    assert project.asked() == 2
    project.run().assert_outcomes(passed=1)


@pytest.mark.slow
def test_a_take_and_other_options_of_replaying_are_the_marks_too(project):
    project.file("@pytest.mark.tape\ndef test_one():\n    ask('one')").run("--tape-mode", "once")
    cassette = Cassette.open(project.pytester.path / "tapes/test_it/test_one.tape.yaml")
    cassette.override(cassette.calls[0], text="angry", take="mood")
    project.file(
        "@pytest.mark.tape(take='mood')\ndef test_one():\n    assert ask('one') == 'angry'"
    )
    project.run().assert_outcomes(passed=1)
    project.file("@pytest.mark.tape(tkae='mood')\ndef test_one():\n    ask('one')")
    done = project.run()
    done.assert_outcomes(errors=1)
    done.stdout.fnmatch_lines(["*has no 'tkae': did you mean take?*"])


@pytest.mark.slow
def test_what_other_fixtures_ask_is_on_the_tape_and_a_sessions_own_server_is_not(project):
    project.file("""
@pytest.fixture(scope="session")
def server():
    return ask("for the session")
@pytest.fixture
def greeting(server):
    yield ask("before")
    ask("after")
@pytest.mark.tape
def test_one(greeting):
    ask("within")
""")
    project.run("--tape-mode", "once").assert_outcomes(passed=1)
    before = project.asked()
    project.run().assert_outcomes(passed=1)
    assert before == 4 and project.asked() == 5
    path = project.pytester.path / "tapes/test_it/test_one.tape.yaml"
    assert len(Cassette.open(path).calls) == 3


@pytest.mark.night
def test_a_miss_in_a_fixtures_teardown_is_an_error_of_the_test(project, monkeypatch):
    project.file("""
import os
@pytest.fixture
def greeting():
    yield
    try: ask(os.environ.get("SAY", "after"))
    except BaseException: pass
@pytest.mark.tape
def test_one(greeting):
    ask("within")
""")
    project.run("--tape-mode", "once").assert_outcomes(passed=1)
    monkeypatch.setenv("SAY", "otherwise")
    project.run().assert_outcomes(passed=1, errors=1)


@pytest.mark.night
def test_workers_of_xdist_replay_side_by_side(project):
    project.file("""
@pytest.mark.tape
@pytest.mark.parametrize("text", list("abcdef"))
def test_ask(text):
    assert ask(text)
""")
    project.run("-p", "xdist", "--tape-mode", "once", "-n", "2").assert_outcomes(passed=6)
    project.provider.stop()
    project.run("-p", "xdist", "-n", "2").assert_outcomes(passed=6)


def test_an_ordinary_test_beside_it_is_left_alone_and_a_skip_is_a_skip(project):
    project.file("""
@pytest.mark.tape
def test_one():
    ask("one")
def test_two():
    ask("live")
@pytest.mark.tape
def test_three():
    pytest.skip("not today")
""")
    project.run("--tape-mode", "once").assert_outcomes(passed=2, skipped=1)
    before = project.asked()
    project.run("-k", "one or two").assert_outcomes(passed=2)
    assert project.asked() == before + 1


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("test_a", "test_a"),
        ("test_a[one]", "test_a-one"),
        ("TestB.test_a", "TestB-test_a"),
        ("test_a[1-x]", "test_a-1-x"),
    ],
)
def test_plain_names_are_file_names(name, file):
    assert mark.file_name(name) == file


def test_names_that_would_fall_together_do_not():
    names = [
        "test_a[x/y]",
        "test_a[x-y]",
        "test_a[x y]",
        "test_a[X-Y]",
        "test_a[é]",
        "test_a[]",
        "test_a[" + "x" * 300 + "]",
    ]
    files = [mark.file_name(name) for name in names]
    assert len({file.lower() for file in files}) == len(files) and all(
        re.fullmatch("[A-Za-z0-9_-]{1,110}", f) for f in files
    )
