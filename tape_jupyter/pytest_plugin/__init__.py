"""The pytest plugin: hooks and options. A session without a tape imports nothing else of ours.

    pytest --tape notebooks/                 bundles and taped notebooks below it are tests, one a cell
    @pytest.mark.tape                        this test is replayed from tests/tapes/MODULE/TEST.tape.yaml
    def test_refund(tape): ...               the same, with what happened to assert on
    pytest --tape-mode once                  record what has no recording yet

pytest_plugin/mark.py is what marks and fixture do, pytest_plugin/cells.py the notebooks.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tape_jupyter.pytest_plugin.mark import Taped

MODES = ("replay", "record", "once", "new_episodes")
MARK = (
    "tape(path_or_name=None, *, mode='replay', take='', ...): "
    "replay this test's LLM and tool calls from its cassette."
)

_TAPED = pytest.StashKey["Taped"]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("tape", "recorded LLM and tool calls (tape-jupyter)")
    group.addoption(
        "--tape", action="append", default=[], metavar="DIR|FILE", dest="tape_places",
        help="collect bundles (*.tape.zip) and taped notebooks as tests, one a cell; may be repeated",
    )  # fmt: skip
    group.addoption(
        "--tape-mode", choices=MODES, default=None,
        help="the mode of every taped test, whatever it says itself: `once` while developing; TAPE_MODE=replay wins",
    )  # fmt: skip
    group.addoption(
        "--tape-env", choices=("here", "lock"), default="here",
        help="what bundles run in: this environment, or one made of their lock",
    )  # fmt: skip
    group.addoption(
        "--tape-trust", action="store_true", default=False,
        help="run bundles that were never let run here: they hold code of others, and run it as you",
    )  # fmt: skip
    group.addoption(
        "--tape-timeout",
        type=float,
        default=None,
        metavar="SECONDS",
        help="for each cell of a notebook",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", MARK)
    if config.getoption("tape_places"):
        from tape_jupyter.pytest_plugin import cells

        cells.add_places(config)


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    if not parent.config.getoption("tape_places"):
        return None
    from tape_jupyter.pytest_plugin import cells

    if not cells.is_named(parent.config, file_path):
        return None
    kind: type[cells.CellsFile] = cells.NotebookFile
    if file_path.name.endswith(cells.BUNDLE):
        # one of two kinds
        from tape_jupyter.pytest_plugin.cells import BundleCollector as kind  # noqa: N813
    collector: pytest.Collector = kind.from_parent(parent, path=file_path)
    return collector


def pytest_itemcollected(item: pytest.Item) -> None:
    """A marked test has the fixture, named or not: first among those of its own, after what whole
    sessions share.
    """
    names = getattr(item, "fixturenames", None)
    if names is None or ("tape" not in names and item.get_closest_marker("tape") is None):
        return
    others = [name for name in names if name != "tape"]
    known = getattr(getattr(item, "_fixtureinfo", None), "name2fixturedefs", {})
    positions = (
        at
        for at, name in enumerate(others)
        if known.get(name) and known[name][-1].scope == "function"
    )
    at = next(positions, len(others))
    # of Function and its like
    item.fixturenames = [*others[:at], "tape", *others[at:]]  # type: ignore[attr-defined]


@pytest.fixture
def tape(request: pytest.FixtureRequest) -> Iterator[Taped]:
    """The calls of this test: replayed from its cassette, or recorded into it (`--tape-mode`).

    `tape.calls` and `tape.spans` are what it did so far (tape_jupyter.testing.Span),
    `tape.cassette` the open cassette, `tape.mode` and `tape.path` what it is. Of a mark:
    `@pytest.mark.tape("name", mode="once", take="angry", ...)`; the options are those of
    `tape.replaying`. A call that is not on the tape fails the test.
    """
    from tape_jupyter.pytest_plugin import mark as pytest_plugin_mark

    mark = request.node.get_closest_marker("tape")
    mode = request.config.getoption("tape_mode")
    taped = request.node.stash[_TAPED] = pytest_plugin_mark.start_tape(
        request.node, mark, mode, os.environ.get("TAPE_MODE", "")
    )
    try:
        yield taped
    finally:
        del request.node.stash[_TAPED]
        taped.stop()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """What was refused fails the test, also where the code under test swallowed it."""
    taped = item.stash.get(_TAPED, None)
    if taped is None:
        return (yield)
    try:
        result = yield
    except BaseException as error:
        taped.failed(item, error)
        raise
    taped.passed()
    return result
