"""What people type: which of it is a secret, what is kept of that, and what replay gives instead."""

import pytest

from tape_jupyter.core.call import FunctionCall, Value
from tape_jupyter.encoding.values.registry import Secret, thaw
from tape_jupyter.session import tool_recorder
from tape_jupyter.secrets.registry import Secrets, placeholder


@pytest.mark.parametrize(
    "prompt",
    [
        "Password: ", "Anthropic API key", "Enter your api-key: ", "OpenAI key: ", "Paste the token here", "Passphrase?",
        "PIN", "Client secret > ", "AWS secret access key", "DB credentials: ", "your key please", "auth_key=",
    ],
)  # fmt: skip
def test_prompts_that_ask_for_a_secret(prompt):
    assert tool_recorder.is_secret(prompt, "anything")


@pytest.mark.parametrize(
    "prompt",
    [
        "Your name? ",
        "Max tokens: ",
        "Key figures to show",
        "Which keyboard? ",
        "Pinned version",
        "Secretary: ",
        "",
        "> ",
    ],
)
def test_prompts_that_do_not(prompt):
    assert not tool_recorder.is_secret(prompt, "blue")


@pytest.mark.parametrize(
    ("answer", "secret"),
    [
        ("sk-ant-api03-abcdefghijklmnop", True), ("ghp_abcdefghijklmnop1234", True), ("q8Zt1x0pL2mN4vB6c8D0e2F4", True),
        ("eyJhbGciOiJIUzI1NiJ9.e30.abc", True), ("Ada Lovelace", False), ("2026-11-21", False), ("42", False),
        ("/home/ada/notebooks/churn-2026/data.csv", False), ("https://example.org/a1b2c3d4e5f6a7b8c9d0", False),
        ("summarise the third quarter of 2026", False), ("", False), ("internationalisation-team", False),
    ],
)  # fmt: skip
def test_answers_that_look_like_a_secret_are_one_whatever_was_asked(answer, secret):
    assert tool_recorder.is_secret("Value: ", answer) is secret


def asked(prompt, name="getpass", discreet="yes"):
    return FunctionCall(name, {"prompt": prompt}, "tool", discreet)


def test_a_secret_is_called_by_what_was_asked():
    assert tool_recorder.secret_name(asked("Anthropic API key: ")) == "ANTHROPIC_API_KEY"
    assert (
        tool_recorder.secret_name(asked("")) == "GETPASS"
        and len(tool_recorder.secret_name(asked("why " * 99))) <= 60
    )


def test_of_a_secret_its_name_is_kept_and_its_value_is_held_back_from_then_on():
    secrets = Secrets()
    kept = tool_recorder.written_secret(asked("API key: "), "correct-horse-battery", secrets)
    assert thaw(kept) == Secret("API_KEY")
    assert secrets.scrub("uses correct-horse-battery here")[0] == "uses <secret:API_KEY> here"


def test_in_replay_a_placeholder_stands_for_it_that_leaves_the_same_marker():
    secrets = Secrets()
    given = tool_recorder.replayed_value(Value({"<type>": "secret", "name": "API_KEY"}), secrets)
    assert (
        given.value == placeholder("API_KEY")
        and secrets.scrub(f"uses {given.value} here")[0] == "uses <secret:API_KEY> here"
    )
    assert tool_recorder.unrecorded(asked("API key: "), Secrets()).value == given.value


def test_a_secret_that_is_known_by_another_name_keeps_it():
    secrets = Secrets()
    secrets.learn("SERVICE_KEY", "correct-horse-battery")
    assert thaw(
        tool_recorder.written_secret(asked("Password: "), "correct-horse-battery", secrets)
    ) == Secret("SERVICE_KEY")


def test_what_is_no_secret_is_kept_as_it_is():
    secrets = Secrets()
    assert tool_recorder.written_secret(asked("Name: ", "input", "maybe"), "Ada", secrets) is None
    assert tool_recorder.written_secret(asked("password", "look_up", "no"), "Ada", secrets) is None
    assert tool_recorder.written_secret(asked("Key: "), None, secrets) is None
    value = Value({"name": "Ada"})
    assert tool_recorder.replayed_value(value, secrets) is value and secrets.names == ()
