"""Tools of agent frameworks, taped where the framework runs them. Their modules come as values.

A framework wraps the user's function in a tool object of its own and may hold that anywhere; so the
function is not sought in the notebook but where the framework is about to call it, and is taped
there for as long as that takes, under the tool's name: what the framework does around it
(validation, callbacks, retries) runs as ever. Tape identity is the function's own arguments,
without what the framework hands in beside the model's (instrumentation/tools/discovery.py).

A tool that a library made (a search tool of an integration) has no function of the user's: of
LangChain's tool classes the library's own `_run` is taped; for others what they send is (HTTP, MCP,
a retriever).
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import aclosing, contextmanager
from operator import attrgetter
from types import FunctionType, ModuleType
from typing import Any

from tape_jupyter import instrumentation
from tape_jupyter.errors import TapeRefusal
from tape_jupyter.instrumentation.patching import swap, undoing
from tape_jupyter.instrumentation.tools.code_swap import swap_code
from tape_jupyter.instrumentation.tools.decorators import taped_as
from tape_jupyter.instrumentation.tools.discovery import is_users_function, unwrap

Undo = Callable[[], None]
Found = tuple[str, list[FunctionType]]


def patch(module: ModuleType) -> Undo:
    """Tap the place where the framework of this module runs a tool. Returns the undo."""
    return undoing(*_PATCHES[module.__name__](module))


# The frameworks


def _patch_langchain(module: ModuleType) -> list[Undo]:
    """LangChain's `BaseTool`, and with it LangGraph's ToolNode."""
    wrapper = _build_door(
        lambda tool, *_args, **_kwargs: (
            tool.name,
            [*_find_users_functions(tool), *_find_library_bodies(tool)],
        )
    )
    return [swap(module.BaseTool, name, wrapper) for name in ("run", "arun")]


def _patch_llama_index(module: ModuleType) -> list[Undo]:
    def find_tool(tool: Any, *_args: Any, **_kwargs: Any) -> Found:
        attributes = vars(tool)
        return tool.metadata.name, _find_users_functions(
            *(attributes.get(name) for name in ("_real_fn", "_fn", "_async_fn"))
        )

    return [swap(module.FunctionTool, name, _build_door(find_tool)) for name in ("call", "acall")]


def _patch_pydantic_ai(module: ModuleType) -> list[Undo]:
    def find_tool(_toolset: Any, name: str, _arguments: Any, _context: Any, tool: Any) -> Found:
        return name, _find_users_functions(
            getattr(getattr(tool.call_func, "__self__", None), "function", None), tool.call_func
        )

    return [swap(module.FunctionToolset, "call_tool", _build_door(find_tool))]


def _patch_openai_agents(module: ModuleType) -> list[Undo]:
    """Its functions are imported by name here and there: they are taped where they stand."""

    def find_tool(*, function_tool: Any, **_kwargs: Any) -> Found:
        inner = getattr(function_tool, "__wrapped__", None)
        return function_tool.name, _find_users_functions(
            inner if inner is not None else function_tool.on_invoke_tool
        )

    names = ("invoke_function_tool", "_invoke_function_tool_with_metadata")
    return [
        swap_code(vars(module)[name], _build_door(find_tool))
        for name in names
        if name in vars(module)
    ]


def _patch_anthropic(module: ModuleType) -> list[Undo]:
    """The tools of Anthropic's tool runner."""
    wrapper = _build_door(lambda tool, *_args, **_kwargs: (tool.name, _find_users_functions(tool)))
    return [
        swap(vars(module)[name], "call", wrapper)
        for name in ("BetaFunctionTool", "BetaAsyncFunctionTool")
    ]


def _patch_google(module: ModuleType) -> list[Undo]:
    """Gemini's automatic function calling: plain functions."""

    def find_tool(_arguments: Any, function: Any) -> Found:
        return str(getattr(function, "__name__", "")), _find_users_functions(function)

    names = ("invoke_function_from_dict_args", "invoke_function_from_dict_args_async")
    return [swap_code(vars(module)[name], _build_door(find_tool)) for name in names]


def _patch_workflows(module: ModuleType) -> list[Undo]:
    """LlamaIndex's workflows: their runs."""
    return [
        swap(module.BasicRuntime, "run_workflow", _wrap_run_workflow),
        swap(module.ExternalAsyncioAdapter, "stream_published_events", _wrap_stream_events),
    ]


def _patch_griptape(module: ModuleType) -> list[Undo]:
    """Its tools are classes of the user's; their activities are what a model asks for."""

    def find_tool(tool: Any, activity: Any, *_args: Any, **_kwargs: Any) -> Found:
        return f"{tool.name}_{tool.activity_name(activity)}", _find_users_functions(activity)

    return [swap(module.BaseTool, "try_run", _build_door(find_tool))]


def _patch_tool_class(module: ModuleType) -> list[Undo]:
    """A framework whose tools are objects of one class: its methods run what the tool holds."""
    undone = []
    for name, methods, named, holders in _TOOL_CLASSES[module.__name__]:
        kind = vars(module).get(name)
        door = _build_door(_build_tool_finder(named, holders))
        undone += [swap(kind, method, door) for method in methods if hasattr(kind, method)]
    return undone


def _build_tool_finder(named: str, holders: tuple[str, ...]) -> Callable[..., Found]:
    """What finds a tool's name and the user's functions at these attributes of the tool object."""
    read_name, reads = attrgetter(named), [attrgetter(holder) for holder in holders]

    def find_tool(tool: Any, *_args: Any, **_kwargs: Any) -> Found:
        return str(read_name(tool)), _find_users_functions(*(_read(read, tool) for read in reads))

    return find_tool


def _read(read: Callable[[Any], Any], tool: Any) -> Any:
    try:
        return read(tool)
    except AttributeError:  # of another version, or of another sort of tool
        return None


_TOOL_CLASSES: dict[str, list[tuple[str, tuple[str, ...], str, tuple[str, ...]]]] = {
    "smolagents.tools": [("Tool", ("__call__",), "name", ("forward",))],
    "dspy.adapters.types.tool": [("Tool", ("__call__", "acall"), "name", ("func",))],
    "haystack.tools.tool": [
        ("Tool", ("invoke", "invoke_async"), "name", ("function", "async_function"))
    ],
    "agno.tools.function": [
        ("FunctionCall", ("execute", "aexecute"), "function.name", ("function.entrypoint",))
    ],
    "strands.tools.decorator": [
        ("DecoratedFunctionTool", ("stream",), "tool_name", ("_tool_func",))
    ],
    "autogen_core.tools._function_tool": [("FunctionTool", ("run",), "name", ("_func",))],
    "semantic_kernel.functions.kernel_function_from_method": [
        (
            "KernelFunctionFromMethod",
            ("_invoke_internal", "_invoke_internal_stream"),
            "fully_qualified_name",
            ("method", "stream_method"),
        )
    ],
    "google.adk.tools.function_tool": [("FunctionTool", ("run_async",), "name", ("func",))],
    "crewai.tools.structured_tool": [
        ("CrewStructuredTool", ("invoke", "ainvoke"), "name", ("func",))
    ],
    "crewai.tools.base_tool": [
        ("BaseTool", ("run", "arun"), "name", ("_run", "_arun")),
        ("Tool", ("run", "arun"), "name", ("func",)),
    ],
    "camel.toolkits.function_tool": [
        ("FunctionTool", ("__call__", "async_call"), "func.__name__", ("func",))
    ],
}
"""By module: the class of tools, what runs one, where its name stands and where the user's function."""

_PATCHES: dict[str, Callable[[ModuleType], list[Undo]]] = {
    **dict.fromkeys(_TOOL_CLASSES, _patch_tool_class),
    "griptape.tools.base_tool": _patch_griptape,
    "langchain_core.tools.base": _patch_langchain,
    "llama_index.core.tools.function_tool": _patch_llama_index,
    "pydantic_ai.toolsets.function": _patch_pydantic_ai,
    "agents.tool": _patch_openai_agents,
    "anthropic.lib.tools._beta_functions": _patch_anthropic,
    "google.genai._extra_utils": _patch_google,
    "workflows.plugins.basic": _patch_workflows,
}


# What is inside a tool


def _find_users_functions(*holders: Any) -> list[FunctionType]:
    """The user's functions that these lead to."""
    functions = [function for holder in holders for function in unwrap(holder)]
    return [function for function in dict.fromkeys(functions) if is_users_function(function, {})]


def _find_library_bodies(tool: Any) -> list[FunctionType]:
    """The body of a tool class that a library wrote, not LangChain's own, which calls a function it
    was given.
    """
    bodies = [getattr(type(tool), name, None) for name in ("_run", "_arun")]
    plain = [
        body
        for body in bodies
        if isinstance(body, FunctionType) and not is_users_function(body, {})
    ]
    return [body for body in plain if not body.__module__.startswith("langchain_core.tools")]


# The doors


@contextmanager
def _tape_found(
    finder: Callable[..., Found], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Iterator[None]:
    """Inside, the functions of the tool that runs now are taped."""
    if instrumentation.current() is None:
        yield
        return
    with taped_as(*finder(*args, **kwargs)):
        yield


def _build_door(finder: Callable[..., Found]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A door that tapes what `finder` gives for the arguments of a call."""

    def wrap_original(original: Callable[..., Any]) -> Callable[..., Any]:
        if inspect.iscoroutinefunction(original):

            @functools.wraps(original)
            async def run_taped_async(*args: Any, **kwargs: Any) -> Any:
                with _tape_found(finder, args, kwargs):
                    return await original(*args, **kwargs)

            return run_taped_async

        if inspect.isasyncgenfunction(original):

            @functools.wraps(original)
            async def iterate_taped(*args: Any, **kwargs: Any) -> AsyncIterator[Any]:
                with _tape_found(finder, args, kwargs):
                    async with aclosing(original(*args, **kwargs)) as steps:
                        async for step in steps:
                            yield step

            return iterate_taped

        @functools.wraps(original)
        def run_taped(*args: Any, **kwargs: Any) -> Any:
            with _tape_found(finder, args, kwargs):
                return original(*args, **kwargs)

        return run_taped

    return wrap_original


# Runs of workflows


def _wrap_run_workflow(original: Callable[..., Any]) -> Callable[..., Any]:
    """A taped cell that runs again draws the ids that it drew before: the runs that ended make room
    for their own.
    """

    @functools.wraps(original)
    def run_workflow(runtime: Any, run_id: str, *args: Any, **kwargs: Any) -> Any:
        # no other way
        earlier = runtime._queues.get(run_id) if instrumentation.current() is not None else None  # noqa: SLF001
        if earlier is not None and _has_ended(earlier.complete):
            del runtime._queues[run_id]  # noqa: SLF001
        return original(runtime, run_id, *args, **kwargs)

    return run_workflow


def _has_ended(task: Any) -> bool:
    return bool(task.done() or task.get_loop().is_closed())


def _wrap_stream_events(original: Callable[..., Any]) -> Callable[..., Any]:
    """A run that a refusal ended publishes no last event: who reads its events is told of the
    refusal.
    """

    @functools.wraps(original)
    async def stream_published_events(adapter: Any) -> AsyncIterator[Any]:
        queues = adapter._queues  # noqa: SLF001 - no other way
        queues.complete.add_done_callback(
            lambda task: _has_refusal(task) and queues.publish_queue.put_nowait(task)
        )
        async with aclosing(original(adapter)) as events:
            async for event in events:
                if event is queues.complete:
                    raise queues.complete.exception()
                yield event

    return stream_published_events


def _has_refusal(task: Any) -> bool:
    return not task.cancelled() and isinstance(task.exception(), TapeRefusal)
