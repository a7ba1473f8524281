"""The pin of the clock on a deck: what stands on the tape, what replays of older or broken tapes give, paces."""

import asyncio
import datetime
import re
import sys
import threading
import time
import types
from concurrent.futures import ThreadPoolExecutor, as_completed

import pytest

import tape_jupyter as tape
from tape_jupyter import instrumentation
from tape_jupyter.errors import TapeUsageError, UnmatchedCall
from tape_jupyter.session.session import TapeSession
from tape_jupyter.determinism.clock_readings import LIMIT
from tape_jupyter.instrumentation.determinism import clock as clock_tap
from tape_jupyter.instrumentation.determinism import wall_clock, clock_callers
from tests.harness.provider import Provider, Scripted
from tests.harness.taped_cells import ask, on_tape, taped


@tape.tool
def work(name, seconds=0.0):
    time.sleep(seconds)
    return name


@tape.tool
async def awork(name, seconds=0.0):
    await asyncio.sleep(seconds)
    return name


# ---------------------------------------------------------------- what stands on the tape


def test_a_cell_that_only_reads_the_clock_is_on_the_tape_and_one_that_does_not_is_not(deck, path):
    with taped(deck, "record", path, "a"):
        sum(range(9))
    assert not path.exists()
    with taped(deck, "record", path, "b"):
        told = time.time()
    (run,) = on_tape(path).runs
    assert run["pins"]["clock"]["wall"] <= told * 1e9
    assert list(on_tape(path).ended[run["run"]]["clock"]) == [__name__]
    with taped(deck, "replay", path, "b"):
        assert time.time() == told
    assert time.time() > told


def test_each_execution_of_a_cell_has_its_own_readings(deck, path):
    told = []
    for _ in range(3):
        with taped(deck, "record", path):
            told.append(time.time_ns())
    deck = TapeSession()
    for number in range(3):
        with taped(deck, "replay", path):
            assert time.time_ns() == told[number]
    deck.unhook()


def test_a_cell_that_raised_replays_its_time_too(deck, path):
    for mode in ("record", "replay"):
        with pytest.raises(LookupError) as raised, taped(deck, mode, path):
            raise LookupError(time.time_ns())
        if mode == "record":
            told = raised.value.args
    assert raised.value.args == told


def test_a_run_that_was_killed_replays_from_its_date_on(deck, path):
    with taped(deck, "record", path):
        told, got = time.time(), work("a")
    path.write_text(path.read_text().partition("---\nend:")[0])
    with taped(deck, "replay", path):
        assert got == work("a") and abs(told - time.time()) < 5
    path.write_text(re.sub("pins:\n(  .*\n)+", "", path.read_text()).replace('utc: "2', 'utc: "1'))
    with taped(deck, "replay", path):
        assert work("a") and str(datetime.datetime.now().year).startswith("1")


def test_broken_readings_are_said_and_the_cell_replays_without(deck, path):
    with taped(deck, "record", path):
        time.time(), work("a")
    path.write_text(re.sub(rf"{__name__}: \[.*\]", f'{__name__}: "soon"', path.read_text()))
    with taped(deck, "replay", path) as cell:
        work("a")
        assert time.time() > 1e9
    assert (
        f"clock is not replayed: CassetteError: the clock readings of '{__name__}'"
        in cell.report.warnings[0]
    )


def test_a_loop_that_waits_by_looking_is_said_and_ends_in_replay(deck, path):
    def waits():
        until = time.perf_counter() + 0.02
        while time.perf_counter() < until:
            pass
        for _ in range(LIMIT):
            time.perf_counter()
        return work("a")

    with taped(deck, "record", path) as cell:
        waits()
    assert f"read the clock more than {LIMIT:,} times" in cell.report.warnings[0]
    with taped(deck, "replay", path):
        assert waits() == "a"


def test_a_cell_that_was_never_recorded_has_real_time_and_sleeps_that_do_not_wait(deck, path):
    for known in ("known", "known too"):
        with taped(deck, "record", path, known):
            work("a")
    began = time.monotonic()
    with taped(deck, "replay", path, "another"):
        assert work("a") == "a"
        time.sleep(50)
        assert time.monotonic() - began < 25


def test_new_episodes_replays_the_readings_of_what_it_knows(deck, path):
    def cell(*names):
        return [time.time_ns(), *(work(name) for name in names), time.time_ns()]

    with taped(deck, "record", path):
        known = cell("a")
    with taped(deck, "new_episodes", path):
        more = cell("a", "b")
    assert more[0] == known[0] and more[-1] == known[-1]


def test_live_cells_and_untaped_threads_have_real_time(deck, path):
    began, stop, seen = time.time(), threading.Event(), []

    def outside():
        while not stop.is_set():
            seen.append(time.time())
            time.sleep(0.001)

    thread = threading.Thread(target=outside)
    thread.start()
    with taped(deck, "record", path):
        work("a"), time.time()
    path.write_text(re.sub(r"wall: \d+", "wall: 86400000000000", path.read_text()))
    with taped(deck, "replay", path):
        assert time.gmtime().tm_year == 1970
        threading.Event().wait(0.05)
    with taped(deck, "live", path):
        assert time.time() - began < 60
    stop.set()
    thread.join()
    assert all(0 <= told - began < 60 for told in seen) and seen == sorted(seen)


def test_a_day_later_nothing_has_changed_and_the_next_cell_has_real_time(deck, path):
    def cell():
        return [datetime.date.today(), datetime.datetime.now(), time.strftime("%A"), work("a")]

    with taped(deck, "record", path):
        told = cell()
    edited = re.sub(
        r"wall: (\d+)",
        lambda found: f"wall: {int(found[1]) - 86_400_000_000_000}",
        path.read_text(),
    )
    path.write_text(edited)
    with taped(deck, "replay", path):
        again = cell()
    assert [told[0] - again[0], told[1] - again[1]] == [datetime.timedelta(days=1)] * 2 and told[
        2
    ] != again[2]
    assert abs(datetime.datetime.now() - told[1]) < datetime.timedelta(minutes=1)


def test_while_a_tap_sends_time_is_real(deck, path):
    seen = []

    class Signs:
        """A body that is read as it is sent: here a request would be signed."""

        def __iter__(self):
            seen.append(time.time())
            yield b"{}"

    import httpx

    with Provider() as provider:
        provider.script("/sign", Scripted(200, {}, [b"ok"]))
        with taped(deck, "record", path):
            httpx.post(f"{provider.url}/sign", content=Signs(), headers={"content-length": "2"})
    assert abs(seen[0] - time.time()) < 60


# ---------------------------------------------------------------- hooks and stand-ins


def test_the_hooks_prove_themselves_and_go_when_the_last_cell_goes():
    first, second = wall_clock.hold_wall_clock(), wall_clock.hold_wall_clock()
    import time_machine

    assert len(time_machine.traveller_stack) == 1
    first(), first()
    assert time_machine.traveller_stack
    second()
    assert not time_machine.traveller_stack
    with pytest.raises(ValueError, match="Not currently"):
        __import__("_time_machine").original_time_ns()


def test_where_the_hooks_do_not_work_it_is_said_once_and_the_rest_is_held(deck, path, monkeypatch):
    monkeypatch.setattr(wall_clock, "_loaded", [])
    monkeypatch.setattr(wall_clock, "_reason", [])
    monkeypatch.setattr(
        wall_clock, "_import_time_machine", lambda: types.SimpleNamespace(traveller_stack=[])
    )
    with taped(deck, "record", path) as cell:
        told = time.perf_counter(), work("a", 0.01)
    assert (
        "the wall clock (time.time, datetime.now, ...) is not replayed: time-machine's hooks do not work here"
        in cell.report.warnings[0]
    )
    with taped(deck, "replay", path):
        assert (time.perf_counter(), work("a", 0.01)) == told
        time.sleep(20)


def test_a_program_that_travels_itself_gets_its_own_time(deck, path):
    import time_machine

    with taped(deck, "record", path), time_machine.travel(0, tick=False):
        assert time.time() == 0
    assert time.time() > 10**9


def test_a_program_that_cannot_have_pytest_does_not_get_it_from_us():
    code = "import sys; from tape_jupyter.instrumentation.determinism import wall_clock as hooks; hooks.hold_wall_clock(); assert 'pytest' not in sys.modules; import pytest"
    import subprocess
    import sys

    subprocess.run([sys.executable, "-c", code], check=True)


def test_stand_ins_are_like_the_functions_they_stand_for_and_go_without_a_trace():
    import copy
    import pickle

    before = {
        name: getattr(time, name) for name in ("sleep", "monotonic", "perf_counter_ns", "ctime")
    }
    module = types.ModuleType("early")
    module.nap, module.now = time.sleep, time.monotonic
    import sys

    sys.modules["early"] = module
    instrumentation.patch_all()
    try:
        assert (
            time.sleep is not before["sleep"]
            and module.nap is time.sleep
            and module.now is time.monotonic
        )
        assert repr(time.sleep) == "<built-in function sleep>" and time.sleep.__name__ == "sleep"
        assert (
            pickle.loads(pickle.dumps(time.monotonic))
            is time.monotonic
            is copy.copy(time.monotonic)
        )
        holder = type("Holder", (), {"now": time.monotonic})
        assert holder().now() > 0
        assert time.sleep(0) is None
        for wrong in ((), ("x",), (1, 2)):
            with pytest.raises(TypeError):
                time.sleep(*wrong)
        with pytest.raises(ValueError, match="negative"):
            time.sleep(-1)
    finally:
        instrumentation.unpatch_all()
        del sys.modules["early"]
    assert all(getattr(time, name) is function for name, function in before.items())
    assert module.nap is before["sleep"] and module.now is before["monotonic"]
    clock_tap.rebind([{}])


def test_plumbing_is_told_from_what_people_run():
    for name in (
        "ipykernel.kernelbase",
        "jupyter_client.session",
        "tornado.ioloop",
        "asyncio.base_events",
        "threading",
        None,
        3,
    ):
        assert clock_callers.is_plumbing(name)
    for name in ("__main__", "anthropic._base_client", "tenacity.nap", "pandas", "my_asyncio"):
        assert not clock_callers.is_plumbing(name)


# ---------------------------------------------------------------- timers


def test_timers_of_a_loop_can_be_cancelled_and_read(deck, path):
    with taped(deck, "record", path):
        work("a")

    async def main():
        loop, seen = asyncio.get_running_loop(), []
        with taped(deck, "replay", path):
            handle = loop.call_later(100, seen.append, "cancelled")
            assert 99 < handle.when() - loop.time() < 101
            loop.call_later(200, seen.append, "later")
            loop.call_later(-1, seen.append, "at once")
            handle.cancel()
            assert handle.cancelled()
            await asyncio.sleep(300)
            assert seen == ["at once", "later"]
            with pytest.raises(TypeError):
                loop.call_later(None, seen.append)
        left = loop.call_later(0.01, seen.append, "real")
        await asyncio.sleep(0.05)
        assert seen[-1] == "real" and not left.cancelled()

    asyncio.run(main())


def test_two_cells_one_after_the_other_in_one_step_of_a_loop(deck, path):
    with taped(deck, "record", path):
        work("a")

    async def main():
        for _ in range(3):
            with taped(deck, "replay", path):
                await asyncio.sleep(100)
        with taped(deck, "replay", path):
            ended = asyncio.ensure_future(asyncio.sleep(0.05, "slept on"))
            await asyncio.sleep(0)
        return await ended

    assert asyncio.run(main()) == "slept on"


def test_what_an_old_timeout_would_cancel_is_cancelled(deck, path):
    async def main():
        async def hangs():
            try:
                return await awork("x", 30)
            except asyncio.CancelledError:
                seen.append("cancelled")
                raise

        seen = []
        task = asyncio.ensure_future(hangs())
        await awork("y", 0.05)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return seen

    with taped(deck, "record", path):
        live = asyncio.run(main())
    with taped(deck, "replay", path):
        assert asyncio.run(main()) == live == ["cancelled"]


# ---------------------------------------------------------------- pace


def race(*waits):
    with ThreadPoolExecutor(len(waits)) as pool:
        return [
            done.result()
            for done in as_completed([pool.submit(work, k, wait) for k, wait in enumerate(waits)])
        ]


def test_overlapping_calls_keep_their_order_without_a_word_and_others_go_at_once(deck, path):
    with taped(deck, "record", path, "race"):
        live = race(0.45, 0.05, 0.25)
    with taped(deck, "record", path, "serial"):
        asyncio.run(awork("a", 0.02)), asyncio.run(awork("b", 0.02))
    assert live == [1, 2, 0]
    with taped(deck, "replay", path, "race") as raced:
        assert race(0.45, 0.05, 0.25) == live
    with taped(deck, "replay", path, "serial") as serial:
        asyncio.run(awork("a", 0.02)), asyncio.run(awork("b", 0.02))
        assert serial.cell.pins.clock.now() >= 0.04 * 1e9, "the tape's time moved all the same"
    assert any(raced.cell.pins.pacing._timelines.values()) and not any(
        serial.cell.pins.pacing._timelines.values()
    )


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("client", ["httpx", "urllib3"])
def test_http_replies_come_in_their_order_chunk_by_chunk(deck, path, client, stream):
    import httpx
    import urllib3

    def get(url):
        if client == "httpx":
            with httpx.stream("GET", url) as reply:
                yield from reply.iter_raw()
        else:
            yield from urllib3.PoolManager().request("GET", url, preload_content=False).stream()

    def program(urls, order):
        def one(url):
            for chunk in get(url):
                order.append(chunk)

        with ThreadPoolExecutor(3) as pool:
            list(pool.map(one, urls))
        return order

    gates = {name: [threading.Event() for _ in range(3)] for name in "abc"}
    with Provider() as provider:
        for name, own in gates.items():
            chunks = [f"{name}{k} ".encode() for k in range(3 if stream else 1)]
            provider.script(
                f"/{name}", Scripted(200, {}, chunks, gates=dict(enumerate(own[: len(chunks)])))
            )
        urls = [f"{provider.url}/{name}" for name in "abc"]

        live = []

        def open_gates():
            """The next chunk goes out once the program has seen the one before, and more than a millisecond later:
            that is how exactly a recording says when a call began."""
            for number, (k, name) in enumerate(
                (k, name) for k in range(3 if stream else 1) for name in "cab"
            ):
                while len(live) < number or len(provider.requests) < 3:
                    time.sleep(0.001)
                time.sleep(0.005)
                gates[name][k].set()

        opener = threading.Thread(target=open_gates)
        opener.start()
        with taped(deck, "record", path):
            program(urls, live)
        opener.join()
    with taped(deck, "replay", path, options={"pace": "order"}):
        assert program(urls, []) == live


def test_words_that_are_no_pace_are_refused(path):
    with pytest.raises(TapeUsageError, match="did you mean order"):
        tape.replaying(path, pace="ordr")


def test_a_reply_that_outlives_its_cell_is_refused(deck, path):
    with taped(deck, "record", path):
        race(0.05, 0.01)
    told = []

    def late():
        try:
            work(0, 0.05)
        except UnmatchedCall as error:
            told.append(str(error))

    with taped(deck, "replay", path, options={"pace": "recorded"}):
        thread = threading.Thread(target=late)
        thread.start()
        while not deck.active.execution.played:
            threading.Event().wait(0.001)
    thread.join()
    assert "ended" in told[0]


def test_asking_one_after_the_other_costs_no_waiting(deck, path):
    with Provider() as provider:
        with taped(deck, "record", path):
            for number in range(3):
                ask(provider, str(number))
    with taped(deck, "replay", path, options={"pace": "order"}) as cell:
        for number in range(3):
            ask(provider, str(number))
    assert cell.cell.pins.clock._pump is None


def test_a_take_has_the_clock_of_its_base(path):
    seen = []

    def program():
        seen.append((time.time_ns(), work("a", 0.01), str(datetime.datetime.now())))

    with tape.recording(path):
        program()
    with tape.replaying(path, live=["tool:work"], take="other") as block:
        program()
    with tape.replaying(path, take="other"):
        program()
    assert block.report.take == "other"
    assert seen[0] == seen[1] == seen[2]


def test_beside_a_live_call_sleeps_wait(path):
    with tape.recording(path):
        work("a")
    began = time.monotonic()
    with tape.replaying(path, live=["tool:work"]):
        work("a")
        time.sleep(0.2)
    assert time.monotonic() - began >= 0.2


def test_a_thread_that_a_library_kept_from_an_earlier_cell_is_not_overtaken(deck, path):
    """anyio keeps its worker threads: work that they are given in a later cell counts before time jumps."""
    import anyio
    import anyio.to_thread

    def compute():
        until = time.process_time() + 0.1
        while time.process_time() < until:
            sum(range(1000))
        return "computed"

    async def main():
        for number in range(3):
            with taped(deck, "record", path, f"cell {number}"):
                await anyio.to_thread.run_sync(time.time)
        with taped(deck, "replay", path, "another"), anyio.fail_after(60):
            return await anyio.to_thread.run_sync(compute)

    assert asyncio.run(main()) == "computed"


def test_a_clock_that_was_taken_as_a_default_before_we_came_is_the_tapes_and_is_given_back(
    monkeypatch,
):
    instrumentation.unpatch_all()
    source = """
import time
def timed(clock=time.perf_counter, *, wait=time.sleep): return clock, wait
class Cache:
    timer = time.monotonic
    def __init__(self, timer=time.monotonic): self.held = timer
    @classmethod
    def made(cls, timer=time.monotonic): return timer
"""
    library = types.ModuleType("a_library_of_caches")
    exec(source, vars(library))
    monkeypatch.setitem(sys.modules, library.__name__, library)

    def held():
        return [*library.timed(), library.Cache.timer, library.Cache().held, library.Cache.made()]

    before = held()
    undo = clock_tap.patch()
    try:
        assert held() == [time.perf_counter, time.sleep, *[time.monotonic] * 3]
        assert not any(now is then for now, then in zip(held(), before, strict=True))
    finally:
        undo()
    assert all(now is then for now, then in zip(held(), before, strict=True))
