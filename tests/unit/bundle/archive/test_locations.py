"""Where bundles lie: files, folders, stores behind a URL; reading takes no more than a bundle, writing is whole or not."""

import os
import subprocess
import sys
import uuid

import pytest

from tape_jupyter import bundle
from tape_jupyter.bundle.archive import locations
from tape_jupyter.bundle.verify import verify_bundle
from tape_jupyter.errors import BundleError, TapeUsageError
from tests.harness.bundles import CONTENT, made, packed, written


@pytest.fixture
def store():
    """The URL of a folder of a store."""
    return f"memory://{uuid.uuid4()}"


def put(url, data):
    with locations.write_to_place(url) as file:
        file.write(data)


def test_a_bundle_is_written_to_a_store_and_read_from_it(store):
    url = locations.bundle_place(f"{store}/", "churn.tape.zip")
    assert url == f"{store}/churn.tape.zip" == locations.bundle_place(url, "other.tape.zip")
    put(url, packed())
    with bundle.opened(url) as it:
        assert it.digest == made().digest and it.place == url
    assert verify_bundle(url).good and verify_bundle(store).good


def test_a_signature_lies_beside_it_wherever_that_is(store, tmp_path):
    put(f"{store}/churn.tape.zip.sig", b"signed")
    assert locations.small(locations.place_beside(f"{store}/churn.tape.zip", ".sig")) == b"signed"
    assert locations.small(locations.place_beside(f"{store}/none.tape.zip", ".sig")) is None
    path = written(tmp_path)
    assert (
        locations.place_beside(path, ".sig")
        == locations.place_beside(str(tmp_path), ".sig")
        == tmp_path / "churn.tape.zip.sig"
    )
    assert locations.small(tmp_path / "none") is None
    with pytest.raises(BundleError, match="more than 5 bytes"):
        locations.small(f"{store}/churn.tape.zip.sig", most=5)


def test_an_unpacked_bundle_in_a_store_is_read_as_one_in_a_folder(store):
    for name, data in {**CONTENT, "manifest.json": made().to_bytes()}.items():
        put(f"{store}/unpacked/{name}", data)
    with bundle.opened(f"{store}/unpacked") as it:
        assert it.read("session/data/orders.csv") == CONTENT["session/data/orders.csv"]
    put(f"{store}/unpacked/more", b"evil")
    with (
        pytest.raises(BundleError, match="'more' is not in the manifest"),
        bundle.opened(f"{store}/unpacked"),
    ):
        pass


def test_a_folder_of_one_bundle_is_that_bundle_and_one_of_several_asks_which(tmp_path):
    written(tmp_path)
    with bundle.opened(tmp_path) as it:
        assert it.digest == made().digest
    written(tmp_path, name="other.tape.zip")
    with (
        pytest.raises(
            BundleError, match="it has 2 bundles: churn.tape.zip, other.tape.zip. Name one"
        ),
        bundle.opened(tmp_path),
    ):
        pass
    (tmp_path / "none").mkdir()
    with (
        pytest.raises(BundleError, match="there is no bundle in it"),
        bundle.opened(tmp_path / "none"),
    ):
        pass


def test_a_store_gives_no_more_than_a_bundle_may_have(store, monkeypatch):
    put(f"{store}/churn.tape.zip", packed())
    monkeypatch.setattr(locations, "MOST_PACKED", 100)
    with (
        pytest.raises(BundleError, match="more bytes than a bundle may have"),
        bundle.opened(f"{store}/churn.tape.zip"),
    ):
        pass


@pytest.mark.parametrize(("url", "error", "said"), [
    ("memory://none/churn.tape.zip", BundleError, "there is no such file or folder"),
    ("evil://x/churn.tape.zip", TapeUsageError, "Protocol not known: evil"),
    ("https://ada:hunter2@127.0.0.1:9/x.tape.zip?token=hunter2", (BundleError, TapeUsageError), "https://127.0.0.1:9/x.tape.zip"),
])  # fmt: skip
def test_a_place_that_cannot_be_reached_is_told_without_its_password(url, error, said):
    with pytest.raises(error, match=said) as refused, bundle.opened(url):
        pass
    assert "hunter2" not in str(refused.value)


def test_nothing_a_person_made_is_written_over(tmp_path, store):
    mine = tmp_path / "mine.zip"
    mine.write_text("my own words")
    with pytest.raises(TapeUsageError, match="exists and is not a bundle; nothing was written"):
        locations.bundle_place(mine, "churn.tape.zip")
    old = written(tmp_path)
    assert (
        locations.bundle_place(old, "x.tape.zip")
        == old
        == locations.bundle_place(tmp_path, "churn.tape.zip")
    )
    put(f"{store}/mine.tape.zip", b"my own words")
    with pytest.raises(TapeUsageError, match="exists and is not a bundle"):
        put(f"{store}/mine.tape.zip", packed())
    assert locations.small(f"{store}/mine.tape.zip") == b"my own words"


def test_what_is_half_written_has_no_name(tmp_path):
    old = written(tmp_path)
    before = old.read_bytes()
    with pytest.raises(BundleError, match="gone"), locations.write_to_place(old) as file:
        file.write(b"half")
        raise BundleError("gone")
    assert old.read_bytes() == before and os.listdir(tmp_path) == ["churn.tape.zip"]
    with (
        pytest.raises(BundleError, match="cannot be reached"),
        locations.write_to_place(old / "below") as file,
    ):
        pass


def test_files_need_no_package_for_urls(tmp_path):
    told = "import sys; sys.modules['fsspec'] = None; from tape_jupyter.bundle.verify import verify_bundle; print(verify_bundle(sys.argv[1]).good)"
    done = subprocess.run(
        [sys.executable, "-c", told, written(tmp_path)], capture_output=True, text=True, check=True
    )
    assert done.stdout == "True\n"
    done = subprocess.run(
        [sys.executable, "-c", told, "s3://x/y.tape.zip"], capture_output=True, text=True
    )
    assert "pip install 'tape-jupyter[remote]'" in done.stderr


def test_windows_paths_are_no_urls():
    assert not locations.is_url("C:\\runs\\churn.tape.zip") and not locations.is_url(
        "c:/churn.tape.zip"
    )
    assert not locations.is_url("runs/churn.tape.zip") and locations.is_url(
        "s3://runs/churn.tape.zip"
    )
    assert locations.is_url("simplecache::s3://runs/churn.tape.zip")
