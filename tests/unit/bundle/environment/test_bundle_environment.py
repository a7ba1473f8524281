"""The lock of a bundle: what installers take, with digests, and nothing of a private index but those."""

import tomllib

import pytest
from packaging.pylock import Pylock

from tape_jupyter.bundle.environment import (
    lock as environment_lock,
    index,
    index as environment_index,
)
from tape_jupyter.bundle.proof.collection import Collected
from tape_jupyter.bundle.environment.requirements import Local
from tests.harness.package_index import IndexServer, wheel_of

PYTHON = {"version": "3.11.7", "tag": "cp311-cp311-linux_x86_64"}


@pytest.fixture(autouse=True)
def no_cache(tmp_path, monkeypatch):
    monkeypatch.setattr(index, "cache", lambda: tmp_path / "cache")


@pytest.fixture
def locked(monkeypatch, tmp_path):
    """Locks what is asked for, by one index on loopback."""

    def lock(*wanted, server=None, public=True, local=(), infos=None, ask_index=True):
        places = [environment_index.PackageIndex(server.url, public)] if server else []
        monkeypatch.setattr(environment_lock, "configured", lambda: places)
        collected = Collected(
            "", distributions=wanted, local=local, infos=infos or {}, python=PYTHON
        )
        made = environment_lock.lock_needs(collected, ask_index=ask_index)
        told = tomllib.loads(made.pylock.decode())
        Pylock.from_dict(told)  # as PEP 751 has it
        return made, {each["name"]: each for each in told["packages"]}

    return lock


WHEELS = [
    wheel_of("amber", "1.0"),
    wheel_of("amber", "1.0", tag="cp311-cp311-win_amd64"),
    wheel_of("birch", "2.0"),
]


def test_every_file_of_a_version_is_locked_by_its_digest(locked):
    with IndexServer(WHEELS, yanked={"birch-2.0-py3-none-any.whl": "old"}) as server:
        made, packages = locked("amber==1.0", "birch==2.0", server=server)
        digests = [wheel["hashes"]["sha256"] for wheel in packages["amber"]["wheels"]]
        assert (
            digests == [server.sha256(wheel["name"]) for wheel in packages["amber"]["wheels"]]
            and len(digests) == 2
        )
        assert packages["birch"]["tool"]["tape-jupyter"]["yanked"] == "old"
    assert (made.hashed, made.index, made.why, made.unhashed) == (True, "public", "", ())
    lines = made.requirements.decode().splitlines()
    assert "amber==1.0 \\" in lines and sum(line.count("--hash=sha256:") for line in lines) == 3


def test_the_same_needs_give_the_same_bytes(locked):
    with IndexServer(WHEELS) as server:
        one, _ = locked("amber==1.0", "birch==2.0", server=server)
        two, _ = locked("birch==2.0", "amber==1.0", server=server)
    assert (one.pylock, one.requirements, list(one.files)) == (
        two.pylock,
        two.requirements,
        list(two.files),
    )


def test_our_own_wheel_lies_beside_the_lock_and_is_locked(locked):
    made, packages = locked(ask_index=False)
    (own,) = packages["tape-jupyter"]["wheels"]
    assert f"environment/{own['path']}" in made.files and own["size"] == len(
        made.files[f"environment/{own['path']}"]
    )


def test_of_a_private_index_only_digests_are_written(locked):
    with IndexServer(WHEELS, login=None) as server:
        made, packages = locked("amber==1.0", server=server, public=False)
        everything = b"".join(
            data for data in made.files.values() if isinstance(data, bytes) and b"PK" != data[:2]
        )
        assert server.host.encode() not in everything and b"127.0.0.1" not in everything
        assert packages["amber"]["wheels"][0]["hashes"]["sha256"] == server.sha256(
            packages["amber"]["wheels"][0]["name"]
        )
    assert made.index == "private" and made.hashed
    assert environment_lock.oddities(made.pylock) == [
        "amber: from a private index, which is not named: your own index must have it"
    ]


def test_without_an_index_the_list_is_honest(locked):
    made, packages = locked("amber==1.0", "birch==2.0", ask_index=False)
    assert (made.hashed, made.index, made.unhashed) == (False, "none", ("amber==1.0", "birch==2.0"))
    assert made.why == "no index was asked (2 packages, amber==1.0 among them)"
    assert set(packages) == {"tape-jupyter"}
    lines = made.requirements.decode().splitlines()
    assert {"amber==1.0", "birch==2.0"} < set(lines) and not [
        line for line in lines if "--hash" in line
    ]


def test_what_alone_has_no_digest_is_a_comment_where_others_have_them(locked):
    with IndexServer(WHEELS) as server:
        made, _ = locked("amber==1.0", "cedar==1.0", server=server)
    assert (made.hashed, made.unhashed) == (False, ("cedar==1.0",))
    assert "no package of that name (cedar==1.0)" in made.why
    assert "\n# cedar==1.0\n" in made.requirements.decode()


def installed(folder, wheel):
    import io
    import zipfile

    with zipfile.ZipFile(io.BytesIO(wheel[1])) as archive:
        archive.extractall(folder)
    return str(next(folder.glob("*.dist-info")))


def test_what_no_index_has_is_carried_as_it_is_installed(locked, tmp_path):
    info = installed(tmp_path / "site", wheel_of("cedar", "1.0+mine"))
    with IndexServer(WHEELS) as server:
        made, packages = locked(
            "amber==1.0", "cedar==1.0+mine", server=server, infos={"cedar==1.0+mine": info}
        )
    assert made.hashed and packages["cedar"]["directory"]["path"] == "sources/cedar"
    assert "environment/sources/cedar/package/cedar.py" in made.files
    assert (
        environment_lock.oddities(made.pylock) == []
        or "amber" in environment_lock.oddities(made.pylock)[0]
    )


def test_one_that_is_too_large_is_not(locked, tmp_path, monkeypatch):
    monkeypatch.setattr(environment_lock, "CARRIED", 10)
    info = installed(tmp_path / "site", wheel_of("cedar", "1.0+mine"))
    with IndexServer(WHEELS) as server:
        made, _ = locked("cedar==1.0+mine", server=server, infos={"cedar==1.0+mine": info})
    assert made.unhashed == ("cedar==1.0+mine",)


def test_an_editable_package_is_a_folder_that_any_pip_builds(locked, tmp_path):
    (tmp_path / "wren.py").write_text("X = 1")
    (tmp_path / "_wren.so").write_bytes(b"\x7fELF")
    (tmp_path / "METADATA").write_text("Metadata-Version: 2.1\nName: wren\nVersion: 1.0\n")
    files = {name: str(tmp_path / name) for name in ("wren.py", "_wren.so")}
    about = {"wren-1.0.dist-info/METADATA": str(tmp_path / "METADATA")}
    local = Local("wren", "1.0", "editable", "wren-1.0.dist-info", {**files, **about})
    made, packages = locked(local=(local,), ask_index=False)
    assert packages["wren"]["directory"] == {"path": "sources/wren", "editable": False}
    root = "environment/sources/wren"
    assert {f"{root}/pyproject.toml", f"{root}/backend.py", f"{root}/package/wren.py"} <= set(
        made.files
    )
    assert b"cp311-cp311-linux_x86_64" in made.files[f"{root}/package/wren-1.0.dist-info/WHEEL"]
    assert made.hashed
