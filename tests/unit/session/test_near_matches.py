"""Which recorded call answers where a match key says less than all of a call: never another's in silence."""

import re
import sqlite3
import threading
import time
import uuid
from decimal import Decimal

import httpx
import pytest

import tape_jupyter as tape
from tape_jupyter.session import session
from tests.harness.taped_cells import on_tape

ADA, BOB = "8f3kd92Qx71Wm4Tz9aPq", "1b7zz04Lm55Ry2Gh6cVn"


class User:
    def __init__(self, name, **fields):
        self.name = name
        self.__dict__.update(fields)


class Cart:
    def __init__(self, name):
        self.name, self.items, self.lock = name, [], threading.Lock()
        self.id, self.made = str(uuid.uuid4()), time.time()

    @tape.tool
    def add(self, item):
        self.items.append(item)
        return len(self.items)

    @tape.tool
    def total(self):
        return f"{self.name} {self.items}"


class Context:
    """What programs hand from tool to tool."""

    def __init__(self):
        self.calls, self.lock = 0, threading.Lock()


@tape.tool
def balance(user):
    return f"balance of {user.name}"


@tape.tool
def search(context, query):
    context.calls += 1
    return f"{query} {context.calls}"


@tape.tool
def rows(connection):
    return connection.execute("select count(*) from t").fetchone()[0]


@tape.tool
def first(users):
    return users[0].name


@tape.tool
def apply(function, number):
    return function(number)


@tape.tool
def total(numbers):
    return sum(numbers)


@tape.tool
def login(api_key):
    return api_key[:3]


def table(count):
    connection = sqlite3.connect(":memory:")
    connection.execute("create table t(x)")
    connection.executemany("insert into t values (?)", [(n,) for n in range(count)])
    return connection


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a.tape.yaml"


def recorded(path, program):
    with tape.recording(path) as block:
        return program(), block


def replayed(path, program, **options):
    with tape.replaying(path, **options) as block:
        now = program()
    return now, list(block.report.warnings)


def kv(provider, name, value, **more):
    return httpx.get(f"{provider.url}/kv", params={name: value}, **more).json()["nth"]


@pytest.fixture
def numbered(provider):
    """Answers each request to /kv with another number."""
    for n in range(9):
        provider.script("/kv", _numbered(n))
    return provider


def _numbered(n):
    from tests.harness.provider import Scripted

    return Scripted(headers={"content-type": "application/json"}, chunks=[b'{"nth": %d}' % n])


SWAPPED = {
    "objects": (lambda: balance(User("ada")), lambda: balance(User("bob"))),
    "objects in objects": (
        lambda: balance(User("x", of=User("ada"))),
        lambda: balance(User("x", of=User("bob"))),
    ),
    "objects in a list": (lambda: first([User("ada")]), lambda: first([User("bob")])),
    "functions": (lambda: apply(lambda n: n + 1, 1), lambda: apply(lambda n: n + 2, 1)),
    "methods": (lambda: Cart("ada").total(), lambda: Cart("bob").total()),
    "secrets": (lambda: login(ADA), lambda: login(BOB)),
    "types": (lambda: apply(str, 1), lambda: apply(str, Decimal(1))),
}


@pytest.mark.parametrize("name", SWAPPED)
def test_each_call_gets_its_own_answer_in_whatever_order_they_are_asked(path, name):
    one, other = SWAPPED[name]
    live, _ = recorded(path, lambda: [one(), other()])
    now, _ = replayed(path, lambda: [other(), one()])
    assert now == live[::-1]


@pytest.mark.parametrize("name", ["objects", "objects in a list", "functions", "secrets"])
def test_strict_plays_what_is_told_apart_by_value(path, name):
    one, other = SWAPPED[name]
    live, block = recorded(path, lambda: [one(), other()])
    assert not block.report.warnings
    assert replayed(path, lambda: [other(), one()], strict=True) == (live[::-1], [])


def test_an_object_that_is_not_on_the_tape_is_refused_and_shown_with_its_fields(path):
    recorded(path, lambda: balance(User("ada")))
    with pytest.raises(
        tape.UnmatchedCall, match=r"user.name\n    recorded: 'ada'\n    now:      'bob'"
    ):
        replayed(path, lambda: balance(User("bob")))


def test_the_same_object_asked_again_is_found_each_time(path):
    ada = User("ada", lock=threading.Lock())
    live, _ = recorded(path, lambda: [balance(ada), balance(User("bob")), balance(ada)])
    again = User("ada", lock=threading.Lock())
    assert replayed(
        path, lambda: [balance(again), balance(User("bob")), balance(again)], strict=True
    ) == (live, [])


def test_moments_and_ids_vary_and_the_rest_tells_which_is_meant(path):
    def program(*names):
        return [balance(User(name, made=time.time(), id=uuid.uuid4())) for name in names]

    with tape.recording(path, no_pin=["clock", "random"]):
        live = program("ada", "bob")
    now, warnings = replayed(path, lambda: program("bob", "ada"), no_pin=["clock", "random"])
    assert now == live[::-1] and "balance was matched without user.id, user.made" in warnings[0]
    with pytest.raises(tape.UnmatchedCall, match="--strict goes by all of a call"):
        replayed(path, lambda: program("bob"), no_pin=["clock", "random"], strict=True)


def test_methods_of_two_objects_are_not_mixed_up_whatever_their_ids(path):
    def program(*names):
        carts = {name: Cart(name) for name in names}
        return {name: [cart.add(f"for {name}"), cart.total()] for name, cart in carts.items()}

    live, _ = recorded(path, lambda: program("ada", "bob"))
    now, _ = replayed(path, lambda: program("bob", "ada"))
    assert now == live


def test_what_recorded_calls_did_to_an_object_does_not_stop_those_after_them(path):
    def program():
        context = Context()
        return [search(context, "a"), search(context, "b"), search(context, "a")]

    live, _ = recorded(path, program)
    assert replayed(path, program)[0] == live == ["a 1", "b 2", "a 3"]


def test_two_connections_are_told_apart_by_their_order_which_is_said_and_strict_refuses(path):
    live, block = recorded(path, lambda: [rows(table(1)), rows(table(2))])
    assert "2 calls differ only in connection (sqlite3.Connection)" in block.report.warnings[0]
    now, warnings = replayed(path, lambda: [rows(table(1)), rows(table(2))])
    assert now == live and re.search(
        r"calls \w+, \w+-2 .* differ only in connection \(sqlite3", warnings[0]
    )
    with pytest.raises(tape.UnmatchedCall, match="--strict does not go by their order"):
        replayed(path, lambda: rows(table(2)), strict=True)


def test_one_connection_plays_and_strict_names_it(path):
    live, block = recorded(path, lambda: rows(table(1)))
    assert not block.report.warnings and replayed(path, lambda: rows(table(1))) == (live, [])
    with pytest.raises(
        tape.UnmatchedCall, match=r"matches without connection \(sqlite3.Connection\)"
    ):
        replayed(path, lambda: rows(table(1)), strict=True)


def test_generators_are_told_apart_by_their_order_even_at_one_address(path):
    _, block = recorded(path, lambda: [total(n for n in [1]), total(n for n in [5])])
    assert any(
        "differ only in numbers (builtins.generator)" in each for each in block.report.warnings
    )


def test_a_recording_made_before_states_were_told_plays_and_says_what_it_lacks(path):
    live, _ = recorded(path, lambda: [balance(User("ada")), balance(User("bob"))])
    old = re.sub(r"(?m)^apart: .*\n", "", path.read_text())
    old = re.sub(r"(?m)^      state: .*\n(      fields:\n(        .*\n)+)?", "", old)
    path.write_text(old)
    assert on_tape(path).calls[0].request().arguments == {"user": {"<opaque>": f"{__name__}.User"}}
    now, warnings = replayed(path, lambda: [balance(User("ada")), balance(User("bob"))])
    assert (
        now == live
        and "was matched without user (" in warnings[0]
        and "record the cell again" in warnings[0]
    )
    with pytest.raises(tape.UnmatchedCall, match="--strict goes by all of a call"):
        replayed(path, lambda: balance(User("ada")), strict=True)


@pytest.mark.parametrize("name", ["key", "token", "signature", "secret"])
def test_masked_values_of_a_query_are_told_apart(numbered, path, name):
    live, _ = recorded(path, lambda: [kv(numbered, name, value) for value in (ADA, BOB)])
    assert ADA not in path.read_text() and BOB not in path.read_text()
    now = replayed(path, lambda: [kv(numbered, name, value) for value in (BOB, ADA)], strict=True)
    assert now == (live[::-1], [])


def test_a_masked_value_that_none_of_several_has_is_refused_by_name(numbered, path):
    recorded(path, lambda: [kv(numbered, "key", value) for value in (ADA, BOB)])
    with pytest.raises(tape.UnmatchedCall, match=r"differ in \?key=, which is masked"):
        replayed(path, lambda: kv(numbered, "key", ADA[::-1]))


def test_another_key_plays_where_only_one_was_recorded_and_is_said(numbered, path):
    live, _ = recorded(path, lambda: [kv(numbered, "key", ADA), kv(numbered, "key", ADA)])
    now, warnings = replayed(path, lambda: [kv(numbered, "key", BOB), kv(numbered, "key", BOB)])
    assert now == live and "was matched without ?key=, which is another value" in warnings[0]
    with pytest.raises(tape.UnmatchedCall, match=r"matches without \?key="):
        replayed(path, lambda: kv(numbered, "key", BOB), strict=True)


def test_a_key_of_the_environment_may_be_anybodys(numbered, path, monkeypatch):
    secrets = session.get().secrets
    secrets.learn_environment({"WEATHER_API_KEY": ADA})
    live, _ = recorded(path, lambda: kv(numbered, "key", ADA))
    secrets.learn_environment({"WEATHER_API_KEY": BOB})
    assert replayed(path, lambda: kv(numbered, "key", BOB), strict=True) == (live, [])


def test_weak_values_leave_no_digest_and_are_told_apart_by_their_order(numbered, path):
    asked = ["Summer2024x", "Winter2025x"]
    _, block = recorded(path, lambda: [kv(numbered, "password", value) for value in asked])
    assert "2 calls differ only in ?password=" in block.report.warnings[0]
    assert "\napart:" not in path.read_text() and "\nexact:" not in path.read_text()
    with pytest.raises(tape.UnmatchedCall, match="--strict does not go by their order"):
        replayed(path, lambda: kv(numbered, "password", asked[1]), strict=True)


def test_two_who_ask_the_same_are_named_and_one_with_another_key_is_not(numbered, path):
    def ask(token):
        return httpx.get(f"{numbered.url}/kv", headers={"authorization": f"Bearer {token}"}).json()[
            "nth"
        ]

    live, block = recorded(path, lambda: [ask("of-ada-12345"), ask("of-bob-12345")])
    assert "2 calls differ only in authorization" in block.report.warnings[0]
    now, warnings = replayed(path, lambda: [ask("of-ada-12345"), ask("of-bob-12345")])
    assert (
        now == live
        and "told apart by their order" in warnings[0]
        and "authorization" in warnings[0]
    )


def test_whoever_replays_with_another_token_hears_nothing(numbered, path):
    def ask(token):
        return httpx.get(f"{numbered.url}/kv", headers={"authorization": f"Bearer {token}"}).json()[
            "nth"
        ]

    live, _ = recorded(path, lambda: ask("of-ada-12345"))
    assert replayed(path, lambda: ask("of-bob-12345"), strict=True) == (live, [])


def test_new_episodes_records_an_object_that_is_new(path):
    recorded(path, lambda: balance(User("ada")))
    with tape.replaying(path, mode="new_episodes"):
        assert [balance(User("bob")), balance(User("ada"))] == ["balance of bob", "balance of ada"]
    assert len(on_tape(path).calls) == 2
    assert replayed(path, lambda: balance(User("bob")), strict=True)[0] == "balance of bob"
