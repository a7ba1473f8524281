"""Retrievers of LangChain and LlamaIndex: what was found is recorded with ids, scores and the embedding's name; in
replay neither index nor embedding model runs."""

import asyncio
import warnings
from pathlib import Path

import pytest

import tape_jupyter as tape
from tape_jupyter.errors import UnmatchedCall

TEXTS = {"a": "Oslo is wet", "b": "Bergen is wetter", "c": "Tromso is cold"}
embedded = []


def vector(text):
    embedded.append(text)
    return [float(text.count(letter)) for letter in "oelrwtcb"]


@pytest.fixture(autouse=True)
def nothing_embedded_yet():
    embedded.clear()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        yield


@pytest.fixture
def path(tmp_path):
    return tmp_path / "found.tape.yaml"


def langchain_store():
    from langchain_core.documents import Document
    from langchain_core.embeddings import Embeddings
    from langchain_core.vectorstores import InMemoryVectorStore

    class Letters(Embeddings):
        model = "letters-8"

        def embed_documents(self, texts):
            return [vector(text) for text in texts]

        def embed_query(self, text):
            return vector(text)

    store = InMemoryVectorStore(Letters())
    store.add_documents(
        [Document(text, id=key, metadata={"page": key}) for key, text in TEXTS.items()]
    )
    embedded.clear()
    return store


def llama_index_retriever():
    from llama_index.core import VectorStoreIndex
    from llama_index.core.embeddings import BaseEmbedding
    from llama_index.core.schema import TextNode

    class Letters(BaseEmbedding):
        def _get_query_embedding(self, query):
            return vector(query)

        async def _aget_query_embedding(self, query):
            return vector(query)

        def _get_text_embedding(self, text):
            return vector(text)

    nodes = [TextNode(id_=key, text=text, metadata={"page": key}) for key, text in TEXTS.items()]
    index = VectorStoreIndex(nodes, embed_model=Letters(model_name="letters-8"))
    embedded.clear()
    return index.as_retriever(similarity_top_k=2)


def recorded(path):
    (call,) = tape.open(path).calls
    value = call.reply().value
    assert value["<type>"] == "retrieved"
    return call.request(), value


def langchain_programs():
    retriever = langchain_store().as_retriever(search_kwargs={"k": 2})
    yield "sync", lambda: retriever.invoke("wet Oslo")
    yield "async", lambda: asyncio.run(retriever.ainvoke("wet Oslo"))
    yield (
        "in a chain",
        lambda: (retriever | (lambda documents: [d.page_content for d in documents])).invoke(
            "wet Oslo"
        ),
    )


@pytest.mark.parametrize("way", ["sync", "async", "in a chain"])
def test_a_langchain_retriever_is_played_without_its_store(path, way):
    program = dict(langchain_programs())[way]
    with tape.recording(path) as block:
        live = program()
    assert not block.report.warnings
    assert [row.kind for row in block.report.calls] == ["retrieval"]
    assert embedded == ["wet Oslo"]
    with tape.replaying(path):
        again = program()
    assert again == live and embedded == ["wet Oslo"]
    asked, value = recorded(path)
    assert (asked.kind, asked.arguments) == ("retrieval", {"query": "wet Oslo", "search_type": "similarity", "search_kwargs": {"k": 2}})  # fmt: skip
    assert value["embedding"] == "letters-8"
    assert [chunk["id"] for chunk in value["chunks"]] == ["a", "b"]
    assert value["chunks"][0]["score"] > value["chunks"][1]["score"] > 0
    text = Path(path).read_text()
    assert "Oslo is wet" in text and "page: a" in text


def test_langchain_documents_come_back_as_what_they_were(path):
    from langchain_core.documents import Document

    retriever = langchain_store().as_retriever()
    with tape.recording(path):
        live = retriever.invoke("wet")
    with tape.replaying(path):
        again = retriever.invoke("wet")
    assert all(type(one) is Document for one in again)
    assert [(one.id, one.metadata, one.page_content) for one in again] == [(one.id, one.metadata, one.page_content) for one in live]  # fmt: skip


def test_another_query_or_setting_is_not_on_the_tape(path):
    store = langchain_store()
    with tape.recording(path):
        store.as_retriever(search_kwargs={"k": 1}).invoke("wet")
    for retriever, query in ((store.as_retriever(search_kwargs={"k": 1}), "cold"), (store.as_retriever(search_kwargs={"k": 2}), "wet")):  # fmt: skip
        with pytest.raises(UnmatchedCall), tape.replaying(path):
            retriever.invoke(query)
    assert embedded == ["wet"]


def test_callbacks_see_the_played_retrieval_as_they_saw_the_live_one(path):
    from langchain_core.callbacks import BaseCallbackHandler

    class Watcher(BaseCallbackHandler):
        def __init__(self):
            self.seen = []

        def on_retriever_start(self, serialized, query, **kwargs):
            self.seen.append((query, kwargs["name"]))

        def on_retriever_end(self, documents, **kwargs):
            self.seen.append([one.id for one in documents])

        def on_retriever_error(self, error, **kwargs):
            self.seen.append(repr(error))

    retriever, live, again = langchain_store().as_retriever(), Watcher(), Watcher()
    with tape.recording(path):
        retriever.invoke("wet", {"callbacks": [live]})
    with tape.replaying(path):
        retriever.invoke("wet", {"callbacks": [again]})
    assert again.seen == live.seen and len(live.seen) == 2


def test_a_retriever_of_ones_own_that_fails_fails_again(path):
    from langchain_core.retrievers import BaseRetriever

    tries = []

    class Moody(BaseRetriever):
        def _get_relevant_documents(self, query, *, run_manager):
            tries.append(query)
            raise LookupError("the index is gone")

    for block in (tape.recording(path), tape.replaying(path)):
        with pytest.raises(LookupError, match="the index is gone"), block:
            Moody().invoke("wet")
    assert tries == ["wet"]


def test_scores_of_a_threshold_search_are_those_the_retriever_got(path):
    store = langchain_store()
    store._select_relevance_score_fn = lambda: lambda similarity: similarity / 2
    retriever = store.as_retriever(search_type="similarity_score_threshold", search_kwargs={"score_threshold": 0.1, "k": 2})  # fmt: skip
    with tape.recording(path):
        live = retriever.invoke("wet Oslo")
    with tape.replaying(path):
        assert retriever.invoke("wet Oslo") == live
    _, value = recorded(path)
    assert len(value["chunks"]) == len(live) and all(
        0 < chunk["score"] <= 0.5 for chunk in value["chunks"]
    )


@pytest.mark.parametrize("way", ["sync", "async", "query engine"])
def test_a_llama_index_retriever_is_played_without_its_index(path, way):
    from llama_index.core.llms.mock import MockLLM
    from llama_index.core.query_engine import RetrieverQueryEngine

    retriever = llama_index_retriever()
    engine = RetrieverQueryEngine.from_args(retriever, llm=MockLLM())
    programs = {
        "sync": lambda: retriever.retrieve("wet Oslo"),
        "async": lambda: asyncio.run(retriever.aretrieve("wet Oslo")),
        "query engine": lambda: engine.query("wet Oslo").source_nodes,
    }
    with tape.recording(path) as block:
        live = programs[way]()
    assert not block.report.warnings
    with tape.replaying(path):
        again = programs[way]()
    assert again == live and embedded == ["wet Oslo"]
    assert [type(one) for one in again] == [type(one) for one in live]
    assert [type(one.node) for one in again] == [type(one.node) for one in live]
    asked, value = recorded(path)
    assert (asked.name, asked.arguments) == (
        "VectorIndexRetriever",
        {"query": "wet Oslo", "similarity_top_k": 2},
    )
    assert value["embedding"] == "letters-8"
    assert [chunk["id"] for chunk in value["chunks"]] == [one.node_id for one in live]
    assert [chunk["score"] for chunk in value["chunks"]] == [one.score for one in live]


def test_a_retriever_inside_a_retriever_is_part_of_the_outer_one(path):
    from langchain_core.retrievers import BaseRetriever

    inner = langchain_store().as_retriever()

    class Twice(BaseRetriever):
        def _get_relevant_documents(self, query, *, run_manager):
            return inner.invoke(query)[:1] + inner.invoke(f"{query} Bergen")[:1]

    with tape.recording(path):
        live = Twice().invoke("wet")
    with tape.replaying(path) as block:
        assert Twice().invoke("wet") == live
    assert len(embedded) == 2
    calls = tape.open(path).calls
    assert [call.request().name for call in calls] == [
        "VectorStoreRetriever",
        "VectorStoreRetriever",
        "Twice",
    ]
    assert [row.name for row in block.report.calls] == ["Twice"]
