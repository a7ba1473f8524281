"""`tape bisect NB --packages GOOD BAD`: the fewest packages whose versions of BAD make the check
fail, all others being those of GOOD.

GOOD and BAD are locks (files of `name==version` lines, pylock.toml, uv.lock) or dates. Of two dates
the range is halved first, to a day. Each set of packages is an environment of its own, kept by what
is in it. One whose packages do not go together, or cannot be had, is unresolved.
"""

from __future__ import annotations

import re
import time
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from packaging.utils import canonicalize_name

from tape_jupyter.core.progress import Tell, ignore_progress
from tape_jupyter.errors import BundleError, TapeUsageError
from tape_jupyter.experiments import checked_run, environments
from tape_jupyter.experiments.check import Check, CheckedRun
from tape_jupyter.experiments.checked_run import ReplayOptions
from tape_jupyter.experiments.ddmin import Outcome, minimal_subset

Pins = Mapping[str, str]
"""Versions of packages by their names."""
Run = Callable[[Pins], CheckedRun]


@dataclass(frozen=True, slots=True)
class GuiltyPackages:
    """The answer: each package with its good and its bad version; `between` are the days between
    which the versions changed, where dates were given.
    """

    packages: Sequence[tuple[str, str, str]]
    differing: int
    trials: int
    unresolved: int
    seconds: float
    between: tuple[str, str] = ("", "")

    def record(self) -> dict[str, Any]:
        keys = ("package", "good", "bad")
        return {
            "minimal": [dict(zip(keys, each, strict=True)) for each in self.packages],
            "differing": self.differing, "trials": self.trials, "unresolved": self.unresolved,
            "seconds": round(self.seconds, 3), "between": list(filter(None, self.between)),
        }  # fmt: skip

    def text(self) -> str:
        count = len(self.packages)
        what = "1 package makes" if count == 1 else f"{count} packages together make"
        rows = [
            f"  {name}  {good or '(not there)'} -> {bad or '(gone)'}"
            for name, good, bad in self.packages
        ]
        if self.between[0]:
            when = [f"between {self.between[0]} and {self.between[1]}"]
        else:
            when = []
        end = f"{self.trials} environments, {self.unresolved} unresolved, {self.seconds:.1f} s"
        return "\n".join([f"{what} the difference, of {self.differing} that differ:", *rows, *when, end])  # fmt: skip


def bisect_packages(
    notebook: Path, good: str, bad: str, check: Check, requirements: Path | None = None,
    *, run: Run | None = None, on_progress: Tell = ignore_progress, pace: str = "",
) -> GuiltyPackages:  # fmt: skip
    """Find them. `requirements`: what is resolved at a date. `run` tries a set of packages (in an
    environment of its own); `pace`: when recorded replies arrive. Raises TapeUsageError where GOOD
    and BAD are not told apart.
    """
    search = _Search(run or _build_runner(notebook, check, pace), check, on_progress)
    return search.find_guilty(good, bad, requirements)


def _build_runner(notebook: Path, check: Check, pace: str) -> Run:
    def run_pins(pins: Pins) -> CheckedRun:
        try:
            python = environments.make_environment(
                [f"{name}=={version}" for name, version in pins.items()]
            )
        except BundleError as error:
            return CheckedRun("unresolved", why=error.reason)
        options = ReplayOptions(pace=pace, python=str(python))
        return checked_run.replay_and_check(notebook, check, options)

    return run_pins


def read_lock(file: Path) -> dict[str, str]:
    """The packages of a lock. Raises TapeUsageError for what is none."""
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not text"
        raise TapeUsageError(f"{file}: it cannot be read: {why}") from error
    if file.suffix in (".toml", ".lock"):
        try:
            document = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise TapeUsageError(f"{file}: it is not TOML: {error}") from None
        listed = [each for key in ("packages", "package") for each in document.get(key, ())]
        versions: dict[str, str] = {
            canonicalize_name(str(each["name"])): str(each["version"])
            for each in listed
            if isinstance(each, dict) and each.get("name") and each.get("version")
        }
    else:
        pins = (pin.partition("==") for pin in environments.pins_of(text))
        versions = {name: version for name, _, version in pins}
    if not versions:
        raise TapeUsageError(f"{file}: it names no package with its version (name==version)")
    return versions


@dataclass(slots=True)
class _Search:
    run: Run
    check: Check
    on_step: Tell
    known: dict[tuple[tuple[str, str], ...], CheckedRun] = field(default_factory=dict)

    def find_guilty(self, good: str, bad: str, requirements: Path | None) -> GuiltyPackages:
        began = time.perf_counter()
        days = _parse_day(good), _parse_day(bad)
        between = "", ""
        if days[0] and days[1]:
            one, two, between = self._narrow_days(
                days[0], days[1], _read_requirements(requirements)
            )
        elif days[0] or days[1]:
            raise TapeUsageError("--packages: two locks or two dates, not one of each")
        else:
            one, two = read_lock(Path(good)), read_lock(Path(bad))
            self._require_opposite_ends(one, two, good, bad)
        names = sorted(name for name in one.keys() | two.keys() if one.get(name) != two.get(name))
        minimal = minimal_subset(
            names, lambda taken: self._find_outcome(_mix_pins(one, two, taken))
        )
        return GuiltyPackages(
            [(name, one.get(name, ""), two.get(name, "")) for name in minimal.parts], len(names),
            len(self.known), sum(each.verdict == "unresolved" for each in self.known.values()),
            time.perf_counter() - began, between,
        )  # fmt: skip

    def _require_opposite_ends(self, one: Pins, two: Pins, good: str, bad: str) -> None:
        """GOOD passes, BAD fails, and they differ."""
        if one == two:
            raise TapeUsageError(f"{good} and {bad} hold the same packages: none is the cause")
        first, second = self._try_pins(one), self._try_pins(two)
        for name, run, expected in ((good, first, "passes"), (bad, second, "fails")):
            if run.verdict == "unresolved":
                raise TapeUsageError(f"with the packages of {name}: {run.why}")
            if run.verdict != expected:
                raise TapeUsageError(
                    f"with the packages of {name} the check {'fails' if expected == 'passes' else 'passes'}: "
                    + (run.why or "swap them, or another check tells them apart")
                )

    def _narrow_days(
        self, start: date, end: date, lines: Sequence[str]
    ) -> tuple[Pins, Pins, tuple[str, str]]:
        """The packages of two days, the nearest that are good and bad."""
        if start >= end:
            raise TapeUsageError(f"--packages {start} {end}: the good date is before the bad one")
        one, two = _resolve_pins(start, lines), _resolve_pins(end, lines)
        self._require_opposite_ends(one, two, str(start), str(end))
        while (end - start).days > 1:
            middle = start + timedelta((end - start).days // 2)
            pins = _resolve_pins(middle, lines)
            run = self._try_pins(pins)
            if run.verdict == "unresolved":
                break  # single packages tell
            if run.verdict == "passes":
                start, one = middle, pins
            else:
                end, two = middle, pins
        return one, two, (str(start), str(end))

    def _find_outcome(self, pins: Pins) -> Outcome:
        verdict = self._try_pins(pins).verdict
        if verdict == "fails":
            return "flips"
        return "stays" if verdict == "passes" else "unresolved"

    def _try_pins(self, pins: Pins) -> CheckedRun:
        key = tuple(sorted(pins.items()))
        if key not in self.known:
            self.on_step(f"environment {len(self.known) + 1}", 0, 0)
            self.known[key] = self.run(pins)
        return self.known[key]


def _mix_pins(one: Pins, two: Pins, taken: Sequence[str]) -> dict[str, str]:
    """GOOD's packages, these as BAD has them."""
    mixed = {**one, **{name: two[name] for name in taken if name in two}}
    return {name: version for name, version in mixed.items() if name in two or name not in taken}


def _parse_day(text: str) -> date | None:
    if not re.fullmatch(r"\d{4}-\d{2}-\d{2}", text):
        return None
    try:
        return date.fromisoformat(text)
    except ValueError as error:
        raise TapeUsageError(f"--packages {text}: {error}") from None


def _read_requirements(requirements: Path | None) -> list[str]:
    if requirements is None:
        raise TapeUsageError(
            "--packages with dates: say what is installed with --requirements FILE (as for pip)"
        )
    try:
        text = requirements.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise TapeUsageError(f"{requirements}: it cannot be read: {error}") from error
    return [line for line in text.splitlines() if line.strip()]


def _resolve_pins(day: date, lines: Sequence[str]) -> dict[str, str]:
    pins = (pin.partition("==") for pin in environments.resolved(lines, day.isoformat()))
    return {name: version for name, _, version in pins}
