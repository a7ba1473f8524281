"""A pytest test whose calls are taped: where its cassette lies, when it starts and ends, what fails
it.

The tape runs from the setup of the `tape` fixture to its teardown, so that other fixtures' calls
are on it too; clock, sleep and chance are held in the test's own code alone, pytest's stay real.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import re
import textwrap
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tape_jupyter import testing
from tape_jupyter.cassette import paths
from tape_jupyter.cassette.cassette import Cassette
from tape_jupyter.cassette.paths import SUFFIX
from tape_jupyter.core.context import ORIGIN
from tape_jupyter.core.plain_text import did_you_mean
from tape_jupyter.errors import TapeError, TapeRefusal, TapeUsageError
from tape_jupyter.session import api
from tape_jupyter.session.cell import CellReport, TapedCell, current_task
from tape_jupyter.session.options import CELL_MODES

if TYPE_CHECKING:
    from tape_jupyter.testing import Span

OWN = Path(__file__).parents[1]
_PLAIN = re.compile(r"[^A-Za-z0-9_-]+")
_LONGEST = 100  # characters of a cassette's name; a file's may have 255 bytes
_OPTIONS = {
    name
    for function in (api.recording, api.replaying)
    for name, each in inspect.signature(function).parameters.items()
    if each.kind is each.KEYWORD_ONLY
}


class Taped:
    """What the `tape` fixture gives. `report` is there once the test is over."""

    def __init__(self, path: Path, mode: str, block: api.Block) -> None:
        self.path, self.mode = path, mode
        self.report: CellReport | None = None
        self._block = block
        self._cell: TapedCell | None = None
        self._error: BaseException | None = None
        self._reported = 0
        self.undo: Callable[[], None] = lambda: None

    def __repr__(self) -> str:
        return f"<tape of {self.path}: {self.mode}>"

    @property
    def cassette(self) -> Cassette:
        """The open cassette, or take."""
        cell = self._require_cell()
        assert cell.cassette is not None
        return cell.cassette

    @property
    def spans(self) -> tuple[Span, ...]:
        """What this test did so far, in tree order: calls, the spans of the user's around them, the
        test itself.
        """
        cell, book = self._require_cell(), self.cassette
        if cell.recording.run:
            run_calls = [entry for entry in book.calls if entry.run == cell.recording.run]
        else:
            run_calls = []
        entries = list(dict.fromkeys([*cell.execution.played, *run_calls]))
        run = cell.recording.run or (entries[0].run if entries else "")
        return testing.spans_of(book, run, entries) if entries else ()

    @property
    def calls(self) -> tuple[Span, ...]:
        """The calls among them, in the order in which they were made."""
        return tuple(each for each in self.spans if each.is_call)

    def _require_cell(self) -> TapedCell:
        if self._cell is None:
            raise TapeUsageError("the tape has not been started")
        return self._cell

    def start(self) -> None:
        """From here on calls are taped. Raises TapeError where there is nothing to replay."""
        self._cell = self._block.begin()
        ORIGIN.set(None)  # pytest's own clock is real

    def stop(self) -> None:
        """The end of it, in whatever context. Fails the test's teardown for what was refused after
        the test.
        """
        self.undo()
        self._block.end(self._error)
        self.report = self._block.report
        if self.report is not None and self.report.lost and self._error is None:
            pytest.fail(str(api.build_loss_error(self.report)), pytrace=False)
        self.passed()

    @contextmanager
    def activate_cell(self) -> Iterator[None]:
        """What runs meanwhile is the test's own code."""
        cell = self._require_cell()
        token, before = ORIGIN.set(cell.origin), cell.task
        cell.task = current_task()
        try:
            yield
        finally:
            cell.task = before
            ORIGIN.reset(token)

    def holding(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The test's function, held; a coroutine function stays one, whoever runs it in whatever
        context.
        """
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def run_held_async(*args: Any, **kwargs: Any) -> Any:
                with self.activate_cell():
                    return await function(*args, **kwargs)

            return run_held_async

        @functools.wraps(function)
        def run_held(*args: Any, **kwargs: Any) -> Any:
            with self.activate_cell():
                return function(*args, **kwargs)

        return run_held

    # ------------------------------------------------------------ what fails a test

    def failed(self, item: pytest.Item, error: BaseException) -> None:
        """The test failed by itself. Where a miss did it, the miss is what is told; else it is told
        beside.
        """
        self._error = None if isinstance(error, pytest.skip.Exception) else error
        missed = self._find_new_refusals()
        if missed and (isinstance(error, TapeRefusal) or _is_caused_by(error, missed)):
            pytest.fail(_format_refusals(missed), pytrace=False)
        if missed:
            item.add_report_section("call", "tape", _format_refusals(missed))

    def passed(self) -> None:
        """The test, or its teardown, came to its end: it fails all the same where a call was
        refused.
        """
        if missed := self._find_new_refusals():
            pytest.fail(_format_refusals(missed), pytrace=False)

    def _find_new_refusals(self) -> list[TapeRefusal]:
        """What was refused and has not been told."""
        refusals = self._require_cell().findings.refusals[self._reported :]
        self._reported += len(refusals)
        return list(dict.fromkeys(refusals))


def _is_caused_by(error: BaseException, missed: list[TapeRefusal]) -> bool:
    """Whether an error is one of these, or a group or a wrapping of one."""
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        each = waiting.pop()
        if each is None or id(each) in seen:
            continue
        if each in missed:
            return True
        seen.add(id(each))
        waiting += [
            each.__cause__,
            *(each.exceptions if isinstance(each, BaseExceptionGroup) else ()),
        ]
    return False


def _format_refusals(missed: list[TapeRefusal]) -> str:
    """Each with the lines of the user's code that led to it."""
    return "\n\n".join(
        "\n".join(filter(None, [str(each), _format_frames(each)])) for each in missed
    )


def _format_frames(refusal: TapeRefusal) -> str:
    frames = [
        each for each in traceback.extract_tb(refusal.__traceback__) if _is_users(each.filename)
    ]
    return "".join(traceback.format_list(frames)).rstrip()


def _is_users(file: str) -> bool:
    path = Path(file)
    return (
        path.is_file()
        and OWN not in path.parents
        and not {"site-packages", "asyncio"} & set(path.parts)
    )


# ---------------------------------------------------------------- from the mark


def start_tape(item: Any, mark: pytest.Mark | None, mode_option: str | None, forced: str) -> Taped:
    """Start the tape of a test. `mode_option` is `--tape-mode`, `forced` is TAPE_MODE; what fails here
    fails its setup.
    """
    try:
        taped = _build_taped(item, mark, mode_option, forced)
        taped.start()
    except TapeError as error:
        pytest.fail(str(error), pytrace=False)
    plain = item.obj
    taped.undo = lambda: setattr(item, "obj", plain)
    item.obj = taped.holding(plain)
    return taped


def _build_taped(
    item: Any, mark: pytest.Mark | None, mode_option: str | None, forced: str
) -> Taped:
    args, options = (mark.args, dict(mark.kwargs)) if mark is not None else ((), {})
    if len(args) > 1:
        raise TapeUsageError(f"@pytest.mark.tape takes one path or name, not {len(args)}")
    own_mode = str(options.pop("mode", "replay"))
    mode = "replay" if forced == "replay" else mode_option or own_mode
    if mode not in CELL_MODES:
        near = did_you_mean(mode, CELL_MODES)
        raise TapeUsageError(
            f"{mode!r} is not a mode of a taped test{near} (there are: {', '.join(CELL_MODES)})"
        )
    if unknown := sorted(set(options) - _OPTIONS):
        raise TapeUsageError(
            f"@pytest.mark.tape has no {unknown[0]!r}{did_you_mean(unknown[0], tuple(_OPTIONS))}"
        )
    path = cassette_path_of_test(Path(item.path), _split_node_id(item), args[0] if args else None)
    if mode == "replay" and not path.exists():
        raise TapeUsageError(
            f"there is no recording of this test ({_format_path(path)}). Record it once: pytest --tape-mode once "
            f"'{item.nodeid}'. Nothing was run"
        )
    if mode == "record":
        make = api.recording
    else:
        make = functools.partial(api.replaying, mode=mode)
    known = inspect.signature(make).parameters
    block = make(path, **{name: value for name, value in options.items() if name in known})
    name = "::".join([Path(item.path).stem, *_split_node_id(item)])
    return Taped(path, mode, block.of(_read_source(item), name, _find_globals(item)))


def _split_node_id(item: Any) -> list[str]:
    """Class and function, with the parameters in brackets: what comes after the file in the test's
    id.
    """
    return [part for part in item.nodeid.split("::")[1:] if part] or [item.name]


def cassette_path_of_test(file: Path, names: list[str], cassette: str | Path | None = None) -> Path:
    """Where a test's cassette lies: beside its file, in tapes/MODULE/; a path is taken from that
    file's folder.
    """
    folder = file.parent / "tapes" / file.stem
    if cassette is None:
        return folder / f"{file_name('.'.join(names))}{SUFFIX}"
    if (
        isinstance(cassette, str)
        and not {"/", "\\"} & set(cassette)
        and not cassette.endswith((SUFFIX, ".ipynb"))
    ):
        return folder / f"{file_name(cassette)}{SUFFIX}"
    path = file.parent / cassette
    return paths.cassette_path(path) if path.suffix == ".ipynb" else path


def file_name(name: str) -> str:
    """A name that every file system takes. What is lost on the way stands in it as a few digits of
    its digest.
    """
    bracket = name.partition("[")
    plain = _PLAIN.sub("-", name).strip("-")
    same = _PLAIN.sub("-", bracket[0]) + (f"-{bracket[2].removesuffix(']')}" if bracket[1] else "")
    if plain == same.strip("-") and len(plain) <= _LONGEST and bracket[2] == bracket[2].lower():
        return plain
    return f"{plain[:_LONGEST]}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def _format_path(path: Path) -> str:
    try:
        return path.relative_to(Path.cwd()).as_posix()
    except ValueError:
        return str(path)


def _read_source(item: Any) -> str:
    """The test's own code, under its name."""
    try:
        code = textwrap.dedent(inspect.getsource(inspect.unwrap(item.obj)))
    except (OSError, TypeError):
        code = ""
    return f"# {item.name}\n{code}"


def _find_globals(item: Any) -> Mapping[str, Any]:
    return getattr(
        getattr(inspect.unwrap(item.obj), "__func__", inspect.unwrap(item.obj)), "__globals__", {}
    )


__all__ = ["Taped", "cassette_path_of_test", "file_name", "start_tape"]
