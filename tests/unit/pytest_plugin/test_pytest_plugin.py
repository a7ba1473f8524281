"""The plugin in a session that does not use it: nothing is imported, nothing is added to a test."""

import subprocess
import sys
import tomllib

from tests.harness.notebook import ROOT

ENTRY = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]["pytest11"]


def test_pytest_finds_it_by_its_entry_point():
    assert ENTRY == {"tape": "tape_jupyter.pytest_plugin"}


def test_an_unused_plugin_imports_one_module_and_adds_no_fixture_to_a_test(tmp_path):
    (tmp_path / "test_it.py").write_text(
        "import sys\n"
        "def test_one(request):\n"
        "    assert request.fixturenames == ['request']\n"
        "    ours = {name for name in sys.modules if name.partition('.')[0] == 'tape_jupyter'}\n"
        "    assert ours == {'tape_jupyter', 'tape_jupyter.pytest_plugin'}\n"
        "    assert not {'click', 'rich', 'IPython', 'nbformat', 'nbclient'} & set(sys.modules)\n"
    )
    words = [
        "-m",
        "pytest",
        "-q",
        "-W",
        "error",
        "-p",
        "tape_jupyter.pytest_plugin",
        "--strict-markers",
        str(tmp_path),
    ]
    env = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(ROOT), "PATH": ""}
    done = subprocess.run(
        [sys.executable, *words], env=env, cwd=tmp_path, capture_output=True, text=True
    )
    assert "1 passed" in done.stdout, done.stdout


def test_its_help_and_its_mark_are_told(tmp_path):
    env = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(ROOT), "PATH": ""}
    words = [sys.executable, "-m", "pytest", "-p", "tape_jupyter.pytest_plugin"]
    said = [
        subprocess.run([*words, word], env=env, cwd=tmp_path, capture_output=True, text=True).stdout
        for word in ("--help", "--markers", "--fixtures")
    ]
    assert all(word in said[0] for word in ("--tape", "--tape-mode", "--tape-env", "--tape-trust"))
    assert "@pytest.mark.tape(" in said[1] and "The calls of this test" in said[2]
