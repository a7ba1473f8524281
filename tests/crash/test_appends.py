"""Committed means safe: kill -9, a full disk or a failing system call at any moment loses no committed call.

The child records through the store as a cell does, and acknowledges each call over a pipe once it is committed.
"""

import json
import os
import random
import signal
import subprocess
import sys
import textwrap
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from tape_jupyter.core import atomic_write, locks
from tape_jupyter.cassette import journal
from tape_jupyter.core.call import Reply, Request, Where
from tape_jupyter.cassette.cassette import Cassette
from tape_jupyter.errors import CassetteError
from tape_jupyter.cassette.match_key import match_key
from tape_jupyter.cassette.records import Head
from tape_jupyter.secrets.registry import Secrets

SECRETS = Secrets()


class Recorder:
    """Appends calls whose bodies repeat history, every fifth with a reply that goes to assets/."""

    def __init__(self, path):
        self.tape = Cassette.open(path)
        self.run = self.tape.start_run({"mode": "record", "source": "x"}, {"cassette": "main"})
        self.names = {}

    def add(self, n):
        call, match, answer = request(n), match_key(request(n), SECRETS), reply(n)
        self.names[match] = count = self.names.get(match, 0) + 1
        name = match[:8] + (f"-{count}" if count > 1 else "")
        return self.tape.append_call(
            Head(name, self.run, match, "model", Where(), "now", 0.0), call, answer, SECRETS
        )


def request(n):
    messages = [
        {"role": "user", "content": f"{k} " + "words of a question " * 5} for k in range(n % 7 + 1)
    ]
    return Request("POST", "https://h/", (), json.dumps({"n": n, "messages": messages}).encode())


def reply(n):
    return Reply(
        200, (), (f"answer {n} ".encode() + b"long " * (20_000 if n % 5 == 4 else n % 90),), (0.1,)
    )


def check(path, acknowledged):
    """Every acknowledged call is there, whole; nothing is there half; the next run and its replay work."""
    before = Cassette.open(path, "whole")
    kept = {json.loads(entry.request().body)["n"]: entry.reply().body for entry in before.calls}
    assert acknowledged <= kept.keys(), f"lost {sorted(acknowledged - kept.keys())}"
    assert all(body == reply(n).body for n, body in kept.items())
    assert not any(entry.edited() for entry in before.calls)
    recorder = Recorder(path)
    recorder.add(1000)
    recorder.add(1001)
    recorder.tape.end_run(recorder.run, {"outcome": "ok"})
    after = Cassette.open(path, "whole")
    assert after.notes == [] and len(after.calls) == len(before.calls) + 2
    assert [entry.reply().body for entry in after.calls[-2:]] == [
        reply(1000).body,
        reply(1001).body,
    ]
    assert path.read_bytes().endswith(b"\n...\n")


@contextmanager
def child(code, *arguments):
    source = f"""
        import os, sys
        sys.path.insert(0, {str(Path(__file__).parent)!r})
        from test_appends import *
        {textwrap.indent(textwrap.dedent(code), " " * 8).strip()}
    """
    started = [sys.executable, "-c", textwrap.dedent(source), *map(str, arguments)]
    with subprocess.Popen(
        started, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


FORKING = """
    for trial in range(50):
        sys.stdin.readline()
        if os.fork() == 0:
            os.write(1, b"%d %d\\n" % (trial, os.getpid()))
            recorder = Recorder(Path(sys.argv[1]) / f"{trial}.tape.yaml")
            with open(Path(sys.argv[1]) / f"{trial}.acknowledged", "ab", buffering=0) as told:
                for n in range(100_000):
                    recorder.add(n)
                    told.write(b"%d\\n" % n)
        os.wait()
"""


@pytest.mark.slow
def test_kill_9_at_fifty_random_moments_loses_no_acknowledged_call(tmp_path):
    """One interpreter forks the children: a child begins recording at once, and fifty take seconds."""
    moments, kept = random.Random(4), []
    with child(FORKING, tmp_path) as forking:
        for trial in range(50):
            forking.stdin.write("go\n")
            forking.stdin.flush()
            pid = int(forking.stdout.readline().split()[1])
            path = tmp_path / f"{trial}.tape.yaml"
            told, wanted = path.with_name(f"{trial}.acknowledged"), moments.randrange(25)
            while (
                wanted
                and not (told.exists() and told.read_bytes().count(b"\n") >= wanted)
                and not ended(pid)
            ):
                time.sleep(0.001)
            time.sleep(moments.uniform(0, 0.01))
            os.kill(pid, signal.SIGKILL)
            while not ended(pid):
                pass
            acknowledged = (
                {int(n) for n in told.read_text().splitlines()} if told.exists() else set()
            )
            check(path, acknowledged)
            kept.append(len(acknowledged))
    assert len(kept) == 50 and max(kept) > 10


def ended(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().split()[2] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


CALLS = ["open", "write", "fsync", "ftruncate", "close", "replace", "lock"]


class Faults:
    """Counts the system calls that an append makes, and makes the nth one fail."""

    def __init__(self, monkeypatch, nth=0, how=None):
        self.count, self.nth, self.how, self.seen = 0, nth, how, []
        for module, names in ((journal, CALLS), (atomic_write, ("open", "fsync", "close"))):
            monkeypatch.setattr(module, "os", self.patched(os, names))
        monkeypatch.setattr(locks, "portalocker", self.patched(locks.portalocker, ("lock",)))
        monkeypatch.setattr(Path, "replace", self.counted("replace", Path.replace))

    def patched(self, module, names):
        class Patched:
            def __getattr__(_, name):  # noqa: N805
                real = getattr(module, name)
                return self.counted(name, real) if name in names else real

        return Patched()

    def counted(self, name, real):
        def call(*args, **more):
            self.count += 1
            self.seen.append(name)
            if self.count == self.nth:
                return self.how(name, real, *args, **more)
            return real(*args, **more)

        return call


def no_space(name, real, *args, **more):
    if name == "close":  # the descriptor is gone whatever close says
        real(*args)
    raise OSError(28, "No space left on device")


def half_then_no_space(name, real, *args, **more):
    if name == "write":
        real(args[0], args[1][: len(args[1]) // 2])
    no_space(name, real, *args, **more)


def interrupt(name, real, *args, **more):
    if name == "write":
        real(args[0], args[1][: len(args[1]) // 2])
    elif name == "close":
        real(*args)
    raise KeyboardInterrupt


def short_write(name, real, *args, **more):
    return real(args[0], args[1][:5]) if name == "write" else real(*args, **more)


def prepared(path, torn=False):
    recorder = Recorder(path)
    recorder.add(0)
    recorder.add(1)
    if torn:
        with path.open("ab") as file:
            file.write(b"---\ncall: torn\nreq")
        recorder.tape.refresh()
    return recorder


def faults_of_one_append(path, monkeypatch, torn):
    with monkeypatch.context() as patch:
        recorder = prepared(path, torn)
        faults = Faults(patch)
        recorder.add(4)
        return faults.seen


@pytest.mark.parametrize("torn", [False, True])
@pytest.mark.parametrize("how", [no_space, half_then_no_space, interrupt, short_write])
def test_a_failure_at_every_system_call_of_an_append_leaves_no_half_record(
    tmp_path, monkeypatch, how, torn
):
    seen = faults_of_one_append(tmp_path / "count.tape.yaml", monkeypatch, torn)
    assert {"open", "write", "lock", "fsync", "replace"} <= set(seen) and (
        "ftruncate" in seen
    ) == torn
    for nth in range(1, len(seen) + 1):
        path = tmp_path / f"{nth}" / "main.tape.yaml"
        recorder = prepared(path, torn)
        acknowledged = {0, 1}
        with monkeypatch.context() as patch:
            Faults(patch, nth, how)
            try:
                recorder.add(4)
                acknowledged.add(4)
            except CassetteError as error:
                assert "No space" in str(error) and str(path) in str(error)
            except KeyboardInterrupt:
                assert how is interrupt
        data = path.read_bytes()
        assert data.endswith(b"\n...\n") or (torn and data.endswith(b"\nreq")), (
            nth,
            seen[nth - 1],
            data[-40:],
        )
        recorder.tape.refresh()
        recorder.add(2)
        check(path, acknowledged | {2})


@pytest.mark.spread(2)
@pytest.mark.parametrize("torn", [False, True])
def test_a_crash_at_every_system_call_of_an_append_keeps_what_was_committed(
    tmp_path, monkeypatch, torn
):
    """The process ends before, in the midst of, and after each call; a killed write leaves its first half."""
    seen = faults_of_one_append(tmp_path / "count.tape.yaml", monkeypatch, torn)
    for when in ("before", "midst", "after"):
        for nth in range(1, len(seen) + 1):
            path = tmp_path / f"{when}-{nth}" / "main.tape.yaml"
            recorder = prepared(path, torn)
            pid = os.fork()
            if pid == 0:
                crash_in_child(recorder, monkeypatch, nth, when)
            os.waitpid(pid, 0)
            done = path.with_name("acknowledged").exists()
            check(path, {0, 1, 4} if done else {0, 1})


def crash_in_child(recorder, monkeypatch, nth, when):
    def crash(name, real, *args, **more):
        if when == "midst" and name == "write":
            real(args[0], args[1][: len(args[1]) // 2])
        elif when == "after":
            real(*args, **more)
        os._exit(1)

    try:
        Faults(monkeypatch, nth, crash)
        recorder.add(4)
        recorder.tape.path.with_name("acknowledged").touch()
    finally:
        os._exit(0)


@pytest.mark.parametrize("what", ["start_run", "end_run", "append_more"])
def test_a_failure_at_every_system_call_of_the_other_records_leaves_no_half_record(
    tmp_path, monkeypatch, what
):
    def act(recorder):
        if what == "start_run":
            recorder.tape.start_run({"mode": "record", "source": "y"}, {})
        elif what == "end_run":
            recorder.tape.end_run(recorder.run, {"outcome": "ok"})
        else:
            recorder.tape.append_more(
                recorder.tape.calls[0], Reply(200, (), (), (), "closed"), SECRETS
            )

    with monkeypatch.context() as patch:
        recorder = prepared(tmp_path / "count.tape.yaml")
        faults = Faults(patch)
        act(recorder)
    for nth in range(1, len(faults.seen) + 1):
        path = tmp_path / f"{nth}" / "main.tape.yaml"
        recorder = prepared(path)
        with monkeypatch.context() as patch:
            Faults(patch, nth, half_then_no_space)
            with pytest.raises(CassetteError, match="No space"):
                act(recorder)
        assert path.read_bytes().endswith(b"\n...\n")
        recorder.add(2)
        check(path, {0, 1, 2})


def test_a_call_that_could_not_be_kept_is_not_found_and_can_be_recorded_again(
    tmp_path, monkeypatch
):
    path = tmp_path / "main.tape.yaml"
    recorder = prepared(path)
    with monkeypatch.context() as patch:
        Faults(patch, 3, no_space)
        with pytest.raises(CassetteError):
            recorder.add(2)
    assert (
        len(recorder.tape.calls) == 2
        and recorder.tape.matching(match_key(request(2), SECRETS)) == ()
    )
    recorder.names.clear()
    recorder.add(2)
    check(path, {0, 1, 2})
