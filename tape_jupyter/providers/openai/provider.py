"""OpenAI's Chat Completions and Responses APIs, on its hosts and on those that follow it."""

from __future__ import annotations

from tape_jupyter.providers.openai import chat, responses
from tape_jupyter.providers.openai.chat_messages import ChatMessages
from tape_jupyter.providers.openai.responses_messages import ResponsesMessages
from tape_jupyter.providers.protocol import Provider

HOSTS = {
    "api.openai.com": "openai",
    "openai.azure.com": "azure",
    "services.ai.azure.com": "azure",
    "models.ai.azure.com": "azure",
    "cognitiveservices.azure.com": "azure",
    "api.groq.com": "groq",
    "openrouter.ai": "openrouter",
    "api.deepseek.com": "deepseek",
    "api.together.ai": "together",
    "api.together.xyz": "together",
    "api.fireworks.ai": "fireworks",
    "api.x.ai": "x-ai",
    "api.cerebras.ai": "cerebras",
    "router.huggingface.co": "huggingface",
    "api-inference.huggingface.co": "huggingface",
    "endpoints.huggingface.cloud": "huggingface",
    "api.perplexity.ai": "perplexity",
    "api.novita.ai": "novita",
    "api.voyageai.com": "voyage",
    "api.z.ai": "zai",
    "open.bigmodel.cn": "zai",
    "snowflakecomputing.com": "snowflake",
    "api.inference.crusoecloud.com": "crusoe",
    "api.portkey.ai": "portkey",
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
    model_addresses=(
        r"(?:/chat/completions|/v1/completions|/embeddings|/v1/moderations|/v1/rerank"
        r"|/(?:v1|openai)/realtime(?:/\w+)?"
        r"|/v1/images/(?:generations|edits)|/v1/audio/(?:speech|transcriptions|translations))$"
    ),
    owner="openai",
    messages=ChatMessages("stop", "length", "tool_calls", "content_filter"),
    seeds=True,
)
RESPONSES = Provider(
    wire="openai_responses",
    view=responses,
    paths=((r"/(?P<api>responses(?:/compact|/input_tokens)?)$", ""),),
    owner="openai",
    model_addresses=r"(?:/openai/responses|/v1/responses(?:/.*)?)$",
    messages=ResponsesMessages(),
)
