"""Places and spellings in which other people's files hold a secret: each is found, or was masked when it was recorded.

One that only this machine knows, and one that looks like a key of a known kind. What share.md does not name is not here.
"""

import base64
import bz2
import gzip
import io
import json
import lzma
import pickle
import plistlib
import random
import sqlite3
import struct
import tarfile
import urllib.parse
import zipfile
import zlib

import numpy as np
import pytest

from tape_jupyter.bundle import redaction
from tape_jupyter.core.call import FunctionCall, Reply, Request, Value
from tape_jupyter.encoding.values.registry import freeze, freeze_error
from tape_jupyter.errors import BundleError
from tape_jupyter.secrets import leaks
from tape_jupyter.secrets.registry import Secrets
from tests.harness.plants import LETTERS
from tests.harness.recorder import JSON, SSE, Recorder

RANDOM = random.Random(20261126)
KNOWN = "".join(RANDOM.choices(LETTERS, k=40))
LIKE_A_KEY = "AIzaSy" + "".join(RANDOM.choices(LETTERS + "-_", k=33))


def cell(source="x", *outputs, **more):
    return {
        "cell_type": "code",
        "source": source,
        "outputs": list(outputs),
        "metadata": {},
        "execution_count": None,
        **more,
    }


def nb(*cells, **meta):
    return {
        "session/n.ipynb": json.dumps(
            {"cells": list(cells), "metadata": meta, "nbformat": 4, "nbformat_minor": 5}
        ).encode()
    }


def data(d, name="d.bin"):
    return {f"session/data/{name}": d if isinstance(d, bytes) else d.encode()}


def stdout(t):
    return {"output_type": "stream", "name": "stdout", "text": t}


def disp(**d):
    return {
        "output_type": "display_data",
        "metadata": {},
        "data": {k.replace("__", "/").replace("_p_", "+"): v for k, v in d.items()},
    }


def zipped(**f):
    b = io.BytesIO()
    with zipfile.ZipFile(b, "w", zipfile.ZIP_DEFLATED) as z:
        for n, t in f.items():
            z.writestr(n, t)
    return b.getvalue()


def tarred(t):
    b = io.BytesIO()
    with tarfile.open(fileobj=b, mode="w:gz") as z:
        i = tarfile.TarInfo("a.txt")
        i.size = len(t)
        z.addfile(i, io.BytesIO(t))
    return b.getvalue()


def sqlite(s):
    base = sqlite3.connect(":memory:")
    base.execute("create table t(a)")
    base.execute("insert into t values(?)", (s,))
    base.commit()
    return base.serialize()


def png(kind, s):
    def chunk(t, d):
        return struct.pack(">I", len(d)) + t + d + struct.pack(">I", zlib.crc32(t + d))

    body = {
        "tEXt": b"k\0" + s.encode(),
        "zTXt": b"k\0\0" + zlib.compress(s.encode()),
        "iTXt": b"k\0\1\0\0\0" + zlib.compress(s.encode()),
        "iTXt0": b"k\0\0\0\0\0" + s.encode(),
    }[kind]
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0))
        + chunk(kind[:4].encode(), body)
        + chunk(b"IDAT", zlib.compress(b"\0\0"))
        + chunk(b"IEND", b"")
    )


def pdf(s):
    z = zlib.compress(f"BT ({s}) Tj ET".encode())
    return (
        b"%PDF-1.4\n1 0 obj <</Length "
        + str(len(z)).encode()
        + b"/Filter/FlateDecode>> stream\n"
        + z
        + b"\nendstream endobj\n%%EOF"
    )


def npz(s):
    b = io.BytesIO()
    np.savez_compressed(b, a=np.array([s]))
    return b.getvalue()


def npy(s):
    b = io.BytesIO()
    np.save(b, np.array([s]))
    return b.getvalue()


def b64(s):
    return base64.b64encode(s.encode() if isinstance(s, str) else s).decode()


def reply(body, headers=JSON, chunks=None):
    return Reply(
        200,
        headers,
        tuple(chunks) if chunks else (body if isinstance(body, bytes) else body.encode(),),
        (0.1,) * (len(chunks) if chunks else 1),
    )


def req(body=b"{}", url="https://api.example.com/v1/x", headers=JSON):
    return Request(
        "POST", url, headers, body if isinstance(body, bytes) else json.dumps(body).encode()
    )


def taped(call, answer):
    return call, answer


def cut(s, n):
    return [s[i : i + n] for i in range(0, len(s), n)]


OK = reply('{"a":1}')
# fmt: off
PLACES = {
 # encodings in a text file / output
 "json escape": lambda s: data(json.dumps({"k": "".join(f"\\u{ord(c):04x}" for c in s)}).replace("\\\\u","\\u"), "a.json"),
 "json in json in json": lambda s: data(json.dumps(json.dumps(json.dumps({"token": s}))), "a.json"),
 "json slashes": lambda s: data('{"u":"https:\\/\\/x\\/%s"}' % s, "a.json"),
 "percent all": lambda s: data("q=" + "".join(f"%{ord(c):02X}" for c in s), "a.txt"),
 "percent lower": lambda s: data("q=" + "".join(f"%{ord(c):02x}" for c in s), "a.txt"),
 "percent twice": lambda s: data("q=" + urllib.parse.quote(urllib.parse.quote(s, safe=""), safe=""), "a.txt"),
 "html decimal": lambda s: data("<p>" + "".join(f"&#{ord(c)};" for c in s) + "</p>", "a.html"),
 "html hex": lambda s: data("<p>" + "".join(f"&#x{ord(c):x};" for c in s) + "</p>", "a.html"),
 "html padded": lambda s: data("<p>" + "".join(f"&#{ord(c):07d};" for c in s) + "</p>", "a.html"),
 "ansi each": lambda s: nb(cell("x", stdout("".join(f"\x1b[3{i%8}m{c}" for i,c in enumerate(s)) + "\x1b[0m"))),
 "ansi 256": lambda s: nb(cell("x", stdout(f"\x1b[38;5;200m{s[:7]}\x1b[0m\x1b[1;38;2;1;2;3m{s[7:]}\x1b[0m"))),
 "ansi in traceback": lambda s: nb(cell("x", {"output_type":"error","ename":"E","evalue":"e","traceback":[f"\x1b[0;31mE\x1b[0m: {s[:5]}\x1b[0m\x1b[1m{s[5:]}\x1b[0m"]})),
 "html spans": lambda s: nb(cell("x", disp(text__html="<pre>" + "".join(f'<span style="color:red">{c}</span>' for c in cut(s,3)) + "</pre>"))),
 "base64": lambda s: data(b64(s)), "base64 in data url": lambda s: nb(cell("x", disp(text__html=f'<a href="data:text/plain;base64,{b64("x="+s+" y")}">d</a>'))),
 "base64 offset 1": lambda s: data(b64("a"+s)), "base64 offset 2": lambda s: data(b64("ab"+s+"c")),
 "base64 url": lambda s: data(base64.urlsafe_b64encode(f"??>>{s}".encode()).decode().rstrip("=")),
 "base64 MIME lines": lambda s: data(base64.encodebytes((f"hello world {s} and more text "*3).encode())),
 "base64 x4": lambda s: data(b64(b64(b64(b64(s))))), "base64 of json": lambda s: data(b64(json.dumps({"key": s}))),
 "base64 of gzip": lambda s: data(base64.b64encode(gzip.compress(s.encode())).decode()),
 "basic header": lambda s: data(f"Authorization: Basic {b64('user:'+s)}"),
 "base32": lambda s: data(base64.b32encode(s.encode())), "base32 lower": lambda s: data(base64.b32encode(s.encode()).decode().lower().rstrip("=")),
 "hex": lambda s: data(s.encode().hex()), "HEX": lambda s: data(s.encode().hex().upper()), "hex blanks": lambda s: data(s.encode().hex(" ")), "hex colons": lambda s: data(s.encode().hex(":")),
 "ascii85 adobe": lambda s: data(base64.a85encode(s.encode(), adobe=True)),
 "utf-16 le": lambda s: data(s.encode("utf-16-le")), "utf-16 bom": lambda s: data(f"a;{s};b".encode("utf-16")), "utf-16 be": lambda s: data(s.encode("utf-16-be")),
 "gzip": lambda s: data(gzip.compress(s.encode()), "a.gz"), "gzip x3": lambda s: data(gzip.compress(gzip.compress(gzip.compress(s.encode()))), "a.gz"),
 "zip": lambda s: data(zipped(a=s), "a.zip"), "zip in zip": lambda s: data(zipped(b=zipped(a=s)), "a.zip"), "xlsx": lambda s: data(zipped(**{"xl/sharedStrings.xml": f"<si><t>{s}</t></si>"}), "a.xlsx"),
 "docx": lambda s: data(zipped(**{"word/document.xml": f"<w:t>{s}</w:t>"}), "a.docx"), "npz": lambda s: data(npz(s), "a.npz"), "tar.gz": lambda s: data(tarred(s.encode()), "a.tgz"),
 "zip name": lambda s: data(zipped(**{f"{s}.txt": "x"}), "a.zip"),
 "zlib": lambda s: data(zlib.compress(s.encode()), "a.z"), "zlib level 1": lambda s: data(zlib.compress(s.encode(),1)), "zlib level 9": lambda s: data(zlib.compress(s.encode(),9)), "joblib": lambda s: data(zlib.compress(pickle.dumps({"k": s}),3), "a.joblib"),
 "bz2": lambda s: data(bz2.compress(s.encode()), "a.bz2"), "xz": lambda s: data(lzma.compress(s.encode()), "a.xz"),
 **{f"png {k}": (lambda s, k=k: data(png(k, s), "a.png")) for k in ("tEXt","zTXt","iTXt","iTXt0")},
 "png output": lambda s: nb(cell("x", disp(image__png=base64.b64encode(png("zTXt", s)).decode()))),
 "pdf": lambda s: data(pdf(s), "a.pdf"), "pdf output": lambda s: nb(cell("x", disp(application__pdf=base64.b64encode(pdf(s)).decode()))),
 # places, plain
 "pickle": lambda s: data(pickle.dumps({"k": s}), "a.pkl"), "pickle 0": lambda s: data(pickle.dumps([s], 0), "a.pkl"), "sqlite": lambda s: data(sqlite(s), "a.db"), "npy": lambda s: data(npy(s), "a.npy"),
 "csv": lambda s: data(f'a,b\n1,"{s}"\n', "a.csv"), "toml": lambda s: data(f"k = '{s}'\n", "a.toml"), "ini": lambda s: data(f"[a]\nk = {s}\n", "a.ini"), "yaml": lambda s: data(f"k: >-\n  {s}\n", "a.yaml"),
 "xml cdata": lambda s: data(f"<a><![CDATA[{s}]]></a>", "a.xml"), "plist": lambda s: data(plistlib.dumps({"k": s}), "a.plist"), "binary plist": lambda s: data(plistlib.dumps({"k": s}, fmt=plistlib.FMT_BINARY), "a.plist"),
 "file name": lambda s: data("x", f"{s}.txt"), "crlf": lambda s: data(f"a\r\nk={s}\r\n", "a.txt"), "after NUL": lambda s: data(b"\0\1\2"+s.encode()+b"\0"), "latin-1": lambda s: data("é".encode("latin-1")+s.encode()+b"\xff"),
 "nb metadata": lambda s: nb(cell(), deep={"a": [{"b": s}]}), "cell metadata": lambda s: nb(cell(metadata={"tags": [s]})), "markdown": lambda s: nb({"cell_type":"markdown","source":f"# a\n{s}","metadata":{}}),
 "attachment": lambda s: nb({"cell_type":"markdown","source":"a","metadata":{},"attachments":{"a.txt":{"text/plain":b64(s)}}}), "raw cell": lambda s: nb({"cell_type":"raw","source":s,"metadata":{}}),
 "source in lines": lambda s: nb(cell([f"a = '{s}'\n", "b"])), "stderr": lambda s: nb(cell("x", {"output_type":"stream","name":"stderr","text":[s[:9], s[9:]]})),
 "stdout cut": lambda s: nb(cell("x", stdout(s[:11]), stdout(s[11:]))),
 "output metadata": lambda s: nb(cell("x", {"output_type":"display_data","metadata":{"a":s},"data":{}})), "svg": lambda s: nb(cell("x", disp(image__svg_p_xml=f"<svg><text>{s}</text></svg>"))),
 "widget state": lambda s: nb(cell(), widgets={"application/vnd.jupyter.widget-state+json":{"state":{"1":{"state":{"value":s}}}}}), "json output": lambda s: nb(cell("x", disp(application__json={"a":[{"b":s}]}))), "json key": lambda s: nb(cell("x", disp(application__json={s: 1}))),
 "vega": lambda s: nb(cell("x", {"output_type":"display_data","metadata":{},"data":{"application/vnd.vegalite.v5+json":{"data":{"values":[{"k":s}]}}}})), "cell id": lambda s: nb(cell(id=s[:64])) if len(s) <= 64 else nb(cell(s)),
 "repr": lambda s: nb(cell("x", {"output_type":"execute_result","execution_count":1,"metadata":{},"data":{"text/plain":repr({"k":[s]})}})), "latex": lambda s: nb(cell("x", disp(text__latex=f"$${s}$$"))),
 # recordings
 "request body": lambda s: taped(req({"a": s}), OK), "request key": lambda s: taped(req({s: 1}), OK), "request form": lambda s: taped(req(urllib.parse.urlencode({"k": s, "b": "1"}).encode(), headers=(("content-type","application/x-www-form-urlencoded"),)), OK),
 "multipart": lambda s: taped(req(f'--b\r\ncontent-disposition: form-data; name="k"\r\n\r\n{s}\r\n--b--\r\n'.encode(), headers=(("content-type","multipart/form-data; boundary=b"),)), OK),
 "url query": lambda s: taped(req(url=f"https://h/x?k={urllib.parse.quote(s)}"), OK), "url path": lambda s: taped(req(url=f"https://h/{s}/x"), OK), "url fragment": lambda s: taped(req(url=f"https://h/x#a={s}"), OK), "userinfo": lambda s: taped(req(url=f"https://me:{s}@h/x"), OK),
 "request gzip": lambda s: taped(req(gzip.compress(json.dumps({"a": s}).encode()), headers=(*JSON, ("content-encoding","gzip"))), OK),
 "reply body": lambda s: taped(req(), reply(json.dumps({"a": s}))), "reply cut": lambda s: taped(req(), reply(None, chunks=[c.encode() for c in cut(json.dumps({"a": s}), 5)])),
 "reply gzip": lambda s: taped(req(), reply(gzip.compress(json.dumps({"a": s}).encode()), headers=(*JSON, ("content-encoding","gzip")))), "reply deflate": lambda s: taped(req(), reply(zlib.compress(json.dumps({"a": s}).encode()), headers=(*JSON, ("content-encoding","deflate")))),
 "reply header": lambda s: taped(req(), reply("{}", headers=(*JSON, ("x-echo", s)))), "set-cookie": lambda s: taped(req(), reply("{}", headers=(*JSON, ("set-cookie", f"sid={s}; path=/")))), "location": lambda s: taped(req(), reply("{}", headers=(*JSON, ("location", f"https://h/?t={s}")))),
 "sse deltas": lambda s: taped(req(), reply(None, headers=SSE, chunks=[f'data: {json.dumps({"choices":[{"delta":{"content":p}}]})}\n\n'.encode() for p in cut("tell "+s+" done", 4)])),
 "sse args": lambda s: taped(req(), reply(None, headers=SSE, chunks=[f'data: {json.dumps({"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":p}})}\n\n'.encode() for p in cut(json.dumps({"k": s}), 6)])),
 "sse one event cut": lambda s: taped(req(), reply(None, headers=SSE, chunks=cut(f'data: {json.dumps({"t": s})}\n\n'.encode(), 7))), "ndjson": lambda s: taped(req(), reply("".join(json.dumps({"m": p})+"\n" for p in [s, "b"]), headers=(("content-type","application/x-ndjson"),))),
 "reply binary": lambda s: taped(req(), reply(b"\x00\xff"+s.encode()+bytes(range(256)), headers=(("content-type","application/octet-stream"),))), "reply base64": lambda s: taped(req(), reply(json.dumps({"b64_json": b64(s)}))),
 "tool argument": lambda s: taped(FunctionCall("f", {"k": [{"a": s}]}), Value(freeze(1))), "tool result": lambda s: taped(FunctionCall("f", {}), Value(freeze({"a": (s, 1)}))), "tool bytes": lambda s: taped(FunctionCall("f", {}), Value(freeze(b"\xff"+s.encode()))), "tool key": lambda s: taped(FunctionCall("f", {}), Value(freeze({s: 1}))), "tool error": lambda s: taped(FunctionCall("f", {}), Value(error=freeze_error(ValueError(s)))),
 "tool set": lambda s: taped(FunctionCall("f", {}), Value(freeze({s}))), "tool array": lambda s: taped(FunctionCall("f", {}), Value(freeze(np.array([s])))), "tool gzip": lambda s: taped(FunctionCall("f", {}), Value(freeze(gzip.compress(s.encode())))),
 "env file": lambda s: data(f"export K='{s}' # x\n", ".envrc"), "lock index": lambda s: {"environment/pylock.toml": f"index = 'https://u:{s}@h/simple'\n".encode()}, "git config": lambda s: data(f"[remote \"o\"]\n\turl = https://x:{s}@github.com/a/b\n", "config"),
 "dockerfile": lambda s: data(f"ENV A={s}\n", "Dockerfile"), "shell": lambda s: data(f'curl -H "Authorization: Bearer {s}" x', "a.sh"), "python bytes": lambda s: data(f"k = b'{s}'", "a.py"), "netrc": lambda s: data(f"machine h login u password {s}\n", "n"),
 "jsonl": lambda s: data(json.dumps({"a":1})+"\n"+json.dumps({"a":s})+"\n", "a.jsonl"), "nested ipynb": lambda s: data(json.dumps({"cells":[cell("x", stdout(s))]}), "b.ipynb"), "nested ipynb cut": lambda s: data(json.dumps({"cells":[cell(["a"], {"output_type":"stream","text":[s]})]}), "b.ipynb"),
 "reply zip": lambda s: taped(req(), reply(zipped(a=s), headers=(("content-type","application/zip"),))), "reply png": lambda s: taped(req(), reply(png("zTXt", s), headers=(("content-type","image/png"),))), "reply pdf": lambda s: taped(req(), reply(pdf(s), headers=(("content-type","application/pdf"),))),
 "image in request": lambda s: taped(req({"image_url": "data:image/png;base64," + base64.b64encode(png("zTXt", s)).decode()}), OK), "pdf in request": lambda s: taped(req({"data": base64.b64encode(pdf(s)).decode()}), OK), "tool png": lambda s: taped(FunctionCall("f", {}), Value(freeze(png("zTXt", s)))), "tool zip": lambda s: taped(FunctionCall("f", {}), Value(freeze(zipped(a=s)))),
 "xlsx link": lambda s: nb(cell("x", disp(text__html=f'<a href="data:application/x;base64,{base64.b64encode(zipped(a=s)).decode()}">x</a>'))), "png in zip": lambda s: data(zipped(**{"a.png": png("zTXt", s)}), "a.zip"), "svg with png": lambda s: data(f'<svg><image href="data:image/png;base64,{base64.b64encode(png("iTXt", s)).decode()}"/></svg>', "a.svg"), "MIME png": lambda s: nb(cell("x", disp(image__png=base64.encodebytes(png("zTXt", s)+bytes(200)).decode()))),
 "bz2 in base64": lambda s: data(base64.b64encode(bz2.compress(s.encode())).decode()), "stdout thrice": lambda s: nb(cell("x", *(stdout(c) for c in cut(s, 15)))),
}
# fmt: on


def files(name, secret, folder):
    """The files of a bundle in which it stands there."""
    made = PLACES[name](secret)
    if isinstance(made, dict):
        return made
    recorder = Recorder(folder / "main.tape.yaml", secrets=Secrets())
    recorder.add(*made)
    recorder.end()
    found = (path for path in folder.rglob("*") if path.is_file())
    return {f"session/n.tapes/{path.relative_to(folder)}": path.read_bytes() for path in found}


@pytest.mark.parametrize("secret", [KNOWN, LIKE_A_KEY], ids=["known", "like a key"])
@pytest.mark.parametrize("name", PLACES)
def test_it_is_found_there_and_masked_or_refused(name, secret, tmp_path):
    known = Secrets()
    known.learn("SERVICE_KEY", KNOWN)
    content = files(name, secret, tmp_path)
    if name in MASKED_AT_ONCE:
        assert secret.encode() not in b"".join(content.values())
        return
    assert leaks.scan(content, known)
    try:
        clean = redaction.redact(content, known)
    except BundleError as refused:
        assert secret not in str(refused)
    else:
        assert not leaks.scan(clean.content, known)
        assert not any(secret in path for path in clean.content)


MASKED_AT_ONCE = ("userinfo", "set-cookie")


@pytest.mark.parametrize("name", sorted({*PLACES} - {"basic header"}))
def test_what_is_no_secret_is_none_there(name, tmp_path):
    """(That a Basic password is none cannot be seen.)"""
    assert not leaks.scan(files(name, "just harmless words of a note", tmp_path), Secrets())
