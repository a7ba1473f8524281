"""Environments are made with what is there, and what goes wrong is told in a person's words."""

import os
import sys

import pytest

from tape_jupyter.bundle.environment import install
from tape_jupyter.errors import BundleError


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (["ERROR: No matching distribution found for amber==1.0"], "amber: your package index has no such version"),
        (["ERROR: Could not find a version that satisfies the requirement amber==9 (from versions: 1.0)"], "amber: your"),
        (["  × No solution found", "  ╰─▶ Because amber was not found in the package registry and"], "amber: your"),
        (["  ╰─▶ Because there is no version of amber==9 and you require amber==9"], "amber: your"),
        (["ERROR: THESE PACKAGES DO NOT MATCH THE HASHES", "    amber==1.0 from http://h/amber.whl:"], "amber: what your"),
        (["  × Failed to download `amber==1.0`", "  ╰─▶ Hash mismatch for `amber==1.0`"], "amber: what your"),
        (["WARNING: Retrying: Failed to establish a new connection: refused", "ERROR: No matching distribution found for amber==1"], "cannot be reached"),
        (["error: Failed to fetch: `https://h/simple/amber/`", "  Caused by: dns error"], "cannot be reached"),
        (["error sending request for url (https://h/simple/amber/)", "invalid peer certificate: UnknownIssuer"], "amber: the certificate"),
        (["odd", "fatal: https://ada:pw@h/x broke"], "https://…@h/x broke"),
        ([], "no reason"),
    ],
)  # fmt: skip
def test_why_an_installer_failed(said, told):
    assert told in install.reason(said) and "pw" not in install.reason(said)


def test_this_python_is_taken_where_it_is_the_one():
    own = f"{sys.version_info[0]}.{sys.version_info[1]}"
    assert (
        install.maker(own, {"PATH": ""}).python
        == sys.executable
        == install.maker("", {"PATH": ""}).python
    )


def test_another_python_is_looked_for(tmp_path):
    other = tmp_path / "python3.99"
    other.write_text("#!/bin/sh\necho 3.99\n")
    other.chmod(0o755)
    assert install.maker("3.99", {"PATH": f"{tmp_path}{os.pathsep}/bin"}).python == str(other)


def test_it_is_asked_its_version_without_ones_own_variables(tmp_path, monkeypatch):
    other, seen = tmp_path / "python3.99", tmp_path / "seen.txt"
    other.write_text(f"#!/bin/sh\nenv > {seen}\necho 3.99\n")
    other.chmod(0o755)
    path = f"{tmp_path}{os.pathsep}/bin{os.pathsep}/usr/bin"
    monkeypatch.setenv("PATH", path)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary")
    install.maker("3.99")
    assert "PATH=" in seen.read_text() and "canary" not in seen.read_text()


def test_one_that_does_not_run_is_none(tmp_path):
    other = tmp_path / "python3.99"
    other.write_text("#!/bin/sh\nexit 127\n")
    other.chmod(0o755)
    with pytest.raises(
        BundleError, match=r"made with Python 3.99, and there is none.*Install Python 3.99"
    ):
        install.maker("3.99", {"PATH": str(tmp_path)})


def test_uv_is_taken_where_it_is_on_the_path(tmp_path):
    uv = tmp_path / "uv"
    uv.write_text("#!/bin/sh\n")
    uv.chmod(0o755)
    made = install.maker("3.99", {"PATH": str(tmp_path)})
    assert (made.uv, made.python) == (str(uv), "3.99")  # uv brings the Python


def test_uv_is_told_what_pip_is_configured_for(tmp_path):
    environ = {
        "PATH": os.environ["PATH"], "HOME": str(tmp_path), "PIP_CONFIG_FILE": os.devnull, "PIP_FIND_LINKS": "/w",
        "PIP_INDEX_URL": "https://a.test/s", "PIP_EXTRA_INDEX_URL": "https://b.test/s https://c.test/s",
    }  # fmt: skip
    told = install.Maker("python", "uv", environ)._build_uv_environ()
    assert (
        told["UV_DEFAULT_INDEX"] == "https://a.test/s"
        and told["UV_INDEX"] == "https://b.test/s https://c.test/s"
    )
    assert told["UV_FIND_LINKS"] == "/w"
    none = install.Maker("python", "uv", {**environ, "PIP_NO_INDEX": "1"})._build_uv_environ()
    assert none["UV_NO_INDEX"] == "1" and "UV_DEFAULT_INDEX" not in none


def test_a_program_that_cannot_be_run_is_said(tmp_path):
    with pytest.raises(
        BundleError, match="the virtual environment cannot be made: python cannot be run"
    ):
        install.Maker(str(tmp_path / "python")).make_environment(tmp_path / "v", print)
