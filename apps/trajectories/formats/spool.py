"""A temporary file of what belongs together and comes apart: the events of runs, the spans of traces.

Each entry says where the one before it of its chain lies, so that nothing is held in memory but where a chain ends.
"""

import struct
from tempfile import SpooledTemporaryFile

_IN_MEMORY = 16 * 2**20
_HEADER = struct.Struct("<qQQ")  # of an entry: where the one before it lies, the lengths of its two parts
START = -1  # the end of a chain that has no entry yet


class ChainedSpool:
    """Entries of two texts, the second of which may be missing: bytes as they were sent, and what is read instead."""

    def __init__(self, in_memory: int = _IN_MEMORY) -> None:
        self._file = SpooledTemporaryFile(in_memory)  # noqa: SIM115 closed by __del__
        self._end = 0

    def add(self, end: int, sent: bytes, read_instead: bytes = b"") -> int:
        """Append to the chain that ends at `end`; where it ends now."""
        place = self._end
        self._file.seek(place)
        self._file.write(_HEADER.pack(end, len(sent), len(read_instead)))
        self._file.write(sent)
        self._file.write(read_instead)
        self._end += _HEADER.size + len(sent) + len(read_instead)
        return place

    def entries(self, end: int) -> list[tuple[bytes, bytes]]:
        """Of the chain that ends at `end`, in their order."""
        found = []
        while end != START:
            self._file.seek(end)
            end, sent, read_instead = _HEADER.unpack(self._file.read(_HEADER.size))
            found.append((self._file.read(sent), self._file.read(read_instead)))
        found.reverse()
        return found

    def clear(self) -> None:
        """Forget all chains."""
        self._end = 0
        self._file.seek(0)
        self._file.truncate()

    def __del__(self) -> None:
        self._file.close()
