"""What stands for a value that is not on the tape refuses to be used, and is never more than a name."""

import copy
import subprocess
import sys

import pytest

from tape_jupyter.errors import CassetteError, UnmatchedCall
from tape_jupyter.encoding.values.registry import Argument, Secret, freeze, thaw
from tape_jupyter.encoding.values.mutations import frozen_or_type
from tape_jupyter.encoding.values.placeholders import StandIn, not_kept


def stand_in(name="sqlite3:Connection"):
    return thaw({"<type>": "not kept", "class": name, "why": "$: cannot freeze it"})


def test_it_goes_by_the_name_of_what_it_stands_for():
    import threading

    lock = threading.Lock()
    again = thaw(not_kept(lock, "a lock"))
    assert frozen_or_type(again) == frozen_or_type(lock) == {"<opaque>": "_thread.lock"}
    assert "not on the tape" in repr(again) and isinstance(again, StandIn)


@pytest.mark.parametrize(
    "use",
    [
        lambda it: it.execute("select 1"), lambda it: it(), list, len, lambda it: it[0], lambda it: 1 in it,
        lambda it: it.__enter__(), lambda it: it + 1,
    ],
)  # fmt: skip
def test_every_use_is_refused_and_says_what_to_do(use):
    with pytest.raises(UnmatchedCall, match="sqlite3.Connection stands here .*@tape.tool"):
        use(stand_in())


def test_who_only_looks_at_it_finds_nothing():
    it = stand_in()
    assert getattr(it, "_repr_html_", None) is None and bool(it) and it != copy.copy(it)
    assert str(it) and hash(it) == hash(it)


def test_it_is_a_name_and_nothing_is_looked_up_or_made_by_it():
    made = type(stand_in("subprocess:Popen"))
    assert made is not subprocess.Popen and made.__mro__[1:] == StandIn.__mro__
    assert type(stand_in("module_never_imported:Thing")).__name__ == "Thing"
    assert "module_never_imported" not in sys.modules


@pytest.mark.parametrize("name", ["", "os", "a:b c", "a:b.c()", "../x:y", "a:__import__('os')"])
def test_what_is_no_name_of_a_class_is_refused(name):
    with pytest.raises(CassetteError):
        stand_in(name)


def test_arguments_and_secrets_are_named():
    for value in (Argument("state"), Secret("API_KEY")):
        assert thaw(freeze(value)) == value
    with pytest.raises(CassetteError):
        thaw({"<type>": "argument", "name": 3})
