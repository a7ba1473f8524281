"""Bundles that mean harm, by structure, and what `tape verify`, `open` and `replay` do with each.

    python -m tests.trials.hostile_bundles [--rounds 150] [--seed 1] [--only WORDS] [--commands verify,open,replay] [--keep FOLDER]

Each command runs in a process of its own (forked from a warm one) with a home, variables and a listener on loopback that
are canaries. A line is printed for each command that

* takes more than 5 seconds of processor time or 300 MB above the warm process;
* shows a traceback, or ends otherwise than with exit code 0, 1 or 2, or says nothing;
* changes a file of the home or of the folder it was started in, tells a secret of either, or connects.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import itertools
import json
import os
import random
import re
import resource
import signal
import socket
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.harness.bundles import CONTENT, by_hand, notebook, recording
from tests.hostile.test_costly_bundles import (
    KITS,
    LOCKS,
    NOTEBOOKS,
    with_kit,
    with_lock,
    with_notebook,
)
from tests.hostile.test_hostile_bundles import CASES
from tests.properties.test_structured_bundles import SCALARS

SECONDS, MEGABYTES = 5, 300
CANARY = "canary-7f3a9c51e0d24b86"
COMMANDS = {
    "verify": ("verify",),
    "open": ("open", "--json"),
    "replay": ("replay", "--yes", "--here", "--timeout", "5"),
    "lock": ("replay", "--yes"),
}
"""Each with the bundle's name behind it. `lock`: with the environment that the bundle asks for, of whichever index that is."""

Make = Callable[[], bytes]

# ---------------------------------------------------------------- what means harm

CELLS = {
    "tells its variables": "import os; print(dict(os.environ))",
    "tells the home": "import os, pwd; print([open(os.path.join(b, d)).read() for h in {os.path.expanduser('~'), HOME} for b, _, ds in os.walk(h) for d in ds])",
    "writes into the home": "open(HOME + '/evil', 'w').write('x')",
    "removes the home": "import shutil; shutil.rmtree(HOME, ignore_errors=True)",
    "connects": "import socket; socket.create_connection(('127.0.0.1', PORT), 2).send(b'x')",
    "connects below Python": "import ctypes, os, socket; c = ctypes.CDLL(None); f = c.socket(2, 1, 0); c.connect(f, bytes([2, 0]) + PORT.to_bytes(2, 'big') + bytes([127, 0, 0, 1]) + bytes(8), 16)",
    "connects by a program": "import subprocess, sys; subprocess.run([sys.executable, '-c', \"import socket; socket.create_connection(('127.0.0.1', PORT), 2)\"], capture_output=True, timeout=9)",
    "leaves a process": "import os, time\nif os.fork() == 0:\n    os.setsid(); time.sleep(3); open(HOME + '/evil', 'w').write('x'); os._exit(0)",
    "patches the tape": "import tape_jupyter.session.session as s; s.TapeSession.end = None",
    "writes where it was started": "open(HERE + '/evil', 'w').write('x')",
    "kills its parent": "import os, signal; os.kill(os.getppid(), signal.SIGTERM)",
    "shows markup": "from IPython.display import HTML; HTML('<img src=x onerror=alert(1)>')",
    "shows ten megabytes": "print('x' * 10_000_000)",
    "takes a gigabyte": "x = bytearray(1 << 30); x[::4096] = b'1' * len(x[::4096])",
}  # fmt: skip
"""Code of a stranger's cells. HOME, HERE and PORT are put in; what it reads there is a canary."""

PACKAGE = "[[packages]]\nname='amber'\nversion='1.0'\n"
LOCKED = {
    "an sdist": PACKAGE + "[packages.sdist]\nname='amber-1.0.tar.gz'\nurl='http://127.0.0.1:PORT/amber-1.0.tar.gz'\nsize=1\nhashes={sha256='%s'}\n" % ("0" * 64),
    "a wheel at a URL of its own": PACKAGE + "wheels=[{name='amber-1.0-py3-none-any.whl',url='http://127.0.0.1:PORT/x.whl',size=1,hashes={sha256='%s'}}]\n" % ("0" * 64),
    "a wheel without a digest": PACKAGE + "wheels=[{name='amber-1.0-py3-none-any.whl',url='http://127.0.0.1:PORT/x.whl',size=1}]\n",
    "a wheel that is a file": PACKAGE + "wheels=[{name='amber-1.0-py3-none-any.whl',url='file:///etc/passwd',size=1,hashes={sha256='%s'}}]\n" % ("0" * 64),
    "a path out of the bundle": PACKAGE + "wheels=[{name='amber-1.0-py3-none-any.whl',path='../../../etc/passwd',size=1,hashes={sha256='%s'}}]\n" % ("0" * 64),
    "a repository": PACKAGE + "[packages.vcs]\ntype='git'\nurl='http://127.0.0.1:PORT/x.git'\ncommit-id='%s'\n" % ("0" * 40),
    "a folder": PACKAGE + "[packages.directory]\npath='/etc'\n",
    "an archive": PACKAGE + "[packages.archive]\nurl='http://127.0.0.1:PORT/x.tar.gz'\nhashes={sha256='%s'}\n" % ("0" * 64),
    "another index": PACKAGE + "index='http://127.0.0.1:PORT/simple'\nwheels=[{name='amber-1.0-py3-none-any.whl',url='http://127.0.0.1:PORT/x.whl',size=1,hashes={sha256='%s'}}]\n" % ("0" * 64),
    "an option for the installer": "[[packages]]\nname='--index-url=http://127.0.0.1:PORT'\nversion='1.0'\n",
    "a name with a line end": '[[packages]]\nname="amber\\n--index-url http://127.0.0.1:PORT"\nversion="1.0"\n',
    "a marker that is long": PACKAGE + "marker=\"%s python_version > '3'\"\n" % ("(" * 900),
}  # fmt: skip
MODULES = (
    "re",
    "enum",
    "json",
    "asyncio",
    "portalocker",
    "ipykernel",
    "typing",
    "http",
    "site",
)


def bundles(scratch: Path, port: int, home: Path, here: Path) -> dict[str, Make]:
    """Every kind of hostile bundle, by name."""
    made: dict[str, Make] = {f"frame: {name}": make for name, (make, _) in CASES.items()}
    made |= {f"lock: {name}": lambda text=text: with_lock(text) for name, text in LOCKS.items()}
    made |= {f"manifest: {name}": lambda kit=kit: with_kit(**kit) for name, kit in KITS.items()}
    made |= {
        f"notebook: {name}": lambda told=told: with_notebook(**told)
        for name, told in NOTEBOOKS.items()
    }
    for name, text in LOCKED.items():
        made[f"packages: {name}"] = lambda text=text: with_lock(
            text.replace("PORT", str(port)).encode()
        )
    for name, source in CELLS.items():
        code = (
            source.replace("HOME", repr(str(home)))
            .replace("HERE", repr(str(here)))
            .replace("PORT", str(port))
        )
        made[f"cell: {name}"] = lambda code=code: by_hand(
            {**CONTENT, "session/churn.ipynb": notebook(code)}
        ).bytes()
    for module in MODULES:
        evil = f"open({str(home / 'evil')!r}, 'w').write('x')\nraise SystemExit(1)\n".encode()
        made[f"module: {module}.py"] = lambda module=module, evil=evil: by_hand({**CONTENT, f"session/{module}.py": evil}).bytes()  # fmt: skip
    session = recording(scratch / "work")
    for number, scalar in enumerate(SCALARS):
        made[f"cassette: {number} {scalar[:20]!r}"] = lambda number=number, scalar=scalar: by_hand(_exchanged(session, number, scalar)).bytes()  # fmt: skip
    return made


def _exchanged(session: dict[str, bytes], seed: int, scalar: str) -> dict[str, bytes]:
    """Three values of the cassette exchanged for an odd one, drawn by the seed."""
    (name,) = [each for each in session if each.endswith(".tape.yaml")]
    lines = session[name].decode().splitlines()
    places = [at for at, line in enumerate(lines) if re.match(r"^ *[\w-]+: \S", line)]
    for at in random.Random(seed).sample(places, 3):
        lines[at] = f"{lines[at].partition(':')[0]}: {scalar}"
    return {**session, name: ("\n".join(lines) + "\n").encode("utf-8", "surrogatepass")}


# ---------------------------------------------------------------- what is done with them


def canaries(home: Path) -> None:
    """A home with what nobody may see or change."""
    for path in (".env", ".ssh/id_ed25519", ".aws/credentials", "notes.txt"):
        place = home / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(f"SECRET={CANARY}-{path}\n")


def state(folder: Path) -> dict[str, str]:
    """The digest of each file below it."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


class Place:
    """A home, a folder to start in, a place for scratch, and a listener, all watched."""

    def __init__(self, folder: Path) -> None:
        self.home, self.here, self.scratch = (folder / name for name in ("home", "here", "scratch"))
        for each in (self.home, self.here, self.scratch):
            each.mkdir()
        canaries(self.home)
        (self.here / "mine.txt").write_text(CANARY)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.listener.setblocking(False)

    @property
    def port(self) -> int:
        return self.listener.getsockname()[1]

    def connections(self) -> int:
        """How many connected since it was asked last."""
        for count in itertools.count():
            try:
                self.listener.accept()[0].close()
            except BlockingIOError:
                return count
        raise AssertionError

    def environment(self) -> dict[str, str]:
        cache = str(self.scratch / "cache")
        return {
            "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin", "HOME": str(self.home), "TMPDIR": str(self.scratch), "CANARY_API_KEY": CANARY,
            "XDG_CACHE_HOME": cache, "XDG_DATA_HOME": cache, "XDG_CONFIG_HOME": cache, "XDG_STATE_HOME": cache,
            "PIP_CONFIG_FILE": os.devnull, "NO_COLOR": "1",
        }  # fmt: skip


def ran(place: Place, words: tuple[str, ...], log: Path, most: float) -> tuple[int, float, float]:
    """Run the command in a fork: its exit code, its seconds of processor time, its MB above ours."""
    process = os.fork()
    if not process:
        try:
            out = os.open(log, os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
            for number in (1, 2):
                os.dup2(out, number)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.chdir(place.here)
            environment = place.environment()
            os.environ.clear()
            os.environ.update(environment)
            tempfile.tempdir = None
            if most:
                resource.setrlimit(resource.RLIMIT_CPU, (int(2 * most), int(3 * most)))
            from tape_jupyter.cli import main

            sys.argv = ["tape", *words]
            try:
                main()
                code = 0
            except SystemExit as ended:
                code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
        except BaseException:
            import traceback

            traceback.print_exc()
            sys.stderr.flush()
        finally:
            os._exit(70)
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    _, status, used = os.wait4(process, 0)
    code = os.waitstatus_to_exitcode(status)
    scale = 1 << 10 if sys.platform == "linux" else 1 << 20
    return code, used.ru_utime + used.ru_stime, max(0, used.ru_maxrss - own) / scale


def faults(
    place: Place, name: str, command: str, bundle: Path, most: float
) -> tuple[list[str], float, float]:
    """What a command did with a bundle that it may not do; its seconds and MB."""
    before = state(place.home), state(place.here)
    place.connections()
    log = place.scratch / "log"
    code, seconds, megabytes = ran(place, (*COMMANDS[command], str(bundle)), log, most)
    text = log.read_text("utf-8", "replace")
    found = []
    if most and seconds > most:
        found.append(f"{seconds:.1f} s")
    if megabytes > MEGABYTES and "takes a gigabyte" not in name:
        found.append(f"{megabytes:.0f} MB")
    if code not in (0, 1, 2):
        found.append(f"exit code {code}")
    if not text.strip():
        found.append("says nothing")
    if "Traceback" in text and "tape_jupyter/" in text.partition("Traceback")[2]:
        found.append("a traceback of ours")
    if (state(place.home), state(place.here)) != before:
        after = {**state(place.home), **state(place.here)}
        new = [name for name, each in after.items() if {**before[0], **before[1]}.get(name) != each]
        found.append(f"the home or the folder changed: {new[:5]}")
    if CANARY in text:
        found.append("told a canary")
    if connected := place.connections():
        found.append(f"{connected} connections")
    return [f"{each} ({text.strip()[-200:]!r})" for each in found], seconds, megabytes


def rounds(
    count: int,
    seed: int = 1,
    commands: tuple[str, ...] = ("verify", "open", "replay"),
    only: str = "",
    most: float = SECONDS,
    keep: Path | None = None,
) -> Iterator[tuple[str, str, list[str], float, float]]:
    """The bundle, the command, its faults, seconds and MB, for so many bundles (each kind is among them)."""
    import tape_jupyter.bundle.replay
    import tape_jupyter.bundle.verify
    import tape_jupyter.cli  # noqa: F401

    with tempfile.TemporaryDirectory() as folder:
        place = Place(Path(folder))
        every = bundles(place.scratch, place.port, place.home, place.here)
        names = [name for name in every if only in name]
        random.Random(seed).shuffle(names)
        by_kind: dict[str, list[str]] = {}
        for name in names:
            by_kind.setdefault(name.partition(":")[0], []).append(name)
        in_turn = [name for row in itertools.zip_longest(*by_kind.values()) for name in row if name]
        for name in in_turn[:count]:
            bundle = place.scratch / "evil.tape.zip"
            bundle.write_bytes(every[name]())
            if keep is not None:
                (keep / f"{re.sub(r'[^a-z0-9]+', '-', name.lower())[:80]}.tape.zip").write_bytes(bundle.read_bytes())  # fmt: skip
            for command in commands:
                if command == "lock" and not name.startswith(("packages", "lock")):
                    continue
                yield name, command, *faults(place, name, command, bundle, most)
        time.sleep(3 if "cell: leaves a process" in in_turn[:count] else 0)
        if (place.home / "evil").exists() or (place.here / "evil").exists():
            yield (
                "cell: leaves a process",
                "replay",
                ["it went on, and wrote into the home"],
                0.0,
                0.0,
            )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--rounds", type=int, default=10_000, help="bundles; all of them by default"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="bundles with these words in their names")
    parser.add_argument("--commands", default="verify,open,replay")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="of a command; 0: no limit")
    parser.add_argument("--keep", type=Path, help="a folder for the bundles")
    asked = parser.parse_args()
    if asked.keep:
        asked.keep.mkdir(parents=True, exist_ok=True)
    bad, count, names, worst = 0, Counter(), set(), [0.0, 0.0]
    for name, command, found, seconds, megabytes in rounds(
        asked.rounds,
        asked.seed,
        tuple(asked.commands.split(",")),
        asked.only,
        asked.seconds,
        asked.keep,
    ):
        count[command] += 1
        names.add(name)
        worst = [max(worst[0], seconds), max(worst[1], megabytes)]
        bad += bool(found)
        for each in found:
            print(f"{name} · {command}: {each}", flush=True)
    print(json.dumps({"bundles": len(names), **count, "at_fault": bad, "most_seconds": round(worst[0], 2), "most_megabytes": round(worst[1])}))  # fmt: skip
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
