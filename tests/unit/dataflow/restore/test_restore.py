"""Files, names, globals of modules and ambient state are put back."""

import sys
import types

from tests.unit.dataflow.restore.test_versions import entry

from tape_jupyter.dataflow.tracing import ambient
from tape_jupyter.dataflow.fingerprint.fingerprint import fingerprint
from tape_jupyter.dataflow.history import Change, History, Step
from tape_jupyter.dataflow.restore.restore import World, hold_values, namespace, put_file, read_file
from tape_jupyter.dataflow.restore.versions import BEGINNING, Versions


def test_a_file_is_replaced_removed_and_made_with_its_folder(tmp_path):
    path = tmp_path / "deep" / "f"
    put_file(str(path), b"a")
    with path.open("rb") as old:
        put_file(str(path), b"b")
        assert path.read_bytes() == b"b" and old.read() == b"a"
    put_file(str(path), None)
    put_file(str(path), None)
    assert read_file(str(path)) is None and list(path.parent.iterdir()) == []


def test_a_file_keeps_its_mode(tmp_path):
    path = tmp_path / "f"
    path.write_bytes(b"a")
    path.chmod(0o640)
    put_file(str(path), b"b")
    assert path.stat().st_mode & 0o777 == 0o640


def test_a_name_gets_the_value_and_the_contents_of_a_version():
    first, second = [1], [2]
    history = History([entry(0, strong=["x"], x=first), entry(1, strong=["x"], x=second)])
    shell = namespace({"x": second})
    versions, world = Versions(history), World.now(shell, history)
    first.append("later")
    world.restore_version("x", 0, versions)
    assert shell.user_ns["x"] is first == [1] or shell.user_ns["x"] == [1]
    world.restore_version("x", BEGINNING, versions)
    assert "x" not in shell.user_ns
    world.put_first("x")
    assert shell.user_ns["x"] is second


def test_a_name_that_no_entry_made_is_never_dropped():
    history = History([entry(0, reads=["old"], weak=["old"], old=[1])])
    history[0].before["old"] = "digest"
    shell = namespace({"old": [1]})
    World.now(shell, history).restore_version("old", BEGINNING, Versions(history))
    assert "old" in shell.user_ns


def test_a_global_of_a_users_module(monkeypatch):
    module = types.ModuleType("g_helpers")
    monkeypatch.setitem(sys.modules, "g_helpers", module)
    module.STATE = 2
    made = entry(0)
    made.changed, made.kept, made.after = (
        frozenset({"g_helpers:STATE"}),
        {"g_helpers:STATE": 1},
        {"g_helpers:STATE": "1"},
    )
    hold_values(made)
    history = History([made])
    World.now(namespace({}), history).restore_version("g_helpers:STATE", 0, Versions(history))
    assert module.STATE == 1


def test_attributes_of_a_module_that_two_entries_changed():
    module = types.ModuleType("g_patched")
    sys.modules["g_patched"] = module
    part = f"{ambient.MODULE}g_patched"
    one, two = entry(0), entry(1)
    one.ambient = {part: Change({"a": ambient.ABSENT}, {"a": 1})}
    two.ambient = {part: Change({"b": ambient.ABSENT}, {"b": 2})}
    module.a, module.b = 1, 2
    history = History([one, two])
    versions, world = Versions(history), World.now(namespace({}), history)
    world.restore_version(f"ambient:{part}", 0, versions)
    assert module.a == 1 and not hasattr(module, "b")
    world.restore_version(f"ambient:{part}", BEGINNING, versions)
    assert not hasattr(module, "a")
    world.put_all_first([])
    assert (module.a, module.b) == (1, 2)
    del sys.modules["g_patched"]


def test_a_change_that_took_too_long_to_look_at_is_no_change_that_nobody_saw():
    """The text of the cell says that it may have changed it."""
    history = History()
    made, changed = history.begin("a", "xs = []", 1), history.begin("b", "xs.append(1)", 2)
    made.changed, made.after = frozenset({"xs"}), {"xs": fingerprint([]).digest}
    changed.steps = (Step(1, weak=frozenset({"xs"})),)
    changed.opaque = frozenset({"xs"})
    assert World.now(namespace({"xs": [1]}), history).unsure == set()
    changed.opaque = frozenset()
    changed.steps = ()
    assert World.now(namespace({"xs": [1]}), history).unsure == {"xs"}
