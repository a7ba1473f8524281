"""Files that lie as they are installed become a wheel, the same one each time, by any pip and without an index."""

import io
import shutil
import subprocess
import sys
import zipfile

from tape_jupyter.bundle.environment import build_backend

ABOUT = {
    "wren-1.0.dist-info/METADATA": b"Metadata-Version: 2.1\nName: wren\nVersion: 1.0\n",
    "wren-1.0.dist-info/WHEEL": b"Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
}


def test_the_same_files_give_the_same_bytes():
    files = {"wren/__init__.py": b"X = 1\n", "wren/a,b.txt": b"", **ABOUT}
    name, data = build_backend.pack_wheel(files)
    assert name == "wren-1.0-py3-none-any.whl"
    assert build_backend.pack_wheel(dict(reversed(files.items()))) == (name, data)
    with zipfile.ZipFile(io.BytesIO(data)) as wheel:
        assert wheel.namelist()[-1].startswith("wren-1.0.dist-info/")
        record = wheel.read("wren-1.0.dist-info/RECORD").decode()
    assert '"wren/a,b.txt",sha256=' in record and record.endswith("wren-1.0.dist-info/RECORD,,\n")


def test_several_tags_stand_in_the_name():
    tags = b"Tag: cp311-cp311-manylinux_2_17_x86_64\nTag: cp311-cp311-manylinux2014_x86_64\n"
    name, _ = build_backend.pack_wheel({"wren-1.0.dist-info/WHEEL": tags})
    assert name == "wren-1.0-cp311-cp311-manylinux2014_x86_64.manylinux_2_17_x86_64.whl"


def test_pip_builds_it_alone(tmp_path):
    project = tmp_path / "wren"
    for inside, data in {"wren.py": b"X = 1\n", **ABOUT}.items():
        path = project / build_backend.FOLDER / inside
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    shutil.copy(build_backend.__file__, project / "backend.py")
    (project / "pyproject.toml").write_text(
        '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
    )
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
    subprocess.run([*line, str(project)], check=True, capture_output=True)
    assert (tmp_path / "to" / "wren.py").read_bytes() == b"X = 1\n"
