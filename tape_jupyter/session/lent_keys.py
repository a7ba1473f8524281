"""Between taped cells of a notebook that has a cassette, code that looks up a key that is not set
is lent a placeholder, so that clients made there can replay. Nothing is put into the environment;
what is set wins.

Not lent: while a cell records or goes live; to code that would set the key or ask a person for it;
to libraries that look in files next; what another variable, a profile or a file of this machine
stands for.
"""

from __future__ import annotations

import dis
import os
import re
import sys
from collections.abc import Callable, Iterable
from functools import lru_cache
from pathlib import Path
from types import CodeType, FrameType
from urllib.parse import urlsplit

from tape_jupyter.audit import environment as audit_environment
from tape_jupyter.cassette.cassette import Cassette
from tape_jupyter.core.call import Request
from tape_jupyter.core.stubs import do_nothing
from tape_jupyter.errors import CassetteError
from tape_jupyter.instrumentation import environment
from tape_jupyter.isolation.network_guard import is_user_code
from tape_jupyter.providers import hosts, registry
from tape_jupyter.secrets.registry import Secrets, names_a_secret, placeholder
from tape_jupyter.session import placeholders

SAME = (
    placeholders.GOOGLE,
    ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_PROFILE", "ANTHROPIC_IDENTITY_TOKEN",
     "ANTHROPIC_IDENTITY_TOKEN_FILE"),
    ("AZURE_OPENAI_API_KEY", "AZURE_OPENAI_AD_TOKEN"),
    ("OPENAI_API_KEY", "OPENAI_ADMIN_KEY"),
    ("AWS_BEARER_TOKEN_BEDROCK", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"),
    ("CO_API_KEY", "COHERE_API_KEY"),
    ("LANGSMITH_API_KEY", "LANGCHAIN_API_KEY"),
)  # fmt: skip
"""Variables one of which is enough: where one is set, the others are not lent."""
READERS = frozenset(
    {
        "tape_jupyter",
        "IPython",
        "botocore",
        "huggingface_hub",
        "wandb",
        "kaggle",
        "google.auth",
        "azure",
        "msal",
    }
    | {"dotenv", "decouple", "environs", "dynaconf", "starlette", "prettyconf", "pydantic_settings"}
)
"""Libraries that look in files for what the environment has not: a placeholder would stand in the
way of that.
"""
_PROVIDES = frozenset({"getpass", "input", "load_dotenv", "dotenv_values", "find_dotenv", "prompt"})
_ANTHROPIC_ASKS = ("_has_auto_discoverable_credentials", "_has_active_profile_config")
_NEAR = 5  # instructions from `environ` to where its item is set, the key between them
_LOOKED_AT = 200  # calls whose URLs are read for a region or a project
_PROJECT = re.compile(r"/projects/([\w.:-]+)/")


class Lending:
    """What is lent in one kernel. `busy`: a taped cell runs, which has what it is to have; then
    nothing is lent.
    """

    def __init__(self, secrets: Secrets, busy: Callable[[], bool]) -> None:
        self._secrets, self._busy = secrets, busy
        self._folder: Path | None = None
        self._cassettes: Callable[[], Iterable[Cassette]] = tuple
        self._undo: Callable[[], None] = do_nothing
        self._addresses: dict[str, str] = {}  # that were lent
        # of which cassettes, as long as they are
        self._read: tuple[list[tuple[Path, int]], dict[str, str]] = (
            [],
            {},
        )

    @property
    def cassettes(self) -> Iterable[Cassette]:
        """Those of the notebook."""
        return self._cassettes()

    @property
    def lends(self) -> bool:
        """Whether what is missing here and now has a placeholder."""
        return self._folder is not None and not self._busy()

    @property
    def watches(self) -> bool:
        """Whether a request could carry something of what was lent, here or in a replayed cell."""
        return self._secrets.any_stand_in or bool(self._addresses)

    def lacks(self, request: Request) -> str:
        """What a request that goes live lacks, since a placeholder stands in for it; "" if nothing.

        An address that was lent counts until the person has a key or an address of that maker.
        """
        if not self.watches:
            return ""
        if carried := self._secrets.stood_for(
            request.url, *(value for _, value in request.headers), request.body
        ):
            return carried
        # something in it was masked
        sent = request.large.sent if request.large is not None else None
        if carried := next(
            filter(None, map(self._secrets.stood_for, sent.blocks() if sent is not None else ())),
            "",
        ):
            return carried
        lent = (name for name, value in self._addresses.items() if request.url.startswith(value))
        for n in lent:
            if not environment.is_set(n) and not placeholders.is_kept_by_a_key(n):
                return n
        return ""

    def start(self, folder: Path, cassettes: Callable[[], Iterable[Cassette]]) -> None:
        """Lend what the cassettes of this folder name. They are read when a key is first looked
        for.
        """
        if self._folder is None:
            self._undo = environment.patch(self._lend_value, self._is_own_placeholder)
        self._folder, self._cassettes = folder, cassettes

    def stop(self) -> None:
        """The environment is as without us."""
        self._undo()
        self._undo, self._folder, self._cassettes = do_nothing, None, tuple

    def find_missed_key(self, error: BaseException) -> str:
        """The key that an error of a cell speaks of, which is on the tape and not set here: it was
        read where none is lent (a copy of the environment, pydantic-settings). "" if none.
        """
        if not self.lends:
            return ""
        words = set(re.findall(r"\w+", f"{error}".upper()))
        keys = [name for name in self._read_recorded_values() if names_a_secret(name)]
        return next((n for n in keys if n in words and not environment.is_set(n)), "")

    def _is_own_placeholder(self, name: str, value: str) -> bool:
        """Whether what a program sets is a placeholder, and that variable has one of its own."""
        return (
            self.lends
            and self._secrets.is_placeholder(value)
            and self._find_recorded_value(name) is not None
        )

    def _lend_value(self, name: str, frame: FrameType) -> str | None:
        if (
            not self.lends
            or not (names_a_secret(name) or name.endswith(placeholders.SETTINGS))
            or not _may_receive_key(frame)
        ):
            return None
        value = self._find_recorded_value(name)
        if value is not None:
            self._register_lent_value(name, value)
        return value

    def _register_lent_value(self, name: str, value: str) -> None:
        if value == placeholder(name):
            self._secrets.create_placeholder(name)
        elif placeholders.is_endpoint_setting(value) and not _is_safe_address(name, value):
            self._addresses[name] = value

    def _find_recorded_value(self, name: str) -> str | None:
        """What the recordings have for a variable that is not set; None where another takes its
        place.
        """
        if names_a_secret(name):
            if _has_alternative(name):
                return None
            return self._read_recorded_values().get(name)
        is_replaced = not name.endswith("_API_VERSION") and (
            placeholders.is_kept_by_a_key(name) or (name in audit_environment.VERTEX and _has_adc())
        )
        return None if is_replaced else self._read_recorded_values().get(name)

    def _read_recorded_values(self) -> dict[str, str]:
        cassettes = list(self._cassettes())
        state = [(cassette.path, cassette.size) for cassette in cassettes]
        if state != self._read[0]:
            self._read = state, _collect_recorded_values(cassettes)
        return self._read[1]


def open_cassettes(
    folder: Path, opened: Callable[[Path], Cassette]
) -> Callable[[], Iterable[Cassette]]:
    """The notebook's cassettes as they are when asked; one that cannot be read lends nothing."""

    def read_cassettes() -> Iterable[Cassette]:
        for path in sorted(folder.glob("*.tape.yaml")):
            try:
                yield opened(path)
            except (CassetteError, OSError):
                continue

    return read_cassettes


# ---- who looks


def _may_receive_key(frame: FrameType) -> bool:
    """Whether the code of this frame only wants to use what it looks up."""
    module = str(frame.f_globals.get("__name__", ""))
    if any(module == reader or module.startswith(f"{reader}.") for reader in READERS):
        return False
    installed = re.search(r"(?:site|dist)-packages", frame.f_code.co_filename) is not None
    return (installed or is_user_code(frame)) and not provides(frame.f_code)


@lru_cache(maxsize=512)
def provides(code: CodeType) -> bool:
    """Whether a function, or a statement of a cell, asks for keys or sets them where some condition
    holds: `if not os.environ.get("A"): os.environ["A"] = getpass()`. It is told the truth.
    """
    if _PROVIDES.intersection(code.co_names):
        return True
    steps = list(dis.get_instructions(code))
    if not any("JUMP" in step.opname for step in steps):
        return False
    for at, step in enumerate(steps):
        # os.environ["A"] = value: environ is loaded shortly before
        nearby = steps[max(0, at - _NEAR) : at]
        if step.opname == "STORE_SUBSCR" and any(each.argval == "environ" for each in nearby):
            return True
    return False


# ---- what is here


def _has_alternative(name: str) -> bool:
    """Whether another variable is set that is as good, or a profile of this machine is."""
    if any(environment.is_set(other) for same in SAME if name in same for other in same):
        return True
    return name == "ANTHROPIC_API_KEY" and _has_anthropic_profile()


def _has_anthropic_profile() -> bool:
    """Whether Anthropic's SDK, from version 2, would find credentials of its own here."""
    module = sys.modules.get("anthropic.lib.credentials._constants")
    checks = [getattr(module, name, None) for name in _ANTHROPIC_ASKS]
    return any(check() for check in checks if callable(check))


def _has_adc() -> bool:
    """Whether this machine has Google's application default credentials in a file."""
    named = os.environ.get("GOOGLE_APPLICATION_CREDENTIALS", "")
    usual = Path("~/.config/gcloud/application_default_credentials.json")
    return any(path.expanduser().is_file() for path in ([Path(named)] if named else [usual]))


def _is_safe_address(name: str, address: str) -> bool:
    """Whether a real key may go there: to this machine, or where the client goes in any case
    (ANTHROPIC_BASE_URL=https://api.anthropic.com).
    """
    host = urlsplit(address if "://" in address else f"//{address}").hostname or ""
    provider = registry.find_host_provider(host)
    return hosts.loopback(host) or (
        bool(provider) and name.lower().startswith(provider.replace("-", ""))
    )


# ---- what recordings tell


def _collect_recorded_values(cassettes: Iterable[Cassette]) -> dict[str, str]:
    values: dict[str, str] = {}
    for cassette in cassettes:
        for run in cassette.runs:
            values |= placeholders.recorded_placeholders(run)
    return values


def recorded_settings(cassettes: Iterable[Cassette]) -> dict[str, str]:
    """What the recordings had in the environment; AWS_REGION and GOOGLE_CLOUD_PROJECT else as their
    requests name them, where a profile or a file told the client.
    """
    cassettes = list(cassettes)
    settings = _collect_recorded_values(cassettes)
    if region := settings.get("AWS_DEFAULT_REGION"):
        settings.setdefault("AWS_REGION", region)
    if {"AWS_REGION", "GOOGLE_CLOUD_PROJECT"} <= settings.keys():
        return settings
    for url in _read_recorded_urls(cassettes):
        host = urlsplit(url).hostname or ""
        if host.endswith((".amazonaws.com", ".api.aws")) and (region := hosts.region(url)):
            settings.setdefault("AWS_REGION", region)
        elif host.endswith(".googleapis.com") and (project := _PROJECT.search(url)):
            settings.setdefault("GOOGLE_CLOUD_PROJECT", project[1])
    return settings


def _read_recorded_urls(cassettes: Iterable[Cassette]) -> Iterable[str]:
    for cassette in cassettes:
        for entry in cassette.calls[:_LOOKED_AT]:
            try:
                request = entry.request()
            except CassetteError:
                continue
            if isinstance(request, Request):
                yield request.url
