"""What kind of host a request goes to, whose it is, and where. Pure: no network, no environment.

The class decides what happens to a call: 'model' calls are counted and priced, 'telemetry' passes
while recording and is refused in silence in replay, an 'asset' (model weights, vocabularies,
packages) is taped but is not part of the story, everything else is 'host'. Names and paths were
taken from the vendors' API references and SDK sources; an unknown host is told by the shape of its
path, so that a proxy or a server on loopback is seen for what it speaks. Telemetry is what a
program sends and forgets: what it reads, from whatever host, is taped.
"""

from __future__ import annotations

import ipaddress
import re
from functools import lru_cache
from urllib.parse import SplitResult, urlsplit

from tape_jupyter.core.call import HostClass, Request
from tape_jupyter.encoding.http import body

_PROVIDERS = {
    "anthropic": ("api.anthropic.com",),
    "openai": ("api.openai.com",),
    "azure": (
        "openai.azure.com",
        "services.ai.azure.com",
        "models.ai.azure.com",
        "cognitiveservices.azure.com",
    ),
    "gemini": ("generativelanguage.googleapis.com",),
    "vertex": ("aiplatform.googleapis.com",),
    "mistral": ("api.mistral.ai", "codestral.mistral.ai"),
    "cohere": ("api.cohere.com", "api.cohere.ai"),
    "groq": ("api.groq.com",),
    "openrouter": ("openrouter.ai",),
    "together": ("api.together.ai", "api.together.xyz"),
    "fireworks": ("api.fireworks.ai",),
    "deepseek": ("api.deepseek.com",),
    "cerebras": ("api.cerebras.ai",),
    "xai": ("api.x.ai",),
    "perplexity": ("api.perplexity.ai",),
    "voyage": ("api.voyageai.com",),
    "jina": ("api.jina.ai",),
    "huggingface": (
        "router.huggingface.co",
        "api-inference.huggingface.co",
        "endpoints.huggingface.cloud",
    ),
    "replicate": ("api.replicate.com",),
    "nvidia": ("integrate.api.nvidia.com", "ai.api.nvidia.com"),
    "sambanova": ("api.sambanova.ai",),
    "ai21": ("api.ai21.com",),
    "zai": ("api.z.ai", "open.bigmodel.cn"),
    "moonshot": ("api.moonshot.ai", "api.moonshot.cn"),
    "alibaba": ("dashscope.aliyuncs.com", "dashscope-intl.aliyuncs.com"),
    "crusoe": ("api.inference.crusoecloud.com",),
    "ollama": ("ollama.com",),
    "portkey": ("api.portkey.ai",),
    "heroku": ("inference.heroku.com",),
    "github": ("models.github.ai", "models.inference.ai.azure.com"),
    "helicone": ("oai.helicone.ai", "ai-gateway.helicone.ai", "anthropic.helicone.ai"),
    "vercel": ("ai-gateway.vercel.sh",),
    "cloudflare": ("gateway.ai.cloudflare.com",),
    "elevenlabs": ("api.elevenlabs.io",),
    "deepgram": ("api.deepgram.com",),
    "assemblyai": ("api.assemblyai.com",),
}
_BY_SUFFIX = {suffix: name for name, suffixes in _PROVIDERS.items() for suffix in suffixes}

_BEDROCK = re.compile(
    r"(?:^|\.)bedrock[a-z-]*\.([a-z]{2}(?:-[a-z]+)+-\d)\.(?:amazonaws\.com(?:\.cn)?|api\.aws)$"
)

# The wire a path speaks, whoever's host it is; first match wins.
_WIRES = (
    ("anthropic", re.compile(r"/v1/(?:messages(?:/count_tokens|/batches.*)?|complete)$")),
    ("gemini", re.compile(r"\.BidiGenerateContent(?:Constrained)?$")),
    (
        "gemini",
        re.compile(
            r"/models/[^/]+:(?:\w*[gG]enerateContent|\w*[eE]mbedContents?|countTokens|\w*[pP]redict)$"
        ),
    ),
    (
        "bedrock",
        re.compile(
            r"/model/[^/]+/(?:converse|invoke|count-tokens)(?:-stream|-with-response-stream)?$"
        ),
    ),
    ("cohere", re.compile(r"/v2/(?:chat|embed|rerank)$")),
    (
        "openai",
        re.compile(
            r"(?:/chat/completions|/v1/completions|/openai/responses|/v1/responses(?:/.*)?|/embeddings|/v1/moderations"
            r"|/(?:v1|openai)/realtime(?:/\w+)?"
            r"|/v1/images/(?:generations|edits)|/v1/audio/(?:speech|transcriptions|translations)|/v1/rerank)$"
        ),
    ),
)
_OLLAMA = re.compile(r"/api/(?:chat|generate|embed|embeddings)$")

_TELEMETRY = frozenset(
    (
        "smith.langchain.com",
        "cloud.langfuse.com",
        "langfuse.com",
        "posthog.com",
        "sentry.io",
        "datadoghq.com",
        "datadoghq.eu",
        "ddog-gov.com",
        "segment.io",
        "segment.com",
        "mixpanel.com",
        "amplitude.com",
        "google-analytics.com",
        "googletagmanager.com",
        "statsigapi.net",
        "featureassets.org",
        "events.launchdarkly.com",
        "api.helicone.ai",
        "traceloop.com",
        "arize.com",
        "wandb.ai",
        "comet.com",
        "opik.com",
        "agentops.ai",
        "nr-data.net",
        "newrelic.com",
        "honeycomb.io",
        "grafana.net",
        "applicationinsights.azure.com",
        "dc.services.visualstudio.com",
        "logfire-us.pydantic.dev",
        "logfire-eu.pydantic.dev",
        "logfire-api.pydantic.dev",
        "telemetry.crewai.com",
        "os-api.agno.com",
        "scarf.sh",
        "api.gradio.app",
        "promptlayer.com",
        "rollbar.com",
        "bugsnag.com",
        "logs.amazonaws.com",
        "cloudtrace.googleapis.com",
        "telemetry.googleapis.com",
        "monitoring.googleapis.com",
        "logging.googleapis.com",
        "rudderstack.com",
        "api.humanloop.com",
        "galileo.ai",
        "lunary.ai",
        "axiom.co",
        "baselime.io",
        "lightstep.com",
        "splunk.com",
        "splunkcloud.com",
        "signalfx.com",
    )
)
_TELEMETRY_PATH = re.compile(
    r"(?:/api/public/(?:ingestion|otel/.*)|/v1/traces/ingest|/v0\.\d/traces|/api/v2/spans|/telemetry/proxy/.*"
    r"|/api/\d+/envelope/?)$"
)
_HUB_TELEMETRY = re.compile(r"^/api/telemetry(?:/|$)")

# Paths that may be anybody's own API: there the content type and the body must be those of a
# tracer, too.
_OTLP = re.compile(
    r"/v1(?:development)?/(?:traces|metrics|logs|profiles)$"
)  # opentelemetry.io/docs/specs/otlp
_RUNS = re.compile(r"/runs/(?:batch|multipart)$")  # a LangSmith of one's own
_SENT = re.compile(rb'\s*\{\s*"(?:resource(?:Spans|Metrics|Logs|Profiles)|post|patch)"\s*:\s*\[')

# Read from such a host, or made there and built on: input of the program, not telemetry about it.
_READ = re.compile(
    r"/(?:commits|repos|prompts|datasets|examples|artifacts|dataset-items"
    r"|query|queries|search|aggregate|stats|flags|decide)(?:/|$)"
)

# Hosts at which a program also works: it makes datasets, experiments, sessions there, and goes on
# with the replies. Of what is sent there only this is telemetry: what is never read back by who
# sent it.
_WORKED_AT = frozenset(
    (
        "smith.langchain.com",
        "langfuse.com",
        "posthog.com",
        "statsigapi.net",
        "comet.com",
        "opik.com",
        "arize.com",
        "agentops.ai",
        "promptlayer.com",
        "lunary.ai",
        "galileo.ai",
        "api.humanloop.com",
    )
)
_ID = r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
_LANGSMITH = re.compile(
    rf"/(?:runs(?:/(?:batch|multipart|{_ID}))?|feedback(?:/{_ID})?|otel/v1/\w+)$"
)
_SENT_THERE = re.compile(
    rf"/(?:ingestion|ingest|otel(?:/.*)?|v1/(?:traces|metrics|logs|log|rgstr|log_event|sdk_exception)"
    r"|batch|capture|e|i/v0/\w+|track|engage|s|track-request|log-request|spans-bulk|create_events|update_events"
    rf"|update_session|(?:traces|spans)(?:/batch|/feedback-scores|/{_ID})?)/?$"
)
# The tracing thread of langsmith asks it before it sends, whenever that is.
_HANDSHAKE = re.compile(r"(?:^|\.)api\.smith\.langchain\.com/info$")
_OF_LANGSMITH = "langsmith-"
"""How the user agents of its clients begin: they may speak to a server of one's own."""

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
_HUB = frozenset({"huggingface.co", "hf.co", "hf-mirror.com"})

_REGIONS = (
    re.compile(r"^([a-z]+-[a-z]+\d+)-aiplatform\."),  # us-central1-aiplatform.googleapis.com
    re.compile(r"\.([a-z]{2}(?:-[a-z]+)+-\d)\.(?:amazonaws\.com|api\.aws)"),
    re.compile(r"^(eu|us|au|in|jp|sg)\.api\."),  # eu.api.openai.com
    re.compile(r"^([a-z0-9]+)\.api\.cognitive\.microsoft\.com$"),
)
_LOCATION = re.compile(r"/locations/([a-z0-9-]+)/")


def class_of(request: Request) -> HostClass:
    """The class of the host that a request goes to, for what the request is."""
    kind = classify(request.url, request.method, request.header("content-type"))
    if kind != "host":
        return kind
    if _is_span_export(request) or _is_langsmith_client(request):
        return "telemetry"
    return "model" if _is_known_to_provider(request) else "host"


@lru_cache(maxsize=4096)
def classify(url: str, method: str = "POST", content_type: str = "") -> HostClass:
    """The class of the host behind `url` (absolute) for a request of this method and content type,
    whatever its body.

    Never 'tool' or 'retrieval': those are taped functions. An unreadable URL is 'host'.
    """
    parts = _split_url(url)
    host = _read_host(parts)
    wire = _find_wire(parts, host)
    if not wire and _is_telemetry(host, parts.path, method.upper(), content_type):
        return "telemetry"
    if _is_asset(host, parts.path, method.upper()):
        return "asset"
    if host_provider(host) or wire:
        return "model"
    return "host"


def telemetry_answer(request: Request) -> tuple[int, bytes]:
    """Status and body with which an endpoint of telemetry takes what is sent, by its documentation."""
    parts = _split_url(request.url)
    path, suffixes = parts.path.rstrip("/"), _list_suffixes(_read_host(parts))
    if request.method != "GET" and _LANGSMITH.search(path) and "otel" not in path:
        return 202, b"{}"
    if path.endswith("/api/public/ingestion"):
        return 207, b'{"successes": [], "errors": []}'
    if "posthog.com" in suffixes:
        return 200, b'{"status": 1}'
    return 200, b"{}"


@lru_cache(maxsize=4096)
def provider(url: str) -> str:
    """Whose model answers: by host ('anthropic', 'bedrock', ...), else the wire its path speaks,
    else ''.
    """
    parts = _split_url(url)
    host = _read_host(parts)
    return host_provider(host) or _find_wire(parts, host)


@lru_cache(maxsize=4096)
def region(url: str) -> str:
    """The region a URL names ('us-east-1', 'europe-west4', 'eu'), or ''."""
    parts = _split_url(url)
    host = _read_host(parts)
    for shape in _REGIONS:
        if match := shape.search(host):
            return match[1]
    match = _LOCATION.search(parts.path)
    return match[1] if match else ""


def host_provider(host: str) -> str:
    """The provider a host name belongs to, or '' (loopback, proxies, unknown hosts)."""
    if _BEDROCK.search(host):
        return "bedrock"
    if host.endswith(
        "aiplatform.googleapis.com"
    ):  # regions are a prefix with a dash, not a sub-domain
        return "vertex"
    if host.endswith(".snowflakecomputing.com"):
        return "snowflake"
    return next((_BY_SUFFIX[suffix] for suffix in _list_suffixes(host) if suffix in _BY_SUFFIX), "")


def telemetry_host(host: str) -> bool:
    """True if everything this host is for is telemetry (the guard knows names only, no paths)."""
    return any(suffix in _TELEMETRY for suffix in _list_suffixes(host.lower().rstrip(".")))


def loopback(host: str) -> bool:
    """True if the name or address can only be this machine."""
    if host in ("localhost", "") or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return False


def fits_host(allowed: str, host: str, port: int | None) -> bool:
    """`db.example` fits every port, `db.example:5432` that one; all names of this machine are one."""
    name, colon, number = allowed.rpartition(":")
    if not colon or not number.isdigit() or (":" in name and not name.startswith("[")):
        name, number = allowed, ""
    if number and port is not None and number != str(port):
        return False
    name = name.strip("[]")
    return name == host or (loopback(name) and loopback(host))


def _is_telemetry(host: str, path: str, method: str, content_type: str) -> bool:
    if method in ("GET", "HEAD"):
        return _HANDSHAKE.search(host + path) is not None
    if telemetry_host(host):
        return _is_sent_telemetry(host, path, method)
    if method != "POST":
        return False
    if content_type.startswith("application/x-protobuf") and (
        "trace" in path or _OTLP.search(path)
    ):
        return True
    if content_type.startswith("multipart/form-data") and path.endswith("/runs/multipart"):
        return True
    return _TELEMETRY_PATH.search(path) is not None or (
        host in _HUB and _HUB_TELEMETRY.search(path) is not None
    )


def _is_sent_telemetry(host: str, path: str, method: str) -> bool:
    """Whether what goes to a host of telemetry is telemetry."""
    if not any(suffix in _WORKED_AT for suffix in _list_suffixes(host)):
        return not _READ.search(path)
    shape = _LANGSMITH if host.endswith("smith.langchain.com") else _SENT_THERE
    return method in ("POST", "PATCH", "PUT") and shape.search(path) is not None


def _is_span_export(request: Request) -> bool:
    """Whether its JSON body is what tracers send, on a path of theirs."""
    if request.method != "POST":
        return False
    path = _split_url(request.url).path
    if not (_OTLP.search(path) or _RUNS.search(path)) or not request.header(
        "content-type"
    ).startswith(_JSON):
        return False
    plain = body.decode(request.body, request.header("content-encoding"))
    return plain is not None and _SENT.match(plain) is not None


def _is_known_to_provider(request: Request) -> bool:
    """Whether it is a call of a `Provider` on a host that it names: another package's stand in no
    list of ours.
    """
    from tape_jupyter.providers import registry  # what asks for names alone needs none of it

    known = registry.identify(request)
    return known.host_known and bool(known.wire)


def _is_langsmith_client(request: Request) -> bool:
    """Whether langsmith's client sends runs or feedback, or asks what its thread asks first,
    wherever its server is.
    """
    if not request.header("user-agent").startswith(_OF_LANGSMITH):
        return False
    path = _split_url(request.url).path
    if request.method == "GET":
        return path.endswith("/info")
    return request.method in ("POST", "PATCH") and _LANGSMITH.search(path) is not None


_JSON = "application/json"


def _is_asset(host: str, path: str, method: str) -> bool:
    if method not in ("GET", "HEAD"):
        return False
    if host in _HUB:
        return _HUB_PATH.search(path) is not None
    if _ASSET_FILE.search(path) and not host_provider(host):
        return True
    top = "/".join((host, path.split("/")[1] if "/" in path else ""))
    return top in _ASSET_HOSTS or any(suffix in _ASSET_HOSTS for suffix in _list_suffixes(host))


def _find_wire(parts: SplitResult, host: str) -> str:
    if _OLLAMA.search(parts.path) and (
        loopback(host) or _read_port(parts) == 11434 or "ollama" in host
    ):
        return "ollama"
    return next((name for name, shape in _WIRES if shape.search(parts.path)), "")


def _list_suffixes(host: str) -> list[str]:
    """`a.b.c` -> [`a.b.c`, `b.c`, `c`]."""
    labels = host.split(".")
    return [".".join(labels[i:]) for i in range(len(labels))]


@lru_cache(maxsize=64)
def _split_url(url: str) -> SplitResult:
    try:
        return urlsplit(url)
    except ValueError:
        return SplitResult("", "", "", "", "")


def _read_host(parts: SplitResult) -> str:
    return (parts.hostname or "").rstrip(".")


def _read_port(parts: SplitResult) -> int | None:
    try:
        return parts.port
    except ValueError:
        return None
