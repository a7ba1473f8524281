"""What is secret here and now is known from where people keep it."""

import json

import pytest

from tape_jupyter.secrets import environment, leaks
from tape_jupyter.secrets.registry import placeholder


def kept(secrets):
    return {value: name for value, _, name in secrets.list_values()}


def test_the_environments_keys_are_known_and_a_replays_placeholders_are_none(tmp_path):
    environ = {
        "ACME_API_KEY": "w9Qe7RtY5uIoP3aS",
        "OPENAI_API_KEY": placeholder("OPENAI_API_KEY"),
        "EDITOR": "vim-is-my-editor",
    }
    assert kept(environment.environment_secrets(tmp_path, environ, tmp_path)) == {
        "w9Qe7RtY5uIoP3aS": "ACME_API_KEY"
    }


@pytest.mark.parametrize(
    ("path", "text", "value"),
    [
        (".netrc", "machine api.acme.dev login ada password tr0ub4dor-and-3\n", "tr0ub4dor-and-3"),
        ("_netrc", "machine api.acme.dev login ada password tr0ub4dor-and-3\n", "tr0ub4dor-and-3"),
        (".aws/credentials", "[default]\naws_access_key_id = AKIAQ7ZT3MVKW5XN2YHC\naws_secret_access_key = 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\n", "w9Qe7RtY5uIoP3aSdF1gHjKlZxCvBnM2qWeRtYu8"),
        (".npmrc", "//registry.acme.dev/:_authToken=Zq7rTq1v9WcX2bLk\n", "Zq7rTq1v9WcX2bLk"),
        (".pypirc", "[acme]\nusername = ada\npassword = Zq7rTq1v9WcX2bLk\n", "Zq7rTq1v9WcX2bLk"),
        (".git-credentials", "https://ada:Zq7rTq1v9WcX2bLk@git.acme.dev\n", "Zq7rTq1v9WcX2bLk"),
        (".docker/config.json", json.dumps({"auths": {"r.acme.dev": {"auth": "YWRhOlpxN3JUcTF2OVdjWDJiTGs="}}}), "YWRhOlpxN3JUcTF2OVdjWDJiTGs="),
        (".config/gh/hosts.yml", "github.com:\n    oauth_token: Zq7rTq1v9WcX2bLkZq7r\n", "Zq7rTq1v9WcX2bLkZq7r"),
        (".cache/huggingface/token", "hf_AbCdEfGhIjKlMnOpQrStUvWxYzAbCdEfGh", "hf_AbCdEfGhIjKlMnOpQrStUvWxYzAbCdEfGh"),
        (".pgpass", "db.acme.dev:5432:churn:ada:Zq7rTq1v9WcX2bLk\n", "Zq7rTq1v9WcX2bLk"),
        (".kaggle/kaggle.json", '{"username": "ada", "key": "9775a026f1ca7d1c6c5af9d94d9595a4"}', "9775a026f1ca7d1c6c5af9d94d9595a4"),
        (".config/pip/pip.conf", "[global]\nindex-url = https://ada:Zq7rTq1v9WcX2bLk@pypi.acme.dev/simple\n", "Zq7rTq1v9WcX2bLk"),
    ],
)  # fmt: skip
def test_what_programs_keep_in_the_home_folder_is_known(tmp_path, path, text, value):
    file = tmp_path / "home" / path
    file.parent.mkdir(parents=True)
    file.write_text(text)
    file.chmod(0o600)
    assert value in kept(environment.environment_secrets(tmp_path, {}, tmp_path / "home"))


@pytest.mark.parametrize("name", [".env", ".env.local", "production.env"])
def test_env_files_of_the_folder_and_of_those_above_it_are_known(tmp_path, name):
    (tmp_path / "home").mkdir()
    folder = tmp_path / "work" / "notebooks"
    folder.mkdir(parents=True)
    (tmp_path / "work" / name).write_text(
        'DEBUG=1\nexport ACME_TOKEN="Zq7rTq1v9WcX2bLk"\nURL=redis://:Pq8sUr2w0XdY3cMl@r/0\n'
    )
    assert set(kept(environment.environment_secrets(folder, {}, tmp_path / "home"))) == {
        "Zq7rTq1v9WcX2bLk",
        "Pq8sUr2w0XdY3cMl",
    }


@pytest.mark.parametrize("worktree", [False, True])
def test_a_token_in_gits_remote_is_known(tmp_path, worktree):
    git = tmp_path / "work" / ".git"
    git.mkdir(parents=True)
    (git / "config").write_text(
        '[remote "origin"]\n\turl = https://x-access-token:Zq7rTq1v9WcX2bLk@git.acme.dev/churn.git\n'
    )
    folder = tmp_path / "work"
    if worktree:
        folder = tmp_path / "tree"
        folder.mkdir()
        (git / "worktrees" / "tree").mkdir(parents=True)
        (folder / ".git").write_text(f"gitdir: {git / 'worktrees' / 'tree'}\n")
    assert "Zq7rTq1v9WcX2bLk" in kept(
        environment.environment_secrets(folder, {}, tmp_path / "home")
    )


def test_files_that_cannot_be_read_are_passed_over(tmp_path):
    (tmp_path / ".aws" / "credentials").mkdir(parents=True)
    (tmp_path / ".netrc").write_bytes(b"\xff\xfe machine")
    (tmp_path / ".npmrc").write_bytes(b"x" * (environment.MOST + 1))
    (tmp_path / ".git").write_text("gitdir: nowhere")
    assert not kept(environment.environment_secrets(tmp_path, {}, tmp_path))


def notebook(*sources):
    return json.dumps(
        {"cells": [{"cell_type": "code", "source": source} for source in sources]}
    ).encode()


def test_the_patterns_of_the_notebook_are_known(tmp_path):
    secrets = environment.environment_secrets(tmp_path, {}, tmp_path)
    book = notebook(
        "%tape set redact.customer=C-[0-9]+",
        ["x = 1\n", "  %tape set redact='Ada Roy'\n"],
        "%tape set redact.bad=(",
        "%tape set user_id=ada",
    )
    assert environment.with_patterns(secrets, book) == ["bad"]
    assert [
        (text[start:end], name)
        for text in ["of C-17 and Ada Roy"]
        for start, end, name, _ in secrets.find_matches(text)
    ] == [("C-17", "customer"), ("Ada Roy", "redacted")]
    assert (
        environment.notebook_patterns(b"[]") == environment.notebook_patterns(b"no notebook") == []
    )


def test_a_key_that_begins_with_a_slash_is_no_path(tmp_path):
    (tmp_path / "key7x2.pem").write_text("x")
    environ = {
        "ACME_TOKEN": "/f336g3q7cbvZNvX4SSHTL3AOxH0jP",
        "ACME_KEY": str(tmp_path / "key7x2.pem"),
    }
    assert list(kept(environment.environment_secrets(tmp_path, environ, tmp_path))) == [
        "/f336g3q7cbvZNvX4SSHTL3AOxH0jP"
    ]


@pytest.mark.parametrize(
    ("value", "first"),
    [
        ("sk-proj-9vQ2mZ7kLx41PwT8aaVd", "sk-proj-9vQ2mZ7kLx"),
        ("q7Zk2mV9xLp4Rt8wYc3n", "q7Zk2mV9xL"),
        ("q7Zk2mV9xLp4", ""),
        ("correct-horse-battery-staple-of-old", ""),
        ("postgresql-production-database-url", ""),
    ],
)
def test_of_a_drawn_value_the_first_ten_letters_are_known(value, first):
    assert environment.key_beginning(value) == first


def test_a_key_that_was_cut_is_found(tmp_path):
    (tmp_path / ".env").write_text("ACME_API_KEY=q7Zk2mV9xLp4Rt8wYc3n\n")
    secrets = environment.environment_secrets(tmp_path, {}, tmp_path)
    environment.with_beginnings(secrets)
    said = leaks.scan({"out.txt": b"key begins with q7Zk2mV9xL..."}, secrets)
    assert [leak.kind.partition(" ")[0] for leak in said] == ["known"]
