"""Feature flags that a cell evaluates are on its run, whether OpenFeature was imported before or after."""

import asyncio

import pytest

from tape_jupyter.session.session import TapeSession
from tests.harness.provider import Provider
from tests.harness.taped_cells import ask, on_tape, taped

openfeature = pytest.importorskip("openfeature")


@pytest.fixture
def client():
    from openfeature import api
    from openfeature.provider.in_memory_provider import InMemoryFlag, InMemoryProvider

    flags = {
        "new_prompt": InMemoryFlag("on", {"on": True, "off": False}),
        "tone": InMemoryFlag("a", {"a": "warm"}),
    }
    api.set_provider_and_wait(InMemoryProvider(flags))
    yield api.get_client()
    api.clear_providers()


def test_flags_evaluated_in_a_cell_stand_on_its_run(deck, client, tmp_path):
    path = tmp_path / "main.tape.yaml"
    with Provider() as provider, taped(deck, "record", path) as running:
        assert client.get_boolean_value("new_prompt", False) is True
        ask(provider, "hi")
        assert asyncio.run(client.get_string_value_async("tone", "cold")) == "warm"
    assert on_tape(path).ended[running.cell.recording.run]["flags"] == {
        "new_prompt": True,
        "tone": "warm",
    }
    assert running.report.calls[0].tags == {"flags": {"new_prompt": True, "tone": "warm"}}


def test_flags_outside_a_cell_are_nobodys(deck, client, tmp_path):
    path = tmp_path / "main.tape.yaml"
    with Provider() as provider, taped(deck, "record", path) as running:
        ask(provider, "hi")
    assert client.get_boolean_value("new_prompt", False) is True
    assert "flags" not in on_tape(path).ended[running.cell.recording.run]


def test_the_client_is_as_it_was_once_the_tape_is_off(client):
    from openfeature.client import OpenFeatureClient

    before = dict(vars(OpenFeatureClient))
    deck = TapeSession()
    deck.set_session("record")
    assert vars(OpenFeatureClient)["evaluate_flag_details"] is not before["evaluate_flag_details"]
    deck.unhook()
    assert dict(vars(OpenFeatureClient)) == before
