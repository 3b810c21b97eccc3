"""The pictures of a trajectory, for renderers of models that see.

A picture is read from a data URL, or, where its source is `sha256:...`, from the archive of the process's job.
"""

import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from workers.errors import InvalidRecord, RewardError
from workers.schema import Part, Trajectory
from workers.schema.picture_archive import PICTURES, PictureArchive
from workers.schema.pictures import (
    Pixels,
    decode_picture,
    fitted,
    hashed_name,
    is_sent,
    picture_bytes,
    picture_places,
    picture_size,
)

PICTURE_TOKENS = 64  # that a picture counts as, of the `max_tokens` of a trajectory
MOST_PIXELS = 200_000_000  # of all pictures of an item together, as they were sent
_KNOWN_BYTES = 64 * 2**20  # of decoded pictures that are likely to come again: of trajectories that grow
_archives: list[PictureArchive] = []


def use_pictures(folder: Path) -> None:
    """From now on pictures are read from the archive in this folder too, if there is one. For processes of one job."""
    path = folder / PICTURES
    if path.is_file():
        _archives.append(PictureArchive(path))


def forget_pictures() -> None:
    """Undo every `use_pictures`."""
    _archives.clear()


def is_at_hand(source: str | None) -> bool:
    """Whether a model that sees reads the picture of this source."""
    return is_sent(source) or _archive_of(hashed_name(source)) is not None


def read_picture(source: str) -> tuple[str, Pixels]:
    """The digest of its file, and its pixels. Raises InvalidRecord where it is damaged; RewardError where it is not at
    hand."""
    if is_sent(source):
        file = picture_bytes(source)
        return file.digest, decode_picture(file.data)
    digest = hashed_name(source)
    archive = _archive_of(digest)
    if digest is None or archive is None:
        raise RewardError(f"the picture {source[:20]} is not in {PICTURES}; start the job again.")
    return digest, archive.read(digest)


def count_pictures(trajectories: Iterable[Trajectory]) -> tuple[int, int]:
    """How many pictures they have, and how many of these are at hand; those of equal trajectories once each."""
    sources = [
        part.source
        for trajectory in trajectories
        for step in trajectory.steps
        for _, parts in picture_places(step)
        for part in parts
        if part.type == "image"
    ]
    return len(sources), sum(map(is_at_hand, sources))


def _archive_of(digest: str | None) -> PictureArchive | None:
    return next((archive for archive in reversed(_archives) if digest in archive), None) if digest else None


@dataclass(frozen=True, slots=True)
class Picture:
    """digest: of its file. data: the file, until it is decoded. kept: its pixels, [side, side, 3]. One that is read
    from its archive has neither: those of a dataset would fill the memory."""

    digest: str
    side: int
    data: bytes | None = field(default=None, compare=False, repr=False)
    kept: Pixels | None = field(default=None, compare=False, repr=False)

    def decoded(self) -> "Picture":
        """With its pixels, where it was sent. Raises InvalidRecord where it is damaged."""
        if self.data is None:
            return self
        known = _known.get((self.digest, self.side))
        if known is None:
            known = fitted(decode_picture(self.data), self.side)
            _known.put((self.digest, self.side), known)
        return Picture(self.digest, self.side, None, known)

    def pixels(self) -> Pixels:
        """[side, side, 3]"""
        if self.kept is not None:
            return self.kept
        archive = _archive_of(self.digest)
        if archive is None:
            raise RewardError(f"the picture {self.digest[:12]} is not in {PICTURES}; start the job again.")
        return fitted(archive.read(self.digest), self.side)


@dataclass(frozen=True)
class PictureReading:
    """side: pixels of the square that the image encoder reads. name: of the encoder, as in keys of caches."""

    side: int
    name: str

    def pictures(self, parts: Iterable[Part], left: list[int]) -> Iterator[Picture]:
        """Those of a message that are at hand, in order; left: pixels that more pictures may have, counted down.

        Raises InvalidRecord for what is sent as a picture and is none, or too large.
        """
        for part in parts:
            if part.type != "image" or part.source is None:
                continue
            if is_sent(part.source):
                yield self._sent(part.source, left)
            elif (digest := hashed_name(part.source)) and _archive_of(digest) is not None:
                yield Picture(digest, self.side)

    def _sent(self, source: str, left: list[int]) -> Picture:
        file = picture_bytes(source)
        width, height = picture_size(file.data)
        left[0] -= width * height
        if left[0] < 0:
            raise InvalidRecord(
                f"the pictures of the trajectory have more than {MOST_PIXELS // 10**6} million pixels together; scale "
                "them down, or send fewer."
            )
        return Picture(file.digest, self.side, file.data)


class _KnownPictures:
    """Decoded pictures by digest and side, in so many bytes; least recently used go first. Safe to share."""

    def __init__(self, most: int) -> None:
        self._left = most
        self._kept: OrderedDict[tuple[str, int], Pixels] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: tuple[str, int]) -> Pixels | None:
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
            return self._kept.get(key)

    def put(self, key: tuple[str, int], pixels: Pixels) -> None:
        with self._lock:
            if key in self._kept:
                return
            self._kept[key] = pixels
            self._left -= pixels.nbytes
            while self._left < 0:
                self._left += self._kept.popitem(last=False)[1].nbytes


_known = _KnownPictures(_KNOWN_BYTES)
