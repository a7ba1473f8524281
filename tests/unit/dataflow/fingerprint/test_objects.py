"""What there is to see of functions, generators, views and classes of containers is seen, without asking them."""

import itertools

import pytest

from tape_jupyter.dataflow.fingerprint.fingerprint import fingerprint


class Sub(dict):
    def items(self):
        raise AssertionError

    __iter__ = items


def test_a_containers_own_methods_are_not_used():
    assert fingerprint(Sub(a=1)).digest != fingerprint(Sub(a=2)).digest


@pytest.mark.parametrize("make", [lambda: (x for x in [1, 2]), lambda: iter([1, 2]), lambda: map(str, [1, 2]),
                                  lambda: itertools.count(), lambda: zip([1], [2], strict=True)])  # fmt: skip
def test_no_generator_or_iterator_is_moved_and_all_are_opaque(make):
    value = make()
    assert fingerprint(value).opaque
    assert next(value) == next(make())


def test_views_and_containers_share_what_they_share():
    import numpy as np

    a = np.zeros(4)
    assert fingerprint(a).ids & fingerprint(a[1:]).ids
    inner = []
    assert fingerprint({"k": inner}).ids & fingerprint(inner).ids
    d = {"a": 1}
    assert fingerprint(d).ids & fingerprint(d.keys()).ids


@pytest.mark.parametrize("make", [itertools.chain.from_iterable, itertools.accumulate, itertools.pairwise, zip, enumerate,
                                  lambda rows: map(str, rows), lambda rows: itertools.islice(iter(rows), 2)])  # fmt: skip
def test_an_iterator_over_an_iterator_shares_the_list_that_it_reads_on(make):
    rows = [["a"], ["b"]]
    assert fingerprint(rows).ids <= fingerprint(make(rows)).ids


def test_what_a_function_says_of_itself_counts_and_hides_nothing():
    from typing import Literal, Optional

    def made(kind, text):
        def f(x: kind) -> Optional[list[int]]: ...

        f.__doc__ = text
        return f

    one = fingerprint(made(Literal["a"], "says"))
    assert not one.opaque and one.digest == fingerprint(made(Literal["a"], "says")).digest
    assert one.digest != fingerprint(made(Literal["b"], "says")).digest
    assert one.digest != fingerprint(made(Literal["a"], "is silent")).digest


def test_a_special_form_is_nothing_that_changes():
    import typing_extensions

    assert fingerprint(typing_extensions.TypedDict).ids == fingerprint(list[int]).ids == frozenset()


def test_widgets_that_show_the_same_are_the_same():
    import ipywidgets

    one, other = ipywidgets.IntSlider(value=1), ipywidgets.IntSlider(value=1)
    assert fingerprint(one).digest == fingerprint(other).digest
    other.value = 2
    assert fingerprint(one).digest != fingerprint(other).digest
