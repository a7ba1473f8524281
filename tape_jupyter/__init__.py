"""tape-jupyter: record a notebook's LLM and tool calls once, replay them forever.

`%load_ext tape_jupyter` in a notebook, `import tape_jupyter as tape` in Python. Public names are
imported on first use: importing this package costs nothing in a program that already has its own
imports to wait for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

__version__ = "0.1.0"

_HOMES = {
    "open": "tape_jupyter.cassette.cassette",
    "recording": "tape_jupyter.session.api",
    "replaying": "tape_jupyter.session.api",
    "tool": "tape_jupyter.instrumentation.tools.decorators",
    "retrieval": "tape_jupyter.instrumentation.tools.decorators",
    "span": "tape_jupyter.instrumentation.tools.decorators",
    "frozen": "tape_jupyter.instrumentation.tools.wrappers",
    "diff": "tape_jupyter.reports.diff",
    "import_trace": "tape_jupyter.importers.assemble",
    "plan": "tape_jupyter.dataflow.static_plan",
    "why": "tape_jupyter.experiments.why",
    "try_candidates": "tape_jupyter.experiments.sweep.sweep",
    "rows": "tape_jupyter.exporters.rows",
    "rows_frame": "tape_jupyter.exporters.rows",
    "TapeError": "tape_jupyter.errors",
    "CassetteError": "tape_jupyter.errors",
    "TapeUsageError": "tape_jupyter.errors",
    "NotebookUnknown": "tape_jupyter.errors",
    "TapeRefusal": "tape_jupyter.errors",
    "UnmatchedCall": "tape_jupyter.errors",
    "BlockedConnection": "tape_jupyter.errors",
}

# all strings
__all__ = [*_HOMES, "__version__", "load_ipython_extension", "unload_ipython_extension"]  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from tape_jupyter.core.real_clock import genuine

    with genuine():
        value = globals()[name] = getattr(import_module(_HOMES[name]), name)
    return value


def __dir__() -> list[str]:
    return __all__


def load_ipython_extension(shell: InteractiveShell) -> None:
    """`%load_ext tape_jupyter`. Raises TapeUsageError when TAPE_MODE is no mode; nothing then runs
    live.
    """
    from tape_jupyter.core.real_clock import genuine

    with genuine():
        from tape_jupyter.jupyter.standby import load_extension
    load_extension(shell)


def unload_ipython_extension(shell: InteractiveShell) -> None:
    """`%unload_ext tape_jupyter`: ends the tape and takes every hook out."""
    from tape_jupyter.jupyter.standby import unload_extension

    unload_extension(shell)
