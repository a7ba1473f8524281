"""Boxes of plain values are told apart whatever their size, and equal ones are equal."""

import collections

import pytest

from tape_jupyter.dataflow.fingerprint.fingerprint import fingerprint


def test_which_strings_are_one_object_does_not_matter():
    one = "".join(["a", "b"])
    assert fingerprint([one, one]).digest == fingerprint(["".join(["a", "b"]), one]).digest


def of(value):
    return fingerprint(value, seconds=30).digest


@pytest.mark.parametrize("size", [10, 4_096, 4_097, 50_000])
@pytest.mark.parametrize("kind", [list, tuple, dict.fromkeys, collections.deque, set])
def test_equal_boxes_of_any_size_are_equal_and_one_other_item_is_a_change(kind, size):
    words = [f"word {n}" for n in range(size)]
    other = [*words[:-1], "another"]
    assert of(kind(words)) == of(kind([f"word {n}" for n in range(size)]))
    assert of(kind(words)) != of(kind(other)) and of(kind(words)) != of(kind(words[:-1]))


def test_sets_of_texts_are_equal_in_whatever_order_they_were_filled():
    assert of({"a", "b", "c"}) == of({"c", "b", "a"}) != of({"a", "b"})
    assert of({1, 2}) != of({"1", "2"}) and of({1, True}) != of({1.0})


def test_a_list_of_complex_numbers_shows_what_is_in_it():
    assert fingerprint([1j, 2]).is_data and of([1j, 2]) == of([1j, 2]) != of([1j, 3])
