"""A recorded request as Python, in the words of its provider's SDK; any other request in httpx's.

What an SDK's function has no parameter for goes in `extra_body`. What an SDK could not send as it
was (another API version, bytes in a Bedrock message) is written with httpx: the code that is made
sends the JSON that was recorded.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from tape_jupyter.cassette.match_key import TELLING_HEADERS
from tape_jupyter.core.call import Request
from tape_jupyter.providers import http

WIDTH = 100
_CHAT = (
    "model", "messages", "temperature", "top_p", "max_tokens", "max_completion_tokens", "seed", "stop", "n", "tools",
    "tool_choice", "parallel_tool_calls", "response_format", "stream", "stream_options", "user",
)  # fmt: skip
_RESPONSES = (
    "model", "input", "instructions", "temperature", "top_p", "max_output_tokens", "tools", "tool_choice",
    "parallel_tool_calls", "previous_response_id", "reasoning", "text", "include", "store", "stream", "user",
)  # fmt: skip
_EMBEDDINGS = ("model", "input", "dimensions", "encoding_format", "user")
_MESSAGES = (
    "model",
    "max_tokens",
    "system",
    "messages",
    "stop_sequences",
    "tools",
    "tool_choice",
    "metadata",
    "stream",
)
_CONVERSE = {"messages", "system", "inferenceConfig", "toolConfig", "guardrailConfig", "additionalModelRequestFields",
             "additionalModelResponseFieldPaths", "promptVariables", "requestMetadata", "performanceConfig",
             "outputConfig", "serviceTier",
}  # fmt: skip
_GEMINI = {
    "temperature": "temperature", "topP": "top_p", "topK": "top_k", "maxOutputTokens": "max_output_tokens",
    "seed": "seed", "candidateCount": "candidate_count", "stopSequences": "stop_sequences",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class SdkClient:
    """An object that a notebook makes once. `kind` begins its name."""

    kind: str
    needs: str
    make: str


@dataclass(frozen=True, slots=True)
class Words:
    """How a request is asked in Python: `request_expression(client)` is an expression, `show(name)` the lines that
    print a reply.
    """

    client: SdkClient | None
    request_expression: Callable[[str], str]
    show: Callable[[str], str]
    needs: str = ""


def request_words(request: Request) -> Words:
    """The code for one request."""
    body = _parse_body(request)
    address = urlsplit(request.url)
    if (
        request.method == "POST"
        and isinstance(body, dict)
        and not TELLING_HEADERS.intersection(request.named)
    ):
        for known in (
            _build_openai_words,
            _build_anthropic_words,
            _build_gemini_words,
            _build_bedrock_words,
        ):
            code = known(address.scheme + "://" + address.netloc, address.path, address.query, body)
            if code is not None:
                return code
    return _build_httpx_words(request, body)


def _parse_body(request: Request) -> Any:
    data = http.decoded_body(request.headers, request.body)
    return http.loads(data) if data else None


def _build_openai_words(host: str, path: str, query: str, body: dict[str, Any]) -> Words | None:
    for end, function, known in (
        ("/chat/completions", "chat.completions.create", _CHAT),
        ("/responses", "responses.create", _RESPONSES),
        ("/embeddings", "embeddings.create", _EMBEDDINGS),
    ):
        if path.endswith(end) and "model" in body and known[1] in body:
            if function.startswith("embed") and "encoding_format" not in body:
                return None  # the SDK would ask for base64
            base = host + path.removesuffix(end)
            options = [] if base == "https://api.openai.com/v1" else [f"base_url={base!r}"]
            if query:
                options.append(f"default_query={dict(parse_qsl(query, keep_blank_values=True))!r}")
            client = SdkClient(
                "openai",
                "import openai",
                f"openai.OpenAI({', '.join([*options, 'max_retries=0'])})",
            )
            return _build_stainless_words(client, function, known, body)
    return None


def _build_anthropic_words(host: str, path: str, query: str, body: dict[str, Any]) -> Words | None:
    if not path.endswith("/v1/messages") or query not in ("", "beta=true"):
        return None
    if not {"model", "messages", "max_tokens"} <= body.keys():
        return None
    base = host + path.removesuffix("/v1/messages")
    options = [] if base == "https://api.anthropic.com" else [f"base_url={base!r}"]
    client = SdkClient(
        "anthropic",
        "import anthropic",
        f"anthropic.Anthropic({', '.join([*options, 'max_retries=0', 'timeout=600'])})",
    )
    return _build_stainless_words(
        client,
        "messages.create",
        _MESSAGES,
        body,
        {"extra_query": {"beta": "true"}} if query else {},
    )


_NO_MORE: Mapping[str, Any] = {}


def _build_stainless_words(
    client: SdkClient,
    function: str,
    known: Iterable[str],
    body: dict[str, Any],
    more: Mapping[str, Any] = _NO_MORE,
) -> Words:
    """The SDKs of OpenAI and Anthropic are made by one generator. `warnings`: pydantic's, of parts that
    a reply has and the SDK installed here does not know.
    """
    plain = {name: body[name] for name in known if body.get(name) is not None}
    rest = {name: value for name, value in body.items() if name not in plain}
    arguments: dict[str, Any] = {**plain, **more}
    if rest:
        arguments["extra_body"] = rest
    if body.get("stream") is True:
        return Words(
            client,
            lambda name: f"list({_format_call(f'{name}.{function}', arguments)})",
            _build_print_loop("to_json(indent=None, warnings=False)"),
        )
    return Words(
        client,
        lambda name: _format_call(f"{name}.{function}", arguments),
        lambda name: f"print({name}.to_json(warnings=False))",
    )


def _build_print_loop(how: str) -> Callable[[str], str]:
    return lambda name: f"for each in {name}:\n    print(each.{how})"


_GEMINI_PATH = re.compile(r"/(v1|v1beta)/models/([^/:]+):(generateContent|streamGenerateContent)")


def _build_gemini_words(host: str, path: str, query: str, body: dict[str, Any]) -> Words | None:
    match = _GEMINI_PATH.fullmatch(path)
    if (
        match is None
        or host != "https://generativelanguage.googleapis.com"
        or not _is_plain_contents(body.get("contents"))
    ):
        return None
    streamed = match[3].startswith("stream")
    if [each for each in query.split("&") if each and not each.startswith("key=")] != (
        ["alt=sse"] if streamed else []
    ):
        return None
    generation_config = body.get("generationConfig")
    generation_config = generation_config if isinstance(generation_config, dict) else {}
    config: dict[str, Any] = {
        _GEMINI[name]: generation_config[name]
        for name in generation_config
        if name in _GEMINI and generation_config[name] is not None
    }
    left = {
        name: value for name, value in generation_config.items() if _GEMINI.get(name) not in config
    }
    rest = {
        name: value for name, value in body.items() if name not in ("contents", "generationConfig")
    }
    if rest and "generationConfig" not in body:
        return None  # the SDK adds an empty one to whatever it sends with a config
    if left or ("generationConfig" in body and not config):
        rest["generationConfig"] = left
    if rest:
        config["http_options"] = {"extra_body": rest}
    arguments: dict[str, Any] = {"model": match[2], "contents": body["contents"]}
    if config:
        arguments["config"] = config
    client = SdkClient(
        "gemini",
        "from google import genai",
        f"genai.Client(http_options={{'api_version': {match[1]!r}}})",
    )
    dump_options = "exclude_none=True, by_alias=True, exclude={'sdk_http_response', 'parsed'}"
    dumped = f"model_dump_json({dump_options}, warnings=False)"
    if streamed:
        function = "models.generate_content_stream"
        return Words(
            client,
            lambda name: f"list({_format_call(f'{name}.{function}', arguments)})",
            _build_print_loop(dumped),
        )
    function = "models.generate_content"
    return Words(
        client,
        lambda name: _format_call(f"{name}.{function}", arguments),
        lambda name: f"print({name}.{dumped})",
    )


def _is_plain_contents(contents: Any) -> bool:
    """Whether these are contents that google-genai sends as they are."""
    return isinstance(contents, list) and all(
        isinstance(each, dict)
        and each.keys() == {"role", "parts"}
        and isinstance(each["parts"], list)
        and all(isinstance(part, dict) and part.keys() == {"text"} for part in each["parts"])
        for each in contents
    )


_BEDROCK_HOST = re.compile(r"https://bedrock-runtime\.([a-z0-9-]+)\.amazonaws\.com")
_BEDROCK_PATH = re.compile(
    r"/model/([^/]+)/(converse|converse-stream|invoke|invoke-with-response-stream)"
)
_BEDROCK = {
    "converse": "converse", "converse-stream": "converse_stream", "invoke": "invoke_model",
    "invoke-with-response-stream": "invoke_model_with_response_stream",
}  # fmt: skip


def _build_bedrock_words(host: str, path: str, query: str, body: dict[str, Any]) -> Words | None:
    region, path_match = _BEDROCK_HOST.fullmatch(host), _BEDROCK_PATH.fullmatch(path)
    if region is None or path_match is None or query:
        return None
    model, action = unquote(path_match[1]), path_match[2]
    client = SdkClient(
        "bedrock", "import boto3", f"boto3.client('bedrock-runtime', region_name={region[1]!r})"
    )
    function = _BEDROCK[action]
    if action.startswith("converse"):
        if not body.keys() <= _CONVERSE or _has_bytes(body):
            return None
        arguments = {"modelId": model, **body}

        def format_call(name: str) -> str:
            return _format_call(f"{name}.{function}", arguments)
    else:

        def format_call(name: str) -> str:
            text = python_words(body, 4)
            return f"{name}.{function}(\n    modelId={model!r},\n    body=json.dumps({text}),\n)"

    if action == "converse":
        return Words(
            client,
            format_call,
            lambda name: f"{name}.pop('ResponseMetadata')\nprint(json.dumps({name}))",
            "import json",
        )
    if action == "invoke":
        return Words(
            client,
            format_call,
            lambda name: f"print({name}['body'].read().decode())",
            "import json",
        )
    part = "stream" if action == "converse-stream" else "body"
    listed = f"['{part}'])"
    show = _format_bedrock_events if part == "stream" else _format_bedrock_chunks
    return Words(client, lambda name: f"list({format_call(name)}{listed}", show, "import json")


def _format_bedrock_events(name: str) -> str:
    return f"for each in {name}:\n    print(json.dumps(each))"


def _format_bedrock_chunks(name: str) -> str:
    return f"for each in {name}:\n    print(each['chunk']['bytes'].decode())"


def _has_bytes(value: Any) -> bool:
    if isinstance(value, dict):
        return "bytes" in value or any(_has_bytes(each) for each in value.values())
    return isinstance(value, list) and any(_has_bytes(each) for each in value)


_SENT = TELLING_HEADERS | {"content-type", "content-encoding", "accept"}


def _build_httpx_words(request: Request, body: Any) -> Words:
    headers = {name: value for name, value in request.named.items() if name in _SENT}
    arguments: dict[str, Any] = {}
    if body is not None and "content-encoding" not in headers:
        headers = {name: value for name, value in headers.items() if name != "content-type"}
        arguments["json"] = body
    elif request.body:
        arguments["content"] = request.body
    if headers:
        arguments["headers"] = headers
    text = _format_call("httpx.request", arguments, (request.method, request.url), timeout="60")
    return Words(None, lambda _: text, lambda name: f"print({name}.text)", "import httpx")


# ---------------------------------------------------------------- Python


def _format_call(
    function: str, arguments: Mapping[str, Any], first: tuple[Any, ...] = (), **code: str
) -> str:
    """A call of a function, an argument a line."""
    lines = [f"    {each!r},\n" for each in first]
    lines += [f"    {name}={python_words(value, 4)},\n" for name, value in arguments.items()]
    lines += [f"    {name}={text},\n" for name, text in code.items()]
    return f"{function}(\n{''.join(lines)})"


def python_words(value: Any, indent: int = 0) -> str:
    """A JSON value (or bytes) as Python, over several lines where it is long."""
    plain = _format_literal(value)
    if len(plain) + indent <= WIDTH or not value or not isinstance(value, dict | list):
        return plain
    pad = " " * (indent + 4)
    if isinstance(value, dict):
        inner = [
            f"{pad}{name!r}: {python_words(each, indent + 4)},\n" for name, each in value.items()
        ]
        return "{\n" + "".join(inner) + " " * indent + "}"
    return (
        "[\n"
        + "".join(f"{pad}{python_words(each, indent + 4)},\n" for each in value)
        + " " * indent
        + "]"
    )


def _format_literal(value: Any) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        return f"float('{value}')"
    if isinstance(value, dict):
        return (
            "{"
            + ", ".join(f"{name!r}: {_format_literal(each)}" for name, each in value.items())
            + "}"
        )
    if isinstance(value, list):
        return "[" + ", ".join(map(_format_literal, value)) + "]"
    return repr(value)
