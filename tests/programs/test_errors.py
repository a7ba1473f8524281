"""Errors are interface: they say where, and a refusal is nothing that an SDK or a bare `except` swallows."""

from tape_jupyter import errors
from tape_jupyter.errors import (
    BlockedConnection,
    BundleError,
    CassetteError,
    NotebookUnknown,
    TapeError,
    TapeRefusal,
    UnmatchedCall,
)


def test_a_cassette_error_names_file_and_line():
    assert str(CassetteError("no")) == "no"
    assert str(CassetteError("no", path="a.yaml")) == "a.yaml: no"
    assert str(CassetteError("no", line=3)) == "cassette:3: no"
    assert str(CassetteError("no", path="a.yaml", line=3)) == "a.yaml:3: no"


def test_a_line_in_a_record_becomes_a_line_of_the_file():
    inner = CassetteError("no", line=3)
    assert str(inner.at(path="a.yaml", first_line=10)) == "a.yaml:12: no"
    assert inner.at(path="a.yaml", first_line=10).at(path="b.yaml").path == "b.yaml"
    assert CassetteError("no").at(path="a.yaml", first_line=10).line is None


def test_a_refusal_is_no_exception_that_an_sdk_retries():
    for refusal in (UnmatchedCall("report"), BlockedConnection("where")):
        assert isinstance(refusal, TapeRefusal) and not isinstance(refusal, Exception)
    assert UnmatchedCall("report").report == "report"
    assert issubclass(NotebookUnknown, TapeError) and issubclass(TapeError, Exception)


def test_the_tree_in_the_docstring_is_the_whole_tree():
    values = [value for value in vars(errors).values() if isinstance(value, type)]
    classes = [value.__name__ for value in values if issubclass(value, BaseException)]
    assert all(name in (errors.__doc__ or "") for name in classes) and len(classes) == 11


def test_a_bundle_error_names_the_bundle_and_all_that_is_wrong():
    assert str(BundleError("no")) == "no" and BundleError("no").problems == ("no",)
    assert str(BundleError("no").at("a.tape.zip")) == "a.tape.zip: no"
    two = BundleError("no", problems=("no", "nor this")).at("a.tape.zip")
    assert two.problems == ("no", "nor this") and two.at("b.tape.zip") is two
