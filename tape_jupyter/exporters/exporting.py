"""`tape export NB --as FORMAT`: which formats there are, what is searched for secrets, what is
written.

A format is a module, found by the entry-point group `tape_jupyter.exporters`: `TITLE`, `SUFFIX`,
and `write(recording) -> list[File]`, which counts in `recording.lost` what the format has no place
for.
"""

from __future__ import annotations

import importlib
import os
import pkgutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol, cast

from tape_jupyter.core import plugins
from tape_jupyter.core.plain_text import format_count
from tape_jupyter.core.progress import Tell, ignore_progress
from tape_jupyter.errors import CassetteError, NotExported, TapeUsageError
from tape_jupyter.exporters import formats, reading
from tape_jupyter.exporters.recording import File, Recording
from tape_jupyter.reports import listing
from tape_jupyter.secrets import environment, leaks

GROUP = "tape_jupyter.exporters"
OTLP = ("otlp", "openinference")
"""The formats that `--endpoint` can send."""


class ExportFormat(Protocol):
    """What a format's module has."""

    TITLE: str
    SUFFIX: str

    def write(self, recording: Recording) -> list[File]: ...


@dataclass(frozen=True, slots=True)
class Exported:
    """What was written or sent, of how many calls, and what the format could not hold."""

    format: str
    files: tuple[Path, ...]
    calls: int
    lost: Mapping[str, int]
    endpoint: str = ""

    def record(self) -> dict[str, Any]:
        return {
            "ok": True, "format": self.format, "files": [str(path) for path in self.files], "calls": self.calls,
            "lost": dict(self.lost), "endpoint": self.endpoint,
        }  # fmt: skip

    def lines(self) -> list[str]:
        if self.endpoint:
            where = [f"sent to {self.endpoint}"]
        else:
            where = [str(path) for path in self.files]
        lost = [f"    not in it: {what} ({count})" for what, count in self.lost.items()]
        return [
            *where,
            f"    as {known_formats()[self.format].TITLE}, of {format_count(self.calls, 'call')}",
            *lost,
        ]


@cache
def known_formats() -> dict[str, ExportFormat]:
    """Every format by its name: our own, and those of installed packages. Ours keep their names."""
    builtin_modules = {
        each.name: f"{formats.__name__}.{each.name}"
        for each in pkgutil.iter_modules(formats.__path__)
    }
    known: dict[str, ExportFormat] = {
        name: importlib.import_module(module) for name, module in sorted(builtin_modules.items())
    }
    for name, point in plugins.entry_points_of(GROUP).items():
        if name not in known:
            known[name] = cast("ExportFormat", plugins.load_entry_point(point, ModuleType))
    return known


def export_calls(
    where: Path,
    name: str,
    *,
    out: Path | None = None,
    endpoint: str = "",
    on_progress: Tell = ignore_progress,
) -> Exported:
    """Write (or send) the calls of a notebook or a cassette in another system's format. Nothing is
    overwritten.

    Raises TapeUsageError, CassetteError, and NotExported where a secret is in what would be
    written.
    """
    if name not in known_formats():
        raise TapeUsageError(
            f"--as {name}: there is no such format; there are: {', '.join(sorted(known_formats()))}"
        )
    if endpoint and name not in OTLP:
        raise TapeUsageError(
            f"--endpoint sends OTLP: with --as {name} there is nothing to send; use --as otlp"
        )
    if endpoint and out is not None:
        raise TapeUsageError("--endpoint sends, and --out writes: choose one")
    cassettes = listing.list_cassettes(where)
    if out is not None:
        goal = out
    else:
        goal = _derive_goal(where, known_formats()[name].SUFFIX, name)
    if not endpoint:
        _require_free(goal)
    on_progress("reading the calls", 0, 0)
    recording = reading.read_recording(where.stem, cassettes)
    written = known_formats()[name].write(recording)
    if not written:
        why = (
            "; ".join(f"{what} ({count})" for what, count in recording.lost.items() if count)
            or "there are no calls"
        )
        raise TapeUsageError(
            f"{where}: nothing of it can be written as {known_formats()[name].TITLE}: {why}"
        )
    files = {_derive_part_path(goal, each.part): each.data for each in written}
    if endpoint:
        from tape_jupyter.exporters import sending

        _require_clean(where, files, on_progress)
        on_progress("sending", 0, 0)
        sending.send_documents(endpoint, [each.data for each in written])
        files = {}
    else:
        write_files(where, files, on_progress)
    lost = {what: count for what, count in recording.lost.items() if count}
    return Exported(name, tuple(files), len(recording.calls), lost, endpoint)


def _derive_goal(where: Path, suffix: str, name: str) -> Path:
    """`churn.otlp.json` beside `churn.ipynb`."""
    stem = where.name.removesuffix(".ipynb").removesuffix(".tape.yaml").removesuffix(".tapes")
    return where.parent / f"{stem}.{name}{suffix}"


def _derive_part_path(goal: Path, part: str) -> Path:
    return goal.with_name(f"{goal.stem}.{part}{goal.suffix}") if part else goal


def write_files(
    where: Path, files: Mapping[Path, bytes], on_progress: Tell = ignore_progress
) -> None:
    """Write what was made of the recordings at `where`. Raises TapeUsageError where a file is there
    already, NotExported where one holds a secret, CassetteError where it cannot be written.
    """
    for path in files:
        _require_free(path)
    _require_clean(where, files, on_progress)
    _write_whole_files(files)


def _require_free(path: Path) -> None:
    if path.exists() or path.is_symlink():
        raise TapeUsageError(
            f"{path} exists already and is not overwritten; name another with --out"
        )
    if not path.parent.is_dir():
        raise TapeUsageError(f"{path.parent}: there is no such folder")


def _require_clean(where: Path, files: Mapping[Path, bytes], on_progress: Tell) -> None:
    on_progress("looking for secrets", 0, 0)
    secrets = environment.environment_secrets(where.absolute().parent)
    if where.suffix == ".ipynb" and where.is_file():
        environment.with_patterns(secrets, where.read_bytes())
    leaked = leaks.scan({path.name: data for path, data in files.items()}, secrets)
    if leaked:
        lines = [
            f"  {each.where}: {each.kind}" + (f" ({each.count} times)" if each.count > 1 else "")
            for each in leaked
        ]
        count = format_count(len(lines), "place")
        raise NotExported("\n".join([
            f"there are secrets in what would be exported ({count}); nothing was written:", *lines,
            "Now: remove them and record again",
        ]))  # fmt: skip


def _write_whole_files(files: Mapping[Path, bytes]) -> None:
    """Each file under its name when it is whole; none over another one."""
    for path, data in files.items():
        draft = ""
        try:
            handle, draft = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            umask = os.umask(0o022)
            os.umask(umask)
            Path(draft).chmod(0o666 & ~umask)
            _publish_draft(Path(draft), path)
        except OSError as error:
            raise CassetteError(
                f"cannot be written: {error.strerror or error}", path=str(path)
            ) from error
        finally:
            if draft:
                Path(draft).unlink(missing_ok=True)


def _publish_draft(draft: Path, path: Path) -> None:
    try:
        path.hardlink_to(draft)  # fails where something is there by now
    except FileExistsError:
        _require_free(path)
    except OSError:  # a file system without links
        _require_free(path)
        draft.replace(path)
