"""Memoised functions: what they keep is read, and set again without their code."""

import functools
import sys

import pytest

from tape_jupyter.core.memoised import read_kept, set_kept


def _memoised(make):
    ran, shared = [], ["shared"]

    @make
    def work(*args, extra=3, **named):
        ran.append(args)
        return [args, extra, named, shared]

    return work, ran


@pytest.mark.parametrize(
    "make",
    [
        functools.cache,
        functools.lru_cache(3),
        functools.lru_cache(None, typed=True),
        functools.lru_cache(2, typed=True),
        functools.lru_cache(0),
    ],
)
def test_what_it_keeps_is_set_again_with_its_order_and_its_counts(make):
    work, ran = _memoised(make)
    for args, named in [((1,), {}), (("x",), {}), (((2, 3),), {}), ((2, 3), {}), ((1,), {})]:
        work(*args, **named)
    for args, named in [((), {"extra": 4, "more": 2}), ((1.0,), {}), ((True,), {})]:
        work(*args, **named)
    kept, info, code = read_kept(work), work.cache_info(), work.__wrapped__.__code__
    work.cache_clear()
    work("other")
    count = len(ran)
    set_kept(work, kept)
    assert len(ran) == count
    assert work.cache_info() == info
    assert [each.result for each in read_kept(work).entries] == [e.result for e in kept.entries]
    assert work.__wrapped__.__code__ is code
    assert work("new") == [("new",), 3, {}, ["shared"]]


def test_the_entry_that_goes_next_is_the_one_that_went_next():
    work, ran = _memoised(functools.lru_cache(2))
    for each in "aba":
        work(each)
    kept = read_kept(work)
    work.cache_clear()
    set_kept(work, kept)
    work("c")
    ran.clear()
    work("a")
    assert not ran
    work("b")
    assert ran == [("b",)]


def test_a_function_of_c_is_not_set():
    measure = functools.cache(len)
    measure("abc")
    with pytest.raises(ValueError, match="cannot be set"):
        set_kept(measure, read_kept(measure))


def test_a_mark_in_an_argument_is_no_end_of_the_arguments():
    work, _ = _memoised(functools.cache)
    work((1, 2), a=(3, 4))
    (entry,) = read_kept(work).entries
    assert (entry.args, entry.kwargs) == (((1, 2),), {"a": (3, 4)})


def test_it_is_set_where_code_that_runs_is_watched():
    work, _ = _memoised(functools.cache)
    work(1)
    kept, codes = read_kept(work), set()
    sys.setprofile(lambda frame, *_: codes.add(frame.f_code))
    try:
        set_kept(work, kept)
    finally:
        sys.setprofile(None)
    assert read_kept(work).entries[0].result is kept.entries[0].result
