"""Which boundaries a person excepts, by words; for one call exactly one of them holds."""

import pytest

from tape_jupyter.core.call import FunctionCall, Request
from tape_jupyter.errors import TapeUsageError
from tape_jupyter.cassette.runs import CellIdentity
from tape_jupyter.replay.selection import Selection, Selector, CallOrigin, call_origin

CELL = CellIdentity("cell-7", "0123456789abcdef")
LLM = CallOrigin("model", "api.anthropic.com", 443, CELL)
TOOL, RETRIEVAL = (
    CallOrigin("tool", "lookup", None, CELL),
    CallOrigin("retrieval", "search", None, CELL),
)
LOCAL = CallOrigin("host", "127.0.0.1", 5432, CELL)


class Recorded:
    id, run = "78a670b1-2", "r-1"


@pytest.mark.parametrize(
    ("word", "site", "selected"),
    [
        ("llm", LLM, True),
        ("llm", TOOL, False),
        ("tools", TOOL, True),
        ("tools", RETRIEVAL, True),
        ("tools", LLM, False),
        ("tool:lookup", TOOL, True),
        ("tool:look", TOOL, False),
        ("tool:api.anthropic.com", LLM, False),
        ("host:api.anthropic.com", LLM, True),
        ("host:API.anthropic.com", LLM, True),
        ("host:anthropic.com", LLM, False),
        ("host:api.anthropic.com:443", LLM, True),
        ("host:api.anthropic.com:80", LLM, False),
        ("host:localhost", LOCAL, True),
        ("host:127.0.0.1:5432", LOCAL, True),
        ("host:127.0.0.1:5433", LOCAL, False),
        ("host:lookup", TOOL, False),
        ("call:78a670b1-2", LLM, True),
        ("call:r-1/78a670b1-2", LLM, True),
        ("call:r-2/78a670b1-2", LLM, False),
        ("call:78a670b1", LLM, False),
        ("cell:cell-7", LLM, True),
        ("cell:0123", TOOL, True),
        ("cell:012", TOOL, False),
        ("cell:cell-8", LLM, False),
    ],
)
def test_a_word_is_for_some_calls_and_for_no_others(word, site, selected):
    assert Selector.parse(word).selects(site, Recorded()) is selected
    assert str(Selector.parse(word)).lower() == word.lower()


def test_a_call_that_is_not_recorded_has_no_id():
    assert not Selector.parse("call:78a670b1-2").selects(LLM, None)


@pytest.mark.parametrize(
    "word", ["", "model", "llm:x", "tool", "tool:", ":x", "tools:a", "hosts:a", "http://x", "*"]
)
def test_what_names_no_boundary_is_refused_with_the_words_that_do(word):
    with pytest.raises(
        TapeUsageError, match="write llm, tools, tool:NAME, host:NAME, call:ID or cell:ID"
    ):
        Selector.parse(word)


@pytest.mark.parametrize(
    ("told", "site", "how"),
    [
        ({}, LLM, ""),
        ({"live": ["llm"]}, LLM, "live"),
        ({"live": ["llm"]}, TOOL, ""),
        ({"live": ["tools"], "freeze": ["tool:lookup"]}, TOOL, "freeze"),
        ({"live": ["tool:lookup"], "freeze": ["tools"]}, TOOL, "live"),
        ({"live": ["tool:lookup"], "freeze": ["call:78a670b1-2"]}, TOOL, "freeze"),
        ({"live": ["call:78a670b1-2"], "freeze": ["tool:lookup"]}, TOOL, "live"),
        ({"live": ["cell:cell-7"], "freeze": ["llm"]}, LLM, "freeze"),
        (
            {"live": ["host:127.0.0.1"], "freeze": ["llm"]},
            CallOrigin("model", "127.0.0.1", 80),
            "freeze",
        ),
        ({"stub": {"lookup": 1}}, TOOL, "stub"),
        ({"stub": {"lookup": 1}, "live": ["tools"]}, TOOL, "stub"),
        ({"stub": {"lookup": 1}, "freeze": ["tools"]}, TOOL, "stub"),
        ({"stub": {"lookup": 1}}, LLM, ""),
        ({"stub": {"tool:search": None}}, RETRIEVAL, "stub"),
    ],
)
def test_the_word_for_less_holds_and_of_equals_the_frozen(told, site, how):
    assert Selection.parse(**told).how(site, Recorded()) == how


@pytest.mark.parametrize(
    "told",
    [
        {"live": ["llm"], "freeze": ["llm"]},
        {"live": ["host:A"], "freeze": ["host:a"]},
        {"live": ["tool:a"], "stub": {"a": 1}},
        {"freeze": ["tool:a"], "stub": {"tool:a": 1}},
    ],
)
def test_both_for_one_boundary_is_refused(told):
    with pytest.raises(TapeUsageError, match="a boundary is one or the other"):
        Selection.parse(**told)


def test_what_a_selection_says_of_itself():
    selection = Selection.parse(
        ["llm", "host:db:5432", "llm"], ["tools"], {"tool:mail": {"sent": 1}}
    )
    assert selection.record() == {
        "live": ["llm", "host:db:5432"],
        "freeze": ["tools"],
        "stub": ["mail"],
    }
    assert selection.hosts == {"db:5432"} and selection.changes and bool(selection)
    assert not Selection.parse() and not Selection.parse(freeze=["llm"]).changes
    assert not selection.without_stubs().stubs


def test_where_a_call_crosses():
    assert call_origin(Request("POST", "https://Api.Anthropic.com/v1"), "model", CELL) == LLM
    assert call_origin(Request("GET", "http://127.0.0.1:5432/"), "host", CELL) == LOCAL
    assert call_origin(FunctionCall("lookup", {}), "tool", CELL) == TOOL
    assert call_origin(Request("GET", "http://[broken"), "host", CELL).name == ""
