"""Where a stepped cell stops, who goes on, and what a pass that runs to a place goes past. No kernel, no thread."""

import random

import pytest

from tape_jupyter.errors import TapeUsageError
from tape_jupyter.debugger.breakpoints import Breaks
from tape_jupyter.debugger.machine import Machine, Rewind
from tape_jupyter.debugger.call_site import CallSite, number_of, place_strand


class Program:
    """A program of strands, each a list of calls, over a machine: it runs every strand as far as it may."""

    def __init__(self, calls, *breaks):
        self.calls = calls
        self.machine = Machine(Breaks.parse(breaks))
        self.begin()

    def begin(self):
        self.left = {strand: list(sites) for strand, sites in self.calls.items()}
        self.machine.begin()
        self.run()

    def run(self):
        going = True
        while going:
            going = False
            for strand, sites in self.left.items():
                if sites and strand not in self.machine.strands:
                    going = True
                    at = self.machine.register_call(strand, sites.pop(0))
                    self.machine.stays(at)

    def do(self, word, *args, **fields):
        done = getattr(self.machine, word)(*args, **fields)
        if isinstance(done, Rewind):
            self.machine.rewind(done)
            assert self.machine.phase == "rewinding"
            self.begin()
        self.run()
        return self.places

    @property
    def places(self):
        return [at.place for at in self.machine.strands.values()]

    @property
    def passed(self):
        return [done.place for done in self.machine.passed]


def site(kind="model", name="m", span="", would="play", **told):
    return CallSite(kind, name, name, span, would, **told)


def one(*kinds):
    return {"": [site(kind, f"n{number}", f"r/{number}") for number, kind in enumerate(kinds, 1)]}


TWO = {"0": [site()] * 3, "1": [site()] * 3}


def test_it_stops_before_each_call():
    program = Program(one("model", "tool"))
    assert program.places == [":1"] and program.machine.phase == "stopped"
    assert program.do("release", "") == [":2"] and program.passed == [":1"]
    assert program.do("release", "") == [] and program.machine.phase == "running"


def test_it_runs_to_the_next_call_of_a_kind():
    program = Program(one("model", "model", "tool", "model"))
    assert program.do("release", "", "tool") == [":3"]
    assert program.do("release", "", "tool") == []


def test_going_on_stops_at_breakpoints_and_at_a_call_that_is_not_on_the_tape():
    program = Program(one("model", "tool", "tool", "model"), "nth=2")
    assert program.places == [":2"]
    assert program.do("release_all") == []
    missing = Program({"": [site(), site(would="refuse"), site()]})
    assert missing.do("release_all") == [":2"]


def test_stepping_one_strand_leaves_the_others_where_they_stand():
    program = Program(TWO)
    assert program.places == ["0:1", "1:1"]
    assert program.do("release", "1") == ["0:1", "1:2"]
    assert program.do("release", "1") == ["0:1", "1:3"]


def test_back_is_the_call_before_and_the_others_stand_where_they_stood():
    program = Program(TWO)
    program.do("release", "1")
    program.do("release", "0")
    assert program.places == ["1:2", "0:2"] or program.places == ["0:2", "1:2"]
    assert sorted(program.do("back", "0")) == ["0:1", "1:2"]
    assert program.passed == ["1:1"]
    assert sorted(program.do("back", "1")) == ["0:1", "1:1"]
    with pytest.raises(TapeUsageError, match="first call"):
        program.machine.back("0")


def test_a_call_is_run_to_by_place_or_span_ahead_and_back():
    program = Program(one("model", "model", "tool", "model"))
    assert program.do("run_to_call", span="r/3") == [":3"]
    assert program.do("run_to_call", place=":1") == [":1"]
    assert program.do("run_to_call", place=":4") == [":4"]
    assert program.do("run_to_call", span="r/2") == [":2"]
    assert program.do("run_to_call", span="r/2") == [":2"]
    with pytest.raises(TapeUsageError):
        program.machine.run_to_call()


def test_a_pass_that_ends_before_its_goal_says_so_and_the_next_one_is_free():
    program = Program(one("model", "model"))
    assert program.do("run_to_call", place=":9") == []
    assert program.machine.missed() == ":9" and program.machine.missed() == ""


def test_a_rewind_may_go_past_the_call_it_runs_to():
    program = Program(one("model", "model", "model"))
    program.do("release", "")
    program.machine.rewind(Rewind(":2", through=True))
    program.begin()
    assert program.places == [":3"] and program.passed == [":1", ":2"]


def test_who_goes_past_the_call_that_is_run_to_while_another_stands_ends_the_rewind():
    machine = Machine(Breaks.parse([]))
    machine.begin()
    machine.rewind(Rewind("1:1", through=True))
    machine.begin()
    assert (
        machine.stays(machine.register_call("2", CallSite("model", "m")))
        and machine.phase == "rewinding"
    )
    told = machine.revision
    assert not machine.stays(machine.register_call("1", CallSite("model", "m")))
    assert machine.phase == "stopped" and machine.revision > told, (
        "whoever looks on has to hear of it"
    )


def test_a_command_for_a_strand_that_has_moved_on_is_refused():
    program = Program(one("model", "model", "model"))
    seen = program.machine.revision
    program.do("release", "")
    with pytest.raises(TapeUsageError, match="moved on"):
        program.machine.parked("", seen)
    assert program.machine.parked(None, program.machine.revision).place == ":2"
    program.machine.end("done")
    with pytest.raises(TapeUsageError, match="stepping has ended"):
        program.machine.parked("")


def test_threads_that_nobody_numbered_have_a_name_each_while_they_stand():
    machine = Machine(Breaks.parse(()))
    machine.begin()
    for _ in range(2):
        machine.stays(machine.register_call("", site()))
    assert list(machine.strands) == ["", "'2"]
    machine.leave("'2")
    assert list(machine.strands) == [""]


def test_any_commands_in_any_order_lead_to_places_of_the_program():
    draw = random.Random(7)
    for _ in range(300):
        lengths = {str(strand): draw.randrange(1, 6) for strand in range(draw.randrange(1, 4))}
        program = Program({strand: [site()] * count for strand, count in lengths.items()})
        for _ in range(12):
            if not program.machine.strands:
                break
            strand = draw.choice(list(program.machine.strands))
            word = draw.choice(["release", "back", "run_to_call"])
            try:
                if word == "run_to_call":
                    place = f"{strand}:{draw.randrange(1, lengths[strand] + 1)}"
                    assert place in program.do("run_to_call", place=place)
                else:
                    program.do(word, strand)
            except TapeUsageError:
                continue
            assert all(1 <= number_of(at) <= lengths[place_strand(at)] for at in program.places)
            assert len(set(program.passed)) == len(program.passed)
            assert not set(program.passed) & set(program.places)
