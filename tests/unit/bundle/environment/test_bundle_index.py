"""The package index is asked for digests: several packages at a time, once each, and what it cannot say is said."""

import hashlib
import os
import socket

import pytest

from tape_jupyter.bundle.environment import index
from tape_jupyter.bundle.environment.index import PackageIndex, configured
from tests.harness.package_index import IndexServer, wheel_of


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setattr(index, "cache", lambda: tmp_path / "cache")
    return tmp_path / "cache"


WHEELS = [
    wheel_of("amber", "1.0"),
    wheel_of("amber", "1.0", tag="cp311-cp311-win_amd64"),
    wheel_of("amber", "2.0"),
    wheel_of("red-birch", "1.0"),
]


@pytest.mark.parametrize("html", [False, True])
def test_all_files_of_the_version_are_told_with_their_digests(html):
    with IndexServer(WHEELS, html=html) as server:
        found = index.query_index(
            ["amber==1.0", "red-birch==1"], [PackageIndex(server.url, public=False)]
        )
        names = ["amber-1.0-cp311-cp311-win_amd64.whl", "amber-1.0-py3-none-any.whl"]
        assert [(each.name, each.sha256) for each in found["amber==1.0"].files] == [
            (n, server.sha256(n)) for n in names
        ]
        assert [each.name for each in found["red-birch==1"].files] == [
            "red_birch-1.0-py3-none-any.whl"
        ]
        assert found["amber==1.0"].answered and not found["amber==1.0"].public


def test_what_was_answered_is_not_asked_again(cache):
    with IndexServer(WHEELS) as server:
        first = index.query_index(["amber==1.0"], [PackageIndex(server.url, public=True)])
        assert index.query_index(["amber==1.0"], [PackageIndex(server.url, public=True)]) == first
        assert server.asked == ["/simple/amber/"]
        for file in cache.rglob("*.json"):
            file.write_bytes(b"torn")
        assert index.query_index(["amber==1.0"], [PackageIndex(server.url, public=True)]) == first
        assert len(server.asked) == 2


def test_what_the_index_does_not_have_is_asked_again_tomorrow():
    with IndexServer(WHEELS) as server:
        for _ in range(2):
            found = index.query_index(
                ["amber==3.0", "gone==1"], [PackageIndex(server.url, public=True)]
            )
        assert (found["amber==3.0"].why, found["amber==3.0"].answered) == (
            "the index has no amber==3.0",
            True,
        )
        assert (found["gone==1"].why, found["gone==1"].answered) == (
            "the index has no package of that name",
            True,
        )
        assert len(server.asked) == 4


def test_the_first_index_that_has_it_answers():
    with (
        IndexServer([wheel_of("amber", "1.0")]) as one,
        IndexServer([wheel_of("cedar", "1.0")]) as two,
    ):
        places = [PackageIndex(one.url, public=True), PackageIndex(two.url, public=False)]
        found = index.query_index(["amber==1.0", "cedar==1.0"], places)
        assert (
            found["amber==1.0"].public
            and not found["cedar==1.0"].public
            and found["cedar==1.0"].files
        )


def test_a_private_index_wants_its_login():
    with IndexServer(WHEELS, login=("ada", "pw")) as server:
        asked = index.query_index(["amber==1.0"], [PackageIndex(server.url, public=False)])
        assert "refuses (401)" in asked["amber==1.0"].why
        (known,) = configured(
            {"PIP_CONFIG_FILE": "/dev/null", "PIP_INDEX_URL": server.url_with_login}
        )
        assert "pw" not in known.url
        assert index.query_index(["amber==1.0"], [known])["amber==1.0"].files


def test_an_index_that_is_not_there_is_asked_once_and_said():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{free.getsockname()[1]}/simple"
    told = []
    found = index.query_index(
        [f"p{n}==1" for n in range(30)],
        [PackageIndex(address, public=True)],
        lambda *what: told.append(what),
    )
    assert all("cannot be reached" in each.why and not each.answered for each in found.values())
    assert told[-1][1:] == (30, 30)


def test_an_index_may_be_a_folder(tmp_path):
    name, data = wheel_of("amber", "1.0")
    sha = hashlib.sha256(data).hexdigest()
    (tmp_path / "amber").mkdir()
    (tmp_path / "amber" / "index.html").write_text(
        f'<a href="../files/{name}#sha256={sha}">{name}</a>'
    )
    found = index.query_index(
        ["amber==1.0", "birch==1.0"], [PackageIndex(tmp_path.as_uri(), public=False)]
    )
    assert [each.sha256 for each in found["amber==1.0"].files] == [sha]
    assert found["birch==1.0"].why == "the index has no package of that name"


def test_a_yanked_version_is_noted():
    with IndexServer(WHEELS, yanked={"amber-2.0-py3-none-any.whl": "broken"}) as server:
        (file,) = index.query_index(["amber==2.0"], [PackageIndex(server.url, public=True)])[
            "amber==2.0"
        ].files
        assert file.yanked == "broken"


def test_addresses_lose_password_query_and_fragment():
    data = b'{"files": [{"filename": "amber-1.0-py3-none-any.whl", "url": "https://u:p@h.test/a.whl?token=1#x", "hashes": {"sha256": "%s"}}]}'
    (file,) = index._parse_json(data % (b"0" * 64), "https://h.test/")
    assert file.url == "https://h.test/a.whl"


@pytest.mark.skipif("CI" in os.environ, reason="no test that CI needs asks a server elsewhere")
def test_the_configured_index_answers_too():
    """Skipped where there is no network."""
    found = index.query_index(["idna==3.10"], configured())["idna==3.10"]
    if not found.answered:
        pytest.skip(found.why)
    assert any(each.name == "idna-3.10-py3-none-any.whl" for each in found.files) or not found.files
