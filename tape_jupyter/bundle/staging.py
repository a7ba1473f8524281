"""What goes into a bundle before it is one: content and role of each path, and what is left out."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from types import MappingProxyType

from tape_jupyter.bundle.archive import names
from tape_jupyter.bundle.archive.manifest import BundleFile, LeftOut, describe_file
from tape_jupyter.bundle.proof.collection import Collected
from tape_jupyter.bundle.proof.inputs import InputFile
from tape_jupyter.bundle.session import Session, excluded, included
from tape_jupyter.errors import BundleError, TapeUsageError
from tape_jupyter.headless.run import drop_bundle_answers

SESSION = "session"
EXCLUDED = "left out by --exclude"
ELSEWHERE = "what its packages need on another platform only"
HOOK = "a file of this name is run automatically"


@dataclass(slots=True)
class Staged:
    """`notebook` is its path in the bundle; `carried` and `lacking` are paths below the widest
    folder (starts.top_of): what is in here of it, and what is too large to be (a replay needs it
    beside).
    """

    notebook: str
    content: dict[str, Path | bytes] = field(default_factory=dict)
    roles: dict[str, str] = field(default_factory=dict)
    left: list[LeftOut] = field(default_factory=list)
    carried: set[str] = field(default_factory=set)
    lacking: dict[str, str] = field(default_factory=dict)

    def add(self, path: str, content: Path | bytes, role: str) -> None:
        self.content[path], self.roles[path] = content, role

    def session(self) -> list[str]:
        """Paths of the session itself."""
        return sorted(path for path in self.content if path.startswith(f"{SESSION}/"))

    def file(self, path: str) -> BundleFile:
        """What the manifest says of one of them."""
        content = self.content[path]
        if isinstance(content, bytes):
            return describe_file(path, content, self.roles[path])
        return BundleFile(path, *sized(content), self.roles[path])


def staged(
    session: Session,
    top: Path,
    collected: Collected,
    include: Iterable[str] = (),
    exclude: Iterable[str] = (),
    before: Mapping[str, bytes] = MappingProxyType({}),
) -> Staged:
    """The session as it lies on the disk and what its cells read and imported, under `session/`;
    without what `%tape export` and `%tape verify` answered in the notebook, so that a bundle does
    not depend on the one made before it. `before`: content of files that the recording changed, as
    it found them; that is what a replay needs.

    Raises BundleError where a file changed since it was read, TapeUsageError for globs that cannot
    be used.
    """
    near = session.folder.relative_to(top).as_posix()
    read = {each.path: each for each in (*collected.modules, *collected.data)}
    roles = dict.fromkeys(
        (_join_path(near, name) for name in included(session.folder, list(include))), "data"
    )
    roles |= {each.path: "data" for each in collected.data} | {
        each.path: "module" for each in collected.modules
    }
    roles |= {_join_path(near, name): role for name, role in session.files.items()}
    result = Staged(
        f"{SESSION}/{_to_relative(collected.root, _join_path(near, session.path.name))}"
    )
    removed = _find_excluded(roles, near, list(exclude))
    for path, role in sorted(roles.items()):
        why = _explain_omission(path, removed)
        if why:
            result.left.append(LeftOut(path, *sized(top / path), why))
            continue
        content = before.get(path, top / path)
        _require_unchanged(top / path, content, read.get(path))
        if role == "notebook" and path not in read:
            content = _drop_bundle_answers(top / path)
        result.add(f"{SESSION}/{_to_relative(collected.root, path)}", content, role)
        result.carried.add(path)
    for each in collected.left_out:
        result.left.append(LeftOut(each.path, each.size, each.sha256, each.why))
        if (top / each.path).is_file() and each.path not in removed:
            result.lacking[f"{SESSION}/{_to_relative(collected.root, each.path)}"] = each.path
    if collected.elsewhere:
        result.left.append(
            LeftOut(ELSEWHERE, 0, "", f"the lock is of this one ({', '.join(collected.elsewhere)})")
        )
    return result


def _drop_bundle_answers(path: Path) -> Path | bytes:
    """The notebook as it is carried; the file itself where nothing is dropped."""
    node = json.loads(path.read_text(encoding="utf-8"))
    dropped = False
    for cell in node.get("cells", ()):  # nbformat 3 has none
        if before := cell.get("outputs"):
            cell["outputs"] = drop_bundle_answers("".join(cell["source"]), before)
            dropped = dropped or len(cell["outputs"]) < len(before)
    return f"{json.dumps(node, indent=1)}\n".encode() if dropped else path


def _explain_omission(path: str, excluded: set[str]) -> str:
    """Why the file is left out; "" for one that is carried."""
    if path in excluded:
        return EXCLUDED
    return HOOK if names.startup_hook(path) else ""


def _find_excluded(roles: dict[str, str], near: str, exclude: list[str]) -> set[str]:
    """What `--exclude` names, as seen from the notebook's folder."""
    seen = {path: os.path.relpath(path, near).replace(os.sep, "/") for path in roles}
    named = excluded(seen.values(), exclude)
    removed = {path for path in roles if seen[path] in named}
    if needed := sorted(path for path in removed if roles[path] in ("notebook", "cassette")):
        raise TapeUsageError(
            f"--exclude leaves out {seen[needed[0]]}, without which there is no session"
        )
    return removed


def _join_path(folder: str, name: str) -> str:
    return str(PurePosixPath(folder) / name)


def _to_relative(root: str, path: str) -> str:
    """A path below the top as one below the session's root; one outside of it keeps its name alone."""
    inside = PurePosixPath(path)
    return str(inside.relative_to(root)) if inside.is_relative_to(root) else inside.name


def sized(path: Path | bytes) -> tuple[int, str]:
    """Bytes and sha256 (hex) of a file, or of a content. Raises BundleError where it cannot be
    read.
    """
    if isinstance(path, bytes):
        return len(path), hashlib.sha256(path).hexdigest()
    try:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            return file.tell(), digest
    except OSError as error:
        raise BundleError(f"{path.name} cannot be read: {error.strerror or error}") from error


def _require_unchanged(path: Path, content: Path | bytes, read: InputFile | None) -> None:
    """What a cell read in the copy is what goes in."""
    if read is not None and (read.size, read.sha256) != sized(content):
        raise BundleError(f"{path.name} was changed while it was being exported; export again")
