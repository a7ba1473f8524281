"""A signature shows who made a bundle, to whom knows whose key it is; and nothing else shows it."""

import shutil
import subprocess

import pytest
from click.testing import CliRunner

from tape_jupyter.bundle import signing
from tape_jupyter.bundle.verify import verify_bundle
from tape_jupyter.cli import tape as command
from tape_jupyter.errors import TapeUsageError
from tests.harness.bundles import CONTENT, made, written

pytestmark = pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="needs ssh-keygen")
DATA = made().to_bytes()


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    folder = tmp_path_factory.mktemp("keys")
    for name in ("ada", "eve"):
        told = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", folder / name]
        subprocess.run(told, check=True)
    public = (folder / "ada.pub").read_text().split()
    (folder / "signers").write_text(
        f'ada@example.org namespaces="tape-jupyter" {public[0]} {public[1]}\n'
    )
    (folder / "others").write_text(f'ada@example.org namespaces="git" {public[0]} {public[1]}\n')
    return folder


def test_a_listed_signer_is_named(keys):
    signed = signing.verify_signature(DATA, signing.sign(DATA, keys / "ada"), keys / "signers")
    assert (signed.state, signed.who) == ("signer", "ada@example.org") and "SHA256:" in signed.key
    assert signed.text().startswith("signed by ada@example.org, whom your file of signers lists")


def test_without_a_file_of_signers_only_the_key_is_known(keys):
    signed = signing.verify_signature(DATA, signing.sign(DATA, keys / "eve"), None)
    assert (
        signed.state == "key"
        and signed.who == ""
        and "only a file of signers can say whose it is" in signed.text()
    )


def test_another_key_another_bundle_another_purpose_or_no_signature_are_wrong(keys):
    good = signing.sign(DATA, keys / "ada")
    for data, signature, signers, said in (
        (DATA, signing.sign(DATA, keys / "eve"), "signers", "is not one that signers lists"),
        (
            made({**CONTENT, "README.md": b"evil"}).to_bytes(),
            good,
            "signers",
            "it is not of this bundle",
        ),
        (
            made({**CONTENT, "README.md": b"evil"}).to_bytes(),
            good,
            None,
            "it is not of this bundle",
        ),
        (DATA, good, "others", "is not one that others lists for tape-jupyter"),
        (DATA, b"evil", "signers", "not a signature of ssh-keygen's"),
        (DATA, good[:100], None, "it is not of this bundle"),
        (DATA, None, "signers", "the bundle has none, and --signers asks for one"),
    ):
        signed = signing.verify_signature(
            data, signature, None if signers is None else keys / signers
        )
        assert signed.state == "wrong" and said in signed.text()


def test_verify_tells_intact_and_signed_apart(keys, tmp_path):
    path = written(tmp_path)
    assert verify_bundle(path).signed.state == "none"
    (tmp_path / "churn.tape.zip.sig").write_bytes(signing.sign(DATA, keys / "ada"))
    assert verify_bundle(path).signed.state == "key" and verify_bundle(path).good
    done = CliRunner().invoke(command, ["verify", str(path), "--signers", str(keys / "signers")])
    assert (
        done.exit_code == 0
        and "intact" in done.output
        and "signed by ada@example.org" in done.output
    )
    (tmp_path / "churn.tape.zip.sig").write_bytes(signing.sign(DATA, keys / "eve"))
    done = CliRunner().invoke(command, ["verify", str(path), "--signers", str(keys / "signers")])
    assert done.exit_code == 1 and "the signature is wrong" in done.output
    (tmp_path / "elsewhere.sig").write_bytes(signing.sign(DATA, keys / "ada"))
    assert verify_bundle(path, signature=tmp_path / "elsewhere.sig", signers=keys / "signers").good


def test_what_is_missing_is_said(keys, tmp_path, monkeypatch):
    with pytest.raises(TapeUsageError, match="there is no such key. Make one with: ssh-keygen"):
        signing.sign(DATA, tmp_path / "none")
    (tmp_path / "evil").write_text("no key")
    with pytest.raises(TapeUsageError, match="it cannot sign"):
        signing.sign(DATA, tmp_path / "evil")
    with pytest.raises(TapeUsageError, match="no such file of signers"):
        signing.verify_signature(DATA, None, tmp_path / "none")
    signature = signing.sign(DATA, keys / "ada")
    monkeypatch.setattr("tape_jupyter.isolation.namespaces.SYSTEM_FOLDERS", (str(tmp_path),))
    with pytest.raises(TapeUsageError, match="signatures need ssh-keygen"):
        signing.verify_signature(DATA, signature, None)
    assert signing.verify_signature(DATA, None, None).state == "none"
