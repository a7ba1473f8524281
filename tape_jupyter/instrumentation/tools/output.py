"""What the body of a taped function shows (streams, displays, warnings, logs) and tells its
framework.

Each is heard where it leaves the program, whoever wrote the code that shows it (functions keep
their identity and get other code: IPython holds the streams' `write` from a cell's start on), and
told to the capture of the body that runs (origin.BODY) as an event, which session/tool_effects.py
does again in replay:

    {"out": text}, {"err": text}                    written to sys.stdout, sys.stderr
    {"display": data, "metadata": ..., "transient": ..., "update": True}, {"clear": wait}
    {"log": {...}}, {"warning": {...}}              a log record that reached handlers; a warning that was shown
    {"stream": value}                               LangGraph's stream writer
    {"event": name, "data": value}                  LangChain's dispatched events
    {"workflow": event}                             events that a LlamaIndex workflow streams
"""

from __future__ import annotations

import dataclasses
import functools
import linecache
import logging
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import ModuleType
from typing import Any

from tape_jupyter.core.context import BODY
from tape_jupyter.core.stubs import do_nothing
from tape_jupyter.encoding.values import registry
from tape_jupyter.encoding.values.registry import CannotFreeze
from tape_jupyter.instrumentation.concurrency.threads import let_act
from tape_jupyter.instrumentation.patching import swap, undoing
from tape_jupyter.instrumentation.tools.code_swap import swap_code

Undo = Callable[[], None]


class _Inside(threading.local):
    """Whether this thread is showing something that was told already (a log record, which a handler
    then prints).
    """

    now = False


_inside = _Inside()


def patch(module: ModuleType | None = None) -> Undo:
    """Tap what this module shows through; without one, logging and warnings. Returns the undo."""
    if module is not None:
        return _MODULES[module.__name__](module)
    return undoing(
        swap(logging.Logger, "callHandlers", _wrap_call_handlers),
        swap(warnings, "_showwarnmsg", _wrap_show_warning),
    )


def _record_event(event: dict[str, Any]) -> None:
    body = BODY.get()
    if body is not None and not _inside.now:
        body.record_output(event)


_showing = threading.RLock()
_LONGEST = 1.0
"""Seconds that a thread waits until another one has shown something: what shows it may wait for this
thread.
"""


@contextmanager
def _shown_next(event: dict[str, Any], *, muted: bool = False) -> Iterator[None]:
    """Record an event, and inside show it, before another body records one: a thread that was told
    its place may get no processor for long, and others would show things before it.

    `muted`: what is shown by the way is part of it.
    """
    body = BODY.get()
    if body is None or _inside.now:
        with _mute_recording() if muted else nullcontext():
            yield
        return
    body.wait_to_show()  # before: who waits for what is shown here counts as at rest
    locked = _showing.acquire(timeout=_LONGEST)
    try:
        _record_event(event)
        with _mute_recording() if muted else nullcontext():
            yield
    finally:
        if locked:
            _showing.release()


@contextmanager
def _mute_recording() -> Iterator[None]:
    before, _inside.now = _inside.now, True
    try:
        yield
    finally:
        _inside.now = before


# Streams


def _wrap_write(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def write_taped(stream: Any, string: str) -> Any:
        if BODY.get() is None:
            return original(stream, string)
        name = "err" if getattr(stream, "name", "") == "stderr" else "out"
        with _shown_next({name: str(string)}):
            return original(stream, string)

    return write_taped


class _Tee:
    """Stands for a stream that is not ipykernel's while a body runs: a terminal, pytest's capture,
    a StringIO.
    """

    def __init__(self, stream: Any, name: str) -> None:
        self._stream, self._name = stream, name

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> Any:
        with _shown_next({self._name: str(text)}):
            return self._stream.write(text)

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)


_tees: dict[str, tuple[Any, int]] = {}
_lock = threading.Lock()


@contextmanager
def listening(capture: Any) -> Iterator[None]:
    """Inside, a taped body runs: what it shows is told to its capture."""
    before = BODY.get()
    BODY.set(capture)
    stood = [_put_tee("stdout", "out"), _put_tee("stderr", "err")]
    try:
        yield
    finally:
        for tee in stood:
            tee()
        BODY.set(before)  # not Token.reset: a dropped coroutine may be closed in another context


def _put_tee(name: str, event_name: str) -> Undo:
    """Put a tee over a stream that cannot be tapped in its class; gives what takes it off again."""
    with _lock:
        stream = getattr(sys, name)
        if stream is None or type(stream).__module__ == "ipykernel.iostream":
            return do_nothing
        if isinstance(stream, _Tee):
            tee, count = _tees.get(name, (stream, 0))
            if tee is not stream:
                return do_nothing
            _tees[name] = tee, count + 1
        else:
            tee = _Tee(stream, event_name)
            _tees[name] = tee, 1
            setattr(sys, name, tee)
    return functools.partial(_remove_tee, name, tee)


def _remove_tee(name: str, tee: _Tee) -> None:
    with _lock:
        current, count = _tees.get(name, (None, 0))
        if current is not tee:
            return
        _tees[name] = tee, count - 1
        if count <= 1:
            del _tees[name]
            if getattr(sys, name) is tee:
                setattr(sys, name, tee._stream)  # noqa: SLF001 - its own


# Displays


def _wrap_publish(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def publish_taped(
        publisher: Any, data: Any, metadata: Any = None, *args: Any, **kwargs: Any
    ) -> Any:
        taped = BODY.get() is not None
        event = _build_display_event(data, metadata, kwargs) if taped else {}
        with _shown_next(event, muted=True):  # at a terminal it prints
            return original(publisher, data, metadata, *args, **kwargs)

    return publish_taped


def _build_display_event(data: Any, metadata: Any, more: Mapping[str, Any]) -> dict[str, Any]:
    event: dict[str, Any] = {"display": dict(data), "metadata": dict(metadata or {})}
    event |= {"transient": dict(more["transient"])} if more.get("transient") else {}
    event |= {"update": True} if more.get("update") else {}
    return event


def _wrap_clear_output(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def clear_output(publisher: Any, wait: bool = False) -> Any:
        with _shown_next({"clear": bool(wait)}, muted=True):
            return original(publisher, wait)

    return clear_output


def _patch_display_publisher(owner: Any) -> Undo:
    attributes = vars(owner)
    taps = {"publish": _wrap_publish, "clear_output": _wrap_clear_output}
    return undoing(
        *(swap_code(attributes[name], tap) for name, tap in taps.items() if name in attributes)
    )


# Logs and warnings


def _wrap_call_handlers(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    # it stands in for one
    def callHandlers(logger: logging.Logger, record: logging.LogRecord) -> Any:  # noqa: N802
        if BODY.get() is None or not logger.hasHandlers():
            return original(logger, record)
        reached = list(_iterate_handlers(logger))
        files = [Path(file).name for each in reached if (file := getattr(each, "baseFilename", ""))]
        details = {"handlers": len(reached)} | ({"files": files} if files else {})
        event = {"log": log_of(record) | details}
        with _shown_next(event, muted=True):
            return original(logger, record)

    return callHandlers


def handlers_of(logger: logging.Logger) -> int:
    """How many handlers a record of this logger reaches."""
    return sum(1 for _ in _iterate_handlers(logger))


def _iterate_handlers(logger: logging.Logger) -> Iterator[logging.Handler]:
    each: logging.Logger | None = logger
    while each is not None:
        yield from each.handlers
        each = each.parent if each.propagate else None


_RECORD = (
    "name",
    "levelno",
    "levelname",
    "pathname",
    "lineno",
    "funcName",
    "created",
    "threadName",
    "processName",
)


def log_of(record: logging.LogRecord) -> dict[str, Any]:
    """A log record as structure: its message made, its error told as text."""
    fields: dict[str, Any] = {name: getattr(record, name, None) for name in _RECORD}
    fields["msg"] = record.getMessage()
    if record.exc_info and record.exc_info[1] is not None:
        fields["exc_text"] = record.exc_text or logging.Formatter().formatException(record.exc_info)
    known = vars(logging.makeLogRecord({}))
    extra = {
        k: v
        for k, v in vars(record).items()
        if k not in known and k not in fields and k != "message"
    }
    for name, value in extra.items():
        try:
            fields.setdefault("extra", {})[name] = registry.freeze(value)
        except CannotFreeze:
            fields["extra"][name] = repr(value)
    return fields


def _wrap_show_warning(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def _showwarnmsg(msg: Any) -> Any:
        if BODY.get() is None:
            return original(msg)
        error = msg.message if isinstance(msg.message, Warning) else msg.category(msg.message)
        event = {"warning": registry.freeze_error(error), "file": msg.filename, "line": msg.lineno}
        if text := msg.line or linecache.getline(msg.filename, msg.lineno).strip():
            event["text"] = text
        with _shown_next(event, muted=True):
            return original(msg)

    return _showwarnmsg


# Frameworks


def _patch_langgraph(module: ModuleType) -> Undo:
    """LangGraph's `get_stream_writer`, wherever it was imported to."""

    def wrap_body(body: Callable[..., Any]) -> Callable[..., Any]:
        return lambda: writer(body())

    return swap_code(module.get_stream_writer, wrap_body)


def writer(original: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A stream writer that tells what it is given."""

    def stream_writer(chunk: Any) -> Any:
        if BODY.get() is None:
            result = original(chunk)
        else:
            with _shown_next(_freeze_event("stream", chunk)):
                result = original(chunk)
        let_act()  # who reads the stream, in another thread
        return result

    return stream_writer


def told_arguments(
    args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of a tool that LangGraph calls: a stream writer among them tells what it is
    given.
    """
    if "langgraph.types" not in sys.modules:
        return args, kwargs
    return tuple(map(_wrap_stream_writer, args)), {
        name: _wrap_stream_writer(value) for name, value in kwargs.items()
    }


def _wrap_stream_writer(value: Any) -> Any:
    module = getattr(value, "__module__", None)
    if not isinstance(module, str) or not module.startswith("langgraph."):
        return value
    if callable(value) and getattr(value, "__name__", "").endswith("stream_writer"):
        return writer(value)
    original = getattr(value, "stream_writer", None)
    if dataclasses.is_dataclass(value) and not isinstance(value, type) and callable(original):
        return dataclasses.replace(value, stream_writer=writer(original))
    return value


def _patch_llama_index(module: ModuleType) -> Undo:
    """The events that LlamaIndex's workflows stream."""

    def wrap_body(body: Callable[..., Any]) -> Callable[..., Any]:
        def write_event_to_stream(context: Any, ev: Any) -> Any:
            if BODY.get() is None:
                return body(context, ev)
            with _shown_next(_freeze_event("workflow", ev)):
                return body(context, ev)

        return write_event_to_stream

    return swap_code(module.Context.write_event_to_stream, wrap_body)


def _freeze_event(name: str, value: Any) -> dict[str, Any]:
    try:
        return {name: registry.freeze(value)}
    except CannotFreeze as why:
        return {"lost": f"what it told its framework ({name}) cannot be written: {why}"}


def _patch_langchain(module: ModuleType) -> Undo:
    def wrap_dispatch(body: Callable[..., Any]) -> Callable[..., Any]:
        def dispatch_taped(name: str, data: Any, *, config: Any = None) -> Any:
            _record_dispatched_event(name, data)
            return body(name, data, config=config)

        return dispatch_taped

    def wrap_dispatch_async(body: Callable[..., Any]) -> Callable[..., Any]:
        async def dispatch_taped(name: str, data: Any, *, config: Any = None) -> Any:
            _record_dispatched_event(name, data)
            return await body(name, data, config=config)

        return dispatch_taped

    return undoing(
        swap_code(module.dispatch_custom_event, wrap_dispatch),
        swap_code(module.adispatch_custom_event, wrap_dispatch_async),
    )


def _record_dispatched_event(name: str, data: Any) -> None:
    if BODY.get() is not None:
        event = _freeze_event("data", data)
        _record_event(event if "lost" in event else {"event": name, **event})


_MODULES: dict[str, Callable[[ModuleType], Undo]] = {
    "ipykernel.iostream": lambda module: swap_code(module.OutStream.write, _wrap_write),
    "ipykernel.zmqshell": lambda module: _patch_display_publisher(module.ZMQDisplayPublisher),
    "IPython.core.displaypub": lambda module: _patch_display_publisher(module.DisplayPublisher),
    "langgraph.config": _patch_langgraph,
    "workflows.context.context": _patch_llama_index,
    "langchain_core.callbacks.manager": _patch_langchain,
}
