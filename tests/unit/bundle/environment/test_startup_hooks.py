"""Nothing of a bundle's packages runs before its kernel does: neither while they are installed nor by lying there."""

import io
import json
import os
import tarfile
import zipfile

import pytest

from tape_jupyter.bundle.environment import lock, install
from tape_jupyter.errors import BundleError
from tape_jupyter.isolation import namespaces, sandbox
from tests.harness.package_index import wheel_of
from tests.unit.bundle.environment.test_bundle_venv import FOREIGN, UV, altered, run, world

__all__ = ["world"]

needs_cut = pytest.mark.skipif(not namespaces.can_cut(), reason="needs unshare -rn")


@pytest.fixture(params=["uv", pytest.param("pip", marks=pytest.mark.night)])
def installer(request, world, monkeypatch):
    """What installs: by day uv, and pip where a test says so."""
    if request.param == "uv":
        if not UV:
            pytest.skip("uv is not installed")
        monkeypatch.setenv("UV", UV)


@pytest.fixture
def canary(tmp_path):
    """What an attacker's line of Python writes, and the line."""
    place = tmp_path / "canary"
    return place, f"import os; open({str(place)!r}, 'a').write(os.environ.get('API_KEY', '?'))\n"


def serve(world, *files, **named):
    """An index that has a package of an attacker's, with these files in its wheel."""
    name, data = wheel_of("evil", "1.0", files={"evil.py": "", **dict(files), **named})
    world.server.files[name] = data


def refusal(world, *wanted):
    with pytest.raises(BundleError) as refused:
        install.make_bundle_environment(
            world.bundle(*(wanted or ("evil==1.0", "birch==2.0")), local=[world.wren])
        )
    assert not list((world.folder / "cache/environments").glob("*/")), "it was left half made"
    return str(refused.value)


@pytest.mark.spread(4)
@pytest.mark.usefixtures("installer")
@pytest.mark.parametrize(
    "inside",
    ["evil.pth", "evil-1.0.data/purelib/evil.pth", "evil-1.0.data/data/lib/python{}/site-packages/evil.pth",
     "sitecustomize.py", "usercustomize/__init__.py", "sitecustomize.so"],
)  # fmt: skip
def test_what_each_start_of_python_would_run_is_refused(world, canary, monkeypatch, inside):
    place, line = canary
    monkeypatch.setenv("API_KEY", "sk-mine")
    version = f"{os.sys.version_info[0]}.{os.sys.version_info[1]}"
    serve(world, (inside.format(version), line))
    said = refusal(world)
    assert said.startswith("evil brings ") and "the environment was not made" in said
    assert not place.exists()


@pytest.mark.usefixtures("installer")
@pytest.mark.parametrize("name", ["UV_COMPILE_BYTECODE", "UV_REQUIRE_HASHES", "UV_SYSTEM_PYTHON"])
def test_a_setting_of_an_installers_starts_no_python_of_a_strangers(
    world, canary, monkeypatch, name
):
    place, line = canary
    monkeypatch.setenv(name, "1")
    serve(world, ("evil.pth", line))
    assert refusal(world).startswith("evil brings ")
    assert not place.exists()


@pytest.mark.usefixtures("installer")
@pytest.mark.parametrize(
    "inside", ["ipython/ipython_kernel_config.py", "ipython/more/x.py", "jupyter/jupyter_config.py"]
)
def test_what_each_start_of_ipython_would_read_is_refused(world, canary, inside):
    serve(world, (f"evil-1.0.data/data/etc/{inside}", canary[1]))
    said = refusal(world)
    assert said.startswith("evil brings ") and "is read at each start of IPython" in said


@pytest.mark.usefixtures("installer")
def test_what_jupyterlab_finds_its_parts_by_is_let_in(world):
    inside = "evil-1.0.data/data/etc/jupyter/jupyter_server_config.d/evil.json"
    serve(
        world,
        (inside, "{}"),
        ("evil-1.0.data/data/share/jupyter/labextensions/e/package.json", "{}"),
    )
    python = install.make_bundle_environment(world.bundle("evil==1.0", local=[world.wren]))
    assert run(python, "import evil; print('in')") == "in"


ASKED_IN_VAIN = (
    # modules of other systems, and optional ones, that the standard library, pip or uv's questions try to import
    "msvcrt _winapi winreg nt _wmi _scproxy java keyring truststore brotli brotlicffi zstandard simplejson chardet "
    "_manylinux winrandom backports"
).split()


@pytest.mark.usefixtures("installer")
@pytest.mark.parametrize("installer", ["uv", "pip"], indirect=True)
def test_no_installer_imports_what_a_package_brings(world, canary):
    """A second start of an installer in the environment would find the first one's packages."""
    place, line = canary
    serve(world, *((f"{name}.py", line) for name in ASKED_IN_VAIN))
    bundle = world.bundle("evil==1.0", "birch==2.0", local=[world.wren])
    world.server.files.update([wheel_of("larch", "1.0")])
    altered(bundle, b"unhashed = []", b'unhashed = ["larch==1.0"]')
    python = install.make_bundle_environment(bundle)
    assert not place.exists()
    assert run(python, "import larch, birch, wren; print('all')") == "all"


@pytest.mark.spread(4)
@pytest.mark.usefixtures("installer")
@pytest.mark.parametrize("name", ["unshare", "sh", "sudo", "xdg-open", "python", "python3.11"])
def test_a_program_that_stands_for_one_of_the_system_is_refused(world, canary, name):
    serve(world, (f"evil-1.0.data/scripts/{name}", f"#!python\n{canary[1]}"))
    said = refusal(world)
    assert (
        f"evil brings {name!r}" in said or "cannot be installed" in said
    )  # uv itself puts no `python` there
    assert not canary[0].exists()


@pytest.mark.usefixtures("installer")
def test_an_entry_point_is_such_a_program_too(world):
    serve(
        world, ("evil-1.0.dist-info/entry_points.txt", "[console_scripts]\nunshare = evil:main\n")
    )
    assert "evil brings 'unshare', which stands for a program of the system" in refusal(world)


@pytest.mark.usefixtures("installer")
def test_a_folder_elsewhere_is_no_place_for_packages(world):
    serve(world, ("evil.pth", "/tmp\n"))
    assert "evil brings 'evil.pth'" in refusal(world)


@pytest.mark.usefixtures("installer")
@pytest.mark.parametrize("installer", ["uv", "pip"], indirect=True)
def test_ordinary_packages_have_their_programs_and_known_hooks_do_not_run(world, canary):
    serve(
        world,
        ("distutils-precedence.pth", canary[1]),
        ("zope.x-nspkg.pth", canary[1]),
        ("folders.pth", "# packages of mine\ninner\n"),
        ("inner/found_there.py", ""),
        ("evil-1.0.dist-info/entry_points.txt", "[console_scripts]\nhttp = evil:main\n"),
    )
    python = install.make_bundle_environment(
        world.bundle("evil==1.0", "birch==2.0", local=[world.wren])
    )
    assert run(python, "import evil, birch, wren, found_there; print('all')") == "all"
    assert (python.parent / "http").exists()
    assert not canary[0].exists()


def sdist_of(name, setup, more=()):
    """A source distribution whose build runs `setup`."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz") as archive:
        about = f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n"
        for path, text in {
            "setup.py": setup,
            "PKG-INFO": about,
            f"{name}.py": "",
            **dict(more),
        }.items():
            entry = tarfile.TarInfo(f"{name}-1.0/{path}")
            encoded = text.encode("latin-1")
            entry.size = len(encoded)
            archive.addfile(entry, io.BytesIO(encoded))
    return f"{name}-1.0.tar.gz", data.getvalue()


SETUP = "import setuptools; setuptools.setup(name='evil', version='1.0', py_modules=['evil'])\n"


@pytest.mark.usefixtures("installer")
@pytest.mark.parametrize("ask_index", [True, False])
def test_sources_are_not_built(world, canary, ask_index):
    """Neither where the lock lists nothing else, nor where it leaves it to the index."""
    name, data = sdist_of("evil", canary[1] + SETUP)
    world.server.files[name] = data
    bundle = world.bundle("evil==1.0", ask_index=ask_index)
    with pytest.raises(
        BundleError,
        match=r"no wheel of evil, and to build one runs its code.*--allow-build"
        if ask_index
        else "evil: your package index has no such version as a wheel",
    ):
        install.make_bundle_environment(bundle)
    assert not canary[0].exists()


PROJECT = '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
LOOK = """
import json, os, pathlib, socket
def build_wheel(directory, *_):
    seen = {"env": sorted(os.environ), "home": os.path.expanduser("~"), "key": os.environ.get("API_KEY")}
    seen["lines"] = len(open("/proc/net/route").readlines())
    try:
        pathlib.Path(CANARY).write_text("escaped")
    except OSError:
        pass
    import zipfile
    name = "evil-1.0-py3-none-any.whl"
    with zipfile.ZipFile(os.path.join(directory, name), "w") as wheel:
        wheel.writestr("evil.py", "SEEN = " + repr(seen))
        wheel.writestr("evil-1.0.dist-info/METADATA", "Metadata-Version: 2.1\\nName: evil\\nVersion: 1.0\\n")
        wheel.writestr("evil-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr("evil-1.0.dist-info/RECORD", "")
    return name
"""


def pip_wheel():
    """The pip beside us, as an index has it: what builds."""
    import ensurepip
    from pathlib import Path

    place = next(Path(ensurepip.__file__).parent.glob("_bundled/pip-*.whl"))
    return place.name, place.read_bytes()


@pytest.mark.spread(3)
@needs_cut
@pytest.mark.usefixtures("installer")
@pytest.mark.parametrize(
    "inside", ["evil.pth", "sitecustomize.py", "evil-1.0.data/purelib/evil.pth"]
)
def test_what_a_build_makes_is_looked_at_as_any_wheel(world, canary, inside):
    place, line = canary
    more = f"        wheel.writestr({inside!r}, {line!r})\n"
    backend = LOOK.replace("CANARY", repr(str(place) + "-built"))
    at = '        wheel.writestr("evil.py"'
    assert at in backend
    files = {"pyproject.toml": PROJECT, "backend.py": backend.replace(at, more + at)}
    name, data = sdist_of("evil", SETUP, files)
    world.server.files.update([(name, data), pip_wheel()])
    with pytest.raises(BundleError, match="evil.* brings .*(was not made|nothing was installed)"):
        install.make_bundle_environment(world.bundle("evil==1.0", "birch==2.0"), allow_build=True)
    assert not place.exists()
    assert not list((world.folder / "cache/environments").glob("*/")), "it was left half made"


@pytest.mark.spread(2)
@needs_cut
@pytest.mark.usefixtures("installer")
def test_where_it_is_allowed_sources_are_built_without_network_home_and_variables(
    world, tmp_path, monkeypatch
):
    monkeypatch.setenv("API_KEY", "sk-mine")
    canary = tmp_path / "canary"
    backend = LOOK.replace("CANARY", repr(str(canary)))
    name, data = sdist_of("evil", SETUP, {"pyproject.toml": PROJECT, "backend.py": backend})
    world.server.files.update([(name, data), pip_wheel()])
    bundle = world.bundle("evil==1.0", "birch==2.0")
    python = install.make_bundle_environment(bundle, allow_build=True)
    seen = json.loads(run(python, "import evil, birch, json; print(json.dumps(evil.SEEN))"))
    assert "tape-venv-" in seen["home"] and seen["key"] is None and seen["lines"] <= 1
    assert not {"PIP_INDEX_URL", "API_KEY"} & set(seen["env"])
    if sandbox.can_confine():
        assert not canary.exists()
    assert install.make_bundle_environment(bundle, allow_build=True) == python  # it is kept
    with pytest.raises(BundleError, match="--allow-build"):
        install.make_bundle_environment(bundle)


@pytest.mark.spread(5)
@needs_cut
@pytest.mark.parametrize(
    ("project", "said"),
    [
        ('[build-system]\nrequires = ["x @ https://h.test/x.whl"]\n', "files of some address"),
        ('[build-system]\nrequires = ["--index-url=https://h.test"]\n', "cannot be read"),
        ("[build-system]\nrequires = 7\n", "cannot be read"),
        ("build-system = 7\n", "cannot be read"),
        ("\xff[", "cannot be read"),
    ],
)
def test_what_sources_are_to_be_built_with_is_not_believed(world, project, said):
    name, data = sdist_of("evil", SETUP, {"pyproject.toml": project})
    world.server.files[name] = data
    with pytest.raises(BundleError, match=f"evil.*{said}"):
        install.make_bundle_environment(world.bundle("evil==1.0"), allow_build=True)
    assert not list((world.folder / "cache/environments").glob("*/"))


def test_on_a_machine_without_namespaces_nothing_is_built(world, monkeypatch):
    monkeypatch.setattr("tape_jupyter.isolation.namespaces.can_cut", lambda: False)
    name, data = sdist_of("evil", SETUP)
    world.server.files[name] = data
    with pytest.raises(BundleError, match="gives no network namespace"):
        install.make_bundle_environment(world.bundle("evil==1.0"), allow_build=True)


def test_what_would_have_to_be_built_is_said_of_the_lock(world):
    name, data = sdist_of("evil", SETUP)
    world.server.files[name] = data
    bundle = world.bundle("evil==1.0", "birch==2.0")
    (said,) = [
        each for each in lock.oddities(bundle.read("environment/pylock.toml")) if "built" in each
    ]
    assert said.startswith("evil: has no wheel: it would have to be built")


@pytest.mark.usefixtures("installer")
@pytest.mark.parametrize(
    "address",
    [
        "https://x.test/evil-1.0.tar.gz",
        "https://x.test/evil.tar.gz#evil.whl",
        "https://x.test/a?b=evil.whl",
    ],
)
def test_sources_at_an_address_of_the_bundles_are_not_installed_though_it_is_allowed(
    world, address
):
    bundle = world.bundle(ask_index=False)
    bundle.files["environment/pylock.toml"] += FOREIGN % (
        b'archive = {url = "%s", hashes = {sha256 = "%s"}}' % (address.encode(), b"0" * 64)
    )
    with pytest.raises(BundleError, match="evil has no https address of a wheel"):
        install.make_bundle_environment(bundle, allow_index=True)


@pytest.mark.spread(2)
@pytest.mark.usefixtures("installer")
def test_an_installer_gets_none_of_a_persons_other_variables(world, tmp_path, monkeypatch):
    """Told by a program that stands for uv, and by pip's own start."""
    monkeypatch.setenv("API_KEY", "sk-mine")
    monkeypatch.setenv("PIP_NO_BINARY", ":all:")
    monkeypatch.setenv("PYTHONSTARTUP", str(tmp_path / "startup.py"))
    seen = []
    popen = venv_popen(seen)
    monkeypatch.setattr("subprocess.Popen", popen)
    install.make_bundle_environment(world.bundle("birch==2.0"))
    assert seen and not {"API_KEY", "PIP_NO_BINARY", "PYTHONSTARTUP"} & set().union(*seen)
    assert all("PATH" in each for each in seen)


def venv_popen(seen):
    import subprocess

    started = subprocess.Popen

    class Popen(started):
        def __init__(self, line, *args, env=None, **kwargs):
            if any(word in ("install", "venv") for word in line):
                seen.append(set(env or os.environ))
            super().__init__(line, *args, env=env, **kwargs)

    return Popen


def test_a_wheel_with_two_entries_of_one_name_hides_nothing(world):
    """The names of the archive are looked at, not only the last entry of each."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        archive.writestr("x.pth", "import os\n")
        archive.writestr("wren.py", "")
    with pytest.raises(BundleError, match="wren brings 'x.pth'"):
        install.startup_hooks.refuse_startup_hooks("wren", zipfile.ZipFile(data).namelist())
