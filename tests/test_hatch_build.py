"""The build hook: when the notebook UI is built, and what is said where it cannot be."""

import importlib.util
import json
import os
import re
import stat
import tomllib

import pytest
from trove_classifiers import classifiers

import tape_jupyter
from tests.harness.notebook import ROOT


@pytest.fixture
def hook():
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def bundle(hook, tmp_path):
    """A checkout whose npm writes what a build writes."""
    (tmp_path / "js" / "src").mkdir(parents=True)
    (tmp_path / "js" / "src" / "view.ts").write_text("1")
    (tmp_path / "js" / "package-lock.json").write_text("{}")
    (tmp_path / "tape_jupyter" / "static").mkdir(parents=True)
    (tmp_path / "tape_jupyter" / "labextension").mkdir()
    return hook.Bundle(tmp_path)


def npm(where, monkeypatch, says):
    where.mkdir()
    for name, script in (("node", "echo v22.0.0"), ("npm", says)):
        (where / name).write_text(f"#!/bin/sh\n{script}\n")
        (where / name).chmod(stat.S_IRWXU)
    monkeypatch.setenv("PATH", f"{where}{os.pathsep}{os.environ['PATH']}")


def test_a_bundle_is_used_until_its_sources_change(bundle, tmp_path, monkeypatch):
    npm(tmp_path / "bin", monkeypatch, "echo '{}' > ../tape_jupyter/labextension/package.json")
    assert not bundle.fresh()
    bundle.build()
    assert bundle.fresh()
    assert [to for _, to in bundle.shared_data()] == [
        "share/jupyter/labextensions/tape-jupyter/package.json"
    ]
    (bundle.js / "src" / "view.ts").write_text("2")
    assert bundle.there() and not bundle.fresh()


def test_a_bundle_without_its_sources_is_used_as_it_is(bundle, tmp_path, monkeypatch):
    npm(tmp_path / "bin", monkeypatch, "echo '{}' > ../tape_jupyter/labextension/package.json")
    bundle.build()
    for path in sorted(bundle.js.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    assert bundle.fresh()


def test_a_build_that_fails_says_what_npm_said(hook, bundle, tmp_path, monkeypatch):
    npm(tmp_path / "bin", monkeypatch, "echo 'npm error: no network' >&2; exit 1")
    with pytest.raises(hook.NotBuilt, match="npm ci .* failed: npm error: no network"):
        bundle.build()
    assert not bundle.fresh()


def test_without_any_node_it_says_what_is_needed(hook, bundle, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(hook.importlib.util, "find_spec", lambda _: None)
    with pytest.raises(hook.NotBuilt, match="Node 20 or newer"):
        bundle.build()


def test_the_built_ui_names_the_licences_of_all_that_is_in_it():
    for folder in ("static", "labextension/static"):
        told = json.loads(
            (ROOT / "tape_jupyter" / folder / "third-party-licenses.json").read_text()
        )
        names = {each["name"] for each in told["packages"]}
        assert {"preact", "diff", "@codemirror/merge"} <= names
        assert all(each["extractedText"] and each["licenseId"] for each in told["packages"])


def test_the_extension_manager_of_jupyterlab_can_list_the_package():
    """It asks the index for this classifier."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert "Framework :: Jupyter :: JupyterLab :: Extensions :: Prebuilt" in project["classifiers"]
    assert set(project["classifiers"]) <= classifiers


def test_a_citation_names_this_version():
    assert f"version: {tape_jupyter.__version__}\n" in (ROOT / "CITATION.cff").read_text()


def test_on_a_package_index_the_readme_leads_to_nothing_that_is_not_there(hook):
    """Files of the repository are told by name; pictures of it are left out."""
    metadata = {}
    hook.ReadmeHook(str(ROOT), {}).update(metadata)
    told = metadata["readme"]["text"]
    assert metadata["readme"]["content-type"] == "text/markdown"
    assert re.findall(r"\]\((?!http)", told) == [] and "![" not in told
    assert "the first hour, record tools" in told and "pip install tape-jupyter" in told
