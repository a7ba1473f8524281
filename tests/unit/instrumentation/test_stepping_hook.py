"""A call that a person holds blocks its own task only."""

import asyncio

from tape_jupyter.core.call import FunctionCall, Play, Tape, Value
from tape_jupyter.instrumentation.stepping_hook import begin_call, instead

CALL = FunctionCall("f", {})


class AtOnce(Tape):
    def begin(self, _call):
        return Play(Value("at once"))


class Holding(AtOnce):
    def __init__(self):
        self.go = asyncio.Event()

    def hold_call(self, call):
        return self if call.name == "f" else None

    async def wait_async(self):
        await self.go.wait()
        return Play(Value("later"))


def test_a_tape_that_holds_nothing_is_asked_as_ever():
    assert asyncio.run(begin_call(AtOnce(), CALL)).reply.value == "at once"


def test_a_held_call_lets_the_loop_go_on():
    async def program():
        tape = Holding()
        held = asyncio.create_task(begin_call(tape, CALL))
        other = await begin_call(tape, FunctionCall("g", {}))
        assert not held.done()
        tape.go.set()
        return other.reply.value, (await held).reply.value

    assert asyncio.run(program()) == ("at once", "later")


def test_what_goes_out_instead_is_the_decisions_own_word():
    decision = type("Live", (), {"instead": CALL})()
    assert instead(decision) is CALL and instead(object()) is None
