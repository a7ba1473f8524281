"""OpenAI's Chat Completions and Responses APIs, on its hosts and on those that follow it."""

from __future__ import annotations

from tape_jupyter.providers.openai import chat, responses
from tape_jupyter.providers.openai.chat_messages import ChatMessages
from tape_jupyter.providers.openai.responses_messages import ResponsesMessages
from tape_jupyter.providers.protocol import Provider

HOSTS = {
    "openai.com": "openai",
    "openai.azure.com": "azure",
    "services.ai.azure.com": "azure",
    "cognitiveservices.azure.com": "azure",
    "groq.com": "groq",
    "openrouter.ai": "openrouter",
    "deepseek.com": "deepseek",
    "together.ai": "together",
    "together.xyz": "together",
    "fireworks.ai": "fireworks",
    "x.ai": "x-ai",
    "cerebras.ai": "cerebras",
    "huggingface.co": "huggingface",
    "perplexity.ai": "perplexity",
    "novita.ai": "novita",
    "voyageai.com": "voyage",
    "z.ai": "zai",
    "snowflakecomputing.com": "snowflake",
    "crusoecloud.com": "crusoe",
    "portkey.ai": "portkey",
}

CHAT = Provider(
    wire="openai_chat",
    view=chat,
    paths=(
        (r"(?:/deployments/(?P<model>[^/]+))?/chat/completions$", "chat"),
        (
            r"(?:/deployments/(?P<model>[^/]+))?/(?P<api>embeddings|completions|rerank|moderations)$",
            "",
        ),
    ),
    hosts=HOSTS,
    owner="openai",
    messages=ChatMessages("stop", "length", "tool_calls", "content_filter"),
    seeds=True,
)
RESPONSES = Provider(
    wire="openai_responses",
    view=responses,
    paths=((r"/(?P<api>responses(?:/compact|/input_tokens)?)$", ""),),
    owner="openai",
    messages=ResponsesMessages(),
)
