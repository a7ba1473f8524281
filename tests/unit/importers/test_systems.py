"""The pages about systems say what the table in the code says, and the table leaves no format out."""

from tape_jupyter.exporters import exporting
from tape_jupyter.importers import recognise, systems
from tests.harness.notebook import ROOT


def test_every_format_has_a_system_and_every_system_a_format():
    named = {each for system in systems.SYSTEMS for each in system.formats}
    assert named == {
        name
        for name, module in recognise.known_formats().items()
        if module.__name__.startswith("tape_jupyter.")
    }
    assert {system.back for system in systems.SYSTEMS} - {""} <= exporting.known_formats().keys()
    assert len({system.name for system in systems.SYSTEMS}) == len(systems.SYSTEMS)


def test_the_pages_are_those_of_the_table():
    folder = ROOT / "docs" / "systems"
    assert {
        path.name: path.read_text(encoding="utf-8") for path in folder.iterdir()
    } == systems.pages()
