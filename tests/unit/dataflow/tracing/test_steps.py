"""What a generator did, as text and back; and as one with what it did later."""

import pytest

from tape_jupyter.errors import CassetteError
from tape_jupyter.encoding.values.registry import GeneratorSteps, freeze, freeze_error, thaw
from tape_jupyter.encoding.values.generators import is_steps, join_states
from tape_jupyter.encoding.yaml.emitter import emit, parse_record

WHOLE = GeneratorSteps(
    is_async=True, items=[1, {"a": 2}, "x"], waits=[0.1, 0.2, 0.3, 0.4], sent={1: "hi"},
    thrown={2: freeze_error(ValueError("no"))}, end="complete", returned={"n": 3},
)  # fmt: skip


def test_steps_are_written_and_read():
    structure = WHOLE.structure()
    assert freeze(WHOLE) == structure and is_steps(structure) and not is_steps({"items": []})
    assert parse_record(emit({"call": structure}))["call"] == structure
    assert thaw(structure) == WHOLE


def test_a_plain_loop_is_written_as_its_items():
    plain = GeneratorSteps(items=["a", "b"], end="complete")
    assert plain.structure() == {"<type>": "generator", "items": ["a", "b"], "end": "complete"}
    assert thaw({"<type>": "generator", "items": ["a", "b"]}) == plain


@pytest.mark.parametrize("kept", range(4))
def test_a_part_and_what_came_later_are_the_whole(kept):
    part = GeneratorSteps(
        True, WHOLE.items[:kept], WHOLE.waits[:kept], {k: v for k, v in WHOLE.sent.items() if k < kept},
        {k: v for k, v in WHOLE.thrown.items() if k < kept},
    )  # fmt: skip
    assert thaw(join_states(part.structure(), WHOLE.structure(kept))) == WHOLE


def test_each_item_has_its_wait_and_the_end_the_last():
    assert [WHOLE.wait(i) for i in (0, 2, 3, 9)] == [0.1, 0.3, 0.4, 0.4] and GeneratorSteps().wait(
        5
    ) == 0.0


@pytest.mark.parametrize(
    "change",
    [
        {"items": "abc"}, {"end": "lost"}, {"end": "error"}, {"sent": [[1]]}, {"sent": [["a", 1]]}, {"sent": {"1": 2}},
        {"thrown": [1]}, {"async": "yes"}, {"waits": "fast"}, {"waits": [[]]}, {"error": 3, "end": "error"},
    ],
)  # fmt: skip
def test_what_is_malformed_is_refused(change):
    with pytest.raises(CassetteError):
        thaw({"<type>": "generator", "items": [1], **change})
    with pytest.raises(CassetteError):
        join_states({"<type>": "generator", "items": []}, [1])
