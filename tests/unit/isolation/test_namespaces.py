"""A process is without network where this machine can do that, and people are told what holds it."""

import ast
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import tape_jupyter
from tape_jupyter.isolation import namespaces

linux = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="network namespaces are Linux's"
)
needs_cut = pytest.mark.skipif(not namespaces.can_cut(), reason="needs unshare -rn")


@pytest.fixture
def bare_machine(monkeypatch, tmp_path):
    monkeypatch.setattr(namespaces, "SYSTEM_FOLDERS", (str(tmp_path),))
    namespaces.can_cut.cache_clear()
    yield
    namespaces.can_cut.cache_clear()


def run(source):
    command = [*namespaces.without_network(), sys.executable, "-c", source]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


@needs_cut
def test_a_process_that_is_cut_off_reaches_itself_and_nobody_else():
    told = run(
        "import socket; from tape_jupyter.isolation.namespaces import loopback_up; loopback_up()\n"
        "server = socket.create_server(('127.0.0.1', 0)); socket.create_connection(server.getsockname()).close()\n"
        "print([name for _, name in socket.if_nameindex() if name == 'lo'], len(open('/proc/net/route').readlines()))"
    )
    assert told.startswith("['lo'] ") and told.split()[1] in (
        "0",
        "1",
    )  # a heading at most: no route leads anywhere


@needs_cut
def test_where_the_network_is_cut_off_that_is_what_is_said():
    assert namespaces.namespace_guards() == namespaces.CUT


@linux
def test_a_process_with_a_network_does_not_pass_for_one_that_is_cut_off():
    others = [
        name for _, name in socket.if_nameindex() if name != "lo" and namespaces._is_link_up(name)
    ]
    if not others:
        pytest.skip("this machine has no network itself")
    with pytest.raises(RuntimeError, match="not cut off"):
        namespaces.loopback_up()


@pytest.mark.usefixtures("bare_machine")
def test_without_unshare_the_socket_guard_is_named():
    assert not namespaces.can_cut() and namespaces.namespace_guards() == namespaces.GUARDED
    assert "socket guard alone" in namespaces.namespace_guards()[0]


@linux
def test_programs_of_the_system_are_not_sought_on_the_path(tmp_path, monkeypatch):
    (tmp_path / "unshare").write_text("#!/bin/sh\n")
    (tmp_path / "unshare").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert namespaces.program("sh").startswith("/") and not namespaces.program(
        "unshare"
    ).startswith(str(tmp_path))
    assert namespaces.program("no-such-program") == ""


def test_what_is_not_to_be_cut_is_started_as_it_is():
    assert namespaces.without_network(cut=False) == []


def test_no_sentence_tells_a_person_to_run_unshare():
    """The program that makes a network namespace is named where it is run, and nowhere that people read."""
    package = Path(tape_jupyter.__file__).parent
    spoken = []
    for file in package.rglob("*.py"):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        texts = (n for n in ast.walk(tree) if isinstance(n, ast.Constant) and id(n) not in docs)
        spoken += [f"{file.name}:{n.lineno}" for n in texts if "unshare -" in str(n.value)]
    assert spoken == []


def test_git_is_never_one_that_lies_in_the_working_folder(tmp_path, monkeypatch):
    own, person = tmp_path / "notebook", tmp_path / "person"
    for folder in (own / "bin", person):
        folder.mkdir(parents=True)
        (folder / "git").write_text("#!/bin/sh\n")
        (folder / "git").chmod(0o755)
    (own / "git").write_text("#!/bin/sh\n")
    (own / "git").chmod(0o755)
    monkeypatch.setattr(namespaces, "SYSTEM_FOLDERS", ())
    monkeypatch.chdir(own)
    monkeypatch.setenv("PATH", os.pathsep.join([str(own / "bin"), ".", "", str(person)]))
    assert namespaces.git_command(own, "status")[0] == str(person / "git")
    monkeypatch.setenv("PATH", str(own / "bin"))
    with pytest.raises(FileNotFoundError, match="git is not installed"):
        namespaces.git_command(own, "status")
