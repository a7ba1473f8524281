"""Which installed packages a process needs: by import, by requirement, and how they got here."""

import hashlib
import importlib.metadata
import io
import json
import subprocess
import sys
import zipfile

import pytest

from tape_jupyter.bundle.environment import requirements
from tests.harness.package_index import wheel_of


@pytest.fixture
def site(tmp_path):
    """A folder of installed packages, and a function that puts wheels there as pip does."""

    def install(*wheels, url=""):
        for _, data in wheels:
            with zipfile.ZipFile(io.BytesIO(data)) as wheel:
                wheel.extractall(install.folder)
                record = next(name for name in wheel.namelist() if name.endswith("/RECORD"))
            if url:
                told = {
                    "url": url,
                    "archive_info": {"hashes": {"sha256": hashlib.sha256(data).hexdigest()}},
                }
                (install.folder / record).with_name("direct_url.json").write_text(json.dumps(told))

    install.folder = tmp_path / "site-packages"
    return install


def ask(site, code):
    about = f"""
import sys; sys.path.insert(0, {str(site.folder)!r})
{code}
import json
from dataclasses import asdict
from tape_jupyter.bundle.environment.requirements import current_needs
print(json.dumps(asdict(current_needs())))
"""
    done = subprocess.run([sys.executable, "-c", about], capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def test_what_an_imported_package_requires_here_comes_with_it(site):
    site(
        wheel_of(
            "amber",
            "1.0",
            ["birch>=2", "cedar; python_version < '3'", "delta; extra == 'x'", "gone"],
        )
    )
    site(wheel_of("birch", "2.5", ["ember[fast]"]))
    site(wheel_of("ember", "1", ["flint; extra == 'fast'", "grove; extra == 'slow'"]))
    for name in ("cedar", "delta", "flint", "grove", "hazel"):
        site(wheel_of(name, "1.0"))
    names = {each.partition("==")[0] for each in ask(site, "import amber")["distributions"]}
    assert {"amber", "birch", "ember", "flint", "ipykernel"} <= names
    assert not {"cedar", "delta", "grove", "hazel", "gone", "tape-jupyter"} & names


def test_what_came_from_no_index_is_taken_as_it_is_installed(site):
    site(
        *[
            wheel_of(
                "amber",
                "1.0",
                files={"amber/__init__.py": "", "amber/data.txt": "d", "amber/py.typed": ""},
            )
        ],
        url="file:///w/amber-1.0-py3-none-any.whl",
    )
    (amber,) = ask(site, "import amber")["local"]
    assert (amber["kind"], amber["dist_info"]) == ("archive", "amber-1.0.dist-info")
    inside = set(amber["files"])
    assert {
        "amber/__init__.py",
        "amber/data.txt",
        "amber/py.typed",
        "amber-1.0.dist-info/METADATA",
    } <= inside
    assert not [name for name in inside if name.endswith(("RECORD", "direct_url.json", ".pyc"))]


def test_what_conda_installed_is_looked_for_in_the_index(site):
    site(wheel_of("amber", "1.0"), url="file:///croot/amber_17/work")
    (site.folder / "amber-1.0.dist-info" / "INSTALLER").write_text("conda\n")
    told = ask(site, "import amber")
    assert "amber==1.0" in told["distributions"] and not told["local"]


def test_of_a_namespace_only_the_part_that_was_imported_is_taken(site, tmp_path):
    project = tmp_path / "project"
    for name in ("src/acme/birds/__init__.py", "src/acme/fish/__init__.py", "notes.txt"):
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text("")
    about = site.folder / "acme_birds-3.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: acme.birds\nVersion: 3\n")
    (about / "direct_url.json").write_text(
        json.dumps({"url": project.as_uri(), "dir_info": {"editable": True}})
    )
    (local,) = ask(site, f"sys.path.insert(0, {str(project / 'src')!r}); import acme.birds")[
        "local"
    ]
    assert local["name"] == "acme-birds"
    assert set(local["files"]) == {"acme/birds/__init__.py", "acme_birds-3.dist-info/METADATA"}


def test_names_and_versions_are_those_of_the_metadata():
    for dist in importlib.metadata.distributions():
        told = requirements.name_and_version(dist)
        assert told[1].replace("_", "-") == dist.version.replace("_", "-"), told


def test_python_is_told_by_version_and_tag():
    told = requirements.python_needs()
    assert told["version"].startswith(f"{sys.version_info[0]}.{sys.version_info[1]}.")
    assert told["tag"].count("-") == 2


def test_what_is_required_on_another_platform_only_is_named(site):
    site(
        wheel_of("amber", "1.0", [
            "pywin; sys_platform == 'win32'", "mac-only; platform_system == 'Darwin'", "old; python_version < '3'",
            "extra-win; extra == 'x' and sys_platform == 'win32'", "birch; sys_platform == 'win32'",
        ])
    )  # fmt: skip
    site(wheel_of("birch", "1.0"))
    assert {"mac-only", "pywin"} <= set(ask(site, "import amber")["elsewhere"])
    assert not {"old", "extra-win", "birch"} & set(ask(site, "import amber")["elsewhere"])
