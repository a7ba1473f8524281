"""A stranger's bundle runs only where a person of this account said so, once for each."""

import io
import threading

import pytest

from tape_jupyter.bundle import trust
from tape_jupyter.errors import BundleError
from tests.harness.bundles import made

ONE, OTHER = "1" * 64, "2" * 64


class Bundle:
    """What trust.py looks at."""

    place, digest, manifest = "a\x1b[2Jb.tape.zip", ONE, made()


@pytest.fixture(autouse=True)
def config(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path / "config"


def test_who_types_the_word_is_not_asked_again_and_another_digest_is():
    asked = []

    def answer(question):
        asked.append(question)
        return "run\n"

    assert trust.ask_trust(Bundle, ["It has 3 cells."], yes=False, answer=answer) == ""
    assert "It has 3 cells." in asked[0] and "\x1b" not in asked[0] and ONE[:16] in asked[0]
    trust.ask_trust(Bundle, [], yes=False, answer=answer)
    assert len(asked) == 1 and trust.trusted(ONE) and not trust.trusted(OTHER)


@pytest.mark.parametrize("typed", ["", "y\n", "no\n", "runs\n"])
def test_anything_else_leaves_it(typed):
    with pytest.raises(BundleError, match="not run"):
        trust.ask_trust(Bundle, [], yes=False, answer=lambda _: typed)
    assert not trust.trusted(ONE)


def test_without_a_terminal_the_word_for_a_ci_is_named(monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("run\n"))
    with pytest.raises(BundleError, match="--yes"):
        trust.ask_trust(Bundle, ["what runs"], yes=False)
    assert trust.ask_trust(Bundle, [], yes=True) == "" and not trust.trusted(ONE)


def test_what_was_exported_here_is_trusted_and_the_file_may_be_edited():
    assert (
        trust.remember_trust(ONE, "session/churn.ipynb", "exported")
        == ""
        == trust.remember_trust(ONE, "x", "asked")
    )
    lines = trust.file().read_text().splitlines()
    assert lines[1:] == [f"{ONE} exported session/churn.ipynb"] and lines[0].startswith("#")
    trust.file().write_text("rubbish\n\x00\n" + OTHER + " asked")
    assert trust.trusted(OTHER) and not trust.trusted(ONE)
    trust.remember_trust(ONE, "a\nb", "asked")
    assert trust.trusted(ONE) and trust.trusted(OTHER)


def test_many_at_once_are_all_kept():
    digests = [f"{n:064x}" for n in range(12)]
    threads = [
        threading.Thread(target=trust.remember_trust, args=(each, "n", "asked")) for each in digests
    ]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert all(map(trust.trusted, digests))


def test_where_it_cannot_be_kept_that_is_said_and_it_runs_all_the_same(config):
    config.write_text("a file where a folder should be")
    said = trust.ask_trust(Bundle, [], yes=False, answer=lambda _: "run")
    assert "asked for again" in said and str(config) in said


def test_only_digests_are_kept():
    with pytest.raises(ValueError, match="no digest"):
        trust.remember_trust("*", "n", "asked")
