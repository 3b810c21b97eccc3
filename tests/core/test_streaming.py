"""Streamed answers under ASGI: read as they are taken, not before."""

import asyncio
from collections.abc import Iterator

import pytest

from apps.core.http.streaming import StreamedLines

LINE = "x" * 999 + "\n"


def test_lines_are_read_in_blocks_as_they_are_taken() -> None:
    read: list[int] = []

    def lines() -> Iterator[str]:
        for number in range(500):
            read.append(number)
            yield LINE

    async def take() -> tuple[int, int]:
        parts = aiter(StreamedLines(lines()))
        first = await anext(parts)
        read_first = len(read)
        return read_first, len(first) + sum([len(part) async for part in parts])

    read_first, size = asyncio.run(take())
    assert read_first == 66 and size == 500 * 1000  # a block is complete with 2**16 bytes


def test_an_error_ends_the_answer() -> None:
    def lines() -> Iterator[str]:
        yield LINE * 100
        raise ValueError("broken")

    async def take() -> list[bytes]:
        return [part async for part in StreamedLines(lines())]

    with pytest.raises(ValueError, match="broken"):
        asyncio.run(take())


def test_a_synchronous_server_sends_the_lines() -> None:
    answer = StreamedLines(iter(["a\n", "b\n"]))
    assert b"".join(answer) == b"a\nb\n" and answer["Content-Type"] == "application/x-ndjson"
