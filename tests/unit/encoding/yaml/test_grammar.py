"""What a person is told of a line that is not part of a tape."""

import pytest

from tape_jupyter.encoding.yaml.grammar import _FLAWS, are_bounded, explain, flawed, no_value


@pytest.mark.parametrize("reason", [reason for _, reason in _FLAWS])
def test_every_reason_says_what_to_do(reason):
    doing = ("write", "take it out", "indent", "keep", "begins with", "ends on")
    assert any(word in reason for word in doing)
    assert len(reason) < 160


def test_a_text_to_quote_is_shown_quoted_and_cut():
    assert explain('---\na: 5" wide\n', 4) == r'write this text in double quotes: "5\" wide"'
    assert len(explain("---\na: " + "5%" * 5000 + "\n", 4)) < 120
    assert len(no_value("k" * 5000, 2)) < 160


@pytest.mark.parametrize(
    "character", ["\x00", "\x08", "\r", "\x1f", "\x7f", "\x80", "\x85", "\x9f", "\u2028", "\u2029"]
)
def test_a_character_that_editors_and_yaml_change_may_not_stand_as_it_is(character):
    assert flawed("a" * 50 + character + "日本")


@pytest.mark.parametrize(
    "text", ["", "a\tb\nc ~", "\xa0\xad naïve", "日本 😀 \u200d\u202e \ufffd \U0010ffff"]
)
def test_ordinary_text_of_any_language_stands_as_it_is(text):
    assert not flawed(text)


def test_numbers_have_bounds():
    assert are_bounded([])
    assert are_bounded([1 - 10**400, 0.5, 10**400 - 1])
    assert not are_bounded([10**400])
    assert not are_bounded([0, float("-inf")])
