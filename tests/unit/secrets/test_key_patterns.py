"""What looks like a key is found whoever's it is; what only resembles one is not."""

import hashlib
import json
import random
import uuid

import pytest

from tape_jupyter.secrets import key_patterns
from tape_jupyter.secrets.registry import placeholder
from tests.harness.plants import KINDS, MORE, b64url, checked, drawn, made

ALL = {**KINDS, **MORE}


def values(text):
    return {found.value for found in key_patterns.find_keys(text)}


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize(
    "around",
    ["{}", 'client = Client("{}")', "export X={}", "see {}, or ask", "<b>{}</b>", "'{}'\n"],
)
def test_every_kind_is_found_in_ordinary_surroundings(kind, around):
    rng = random.Random(kind)
    for _ in range(5):
        text, cores = made(kind, rng)
        found = values(around.replace("{}", text))
        assert found and all(
            any(core in value.replace("\\n", "\n") for value in found) for core in cores
        )


@pytest.mark.parametrize(
    "kind", ["anthropic", "github", "google", "aws id", "gitlab", "slack bot", "npm", "stripe"]
)
def test_letters_glued_to_a_token_do_not_hide_it(kind):
    text, _ = made(kind, random.Random(3))
    assert any(text in value for value in values(f"x{text}yz"))


def test_a_token_whose_checksum_holds_is_one_whatever_it_looks_like():
    body = "a" * 30
    token = f"ghp_{body}{key_patterns.checksum(body)}"
    assert values(token) == {token}
    assert (
        not values(f"ghp_{body}aaaaaa")
        and key_patterns.checksum(checked(random.Random(1), "ghp_")[4:-6]) != "000000"
    )


def test_what_stands_for_a_key_is_none():
    names = (
        "ANTHROPIC_API_KEY",
        "OPENAI_API_KEY",
        "GEMINI_API_KEY",
        "GROQ_API_KEY",
        "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY",
    )
    for name in names:
        assert not values(f'{name}="{placeholder(name)}"')
    for text in (
        'api_key="<secret:ANTHROPIC_API_KEY>"', "Authorization: Bearer redacted-bearer-header-1", "AKIAIOSFODNN7EXAMPLE",
        "sk-ant-api03-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", "password = os.environ['DB_PASSWORD']", "api_key=settings.api_key_2",
        "postgresql://user:password@localhost/db", "https://user:pass@example.com", "postgresql://app:${DB_PASSWORD}@db/x",
        'api_key="your-api-key-here-12345"', "Bearer authentication_is_documented_here", "token: str = get_token(kind)",
        "AccountKey=redacted-azure-storage-key-1",
    ):  # fmt: skip
        assert not values(text), text


def test_ids_digests_and_pictures_are_no_secrets():
    rng = random.Random(5)
    for _ in range(300):
        data = rng.randbytes(rng.randint(8, 300))
        texts = [
            str(uuid.UUID(bytes=rng.randbytes(16))), hashlib.sha1(data).hexdigest(), hashlib.sha256(data).hexdigest(),
            f"req_{b64url(data)[:24]}", f"msg_01{drawn(rng, '0123456789abcdefABCDEF', 22)}", f"toolu_{b64url(data)[:22]}",
            f"chatcmpl-{drawn(rng, 'abcdefABCDEF0123456789', 29)}", f"call_{b64url(data)[:24]}", f"resp_{data.hex()[:48]}",
            f'"signature": "{b64url(data)}"', f"data:image/png;base64,{b64url(data)}", f"commit {data.hex()[:40]}",
            f'"system_fingerprint": "fp_{data.hex()[:10]}"', f'"max_tokens": {rng.randint(1, 9999)}',
            f"idempotency-key: stainless-python-retry-{uuid.UUID(bytes=rng.randbytes(16))}", f"sha256:{data.hex()}",
        ]  # fmt: skip
        for text in texts:
            assert not values(text), text


def test_a_header_that_only_looks_like_a_tokens_is_none():
    head = b64url(json.dumps({"no": "algorithm"}).encode())
    assert not values(f"{head}.{head}.{b64url(random.Random(1).randbytes(32))}")


def test_what_is_found_is_never_shown():
    text, _ = made("github", random.Random(2))
    assert text not in repr(list(key_patterns.find_keys(text))) and {
        "github-token",
        "discord-token",
    } <= set(key_patterns.kinds())
    assert len(key_patterns.kinds()) >= 25


def test_a_password_in_a_url_is_one_though_its_first_letter_is_quoted():
    assert values("https://deploy:%2Fj7QvX2%2BkLm9@git.acme.dev/churn.git") == {"%2Fj7QvX2%2BkLm9"}
    assert not values("https://deploy:%PASSWORD%@git.acme.dev") and not values(
        "mysql://app:%(password)s@db/x"
    )
