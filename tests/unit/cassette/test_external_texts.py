"""Texts too long for a cassette lie beside it, and come back to the byte or are refused by name."""

import hashlib

import pytest

from tape_jupyter.cassette import external_texts
from tape_jupyter.cassette.external_texts import LIMIT, MARK, restore_texts, asset_names, put_away
from tape_jupyter.errors import CassetteError

LONG = "picture " * 10_000


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "assets"


def digest(text):
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


@pytest.mark.parametrize(
    "text",
    [
        LONG,
        "é" * (LIMIT + 1),
        "\ud83d\ude00\ud800" * LIMIT,
        "\0\r\n\u2028" * LIMIT,
        "x" * (LIMIT + 1),
    ],
)
def test_a_long_text_comes_back_exactly(folder, text):
    value = {"a": [text, {"b": text, "c": "short", "d": [1, None, True, 0.5]}], "e": {}}
    stored = put_away(value, folder)
    assert stored["a"][0] == stored["a"][1]["b"] == {MARK: digest(text)}
    assert [file.name for file in folder.iterdir()] == [digest(text)]
    assert restore_texts(stored, folder) == value
    assert asset_names(stored) == {digest(text)}


def test_a_text_up_to_the_limit_stays_where_it_is(folder):
    value = ["x" * LIMIT, {"key": "y" * LIMIT}]
    assert put_away(value, folder) == value
    assert not folder.exists()


def test_the_structure_that_was_given_is_not_changed(folder):
    value = {"a": [LONG]}
    put_away(value, folder)
    assert value == {"a": [LONG]}


def test_an_asset_that_was_damaged_is_written_anew_when_recorded_again(folder):
    put_away(LONG, folder)
    (folder / digest(LONG)).write_text("P" + LONG[1:])
    assert restore_texts(put_away(LONG, folder), folder) == LONG


def test_an_asset_that_is_a_link_is_replaced_by_a_file(folder, tmp_path):
    folder.mkdir()
    (tmp_path / "elsewhere").write_text("mine")
    (folder / digest(LONG)).symlink_to(tmp_path / "elsewhere")
    assert restore_texts(put_away(LONG, folder), folder) == LONG
    assert (tmp_path / "elsewhere").read_text() == "mine"


def test_assets_may_be_read_by_whoever_may_read_the_cassette(folder, tmp_path):
    put_away(LONG, folder)
    (tmp_path / "plain").write_text("")
    assert (folder / digest(LONG)).stat().st_mode == (tmp_path / "plain").stat().st_mode


@pytest.mark.parametrize(
    "name",
    [
        "../../etc/passwd",
        "/etc/passwd",
        "x",
        "",
        "A" * 64,
        "a" * 63,
        "a" * 65,
        "a" * 64 + "\n",
        5,
        None,
        ["a" * 64],
    ],
)
def test_a_name_that_is_no_digest_is_refused(folder, name):
    with pytest.raises(CassetteError, match="asset"):
        restore_texts({MARK: name}, folder)


def test_a_missing_asset_is_named(folder):
    with pytest.raises(CassetteError, match="a" * 64):
        restore_texts({"deep": [{MARK: "a" * 64}]}, folder)


def test_an_asset_with_other_bytes_is_named(folder):
    stored = put_away(LONG, folder)
    (folder / digest(LONG)).write_text("P" + LONG[1:])
    with pytest.raises(CassetteError, match=digest(LONG)):
        restore_texts(stored, folder)


@pytest.mark.parametrize("kind", ["link", "folder"])
def test_an_asset_that_is_no_plain_file_is_refused(folder, tmp_path, kind):
    folder.mkdir()
    if kind == "folder":
        (folder / digest(LONG)).mkdir()
    else:
        (tmp_path / "secret").write_text(LONG)
        (folder / digest(LONG)).symlink_to(tmp_path / "secret")
    with pytest.raises(CassetteError, match="not a file"):
        restore_texts({MARK: digest(LONG)}, folder)


def test_keys_beside_the_mark_are_refused_and_not_lost(folder):
    stored = put_away(LONG, folder)
    with pytest.raises(CassetteError, match="other keys"):
        restore_texts({**stored, "text": "my edit"}, folder)


def test_one_asset_named_a_million_times_is_no_bomb(folder, monkeypatch):
    stored = put_away(LONG, folder)
    monkeypatch.setattr(external_texts, "CAP", 10 * len(LONG))
    assert restore_texts([stored] * 10, folder) == [LONG] * 10
    with pytest.raises(CassetteError, match="together"):
        restore_texts([stored] * 1_000_000, folder)


def test_a_failed_write_leaves_no_draft(folder, monkeypatch):
    def fsync(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tape_jupyter.core.atomic_write.os.fsync", fsync)
    with pytest.raises(OSError, match="No space"):
        put_away(LONG, folder)
    assert list(folder.iterdir()) == []
