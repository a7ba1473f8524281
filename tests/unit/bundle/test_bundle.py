"""The way in: `bundle.opened` gives a bundle that has been checked, whatever place it lies at, and nothing else does."""

import pytest

from tape_jupyter import bundle
from tape_jupyter.errors import BundleError, TapeError
from tests.harness.bundles import CONTENT, made, packed


def test_a_bundle_is_opened_by_its_place(tmp_path):
    path = tmp_path / "churn.tape.zip"
    path.write_bytes(packed())
    with bundle.opened(path) as it:
        assert isinstance(it, bundle.Bundle) and isinstance(it.manifest, bundle.Manifest)
        assert (
            it.digest == made().digest
            and it.read(it.manifest.notebook) == CONTENT["session/churn.ipynb"]
        )


def test_what_is_none_is_an_error_that_names_it(tmp_path):
    path = tmp_path / "churn.tape.zip"
    path.write_bytes(b"no bundle")
    with (
        pytest.raises(BundleError, match="churn.tape.zip: .*was cut off|ends too early") as refused,
        bundle.opened(path),
    ):
        pass
    assert isinstance(refused.value, TapeError) and refused.value.place == str(path)
