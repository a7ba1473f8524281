"""A recorded request as the call of an SDK that would have sent it: the SDK half of `replay_corpus.py`.

The recorded body goes through the SDK's own method; what the method has no parameter for goes into its extra body.
`can(record)` gives the reason why an SDK has no call for a record, or "".
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from tests.corpus_clients import (
    FRAMING,
    Observer,
    Record,
    Seen,
    listening,
    listening_async,
    request_body,
)

OTHER = "not a call of this API"
OWN = re.compile(
    r"accept|content-type|user-agent|authorization|x-api-key|api-key|x-goog-api-(?:key|client)|x-stainless.*"
)
"""Headers that SDKs write themselves."""


class Sdk:
    """What the SDKs have in common: `call(record)` gives the object, or the (async) iterator of a stream."""

    asynchronous = False

    def __init__(self, base: str) -> None:
        self.base, self.observer = base, Observer()

    async def play(self, record: Record) -> Seen:
        self.observer.clear()
        try:
            await self._collect(self.call(record))
        except Exception as error:
            self.observer.error = error
        return self.observer.seen()

    async def _collect(self, made: Any) -> None:
        value = await made if inspect.isawaitable(made) else made
        keep = self.observer.objects.append
        if hasattr(value, "__aiter__"):
            async for event in value:
                keep(event)
        elif hasattr(value, "__next__") or type(value).__name__.endswith("Stream"):
            for event in value:
                keep(event)
        else:
            keep(value)

    def call(self, record: Record) -> Any:
        raise NotImplementedError

    async def close(self) -> None:
        """Nothing is held open."""


def path_of(record: Record) -> str:
    return urlsplit(record["request"]["url"]).path


def query_of(record: Record) -> dict[str, str]:
    return dict(parse_qsl(urlsplit(record["request"]["url"]).query))


def body_of(record: Record) -> dict[str, Any] | None:
    """The JSON object a request carries, or None."""
    try:
        body = json.loads(request_body(record))
    except ValueError:
        return None
    return body if isinstance(body, dict) else None


def extra_headers(record: Record) -> dict[str, str]:
    """The recorded headers an SDK does not write itself, and the record's id."""
    pairs = record["request"]["headers"]
    kept = {k: v for k, v in pairs if k.lower() not in FRAMING and not OWN.fullmatch(k.lower())}
    return {**kept, "x-corpus-id": record["id"]}


def fitted(method: Callable[..., Any], body: dict[str, Any]) -> dict[str, Any]:
    """The body as arguments of `method`, the rest in `extra_body`."""
    known = inspect.signature(method).parameters
    rest = {name: value for name, value in body.items() if name not in known}
    return {
        **{name: value for name, value in body.items() if name in known},
        **({"extra_body": rest} if rest else {}),
    }


class _Stainless(Sdk):
    """anthropic and openai: the same generator made both."""

    paths = ""

    @classmethod
    def can(cls, record: Record) -> str:
        if not re.search(cls.paths, path_of(record)):
            return OTHER
        if record["request"]["method"] == "POST" and body_of(record) is None:
            return "the request is not a JSON object"
        return ""

    def http(self) -> Any:
        import httpx2

        if self.asynchronous:
            hooks = {"response": [listening_async(httpx2, self.observer)]}
            return httpx2.AsyncClient(
                event_hooks=hooks, timeout=60, trust_env=False, follow_redirects=True
            )
        hooks = {"response": [listening(httpx2, self.observer)]}
        return httpx2.Client(event_hooks=hooks, timeout=60, trust_env=False, follow_redirects=True)

    def at(self, record: Record) -> Any:
        """The client with the base URL of this record: what stands before the API's own path."""
        start = re.search(self.paths, path_of(record)).start()  # type: ignore[union-attr]  # `can` has asked
        return self.client.with_options(base_url=self.base + path_of(record)[:start] + self.version)

    async def close(self) -> None:
        closing = self.client.close()
        if inspect.isawaitable(closing):
            await closing


class Anthropic(_Stainless):
    paths = r"/v1/(?:messages(?:/count_tokens)?|complete)$"
    version = ""

    def __init__(self, base: str) -> None:
        super().__init__(base)
        import anthropic

        make = anthropic.AsyncAnthropic if self.asynchronous else anthropic.Anthropic
        self.client = make(base_url=base, http_client=self.http(), max_retries=0, timeout=60)

    @classmethod
    def can(cls, record: Record) -> str:
        import anthropic

        if path_of(record).endswith("/complete") and not hasattr(
            anthropic.Anthropic, "completions"
        ):
            return f"anthropic {anthropic.__version__} has no /v1/complete"
        if record["provider"] in {"openai", "azure_openai"}:
            return OTHER
        return super().can(record)

    def call(self, record: Record) -> Any:
        client, body, headers = self.at(record), dict(body_of(record) or {}), extra_headers(record)
        query = {name: value for name, value in query_of(record).items() if name != "beta"}
        if path_of(record).endswith("/complete"):
            method = client.completions.create
        else:
            betas = [
                v
                for name in list(headers)
                if name.lower() == "anthropic-beta"
                for v in headers.pop(name).split(",")
            ]
            beta = bool(betas) or "beta" in query_of(record)
            if betas:
                body["betas"] = [name.strip() for name in betas]
            messages = client.beta.messages if beta else client.messages
            method = (
                messages.count_tokens
                if path_of(record).endswith("/count_tokens")
                else messages.create
            )
        return method(**fitted(method, body), extra_headers=headers, extra_query=query or None)


class AsyncAnthropic(Anthropic):
    asynchronous = True


class OpenAI(_Stainless):
    paths = r"/(?:chat/completions|responses(?:/resp_\w+)?|embeddings|completions)$"
    version = ""

    def __init__(self, base: str) -> None:
        super().__init__(base)
        import openai

        make = openai.AsyncOpenAI if self.asynchronous else openai.OpenAI
        self.client = make(base_url=base, http_client=self.http(), max_retries=0, timeout=60)

    def call(self, record: Record) -> Any:
        client, headers, query = self.at(record), extra_headers(record), query_of(record)
        path = path_of(record)
        name = re.search(self.paths, path)[0]  # type: ignore[index]  # `can` has asked
        if name.startswith("/responses/"):
            return self._retrieve(client, name.rpartition("/")[2], query, headers)
        method = {
            "/chat/completions": client.chat.completions.create,
            "/responses": client.responses.create,
            "/embeddings": client.embeddings.create,
            "/completions": client.completions.create,
        }[name]
        return method(
            **fitted(method, body_of(record) or {}),
            extra_headers=headers,
            extra_query=query or None,
        )

    def _retrieve(
        self, client: Any, response: str, query: dict[str, str], headers: dict[str, str]
    ) -> Any:
        if query.get("stream") != "true":
            return client.responses.retrieve(
                response, extra_headers=headers, extra_query=query or None
            )
        after = int(query.get("starting_after", 0))
        return client.responses.retrieve(
            response, stream=True, starting_after=after, extra_headers=headers
        )


class AsyncOpenAI(OpenAI):
    asynchronous = True


# ---------------------------------------------------------------- mistralai


class Mistral(Sdk):
    @classmethod
    def can(cls, record: Record) -> str:
        own = "mistral" in urlsplit(record["request"]["url"]).netloc or record[
            "provider"
        ].startswith("mistral")
        if not own or not re.search(r"/v1/(?:chat/completions|embeddings)$", path_of(record)):
            return OTHER
        return "" if body_of(record) is not None else "the request is not a JSON object"

    def __init__(self, base: str) -> None:
        super().__init__(base)
        self.clients: dict[str, Any] = {}

    def client(self, prefix: str) -> Any:
        import httpx2
        from mistralai.client import Mistral as Client

        if prefix not in self.clients:
            sync = listening(httpx2, self.observer)
            hooks = listening_async(httpx2, self.observer)
            self.clients[prefix] = Client(
                api_key=_environment("MISTRAL_API_KEY"),
                server_url=self.base + prefix,
                client=httpx2.Client(event_hooks={"response": [sync]}, timeout=60, trust_env=False),
                async_client=httpx2.AsyncClient(
                    event_hooks={"response": [hooks]}, timeout=60, trust_env=False
                ),
            )
        return self.clients[prefix]

    def call(self, record: Record) -> Any:
        body, headers = dict(body_of(record) or {}), extra_headers(record)
        prefix, _, name = path_of(record).partition("/v1/")
        client = self.client(prefix)
        if name == "embeddings":
            create = (
                client.embeddings.create_async if self.asynchronous else client.embeddings.create
            )
            return create(model=body["model"], inputs=body.get("input", ""), http_headers=headers)
        streamed = bool(body.pop("stream", False))
        name = ("stream" if streamed else "complete") + ("_async" if self.asynchronous else "")
        method = getattr(client.chat, name)
        known = inspect.signature(method).parameters
        return method(
            **{k: v for k, v in body.items() if k in known and v is not None}, http_headers=headers
        )


class AsyncMistral(Mistral):
    asynchronous = True


def _environment(name: str) -> str:
    import os

    return os.environ[name]


# ---------------------------------------------------------------- boto3

MODEL_CALL = re.compile(
    r"^(?P<prefix>.*)/model/(?P<model>[^/]+)/(?P<verb>converse|converse-stream|invoke|invoke-with-response-stream)$"
)


class Boto3(Sdk):
    @classmethod
    def can(cls, record: Record) -> str:
        call = MODEL_CALL.match(path_of(record))
        if not call:
            return (
                OTHER
                if "/model/" not in path_of(record)
                else "not an operation of bedrock-runtime that invokes a model"
            )
        return (
            ""
            if call["verb"].startswith("invoke") or body_of(record) is not None
            else "the request is not a JSON object"
        )

    def __init__(self, base: str) -> None:
        super().__init__(base)
        import boto3
        from botocore.config import Config

        settings = Config(
            retries={"total_max_attempts": 1},
            read_timeout=60,
            parameter_validation=False,
            proxies={},
        )
        self.client = boto3.Session().client(
            "bedrock-runtime", region_name="us-east-1", endpoint_url=base, config=settings
        )
        self.record = ""
        self.client.meta.events.register("before-sign.bedrock-runtime", self._name)
        self.client.meta.events.register("before-parse.bedrock-runtime", self._see)

    def _name(self, request: Any, **_: Any) -> None:
        request.headers["x-corpus-id"] = self.record

    def _see(self, response_dict: dict[str, Any], **_: Any) -> None:
        body, observer = response_dict["body"], self.observer
        observer.head(response_dict["status_code"], "", "", list(response_dict["headers"].items()))
        if isinstance(body, bytes):
            observer.chunks.append(body)
        elif hasattr(body, "stream"):  # an event stream reads urllib3's response itself
            inner = body.stream

            def stream(*args: Any, **options: Any) -> Any:
                for chunk in inner(*args, **options):
                    observer.chunks.append(chunk)
                    yield chunk

            body.stream = stream

    def call(self, record: Record) -> Any:
        self.record = record["id"]
        where = MODEL_CALL.match(path_of(record))
        assert where is not None
        model, verb = unquote(where["model"]), where["verb"]
        if verb.startswith("converse"):
            method = self.client.converse if verb == "converse" else self.client.converse_stream
            body = {
                name: _bytes_where_base64(value) for name, value in (body_of(record) or {}).items()
            }
            return self._streamed(method(modelId=model, **body), "stream")
        given = {name.lower(): value for name, value in record["request"]["headers"]}
        method = (
            self.client.invoke_model
            if verb == "invoke"
            else self.client.invoke_model_with_response_stream
        )
        answer = method(
            modelId=model,
            body=request_body(record),
            contentType=given.get("content-type", "application/json"),
            accept=given.get("accept", "application/json"),
        )
        if verb == "invoke":
            answer["body"] = answer["body"].read()
            self.observer.chunks.append(answer["body"])
            return answer
        return self._streamed(answer, "body")

    def _streamed(self, answer: dict[str, Any], name: str) -> Any:
        if name not in answer:
            return answer
        events = answer.pop(name)
        return iter([answer, *[]]) if events is None else _after(answer, events)


def _after(first: Any, rest: Any) -> Any:
    yield first
    yield from rest


def _bytes_where_base64(value: Any) -> Any:
    """A recorded Converse body carries images and documents as base64, boto3 takes bytes."""
    import base64

    if isinstance(value, dict):
        return {
            name: base64.b64decode(part)
            if name == "bytes" and isinstance(part, str)
            else _bytes_where_base64(part)
            for name, part in value.items()
        }
    return [_bytes_where_base64(part) for part in value] if isinstance(value, list) else value
