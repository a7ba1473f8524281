"""A stand-in code takes the same arguments, whatever a function's parameters look like."""

import inspect
import warnings

import pytest

from tape_jupyter.instrumentation.tools.code_swap import clone, trampoline


def none():
    return ()


def every_kind(a, b=2, /, c=3, *rest, d, e=5, **more):
    return a, b, c, rest, d, e, more


def only_keywords(*, x, y=1):
    return x, y


def rest_only(*rest, **more):
    return rest, more


def make_closure():
    zeta, alpha = 1, [2]

    def closure(x):
        nonlocal zeta
        zeta += 1
        return x, zeta, alpha

    return closure


class Mangled:
    def method(self, __secret, *, __key=1):
        return __secret, __key, __class__


CASES = [
    (none, (), {}),
    (every_kind, (1,), {"d": 4}),
    (every_kind, (1, 2, 3, 4, 5), {"d": 4, "e": 6, "a": 7}),
    (only_keywords, (), {"x": 1}),
    (rest_only, (1, 2), {"a": 1}),
    (make_closure(), (1,), {}),
    (Mangled.method, (Mangled(), 1), {"_Mangled__key": 2}),
    (lambda x=1, *y: (x, y), (1, 2), {}),
]


@pytest.mark.parametrize(("function", "args", "kwargs"), CASES)
def test_arguments_reach_the_door_as_the_function_would_see_them(function, args, kwargs):
    original = clone(function)
    seen = []
    signature, before = inspect.signature(function), function.__code__
    with warnings.catch_warnings(action="error"):
        function.__code__ = trampoline(
            function, lambda *a, **k: seen.append((a, k)) or original(*a, **k)
        )
    try:
        assert inspect.signature(function) == signature
        assert (
            function.__code__.co_filename == __file__
            and function.__code__.co_name == before.co_name
        )
        taped = function(*args, **kwargs)
    finally:
        function.__code__ = before
    assert len(seen) == 1
    again = function(*args, **kwargs)
    assert again == taped or function.__name__ == "closure" and again[1] == taped[1] + 1


def test_a_wrong_call_fails_as_before():
    function = lambda x: x  # noqa: E731
    function.__code__ = trampoline(function, print)
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'x'"):
        function()
