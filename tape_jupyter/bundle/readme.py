"""A bundle's README.md: what it is, the one command, what is in it and what is not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import PurePosixPath

from tape_jupyter.bundle.archive.manifest import (
    LeftOut,
    LockState,
    Manifest,
    ProofDifference,
    Redaction,
)
from tape_jupyter.comparison import outputs
from tape_jupyter.core.plain_text import format_count

NAME = "README.md"
ROLES = {
    "notebook": "the notebook, with its outputs", "cassette": "recorded calls", "take": "takes: changed replies",
    "asset": "long texts of the recording", "module": "the notebook's own modules", "data": "files that it reads",
    "lock": "the packages it ran with", "wheel": "tape-jupyter itself", "source": "packages that no index has",
    "page": "all calls, to read in a browser", "readme": "this text",
}  # fmt: skip


def readme(manifest: Manifest) -> str:
    """The text, by what the manifest says of everything else in the bundle."""
    name = f"{PurePosixPath(manifest.notebook).stem}.tape.zip"
    unseen = str(manifest.kit.get("unseen") or "")
    parts = [
        _build_head(manifest, name),
        _build_wheel_note(manifest, name),
        _build_proof(manifest.differences),
        _build_contents(manifest),
        _build_lock(manifest.lock),
    ]
    parts += [
        _build_instructions(manifest),
        _build_missing(manifest.left_out, manifest.redactions, unseen),
    ]
    parts += [["## Differences that do not count", ""]]
    lines = [line for part in parts for line in part] + [
        f"* {phrase}" for phrase in outputs.forgiven_words()
    ]
    return "\n".join(lines) + "\n"


def _build_head(manifest: Manifest, name: str) -> list[str]:
    calls = sum(cell.calls for cell in manifest.cells)
    intro = (
        f"A notebook of {format_count(len(manifest.cells), 'cell')} with the "
        f"{format_count(calls, 'model and tool call')} that it made, recorded byte "
        "for byte. It runs again without a key, without a network and without cost, and gives the same:"
    )
    return [
        f"# {PurePosixPath(manifest.notebook).stem}",
        "",
        intro,
        "",
        "```",
        f"uvx tape-jupyter replay {name}",
        "```",
        "",
        "Replaying runs the code that is in here. Neither of these does:",
        "",
        "```",
        f"uvx tape-jupyter verify {name}   # every file against its digest",
        f"uvx tape-jupyter open {name}     # read all calls in the browser; page.html is the same page",
        "```",
        "",
        f"To step through it in JupyterLab, or to change a reply: `uvx tape-jupyter open --lab {name}`.",
        "",
    ]


def _build_wheel_note(manifest: Manifest, name: str) -> list[str]:
    wheel = next((each.path for each in manifest.files if each.role == "wheel"), "")
    if not wheel:
        return []
    return [
        "Where `tape-jupyter` cannot be had from an index, the bundle contains it:", "",
        "```", f"unzip {name} {wheel}", f"uvx --from ./{wheel} tape-jupyter replay {name}", "```", "",
    ]  # fmt: skip


def _build_proof(differences: Sequence[ProofDifference]) -> list[str]:
    if not differences:
        intro = (
            "Before this file was written, its session was replayed in a fresh kernel, in another folder, with the "
            "network cut off, and every cell gave what the notebook shows."
        )
        return [intro, ""]
    intro = (
        "**Not every cell replays as saved.** It was exported anyway; in its proof these cells did not give what "
        "the notebook shows:"
    )
    return [intro, "", *(f"* cell {each.cell}: {each.why}" for each in differences), ""]


def _build_contents(manifest: Manifest) -> list[str]:
    by_role: dict[str, list[str]] = {}
    for each in manifest.files:
        by_role.setdefault(each.role, []).append(each.path)
    lines = [
        f"| {_format_paths(by_role[role])} | {description} |"
        for role, description in ROLES.items()
        if role in by_role
    ]
    return ["## What is in it", "", "| file | what it is |", "|---|---|", *lines, ""]


def _format_paths(paths: Sequence[str]) -> str:
    """One path, or the folder that they have in common and how many they are."""
    if len(paths) == 1:
        return f"`{paths[0]}`"
    parents = [PurePosixPath(path).parent.parts for path in paths]
    common = [parts[0] for parts in zip(*parents, strict=False) if len(set(parts)) == 1]
    return f"`{'/'.join(common)}/` ({len(paths)} files)"


def _build_lock(lock: LockState) -> list[str]:
    if lock.hashed:
        return ["Every package of `environment/pylock.toml` has the hashes of its files.", ""]
    return [f"`environment/` lists the packages, not all with hashes: {lock.why}.", ""]


def _build_instructions(manifest: Manifest) -> list[str]:
    """How pip and uv make the environment without tape-jupyter."""
    if not any(each.role == "lock" for each in manifest.files):
        return []
    wheels = [each.path for each in manifest.files if each.role == "wheel"]
    sources = sorted(
        {"/".join(each.path.split("/")[:3]) for each in manifest.files if each.role == "source"}
    )
    hashes = " --require-hashes" if manifest.lock.hashed else ""
    not_pip = "pip cannot, because of the sources" if sources else "so can pip, from 26.1 on"
    return [
        "`tape replay` makes the environment itself. By hand, in this folder unpacked, with pip or with uv (`uv pip`):",
        "", "```", f"pip install --no-deps{hashes} -r environment/requirements.txt",
        f"pip install --no-deps {' '.join(f'./{each}' for each in (*wheels, *sources))}", "```", "",
        f"uv can install `environment/pylock.toml` instead (`uv pip install -r`); {not_pip}.", "",
    ]  # fmt: skip


def _format_left_out(each: LeftOut) -> str:
    return (
        f"`{each.path}` ({format_count(each.size, 'byte')})"
        if each.sha256 or each.size
        else each.path
    )


def _build_missing(
    left_out: Iterable[LeftOut], redactions: Iterable[Redaction], unseen: str
) -> list[str]:
    lines = [f"* {_format_left_out(each)}: {each.why}" for each in left_out]
    if unseen:
        lines.append(f"* perhaps more: the machine that made it could not watch {unseen}")
    lines += [f"* {each.count} x {each.kind} in `{each.where}`, masked" for each in redactions]
    return ["## What is not in it", "", *lines, ""] if lines else []
