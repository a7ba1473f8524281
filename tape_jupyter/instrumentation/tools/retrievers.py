"""Retrievers of LangChain and LlamaIndex. Their modules come as values.

A retrieval is a call of kind `retrieval`: its query and the retriever's settings; its documents as
the library's own objects, with ids, scores and the embedding model's name beside them
(encoding/values/tool_results.py). In replay a stand-in takes the retriever's place inside the
library's own `invoke` or `retrieve`: callbacks and events run as ever, the index and the embedding
model do not.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from types import ModuleType
from typing import Any, cast

from tape_jupyter import instrumentation
from tape_jupyter.core.call import Capture, FunctionCall, Play, Tape, Value
from tape_jupyter.encoding.values import registry
from tape_jupyter.encoding.values.tool_results import Retrieved
from tape_jupyter.instrumentation.concurrency.threads import settle_origin
from tape_jupyter.instrumentation.http.replayed_response import (
    await_cancel,
    await_head,
    await_turn,
    pass_head,
    thawed,
)
from tape_jupyter.instrumentation.patching import swap, undoing
from tape_jupyter.instrumentation.stepping_hook import begin_call
from tape_jupyter.instrumentation.tools.call import running_body

Undo = Callable[[], None]
Found = list[tuple[Any, float]]

_SETTINGS = (
    "search_type",
    "search_kwargs",
    "similarity_top_k",
    "_similarity_top_k",
    "k",
    "top_k",
    "_filters",
)
_MODELS = (
    "embeddings",
    "embedding",
    "_embed_model",
    "embed_model",
    "embeddings_model",
    "_embedding",
)
_MODEL_NAMES = ("model", "model_name", "model_id", "deployment", "azure_deployment", "repo_id")
_SEARCH = re.compile(r"_?a?similarity_search_with_(relevance_)?scores?.*")
_FOUND: ContextVar[Found | None] = ContextVar("tape_found", default=None)
"""What the vector store below a retrieval that is being recorded finds, with scores."""


def patch(module: ModuleType) -> Undo:
    """Tap the base class of retrievers in this module. Returns the undo."""
    if module.__name__.startswith("langchain"):
        return _patch_langchain(module)
    return _patch_llama_index(module)


# One retrieval


@dataclass(frozen=True, slots=True)
class _Library:
    """How the retrievals of a library are taped: what stands in for a retriever, and what its store
    is heard to find.

    `go` asks a retriever, or what stands in for it, as the library itself does.
    """

    stand_in: Callable[[Any, Play], Any]
    observe: Callable[[Any], AbstractContextManager[Found]]

    def retrieve(
        self, go: Callable[[Any], Any], name: str, retriever: Any, query: Any, more: dict[str, Any]
    ) -> Any:
        tape, call = _build_call(name, retriever, query, more)
        decision = None if tape is None else tape.begin(call)
        if decision is None:
            return go(retriever)
        if isinstance(decision, Play):
            pass_head(decision)
            return go(self.stand_in(retriever, decision))
        with running_body(decision, name), self.observe(retriever) as hits:
            documents = go(retriever)
        return _record_documents(decision, retriever, documents, hits)

    async def aretrieve(
        self,
        go: Callable[[Any], Awaitable[Any]],
        name: str,
        retriever: Any,
        query: Any,
        more: dict[str, Any],
    ) -> Any:
        tape, call = _build_call(name, retriever, query, more)
        decision = None if tape is None else await begin_call(tape, call)
        if decision is None:
            return await go(retriever)
        if isinstance(decision, Play):
            await await_cancel(decision.reply.error)
            await await_head(decision)
            return await go(self.stand_in(retriever, decision))
        with running_body(decision, name), self.observe(retriever) as hits:
            documents = await go(retriever)
            await await_turn(decision)
        return _record_documents(decision, retriever, documents, hits)


def _build_call(
    name: str, retriever: Any, query: Any, more: dict[str, Any]
) -> tuple[Tape | None, FunctionCall]:
    """The tape, and the call to ask it."""
    tape = instrumentation.current()
    if tape is None:
        return None, FunctionCall(name, {}, "retrieval")
    settle_origin()
    settings = {key.strip("_"): getattr(retriever, key, None) for key in _SETTINGS}
    options = {key: value for key, value in settings.items() if value not in (None, {}, [])}
    return tape, FunctionCall(name, {"query": query, **options, **more}, "retrieval")


def _play_documents(play: Play) -> Any:
    """The recorded documents; raises the recorded error."""
    reply = cast("Value", play.reply)
    if reply.error is not None:
        raise thawed(reply.error)
    value = registry.thaw(reply.value)
    return value.documents if isinstance(value, Retrieved) else value


def _record_documents(capture: Capture, retriever: Any, documents: Any, hits: Found) -> Any:
    chunks = [
        _build_chunk(document, hits) for document in documents or ()
    ]  # a retriever of one's own may give None
    capture.value(Retrieved(documents, chunks, embedding_of(retriever)))
    return documents


def _build_chunk(document: Any, hits: Found) -> dict[str, Any]:
    """The id and score of a document, as far as they are known."""
    node = getattr(document, "node", document)
    metadata = getattr(document, "metadata", None) or {}
    scores = [
        score for other, score in hits if other is document or _is_same_document(other, document)
    ]
    if node is not document:
        score = getattr(document, "score", None)
    else:
        score = [*scores, metadata.get("score")][0]
    fields = {
        "id": getattr(node, "node_id", None) or getattr(node, "id", None),
        "score": _to_float(score),
    }
    return {key: value for key, value in fields.items() if value is not None}


def _is_same_document(one: Any, other: Any) -> bool:
    return bool(
        one.page_content == getattr(other, "page_content", None)
        and one.id == getattr(other, "id", None)
    )


def _to_float(score: Any) -> float | None:
    """A plain float, where a store gives one of numpy's."""
    try:
        return None if score is None else float(score)
    except (TypeError, ValueError):
        return None


def embedding_of(retriever: Any) -> str:
    """The name of the embedding model behind a retriever; "" where there is none to see."""
    for holder in (retriever, getattr(retriever, "vectorstore", None)):
        for name in _MODELS:
            model = getattr(holder, name, None)
            if model is not None and not isinstance(model, (str, list, dict)):
                return _find_model_name(model)
    return ""


def _find_model_name(model: Any) -> str:
    names = (getattr(model, name, None) for name in _MODEL_NAMES)
    return next((name for name in names if isinstance(name, str) and name), type(model).__name__)


# LangChain


def _patch_langchain(module: ModuleType) -> Undo:
    stores = _Stores()
    base = module.BaseRetriever
    recorded = functools.cache(functools.partial(_build_langchain_stand_in, base))
    library = _Library(
        lambda retriever, play: recorded().from_retriever(retriever, play), stores.record_searches
    )

    def wrap_invoke(original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        # their name
        def invoke_taped(retriever: Any, input: Any, config: Any = None, **kwargs: Any) -> Any:  # noqa: A002
            def ask_retriever(target: Any) -> Any:
                return original(target, input, config, **kwargs)

            return library.retrieve(ask_retriever, retriever.get_name(), retriever, input, kwargs)

        return invoke_taped

    def wrap_ainvoke(original: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        @functools.wraps(original)
        async def ainvoke_taped(
            retriever: Any,
            input: Any,  # noqa: A002
            config: Any = None,
            **kwargs: Any,
        ) -> Any:
            def ask_retriever(target: Any) -> Awaitable[Any]:
                return original(target, input, config, **kwargs)

            return await library.aretrieve(
                ask_retriever, retriever.get_name(), retriever, input, kwargs
            )

        return ainvoke_taped

    return undoing(
        swap(base, "invoke", wrap_invoke), swap(base, "ainvoke", wrap_ainvoke), stores.undo
    )


def _build_langchain_stand_in(base: Any) -> Any:
    """A retriever class whose answers are recorded; it goes by the real one's name, tags and
    metadata.
    """

    class Recorded(base):  # type: ignore[misc]
        real: Any = None
        play: Any = None

        @classmethod
        def from_retriever(cls, real: Any, play: Play) -> Any:
            return cls.model_construct(
                name=real.get_name(), tags=real.tags, metadata=real.metadata, real=real, play=play
            )

        def _get_ls_params(self, **kwargs: Any) -> Any:
            return self.real._get_ls_params(**kwargs)  # noqa: SLF001

        def _get_relevant_documents(self, query: str, *, run_manager: Any, **_kwargs: Any) -> Any:  # noqa: ARG002
            return _play_documents(self.play)

        async def _aget_relevant_documents(
            self,
            query: str,  # noqa: ARG002
            *,
            run_manager: Any,  # noqa: ARG002
            **_kwargs: Any,
        ) -> Any:
            return _play_documents(self.play)

    return Recorded


class _Stores:
    """The vector store classes that were met: their searches with scores are listened to, nothing
    else is changed.
    """

    def __init__(self) -> None:
        self._undo: dict[tuple[type, str], Undo] = {}

    @contextmanager
    def record_searches(self, retriever: Any) -> Iterator[Found]:
        hits: Found = []
        self._tap_searches(type(getattr(retriever, "vectorstore", None)))
        token = _FOUND.set(hits)
        try:
            yield hits
        finally:
            _FOUND.reset(token)
            hits.reverse()  # the outermost search, whose scores the retriever got, comes last

    def _tap_searches(self, store: type) -> None:
        for owner in store.__mro__:
            for name in [name for name in vars(owner) if _SEARCH.fullmatch(name)]:
                if (owner, name) not in self._undo:
                    self._undo[owner, name] = swap(owner, name, _wrap_search)

    def undo(self) -> None:
        while self._undo:
            self._undo.popitem()[1]()


def _wrap_search(original: Callable[..., Any]) -> Callable[..., Any]:
    if inspect.iscoroutinefunction(original):

        @functools.wraps(original)
        async def search_taped_async(*args: Any, **kwargs: Any) -> Any:
            return _collect_scores(await original(*args, **kwargs))

        return search_taped_async

    @functools.wraps(original)
    def search_taped(*args: Any, **kwargs: Any) -> Any:
        return _collect_scores(original(*args, **kwargs))

    return search_taped


def _collect_scores(results: Any) -> Any:
    hits = _FOUND.get()
    if hits is not None and isinstance(results, list):
        hits += [
            (one[0], one[1])
            for one in results
            if isinstance(one, tuple) and hasattr(one[0], "page_content")
        ]
    return results


# LlamaIndex


def _patch_llama_index(module: ModuleType) -> Undo:
    base = module.BaseRetriever
    recorded = functools.cache(functools.partial(_build_llama_index_stand_in, base))

    def build_recorded(retriever: Any, play: Play) -> Any:
        return recorded()(retriever, play)

    library = _Library(build_recorded, lambda _retriever: nullcontext([]))

    def wrap_retrieve(original: Any) -> Callable[..., Any]:
        @functools.wraps(original)
        def retrieve_taped(retriever: Any, str_or_query_bundle: Any) -> Any:
            go = functools.partial(_call_bound, original, str_or_query_bundle)
            return library.retrieve(
                go, type(retriever).__name__, retriever, *_split_query(str_or_query_bundle)
            )

        return retrieve_taped

    def wrap_aretrieve(original: Any) -> Callable[..., Awaitable[Any]]:
        @functools.wraps(original)
        async def aretrieve_taped(retriever: Any, str_or_query_bundle: Any) -> Any:
            go = functools.partial(_call_bound, original, str_or_query_bundle)
            return await library.aretrieve(
                go, type(retriever).__name__, retriever, *_split_query(str_or_query_bundle)
            )

        return aretrieve_taped

    return undoing(swap(base, "retrieve", wrap_retrieve), swap(base, "aretrieve", wrap_aretrieve))


def _call_bound(original: Any, query: Any, retriever: Any) -> Any:
    """Their decorator wants to be bound: it looks at the instance."""
    return original.__get__(retriever, type(retriever))(query)


def _split_query(query: Any) -> tuple[str, dict[str, Any]]:
    """What is asked: a text, or a bundle of a text and what it is to be embedded as."""
    if isinstance(query, str):
        return query, {}
    more = {
        name: getattr(query, name, None)
        for name in ("custom_embedding_strs", "image_path", "embedding")
    }
    return query.query_str, {name: value for name, value in more.items() if value}


def _build_llama_index_stand_in(base: Any) -> Any:
    class Recorded(base):  # type: ignore[misc]
        """A retriever whose answers are recorded: what they lead on to has been followed already."""

        def __init__(self, real: Any, play: Play) -> None:
            super().__init__(callback_manager=real.callback_manager)
            self._play = play

        def _retrieve(self, _query_bundle: Any) -> Any:
            return _play_documents(self._play)

        async def _aretrieve(self, query_bundle: Any) -> Any:  # noqa: ARG002
            return _play_documents(self._play)

        def _handle_recursive_retrieval(self, _query_bundle: Any, nodes: Any) -> Any:
            return nodes

        async def _ahandle_recursive_retrieval(self, query_bundle: Any, nodes: Any) -> Any:  # noqa: ARG002
            return nodes

    return Recorded
