"""The order of hand-overs: what a recording writes of it, what replay makes of that, and what it says where it cannot."""

import asyncio
import contextlib
import io
import os
import platform
import queue
import re
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor, as_completed, wait
from pathlib import Path

import pytest

import tape_jupyter as tape
from tape_jupyter.core import unlisted_thread
from tape_jupyter.errors import CassetteError
from tape_jupyter.determinism.clock import ClockBase, TapeClock
from tape_jupyter.determinism.clock_readings import Readings
from tape_jupyter.determinism.order import LIMIT, Handovers, RecordedOrder, Turns
from tape_jupyter.determinism.idle_detection import SYSTEM_CALLS, Quiet, runs_soon, waits_for_others
from tape_jupyter.determinism.scheduler import BEYOND, NEVER


class Call:
    def __init__(self, name):
        self.id = name


def handovers(active=lambda _looks, _ignored, _first: None):
    return Handovers(Turns(active), lambda _loop: False)


# ---------------------------------------------------------------- what is written


def test_calls_are_told_with_how_many_of_their_parts_came_in_a_row():
    order, a, b = handovers(), Call("a1"), Call("b2")
    for call, strand in ((a, "ask-0"), (a, "ask-0"), (b, "ask-1"), (a, "ask-0")):
        order.note(call, strand)
    order.note(order.timer("ask 1"), "ask 1", together=True)
    order.timer("ask-0")
    assert order.record() == {"order": "a1*2 b2 a1 +@ask_1#0", "timers": {"ask 1": 1, "ask-0": 1}}


def test_one_strand_alone_has_no_order():
    order = handovers()
    order.note(Call("a1"), "ask-0")
    order.note(Call("b2"), "ask-0")
    assert order.record(has_strands=False) == {}
    order.note(Call("c3"), "ask-1")
    assert order.record() == {"order": "a1 b2 c3"}


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the system does not tell")
def test_a_thread_that_waits_for_a_lock_of_the_clock_is_about_to_go_on():
    """The clock's own thread holds that lock for a moment, and nobody looks at it."""
    clock = TapeClock(ClockBase.now(), readings=Readings({}))
    reader = threading.Thread(target=clock.read, args=("wall", "ask-0", "notebook"))
    with clock._lock:
        reader.start()
        clock.threads.add(reader)
        system_calls = Path(f"/proc/self/task/{reader.native_id}/syscall")
        waits = tuple(SYSTEM_CALLS[platform.machine()].threads)
        while not system_calls.read_text().startswith(waits):
            time.sleep(0)
        assert clock.turns.do_others_act()
    reader.join()
    assert not clock.turns.do_others_act()


def test_who_was_waited_for_in_vain_and_rests_now_may_go_first():
    """It asked for its turn meanwhile, as one that was started earlier."""
    given, late, looked = [], None, threading.Event()

    def begin(ticket):
        turns.begin(ticket)
        given.append(ticket)

    def look(_looks, _ignored, first):
        nonlocal late
        if threading.current_thread() is late:
            return None if looked.is_set() else 1
        if first == computing and late is None:
            late = threading.Thread(target=begin, args=(tickets[0],))
            late.start()
            while len(turns._waiting) < 2:
                time.sleep(0)
            looked.set()
        return None

    turns = Turns(look)
    tickets, computing = [turns.ticket(), turns.ticket()], 7
    turns._computing = {computing}
    begin(tickets[1])
    late.join()
    assert given == tickets


def test_who_begins_goes_before_who_got_a_reply_and_in_the_order_of_its_ticket():
    busy, given = threading.Event(), []
    busy.set()
    turns = Turns(lambda _looks, _ignored, _first: 1 if busy.is_set() else None)
    tickets = [turns.ticket() for _ in range(4)]

    def reply():
        turns.resume_thread()
        given.append("reply")

    def begins(number):
        turns.begin(tickets[number])
        given.append(number)

    threads = [threading.Thread(target=reply)]
    threads += [threading.Thread(target=begins, args=(number,)) for number in (2, 0, 3, 1)]
    for number, thread in enumerate(threads):
        thread.start()
        while len(turns._waiting) <= number:
            time.sleep(0.001)
    busy.clear()
    for thread in threads:
        thread.join()
    assert given[-1] == "reply" and sorted(given[:4]) == [0, 1, 2, 3]


def test_a_cell_of_very_many_hand_overs_fills_no_cassette():
    order, calls = handovers(), (Call("a"), Call("b"))
    for number in range(LIMIT + 2):
        order.note(calls[number % 2], str(number % 2))
    assert order.record() == {}


# ---------------------------------------------------------------- what is read


def test_parts_have_their_numbers_and_those_that_never_came_come_last():
    sequence = RecordedOrder("a*2 b a b +@t#0", {"t": 2})
    assert [sequence.part("a", part, 2) for part in range(4)] == [0, 1, 3, BEYOND]
    assert sequence.part("b", 1, 2) == 4 and sequence.part("c", 0, 1) == BEYOND
    assert [sequence.part("a", part, 9) for part in (0, 5)] == [0, 3], (
        "an edited reply has other parts than it had"
    )
    assert [sequence.timer("t") for _ in range(3)] == [5, NEVER, None], "went off, did not, is new"
    assert sequence.is_together(5) and not sequence.is_together(0)
    assert sequence.follows(0) is False
    sequence.passed(0)
    assert sequence.follows(1) and not sequence.follows(3)


def test_what_goes_in_another_order_is_known_by_its_names():
    sequence = RecordedOrder("a b c")
    for number in (1, 0, 2):
        sequence.passed(number)
    assert list(sequence.swapped) == [("b", "a")] and not sequence.untold
    unsure = RecordedOrder("a +b c")
    unsure.passed(0), unsure.passed(1), unsure.passed(2, quiet=False)
    assert list(unsure.untold) == [("a", "b"), ("b", "c")]


def test_the_first_that_goes_on_amid_what_the_cell_does_is_untold_too():
    """Nothing was handed on before it, but something may run, a thread that began for one."""
    unsure = RecordedOrder("a b >b-1")
    unsure.began("a-1", quiet=False)
    unsure.began("b-1", quiet=False)
    assert list(unsure.untold) == [("", ">a-1"), (">a-1", ">b-1")]
    recorded = RecordedOrder("+a b")
    recorded.passed(0)
    recorded.passed(1)
    assert list(recorded.untold) == [("", "a")]


def test_a_reply_that_came_together_with_another_and_is_cut_off_now_is_untold():
    """The first of the two ends the program's waiting: whether the second still came was chance."""
    order = RecordedOrder("a b +c +d e")
    order.passed(0), order.passed(1)
    order.note_missing({"a", "b", "c", "d", "e"})
    assert list(order.untold) == [("b", "c")]
    other = RecordedOrder("a b +c")
    other.passed(0), other.passed(1)
    other.note_missing({"a", "b"})
    assert not other.untold


@pytest.mark.parametrize("bad", [7, None, "a*x", "+", "*3"])
def test_an_order_that_is_none_is_refused(bad):
    with pytest.raises(CassetteError, match="order of hand-overs"):
        RecordedOrder(bad)


# ---------------------------------------------------------------- while recording


def test_a_thread_is_held_until_the_others_wait_and_not_for_one_that_computes_on():
    seen = iter([5, 5, None])
    assert handovers(lambda *_: next(seen)).turn()

    def computing(_looks, ignored, _first):
        return None if 7 in ignored else 7

    order = handovers(computing)
    burning = threading.Event()
    burner = threading.Thread(target=lambda: [sum(range(1000)) for _ in iter(burning.is_set, True)])
    burner.start()
    try:
        assert not order.turn(), "it computes on"
        assert not order.turn(), "still, and is not waited for again"
    finally:
        burning.set()
        burner.join()


@pytest.mark.parametrize(
    ("line", "waits"),
    [
        ("202 0x7f0000000000 0x189 0x0", True),
        ("232 0x4 0x7ffc0 0x1", True),
        ("45 0x5 0x7ffc0 0x1000", True),
        ("0 {pipe:#x} 0x7ffc0 0x1000", True),
        ("0 {file:#x} 0x7ffc0 0x1000", False),
        ("1 {file:#x} 0x7ffc0 0x1000", False),
        ("74 {file:#x}", False),  # fsync
        ("9 0x0 0x1000 0x3", False),  # mmap
        ("-1 0x7ffd5 0x7f00", False),  # a page fault
        ("running", False),
    ],
)
def test_a_thread_that_waits_for_a_disk_or_for_memory_goes_on_by_itself(tmp_path, line, waits):
    """Only who waits for somebody else has come to rest."""
    ends = os.pipe()
    with (tmp_path / "a").open("w") as file:
        told = line.format(pipe=ends[0], file=file.fileno()).encode()
        assert waits_for_others(told, SYSTEM_CALLS["x86_64"]) is waits
    os.close(ends[0]), os.close(ends[1])


def test_a_thread_that_another_one_just_woke_acts():
    """For a moment the system still names the call in which it waited; its state tells."""
    assert runs_soon(b"26707 (tape :) S) R 24479 24479 6258 0 -1")
    assert not runs_soon(b"26707 (tape :) R) S 24479 24479 6258 0 -1")


def test_who_is_alone_in_a_cell_gives_up_no_time_to_others_of_the_process():
    """Each time costs a switch of threads, five milliseconds where one of them computes."""
    alone = Quiet(list, lambda _ident: 1)
    given_up = []
    sys.setprofile(lambda _frame, event, what: given_up.append(what) if event == "c_call" else None)
    try:
        assert alone.active([], 3) is None
    finally:
        sys.setprofile(None)
    assert "sleep" not in [what.__name__ for what in given_up]


def test_a_thread_is_held_for_what_it_waited_for_itself_and_an_event_loop_never(
    tmp_path, monkeypatch
):
    """A notebook's cell is run by an event loop, and may call what blocks."""
    held = []
    monkeypatch.setattr(Turns, "resume_thread", lambda _: held.append(True) or True)

    @tape.tool
    async def awaited(name):
        await asyncio.sleep(0)
        return name

    async def main(call):
        given = call("a")
        return await given if asyncio.iscoroutine(given) else given

    for call, count in ((look, 1), (awaited, 0)):
        held.clear()
        with tape.recording(tmp_path / f"{count}.tape.yaml"):
            assert asyncio.run(main(call)) == "a"
        assert len(held) == count


# ---------------------------------------------------------------- as people meet it


@tape.tool
def look(name):
    return name


def both(tmp_path, first, second=None):
    """The first program recorded, the second one (or the same) replayed: what they gave, and the replay's report."""
    path = tmp_path / "a.tape.yaml"
    with tape.recording(path):
        recorded = first()
    with tape.replaying(path) as block:
        replayed = (second or first)()
    return recorded, replayed, block.report


def test_calls_of_threads_that_never_overlapped_keep_their_order(tmp_path):
    def program():
        out, lines = [], []

        def work(name):
            look(name)
            out.append(name)

        with ThreadPoolExecutor(4) as pool:
            for number in range(30):
                wait([pool.submit(work, f"second {number}"), pool.submit(work, f"first {number}")])
                lines.append(tuple(out))
        return lines

    recorded, replayed, report = both(tmp_path, program)
    assert recorded == replayed and not report.warnings


def test_what_follows_a_tool_that_raised_waits_until_its_error_is_put_together(
    tmp_path, monkeypatch
):
    """The frames of its traceback are made in a thread of ours, which a busy machine lets wait."""
    start = unlisted_thread.start_new_thread

    def start_late(work, arguments):
        return start(lambda: (time.sleep(0.05), work(*arguments)), ())

    @tape.tool
    def refuse(number):
        raise ValueError(number)

    def program():
        out = []

        def ask(tool, number):
            with contextlib.suppress(ValueError):
                tool(number)
            out.append((tool.__name__, number))

        with ThreadPoolExecutor(4) as pool:
            for number in range(4):
                wait([pool.submit(ask, refuse, number), pool.submit(ask, look, number)])
        return out

    monkeypatch.setattr(unlisted_thread, "start_new_thread", start_late)
    recorded, replayed, report = both(tmp_path, program)
    assert recorded == replayed and not report.warnings


def test_threads_that_tell_that_they_began_do_so_in_the_same_order(tmp_path):
    """More work than threads, and all of it does something before it asks for anything."""

    def program():
        told = []

        def work(number):
            told.append(f"began {number}")
            look(number)
            told.append(f"did {number}")

        with ThreadPoolExecutor(3) as pool:
            futures = [pool.submit(work, number) for number in range(30)]
            told.append("all are handed out")
            for future in as_completed(futures):
                told.append(f"heard of {futures.index(future)}")
        return told

    recorded, replayed, report = both(tmp_path, program)
    assert recorded == replayed and not report.warnings
    assert recorded[:2] == ["all are handed out", "began 0"], "who begins waits for who goes on"


def test_another_order_than_the_recorded_one_is_said_with_both_calls(tmp_path):
    def program(*names):
        for name in names:
            thread = threading.Thread(target=look, args=(name,))
            thread.start()
            thread.join()

    _, _, report = both(tmp_path, lambda: program("a", "b"), lambda: program("b", "a"))
    (said,) = report.warnings
    ids = re.findall(r'^call: "?([\w-]+)', (tmp_path / "a.tape.yaml").read_text(), re.MULTILINE)
    assert re.match(
        rf"call {ids[1]} of look-1 arrived before call {ids[0]} of look-0, and in the recording after it",
        said,
    )


def test_two_replies_that_a_program_had_at_once_are_said_to_be_untold(tmp_path):
    """One thread computes on what it got while the other gets its reply: which of them is done first is chance."""

    def program():
        told, computing, over = [], threading.Event(), threading.Event()

        def slow():
            look("slow")
            computing.set()
            while not over.is_set():
                sum(range(1000))
            told.append("slow")

        def quick():
            computing.wait()
            look("quick")
            told.append("quick")
            over.set()

        threads = [threading.Thread(target=each) for each in (slow, quick)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return told

    recorded, replayed, report = both(tmp_path, program)
    assert recorded == replayed == ["quick", "slow"]
    (said,) = report.warnings
    assert re.search(r"call \w+ of slow-0 and call \w+ of quick-0 could not be told apart", said)


def test_threads_that_begin_while_the_first_computes_are_said_to_be_untold(tmp_path):
    """Before any reply: which of them is done first is chance."""

    def program():
        told, computing, over = [], threading.Event(), threading.Event()

        def slow():
            computing.set()
            while not over.is_set():
                sum(range(1000))
            told.append("slow")
            look("slow")

        def quick():
            told.append("quick")
            over.set()

        with ThreadPoolExecutor(2) as pool:
            first = pool.submit(slow)
            computing.wait()
            wait([first, pool.submit(quick)])
        return told

    recorded, replayed, report = both(tmp_path, program)
    assert recorded == replayed == ["quick", "slow"]
    (said,) = report.warnings
    assert "the beginning of quick-0 could not be told apart" in said


def test_threads_that_compute_before_they_call_begin_in_order_however_many_wait_beside_them(
    tmp_path,
):
    """What one computes is waited for once, not once for each that waits (as many make a client each)."""

    def program():
        told = []

        def one(number):
            told.append(number)
            end = time.thread_time() + 0.015
            while time.thread_time() < end:
                pass
            look(str(number))

        for _ in range(12):
            with ThreadPoolExecutor(6) as pool:
                wait([pool.submit(one, number) for number in range(6)])
        return told

    recorded, replayed, report = both(tmp_path, program)
    assert recorded == replayed == [*range(6)] * 12
    assert not report.warnings


def test_who_wakes_another_thread_comes_to_rest_before_that_goes_on(tmp_path):
    """The machine would choose which of the two acts first, and a busy one chooses otherwise."""

    def program():
        told, answers = [], queue.Queue()

        def one(name):
            answers.put(look(name))
            sum(range(100_000))  # long enough to lose the processor
            told.append(f"put {name}")

        with ThreadPoolExecutor(2) as pool:
            for name in "abcdefgh":
                pool.submit(one, name).add_done_callback(lambda _: told.append("called back"))
                told.append(f"got {answers.get()}")
        return told

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        recorded, replayed, report = both(tmp_path, program)
    finally:
        sys.setswitchinterval(before)
    assert recorded == replayed and not report.warnings
    assert recorded[:3] == ["put a", "called back", "got a"]


def test_a_task_that_was_cancelled_while_its_reply_was_under_way_is_cancelled_again(tmp_path):
    @tape.tool
    async def ask(name, rounds):
        for _ in range(rounds):
            await asyncio.sleep(0)
        return name

    async def race():
        tasks = [asyncio.create_task(ask(name, 1)) for name in "abc"]
        done, left = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        return sorted(task.result() for task in done)

    recorded, replayed, report = both(tmp_path, lambda: asyncio.run(race()))
    assert recorded == replayed and not report.warnings


def test_a_timer_goes_off_between_the_same_replies_or_never(tmp_path):
    def program():
        told = []
        rung, never = (
            threading.Timer(0.03, told.append, ["rung"]),
            threading.Timer(5, told.append, ["never"]),
        )

        def one(name, seconds):
            real_wait.wait(seconds)
            told.append(look(name))

        real_wait = threading.Event()
        threads = [
            rung,
            never,
            *(threading.Thread(target=one, args=each) for each in (("a", 0), ("b", 0.1))),
        ]
        for thread in threads:
            thread.start()
        threads[2].join(), threads[3].join(), rung.join()
        never.cancel()
        never.join()
        return told

    recorded, replayed, _ = both(tmp_path, program)
    assert recorded == replayed and "never" not in recorded


def test_a_broken_order_is_said_and_the_cell_replays_all_the_same(tmp_path):
    def program():
        with ThreadPoolExecutor(2) as pool:
            return list(pool.map(look, "ab"))

    path = tmp_path / "a.tape.yaml"
    with tape.recording(path):
        program()
    text = path.read_text()
    assert "\norder: " in text
    path.write_text(re.sub(r"\norder: .*", '\norder: "x*y"', text))
    with tape.replaying(path) as block:
        assert program() == ["a", "b"]
    assert any("order of hand-overs" in each for each in block.report.warnings)


# ---------------------------------------------------------------- what tools show


def printed_by(run):
    """A program whose tools print while others do; what was printed, line by line."""

    def program():
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            run()
        return out.getvalue().splitlines()

    return program


@tape.tool
def tell(name, seconds):
    print("looking up", name)
    time.sleep(seconds)
    print("found", name)
    return name


@tape.tool
async def tell_async(name, seconds):
    print("looking up", name)
    await asyncio.sleep(seconds)
    print("found", name)
    return name


def in_threads():
    with ThreadPoolExecutor(3) as pool:
        done = [pool.submit(tell, name, seconds) for name, seconds in zip("abc", (0.5, 0.3, 0.1))]
        for each in done:
            print("got", each.result())


def in_tasks():
    async def main():
        print(
            "got",
            *await asyncio.gather(*(tell_async(n, s) for n, s in zip("abc", (0.05, 0.03, 0.01)))),
        )

    asyncio.run(main())


@pytest.mark.parametrize("run", [in_threads, in_tasks])
def test_what_tools_print_beside_each_other_comes_in_the_recorded_order(tmp_path, run):
    """The first to say something is the last to end. On a very busy machine a call may come while the program still
    works on what came before: that is said, and nothing else.
    """
    recorded, replayed, report = both(tmp_path, printed_by(run))
    assert recorded == replayed
    assert all("could not be told apart" in each for each in report.warnings)
    assert recorded[:3] == ["looking up a", "looking up b", "looking up c"]
    assert sorted(recorded[3:6]) == ["found a", "found b", "found c"]


def test_a_tool_that_prints_while_nobody_goes_on_has_one_place(tmp_path):
    recorded, replayed, report = both(tmp_path, printed_by(lambda: (tell("a", 0), tell("b", 0))))
    assert recorded == replayed and not report.warnings
    text = (tmp_path / "a.tape.yaml").read_text()
    assert "amid" not in text and "\norder" not in text


def test_a_recording_without_places_for_what_is_shown_says_so(tmp_path):
    """As they were made before there were any."""
    path = tmp_path / "a.tape.yaml"
    with tape.recording(path):
        recorded = printed_by(in_threads)()
    text = re.sub(r"\n( *)amid:(?: \[.*\]|(?:\n +- \d+)+)", r"\n\1amid: true", path.read_text())
    path.write_text(re.sub(r"\norder: .*", "", text))
    with tape.replaying(path) as block:
        replayed = printed_by(in_threads)()
    assert sorted(replayed) == sorted(recorded)
    assert any("here it shows all at once" in each for each in block.report.warnings)


def shown_by(program, path, capsys):
    """What a program showed when it was recorded, and what its replay shows and says."""
    with tape.recording(path):
        program()
    recorded = capsys.readouterr().out
    with tape.replaying(path) as block:
        program()
    return recorded, capsys.readouterr().out, block.report.warnings


def test_what_a_tool_of_a_pool_shows_keeps_its_place_among_what_others_show(tmp_path, capsys):
    @tape.tool
    def sell(item):
        print("sold", item)
        return item

    def work(item):
        print("selling", item)
        sell(item)
        print("noted", item)

    def program():
        with ThreadPoolExecutor(4) as pool:
            futures = [pool.submit(work, item) for item in ("tea", "milk", "pie")]
            for future in as_completed(futures):
                print("heard of", futures.index(future))

    for number in range(5):
        recorded, replayed, said = shown_by(program, tmp_path / f"{number}.tape.yaml", capsys)
        assert replayed == recorded and not said


def test_an_async_tool_that_awaits_nothing_lets_no_other_task_go_first(tmp_path, capsys):
    @tape.tool
    async def count(name):
        print("counting", name)
        return name

    @tape.tool
    async def pages(name):
        for number in range(2):
            yield f"{name}{number}"

    async def work(name):
        print("began", name)
        print("counted", await count(name))
        async for page in pages(name):
            print("page", page)
        await asyncio.sleep(0)
        print("ended", name)

    def program():
        async def main():
            await asyncio.gather(*map(work, "abc"))

        asyncio.run(main())

    recorded, replayed, said = shown_by(program, tmp_path / "a.tape.yaml", capsys)
    assert recorded.startswith("began a\ncounting a\ncounted a\npage a0\npage a1\nbegan b\n")
    assert replayed == recorded and not said


def test_other_tasks_go_on_while_the_only_taped_one_waits(tmp_path, capsys):
    @tape.tool
    async def fetch(name):
        print("fetching", name)
        await asyncio.sleep(0.01)
        return name

    async def asks():
        print("fetched", await fetch("a"))

    async def counts():
        for number in range(3):
            print("counted", number)
            await asyncio.sleep(0)

    def program():
        async def main():
            await asyncio.gather(asks(), counts())

        asyncio.run(main())

    recorded, replayed, said = shown_by(program, tmp_path / "a.tape.yaml", capsys)
    assert recorded.index("counted 2") < recorded.index("fetched a")
    assert replayed == recorded and not said


def test_tasks_of_a_loop_that_is_never_idle_go_on_together_while_recording(tmp_path):
    """A task that is held longer keeps its connection, and its program sends more than it would."""
    rounds = []

    @tape.tool
    async def fetch(name):
        await asyncio.sleep(0)
        return name

    async def work():
        async def compute(until):
            for number in range(2_000):
                if until.done():
                    break
                end = time.thread_time() + 0.002
                while time.thread_time() < end:
                    pass
                await asyncio.sleep(0)
            rounds.append(number)

        all_fetched = asyncio.gather(*map(fetch, "abcdefghij"))
        await compute(all_fetched)
        return await all_fetched

    recorded, replayed, _ = both(tmp_path, lambda: asyncio.run(work()))
    assert recorded == replayed
    assert rounds[0] < 200


def test_sets_of_what_is_done_have_the_order_of_the_recording(tmp_path, capsys):
    async def work(name):
        return await asyncio.to_thread(look, name)

    def program():
        async def main():
            done, _ = await asyncio.wait([asyncio.create_task(work(n)) for n in range(8)])
            print([task.result() for task in done])

        asyncio.run(main())
        with ThreadPoolExecutor(4) as pool:
            done, _ = wait([pool.submit(look, f"{n} of a pool") for n in range(8)])
            print([future.result() for future in done])

    recorded, replayed, said = shown_by(program, tmp_path / "a.tape.yaml", capsys)
    assert replayed == recorded and not said


@pytest.mark.slow
def test_a_generator_of_more_items_than_have_places_ends_where_it_did(tmp_path, capsys):
    @tape.tool
    async def pages(name):
        for number in range(1_100):
            yield number
        await asyncio.sleep(0.01)

    async def reads():
        print("read", len([page async for page in pages("a")]))

    async def asks():
        for number in range(3):
            print("looked", look(number))
            await asyncio.sleep(0)

    def program():
        async def main():
            await asyncio.gather(reads(), asks())

        asyncio.run(main())

    recorded, replayed, said = shown_by(program, tmp_path / "a.tape.yaml", capsys)
    assert recorded == "looked 0\nlooked 1\nlooked 2\nread 1100\n"
    assert replayed == recorded and not said
