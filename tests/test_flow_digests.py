"""The hash of fingerprints."""

from tape_jupyter.flow.digests import digest, hasher


def test_it_is_of_the_bytes_however_they_come():
    whole = hasher()
    whole.update(b"ab")
    whole.update(memoryview(b"c"))
    assert whole.hexdigest() == digest(b"abc") != digest(b"abd")
    assert len(digest(b"")) == 32
