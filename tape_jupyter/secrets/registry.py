"""Keeps secrets out of cassettes. Learns values, finds them in every encoding, leaves
`<secret:NAME>`.

Nothing here reads the environment, a file or the network: values are told, and a learned value is
never given back. Two steps, because every record passes here: `suspicious` is the quick gate over a
whole record, `scrub*` the slow walk that is taken only behind it. Token shapes are not guessed at
(a detector's list missed 14 of 23 planted kinds and raised 1,026 false alarms): known values,
fields that can hold nothing else, and people's own patterns are masked.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import itertools
import json
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Any
from urllib.parse import parse_qsl, unquote, unquote_plus, urlsplit

from tape_jupyter.core.call import Headers, Request
from tape_jupyter.encoding.http import event_folding
from tape_jupyter.encoding.http.sse import lines_of_base64
from tape_jupyter.errors import TapeUsageError
from tape_jupyter.secrets import spellings
from tape_jupyter.secrets.needles import find_all

# ---- names

_VARIABLE = re.compile(
    r"(?:^|_)(?:API_?KEY|KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|PASS|PAT|CREDENTIALS(?:_JSON)?|ACCESS_KEY_ID"
    r"|BEARER_TOKEN_BEDROCK|AUTH|COOKIE)$|API_?KEY|SECRET_KEY|ACCESS_TOKEN|CLIENT_SECRET",
    re.IGNORECASE,
)
_HARMLESS_VARIABLES = frozenset({"GPG_KEY", "GOOGLE_APPLICATION_CREDENTIALS", "XDG_SESSION_COOKIE"})
_AUTH_HEADERS = frozenset(
    {
        "authorization",
        "proxy-authorization",
        "x-api-key",
        "api-key",
        "apikey",
        "x-goog-api-key",
        "xi-api-key",
    }
    | {
        "x-amz-security-token",
        "x-auth-token",
        "x-auth-key",
        "x-access-token",
        "x-functions-key",
        "helicone-auth",
    }
    | {
        "ocp-apim-subscription-key",
        "x-portkey-api-key",
        "private-token",
        "x-gitlab-token",
        "x-subscription-token",
    }
    | {"x-rapidapi-key", "x-goog-iam-authorization-token", "x-aws-ec2-metadata-token"}
)
_CREDENTIALS = _AUTH_HEADERS | {"cookie"}
_KEPT_HEADERS = frozenset(
    {
        "content-type",
        "content-encoding",
        "anthropic-version",
        "anthropic-beta",
        "openai-beta",
        "x-amz-target",
    }
    | {"soapaction", "range"}
    | {"mcp-protocol-version", "x-stainless-retry-count"}
)
_USUAL_HEADERS = frozenset({("content-type", "application/json"), ("x-stainless-retry-count", "0")})

# Fields whose text is a secret whatever it looks like, then those whose text is one only if it
# looks like one: a story may well tell a tool that the password is "mellon", and a replay without
# that word would be another story.
_ALWAYS = (
    r"(?:access|refresh|id)_token|client_secret|[sS]essionToken|[sS]ecretAccessKey"
    r"|(?:access|refresh)Token|[cC]lientSecret"
)
_IF_STRONG = r"[pP]assword|api_key"
_FIELD = rf"(?:[\w-]*[_-])?(?:{_ALWAYS}|{_IF_STRONG})"
_IS_ALWAYS = re.compile(rf"(?:[\w-]*[_-])?(?:{_ALWAYS})")
_IS_FIELD = re.compile(_FIELD)
_SECRETS = (b"client_secret", b"ecretAccessKey", b"lientSecret")
_TOKENS = (b"cess_t", b"resh_t", b"id_t", b"essionT", b"cessT", b"reshT")
"""What stands before `oken` in the names above."""
_MANY_TOKENS = 200
FIELD_NEEDLES = (
    "assword",
    "api_key",
    *(needle.decode() for needle in _SECRETS),
    *(f"{start.decode()}oken" for start in _TOKENS),
)
"""One of them stands in each name above."""
_LONG_NAMES = (80, 1000)  # characters before it that are looked at: more where all are a name's
_PART_OF_NAME = re.compile(r"[\w-]*")
_BEFORE_FIELD = re.compile(r"(?:\A|[?&#\s<]|\\{0,7}\")(?=[\w-]*\Z)")
"""What may lead up to a name whose letters the search ends in."""
_IN_JSON = re.compile(
    rf'(?P<head>"(?P<name>{_FIELD})"\s*:\s*")(?P<value>(?:[^"\\]|\\.)+)(?=")', re.DOTALL
)
# JSON in a text in JSON: quotes have backslashes, quotes inside have more of them
_IN_NESTED_JSON = re.compile(
    rf'(?P<head>(?P<q>\\{{1,7}}")(?P<name>{_FIELD})(?P=q)\s*:\s*(?P=q))(?P<value>.{{1,9999}}?)(?=(?<!\\)(?P=q))',
    re.DOTALL,
)
_IN_FORM = re.compile(rf"(?P<head>(?:^|[?&#\s])(?P<name>{_FIELD})=)(?P<value>[^&\s\"'<>\\]+)")
_IN_XML = re.compile(rf"(?P<head><(?P<name>{_FIELD})>)(?P<value>[^<]+)(?=</)")
# a part of a form's multipart body: its name, other headers of it, an empty line, its value
_IN_MULTIPART = re.compile(
    rf'(?P<head>"(?P<name>{_FIELD})"(?:;[^\r\n]*)?\r?\n(?:[\w-]+:[^\r\n]*\r?\n){{0,9}}\r?\n)'
    r"(?P<value>[^\r\n]+)(?=\r?\n--)"
)
_FIELDS = (_IN_JSON, _IN_NESTED_JSON, _IN_FORM, _IN_XML, _IN_MULTIPART)

# Query keys, likewise. Compared without case, `-` and `_`.
_QUERY = frozenset(
    {
        "accesstoken",
        "refreshtoken",
        "idtoken",
        "clientsecret",
        "apikey",
        "sig",
        "authtoken",
        "subscriptionkey",
    }
    | {
        "xamzsignature",
        "xamzsecuritytoken",
        "xamzcredential",
        "xgoogsignature",
        "xgoogcredential",
        "awsaccesskeyid",
    }
)
_QUERY_IF_STRONG = frozenset({"key", "token", "signature", "password", "secret", "auth", "jwt"})

_OBVIOUS = re.compile(
    r"(?:your|my|the|some|a)[-_ ][a-z_ -]*\d?|.*(?:changeme|change[-_]me|placeholder|dummy|not[-_]?needed"
    r"|not[-_]?required|redacted|<[^<>]*>|\$\{|\*{4}|x{6}|\.{3}).*|(?:sk-)?(?:test|fake|none|null|empty|no[-_]?key|unused|ollama|lm-studio"
    r"|secret|password|api[-_]?key|token|true|false|default|local|anonymous|bearer)[-_]?(?:key|token)?|(.)\1*|\d{1,12}",
    re.IGNORECASE | re.DOTALL,
)
_MARKER = re.compile(r"<secret:[\w.\-]+>")
_REDACTED = re.compile(r"redacted-[a-z0-9-]+-\d+")
"""What an exported session has in a secret's place (bundle/redaction.py): a field masks it as it
masked the secret.
"""
_PATH = re.compile(r"~?/(?:[A-Z]?[a-z]{2,11}/|.*\.[a-z]{1,8}$)|~$|~/|/$", re.DOTALL)
"""Of values of variables that are named like keys, those that say where one lies. A key may begin
with a slash.
"""
_FIRST = (
    "ANTHROPIC_API_KEY",
    "OPENAI_API_KEY",
    "GEMINI_API_KEY",
    "GOOGLE_API_KEY",
    "MISTRAL_API_KEY",
)


def names_a_secret(variable: str) -> bool:
    """Whether an environment variable is named like a key."""
    return _VARIABLE.search(variable) is not None and variable not in _HARMLESS_VARIABLES


def marker(name: str) -> str:
    """What stands in a cassette for the secret of this name (an environment variable, a header, a
    field).
    """
    return f"<secret:{re.sub(r'[^A-Za-z0-9_.-]', '_', name) or 'unnamed'}>"


def secret_digest(value: str) -> str:
    """What a value is known by among those who have it."""
    return hashlib.sha256(value.encode("utf-8", "surrogatepass")).hexdigest()


def plainly_none(value: str) -> bool:
    """Whether a text that stands in a secret's place is an example, a placeholder or a marker."""
    return _OBVIOUS.fullmatch(value) is not None or _MARKER.search(value) is not None


_PREFIXES = (
    ("ANTHROPIC", "sk-ant-api03-"),
    ("OPENROUTER", "sk-or-v1-"),
    ("OPENAI", "sk-proj-"),
    ("GEMINI", "AIzaSy"),
    ("GOOGLE", "AIzaSy"),
    ("GROQ", "gsk_"),
    ("HF_", "hf_"),
    ("HUGGINGFACE", "hf_"),
    ("XAI", "xai-"),
    ("PERPLEXITY", "pplx-"),
    ("VOYAGE", "pa-"),
    ("TAVILY", "tvly-"),
    ("GITHUB", "ghp_"),
    ("LANGSMITH", "lsv2_pt_"),
    ("DEEPSEEK", "sk-"),
)


@lru_cache(maxsize=64)
def placeholder(name: str) -> str:
    """A value that SDKs accept where there is no key: the provider's prefix (by variable name),
    then a digest of it.

    The same for the same name, always. Google's keys have 39 characters, AWS ids `AKIA` + 16, AWS
    secrets 40.
    """
    digest = hashlib.sha256(f"tape-jupyter placeholder {name}".encode()).digest()
    letters = base64.b32encode(digest).decode().rstrip("=")
    if name.endswith("SECRET_ACCESS_KEY"):
        return (letters.lower() + letters)[:40]
    if name.endswith("ACCESS_KEY_ID"):
        return "AKIA" + letters[:16]
    prefix = next((prefix for start, prefix in _PREFIXES if start in name.upper()), "tape-")
    return (prefix + letters)[: 39 if prefix == "AIzaSy" else None]


class Secrets:
    """The secrets of one deck. Learning and scrubbing may happen in any thread.

    A value learned under two names keeps the better one: a person's own, then an environment
    variable's, then a header's, then a field's. So a real key and the placeholder of a replay leave
    the same marker.
    """

    def __init__(self) -> None:
        self._lock = (
            threading.RLock()
        )  # a capture may be closed by the collector, while this thread is in here
        self._known: dict[str, tuple[int, str]] = {}  # value -> rank (0 best), name
        self._seen: set[str] = (
            set()
        )  # header values and URLs looked at: most requests carry nothing new
        self._finder: spellings.Finder | None = None  # compiled again after something was learned
        self._patterns: tuple[tuple[re.Pattern[str], str], ...] = ()
        self._clean_texts: tuple[Any, Any, set[str]] = (None, None, set())
        """Short texts in which nothing of these was found."""
        self._clean_url: tuple[str, object, object] = ("", None, None)
        """The plain URL that was looked at last, and what was looked for in it: one call asks
        several times.
        """
        self._learned = 1
        self._stand_ins: dict[str, str] = {}  # value -> what it stands for, as people are told
        self._stand_in_finder = spellings.finder({})

    @property
    def version(self) -> int:
        """Another number after something was learned; 0 while people's patterns are to be looked
        for, which may find in one spelling of a text what they do not find in another.
        """
        return 0 if self._patterns else self._learned

    @property
    def learned(self) -> int:
        """Another number after something was learned."""
        return self._learned

    @property
    def names(self) -> tuple[str, ...]:
        """The names of what is held back, never the values."""
        return tuple(
            sorted(
                {name for _, name in self._known.values()} | {name for _, name in self._patterns}
            )
        )

    # -- learning

    def learn(self, name: str, value: str, *, explicit: bool = True) -> bool:
        """Hold `value` back from now on, as `<secret:NAME>`; False if it is too short, or plainly
        no secret.

        `explicit`: a person named it, then 3 characters are enough (under 8, whole words only are
        masked).
        """
        return self._learn_value(
            0, name, value, least=3 if explicit else spellings.SHORT, obvious=explicit
        )

    # -- what stands in for a key

    def create_placeholder(self, name: str, label: str = "") -> str:
        """A placeholder for the key of this name, which from now on must not go out. `label`: what
        people call it.
        """
        value = placeholder(name)
        self.learn(name, value)
        with self._lock:
            if value not in self._stand_ins:
                self._stand_ins = {**self._stand_ins, value: label or name}
                self._stand_in_finder = spellings.finder(self._stand_ins)
        return value

    @property
    def any_stand_in(self) -> bool:
        """Whether anything stands in for a key in this session."""
        return bool(self._stand_ins)

    def is_placeholder(self, value: str) -> bool:
        """Whether this is a placeholder that was given here."""
        return value in self._stand_ins

    def stood_for(self, *parts: str | bytes) -> str:
        """What of the person's own a text or a request lacks, as it carries a placeholder for it in
        whatever spelling; "" where it carries none.
        """
        for part in parts if self._stand_ins else ():
            data = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
            if self._stand_in_finder.hits(data):
                text = part if isinstance(part, str) else part.decode("latin-1")
                for _, _, which in self._stand_in_finder.find_spans(text):
                    return tuple(self._stand_in_finder.values.values())[which]
        return ""

    def learn_environment(self, environ: Mapping[str, str]) -> None:
        """The values of variables named like keys, passwords inside URLs, secret fields of JSON
        credentials.
        """
        for name in sorted(environ, key=lambda n: (n not in _FIRST, n)):
            value = environ[name]
            if "://" in value:
                self._learn_value(1, name, _find_url_password(value))
            if names_a_secret(name) and not _PATH.match(value):
                self._learn_value(1, name, value, obvious=value == placeholder(name))
                self._learn_parts(name, value)

    def learn_request(self, request: Request) -> None:
        """The credentials this request carries: auth headers, cookies, query keys, the URL's user
        part.
        """
        carried = [request.named[name] for name in _CREDENTIALS.intersection(request.named)]
        if not self._seen.issuperset(carried) or len(request.named) < len(request.headers):
            for key, value in request.headers:
                name = key.lower()
                if name in _CREDENTIALS and value not in self._seen:
                    self._learn_header(name, value)
                    self._seen.add(value)
        if ("?" in request.url or "@" in request.url) and request.url not in self._seen:
            self._learn_url(request.url)

    def learn_cookies(self, headers: Headers, body: Callable[[], bytes]) -> None:
        """The cookies that a reply sets and also says in its body: others are learned when the
        program sends them.
        """
        pairs = [value.partition(";")[0] for key, value in headers if key.lower() == "set-cookie"]
        if strong := [value for pair in pairs for value in _spell_cookie(pair)]:
            text = body()
            for value in strong:
                if value.encode() in text:
                    self._learn_value(3, "cookie", value)

    def pattern(self, regex: str, name: str) -> None:
        """Hold back whatever `regex` finds in any text, as `<secret:NAME>`. Raises TapeUsageError
        if it is no good.
        """
        try:
            compiled = re.compile(regex)
        except re.error as error:
            raise TapeUsageError(f"redact={regex}: not a regular expression ({error})") from error
        if compiled.search(""):
            raise TapeUsageError(
                f"redact={regex}: it matches the empty text, so it would mask everything"
            )
        with self._lock:
            self._patterns += ((compiled, name),)

    def _learn_value(
        self,
        rank: int,
        name: str,
        value: str,
        *,
        least: int = spellings.SHORT,
        obvious: bool = False,
    ) -> bool:
        value = value.strip()
        if (
            len(value) < least
            or (not obvious and _OBVIOUS.fullmatch(value))
            or _MARKER.fullmatch(value)
        ):
            return False
        with self._lock:
            if value not in self._known or rank < self._known[value][0]:
                self._known[value] = (rank, name)
                self._finder = None
                self._learned += 1
        return True

    def _get_finder(self) -> spellings.Finder:
        finder = self._finder
        if finder is None:
            with self._lock:
                values = sorted(self._known, key=len, reverse=True)
                finder = self._finder = spellings.finder(
                    {value: self._build_mark(self._known[value][1]) for value in values}
                )
        return finder

    def _build_mark(self, name: str) -> str:
        """What stands for the secret of this name."""
        return marker(name)

    def _learn_parts(self, name: str, value: str) -> None:
        """A credentials file in a variable: its secret fields; a key in several lines: each line."""
        if value.lstrip().startswith("{"):
            for field, part in _parse_text_fields(value):
                if _IS_FIELD.fullmatch(field) or field == "private_key":
                    self._learn_value(1, name, part)
                    self._learn_parts(name, part)
        elif "\n" in value:
            for line in value.splitlines():
                if len(line) >= 24 and not line.startswith("-----"):
                    self._learn_value(1, name, line)

    def _learn_header(self, name: str, value: str) -> None:
        if name == "cookie":
            for part in (each for pair in value.split(";") for each in _spell_cookie(pair)):
                self._learn_value(3, name, part)
            return
        scheme, _, rest = value.strip().partition(" ")
        if scheme.upper().startswith(
            "AWS4-"
        ):  # the key's id and a signature that is good for this request only
            return
        if scheme.lower() == "basic":
            pair = _decode_base64_text(rest)
            self._learn_value(2, name, pair)
            self._learn_value(2, name, pair.partition(":")[2])
        self._learn_value(2, name, rest or scheme)

    def _learn_url(self, url: str) -> None:
        self._learn_value(3, "url-password", _find_url_password(url))
        for key, value in parse_qsl(urlsplit(url).query):
            if _is_secret_query(key, value):
                self._learn_value(3, key, value)
        self._seen.add(url)

    def learn_all(self, known: Iterable[tuple[str, int, str]]) -> None:
        """What another one knows (`list_values`)."""
        for value, rank, name in known:
            self._learn_value(rank, name, value, least=1, obvious=True)

    def list_values(self) -> tuple[tuple[str, int, str], ...]:
        """Every known value with its rank and name: for `learn_all` alone, never to be shown."""
        with self._lock:
            return tuple((value, rank, name) for value, (rank, name) in self._known.items())

    def carried(self) -> dict[str, str]:
        """What this session's own requests and variables showed: sha256 of each value -> its name.
        Whoever has a value finds by it what recordings call it; nobody learns one.
        """
        with self._lock:
            return {
                secret_digest(value): name
                for value, (_, name) in self._known.items()
                if value != placeholder(name)
            }

    def credential(self, value: str) -> str:
        """The marker of a value that a person, a variable or a header named; "" for any other, and
        for a pattern's.
        """
        rank, name = self._known.get(value.strip(), (3, ""))
        return self._build_mark(name) if rank < 3 else ""

    def masks_query(self, key: str, value: str) -> bool:
        """Whether a query value is masked for its key."""
        return not _MARKER.search(value) and _is_secret_query(key, value)

    def is_login_field(self, name: Any) -> bool:
        """Whether a field of that name holds who is logged in (an OAuth token), which varies by
        run.
        """
        return isinstance(name, str) and _IS_ALWAYS.fullmatch(name) is not None

    @property
    def patterns(self) -> tuple[tuple[str, str], ...]:
        """People's own patterns: regular expression and name."""
        return tuple((pattern.pattern, name) for pattern, name in self._patterns)

    # -- scrubbing

    def find_matches(
        self, text: str, field_places: Iterable[int] | None = None
    ) -> Iterator[tuple[int, int, str, bool]]:
        """What `scrub` would mask: start, end and name of each, and whether only the field's name
        says so. `field_places`: where names of fields end (find_field_name), where that is at hand.
        """
        data = text.encode("utf-8", "surrogatepass")
        finder = self._get_finder()
        if finder.hits(data):
            names = tuple(self._known[value][1] for value in finder.values)
            yield from (
                (start, end, names[which], False) for start, end, which in finder.find_spans(text)
            )
        for pattern, name in self._patterns:
            hits = (each for each in pattern.finditer(text) if not _MARKER.fullmatch(each[0]))
            yield from ((*each.span(), name, False) for each in hits)
        if field_places is None and _may_have_masked_field(data):
            field_places = _find_field_places(text)
        if field_places:
            starts = _find_field_starts(text, field_places)
            for fields in _FIELDS:
                named = (
                    each
                    for each in _find_fields(fields, text, starts)
                    if _is_masked_field(each["name"], unquote(each["value"]))
                )
                yield from ((*each.span("value"), each["name"], True) for each in named)

    def suspicious(self, text: str | bytes) -> bool:
        """The quick gate over a whole record (90 us for 20 KB): False means that a scrub would
        change nothing.
        """
        data = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
        return _may_have_masked_field(data) or self.suspicious_values(text, data)

    def suspicious_values(self, text: str | bytes, data: bytes) -> bool:
        """`suspicious` of known values and people's own patterns only; `data`: the text in UTF-8."""
        if self._get_finder().hits(data):
            return True
        if _BLOCK_OF_BASE64 in data and any(map(self.suspicious, _decode_base64_blocks(data))):
            return True
        if not self._patterns:
            return False
        plain = text if isinstance(text, str) else text.decode("utf-8", "replace")
        return any(pattern.search(plain) for pattern, _ in self._patterns)

    @property
    def needles(self) -> frozenset[str] | None:
        """One of them stands in each text of which `suspicious_values` is true; None where that is no matter
        of needles: while people's own patterns are looked for, or values of hardly a letter.
        """
        finder = self._get_finder()
        if self._patterns or finder.odd is not None:
            return None
        return finder.needles | {_BLOCK_OF_BASE64.decode()}

    def suspicious_after(self, data: bytes, start: int) -> bool:
        """`suspicious` of bytes of which the first `start` were found clean at this `version`, and
        hold no `base64: `.
        """
        return self.suspicious(data[max(0, start - self._get_finder().reach) :])

    def scrub(self, text: str) -> tuple[str, bool]:
        """The text with every secret replaced by its marker, and whether that changed anything."""
        data = text.encode("utf-8", "surrogatepass")
        finder = self._get_finder()
        clean = finder.replace(text) if finder.hits(data) else text
        for pattern, name in self._patterns:
            clean = pattern.sub(marker(name), clean)
        if _may_have_masked_field(data):
            clean = _mask_fields(clean)
        return clean, clean != text

    def scrub_structure(self, value: Any) -> tuple[Any, bool]:
        """Dicts, lists, tuples and texts walked; the very same object comes back where nothing was
        found.

        Fields are masked by name only where they hold a text: counts of tokens and schemas of
        properties stay. Bytes that stand as base64 stay so, scrubbed inside. Keys that become equal
        are numbered.
        """
        if isinstance(value, str):
            return self._scrub_text(value)
        if isinstance(value, Mapping):
            return self._scrub_mapping(value)
        if isinstance(value, (list, tuple)):
            done = [self.scrub_structure(item) for item in value]
            changed = any(flag for _, flag in done)
            return (type(value)(item for item, _ in done), True) if changed else (value, False)
        return value, False

    def _scrub_text(self, text: str) -> tuple[str, bool]:
        """`scrub`; of short texts, which stand in a structure again and again, each is looked at once."""
        if len(text) > _SHORT:
            return self.scrub(text)
        finder, patterns, clean_texts = self._clean_texts
        if finder is not self._get_finder() or patterns is not self._patterns:
            clean_texts = set()
            self._clean_texts = self._get_finder(), self._patterns, clean_texts
        if text in clean_texts:
            return text, False
        clean, changed = self.scrub(text)
        if not changed and len(clean_texts) < _MOST_SHORT:
            clean_texts.add(text)
        return clean, changed

    def _scrub_mapping(self, value: Mapping[Any, Any]) -> tuple[Any, bool]:
        value, changed = self._scrub_column(value) if "at" in value else (value, False)
        clean: dict[Any, Any] = {}
        for key, item in value.items():
            kept, key_changed = self._scrub_text(key) if isinstance(key, str) else (key, False)
            kept = _number_key(kept, clean) if key_changed else kept
            clean[kept], item_changed = self._scrub_field(key, item)
            changed = changed or item_changed or key_changed
        return (clean, True) if changed else (value, False)

    def _scrub_column(self, column: Mapping[Any, Any]) -> tuple[Mapping[Any, Any], bool]:
        """A leaf of a folded stream: each piece's text by the name of its field, which stands in
        `at`.
        """
        texts = event_folding.column_texts(dict(column))
        done = [self._scrub_field(column["at"].rpartition(".")[2], text) for text in texts]
        if not any(
            changed for _, changed in done
        ):  # one that is cut in pieces is found in the joined text
            return column, False
        return event_folding.with_texts(dict(column), [text for text, _ in done]), True

    def _scrub_field(self, key: Any, item: Any) -> tuple[Any, bool]:
        if isinstance(item, str) and isinstance(key, str):
            if key in _BINARY:
                return self._scrub_base64(item)
            if _is_masked_field(key, item):
                known = self._known.get(item.strip())
                return self._build_mark(known[1]) if known else marker(key), True
        clean, changed = self.scrub_structure(item)
        if (
            key == "client_secret"
            and isinstance(clean, dict)
            and _is_masked_field(key, str(clean.get("value", "")))
        ):
            return {
                **clean,
                "value": marker(key),
            }, True  # OpenAI's realtime sessions: {value: ek_..., expires_at: 1}
        return clean, changed

    def _scrub_base64(self, item: str) -> tuple[str, bool]:
        try:
            inside = base64.b64decode(item.replace("\n", ""), validate=True).decode("latin-1")
        except ValueError:
            return self.scrub(item)
        clean, changed = self.scrub(inside)
        if not changed:
            return item, False
        lines = lines_of_base64(clean.encode("latin-1", "replace"))
        return lines if "\n" in item else lines.replace("\n", ""), True

    def scrub_url(self, url: str) -> str:
        """The URL with its user part and the values of secret query keys replaced by markers."""
        sought = (url, self._get_finder(), self._patterns)
        if self._clean_url == sought:
            return url
        if "?" not in url and "@" not in url and not self.suspicious(url):
            self._clean_url = sought
            return url
        url = self.scrub(url)[0]
        url = re.sub(
            r"^([a-zA-Z][\w+.-]*://)(?!<secret:[\w.-]+>@)[^/?#@]*@",
            rf"\1{marker('url-user')}@",
            url,
        )
        return re.sub(r"([?&;])([^=&;#?]+)=([^&;#]+)", _mask_query, url)

    def safe_request_headers(self, headers: Headers) -> Headers:
        """The request headers that say what was asked, never who asks, scrubbed; nor does what is
        usual land.
        """
        kept = ((key, value) for key, value in headers if key.lower() in _KEPT_HEADERS)
        return tuple(
            (key, self.scrub(value)[0])
            for key, value in kept
            if (key.lower(), value) not in _USUAL_HEADERS
        )

    def scrub_reply_headers(self, headers: Headers) -> tuple[Headers, bool]:
        """All headers of a reply, with the values of cookies and of known secrets masked, and
        whether any was.
        """
        known = self.suspicious("\n".join(value for _, value in headers))
        clean = tuple(
            (key, self._scrub_reply_header(key.lower(), value, known)) for key, value in headers
        )
        return (clean, True) if clean != headers else (headers, False)

    def _scrub_reply_header(self, name: str, value: str, known: bool) -> str:
        if name == "set-cookie":
            return re.sub(r"^([^=;]+)=[^;]+", rf"\1={marker('cookie')}", value)
        if name in _AUTH_HEADERS:
            return marker(name)
        if name in ("location", "content-location", "link"):
            return self.scrub_url(value)
        return self.scrub(value)[0] if known else value


_SHORT, _MOST_SHORT = 40, 50_000
"""Characters of a text, and how many such, that are remembered to hold no secret."""


def _may_have_masked_field(data: bytes) -> bool:
    """Whether a text may hold a field that is masked by its name.

    Four searches for most texts; each `max_tokens` is looked at, since requests to models are full
    of them.
    """
    if b"assword" in data or b"api_key" in data:
        return True
    if b"ecret" in data and any(needle in data for needle in _SECRETS):
        return True
    at = data.find(b"oken")
    for _ in range(_MANY_TOKENS):
        if at < 0:
            return False
        if data.endswith(_TOKENS, 0, at):
            return True
        at = data.find(b"oken", at + 4)
    return any(start + b"oken" in data for start in _TOKENS)


def _find_field_places(text: str) -> list[int]:
    return sorted(at for needle in FIELD_NEEDLES for at in find_all(text, needle))


def find_field_name(text: str, start: int, end: int) -> int | None:
    """Where a masked field's name stands that ends at `end`, if one may: `start` is near before it."""
    places = _find_field_places(text[start:end])
    return start + places[-1] if places else None


def _find_field_starts(text: str, places: Iterable[int]) -> list[range]:
    """Where a field may begin, for each place of a name: what leads up to the name."""
    before = (_find_before_name(text, at) for at in places)
    return [range(each.start(), max(each.end(), 1)) for each in before if each is not None]


def _find_fields(
    fields: re.Pattern[str], text: str, starts: Iterable[range]
) -> Iterator[re.Match[str]]:
    """What `fields.finditer` finds, tried only where a field may begin."""
    end = 0
    for near in starts:
        for start in near:
            match = fields.match(text, start) if start >= end else None
            if match is not None:
                end = match.end()
                yield match
                break


def _find_before_name(text: str, at: int) -> re.Match[str] | None:
    """What leads up to the name that stands at a place."""
    for count in _LONG_NAMES:
        start = max(0, at - count)
        before = _BEFORE_FIELD.search(text, start, at)
        if before is not None or not _PART_OF_NAME.fullmatch(text, start, at):
            return before
    return None


_BINARY = frozenset({"base64", "got", "sent"})
"""Keys of a record whose text may be bytes in base64."""
_BLOCK_OF_BASE64 = b"base64: "
_IN_RECORD = re.compile(rb'\bbase64: (?:\|-?\r?\n)?((?: *"?[A-Za-z0-9+/]{4,}={0,2}"?\r?\n)+)')


def _decode_base64_blocks(record: bytes) -> Iterator[bytes]:
    """What stands in a record as base64, as the bytes that it is: there in lines that cut a secret
    in two.
    """
    for match in _IN_RECORD.finditer(record):
        with suppress(ValueError):
            yield base64.b64decode(b"".join(match[1].replace(b'"', b"").split()), validate=True)


def _number_key(key: str, taken: Mapping[Any, Any]) -> str:
    """The key, or where it is taken with the first number that makes it another:
    `<secret:email>-2`.
    """
    names = itertools.chain((key,), (f"{key}-{number}" for number in itertools.count(2)))
    return next(name for name in names if name not in taken)


def _spell_cookie(pair: str) -> set[str]:
    """The value of a cookie as it is sent, and as programs read it (without quotes and `%2F`); none
    of one that does not look like a secret.
    """
    value = pair.partition("=")[2].strip()
    plain = value.strip('"')
    known = {value, plain, unquote(plain), unquote_plus(plain)}
    return known if _is_strong_value(value) else set()


def _is_strong_value(value: str) -> bool:
    """Looks made by a machine or chosen to be hard: 8 characters or more, with digits and letters,
    no spaces.
    """
    kinds = (r"\d", r"[A-Za-z]", r"^\S{8,}$")
    obvious = _OBVIOUS.fullmatch(value) and not _REDACTED.fullmatch(value)
    return all(re.search(kind, value) for kind in kinds) and not obvious


def _is_masked_field(name: str, value: str) -> bool:
    if not _IS_FIELD.fullmatch(name) or not value or _MARKER.search(value):
        return False
    return _IS_ALWAYS.fullmatch(name) is not None or _is_strong_value(value)


def _mask_field(match: re.Match[str]) -> str:
    if _is_masked_field(match["name"], unquote(match["value"])):
        return match["head"] + marker(match["name"])
    return match[0]


def _mask_fields(text: str) -> str:
    """The text with a marker for each value of a field that its name makes a secret."""
    starts = _find_field_starts(text, _find_field_places(text))
    for fields in _FIELDS:
        out, last = [], 0
        for match in _find_fields(fields, text, starts):
            out += [text[last : match.start()], _mask_field(match)]
            last = match.end()
        if last:
            text = "".join([*out, text[last:]])
            starts = _find_field_starts(text, _find_field_places(text))
    return text


def _is_secret_query(key: str, value: str) -> bool:
    plain = key.lower().replace("_", "").replace("-", "")
    return plain in _QUERY or (plain in _QUERY_IF_STRONG and _is_strong_value(value))


def is_login_query(key: str) -> bool:
    """Whether a query key of that name is a credential, whatever its value: who asks, not what."""
    return key.lower().replace("_", "").replace("-", "") in _QUERY


def _mask_query(match: re.Match[str]) -> str:
    start, key, value = match.groups()
    if _MARKER.search(value) or not _is_secret_query(unquote(key), unquote(value)):
        return match[0]
    return f"{start}{key}={marker(unquote(key))}"


def _find_url_password(url: str) -> str:
    """The password in `scheme://user:password@host`, or ''."""
    match = re.match(r"[a-zA-Z][\w+.-]*://[^/?#@:]*:([^/?#@]+)@", url)
    return unquote(match[1]) if match else ""


def _decode_base64_text(text: str) -> str:
    try:
        return base64.b64decode(text, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return ""


def _parse_text_fields(text: str) -> Iterable[tuple[str, str]]:
    try:
        loaded = json.loads(text)
    except (ValueError, RecursionError):
        return []
    if not isinstance(loaded, dict):
        return []
    return [(k, v) for k, v in loaded.items() if isinstance(v, str)]
