"""Answers that are written while they are sent, under ASGI too.

Django reads all of a synchronous iterator before it sends the first byte under ASGI, and warns of it. Here it is read
in blocks, in the thread of the request, as the client takes them.
"""

from collections.abc import AsyncIterator, Iterator
from typing import Any, cast

from asgiref.sync import sync_to_async
from django.http import StreamingHttpResponse

_BLOCK = 2**16


class StreamedLines(StreamingHttpResponse):
    """Of an iterator of lines, or of parts of a file.

    An error while they are read ends the answer unfinished, which clients notice.
    """

    def __init__(
        self,
        lines: Iterator[str] | Iterator[bytes],
        content_type: str = "application/x-ndjson",
        **options: Any,
    ) -> None:
        super().__init__(lines, content_type=content_type, **options)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        parts = iter(cast(Iterator[bytes], self.streaming_content))
        while block := await sync_to_async(_next_block)(parts):
            yield block


def _next_block(parts: Iterator[bytes]) -> bytes:
    """The next parts, of _BLOCK bytes or more; nothing after the last."""
    taken, size = [], 0
    for part in parts:
        taken.append(part)
        size += len(part)
        if size >= _BLOCK:
            break
    return b"".join(taken)
