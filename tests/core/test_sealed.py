"""An encrypted file is read whole and as it was written, or not at all."""

import io
import tracemalloc

import pytest

from apps.core.errors import DomainError
from apps.core.storage.passphrase_encryption import (
    CHUNK,
    MAGIC,
    Damaged,
    SealedReader,
    SealedWriter,
    WrongPassphrase,
    is_sealed,
)

PASSPHRASE = "correct horse battery"
HEAD, TAG = len(MAGIC) + 1 + 16 + 7 + 32, 16


def sealed(contents: bytes, passphrase: str = PASSPHRASE) -> bytes:
    file = io.BytesIO()
    writer = SealedWriter(file, passphrase, cost=15)
    for start in range(0, len(contents), 300_000):
        writer.write(contents[start : start + 300_000])
    writer.close()
    return file.getvalue()


def opened(file: bytes, passphrase: str = PASSPHRASE) -> bytes:
    return SealedReader(io.BytesIO(file), passphrase).read()


def contents_of(size: int) -> bytes:
    return (bytes(range(251)) * (size // 251 + 1))[:size]


@pytest.fixture(scope="module")
def file() -> bytes:
    """Of three chunks, the last half full."""
    return sealed(contents_of(2 * CHUNK + CHUNK // 2))


@pytest.mark.parametrize("size", [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK])
def test_what_was_written_is_read(size: int) -> None:
    assert opened(sealed(contents_of(size))) == contents_of(size)


def test_nothing_of_it_is_in_the_clear_and_no_two_files_are_alike() -> None:
    one, two = sealed(b"the secret of all" * 1000), sealed(b"the secret of all" * 1000)
    assert b"secret" not in one and one[HEAD:] != two[HEAD:] and is_sealed(io.BytesIO(one))


def test_another_passphrase_is_told_from_damage(file: bytes) -> None:
    with pytest.raises(WrongPassphrase):
        opened(file, PASSPHRASE + ".")


@pytest.mark.parametrize("place", [len(MAGIC), len(MAGIC) + 1, len(MAGIC) + 20, HEAD - 1])
def test_a_changed_head_is_refused(file: bytes, place: int) -> None:
    with pytest.raises((WrongPassphrase, Damaged)):
        opened(file[:place] + bytes([file[place] ^ 1]) + file[place + 1 :])


def test_a_head_cannot_ask_for_gigabytes(file: bytes) -> None:
    with pytest.raises(Damaged):
        opened(MAGIC + bytes([30]) + file[len(MAGIC) + 1 :])


@pytest.mark.parametrize("share", [0.0, 0.2, 0.5, 0.9])
def test_a_flipped_bit_is_refused(file: bytes, share: float) -> None:
    place = HEAD + int((len(file) - HEAD - 1) * share)
    with pytest.raises(Damaged):
        opened(file[:place] + bytes([file[place] ^ 4]) + file[place + 1 :])


@pytest.mark.parametrize(
    "size", [0, 10, HEAD - 1, HEAD, HEAD + 5, HEAD + CHUNK + TAG, HEAD + 2 * (CHUNK + TAG), -1, -TAG]
)
def test_a_cut_file_is_refused_wherever_it_is_cut(file: bytes, size: int) -> None:
    """Between two chunks, too: each of them is whole, and the last of them is not the last."""
    with pytest.raises(Damaged):
        opened(file[:size])


def test_chunks_cannot_be_moved_left_out_repeated_or_added(file: bytes) -> None:
    size = CHUNK + TAG
    head, one, two, last = (
        file[:HEAD],
        file[HEAD : HEAD + size],
        file[HEAD + size : HEAD + 2 * size],
        file[HEAD + 2 * size :],
    )
    other = sealed(contents_of(2 * CHUNK + CHUNK // 2))[HEAD : HEAD + size]  # by the same passphrase
    for chunks in ([two, one, last], [one, last], [two, last], [one, one, two, last], [one, two, last, last],
                   [one, two, last, b"x"], [other, two, last], [last]):  # fmt: skip
        with pytest.raises(Damaged):
            opened(head + b"".join(chunks))


def test_memory_does_not_grow_with_the_file() -> None:
    class Nowhere(io.RawIOBase):
        def write(self, data: object) -> int:
            return len(data)  # type: ignore[arg-type]

    writer = SealedWriter(Nowhere(), PASSPHRASE, cost=15)  # type: ignore[arg-type]
    part = bytes(CHUNK)
    tracemalloc.start()
    for _ in range(100):
        writer.write(part)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * CHUNK


def test_a_short_passphrase_is_refused() -> None:
    with pytest.raises(DomainError, match="at least 12 characters"):
        SealedWriter(io.BytesIO(), "hunter2")
