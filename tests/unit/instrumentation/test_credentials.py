"""Credentials of SDKs: while the tape answers none is fetched; elsewhere what is found holds, and a placeholder is last."""

import importlib

import pytest

from tape_jupyter import instrumentation
from tape_jupyter.secrets.registry import placeholder
from tape_jupyter.instrumentation import credentials


class Tape:
    """Says whether it replays, and whether a placeholder may be given."""

    def __init__(self, *, replaying=False, lending=False):
        self.replaying, self.lending = replaying, lending

    def replays(self):
        return self.replaying

    def lend_placeholder(self, name, told):
        assert told
        return placeholder(name) if self.replaying or self.lending else None

    def setting(self, name):
        return {"AWS_REGION": "eu-west-1", "GOOGLE_CLOUD_PROJECT": "p-1"}[name]

    def begin(self, call):
        raise AssertionError(call)


@pytest.fixture
def tap(monkeypatch, tmp_path):
    undone = []
    for name in (
        "AWS_PROFILE",
        "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_REGION",
        "AWS_DEFAULT_REGION",
    ):
        monkeypatch.delenv(name, raising=False)
    for name, value in {
        "AWS_SHARED_CREDENTIALS_FILE": str(tmp_path / "credentials"), "AWS_CONFIG_FILE": str(tmp_path / "config"),
        "AWS_EC2_METADATA_DISABLED": "true", "NO_GCE_CHECK": "true", "GOOGLE_APPLICATION_CREDENTIALS": "not/here",
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)

    def tap(module, **told):
        undone.append(credentials.patch(importlib.import_module(module)))
        monkeypatch.setattr(instrumentation, "_slot", [Tape(**told)])

    yield tap
    for undo in reversed(undone):
        undo()


MINE = "[dev]\naws_access_key_id=AKIAMINE\naws_secret_access_key=mine\n"


def session(profile=None):
    return importlib.import_module("boto3").Session(profile_name=profile)


@pytest.mark.parametrize("told", [{"replaying": True}, {"lending": True}])
def test_an_aws_profile_that_is_not_here_gives_placeholders_and_the_recorded_region(tap, told):
    tap("botocore.session", **told)
    assert session("dev").get_credentials().access_key == placeholder("AWS_ACCESS_KEY_ID")
    assert session("dev").client("bedrock-runtime").meta.region_name == "eu-west-1"


def test_a_profile_that_is_here_holds_between_cells_and_rests_in_replay(tap, tmp_path):
    (tmp_path / "credentials").write_text(MINE)
    tap("botocore.session", lending=True)
    assert session("dev").get_credentials().access_key == "AKIAMINE"
    assert session("dev").region_name is None
    instrumentation._slot[0].replaying = True
    assert session("dev").get_credentials().access_key == placeholder("AWS_ACCESS_KEY_ID")


def test_without_either_boto_fails_as_without_us(tap):
    tap("botocore.session")
    missing = importlib.import_module("botocore.exceptions").ProfileNotFound
    assert session().get_credentials() is None
    with pytest.raises(missing):
        session("dev")


@pytest.mark.parametrize("told", [{"replaying": True}, {"lending": True}])
def test_googles_default_credentials_do_not_expire_and_know_the_project(tap, told):
    tap("google.auth._default", **told)
    found, project = importlib.import_module("google.auth").default()
    found.refresh(None)
    assert (found.token, project, found.valid) == (placeholder("GOOGLE_ACCESS_TOKEN"), "p-1", True)


def test_google_fails_as_without_us_where_nothing_is_lent(tap):
    tap("google.auth._default")
    with pytest.raises(importlib.import_module("google.auth.exceptions").DefaultCredentialsError):
        importlib.import_module("google.auth").default()


def test_a_client_of_anthropic_that_was_built_without_a_key_asks_for_none_in_replay(
    tap, monkeypatch
):
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    anthropic = importlib.import_module("anthropic")
    client = anthropic.Anthropic()
    tap("anthropic._client", lending=True)
    ask = {"model": "m", "max_tokens": 1, "messages": [{"role": "user", "content": "hi"}]}
    with pytest.raises(TypeError, match="authentication"):
        client.messages.create(**ask)
    instrumentation._slot[0].replaying = True
    client._validate_headers({}, frozenset())


def test_azure_asks_all_of_its_chain_before_a_placeholder_stands_in(tap):
    identity = pytest.importorskip("azure.identity")
    tap("azure.identity", lending=True)

    class Mine:
        def get_token(self, *_scopes, **_options):
            return "mine"

    empty = identity.EnvironmentCredential()
    assert empty.get_token("scope").token == placeholder("AZURE_ACCESS_TOKEN")
    assert identity.ChainedTokenCredential(empty, Mine()).get_token("scope") == "mine"
    instrumentation._slot[0].replaying = True
    assert identity.ChainedTokenCredential(empty, Mine()).get_token("scope").token == placeholder(
        "AZURE_ACCESS_TOKEN"
    )
