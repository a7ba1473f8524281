"""Python values written as plain structure come back with their type; and no structure ever runs code."""

import asyncio
import collections
import dataclasses
import datetime as dt
import decimal
import enum
import fractions
import io
import json
import math
import os
import pathlib
import ssl
import subprocess
import sys
import typing
import urllib.error
import uuid
from zoneinfo import ZoneInfo

import hypothesis
import pydantic
import pytest
from hypothesis import strategies as st

from tape_jupyter.errors import CassetteError, TapeError
from tape_jupyter.encoding.values.registry import (
    Awaited,
    CannotFreeze,
    freeze,
    freeze_error,
    thaw,
    thaw_error,
)


def again(value):
    """The value by way of text, as a cassette keeps it."""
    text = json.dumps(freeze(value), allow_nan=False)
    back = thaw(json.loads(text))
    assert type(back) is type(value)
    return back


ran = []


class Colour(enum.Enum):
    RED = "#f00"
    CRIMSON = "#f00"
    POINT = (1, 2)


class Access(enum.Flag):
    READ = enum.auto()
    WRITE = enum.auto()

    @classmethod
    def _missing_(cls, value):
        ran.append("_missing_")
        return super()._missing_(value)


class Level(enum.IntEnum):
    LOW = 1


class Point(typing.NamedTuple):
    x: int
    y: object = None


@dataclasses.dataclass
class Order:
    item: str
    price: decimal.Decimal
    tags: list = dataclasses.field(default_factory=list)

    def __post_init__(self):
        ran.append("__post_init__")
        self.total = self.price * 2

    def __setstate__(self, state):
        ran.append("__setstate__")


@dataclasses.dataclass(frozen=True, slots=True)
class Key:
    name: str
    parts: tuple = ()

    class Inner(enum.Enum):
        A = 1


class User(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="allow")
    name: str
    age: int = 3
    friends: "list[User]" = []
    _secret: str = pydantic.PrivateAttr(default="s")

    @pydantic.model_validator(mode="after")
    def check(self):
        ran.append("validator")
        return self


class Numbers(pydantic.RootModel[list[int]]):
    pass


class ShopError(Exception):
    def __init__(self, code, item, *, hint=None):
        ran.append("ShopError")
        super().__init__(f"{item} failed")
        self.code, self.item, self.hint = code, item, hint

    def __str__(self):
        return f"[{self.code}] {self.item}"

    def __reduce__(self):
        ran.append("__reduce__")
        return (type(self), (1, 2))


class SlottedError(OSError):
    __slots__ = ("extra",)

    def __init__(self, number, extra):
        super().__init__(number, os.strerror(number), "/some/file")
        self.extra = extra


@pytest.fixture(autouse=True)
def nothing_ran_yet():
    ran.clear()


MOMENT = dt.datetime(2026, 10, 25, 2, 30, 0, 1, fold=1)
VALUES = [
    None,
    True,
    0,
    -(2**200),
    2**5000,
    -(2**5000),
    0.1,
    -0.0,
    1e300,
    math.inf,
    -math.inf,
    "",
    "\ud800 \x00 é",
    [],
    {},
    {"a": {"b": [1, [2, {"c": None}]]}},
    {"<type>": "tuple", "values": [1]},
    {"<from>": 1},
    {1: 2, None: 3, (1, 2): [4], "a": 5, True: 6},
    (),
    (1, (2, [3])),
    {1, "a", (2, 3)},
    set(),
    frozenset({frozenset({1}), None}),
    b"text",
    b"\xff\x00",
    bytearray(b"x"),
    1 + 2j,
    complex(0, math.inf),
    MOMENT,
    MOMENT.replace(tzinfo=ZoneInfo("Europe/Berlin")),
    MOMENT.replace(tzinfo=dt.UTC),
    MOMENT.replace(tzinfo=dt.timezone(dt.timedelta(hours=-3, minutes=-30), "NST")),
    dt.date(1, 1, 1),
    dt.time(23, 59, 59, 999999, fold=1),
    dt.time(1, tzinfo=dt.timezone(dt.timedelta(hours=1))),
    dt.timedelta(-1, 5, 7),
    dt.UTC,
    decimal.Decimal("1.10"),
    decimal.Decimal("-0E-30"),
    decimal.Decimal("Infinity"),
    fractions.Fraction(-1, 3),
    uuid.UUID(int=7),
    pathlib.Path("/a/b"),
    pathlib.PurePosixPath("a"),
    pathlib.PureWindowsPath("C:\\a"),
    range(1, 10**30, 3),
    slice(None, 3, Ellipsis),
    ...,
    NotImplemented,
    collections.OrderedDict([("b", 1), ("a", 2)]),
    collections.Counter("hello"),
    collections.defaultdict(list, {"a": [1]}),
    collections.deque([1, 2], maxlen=3),
    Colour.RED,
    Colour.POINT,
    Access.READ | Access.WRITE,
    Access(0),
    Level.LOW,
    Key.Inner.A,
    Point(1, [Point(2)]),
    Key("a", (1,)),
    Numbers([1, 2]),
    Awaited((1, 2)),
]


def _named(value):
    """The same in every process: a set has no order."""
    return (
        ", ".join(sorted(map(str, value)))
        if isinstance(value, set | frozenset)
        else str(value)[:20]
    )


@pytest.mark.parametrize(
    "value", VALUES, ids=lambda value: f"{type(value).__name__} {_named(value)!r}"[:40]
)
def test_a_value_comes_back_equal_and_of_its_type(value):
    back = again(value)
    assert back == value and (repr(back) == repr(value) or type(value) is set)


def test_not_a_number_comes_back_as_one():
    assert math.isnan(again(math.nan)) and again(decimal.Decimal("sNaN")).is_snan()


def test_dates_keep_zone_and_fold():
    back = again(MOMENT.replace(tzinfo=ZoneInfo("Europe/Berlin")))
    assert (
        back.fold == 1
        and back.tzinfo is ZoneInfo("Europe/Berlin")
        and back.utcoffset() == dt.timedelta(hours=1)
    )
    from dateutil import tz

    assert again(MOMENT.replace(tzinfo=tz.tzutc())).tzinfo is tz.tzutc()
    assert again(MOMENT.replace(tzinfo=tz.tzoffset("X", 60))).utcoffset() == dt.timedelta(minutes=1)


def test_json_values_stay_as_they_are():
    value = {"rows": [{"a": 1, "b": [1.5, None, True, "x"]}], "n": [0.25] * 100}
    assert freeze(value) == value and freeze(value) is not value


def test_what_was_frozen_does_not_change_with_the_value():
    value = {"a": [1]}
    frozen = freeze(value)
    value["a"].append(2)
    assert frozen == {"a": [1]}


def test_equal_sets_are_equal_text():
    words = [f"word {i}" for i in range(50)]
    assert freeze(set(words)) == freeze(set(reversed(words))) and freeze(set(words))[
        "values"
    ] == sorted(words)


def test_one_object_in_two_places_comes_back_as_one():
    inner, order = [1], Order("a", decimal.Decimal(2))
    value = {"a b": inner, "list": [inner, {"x": order}], "tuple": (order, inner), 1: order}
    back = again(value)
    assert back["a b"] is back["list"][0] is back["tuple"][1]
    assert back["list"][1]["x"] is back["tuple"][0] is back[1]
    assert freeze({"a": [], "b": []}) == {"a": [], "b": []}


def test_places_that_only_look_alike_are_not_mixed_up():
    first, second = [1], [2]
    back = again({"a.b": first, "a": {"b": second}, "again": [second, first]})
    assert back["again"] == [[2], [1]] and back["again"][0] is back["a"]["b"]


@dataclasses.dataclass(frozen=True)
class Holder:
    held: tuple
    rank: int


def test_objects_inside_sets_keep_their_places():
    key = Key("k")
    value = {"set": {Holder((key, key), 2), Holder((key,), 1)}, "after": [key]}
    back = again(value)
    assert back == value and back["after"][0] is next(iter(back["set"])).held[0]


def test_a_value_that_contains_itself_is_refused_with_its_place():
    loop = {"a": [1]}
    loop["a"].append((loop,))
    with pytest.raises(
        CannotFreeze, match=r"\$\.a\[1\]\.values\[0\]: .*dict: it contains itself .*\$\)"
    ):
        freeze(loop)


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ((i for i in ()), "generator"),
        ([1, {"deep": sys}], r"\$\[1\]\.deep: .*module"),
        (lambda: 0, "code, not data"),
        (dict, "class"),
        (io.BytesIO(), "BytesIO"),
        (object(), "object"),
        (collections.defaultdict(lambda: 1), "factory"),
        (type("S", (str,), {})("x"), "S"),
    ],
)
def test_what_cannot_be_frozen_is_said_with_its_place_and_type(value, why):
    with pytest.raises(CannotFreeze, match=why) as raised:
        freeze(value)
    assert isinstance(raised.value, TapeError) and isinstance(raised.value, TypeError)


async def items():
    yield 1


def test_an_async_generator_and_a_coroutine_are_refused_by_name():
    with pytest.raises(CannotFreeze, match="async_generator"):
        freeze(items())
    coroutine = asyncio.sleep(0)
    with pytest.raises(CannotFreeze, match="await it first"):
        freeze(coroutine)
    coroutine.close()


def test_too_deep_a_value_is_refused_and_not_a_crash():
    value = []
    for _ in range(100_000):
        value = [value]
    with pytest.raises(CannotFreeze, match="nested deeper"):
        freeze(value)
    with pytest.raises(CassetteError, match="too deep"):
        thaw(value)
    items_in_items = {1: 1}
    for _ in range(30):
        items_in_items = {1: items_in_items}
    with pytest.raises(CannotFreeze, match="nested deeper"):
        freeze(items_in_items)


# --------------------------------------------------- classes of the user's


def test_a_dataclass_comes_back_without_running_its_code():
    order = Order("tea", decimal.Decimal("1.5"), ["a"])
    ran.clear()
    back = again(order)
    assert back == order and back.total == decimal.Decimal("3.0") and ran == []


def test_a_flag_of_several_members_comes_back_without_running_its_code():
    both = Access.READ | Access.WRITE
    ran.clear()
    assert again(both) is both and again(Access.READ) is Access.READ and ran == []


def test_a_pydantic_model_comes_back_with_its_fields_set_extras_and_private_values():
    user = User(name="a", friends=[User(name="b", age=4)], nickname="z")
    user._secret = "told"
    ran.clear()
    back = again(user)
    assert (
        back == user
        and back.model_fields_set == {"name", "friends", "nickname"}
        and back._secret == "told"
    )
    assert back.model_dump_json() == user.model_dump_json() and back.model_extra == {
        "nickname": "z"
    }
    assert ran == []


def test_an_invalid_model_stays_as_it_was():
    assert again(User.model_construct(name=7)).name == 7


def test_a_pydantic_v1_model_comes_back():
    from pydantic import v1

    class Old(v1.BaseModel):
        a: int
        b: str = "x"

    Old.__qualname__ = "Old"
    globals()["Old"] = Old
    back = again(Old(a=1))
    assert back == Old(a=1) and back.__fields_set__ == {"a"}


def test_a_models_reply_object_of_an_sdk_comes_back():
    from anthropic.types import Message, TextBlock, Usage

    message = Message(
        id="m",
        content=[TextBlock(type="text", text="hi")],
        model="claude",
        role="assistant",
        type="message",
        usage=Usage(input_tokens=1, output_tokens=2),
    )
    back = again(message)
    assert back == message and back.to_json() == message.to_json()


def test_a_class_made_inside_a_function_is_refused_when_freezing():
    @dataclasses.dataclass
    class Local:
        a: int

    with pytest.raises(CannotFreeze, match="top level"):
        freeze(Local(1))


def test_a_class_that_a_cell_defined_anew_is_used_in_its_new_form(monkeypatch):
    frozen = freeze(Key("a"))
    new = dataclasses.make_dataclass("Key", ["name", "parts"])
    monkeypatch.setattr(sys.modules[__name__], "Key", new)
    assert type(thaw(frozen)) is new


# --------------------------------------------------- exceptions


def caught(work):
    try:
        work()
    except BaseException as error:
        return error
    raise AssertionError("nothing was raised")


def http_error(library):
    url = "https://shop.example/items?page=2"
    request = library.Request("GET", url, headers={"authorization": "Bearer hidden-key"})
    response = library.Response(
        404, json={"error": "no"}, headers={"x-id": "7", "set-cookie": "s=1"}, request=request
    )
    return caught(response.raise_for_status)


def requests_error():
    import requests

    response = requests.Response()
    response.status_code, response.url, response.reason, response._content = (
        503,
        "https://x.example/",
        "Busy",
        b"{}",
    )
    response.request = requests.Request(
        "POST", "https://x.example/", headers={"authorization": "hidden-key"}
    ).prepare()
    return caught(response.raise_for_status)


def sdk_error(sdk, library):
    request = library.Request("POST", "https://api.example/v1/messages")
    response = library.Response(429, json={"error": {"message": "slow down"}}, request=request)
    return sdk.RateLimitError(
        "slow down", response=response, body={"error": {"message": "slow down"}}
    )


def client_error():
    from botocore.exceptions import ClientError

    return ClientError({"Error": {"Code": "NoSuchKey", "Message": "gone"}}, "GetObject")


def lib(name):
    import importlib

    return importlib.import_module(name)


ERRORS = {
    "plain": lambda: ValueError("a", 1, None),
    "key": lambda: caught(lambda: {}["a b"]),
    "json": lambda: caught(lambda: json.loads("[1, 2")),
    "file": lambda: caught(lambda: open("/no/such/file")),
    "socket": lambda: ConnectionResetError(104, "reset"),
    "timeout": lambda: TimeoutError("late"),
    "cancelled": lambda: asyncio.CancelledError(),
    "interrupt": lambda: KeyboardInterrupt(),
    "exit": lambda: SystemExit(3),
    "decode": lambda: caught(lambda: b"ab\xff".decode()),
    "encode": lambda: caught(lambda: "é".encode("ascii")),
    "syntax": lambda: caught(lambda: compile("a b", "f.py", "exec")),
    "import": lambda: caught(lambda: __import__("no_such_module_at_all")),
    "attribute": lambda: caught(lambda: (1).nothing),
    "stop": lambda: StopIteration(5),
    "ssl": lambda: ssl.SSLError(1, "bad certificate"),
    "incomplete": lambda: asyncio.IncompleteReadError(b"ab", 3),
    "process": lambda: subprocess.CalledProcessError(2, ["ls"], output=b"o"),
    "shop": lambda: ShopError(7, "tea", hint=("a", {1})),
    "slotted": lambda: SlottedError(2, b"x"),
    "url": lambda: urllib.error.URLError(OSError(111, "refused")),
    "http": lambda: urllib.error.HTTPError("https://x.example", 404, "gone", None, None),
    "httpx": lambda: http_error(lib("httpx")),
    "httpx2": lambda: http_error(lib("httpx2")),
    "httpx connect": lambda: lib("httpx").ConnectError(
        "refused", request=lib("httpx").Request("GET", "https://x.example")
    ),
    "requests": requests_error,
    "botocore": client_error,
    "anthropic": lambda: sdk_error(lib("anthropic"), lib("httpx2")),
    "openai": lambda: sdk_error(lib("openai"), lib("httpx2")),
    "google": lambda: lib("google.genai.errors").ClientError(
        429, {"error": {"message": "m", "status": "S"}}
    ),
    "pydantic": lambda: caught(lambda: User(age="x")),
    "pydantic json": lambda: caught(lambda: Numbers.model_validate_json('["a", 1.5]')),
    "decimal": lambda: caught(lambda: decimal.Decimal("x")),
}


@pytest.mark.parametrize("name", ERRORS)
def test_an_exception_comes_back_as_its_class_with_args_text_and_attributes(name):
    error = ERRORS[name]()
    ran.clear()
    back = again(error)
    assert ran == []
    assert str(back) == str(error) and (repr(back) == repr(error) or name == "decimal")
    assert back.args == error.args or name in {
        "url",
        "decimal",
    }  # an error among the args; a class, left as its text
    assert vars(back).keys() == vars(error).keys() - set(freeze(error).get("left out", ()))
    for attribute in (
        "errno",
        "strerror",
        "filename",
        "msg",
        "pos",
        "doc",
        "object",
        "start",
        "code",
        "value",
        "name",
    ):
        if not isinstance(error, urllib.error.HTTPError):
            assert getattr(back, attribute, "none") == getattr(error, attribute, "none")


def test_an_http_error_keeps_its_response_and_no_key():
    for library in ("httpx", "httpx2"):
        error = http_error(lib(library))
        assert "hidden-key" not in json.dumps(freeze(error)) and "s=1" not in json.dumps(
            freeze(error)
        )
        response = again(error).response
        assert (response.status_code, response.json(), response.headers["x-id"]) == (
            404,
            {"error": "no"},
            "7",
        )
        assert str(response.request.url) == "https://shop.example/items?page=2"
        assert response.request is again(error).request or response.request.method == "GET"
    back = again(requests_error())
    assert (back.response.status_code, back.response.json(), back.request.method) == (
        503,
        {},
        "POST",
    )
    assert "hidden-key" not in json.dumps(freeze(requests_error()))


def test_a_response_in_gzip_keeps_its_decoded_body():
    import gzip

    import httpx

    body = gzip.compress(b"hello" * 100)
    response = httpx.Response(200, content=body, headers={"content-encoding": "gzip"})
    assert response.read() == b"hello" * 100
    back = again(response)
    assert back.content == b"hello" * 100 and back.headers == response.headers


def test_a_response_that_was_not_read_is_left_out_of_its_error():
    import httpx

    request = httpx.Request("GET", "https://x.example")
    response = httpx.Response(500, content=iter([b"a"]), request=request)
    error = httpx.HTTPStatusError("bad", request=request, response=response)
    assert freeze(error)["left out"] == ["response"]
    assert again(error).request.method == "GET"


def test_what_cannot_be_frozen_in_an_exception_is_left_out_and_named():
    error = ShopError(7, "tea", hint=io.BytesIO())
    error.socket = object()
    assert freeze_error(error)["left out"] == ["hint", "socket"]
    back = thaw_error(freeze_error(error))
    assert (back.code, str(back)) == (7, "[7] tea") and not hasattr(back, "hint")
    odd = ValueError("a", object)
    assert freeze_error(odd)["left out"] == ["args[1]"] and thaw_error(freeze_error(odd)).args == (
        "a",
        repr(object),
    )


def test_an_exception_whose_text_needs_what_was_left_out_reads_the_same():
    error = ShopError(io.BytesIO(), "tea")
    back = thaw_error(freeze_error(error))
    assert (
        isinstance(back, ShopError)
        and str(back) == str(error)
        and type(back).__name__ == "ShopError"
    )


def test_notes_causes_and_contexts_come_back():
    def work():
        try:
            try:
                {}["a"]
            except KeyError:
                1 / 0
        except ZeroDivisionError as error:
            raise ShopError(1, "tea") from error

    error = caught(work)
    error.add_note("try again")
    back = again(error)
    assert back.__notes__ == ["try again"] and back.__suppress_context__
    assert type(back.__cause__) is ZeroDivisionError and back.__context__ is back.__cause__
    assert type(back.__cause__.__context__) is KeyError
    quiet = again(caught(lambda: raise_from_none()))
    assert (
        quiet.__cause__ is None
        and quiet.__suppress_context__
        and type(quiet.__context__) is KeyError
    )


def raise_from_none():
    try:
        {}["a"]
    except KeyError:
        raise ValueError from None


def test_a_long_chain_is_kept_eight_deep():
    error = ValueError(0)
    for i in range(1, 30):
        error, before = ValueError(i), error
        error.__cause__ = before
    back, count = again(error), 0
    while back := back.__cause__:
        count += 1
    assert count == 8


def test_a_chain_that_leads_back_to_itself_is_cut():
    first, second = ValueError(1), ValueError(2)
    first.__context__, second.__context__ = second, first
    assert again(first).__context__.args == (2,)


def test_an_exception_group_comes_back_with_its_exceptions():
    group = ExceptionGroup(
        "several", [ValueError(1), ExceptionGroup("inner", [ShopError(1, "tea")])]
    )
    back = again(group)
    assert back.message == "several" and str(back) == str(group)
    assert back.exceptions[0].args == (1,) and back.exceptions[1].exceptions[0].code == 1
    assert type(again(BaseExceptionGroup("b", [KeyboardInterrupt()]))) is BaseExceptionGroup


def test_an_exception_class_made_inside_a_function_is_found_below_its_base():
    from botocore.exceptions import ClientError

    gone = type("NoSuchKey", (ClientError,), {"__module__": "botocore.errorfactory"})
    error = gone({"Error": {"Code": "NoSuchKey"}}, "GetObject")
    frozen = freeze_error(error)
    assert type(thaw_error(frozen)) is gone and frozen["below"] == "botocore.exceptions:ClientError"
    elsewhere = {**frozen, "class": "botocore.errorfactory:NotMadeHere"}
    assert (
        type(thaw_error(elsewhere)) is ClientError
        and thaw_error(elsewhere).response == error.response
    )


def test_an_exception_of_a_module_that_is_not_imported_says_what_to_import():
    frozen = {**freeze_error(ValueError("x")), "class": "wave:Error"}
    assert "wave" not in sys.modules
    with pytest.raises(CassetteError, match="import 'wave'"):
        thaw_error(frozen)
    outer = {**freeze_error(ValueError("x")), "cause": frozen, "context": {"<same>": "$.cause"}}
    back = thaw_error(outer)
    assert "wave:Error" in str(back.__cause__) and back.__context__ is back.__cause__
    assert "wave" not in sys.modules


def test_freezing_an_exception_never_fails():
    class Awkward(Exception):
        def __str__(self):
            raise RuntimeError

        def __getattribute__(self, name):
            if name == "trap":
                raise RuntimeError
            return super().__getattribute__(name)

    deep = []
    for _ in range(200):
        deep = [deep]
    error = Awkward(deep, Awkward())
    error.deep = {1: {1: {1: deep}}}
    assert isinstance(thaw_error(json.loads(json.dumps(freeze_error(error)))), Exception)

    class Hopeless(KeyError):
        def __getattribute__(self, name):
            raise RuntimeError("no")

    kind = type(thaw_error(json.loads(json.dumps(freeze_error(Hopeless(1))))))
    assert issubclass(kind, KeyError)


def test_an_object_whose_own_code_fails_is_refused_and_not_a_crash():
    class Sick(pydantic.BaseModel):
        def __getattribute__(self, name):
            raise ZeroDivisionError

    Sick.__qualname__ = "Sick"
    globals()["Sick"] = Sick
    with pytest.raises(CannotFreeze, match="ZeroDivisionError"):
        freeze(object.__new__(Sick))


# --------------------------------------------------- hostile structure (HOSTILE.md 77)


@pytest.mark.parametrize("mark", ["dataclass", "enum", "namedtuple", "pydantic", "exception"])
@pytest.mark.parametrize(
    "name",
    [
        "subprocess:Popen",
        "builtins:eval",
        "builtins:exec",
        "builtins:object",
        "builtins:type",
        "os:system",
        "posix:system",
        "wave:Error",
        "antigravity:x",
        "sys:modules",
        "tape_jupyter.encoding.values.registry:errors.sys",
        "subprocess:Popen.__init__",
        "builtins:",
        "",
        "nothing",
        7,
        None,
    ],
)
def test_a_structure_cannot_name_code(mark, name):
    before = set(sys.modules)
    structure = {
        "<type>": mark,
        "class": name,
        "fields": {"args": ["touch", "/tmp/x"]},
        "args": ["echo"],
        "set": [],
        "name": "x",
    }
    with pytest.raises(CassetteError):
        thaw(structure)
    assert set(sys.modules) == before


def test_a_lazy_modules_getattr_is_not_asked(monkeypatch):
    import types

    lazy = types.ModuleType("lazy_module_of_the_test")
    lazy.__getattr__ = lambda name: ran.append(name)
    monkeypatch.setitem(sys.modules, lazy.__name__, lazy)
    with pytest.raises(CassetteError):
        thaw({"<type>": "dataclass", "class": "lazy_module_of_the_test:Thing", "fields": {}})
    assert ran == []


@pytest.mark.parametrize("name", ["__class__", "__dict__", "__del__"])
def test_a_structure_cannot_set_dunder_attributes(name):
    dataclass = {**freeze(Order("a", decimal.Decimal(1))), "fields": {name: 1}}
    model = {**freeze(User(name="a")), "fields": {name: 1}}
    error = {**freeze(ShopError(1, 2)), "attributes": {name: 1}}
    for structure in (dataclass, model, error):
        with pytest.raises(CassetteError):
            thaw(structure)


MALFORMED = [
    {"<type>": "nothing"},
    {"<type>": 7},
    {"<type>": ["tuple"]},
    {"<type>": "tuple"},
    {"<type>": "tuple", "values": {"a": 1}},
    {"<type>": "set", "values": [[1]]},
    {"<type>": "bytes", "base64": "%%%"},
    {"<type>": "bytes", "utf8": 7},
    {"<type>": "int", "hex": "12"},
    {"<type>": "int", "hex": "0x" + "_1" * 5},
    {"<type>": "float", "value": "1e5"},
    {"<type>": "dict", "items": [[1]]},
    {"<type>": "dict", "items": [[[1], 2]]},
    {"<type>": "datetime", "value": "yesterday"},
    {"<type>": "datetime", "value": "2026-01-01", "zone": "UTC"},
    {"<type>": "ZoneInfo", "key": "../../etc/passwd"},
    {"<type>": "Decimal", "value": "one"},
    {"<type>": "Fraction", "numerator": 1, "denominator": 0},
    {"<type>": "range", "start": 0, "stop": 1, "step": 0},
    {"<type>": "timedelta", "days": 10**12, "seconds": 0, "microseconds": 0},
    {"<type>": "enum", "class": f"{__name__}:Colour", "name": "BLUE"},
    {"<type>": "enum", "class": f"{__name__}:Colour", "value": "#f00"},
    {"<type>": "namedtuple", "class": f"{__name__}:Point", "fields": {"x": 1}},
    {"<type>": "namedtuple", "class": f"{__name__}:Point", "fields": {"x": 1, "y": 2, "z": 3}},
    {"<type>": "dataclass", "class": f"{__name__}:Key", "fields": {"nothing": 1}},
    {"<type>": "exception", "class": "builtins:ValueError"},
    {
        "<type>": "exception",
        "class": "builtins:ExceptionGroup",
        "args": [],
        "message": "m",
        "exceptions": [1],
    },
    {"<type>": "exception", "class": "builtins:ValueError", "args": [], "cause": 7},
    {"<type>": "exception", "class": "builtins:ValueError", "args": [], "notes": [7]},
    {"<type>": "http response", "library": "os"},
    {"<type>": "ndarray", "dtype": "<f8", "values": [1, 2], "shape": [3]},
    {"<type>": "ndarray", "dtype": "<f8", "values": [1, 2], "shape": [-1]},
    {"<type>": "ndarray", "dtype": "<f8", "base64": "AAAA"},
    {"<type>": "ndarray", "dtype": "|O", "base64": "AAAAAAAAAAA="},
    {"<type>": "ndarray", "dtype": "evil", "values": []},
    {"<type>": "Image", "mode": "RGB", "size": [10**9, 10**9], "raw": ""},
    {"<type>": "Image", "mode": "RGB", "size": [2, 2], "raw": "AAAA"},
    {"<type>": "Image", "mode": "RGB", "size": [2, 2], "png": "AAAA"},
    {"<type>": "DataFrame", "index": 1, "columns": 2, "data": []},
    {"<type>": "Series", "index": {"<type>": "Index", "range": {"start": 0}}, "values": {}},
    {"<type>": "pandas array", "column": "evil", "values": []},
    {"<same>": "$.nowhere"},
    {"<same>": ["$"]},
    {"<other>": 1},
    {"a": {"<from>": "x"}},
    {1: 2},
    (1, 2),
    object(),
]


@pytest.mark.parametrize(
    "structure", MALFORMED, ids=lambda s: "an object" if type(s) is object else str(s)[:60]
)
def test_malformed_structure_is_a_cassette_error(structure):
    with pytest.raises(CassetteError):
        thaw(structure)
    with pytest.raises(CassetteError):
        thaw({"a": [structure]})


def test_an_error_in_a_structure_names_its_place():
    with pytest.raises(CassetteError, match=r'\$\.a\[1\]\["b c"\]: '):
        thaw({"a": [1, {"b c": {"<type>": "Decimal", "value": "one"}}]})


def test_only_an_exception_is_thawed_as_an_error():
    with pytest.raises(CassetteError, match="exception"):
        thaw_error({"a": 1})


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner)
        | st.dictionaries(st.text() | st.sampled_from(["<type>", "class", "values"]), inner)
    ),
    max_leaves=20,
)
HASHABLE = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text()
    | st.binary()
    | st.decimals(allow_nan=False)
    | st.uuids(),
    lambda inner: st.tuples(inner, inner) | st.frozensets(inner, max_size=3),
    max_leaves=5,
)
ANY = st.recursive(
    HASHABLE
    | st.floats()
    | st.complex_numbers()
    | st.datetimes()
    | st.timedeltas()
    | st.dates()
    | st.times(),
    lambda inner: (
        st.lists(inner)
        | st.dictionaries(HASHABLE, inner)
        | st.sets(HASHABLE)
        | st.tuples(inner, inner)
    ),
    max_leaves=15,
)


@hypothesis.given(ANY)
@hypothesis.settings(max_examples=150, deadline=None)
def test_any_value_of_the_standard_types_round_trips(value):
    back = again(value)
    assert freeze(back) == freeze(value)


MARKS = [
    "tuple", "set", "dict", "int", "float", "bytes", "datetime", "timezone", "dataclass", "enum", "exception",
    "namedtuple", "pydantic", "ndarray", "numpy", "Index", "Series", "DataFrame", "Timestamp", "Image", "deque",
]  # fmt: skip
FIELDS = [
    "values",
    "value",
    "class",
    "args",
    "fields",
    "items",
    "dtype",
    "shape",
    "base64",
    "index",
    "columns",
    "data",
]
NAMES = [
    "builtins:ValueError",
    "builtins:OSError",
    f"{__name__}:Order",
    f"{__name__}:Colour",
    "<f8",
    "|O",
    "int64",
    "$",
]
HOSTILE = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 300)
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from(NAMES),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.builds(
            lambda mark, fields: {"<type>": mark, **fields},
            st.sampled_from(MARKS),
            st.dictionaries(st.sampled_from(FIELDS), inner, max_size=5),
        )
    ),
    max_leaves=25,
)


@pytest.mark.slow
@hypothesis.given(HOSTILE | JSON)
@hypothesis.settings(
    max_examples=500, deadline=None, suppress_health_check=list(hypothesis.HealthCheck)
)
def test_any_structure_thaws_or_is_a_cassette_error(structure):
    try:
        thaw(structure)
    except CassetteError:
        pass
