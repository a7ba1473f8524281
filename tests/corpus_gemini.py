"""A recorded request as the call of google-genai that would have sent it (see corpus_sdks.py)."""

from __future__ import annotations

import inspect
import re
from typing import Any
from urllib.parse import unquote

from tests.corpus_clients import Record, listening, listening_async
from tests.corpus_sdks import OTHER, Sdk, body_of, extra_headers, path_of, query_of

GEMINI_CALL = re.compile(
    r"^(?P<prefix>.*)/(?P<version>v1\w*)/(?P<vertex>projects/(?P<project>[^/]+)/locations/(?P<location>[^/]+)/)?"
    r"(?:(?P<model>(?:publishers/[^/]+/)?(?:models|tunedModels)/[^/]+):)?"
    r"(?P<verb>generateContent|streamGenerateContent|countTokens|batchEmbedContents|cachedContents|interactions)$"
)


class Gemini(Sdk):
    @classmethod
    def can(cls, record: Record) -> str:
        call = GEMINI_CALL.match(unquote(path_of(record)))
        if not call:
            google = re.search(
                r"generativelanguage\.googleapis|aiplatform", record["request"]["url"]
            )
            return "one request of several that one google-genai call makes" if google else OTHER
        if record["request"]["method"] != "POST":
            return OTHER
        if call["verb"] == "streamGenerateContent" and query_of(record).get("alt") != "sse":
            return "google-genai streams with alt=sse only; the record is another wire form"
        if "$alt" in query_of(record):
            return "google-genai does not ask for $alt"
        return "" if body_of(record) is not None else "the request is not a JSON object"

    def __init__(self, base: str) -> None:
        super().__init__(base)
        self.clients: dict[tuple[str, ...], Any] = {}

    def client(self, prefix: str, version: str, vertex: str, project: str, location: str) -> Any:
        key = (prefix, version, project, location)
        if key not in self.clients:
            self.clients[key] = self._client(prefix, version, vertex, project, location)
        return self.clients[key]

    def _client(self, prefix: str, version: str, vertex: str, project: str, location: str) -> Any:
        import httpx2
        from google import genai
        from google.genai.types import HttpOptions
        from google.oauth2.credentials import Credentials

        sync = httpx2.Client(
            event_hooks={"response": [listening(httpx2, self.observer)]},
            timeout=60,
            trust_env=False,
        )
        hooks = {"response": [listening_async(httpx2, self.observer)]}
        options = HttpOptions(
            base_url=self.base + prefix,
            api_version=version,
            httpx_client=sync,
            httpx_async_client=httpx2.AsyncClient(event_hooks=hooks, timeout=60, trust_env=False),
        )
        if vertex:
            signed = Credentials(token="a-token")
            made = genai.Client(
                vertexai=True,
                project=project,
                location=location,
                credentials=signed,
                http_options=options,
            )
        else:
            made = genai.Client(http_options=options)
        return made.aio if self.asynchronous else made

    def call(self, record: Record) -> Any:
        where = GEMINI_CALL.match(unquote(path_of(record)))
        assert where is not None
        names = ("prefix", "version", "vertex", "project", "location")
        client = self.client(*(where[name] or "" for name in names))
        make = {
            "interactions": self._interactions,
            "cachedContents": self._cached,
            "batchEmbedContents": self._embed,
            "countTokens": self._count,
        }.get(where["verb"], self._generate)
        return make(
            client,
            where["model"] or "",
            body_of(record) or {},
            extra_headers(record),
            where["verb"],
        )

    def _generate(
        self, client: Any, model: str, body: dict[str, Any], headers: dict[str, str], verb: str
    ) -> Any:
        whole = verb == "generateContent"
        method = client.models.generate_content if whole else client.models.generate_content_stream
        contents, config = generation(body, headers)
        return method(model=model, contents=contents, config=config)

    def _count(
        self, client: Any, model: str, body: dict[str, Any], headers: dict[str, str], _verb: str
    ) -> Any:
        rest = {name: value for name, value in body.items() if name != "contents"}
        return client.models.count_tokens(
            model=model,
            contents=body.get("contents", "x"),
            config={"http_options": options(headers, rest)},
        )

    def _embed(
        self, client: Any, model: str, body: dict[str, Any], headers: dict[str, str], _verb: str
    ) -> Any:
        config = {"http_options": options(headers, body)}
        return client.models.embed_content(model=model, contents="x", config=config)

    def _cached(
        self, client: Any, _model: str, body: dict[str, Any], headers: dict[str, str], _verb: str
    ) -> Any:
        config = {
            "http_options": options(
                headers, {name: value for name, value in body.items() if name != "model"}
            )
        }
        return client.caches.create(model=body.get("model", ""), config=config)

    def _interactions(
        self, client: Any, _model: str, body: dict[str, Any], headers: dict[str, str], _verb: str
    ) -> Any:
        return client.interactions.create(**body, extra_headers=headers)

    async def close(self) -> None:
        for client in self.clients.values():
            closing = client.aclose() if self.asynchronous else client.close()
            if inspect.isawaitable(closing):
                await closing


class AsyncGemini(Gemini):
    asynchronous = True


def options(headers: dict[str, str], body: dict[str, Any] | None = None) -> Any:
    from google.genai.types import HttpOptions

    return HttpOptions(headers=headers, extra_body=body or None)


def generation(body: dict[str, Any], headers: dict[str, str]) -> tuple[Any, Any]:
    """Contents and config as google-genai has them; where it has no field for something, all in the extra body."""
    from google.genai.types import Content, GenerateContentConfig
    from pydantic import ValidationError

    settings = {k: v for k, v in body.items() if k not in {"contents", "generationConfig"}}
    try:
        contents = [Content.model_validate(one) for one in body["contents"]]
        config = GenerateContentConfig.model_validate(
            {**settings, **body.get("generationConfig", {})}
        )
    except (ValidationError, KeyError, TypeError):
        return "x", GenerateContentConfig(http_options=options(headers, body))
    config.http_options = options(headers)
    return contents, config
