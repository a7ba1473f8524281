"""Replays a bundle: its notebook, in an environment made of its lock, away from the network, and
each cell compared with what the bundle says it gives.

That runs a stranger's code, so a person has been asked (trust.py). Everything happens in a scratch
folder that is gone afterwards, also when the run is interrupted; where the bundle lies nothing is
written.
"""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from tape_jupyter.bundle import trust
from tape_jupyter.bundle.archive import Bundle, names, opened
from tape_jupyter.bundle.archive.manifest import Expected, Manifest
from tape_jupyter.bundle.environment import caches
from tape_jupyter.bundle.proof import expected, process
from tape_jupyter.bundle.proof.process import ProofOutput, Starting
from tape_jupyter.cassette.paths import SUFFIX, check_cassette_name
from tape_jupyter.comparison import diff, outputs
from tape_jupyter.comparison.diff import OutputDifference
from tape_jupyter.comparison.outputs import places
from tape_jupyter.core import notebook_schema
from tape_jupyter.core.notebook_text import parse_notebook
from tape_jupyter.core.plain_text import format_count, safe_text
from tape_jupyter.core.progress import Tell, ignore_progress
from tape_jupyter.core.temp_dirs import scratch
from tape_jupyter.errors import BundleError
from tape_jupyter.headless import run
from tape_jupyter.headless.run import REFUSALS, CellRun, Status
from tape_jupyter.isolation import sandbox

if TYPE_CHECKING:
    from nbformat import NotebookNode

Env = Literal["lock", "current"]

SESSION = ("notebook", "cassette", "take", "asset", "module", "data")
"""Roles of the files that lie in the scratch folder while the notebook runs."""

WHEELS = "Its packages are installed as wheels, from your index: nothing of them runs before its kernel starts."

BUILT = (
    "Its packages are installed as wheels, from your index. Those that have none are built (--allow-build), which runs "
    "their code: without network, in an empty home, with none of your variables."
)

_OURS = re.compile(
    r"/(?:tape_jupyter|ipykernel|IPython|anywidget|click|genai_prices|nbclient|packaging|platformdirs|portalocker|re2|rich"
    r"|tomli_w|time_machine|xxhash)(?:/__init__)?\.\w[^/]*"
    r"|/[^/]+\.(?:dist|egg)-info(?:/|$)"
)
"""Files that would be imported for a module that loads the tape, or tell of entry points that would
be: the notebook's folder is on the kernel's path.
"""

DRIFTED = 12
"""Differences of an interpreter that are named; the others are counted."""


@dataclass(frozen=True)
class BundleCell:
    """One code cell: how it came out, and what is shown of it. `status` as headless/run.py's `CellRun` has it;
    `said` is a miss or an error in lines; `expected` and `replayed` are outputs as notebooks have
    them.
    """

    number: int
    status: Status
    title: str
    seconds: float = 0.0
    calls: int = 0
    digest: str = ""
    """Of what is expected (the manifest's), and of what the replay gave, "" where the cell did not
    run.
    """
    replayed_digest: str = ""
    differences: tuple[OutputDifference, ...] = ()
    messages: tuple[str, ...] = ()
    known: bool = False
    """Whether the bundle says itself that this cell differs (it was exported with
    --allow-differences).
    """
    never_ran: bool = False
    """It was not run here, and neither when the notebook was saved: a cell before it raised."""
    source: str = field(default="", repr=False)
    expected: tuple[Any, ...] = field(default=(), repr=False)
    replayed: tuple[Any, ...] = field(default=(), repr=False)

    @property
    def good(self) -> bool:
        return self.status == "same" or self.never_ran

    def lines(self) -> list[str]:
        """What a terminal shows below it."""
        difference_lines = [line for each in self.differences for line in each.text()]
        return [
            safe_text(line)
            for line in (
                [*self.messages] if self.status == "missed" else [*self.messages, *difference_lines]
            )
        ]

    def build_cell_run(self) -> CellRun:
        """As the progress of any headless run tells it."""
        raised, lines = bool(outputs.failure_of(self.replayed)[0]), tuple(self.lines())
        return CellRun(
            self.number,
            self.status,
            safe_text(self.title),
            self.seconds,
            lines,
            raised=raised,
            expected=self.never_ran,
        )

    def record(self) -> dict[str, Any]:
        """For --json."""
        return {
            "number": self.number, "status": self.status, "title": self.title, "seconds": self.seconds,
            "calls": self.calls, "expected": self.digest, "replayed": self.replayed_digest, "said": list(self.messages),
            "known": self.known, "never_ran": self.never_ran,
            "differences": [each.record() for each in self.differences],
        }  # fmt: skip


@dataclass(frozen=True)
class BundleRun:
    """A bundle's replay. `env`: "lock" (packages of its lock) or "current" (this interpreter, whose
    differences are in `drift`); `guards` kept it from the network; `notes` are sentences for the
    person.
    """

    place: str
    digest: str
    notebook: str
    env: Env
    cells: tuple[BundleCell, ...]
    guards: tuple[str, ...]
    take: str = ""
    made_by: str = ""
    drift: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    ports: tuple[int, ...] = ()
    """On which Jupyter spoke to the kernel: for who counts connections."""

    @property
    def good(self) -> bool:
        return all(each.good for each in self.cells)

    @property
    def guard(self) -> str:
        return "; ".join(self.guards)

    def counts(self) -> dict[str, int]:
        """How many cells came out how, of those ways that occur."""
        ways = [each.status for each in self.cells]
        return {way: ways.count(way) for way in dict.fromkeys(sorted(ways))}

    def closing(self) -> str:
        """How many cells came out how, and which were not run."""
        labels = {"differs": "differ", "failed": "raised"}
        bad = ", ".join(
            f"{count} {way if way == 'differs' and count == 1 else labels.get(way, way)}"
            for way, count in self.counts().items()
            if way != "same"
        )
        same = sum(each.status == "same" for each in self.cells)
        line = f"{same:,} of {format_count(len(self.cells), 'cell')} as the bundle says" + (
            f"; {bad}" if bad else ""
        )
        return "\n".join(
            filter(None, [line, run.behind([each.build_cell_run() for each in self.cells])])
        )

    def record(self) -> dict[str, Any]:
        """For --json."""
        return {
            "bundle": self.place, "digest": self.digest, "notebook": self.notebook, "take": self.take, "ok": self.good,
            "environment": self.env, "guards": list(self.guards), "drift": list(self.drift), "notes": list(self.notes),
            "kernel_ports": list(self.ports), "cells": [each.record() for each in self.cells],
        }  # fmt: skip


@dataclass(frozen=True)
class BundleListener:
    """Who is told how it gets on: `on_step` of the steps, `starting` and `on_cell` of the cells; `answer`
    puts a question to the person (None: there is nobody to ask).
    """

    on_step: Tell = ignore_progress
    starting: Starting = lambda _number, _count, _title: None
    on_cell: Callable[[BundleCell], None] = lambda _cell: None
    answer: Callable[[str], str] | None = None


@dataclass(frozen=True)
class ReplayRequest:
    """How to replay. `yes`: the person said on the command line that it may run; `allow_index`:
    packages may come from another index than the public one; `allow_build`: packages may be built,
    which runs their code; `timeout`: seconds for each cell;
    `pace`: another one than that it was proved at.
    """

    take: str = ""
    env: Env = "lock"
    yes: bool = False
    allow_index: bool = False
    timeout: float | None = None
    pace: str = ""
    allow_build: bool = False


def replay_bundle(
    place: str | Path, options: ReplayRequest | None = None, listener: BundleListener | None = None
) -> BundleRun:
    """Replay a bundle. Raises BundleError where it cannot be used, or may not run."""
    want, hear = options or ReplayRequest(), listener or BundleListener()
    with opened(place, hear.on_step) as bundle:
        runnable(bundle, want)
        notes = [
            trust.ask_trust(
                bundle, replay_facts(bundle.manifest, want), yes=want.yes, answer=hear.answer
            )
        ]
        with scratch("replay") as folder:
            session, odd = laid_out(bundle, folder / "bundle")
            python = interpreter(bundle, want, hear.on_step, folder, notes)
            hear.on_step("starting a kernel", 0, 0)
            judge = _Judge(bundle, session, folder / "home", hear.on_cell)
            job = process.ProofJob(
                str(session), str(folder / "home"), python=python, take=want.take, timeout=want.timeout,
                pace=chosen_pace(bundle.manifest, want), variables=caches.cache_variables(),
            )  # fmt: skip
            done = process.run_proof(job, hear.starting, judge.judge_output)
        drift = tuple(drifted(bundle.manifest)) if want.env == "current" else ()
        return BundleRun(
            bundle.place, bundle.digest, bundle.manifest.notebook, want.env, tuple(judge.cells), sandbox.guards(),
            want.take, bundle.manifest.made_by, drift, tuple(filter(None, [*notes, *odd])),
            done.ports,
        )  # fmt: skip


def chosen_pace(manifest: Manifest, want: ReplayRequest) -> str:
    """The pace that a person wants, else the one at which the bundle was proved; "" is the usual
    one.
    """
    return want.pace or str(manifest.kit.get("pace", ""))


def replay_facts(manifest: Manifest, want: ReplayRequest) -> list[str]:
    """What a person is told before it runs."""
    packages = len(manifest.kit.get("distributions") or ())
    if want.env == "lock":
        where = f"with {format_count(packages, 'package')} of its lock"
        package_notes = [BUILT if want.allow_build else WHEELS]
    else:
        where = "with this interpreter's packages (--here)"
        package_notes = []
    cells = f"{format_count(len(manifest.cells), 'cell')} of {safe_text(manifest.notebook)}"
    return [
        f"Replaying it runs its code on this machine, as you: {cells}, {where}.",
        "It gets an empty home folder and none of your environment variables, but it can read what you can read.",
        *package_notes,
        "What restricts it: " + "; ".join(sandbox.guards()) + ".",
        f"Without running anything: tape verify, tape open. It says it was made by {safe_text(manifest.made_by)}.",
    ]


def runnable(bundle: Bundle, want: ReplayRequest) -> None:
    """Raises BundleError for a notebook that is none or of another language, and for a take that it
    has not.
    """
    language = str(bundle.manifest.kernel.get("language") or "python")
    if language.lower() != "python":
        raise BundleError(
            f"its notebook is in {safe_text(language)}; only Python is replayed", place=bundle.place
        )
    _read_notebook(bundle)
    if not want.take:
        return
    check_cassette_name(want.take)
    files = [name.rpartition("/")[2] for name in bundle.names("take") if name.endswith(SUFFIX)]
    take_names = {name.removesuffix(SUFFIX).rpartition(".")[2] for name in files}
    if want.take not in take_names:
        have = f"there are: {', '.join(sorted(take_names))}" if take_names else "it has none"
        raise BundleError(f"it has no take {want.take!r}; {have}", place=bundle.place)


def interpreter(
    bundle: Bundle, want: ReplayRequest, on_progress: Tell, folder: Path, notes: list[str]
) -> str:
    """The Python that runs the notebook: this one, or that of an environment made of the lock,
    which is kept in the cache, or made in `folder` where nothing can be kept: `notes` is told.
    """
    from tape_jupyter.bundle.environment import install

    if want.env == "current":
        return sys.executable
    try:
        if why := _explain_uncached():
            notes.append(f"the environment was not kept, and is made anew each time: {why}")
            with _set_installer_caches(folder):
                return str(
                    install.make_bundle_environment(
                        bundle, folder / "environment", allow_index=want.allow_index, allow_build=want.allow_build,
                        on_progress=on_progress,
                    )
                )  # fmt: skip
        return str(
            install.make_bundle_environment(
                bundle,
                allow_index=want.allow_index,
                allow_build=want.allow_build,
                on_progress=on_progress,
            )
        )
    except BundleError as error:
        hint = (
            ""
            if "--here" in error.reason
            else ". To replay with this interpreter's packages: --here"
        )
        raise BundleError(error.reason + hint, place=bundle.place) from error


def _explain_uncached() -> str:
    """Why nothing can be kept in the user's cache folder; "" where it can."""
    from tape_jupyter.bundle.environment.index import cache

    try:
        (cache() / "environments").mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=cache() / "environments"):
            return ""
    except OSError as error:
        return f"{cache()}: {error.strerror or error}"


@contextmanager
def _set_installer_caches(folder: Path) -> Iterator[None]:
    """Their own caches lie in the folder too: they have no other that they can write."""
    variables = {
        name: str(folder / "installers")
        for name in ("UV_CACHE_DIR", "PIP_CACHE_DIR")
        if name not in os.environ
    }
    os.environ.update(variables)
    try:
        yield
    finally:
        for name in variables:
            os.environ.pop(name, None)


def laid_out(bundle: Bundle, folder: Path) -> tuple[Path, list[str]]:
    """The session's files below a new folder; gives the notebook, and sentences about files that
    were left out: such as Python or Jupyter would run for merely lying there.
    """
    bundle.extract(folder, SESSION)
    notes = []
    for name in (each.path for each in bundle.manifest.files if each.role in SESSION):
        if (why := names.startup_hook(name)) or _OURS.search(name):
            folder.joinpath(*name.split("/")).unlink()
            notes.append(
                f"{safe_text(name)} was left out: {safe_text(why or 'it')} would run, "
                "or stand for the tape, by its name alone"
            )
    return folder.joinpath(*bundle.manifest.notebook.split("/")), notes


def _read_notebook(bundle: Bundle) -> NotebookNode:
    """The bundle's notebook, as it is run. Raises BundleError for what is none."""
    data = bundle.read(bundle.manifest.notebook)
    wrong = notebook_schema.wrong(data)
    try:
        if not wrong:
            return parse_notebook(data.decode("utf-8"))
    except ValueError as error:  # older versions, which cannot be made newer
        wrong = str(error)
    raise BundleError(
        f"its notebook cannot be read: {safe_text(wrong)}. Nothing was run", place=bundle.place
    )


class _Judge:
    """Compares each cell as it comes with what the bundle expects of it."""

    def __init__(
        self, bundle: Bundle, notebook: Path, home: Path, on_cell: Callable[[BundleCell], None]
    ) -> None:
        self._notebook = _read_notebook(bundle)
        self._expected = {each.number: each for each in bundle.manifest.cells}
        self._known = {each.cell for each in bundle.manifest.differences}
        self._where = places(notebook.parent, home)
        self._verified = on_cell
        self.cells: list[BundleCell] = []

    def judge_output(self, out: ProofOutput) -> None:
        saved = self._notebook.cells[out.index]
        expected_cell = self._expected.get(out.number) or _build_expected(out, saved)
        self.cells.append(self._judge_cell(out, saved, expected_cell))
        self._verified(self.cells[-1])

    def _judge_cell(self, out: ProofOutput, saved: Any, expected_cell: Expected) -> BundleCell:
        never_ran = not out.ran and process.never_run(saved, self._notebook)
        cell_outputs = run.counted_outputs(saved.source, out.outputs)
        digest = expected.outputs_digest(cell_outputs, self._where) if out.ran else ""
        status, remarks = _find_status(out, expected_cell, digest) if out.ran else ("not run", ())
        differences = (
            diff.compare_cells(expected.shown_outputs(saved), cell_outputs, self._where)
            if status in ("differs", "failed", "missed")
            else ()
        )
        if status == "differs" and not differences and not remarks:
            remarks = (
                "the saved outputs are not those that the bundle's digest is of; the replay gave the saved ones",
            )
        return BundleCell(
            out.number,
            status,
            out.title,
            out.seconds,
            expected_cell.calls,
            expected_cell.outputs,
            digest,
            tuple(differences),
            remarks,
            out.number in self._known,
            never_ran,
            saved.source,
            tuple(saved.outputs),
            tuple(out.outputs),
        )


def _build_expected(out: ProofOutput, saved: Any) -> Expected:
    """Of a cell that the manifest does not know: what the notebook shows is expected."""
    cell_outputs = expected.shown_outputs(saved)
    return Expected(
        out.number,
        "",
        out.title,
        "",
        expected.outputs_digest(cell_outputs),
        0,
        outputs.failure_of(cell_outputs)[0],
    )


def _find_status(
    out: ProofOutput, expected_cell: Expected, digest: str
) -> tuple[Status, tuple[str, ...]]:
    name, value = outputs.failure_of(out.outputs)
    if name in REFUSALS and expected_cell.raises != name:
        return "missed", tuple(f"{name}: {value}".rstrip().split("\n"))
    if out.unheld:
        return "differs", out.unheld
    if digest == expected_cell.outputs:
        return "same", ()
    if name and name != expected_cell.raises:
        return "failed", (f"{name}: {value}".split("\n", maxsplit=1)[0],)
    return "differs", ()


def drifted(manifest: Manifest) -> Iterator[str]:
    """How this interpreter is not the one of the recording, a line each."""
    kit = manifest.kit
    here = {"python": platform.python_version(), "implementation": platform.python_implementation()}
    for name, value in here.items():
        if kit.get(name) and str(kit[name]).lower() != value.lower():
            yield f"{name} {safe_text(str(kit[name]))} in the bundle, {value} here"
    drift = list(_compare_packages(kit.get("distributions") or ()))
    yield from drift[:DRIFTED]
    if len(drift) > DRIFTED:
        yield f"and {format_count(len(drift) - DRIFTED, 'more package')}"


def _compare_packages(listed: Any) -> Iterator[str]:
    have = {
        _normalise_name(each.metadata["Name"] or ""): each.version
        for each in importlib.metadata.distributions()
    }
    for each in map(str, listed):
        name, _, version = each.partition("==")
        installed = have.get(_normalise_name(name))
        if installed != version:
            yield f"{safe_text(name)} {safe_text(version)} in the bundle, {installed or 'not'} here"


def _normalise_name(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
