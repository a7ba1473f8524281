"""A server that serves a stranger's notebook reads and writes nothing outside of its folder."""

import asyncio

import pytest
from tornado.web import HTTPError

from tape_jupyter.bundle.enclosed_contents import EnclosedContents


@pytest.fixture
def outside(tmp_path):
    (tmp_path / "session").mkdir()
    (tmp_path / "mine.txt").write_text("mine")
    (tmp_path / "folder").mkdir()
    (tmp_path / "session" / "link.txt").symlink_to(tmp_path / "mine.txt")
    (tmp_path / "session" / "up").symlink_to(tmp_path)
    return tmp_path


def contents(root):
    return EnclosedContents(root_dir=str(root / "session"))


MODEL = {"type": "file", "format": "text", "content": "theirs"}


@pytest.mark.parametrize("path", ["link.txt", "up/mine.txt", "up/new.txt"])
def test_no_link_leads_out(outside, path):
    with pytest.raises(HTTPError, match="leads out of the folder"):
        asyncio.run(contents(outside).get(path))
    with pytest.raises(HTTPError, match="leads out of the folder"):
        asyncio.run(contents(outside).save(dict(MODEL), path))
    assert (outside / "mine.txt").read_text() == "mine" and not (outside / "new.txt").exists()


def test_a_checkpoint_is_not_written_through_a_link_either(outside):
    (outside / "session" / ".ipynb_checkpoints").symlink_to(outside / "folder")
    (outside / "session" / "a.txt").write_text("a")
    with pytest.raises(HTTPError):
        asyncio.run(contents(outside).create_checkpoint("a.txt"))
    assert list((outside / "folder").iterdir()) == []


def test_its_own_files_are_served(outside):
    asyncio.run(contents(outside).save(dict(MODEL), "a.txt"))
    assert asyncio.run(contents(outside).get("a.txt"))["content"] == "theirs"
    assert asyncio.run(contents(outside).create_checkpoint("a.txt"))["id"]
