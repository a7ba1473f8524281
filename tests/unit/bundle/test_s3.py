"""Bundles at `s3://`: against a server of S3's own protocol on this machine, where moto and s3fs are installed."""

import pytest

from tape_jupyter.bundle.archive import locations
from tape_jupyter.bundle.verify import verify_bundle
from tape_jupyter.errors import BundleError, TapeUsageError
from tests.harness.bundles import CONTENT, made, packed

s3fs = pytest.importorskip("s3fs")
moto = pytest.importorskip("moto.server")


@pytest.fixture(scope="module")
def address():
    server = moto.ThreadedMotoServer(port=0)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def store(address, monkeypatch, tmp_path):
    """A file system with the bucket `runs`; nothing of this person's configuration."""
    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    told = {
        "AWS_ENDPOINT_URL": address,
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
    }
    told |= {
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
        "HOME": str(tmp_path),
    }
    for name, value in told.items():
        monkeypatch.setenv(name, value)
    s3fs.S3FileSystem.clear_instance_cache()
    files = s3fs.S3FileSystem(skip_instance_cache=True)
    if not files.exists("runs"):
        files.mkdir("runs")
    yield files
    s3fs.S3FileSystem.clear_instance_cache()


def put(url, data):
    with locations.write_to_place(url) as file:
        file.write(data)


def test_a_bundle_is_written_read_and_replaced_there(store):
    url = locations.bundle_place("s3://runs/a/", "churn.tape.zip")
    put(url, packed())
    assert verify_bundle(url).digest == verify_bundle("s3://runs/a").digest == made().digest
    other = CONTENT | {"session/data/new.csv": b"1"}
    put(url, packed(other))
    assert verify_bundle(url).digest == made(other).digest


@pytest.mark.parametrize("name", ["person.tape.zip", "person.txt"])
def test_what_a_person_has_there_is_not_replaced(store, name):
    store.pipe(f"runs/b/{name}", b"mine")
    with pytest.raises(TapeUsageError, match="exists and is not a bundle; nothing was written"):
        put(f"s3://runs/b/{name}", packed())
    assert store.cat(f"runs/b/{name}") == b"mine"


def test_a_bucket_that_is_not_there_is_said_and_not_made(store):
    with pytest.raises(BundleError, match="bucket does not exist") as refused:
        put("s3://nowhere-at-all/churn.tape.zip", packed())
    assert len(str(refused.value).splitlines()) == 1 and not store.exists("nowhere-at-all")
    with pytest.raises(BundleError, match="there is no such file or folder"):
        verify_bundle("s3://nowhere-at-all/churn.tape.zip")


def test_without_credentials_one_line_says_so(store, monkeypatch):
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    s3fs.S3FileSystem.clear_instance_cache()
    for does in (
        lambda: verify_bundle("s3://runs/a/churn.tape.zip"),
        lambda: put("s3://runs/c/churn.tape.zip", packed()),
    ):
        with pytest.raises(
            BundleError, match="it cannot be reached: Unable to locate credentials"
        ) as refused:
            does()
        assert len(str(refused.value).splitlines()) == 1
