"""What is secret here and now: the environment's keys, the folder's `.env` files, the credentials
that programs keep in the home folder, and what stands in git's configuration. Read for an export;
no value leaves this room but to be looked for (secrets/leaks.py) and masked (redaction.py).
"""

from __future__ import annotations

import json
import netrc
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from tape_jupyter.core.saved_cells import load_saved_cells
from tape_jupyter.errors import TapeUsageError
from tape_jupyter.secrets import key_patterns
from tape_jupyter.secrets.registry import Secrets, names_a_secret, placeholder, plainly_none

MOST = 256 * 1024
"""Bytes of a file of credentials; a larger one is none."""
KEPT = (
    ".aws/credentials", ".aws/config", ".pypirc", ".npmrc", ".yarnrc.yml", ".docker/config.json",
    ".git-credentials", ".gitconfig", ".config/git/credentials", ".config/gh/hosts.yml", ".config/hub",
    ".config/glab-cli/config.yml", ".cache/huggingface/token", ".cache/huggingface/stored_tokens",
    ".huggingface/token", ".kaggle/kaggle.json", ".config/pip/pip.conf", ".pip/pip.conf",
    ".config/pypoetry/auth.toml", ".config/uv/credentials.toml",
    ".config/gcloud/application_default_credentials.json", ".databrickscfg", ".pgpass", ".my.cnf",
    ".snowflake/config.toml", ".snowflake/connections.toml", ".modal.toml", ".cargo/credentials.toml",
    ".terraform.d/credentials.tfrc.json", ".config/wandb/settings", ".anthropic/config.json",
    ".openai/config.json", ".config/io.datasette.llm/keys.json",
)  # fmt: skip
"""Where programs keep credentials, below the home folder."""

_LINE = re.compile(
    r"^[ \t]*(?:export[ \t]+)?[\"']?([\w./:@-]{1,120})[\"']?[ \t]*[=:][ \t]*(.+?)[ \t]*,?[ \t]*$",
    re.MULTILINE,
)
_IN_URL = re.compile(r"://[^\s/:@\"']*:([^\s/@\"']+)@")
_CREDENTIAL = re.compile(
    r"(?:_auth|_authToken|auth|oauth_token|token|password|passwd|pass|secret|key|credential|api_?key|access_?key)\Z",
    re.IGNORECASE,
)
_SET = re.compile(
    r"^[ \t]*%tape[ \t]+set[ \t]+redact(?:\.([A-Za-z][\w-]*))?=(.+?)[ \t]*$", re.MULTILINE
)


def environment_secrets(
    folder: Path, environ: Mapping[str, str] | None = None, home: Path | None = None
) -> Secrets:
    """What is secret for whoever exports from `folder` (the notebook's). What cannot be read is
    passed over.
    """
    environ = os.environ if environ is None else environ
    secrets = Secrets()
    secrets.learn_environment(
        {
            name: value for name, value in environ.items() if value != placeholder(name)
        }  # a replay's, nobody's key
    )
    for (
        name,
        value,
    ) in environ.items():  # a path, to the recorder; a key may begin with a slash as well
        if (
            names_a_secret(name)
            and value.startswith(("/", "~"))
            and key_patterns.mixed(value)
            and value.count("/") < 6
        ):
            # these raise for no text
            is_file = os.path.exists(os.path.expanduser(value))  # noqa: PTH110, PTH111
            secrets.learn(name, "" if is_file else value, explicit=False)
    try:
        home = Path.home() if home is None else home
    except RuntimeError:
        home = folder
    for path in _list_secret_files(folder, home):
        text = _read_text(path)
        for name, value in credentials(text) if text else ():
            secrets.learn(name, value, explicit=False)
    for name, value in _read_netrc_passwords(home):
        secrets.learn(name, value, explicit=False)
    return secrets


def with_beginnings(secrets: Secrets) -> None:
    """Learn what is left of each value where its rest was cut off."""
    for value, _, name in secrets.list_values():
        secrets.learn(name, key_beginning(value), explicit=False)


def key_beginning(value: str) -> str:
    """What is left of a drawn value that was cut: its first ten letters, past what its issuer
    begins every key with; "" for a value that is too short for that, or that has no such beginning.
    """
    issuer = _ISSUER.match(value)
    start = issuer.end() if issuer is not None else 0
    drawn = value[start : start + BEGINNING]
    enough = len(value) >= start + 2 * BEGINNING and value.isprintable()
    return value[: start + BEGINNING] if enough and key_patterns.mixed(drawn) else ""


BEGINNING = 10
_ISSUER = re.compile(r"(?:[A-Za-z][A-Za-z0-9]{0,9}[-_.]){1,4}")


def with_patterns(secrets: Secrets, notebook: bytes) -> list[str]:
    """Learn the patterns that a notebook sets (`%tape set redact.NAME=REGEX`), and the texts that
    they are literally.

    Gives the names of those that are no good as a pattern, and hold nothing back.
    """
    wrong = []
    for name, regex in notebook_patterns(notebook):
        try:
            secrets.pattern(regex, name)
        except TapeUsageError:
            wrong.append(name)
    return wrong


def notebook_patterns(notebook: bytes) -> list[tuple[str, str]]:
    """Name and regular expression of each pattern that the code cells of a notebook set."""
    return [
        (name or "redacted", regex.strip("\"'"))
        for cell in load_saved_cells(notebook)
        for name, regex in _SET.findall(cell.source)
    ]


def credentials(text: str) -> Iterator[tuple[str, str]]:
    """Names and values of what a file of settings or credentials holds that is a secret."""
    for secret in key_patterns.find_keys(text):
        yield secret.kind, secret.value
    for password in _IN_URL.findall(text):  # whatever it looks like: it stands where passwords do
        yield from (("url-password", each) for each in {password, unquote(password)})
    for name, value in (*_LINE.findall(text), *_iterate_json_fields(text)):
        plain = value.strip().strip("\"'")
        if (
            (names_a_secret(name) or _CREDENTIAL.search(name))
            and not plainly_none(plain)
            and " " not in plain
        ):
            yield name.rpartition("/")[2], plain
    if re.fullmatch(r"\S{16,300}", text.strip()) and not plainly_none(text.strip()):
        yield "token", text.strip()  # a file that is nothing but a token
    for line in text.splitlines():
        value = line.rpartition(":")[2].strip()
        if line.count(":") == 4 and "//" not in line and re.fullmatch(r"\S{8,}", value):  # .pgpass
            yield "password", value


def _iterate_json_fields(text: str) -> Iterable[tuple[str, str]]:
    try:
        stack: list[Any] = [json.loads(text)]
    except (ValueError, RecursionError):
        return
    while stack:
        each = stack.pop()
        if isinstance(each, dict):
            yield from ((str(key), value) for key, value in each.items() if isinstance(value, str))
            stack.extend(each.values())
        elif isinstance(each, list):
            stack.extend(each)


def _list_secret_files(folder: Path, home: Path) -> Iterator[Path]:
    """Credentials below the home folder; `.env` files of the folder and of those above it, up to
    the home folder, where `load_dotenv` finds them; the configuration of the first repository on
    the way.
    """
    yield from (home / name for name in KEPT)
    top, in_repository = folder.resolve(), False
    for place in (top, *top.parents):
        if not place.is_dir():
            return
        yield from sorted({*place.glob(".env"), *place.glob(".env.*"), *place.glob("*.env")})
        if not in_repository and (config := _find_git_config(place)) is not None:
            in_repository = True
            yield config
        if place == home:
            return


def _find_git_config(place: Path) -> Path | None:
    """Git's configuration of the work tree whose root this is."""
    path = place / ".git"
    if path.is_file():  # a worktree or a submodule: the file says where
        target = _read_text(path).partition("gitdir:")[2].strip()
        path = (place / target).resolve() if target else path
        path = path.parent.parent if path.parent.name == "worktrees" else path
    return path / "config" if (path / "config").is_file() else None


def _read_text(path: Path) -> str:
    try:
        if not path.is_file() or path.stat().st_size > MOST:
            return ""
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _read_netrc_passwords(home: Path) -> Iterator[tuple[str, str]]:
    for name in (".netrc", "_netrc"):
        try:
            hosts = netrc.netrc(str(home / name)).hosts
        except (OSError, netrc.NetrcParseError, UnicodeDecodeError):
            continue
        yield from (
            (f"netrc-{host}", password) for host, (_, _, password) in hosts.items() if password
        )
