"""Who made a bundle: a detached signature of its canonical manifest, made and checked by
`ssh-keygen -Y`.

Digests show that a bundle is intact, not who made it: anybody can make a bundle. A signature shows
who, if the person who checks it has a file of signers that says whose key it is (`man ssh-keygen`,
ALLOWED SIGNERS); without one all it shows is that somebody who has that key signed.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tape_jupyter.errors import BundleError, TapeUsageError
from tape_jupyter.isolation.namespaces import program

NAMESPACE = "tape-jupyter"
SUFFIX = ".sig"
_FIRST = b"-----BEGIN SSH SIGNATURE-----"
_SECONDS = 30

State = Literal["none", "key", "signer", "wrong"]


@dataclass(frozen=True)
class Signed:
    """What a signature shows.

    none: there is none. key: `key` signed, and nobody here says whose it is. signer: it is that of
    `who`, as the file of signers says. wrong: the signature is not of this bundle, or not by one of
    the signers; `why` tells.
    """

    state: State
    who: str = ""
    key: str = ""
    why: str = ""

    def text(self) -> str:
        match self.state:
            case "none":
                return "not signed: nothing shows who made it"
            case "key":
                return f"signed with the key {self.key}; only a file of signers can say whose it is (--signers FILE)"
            case "signer":
                return (
                    f"signed by {self.who}, whom your file of signers lists with the key {self.key}"
                )
            case _:
                return f"the signature is wrong: {self.why}"


NONE = Signed("none")


def sign(manifest: bytes, key: Path) -> bytes:
    """The signature of a canonical manifest, in OpenSSH's armoured form. `key`: private, or an
    agent's public one.

    Raises TapeUsageError where the key cannot be used. A passphrase is asked for in the terminal.
    """
    if not key.is_file():
        raise TapeUsageError(f"{key}: there is no such key. Make one with: ssh-keygen -t ed25519")
    command = [_find_program(), "-Y", "sign", "-f", str(key.absolute()), "-n", NAMESPACE]
    # a list, no shell
    done = subprocess.run(command, input=manifest, capture_output=True, check=False)  # noqa: S603
    if done.returncode or not done.stdout.startswith(_FIRST):
        raise TapeUsageError(f"{key}: it cannot sign: {_read_error(done)}")
    return done.stdout


def verify_signature(manifest: bytes, signature: bytes | None, signers: Path | None) -> Signed:
    """What a signature shows of a canonical manifest. Raises TapeUsageError where it cannot be
    checked here.
    """
    if signers is not None and not signers.is_file():
        raise TapeUsageError(f"{signers}: there is no such file of signers")
    if signature is None:
        if signers is None:
            return NONE
        return Signed("wrong", why="the bundle has none, and --signers asks for one")
    if not signature.startswith(_FIRST):
        return Signed("wrong", why="it is not a signature of ssh-keygen's")
    keygen = _find_program()
    with tempfile.TemporaryDirectory(prefix="tape-signature-") as folder:
        at = Path(folder, "signature")
        at.write_bytes(signature)
        valid = _run_keygen(
            [keygen, "-Y", "check-novalidate", "-n", NAMESPACE, "-s", str(at)], manifest
        )
        if valid.returncode:
            return Signed("wrong", why="it is not of this bundle")
        key = _parse_key(valid)
        if signers is None:
            return Signed("key", key=key)
        return _find_signer(keygen, manifest, at, signers.absolute(), key)


def _find_signer(keygen: str, manifest: bytes, signature: Path, signers: Path, key: str) -> Signed:
    result = _run_keygen(
        [keygen, "-Y", "find-principals", "-s", str(signature), "-f", str(signers)], b""
    )
    for who in (
        result.stdout.decode("utf-8", "replace").splitlines() if not result.returncode else ()
    ):
        about = ["-f", str(signers), "-I", who, "-n", NAMESPACE, "-s", str(signature)]
        if not _run_keygen([keygen, "-Y", "verify", *about], manifest).returncode:
            return Signed("signer", who=who, key=key)
    return Signed(
        "wrong", key=key, why=f"the key {key} is not one that {signers.name} lists for {NAMESPACE}"
    )


def _find_program() -> str:
    path = program("ssh-keygen")
    if not path:
        raise TapeUsageError(
            "signatures need ssh-keygen (OpenSSH 8.2 or newer), and the system has none: install OpenSSH"
        )
    return path


def _run_keygen(command: list[str], data: bytes) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(  # noqa: S603
            command, input=data, capture_output=True, check=False, timeout=_SECONDS
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BundleError(f"the signature cannot be checked: {error}") from error


def _parse_key(done: subprocess.CompletedProcess[bytes]) -> str:
    match = re.search(r"with (\S+) key (\S+)", done.stdout.decode("utf-8", "replace"))
    return f"{match[1]} {match[2]}" if match else "of an unknown kind"


def _read_error(done: subprocess.CompletedProcess[bytes]) -> str:
    lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
    return lines[-1] if lines else f"ssh-keygen ended with {done.returncode}"
