"""The files of a run in memory."""

from workers.errors import RewardError
from workers.launch.run_files import RunFileMissing


class MemoryFiles:
    """away_after: so many reads; None: never."""

    away_after: int | None = None

    def __init__(self) -> None:
        self.content: dict[str, bytes] = {}

    def names(self, folder: str) -> list[str]:
        within = f"{folder}/"
        found = (name.removeprefix(within) for name in self.content if name.startswith(within))
        return sorted(name for name in found if "/" not in name)

    def read(self, name: str) -> bytes:
        if self.away_after is not None:
            if not self.away_after:
                raise RewardError("The installation is away.")
            self.away_after -= 1
        try:
            return self.content[name]
        except KeyError:
            raise RunFileMissing(name) from None

    def write(self, name: str, content: bytes) -> None:
        self.content[name] = content

    def delete(self, name: str) -> None:
        self.content.pop(name, None)
