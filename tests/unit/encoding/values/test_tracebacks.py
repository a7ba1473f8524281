"""An exception of a taped tool is raised in replay where it was raised when it was recorded."""

import functools
import traceback

import pytest
import tape_jupyter as tape
from tape_jupyter.comparison import outputs
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


def decorated(function):
    @functools.wraps(function)
    def inner(*args):
        return function(*args)

    return inner


@decorated
def behind_a_decorator():
    check(300)


def shown(call):
    """The traceback as text, a person's own frames only; without the marks below a line, for which no column is kept."""
    with pytest.raises(Exception) as raised:  # noqa: PT011 - any
        call()
    text = outputs.own_frames("".join(traceback.format_exception(raised.value)))
    return "\n".join(line for line in text.splitlines() if line.strip("~^ "))


CALLS = {
    "a function": lambda: tape.tool(check)(200),
    "a method, with a cause": lambda: tape.tool(Till().charge)(200),
    "a generator": lambda: list(tape.tool(stepping)()),
    "decorated": lambda: tape.tool(behind_a_decorator)(),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_tools_traceback_is_that_of_the_recording(name):
    call = CALLS[name]
    with tape.recording("a.tape.yaml"):
        recorded = shown(call)
    with tape.replaying("a.tape.yaml"):
        replayed = shown(call)
    assert "is too much" in recorded and "in check" in recorded
    assert replayed == recorded


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
    assert len(with_frames(freeze_error(raised.value), raised.value)["frames"]) == 50
