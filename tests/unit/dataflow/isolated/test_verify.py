"""A re-run is proved, or the cell is named that changed."""

import re

from tests.unit.dataflow.restore.test_versions import entry

from tape_jupyter.dataflow.isolated.end_state import End, EndValue
from tape_jupyter.dataflow.isolated.process import EntryOutcome, Replayed
from tape_jupyter.dataflow.history import Change, History
from tape_jupyter.dataflow.isolated.verify import verify_rerun


def history():
    return History([entry(0, strong=["x"], x=1), entry(1, strong=["y"], y=2)])


def ran(index, text="", **after):
    return EntryOutcome(
        index, text, after={k: repr(v) for k, v in after.items()}, changed=frozenset(after)
    )


def test_the_same_texts_and_values_are_a_proof():
    verdict = verify_rerun(
        history(),
        {0: "a", 1: "<f at 0x7f0000aa>"},
        Replayed((ran(0, "a", x=1), ran(1, "<f at 0x7f1111bb>", y=2))),
    )
    assert verdict.state == "proved" and verdict.cells == ()


def test_another_text_names_the_cell_to_adopt():
    verdict = verify_rerun(
        history(), {0: "a", 1: "b"}, Replayed((ran(0, "a", x=1), ran(1, "c", y=2)))
    )
    assert (
        (verdict.state, verdict.cells)
        == (
            "differs",
            (1,),
        )
        and verdict.text
        == "[2] also depends on this: its output differs ('b' here, 'c' after a whole run)"
    )


def test_long_lines_are_cut_around_what_parts_them():
    one, other = ("the same words, again and again, " * 5 + end for end in ("main", "take"))
    verdict = verify_rerun(history(), {0: one}, Replayed((ran(0, other, x=1), ran(1, "", y=2))))
    here, there = re.findall(r"'(…[^']+)' (?:here|after)", verdict.text)
    assert here.endswith("main") and there.endswith("take")


def test_another_value_or_file_does_too():
    assert (
        verify_rerun(history(), {}, Replayed((ran(0, x=9), ran(1, y=2)))).text
        == "[1] also depends on this: `x` holds something else"
    )
    made = history()
    made[0].files["/f"] = Change(None, b"a")
    other = EntryOutcome(0, "", after={"x": "1"}, changed=frozenset({"x"}), files={"/f": "zz"})
    assert verify_rerun(made, {}, Replayed((other, ran(1, y=2)))).cells == (0,)


def test_what_was_overwritten_since_is_not_compared():
    made = History([entry(0, strong=["x"], x=1), entry(1, strong=["x"], x=2)])
    assert verify_rerun(made, {}, Replayed((ran(0, x=7), ran(1, x=2)))).state == "proved"


def test_a_cell_that_does_not_reproduce_even_as_recorded_proves_nothing():
    verdict = verify_rerun(
        history(), {0: "time 1"}, Replayed((ran(0, "time 2", x=1), ran(1, y=2))), lambda: {0}
    )
    assert verdict.state == "not provable"
    assert verdict.text.startswith("[1] does not repeat even the recording: its output differs")
    assert "'time 1' here, 'time 2' after a whole run" in verdict.text


def test_a_replay_that_failed_proves_nothing():
    verdict = verify_rerun(history(), {}, Replayed((), "not provable: cell 2 took longer than 5 s"))
    assert (verdict.state, verdict.text) == (
        "not provable",
        "not provable: cell 2 took longer than 5 s",
    )


def ended(**names):
    """What is there in the end; a text that begins with "?" is of what cannot be looked into."""
    return End({n: EndValue(v, v[1:] if v[:1] == "?" else "", v) for n, v in names.items()})


def proof(here, there):
    replayed = Replayed((ran(0, x=1), ran(1, y=2)), end=there)
    return verify_rerun(history(), {}, replayed, live=here)


def test_the_live_kernel_is_compared_not_what_was_noted_of_it():
    verdict = proof(ended(x="1", y="3"), ended(x="1", y="2"))
    assert verdict.state == "differs" and verdict.cells == (1,)
    assert verdict.text == "[2] also depends on this: `y` holds 3 here, 2 after a whole run"
    assert (
        "`x` holds 1 here, nothing after a whole run"
        in proof(ended(x="1", y="2"), ended(y="2")).text
    )


def test_when_an_object_changed_does_not_matter_where_both_ends_are_known():
    """A callback of the loop comes within its cell in one kernel, after it in the other."""
    replayed = Replayed((ran(0, x=9), ran(1, y=2)), end=ended(x="1", y="2"))
    assert verify_rerun(history(), {}, replayed).state == "differs"
    assert verify_rerun(history(), {}, replayed, live=ended(x="1", y="2")).state == "proved"


def test_what_cannot_be_looked_into_is_said():
    verdict = proof(ended(x="1", y="?generator 1"), ended(x="1", y="?generator 2"))
    assert verdict.state == "proved" and "may have changed: `y` (generator 1)" in verdict.text
    assert "may have changed" not in proof(ended(x="1", y="?lock"), ended(x="1", y="?lock")).text


def test_a_live_file_is_compared_too():
    made = history()
    made[0].files["/f"] = Change(None, b"a")
    replayed = Replayed((ran(0, x=1), ran(1, y=2)), end=End(ended(x="1", y="2").names, {"/f": "b"}))
    told = verify_rerun(made, {}, replayed, live=End(ended(x="1", y="2").names, {"/f": "a"}))
    assert told.state == "differs" and "/f holds something else" in told.text


def test_a_variable_that_is_called_as_a_module_is_compared():
    made = History([entry(0, strong=["json"], json=1)])
    told = verify_rerun(made, {}, Replayed((ran(0, json=2),)))
    assert told.text == "[1] also depends on this: `json` holds something else"


def test_a_refusal_is_the_same_whatever_file_it_names_and_another_call_is_another():
    refused = (
        "UnmatchedCall: tool ask is not on the tape ({}.tape.yaml). Nothing was sent.\nNearest {}"
    )
    state = History([entry(0, strong=["x"], x=1)])

    def judged(text):
        return verify_rerun(state, {0: refused.format("main", 1)}, Replayed((ran(0, text, x=1),)))

    assert judged(refused.format("main.new", 2)).state == "proved"
    assert judged(refused.format("main", 1).replace("ask", "tell")).state == "differs"
