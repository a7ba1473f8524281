"""Breakpoints: at which calls a stepped cell stops. A condition is a person's own Python, typed on
the cell's line, and is all that is ever evaluated: of a recording nothing is.

    kind=model   tool=lookup_order   model=claude*   cell=3   nth=5   error   'kind == "tool" and "Ada" in text'
"""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from types import CodeType
from typing import Any

from tape_jupyter.debugger.call_site import KINDS, CallSite
from tape_jupyter.errors import TapeUsageError

WORDS = ("kind", "tool", "model", "cell", "nth")
FORMS = "KIND, kind=KIND, tool=NAME, model=NAME, cell=CELL, nth=N, error"
USAGE = f"--break {FORMS.replace(', ', '|')}|'PYTHON CONDITION'"
NAMES = (
    "kind",
    "name",
    "tool",
    "model",
    "title",
    "text",
    "arguments",
    "nth",
    "strand",
    "error",
    "span",
)
"""What a condition may name."""

Test = Callable[[CallSite, int, str], bool]
"""Site, its number in the pass, its strand."""


@dataclass(slots=True)
class Breaks:
    """The breakpoints of one cell; without any it stops before each call. `failures` are conditions
    that raised.
    """

    words: tuple[str, ...] = ()
    failures: list[str] = field(default_factory=list)
    _tests: list[Test] = field(default_factory=list)

    @classmethod
    def parse(cls, specs: Iterable[str], *, conditions: bool = True) -> Breaks:
        """Raises TapeUsageError for what is no breakpoint; without `conditions` also for a
        condition.
        """
        breaks = cls(tuple(specs))
        breaks._tests = [breaks._build_test(spec, conditions=conditions) for spec in breaks.words]
        return breaks

    def __bool__(self) -> bool:
        return bool(self.words)

    def is_met(self, site: CallSite, nth: int, strand: str) -> bool:
        """Whether a breakpoint is met. One whose condition raises is met, and says so once."""
        return any(test(site, nth, strand) for test in self._tests)

    def _build_test(self, spec: str, *, conditions: bool) -> Test:
        key, equals, value = (part.strip() for part in spec.partition("="))
        if spec == "error":
            return lambda site, _nth, _strand: site.failed
        if spec in KINDS:
            key, equals, value = "kind", "=", spec
        if equals and key in WORDS and value and not value.startswith("="):
            return _build_keyed_test(key, value)
        if not conditions:
            raise TapeUsageError(
                f"{spec[:80]!r} is not one of {FORMS}. A Python condition stands on the cell's own line: "
                "%%tape step --break 'CONDITION'"
            )
        return self._build_condition(spec)

    def _build_condition(self, spec: str) -> Test:
        try:
            code = compile(spec, "--break", "eval")
        except (SyntaxError, ValueError) as error:
            raise TapeUsageError(
                f"--break {spec[:80]!r} is not a breakpoint ({error}). Usage: {USAGE}"
            ) from None
        if spec.strip().isidentifier() and spec.strip() not in NAMES:
            raise TapeUsageError(f"--break {spec[:80]!r} is not a breakpoint. Usage: {USAGE}")
        return lambda site, nth, strand: self._is_condition_met(spec, code, site, nth, strand)

    def _is_condition_met(
        self, spec: str, code: CodeType, site: CallSite, nth: int, strand: str
    ) -> bool:
        try:
            # the person's own words
            return bool(eval(code, {}, condition_names(site, nth, strand)))  # noqa: S307
        except Exception as error:
            message = f"--break {spec}: {type(error).__name__}: {error}; it stops there"
            if message not in self.failures:
                self.failures.append(message)
            return True


def condition_names(site: CallSite, nth: int, strand: str) -> dict[str, Any]:
    """What a condition sees of a call."""
    return {
        "kind": site.kind, "name": site.name, "title": site.title, "text": site.text, "nth": nth, "strand": strand,
        "tool": site.name if site.kind == "tool" else "", "model": site.name if site.kind == "model" else "",
        "arguments": dict(site.arguments), "error": site.failed, "span": site.span,
    }  # fmt: skip


def _build_keyed_test(key: str, value: str) -> Test:
    if key == "nth":
        if not value.isdigit() or not int(value):
            raise TapeUsageError(
                f"--break nth={value[:40]}: which call, counted from 1? Usage: {USAGE}"
            )
        return lambda _site, nth, _strand: nth == int(value)
    if key == "kind":
        if value not in KINDS:
            raise TapeUsageError(f"--break kind={value[:40]}: the kinds are {', '.join(KINDS)}")
        return lambda site, _nth, _strand: site.kind == value
    if key == "cell":
        return lambda site, _nth, _strand: value in site.cell.split()
    return lambda site, _nth, _strand: site.kind == key and fnmatch.fnmatchcase(site.name, value)
