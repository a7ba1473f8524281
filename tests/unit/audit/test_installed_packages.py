import importlib
import importlib.metadata
import sys

from tape_jupyter.audit import installed_packages


def test_the_distributions_of_what_is_imported_are_told_with_versions():
    import yaml  # its distribution has another name

    assert yaml
    told = dict(line.split("==") for line in installed_packages.distributions())
    assert told["pyyaml"] == importlib.metadata.version("pyyaml")
    assert told["pytest"] == importlib.metadata.version("pytest")
    normal = lambda name: name.lower().replace("_", "-").replace(".", "-")  # noqa: E731
    assert {normal(name) for name in told} <= {
        normal(d.name) for d in importlib.metadata.distributions()
    }


def test_packages_that_share_a_namespace_are_told_apart(tmp_path, monkeypatch):
    site = tmp_path / "site-packages"
    for name in ("shared_one", "shared_two"):
        part = name.partition("_")[2]
        (site / "shared" / part).mkdir(parents=True)
        (site / "shared" / part / "__init__.py").write_text("")
        info = site / f"{name}-1.0.dist-info"
        info.mkdir()
        (info / "RECORD").write_text(
            f"shared/{part}/__init__.py,,\n{name}-1.0.dist-info/RECORD,,\n"
        )
    monkeypatch.syspath_prepend(site)
    importlib.import_module("shared.one")
    assert [d for d in installed_packages.distributions() if d.startswith("shared")] == [
        "shared-one==1.0"
    ]
    for name in ("shared", "shared.one"):
        monkeypatch.delitem(sys.modules, name)


def test_a_lazy_module_is_not_woken_up(monkeypatch):
    class Lazy(type(sys)):
        def __getattr__(self, name):
            raise RuntimeError("woken")

    monkeypatch.setitem(sys.modules, "lazy_of_mine", Lazy("lazy_of_mine"))
    assert installed_packages.distributions()
    assert "lazy_of_mine" not in dict(installed_packages.imported_modules())


def test_what_is_installed_later_is_seen(tmp_path, monkeypatch):
    site = tmp_path / "site-packages"
    site.mkdir()
    monkeypatch.syspath_prepend(site)
    installed_packages.distributions()
    (site / "later_of_mine.py").write_text("")
    (site / "later_of_mine-2.1.dist-info").mkdir()
    importlib.invalidate_caches()
    importlib.import_module("later_of_mine")
    assert "later-of-mine==2.1" in installed_packages.distributions()
    monkeypatch.delitem(sys.modules, "later_of_mine")


def test_a_module_that_another_takes_the_place_of_is_looked_at_again(tmp_path, monkeypatch):
    for folder in ("first", "second"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "replaced_of_mine.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path / "first")
    kept = importlib.import_module("replaced_of_mine")
    assert dict(installed_packages.not_installed())["replaced_of_mine"] == kept.__file__
    monkeypatch.delitem(sys.modules, "replaced_of_mine")
    assert "replaced_of_mine" not in dict(installed_packages.imported_modules())
    monkeypatch.syspath_prepend(tmp_path / "second")
    importlib.import_module("replaced_of_mine")
    assert dict(installed_packages.not_installed())["replaced_of_mine"].startswith(
        str(tmp_path / "second")
    )
    monkeypatch.delitem(sys.modules, "replaced_of_mine")
