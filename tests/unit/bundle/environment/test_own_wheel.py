"""Our own wheel is made of what is installed, and installs anywhere."""

import subprocess
import sys
import zipfile
from io import BytesIO

from tape_jupyter.bundle.environment import own_wheel


def test_it_is_the_same_each_time_and_has_all_that_is_ours():
    name, data = own_wheel.own_wheel()
    own_wheel.own_wheel.cache_clear()
    assert own_wheel.own_wheel() == (name, data)
    with zipfile.ZipFile(BytesIO(data)) as archive:
        names = archive.namelist()
        metadata = archive.read(next(each for each in names if each.endswith("/METADATA"))).decode()
    assert name.startswith("tape_jupyter-") and f"\nVersion: {name.split('-')[1]}\n" in metadata
    assert {
        "tape_jupyter/__init__.py",
        "tape_jupyter/bundle/environment/own_wheel.py",
        "tape_jupyter/py.typed",
    } <= set(names)
    assert any(each.endswith(".dist-info/entry_points.txt") for each in names)
    assert not [
        each
        for each in names
        if "__pycache__" in each or each.endswith((".pth", "direct_url.json"))
    ]


def test_pip_installs_it_and_it_runs_from_there(tmp_path):
    name, data = own_wheel.own_wheel()
    (tmp_path / name).write_bytes(data)
    line = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "-q",
        "--no-index",
        "--no-deps",
        "--target",
        str(tmp_path / "to"),
    ]
    subprocess.run([*line, str(tmp_path / name)], check=True, capture_output=True)
    asked = "import sys; sys.path.insert(0, 'to'); import tape_jupyter.cli; print(tape_jupyter.cli.__file__)"
    done = subprocess.run(
        [sys.executable, "-c", asked], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith(("to", str(tmp_path / "to")))


def test_the_notebooks_ui_comes_with_it_where_it_is_built():
    with zipfile.ZipFile(BytesIO(own_wheel.own_wheel()[1])) as archive:
        names = archive.namelist()
    shared = [
        each for each in names if ".data/data/share/jupyter/labextensions/tape-jupyter/" in each
    ]
    assert bool(shared) == any(each.startswith("tape_jupyter/static/page") for each in names)
    assert not [each for each in names if each.startswith("tape_jupyter/labextension/")]
