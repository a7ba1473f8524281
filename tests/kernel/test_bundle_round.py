"""One whole round of a bundle, with the command line alone: recorded, exported, verified, replayed by somebody else.

Somebody else: another folder with blanks and letters of other alphabets, an empty home, no key, nowhere to write but a
scratch folder, and, where strace is there, every connect and every write counted. (With the lock's own packages: at night.)
"""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.harness.notebook import clean_env
from tests.harness.provider import Provider
from tests.harness.replayed import LIGHT
from tests.harness.notebook import notebook
from tests.harness.system_calls import STRACE, changed_paths, read_trace, strace

CONNECT = re.compile(
    r"connect\(\d+(?:<[^>]*>)?, \{sa_family=(AF_INET6?), sin6?_port=htons\((\d+)\)"
)
TAKEN = ("/dev/", "/proc/")


def tape(*words, env, before=()):
    done = subprocess.run(
        [*before, sys.executable, "-m", "tape_jupyter", *map(str, words)],
        env=env,
        capture_output=True,
        text=True,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    """A session with a module and a data file beside the notebook, exported; the provider is gone."""
    folder = tmp_path_factory.mktemp("ada")
    env = clean_env(folder, {"OPENAI_API_KEY": "sk-proj-Jw8hTq2x5NcR7vBmK4pLsD9f"})
    (folder / "work").mkdir()
    (folder / "work" / "data.csv").write_text("a,b\n1,2\n")
    (folder / "work" / "helper.py").write_text("def shout(text):\n    return text.upper()\n")
    cells = (
        *LIGHT,
        "import helper\nhelper.shout('bye')",
        "print({'north', 'south', 'east'}, object())",
        "1 / 0",
        "'after'",
    )
    with Provider(vary=True) as provider:
        path = notebook(
            folder / "work" / "churn.ipynb", *(each.replace("URL", provider.url) for each in cells)
        )
        code, said, error = tape("record", path, "--json", env=env)
    assert json.loads(said)["cells"][1]["status"] == "ok", error
    saved = json.loads(path.read_text())
    saved["cells"] = saved["cells"][:-1]  # what was never run is no part of the session
    path.write_text(json.dumps(saved))
    code, said, error = tape("export", path, "--no-index", "--json", env=env)
    assert code == 0, error
    return json.loads(said)


def somebody(folder):
    """Of another person, whose home cannot be written."""
    home = folder / "nobody"
    home.mkdir()
    env = {
        **clean_env(home),
        "HOME": str(home / "none"),
        "XDG_CACHE_HOME": "/dev/null",
        "XDG_CONFIG_HOME": "/dev/null",
    }
    return {**env, "TMPDIR": str(folder / "tmp")}


@pytest.mark.slow
def test_it_verifies_and_replays_for_somebody_else_with_no_connection(bundle, tmp_path):
    (tmp_path / "tmp").mkdir()
    place = tmp_path / "fôlder with blanks ü" / "来.tape.zip"
    place.parent.mkdir()
    shutil.copy(bundle["path"], place)
    env, trace = somebody(tmp_path), tmp_path / "trace"
    code, said, error = tape("verify", place, "--json", env=env)
    assert code == 0 and json.loads(said)["digest"] == bundle["sha256"], said + error
    before = strace(trace) if STRACE else ()
    code, said, error = tape("replay", place, "--yes", "--here", "--json", env=env, before=before)
    assert code == 0, said + error
    told = json.loads(said)
    assert [cell["status"] for cell in told["cells"]] == ["same"] * 8
    assert all(cell["expected"] == cell["replayed"] for cell in told["cells"])
    assert list((tmp_path / "tmp").iterdir()) == []
    if STRACE:
        seen = read_trace(trace)
        made = CONNECT.findall(seen)
        assert made, "strace saw not even the kernel's own connections"
        assert [port for _, port in made if int(port) not in told["kernel_ports"]] == []
        written = set(changed_paths(seen, Path.cwd()))
        allowed = (str(tmp_path / "tmp"), *TAKEN)
        assert any(path.startswith(allowed[0]) for path in written), "strace saw no write"
        assert sorted(path for path in written if not path.startswith(allowed)) == []


@pytest.mark.night  # it installs the packages from the index
def test_it_replays_with_the_packages_of_its_lock(bundle, tmp_path):
    (tmp_path / "tmp").mkdir()
    code, said, error = tape("replay", bundle["path"], "--yes", "--json", env=somebody(tmp_path))
    assert code == 0, said + error
    assert "made anew each time" in json.loads(said)["notes"][0]
