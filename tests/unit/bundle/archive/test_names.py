"""A file's name in a bundle is one file, inside, on every system; and a person can read it."""

import pytest

from tape_jupyter.bundle.archive import names
from tape_jupyter.errors import BundleError


@pytest.mark.parametrize(
    "name",
    [
        "README.md", "session/churn.ipynb", "session/Lesson 1, what is an agent?.ipynb", "session/été/заказ.csv", "session/注文.csv",
        "session/.env.example", "session/a..b", "session/...hidden", "session/con/tents.txt"[:7] + "/contents.txt", "session/console.py", "session/👩‍💻.txt",
        "session/.gitignore", "session/(1)[2]{3} & co; $HOME.csv", "a" * 255,
    ],
)  # fmt: skip
def test_names_that_people_give_are_taken(name):
    assert names.check_file_name(name) == name


def test_a_bad_name_is_quoted_so_that_it_does_nothing_to_a_terminal():
    with pytest.raises(BundleError) as refused:
        names.check_file_name("\x1b[2J\u202e../evil")
    assert "\\x1b[2J\\u202e" in str(refused.value) and str(refused.value).isprintable()


def test_names_are_looked_at_together():
    names.check_all(["a/b", "a/c", "ab", "A-b"])
    with pytest.raises(BundleError, match="'a/b' and 'A/b' are the same file"):
        names.check_all(["A/b", "a/b"])
    with pytest.raises(BundleError, match="'a' is a file, and a folder for 'A/b'"):
        names.check_all(["a", "A/b"])


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("session/conftest.py", "conftest.py"), ("session/sitecustomize/__init__.py", "sitecustomize"), ("x/usercustomize.pyc", "usercustomize.pyc"),
        ("a.pth", "a.pth"), ("jupyter_server_config.py", "jupyter_server_config.py"), ("ipython_kernel_config.json", "ipython_kernel_config.json"),
        ("session/conf.py", ""), ("session/my_conftest.py", ""), ("session/model.pt", ""),
    ],
)  # fmt: skip
def test_what_would_run_by_lying_there_is_known(name, part):
    assert names.startup_hook(name) == part
