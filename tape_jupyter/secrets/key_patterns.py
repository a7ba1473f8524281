"""What keys look like: the closed list of kinds that are known by their form alone, whoever's they
are.

Each is as its issuer documents it: what it begins with, its letters and its length. Where an issuer
put a checksum or a readable part in (GitHub and npm, JWT, Discord) it is looked at. Examples,
placeholders and markers are none.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import unquote

from tape_jupyter.secrets.needles import Needles, encode_by_character, find_all
from tape_jupyter.secrets.nested_encodings import FILE_STARTS
from tape_jupyter.secrets.registry import placeholder, plainly_none

_EXAMPLE = re.compile(
    r"example|x{5}|\*{3}|0{8}|redacted-|<secret|1234567890|0123456789|abcdefghij|your[_-]|changeme|placeholder",
    re.IGNORECASE,
)
_STOOD_IN = frozenset(
    placeholder(f"{name}_{kind}")
    for name in (
        "ANTHROPIC",
        "OPENAI",
        "GEMINI",
        "GOOGLE",
        "GROQ",
        "MISTRAL",
        "HF",
        "GITHUB",
        "XAI",
        "AWS",
    )
    for kind in ("API_KEY", "TOKEN", "ACCESS_KEY_ID", "SECRET_ACCESS_KEY")
)
"""What replay puts where there is no key (notebook/keys.py)."""


@dataclass(frozen=True)
class Shape:
    """One kind. Where one of `needles` stands, the pattern is tried `back` characters before it;
    the group `value` is the secret. `before` is what must end where the needle does: the rest of a
    name. `loose` matches at a needle wherever the pattern may match once line ends, quotes and letters
    beyond ASCII are no longer escaped.
    """

    kind: str
    needles: tuple[str, ...]
    pattern: re.Pattern[str]
    genuine: Callable[[str], bool]
    back: int = 0
    before: re.Pattern[str] | None = None
    loose: re.Pattern[str] | None = None

    def match_at(self, text: str, at: int, size: int) -> re.Match[str] | None:
        if not self.back:
            match = self.pattern.match(text, at)
        else:
            match = self.pattern.search(text, max(0, at - self.back), at + _LONGEST)
            match = match if match and match.start() <= at else None
        return match if match and self._is_named(text, at, size) else None

    def may_match_unescaped(self, text: str, at: int, size: int) -> bool:
        """Whether the pattern may match there once the text's common escapes are taken off."""
        fits = self.loose is None or self.loose.match(text, at) is not None
        return fits and self._is_named(text, at, size)

    def _is_named(self, text: str, at: int, size: int) -> bool:
        if self.before is None:
            return True
        return self.before.search(text, max(0, at - _NAME), at + size) is not None


_LONGEST, _NAME = 1_000, 60


@dataclass(frozen=True)
class FoundSecret:
    """A secret in a text, by its kind; `value` is for masking, never to be shown."""

    kind: str
    start: int
    end: int
    value: str

    def __repr__(self) -> str:
        return f"<{self.kind} at {self.start}>"


Place = tuple[int, str]
"""Where a needle stands, and the needle."""


def find_keys(text: str, places: Iterable[Place] | None = None) -> Iterator[FoundSecret]:
    """Every secret of a known shape, shape by shape. Two shapes may name the same one. `places`: what
    find_places gives, where that is at hand.
    """
    places = list(find_places(text) if places is None else places)
    matches = _find_matches(text, places)
    for number, match in sorted(matches, key=lambda found: found[0]):
        shape, value = SHAPES[number[0]], match["value"]
        if (
            value not in _STOOD_IN
            and shape.genuine(value)
            and not _is_in_blob(text, match.start("value"))
        ):
            yield FoundSecret(shape.kind, *match.span("value"), value)
    yield from _find_discord_tokens(text, places)


def find_places(
    text: str, data: bytes | None = None, more: frozenset[str] = frozenset()
) -> Iterator[Place]:
    """Where the needles of the shapes stand, but for those behind which none of their shapes can
    follow, and where files in base64 begin (FILE_STARTS), and `more` needles. `data`: the text by character.
    """
    data = encode_by_character(text) if data is None else data
    loose = _build_loose_patterns()
    for at, needle in _build_needles(more).find_places(text, data):
        if needle not in loose or needle in more or loose[needle].match(text, at):
            yield at, needle
    for at in find_all(text, "@"):
        if (start := _find_address(text, at)) is not None:
            yield start, _ADDRESS


def _find_address(text: str, end: int) -> int | None:
    """Where the `://` stands that begins what a sign `@` ends: addresses are frequent, those with a user are
    not.
    """
    start = text.rfind("/", max(0, end - _LONGEST_USER), end) - 2
    if start < 0 or not text.startswith(_ADDRESS, start) or _NO_USER.search(text, start + 3, end):
        return None
    return start if start + 3 < end else None


def find_escaped(text: str, places: Iterable[Place]) -> Iterator[tuple[int, int, int]]:
    """Where escapes of line ends, quotes and letters beyond ASCII may keep a pattern from a match: of
    each place start, end, and how far behind it the secret may reach.
    """
    for at, needle in places:
        if needle == _DISCORD_MIDDLE and _has_sign(text, max(0, at - 40), at):
            yield at, at + len(needle), _LONGEST
        reach = _PEM_REACH if needle == "-----BEGIN" else _LONGEST
        if _has_sign(text, max(0, at - _NAME), at + reach) and any(
            SHAPES[number].may_match_unescaped(text, at, len(needle))
            for number, _ in _SHAPES_OF.get(needle, ())
        ):
            yield at, at + len(needle), reach


def _has_sign(text: str, start: int, end: int) -> bool:
    return any(text.find(sign, start, end) >= 0 for sign in "\\%&")


_PEM_REACH = 21_000


def _find_matches(
    text: str, places: Iterable[Place]
) -> Iterator[tuple[tuple[int, int], re.Match[str]]]:
    """Where a pattern matches at one of its needles: the numbers of both, and the match. None
    begins in another of the same needle.
    """
    ends: dict[tuple[int, int], int] = {}
    for at, needle in places:
        for number in _SHAPES_OF.get(needle, ()):
            if at >= ends.get(number, 0):
                match = SHAPES[number[0]].match_at(text, at, len(needle))
                if match is not None:
                    ends[number] = match.end()
                    yield number, match


def _is_in_blob(text: str, at: int) -> bool:
    """Whether more than _BLOB letters of base64 lead up to a place: random letters spell anything
    now and then.
    """
    return at > _BLOB and _BLOB_BEFORE.match(text, at - _BLOB, at) is not None


_BLOB = 200
_BLOB_BEFORE = re.compile(rf"[A-Za-z0-9+/_-]{{{_BLOB}}}")


# ---------------------------------------------------------------- what tells a key from a word


def random_like(value: str) -> bool:
    """Drawn by a machine: many different characters, and no example's."""
    return entropy(value) >= min(3.0, 0.72 * math.log2(max(2, len(value)))) and not is_example(
        value
    )


def is_example(value: str) -> bool:
    return _EXAMPLE.search(value) is not None or (len(value) < _LONG and plainly_none(value))


_LONG = (
    24  # characters: "my-" and the like begin what people write, and now and then what was drawn
)


def entropy(value: str) -> float:
    """Bits a character, of the characters' own frequencies."""
    total = len(value)
    return -sum(n / total * math.log2(n / total) for n in Counter(value).values()) if total else 0.0


def mixed(value: str) -> bool:
    """Letters and digits both, and random."""
    return (
        random_like(value) and any(c.isdigit() for c in value) and any(c.isalpha() for c in value)
    )


_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def checksum(body: str) -> str:
    """The last six characters of a GitHub or npm token: CRC-32 of the part before them, in base 62."""
    left, out = zlib.crc32(body.encode()), ""
    while left:
        left, digit = divmod(left, 62)
        out = _DIGITS[digit] + out
    return out.rjust(6, "0")


def _has_checksum(value: str) -> bool:
    """A token whose checksum holds is one whatever it looks like; older ones have none."""
    body = value.partition("_")[2]
    return checksum(body[:-6]) == body[-6:] or random_like(body)


def _is_jwt(value: str) -> bool:
    header = _decode_json_part(value.partition(".")[0])
    return isinstance(header, dict) and "alg" in header and not is_example(value.rpartition(".")[2])


def _decode_json_part(part: str) -> object:
    try:
        return json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    except (ValueError, RecursionError):
        return None


def _is_discord_token(value: str) -> bool:
    """Its first part is the bot's number, in base64."""
    head = value.partition(".")[0]
    try:
        number = base64.urlsafe_b64decode(head + "=" * (-len(head) % 4))
    except (ValueError, binascii.Error):
        return False
    return number.isdigit() and 17 <= len(number) <= 20 and random_like(value.rpartition(".")[2])


def _is_basic_auth(value: str) -> bool:
    """`user:password` in base64."""
    try:
        user, colon, password = (
            base64.b64decode(value + "=" * (-len(value) % 4)).decode().partition(":")
        )
    except (ValueError, UnicodeDecodeError):
        return False
    return bool(colon) and (user + password).isprintable() and _is_password(password or user)


_WORDS = frozenset(
    {
        "password",
        "passwd",
        "secret",
        "postgres",
        "mysql",
        "root",
        "admin",
        "user",
        "username",
        "test",
        "guest",
        "pass",
    }
    | {
        "token",
        "redis",
        "mongo",
        "rabbitmq",
        "changeme",
        "foobar",
        "hunter2",
        "pwd",
        "key",
        "my_password",
        "dbpass",
    }
)


def _is_password(value: str) -> bool:
    """Not one that stands for any: six characters at least, no word of documentation, no variable."""
    value = unquote(value)
    if len(value) < 6 or value.lower() in _WORDS or is_example(value) or len(set(value)) < 4:
        return False
    return not re.fullmatch(r"[{$\[(<].*|%[\w(]+[%)]s?|.*[}\])>]|[A-Z_]+", value)


def _is_assigned(value: str) -> bool:
    """A value that somebody gave to a name like `api_key`: strong, and no path, address or other
    name.
    """
    kinds = (any(c.isdigit() for c in value), any(c.isalpha() for c in value))
    plain = (
        all(kinds)
        and entropy(value) >= min(3.0, 0.8 * math.log2(len(value)))
        and not is_example(value)
    )
    return plain and not _CODE.match(value)


_CODE = re.compile(
    r"https?:|/|\.|[\w.]+[(\[]|os\.|env|\{|\$"  # an address, a path, a call, a variable
    # a name
    r"|[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+\Z|[a-z]+(?:_[a-z]+|_\d{1,3})+\Z|[A-Z]+(?:_[A-Z]+|_\d{1,3})+\Z"
)


def is_strong(value: str) -> bool:
    """What stands in a field named like a secret is one: eight characters or more, made by no hand,
    and no code.
    """
    return len(value) >= 8 and _is_assigned(value)


def _return_true(_value: str) -> bool:
    return True


# ---------------------------------------------------------------- the list


_B, _A, _W = r"(?<![A-Za-z0-9])", r"(?![A-Za-z0-9])", r"[A-Za-z0-9_-]"
_HEX = r"[0-9a-f]"
_PEM = r"-----BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----"
_PEM_END = r"-----END (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----"
# What follows a name that a value is given to.
_GIVEN = r"[\"'\]]{0,2}\s{0,8}(?:=>|:=|=|:)\s{0,8}(?:[rbuf]{1,2}(?=[\"']))?[\"']{0,3}"
_ESCAPED = r"[\\\s\"'\]>nrtu0-9a-f]"
"""Letters of quotes and blanks that are escaped, and of none."""
_AWS_LOOSE = rf"(?i:ecret(?:_?access)?(?:_?key)?)(?:{_ESCAPED}|[=:]){{0,99}}?[A-Za-z0-9/+]{{39}}"
_ADDRESS, _LONGEST_USER = "://", 2_501
_NO_USER = re.compile(r"[\s/@\"'<>]")
_URL_LOOSE = r"://[^\s/@\"'<>]{1,2500}@"
_URL_USER = r"://[^\s/:@\"'<>?#]{0,100}"
_NAMES = re.compile(
    r"(?i:api_?-?key|(?:secret|access|auth|private|account|subscription|signing)_?-?key|x-auth-token|private-token"
    r"|(?:client|app|api|webhook|signing|consumer|shared)_?secret|(?:access|auth|refresh|bearer|bot|api|secret)_?token"
    r"|passw(?:or)?d|passphrase|(?:db|user|_)_?pass)\Z"
)


def _build_shape(
    kind: str, needles: str, pattern: str, genuine: Callable[[str], bool] = random_like, back: int = 0,
    before: re.Pattern[str] | None = None, loose: str = "",
) -> Shape:  # fmt: skip
    return Shape(
        kind, tuple(needles.split()), re.compile(pattern), genuine, back, before, re.compile(loose) if loose else None
    )  # fmt: skip


_FOLLOWED: dict[str, frozenset[int]] = {}
"""Of needles the bytes of which one follows."""
_FIRST_LETTER = re.compile(r"\[(?:\\.|[^\]\\])+\]|\\?.")


def _build_token(
    kind: str, starts: str, body: str, genuine: Callable[[str], bool] = random_like, edge: str = ""
) -> Shape:
    """A token by what it begins with. With `edge` (of its issuer's letters) no such letter may
    stand beside it: its beginning is short enough to stand in a word.
    """
    any_start = "|".join(map(re.escape, starts.split()))
    before, after = (f"(?<!{edge})", f"(?!{edge})") if edge else ("", "")
    pattern = f"{before}(?P<value>(?:{any_start}){body}){after}"
    begins = re.compile(_FIRST_LETTER.findall(body)[0])
    for start in starts.split():
        letters = frozenset(n for n in range(256) if begins.fullmatch(chr(n)))
        _FOLLOWED[start] = _FOLLOWED.get(start, frozenset()) | letters
    return _build_shape(kind, starts, pattern, genuine, loose=f"(?:{any_start}){body}")


_EDGE = "[A-Za-z0-9]"
SHAPES: tuple[Shape, ...] = (
    _build_token("anthropic-key", "sk-ant-", rf"[a-z]{{2,8}}\d{{2}}-{_W}{{20,}}"),
    _build_token("openai-key", "sk-proj- sk-svcacct- sk-admin- sk-None-", rf"{_W}{{20,}}", mixed),
    _build_token("openai-key", "sk-", r"[A-Za-z0-9]{32,64}", mixed, _EDGE),
    _build_token("openrouter-key", "sk-or-v1-", f"{_HEX}{{64}}"),
    _build_token("langfuse-key", "sk-lf-", f"{_HEX}{{8}}(?:-{_HEX}{{4}}){{3}}-{_HEX}{{12}}"),
    _build_token("google-api-key", "AIza", f"{_W}{{35}}"),
    _build_token("google-oauth-secret", "GOCSPX-", f"{_W}{{28}}"),
    _build_token("google-oauth-token", "ya29. 1//0", f"{_W}{{30,}}", mixed, _EDGE),
    _build_token("aws-access-key-id", "AKIA ASIA ABIA ACCA", "[A-Z2-7]{16}"),
    _build_shape(
        "aws-secret-access-key", "ecret ECRET",
        r"(?i:ecret(?:_?access)?(?:_?key)?)[\"'\]]{0,2}\s{0,8}(?:=>|:=|=|:)?\s{0,8}[\"']?"
        r"(?P<value>[A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])", mixed, loose=_AWS_LOOSE,
    ),
    _build_shape(  # in a path: the slash after it is none of its own
        "aws-secret-access-key", "ecret ECRET",
        r"(?i:ecret(?:_?access)?_?key)[\"'\]]{0,2}\s{0,8}(?:=>|:=|=|:)\s{0,8}[\"']?(?P<value>[A-Za-z0-9/+]{40})(?=/)",
        mixed, loose=_AWS_LOOSE,
    ),
    _build_shape(
        "aws-secret-access-key", "AKIA ASIA",
        r"[A-Z2-7]{20}[^A-Za-z0-9/+][^\0]{0,60}?(?<![A-Za-z0-9/+])(?P<value>[A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])",
        lambda value: mixed(value) and not re.fullmatch("[0-9a-f]+", value),
    ),
    _build_token("github-token", "ghp_ gho_ ghu_ ghs_ ghr_", "[A-Za-z0-9]{36,251}", _has_checksum),
    _build_token("github-fine-grained-token", "github_pat_", "[A-Za-z0-9]{22}_[A-Za-z0-9]{59}"),
    _build_token(
        "gitlab-token", "glpat- gldt- glrt- glptt- glcbt- glft- glsoat- glagent- glimt- gloas-", r"[\w.-]{20,64}"
    ),
    _build_token(
        "slack-token", "xoxa- xoxb- xoxc- xoxe- xoxo- xoxp- xoxr- xoxs- xoxe. xoxd-", r"[A-Za-z0-9.%-]{20,}", mixed
    ),
    _build_token("slack-token", "xapp-", r"\d-[A-Z0-9]+-\d+-[A-Za-z0-9]{20,}"),
    _build_shape(
        "slack-webhook", "hooks.slack",
        r"hooks\.slack(?:-gov)?\.com/(?:services|workflows|triggers)/"
        r"(?P<value>[A-Z0-9]{6,16}/[A-Z0-9]{6,20}/[A-Za-z0-9/]{16,64})",
    ),
    _build_token("stripe-key", "sk_live_ rk_live_", "[A-Za-z0-9]{16,}"),
    _build_token("stripe-webhook-secret", "whsec_", r"[A-Za-z0-9+/]{32,}={0,2}"),
    _build_token("twilio-key", "SK", f"{_HEX}{{32}}", mixed, _EDGE),
    _build_shape(
        "twilio-auth-token", "wilio WILIO",
        rf"[^\n]{{5,45}}?(?<!{_HEX})(?P<value>{_HEX}{{32}})(?!{_HEX})", mixed,
    ),
    _build_token("sendgrid-key", "SG.", rf"{_W}{{22}}\.{_W}{{43}}"),
    _build_token("mailgun-key", "key-", f"{_HEX}{{32}}", mixed, _EDGE),
    _build_token("huggingface-token", "hf_ api_org_", "[A-Za-z0-9]{30,40}", random_like, _EDGE),
    _build_token("npm-token", "npm_", "[A-Za-z0-9]{36}", _has_checksum),
    _build_token("pypi-token", "pypi-AgE", f"{_W}{{50,}}"),
    _build_token("docker-token", "dckr_pat_ dckr_oat_", f"{_W}{{20,}}"),
    _build_shape("jwt", "eyJ", rf"(?P<value>eyJ{_W}{{8,}}\.eyJ{_W}{{8,}}\.{_W}{{16,}})", _is_jwt,
                 loose=rf"eyJ{_W}{{8,}}\.eyJ"),
    _build_shape(
        "private-key", "-----BEGIN",
        rf"(?P<value>{_PEM}(?:(?!-----)[\s\S]){{40,20000}}?{_PEM_END})", _return_true,
    ),
    _build_shape(
        "private-key", "-----BEGIN",
        rf"{_PEM}(?:\s|\\+[rn]){{0,8}}(?P<value>[A-Za-z0-9+/]{{60,}}(?:(?:\s|\\+[rn])+[A-Za-z0-9+/=]{{20,}})*)",
    ),
    _build_token("age-key", "AGE-SECRET-KEY-1", "[A-Z0-9]{58}"),
    _build_shape("azure-storage-key", "AccountKey AccessKey", r"\w{9,10}\s?=\s?(?P<value>[A-Za-z0-9+/]{43,86}={0,2})"),
    _build_shape("azure-signature", "sig=", r"sig=(?P<value>[A-Za-z0-9/+%]{43,80}(?:%3[Dd]|=))", mixed),
    _build_shape(
        "azure-client-secret", "Q~",
        r"(?<![\w~.-])(?P<value>[\w~.-]{3}\dQ~[\w~.-]{31,34})(?![\w~.-])", back=4,
    ),
    _build_shape(
        "azure-key", "JQQJ99",
        rf"{_B}(?P<value>[A-Za-z0-9]{{40,60}}JQQJ99[A-Za-z0-9]{{20,30}}){_A}", mixed, 60,
    ),
    _build_shape("database-url", "://", _URL_USER + r":(?P<value>[^\s/@\"'<>]{1,200})@", _is_password, 0, re.compile(
        r"(?i:postgres(?:ql)?|mysql|mariadb|mongodb|rediss?|valkey|amqps?|mssql|oracle|clickhouse|snowflake|cockroachdb)"
        r"(?:\+\w{1,20})?://\Z"
    ), _URL_LOOSE),
    _build_shape("url-password", "://", _URL_USER + r":(?P<value>[^\s/@\"'<>]{1,300})@[\w\[]", _is_password,
                 loose=_URL_LOOSE),
    _build_shape("url-token", "://", r"://(?P<value>[A-Za-z0-9_.-]{20,255})@[\w\[]", mixed, loose=_URL_LOOSE),
    _build_shape("bearer-header", "earer EARER", r"(?i:earer)[ \t]{1,4}(?P<value>[A-Za-z0-9._~+/-]{20,}=*)", mixed),
    _build_shape(
        "authorization-header", "uthorization UTHORIZATION",
        r"(?i:uthorization)[\"'\]]{0,2}\s{0,4}[:=,]\s{0,4}[\"']?(?i:token|key|apikey|bot)[ \t]"
        r"(?P<value>[\w.~+/-]{16,}=*)", mixed,
    ),
    _build_shape("basic-auth", "asic ASIC", r"(?i:asic)[ \t]{1,4}(?P<value>[A-Za-z0-9+/]{12,}={0,2})", _is_basic_auth),
    _build_shape("telegram-token", ":AA", rf"(?<!\w)(?P<value>\d{{8,10}}:AA{_W}{{33}}){_A}", back=10),
    _build_shape("discord-webhook", "api/webhooks/", rf"api/webhooks/(?P<value>\d{{17,20}}/{_W}{{60,80}})"),
    _build_token("digitalocean-token", "dop_v1_ doo_v1_ dor_v1_", f"{_HEX}{{64}}"),
    _build_token("databricks-token", "dapi", rf"{_HEX}{{32}}(?:-\d)?", mixed),
    _build_token("groq-key", "gsk_", "[A-Za-z0-9]{40,60}"),
    _build_token("xai-key", "xai-", "[A-Za-z0-9]{60,90}"),
    _build_token("perplexity-key", "pplx-", "[A-Za-z0-9]{40,60}"),
    _build_token("replicate-token", "r8_", "[A-Za-z0-9]{37}", random_like, _EDGE),
    _build_token("langsmith-key", "lsv2_pt_ lsv2_sk_", f"{_HEX}{{32}}_{_HEX}{{10}}"),
    _build_token("tavily-key", "tvly-", f"{_W}{{24,}}", mixed),
    _build_token("pinecone-key", "pcsk_", "[A-Za-z0-9_]{40,}"),
    _build_token("nvidia-key", "nvapi-", f"{_W}{{60,}}"),
    _build_token("jina-key", "jina_", f"{_W}{{40,}}"),
    _build_token("notion-token", "ntn_ secret_", "[A-Za-z0-9]{43,46}", mixed, _EDGE),
    _build_token("linear-key", "lin_api_", "[A-Za-z0-9]{40}"),
    _build_token("shopify-token", "shpat_ shpca_ shppa_ shpss_", "[0-9a-fA-F]{32}"),
    _build_token("grafana-token", "glsa_ glc_", r"[A-Za-z0-9_+/=]{32,}"),
    _build_token("sentry-token", "sntrys_ sntryu_", r"[A-Za-z0-9_+/=-]{40,}"),
    _build_token("new-relic-key", "NRAK-", "[A-Z0-9]{27}"),
    _build_token("postman-key", "PMAK-", f"{_HEX}{{24}}-{_HEX}{{34}}"),
    _build_token("vault-token", "hvs. hvb. hvr.", f"{_W}{{24,}}"),
    _build_shape("terraform-token", ".atlasv1.", rf"{_B}(?P<value>[A-Za-z0-9]{{14}}\.atlasv1\.{_W}{{60,70}})", back=14),
    _build_token("supabase-token", "sbp_", f"{_HEX}{{40}}"),
    _build_token("supabase-token", "sb_secret_", f"{_W}{{30,}}"),
    _build_token("figma-token", "figd_", f"{_W}{{40,}}"),
    _build_token("airtable-token", "pat", rf"[A-Za-z0-9]{{14}}\.{_HEX}{{64}}", random_like, _EDGE),
    _build_shape(
        "assigned-secret", "key Key KEY secret Secret SECRET token Token TOKEN password Password PASSWORD passwd PASSWD"
        " passphrase PASSPHRASE pass PASS",
        rf"(?i:key|secret|token|password|passwd|passphrase|pass){_GIVEN}(?P<value>[\w!#$%&*+./:=?@^~-]{{12,200}})(?![\w(\[])",
        _is_assigned, 0, _NAMES, rf"(?i:key|secret|token|password|passwd|passphrase|pass){_ESCAPED}{{0,80}}[=:]",
    ),
)  # fmt: skip

_SHAPES_OF: dict[str, list[tuple[int, int]]] = {}
"""Which shapes have a needle: the number of each, and the needle's number in it."""
for _number, _shape in enumerate(SHAPES):
    for _at, _needle in enumerate(_shape.needles):
        _SHAPES_OF.setdefault(_needle, []).append((_number, _at))


@lru_cache(maxsize=8)
def _build_needles(more: frozenset[str]) -> Needles:
    followed = {needle: letters for needle, letters in _FOLLOWED.items() if needle not in more}
    shapes = {_DISCORD_MIDDLE: rf"\.{_W}{{6}}\.{_W}{{27}}"}
    return Needles(({*_SHAPES_OF, *FILE_STARTS} - {_ADDRESS}) | more, followed, shapes)


_ASSIGNED = next(shape for shape in SHAPES if shape.kind == "assigned-secret")
NAMES_OF_FIELDS = _ASSIGNED.needles
"""With one of them ends each name of a field that holds a secret, also of those in registry.py."""
_GIVES = frozenset(b"\"'] \t\r\n\f\v\x1c\x1d\x1e\x1f\x85\xa0?:=\\>")
"""What follows such a name, if a value is given to it: `?` is any letter beyond latin-1."""
_FOLLOWED.update(dict.fromkeys(NAMES_OF_FIELDS, _GIVES))


@lru_cache(maxsize=1)
def _build_loose_patterns() -> dict[str, re.Pattern[str]]:
    """Of each needle what follows it in all of its shapes, where that is one pattern. Of a field's name
    other things may follow as well.
    """
    patterns = {needle: {SHAPES[n].loose for n, _ in _SHAPES_OF[needle]} for needle in _SHAPES_OF}
    return {
        needle: pattern
        for needle, (pattern, *more) in patterns.items()
        if pattern is not None and not more and needle not in NAMES_OF_FIELDS
    }


_DISCORD_MIDDLE = "discord"
"""Stands for what its tokens have after their first part."""
_DOTTED = re.compile(rf"\.{_W}{{6}}\.{_W}{{27,38}}(?!{_W})")
_DISCORD = re.compile(rf"(?<![\w.-])[MNO]{_W}{{22,27}}\Z")


def _find_discord_tokens(text: str, places: Iterable[Place]) -> Iterator[FoundSecret]:
    """Discord's bot tokens begin with nothing of their own: they are found by their middle."""
    for at, needle in places:
        match = _DOTTED.match(text, at) if needle == _DISCORD_MIDDLE else None
        if match is not None:
            head = _DISCORD.search(text, max(0, at - 29), at)
            value = head[0] + match[0] if head else ""
            if head and _is_discord_token(value):
                yield FoundSecret("discord-token", head.start(), match.end(), value)


@lru_cache(maxsize=1)
def kinds() -> tuple[str, ...]:
    """The names of the kinds, each once."""
    return tuple(dict.fromkeys((*(shape.kind for shape in SHAPES), "discord-token")))
