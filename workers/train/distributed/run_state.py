"""The state of a run whose hosts have no disk in common: before it trains, all get that with the newest checkpoint.

torchrun may give the main process, which writes checkpoints, to another host after a restart; that host has none of
them, or older ones.
"""

import hashlib
import shutil
import uuid
from pathlib import Path
from typing import Any

from workers.errors import RewardError
from workers.train.distributed.group import ProcessGroup
from workers.train.run_directory import read_run_config

_PART_BYTES = 64 * 2**20  # sent at a time
# Of a run directory, what the next start goes on from.
_STATE = ("checkpoints", "hard-negatives.jsonl.zst", "events.jsonl")


def share_run_state(folder: Path, group: ProcessGroup, *, is_first_of_host: bool) -> bool:
    """Whether the run is complete on some host. All ranks call it, before anything is read from `checkpoints`.

    is_first_of_host: one process of each host writes. Raises RewardError where the hosts have different data.
    """
    marker = folder / f".host-{uuid.uuid4().hex}"
    if is_first_of_host:
        marker.touch()
    try:
        markers = group.all_gather(marker.name if is_first_of_host else "")
        hosts = [rank for rank, name in enumerate(markers) if name and (folder / name).exists()]
        own = min(hosts)  # the first rank that writes to this folder
        places = group.all_gather(own)  # by rank; several hosts with a disk in common are one place
    finally:
        marker.unlink(missing_ok=True)
    group.has_common_folder = len(set(places)) == 1
    complete = any(group.all_gather((folder / "manifest.json").is_file()))
    if complete or group.has_common_folder:
        return complete
    if len(set(group.all_gather(_data_digest(folder)))) > 1:
        raise RewardError(
            "the run directories of the hosts have different training data; copy config.json, data/ and, if there is "
            "one, parent/ from one host to all others, and start again."
        )
    newest = group.all_gather(_newest_step(folder))
    source = max(sorted(set(places)), key=lambda rank: (newest[rank], -rank))
    is_source, is_writer = group.rank == source, group.rank == own
    files = _state_files(folder) if is_source else []
    (sent,) = {tuple(each) for each in group.all_gather([file.as_posix() for file in files]) if each} or {()}
    if is_writer and not is_source:
        for name in _STATE:
            _remove(folder / name)
    for name in sent:
        _send(folder, name, group, source, is_writer=is_writer and not is_source)
    group.all_gather(None)  # no one reads before all are written
    return False


def _data_digest(folder: Path) -> str:
    """Of what the hosts have to have in common: seed, records, and the model that the run begins with."""
    digest = hashlib.sha256(str(read_run_config(folder)[0].seed).encode())
    for name in ("data", "parent"):
        for path in sorted(each for each in (folder / name).rglob("*") if each.is_file()):
            with path.open("rb") as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()


def _newest_step(folder: Path) -> int:
    """-1 without a checkpoint. Of a run with several trainings one after the other the last one counts."""
    found = [path for path in (folder / "checkpoints").rglob("step-*.pt") if path.suffix == ".pt"]
    own = [path for path in found if path.parent == folder / "checkpoints"]
    steps = [int(path.stem.removeprefix("step-")) for path in own or found]
    return max(steps, default=-1) + (_LATER if own else 0)


_LATER = 10**9  # steps of the last training come after those of the ones before it


def _state_files(folder: Path) -> list[Path]:
    found = [path for name in _STATE for path in [folder / name, *sorted((folder / name).rglob("*"))]]
    return [path.relative_to(folder) for path in found if path.is_file() and path.suffix != ".part"]


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _send(folder: Path, name: str, group: ProcessGroup, source: int, *, is_writer: bool) -> None:
    part = folder / f"{name}.part"
    reading: Any = (folder / name).open("rb") if group.rank == source else None
    if is_writer:
        part.parent.mkdir(parents=True, exist_ok=True)
    writing: Any = part.open("wb") if is_writer else None
    try:
        while content := group.broadcast(reading.read(_PART_BYTES) if reading else b"", source):
            if writing:
                writing.write(content)
    finally:
        for file in (reading, writing):
            if file:
                file.close()
    if is_writer:
        part.replace(folder / name)
