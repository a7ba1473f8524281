"""A request that goes on from an earlier one is found to be what reading the whole of it would find."""

import json
import random

import pytest

from tape_jupyter.cassette import match_key, records
from tape_jupyter.cassette.growing_history import BodyHistory
from tape_jupyter.core.call import Request
from tape_jupyter.secrets.registry import Secrets

URL = "https://api.anthropic.com/v1/messages"
SECRET = "sk-live-Zq81mmPpW02xYtR5"
LONG = "a message that is long enough to be worth it, " * 30
ITEMS = [
    {"role": "user", "content": LONG},
    {"role": "user", "content": [{"type": "text", "text": "Grüße, 東京 \U0001f600"}]},
    {"role": "tool", "content": "x", "score": 1.0, "n": 10**30, "f": 2.5e3},
    {"role": "user", "content": 'a "quoted" \\ one, with ],{ and "messages":[ in it'},
    {"role": "user", "content": "a control \x01 character"},
    {"<from>": "no mark of ours"},
    {"content": 'the word "tool in it', "type": "tool_use"},
    {"deep": [[[[{"a": [1, 2, {"b": None}]}]]]]},
    "a plain text",
    1,
    12,
    1.0,
    True,
]
SPELLINGS = (
    {"separators": (",", ":")},
    {"separators": (",", ":"), "ensure_ascii": False},
    {},
    {"indent": 2},
    {"separators": (",", ":"), "ensure_ascii": False, "sort_keys": True},
)


def request(body: bytes) -> Request:
    return Request("POST", URL, (("content-type", "application/json"),), body)


def found(body: bytes, secrets: Secrets, history: BodyHistory | None):
    call = request(body)
    growing = history.build_growing_body(body) if history is not None else None
    exact = match_key.exact_digest(call, growing)
    asked = match_key.match_request(call, secrets, (), exact, growing)
    section = records.request_section(
        call, secrets, asked.json, digest=not asked.exact, spelled=asked.spelled
    )
    clean = asked.clean if history is None or asked.clean else secrets.version
    return json.dumps([asked._replace(spelled=None, clean=0, news=None), section]), clean


def test_of_a_conversation_that_goes_on_only_what_is_new_is_handed_on():
    history, secrets = BodyHistory(), Secrets()
    talk = [{"role": "user", "content": LONG}, {"role": "assistant", "content": "yes"}]
    new = [{"role": "user", "content": "and now?"}, {"role": "assistant", "content": "no"}]
    seen = []
    for said in (talk, [*talk, *new], [*talk, *new], [*new, *talk]):
        body = json.dumps({"model": "m", "messages": said, "user": "u"}, separators=(",", ":"))
        growing = history.build_growing_body(body.encode())
        asked = match_key.match_request(request(body.encode()), secrets, (), "", growing)
        assert asked.json["messages"] == said
        seen.append(asked.news)
    assert seen == [
        {"model": "m", "messages": each, "user": "u"} for each in (talk, new, [], [*new, *talk])
    ]


@pytest.mark.parametrize("seed", range(60))
def test_what_goes_on_is_read_as_the_whole(seed):
    rng = random.Random(seed)
    history, secrets = BodyHistory(b'"tool'), Secrets()
    secrets.learn("KEY", SECRET, explicit=True)
    spelling = rng.choice(SPELLINGS)
    talks = [[{"role": "user", "content": LONG}] for _ in range(2)]
    for turn in range(40):
        talk = rng.choice(talks)
        del talk[rng.choice([len(talk), len(talk), len(talk), rng.randrange(1, len(talk) + 1)]) :]
        talk += rng.choices(ITEMS, k=rng.randrange(3))
        if rng.random() < 0.05:
            talk.append({"content": f"the key is {SECRET}"})
        if turn == 30:
            secrets.learn("LATE", "a message that is", explicit=True)
        settings = {"temperature": rng.choice([1.0, 1, 0.5]), "stream": True, "stop": ["a", "b"]}
        body = {"max_tokens": rng.choice([400, 400, 401]), "messages": talk}
        body = {**body, **settings} if rng.random() < 0.8 else {**settings, **body}
        raw = json.dumps(body, **spelling).encode()
        mine, plain = found(raw, secrets, history), found(raw, secrets, None)
        assert mine[0] == plain[0]
        assert mine[1] == plain[1] or plain[1] == 0 or mine[1] == secrets.version
        assert history.build_growing_body(raw).marked == (b'"tool' in raw)


@pytest.mark.parametrize(
    "after",
    [
        b'{"a":1,"messages":[%s],"a":2}',
        b'{"messages":[%s],"messages":[1]}',
        b'{"messages":[%s]',
        b'{"messages":[%s],}',
        b'{"messages":[%s]}}',
        b'{"messages":[%s,]}',
        b'{"messages":[%s],"n":NaN}',
        b'{"messages":[%s],"n":1} ',
        b'{"messages":[%s, 2],"n":1}',
        b'{"messages":[%s ,2],"n":1}',
        b'{"messages":[%s,\xff]}',
        b'{"messages":[%s,"\\ud800"]}',
        b'{"messages":[%s,' + b"[" * 3000 + b"]" * 3000 + b"]}",
        b'{"messages":[%s],"idempotency_key":"k"}',
    ],
)
def test_what_is_odd_is_read_as_the_whole(after):
    items = json.dumps({"content": LONG}, separators=(",", ":")).encode()
    history, secrets = BodyHistory(b'"tool'), Secrets()
    for body in (b'{"messages":[%s]}' % items, b'{"a":1,"messages":[%s]}' % items, after % items):
        assert found(body, secrets, history)[0] == found(body, secrets, None)[0]


def test_a_secret_across_what_is_known_and_what_is_new_is_found():
    """The one that was searched before ends where the new begins."""
    secrets, history = Secrets(), BodyHistory()
    secrets.learn("ODD", '{"},{"', explicit=True)
    first = json.dumps({"messages": [LONG, '{"']}, separators=(",", ":")).encode()
    body = first[:-2] + b',{"":1}]}'
    found(first, secrets, history)
    assert found(body, secrets, history)[0] == found(body, secrets, None)[0]


def test_what_is_known_of_bodies_does_not_grow_without_end():
    history, secrets = BodyHistory(), Secrets()
    for number in range(50):
        found(json.dumps({"messages": [f"{number} {LONG}"]}).encode(), secrets, history)
    assert len(history._known) <= 8
