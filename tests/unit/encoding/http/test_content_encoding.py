"""Content-encodings: opened byte by byte, capped, and closed again."""

import gzip
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tape_jupyter.encoding.http import content_encoding
from tape_jupyter.encoding.http.content_encoding import (
    Decoder,
    TooLarge,
    codings,
    decoder,
    decode_body,
    sealed,
)
from tape_jupyter.errors import CassetteError
from tests.harness.timing import ratio

ALL = [
    "gzip",
    "x-gzip",
    "deflate",
    "br",
    "zstd",
    "gzip, br",
    "deflate, gzip, zstd",
    "identity",
    "",
    " GZIP ",
]
BODY = b'{"text":"North lost the most"}' * 200


@pytest.mark.parametrize("name", ALL)
def test_what_is_sealed_opens_again(name):
    assert decode_body(sealed(BODY, name), name) == BODY


@pytest.mark.parametrize("name", ALL)
def test_a_body_opens_whatever_the_network_reads_were(name):
    wire = sealed(BODY, name)
    one_by_one = decoder(name)
    assert b"".join(one_by_one.feed(wire[i : i + 1]) for i in range(len(wire))) == BODY
    assert one_by_one.failure is None


@pytest.mark.parametrize("name", ["gzip", "deflate", "br", "zstd"])
def test_a_flushed_event_can_be_read_before_the_stream_ends(name):
    if name in ("gzip", "deflate"):
        packer = zlib.compressobj(wbits=31 if name == "gzip" else 15)
        wire = packer.compress(b"data: 1\n\n") + packer.flush(zlib.Z_SYNC_FLUSH)
    elif name == "br":
        import brotli

        packer = brotli.Compressor()
        wire = packer.process(b"data: 1\n\n") + packer.flush()
    else:
        import zstandard

        packer = zstandard.ZstdCompressor().compressobj()
        wire = packer.compress(b"data: 1\n\n") + packer.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)
    assert decoder(name).feed(wire) == b"data: 1\n\n"


def test_gzip_members_follow_each_other():
    assert decode_body(gzip.compress(b"one") + gzip.compress(b"two"), "gzip") == b"onetwo"


def test_deflate_without_its_header_opens_too():
    packer = zlib.compressobj(wbits=-15)
    wire = packer.compress(BODY) + packer.flush()
    assert decode_body(wire, "deflate") == BODY
    halves = decoder("deflate")
    assert halves.feed(wire[:1]) + halves.feed(wire[1:]) == BODY


def test_a_cut_body_opens_as_far_as_it_goes():
    wire = gzip.compress(bytes(range(256)) * 40, 1)
    part = decode_body(wire[: len(wire) - 12], "gzip")
    assert part
    assert (bytes(range(256)) * 40).startswith(part)


@pytest.mark.spread(2)
@pytest.mark.parametrize("name", ["gzip", "deflate", "br", "zstd", "gzip, gzip"])
def test_a_bomb_is_refused_before_it_is_expanded(name):
    size = content_encoding.CAP + 1
    wire = sealed(bytes(size), name)
    with pytest.raises(TooLarge):
        decode_body(wire, name)
    early = lambda: pytest.raises(TooLarge, decode_body, wire, name, size // 64)
    assert ratio(early, lambda: decode_body(wire, name, size), rounds=2) < 0.5


def test_a_body_as_large_as_the_cap_opens():
    assert len(decode_body(sealed(bytes(10_000), "gzip"), "gzip", cap=10_000)) == 10_000
    with pytest.raises(TooLarge):
        decode_body(sealed(bytes(10_001), "gzip"), "gzip", cap=10_000)


@pytest.mark.parametrize(
    "name", ["compress", "gzip, compress", "gzip;q=1", "gzip," * 3 + "nonsense"]
)
def test_an_unknown_coding_stays_closed(name):
    with pytest.raises(ValueError, match="unknown content-encoding"):
        decode_body(b"abc", name)
    with pytest.raises(CassetteError):
        sealed(b"abc", name)


def test_codings_are_listed_in_the_order_they_were_applied():
    assert codings("x-gzip, identity,BR") == ("gzip", "br")


def test_without_the_optional_packages_the_body_stays_closed_and_the_reason_names_the_package(
    monkeypatch,
):
    monkeypatch.setitem(__import__("sys").modules, "brotli", None)
    wire = decoder("br")
    assert wire.feed(b"abc") == b""
    assert "'brotli'" in str(wire.failure)
    with pytest.raises(CassetteError, match="'brotli'"):
        sealed(b"abc", "br")


@settings(deadline=None)
@given(
    st.binary(max_size=200),
    st.sampled_from(["gzip", "deflate", "br", "zstd", "gzip, br", "nonsense"]),
)
def test_a_decoder_never_raises(data, name):
    broken = Decoder(name)
    assert isinstance(broken.feed(data), bytes)
    if broken.failure is not None:
        assert broken.feed(data) == b""
