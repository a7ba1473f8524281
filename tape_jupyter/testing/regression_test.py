"""`tape export --test`: a small test file that pins a run: its calls, tools, arguments and last
output.

What stands in it comes from a replay, so it passes as written; the same run gives the same bytes.
It is a beginning for a person to go on from: a file that somebody edited, or that is not ours, is
never written over. Nothing in it is a secret: what looks like one is left out.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tape_jupyter.core.atomic_write import replacing
from tape_jupyter.errors import NotExported, TapeUsageError
from tape_jupyter.secrets import environment, leaks
from tape_jupyter.testing import Run, Span, run_notebook

WIDTH = 88
"""Columns that a line may have: ruff's and black's own default."""
SHOWN = 12
"""Lines of the last output that are pinned."""
LARGEST = 100_000
"""Characters that all answers of tools, or all texts of models, may take."""

_MARK = re.compile(r"# Written by `tape export --test`, unchanged: sha256 ([0-9a-f]{64})\n\Z")
_WORD = re.compile(r"[^A-Za-z0-9_]+")


def regression_test_path(notebook: Path, told: Path | None = None) -> Path:
    """Where the file is to lie: `test_NB.py` beside the notebook, or as told.

    Raises TapeUsageError where a file lies there that is not as we wrote it.
    """
    file = told or notebook.with_name(f"test_{_WORD.sub('_', notebook.stem)}.py")
    if file.suffix != ".py":
        raise TapeUsageError(f"--test {file}: a test file ends in .py")
    if not file.parent.is_dir():
        raise TapeUsageError(f"--test {file}: there is no folder {file.parent}")
    if file.is_symlink() or (file.exists() and not is_ours(file)):
        raise TapeUsageError(
            f"{file} is not as tape wrote it, and is not written over; name another: --test FILE.py"
        )
    return file


def is_ours(file: Path) -> bool:
    """Whether the file is one that we wrote and nobody changed since."""
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, ValueError):
        return False
    match = _MARK.search(text)
    return match is not None and match[1] == _digest_text(text[: match.start()])


def write_regression_test(notebook: Path, file: Path, run: Run | None = None) -> Path:
    """Write the test that pins what a replay of the notebook did (it is replayed now, if it was
    not); gives the file.

    Raises NotExported where a cell is not as saved: there is nothing yet to hold on to.
    """
    run = run or run_notebook(notebook)
    if not run.good:
        raise NotExported(
            f"{notebook} does not replay as it was saved, so no test was written:\n{run.text()}"
        )
    text = regression_test_source(notebook, file, run)
    try:
        with replacing(file) as draft:
            draft.write_text(text, encoding="utf-8", newline="\n")
            # somebody may have edited it while the notebook ran
            regression_test_path(notebook, file)
    except OSError as error:
        raise TapeUsageError(f"{file} cannot be written: {error.strerror or error}") from error
    return file


def regression_test_source(notebook: Path, file: Path, run: Run) -> str:
    """The test file of a run. Raises NotExported where the notebook's very name is a secret."""
    secrets = environment.environment_secrets(notebook.parent)

    def is_clean(text: str) -> bool:
        return not leaks.scan({"test.py": text.encode("utf-8", "surrogatepass")}, secrets)

    parts = [part for part in _build_parts(run, notebook) if is_clean("\n".join(part))]
    constants = [constant for constant, _ in parts if constant]
    tests = [test for _, test in parts]
    where = Path(os.path.relpath(notebook.resolve(), file.resolve().parent)).as_posix()
    head = [
        _HEAD.format(name=_clean_name(notebook.name)),
        f"NOTEBOOK = Path(__file__).parent / {quoted(where)}",
    ]
    text = (
        "\n\n\n".join(["\n\n".join(["\n".join(head), *constants]), _RUN, *tests, _EXAMPLE])
        + "\n\n\n"
    )
    if not is_clean(text):
        raise NotExported("a secret is in the notebook's name or path: no test was written")
    return f"{text}# Written by `tape export --test`, unchanged: sha256 {_digest_text(text)}\n"


def _digest_text(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _clean_name(name: str) -> str:
    """A file's name within a docstring."""
    return "".join(each if each.isprintable() and each not in '"\\' else "?" for each in name)


_HEAD = '''"""Pins a run of {name}: its calls, what they ask and give, its last output."""

from pathlib import Path

import pytest

from tape_jupyter import testing
'''

_RUN = '''@pytest.fixture(scope="module")
def run():
    """The notebook, replayed offline; fails where a cell is not as it was saved."""
    return testing.assert_replays(NOTEBOOK)'''

_EXAMPLE = """# What must never happen is yours to say, of `run.calls` and `run.spans`:
#
# def test_it_never_returns_another_users_order(run):
#     for call in run.calls:
#         if call.name == "lookup_order":
#             assert call.answered["user"] == "ada\""""

_CALLS = """def test_it_makes_these_calls(run):
    assert [(call.kind, call.name) for call in run.calls] == CALLS"""
_TOOLS = """def test_its_tools_are_called_with_these_arguments(run):
    tools = [call for call in run.calls if call.kind in ("tool", "retrieval")]
    assert [(call.name, call.asked) for call in tools] == TOOLS"""
_ANSWERS = """def test_its_tools_give_this(run):
    tools = [call for call in run.calls if call.kind in ("tool", "retrieval")]
    assert [(call.name, call.answered) for call in tools] == ANSWERS"""
_TEXTS = """def test_its_models_say_this(run):
    assert [call.text for call in run.calls if call.kind == "model"] == TEXTS"""
_USES = """def test_its_models_ask_for_these_tools(run):
    uses = [use for call in run.calls for use in call.uses]
    assert [(use.name, use.arguments) for use in uses] == USES"""
_UNFAILED = """def test_no_call_fails(run):
    assert [call for call in run.calls if call.error] == []"""


# ---------------------------------------------------------------- what is pinned


def _build_parts(run: Run, notebook: Path) -> Iterator[tuple[str, str]]:
    """A constant (or "") and the test that goes by it, each."""
    calls = run.calls
    yield _format_constant("CALLS", [(call.kind, call.name) for call in calls]), _CALLS
    if tools := [call for call in calls if call.kind in ("tool", "retrieval")]:
        yield (
            _format_constant("TOOLS", [(call.name, call.asked) for call in tools]),
            _TOOLS,
        )
        yield _build_bounded_part(
            "ANSWERS", [(call.name, call.answered) for call in tools], _ANSWERS
        )
    if texts := [call.text for call in calls if call.kind == "model"]:
        yield _build_bounded_part("TEXTS", texts, _TEXTS)
    if uses := [use for call in calls for use in call.uses]:
        yield (
            _format_constant("USES", [(use.name, use.arguments) for use in uses]),
            _USES,
        )
    if not any(call.error for call in calls):
        yield "", _UNFAILED
    yield from (
        ("", _format_same_key_test(name, key)) for name, key in sorted(_find_same_keys(tools))
    )
    yield from _build_output_part(run, notebook)


def _build_bounded_part(name: str, values: Sequence[Any], test: str) -> tuple[str, str]:
    constant = _format_constant(name, values)
    if len(constant) > LARGEST:
        return "", f"# {name} would be {len(constant):,} characters, and is left out."
    return constant, test


def _find_same_keys(tools: Sequence[Span]) -> set[tuple[str, str]]:
    """Tool and key, where each answer says the same under that key as was asked for: whose order it
    is, for one.
    """
    keys_by_tool: dict[str, set[str]] = {}
    for call in tools:
        answered = call.answered if isinstance(call.answered, dict) else {}
        same = {
            key
            for key, value in call.asked.items()
            if isinstance(value, str | int) and value != "" and answered.get(key) == value
        }
        keys_by_tool[call.name] = keys_by_tool.get(call.name, same) & same
    return {
        (name, key)
        for name, keys in keys_by_tool.items()
        for key in keys
        if not key.startswith("<")
    }


def _format_same_key_test(name: str, key: str) -> str:
    tool_name, key_name = (_WORD.sub("_", each).strip("_") for each in (name, key))
    return (
        f"def test_{tool_name}_never_answers_about_another_{key_name}(run):\n"
        "    for call in run.calls:\n"
        f"        if call.name == {quoted(name)}:\n"
        f"            assert call.answered[{quoted(key)}] == call.asked[{quoted(key)}]"
    )


def _build_output_part(run: Run, notebook: Path) -> Iterator[tuple[str, str]]:
    """What the last cell that shows anything shows; not the tape's own lines, nor what speaks of
    this machine.
    """
    numbers = [cell.number for cell in run.cells if not cell.title.startswith("%tape")]
    cell_outputs = [
        (number, lines) for number in numbers if (lines := run.shown(number).splitlines())
    ]
    here = {str(notebook.resolve().parent), str(Path.home())} - {"/"}
    if not cell_outputs or any(place in line for place in here for line in cell_outputs[-1][1]):
        return
    number, lines = cell_outputs[-1]
    cut = f"[:{SHOWN}]" if len(lines) > SHOWN else ""
    yield (
        _format_constant("OUTPUT", lines[:SHOWN]),
        f"def test_cell_{number}_shows_this(run):\n    assert run.shown({number}).splitlines(){cut} == OUTPUT",
    )


# ---------------------------------------------------------------- Python, as ruff formats it


def _format_constant(name: str, values: Sequence[Any]) -> str:
    if not values:
        return f"{name} = []"
    lines = [f"    {python_literal(value, 4, 1)}," for value in values]
    return "\n".join([f"{name} = [", *lines, "]"])


def python_literal(value: Any, indent: int = 0, after: int = 0, before: int = 0) -> str:
    """Plain structure as a Python expression: on one line where it fits, else an item a line.

    It stands `indent` columns in, with `before` characters before it on its line and `after` behind
    it.
    """
    line = _format_line(value)
    if (
        indent + before + len(line) + after <= WIDTH
        or not isinstance(value, dict | list | tuple)
        or not value
    ):
        return line
    inner = indent + 4
    if isinstance(value, dict):
        items = [
            f"{quoted(str(key))}: {python_literal(each, inner, 1, len(quoted(str(key))) + 2)}"
            for key, each in value.items()
        ]
    else:
        items = [python_literal(each, inner, 1) for each in value]
    ends = {dict: "{}", list: "[]"}.get(type(value), "()")
    return "\n".join(
        [ends[0], *(f"{' ' * inner}{item}," for item in items), " " * indent + ends[1]]
    )


def _format_line(value: Any) -> str:
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, dict):
        return f"{{{', '.join(f'{quoted(str(key))}: {_format_line(each)}' for key, each in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_format_line, value))}]"
    if isinstance(value, tuple):
        return f"({', '.join(map(_format_line, value))}{',' if len(value) == 1 else ''})"
    return repr(value)


def quoted(text: str) -> str:
    """A text in double quotes, in single ones where it holds more double than single."""
    mark = "'" if text.count('"') > text.count("'") else '"'
    return (
        mark
        + "".join(f"\\{each}" if each in (mark, "\\") else _format_character(each) for each in text)
        + mark
    )


def _format_character(each: str) -> str:
    if each.isprintable():
        return each
    return {"\n": "\\n", "\t": "\\t", "\r": "\\r"}.get(each, _escape_character(each))


def _escape_character(each: str) -> str:
    number = ord(each)
    if number < 0x100:
        return f"\\x{number:02x}"
    if number < 0x10000:
        return f"\\u{number:04x}"
    return f"\\U{number:08x}"
