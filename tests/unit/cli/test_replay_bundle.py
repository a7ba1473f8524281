"""What of `tape replay` is about a bundle, and how one that is ended from outside ends. (Replays: test_bundle_replaying.py.)"""

import os
import signal

import pytest

from tape_jupyter.cli import replay_bundle
from tape_jupyter.errors import TapeUsageError


def test_a_zip_a_folder_and_a_url_are_bundles_and_a_notebook_is_none(tmp_path):
    for place in (
        "churn.tape.zip",
        "X.ZIP",
        str(tmp_path),
        "s3://runs/churn.tape.zip",
        "memory://a",
    ):
        assert replay_bundle.is_bundle(place), place
    for place in ("churn.ipynb", "main.tape.yaml", "none", "C:\\a.ipynb"):
        assert not replay_bundle.is_bundle(place), place


def test_an_option_of_the_other_kind_is_refused_with_what_it_is_for():
    replay_bundle.only("a.zip", bundle=True, live=(), on_divergence=None)
    with pytest.raises(TapeUsageError, match="--on-divergence a.zip: it is for notebooks"):
        replay_bundle.only("a.zip", bundle=True, live=(), on_divergence="live")
    with pytest.raises(TapeUsageError, match="--yes a.ipynb: it is for a bundle"):
        replay_bundle.only("a.ipynb", bundle=False, yes=True)
