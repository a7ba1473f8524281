"""A tool's recorded call that a replay did not play: the cell fails where the body ran, and a cache may answer."""

import httpx
import pytest

from tests.harness.provider import Provider
from tests.harness.taped_cells import question, taped

HEAD = """
from tests.harness.tool_runs import Witness
ran = Witness()
def agent(*handlers):
    ask("go")
    for handler in handlers:
        handler("ada")
"""
SEND = "def send_mail(to):\n    ran.append(to)\n    return 'sent'\n"


@pytest.fixture(scope="module")
def provider():
    with Provider() as provider:
        yield provider


@pytest.fixture
def notebook(provider):
    """A namespace whose `ask` offers the model one tool, which it asks for."""
    schema = {"type": "object", "properties": {"to": {"type": "string"}}}

    def ask(text):
        tools = [{"name": "send_mail", "input_schema": schema}]
        return httpx.post(f"{provider.url}/v1/messages", json=question(text, tools=tools)).json()

    namespace = {"__name__": "__main__", "ask": ask}
    exec(HEAD + SEND, namespace)
    return namespace


def cell(deck, mode, path, notebook, source):
    with taped(deck, mode, path, source, namespace=notebook) as running:
        exec(source, notebook)
    return running.report


@pytest.fixture
def path(deck, notebook, tmp_path):
    """A recording of one request and one mail."""
    path = tmp_path / "a.tape.yaml"
    assert len(cell(deck, "record", path, notebook, "agent(send_mail)").calls) == 2
    assert notebook["ran"] == ["ada"]
    notebook["ran"].clear()
    return path


def test_a_replay_that_plays_every_call_has_nothing_to_say(deck, notebook, path):
    report = cell(deck, "replay", path, notebook, "agent(send_mail)")
    assert (len(report.calls), report.misses, report.warnings, notebook["ran"]) == (2, [], [], [])


def test_a_tool_defined_after_the_last_request_ran_and_fails_the_cell(deck, notebook, path):
    report = cell(deck, "replay", path, notebook, f"agent()\n{SEND}send_mail('ada')")
    assert notebook["ran"] == ["ada"], "what this is a net for"
    (miss,) = report.misses
    assert (
        "tool send_mail: a played reply asks for it, and a recorded call of it was not played"
        in str(miss)
    )
    assert "it may be that its body ran" in str(miss) and "@tape.tool" in str(miss)


def test_a_tool_that_is_nowhere_to_be_found_is_warned_of(deck, notebook, path):
    del notebook["send_mail"]
    report = cell(deck, "replay", path, notebook, "agent(lambda to: ran.append(to))")
    assert report.misses == [] and notebook["ran"] == ["ada"]
    assert (
        "There is no function of that name here: if the cell called one, its body ran"
        in report.warnings[0]
    )


def test_a_taped_tool_that_the_program_did_not_need_this_time_is_its_own_affair(
    deck, notebook, path
):
    report = cell(deck, "replay", path, notebook, "agent()")
    assert (len(report.calls), report.misses, report.warnings) == (1, [], [])


def test_a_decorated_tool_cannot_have_run(deck, notebook, path):
    exec("import tape_jupyter as tape\n@tape.tool\n" + SEND, notebook)
    report = cell(deck, "replay", path, notebook, "agent()")
    assert (report.misses, report.warnings) == ([], [])


def test_a_cell_that_asked_the_model_for_nothing_left_nothing(deck, notebook, path):
    del notebook["send_mail"]
    report = cell(deck, "replay", path, notebook, "x = 1")
    assert (len(report.calls), report.misses, report.warnings) == (0, [], [])


def test_a_cell_that_raised_has_its_own_error_to_tell(deck, notebook, path):
    with (
        pytest.raises(ZeroDivisionError),
        taped(deck, "replay", path, "x", namespace=notebook) as running,
    ):
        exec(f"agent()\n{SEND}1 / 0", notebook)
    assert running.report.misses == []
