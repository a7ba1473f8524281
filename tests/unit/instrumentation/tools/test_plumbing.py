"""What a framework hands to a tool is no part of the call; what a person hands in is."""

from langchain_core.messages import HumanMessage
from langchain_core.runnables.config import ensure_config

from tape_jupyter.instrumentation.tools.discovery import is_frameworks, without_plumbing


def test_contexts_callbacks_configs_and_state_are_plumbing():
    from agents import RunContextWrapper
    from langchain_core.callbacks import CallbackManager, CallbackManagerForToolRun
    from langgraph.store.memory import InMemoryStore
    from llama_index.core.workflow import Context, Workflow

    class MyContext(RunContextWrapper):
        pass

    class Nothing(Workflow):
        pass

    handed_in = [
        RunContextWrapper(None), MyContext(None), CallbackManager([]), CallbackManagerForToolRun.get_noop_manager(),
        ensure_config(), {"messages": [HumanMessage("hi")]}, InMemoryStore(),
    ]  # fmt: skip
    assert all(map(is_frameworks, handed_in))
    assert is_frameworks(type("Context", (), {"__module__": Context.__module__})())


def test_what_looks_like_it_is_asked_for_all_the_same():
    class RunContext:
        """A person's own."""

    asked = {
        "context": RunContext(),
        "messages": {"messages": ["hi"]},
        "config": {"tags": ["a"]},
        "none": None,
        "n": 1,
    }
    assert without_plumbing(asked) == asked
