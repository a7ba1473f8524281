"""Credentials that SDKs find in more places than the environment: AWS (profiles, SSO, roles),
Google's default credentials, Azure AD; and what a client of Anthropic that was built without a key
says of that.

While the tape answers, none is fetched: a placeholder does, and it never goes out. Between the
taped cells of a notebook that has a cassette, what the SDK finds holds, and a placeholder stands in
where it finds nothing.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from importlib import import_module
from types import FunctionType, ModuleType
from typing import Any

from tape_jupyter import instrumentation
from tape_jupyter.instrumentation.patching import swap, undoing
from tape_jupyter.instrumentation.tools.code_swap import swap_code

AWS = "AWS_SECRET_ACCESS_KEY"
_AWS_TOLD = "AWS_ACCESS_KEY_ID with AWS_SECRET_ACCESS_KEY (or a profile)"
_GOOGLE_TOLD = (
    "GOOGLE_APPLICATION_CREDENTIALS (or what `gcloud auth application-default login` writes)"
)
_AZURE_TOLD = "AZURE_CLIENT_SECRET (or what `az login` writes)"
_METHOD = "tape"
_ANY_REGION = "us-east-1"
"""Where no recorded URL names one, the program names an endpoint of its own, and the region is in
no request.
"""
_FAR = 4_102_444_800  # 2100-01-01: a placeholder does not expire

Undo = Callable[[], None]


def patch(module: ModuleType) -> Undo:
    """Tap one of the modules named in `arrivals`. Returns the undo."""
    if module.__name__ == "botocore.session":
        return _patch_session(module)
    if module.__name__ == "botocore.signers":
        return swap(module.RequestSigner, "get_auth_instance", _wrap_get_auth_instance)
    if module.__name__ == "google.auth._default":
        return _patch_google(module)
    if module.__name__ == "anthropic._client":
        return undoing(
            *(
                swap(kind, "_validate_headers", _wrap_validate_headers)
                for kind in (module.Anthropic, module.AsyncAnthropic)
            )
        )
    kinds = [each for each in vars(module).values() if inspect.isclass(each)]
    methods = [
        (kind, name)
        for kind in kinds
        for name in ("get_token", "get_token_info")
        if name in vars(kind)
    ]
    return undoing(
        *(
            swap(kind, name, functools.partial(_wrap_get_token, info=name != "get_token"))
            for kind, name in methods
        )
    )


_INSIDE: ContextVar[bool] = ContextVar("tape credentials", default=False)
"""A chain of credentials asks its own: the placeholder comes after all of them."""


@contextmanager
def _enter_chain() -> Iterator[None]:
    token = _INSIDE.set(True)
    try:
        yield
    finally:
        _INSIDE.reset(token)


# ---- AWS


def _patch_session(module: ModuleType) -> Undo:
    session = module.Session
    return undoing(
        swap(session, "get_credentials", _wrap_get_credentials),
        swap(
            session,
            "get_scoped_config",
            functools.partial(_wrap_get_scoped_config, missing=module.ProfileNotFound),
        ),
        swap(session, "get_config_variable", _wrap_get_config_variable),
    )


def _wrap_get_credentials(original: Callable[[Any], Any]) -> Callable[[Any], Any]:
    @functools.wraps(original)
    def get_credentials(session: Any) -> Any:
        credentials = None if instrumentation.replays() else original(session)
        return _build_aws_credentials() if credentials is None else credentials

    return get_credentials


def _wrap_get_scoped_config(
    original: Callable[[Any], Any], missing: type[Exception]
) -> Callable[[Any], Any]:
    @functools.wraps(original)
    def get_scoped_config(session: Any) -> Any:
        try:
            return original(session)
        except missing:
            if _build_aws_credentials() is None:
                raise
            return {}

    return get_scoped_config


def _wrap_get_config_variable(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def get_config_variable(session: Any, logical_name: str, *more: Any, **options: Any) -> Any:
        value = original(session, logical_name, *more, **options)
        if value is not None or logical_name != "region" or _INSIDE.get():
            return value
        with _enter_chain():  # finding credentials asks for the region
            credentials = session.get_credentials()
        if getattr(credentials, "method", "") != _METHOD:
            return None
        return instrumentation.setting("AWS_REGION") or _ANY_REGION

    return get_config_variable


def _wrap_get_auth_instance(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def get_auth_instance(
        signer: Any, *args: Any, request_credentials: Any = None, **options: Any
    ) -> Any:
        if request_credentials is None and instrumentation.replays():
            request_credentials = _build_aws_credentials()
        return original(signer, *args, request_credentials=request_credentials, **options)

    return get_auth_instance


def _build_aws_credentials() -> Any:
    key = instrumentation.credential_stand_in("AWS_ACCESS_KEY_ID", _AWS_TOLD)
    secret = instrumentation.credential_stand_in(AWS, _AWS_TOLD)
    if key is None or secret is None:
        return None
    from botocore.credentials import Credentials  # type: ignore[import-untyped]

    return Credentials(key, secret, method=_METHOD)


# ---- Google


def _patch_google(module: ModuleType) -> Undo:
    default: Any = module.default
    if isinstance(default, FunctionType):
        return swap_code(default, _wrap_google_default)
    return lambda: None


def _wrap_google_default(body: Callable[..., Any]) -> Callable[..., Any]:
    def default(*args: Any, **options: Any) -> Any:
        from google.auth.exceptions import DefaultCredentialsError

        if instrumentation.replays() and (stand_in := _build_google_credentials()) is not None:
            return stand_in
        try:
            return body(*args, **options)
        except DefaultCredentialsError:
            if (stand_in := _build_google_credentials()) is None:
                raise
            return stand_in

    return default


def _build_google_credentials() -> Any:
    token = instrumentation.credential_stand_in("GOOGLE_ACCESS_TOKEN", _GOOGLE_TOLD)
    if token is None:
        return None
    from google.oauth2.credentials import Credentials

    kind = type("StandIn", (Credentials,), {"refresh": lambda _self, _request: None})
    return kind(token), instrumentation.setting("GOOGLE_CLOUD_PROJECT")


# ---- Azure


def _wrap_get_token(original: Callable[..., Any], *, info: bool) -> Callable[..., Any]:
    if inspect.iscoroutinefunction(original):

        @functools.wraps(original)
        async def fetch_token(credential: Any, *args: Any, **options: Any) -> Any:
            if _INSIDE.get():
                return await original(credential, *args, **options)
            if (
                instrumentation.replays()
                and (stand_in := _build_azure_token(info=info)) is not None
            ):
                return stand_in
            with _enter_chain():
                try:
                    return await original(credential, *args, **options)
                except Exception as error:
                    return _build_token_or_raise(error, info=info)

        return fetch_token

    @functools.wraps(original)
    def get_token(credential: Any, *args: Any, **options: Any) -> Any:
        if _INSIDE.get():
            return original(credential, *args, **options)
        if instrumentation.replays() and (stand_in := _build_azure_token(info=info)) is not None:
            return stand_in
        with _enter_chain():
            try:
                return original(credential, *args, **options)
            except Exception as error:
                return _build_token_or_raise(error, info=info)

    return get_token


def _build_token_or_raise(error: Exception, *, info: bool) -> Any:
    refused = import_module("azure.core.exceptions").ClientAuthenticationError
    stand_in = _build_azure_token(info=info) if isinstance(error, refused) else None
    if stand_in is None:
        raise error
    return stand_in


def _build_azure_token(*, info: bool) -> Any:
    token = instrumentation.credential_stand_in("AZURE_ACCESS_TOKEN", _AZURE_TOLD)
    if token is None:
        return None
    module = import_module("azure.core.credentials")
    if info:
        return module.AccessTokenInfo(token, _FAR)
    return module.AccessToken(token, _FAR)


# ---- Anthropic


def _wrap_validate_headers(original: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(original)
    def validate_headers(client: Any, *args: Any, **options: Any) -> None:
        if not instrumentation.replays():
            original(client, *args, **options)

    return validate_headers
