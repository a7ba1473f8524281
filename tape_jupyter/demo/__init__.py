"""`tape demo`: a notebook recorded against a provider on loopback, then replayed with all of it cut
off.
"""

from __future__ import annotations

import importlib.util
import secrets
import tempfile
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from tape_jupyter.errors import TapeUsageError

NEEDS = ("anthropic", "openai", "ipykernel")


def main(*, live: bool = False, keep: Path | None = None, as_json: bool = False) -> int:
    """Play the demo and print what it did; 0 when all came out as it must, else 1.

    `live` takes the real model of local_model.py; `keep` is a new or empty folder for notebook and
    cassette. Raises TapeUsageError where something it needs is missing.
    """
    from tape_jupyter.demo import acts, screen

    missing = [name for name in NEEDS if importlib.util.find_spec(name) is None]
    if missing:
        raise TapeUsageError(f"the demo's notebook needs: pip install {' '.join(missing)}")
    with _open_folder(keep) as folder, screen.Screen(quiet=as_json) as stage:
        show = acts.run_demo(Path(folder), f"demo-key-{secrets.token_hex(12)}", stage, live=live)
        stage.figures(show)
        if keep is not None:
            stage.print_lines(
                "", f"Kept: {keep}/support.ipynb; its cassette holds the edited reply."
            )
    if as_json:
        print(screen.demo_json(show))  # noqa: T201  # printing is its job
    return 1 if show.wrong() else 0


def _open_folder(keep: Path | None) -> AbstractContextManager[str]:
    if keep is None:
        return tempfile.TemporaryDirectory(prefix="tape-demo-")
    keep.mkdir(parents=True, exist_ok=True)
    if any(keep.iterdir()):
        raise TapeUsageError(f"{keep}: not empty; give a new folder")
    return nullcontext(str(keep.resolve()))
