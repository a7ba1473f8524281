"""The environment of a bundle is made from its lock: from the person's own index, by digest, kept, and never half."""

import os
import subprocess
import sys

import pytest

from tape_jupyter.bundle.environment import (
    lock,
    index,
    install as environment_install,
    install as environment_install,
)
from tape_jupyter.bundle.proof.collection import Collected
from tape_jupyter.bundle.environment.requirements import Local
from tape_jupyter.errors import BundleError
from tests.harness.package_index import Carried, IndexServer, wheel_of

OWN = f"{sys.version_info[0]}.{sys.version_info[1]}.0"
UV = environment_install.locate_uv(
    {"PATH": f"{os.environ['PATH']}{os.pathsep}{os.path.dirname(sys.executable)}"}
)


class World:
    """An index on loopback that pip is configured for, an empty cache, a local package, and how to lock them."""

    def __init__(self, folder, server):
        self.folder, self.server = folder, server
        (folder / "wren.py").write_text("VALUE = 7\n")
        (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: wren\nVersion: 1.0\n")
        files = {
            "wren.py": str(folder / "wren.py"),
            "wren-1.0.dist-info/METADATA": str(folder / "METADATA"),
        }
        self.wren = Local("wren", "1.0", "editable", "wren-1.0.dist-info", files)

    def bundle(self, *wanted, ask_index=True, local=()):
        python = {"version": OWN, "tag": "cp311-cp311-linux_x86_64"}
        told = Collected("", distributions=wanted, local=tuple(local), python=python)
        return Carried(lock.lock_needs(told, ask_index=ask_index).files)


@pytest.fixture
def world(tmp_path, monkeypatch):
    with IndexServer(
        [wheel_of("amber", "1.0", ["birch"]), wheel_of("birch", "2.0")], login=("ada", "pw")
    ) as server:
        for name in [name for name in os.environ if name.startswith(("PIP_", "UV"))]:
            monkeypatch.delenv(name)
        monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
        monkeypatch.setenv("PIP_INDEX_URL", server.url_with_login)
        monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
        monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv"))
        monkeypatch.setattr(index, "cache", lambda: tmp_path / "cache")
        monkeypatch.setattr(environment_install, "cache", lambda: tmp_path / "cache")
        monkeypatch.setattr(
            environment_install, "locate_uv", lambda environ: environ.get("UV", "")
        )  # pip, if a test says nothing
        yield World(tmp_path, server)


def run(python, code):
    return subprocess.run(
        [str(python), "-I", "-c", code], capture_output=True, text=True, check=True
    ).stdout.strip()


def test_all_of_the_lock_is_in_it_and_the_second_time_it_is_there(world):
    bundle, told = world.bundle("amber==1.0", "birch==2.0", local=[world.wren]), []
    python = environment_install.make_bundle_environment(
        bundle, on_progress=lambda *what: told.append(what)
    )
    assert (
        run(python, "import amber, birch, wren; print(amber.VERSION, birch.VERSION, wren.VALUE)")
        == "1.0 2.0 7"
    )
    where = run(python, "import tape_jupyter; print(tape_jupyter.__file__)")
    assert where.startswith(str(world.folder / "cache"))
    assert any(what[0].startswith("installing ") and 0 < what[1] <= what[2] for what in told)
    asked = len(world.server.asked)
    assert (
        environment_install.make_bundle_environment(bundle) == python
        and len(world.server.asked) == asked
    )
    assert (
        "pw"
        not in bundle.read("environment/pylock.toml").decode()
        + bundle.read("environment/requirements.txt").decode()
    )


def test_one_that_was_not_finished_is_made_again(world, monkeypatch):
    made = []

    def make(self, folder, said):
        made.append(folder)
        (folder / "bin").mkdir(parents=True)
        (folder / "bin" / "python").write_text("")
        if len(made) == 1:
            raise KeyboardInterrupt  # or a kill, after which the folder would stay
        return folder / "bin" / "python"

    monkeypatch.setattr(environment_install.Maker, "make_environment", make)
    monkeypatch.setattr(environment_install.Maker, "install", lambda *_: None)
    bundle = world.bundle(ask_index=False)
    with pytest.raises(KeyboardInterrupt):
        environment_install.make_bundle_environment(bundle)
    assert not made[0].exists()
    python = environment_install.make_bundle_environment(bundle)
    (python.parents[1] / "made.txt").unlink()
    (python.parents[1] / "half").write_text("")
    assert (
        environment_install.make_bundle_environment(bundle) == python
        and not (python.parents[1] / "half").exists()
    )
    assert environment_install.make_bundle_environment(bundle) == python and len(made) == 3


@pytest.mark.skipif(UV is None, reason="uv is not installed")
def test_uv_makes_the_same(world, monkeypatch):
    monkeypatch.setenv("UV", UV)
    (world.folder / "uv.toml").write_text(
        "no-index = true\n"
    )  # of a folder that one happens to be in
    monkeypatch.chdir(world.folder)
    python = environment_install.make_bundle_environment(
        world.bundle("amber==1.0", "birch==2.0", local=[world.wren])
    )
    assert (
        run(python, "import amber, birch, wren, tape_jupyter; print(amber.VERSION, wren.VALUE)")
        == "1.0 7"
    )


def test_another_file_than_the_sessions_is_not_installed_and_nothing_is_left(world):
    bundle = world.bundle("birch==2.0")
    name, _ = wheel_of("birch", "2.0")
    world.server.files[name] = wheel_of("birch", "2.0", files={"birch.py": "VERSION = 'evil'"})[1]
    with pytest.raises(
        BundleError, match="birch: what your package index gives has another digest"
    ):
        environment_install.make_bundle_environment(bundle)
    assert not list((world.folder / "cache/environments").glob("*/"))


def test_a_package_that_the_readers_index_lacks_is_named(world, monkeypatch):
    bundle = world.bundle("birch==2.0")
    with IndexServer([]) as empty:
        monkeypatch.setenv("PIP_INDEX_URL", empty.url)
        with pytest.raises(BundleError, match="birch: your package index has no such version"):
            environment_install.make_bundle_environment(bundle)


def test_what_the_lock_lists_without_digests_is_installed_by_version(world):
    python = environment_install.make_bundle_environment(
        world.bundle("birch==2.0", ask_index=False), world.folder / "here it is"
    )
    assert python.is_relative_to(world.folder / "here it is")
    assert run(python, "import birch; print(birch.VERSION)") == "2.0"


def test_a_folder_with_something_in_it_stays_as_it_is(world):
    (world.folder / "mine").mkdir()
    (world.folder / "mine" / "thesis.txt").write_text("x")
    with pytest.raises(BundleError, match="not empty"):
        environment_install.make_bundle_environment(
            world.bundle(ask_index=False), world.folder / "mine"
        )
    assert [path.name for path in (world.folder / "mine").iterdir()] == ["thesis.txt"]


@pytest.fixture
def never(monkeypatch):
    """Nothing is made, so that a refusal must come first."""
    monkeypatch.setattr(
        environment_install.Maker, "make_environment", lambda *_: pytest.fail("something was made")
    )


def altered(bundle, old, new, name="environment/pylock.toml"):
    assert old in bundle.files[name]
    bundle.files[name] = bundle.files[name].replace(old, new)
    return bundle


FOREIGN = b'[[packages]]\nname = "evil"\nversion = "1"\n%s\n'


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        (b'vcs = {type = "git", url = "git+ssh://h.test/x", commit-id = "c"}', "evil: installed from a repository.*--allow-index"),
        (b'archive = {url = "file:///etc/x.whl", hashes = {sha256 = "%s"}}' % (b"0" * 64), "evil: installed from file:///etc"),
        (b'directory = {path = "/etc"}', "evil: installed from a path that is not in the bundle"),
        (b'archive = {url = "https://x.test/evil.zip", hashes = {sha256 = "%s"}}' % (b"0" * 64), "an archive of x.test.*--allow-index"),
    ],
)  # fmt: skip
def test_what_is_to_be_had_only_from_a_strangers_address_is_not_installed(
    world, never, entry, said
):
    bundle = world.bundle(ask_index=False)
    bundle.files["environment/pylock.toml"] += FOREIGN % entry
    with pytest.raises(BundleError, match=said):
        environment_install.make_bundle_environment(bundle)


def test_allowed_or_not_a_file_of_this_machine_and_a_repository_are_not_installed(world, never):
    for entry in (
        b'directory = {path = "/etc"}',
        b'vcs = {type = "git", url = "git+ssh://h/x", commit-id = "c"}',
    ):
        bundle = world.bundle(ask_index=False)
        bundle.files["environment/pylock.toml"] += FOREIGN % entry
        with pytest.raises(BundleError, match="no https address of a wheel with a digest"):
            environment_install.make_bundle_environment(bundle, allow_index=True)


@pytest.mark.parametrize(
    "name",
    ["sitecustomize.py", "usercustomize.py", "x.pth", "conftest.py", "sitecustomize/__init__.py"],
)
def test_sources_that_would_run_by_themselves_are_refused(world, never, name):
    bundle = world.bundle(local=[world.wren], ask_index=False)
    bundle.files[f"environment/sources/wren/package/{name}"] = b"import os\n"
    with pytest.raises(
        BundleError,
        match="wren brings '(sitecustomize|usercustomize|x.pth|conftest).*nothing was installed",
    ):
        environment_install.make_bundle_environment(bundle)


@pytest.mark.parametrize(
    "inside",
    ["evil.pth", "wren-1.0.data/purelib/evil.pth", "sitecustomize.py", "wren-1.0.data/scripts/python", "wren-1.0.data/data/bin/python",
     "wren-1.0.data/data/lib/python3.11/site-packages/evil.pth", "../evil.py", "/evil.py",
     "wren-1.0.data/data/etc/jupyter/jupyter_server_config.py", "wren-1.0.data/data/etc/ipython/more/x.py"],
)  # fmt: skip
def test_a_wheel_that_would_is_refused_too(world, never, inside):
    bundle = world.bundle(local=[world.wren], ask_index=False)
    bundle.files[f"environment/sources/wren/package/{inside}"] = b"import os\n"
    with pytest.raises(BundleError, match="nothing was installed"):
        environment_install.make_bundle_environment(bundle)


def test_our_wheel_must_be_the_one_that_is_locked(world, never):
    bundle = world.bundle(ask_index=False)
    name = bundle.names("wheel")[0]
    bundle.files[name] += b"x"
    with pytest.raises(BundleError, match="is not the wheel that the lock names"):
        environment_install.make_bundle_environment(bundle)


def test_the_right_python_is_asked_for(world, never, monkeypatch):
    bundle = altered(world.bundle(ask_index=False), f"=={OWN[:-2]}.*".encode(), b"==3.99.*")
    with pytest.raises(BundleError, match=r"made with Python 3.99"):
        environment_install.make_bundle_environment(bundle)
