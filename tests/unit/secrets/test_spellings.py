import string

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.harness.planted import ENCODINGS, KINDS

from tape_jupyter.secrets import spellings
from tests.harness.timing import passes

FILLER = "lorem ipsum dolor sit amet, consectetur adipiscing elit. " * 40


@given(
    st.text(alphabet=st.characters(exclude_categories=["Cs"]), min_size=8, max_size=60),
    st.sampled_from(sorted(ENCODINGS)),
)
@example("0000000\x80", "json")
@settings(max_examples=300, deadline=None)
def test_any_value_is_found_in_every_encoding(value, encoding):
    finder = spellings.finder({value: "HERE"})
    text = f"before {ENCODINGS[encoding](value)} after"
    assert finder.hits(text.encode())
    clean = finder.replace(text)
    assert clean != text and "HERE" in clean


@given(st.text(alphabet=string.printable, max_size=200))
@settings(max_examples=200, deadline=None)
def test_what_is_not_hit_is_not_replaced(text):
    finder = spellings.finder({value: "HERE" for value in KINDS.values()})
    assert finder.hits(text.encode()) or finder.replace(text) == text


@pytest.mark.parametrize("count", [1, 3, 25])
def test_a_value_is_found_wherever_it_lies_in_a_long_record(count):
    values = list(KINDS.values())[:count]
    finder = spellings.finder(dict.fromkeys(values, "HERE"))
    for value in values:
        for spelled in (value, value.encode().hex(), ENCODINGS["base64 1"](value)):
            for at in range(1000, 1033):
                assert finder.hits((FILLER[:at] + spelled + FILLER[at:]).encode())


def test_a_clean_record_is_not_hit():
    finder = spellings.finder(dict.fromkeys(KINDS.values(), "HERE"))
    assert not finder.hits(FILLER.encode())
    assert not finder.hits(b"")
    assert not spellings.finder({}).hits(b"anything")
    assert spellings.finder({}).replace("anything") == "anything"


def test_each_value_gets_its_own_mark_and_the_longer_one_goes_first():
    finder = spellings.finder({"abcdefgh1234-5678": "LONG", "abcdefgh1234": "SHORT"})
    assert finder.replace("abcdefgh1234-5678 abcdefgh1234") == "LONG SHORT"


def test_in_base64_the_characters_shared_with_the_neighbours_go_as_well():
    value = "abcdefgh1234"
    for shift in range(3):
        spelled = ENCODINGS[f"base64 {shift}"](value)
        left = spellings.finder({value: "|"}).replace(spelled)
        assert len(left) <= 8


def test_a_short_value_is_found_as_a_whole_word_only():
    finder = spellings.finder({"4711": "PIN"})
    assert finder.replace("4711 14711 (4711)") == "PIN 14711 (PIN)"


@pytest.mark.parametrize(
    "text", ["x" * 100_000, '"' * 100_000, "%" * 100_000, "\\" * 100_000, "A_" * 50_000]
)
def test_no_text_takes_long(text):
    finder = spellings.finder(dict.fromkeys(KINDS.values(), "HERE"))
    finder.replace("")
    assert passes(lambda: finder.replace(text), text) < 600  # measured: 60
