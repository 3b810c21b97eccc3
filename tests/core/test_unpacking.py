"""What one input may become is counted while it is read: bytes, times its size, time, and whether anyone waits."""

import gzip
import io
import time
from contextvars import copy_context
from threading import Event
from typing import Any

import pytest
import zstandard

from apps.core.http.client_disconnect import client_left, watch_client
from apps.core.storage import unpacking
from apps.core.storage.unpacking import ClientGone, InputBounds, TooMuch, bounded, unpacked

MB = 2**20


def _zstd(blocks: int) -> bytes:
    compressor = zstandard.ZstdCompressor(level=3).compressobj()
    return b"".join([*(compressor.compress(b"\n" * MB) for _ in range(blocks)), compressor.flush()])


def _gzip(blocks: int) -> bytes:
    out = io.BytesIO()
    with gzip.GzipFile(fileobj=out, mode="wb", compresslevel=1) as file:
        for _ in range(blocks):
            file.write(b"\0" * MB)
    return out.getvalue()


def _drain(stream: Any) -> int:
    return sum(map(len, iter(lambda: stream.read(MB), b"")))


@pytest.mark.parametrize("pack", [_zstd, _gzip])
def test_up_to_the_bounds_all_of_it_is_read(pack: Any) -> None:
    bounds = InputBounds(most_bytes=8 * MB)
    assert _drain(unpacked(io.BytesIO(pack(8)), bounds)) == 8 * MB
    assert bounds.unpacked == 8 * MB


@pytest.mark.parametrize("pack", [_zstd, _gzip])
def test_more_bytes_than_the_setting_end_it(pack: Any) -> None:
    bounds = InputBounds(most_bytes=8 * MB)
    with pytest.raises(TooMuch, match=r"more than 8 MB.*TOUCHSTONE_MAX_UNPACKED_MB") as caught:
        _drain(unpacked(io.BytesIO(pack(40)), bounds))
    assert caught.value.status == 413
    assert bounds.unpacked <= 10 * MB


def test_so_many_times_its_size_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unpacking, "ALWAYS", 4 * MB)
    bounds = InputBounds()
    with pytest.raises(TooMuch, match="more than 300 times"):
        _drain(unpacked(io.BytesIO(_zstd(60)), bounds))
    assert bounds.unpacked <= 6 * MB


def test_what_is_not_packed_passes() -> None:
    bounds = InputBounds(most_bytes=1)
    assert unpacked(io.BytesIO(b"[1]"), bounds).read() == b"[1]"
    assert unpacked(io.BytesIO(b""), InputBounds()).read() == b""


def test_a_frame_that_asks_for_too_much_memory_is_refused() -> None:
    parameters = zstandard.ZstdCompressionParameters(window_log=30, enable_ldm=False)
    compressor = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    packed = compressor.compress(b"x" * 100) + compressor.flush()
    with pytest.raises(zstandard.ZstdError):
        unpacked(io.BytesIO(packed), InputBounds()).read()


def test_it_ends_where_the_client_left() -> None:
    gone = Event()
    stream = unpacked(io.BytesIO(_gzip(20)), InputBounds(gone=gone.is_set))
    assert stream.read(MB)
    gone.set()
    with pytest.raises(ClientGone):
        _drain(stream)


def test_empty_members_that_become_nothing_end_with_the_client_too() -> None:
    """They never give a byte, so only what is read of them can be counted."""
    gone = Event()
    gone.set()
    with pytest.raises(ClientGone):
        unpacked(io.BytesIO(gzip.compress(b"") * 20_000), InputBounds(gone=gone.is_set)).read()


def test_it_ends_after_its_time() -> None:
    bounds = InputBounds(seconds=1)
    bounds._began = time.monotonic() - 2
    with pytest.raises(TooMuch, match="TOUCHSTONE_MAX_READ_SECONDS"):
        unpacked(io.BytesIO(_zstd(1)), bounds).read()


def test_an_unpacker_of_a_file_is_bounded() -> None:
    packed = _gzip(20)
    with gzip.open(io.BytesIO(packed)) as file, pytest.raises(TooMuch):
        _drain(bounded(file, len(packed), InputBounds(most_bytes=MB)))


def test_outside_of_a_request_nobody_leaves() -> None:
    assert not client_left()()

    def in_a_request() -> bool:
        watch_client().set()
        return client_left()()

    assert copy_context().run(in_a_request)
    assert not client_left()()
