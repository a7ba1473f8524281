"""What a recording made is none of what it started from: databases, appended files, folders; in replay and in bundles."""

import sqlite3
import zipfile

import pytest

from tape_jupyter.files import originals
from tests.harness.folders import lies, prints, tape, told
from tests.harness.notebook import notebook
from tests.harness.provider import Provider
from tests.harness.tapes import ASK

DATABASE = """import sqlite3
memory = sqlite3.connect("memory.sqlite")
memory.execute("pragma journal_mode=wal")
memory.execute("create table if not exists said (text)")
def remember(text):
    memory.execute("insert into said values (?)", (text,))
    memory.commit()
    return [row[0] for row in memory.execute("select text from said")]"""
TALK = "for text in ('one', 'two'):\n    print(ask(' '.join(remember(text))))"
LOG = "with open('log.txt', 'a') as log: log.write('line ')\nprint(ask(open('log.txt').read()))"
FOLDER = (
    "import os; os.mkdir('index'); open('index/part', 'w').write('1'); print(os.listdir('index'))"
)


def recorded(path, tmp_path, *cells):
    """Records; the provider is gone then."""
    with Provider(vary=True) as provider:
        made = notebook(path, ASK.replace("URL", provider.url), *cells)
        done = tape("record", made, "--json", home=tmp_path)
    assert set(told(done)[0]) == {"ok"}, done
    return made


@pytest.mark.slow
def test_a_session_that_makes_its_own_database_replays_in_place_twice_and_is_exported(tmp_path):
    folder = tmp_path / "work"
    path = recorded(folder / "n.ipynb", tmp_path, DATABASE, TALK, LOG, FOLDER)
    assert (folder / "memory.sqlite").is_file() and (folder / "log.txt").read_text() == "line "
    before = lies(folder)
    for _ in range(2):
        done = tape("replay", path, "--json", home=tmp_path)
        assert (told(done)[0], told(done)[1]["notes"]) == (["same"] * 5, []), done
        assert lies(folder) == before
    done = tape("export", path, home=tmp_path)
    assert done.returncode == 0, done
    with zipfile.ZipFile(folder / "n.tape.zip") as bundle:
        assert sorted(name for name in bundle.namelist() if name.startswith("session/")) == [
            "session/n.ipynb",
            "session/n.tapes/main.tape.yaml",
        ]
    assert tape("verify", folder / "n.tape.zip", home=tmp_path).returncode == 0
    done = tape("replay", folder / "n.tape.zip", "--here", "--yes", "--json", home=tmp_path)
    assert told(done)[0] == ["same"] * 5, done


@pytest.mark.night
def test_a_session_that_goes_on_with_a_database_starts_in_replay_from_what_it_was_then(tmp_path):
    folder = tmp_path / "work"
    folder.mkdir()
    with sqlite3.connect(folder / "memory.sqlite") as made:
        made.execute("create table said (text)")
        made.execute("insert into said values ('zero')")
    made.close()
    (folder / "log.txt").write_text("first ")
    then = (folder / "memory.sqlite").read_bytes()
    path = recorded(folder / "n.ipynb", tmp_path, DATABASE, TALK, LOG)
    assert (folder / "memory.sqlite").read_bytes() != then
    done = tape("replay", path, "--json", home=tmp_path)
    assert told(done)[0] == ["same"] * 4, done
    assert tape("export", path, home=tmp_path).returncode == 0
    with zipfile.ZipFile(folder / "n.tape.zip") as bundle:
        assert (
            bundle.read("session/memory.sqlite") == then
            and bundle.read("session/log.txt") == b"first "
        )
    done = tape("replay", folder / "n.tape.zip", "--here", "--yes", "--json", home=tmp_path)
    assert told(done)[0] == ["same"] * 4, done


@pytest.mark.slow
def test_of_two_recordings_the_newer_ones_start_counts(tmp_path):
    path = recorded(tmp_path / "work" / "n.ipynb", tmp_path, LOG)
    assert recorded(tmp_path / "work" / "n.ipynb", tmp_path, LOG) == path
    assert (tmp_path / "work" / "log.txt").read_text() == "line line "
    assert originals.original_folder(path).files == {tmp_path / "work" / "log.txt": b"line "}
    done = tape("replay", path, "--json", home=tmp_path)
    assert told(done)[0] == ["same", "same"], done


def test_a_file_whose_state_before_was_not_kept_is_said_by_name(tmp_path):
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "log.txt").write_bytes(b"x" * (2 << 20))
    path = recorded(
        folder / "n.ipynb", tmp_path, "open('log.txt', 'a').write('more'); print(ask('one'))"
    )
    done = tape("replay", path, home=tmp_path)
    assert done.returncode == 0
    assert "! log.txt is not as it was before the recording, and that was not kept" in done.stdout


def test_a_secret_is_not_kept_as_what_a_file_was(tmp_path):
    folder = tmp_path / "work"
    folder.mkdir()
    key = "sk-ant-api03-" + "Zx9" * 20
    (folder / "notes.txt").write_text(f"key: {key}\n")
    with Provider(vary=True) as provider:
        path = notebook(
            folder / "n.ipynb",
            ASK.replace("URL", provider.url),
            "open('notes.txt', 'a').write(ask('one'))",
        )
        done = tape("record", path, home=tmp_path, ANTHROPIC_API_KEY=key)
    assert done.returncode == 0, done
    assert key not in "".join(
        each.read_text() for each in (folder / "n.tapes").rglob("*") if each.is_file()
    )
    assert (
        prints(path)[1].count("notes.txt holds a secret")
        or "notes.txt holds a secret" in path.read_text()
    )


@pytest.mark.spread(3)
@pytest.mark.parametrize(
    "name", ["../other.txt", "/etc/hosts", "n.ipynb", "n.tapes/main.tape.yaml", ".", "link/x.txt"]
)
def test_a_cassette_of_somebody_elses_changes_nothing_outside_the_folder(tmp_path, name):
    path = recorded(
        tmp_path / "work" / "n.ipynb", tmp_path, "open('log.txt', 'w').write(ask('one'))"
    )
    (tmp_path / "elsewhere").mkdir()
    for each in ("other.txt", "elsewhere/x.txt"):
        (tmp_path / each).write_text("a person's")
    (tmp_path / "work" / "link").symlink_to(tmp_path / "elsewhere")
    tapes = tmp_path / "work" / "n.tapes" / "main.tape.yaml"
    tapes.write_text(tapes.read_text().replace("path: log.txt", f'path: "{name}"'))
    assert originals.original_folder(path) == originals.Start()
