"""Files that grow while a run is followed: its events and its log.

A stream is in chunks GENERATION-START-END, offsets in bytes. A generation is one start of the job; it begins with all
that the file has then. Chunks of one generation overlap where small ones were put together.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from workers.launch.run_files import RunFileMissing, RunFiles

EVENTS, LOG = "events", "log"
_TOGETHER = 64  # chunks, after which they are put together
_MOST_BYTES = 4 * 2**20  # of a chunk


@dataclass(frozen=True, order=True, slots=True)
class StreamChunk:
    generation: int
    start: int
    end: int

    @classmethod
    def parse(cls, name: str) -> "StreamChunk":
        generation, start, end = name.split("-")
        return cls(int(generation), int(start), int(end))

    @property
    def name(self) -> str:
        return f"{self.generation:06d}-{self.start:012d}-{self.end:012d}"


def stream_folder(stream: str) -> str:
    return f"outputs/{stream}"


class StreamWriter:
    """Sends what was added to a file."""

    def __init__(self, files: RunFiles, stream: str, path: Path, generation: int) -> None:
        self._files, self._folder, self._path = files, stream_folder(stream), path
        self._generation, self._end = generation, 0
        self._small: list[StreamChunk] = []

    def send(self) -> None:
        while content := self._added():
            chunk = StreamChunk(self._generation, self._end, self._end + len(content))
            self._files.write(f"{self._folder}/{chunk.name}", content)
            self._small.append(chunk)
            self._end = chunk.end
        if len(self._small) >= _TOGETHER:
            self._put_together()

    def _added(self) -> bytes:
        if not self._path.is_file():
            return b""
        with self._path.open("rb") as source:
            source.seek(self._end)
            return source.read(_MOST_BYTES)

    def _put_together(self) -> None:
        """In runs of at most _MOST_BYTES, so that a file of any size has few chunks."""
        begin = self._small[0].start
        with self._path.open("rb") as source:
            source.seek(begin)
            content = source.read(min(_MOST_BYTES, self._end - begin))
        whole = StreamChunk(self._generation, begin, begin + len(content))
        self._files.write(f"{self._folder}/{whole.name}", content)
        covered = [chunk for chunk in self._small if chunk.end <= whole.end and chunk != whole]
        for chunk in covered:
            self._files.delete(f"{self._folder}/{chunk.name}")
        rest = [chunk for chunk in self._small if chunk.end > whole.end]
        # A full one is done; one that may still grow is put together again with what follows.
        self._small = rest if len(content) == _MOST_BYTES else [whole, *rest]


class StreamReader:
    """Follows a stream. generation: that of what was read last."""

    def __init__(self, files: RunFiles, stream: str, *, only_newest: bool) -> None:
        """only_newest: a new generation replaces what was read before; else it is added to it."""
        self._files, self._folder, self._only_newest = files, stream_folder(stream), only_newest
        self.generation, self._offset = 0, 0

    def read(self) -> Iterator[bytes]:
        """What was added since the last call; of a new generation all there is (`generation` tells, with each part).

        A call that fails in its midst goes on with what it has not yielded.
        """
        chunks = sorted(StreamChunk.parse(name) for name in self._files.names(self._folder))
        if self._only_newest and chunks and chunks[-1].generation > self.generation:
            chunks = [chunk for chunk in chunks if chunk.generation == chunks[-1].generation]
        for chunk in chunks:
            if chunk.generation < self.generation:
                continue
            if chunk.generation > self.generation:
                self.generation, self._offset = chunk.generation, 0
            if chunk.start <= self._offset < chunk.end:
                try:
                    found = self._files.read(f"{self._folder}/{chunk.name}")
                except RunFileMissing:  # it was put together with others: the next call reads that one
                    return
                start, self._offset = self._offset, chunk.end
                yield found[start - chunk.start :]
