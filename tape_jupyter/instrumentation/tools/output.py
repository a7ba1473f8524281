"""What the body of a taped function shows (streams, displays, warnings, logs) and tells its
framework.

Each is heard where it leaves the program, whoever wrote the code that shows it (functions keep
their identity and get other code: IPython holds the streams' `write` from a cell's start on), and
told to the capture of the body that runs (origin.BODY) as an event, which session/tool_effects.py
does again in replay:

    {"out": text}, {"err": text}                    written to sys.stdout, sys.stderr
    {"display": data, "metadata": ..., "transient": ..., "update": True}, {"clear": wait}
                                                    "handle": where the program keeps the id of what is updated
    {"log": {...}}, {"warning": {...}}              a log record that reached handlers; a warning that was shown
    {"log": {...}, "to": path, "by": "emit"}        a log record that the body handed to a handler itself
    {"stream": value}                               LangGraph's stream writer
    {"event": name, "data": value}                  LangChain's dispatched events
    {"message": value, "metadata": ..., "below": [...]}    a token of a model, to a graph that streams `messages`
    {"workflow": event}                             events that a LlamaIndex workflow streams

"changed" in one of them: what the body had changed before of what code of the user's looks at that shows it
(effects/memory.py).
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import linecache
import logging
import sys
import threading
import uuid
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple

from tape_jupyter.core.context import BODY
from tape_jupyter.core.libraries import is_library_class, is_library_file
from tape_jupyter.core.stubs import do_nothing
from tape_jupyter.effects.kinds import KEEPS_RECORDS
from tape_jupyter.encoding.values import registry
from tape_jupyter.encoding.values.registry import CannotFreeze
from tape_jupyter.instrumentation.concurrency.threads import let_act
from tape_jupyter.instrumentation.patching import swap, undoing
from tape_jupyter.instrumentation.tools import processes
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
        swap(logging.Handler, "handle", _wrap_handling),
        swap(logging.StreamHandler, "emit", _wrap_handling),
        swap(warnings, "_showwarnmsg", _wrap_show_warning),
        *(swap(each, "__enter__", _wrap_enter) for each in _CATCHING),
        *(swap(each, "__exit__", _wrap_exit) for each in _CATCHING),
        processes.patch(),
    )


_CATCHING = (warnings.catch_warnings, contextlib._RedirectStream)  # noqa: SLF001 - of both streams


def _record_event(event: dict[str, Any], sink: Any = None) -> None:
    body = BODY.get()
    if body is not None and not _inside.now:
        body.record_output(event, sink)


def current_sinks() -> dict[str, Any]:
    """Where what is shown goes now, by the key of its event. What a body shows elsewhere (its own
    `redirect_stdout`, `capture_output`, `catch_warnings`) is not shown: a replay leaves it out.
    """
    publisher = find_publisher()
    return {
        "out": _strip_tee(sys.stdout),
        "err": _strip_tee(sys.stderr),
        "display": publisher,
        "clear": publisher,
        "warning": _find_warning_sink(),
    }


class Catch(NamedTuple):
    """A list or a stream that was put where warnings, or what is written, go; by the body whose capture this
    is, None: by the program.
    """

    manager: Any
    target: Any
    body: Any


_catches: list[Catch] = []
"""What is there now; of the bodies that run also what was: where threads do so beside each other, it may
stand on.
"""


def _wrap_enter(original: Callable[..., Any]) -> Callable[..., Any]:
    """Of what catches warnings, or what is written to a stream."""

    @functools.wraps(original)
    def enter(manager: Any) -> Any:
        target = original(manager)
        if target is not None:
            with _lock:
                _catches.append(Catch(manager, target, BODY.get()))
        return target

    return enter


def _wrap_exit(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def leave(manager: Any, *error: Any) -> Any:
        if _catches:
            with _lock:
                _drop_catches(lambda each: each.body is None and each.manager is manager)
        return original(manager, *error)

    return leave


def _drop_catches(is_over: Callable[[Catch], bool]) -> None:
    _catches[:] = [each for each in _catches if not is_over(each)]


def find_catch(sink: Any) -> Catch | None:
    """Who put this where it stands; None where nobody is known to have."""
    targets = (sink.keep, sink.log) if isinstance(sink, _WarningSink) else (id(sink),)
    return next((each for each in reversed(_catches) if id(each.target) in targets), None)


def shows_to_person(sink: Any) -> bool:
    """Whether it shows things to a person, whatever stands in its place just now."""
    of_process = _strip_tee(sys.__stdout__), _strip_tee(sys.__stderr__)
    return type(sink).__module__.partition(".")[0] == "ipykernel" or sink in of_process


def find_publisher() -> Any:
    """IPython's publisher of displays, None without IPython; makes none."""
    interactive = sys.modules.get("IPython.core.interactiveshell")
    shell = interactive.InteractiveShell._instance if interactive is not None else None  # noqa: SLF001
    return shell.display_pub if shell is not None else None


class _WarningSink(NamedTuple):
    """What shows warnings; or the list that `catch_warnings(record=True)` keeps them in."""

    show: Any
    keep: Any
    log: Any


def _find_warning_sink() -> _WarningSink:
    context = getattr(warnings, "_get_context", None)  # from Python 3.14 on
    log = getattr(context(), "log", None) if context is not None else None
    keep = getattr(warnings, "_showwarnmsg_impl", None)
    keeper = getattr(keep, "__self__", None)  # of its `append`; a module has its functions
    keep = keep if keeper is None or isinstance(keeper, ModuleType) else keeper
    return _WarningSink(id(warnings.showwarning), id(keep), id(log))


_showing = threading.RLock()
_LONGEST = 1.0
"""Seconds that a thread waits until another one has shown something: what shows it may wait for this
thread.
"""


@contextmanager
def _shown_next(
    event: dict[str, Any],
    find_sink: Callable[[], Any] = do_nothing,
    *,
    muted: bool = False,
    through: Sequence[Any] = (),
) -> Iterator[None]:
    """Record an event, and inside show it, before another body records one: a thread that was told
    its place may get no processor for long, and others would show things before it. One that cannot
    be shown was not.

    `muted`: what is shown by the way is part of it. `through`: objects whose code shows it, as it
    does in replay, so that what they change is done then.
    """
    body = BODY.get()
    if body is None or _inside.now:
        with _mute_recording() if muted else nullcontext():
            yield
        return
    body.wait_to_show()  # before: who waits for what is shown here counts as at rest
    locked = _showing.acquire(timeout=_LONGEST)
    try:
        sink = find_sink()  # threads may put others there meanwhile
        users = [each for each in through if _runs_users_code(each)]
        with body.acting_again(users, event, sink) if users else nullcontext():
            _record_event(event, sink)
            with _mute_recording() if muted else nullcontext():
                yield
    except BaseException:
        event.clear()
        raise
    finally:
        if locked:
            _showing.release()


def _runs_users_code(shows: Any) -> bool:
    """Whether what shows something may run code of the user's, or fill a list or a queue."""
    if isinstance(shows, logging.Handler):
        if not vars(shows).keys().isdisjoint(KEEPS_RECORDS):
            return True
        parts = (shows, *shows.filters, shows.formatter)
        return any(each is not None and not is_library_class(type(each)) for each in parts)
    if isinstance(shows, FunctionType):
        return not is_library_file(shows.__code__)
    return isinstance(shows, BuiltinFunctionType | MethodType) or not is_library_class(type(shows))


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
            text = processes.remove_marks(stream, string)
            return original(stream, text) if text or not string else None
        name = "err" if getattr(stream, "name", "") == "stderr" else "out"
        with _shown_next({name: str(string)}, lambda: stream):
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
        with _shown_next({self._name: str(text)}, lambda: self._stream, through=(self._stream,)):
            return self._stream.write(text)

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    @property
    def buffer(self) -> Any:
        """Raises AttributeError where the stream has none."""
        return _BytesTee(self._stream, self._name) if self._stream.buffer else None


class _BytesTee:
    """Stands for what such a stream writes its text to, as bytes."""

    def __init__(self, stream: Any, name: str) -> None:
        self._stream, self._name = stream, name

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream.buffer, name)

    def write(self, data: Any) -> Any:
        try:
            text = bytes(data).decode(self._stream.encoding)
        except UnicodeDecodeError:
            _record_event({"lost": "bytes that it wrote, which are no text, are not recorded"})
            return self._stream.buffer.write(data)
        with _shown_next({self._name: text}, lambda: self._stream):
            return self._stream.buffer.write(data)


def _strip_tee(stream: Any) -> Any:
    return stream._stream if isinstance(stream, _Tee) else stream  # noqa: SLF001 - its own


_listening: list[Any] = []
"""The captures of the bodies that run."""
_tees: dict[str, tuple[Any, int]] = {}
_lock = threading.Lock()


@contextmanager
def listening(capture: Any) -> Iterator[None]:
    """Inside, a taped body runs: what it shows is told to its capture."""
    before = BODY.get()
    BODY.set(capture)
    _listening.append(capture)
    names = {"stdout": "out", "stderr": "err"}
    if not processes.are_descriptors_read():
        names |= {"__stdout__": "out", "__stderr__": "err"}
    stood = [_put_tee(name, event) for name, event in names.items()]
    try:
        yield
    finally:
        for tee in stood:
            tee()
        with _lock:
            _listening.remove(capture)
            if not _listening:
                _drop_catches(lambda each: each.body is not None)
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
        with _shown_next(event, lambda: publisher, muted=True):  # at a terminal it prints
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
        with _shown_next({"clear": bool(wait)}, lambda: publisher, muted=True):
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
        with _shown_next(event, muted=True, through=reached):
            return original(logger, record)

    return callHandlers


def _wrap_handling(original: Callable[..., Any]) -> Callable[..., Any]:
    """Of a method by which a body hands a record to a handler of the program's, past any logger."""

    @functools.wraps(original)
    def handle(handler: logging.Handler, record: logging.LogRecord) -> Any:
        body = BODY.get()
        if body is None or _inside.now or not body.knows(handler):
            return original(handler, record)
        event = {"log": log_of(record), "to": handler, "by": original.__name__}
        # a class of the program's that calls this method of its base is none of what replay runs
        through = handler if event["by"] == "handle" else handler.formatter
        with _shown_next(event, muted=True, through=[through]):
            return original(handler, record)

    return handle


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
    "filename",
    "module",
    "lineno",
    "funcName",
    "created",
    "msecs",
    "relativeCreated",
    "threadName",
    "processName",
)


def bare_record() -> logging.LogRecord:
    """A record without anything, of the class that the program has for them; a function of its own that makes
    them is not called.
    """
    factory = logging.getLogRecordFactory()
    kind: type[Any] = factory if isinstance(factory, type) else logging.LogRecord
    record: logging.LogRecord = kind("", 0, "", 0, "", (), None)
    return record


def log_of(record: logging.LogRecord) -> dict[str, Any]:
    """A log record as structure: its message made, also what it was made of where that can be
    written; its error told as text.
    """
    fields: dict[str, Any] = {name: getattr(record, name, None) for name in _RECORD}
    fields["msg"] = record.getMessage()
    if record.args and isinstance(record.msg, str):
        with suppress(CannotFreeze):
            fields |= {"args": registry.freeze(record.args), "template": record.msg}
    if record.exc_info and record.exc_info[1] is not None:
        fields["exc_text"] = record.exc_text or logging.Formatter().formatException(record.exc_info)
    known = vars(bare_record())
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
        shows = (warnings.showwarning, getattr(warnings, "_showwarnmsg_impl", None))
        with _shown_next(event, _find_warning_sink, muted=True, through=shows):
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

    def wrap_handle(body: Callable[..., Any]) -> Callable[..., Any]:
        def handle_taped(handlers: Any, event_name: str, *args: Any, **kwargs: Any) -> Any:
            _record_callbacks(handlers, event_name)
            return body(handlers, event_name, *args, **kwargs)

        return handle_taped

    return undoing(
        swap_code(module.dispatch_custom_event, wrap_dispatch),
        swap_code(module.adispatch_custom_event, wrap_dispatch_async),
        swap_code(module.handle_event, wrap_handle),
        swap_code(module.ahandle_event, _awaited(wrap_handle)),
    )


def _awaited(wrapper: Callable[..., Any]) -> Callable[..., Any]:
    """The same for a coroutine function."""

    def wrap_async(body: Callable[..., Any]) -> Callable[..., Any]:
        taped = wrapper(body)

        async def handle_async(*args: Any, **kwargs: Any) -> Any:
            return await taped(*args, **kwargs)

        return handle_async

    return wrap_async


def _record_callbacks(handlers: Any, event_name: str) -> None:
    """Callbacks of the program's are told something that a replay, where the body does not run, has
    not to tell. (What is dispatched by name it has.)
    """
    if BODY.get() is None or event_name == "on_custom_event":
        return
    for handler in handlers:
        kind = type(handler)
        listens = next((each for each in kind.__mro__ if event_name in vars(each)), kind)
        if is_library_class(listens) and listens.__module__ != "langchain_core.callbacks.usage":
            continue
        _record_event({"lost": f"it ran callbacks of a {kind.__name__}"})


def _patch_langgraph_messages(module: ModuleType) -> Undo:
    """The tokens of models that a body calls, where a graph around it streams `messages`."""

    def wrap_emit(body: Callable[..., Any]) -> Callable[..., Any]:
        def _emit(handler: Any, meta: Any, message: Any, *, dedupe: bool = False) -> Any:
            if BODY.get() is None or (dedupe and message.id in handler.seen):
                return body(handler, meta, message, dedupe=dedupe)
            if message.id is None:
                message.id = str(uuid.uuid4())
            with _shown_next(_build_message_event(meta, message)):
                return body(handler, meta, message, dedupe=dedupe)

        return _emit

    return swap_code(module.StreamMessagesHandler._emit, wrap_emit)  # noqa: SLF001


def _build_message_event(meta: Any, message: Any) -> dict[str, Any]:
    """With what its metadata has beside that of the task, which is another one in replay."""
    namespace, metadata = meta
    around, own = _read_graph_task()
    own_part = {name: each for name, each in metadata.items() if own.get(name) != each}
    try:
        frozen = {"message": registry.freeze(message), "metadata": registry.freeze(own_part)}
    except CannotFreeze as why:
        return {"lost": f"a message that it streamed to a graph cannot be written: {why}"}
    return {**frozen, "below": list(namespace[len(around) :])}


def _read_graph_task() -> tuple[tuple[str, ...], dict[str, Any]]:
    """The namespace and the metadata of the task of LangGraph's that runs here."""
    config = sys.modules["langchain_core.runnables.config"].var_child_runnable_config.get() or {}
    metadata = dict(config.get("metadata") or {})
    where = config.get("configurable", {}).get("checkpoint_ns", "")
    metadata |= {"langgraph_checkpoint_ns": where} if where else {}
    return tuple(where.split("|"))[:-1], metadata


def emit_message(event: Mapping[str, Any]) -> None:
    """A recorded token, to the handler of the graph that streams here. Raises LookupError where none
    does.
    """
    config = sys.modules["langchain_core.runnables.config"].var_child_runnable_config.get() or {}
    callbacks = config.get("callbacks")
    known = getattr(callbacks, "handlers", callbacks) or ()
    kind = sys.modules["langgraph.pregel._messages"].StreamMessagesHandler
    handler = next((each for each in known if isinstance(each, kind)), None)
    if handler is None:
        raise LookupError("no graph streams messages here")
    namespace, metadata = _read_graph_task()
    metadata |= registry.thaw(event["metadata"])
    handler._emit(((*namespace, *event["below"]), metadata), registry.thaw(event["message"]))  # noqa: SLF001


def _record_dispatched_event(name: str, data: Any) -> None:
    if BODY.get() is not None:
        event = _freeze_event("data", data)
        _record_event(event if "lost" in event else {"event": name, **event})


_MODULES: dict[str, Callable[[ModuleType], Undo]] = {
    "ipykernel.iostream": lambda module: swap_code(module.OutStream.write, _wrap_write),
    "ipykernel.zmqshell": lambda module: _patch_display_publisher(module.ZMQDisplayPublisher),
    "IPython.core.displaypub": lambda module: undoing(
        _patch_display_publisher(module.DisplayPublisher),
        _patch_display_publisher(module.CapturingDisplayPublisher),
    ),
    "langgraph.config": _patch_langgraph,
    "workflows.context.context": _patch_llama_index,
    "langchain_core.callbacks.manager": _patch_langchain,
    "langgraph.pregel._messages": _patch_langgraph_messages,
}
