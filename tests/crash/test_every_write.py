"""A disk that fails at any write of a command, for real: the system call itself fails (tests/harness/faulty_disk.py).

The fault is named within a second, the program has its replies, what is on the disk is readable and a beginning of what was recorded,
nothing half is left, and nobody takes it for a success: the exit code is 0 only where all is there. By itself the first
call of each kind fails; TAPE_NIGHTLY fails each in turn.
"""

import errno
import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter

import pytest

import tape_jupyter as tape
from tape_jupyter.core import temp_dirs
from tests.harness.bundles import packed
from tests.harness.exported import recorded
from tests.harness.faulty_disk import CC, Fault, FaultyDisk
from tests.harness.notebook import clean_env
from tests.harness.provider import Provider, Scripted
from tests.harness.tapes import ASK

pytestmark = pytest.mark.skipif(not CC, reason="needs Linux and a compiler of C")
NIGHTLY = bool(os.environ.get("TAPE_NIGHTLY"))
BIG = os.urandom(5_000_000)  # goes to assets/
SCRIPT = """
import urllib3
import tape_jupyter as tape
from tape_jupyter.core import temp_dirs
pool = urllib3.PoolManager()
@tape.tool
def look_up(n):
    return {"n": n}
def ask(n):
    body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": f"question {n}"}]}
    return pool.request("POST", "URL/v1/messages", json=body, retries=False).json()["content"]
with tape.recording("nb.tapes/main.tape.yaml"):
    print("got", ask(0), look_up(0))
    print("got", ask(1), look_up(1))
    print("got", len(pool.request("GET", "URL/big", retries=False).data))
"""
CELLS = (ASK, "text = ask('one'); print('said:', text)")
FAULTS = {
    "a full disk": Fault(1, errno.ENOSPC, stays=True),
    "a moment without room": Fault(1, errno.ENOSPC),
    "a quota": Fault(1, errno.EDQUOT, stays=True),
    "a disk that is read-only now": Fault(1, errno.EROFS, stays=True),
    "no file locks": Fault(1, errno.ENOLCK, stays=True, only="lock"),
}
COMMANDS = {
    "override": ("override", "churn.ipynb", "CALL", "--text", "angry", "--take", "angry"),
    "default": ("takes", "churn.ipynb", "default", "angry"),
    "undo": ("takes", "churn.ipynb", "undo", "angry"),
    "prune": ("prune", "churn.ipynb"),
    "merge": ("merge", "churn.tapes/main.tape.yaml", "other.tape.yaml"),
    "import": ("import", "calls.har", "--out", "told.ipynb"),
    "rows": ("rows", "churn.ipynb", "--out", "told.jsonl"),
    "rows read": ("rows", "churn.ipynb", "--read", "rows.jsonl", "--take", "rows"),
    "calls as": ("export", "churn.ipynb", "--as", "vcr", "--out", "told.yaml"),
    "discard": ("takes", "churn.ipynb", "discard", "angry"),
    "verify": ("verify", "churn.tape.zip"),
    "why": ("why", "churn.ipynb", "--good", "angry", "--bad", "main", "--check", "'calm' in text"),
    "rename": ("takes", "churn.ipynb", "rename", "angry", "calm"),
    "page": ("show", "churn.ipynb", "--html", "out.html"),
    "record": ("record", "churn.ipynb"),
    "replay": ("replay", "churn.ipynb"),
    "export": ("export", "churn.ipynb"),
}
LONG = {"record": "open .*ipynb", "replay": "open .*json", "export": "", "why": "mkdir .*profile"}
"""Each failure is a session more: by itself of a full disk, the first call that is named so."""


@pytest.fixture(scope="module")
def provider():
    with Provider(vary=True) as provider:
        provider.script("/big", *[Scripted(chunks=[BIG])] * 1000)
        yield provider


@pytest.fixture(scope="module")
def disk(tmp_path_factory):
    with FaultyDisk(tmp_path_factory.mktemp("faulty")) as disk:
        yield disk


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    """A recorded notebook with a take, and a second cassette to merge; its provider is gone."""
    folder = tmp_path_factory.mktemp("session")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in clean_env(folder).items():
            patch.setenv(name, value)
        work = recorded(folder / "work", *CELLS).parent
        tapes = work / "churn.tapes"
        call = tape.open(tapes / "main.tape.yaml").calls[0].id
        shutil.copy(tapes / "main.tape.yaml", work / "other.tape.yaml")
        words = ["override", work / "churn.ipynb", call, "--text", "calm", "--take", "angry"]
        subprocess.run([sys.executable, "-m", "tape_jupyter", *words], check=True)
        words = ["export", work / "churn.ipynb", "--as", "har", "--out", work / "calls.har"]
        subprocess.run([sys.executable, "-m", "tape_jupyter", *words], check=True)
        words = ["rows", work / "churn.ipynb", "--out", work / "rows.jsonl"]
        subprocess.run([sys.executable, "-m", "tape_jupyter", *words], check=True)
        row = json.loads((work / "rows.jsonl").read_text().splitlines()[0])
        (work / "churn.tape.zip").write_bytes(packed())
        (work / "rows.jsonl").write_text(json.dumps(row | {"expected": "it went otherwise"}) + "\n")
    return work, call


def places(calls, one=""):
    """Which calls fail in turn: the first on each kind of file, and the last; or the first named so."""
    named = [re.sub(r"[0-9a-f]{8,}", "", call.partition(" ")[2]) for call in calls]
    first = {name: at for at, name in reversed([*enumerate(named, 1)])}
    if NIGHTLY:
        return range(1, len(calls) + 1)
    if one:
        return [next(at for at, name in enumerate(named, 1) if re.match(one, name))]
    return sorted({*first.values(), len(calls)})


def kinds(path):
    """How many records of each kind are on the tape; it is read whole."""
    if not path.exists():
        return Counter()
    tape.open(path, check="whole")
    return Counter(re.findall(r"^---\n(\w+):", path.read_text(), re.MULTILINE))


def shown(ended):
    """What it says, but for what differs from run to run."""
    return re.sub(r"[\d.]+|clean|at-|#\w+", "", ended.out)


def says_it_at_once(disk, folder, ended):
    """Whether it names the failure within a second; more where the machine takes long for nothing."""
    nothing = disk.run(folder, "tape", "--version").seconds
    return ended.said_after is not None and ended.said_after <= 1 + 20 * nothing


def faulty(disk, make, words, fault, one=""):
    """Each failure of a command in turn, with the folder that it was in and how it ends without."""
    clean = make("clean")
    whole = disk.run(clean, *words, TMPDIR=str(clean))
    assert whole.code == 0, whole.out
    for at in places([call for call in whole.calls if fault.only in call], one):
        folder = make(f"at-{at}")
        ended = disk.run(folder, *words, fault=fault._replace(at=at), TMPDIR=str(folder))
        if ended.failed:
            yield ended, folder, whole, clean
        temp_dirs.clean(folder)  # a run that was cut off leaves folders that may not be read


@pytest.mark.spread(5)
@pytest.mark.parametrize("name", FAULTS)
def test_a_script_has_its_replies_and_does_not_end_well(disk, provider, tmp_path, name):
    fault, seen = FAULTS[name], 0

    def make(where):
        folder = tmp_path / where
        folder.mkdir()
        (folder / "script.py").write_text(SCRIPT.replace("URL", provider.url))
        return folder

    for ended, folder, whole, clean in faulty(disk, make, ["script.py"], fault):
        seen += 1
        there = kinds(folder / "nb.tapes/main.tape.yaml")
        if ended.code == 0:
            assert not fault.stays and there == kinds(clean / "nb.tapes/main.tape.yaml"), ended
        else:
            assert os.strerror(fault.error) in ended.out, ended
            assert says_it_at_once(disk, folder, ended), ended
            assert there <= kinds(clean / "nb.tapes/main.tape.yaml"), ended
        assert ended.out.count("got") == whole.out.count("got") or "was not sent" in ended.out
        assert not [*folder.rglob("*.tmp")], ended
    assert seen >= 2


@pytest.mark.spread(10)
@pytest.mark.parametrize("name", ["a full disk", "no file locks"])
@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_says_it_in_a_line_and_changes_nothing(
    disk, session, provider, tmp_path, command, name
):
    if command in LONG and not NIGHTLY and (name != "a full disk" or not LONG[command]):
        pytest.skip("a session more each: at night")
    work, call = session
    words = ["tape", *(call if word == "CALL" else word for word in COMMANDS[command])]

    def make(where):
        folder = shutil.copytree(work, tmp_path / where)
        if command == "override":
            shutil.rmtree(folder / "churn.tapes/takes")
        if command == "record":
            text = (folder / "churn.ipynb").read_text()
            text = re.sub(r"http://127[.0-9]*:\d+", provider.url, text)
            (folder / "churn.ipynb").write_text(text)
        return folder

    before = (work / "churn.tapes/main.tape.yaml").read_bytes()
    for ended, folder, whole, _ in faulty(disk, make, words, FAULTS[name], LONG.get(command, "")):
        assert "Traceback" not in ended.out, ended
        named = os.strerror(FAULTS[name].error) in ended.out
        assert named or (ended.code == 0 and shown(ended) == shown(whole)), ended
        assert not named or says_it_at_once(disk, folder, ended), ended
        assert "do not use it" not in ended.out, ended  # the disk is at fault, not the bundle
        assert ended.code or not named or "it will be asked for again" in ended.out, ended
        after = (folder / "churn.tapes/main.tape.yaml").read_bytes()
        assert after.startswith(before) and (command == "record" or after == before), ended
        taped = [path for path in folder.rglob("*.tape.yaml") if path.stat().st_size]
        assert all(map(kinds, taped)), ended
        assert not [*folder.rglob("*.tmp")], ended


def test_after_a_full_disk_a_take_gets_the_name_that_was_meant(disk, session, tmp_path):
    words, folder = ("tape", *COMMANDS["rows read"]), shutil.copytree(session[0], tmp_path / "work")
    failed = disk.run(folder, *words, fault=Fault(2, errno.ENOSPC, stays=True))
    assert failed.code and "No space left" in failed.out, failed
    again = disk.run(folder, *words)
    assert again.code == 0, again
    assert kinds(folder / "churn.tapes/takes/main.rows.tape.yaml")["override"] == 1
