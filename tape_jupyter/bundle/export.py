"""Makes a bundle of a notebook's session: what lies on the disk, what its cells turn out to need, a
proof.

Nothing of the process that asks for it is taken, so that the same session gives the same bytes,
whoever exports it: the kernel (`%tape export`), the command line, the viewer. Nothing is written
before all of it holds.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from tape_jupyter import __version__
from tape_jupyter.bundle import archive, readme, redaction, signing, staging, trust
from tape_jupyter.bundle.archive import locations, manifest  # fmt: skip
from tape_jupyter.bundle.environment import lock as environment_lock
from tape_jupyter.bundle.proof import collection, expected
from tape_jupyter.bundle.proof import run as proof_run
from tape_jupyter.bundle.session import Session, session_of
from tape_jupyter.bundle.staging import Staged
from tape_jupyter.cassette.cassette import Cassette
from tape_jupyter.cassette.takes import files as takes_files
from tape_jupyter.core.plain_text import format_count
from tape_jupyter.core.progress import Tell, ignore_progress
from tape_jupyter.core.temp_dirs import scratch
from tape_jupyter.errors import NotExported, TapeUsageError
from tape_jupyter.files import copies, originals
from tape_jupyter.headless.run import numbered
from tape_jupyter.secrets import environment as secrets_environment
from tape_jupyter.secrets import leaks
from tape_jupyter.secrets.registry import Secrets

if TYPE_CHECKING:
    from nbformat import NotebookNode

PAGE = "page.html"


@dataclass(frozen=True, slots=True)
class Options:
    """What a person may say. `python`: the kernel's interpreter ("": of the kernel that the
    notebook names); `key`: the ssh key that signs; `pace`: at which it is proved, and replayed by
    whoever has it.
    """

    allow_differences: bool = False
    redact: bool = False
    ask_index: bool = True
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    python: str = ""
    key: Path | None = None
    pace: str = ""


@dataclass(frozen=True, slots=True)
class ExportedBundle:
    """A bundle that was written: where, its identity, its bytes, and what a person should know of
    it.
    """

    place: str
    digest: str
    size: int
    manifest: manifest.Manifest
    cells: tuple[proof_run.CellProof, ...] = ()
    notes: tuple[str, ...] = ()

    def record(self) -> dict[str, Any]:
        bundle_manifest = self.manifest
        return {
            "path": self.place,
            "sha256": self.digest,
            "bytes": self.size,
            "files": len(bundle_manifest.files) + 1,
            "cells": len(bundle_manifest.cells),
            "calls": sum(cell.calls for cell in bundle_manifest.cells),
            "guards": list(bundle_manifest.guards),
            "differences": [
                {"cell": each.cell, "why": each.why} for each in bundle_manifest.differences
            ],
            "left_out": [{"path": each.path, "why": each.why} for each in bundle_manifest.left_out],
            "redactions": [
                {"where": each.where, "kind": each.kind, "count": each.count}
                for each in bundle_manifest.redactions
            ],
            "hashed": bundle_manifest.lock.hashed,
            "notes": list(self.notes),
        }

    def lines(self) -> list[str]:
        """For a person."""
        bundle_manifest, record = self.manifest, self.record()
        proved = self._format_proof()
        return [
            (
                f"{self.place}: {format_count(self.size, 'byte')}, {format_count(record['cells'], 'cell')}, "
                f"{format_count(record['calls'], 'call')}, {format_count(record['files'], 'file')}"
            ),
            f"  sha256 {self.digest}",
            f"  {proved}, in a fresh kernel; {'; '.join(bundle_manifest.guards)}",
            *(
                f"  {each.count} x {each.kind} in {each.where}, masked"
                for each in bundle_manifest.redactions
            ),
            *(f"  ! {note}" for note in self.notes),
            f"  to replay it anywhere: uvx tape-jupyter replay {Path(self.place).name}",
        ]

    def _format_proof(self) -> str:
        if self.manifest.differences:
            return "NOT every cell replayed as saved"
        unrun = [cell.number for cell in self.cells if not cell.ran]
        which = f" but {numbered(unrun)}, which did not run then either," if unrun else ""
        return f"every cell{which} replayed as saved"


def export_bundle(
    notebook: Path,
    out: str | Path | None = None,
    options: Options | None = None,
    on_progress: Tell = ignore_progress,
) -> ExportedBundle:
    """Make the bundle of a saved notebook, at `out`: a file, folder or URL; else `churn.tape.zip`
    beside the notebook.

    Raises NotExported where a cell differs or a secret was found, TapeUsageError and BundleError
    where there is nothing to export or nowhere to write; then nothing was written.
    """
    on_progress("reading the notebook and its recording", 0, 0)
    session = session_of(notebook)
    name = f"{session.path.stem}{locations.SUFFIX}"
    goal = locations.bundle_place(out if out is not None else session.folder / name, name)
    _require_writable(goal)
    options = options or Options()
    with scratch("proof") as place:
        bundle_manifest, staged, cells = _make_bundle(session, options, place, on_progress)
        signature = signing.sign(bundle_manifest.to_bytes(), options.key) if options.key else None
        size = _write_bundle(goal, bundle_manifest, staged.content, on_progress)
    if signature is not None:
        with locations.write_to_place(locations.place_beside(goal, signing.SUFFIX)) as file:
            file.write(signature)
    kept = trust.remember_trust(bundle_manifest.digest, bundle_manifest.notebook, "exported")
    return ExportedBundle(
        locations.shown_place(goal),
        bundle_manifest.digest,
        size,
        bundle_manifest,
        cells,
        tuple(filter(None, (*_collect_notes(bundle_manifest), kept))),
    )


def _make_bundle(
    session: Session, options: Options, place: Path, on_progress: Tell
) -> tuple[manifest.Manifest, Staged, tuple[proof_run.CellProof, ...]]:
    """All of it, before it is written."""
    python, top = options.python or kernel_python(session.notebook), originals.top_of(session.path)
    secrets = secrets_environment.environment_secrets(session.folder)
    secrets_environment.with_patterns(secrets, session.path.read_bytes())
    secrets_environment.with_beginnings(secrets)
    start = originals.original_folder(session.path)
    copy = copies.put_copy(
        copies.copied(session.path, top, place / "first" / proof_run.PLACE, on_progress), top, start
    )
    proof, collected = _run_discovery(
        session, copy, place / "first" / "home", python, on_progress, options.pace
    )
    session = replace(session, packages=collected.packages)
    staged = staging.staged(session, top, collected, options.include, options.exclude, copy.before)
    lock = environment_lock.lock_needs(
        collected, ask_index=options.ask_index, on_progress=on_progress
    )
    for path, content in lock.files.items():
        staged.add(path, content, _find_role(path))
    redactions = _mask_secrets(staged, secrets, collected.called, options, on_progress)
    if redactions or not copy.files <= staged.carried:
        session, proof = _prove_alone(
            session, staged, top, place / "second", python, on_progress, options.pace
        )
    bundle_manifest = manifest.Manifest(
        made_by=f"tape-jupyter {__version__}", notebook=staged.notebook, kernel=_describe_kernel(session.notebook),
        files=(), kit=_build_kit(session, collected, lock, options.pace), cells=expected.of_session(session),
        lock=manifest.LockState(lock.hashed, lock.index, lock.why),
        differences=_collect_differences(proof, options, copy, session), guards=proof.guards,
        left_out=tuple(sorted(staged.left, key=lambda each: each.path)), redactions=redactions,
    )  # fmt: skip
    bundle_manifest = _add_pages(bundle_manifest, session, staged, place / "page", on_progress)
    _require_clean(bundle_manifest, staged, secrets, on_progress)
    return bundle_manifest, staged, proof.cells


def _require_writable(goal: str | Path) -> None:
    """Ask before the work is done. A URL is asked when it is written."""
    if isinstance(goal, Path):
        folder = next(each for each in goal.absolute().parents if each.exists())
        if not folder.is_dir() or not os.access(folder, os.W_OK):
            raise TapeUsageError(
                f"{folder} cannot be written to: name another place (tape export NB PATH)"
            )


def kernel_python(node: NotebookNode) -> str:
    """The interpreter of the kernel that the notebook names; this one where that is not installed
    or no Python.
    """
    from jupyter_client.kernelspec import KernelSpecManager, NoSuchKernel

    try:
        spec = KernelSpecManager().get_kernel_spec(
            str(node.metadata.get("kernelspec", {}).get("name") or "")
        )
    except NoSuchKernel:
        return sys.executable
    command = Path(spec.argv[0]) if spec.argv else Path()
    if not command.name.startswith("python"):
        return sys.executable
    executable = (
        str(command) if command.is_absolute() else shutil.which(str(command)) or sys.executable
    )
    same = (
        command.name == str(command) or Path(executable).resolve() == Path(sys.executable).resolve()
    )
    return sys.executable if same else executable


# ---------------------------------------------------------------- the two runs


def _run_discovery(
    session: Session, copy: copies.Copy, home: Path, python: str, on_progress: Tell, pace: str
) -> tuple[proof_run.ProofRun, collection.Collected]:
    """Run it in a copy of its folder, and see what it needs."""
    on_progress("starting a kernel without network", 0, 0)
    before = collection.before(copy.top, copy.notebook.parent)
    proof = proof_run.prove_session(
        session,
        copy.notebook,
        home,
        python,
        on_progress,
        pace=pace,
        before=before,
        after=collection.AFTER,
    )
    return proof, collection.parse_collected(proof.after)


def _prove_alone(
    session: Session,
    staged: Staged,
    top: Path,
    place: Path,
    python: str,
    on_progress: Tell,
    pace: str,
) -> tuple[Session, proof_run.ProofRun]:
    """Run it once more, from nothing but what the bundle holds; the session is then as it is in
    there.
    """
    folder = place / proof_run.PLACE
    inside = {path: staged.content[path] for path in staged.session()}
    inside |= {path: top / below for path, below in staged.lacking.items()}
    for number, (path, content) in enumerate(inside.items()):
        on_progress("laying out the session alone", number, len(inside))
        copies.copy_file(content, folder / path)
    notebook = folder / staged.notebook
    session = replace(session_of(notebook), home=session.folder, packages=session.packages)
    on_progress("starting a kernel without network", 0, 0)
    return session, proof_run.prove_session(
        session, notebook, place / "home", python, on_progress, pace=pace
    )


def _collect_differences(
    proof: proof_run.ProofRun, options: Options, copy: copies.Copy, session: Session
) -> tuple[manifest.ProofDifference, ...]:
    """What the manifest says of cells that are not as saved. Raises NotExported unless they are
    allowed.
    """
    if proof.differences and not options.allow_differences:
        if copy.missing:
            missing = [f"Not copied, since the folder is too large: {', '.join(copy.missing[:5])}"]
        else:
            missing = []
        take = next(filter(None, map(takes_files.default_take, session.cassettes)), "")
        raise NotExported("\n".join([*proof_run.changed_cells(proof, take), *missing]))
    return tuple(manifest.ProofDifference(each.number, each.why) for each in proof.differences)


# ---------------------------------------------------------------- secrets


def _mask_secrets(
    staged: Staged, secrets: Secrets, called: Mapping[str, str], options: Options, on_progress: Tell
) -> tuple[manifest.Redaction, ...]:
    """Look for secrets in what goes in, and mask them where that was asked for. Raises NotExported
    where it was not.
    """
    found_leaks = leaks.scan(staged.content, secrets, on_progress)
    if found_leaks and not options.redact:
        raise NotExported(
            _format_leaks(found_leaks, "or mask them everywhere alike: tape export NB --redact")
        )
    if not found_leaks:
        return ()
    clean = redaction.redact(staged.content, secrets, on_progress, called)
    staged.content = dict(clean.content)
    for path, why in clean.left_out:
        staged.left.append(manifest.LeftOut(path, 0, "", why))
    staged.roles = {
        path: staged.roles.get(path, "asset") for path in staged.content
    }  # masked long texts have new names
    return tuple(manifest.Redaction(each.where, each.kind, each.count) for each in clean.redactions)


def _require_clean(
    bundle_manifest: manifest.Manifest, staged: Staged, secrets: Secrets, on_progress: Tell
) -> None:
    """What was made last is looked at as well."""
    last = {
        path: content
        for path, content in staged.content.items()
        if staged.roles[path] in ("page", "readme")
    }
    if found_leaks := leaks.scan(
        {**last, manifest.NAME: bundle_manifest.to_bytes()}, secrets, on_progress
    ):
        raise NotExported(_format_leaks(found_leaks, "or rename what has one in its name"))


def _format_leaks(found_leaks: Iterable[leaks.Leak], else_: str) -> str:
    lines = [
        f"  {each.where}: {each.kind}" + (f" ({each.count} times)" if each.count > 1 else "")
        for each in found_leaks
    ]
    count = format_count(len(lines), "place")
    return "\n".join([
        f"there are secrets in what would be exported ({count}); nothing was written:", *lines,
        f"Now: remove them and record again, {else_}",
    ])  # fmt: skip


# ---------------------------------------------------------------- what is said of it


def _find_role(path: str) -> str:
    """Of a file under `environment/`."""
    return {"wheels": "wheel", "sources": "source"}.get(PurePosixPath(path).parts[1], "lock")


def _describe_kernel(node: NotebookNode) -> dict[str, str]:
    spec = node.metadata.get("kernelspec", {})
    return {
        "name": str(spec.get("name") or "python3"),
        "language": str(spec.get("language") or "python"),
    }


def _build_kit(
    session: Session, collected: collection.Collected, lock: environment_lock.Lock, pace: str
) -> dict[str, Any]:
    """Of the kernel that proved it, and of the recording."""
    recorded = _find_recorded_kit(session.cassettes)
    local = [f"{each.name}=={each.version}" for each in collected.local]
    kit = {
        "python": collected.python.get("version", ""),
        "implementation": collected.python.get("implementation", ""),
        "platform": collected.python.get("platform", ""),
        "distributions": sorted({*collected.distributions, *local}),
        "unhashed": list(lock.unhashed),
        "models": [{"name": each.name, "where": each.where} for each in collected.models],
        "timezone": str((recorded.get("clock") or {}).get("zone") or ""),
        "variables": sorted(str(recorded.get("variables") or "").split()),
        "git": dict(recorded.get("git") or {}),
        "unseen": collected.unseen,
        "pace": pace,
    }
    return {key: value for key, value in kit.items() if value not in ("", {})}


def _find_recorded_kit(cassettes: Iterable[Path]) -> Mapping[str, Any]:
    """The kit of the newest run of the first cassette that has one."""
    for path in cassettes:
        for run in reversed(Cassette.open(path).runs):
            if isinstance(run.get("kit"), Mapping):
                return run["kit"]  # type: ignore[no-any-return]
    return {}


def _add_pages(
    bundle_manifest: manifest.Manifest,
    session: Session,
    staged: Staged,
    place: Path,
    on_progress: Tell,
) -> manifest.Manifest:
    """Add the pages and the README, and list all files."""
    place.mkdir(parents=True)
    for path in session.cassettes:
        name = PAGE if path == session.cassettes[0] else f"page-{path.name.partition('.')[0]}.html"
        staged.add(name, _write_page(path, place / name, on_progress), "page")
    on_progress("digests", 0, 0)
    bundle_manifest = replace(
        bundle_manifest, files=tuple(staged.file(path) for path in sorted(staged.content))
    )
    staged.add(readme.NAME, readme.readme(bundle_manifest).encode(), "readme")
    files = sorted((*bundle_manifest.files, staged.file(readme.NAME)), key=lambda each: each.path)
    return manifest.check_manifest(replace(bundle_manifest, files=tuple(files)))


def _write_page(cassette: Path, goal: Path, on_progress: Tell) -> Path:
    from tape_jupyter.reports import page

    with goal.open("w", encoding="utf-8") as file:
        notes: list[str] = []
        file.writelines(
            page.page_pieces(
                Cassette.open(cassette),
                notes,
                lambda done, all_: on_progress("the page", done, all_),
            )
        )
    return goal


def _write_bundle(
    goal: str | Path,
    bundle_manifest: manifest.Manifest,
    content: Mapping[str, Path | bytes],
    on_progress: Tell,
) -> int:
    """Write it in one step; gives its bytes."""
    with locations.write_to_place(goal) as file:
        archive.pack(file, bundle_manifest, content, on_progress)
        return file.seek(0, os.SEEK_END)


def _collect_notes(bundle_manifest: manifest.Manifest) -> list[str]:
    notes = [f"cell {each.cell} {each.why}" for each in bundle_manifest.differences]
    notes += [f"not in the bundle: {each.path} ({each.why})" for each in bundle_manifest.left_out]
    if unseen := bundle_manifest.kit.get("unseen"):
        notes.append(
            f"not watched, so it may be missing: {unseen}; name what cells need with --include"
        )
    if bundle_manifest.lock.hashed:
        return notes
    return [*notes, f"not all packages have hashes: {bundle_manifest.lock.why}"]
