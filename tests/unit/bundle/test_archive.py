"""A bundle opened is a bundle checked; files are taken out all or not at all."""

import io
import os
import random

import pytest

from tape_jupyter import bundle
from tape_jupyter.bundle import archive
from tape_jupyter.bundle.archive import manifest
from tape_jupyter.errors import BundleError
from tests.harness.bundles import CONTENT, made, packed, written


def test_it_gives_what_was_packed(tmp_path):
    with bundle.opened(written(tmp_path)) as it:
        assert (
            it.manifest == made()
            and it.digest == made().digest
            and it.place == str(tmp_path / "churn.tape.zip")
        )
        assert it.names() == sorted(CONTENT) and it.names("notebook") == ["session/churn.ipynb"]
        assert {name: it.read(name) for name in it.names()} == CONTENT
        with pytest.raises(BundleError, match="'evil' is not in the bundle"):
            it.read("evil")


def test_the_same_content_gives_the_same_bytes_from_files_and_from_memory(tmp_path):
    files = {}
    for number, (name, data) in enumerate(CONTENT.items()):
        files[name] = tmp_path / str(number)
        files[name].write_bytes(data)
    out = io.BytesIO()
    archive.pack(out, made(), files)
    assert out.getvalue() == packed() == packed()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({**CONTENT, "README.md": b"how to REPLAY"}, "'README.md' is not what the manifest says"),
        (
            {**CONTENT, "README.md": b"how to replay it"},
            "'README.md' is not what the manifest says",
        ),
        ({**CONTENT, "more": b""}, "'more' is in the manifest or among the files, not in both"),
        (
            {name: data for name, data in CONTENT.items() if name != "README.md"},
            "'README.md' is in the manifest or",
        ),
    ],
)
def test_nothing_is_packed_that_is_not_as_its_manifest_says(content, said):
    with pytest.raises(BundleError, match=said):
        archive.pack(io.BytesIO(), made(), content)


def test_what_no_reader_would_take_is_not_packed():
    with pytest.raises(BundleError, match="is a device"):
        archive.pack(
            io.BytesIO(),
            manifest.Manifest(
                **{**vars(made()), "files": (manifest.describe_file("nul", b"", "data"),)}
            ),
            {"nul": b""},
        )


def test_files_come_out_below_a_new_folder_or_an_empty_one(tmp_path):
    (tmp_path / "empty").mkdir()
    with bundle.opened(written(tmp_path)) as it:
        for folder in (tmp_path / "empty", tmp_path / "new" / "er"):
            assert it.extract(folder) == folder
            found = {
                each.relative_to(folder).as_posix(): each.read_bytes()
                for each in folder.rglob("*")
                if each.is_file()
            }
            assert found == {**CONTENT, "manifest.json": made().to_bytes()}
        it.extract(tmp_path / "some", ["notebook"])
    assert [each.name for each in (tmp_path / "some").rglob("*")] == ["session", "churn.ipynb"]
    with bundle.opened(tmp_path / "empty") as it:
        assert it.digest == made().digest


def test_nothing_a_person_has_is_written_over(tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").write_text("my own")
    (tmp_path / "file").write_text("my own")
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    with bundle.opened(written(tmp_path)) as it:
        for name in ("full", "file", "link"):
            with pytest.raises(BundleError, match="is not empty; nothing was written"):
                it.extract(tmp_path / name)
    assert sorted(os.listdir(tmp_path)) == ["churn.tape.zip", "file", "full", "link"]
    assert os.listdir(tmp_path / "full") == ["mine"]


def test_a_disk_that_is_full_leaves_nothing(tmp_path, monkeypatch):
    goal, real = tmp_path / "goal", archive.Bundle.pieces

    def pieces(self, name):
        yield from real(self, name)
        if name.endswith("orders.csv"):
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(archive.Bundle, "pieces", pieces)
    with (
        bundle.opened(written(tmp_path)) as it,
        pytest.raises(BundleError, match="cannot be written: No space left"),
    ):
        it.extract(goal)
    assert os.listdir(tmp_path) == ["churn.tape.zip"]


def test_a_file_that_is_changed_between_check_and_use_is_not_used(tmp_path):
    content = {**CONTENT, "session/data/noise.bin": random.Random(1).randbytes(1_000_000)}
    path = written(tmp_path, content)
    with bundle.opened(path) as it:
        with path.open("r+b") as file:
            file.seek(500_000)
            file.write(b"evil")
        with pytest.raises(BundleError, match="'session/data/noise.bin' is damaged"):
            it.extract(tmp_path / "out")
    assert os.listdir(tmp_path) == ["churn.tape.zip"]


def test_all_that_is_wrong_is_told_at_once(tmp_path):
    out = tmp_path / "x"
    with bundle.opened(written(tmp_path)) as it:
        it.extract(out)
    (out / "README.md").write_bytes(b"how to REPLAY")
    (out / "session" / "churn.ipynb").write_bytes(CONTENT["session/churn.ipynb"].upper())
    with pytest.raises(BundleError, match="and 1 more") as refused, bundle.opened(out):
        pass
    assert len(refused.value.problems) == 2 and refused.value.place == str(out)


def test_progress_is_told_in_bytes(tmp_path):
    heard = []
    with bundle.opened(written(tmp_path), on_progress=lambda *told: heard.append(told)) as it:
        it.extract(tmp_path / "out", on_progress=lambda *told: heard.append(told))
    size = made().size
    assert (
        heard[3] == ("checking", size, size)
        and heard[-1] == ("unpacking", size, size)
        and len(heard) == 8
    )
