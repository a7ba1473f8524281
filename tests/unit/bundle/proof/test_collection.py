"""What a notebook needed, told by its own kernel after the last cell."""

import json
import sqlite3

import pytest

from tape_jupyter.bundle.proof import collection
from tape_jupyter.bundle.proof.collection import Collected, Left
from tape_jupyter.bundle.proof.inputs import InputFile
from tape_jupyter.errors import BundleError
from tests.harness.notebook import Kernel

CELLS = (
    "import csv; rows = list(csv.reader(open('data/sales.csv')))",
    "import helper; helper.TABLE",
    "import sys; sys.path.insert(0, 'lib'); import deep",
    "settings = open('../settings.ini').read()",
    "import numpy; numpy.memmap('array.bin', dtype='u1')[:2]",
    "import sqlite3; sqlite3.connect('db.sqlite').execute('select * from t').fetchall()",
    "open('out.txt', 'w').write('1'); open('out.txt').read()",
    "!cat only_cat.txt",
    "import wren; wren.VALUE, wren.read()",
    "open(ELSEWHERE).read()",
    "%matplotlib inline\nimport matplotlib.pyplot as plt; plt.plot([1, 2]);",
    "import json; json.load(open(MODEL))",
    "from IPython.display import Image; import tempfile; tempfile.NamedTemporaryFile().read()",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A copy of a work tree with a notebook's folder in it, and an editable package beside it."""
    base = tmp_path_factory.mktemp("collected")
    nb = base / "copy" / "nb"
    for name, text in {
        "data/sales.csv": "a,b\n", "data/other.csv": "never", "helper.py": "TABLE = open('table.json').read()",
        "table.json": "{}", "lib/deep.py": "X = 1", "array.bin": "0123", "only_cat.txt": "x", "unread.txt": "x",
        "n.tapes/main.tape.yaml": "", "../settings.ini": "s", ".env": "KEY=1",
        "../../wren/src/wren/__init__.py": "import pathlib\nVALUE = 1\nread = (pathlib.Path(__file__).parent / 'w.txt').read_text",
        "../../wren/src/wren/w.txt": "w", "../../wren/src/wren/unused.py": "", "../../wren/tests/test_wren.py": "",
        "../../site-packages/wren-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: wren\nVersion: 1.0\nRequires-Dist: idna\n",
        "../../site-packages/wren-1.0.dist-info/direct_url.json": json.dumps(
            {"url": (base / "wren").as_uri(), "dir_info": {"editable": True}}
        ),
        "../../elsewhere/big.csv": "12345",
        "../../hub/models--acme--tiny/snapshots/00ff/config.json": "{}",
    }.items():  # fmt: skip
        (nb / name).parent.mkdir(parents=True, exist_ok=True)
        (nb / name).write_text(text)
    with sqlite3.connect(nb / "db.sqlite") as connection:
        connection.execute("create table t(x)")
    connection.close()
    return base


def collect(base, copied=True):
    nb = base / "copy" / "nb"
    env = {
        "PYTHONPATH": f"{base / 'site-packages'}:{base / 'wren' / 'src'}",
        "TAPE_NOTEBOOK": str(nb / "n.ipynb"),
    }
    with Kernel(nb, env) as kernel:
        assert (
            kernel.execute(collection.before(base / "copy", nb, copied=copied), silent=True).status
            == "ok"
        )
        kernel.execute(
            f"ELSEWHERE = {str(base / 'elsewhere/big.csv')!r}; MODEL = {str(next(base.rglob('config.json')))!r}"
        )
        for cell in CELLS:
            ran = kernel.execute(cell)
            assert ran.status == "ok", (cell, ran.ename, ran.evalue)
        goal = base / "told.json"
        assert kernel.execute(f"open({str(goal)!r}, 'w').write({collection.AFTER})").status == "ok"
    (nb / "out.txt").unlink()
    return goal.read_text()


@pytest.fixture(scope="module")
def text(folder):
    return collect(folder)


@pytest.fixture(scope="module")
def told(text):
    return collection.parse_collected(text)


def test_data_that_anybody_read_is_named_with_its_digest(told):
    names = {each.path for each in told.data}
    assert names == {
        "nb/data/sales.csv",
        "nb/table.json",
        "nb/array.bin",
        "nb/db.sqlite",
        "nb/only_cat.txt",
        "settings.ini",
    }
    sales = next(each for each in told.data if each.path == "nb/data/sales.csv")
    assert (sales.size, len(sales.sha256)) == (4, 64)
    assert told.unseen == ""


def test_local_modules_are_those_that_were_imported(told):
    assert [each.path for each in told.modules] == ["nb/helper.py", "nb/lib/deep.py"]


def test_a_file_of_a_parent_folder_raises_the_root(told):
    assert told.root == ""


def test_packages_come_with_all_that_they_need(told):
    names = {each.partition("==")[0] for each in told.distributions}
    assert {
        "numpy",
        "matplotlib",
        "contourpy",
        "ipykernel",
        "pyzmq",
        "nbclient",
        "click",
        "idna",
    } <= names
    assert not {"tape-jupyter", "wren", "pytest", "anthropic"} & names
    assert list(told.distributions) == sorted(told.distributions)


def test_an_editable_package_is_taken_whole_as_it_is_imported(told):
    (wren,) = told.local
    assert (wren.name, wren.version, wren.kind) == ("wren", "1.0", "editable")
    assert set(wren.files) == {
        "wren/__init__.py",
        "wren/w.txt",
        "wren/unused.py",
        "wren-1.0.dist-info/METADATA",
    }


def test_what_lies_elsewhere_is_named_and_models_are_named(told, folder):
    assert [(each.path, each.size) for each in told.left_out] == [("…/big.csv", 5)]
    assert "git work tree" in told.left_out[0].why
    assert [(each.name, each.where) for each in told.models] == [("acme/tiny@00ff", "huggingface")]


def test_the_same_run_tells_the_same(folder, text):
    assert collect(folder) == text


def test_nothing_of_this_machine_is_told_but_where_packages_lie(told, folder):
    shown = repr(
        (
            told.root,
            told.distributions,
            told.modules,
            told.data,
            told.models,
            told.left_out,
            told.python,
        )
    )
    assert str(folder) not in shown


def test_too_large_files_are_left_out_with_the_reason(monkeypatch):
    monkeypatch.setattr(collection, "ONE", 10)
    monkeypatch.setattr(collection, "ALL", 12)
    kept, left = collection._split_by_caps(
        [
            InputFile("huge", 11, "h"),
            InputFile("b", 8, "b"),
            InputFile("a", 2, "a"),
            InputFile("c", 9, "c"),
        ]
    )
    assert [each.path for each in kept] == ["a", "b"]
    assert {each.path for each in left} == {"huge", "c"} and all(
        isinstance(each, Left) and each.why for each in left
    )


def test_the_root_rises_only_as_far_as_it_must():
    assert collection._find_common_folder("a/nb", ["a/nb/x.csv"]) == "a/nb"
    assert collection._find_common_folder("a/nb", ["a/nb/x.csv", "a/data/y.csv"]) == "a"
    assert collection._find_common_folder("a/nb", ["z.csv"]) == ""
    assert collection._find_common_folder("", ["a/z.csv"]) == ""


@pytest.mark.parametrize(
    "text", ["", "{}", '{"root": 1}', "[]", '{"root": "", "distributions": 3}']
)
def test_what_a_broken_kernel_tells_is_refused(text):
    with pytest.raises(BundleError, match="did not tell"):
        collection.parse_collected(text)
