"""Secrets to plant, of every kind a person's environment holds, and the encodings they turn up in."""

import base64
import html
import json
from urllib.parse import quote, quote_plus

KINDS = {
    "ANTHROPIC_API_KEY": "sk-ant-api03-R2D2c3poQ9_xYz-7fGhJkLmNpQrStUvWxYz0123456789abcdefAA",
    "OPENAI_API_KEY": "sk-proj-9aZ8bY7cX6dW5eV4fU3gT2hS1iR0jQ_kP-lO",
    "GEMINI_API_KEY": "AIzaSyD-9tSrke72PouQMnMX-a7eZSW0jkFMBWY",
    "AWS_ACCESS_KEY_ID": "AKIAIOSFODNN7EXAMPLE",
    "AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
    "AWS_SESSION_TOKEN": "FwoGZXIvYXdzEBYaDKJ/1+3Q==" * 4,
    "AWS_BEARER_TOKEN_BEDROCK": "bedrock-api-key-YmVkcm9ja2FwaQ==",
    "GITHUB_TOKEN": "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
    "GITLAB_PAT": "glpat-x9Yz_3kQwErTyUiOpAsD",
    "SLACK_BOT_TOKEN": "xoxb-2154872154-2154872154212-aBcDeFgHiJkLmNoP",
    "STRIPE_SECRET_KEY": "sk_live_4eC39HqLyjWDarjtT1zdp7dc",
    "HF_TOKEN": "hf_AbCdEfGhIjKlMnOpQrStUvWxYz0123456789",
    "SERVICE_JWT_TOKEN": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U",
    "PINECONE_API_KEY": "3f2504e0-4f89-11d3-9a0c-0305e82c3301",
    "DATADOG_API_KEY": "9775a026f1ca7d1c6c5af9d94d9595a4",
    "SENDGRID_API_KEY": "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",
    "TWILIO_AUTH": "AC5ef872f6da5a21de157d80997a64bd33",
    "TELEGRAM_TOKEN": "110201543:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw",
    "DB_PASSWORD": 'p@s/w+o&r=d"\\%9',
    "SMTP_PASSWORD": "correct horse battery",
    "UNICODE_SECRET": "pässwörd-ключ-🔑-42",
    "SHORT_PASSWORD": "tr0ub4d&",
    "LETTERS_SECRET": "qwertzuiopasdfgh",
    "CONNECTION_AUTH": "user:Zq8!kP2#vN5@",
    "SYMBOLS_PASSWORD": "!@#$%^&*()_+{}|",
}


def in_base64(shift, url):
    encode = base64.urlsafe_b64encode if url else base64.b64encode
    return lambda s: encode(b"x" * shift + s.encode() + b"yz").decode()


ENCODINGS = {
    "raw": str,
    "url": lambda s: quote(s, safe=""),
    "url, slashes kept": quote,
    "form": quote_plus,
    "url, lower case": lambda s: "".join(
        c if c.isascii() and c.isalnum() else quote(c, safe="").lower() for c in s
    ),
    "json": lambda s: json.dumps(s)[1:-1],
    "json, unicode kept": lambda s: json.dumps(s, ensure_ascii=False)[1:-1],
    "json in json": lambda s: json.dumps(json.dumps(s))[1:-1],
    "json with slashes escaped": lambda s: json.dumps(s)[1:-1].replace("/", "\\/"),
    "html": html.escape,
    "hex": lambda s: s.encode().hex(),
    "HEX": lambda s: s.encode().hex().upper(),
    **{f"base64 {n}{' url' * url}": in_base64(n, url) for n in range(3) for url in (False, True)},
}
