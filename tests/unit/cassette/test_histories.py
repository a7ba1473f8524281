"""References of requests are followed however long the chain, and what is not there is named."""

import pytest

from tape_jupyter.errors import CassetteError
from tape_jupyter.cassette.request_refs import ReferenceCheck, Histories
from tape_jupyter.cassette.request_refs import MARK
from tests.harness.timing import growth


class Tape:
    """Folded bodies in file order, and how often each was read."""

    def __init__(self):
        self.bodies, self.reads = {}, []
        self.histories = Histories(self.place, self.read)

    def place(self, key):
        return (
            list(self.bodies).index(key)
            if len(self.bodies) < 100 and key in self.bodies
            else self.fast(key)
        )

    def fast(self, key):
        return int(key[1][:8], 16) if key in self.bodies else None

    def read(self, key):
        self.reads.append(key)
        return self.bodies[key]

    def add(self, call, body, run="r1"):
        self.bodies[run, call] = body

    def body(self, call, run="r1"):
        return self.histories.body((run, call), self.bodies[run, call])

    def check(self):
        check = ReferenceCheck(self.place)
        return [check.body(key, body) for key, body in self.bodies.items()]


def ref(call, start=None, stop=None, path="m"):
    return {MARK: f"{call} {path}" if start is None else f"{call} {path}[{start}:{stop}]"}


@pytest.fixture
def tape():
    return Tape()


def test_references_lead_through_calls_runs_and_texts(tape):
    tape.add("00000000", {"m": ["a", "b"], "s": "text"})
    tape.add("00000001", {"m": [ref("00000000", 0, 2), "c"], "s": ref("00000000", path="s")})
    tape.add(
        "00000002",
        {"m": [ref("r1/00000001", 1, 3), ref("r1/00000000", 0, 1)], "s": "new"},
        run="r2",
    )
    assert tape.body("00000001") == {"m": ["a", "b", "c"], "s": "text"}
    assert tape.body("00000002", "r2") == {"m": ["b", "c", "a"], "s": "new"}
    assert tape.check() == [False, True, True]


def test_a_body_without_references_is_handed_back_and_reads_nothing(tape):
    tape.add("00000000", {"m": ["a"]})
    assert tape.body("00000000") is tape.bodies["r1", "00000000"]
    assert tape.reads == []


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (
            ref("0000000f", 0, 1),
            "call 00000001 refers to call 0000000f, which is not in this cassette",
        ),
        (ref("r9/00000000", 0, 1), "refers to call r9/00000000, which is not"),
        (
            ref("00000001", 0, 1),
            "call 00000001 refers to call 00000001, which does not come before it",
        ),
        (
            ref("00000002", 0, 1),
            "call 00000001 refers to call 00000002, which does not come before it",
        ),
        (ref("00000000", 0, 3), "outside call 00000000, which holds 2"),
        (ref("00000000", 0, 1, "x"), "no list 'x'"),
    ],
)
def test_a_reference_that_cannot_be_followed_names_both_calls(tape, body, says):
    tape.add("00000000", {"m": ["a", "b"]})
    tape.add("00000001", {"m": [body]})
    tape.add("00000002", {"m": ["c"]})
    for use in (tape.check, lambda: tape.body("00000001")):
        with pytest.raises(CassetteError, match=says):
            use()


def chain(length):
    """Each repeats the one before and adds a word."""
    tape = Tape()
    tape.add(f"{0:08x}", {"m": ["0"]})
    for n in range(1, length):
        tape.add(f"{n:08x}", {"m": [ref(f"{n - 1:08x}", 0, n), str(n)]})
    return tape


def test_a_chain_of_ten_thousand_is_followed_reading_each_once():
    tape = chain(10_000)
    assert tape.body(f"{9_999:08x}") == {"m": [str(n) for n in range(10_000)]}
    assert len(tape.reads) == 9_999
    assert sum(tape.check()) == 9_999
    assert len(tape.reads) == 9_999


def test_a_chain_takes_time_in_proportion():
    def followed(length):
        tape = chain(length)
        return lambda: tape.body(f"{length - 1:08x}")

    def checked(length):
        return chain(length).check

    assert growth(followed, 1_250, 10_000) < 4
    assert growth(checked, 1_250, 10_000) < 4


def test_a_body_that_refers_to_a_thousand_others_is_unfolded(tape):
    for n in range(1_000):
        tape.add(f"{n:08x}", {"m": [str(n)]})
    tape.add(f"{1000:08x}", {"m": [ref(f"{n:08x}", 0, 1) for n in range(1_000)]})
    assert tape.body(f"{1000:08x}")["m"] == [str(n) for n in range(1_000)]
    assert len(tape.reads) == 1_000


def test_the_next_request_of_a_conversation_reads_nothing_again(tape):
    tape.add(f"{0:08x}", {"m": ["0"]})
    for n in range(1, 50):
        tape.add(f"{n:08x}", {"m": [ref(f"{n - 1:08x}", 0, n), str(n)]})
        tape.body(f"{n:08x}")
    assert len(tape.reads) == 1
    tape.histories.clear()
    tape.body(f"{49:08x}")
    assert len(tape.reads) == 50


def test_going_back_through_a_conversation_reads_each_request_once(tape):
    tape.add(f"{0:08x}", {"m": ["0"]})
    for n in range(1, 100):
        tape.add(f"{n:08x}", {"m": [ref(f"{n - 1:08x}", 0, n), str(n)]})
    for n in reversed(range(100)):
        assert len(tape.body(f"{n:08x}")["m"]) == n + 1
    assert len(tape.reads) <= 200
