"""What a cell is called, and where its source comes from."""

import json
from pathlib import Path

import pytest

from tape_jupyter.cassette.cell_sources import TITLE, Sources, notebook_of, source_hash, title_of


@pytest.mark.parametrize(
    ("source", "title"),
    [
        ("# Classify the ticket\nx = 1", "Classify the ticket"),
        ("%%tape record\n# classify\nx", "classify"),
        ("import json\nfrom os import path\n\ndef classify(text):\n    return 1", "classify"),
        ("async def answer(): ...", "answer"),
        ("@tape.tool\ndef lookup(q): ...", "lookup"),
        ("import json\nmood = classify(ticket)", "mood = classify(…)"),
        ("reply = await client.messages.create(model='x')", "reply = create(…)"),
        ("%load_ext tape_jupyter", "%load_ext tape_jupyter"),
        ("print(mood)", "print(mood)"),
        ("x" * 200, "x" * (TITLE - 1) + "…"),
        ("", ""),
        ("\n  \n", ""),
        ("#", "#"),
    ],
)
def test_a_title_is_a_few_words_of_the_source(source, title):
    assert title_of(source) in (title, "" if title == "#" else title)


def written(path, *sources):
    cells = [
        {"cell_type": "code", "id": f"c{n}", "source": source} for n, source in enumerate(sources)
    ]
    path.write_text(json.dumps({"cells": [{"cell_type": "markdown", "source": "# no"}, *cells]}))
    return Sources(path)


def test_the_source_is_found_by_its_hash_with_and_without_the_tape_line(tmp_path):
    sources = written(tmp_path / "n.ipynb", "%%tape record\nask()", ["x =", " 1"])
    assert sources.find_source({"source": source_hash("ask()")}) == "%%tape record\nask()"
    assert sources.find_source({"source": source_hash("x = 1")}) == "x = 1"
    assert sources.find_source({"source": "0" * 16}) is None and sources.find_source({}) is None
    assert sources.of_cell("c1") == "x = 1" and sources.of_cell(source_hash("ask()")[:12]).endswith(
        "ask()"
    )
    assert sources.of_cell("") is None


def test_cells_of_this_session_come_before_those_of_the_file(tmp_path):
    sources = Sources(tmp_path / "none.ipynb", known={source_hash("new()"): "new()"})
    assert sources.find_source({"source": source_hash("new()")}) == "new()"


@pytest.mark.parametrize(
    "content", ["", "no json", "[]", '{"cells": 7}', '{"cells": [7]}', "[" * 100_000]
)
def test_a_notebook_that_cannot_be_read_leaves_cells_without_a_source(tmp_path, content):
    (tmp_path / "n.ipynb").write_text(content)
    assert Sources(tmp_path / "n.ipynb").title({"count": 3, "source": "x"}) == "[3] cell"


def test_the_title_that_was_recorded_counts(tmp_path):
    sources = written(tmp_path / "n.ipynb", "# now")
    assert (
        sources.title({"count": 2, "title": "then", "source": source_hash("# now")}) == "[2] then"
    )
    assert sources.title({"count": 2, "source": source_hash("# now")}) == "[2] now"
    assert sources.title({}) == "cell"


def test_a_cassettes_notebook_lies_beside_its_folder():
    assert notebook_of(Path("/a/n.tapes/main.tape.yaml")) == Path("/a/n.ipynb")
    assert notebook_of(Path("/a/n.tapes/takes/main.glad.tape.yaml")) == Path("/a/n.ipynb")
