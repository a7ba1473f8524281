"""Which files a process reads, whoever opens them; each is seen in a process of its own: audit hooks stay for ever."""

import hashlib
import json
import subprocess
import sys

import pytest

ABOUT = """
import glob, json, os, pathlib, sqlite3, subprocess, sys
from tape_jupyter.bundle.proof.inputs import InputWatch as Reading
reading = Reading({top!r}, lambda path: path.startswith({elsewhere!r}))
reading.begin(copied={copied})
os.chdir({top!r})
{code}
found = reading.list_files()
print(json.dumps([[each.path, each.size, each.sha256] for each in found] + [reading.unseen]))
"""


@pytest.fixture
def seen(tmp_path):
    """Runs code in `top`; gives {path below top: (size, sha256)} of what it read, and what could not be seen."""
    top = tmp_path / "top"
    (top / "more").mkdir(parents=True)
    for name in ("a.txt", "b.txt", "more/1.csv", "more/2.csv", "more/3.json"):
        (top / name).write_text(f"in {name}")

    def run(code, copied=True):
        about = ABOUT.format(
            top=str(top), elsewhere=str(tmp_path / "elsewhere"), copied=copied, code=code
        )
        done = subprocess.run(
            [sys.executable, "-c", about], capture_output=True, text=True, check=True
        )
        *found, unseen = json.loads(done.stdout.splitlines()[-1])
        return {path.replace(f"{top}/", ""): (size, sha) for path, size, sha in found}, unseen

    run.top = top
    return run


@pytest.mark.parametrize(
    ("code", "read"),
    [
        ("open('a.txt').read()", {"a.txt"}),
        ("pathlib.Path('a.txt').read_bytes()", {"a.txt"}),
        ("os.close(os.open('a.txt', os.O_RDONLY))", {"a.txt"}),
        ("open('a.txt', 'a').write('x')", {"a.txt"}),
        ("open('a.txt', 'r+').write('x')", {"a.txt"}),
        ("open('a.txt', 'w').write('x'); open('a.txt').read()", set()),
        ("open('new.txt', 'w').write('x'); open('new.txt').read()", set()),
        ("open('tmp', 'w').write('x'); os.rename('tmp', 'b.txt'); open('b.txt').read()", set()),
        ("os.rename('a.txt', 'c.txt'); open('c.txt').read()", {"a.txt"}),
        ("glob.glob('more/*.csv')", {"more/1.csv", "more/2.csv"}),
        ("list(pathlib.Path('more').glob('*.csv'))", {"more/1.csv", "more/2.csv"}),
        ("list(pathlib.Path('.').rglob('*.json'))", {"more/3.json"}),
        ("list(pathlib.Path('more').iterdir())", {"more/1.csv", "more/2.csv", "more/3.json"}),
        ("os.listdir('more')", {"more/1.csv", "more/2.csv", "more/3.json"}),
        ("list(os.walk('more'))", {"more/1.csv", "more/2.csv", "more/3.json"}),
        ("sys.path.insert(0, 'more'); import importlib.util; importlib.util.find_spec('nowhere')", set()),
        ("os.path.exists('a.txt')", set()),
        ("subprocess.run(['cat', 'a.txt'], capture_output=True)", {"a.txt"}),
        ("import shutil; shutil.copy('a.txt', 'c.txt'); open('c.txt').read()", {"a.txt"}),
    ],
)  # fmt: skip
def test_what_is_read_is_seen_and_what_the_run_made_is_not(seen, code, read):
    found, unseen = seen(code)
    assert (set(found), unseen) == (read, "")


def test_a_file_counts_as_it_was_when_it_was_first_opened(seen):
    found, _ = seen("text = open('a.txt').read(); open('a.txt', 'w').write('other')")
    assert found == {"a.txt": (8, hashlib.sha256(b"in a.txt").hexdigest())}


def test_a_database_is_read_when_somebody_connects(seen):
    import sqlite3

    with sqlite3.connect(seen.top / "db") as connection:
        connection.execute("create table t(x)")
    connection.close()
    assert set(seen("sqlite3.connect('db').close()", copied=False)[0]) == {"db"}
    assert set(seen("sqlite3.connect('file:db?mode=ro', uri=True).close()", copied=False)[0]) == {
        "db"
    }


def test_what_lies_elsewhere_counts_where_it_may_matter(seen, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "x.csv").write_text("x")
    (tmp_path / "nobodys.csv").write_text("x")
    found, _ = seen("open('../elsewhere/x.csv').read(); open('../nobodys.csv').read()")
    assert set(found) == {str(tmp_path / "elsewhere/x.csv")}


def test_without_a_copy_it_says_what_it_cannot_see(seen):
    found, unseen = seen("subprocess.run(['cat', 'a.txt'], capture_output=True)", copied=False)
    assert not found and "without Python" in unseen


def test_a_source_is_read_also_where_python_keeps_its_own_copy(seen):
    (seen.top / "helper.py").write_text("X = 1")
    code = "sys.path.insert(0, '.'); import helper"
    assert "helper.py" in seen(code)[0] and "helper.py" in seen(code, copied=False)[0]


def test_a_folder_that_is_listed_and_has_too_much_in_it_is_not_taken_whole(seen):
    code = "import tape_jupyter.bundle.proof.inputs as reads; reads.LISTED = 2; os.listdir('more'); open('more/3.json').read(); print(reading.crowded)"
    assert set(seen(code)[0]) == {"more/3.json"}
