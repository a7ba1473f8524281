"""Plants secrets in sessions, exports them, and searches every bundle for every planted value.

    python tests/plant_secrets.py --seed N --keep DIR [--count 2000] [--whole 2]

One JSON line a batch, a sum as the last; exit 0 when nothing leaked. 25 kinds x 8 encodings x 10 places (headers,
bodies, URLs, streamed text cut across deltas, notebook source, outputs, data files, lock, environment, git remote) make
2,000 plants, 100 a session. Each session's calls are really recorded, in this process, from a provider on loopback.
It is exported as it is, which must be refused, with every plant found; then masked, packed and searched. That the search
(tests/harness/plants.py, which shares no code with ours) sees what it should is shown on the files that were refused: `seen`.

These sessions go the way of `tape export` from the search for secrets on; no kernel runs them (that would be a
notebook of a hundred unrelated lines). `--whole` sessions are notebooks that a kernel recorded, and go through the
command `tape export` with its proofs, twice. DIR keeps the bundles and `planted.json`.
"""

from __future__ import annotations

import argparse
import gzip
import itertools
import json
import os
import random
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
if __name__ == "__main__":
    sys.path[0] = str(ROOT)  # not the folder of this file

from tests.harness.plants import ENCODINGS, KINDS, Plant, Search, made, opened
from tests.harness.provider import Provider, Scripted

PLACES = (
    "header",
    "body",
    "url",
    "stream",
    "source",
    "output",
    "data",
    "lock",
    "environment",
    "remote",
)
BATCH = 100
JSON = {"content-type": "application/json"}


def plants(seed: int, count: int) -> Iterator[Plant]:
    """Every kind in every encoding at every place, in an order of the seed's; then once more, with other values."""
    rng = random.Random(seed)
    combinations = list(itertools.product(KINDS, ENCODINGS, PLACES))
    done = 0
    while done < count:
        rng.shuffle(combinations)
        for kind, encoding, place in combinations[: count - done]:
            text, cores = made(kind, rng)
            if place in ("environment", "remote"):  # bare values, which look like nothing
                core = cores[0]
                text, cores = core, [core]
            if place == "remote":
                text = f"https://deploy:{_in_url(text)}@git.acme.dev/team/churn.git"
            yield Plant(kind, encoding, place, text, cores)
        done += len(combinations[: count - done])


def _in_url(text: str) -> str:
    from urllib.parse import quote

    return quote(text, safe="")


# ---------------------------------------------------------------- a session


class Session:
    """A notebook, its recording and what lies around it, with plants in all of it."""

    def __init__(self, folder: Path, batch: list[Plant], rng: random.Random) -> None:
        self.folder, self.rng = folder, rng
        self.at = {place: [plant for plant in batch if plant.place == place] for place in PLACES}
        self.environ = {
            f"ACME_{n}_TOKEN": plant.cores[0] for n, plant in enumerate(self.at["environment"])
        }
        self.tape = folder / "churn.tapes" / "main.tape.yaml"

    def make(self) -> dict[str, bytes | Path]:
        """The files that would be exported."""
        (self.folder / ".git").mkdir(parents=True)
        urls = [
            f'[remote "r{n}"]\n\turl = {plant.text}\n' for n, plant in enumerate(self.at["remote"])
        ]
        (self.folder / ".git" / "config").write_text("".join(urls))
        self.tape.parent.mkdir()
        self._record()
        self._kit()
        files: dict[str, bytes | Path] = {"session/churn.ipynb": self._notebook()}
        for path in sorted(self.tape.parent.rglob("*")):
            if path.is_file():
                files[f"session/{path.relative_to(self.folder).as_posix()}"] = path
        return {**files, **self._data(), "environment/pylock.toml": self._lock()}

    def _record(self) -> None:
        import urllib3

        import tape_jupyter as tape

        @tape.tool
        def look_up(query: str) -> dict[str, Any]:
            return {"found": query}

        # A person who exports has not these keys in the environment: only what looks like a key can be known.
        with Provider() as provider, tape.recording(self.tape):
            pool = urllib3.PoolManager()
            for n, plant in enumerate(self.at["header"]):
                told = plant.told.replace("\n", "\\n")
                self._call(
                    pool,
                    provider,
                    f"/h/{n}",
                    Scripted(200, {**JSON, "x-trace": told}, [b'{"ok": true}']),
                )
            for n, plant in enumerate(self.at["body"]):
                self._body(pool, provider, n, plant, look_up)
            for n, plant in enumerate(self.at["url"]):
                path = f"/u/{n}"
                query = f"?note={_in_url(plant.told)}" if n % 2 else f"/{_in_url(plant.told)}/x"
                self._call(pool, provider, path, Scripted(200, JSON, [b'{"ok": true}']), query)
            for n, plant in enumerate(self.at["stream"]):
                self._call(pool, provider, f"/s/{n}", self._stream(plant.told, n % 5))

    def _call(
        self,
        pool: Any,
        provider: Provider,
        path: str,
        answer: Scripted,
        more: str = "",
        **body: Any,
    ) -> None:
        provider.script(path + more.partition("?")[0], answer)
        reply = pool.request(
            "POST",
            provider.url + path + more,
            json=body or {"q": path},
            retries=False,
            preload_content=False,
        )
        while reply.read(64):
            pass

    def _body(self, pool: Any, provider: Provider, n: int, plant: Plant, tool: Any) -> None:
        plain = json.dumps(
            {"said": [{"text": f"the note: {plant.told}"}], "filler": "x" * (n % 2) * 70000}
        ).encode()
        packed = {**JSON, "content-encoding": "gzip"}
        if n % 4 == 0:
            self._call(pool, provider, f"/b/{n}", Scripted(200, JSON, [plain[:9], plain[9:]]))
        elif n % 4 == 1:
            self._call(pool, provider, f"/b/{n}", Scripted(200, packed, [gzip.compress(plain)]))
        elif n % 4 == 2:
            turns = [{"role": "user", "content": f"{plant.told} " + "and more " * 20}]
            for more in (
                [],
                [{"role": "assistant", "content": "yes"}, {"role": "user", "content": "again"}],
            ):
                answer = Scripted(200, JSON, [b'{"ok": true}'])
                self._call(pool, provider, f"/b/{n}", answer, messages=[*turns, *more])
        else:
            tool(f"{plant.told} in {n}")

    def _stream(self, text: str, form: int) -> Scripted:
        """A reply that says the text in pieces of one to nine characters, with other events in between."""
        pieces, at = [], 0
        while at < len(text):
            size = self.rng.randint(1, 9)
            pieces.append(text[at : at + size])
            at += size
        chunks: list[bytes] = []
        for n, piece in enumerate(pieces):
            if form == 0:
                event = {
                    "type": "content_block_delta",
                    "index": 0,
                    "delta": {"type": "text_delta", "text": piece},
                }
            elif form == 1:
                event = {
                    "type": "content_block_delta",
                    "index": 1,
                    "delta": {"type": "input_json_delta", "partial_json": piece},
                }
            elif form == 2:
                event = {
                    "id": "c",
                    "object": "chat.completion.chunk",
                    "choices": [{"index": 0, "delta": {"content": piece}}],
                }
            elif form == 3:
                event = {
                    "message": {"role": "assistant", "content": piece},
                    "done": n == len(pieces) - 1,
                }
            else:
                event = {"candidates": [{"content": {"parts": [{"text": piece}], "role": "model"}}]}
            data = json.dumps(event)
            chunks.append(f"{data}\n".encode() if form == 3 else f"data: {data}\n\n".encode())
            if form != 3 and self.rng.random() < 0.2:
                chunks.append(b'event: ping\ndata: {"type": "ping"}\n\n')
            if form == 0 and self.rng.random() < 0.2:  # another part speaks in between
                other = {
                    "type": "content_block_delta",
                    "index": 1,
                    "delta": {"type": "text_delta", "text": "word"},
                }
                chunks.append(f"data: {json.dumps(other)}\n\n".encode())
        kind = "application/x-ndjson" if form == 3 else "text/event-stream"
        return Scripted(
            200,
            {"content-type": kind},
            [b"".join(chunks[i : i + 7]) for i in range(0, len(chunks), 7)],
        )

    def _kit(self) -> None:
        """What a recording says of its repository; an older one may have said it with a token."""
        from tape_jupyter.cassette.cassette import Cassette

        tape = Cassette.open(self.tape)
        run = tape.start_run({"mode": "record", "source": "0" * 16}, {})
        tape.add_kit(
            run, {"git": {f"remote{n}": plant.told for n, plant in enumerate(self.at["remote"])}}
        )
        tape.end_run(run, {"outcome": "ok", "calls": 0})

    def _notebook(self) -> bytes:
        cells = []
        for n, plant in enumerate(self.at["source"]):
            literal = f'"""{plant.told}"""'
            source = (
                f"# cell {n}\nvalue = r{literal}\n"
                if n % 2
                else f"call(note={json.dumps(plant.told)})\n"
            )
            cells.append(
                {
                    "cell_type": "code",
                    "metadata": {},
                    "source": source.splitlines(keepends=True),
                    "outputs": [],
                }
            )
        for n, plant in enumerate((*self.at["output"], *self.at["environment"])):
            cells.append(
                {
                    "cell_type": "code",
                    "metadata": {},
                    "source": "show()",
                    "outputs": [self._output(n, plant.told)],
                }
            )
        book = {"cells": cells, "metadata": {"title": "churn"}, "nbformat": 4, "nbformat_minor": 5}
        return json.dumps(book, indent=1).encode()

    def _output(self, n: int, told: str) -> dict[str, Any]:
        if n % 4 == 0:
            return {
                "output_type": "stream",
                "name": "stdout",
                "text": f"first\n{told}\nlast\n".splitlines(keepends=True),
            }
        if n % 4 == 1:
            return {
                "output_type": "display_data",
                "metadata": {},
                "data": {"text/html": f"<table><td>{told}</td></table>"},
            }
        if n % 4 == 2:
            return {
                "output_type": "execute_result",
                "execution_count": 1,
                "metadata": {},
                "data": {"application/json": {"deep": [{"value": told}]}},
            }
        return {
            "output_type": "error",
            "ename": "E",
            "evalue": told,
            "traceback": ["line", f"E: {told}"],
        }

    def _data(self) -> dict[str, bytes]:
        files = {}
        for n, plant in enumerate(self.at["data"]):
            if n % 3 == 0:
                files[f"session/data/{n}.csv"] = f'id,note\n1,"{plant.told}"\n2,plain\n'.encode()
            elif n % 3 == 1:
                files[f"session/data/{n}.json"] = json.dumps(
                    [{"id": 1, "note": plant.told}]
                ).encode()
            else:
                files[f"session/data/{n}.bin"] = (
                    b"\xff\xfe\x00\x01" + plant.told.encode() + bytes(range(256))
                )
        return files

    def _lock(self) -> bytes:
        lines = ['lock-version = "1.0"']
        for n, plant in enumerate(self.at["lock"]):
            lines.append(f"[[packages]]\nname = 'p{n}'\nindex = '''{plant.told}'''")
        return "\n".join(lines).encode()


# ---------------------------------------------------------------- export and search


def batch(number: int, planted: list[Plant], keep: Path, seed: int) -> dict[str, Any]:
    """Plant, look, mask, pack, search."""
    from tape_jupyter.bundle import archive, redaction
    from tape_jupyter.secrets import environment, leaks
    from tape_jupyter.bundle.archive.manifest import LockState, Manifest, describe_file

    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "work"
        session = Session(folder, planted, random.Random(seed * 1000 + number))
        content = session.make()
        secrets = environment.environment_secrets(folder, session.environ, Path(temporary))
        hits = list(leaks.hunt(content, secrets))
        told = [text for value in {hit.value for hit in hits} for text in opened(value.encode())]
        cores = Search(planted).found(b"\n\0\n".join(told))
        missed = [plant for plant in planted if not cores.intersection(plant.cores)]
        clean = redaction.redact(content, secrets)
        laid = Path(temporary) / "laid"
        for path, data in clean.content.items():
            target = laid / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(_bytes(data))
        files = {
            **clean.content,
            "page.html": _page(laid / "session" / "churn.tapes" / "main.tape.yaml"),
        }
        assert not leaks.scan({"page.html": files["page.html"]}, secrets)
        roles = {
            path: describe_file(path, _bytes(data), _role(path)) for path, data in files.items()
        }
        manifest = Manifest(
            made_by="plant_secrets", notebook="session/churn.ipynb", kernel={"name": "python3", "language": "python"},
            files=tuple(roles[path] for path in sorted(roles)), kit={}, cells=(), lock=LockState(False, "none", "no index was asked"),
        )  # fmt: skip
        goal = keep / f"batch-{number:03}.tape.zip"
        with goal.open("wb") as out:
            archive.pack(out, manifest, files)
        there = {
            id(plant)
            for plant, _ in searched(
                {path: _bytes(data) for path, data in content.items()}, planted
            )
        }
    leaked = searched(unzipped(goal), planted)
    return {
        "batch": number, "planted": len(planted), "refused": bool(hits), "found": len(planted) - len(missed),
        "seen": len(there), "missed": [[plant.kind, plant.encoding, plant.place] for plant in missed],
        "masked": len(clean.redactions), "left_out": len(clean.left_out), "leaked": len(leaked),
        "leaks": [[plant.kind, plant.encoding, plant.place, where] for plant, where in leaked], "bundle": goal.name,
    }  # fmt: skip


def _bytes(data: bytes | Path) -> bytes:
    return data if isinstance(data, bytes) else data.read_bytes()


def _page(tape: Path) -> bytes:
    from tape_jupyter.reports import page
    from tape_jupyter.cassette.cassette import Cassette

    return "".join(page.page_pieces(Cassette.open(tape), [])).encode()


def _role(path: str) -> str:
    ends = {".ipynb": "notebook", ".yaml": "cassette", ".html": "page", ".toml": "lock"}
    return "asset" if "/assets/" in path else ends.get(Path(path).suffix, "data")


def searched(files: dict[str, bytes], planted: list[Plant]) -> list[tuple[Plant, str]]:
    """The plants that stand in files, and where: in them, in what is packed in them, and in the calls' bodies."""
    search = Search(planted)
    with tempfile.TemporaryDirectory() as temporary:
        texts = [
            (name, text) for name, data in files.items() for text in (name.encode(), *opened(data))
        ]
        for name, data in files.items():
            if ".tapes/" in name:
                target = Path(temporary) / name
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(data)
        for tape in Path(temporary).rglob("*.tape.yaml"):
            texts += [(tape.name, text) for text in said(tape)]
    names = dict.fromkeys(name for name, _ in texts)
    found = {
        name: search.found(b"\n\0\n".join(text for other, text in texts if other == name))
        for name in names
    }
    return [
        (plant, name)
        for name, cores in found.items()
        for plant in planted
        if cores.intersection(plant.cores)
    ]


def unzipped(bundle: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(bundle) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def said(tape: Path) -> Iterator[bytes]:
    """Bodies of a cassette's calls with their encoding off, and what their streams said in the end."""
    from tape_jupyter.core.call import FunctionCall, Value
    from tape_jupyter.cassette.cassette import Cassette
    from tape_jupyter.encoding.http.content_encoding import decode_body as decoded

    for entry in Cassette.open(tape).calls:
        asked, reply = entry.request(), entry.reply()
        yield (
            repr(asked).encode()
            if isinstance(asked, FunctionCall)
            else asked.url.encode() + b"\n" + asked.body
        )
        if isinstance(reply, Value):
            yield repr(reply).encode()
            continue
        yield repr(reply.headers).encode()
        body = decoded(reply.body, reply.header("content-encoding"))
        yield from opened(body)
        yield from opened(streamed(body))


def streamed(body: bytes) -> bytes:
    """Every text of a stream's events, by its key, one after another."""
    told: dict[str, list[str]] = {}

    def walk(value: Any, key: str) -> None:
        if isinstance(value, dict):
            for name, inner in value.items():
                walk(inner, f"{key}.{name}" if name not in ("index",) else key)
        elif isinstance(value, list):
            for inner in value:
                walk(inner, key)
        elif isinstance(value, str):
            told.setdefault(key, []).append(value)

    for line in body.decode("utf-8", "replace").splitlines():
        try:
            event = json.loads(line.removeprefix("data: "))
        except ValueError:
            continue
        walk(event, str(event.get("index", "")) if isinstance(event, dict) else "")
    return "\n".join("".join(texts) for texts in told.values()).encode()


# ---------------------------------------------------------------- whole exports


def whole(number: int, keep: Path, seed: int) -> dict[str, Any]:
    """A notebook that a kernel recorded, through the command, with its proofs: refused, then masked."""
    rng = random.Random(seed * 7919 + number)
    planted = [
        Plant(kind, "plain", place, *made(kind, rng))
        for kind, place in (("github", "source"), ("slack bot", "data"), ("stripe", "body"))
    ]
    token, bot, key = (plant.text for plant in planted)
    with tempfile.TemporaryDirectory() as temporary:
        folder, home = Path(temporary) / "work", Path(temporary) / "home"
        home.mkdir()
        env = {
            name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL") if name in os.environ
        } | {"HOME": str(home)}
        (folder / "data").mkdir(parents=True)
        (folder / "data" / "notes.csv").write_text(f"who,note\nAda,{bot}\n")
        reply = json.dumps({"content": [{"type": "text", "text": f"use {key}"}]}).encode()
        with Provider() as provider:
            provider.script("/v1/messages", Scripted(200, JSON, [reply[:30], reply[30:]]))
            cells = (
                "%load_ext tape_jupyter\nimport urllib3",
                f'%%tape record\nTOKEN = "{token}"\nnote = open("data/notes.csv").read()\n'
                f'reply = urllib3.PoolManager().request("POST", "{provider.url}/v1/messages", json={{"token": TOKEN, "note": note}})\n'
                'print(TOKEN); reply.json()["content"][0]["text"]',
                "print(note, reply.json())",
            )
            path = _notebook_of(folder / "churn.ipynb", cells)
            done = _tape(["record", str(path)], env)
            assert done.returncode == 0, done.stdout + done.stderr
        goal = keep / f"whole-{number:03}.tape.zip"
        plain = _tape(["export", str(path), str(goal), "--no-index"], env)
        refused = plain.returncode == 1 and not goal.exists()
        told = any(plant.text in plain.stdout + plain.stderr for plant in planted)
        masked = _tape(["export", str(path), str(goal), "--no-index", "--redact"], env)
    line = {
        "whole": number,
        "planted": len(planted),
        "refused": refused,
        "told": told,
        "exported": masked.returncode == 0,
    }
    if masked.returncode:
        return {**line, "leaked": 0, "said": (masked.stdout + masked.stderr)[-2000:]}
    leaked = searched(unzipped(goal), planted)
    rows = [plant.row(bundle=goal.name) for plant in planted]
    return {
        **line,
        "leaked": len(leaked),
        "leaks": [[p.kind, p.place, where] for p, where in leaked],
        "bundle": goal.name,
        "rows": rows,
    }


def _notebook_of(path: Path, cells: tuple[str, ...]) -> Path:
    import nbformat

    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    book.metadata["kernelspec"] = {
        "name": "python3",
        "display_name": "Python 3",
        "language": "python",
    }
    nbformat.write(book, path)
    return path


def _tape(words: list[str], env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tape_jupyter", *words]
    return subprocess.run(
        command, env=env, capture_output=True, text=True, timeout=600, check=False
    )


def run(seed: int, count: int, keep: Path, wholes: int, tell: Any) -> dict[str, Any]:
    """Every batch and whole session; `tell` gets a line for each. The sum."""
    keep.mkdir(parents=True, exist_ok=True)
    started, rows, lines = time.process_time(), [], []
    all_of_them = list(plants(seed, count))
    for number, start in enumerate(range(0, count, BATCH)):
        planted = all_of_them[start : start + BATCH]
        line = batch(number, planted, keep, seed)
        rows += [plant.row(bundle=line["bundle"]) for plant in planted]
        (keep / "planted.json").write_text(json.dumps(rows, indent=1))
        lines.append(line)
        tell(line)
    for number in range(wholes):
        line = whole(number, keep, seed)
        rows += line.pop("rows", [])
        lines.append(line)
        tell(line)
    (keep / "planted.json").write_text(json.dumps(rows, indent=1))
    return {
        "seed": seed, "planted": sum(line["planted"] for line in lines), "batches": sum("batch" in line for line in lines),
        "seen": sum(line.get("seen", line["planted"]) for line in lines), "whole": wholes, "refused": sum(line["refused"] for line in lines), "missed": sum(len(line.get("missed", ())) for line in lines),
        "failed": sum(not line.get("exported", True) or line.get("told", False) for line in lines),
        "leaked": sum(line["leaked"] for line in lines), "seconds": round(time.process_time() - started, 1),
    }  # fmt: skip


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", help="a folder for the bundles and planted.json")
    parser.add_argument("--count", type=int, default=len(KINDS) * len(ENCODINGS) * len(PLACES))
    parser.add_argument(
        "--whole",
        type=int,
        default=2,
        help="sessions that go through `tape export`, with their proofs",
    )
    asked = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as temporary:
        keep = Path(asked.keep or temporary).resolve()
        summary = run(
            asked.seed,
            asked.count,
            keep,
            asked.whole,
            lambda line: print(json.dumps(line), flush=True),
        )
    print(json.dumps(summary))
    good = summary["refused"] == summary["batches"] + summary["whole"] and not summary["failed"]
    return (
        0
        if good
        and not summary["leaked"]
        and not summary["missed"]
        and summary["seen"] == summary["planted"]
        else 1
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
