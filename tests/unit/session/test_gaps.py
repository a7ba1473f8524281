"""Tools that models asked for: which of their results came from the tape, and which are a gap."""

from tape_jupyter.session.tool_tracking import Tools
from tape_jupyter.providers.registry import Facts
from tape_jupyter.providers.types import ToolResult, ToolCall
from tape_jupyter.instrumentation.tools.decorators import tool


def asks(*calls):
    return Facts(calls=tuple(ToolCall(id, name, {}) for id, name in calls))


def gives(*results):
    return Facts(results=tuple(ToolResult(id, name) for id, name in results))


def test_a_result_whose_tool_ran_on_the_tape_is_no_gap():
    tools = Tools()
    tools.note_requests(asks(("t1", "lookup")), tools.moment())
    tools.note_call("lookup")
    assert tools.untaped(gives(("t1", "")), {}) == []


def test_a_result_whose_tool_no_tap_saw_is_a_gap_and_told_once():
    tools = Tools()
    tools.note_requests(asks(("t1", "lookup"), ("t2", "search")), tools.moment())
    tools.note_call("search")
    given = gives(("t1", ""), ("t2", ""))
    assert tools.untaped(given, {}) == ["lookup"]
    assert tools.untaped(given, {}) == []  # the next request repeats the history


def test_a_result_that_nobody_asked_for_here_is_none_of_our_business():
    assert Tools().untaped(gives(("t1", "lookup"), ("", "search")), {}) == []


def test_gemini_has_names_instead_of_ids():
    tools = Tools()
    tools.note_requests(asks(("", "lookup")), tools.moment())
    assert tools.untaped(gives(("", "lookup")), {}) == ["lookup"]


def test_a_tool_that_was_taped_for_an_earlier_question_only_is_a_gap_now():
    tools = Tools()
    tools.note_requests(asks(("t1", "lookup")), tools.moment())
    tools.note_call("lookup")
    assert tools.untaped(gives(("t1", "")), {}) == []
    tools.note_requests(asks(("t2", "lookup")), tools.moment())
    assert tools.untaped(gives(("t2", "")), {}) == ["lookup"]


def test_a_tool_that_ran_before_its_stream_was_over_was_taped():
    tools = Tools()
    sent = tools.moment()
    tools.note_call("lookup")
    tools.note_requests(asks(("t1", "lookup")), sent)
    assert tools.untaped(gives(("t1", "")), {}) == []


def test_a_decorated_function_that_handlers_know_by_another_name_was_taped():
    @tool
    def _impl() -> int:
        return 1

    tools = Tools()
    tools.note_requests(asks(("t1", "lookup")), tools.moment())
    tools.note_call("_impl")
    assert tools.untaped(gives(("t1", "")), {"HANDLERS": {"lookup": _impl}}) == []
