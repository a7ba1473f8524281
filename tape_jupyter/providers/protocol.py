"""What a provider's API is made of: one `Provider` for each wire format.

The built-in ones are listed in `registry.BUILT_IN`. Other packages add theirs by the entry point
group `tape_jupyter.providers`, whose entries name a `Provider`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple, Protocol

from tape_jupyter.providers.streams.events import StreamEvent
from tape_jupyter.providers.types import ReplyView, RequestView

Message = dict[str, Any]
Path = tuple[str | int, ...]
"""Where something stands in a message: keys and places, from the outside in."""

TAPE_ONLY: Final = "tape only"
"""How a note begins that says a live API would refuse this message in a later request."""


class View(Protocol):
    """Reads what a request asks and what a reply answers. Looks at parsed bodies only, which may
    hold anything; never raises.
    """

    @property
    def WANTED(self) -> tuple[bytes, ...]:  # noqa: N802 - a constant of a module
        """Parts of the events that `assemble` needs; a stream's other events are passed over."""

    def ask(self, body: Any) -> RequestView: ...
    def answer(self, body: Any) -> ReplyView: ...

    def assemble(self, events: Iterable[Any]) -> Any:
        """The body that a stream's events amount to, for `answer`."""


class ToolCallPaths(NamedTuple):
    """Where a tool call stands in a message, and in it the tool's name and the arguments."""

    call: Path
    name: Path
    arguments: Path


class MessageFormat(Protocol):
    """A reply as a message that people edit, and back as a reply of the same form."""

    parts: str
    """The message's key for the list of its parts: "content", "choices"."""

    @property
    def stop_reasons(self) -> tuple[str, ...]: ...

    def read(self, events: Sequence[StreamEvent]) -> Message:
        """The message that a stream amounts to."""

    def rewrite(
        self, events: Sequence[StreamEvent], message: Mapping[str, Any]
    ) -> list[StreamEvent]:
        """The stream that says another message; events that did not change keep their bytes."""

    def compose(self, message: Mapping[str, Any]) -> list[StreamEvent]:
        """A stream made from the message alone."""

    def expanded(self, partial: Mapping[str, Any], message: Mapping[str, Any]) -> Mapping[str, Any]:
        """A change in a person's short words (`{"content": "No."}`) as the API spells it."""

    def adjust_dependents(self, old: Mapping[str, Any], new: Message) -> list[str]:
        """Change in `new` what follows from its differences; a sentence for each change."""

    def part_problem(self, part: Mapping[str, Any]) -> tuple[str, str]:
        """What a part of a message lacks: the path of it inside the part, and a sentence; else
        two empty texts.
        """

    def texts(self, message: Mapping[str, Any]) -> Iterator[Path]: ...
    def thinking(self, message: Mapping[str, Any]) -> Iterator[Path]: ...
    def tool_calls(self, message: Mapping[str, Any]) -> Iterator[ToolCallPaths]: ...
    def stops(self, message: Mapping[str, Any]) -> Iterator[Path]:
        """Where the message says how it ended."""


class ProviderError(NamedTuple):
    """An error that a provider answers with, in the words of several."""

    status: int
    kind: str
    word: str
    text: str


def openai_error(error: ProviderError) -> Any:
    """The body of an error as OpenAI and most hosts of its API send it."""
    code = "rate_limit_exceeded" if error.status == 429 else None
    return {"error": {"message": error.text, "type": error.kind, "param": None, "code": code}}


def plain_error(error: ProviderError) -> Any:
    """The body of an error that is a message and nothing else (Bedrock, Cohere, Mistral)."""
    return {"message": error.text}


@dataclass(frozen=True)
class Provider:
    """One wire format: how its calls are known, read and edited."""

    wire: str
    """The format's name, which recordings do not hold: it is told from the address each time."""
    view: View
    paths: Sequence[tuple[str, str]] = ()
    """Ends of URL paths as regular expressions, each with its operation. The groups `api` and
    `model`, where an expression has them, win. Without any, those of others count on its hosts.
    """
    hosts: Mapping[str, str] = field(default_factory=dict)
    """Ends of host names, each with who serves there. The longest end that fits counts. What goes
    to them is of the class `model`: names that serve other things, too, do not belong here.
    """
    host_patterns: Mapping[str, str] = field(default_factory=dict)
    """The same for names that differ before their end, as regular expressions."""
    owner: str = ""
    """Who is assumed to serve the format on a host that is not known (default: `wire`)."""
    counts_on: Literal["any host", "own and unknown hosts", "own hosts"] = "any host"
    """Where the paths count. Formats that others speak too count on any host."""
    port: int | None = None
    """A port at which nobody else serves."""
    model_addresses: str = ""
    """Addresses whose calls are of the class `model` whoever serves them: a regular expression,
    searched in `host:port/path` (this machine's names as `localhost`). Wider than `paths` where an
    API has operations that the view does not read, narrower where its paths are common words.
    """
    messages: MessageFormat | None = None
    """None: its replies are edited as text or JSON."""
    error_body: Callable[[ProviderError], Any] = openai_error
    overloaded: int = 503
    """The status by which it says that it is overloaded."""
    seeds: bool = False
    """Whether its requests have a field for a seed."""
