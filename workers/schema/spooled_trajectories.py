"""Trajectories by key, on disk, for reading a file of records whose trajectories do not fit into memory."""

import tempfile
from collections import OrderedDict
from collections.abc import Iterator, Mapping

from workers.schema.decode import convert, parse_json, require_object
from workers.schema.records import Trajectory
from workers.schema.speakers import with_speakers

_KEPT = 256  # decoded, those last used


class SpooledTrajectories(Mapping[str, Trajectory]):
    """Memory grows by a key and a place in the file for each; those last used are kept decoded."""

    def __init__(self, *, kept: int = _KEPT) -> None:
        self._file = tempfile.TemporaryFile(prefix="trajectories-")  # noqa: SIM115 - closed by `close`
        self._places: dict[str, tuple[int, int]] = {}
        self._decoded: OrderedDict[str, Trajectory] = OrderedDict()
        self._end, self._kept = 0, kept

    def add(self, key: str, text: str, trajectory: Trajectory) -> None:
        """text: the line that `trajectory` was read from."""
        line = text.encode()
        self._file.seek(self._end)
        self._file.write(line)
        self._places[key] = (self._end, len(line))
        self._end += len(line)
        self._keep(key, trajectory)

    def __getitem__(self, key: str) -> Trajectory:
        if key in self._decoded:
            self._decoded.move_to_end(key)
            return self._decoded[key]
        place, length = self._places[key]
        self._file.seek(place)
        trajectory = decode_trajectory(self._file.read(length).decode())[1]
        self._keep(key, trajectory)
        return trajectory

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def close(self) -> None:
        self._file.close()

    def _keep(self, key: str, trajectory: Trajectory) -> None:
        self._decoded[key] = trajectory
        while len(self._decoded) > self._kept:
            self._decoded.popitem(last=False)


def decode_trajectory(text: str) -> tuple[str, Trajectory]:
    """Key and trajectory of a line. Raises InvalidRecord."""
    line = require_object(parse_json(text))
    line.pop("kind", None)
    key = str(line.pop("key", ""))
    return key, with_speakers(convert(line, Trajectory))
