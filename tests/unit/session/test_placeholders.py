"""Placeholders: there while a cell replays, gone afterwards, never in the way of a real key."""

import os

import pytest

from tape_jupyter.dataflow.tracing import ambient
from tape_jupyter.session import placeholders
from tape_jupyter.secrets.registry import Secrets, placeholder


@pytest.fixture(autouse=True)
def bare(monkeypatch):
    for name in [*os.environ]:
        if name.endswith(("_KEY", "_TOKEN", "_ID", *placeholders.SETTINGS)):
            monkeypatch.delenv(name)


def run(variables="", **environment):
    return {"run": "r", "kit": {"environment": environment, "variables": variables}}


def test_the_usual_keys_are_there_until_they_are_withdrawn():
    before = dict(os.environ)
    withdraw = placeholders.supply(Secrets(), ())
    assert {name: os.environ[name] for name in placeholders.USUAL} == {
        name: placeholder(name) for name in placeholders.USUAL
    }
    withdraw()
    withdraw()
    assert dict(os.environ) == before


def test_a_real_key_stays_as_it_is(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-real")
    withdraw = placeholders.supply(Secrets(), ())
    assert os.environ["OPENAI_API_KEY"] == "sk-real"
    withdraw()
    assert os.environ["OPENAI_API_KEY"] == "sk-real"


def test_what_the_program_itself_set_meanwhile_is_left_to_it():
    withdraw = placeholders.supply(Secrets(), ())
    os.environ["OPENAI_API_KEY"] = "set in the cell"
    del os.environ["GROQ_API_KEY"]
    withdraw()
    assert os.environ.pop("OPENAI_API_KEY") == "set in the cell"
    assert "ANTHROPIC_API_KEY" not in os.environ


def test_a_placeholder_leaves_the_marker_of_the_real_key():
    real, standing_in = Secrets(), Secrets()
    real.learn("OPENAI_API_KEY", "sk-proj-the-real-one-0123456789")
    withdraw = placeholders.supply(standing_in, ())
    sent = os.environ["OPENAI_API_KEY"]
    withdraw()
    assert (
        standing_in.scrub(f"Bearer {sent}")[0]
        == real.scrub("Bearer sk-proj-the-real-one-0123456789")[0]
    )


GOOGLE = {"GEMINI_API_KEY", "GOOGLE_API_KEY"}


@pytest.mark.parametrize(
    ("real", "recorded", "supplied"),
    [
        ("", "", "GEMINI_API_KEY"),
        ("", "GOOGLE_API_KEY", "GOOGLE_API_KEY"),
        ("", "GEMINI_API_KEY", "GEMINI_API_KEY"),
        ("GOOGLE_API_KEY", "", ""),
        ("GOOGLE_API_KEY", "GEMINI_API_KEY", ""),
        ("GEMINI_API_KEY", "GOOGLE_API_KEY", ""),
    ],
)
def test_of_googles_two_names_one_is_set_since_its_sdk_warns_of_both(
    monkeypatch, real, recorded, supplied
):
    if real:
        monkeypatch.setenv(real, "AIza-real")
    withdraw = placeholders.supply(Secrets(), [run(f"PATH {recorded}")])
    there = GOOGLE & os.environ.keys()
    withdraw()
    assert there == {name for name in (real, supplied) if name}


def test_of_googles_two_names_a_cell_has_the_recorded_one_whatever_the_session_began_with():
    session = placeholders.supply(Secrets(), ())
    assert GOOGLE & os.environ.keys() == {"GEMINI_API_KEY"}
    cell = placeholders.supply(Secrets(), [run("PATH GOOGLE_API_KEY")])
    assert GOOGLE & os.environ.keys() == {"GOOGLE_API_KEY"} == GOOGLE & ambient.LENT.keys()
    cell()
    cell()
    assert GOOGLE & os.environ.keys() == {"GEMINI_API_KEY"} == GOOGLE & ambient.LENT.keys()
    session()
    assert not GOOGLE & os.environ.keys() and not GOOGLE & ambient.LENT.keys()


def test_a_key_of_any_name_that_was_there_while_recording_is_there_in_replay():
    withdraw = placeholders.supply(Secrets(), [run("HOME MYCORP_API_KEY VECTOR_DB_TOKEN GPG_KEY")])
    assert os.environ["MYCORP_API_KEY"] and os.environ["VECTOR_DB_TOKEN"]
    assert "GPG_KEY" not in os.environ
    withdraw()
    assert "MYCORP_API_KEY" not in os.environ


def test_settings_of_the_recording_stand_in_and_are_no_secrets(monkeypatch):
    monkeypatch.setenv("AWS_REGION", "here-1")
    secrets = Secrets()
    recorded = run(
        OPENAI_BASE_URL="http://127.0.0.1:8099/v1",
        AWS_REGION="us-east-1",
        LANG="C",
        AWS_DEFAULT_REGION="us-east-1",
    )
    withdraw = placeholders.supply(secrets, [recorded])
    assert os.environ["OPENAI_BASE_URL"] == "http://127.0.0.1:8099/v1"
    assert (os.environ["AWS_REGION"], os.environ["AWS_DEFAULT_REGION"]) == ("here-1", "us-east-1")
    assert secrets.scrub("http://127.0.0.1:8099/v1 us-east-1") == (
        "http://127.0.0.1:8099/v1 us-east-1",
        False,
    )
    withdraw()
    assert "OPENAI_BASE_URL" not in os.environ


@pytest.mark.parametrize(
    "address",
    ["https://evil.example/v1", "evil.example:443", "https://api.openai.com.evil.example"],
)
def test_an_address_in_a_strangers_cassette_is_not_put_into_the_environment(monkeypatch, address):
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    withdraw = placeholders.supply(Secrets(), [run(OPENAI_BASE_URL=address)])
    assert "OPENAI_BASE_URL" not in os.environ
    withdraw()


@pytest.mark.parametrize("kit", [None, "text", {}, {"environment": "x", "variables": ["a"]}])
def test_a_strange_kit_supplies_nothing_and_harms_nothing(kit):
    before = dict(os.environ)
    placeholders.supply(Secrets(), [{"run": "r", "kit": kit}])()
    assert dict(os.environ) == before


def test_what_is_lent_to_a_cell_is_no_change_that_the_cell_made(monkeypatch):
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    before = ambient.take_ambient()["environment"]
    withdraw = placeholders.supply(Secrets(), ())
    assert "ANTHROPIC_API_KEY" in os.environ and ambient.take_ambient()["environment"] == before
    ambient.restore_part("environment", before)
    assert "ANTHROPIC_API_KEY" in os.environ
    withdraw()
    assert "ANTHROPIC_API_KEY" not in os.environ and not ambient.LENT
