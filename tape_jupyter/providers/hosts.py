"""What the name of a host and the path of a request tell without a provider: telemetry, regions,
this machine. Pure: no network, no environment.

Telemetry is what a program sends and forgets: what it reads, from whatever host, is taped. Names
and paths were taken from the vendors' API references and SDK sources.
"""

from __future__ import annotations

import ipaddress
import re
from functools import lru_cache
from urllib.parse import SplitResult, urlsplit

from tape_jupyter.core.call import Request
from tape_jupyter.encoding.http import body

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
HUB = frozenset({"huggingface.co", "hf.co", "hf-mirror.com"})
_HUB_TELEMETRY = re.compile(r"^/api/telemetry(?:/|$)")

# Paths that may be anybody's own API: there the content type and the body must be those of a
# tracer, too.
# opentelemetry.io/docs/specs/otlp
_OTLP = re.compile(r"/v1(?:development)?/(?:traces|metrics|logs|profiles)$")
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

_REGIONS = (
    re.compile(r"^([a-z]+-[a-z]+\d+)-aiplatform\."),  # us-central1-aiplatform.googleapis.com
    re.compile(r"\.([a-z]{2}(?:-[a-z]+)+-\d)\.(?:amazonaws\.com|api\.aws)"),
    re.compile(r"^(eu|us|au|in|jp|sg)\.api\."),  # eu.api.openai.com
    re.compile(r"^([a-z0-9]+)\.api\.cognitive\.microsoft\.com$"),
)
_LOCATION = re.compile(r"/locations/([a-z0-9-]+)/")


def telemetry_answer(request: Request) -> tuple[int, bytes]:
    """Status and body with which an endpoint of telemetry takes what is sent, by its documentation."""
    parts = split_url(request.url)
    path, suffixes = parts.path.rstrip("/"), list_suffixes(read_host(parts))
    if request.method != "GET" and _LANGSMITH.search(path) and "otel" not in path:
        return 202, b"{}"
    if path.endswith("/api/public/ingestion"):
        return 207, b'{"successes": [], "errors": []}'
    if "posthog.com" in suffixes:
        return 200, b'{"status": 1}'
    return 200, b"{}"


@lru_cache(maxsize=4096)
def region(url: str) -> str:
    """The region a URL names ('us-east-1', 'europe-west4', 'eu'), or ''."""
    parts = split_url(url)
    host = read_host(parts)
    for shape in _REGIONS:
        if match := shape.search(host):
            return match[1]
    match = _LOCATION.search(parts.path)
    return match[1] if match else ""


def telemetry_host(host: str) -> bool:
    """True if everything this host is for is telemetry (the guard knows names only, no paths)."""
    return any(suffix in _TELEMETRY for suffix in list_suffixes(host.lower().rstrip(".")))


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


def is_telemetry(host: str, path: str, method: str, content_type: str) -> bool:
    """Whether a request is telemetry by its address, method (upper case) and content type."""
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
        host in HUB and _HUB_TELEMETRY.search(path) is not None
    )


def _is_sent_telemetry(host: str, path: str, method: str) -> bool:
    """Whether what goes to a host of telemetry is telemetry."""
    if not any(suffix in _WORKED_AT for suffix in list_suffixes(host)):
        return not _READ.search(path)
    shape = _LANGSMITH if host.endswith("smith.langchain.com") else _SENT_THERE
    return method in ("POST", "PATCH", "PUT") and shape.search(path) is not None


def is_sent_by_tracer(request: Request) -> bool:
    """Whether its body or its client says that it is telemetry, wherever it goes."""
    return _is_span_export(request) or _is_langsmith_client(request)


def _is_span_export(request: Request) -> bool:
    """Whether its JSON body is what tracers send, on a path of theirs."""
    if request.method != "POST":
        return False
    path = split_url(request.url).path
    if not (_OTLP.search(path) or _RUNS.search(path)):
        return False
    if not request.header("content-type").startswith("application/json"):
        return False
    plain = body.decode(request.body, request.header("content-encoding"))
    return plain is not None and _SENT.match(plain) is not None


def _is_langsmith_client(request: Request) -> bool:
    """Whether langsmith's client sends runs or feedback, or asks what its thread asks first,
    wherever its server is.
    """
    if not request.header("user-agent").startswith(_OF_LANGSMITH):
        return False
    path = split_url(request.url).path
    if request.method == "GET":
        return path.endswith("/info")
    return request.method in ("POST", "PATCH") and _LANGSMITH.search(path) is not None


def list_suffixes(host: str) -> list[str]:
    """`a.b.c` -> [`a.b.c`, `b.c`, `c`]."""
    labels = host.split(".")
    return [".".join(labels[i:]) for i in range(len(labels))]


@lru_cache(maxsize=64)
def split_url(url: str) -> SplitResult:
    """The parts of a URL; empty ones where it cannot be read."""
    try:
        return urlsplit(url)
    except ValueError:
        return SplitResult("", "", "", "", "")


def read_host(parts: SplitResult) -> str:
    """The host's name in small letters, without the dot of the root."""
    return (parts.hostname or "").rstrip(".")


def read_port(parts: SplitResult) -> int | None:
    """The port that stands in a URL; None without one, or where it is none."""
    try:
        return parts.port
    except ValueError:
        return None
