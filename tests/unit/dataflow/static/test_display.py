"""Values that the shell shows without asking anybody."""

import io
import sys
from collections import OrderedDict

import pytest

import flow_score
from tape_jupyter.dataflow.static.display import is_plain_display


@pytest.fixture
def hook(tmp_path, monkeypatch):
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    shell = flow_score._shell()
    yield shell.displayhook
    shell.clear_instance()


class Mine:
    def __repr__(self):
        return "mine"


class Listening(io.StringIO):
    """A stream of the user's."""


Listening.__module__ = "__main__"


@pytest.mark.parametrize(
    "value", [None, 7, "text", 2.5, b"b", True, [1, "a"], {"a": 1}, (), {1, 2}]
)
def test_numbers_texts_and_boxes_of_them_are_plain(value, hook):
    assert is_plain_display(value, hook)


@pytest.mark.parametrize(
    "value", [Mine(), [Mine()], {"a": Mine()}, OrderedDict(a=1), [[1]], list(range(2_000))]
)
def test_whatever_may_ask_a_class_of_the_users_is_not(value, hook):
    assert not is_plain_display(value, hook)


@pytest.mark.parametrize("kind", [int, object])
def test_nor_is_a_type_for_which_somebody_registered_a_printer(kind, hook):
    hook.shell.display_formatter.formatters["text/html"].for_type(
        kind, lambda value: f"<b>{value}</b>"
    )
    assert not is_plain_display(7, hook)
    assert is_plain_display("text", hook) is (kind is int)


def test_nor_one_by_its_types_name_or_for_one_value(hook):
    text = hook.shell.display_formatter.formatters["text/plain"]
    text.for_type_by_name("builtins", "int", lambda value, p, cycle: p.text("!"))
    assert not is_plain_display(7, hook)
    text.deferred_printers.clear()
    assert is_plain_display(None, hook)
    text.singleton_printers[id(None)] = lambda value, p, cycle: p.text("!")
    assert not is_plain_display(None, hook)


def test_nor_what_is_written_to_a_stream_of_the_users(hook, monkeypatch):
    monkeypatch.setattr(sys, "stdout", Listening())
    assert not is_plain_display(7, hook)


def test_a_hook_that_is_not_the_shells_is_asked_for_nothing():
    assert not is_plain_display(7, sys.__displayhook__)
