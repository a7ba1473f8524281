"""What is lent between taped cells: to whom, which names, and what of this machine comes first."""

import os
from pathlib import Path

import pytest

from tape_jupyter.core.call import Request
from tape_jupyter.session import lent_keys
from tape_jupyter.session.lent_keys import Lending
from tape_jupyter.secrets.registry import Secrets, placeholder


class Tape:
    path, size = Path("main.tape.yaml"), 1

    def __init__(self, variables="", calls=(), **environment):
        self.runs = [{"run": "r", "kit": {"environment": environment, "variables": variables}}]
        self.calls = calls


class Made:
    def __init__(self, url):
        self.url = url

    def request(self):
        return Request("POST", self.url, (), b"")


@pytest.fixture(autouse=True)
def bare(monkeypatch):
    for name in [*os.environ]:
        if name.endswith(
            ("_KEY", "_TOKEN", "_ID", "_BASE_URL", "_REGION", "_ENDPOINT", "_PROJECT", "_PROFILE")
        ):
            monkeypatch.delenv(name)


@pytest.fixture
def own():
    """Sets a person's own variables. pytest's `monkeypatch` would put back what it read: a placeholder that was lent."""
    names = []

    def put(name, value):
        names.append(name)
        os.environ[name] = value

    yield put
    for name in names:
        os.environ.pop(name, None)


@pytest.fixture
def lend(tmp_path):
    started = []

    def lend(*tapes, busy=False):
        lent = Lending(Secrets(), lambda: busy)
        started.append(lent)
        lent.start(tmp_path, lambda: tapes)
        return lent

    yield lend
    for lent in started:
        lent.stop()


def look(
    name,
    module="some_sdk",
    path="/x/site-packages/some_sdk/client.py",
    source="os.environ.get(name)",
):
    """What code of a library sees under a name."""
    code = compile(source, path, "eval")
    return eval(code, {"os": os, "name": name, "__name__": module})


def test_a_library_is_lent_what_the_recording_had_and_nothing_is_set(lend):
    before = dict(os.environ)
    lend(Tape("HOME MYCORP_API_KEY"))
    assert look("MYCORP_API_KEY") == placeholder("MYCORP_API_KEY")
    assert look("OTHER_API_KEY") is None and look("HOME_SWEET_HOME") is None
    assert dict(os.environ) == before and "MYCORP_API_KEY" not in list(os.environ)


def test_nothing_is_lent_while_a_cell_is_taped(lend):
    lend(Tape("MYCORP_API_KEY"), busy=True)
    assert look("MYCORP_API_KEY") is None


def test_when_it_stops_the_environment_is_a_plain_dict_again(lend):
    lent = lend(Tape("MYCORP_API_KEY"))
    os.environ["SET_MEANWHILE"] = "kept"
    lent.stop()
    assert look("MYCORP_API_KEY") is None and type(os.environ._data) is dict
    assert os.environ.pop("SET_MEANWHILE") == "kept"


@pytest.mark.parametrize(
    "module", ["dotenv.main", "decouple", "botocore.credentials", "google.auth._default", "json"]
)
def test_who_looks_in_files_next_is_told_the_truth(lend, module):
    lend(Tape("AWS_ACCESS_KEY_ID"))
    path = "/usr/lib/python3/json.py" if module == "json" else "/x/site-packages/m.py"
    assert look("AWS_ACCESS_KEY_ID", module, os.__file__ if module == "json" else path) is None


@pytest.mark.parametrize(
    ("recorded", "here"),
    [
        ("GOOGLE_API_KEY", "GEMINI_API_KEY"),
        ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"),
        ("ANTHROPIC_API_KEY", "ANTHROPIC_PROFILE"),
        ("AZURE_OPENAI_API_KEY", "AZURE_OPENAI_AD_TOKEN"),
    ],
)
def test_a_credential_of_another_name_is_not_stood_in_the_way_of(lend, own, recorded, here):
    lend(Tape(recorded))
    assert look(recorded)
    own(here, "a-persons-own")
    assert look(recorded) is None


def test_settings_come_with_the_placeholders_and_go_when_there_is_a_key(lend, own):
    lend(Tape("OPENAI_API_KEY", OPENAI_BASE_URL="http://127.0.0.1:8099/v1", AWS_REGION="eu-west-1"))
    assert (look("OPENAI_BASE_URL"), look("AWS_REGION")) == (
        "http://127.0.0.1:8099/v1",
        "eu-west-1",
    )
    own("OPENAI_API_KEY", "a-persons-own")
    assert look("OPENAI_BASE_URL") is None


def test_a_real_key_does_not_go_to_an_address_that_was_lent(lend, own):
    lent = lend(
        Tape(
            OPENAI_BASE_URL="https://api.groq.com/openai/v1",
            ANTHROPIC_BASE_URL="https://api.anthropic.com",
        )
    )
    asked = Request(
        "POST",
        "https://api.groq.com/openai/v1/chat/completions",
        (("authorization", "Bearer real"),),
        b"",
    )
    assert lent.lacks(asked) == ""
    assert look("OPENAI_BASE_URL") and look("ANTHROPIC_BASE_URL")
    assert lent.lacks(asked) == "OPENAI_BASE_URL"
    assert lent.lacks(Request("POST", "https://api.anthropic.com/v1/messages", (), b"")) == ""
    own("OPENAI_BASE_URL", "https://api.groq.com/openai/v1")
    assert lent.lacks(asked) == ""


@pytest.mark.parametrize("spelled", ["{}", "Basic bWU6e30=", "a%3D{}", '{{"client_secret": "{}"}}'])
def test_a_request_that_carries_a_placeholder_in_whatever_spelling_lacks_its_key(lend, spelled):
    import base64

    lent = lend(Tape("MYCORP_API_KEY"))
    value = look("MYCORP_API_KEY")
    told = (
        f"Basic {base64.b64encode(f'me:{value}'.encode()).decode()}"
        if "Basic" in spelled
        else spelled.format(value)
    )
    assert (
        lent.lacks(Request("POST", "https://x.example", (("authorization", told),), b""))
        == "MYCORP_API_KEY"
    )
    assert lent.lacks(Request("POST", "https://x.example", (), told.encode())) == "MYCORP_API_KEY"
    assert lent.lacks(Request("POST", "https://x.example", (), b"plain")) == ""


def test_a_cassette_that_cannot_be_read_lends_nothing(tmp_path):
    (tmp_path / "main.tape.yaml").write_text("no cassette")

    def opened(path):
        raise OSError(path)

    assert list(lent_keys.open_cassettes(tmp_path, opened)()) == []


@pytest.mark.parametrize(
    ("source", "told_the_truth"),
    [
        ("if not os.environ.get('A'):\n    os.environ['A'] = getpass.getpass()", True),
        ("if 'A' not in os.environ:\n    os.environ['A'] = 'b'", True),
        ("key = os.getenv('A') or input('key: ')", True),
        ("try:\n    os.environ['A']\nexcept KeyError:\n    os.environ['A'] = ask()", True),
        ("os.environ['A'] = os.getenv('A')", False),
        ("assert os.getenv('A')", False),
        ("headers['a'] = os.environ['A'] if more else ''", False),
        ("if os.getenv('A') is None:\n    raise ValueError", False),
    ],
)
def test_code_that_would_set_the_key_or_ask_for_it(source, told_the_truth):
    assert lent_keys.provides(compile(source, "<cell>", "exec")) is told_the_truth


def test_region_and_project_are_read_off_the_recorded_urls():
    urls = [
        "https://bedrock-runtime.eu-west-1.amazonaws.com/model/m/converse",
        "https://us-central1-aiplatform.googleapis.com/v1/projects/p-1/locations/us-central1/publishers/google/models/g",
    ]
    told = lent_keys.recorded_settings([Tape(calls=[Made(url) for url in urls])])
    assert told == {"AWS_REGION": "eu-west-1", "GOOGLE_CLOUD_PROJECT": "p-1"}
    assert (
        lent_keys.recorded_settings([Tape(calls=[Made(urls[0])], AWS_DEFAULT_REGION="us-east-2")])[
            "AWS_REGION"
        ]
        == "us-east-2"
    )
