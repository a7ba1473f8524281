"""What a function did to its arguments: told by freezing them twice, done again to the same objects."""

import copy
import random
from collections import Counter, OrderedDict, defaultdict, deque

import pytest

from tape_jupyter.encoding.values.registry import freeze
from tape_jupyter.encoding.values.mutations import (
    FrozenValue,
    frozen_or_type,
    is_changeable,
    redo_changes,
)


def changed_arguments(before, arguments):
    """As recordings tell it: the changed arguments, frozen, and the names of what cannot be changed again.

    `before` are the same arguments, frozen before the call.
    """
    effects, lost = {}, []
    for name, value in arguments.items():
        if "<opaque>" in str(before[name]):
            continue
        after = frozen_or_type(value)
        if after != before[name]:
            if is_changeable(value) and "<opaque>" not in str(after):
                effects[name] = after
            else:
                lost.append(name)
    return effects, lost


def repeated(arguments, change):
    """The arguments after a recorded change, and other ones like them after it was put back."""
    other = copy.deepcopy(arguments)
    before = {name: frozen_or_type(value) for name, value in arguments.items()}
    change(arguments)
    effects, lost = changed_arguments(before, arguments)
    redo_changes(effects, other)
    return effects, lost, other


def test_what_stays_as_it_was_has_no_effect():
    assert repeated(
        {"a": [1], "b": {"c": (1, {2})}, "d": "text", "e": None, "f": object}, lambda _: None
    )[:2] == (
        {},
        [],
    )


@pytest.mark.parametrize(
    ("value", "change"),
    [
        ([1, 2], lambda v: v.append(3)),
        ([1, 2, 3], lambda v: v.clear()),
        ([[1], [2]], lambda v: v.insert(0, [0])),
        ([{"a": 1}], lambda v: v[0].update(b=2)),
        ({"a": {"b": [1]}}, lambda v: v["a"]["b"].append(2)),
        ({"a": 1, "b": 2}, lambda v: v.pop("a")),
        ({"a": 1}, lambda v: v.update(a={"deep": [1]})),
        ({1, 2}, lambda v: v.discard(1)),
        (bytearray(b"ab"), lambda v: v.extend(b"c")),
        (deque([1], maxlen=2), lambda v: v.extend([2, 3])),
        (Counter("ab"), lambda v: v.subtract("aaa")),
        (OrderedDict(a=1, b=2), lambda v: v.move_to_end("a")),
        (defaultdict(list, a=[1]), lambda v: v["b"].append(2)),
        ([(1, [2])], lambda v: v[0][1].append(3)),
    ],
)
def test_a_change_is_put_back(value, change):
    live = {"it": value}
    effects, lost, other = repeated(live, lambda arguments: change(arguments["it"]))
    assert list(effects) == ["it"] and lost == []
    assert (
        other == live and type(other["it"]) is type(value) and list(other["it"]) == list(live["it"])
    )


def test_the_objects_inside_stay_the_same_objects_where_they_did_so_then():
    first, second, messages = {"n": 1}, {"n": 2}, ["hello"]
    live = {"rows": [first, second], "state": {"messages": messages}}
    recorded = copy.deepcopy(live)
    before = {name: freeze(value) for name, value in recorded.items()}
    recorded["rows"].insert(0, {"n": 0})
    recorded["rows"][2]["n"] = 5
    recorded["state"]["messages"].append("world")
    redo_changes(changed_arguments(before, recorded)[0], live)
    assert live == recorded
    assert live["rows"][1] is first and first == {"n": 1}, "moved, not overwritten"
    assert live["state"]["messages"] is messages and messages == ["hello", "world"]


def test_a_random_program_of_changes_is_put_back():
    for seed in range(200):
        chance = random.Random(seed)
        live = {"it": [[chance.randrange(3)], {"k": [chance.randrange(3)]}, chance.randrange(3)]}

        def change(arguments, chance=chance):
            for _ in range(chance.randrange(1, 6)):
                rows = arguments["it"]
                act = chance.randrange(5)
                if act == 0:
                    rows.insert(chance.randrange(len(rows) + 1), chance.choice([[1], {"k": []}, 7]))
                elif act == 1 and rows:
                    rows.pop(chance.randrange(len(rows)))
                elif act == 2:
                    rows.reverse()
                else:
                    for row in rows:
                        if isinstance(row, list):
                            row.append(act)
                        elif isinstance(row, dict):
                            row.setdefault("k", []).append(act)

        _, lost, other = repeated(live, change)
        assert other == live and lost == [], seed


def test_a_changed_object_of_another_sort_is_lost_and_what_cannot_be_written_is_no_matter():
    import dataclasses

    import tests.harness.planted as home

    @dataclasses.dataclass
    class Box:
        n: int

    Box.__module__, Box.__qualname__ = home.__name__, "Box"
    home.Box = Box
    box = Box(1)
    assert repeated({"box": box, "handle": object()}, lambda _: setattr(box, "n", 2))[:2] == (
        {},
        ["box"],
    )
    del home.Box
    turned = []
    assert repeated({"it": turned}, lambda _: turned.append(object()))[:2] == ({}, ["it"])


def test_what_is_frozen_already_stays_so():
    assert frozen_or_type(FrozenValue({"<type>": "tuple", "values": []})) == {
        "<type>": "tuple",
        "values": [],
    }
    assert frozen_or_type(object()) == {"<opaque>": "builtins.object"}
