"""No secret in what would be exported goes unseen, and what is found is told by its place, never by its value."""

import base64
import time
import zlib
import gzip
import json
import os
import random
import sqlite3

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tape_jupyter.secrets import environment, leaks
from tape_jupyter.core.call import FunctionCall, Reply, Value
from tape_jupyter.encoding.values.registry import freeze
from tape_jupyter.secrets.registry import Secrets
from tests.harness.plants import ENCODINGS, KINDS, MORE, made
from tests.harness.recorder import SSE, Recorder, reply, request
from tests.unit.secrets.test_passages import png

NOBODY = Secrets()
COUNT = int(os.environ.get("TAPE_PROPERTY_COUNT", "60"))


def cell(source="x", *outputs, **more):
    return {"cell_type": "code", "source": source, "outputs": list(outputs), "metadata": {}, **more}


def notebook(*cells):
    return json.dumps(
        {"cells": list(cells), "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    ).encode()


def taped(folder, *calls):
    recorder = Recorder(folder / "main.tape.yaml")
    for call in calls:
        recorder.add(*call)
    recorder.end()
    return {
        f"session/n.tapes/{path.relative_to(folder).as_posix()}": path
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def streamed(text, rng):
    events, at = [], 0
    while at < len(text):
        size = rng.randint(1, 7)
        events.append(
            {
                "type": "content_block_delta",
                "index": 0,
                "delta": {"type": "text_delta", "text": text[at : at + size]},
            }
        )
        events += [{"type": "ping"}] * (rng.random() < 0.3)
        at += size
    chunks = tuple(f"data: {json.dumps(event)}\n\n".encode() for event in events)
    return Reply(200, SSE, chunks, tuple(0.1 for _ in chunks))


def places(text, rng, folder):
    """Every place at which a text may stand in a bundle, and what makes such files."""
    yield "source", lambda: {"session/n.ipynb": notebook(cell(f"ask(r'''{text}''')"))}
    yield (
        "output",
        lambda: {
            "session/n.ipynb": notebook(
                cell("x", {"output_type": "stream", "name": "stdout", "text": ["a\n", text + "\n"]})
            )
        },
    )
    yield (
        "html",
        lambda: {
            "session/n.ipynb": notebook(
                cell(
                    "x",
                    {
                        "output_type": "display_data",
                        "data": {"text/html": f"<p>{text}</p>"},
                        "metadata": {},
                    },
                )
            )
        },
    )
    yield (
        "metadata",
        lambda: {
            "session/n.ipynb": notebook(
                cell("x", metadata={"papermill": {"parameters": {"note": text}}})
            )
        },
    )
    yield "csv", lambda: {"session/data/a.csv": f'1,"{text}"\n'.encode()}
    yield "packed", lambda: {"session/data/a.csv.gz": gzip.compress(f'1,"{text}"\n'.encode())}
    yield "lock", lambda: {"environment/pylock.toml": f'index = "{text}"\n'.encode()}
    yield "module", lambda: {"session/helper.py": f"NOTE = '{text}'\n".encode()}
    yield (
        "body",
        lambda: taped(
            folder / "1", (request({"messages": [{"role": "user", "content": text}]}), reply())
        ),
    )
    yield "reply", lambda: taped(folder / "2", (request({"q": 1}), reply(text)))
    yield "stream", lambda: taped(folder / "3", (request({"q": 2}), streamed(text, rng)))
    yield (
        "tool",
        lambda: taped(
            folder / "4", (FunctionCall("look_up", {"note": text}), Value(freeze([text])))
        ),
    )
    yield (
        "header",
        lambda: taped(
            folder / "5",
            (
                request({"q": 3}),
                Reply(200, (("x-trace", text.replace("\n", " ")),), (b"{}",), (0.1,)),
            ),
        ),
    )
    yield "long", lambda: taped(folder / "6", (request({"q": "filler " * 12000 + text}), reply()))


@pytest.mark.parametrize("kind", sorted({**KINDS, **MORE}))
def test_any_secret_is_found_at_any_place_in_some_encoding(kind, tmp_path):
    rng = random.Random(kind)
    text, cores = made(kind, rng)
    text = text.replace("\n", "\\n")  # on one line, as in JSON
    for place, content in places(text, rng, tmp_path):
        assert leaks.scan(content(), NOBODY), place
    told = ENCODINGS[rng.choice(list(ENCODINGS))](text)
    for place, content in places(told, rng, tmp_path / "encoded"):
        found = leaks.scan(content(), NOBODY)
        assert found, (place, told)
        assert not any(core in repr(found) for core in cores)


@settings(max_examples=COUNT, deadline=None)
@given(
    st.integers(0, 10**9),
    st.sampled_from(sorted(KINDS)),
    st.sampled_from(sorted(ENCODINGS)),
    st.sampled_from(sorted(ENCODINGS)),
)
def test_a_secret_that_is_encoded_twice_is_found(seed, kind, first, second):
    text, _ = made(kind, random.Random(seed))
    told = ENCODINGS[second](ENCODINGS[first](text))
    assert leaks.scan({"session/a.txt": f"see {told} there".encode()}, NOBODY)


@settings(max_examples=2 * COUNT, deadline=None)
@given(st.text(st.characters(codec="utf-8"), max_size=400))
def test_ordinary_text_is_no_secret(text):
    assert not leaks.scan(
        {"session/a.txt": text.encode(), "session/n.ipynb": notebook(cell(text))}, NOBODY
    )


def test_pictures_uuids_digests_and_ids_are_no_secrets(tmp_path):
    rng = random.Random(4)
    picture = base64.b64encode(
        png((b"IHDR", bytes(13)), (b"IDAT", rng.randbytes(60_000)), (b"IEND", b""))
    ).decode()
    said = {
        "signature": base64.b64encode(rng.randbytes(900)).decode(),
        "id": f"msg_{rng.randbytes(12).hex()}",
        "sha256": rng.randbytes(32).hex(),
    }
    content = {
        "session/n.ipynb": notebook(
            cell(
                "plt.show()",
                {"output_type": "display_data", "data": {"image/png": picture}, "metadata": {}},
            )
        ),
        "session/vectors.npy": rng.randbytes(200_000),
        **taped(tmp_path, (request({"image": picture}), reply(json.dumps(said)))),
    }
    assert leaks.scan(content, NOBODY) == []


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize(
    "value", ["w9Qe7RtY5uIoP3aSdF1g", "correct horse battery staple", 'p@s/w+o&r=d"\\%9']
)
def test_a_value_that_is_secret_here_is_found_though_it_looks_like_nothing(
    tmp_path, encoding, value
):
    secrets = environment.environment_secrets(tmp_path, {"ACME_API_KEY": value}, tmp_path)
    content = {"session/a.txt": f"x {ENCODINGS[encoding](value)} y".encode()}
    assert leaks.scan(content, secrets) == [
        leaks.Leak("session/a.txt, line 1", "known ACME_API_KEY", 1)
    ]
    assert not leaks.scan(content, NOBODY)


def test_a_persons_own_patterns_are_looked_for_everywhere(tmp_path):
    book = notebook(
        cell("%tape set redact.customer=C-[0-9]{4}\n"),
        cell("print(who)", {"output_type": "stream", "name": "stdout", "text": "C-1234 asked"}),
    )
    environment.with_patterns(secrets := Secrets(), book)
    found = leaks.scan({"session/n.ipynb": book, "session/a.csv": b"id\nC-7777\nC-8888\n"}, secrets)
    assert [(leak.where, leak.kind) for leak in found] == [
        ("session/a.csv, line 2", "known customer"),
        ("session/a.csv, line 3", "known customer"),
        ("session/n.ipynb, cell 2, output 1, text", "known customer"),
    ]


def test_the_same_in_one_file_is_one_leak_with_its_place(tmp_path):
    token, _ = made("github", random.Random(1))
    found = leaks.scan({"session/a.csv": f"a\n{token},{token}\n".encode()}, NOBODY)
    assert found == [leaks.Leak("session/a.csv, line 2", "github-token", 2)]


def test_a_place_that_itself_holds_the_secret_is_told_without_it():
    token, _ = made("github", random.Random(1))
    found = leaks.scan(
        {
            f"session/{token}.csv": b"a",
            "session/n.ipynb": notebook(cell("x", metadata={token: {"deep": token}})),
        },
        NOBODY,
    )
    assert found and token not in repr(found) and any(leak.where == leaks.NAME for leak in found)


def test_bytes_a_database_and_a_pictures_comment_are_looked_into(tmp_path):
    token, _ = made("slack bot", random.Random(1))
    base = sqlite3.connect(tmp_path / "a.db")
    base.execute("create table t (note)")
    base.execute("insert into t values (?)", (token,))
    base.commit()
    base.close()
    picture = png((b"tEXt", b"Comment\0" + token.encode()), (b"IDAT", bytes(range(256))))
    shown = {
        "output_type": "display_data",
        "data": {"image/png": base64.encodebytes(picture).decode()},
        "metadata": {},
    }
    content = {
        "session/a.db": tmp_path / "a.db",
        "session/a.png": picture,
        "session/n.ipynb": notebook(cell("x", shown)),
    }
    assert {leak.where.split(",")[0] for leak in leaks.scan(content, NOBODY)} == set(content)


def test_progress_is_told(tmp_path):
    heard = []
    leaks.scan(
        {"a": b"x", "b": b"y"}, NOBODY, lambda what, done, total: heard.append((done, total))
    )
    assert heard == [(0, 2), (1, 2)]


def test_markers_are_no_secrets():
    text = "api_key=<secret:ACME_API_KEY> redacted-github-token-1 Bearer <secret:authorization> access_token=<secret:access_token>"
    assert not leaks.scan({"session/a.txt": text.encode()}, NOBODY)


@pytest.mark.parametrize(
    "spelled", ["<secret:api_key>", "\\u003csecret:api_key>", "&lt;secret:api_key&gt;"]
)
def test_a_field_that_the_recorder_masked_is_no_secret_however_the_page_spells_its_marker(spelled):
    for text in (
        f'{{"api_key": "{spelled}"}}',
        f'{{"said": "{{\\"api_key\\": \\"{spelled}\\"}}"}}',
    ):
        assert leaks.scan({"page.html": text.encode()}, NOBODY) == []


KEY = (
    made("anthropic", random.Random(5))[0]
    if "anthropic" in KINDS
    else made(next(iter(KINDS)), random.Random(5))[0]
)


def rich_html(text):
    """As rich writes a text in a notebook: its highlighter cuts words into spans."""
    return "".join(
        f'<span style="color: #008000">{text[at : at + 9]}</span>' for at in range(0, len(text), 9)
    )


def pdf(text):
    import zlib

    stream = zlib.compress(f"BT ({text}) Tj ET".encode())
    return (
        b"%PDF-1.4\n1 0 obj\n<< /Filter /FlateDecode >>\nstream\n"
        + stream
        + b"\nendstream\nendobj\n%%EOF"
    )


def often(text, times):
    data = text.encode()
    for _ in range(times):
        data = base64.b64encode(data)
    return data


@pytest.mark.parametrize(
    ("name", "data"),
    [
        (
            "colours.log",
            "".join(
                f"\x1b[1;32m{KEY[at : at + 7]}\x1b[0m" for at in range(0, len(KEY), 7)
            ).encode(),
        ),
        (
            "rich.ipynb",
            notebook(
                cell("x", {"output_type": "display_data", "data": {"text/html": rich_html(KEY)}})
            ),
        ),
        ("model.joblib", __import__("zlib").compress(f"weights {KEY} weights".encode())),
        ("report.pdf", pdf(KEY)),
        ("four.txt", often(KEY, 4)),
    ],
)
def test_a_key_is_found_however_it_was_coloured_packed_or_encoded(name, data):
    assert [
        leak.where.split(",")[0].split("!")[0] for leak in leaks.scan({name: data}, NOBODY)
    ] != []


PAIRS = [KEY[at : at + 3] for at in range(0, len(KEY), 3)]
DRAWN = {
    "letter by letter": "[" + " -20 ".join(f"({each})" for each in PAIRS) + "] TJ",
    "in hex": f"<{KEY.encode().hex()}> Tj",
    "in groups of hex": "[" + "-7.5".join(f"<{each.encode().hex(' ')}>" for each in PAIRS) + "] TJ",
    "two bytes a letter": f"<{KEY.encode('utf-16-be').hex()}> Tj",
    "by octal escapes": "(" + "".join(f"\\{ord(each):03o}" for each in KEY) + ") Tj",
}
FILTERS = {
    "no": lambda data: data,
    "deflate": zlib.compress,
    "Ascii85": lambda data: base64.a85encode(data, wrapcol=70) + b"~>",
    "Ascii85 and deflate": lambda data: base64.a85encode(zlib.compress(data)) + b"~>",
    "hex": lambda data: data.hex(" ", 30).encode() + b">",
}


@pytest.mark.parametrize("packed", FILTERS)
@pytest.mark.parametrize("drawn", DRAWN)
def test_a_key_that_a_pdf_draws_is_found(drawn, packed):
    stream = FILTERS[packed](f"BT /F1 12 Tf {DRAWN[drawn]} ET".encode())
    head, tail = b"%PDF-1.4\n1 0 obj\n<< >>\nstream\n", b"\nendstream\nendobj\n%%EOF"
    assert leaks.scan({"a.pdf": head + stream + tail}, NOBODY)


def test_a_pdf_with_a_list_of_numbers_is_read():
    assert leaks.scan({"a.pdf": pdf(f"[0 0 612 792] {KEY}")}, NOBODY)


def test_a_pdf_of_brackets_without_end_takes_no_time():
    for piece in (b"(", b"[(a)", b"<61", b"((\\", b"[<61>"):
        started = time.process_time()
        leaks.scan({"a.pdf": b"%PDF-1.4\nstream\n" + piece * 100_000 + b"\nendstream"}, NOBODY)
        assert time.process_time() - started < 5, piece


def test_env_files_above_the_repository_count_up_to_the_home_folder(tmp_path):
    home, work = tmp_path / "ada", tmp_path / "ada" / "work" / "repository" / "notebooks"
    (work.parent / ".git").mkdir(parents=True)
    (work.parent / ".git" / "config").write_text("[core]\n")
    work.mkdir()
    for place, name in ((work.parent.parent, "ABOVE"), (home, "HOME_S"), (tmp_path, "BEYOND")):
        (place / ".env").write_text(f"{name}_API_KEY=q8Zr{name.lower()}71kWx09vLm\n")
    secrets = environment.environment_secrets(work, {}, home)
    assert secrets.suspicious("q8Zrabove71kWx09vLm") and secrets.suspicious("q8Zrhome_s71kWx09vLm")
    assert not secrets.suspicious("q8Zrbeyond71kWx09vLm")


def test_an_aws_secret_with_slashes_is_found_in_a_path_too():
    told = (
        "https://h.test/u/aws_secret_access_key%20%3D%20/SpEqNm3ZNCtz/vP1gh1heZqjTvr29IpSg8j8q7a/x"
    )
    assert [leak.kind for leak in leaks.scan({"a.txt": told.encode()}, NOBODY)] == [
        "aws-secret-access-key"
    ]
    path = b"see: secret_key/config/prod/eu/west/service/database/main/primary/x"
    assert leaks.scan({"a.txt": path}, NOBODY) == []
