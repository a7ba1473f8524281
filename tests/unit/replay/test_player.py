"""Which recorded call answers: never a near one, its own cell's first, told apart by lineage, each once."""

import random
import sys
import threading
from dataclasses import dataclass

import pytest

from tape_jupyter.replay.player import Frozen, GoLive, Player, Refuse, Stub
from tape_jupyter.cassette.runs import CellIdentity, RecordedRun, current_runs, run_of
from tape_jupyter.replay.selection import Selection, CallOrigin
from tests.harness.timing import ratio


@dataclass(frozen=True)
class Call:
    id: str
    run: str
    match: str
    lineage: str = ""

    @property
    def order(self):
        return int(self.id.partition("-")[2] or 1)


class Tape:
    """A cassette in memory."""

    def __init__(self):
        self.runs, self.calls = [], []
        self.player = Player(self.matching, lambda: self.runs)

    def matching(self, key):
        return [call for call in self.calls if call.match == key]

    def record(self, cell, *keys, session="s1", source=None, parent="", lineages=()):
        """A run of a cell with calls of these keys; gives them."""
        run = f"r{len(self.runs)}"
        self.runs.append(
            {
                "run": run,
                "cell": cell,
                "source": source or f"of {cell}",
                "session": session,
                "parent": parent,
            }
        )
        calls = []
        for n, key in enumerate(keys):
            count = sum(call.match == key for call in calls) + 1
            lineage = lineages[n] if lineages else ""
            calls.append(Call(f"{key}-{count}" if count > 1 else key, run, key, lineage))
        self.calls += calls
        return calls

    def run(self, cell="", mode="replay", source=None, session="s2"):
        execution = self.player.start(CellIdentity(cell, source or f"of {cell}", session), mode)
        return lambda key, lineage="", **more: self.player.decide(execution, key, lineage, **more)


@pytest.fixture
def tape():
    return Tape()


# ---------------------------------------------------------------- modes


def test_replay_plays_what_is_recorded_and_refuses_the_rest(tape):
    (call,) = tape.record("c1", "k")
    ask = tape.run("c1")
    assert ask("k") is call
    assert ask("k") == Refuse(times=1)
    assert ask("other") == Refuse(times=0)


def test_record_and_live_never_play(tape):
    tape.record("c1", "k")
    for mode in ("record", "live"):
        ask = tape.run("c1", mode)
        assert isinstance(ask("k"), GoLive) and isinstance(ask("k", ended=True), GoLive)


def test_new_episodes_plays_what_is_known_and_lets_the_rest_out(tape):
    (call,) = tape.record("c1", "k")
    ask = tape.run("c1", "new_episodes")
    assert ask("k") is call
    assert isinstance(ask("k"), GoLive) and isinstance(ask("new"), GoLive)


def test_new_episodes_does_not_play_what_it_has_just_recorded(tape):
    tape.record("c1", "k")
    ask = tape.run("c1", "new_episodes")
    ask("k")
    assert isinstance(ask("new"), GoLive)
    tape.record("c1", "new", "k", parent="r0", session="s2")
    assert isinstance(ask("new"), GoLive) and isinstance(ask("k"), GoLive)


def test_once_replays_a_cell_that_is_recorded_and_is_strict_then(tape):
    (call,) = tape.record("c1", "k")
    ask = tape.run("c1", "once")
    assert ask("k") is call and ask("new") == Refuse()
    assert tape.run("c1", "once")("new") == Refuse()


def test_once_records_a_cell_that_is_not_and_then_never_plays(tape):
    tape.record("c1", "k")
    ask = tape.run("c2", "once")
    assert isinstance(ask("new"), GoLive) and isinstance(ask("k"), GoLive)


def test_once_replays_an_edited_cell_whose_first_call_is_known(tape):
    (call,) = tape.record("", "k", source="old source")
    ask = tape.run("", "once", source="new source")
    assert ask("k") is call and ask("new") == Refuse()


def test_a_call_after_the_cell_ended_is_refused_in_replay_and_consumes_nothing(tape):
    (call,) = tape.record("c1", "k")
    for mode in ("replay", "once"):
        ask = tape.run("c1", mode)
        assert ask("k", ended=True) == Refuse(ended=True)
        assert ask("k") is call


# ---------------------------------------------------------------- own cell, newest recording


def test_a_cells_own_recording_comes_before_anothers(tape):
    (first,) = tape.record("c1", "k")
    (second,) = tape.record("c2", "k")
    assert tape.run("c2")("k") is second
    assert tape.run("c1")("k") is first


def test_when_its_own_are_used_up_those_of_other_cells_answer(tape):
    (first,) = tape.record("c1", "k")
    (second,) = tape.record("c2", "k")
    ask = tape.run("c2")
    assert [ask("k"), ask("k"), ask("k")] == [second, first, Refuse(times=2)]


def test_an_edited_cell_still_finds_its_calls(tape):
    (call,) = tape.record("", "k", source="old")
    assert tape.run("", source="new")("k") is call


def test_two_edited_cells_that_ask_the_same_get_an_answer_each(tape):
    (first,) = tape.record("", "k", source="old 1")
    (second,) = tape.record("", "k", source="old 2")
    assert tape.run("", source="new 1")("k") is first
    assert tape.run("", source="new 2")("k") is second


def test_the_newest_recording_of_a_cell_counts_whatever_its_outcome(tape):
    tape.record("c1", "k", "old")
    (new,) = tape.record("c1", "k")
    ask = tape.run("c1")
    assert ask("k") is new and ask("k") == Refuse(times=1)
    assert ask("old") == Refuse(times=0)


def test_recording_again_in_the_midst_of_a_session_is_seen(tape):
    tape.record("c1", "k")
    tape.run("c1")("k")
    (new,) = tape.record("c1", "k")
    assert tape.run("c1")("k") is new


def test_cells_without_an_id_are_told_by_their_source_and_those_of_one_kernel_by_their_order(tape):
    (first,) = tape.record("", "k", source="same")
    (second,) = tape.record("", "k", source="same")
    assert tape.run("", source="same")("k") is first
    assert tape.run("", source="same")("k") is second
    assert tape.run("", source="same")("k") is second  # run again, a third time


def test_which_of_several_recordings_a_run_plays_is_known(tape):
    told = lambda: tape.player.recording_of(
        tape.player.start(CellIdentity("", "same", "s2"), "replay")
    )  # noqa: E731
    assert told() == (1, 1)
    for _ in range(3):
        tape.record("", "k", source="same")
    assert [told(), told(), told()] == [(2, 3), (3, 3), (3, 3)]
    said = tape.player.start(CellIdentity("", "same", "s2"), "replay", repeats="r0")
    assert tape.player.recording_of(said) == (1, 1)


def test_recording_cells_without_an_id_in_another_kernel_replaces_them(tape):
    tape.record("", "k", source="same")
    tape.record("", "k", source="same")
    (new,) = tape.record("", "k", source="same", session="s9")
    ask = tape.run("", source="same", session="s10")
    assert ask("k") is new and ask("k") == Refuse(times=1)


def test_running_a_cell_again_serves_it_again(tape):
    calls = tape.record("c1", "a", "b", "a")
    for _ in range(5):
        ask = tape.run("c1")
        assert [ask("a"), ask("b"), ask("a")] == calls


def test_additions_of_new_episodes_come_after_what_they_add_to(tape):
    calls = tape.record("c1", "a", "b")
    added = tape.record("c1", "a", "c", parent="r0", session="s2")
    ask = tape.run("c1", session="s3")
    assert [ask("a"), ask("b"), ask("a"), ask("c")] == [*calls, *added]
    assert ask("c") == Refuse(times=1)


def test_recording_a_cell_again_drops_its_additions_too(tape):
    tape.record("c1", "a")
    tape.record("c1", "b", parent="r0")
    (new,) = tape.record("c1", "a")
    ask = tape.run("c1")
    assert ask("a") is new and ask("b") == Refuse()


def test_additions_to_what_is_no_longer_there_do_not_count(tape):
    tape.record("c1", "a", parent="gone")
    assert tape.run("c1")("a") == Refuse()


def test_calls_without_a_run_record_do_not_count(tape):
    tape.calls.append(Call("k", "nowhere", "k"))
    assert tape.run("c1")("k") == Refuse()


# ---------------------------------------------------------------- identical calls, told apart


def test_identical_calls_of_one_strand_come_in_their_order(tape):
    calls = tape.record("c1", *["k"] * 12)
    tape.calls.reverse()  # the file is in the order of completion
    ask = tape.run("c1")
    assert [ask("k") for _ in range(12)] == calls


def test_identical_calls_of_many_strands_are_told_apart_by_lineage(tape):
    lineages = [f"{strand}" for strand in range(16) for _ in range(3)]
    calls = tape.record("c1", *["k"] * 48, lineages=lineages)
    for seed in range(20):
        ask, order = tape.run("c1"), list(range(16)) * 3
        random.Random(seed).shuffle(order)
        got = {strand: [] for strand in range(16)}
        for strand in order:
            got[strand].append(ask("k", f"{strand}"))
        assert all(got[strand] == calls[3 * strand : 3 * strand + 3] for strand in range(16))


def test_a_strand_that_was_not_recorded_takes_what_is_left_in_order(tape):
    calls = tape.record("c1", "k", "k", "k", lineages=["1", "2", "3"])
    ask = tape.run("c1")
    assert [ask("k", "9"), ask("k", "3"), ask("k", "2"), ask("k", "1")] == [
        calls[0],
        calls[2],
        calls[1],
        Refuse(times=3),
    ]


def test_sixteen_threads_asking_at_once_each_get_their_own(tape):
    calls = tape.record("c1", *["k"] * 160, lineages=[str(n % 16) for n in range(160)])
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(10):
            ask, got = tape.run("c1"), {}

            def work(strand, ask=ask, got=got):
                got[strand] = [ask("k", str(strand)) for _ in range(10)]

            threads = [threading.Thread(target=work, args=(strand,)) for strand in range(16)]
            [thread.start() for thread in threads]
            [thread.join() for thread in threads]
            assert all(got[strand] == calls[strand::16] for strand in range(16))
            assert ask("k", "0") == Refuse(times=160)
    finally:
        sys.setswitchinterval(before)


def test_no_recorded_call_is_served_twice_in_one_execution_whatever_the_lineages(tape):
    tape.record("c1", *["k"] * 30, lineages=[str(n % 4) for n in range(30)])
    tape.record("c2", *["k"] * 10)
    ask, r = tape.run("c1"), random.Random(1)
    got = [ask("k", str(r.randrange(9))) for _ in range(40)]
    assert len({(call.run, call.id) for call in got}) == 40
    assert ask("k") == Refuse(times=40)


# ---------------------------------------------------------------- runs


def runs(*told):
    """'c1@s1' is a run of cell c1 in session s1; '<0' adds to run 0."""
    out = []
    for n, text in enumerate(told):
        cell, _, parent = text.partition("<")
        cell, _, session = cell.partition("@")
        identity = CellIdentity("" if cell.startswith("?") else cell, cell.lstrip("?"), session)
        out.append(RecordedRun(str(n), identity, parent))
    return out


@pytest.mark.parametrize(
    ("told", "kept"),
    [
        ("", ""),
        ("c1@a c2@a c1@a", "1 2"),
        ("c1@a c1@b c1@c", "2"),
        ("?x@a ?x@a", "0 1"),
        ("?x@a ?x@a ?x@b", "2"),
        ("?x@a ?y@a ?x@b", "1 2"),
        ("c1@a c1@a<0 c2@a c1@a<0", "0 1 2 3"),
        ("c1@a c1@a<0 c1@b", "2"),
        ("c1@a c1@b c1@a<0", "1"),
        ("c1@a<1 c1@a", "1 0"),
        ("c1@a<9", ""),
        ("x@a ?x@b", "1"),  # recorded in JupyterLab, then by nbclient
        ("?x@a x@b", "1"),
        ("x@a ?x@a", "0 1"),
        ("?@a ?@b", "0 1"),  # neither id nor source: nothing is known to be the same
    ],
)
def test_the_runs_that_count(told, kept):
    assert [run.id for run in current_runs(runs(*told.split()))] == kept.split()


def test_the_player_follows_the_runs_one_by_one_as_if_all_were_read_at_once():
    for seed in range(60):
        r, tape = random.Random(seed), Tape()
        for n in range(30):
            cell = r.choice(["c1", "c2", "", "", ""])
            roots = [run["run"] for run in tape.runs if not run["parent"]]
            parent = r.choice(roots) if roots and r.random() < 0.3 else ""
            tape.record(cell, source=r.choice("xyz"), session=r.choice("ab"), parent=parent)
            assert tape.player.current() == slow_current([run_of(run) for run in tape.runs])


def slow_current(all_runs):
    """The rule in its plainest form."""
    kept = []
    for run in all_runs:
        if not run.parent:
            gone = {old.id for old in kept if not old.parent and run.cell.replaces(old.cell)}
            kept = [old for old in kept if old.id not in gone and old.parent not in gone]
        kept.append(run)
    known = {run.id for run in kept if not run.parent}
    return [run for run in kept if not run.parent or run.parent in known]


def test_a_cassette_that_was_read_anew_is_seen(tape):
    tape.record("c1", "k")
    assert tape.run("c1")("k").run == "r0"
    tape.runs, tape.calls = [{"run": "r7", "cell": "c1"}], [Call("k", "r7", "k")]
    assert tape.run("c1")("k").run == "r7"


def test_deciding_costs_no_more_on_a_large_tape():
    def decided(size):
        tape = Tape()
        tape.record("c1")
        tape.calls = [Call(f"k{n}", "r0", f"k{n}") for n in range(size)]
        index = {call.match: [call] for call in tape.calls}
        tape.player = Player(lambda key: index.get(key, ()), lambda: tape.runs)

        def work():
            ask = tape.run("c1")
            assert all(isinstance(ask(f"k{n}"), Call) for n in range(200))

        return work

    assert ratio(decided(20_000), decided(200)) < 3


def test_a_thousand_cells_recorded_one_by_one_cost_little():
    def recorded():
        tape = Tape()
        for n in range(1000):
            tape.record(f"c{n}" if n % 2 else "", source="same" if n % 4 else f"s{n}")
            tape.player.current()

    def numbered():
        for n in range(1000):
            dict(enumerate(range(n)))

    assert ratio(recorded, numbered, rounds=3) < 50


# ---------------------------------------------------------------- a selection excepts boundaries from the mode


def excepting(tape, cell, mode, **told):
    execution = tape.player.start(
        CellIdentity(cell, f"of {cell}", "s2"), mode, None, Selection.parse(**told)
    )
    return lambda key, site=TOOL, **more: tape.player.decide(execution, key, site=site, **more)


TOOL, LLM = CallOrigin("tool", "lookup"), CallOrigin("model", "h")


def test_a_live_boundary_takes_the_place_of_the_call_that_would_have_answered(tape):
    first, second = tape.record("c1", "k", "k")
    ask = excepting(tape, "c1", "replay", live=["tools"])
    assert [ask("k"), ask("k"), ask("k"), ask("new")] == [
        GoLive(first),
        GoLive(second),
        GoLive(),
        GoLive(),
    ]
    assert ask("k", LLM) == Refuse(times=2)


def test_a_live_boundary_of_a_cell_that_has_ended_does_not_go_out(tape):
    tape.record("c1", "k")
    assert excepting(tape, "c1", "replay", live=["tools"])("k", ended=True) == Refuse(ended=True)


def test_one_call_of_many_goes_live(tape):
    first, second, third = tape.record("c1", "k", "k", "k")
    ask = excepting(tape, "c1", "replay", live=["call:k-2"])
    assert [ask("k"), ask("k"), ask("k")] == [first, GoLive(second), third]


def test_a_frozen_boundary_is_answered_while_recording_and_the_rest_goes_live(tape):
    (call,) = tape.record("c1", "k")
    ask = excepting(tape, "c1", "record", freeze=["tools"])
    tape.record("c1", "other", session="s2")  # this very run: it replaces the one that answers
    assert ask("k", LLM) == GoLive()
    ask = excepting(tape, "c1", "record", freeze=["tools"])
    assert ask("k") == Frozen(call)
    assert ask("k") == Refuse(times=1, frozen=True) and ask("new") == Refuse(frozen=True)


def test_a_frozen_boundary_is_answered_by_the_newest_recording_that_has_it(tape):
    for session in ("s1", "s3", "s5"):
        (newest,) = tape.record("c1", "k", session=session)
    tape.record("c1", "other", session="s7")
    assert excepting(tape, "c1", "record", freeze=["tools"])("k") == Frozen(newest)


def test_a_stub_answers_always_while_recording_and_in_place_of_the_tape_in_replay(tape):
    (call,) = tape.record("c1", "k")
    recording, replaying = (
        excepting(tape, "c1", mode, stub={"lookup": 7}) for mode in ("record", "replay")
    )
    assert [recording("k"), recording("k"), recording("new")] == [Stub(7), Stub(7), Stub(7)]
    assert [replaying("k"), replaying("new")] == [Stub(7, call), Stub(7)]
    adding = excepting(tape, "c1", "new_episodes", stub={"lookup": 7})
    assert [adding("k"), adding("new"), adding("new", LLM)] == [call, Stub(7), GoLive()]


def test_once_is_a_plain_replay_where_the_cell_is_known(tape):
    (call,) = tape.record("c1", "k")
    ask = excepting(tape, "c1", "once", stub={"lookup": 7})
    assert [ask("k"), ask("new")] == [call, Refuse()]
    assert excepting(tape, "c9", "once", stub={"lookup": 7})("new") == Stub(7)


@dataclass(frozen=True)
class Told(Call):
    """A call of which its match key says less than all."""

    discriminator: str = ""


def test_of_calls_with_one_match_key_only_the_one_with_the_same_rest_is_served(tape):
    tape.record("a")
    tape.calls = [
        Told("k", "r0", "k", discriminator="ada"),
        Told("k-2", "r0", "k", discriminator="bob"),
    ]
    decide = tape.run("a")
    assert decide("k", discriminator="bob") is tape.calls[1]
    assert (
        decide("k", discriminator="bob") == Refuse(times=1)
        and decide("k", discriminator="cyd") == Refuse()
    )
    assert decide("k") is tape.calls[0], "without it they are told apart by their order"


def test_what_a_function_did_live_in_another_cell_of_a_take_answers_only_there(tape):
    tape.record("c1", "a")
    (added,) = tape.record("c1", "f", parent="r0")
    tape.runs[-1]["mode"] = "replay"
    assert tape.run("c1")("f", has_body=True) == added
    assert tape.run("c2")("f", has_body=True) == Refuse(1)
    assert tape.run("c2")("f") == added, "a model's reply is as good there"
