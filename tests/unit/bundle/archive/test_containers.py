"""The zip of a bundle: any tool opens it, the same files give the same bytes, and damage shows."""

import io
import subprocess
import sys
import zipfile

import pytest

from tape_jupyter.bundle.archive.containers import MOST_RATIO, Packer, Zipped, begins
from tape_jupyter.errors import BundleError
from tests.harness.bundles import CONTENT, by_hand, packed

FILES = {
    "manifest.json": b"{}",
    "zeros": bytes(300_000),
    "text": b"".join(b"order %d " % at for at in range(9_000)),
    "shot.png": b"\x89PNG" * 400,
    "none": b"",
}


def zipped(files=FILES):
    out = io.BytesIO()
    packer = Packer(out)
    for name, data in files.items():
        packer.add(name, lambda data=data: iter([data[:100], data[100:]]), len(data))
    packer.close()
    return out.getvalue()


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "a.zip"
    path.write_bytes(zipped())
    return path


def test_what_was_packed_comes_back(path):
    it = Zipped(path)
    assert it.sizes == {name: len(data) for name, data in FILES.items()}
    assert {name: b"".join(it.pieces(name)) for name in it.sizes} == FILES
    it.close()


def test_every_tool_opens_it_and_no_time_or_user_stands_in_it(path):
    with zipfile.ZipFile(path) as it:
        assert it.testzip() is None and it.namelist() == list(FILES)
        for info in it.infolist():
            assert (
                info.date_time == (1980, 1, 1, 0, 0, 0)
                and info.external_attr >> 16 == 0o100644
                and not info.extra
            )
    assert (
        zipped() == zipped()
        and begins(path.read_bytes(), "manifest.json")
        and not begins(b"PK\x03\x04", "manifest.json")
    )


def test_what_is_packed_already_or_packs_too_well_is_stored(path):
    with zipfile.ZipFile(path) as it:
        kinds = {info.filename: info.compress_type for info in it.infolist()}
        assert all(info.file_size <= info.compress_size * MOST_RATIO for info in it.infolist())
    assert kinds["text"] == zipfile.ZIP_DEFLATED and kinds["manifest.json"] == zipfile.ZIP_DEFLATED
    assert kinds["zeros"] == kinds["shot.png"] == zipfile.ZIP_STORED


def test_a_zip_of_another_tool_is_told_apart(tmp_path):
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as it:
        it.mkdir("session")
        it.writestr("session/a", "b")
    with pytest.raises(BundleError, match="No `tape export` wrote it so"):
        Zipped(tmp_path / "other.zip")


def test_a_folder_a_pipe_and_nothing_are_no_zips(tmp_path):
    with pytest.raises(BundleError, match="cannot be read"):
        Zipped(tmp_path / "none")
    with pytest.raises(BundleError, match="is not a file"):
        Zipped(tmp_path)


def test_a_damaged_file_shows_when_it_is_read(path):
    data = bytearray(path.read_bytes())
    at = data.index(b"\x89PNG") + 30
    data[at] ^= 1
    path.write_bytes(data)
    it = Zipped(path)
    assert b"".join(it.pieces("text")) == FILES["text"]
    with pytest.raises(BundleError, match=r"'shot.png' is damaged"):
        list(it.pieces("shot.png"))
    it.close()


def test_the_hand_and_the_packer_write_alike():
    with (
        zipfile.ZipFile(io.BytesIO(packed())) as one,
        zipfile.ZipFile(io.BytesIO(by_hand().bytes())) as other,
    ):
        assert one.namelist() == other.namelist() == ["manifest.json", *sorted(CONTENT)]
        assert [info.file_size for info in one.infolist()] == [
            info.file_size for info in other.infolist()
        ]
