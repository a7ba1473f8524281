"""A secret that was told before anybody knew it for one is named, with the call that holds it; never shown."""

import httpx
import pytest

import tape_jupyter as tape
from tape_jupyter.session.session import CellRequest
from tests.harness.provider import Scripted

TOKEN = "9944b09199c62bcf9418ad846dd0e4bbdfc6ee4b"


@pytest.fixture
def login(provider):
    json = {"content-type": "application/json"}
    provider.script("/login", Scripted(200, json, [b'{"token":"%s"}' % TOKEN.encode()]))
    provider.script("/me", Scripted(200, json, [b"{}"]))
    return provider


def test_the_call_that_told_it_is_named_with_its_line_and_the_value_is_not(login, tmp_path):
    path = tmp_path / "a.tape.yaml"
    with tape.recording(path) as block:
        token = httpx.post(f"{login.url}/login", json={"user": "ann"}).json()["token"]
        httpx.get(f"{login.url}/me", headers={"Authorization": f"Token {token}"})
    first = tape.open(path).calls[0]
    (said,) = block.report.warnings
    assert (
        f"call {first.id} (a.tape.yaml:{first.line}) was written before authorization was known as a secret"
        in said
    )
    assert TOKEN not in said and "mask it there by hand" in said


def test_nothing_is_said_of_a_secret_that_nothing_holds(login, tmp_path):
    with tape.recording(tmp_path / "a.tape.yaml") as block:
        httpx.get(f"{login.url}/me")
        httpx.get(f"{login.url}/me", headers={"Authorization": "Token 11aa22bb33cc44dd"})
    assert not block.report.warnings


def test_it_is_named_at_a_terminal_too_where_the_next_cell_shows_that_it_is_one(
    deck, login, tmp_path
):
    def cell(source, what):
        ask = CellRequest("record", name="a", start=tmp_path, source=source, typed=True)
        cell = deck.begin(ask)
        told = what()
        return told, deck.end(cell, None).warnings

    token, said = cell("login()", lambda: httpx.post(f"{login.url}/login").json()["token"])
    assert not said
    _, said = cell(
        "me()", lambda: httpx.get(f"{login.url}/me", headers={"Authorization": f"Token {token}"})
    )
    assert len(said) == 1 and "was written before authorization was known as a secret" in said[0]
