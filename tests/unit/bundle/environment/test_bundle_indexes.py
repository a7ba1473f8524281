"""Which package indexes the person's pip and uv are configured for; no test looks at this machine's."""

import os

import pytest

from tape_jupyter.bundle.environment import index as environment_index


@pytest.fixture
def environ(tmp_path):
    """Nothing configured: no files of pip's, none of uv's."""
    return {
        "PATH": os.environ["PATH"],
        "PIP_CONFIG_FILE": os.devnull,
        "XDG_CONFIG_HOME": str(tmp_path),
        "HOME": str(tmp_path),
    }


def test_with_nothing_configured_it_is_the_public_one(environ):
    (index,) = environment_index.configured(environ)
    assert index.public and index.url.startswith("https://") and not index.login


def test_the_public_one_is_read_from_the_pip_that_python_brings_where_none_is_installed(
    environ, monkeypatch
):
    told = environment_index._find_public_index()
    environment_index._find_public_index.cache_clear()
    monkeypatch.setattr(environment_index, "find_spec", lambda name: None)
    try:
        assert environment_index._find_public_index() == told
    finally:
        environment_index._find_public_index.cache_clear()


def test_pips_variables_count(environ):
    environ |= {
        "PIP_INDEX_URL": "https://ada:p%40w@priv.test/simple",
        "PIP_EXTRA_INDEX_URL": "https://b.test/s file:///x/simple",
    }
    found = environment_index.configured(environ)
    assert [each.url for each in found] == [
        "https://priv.test/simple",
        "https://b.test/s",
        "file:///x/simple",
    ]
    assert not any(each.public for each in found)
    assert found[0].login == "Basic YWRhOnBAdw==" and not found[1].login


def test_pips_file_counts(environ, tmp_path):
    (tmp_path / "pip.conf").write_text(
        "[global]\nindex-url = https://priv.test/simple\nextra-index-url =\n  https://b.test/s\n  https://c.test/s\n"
    )
    found = environment_index.configured({**environ, "PIP_CONFIG_FILE": str(tmp_path / "pip.conf")})
    assert [each.url for each in found] == [
        "https://priv.test/simple",
        "https://b.test/s",
        "https://c.test/s",
    ]


def test_no_index_means_none(environ):
    assert environment_index.configured({**environ, "PIP_NO_INDEX": "1"}) == []
    assert environment_index.forbidden(
        {**environ, "PIP_NO_INDEX": "1"}
    ) and not environment_index.forbidden(environ)


def test_where_nobody_knows_the_default_none_is_made_up(environ, monkeypatch):
    monkeypatch.setattr(environment_index, "_find_public_index", lambda: ("", ""))
    assert environment_index.configured(environ) == [] and not environment_index.forbidden(environ)
    assert not environment_index.is_public("https:///simple")


def test_uvs_variables_and_file_count_where_pip_says_nothing(environ, tmp_path):
    found = environment_index.configured(
        {
            **environ,
            "UV_DEFAULT_INDEX": "main=https://u.test/simple",
            "UV_INDEX": "x=https://v.test/s",
        }
    )
    assert [each.url for each in found] == ["https://u.test/simple", "https://v.test/s"]
    (tmp_path / "uv").mkdir()
    (tmp_path / "uv" / "uv.toml").write_text(
        '[[index]]\nurl = "https://w.test/s"\ndefault = true\n[[index]]\nurl = "https://y.test/s"\n'
    )
    assert [each.url for each in environment_index.configured(environ)] == [
        "https://w.test/s",
        "https://y.test/s",
    ]


def test_a_login_may_stand_in_netrc(environ, tmp_path, monkeypatch):
    (tmp_path / ".netrc").write_text("machine priv.test login ada password pw\n")
    (tmp_path / ".netrc").chmod(0o600)
    monkeypatch.setenv("HOME", str(tmp_path))
    (index,) = environment_index.configured(
        {**environ, "PIP_INDEX_URL": "https://priv.test/simple"}
    )
    assert index.login == "Basic YWRhOnB3"


def test_an_installer_gets_the_addresses_with_their_passwords(environ):
    environ |= {"PIP_INDEX_URL": "https://ada:pw@priv.test/simple", "PIP_FIND_LINKS": "/w1 /w2"}
    assert environment_index.addresses(environ) == ["https://ada:pw@priv.test/simple"]
    assert environment_index.loose(environ) == ["/w1", "/w2"]


@pytest.mark.parametrize(
    "url", ["http://index.test/simple", "https://priv.test/simple", "file:///x", "", "https://[bad"]
)
def test_what_is_not_the_public_one_is_private(url):
    assert not environment_index.is_public(url)
