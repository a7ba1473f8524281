"""Who wrote a class or a function."""

import collections
import json
import sys

import pytest

from tape_jupyter.core.libraries import is_library_class, is_library_file, is_library_path


class Users:
    pass


def users():
    pass


@pytest.mark.parametrize("cls", [dict, collections.Counter, json.JSONDecoder, pytest.Item])
def test_what_is_installed_is_a_librarys(cls):
    assert is_library_class(cls)


def test_what_a_file_of_ones_own_defines_is_the_users():
    assert not is_library_class(Users) and not is_library_file(users.__code__)
    assert is_library_file(json.dumps.__code__) and is_library_path(json.__file__)


def test_what_the_notebook_defines_is_the_users(monkeypatch):
    made = type("Made", (), {"__module__": "__main__"})
    assert not is_library_class(made) and "__main__" in sys.modules
