"""Doors room: a bundle's code cells as pytest tests: replayed away from the network, each compared with the manifest.

Collecting opens and checks the bundle; nothing of it runs. Running it runs a stranger's code: only a bundle that was
let run here before (`tape replay` asks once a digest), was exported here, or is under `--tape-trust`. To name it on the
command line is not enough: a file that came with a repository is as much a stranger's as any.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tape_jupyter.bundle import opened, trust
from tape_jupyter.bundle.replaying import Hearer, Wanted, replay, safe
from tape_jupyter.errors import BundleError
from tape_jupyter.headless import CellRun
from tape_jupyter.pytest_cells import CellsFile


class BundleFile(CellsFile):
    """A `*.tape.zip`."""

    def cells(self) -> Iterable[tuple[int, str]]:
        with opened(self.path) as bundle:
            self.digest = bundle.digest
            self.known = frozenset(each.cell for each in bundle.manifest.differences)
            return [(each.number, safe(each.title)) for each in bundle.manifest.cells]

    def runs(self) -> Iterator[CellRun]:
        config = self.config
        if not config.getoption("tape_trust") and not trust.trusted(self.digest):
            raise BundleError(
                f"it was never let run here (sha256 {self.digest[:16]}), and it holds code of others. Look first: tape "
                f"verify {self.path.name}, tape open {self.path.name} (neither runs anything of it). Then: tape replay "
                f"{self.path.name}, which asks once; or pytest --tape-trust. Nothing of it was run",
                place=str(self.path),
            )
        env = "lock" if config.getoption("tape_env") == "lock" else "current"
        wanted = Wanted(env=env, yes=True, timeout=config.getoption("tape_timeout"))  # type: ignore[arg-type]  # one of two
        yield from (cell.told() for cell in replay(self.path, wanted, Hearer()).cells)
