"""Large bodies on their way into a file: every spelling of a secret is found once, wherever blocks are cut."""

import base64
import os

import pytest

from tape_jupyter.core import large_body
from tape_jupyter.secrets import spooling
from tape_jupyter.core.large_body import BLOCK, LIMIT
from tape_jupyter.secrets.registry import Secrets
from tape_jupyter.secrets.spooling import OVERLAP, Arrived, Spool, Upload, spooled

KEY = "sk-proj-9vQ2mZ7kLx41PwT8"
FILL = b"The quick brown fox. "


@pytest.fixture
def secrets():
    known = Secrets()
    known.learn("KEY", KEY)
    return known


def whole(body):
    return b"".join(body.blocks())


def filled(size):
    return (FILL * (size // len(FILL) + 1))[:size]


@pytest.mark.parametrize(
    "place", [0, BLOCK - 3, BLOCK - OVERLAP, BLOCK - OVERLAP - 5, 2 * BLOCK - 1, 3 * BLOCK - 24]
)
@pytest.mark.parametrize(
    "spelled",
    [KEY.encode(), KEY.encode().hex().encode(), base64.b64encode(b"x" + KEY.encode())],
    ids=["raw", "hex", "b64"],
)
def test_a_secret_is_masked_wherever_it_stands(tmp_path, secrets, place, spelled):
    data = filled(3 * BLOCK)
    data = data[:place] + spelled + data[place + len(spelled) :]
    body = spooled(
        [data[start : start + 65_536] for start in range(0, len(data), 65_536)], tmp_path, secrets
    )
    kept = whole(body)
    assert body.masked and spelled not in kept and b"<secret:KEY>" in kept
    assert kept.startswith(data[: max(0, place - 30)]) and len(kept) >= len(data) - len(spelled)


def test_what_holds_no_secret_is_kept_as_it_is(tmp_path, secrets):
    data = os.urandom(5 * BLOCK + 17)
    body = spooled([data[:7], data[7:BLOCK], data[BLOCK:]], tmp_path, secrets)
    assert whole(body) == data and not body.masked and body.size == len(data)


def test_what_the_program_sends_is_what_it_said(tmp_path, secrets):
    data = filled(2 * BLOCK) + KEY.encode() + filled(2 * BLOCK) + KEY.encode()
    spool = Spool(tmp_path, secrets, keep_sent=True)
    for start in range(0, len(data), 100_000):
        spool.write(data[start : start + 100_000])
    body = spool.finish()
    assert body.sent is not None and whole(body.sent) == data
    assert whole(body) == data.replace(KEY.encode(), b"<secret:KEY>")


def test_a_text_full_of_secrets_is_masked(tmp_path, secrets):
    data = (KEY.encode() + b" ") * 60_000  # several blocks
    assert whole(spooled([data], tmp_path, secrets)) == b"<secret:KEY> " * 60_000


def test_fields_and_patterns_are_masked_as_in_small_bodies(tmp_path, secrets):
    secrets.pattern(r"patient-\d+", "patient")
    data = (
        filled(BLOCK)
        + b'{"client_secret": "s3cr3t-v4lue-77", "for": "patient-4711"}'
        + filled(BLOCK)
    )
    kept = whole(spooled([data], tmp_path, secrets))
    assert (
        b"s3cr3t-v4lue-77" not in kept
        and b"patient-4711" not in kept
        and b"<secret:patient>" in kept
    )


def test_nothing_is_left_behind(tmp_path, secrets):
    spooled([filled(BLOCK)], tmp_path, secrets)
    assert list(tmp_path.iterdir()) == []


def test_an_upload_is_held_while_it_is_small(tmp_path, secrets):
    upload = Upload(lambda: Spool(tmp_path, secrets, keep_sent=True))
    upload.add(b"a" * LIMIT)
    assert upload.finish_body() == b"a" * LIMIT


def test_an_upload_is_held_where_the_disk_is_full(tmp_path, secrets, monkeypatch):
    upload, room = Upload(lambda: Spool(tmp_path, secrets, keep_sent=True)), [3]
    genuine = spooling._write_at

    def write(file, data, start):
        room[0] -= 1
        if room[0] < 0:
            raise OSError(28, "No space left on device")
        genuine(file, data, start)

    monkeypatch.setattr(spooling, "_write_at", write)
    data = filled(20 * BLOCK)
    for start in range(0, len(data), 300_000):
        upload.add(data[start : start + 300_000])
    assert upload.finish_body() == data


def test_what_arrives_is_given_from_where_it_was_asked_for(tmp_path, secrets):
    arrived = Arrived(lambda: Spool(tmp_path, secrets, keep_sent=False))
    arrived.append(b"first")
    assert arrived.since(0) == (b"first",)
    for _ in range(3):
        arrived.append(b"b" * LIMIT)
    late = arrived.since(1)
    assert large_body.is_large(late) and [*map(len, late)] == [LIMIT] * 3
    assert [*map(len, arrived.since(0))] == [5, LIMIT, LIMIT, LIMIT]
    assert len(arrived) == 4
