"""What a report says of one thing, and of many together."""

from tape_jupyter.audit.nondeterminism import AuditFinding, fold_findings, worst


def test_several_calls_together_are_as_good_as_the_worst_of_them():
    found = [
        AuditFinding("seed", "pinned", "seed 7"),
        *[AuditFinding("seed", "missing", "no seed", "seed=7")] * 2,
    ]
    one = fold_findings("seed", 2, found, "no model was asked")
    assert (one.status, one.capture) == ("missing", "seed=7")
    assert one.what == "2 of 3 calls: no seed (2 calls)"


def test_where_there_is_nothing_to_hold_that_is_what_is_recorded():
    assert fold_findings("seed", 2, [], "no model was asked") == AuditFinding(
        "seed", "recorded", "no model was asked", number=2, empty=True
    )
    assert worst([]) == "recorded"


def test_what_had_nothing_to_hold_says_nothing_beside_what_had():
    none = fold_findings("tools", 6, [], "no tool was called")
    held = AuditFinding("tools", "pinned", "lookup: answered from the tape", number=6)
    assert fold_findings("tools", 6, [none, held], "", "runs") == held
    assert fold_findings("tools", 6, [none, none], "", "runs").what == "no tool was called (2 runs)"


def test_many_kinds_are_counted_and_not_all_told():
    one = fold_findings("x", 0, [AuditFinding("x", "missing", f"kind {n}") for n in range(9)], "")
    assert one.what.endswith("6 more kinds")


def test_a_finding_reads_as_a_sentence_with_the_line_that_keeps_it():
    found = AuditFinding("user_id", "missing", "not told", "%tape set user_id=...")
    assert str(found) == "user_id: not told. Next time: %tape set user_id=..."
    assert found.record() == {"name": "user_id", "status": "missing", "what": "not told", "capture": "%tape set user_id=..."}  # fmt: skip
