"""Errors that a tool keeps as well as raises: they are the same objects again, and tell where they were raised."""

from __future__ import annotations

import asyncio
import traceback

import pytest

import tape_jupyter as tape
from tests.harness.tool_runs import ran as bodies
from tests.harness.tool_runs import same


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    bodies.clear()


class ToolError(Exception):
    def __init__(self, name):
        super().__init__(f"{name} failed")
        self.name = name


class Several(ExceptionGroup):
    def derive(self, errors):
        return Several(self.message, errors)


def look_up(name):
    return {"ok": 1}[name]


def keep(kept, name):
    try:
        look_up(name)
    except KeyError as why:
        why.add_note(f"while looking at {name}")
        kept.append(why)
        return why


def raised(act):
    """What a program holds after a tool that keeps errors raised one."""

    def program():
        kept = []

        @tape.tool
        def work(name):
            bodies.append("work")
            act(kept, name)

        try:
            work("x")
        except Exception as error:
            return describe(error, kept)
        return describe(None, kept)

    return program


def describe(error, kept):
    found = {}
    waiting = [("", error)]
    for name, each in waiting:
        if each is None:
            continue
        place = next((n for n, other in enumerate(kept) if other is each), None)
        found[name] = type(each).__name__, str(each), place, names_of(each)
        waiting += [(f"{name}.cause", each.__cause__), (f"{name}.context", each.__context__)]
        waiting += [(f"{name}.{n}", m) for n, m in enumerate(getattr(each, "exceptions", ()))]
    return found, [
        (type(each).__name__, names_of(each), getattr(each, "__notes__", [])) for each in kept
    ]


def names_of(error):
    """The functions of this module that a traceback names below the tool."""
    frames = traceback.extract_tb(error.__traceback__)
    return [frame.name for frame in frames if frame.name in ("look_up", "keep", "fails", "group")]


def fails(kept, name):
    error = ToolError(name)
    kept.append(error)
    raise error


def group(kept, name):
    raise ExceptionGroup("several", [keep(kept, name), keep(kept, "y")])


def group_of_its_own(kept, name):
    raise Several("several", [keep(kept, name), ValueError("new"), keep(kept, "y")])


def nested(kept, name):
    inner = ExceptionGroup("inner", [keep(kept, name)])
    kept.append(inner)
    raise ExceptionGroup("outer", [inner, ExceptionGroup("other", [keep(kept, "z")])])


def cause(kept, name):
    raise ToolError(name) from keep(kept, name)


def cause_of_a_member(kept, name):
    error = ToolError(name)
    error.__cause__ = keep(kept, name)
    raise ExceptionGroup("several", [error])


@pytest.mark.parametrize(
    "act",
    [fails, group, group_of_its_own, nested, cause, cause_of_a_member],
    ids=lambda act: act.__name__,
)
def test_an_error_that_a_tool_raised_is_the_one_that_it_kept(act):
    found, kept = same(raised(act))
    assert found and kept
    assert any(place is not None for _, _, place, _ in found.values())


def test_an_error_that_is_only_kept_tells_where_it_was_raised():
    found, kept = same(raised(keep))
    assert not found
    assert kept == [("KeyError", ["keep", "look_up"], ["while looking at x"])]


def test_a_frame_that_went_on_after_an_error_stands_where_it_ended():
    """As IPython draws the traceback of an error that is raised again later."""
    last = []

    def program():
        last.clear()

        @tape.tool
        def work(name):
            bodies.append("work")
            try:
                look_up(name)
            except KeyError as why:
                last.append(why)
            return "went on"

        assert work("x") == "went on"
        frames = [trace[0] for trace in traceback.walk_tb(last[0].__traceback__)]
        text = "".join(traceback.format_exception(last[0]))
        return text, [frame.f_lineno - frame.f_code.co_firstlineno for frame in frames]

    text, lines = same(program)
    assert lines == [7, 1]
    assert "^^^" in text


def test_a_coroutine_that_a_function_gives_raises_where_it_is_awaited():
    async def later(name):
        return look_up(name)

    def program():
        @tape.tool
        def start(name):
            bodies.append("start")
            return later(name)

        async def main():
            begun = [start(name) for name in ("ok", "x")]
            return [repr(each) for each in await asyncio.gather(*begun, return_exceptions=True)]

        return asyncio.run(main())

    assert same(program) == ["1", "KeyError('x')"]
