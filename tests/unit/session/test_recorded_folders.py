"""A program that is replayed elsewhere than it was recorded finds the folder's path here in what its tools gave and did."""

import json
import os
import pickle
import shutil
import types
from pathlib import Path
from typing import Any

import pytest

import tape_jupyter as tape
from tape_jupyter.core.copied_folder import VARIABLE, CopiedFolder
from tape_jupyter.core.moved_folders import MovedFolders, find_folders, place_folders
from tape_jupyter.session import session
from tape_jupyter.session.recorded_folders import RecordedFolders
from tests.harness.provider import Scripted
from tests.harness.tool_runs import ran


@pytest.fixture
def moved(tmp_path, monkeypatch):
    """Runs a text as a program that is recorded in one folder and replayed in another; what `found()` gives in each,
    and the replay's report.
    """

    def run(text: str, name: str = "proj", other: str = "clones/proj") -> tuple[Any, Any, Any]:
        def begin(folder: Path) -> Any:
            folder.mkdir(parents=True, exist_ok=True)
            monkeypatch.chdir(folder)
            module = types.ModuleType("program")
            vars(module).update(tape=tape, bodies=ran, os=os, json=json, pickle=pickle, Path=Path)
            exec(compile(text, "program.py", "exec"), vars(module))
            return module

        here, there = tmp_path / name, tmp_path / other
        program = begin(here)
        with tape.recording("a.tape.yaml"):
            live = program.found()
        assert ran
        ran.clear()
        there.mkdir(parents=True)
        shutil.copy(here / "a.tape.yaml", there)
        program = begin(there)
        with tape.replaying("a.tape.yaml") as block:
            again = program.found()
        assert not ran
        return live, again, block.report

    return run


def test_paths_in_results_variables_files_and_what_is_shown_are_those_of_the_folder_here(
    moved, capsys
):
    live, again, report = moved("""
kept, by_path = {}, {}
class Job:
    pass
job = Job()

@tape.tool
def work(n):
    bodies.append(n)
    out = Path.cwd() / "out.txt"
    out.write_text(f"made {out}")
    kept["last"], by_path[str(out)], job.place = out, n, [str(out.parent)]
    print(f"wrote {out}.")
    return {"out": out, "more": (str(out), f"see {out}, {out.parent}."), "raw": str(out).encode()}

def found():
    result = work(1)
    return result, kept, by_path, job.place, Path("out.txt").read_text()
""")
    assert repr(again) == repr(live).replace("/proj", "/clones/proj")
    assert not report.warnings
    shown = capsys.readouterr().out.split("\n")
    assert shown[1] == shown[0].replace("/proj", "/clones/proj")


def test_what_goes_on_with_such_a_path_is_found_on_the_tape(moved):
    live, again, report = moved("""
@tape.tool
def make(name):
    bodies.append(name)
    place = Path.cwd() / name
    place.write_text(f"{name} lies in {place.parent}")
    return str(place)

@tape.tool
def every():
    bodies.append(1)
    return json.dumps("\\n".join(str(each) for each in sorted(Path.cwd().glob("*.txt"))))

@tape.tool
def count(text):
    bodies.append(text)
    return text.count("n/")

@tape.tool
def use(places, more):
    bodies.append(places)
    text = Path(places[0]).read_text()
    with open(places[0], "a") as file:
        file.write(f"!{places[0]}")
    return len(places), text.partition(" lies")[0]

def found():
    place = make("a.txt")
    first = use([place], {"at": Path(place)})
    return count(every()), first, use([make("a.txt")], {"at": Path(place)}), Path(place).read_text().count("proj")
""")
    assert live == again and not report.warnings


def test_what_is_asked_with_such_a_path_is_found_where_no_tool_gave_it(
    moved, provider, monkeypatch
):
    """A coding agent tells its model where it works; a tool is handed a path of the notebook's."""
    provider.script("/ask", Scripted(200, {"content-type": "application/json"}, [b'{"n": 5}']))
    monkeypatch.setenv("ASKED_AT", f"{provider.url}/ask")
    live, again, report = moved("""
import httpx

@tape.tool
def count(place):
    bodies.append(place)
    return 3

def found():
    prompt = {"system": f"You work in {Path.cwd()}.", "files": [str(Path.cwd() / "a.py")]}
    reply = httpx.post(os.environ["ASKED_AT"], json=prompt)
    return reply.json(), count(Path.cwd() / "data")
""")
    assert live == again == ({"n": 5}, 3)
    assert not report.warnings


def test_the_path_of_another_folder_is_left_alone(moved):
    _, again, _ = moved("""
@tape.tool
def look():
    bodies.append(1)
    here = str(Path.cwd())
    return [here + "-old/x", "https://host" + here, here + ".bak", "/usr/share/x", here]

def found():
    return look()
""")
    recorded = again[-1].replace("clones/", "")
    assert again[:-1] == [
        f"{recorded}-old/x",
        f"https://host{recorded}",
        f"{recorded}.bak",
        "/usr/share/x",
    ]


def test_a_path_in_what_is_no_text_is_said(moved):
    _, _, report = moved("""
@tape.tool
def keep():
    bodies.append(1)
    Path("state.bin").write_bytes(pickle.dumps([str(Path.cwd()), b"\\xff"]))
    return 1

def found():
    return keep()
""")
    assert any(
        "names" in each and "proj" in each and "not replaced" in each for each in report.warnings
    )


def test_a_replay_in_the_same_folder_and_a_record_without_paths_say_nothing(moved):
    text = """
@tape.tool
def look():
    bodies.append(1)
    return "no path"

def found():
    return look()
"""
    assert not moved(text)[2].warnings
    assert "folders:" not in Path("a.tape.yaml").read_text()


def test_in_a_copy_of_the_folder_older_recordings_too(tmp_path, monkeypatch):
    own, copy = tmp_path / "own", tmp_path / "place" / "copy"
    own.mkdir()

    def look(where):
        ran.append(where)
        return str(where)

    def found():
        return tape.tool(look)(Path.cwd() / "x")

    monkeypatch.chdir(own)
    with tape.recording("a.tape.yaml"):
        found()
    before, _, after = Path("a.tape.yaml").read_text().partition("  did:\n    folders:\n")
    assert after
    copy.mkdir(parents=True)
    older = before + after.partition("\n")[2]
    (copy / "a.tape.yaml").write_text(older)
    monkeypatch.setattr(CopiedFolder, "guard", lambda _: None)
    monkeypatch.setenv(VARIABLE, CopiedFolder(str(copy), str(own)).variable()[VARIABLE])
    monkeypatch.chdir(copy)
    monkeypatch.setattr(session.get()._boundary, "folders", RecordedFolders())
    with tape.replaying("a.tape.yaml"):
        assert found() == str(copy / "x")


def test_a_folder_of_one_name_is_told_from_no_address_and_is_left():
    named = find_folders(["GET /app/login"], Path("/app"), None)
    folders = place_folders(named, Path("/home/ada/app"), None)
    assert not folders and folders.left == {"/app"}


@pytest.mark.parametrize(
    "folders", [{"": "."}, {"5": "."}, {"/": ".."}, {7: "."}, {"a/b": "../.."}, {"/x/y": "/etc"}]
)
def test_a_cassette_that_somebody_wrote_has_no_other_text_replaced(folders, tmp_path):
    assert not place_folders(folders, tmp_path, tmp_path)


def test_the_work_tree_around_the_notebook_is_found_where_it_is_one_here(tmp_path):
    named = find_folders(
        {"a": ["/home/ada/proj/data/x"]}, Path("/home/ada/proj/nb"), Path("/home/ada/proj")
    )
    assert named == {"/home/ada/proj": ".."}
    here = tmp_path / "proj" / "nb"
    moved = place_folders(named, here, here.parent)
    assert moved.here("/home/ada/proj/data/x") == f"{here.parent}/data/x"
    alone = place_folders(named, here, here)
    assert not alone and alone.left == {"/home/ada/proj"}


@pytest.mark.parametrize("here", ["/home/ada/proj/clone", "/home/ada", "/srv/a b/é"])
def test_what_is_asked_is_what_was_recorded(here):
    moved = MovedFolders({"/home/ada/proj": here})
    lines = (
        "a\n/home/ada/proj/x\n/home/ada/proj\t\x1b[32m/home/ada/proj\x1b[0m \u2192/home/ada/proj"
    )
    body = json.dumps([lines])
    for text in (lines, body, json.dumps(body), body.encode()):
        assert moved.recorded(moved.here(text)) == text
    assert json.loads(moved.here(body)) == [moved.here(lines)]
    assert moved.here(lines).count(here) == 4
    texts = [
        "/home/ada/proj/x",
        json.dumps({"at": "/home/ada/proj"}),
        b"in /home/ada/proj.",
        {"/home/ada/proj": [1]},
    ]
    for text in texts:
        assert moved.here(text) != text and moved.recorded(moved.here(text)) == text
    assert moved.recorded(json.dumps({"at": f"{here}/x"})) == json.dumps({"at": "/home/ada/proj/x"})
    assert moved.recorded(json.dumps({"at": f"{here}/x"}).encode()) == b'{"at": "/home/ada/proj/x"}'


def test_an_object_that_holds_the_folder_is_the_same_object_elsewhere(moved):
    live, again, report = moved("""
from dataclasses import dataclass

class Store:
    def __init__(self):
        self.root, self.names, self.lock = Path.cwd(), [], __import__("threading").Lock()
    @tape.tool
    def add(self, name):
        bodies.append(name)
        self.names.append(str(self.root / name))
        return len(self.names)

@dataclass
class Job:
    place: Path

@tape.tool
def each(job, store):
    bodies.append(job)
    yield job.place / "one"
    store.names.append(str(job.place))
    yield len(store.names)

def found():
    store = Store()
    counts = [store.add("a"), store.add("b"), *each(Job(Path.cwd()), store)]
    return counts, store.names
""")
    assert repr(again) == repr(live).replace("/proj", "/clones/proj")
    assert not report.warnings
