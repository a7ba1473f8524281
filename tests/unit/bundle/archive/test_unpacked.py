"""A bundle that somebody has unpacked is read from its folder, without following a link out of it."""

import pytest

from tape_jupyter.bundle.archive.unpacked import Unpacked
from tape_jupyter.errors import BundleError


def test_all_files_below_a_folder_are_its_files(tmp_path):
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "c").write_bytes(b"xyz")
    (tmp_path / "d").write_bytes(b"")
    it = Unpacked(tmp_path)
    assert it.sizes == {"a/b/c": 3, "d": 0} and b"".join(it.pieces("a/b/c")) == b"xyz"


def test_a_link_is_refused_and_so_is_one_that_comes_later(tmp_path):
    (tmp_path / "a").write_bytes(b"xyz")
    it = Unpacked(tmp_path)
    (tmp_path / "a").unlink()
    (tmp_path / "a").symlink_to("/etc/passwd")
    with pytest.raises(BundleError, match="'a' cannot be read"):
        list(it.pieces("a"))
    with pytest.raises(BundleError, match="a link or a device"):
        Unpacked(tmp_path)


def test_a_file_that_grows_meanwhile_gives_no_more_than_it_had(tmp_path):
    (tmp_path / "a").write_bytes(b"xyz")
    it = Unpacked(tmp_path)
    (tmp_path / "a").write_bytes(b"x" * 1_000_000)
    assert b"".join(it.pieces("a")) == b"xxx"


def test_an_absent_folder_is_an_error_to_read(tmp_path):
    with pytest.raises(BundleError, match="cannot be read"):
        Unpacked(tmp_path / "none")
