"""A history is replayed in a fresh process, away from the world."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tape_jupyter.dataflow.isolated import process
from tape_jupyter.dataflow.isolated.process import ReplayJob, replay_job
from tape_jupyter.dataflow.history import Change, Execution, History


def job(tmp_path, *sources, **more):
    folder = tmp_path / "work"
    folder.mkdir(exist_ok=True)
    return ReplayJob(sources, str(folder), **more)


@pytest.fixture(params=["layers", "copy"])
def away(request, monkeypatch):
    if request.param == "copy":
        monkeypatch.setattr(process, "_can_use_layers", lambda: False)
    elif not process._can_use_layers():
        pytest.skip("this system gives us no mounts of our own")
    return request.param


def test_it_runs_every_cell_and_tells_what_each_shows(tmp_path, away):
    started = []
    done = replay_job(
        job(
            tmp_path, "x = 1\nprint('hi')\nx + 1", "await __import__('asyncio').sleep(0)\n1/0", "x"
        ),
        process.ReplayListener(started.append),
    )
    assert done.failed is None and done.away == away and started == [0, 1, 2]
    assert [each.text for each in done.ran] == [
        "hi\n2\n",
        "ZeroDivisionError: division by zero",
        "1\n",
    ]
    assert done.ran[0].changed == {"x"} and done.ran[0].after["x"]


def test_files_are_as_they_were_before_and_nothing_that_it_writes_stays(tmp_path, away):
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "log").write_text("late")
    (folder / "gone").write_text("g")
    files = {str(folder / "log"): b"early ", str(folder / "gone"): None}
    cells = (
        "import os; open('log', 'a').write('x'); print(open('log').read(), os.path.exists('gone'))",
        "!echo 1 > new; cat new",
    )
    done = replay_job(job(tmp_path, *cells, files=files))
    assert done.ran[0].text.startswith("early x False") and "1" in done.ran[1].text
    assert (folder / "log").read_text() == "late" and sorted(p.name for p in folder.iterdir()) == [
        "gone",
        "log",
    ]


def test_a_write_outside_is_refused_and_no_proof(tmp_path, away):
    target = Path(sys.prefix) / "tape-was-here"
    done = replay_job(job(tmp_path, "x = 1", f"open({str(target)!r}, 'w')"))
    assert (
        done.failed == f"not provable: cell 2 writes {target}, outside the notebook's folder"
        and not target.exists()
    )


@pytest.mark.parametrize(
    "change",
    [
        "os.link('own', TARGET)",
        "os.symlink('own', TARGET)",
        "os.utime(THERE)",
        "os.chmod(THERE, 0o600)",
        "os.rename('own', TARGET)",
        "os.link(THERE, 'here'); open('here', 'w')",
    ],
)
def test_a_change_of_any_kind_outside_is_refused(tmp_path, monkeypatch, change):
    monkeypatch.setattr(process, "_can_use_layers", lambda: False)
    there = tmp_path / "elsewhere" / "there"
    there.parent.mkdir()
    there.write_text("as it was")
    os.utime(there, (1, 1))
    names = f"TARGET, THERE = {str(there.with_name('target'))!r}, {str(there)!r}\n"
    done = replay_job(job(tmp_path, f"import os; open('own', 'w')\n{names}", change))
    assert "outside the notebook's folder" in (done.failed or "")
    assert (there.read_text(), there.stat().st_mtime) == ("as it was", 1)
    assert os.listdir(there.parent) == ["there"]


def test_there_is_no_network(tmp_path, away):
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.2)
        done = replay_job(
            job(tmp_path, f"import socket; socket.create_connection({server.getsockname()!r})")
        )
        with pytest.raises(TimeoutError):
            server.accept()
    assert "connects to" in done.failed


def test_what_takes_too_long_or_ends_the_process_is_no_proof(tmp_path):
    assert (
        replay_job(job(tmp_path, "1", "import time; time.sleep(99)", seconds=6)).failed
        == "not provable: cell 2 took longer than 6 s"
    )
    assert (
        replay_job(job(tmp_path, "import os; os._exit(3)")).failed
        == "not provable: cell 1 ended the process"
    )


def test_setup_and_environment_come_first(tmp_path):
    done = replay_job(
        job(
            tmp_path,
            "print(ready, __import__('os').environ['T_B'])",
            setup="ready = 1",
            env={"T_B": "b"},
        )
    )
    assert done.ran[0].text == "1 b\n"


def test_the_job_of_a_history_starts_where_and_from_what_the_history_started(tmp_path):
    one, two = Execution(0, "", "a", 1), Execution(1, "", "b", 2)
    one.files["/f"] = Change(b"0", b"1")
    two.files["/f"] = Change(b"1", b"2")
    two.ambient["cwd"] = Change(str(tmp_path), "/")
    made = process.job(History([one, two]))
    assert made.sources == ("a", "b") and made.files == {"/f": b"0"} and made.cwd == str(tmp_path)
    two.files["/g"] = Change(None, None, known=False)
    assert process.impossible([one, two]) == "/g as it was before [2] was not kept"


def test_the_world_is_as_it_was_before_the_history(tmp_path, monkeypatch):
    """Not as its cells left it here: they set it anew."""
    monkeypatch.setenv("T_KEPT", "late")
    monkeypatch.setenv("T_MADE", "late")
    monkeypatch.setattr(sys, "path", [*sys.path, "T_added"])
    history = History()
    history.begin("c", "import os, sys", 1).ambient = {
        "environment": Change({"T_KEPT": "early"}, {"T_KEPT": "late", "T_MADE": "late"}),
        "path": Change(sys.path[:-1], sys.path),
    }
    history.begin(
        "d", "print(os.environ['T_KEPT'], 'T_MADE' in os.environ, 'T_added' in sys.path)", 2
    )
    done = replay_job(process.job(history, cwd=str(tmp_path)))
    assert done.ran[-1].text == "early False False\n"


def test_in_a_kernel_things_are_shown_as_a_kernel_shows_them(tmp_path):
    wide = "pandas.DataFrame([['x' * 12] * 12])"
    told = replay_job(
        job(
            tmp_path,
            "import sys, pandas\nprint(type(get_ipython()).__name__, sys.stdout.encoding)",
            f"print({wide})",
            "x = 1\n%store x",
            in_kernel=True,
        )
    )
    shown = [each.text for each in told.ran]
    assert shown[0] == "ZMQInteractiveShell UTF-8\n" and shown[2] == "Stored 'x' (int)\n"
    assert max(map(len, shown[1].splitlines())) <= 80


def test_what_another_user_left_in_the_shared_temporary_folder_is_not_loaded(
    tmp_path, away, monkeypatch
):
    """`%store -r` unpickles what lies in IPython's folder."""
    shared, ran = tmp_path / "shared", tmp_path / "work" / "ran"
    stored = shared / "profile_default" / "db" / "autorestore"
    stored.mkdir(parents=True)
    (stored / "x").write_bytes(f"cbuiltins\nopen\n(V{ran}\nVw\ntR.".encode())
    monkeypatch.setattr(process.tempfile, "tempdir", str(shared))
    cells = ("%store -r x", "import os; print(os.path.exists('ran'))")
    told = replay_job(job(tmp_path, *cells, in_kernel=True))
    assert told.failed is None and told.ran[1].text == "False\n", told


def test_cells_that_patch_what_we_use_do_not_disturb_it(tmp_path):
    done = replay_job(
        job(
            tmp_path,
            "import json; json.dumps = None; json.JSONEncoder.default = None",
            "print('k')",
        )
    )
    assert done.failed is None and done.ran[1].text == "k\n"


WHERE_SOMETHING_IS_MOUNTED = """
import sys
from tape_jupyter.dataflow.isolated.process import ReplayJob, replay_job
cells = "import tempfile; f = tempfile.TemporaryFile(); f.write(b'1')", "open('new', 'w').write('2')"
done = replay_job(ReplayJob(cells, sys.argv[1]))
print(done.failed, done.away, [(each.text, each.refused) for each in done.ran])
"""


@pytest.mark.parametrize(("mounted", "away"), [("disk", "layers"), ("work/data", "copy")])
def test_a_disk_that_is_mounted_nearby_stops_no_proof(tmp_path, mounted, away):
    """As a home or a folder of temporary files has one; beside the notebook or in its folder."""
    if not process._can_use_layers():
        pytest.skip("this system gives us no mounts of our own")
    for folder in ("work/data", "disk"):
        (tmp_path / folder).mkdir(parents=True)
    script = f"mount -t tmpfs tmpfs '{tmp_path / mounted}' && exec {sys.executable} -c \"$0\" $1"
    done = subprocess.run(
        ["unshare", "-rm", "sh", "-c", script, WHERE_SOMETHING_IS_MOUNTED, tmp_path / "work"],
        capture_output=True,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    assert done.stdout.strip() == f"None {away} [('1\\n', ()), ('1\\n', ())]", done.stderr
    assert sorted(each.name for each in (tmp_path / "work").iterdir()) == ["data"]


def test_a_module_beside_the_notebook_does_not_stand_in_for_the_standard_library(tmp_path):
    for name in ("queue", "json", "tempfile", "enum"):
        ran = tmp_path / f"ran-{name}"
        (tmp_path / "work").mkdir(exist_ok=True)
        (tmp_path / "work" / f"{name}.py").write_text(f"open({str(ran)!r}, 'w').close()\n1/0\n")
    done = replay_job(job(tmp_path, "print('hi')", path=sys.path))
    assert done.failed is None and done.ran[0].text == "hi\n"
    assert not list(tmp_path.glob("ran-*"))
