"""A bundle says what it holds in one form; what is in any other form is no bundle."""

import hashlib
import json

import pytest

from tape_jupyter.bundle.archive import manifest
from tape_jupyter.errors import BundleError
from tests.harness.bundles import CONTENT, made


def changed(**said):
    """The manifest's bytes with other things said in it."""
    told = json.loads(made().to_bytes()) | said
    return (
        f"{json.dumps(told, sort_keys=True, ensure_ascii=False, separators=(',', ':'))}\n".encode()
    )


def test_what_is_written_is_read_again():
    data = made().to_bytes()
    assert (
        manifest.parse_manifest(data) == made() and manifest.parse_manifest(data).to_bytes() == data
    )
    assert made().digest == hashlib.sha256(data).hexdigest()
    assert (
        made().file("README.md").size == len(CONTENT["README.md"]) and made().file("none") is None
    )
    assert made().size == sum(map(len, CONTENT.values()))


def test_the_form_is_canonical():
    data = made().to_bytes()
    assert data.endswith(b"}\n") and b'":"' in data and b'": ' not in data and "é".encode() in data
    with pytest.raises(BundleError, match="not in its canonical form"):
        manifest.parse_manifest(json.dumps(json.loads(data)).encode())


FILE = {"path": "session/churn.ipynb", "size": 2, "sha256": "0" * 64, "role": "notebook"}


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "not JSON"),
        (b"[]", "not a JSON object"),
        (b"\xff\xfe", "not JSON"),
        (b"[" * 200_000, "not JSON"),
        (b'{"format":1,"format":1}', "a key stands twice"),
        (b'{"format":NaN}', "NaN is not JSON"),
        (b"{}\n", "format is None"),
        (changed(format=2), "format is 2, this tape-jupyter reads 1"),
        (changed(hooks=["os.system"]), "a key that format 1 does not know: 'hooks'"),
        (
            changed(files=[{**FILE, "run": "x"}]),
            r"files\[0\] has a key that format 1 does not know: 'run'",
        ),
        (changed(files=[{"path": "x"}]), r"files\[0\] lacks size"),
        (changed(files=[{**FILE, "size": True}]), "size is no int"),
        (changed(files=[{**FILE, "size": -1}]), "-1 bytes"),
        (changed(files=[{**FILE, "sha256": "abc"}]), "is not a sha256"),
        (changed(files=[{**FILE, "role": "hook"}]), "the role of 'session/churn.ipynb' is 'hook'"),
        (changed(files=[{**FILE, "path": "../x"}]), "is not a path inside the bundle"),
        (changed(files=[FILE, FILE]), "the same file"),
        (changed(files=[{**FILE, "size": 2**40}]), "1,099,511,627,776 bytes, a bundle has at most"),
        (changed(files=[{**FILE, "path": f"{at:05}"} for at in range(10_000)]), "10,001 files"),
        (changed(files={}), "files is not a list"),
        (changed(files=[]), "the notebook 'session/churn.ipynb' is not among its files"),
        (changed(notebook="README.md"), "the notebook 'README.md' is not among its files"),
        (changed(made_by=1), "made_by is no str"),
        (changed(guards=[1]), r"guards\[0\] is no str"),
        (changed(kernel={"name": 1}), "kernel has other keys"),
        (changed(kernel={"argv": "sh"}), "kernel has other keys"),
        (changed(kit={"startup": "x"}), "kit has a key that format 1 does not know: 'startup'"),
        (changed(lock={"hashed": True, "index": "mine", "why": ""}), "the lock's index is 'mine'"),
        (changed(lock=[]), "lock is not an object"),
        (changed(cells=[1]), r"cells\[0\] is not an object"),
    ],
)
def test_anything_else_is_refused_with_its_reason(data, said):
    with pytest.raises(BundleError, match=said):
        manifest.parse_manifest(data)


def test_text_that_is_no_unicode_is_refused():
    with pytest.raises(BundleError):
        manifest.parse_manifest(changed().replace(b"tape-jupyter 0", b"\\ud800"))


@pytest.mark.parametrize(
    "name", ["sitecustomize.py", "usercustomize.py", "x.pth", "conftest.py", "a/CONFTEST.PY"]
)
def test_a_file_that_would_run_by_lying_there_is_in_no_session(name):
    with pytest.raises(BundleError, match="is run automatically just because it exists"):
        made({**CONTENT, f"session/{name}": b""}, roles={f"session/{name}": "module"})
    made(
        {**CONTENT, f"environment/sources/pkg/{name}": b""},
        roles={f"environment/sources/pkg/{name}": "source"},
    )
