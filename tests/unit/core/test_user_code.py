"""Whose code a module is."""

import sys

import numpy
import polars

from tape_jupyter.core.user_code import bag, is_class_of_users, is_installed, is_users, root_module


def test_libraries_and_ourselves_are_not_the_users(tmp_path, monkeypatch):
    assert (
        not is_users("json")
        and not is_users("numpy")
        and not is_users("tape_jupyter.core.call")
        and is_users("__main__")
    )
    (tmp_path / "flow_own_m.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    assert not is_users("flow_own_m")
    import flow_own_m

    assert is_users("flow_own_m")
    del sys.modules["flow_own_m"], flow_own_m


def test_installed_files():
    assert is_installed(numpy.__file__) and not is_installed("/home/ada/notebook/helpers.py")
    assert root_module(numpy.ndarray) == "numpy" and bag("a b") == {"a", "b"}


def test_a_folder_beside_the_installation_is_the_users():
    assert not is_installed("/home/ada/lib/python/mine.py") and not is_users("no.such.module")


def test_a_method_belongs_to_the_package_of_its_object():
    assert root_module([].append) == "builtins" and root_module(numpy.zeros(1).sum) == "numpy"
    assert root_module(type("Odd", (), {"__module__": 3})) == ""


def test_a_class_that_a_text_makes_is_the_users_and_one_of_an_extension_is_not():
    made = {}
    exec("class Own: pass\nclass Bare: __slots__ = ()", made)
    assert is_class_of_users(made["Own"]) and is_class_of_users(made["Bare"])
    core = type(vars(polars.DataFrame())["_df"])
    assert core.__module__ == "builtins" and not is_class_of_users(core)
