"""What a request is, by where it goes: its class, which decides what happens to the call.

'model' calls are counted and priced, 'telemetry' passes while recording and is refused in silence
in replay, an 'asset' (model weights, vocabularies, packages) is taped but is not part of the story,
everything else is 'host'. Whose hosts and paths are a model's, each provider says of itself
(`protocol.Provider`).
"""

from __future__ import annotations

import re
from functools import lru_cache

from tape_jupyter.core.call import HostClass, Request
from tape_jupyter.providers import hosts, registry

_ASSET_HOSTS = frozenset(
    (
        "openaipublic.blob.core.windows.net",
        "download.pytorch.org",
        "cdn-lfs.huggingface.co",
        "cdn-lfs-us-1.hf.co",
        "cdn-lfs-eu-1.hf.co",
        "hf.co",
        "xethub.hf.co",
        "storage.googleapis.com/download.tensorflow.org",
        "raw.githubusercontent.com/nltk",
        "nltk.org",
        "fbaipublicfiles.com",
        "public.ukp.informatik.tu-darmstadt.de",
        "registry.ollama.ai",
        "ollama.ai",
    )
)
_ASSET_FILE = re.compile(
    r"\.(?:safetensors|gguf|ggml|onnx|tiktoken|whl|pt|pth|ckpt|tflite|bpe|spm)$"
)
_HUB_PATH = re.compile(
    r"/resolve/[^/]+/|^/api/(?:models|datasets|spaces|resolve-cache|whoami-v2)(?:/|$)"
)


def class_of(request: Request) -> HostClass:
    """The class of the host that a request goes to, for what the request is."""
    kind = classify(request.url, request.method, request.header("content-type"))
    if kind == "host" and hosts.is_sent_by_tracer(request):
        return "telemetry"
    return kind


@lru_cache(maxsize=4096)
def classify(url: str, method: str = "POST", content_type: str = "") -> HostClass:
    """The class of the host behind `url` (absolute) for a request of this method and content type,
    whatever its body.

    Never 'tool' or 'retrieval': those are taped functions. An unreadable URL is 'host'.
    """
    parts = hosts.split_url(url)
    host, method = hosts.read_host(parts), method.upper()
    by_address = registry.is_model_address(parts)
    if not by_address and hosts.is_telemetry(host, parts.path, method, content_type):
        return "telemetry"
    if _is_asset(host, parts.path, method):
        return "asset"
    return "model" if by_address or registry.find_host_provider(host) else "host"


def _is_asset(host: str, path: str, method: str) -> bool:
    if method not in ("GET", "HEAD"):
        return False
    if host in hosts.HUB:
        return _HUB_PATH.search(path) is not None
    if _ASSET_FILE.search(path) and not registry.find_host_provider(host):
        return True
    top = "/".join((host, path.split("/")[1] if "/" in path else ""))
    return top in _ASSET_HOSTS or any(
        suffix in _ASSET_HOSTS for suffix in hosts.list_suffixes(host)
    )
