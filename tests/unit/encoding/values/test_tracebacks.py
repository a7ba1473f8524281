"""An exception of a taped tool is raised in replay where it was raised when it was recorded."""

import asyncio
import functools
import json
import traceback
from contextlib import nullcontext

import pytest
import tape_jupyter as tape
from tape_jupyter.encoding.values.registry import freeze_error, thaw_error
from tape_jupyter.encoding.values.tracebacks import put_frames, with_frames


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def check(amount, *more, unit="EUR", **rest):
    if amount > 100:
        raise ValueError(f"{amount} is too much")


class Till:
    def charge(self, amount):
        try:
            check(amount, 1, unit="USD")
        except ValueError as error:
            raise KeyError("declined") from error


def stepping():
    yield 1
    check(200)


async def waiting():
    await asyncio.sleep(0)
    return {
        "over": "lines",
        "all": [check(200, 1,
                      2)],
    }  # fmt: skip


def given():
    return waiting()


def decorated(function):
    @functools.wraps(function)
    def inner(*args):
        return function(*args)

    return inner


@decorated
def behind_a_decorator():
    check(300)


def shown(call):
    """The traceback as text, with the marks below its lines."""
    try:
        call()
    except Exception as error:  # not `pytest.raises`: in a generator's frame it would stand, too
        return "".join(traceback.format_exception(error))
    pytest.fail("it did not raise")


def stepping_given():
    return stepping()


def inner_function():
    def helper():
        return [check(each) for each in (1, 200)]

    return helper()


ADD = {"one": lambda: check(1), "many": lambda: check(2) or check(300)}


class Tools:
    """What keeps a function where no name leads to it."""

    __slots__ = ("run",)

    def __init__(self):
        self.run = lambda: check(400)


TOOLS = Tools()


def in_lambdas():
    try:
        return ADD["many"]()
    except ValueError as error:
        raise RuntimeError("none") from error


def in_an_object():
    return TOOLS.run()


CALLS = {
    "a function": (check, [200], str),
    "a method, with a cause": (Till().charge, [200], str),
    "a generator": (stepping, [], list),
    "decorated": (behind_a_decorator, [], str),
    "code of a library": (json.loads, ["{"], str),
    "a function inside of it": (inner_function, [], str),
    "a lambda in a dict": (in_lambdas, [], str),
    "a lambda in an object": (in_an_object, [], str),
    "a coroutine": (waiting, [], asyncio.run),
    "a coroutine that a function gives": (given, [], asyncio.run),
    "a generator that a function gives": (stepping_given, [], list),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_tools_traceback_is_that_of_the_recording_and_of_the_program_without_a_tape(name):
    function, arguments, use = CALLS[name]
    tool = tape.tool(function)
    found = []
    for taped in (tape.recording("a.tape.yaml"), tape.replaying("a.tape.yaml"), nullcontext()):
        called = function if isinstance(taped, nullcontext) else tool
        with taped:
            found.append(shown(lambda called=called: use(called(*arguments))))
    recorded, replayed, untaped = found
    assert "^^^" in recorded
    assert replayed == recorded == untaped


@pytest.mark.parametrize(
    "told",
    [
        [["no.module:f", 1]],
        [["tests.x:f", -1]],
        [["builtins:print", 9]],
        [["re:compile", 10**12]],
        [3],
        "x",
        [[]],
    ],
)
def test_a_frame_that_is_not_there_any_more_or_never_was_is_left_out(told):
    error = put_frames(thaw_error(freeze_error(ValueError("no"))), {"frames": told})
    assert error.__traceback__ is None and str(error) == "no"


def test_a_deep_recursion_keeps_few_frames():
    def deeper(count):
        if not count:
            raise ValueError("down here")
        deeper(count - 1)

    with pytest.raises(ValueError, match="down here") as raised:
        deeper(300)
    assert len(with_frames(freeze_error(raised.value), raised.value)["frames"]) == 100
