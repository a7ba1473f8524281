"""A class of `core.quick_dataclass` behaves as the standard library's does, made with the same words."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from typing import Any

import pytest

from tape_jupyter.core import quick_dataclass


def declare(make):
    """The same classes, made by `make`: plain, slotted, frozen, one that inherits, one with words of its own."""

    @make
    class Plain:
        name: str
        tags: list[str] = dataclasses.field(default_factory=list)
        seen: int = dataclasses.field(default=0, compare=False, repr=False)
        total: int = dataclasses.field(init=False)

        def __post_init__(self):
            self.total = len(self.tags)

    @make(frozen=True, slots=True)
    class Frozen:
        name: str
        value: Any = None
        format: int = dataclasses.field(default=1, kw_only=True)
        count: int = dataclasses.field(default=7, init=False)

    @make(frozen=True, slots=True)
    class Child(Frozen):
        more: tuple = ()

    @make(slots=True, eq=False)
    class Same:
        one: object

    @make
    class Own:
        """Says how it is shown."""

        one: int

        def __repr__(self):
            return "own"

    return {each.__name__: each for each in (Plain, Frozen, Child, Same, Own)}


def outcome(action):
    try:
        return action()
    except Exception as error:
        return type(error).__name__, isinstance(error, AttributeError)


ACTIONS = {
    "shown": lambda c: repr([c["Plain"]("a", ["x"]), c["Frozen"]("a", 2), c["Child"]("b", more=(1,)), c["Own"](1)]),
    "recursive": lambda c: repr((lambda a: a.tags.append(a) or a)(c["Plain"]("a"))),
    "equal": lambda c: (
        c["Plain"]("a", seen=1) == c["Plain"]("a", seen=2), c["Frozen"]("a") == c["Frozen"]("b"),
        c["Frozen"]("a") == c["Child"]("a"), c["Same"](1) == c["Same"](1), c["Own"](1) == c["Own"](1),
    ),
    "one hash": lambda c: len({c["Frozen"]("a"), c["Frozen"]("a"), c["Child"]("a")}),
    "no hash": lambda c: hash(c["Plain"]("a")),
    "own defaults": lambda c: c["Plain"]("a").tags is c["Plain"]("b").tags,
    "after init": lambda c: (c["Plain"]("a", ["x", "y"]).total, c["Frozen"]("a").count),
    "frozen": lambda c: setattr(c["Frozen"]("a"), "name", "b"),
    "frozen, taken away": lambda c: delattr(c["Child"]("a"), "name"),
    "slotted": lambda c: setattr(c["Same"](1), "other", 2),
    "too few": lambda c: c["Frozen"](),
    "by keyword only": lambda c: c["Frozen"]("a", 1, 2),
    "fields": lambda c: [[(f.name, f.init, f.kw_only) for f in dataclasses.fields(each)] for each in c.values()],
    "replaced": lambda c: repr(dataclasses.replace(c["Child"]("a", more=(1,), format=3), name="b", )),
    "as a dict": lambda c: dataclasses.asdict(c["Child"]("a", {"b": [1]})),
    "matched": lambda c: [each.__match_args__ for each in c.values()],
    "copied": lambda c: repr(copy.deepcopy(c["Frozen"]("a", [1], format=3))),
}  # fmt: skip


@pytest.mark.parametrize("name", ACTIONS)
def test_it_does_what_the_standard_one_does(name):
    ours, theirs = declare(quick_dataclass.dataclass), declare(dataclasses.dataclass)
    assert outcome(lambda: _plain(ACTIONS[name](ours))) == outcome(
        lambda: _plain(ACTIONS[name](theirs))
    )


def _plain(value):
    return value.replace("declare.<locals>.", "") if isinstance(value, str) else value


@quick_dataclass.dataclass(frozen=True, slots=True)
class Pickled:
    name: str
    value: int = 1


def test_a_frozen_one_can_be_pickled():
    assert pickle.loads(pickle.dumps(Pickled("a", 2))) == Pickled("a", 2)
