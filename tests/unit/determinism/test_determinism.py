"""The clock of a cell without patches: readings, the heap, order, quiet threads, gates."""

import asyncio
import os
import subprocess
import sys
import threading
import time

import pytest

from tape_jupyter.core.unlisted_thread import run_unlisted
from tape_jupyter.errors import CassetteError, UnmatchedCall
from tape_jupyter.determinism import clock as clock_module
from tape_jupyter.determinism import idle_detection as quiet_module
from tape_jupyter.determinism.clock import ClockBase, TapeClock
from tape_jupyter.determinism.gate import ReplyGate
from tape_jupyter.determinism.idle_detection import Quiet
from tape_jupyter.determinism.order import Signal
from tape_jupyter.determinism.clock_readings import LIMIT, Notes, Readings
from tape_jupyter.determinism.scheduler import Deadline, Schedule
from tape_jupyter.determinism.scheduler import Timeline

FAR = 1e9


# ---------------------------------------------------------------- readings


def test_readings_come_back_to_who_read_them_in_their_order():
    notes = Notes()
    for strand, module, reading in [
        ("", "a", 5),
        ("1.0", "a", 9),
        ("", "b", -3),
        ("", "a", 7),
        ("1.0", "a", 4),
    ]:
        notes.note(strand, module, reading)
    assert notes.record() == {"a": [5, 2], "a 1.0": [9, -5], "b": [-3]}
    again = Readings(notes.record())
    assert [
        again.next("1.0", "a"),
        again.next("", "a"),
        again.next("", "a"),
        again.next("", "b"),
    ] == [9, 5, 7, -3]
    assert (
        again.next("", "a") is None and again.next("2", "a") is None and again.next("", "c") is None
    )


def test_a_loop_that_looks_at_the_clock_all_the_time_fills_no_cassette():
    notes = Notes()
    for reading in range(LIMIT + 5):
        notes.note("", "busy", reading)
    notes.note("", "calm", 1)
    assert len(notes.record()["busy"]) == LIMIT and notes.beyond == {"busy"}


@pytest.mark.parametrize("bad", ["x", {"a": 1}, ["1"], [1.5], [True]])
def test_readings_that_are_none_are_refused(bad):
    with pytest.raises(CassetteError, match="'__main__'"):
        Readings({"__main__": bad})


# ---------------------------------------------------------------- the heap


def due(schedule, when, order=None, limit=FAR, **more):
    return schedule.add(Deadline(when, limit, lambda: None, order, **more))


def released(schedule, **how):
    found = []
    while (each := schedule.release(quiet=True, real=0.0, **how)) is not None:
        found.append((each.when, schedule.now))
    return found


def test_time_jumps_to_what_is_due_next_and_never_back():
    schedule = Schedule()
    for when in (30, 10, 20):
        due(schedule, when)
    assert released(schedule) == [(10, 10), (20, 20), (30, 30)]
    due(schedule, 5)
    assert released(schedule) == [(5, 30)]


def test_equal_times_go_in_the_order_in_which_they_were_set():
    schedule = Schedule()
    first, second = due(schedule, 7), due(schedule, 7)
    assert [schedule.release(quiet=True, real=0) for _ in range(2)] == [first, second]


def test_replies_go_in_their_recorded_order_among_those_asked_for():
    schedule = Schedule()
    late = due(schedule, 10, order=(0, 3.0, 0))
    early = due(schedule, 50, order=(0, 1.0, 0))
    timer = due(schedule, 20)
    assert [schedule.release(quiet=True, real=0) for _ in range(3)] == [early, late, timer]


def test_nothing_is_released_before_its_time_while_something_runs():
    schedule = Schedule()
    each = due(schedule, 10, limit=100.0)
    assert schedule.release(quiet=False, real=99.0) is None
    assert schedule.release(quiet=False, real=100.0) is each


def test_the_dead_are_passed_over_and_who_is_left_is_told():
    schedule, dead = Schedule(), []
    due(schedule, 1, dead=lambda: True)
    gone, left = due(schedule, 2, order=(0, 1.0, 0)), due(schedule, 3)
    gone.gone = True
    assert schedule.first() is left and dead == []
    assert schedule.drain() == [left] and schedule.first() is None


# ---------------------------------------------------------------- the order of a recording


class Call:
    def __init__(self, name, place, began, seconds, lineage=""):
        self.id, self.place, self.lineage = name, place, lineage
        self._head = {"at": f"2026-01-01T00:00:{began:06.3f}Z", "seconds": seconds}

    def head(self):
        return self._head


def test_the_files_order_decides_what_two_moments_cannot_tell():
    timeline = Timeline(
        [Call("first", 0, 1.0, 1.0006), Call("second", 1, 1.0, 1.0002), Call("third", 2, 1.5, 0.6)]
    )
    ends = [timeline.order(name, 0.0, last=True) for name in ("first", "second", "third")]
    assert ends == sorted(ends) and timeline.seconds("third") == 0.6
    assert timeline.order("third", 0.1, last=False) < ends[0] < ends[2]
    assert timeline.order("first", 99.0, last=False)[1] <= ends[0][1]
    assert "first" in timeline and "fourth" not in timeline


def test_a_seed_draws_another_order_and_the_same_one_again():
    calls = [Call(str(k), k, 1.0, 1.0) for k in range(9)]

    def drawn(seed):
        timeline = Timeline(calls, seed)
        return sorted(
            (call.id for call in calls), key=lambda name: timeline.order(name, 0, last=True)
        )

    assert drawn("1") == drawn("1") != drawn("2")
    assert drawn("") == [call.id for call in calls]


def test_a_call_without_a_moment_stands_first():
    broken = Call("b", 0, 1, 1)
    broken._head = {"at": "yesterday", "seconds": "long"}
    assert Timeline([broken]).order("b", 0, last=True) == (0.0, 0.0, 0)


# ---------------------------------------------------------------- quiet threads


def looks_at(*threads):
    return Quiet(lambda: [thread for thread in threads], lambda _: 1)


@pytest.fixture(params=["calls", "frames"])
def how(request, monkeypatch):
    """Both ways to look: what the system tells of a thread, and its frames alone."""
    if request.param == "frames":
        monkeypatch.setattr(quiet_module, "_has_thread_files", lambda: False)
    elif not (sys.platform == "linux" and quiet_module._has_thread_files()):
        pytest.skip("this system does not tell")
    return request.param


def started(target):
    thread = threading.Thread(target=target, daemon=True)
    thread.start()
    return thread


def soon(check):
    until = time.monotonic() + 20
    while not check():
        assert time.monotonic() < until
        time.sleep(0.005)
    return True


def test_threads_that_wait_for_others_are_quiet(how):
    stop, lock = threading.Event(), threading.Lock()
    with lock:
        waiting = [
            started(stop.wait),
            started(lambda: stop.wait(60)),
            started(lambda: started(stop.wait).join()),
        ]
        if how == "calls":
            waiting.append(started(lock.acquire))
        assert soon(looks_at(*waiting))
    stop.set()


def test_threads_that_compute_or_read_or_sleep_are_not(how):
    stop, (ours, theirs) = threading.Event(), os.pipe()

    def compute():
        while not stop.is_set():
            sum(range(1000))

    for busy in (
        started(compute),
        started(lambda: os.read(ours, 1)),
        started(lambda: time.sleep(30)),
    ):
        time.sleep(0.05)
        assert not any(looks_at(busy)() for _ in range(10))
    stop.set()
    os.write(theirs, b"x")


def test_threads_that_the_tape_holds_are_quiet_and_those_that_it_works_in_are_not(how):
    held, work_goes_on = Signal(), threading.Lock()
    held_thread = started(held.wait)
    with work_goes_on:
        working = started(run_unlisted(lambda: work_goes_on.acquire()))
        assert soon(looks_at(held_thread))
        assert not any(looks_at(held_thread, working)() for _ in range(10))
    working.join()
    held.set()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks here")
def test_a_fork_that_waits_is_quiet_too(how):
    """`threading` still knows its first thread by the parent's number there (CPython 3.11)."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        main, seen = threading.main_thread(), threading.Event()
        looking = started(lambda: soon(looks_at(main)) and seen.set())
        looking.join(20)
        os.write(writing, b"quiet" if seen.is_set() else b"never")
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as told:
        assert told.read() == b"quiet"
    os.waitpid(child, 0)


def test_nothing_is_quiet_while_a_thread_is_started():
    assert not Quiet(lambda: None, lambda _: 1)()
    assert soon(Quiet(lambda: [], lambda _: 1))


def test_a_loop_is_quiet_while_it_listens_to_nothing_of_its_own(how):
    ours, theirs = os.pipe()
    told = {}

    async def main(reads):
        loop = asyncio.get_running_loop()
        told["stop"], told["loop"] = asyncio.Event(), loop
        if reads:
            loop.add_reader(ours, lambda: None)
        await told["stop"].wait()
        loop.remove_reader(ours)

    for reads in (False, True):
        told.clear()
        thread = started(lambda reads=reads: asyncio.run(main(reads)))
        assert soon(lambda: "loop" in told)
        assert any(looks_at(thread)() for _ in range(100)) is not reads
        told["loop"].call_soon_threadsafe(told["stop"].set)
        thread.join()
    os.close(ours), os.close(theirs)


def test_a_thread_that_ends_while_it_is_looked_at_harms_nothing(how):
    for _ in range(50):
        thread = started(lambda: time.sleep(0.001))
        looks_at(thread)()
        thread.join()
        assert soon(looks_at(thread))


# ---------------------------------------------------------------- the clock


def clock(**more):
    return TapeClock(
        ClockBase(10**18, 5 * 10**9, 7 * 10**9),
        **{"readings": Readings({}), "sleeps": True, **more},
    )


def test_readings_beyond_the_recorded_ones_go_on_from_the_tapes_time():
    own = clock(readings=Readings({"m": [50, 10]}))
    assert [own.read("wall", "", "m") - 10**18 for _ in range(3)] == [50, 60, 1060]
    own.sleep(2)
    assert own.read("monotonic", "", "other") == 5 * 10**9 + 2 * 10**9 + 2060
    own.advance(10**9)
    assert own.read("perf", "", "m") > 7 * 10**9 + 3 * 10**9


def test_while_recording_readings_are_real_and_noted():
    notes = Notes()
    own = TapeClock(ClockBase.now(), notes=notes)
    before = time.time_ns()
    assert before <= own.read("wall", "1", "m") <= time.time_ns()
    assert list(notes.record()) == ["m 1"] and own.is_active
    own.close()
    assert not own.is_active


def test_one_thread_alone_never_waits():
    own = clock()
    began = time.monotonic()
    own.sleep(3600)
    own.wait(own.now() + 10**12, FAR, (0, 1.0, 1))
    assert time.monotonic() - began < 60 and own.now() == 3600 * 10**9 + 10**12


class EndsMeanwhile:
    """A thread that is over once somebody looked whether it is."""

    ident = 1

    def __init__(self):
        self.answers = [True]

    def is_alive(self):
        return bool(self.answers) and self.answers.pop()


def test_who_begins_to_wait_as_the_last_other_thread_ends_wakes_all_the_same():
    woke = threading.Event()

    def nap():
        own = clock()
        own.threads.add(EndsMeanwhile())
        own.sleep(3600)
        woke.set()

    threading.Thread(target=nap, daemon=True).start()
    assert woke.wait(60)


def test_threads_wake_in_the_order_of_the_tapes_time():
    own, seen = clock(), []

    def wake(seconds):
        own.sleep(seconds)
        seen.append(seconds)

    sleepers = [threading.Thread(target=wake, args=(seconds,)) for seconds in (300, 100, 200)]
    for thread in sleepers:
        own.starting.append(thread)
        thread.start()
        own.threads.add(thread)
    own.starting.clear()
    for thread in sleepers:
        thread.join()
    assert seen == [100, 200, 300] and own.now() == 300 * 10**9


def test_what_is_never_quiet_waits_as_long_as_it_did_and_no_longer():
    own, stop = clock(), threading.Event()

    def compute():
        while not stop.is_set():
            sum(range(1000))

    busy = started(compute)
    own.threads.add(busy)
    began = time.monotonic()
    own.sleep(0.3)
    assert time.monotonic() - began >= 0.3
    stop.set()
    busy.join()


def test_a_sleep_beside_a_child_process_is_real():
    own = clock()
    began = time.monotonic()
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        own.sleep(0.2)
        assert time.monotonic() - began >= 0.2
        child.communicate(b"\n")
    began = time.monotonic()
    own.sleep(60)
    assert time.monotonic() - began < 30


def test_who_waits_when_the_cell_ends_goes_on_in_real_time():
    own, woken = clock(), threading.Event()
    held = started(threading.Event().wait)
    own.threads.add(held)
    own._quiet = lambda: False
    sleeper = started(lambda: (own.sleep(0.3), woken.set()))
    own.threads.add(sleeper)
    assert soon(lambda: own._schedule.first() is not None)
    began = time.monotonic()
    own.close()
    woken.wait(20)
    assert 0.25 <= time.monotonic() - began
    assert own.now() == 0


def test_a_pump_goes_home_when_nobody_waits(monkeypatch):
    monkeypatch.setattr(clock_module, "_IDLE", 0.01)
    own = clock()
    other = started(threading.Event().wait)
    own.threads.add(other)
    own.sleep(5)
    assert soon(lambda: own._pump is None)
    own.sleep(5)
    assert own.now() == 10 * 10**9


# ---------------------------------------------------------------- gates


def gates(own, *names, **more):
    timeline = Timeline([Call(name, k, 1.0, k + 1.0) for k, name in enumerate(names)])
    return [
        ReplyGate(own, timeline, name, lambda: UnmatchedCall("ended"), **more) for name in names
    ]


def test_gates_open_in_the_recorded_order_in_threads_and_tasks():
    own, seen = clock(), []

    def pass_it(name, gate):
        gate.wait(0.5)
        gate.wait(1.0, last=True)
        seen.append(name)

    named = list(zip("abc", gates(own, "a", "b", "c"), strict=True))
    threads = [threading.Thread(target=pass_it, args=each) for each in reversed(named)]
    own.starting.append("all")
    for thread in threads:
        thread.start()
    own.threads.update(threads)
    own.starting.clear()
    for thread in threads:
        thread.join()
    assert seen == ["a", "b", "c"] and own.now() == 3 * 10**9, "the last took three seconds"

    async def main():
        async def arrive(name, gate):
            await gate.wait_async(1.0, last=True)
            seen.append(name)

        named = zip("def", gates(own, "d", "e", "f"), strict=True)
        await asyncio.gather(*(arrive(*each) for each in reversed(list(named))))

    asyncio.run(main())
    assert seen == list("abcdef")


def test_what_comes_together_passes_once():
    own = clock()
    (gate,) = gates(own, "a")
    gate.wait(0.25)
    gate.wait(0.25)
    assert own.now() == 0.25 * 10**9
    gate.wait(0.25, last=True)
    assert own.now() == 10**9, "the call took a second"
    gate.wait(9.0)
    assert own.now() == 10**9
    (whole,) = gates(own, "a", in_one=True)
    whole.wait(0.1)
    assert own.now() == 2 * 10**9


def test_nothing_passes_after_the_cells_end():
    own = clock()
    sync, awaited = gates(own, "a", "b")
    own.close()
    with pytest.raises(UnmatchedCall, match="ended"):
        sync.wait(1.0)
    with pytest.raises(UnmatchedCall, match="ended"):
        asyncio.run(awaited.wait_async(1.0))


def test_at_recorded_pace_gates_take_their_time():
    own = clock(jumps=False)
    (gate,) = gates(own, "a")
    began = time.monotonic()
    gate.wait(0.2)
    assert time.monotonic() - began >= 0.2 and own.now() >= 0.2 * 10**9


def test_a_task_that_is_cancelled_at_its_gate_holds_nobody_up():
    own = clock()

    async def main():
        first, second = gates(own, "a", "b")
        waiting = asyncio.ensure_future(first.wait_async(1.0, last=True))
        await asyncio.sleep(0)
        waiting.cancel()
        await second.wait_async(1.0, last=True)
        return waiting.cancelled()

    assert asyncio.run(main())


def test_what_waits_when_a_person_is_asked_waits_on_and_what_comes_later_goes():
    clock, told = TapeClock(ClockBase.now(), sleeps=True), []

    def put(name, when):
        far = time.monotonic() + 3600
        clock.add_timer(when, far, lambda: None, bool, lambda _left: told.append(name), FakeLoop())

    put("before", 10**9)
    clock.pause_deadlines()
    assert clock._schedule.first() is None
    put("meanwhile", 2 * 10**9)
    assert clock._schedule.first().when == 2 * 10**9
    clock.pause_deadlines()
    limits = [due.limit for due, _ in clock._held_deadlines]
    clock.resume_deadlines()
    clock.resume_deadlines()
    assert clock._schedule.first().when == 10**9 and clock._schedule.first().limit >= limits[0]
    clock.pause_deadlines()
    clock.close()
    assert sorted(told) == ["before", "meanwhile"]


class FakeLoop:
    """A loop that runs at once what it is handed from another thread."""

    def call_soon_threadsafe(self, call, *args, context):
        context.run(call, *args)
