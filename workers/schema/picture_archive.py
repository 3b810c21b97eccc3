"""The pictures of a dataset version or of a job in one file, by the SHA-256 of the files that they came from.

pictures.zip, next to the records: `<digest>.png`, each in the form that models read (`workers.schema.pictures`).
"""

import threading
import zipfile
from collections.abc import Iterable
from pathlib import Path

from workers.errors import InvalidRecord, RewardError
from workers.schema.pictures import Pixels, decode_picture, encode_picture

PICTURES = "pictures.zip"
_DATE = (1980, 1, 1, 0, 0, 0)  # equal pictures make an equal file


def write_pictures(path: Path, pictures: Iterable[tuple[str, bytes]]) -> tuple[int, list[str]]:
    """Write an archive, if there is any picture; how many it has, and the digests of those that cannot be read.

    pictures: digest and file of each, in any order; each once.
    """
    count, unread = 0, []
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:  # PNG is compressed already
        for digest, data in pictures:
            try:
                image = encode_picture(decode_picture(data))
            except InvalidRecord:
                unread.append(digest)
                continue
            archive.writestr(zipfile.ZipInfo(f"{digest}.png", _DATE), image)
            count += 1
    if not count:
        path.unlink()
    return count, unread


class PictureArchive:
    """Safe to use from any thread. Raises RewardError where the file is damaged."""

    def __init__(self, path: Path) -> None:
        self._lock = threading.Lock()
        self._path = path
        try:
            self._archive = zipfile.ZipFile(path)
        except (OSError, zipfile.BadZipFile) as error:
            raise self._damaged(error) from None
        self._names = frozenset(self._archive.namelist())

    def __contains__(self, digest: str) -> bool:
        return f"{digest}.png" in self._names

    def __len__(self) -> int:
        return len(self._names)

    def read(self, digest: str) -> Pixels:
        """Raises KeyError where it has no such picture."""
        with self._lock:
            try:
                data = self._archive.read(f"{digest}.png")
            except zipfile.BadZipFile as error:
                raise self._damaged(error) from None
        return decode_picture(data)

    def _damaged(self, error: Exception) -> RewardError:
        return RewardError(
            f"{self._path.name} is damaged ({error}); freeze the dataset version again, or copy the file again."
        )
