"""Masked values in a match: strong ones by a digest that gives nothing away, weak ones not, credentials never."""

import secrets as entropy
import uuid

import pytest

from tape_jupyter.secrets.masked_values import (
    BITS,
    MaskedValues,
    hidden_in,
    is_signed_token,
    keyed_digest,
    strength,
)
from tape_jupyter.secrets.registry import Secrets

STRONG = [
    "8f3kd92Qx71Wm4Tz9aPq",
    "1b7zz04Lm55Ry2Gh6cVn",
    "9e3bedecc7ba4bfd3db3a39063adafe0f365f696",
]
WEAK = [
    "hunter2",
    "Summer2024!Summer2024!",
    "CorrectHorseBatteryStaple2024",
    "1111111111111111a",
    "20240131123456789012",
    "",
]


@pytest.mark.parametrize("value", STRONG)
def test_what_cannot_be_guessed_is_strong(value):
    assert strength(value) >= BITS and len(keyed_digest("GET h/kv", value)) == 32


@pytest.mark.parametrize("value", WEAK)
def test_what_could_be_guessed_leaves_no_digest(value):
    assert strength(value) < BITS and keyed_digest("GET h/kv", value) == ""


def test_ids_and_tokens_that_machines_make_are_strong():
    made = [str(uuid.UUID(bytes=entropy.token_bytes(16))) for _ in range(300)]
    made += [entropy.token_hex(16) for _ in range(300)]
    assert sum(strength(value) < BITS for value in made) < 6


def test_equal_values_at_two_places_do_not_look_equal():
    assert keyed_digest("GET h/a ?key=", STRONG[0]) != keyed_digest("GET h/b ?key=", STRONG[0])


def test_a_signed_token_takes_no_part():
    token = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhZGEifQ.c2lnbmF0dXJlLW9mLWl0LWFsbA"
    assert is_signed_token(token) and keyed_digest("GET h", token) == ""


def test_credentials_count_by_their_name_and_markers_are_noted():
    secrets = Secrets()
    secrets.learn_environment({"WEATHER_API_KEY": STRONG[0]})
    masked = MaskedValues("GET h", secrets)
    (
        masked.add("?key=", STRONG[0]),
        masked.add("?token=", "<secret:token>"),
        masked.add("?password=", "hunter2"),
    )
    assert masked.parts == ["?key==<secret:WEATHER_API_KEY>"] and not masked.keyed
    assert list(masked.given) == ["?token="] and masked.weak == {"?password=": "hunter2"}


def test_what_was_masked_in_a_structure_is_found_by_its_place():
    secrets = Secrets()
    secrets.pattern(r"C-\d+", "customer")
    before = {"user": {"api_key": STRONG[0]}, "of": ["C-1", "plain"], "access_token": STRONG[1]}
    masked = MaskedValues("tool f", secrets)
    masked.compare(before, secrets.scrub_structure(before)[0])
    assert list(masked.keyed) == ["user.api_key"] and masked.weak == {
        "what `redact` masks (of[0])": "C-1"
    }
    assert STRONG[0] not in repr(masked.parts) and STRONG[1] not in repr(masked.parts)


@pytest.mark.parametrize(
    ("text", "scrubbed", "found"),
    [
        ("a X b", "a <secret:k> b", [("k", "X")]),
        ("X and Y", "<secret:k> and <secret:m>", [("k", "X"), ("m", "Y")]),
        ("plain", "plain", []),
        ("a <secret:k>", "a <secret:k>", []),
        ("otherwise", "a <secret:k> b", [("k", "")]),
    ],
)
def test_hidden_values_are_read_from_between_what_was_kept(text, scrubbed, found):
    assert list(hidden_in(text, scrubbed)) == found
