"""A stranger's lock is read with no belief in it, and what is odd of it is said."""

import sys

import pytest
import tomli_w

from tape_jupyter.bundle.environment import index, lock as environment_lock
from tape_jupyter.errors import BundleError

SHA = "ab" * 32


def lock(*packages, **more):
    return tomli_w.dumps(
        {"lock-version": "1.0", "created-by": "x", "packages": list(packages), **more}
    ).encode()


def wheel(url, **more):
    return {
        "name": "amber",
        "version": "1.0",
        "wheels": [{"url": url, "hashes": {"sha256": SHA}}],
        **more,
    }


@pytest.fixture
def public():
    """The host of the public index's files, as pip knows it."""
    host = index._find_public_index()[1]
    assert host
    return f"https://{host}/a/amber-1.0-py3-none-any.whl"


def test_the_public_indexs_files_by_digest_are_nothing_odd(public):
    assert environment_lock.oddities(lock(wheel(public))) == []
    (amber,) = environment_lock.locked_packages(lock(wheel(public)))
    assert (amber.name, amber.version, amber.digests, amber.foreign) == (
        "amber",
        "1.0",
        (SHA,),
        False,
    )


def test_what_lies_in_the_bundle_is_nothing_odd():
    ours = {
        "name": "tape-jupyter",
        "version": "0.1.0",
        "wheels": [{"path": "wheels/t-1-py3-none-any.whl", "hashes": {"sha256": SHA}}],
    }
    mine = {
        "name": "mine",
        "version": "1",
        "directory": {"path": "sources/mine", "editable": False},
    }
    assert environment_lock.oddities(lock(ours, mine)) == []
    assert [each.path for each in environment_lock.locked_packages(lock(ours, mine))] == [
        "wheels/t-1-py3-none-any.whl",
        "sources/mine",
    ]


@pytest.mark.parametrize(
    ("package", "said"),
    [
        (wheel("file:///etc/amber.whl"), "installed from file:///etc/amber.whl"),
        (wheel("http://a.test/amber.whl"), "installed from http://a.test"),
        (wheel("https://packages.test/amber.whl"), "files on another host, packages.test"),
        (wheel("https://ada:pw@packages.test/amber.whl"), "packages.test"),
        (wheel(f"https://{environment_lock.NOWHERE}/amber.whl"), "private index"),
        (wheel("https://x.test/a", index="https://[x"), "an index of its own, https://[x"),
        (wheel("https://x.test/a", index="https://u:p@priv.test/simple"), "an index of its own, https://…@priv.test"),
        ({"name": "amber", "version": "1", "vcs": {"type": "git", "url": "git+ssh://h/x", "commit-id": "c"}}, "repository"),
        ({"name": "amber", "version": "1", "archive": {"url": "https://x.test/a.zip", "hashes": {"sha256": SHA}}}, "an archive of x.test"),
        ({"name": "amber", "version": "1", "directory": {"path": "/etc"}}, "not in the bundle, /etc"),
        ({"name": "amber", "version": "1", "directory": {"path": "../../home"}}, "not in the bundle"),
        ({"name": "amber", "version": "1", "directory": {"path": "sources/../../x"}}, "not in the bundle"),
        ({"name": "amber", "version": "1", "wheels": [{"path": "C:\\x.whl", "hashes": {"sha256": SHA}}]}, "not in the bundle"),
        ({"name": "amber", "version": "1", "wheels": [{"url": "https://[x", "hashes": {}}]}, "an address that is none"),
        ({"name": "amber", "version": "1"}, "no digest"),
        ({"name": "amber", "version": "1", "wheels": [{"url": "https://x.test/a", "hashes": {"md5": "x"}}]}, "no digest"),
    ],
)  # fmt: skip
def test_what_is_odd_is_said_with_the_packages_name_and_without_passwords(package, said):
    found = environment_lock.oddities(lock(package))
    assert any(said in each for each in found) and all(
        each.startswith("amber: ") for each in found
    ), found
    assert "pw" not in str(found) and "u:p" not in str(found)


def test_what_is_odd_of_many_is_one_sentence():
    many = [{"name": f"p{number}", "version": "1"} for number in range(40)]
    assert environment_lock.oddities(lock(*many)) == [
        "p0, p1 and 38 more packages: no digest, whatever the index gives for that version is installed"
    ]


def test_packages_of_our_list_without_digests_are_packages(public):
    data = lock(wheel(public), tool={"tape-jupyter": {"unhashed": ["birch==2.0+cpu"]}})
    assert [
        (each.name, each.version, each.digests) for each in environment_lock.locked_packages(data)
    ][1] == ("birch", "2.0+cpu", ())


@pytest.mark.parametrize(
    "data",
    [
        b"\xff", b"x = ", b"", b'lock-version = "2.0"', b'lock-version = "1.0"\npackages = 3',
        b'lock-version = "1.0"\npackages = [1]',
        lock({"name": "--index-url=http://x", "version": "1"}), lock({"name": "amber\n--pre", "version": "1"}),
        lock({"name": "amber", "version": "1 --pre"}), lock({"name": "Amber Birch", "version": "1"}), lock({"version": "1"}),
        lock(tool={"tape-jupyter": {"unhashed": ["-r /etc/passwd"]}}),
        b"a = " + b"[" * 5000,
    ],
)  # fmt: skip
def test_what_is_no_lock_is_refused(data):
    with pytest.raises(BundleError):
        environment_lock.locked_packages(data)


def test_the_python_it_is_for_is_read():
    assert environment_lock.locked_python(lock(**{"requires-python": "==3.12.*"})) == "3.12"
    assert (
        environment_lock.locked_python(lock(**{"requires-python": ">=3.8"}))
        == environment_lock.locked_python(b"\xff")
        == environment_lock.locked_python(lock())
        == ""
    )


@pytest.mark.parametrize(
    ("names", "built"),
    [
        (["amber-1.0-cp311-cp311-win_arm64.whl", "amber-1.0-cp311-cp311-atari_9.whl"], True),
        (["amber-1.0-cp39-cp39-atari_9.whl", "amber-1.0-py3-none-any.whl"], False),
        (["amber-1.0-cp27-cp27m-any.whl"], True),
        (["no wheel's name"], False),
        ([], True),
    ],
)
def test_sources_beside_wheels_for_other_machines_would_be_built_here(public, names, built):
    host = public.rpartition("/")[0]
    other = {
        "name": "amber",
        "version": "1.0",
        "sdist": {"url": f"{host}/amber-1.0.tar.gz", "hashes": {"sha256": SHA}},
        "wheels": [{"url": f"{host}/{each}", "hashes": {"sha256": SHA}} for each in names],
    }
    (amber,) = environment_lock.locked_packages(lock(other))
    assert amber.built == built
    assert (
        any("has to be built" in each or "have to be built" in each for each in amber.odd) == built
    )


def test_wheels_of_the_locks_python_count_and_not_those_of_this_one(public):
    host, here = public.rpartition("/")[0], "3.12" if sys.version_info[:2] != (3, 12) else "3.11"
    name = f"amber-1.0-cp{here.replace('.', '')}-none-any.whl"
    package = {
        "name": "amber",
        "version": "1.0",
        "sdist": {"url": f"{host}/amber-1.0.tar.gz", "hashes": {"sha256": SHA}},
        "wheels": [{"url": f"{host}/{name}", "hashes": {"sha256": SHA}}],
    }
    (theirs,) = environment_lock.locked_packages(
        lock(package, **{"requires-python": f"=={here}.*"})
    )
    (ours,) = environment_lock.locked_packages(lock(package, **{"requires-python": ""}))
    assert not theirs.built and ours.built
