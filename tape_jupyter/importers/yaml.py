"""YAML that others wrote, strictly: no code, no anchors, no merge keys, no tags but bytes. Needs
PyYAML.
"""

from __future__ import annotations

import base64
from functools import cache
from typing import Any

from tape_jupyter.errors import TapeError

MAX_DEPTH = 200
_TOO_DEEP = "it is nested too deep"
_PARSERS_DEPTH = "exceeded maximum nesting depth"
"""What libyaml says of its own limit, from 0.2.6 on (PyYAML 6.0.4 carries it)."""
_KEPT = ("bool", "int", "float", "null")
_PREFIX = "tag:yaml.org,2002:"


class YamlError(TapeError):
    """A text that is no YAML, or YAML that may do more than hold data. `line` is 1-based."""

    def __init__(self, reason: str, line: int = 0) -> None:
        self.reason, self.line = reason, line
        super().__init__(reason)


def load_document(text: str, yaml: Any) -> Any:
    """The data of one document. `yaml` is the module PyYAML. Raises YamlError naming the line."""
    try:
        _check_events(text, yaml)
        return yaml.load(text, _build_loader(yaml))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 0
        if error.problem == _PARSERS_DEPTH:
            raise YamlError(_TOO_DEEP, line) from None
        raise YamlError(f"is not YAML that is read: {error.problem}", line) from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise YamlError(f"is not YAML that is read: {str(error)[:200]}") from None


def _check_events(text: str, yaml: Any) -> None:
    depth = 0
    for event in yaml.parse(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
        line = event.start_mark.line + 1
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise YamlError(
                "an anchor or alias: refused, as a few lines of them can become gigabytes", line
            )
        if isinstance(event, yaml.ScalarEvent) and event.value == "<<" and not event.style:
            raise YamlError("a merge key (<<): refused", line)
        depth += isinstance(event, (yaml.MappingStartEvent, yaml.SequenceStartEvent))
        depth -= isinstance(event, (yaml.MappingEndEvent, yaml.SequenceEndEvent))
        if depth > MAX_DEPTH:
            raise YamlError(_TOO_DEEP, line)


@cache
def _build_loader(yaml: Any) -> Any:
    base = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

    class Strict(base):  # type: ignore[misc,valid-type]
        """Times stay texts; a tag that is not named here is an error."""

        yaml_implicit_resolvers = {  # noqa: RUF012 - as PyYAML has it
            first: [(tag, shape) for tag, shape in resolvers if tag.removeprefix(_PREFIX) in _KEPT]
            for first, resolvers in base.yaml_implicit_resolvers.items()
        }

    def construct_binary(loader: Any, node: Any) -> bytes:
        return base64.b64decode("".join(loader.construct_scalar(node).split()))

    def construct_stream(loader: Any, node: Any) -> Any:
        """An old vcrpy's io.BytesIO: its content is the first of its state."""
        mapping = loader.construct_mapping(node, deep=True)
        state = mapping.get("state") or [b""]
        if isinstance(state, list) and isinstance(state[0], (bytes, str)):
            return state[0]
        return b""

    for tag in (f"{_PREFIX}binary", "!binary"):
        Strict.add_constructor(tag, construct_binary)
    for name in ("str", "unicode"):
        Strict.add_constructor(f"{_PREFIX}python/{name}", base.construct_yaml_str)
    Strict.add_constructor(
        f"{_PREFIX}python/tuple", lambda loader, node: loader.construct_sequence(node, deep=True)
    )

    def construct_parts(loader: Any, node: Any) -> Any:
        """An iterator over a body's parts: those parts, put together."""
        arguments = loader.construct_mapping(node, deep=True).get("args") or [[]]
        parts = [each.encode() if isinstance(each, str) else each for each in arguments[0]]
        return b"".join(each for each in parts if isinstance(each, bytes))

    Strict.add_constructor(f"{_PREFIX}python/object/new:_io.BytesIO", construct_stream)
    Strict.add_constructor(f"{_PREFIX}python/object/apply:builtins.iter", construct_parts)
    return Strict
