"""The search for a cause: the two ends, the layers, the 1-minimal set of parts, and the place inside
each reply of it that does it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from tape_jupyter.cassette.cassette import Entry
from tape_jupyter.cassette.records import response_section
from tape_jupyter.cassette.takes.edits import apply_edit
from tape_jupyter.core.call import Reply, Request
from tape_jupyter.errors import TapeError, TapeUsageError
from tape_jupyter.experiments.causes.fragments import Fragment, Fragments, fragments
from tape_jupyter.experiments.causes.parts import Differences, Part
from tape_jupyter.experiments.check import Verdict
from tape_jupyter.experiments.ddmin import Minimal, Outcome, minimal_subset
from tape_jupyter.experiments.trials.runner import Trial, TrialResult
from tape_jupyter.providers import editing, http
from tape_jupyter.secrets.registry import Secrets

Tried = Callable[[int, str, Outcome], None]
"""Told after each trial: its number, what was taken from the good recording, what came out."""
PLACES = 4096
"""Places in one reply that are looked at one by one, at most."""


class Runs(Protocol):
    """What runs a trial."""

    def run(self, trial: Trial) -> TrialResult: ...


@dataclass(frozen=True, slots=True)
class Place:
    """A part of a reply that makes the difference: its call, where in the reply, what stands there."""

    call: str
    fragment: Fragment

    def record(self) -> dict[str, str]:
        return {"call": self.call, **self.fragment.record()}


@dataclass(slots=True)
class Search:
    """One search. `results` are of every different trial; `seconds` their own time."""

    differences: Differences
    runner: Runs
    tried: Tried
    results: dict[tuple[Any, ...], TrialResult] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def unresolved(self) -> int:
        return sum(check_outcome(each) == "unresolved" for each in self.results.values())

    def result(
        self, numbers: Sequence[int], replies: Mapping[int, tuple[str, Mapping[str, Any]]] | None = None
    ) -> TrialResult:  # fmt: skip
        """The trial with these parts from the good side; `replies`: by part, a mark and another
        response.
        """
        chosen_replies = replies or {}
        key = (
            frozenset(numbers),
            *sorted((number, mark) for number, (mark, _) in chosen_replies.items()),
        )
        if key not in self.results:
            sections = {number: section for number, (_, section) in chosen_replies.items()}
            trial_result = self.runner.run(self.differences.trial(numbers, sections))
            self.note(key, trial_result, self._describe_trial(numbers, chosen_replies))
        return self.results[key]

    def note(self, key: tuple[Any, ...], trial_result: TrialResult, description: str) -> None:
        self.results[key] = trial_result
        self.seconds += trial_result.run.seconds
        self.tried(len(self.results), description, check_outcome(trial_result))

    def _describe_trial(self, numbers: Sequence[int], chosen_replies: Mapping[int, Any]) -> str:
        count = len(set(numbers))
        if count == len(self.differences.parts):
            amount = "all differences"
        else:
            amount = f"{count} of them"
        if not chosen_replies:
            return f"{amount} from the good run"
        return "a part of a reply"

    def outcome(self, numbers: Sequence[int]) -> Outcome:
        return check_outcome(self.result(numbers))

    # ------------------------------------------------------------ layers, parts

    def layers(self) -> dict[str, Outcome]:
        """What comes of taking all of one layer from the good side."""
        return {layer: self.outcome(numbers) for layer, numbers in self.by_layer().items()}

    def by_layer(self) -> dict[str, list[int]]:
        numbers_by_layer: dict[str, list[int]] = {}
        for number, part in enumerate(self.differences.parts):
            numbers_by_layer.setdefault(part.layer, []).append(number)
        return numbers_by_layer

    def minimal(self, layers: Mapping[str, Outcome]) -> tuple[int, ...]:
        """The 1-minimal set of parts: within one layer where that does it, else within as few as
        are needed together.
        """
        by_layer = self.by_layer()
        sufficient = [numbers for layer, numbers in by_layer.items() if layers[layer] == "flips"]
        if sufficient:
            return minimal_subset(min(sufficient, key=len), self.outcome).parts
        names = list(by_layer)
        together: Minimal[str] = minimal_subset(
            names, lambda some: self.outcome([each for name in some for each in by_layer[name]])
        )
        numbers = [each for name in names if name in together.parts for each in by_layer[name]]
        return minimal_subset(sorted(numbers), self.outcome).parts

    # ------------------------------------------------------------ inside replies

    def within(self, numbers: Sequence[int]) -> list[Place]:
        """Of each reply of the set, the places that are needed, the other replies being the good
        ones.
        """
        places: list[Place] = []
        for number in numbers:
            part = self.differences.parts[number]
            inside = _compare_part(part)
            if inside is None or not 0 < len(inside.fragments.places) <= PLACES:
                continue
            places += self._find_places(number, numbers, part, inside)
        return places

    def _find_places(
        self, number: int, numbers: Sequence[int], part: Part, inside: Inside
    ) -> list[Place]:
        places = inside.fragments.places
        rest = [each for each in numbers if each != number]

        def try_places(chosen: Sequence[int]) -> Outcome:
            if len(chosen) == len(places):
                return "flips"
            try:
                section = inside.response(chosen)
            except (TapeError, ValueError, TypeError, LookupError):
                return "unresolved"  # no such reply can be made
            mark = ",".join(map(str, sorted(chosen)))
            return check_outcome(self.result([*rest, number], {number: (mark, section)}))

        parts = minimal_subset(range(len(places)), try_places).parts
        return [Place(part.id, places[each]) for each in parts]


def check_outcome(result: TrialResult) -> Outcome:
    return _OUTCOMES[result.run.verdict]


_OUTCOMES: Mapping[Verdict, Outcome] = {
    "passes": "flips", "fails": "stays", "unresolved": "unresolved",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Inside:
    """Where a part's two replies differ, and the reply that some of the good places make."""

    fragments: Fragments
    make: Callable[[Any], Mapping[str, Any]]

    def response(self, chosen: Sequence[int]) -> Mapping[str, Any]:
        return self.make(self.fragments.mixed(chosen))


_BYTES = ("sha256", "reads", "waits", "cuts")


def _compare_part(part: Part) -> Inside | None:
    """None where the replies are no structures that can be told apart."""
    if part.bad is None or part.good is None:
        return None
    bad, good = part.bad.reply(), part.good.reply()
    if isinstance(bad, Reply) and isinstance(good, Reply):
        return _compare_replies(part.good, bad, good)
    one, other = (response_section(each, Secrets()) for each in (bad, good))
    if isinstance(bad, Reply) or isinstance(good, Reply) or one.keys() ^ other.keys():
        return None
    return Inside(fragments(one, other), dict)


def _compare_replies(other: Entry, bad: Reply, good: Reply) -> Inside | None:
    request = other.request()
    if bad.status != good.status or not isinstance(request, Request):
        return None
    ours, theirs = editing.take_apart_reply(request, bad), editing.take_apart_reply(request, good)
    if ours is not None and theirs is not None:

        def build_from_message(message: Any) -> Mapping[str, Any]:
            edit = {"form": "message", "message": json.dumps(message)}
            return response_section(apply_edit(other, edit).reply, Secrets())

        return Inside(fragments(ours.message, theirs.message), build_from_message)
    plain = [http.decoded_body(each.headers, each.readable) for each in (bad, good)]
    try:
        texts = [(each or b"").decode() for each in plain]
    except UnicodeDecodeError:
        return None

    def build_from_body(body: Any) -> Mapping[str, Any]:
        return response_section(apply_edit(other, {"form": "raw", "body": body}).reply, Secrets())

    if all(texts):
        return Inside(fragments(texts[0], texts[1]), build_from_body)
    return None


def require_difference(
    check: str, names: tuple[str, str], bad: TrialResult, good: TrialResult
) -> None:
    """Both ends answer, and differently. Raises TapeUsageError, with which is always so."""
    bad_name, good_name = names
    for name, result in ((bad_name, bad), (good_name, good)):
        if result.run.verdict == "unresolved":
            raise TapeUsageError(f"--check {check}: with the replies of {name}: {result.run.why}")
    if (bad.run.verdict, good.run.verdict) == ("passes", "passes"):
        raise TapeUsageError(
            f"--check {check} holds with the replies of {bad_name} too: always true"
        )
    if bad.run.verdict == "passes":
        raise TapeUsageError(f"--check {check} holds in {bad_name}, not in {good_name}: swap them")
    if good.run.verdict == "fails":
        raise TapeUsageError(
            f"--check {check} is false with the replies of {good_name} too: it is always false, "
            "or the cause cannot be swapped (missing code, packages, files, the environment)"
        )
