"""What of a cassette's records is searched as lines: all but what the tape itself made."""

import hashlib

import pytest

from tape_jupyter.secrets.cassette_gate import bare_record

DIGESTS = [hashlib.sha256(bytes([number])).hexdigest() for number in range(64)]


@pytest.mark.parametrize("digest", DIGESTS)
def test_digests_and_runs_are_left_out_however_they_are_spelled(digest):
    spelled = digest if digest[0].isalpha() else f'"{digest}"'  # as the cassette's writer does
    record = (
        f"---\ncall: a-1\nrun: r-{digest[:8]}\nmatch: {spelled}\nrequest:\n  sha256: {spelled}\n"
        "  text: hello\n...\n"
    )
    assert bare_record(record) == "---\ncall: a-1\nrequest:\n  text: hello\n...\n"


@pytest.mark.parametrize(
    "line",
    [
        "  sha256: {0}Q",
        '  sha256: "{0}',
        "  sha256: {0} {0}",
        "    sha256: {0}",
        "  token: {0}",
        "run: r-{0}",
        "run: x-0123abcd",
        "  run: r-0123abcd",
    ],
)
def test_what_looks_like_one_and_is_none_stays(line):
    record = f"---\ncall: a-1\nrequest:\n{line.format(DIGESTS[0])}\n...\n"
    assert bare_record(record) == record
