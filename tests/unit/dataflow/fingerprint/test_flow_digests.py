"""The hash of fingerprints."""

import subprocess
import sys

from tape_jupyter.dataflow.fingerprint.walker import digest_bytes, hasher


def test_it_is_of_the_bytes_however_they_come():
    whole = hasher()
    whole.update(b"ab")
    whole.update(memoryview(b"c"))
    assert whole.hexdigest() == digest_bytes(b"abc") != digest_bytes(b"abd")
    assert len(digest_bytes(b"")) == 32


def test_it_is_the_same_in_another_kernel():
    text = "from tape_jupyter.dataflow.fingerprint.walker import digest_bytes; print(digest_bytes(b'abc'), end='')"
    told = subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, check=True
    ).stdout
    assert told == digest_bytes(b"abc")


def test_without_xxhash_there_is_a_digest_as_well():
    text = "import sys; sys.modules['xxhash'] = None; from tape_jupyter.dataflow.fingerprint.walker import digest_bytes; print(digest_bytes(b'a'))"
    told = subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, check=True
    ).stdout.strip()
    assert len(told) == 32
