"""Parts that a joined machine keeps: by their SHA-256, whole, and no more than it may."""

import hashlib
import os
from pathlib import Path

import pytest

from workers.errors import RewardError
from workers.launch.part_cache import PartCache


def digest_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def never() -> bytes:
    raise AssertionError("it is kept already")


def test_a_part_is_fetched_once_and_again_when_damaged(tmp_path: Path) -> None:
    cache = PartCache(tmp_path / "parts", 100)
    digest = digest_of(b"weights")
    assert cache.read(digest, lambda: b"weights") == b"weights"
    assert cache.read(digest, never) == b"weights"
    (tmp_path / "parts" / digest).write_bytes(b"weight?")
    assert cache.read(digest, lambda: b"weights") == b"weights"
    assert cache.read(digest, never) == b"weights"


def test_what_is_not_what_it_should_be_is_returned_and_not_kept(tmp_path: Path) -> None:
    """Who reads it compares the digest, and says what was damaged."""
    cache = PartCache(tmp_path, 100)
    assert cache.read(digest_of(b"weights"), lambda: b"others") == b"others"
    assert list(tmp_path.iterdir()) == []


def test_those_used_longest_ago_make_room(tmp_path: Path) -> None:
    cache = PartCache(tmp_path, 20)
    parts = [bytes([number]) * 8 for number in range(3)]
    for age, content in zip((20, 30), parts, strict=False):
        cache.read(digest_of(content), lambda content=content: content)  # type: ignore[misc]
        os.utime(tmp_path / digest_of(content), (age, age))
    cache.read(digest_of(parts[2]), lambda: parts[2])
    assert {path.name for path in tmp_path.iterdir()} == {digest_of(parts[1]), digest_of(parts[2])}
    cache.read(digest_of(b"x" * 21), lambda: b"x" * 21)
    assert {path.name for path in tmp_path.iterdir()} == {digest_of(parts[1]), digest_of(parts[2])}


@pytest.mark.parametrize("name", ["", "../secret", "/etc/passwd", "a/" * 32, "." * 64])
def test_a_name_that_is_no_digest_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(RewardError, match=r"is no SHA-256\."):
        PartCache(tmp_path, 100).read(name, never)
