"""The run directory: its configuration, its lock, and how it is finished."""

import fcntl
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from workers.errors import RewardError
from workers.json_files import write_json
from workers.schema import FeedbackRecord, parse_json, read_records
from workers.schema.decode import convert
from workers.schema.recipe import Recipe, parse_recipe

SPLITS = ("train", "validation", "test")


@dataclass(frozen=True, slots=True)
class TimeBudget:
    seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunConfig:
    """config.json. threads: for torch on the CPU; None leaves torch's choice. code_version: of what trains.

    parent: {name, unknown: names of models before it of which it is not known what they were trained on} of the model
    that lies in parent/, whose weights are gone on from; empty where there is none.
    """

    recipe: dict[str, Any]
    seed: int = 0
    device: str = "auto"
    budget: TimeBudget | None = None
    attempt: int = 1
    threads: int | None = None
    snapshot: dict[str, Any] = field(default_factory=dict)
    parent: dict[str, Any] = field(default_factory=dict)
    code_version: str = ""


def read_run_config(folder: Path) -> tuple[RunConfig, Recipe]:
    path = folder / "config.json"
    if not path.is_file():
        raise RewardError(f"{folder.name} is no run directory: it has no config.json.")
    config = convert(parse_json(path.read_bytes()), RunConfig)
    try:
        return config, parse_recipe(config.recipe)
    except RewardError as error:
        raise error.at("/recipe") from None


def read_split(folder: Path, split: str) -> list[FeedbackRecord]:
    """A split that is not there is empty."""
    path = folder / "data" / f"{split}.jsonl.zst"
    return list(read_records(path)) if path.is_file() else []


@contextmanager
def lock_run_directory(folder: Path) -> Iterator[None]:
    """One writer at a time. The lock goes with the process that holds it, however it ends."""
    if not folder.is_dir():
        raise RewardError(f"there is no run directory {folder.name}.")
    with (folder / ".lock").open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RewardError(
                f"another process is writing to the run directory {folder.name}; wait for it, or stop it."
            ) from None
        file.truncate(0)
        file.write(f"{os.getpid()}\n")  # for whoever has to end this process
        file.flush()
        yield


def write_run_manifest(folder: Path) -> None:
    """manifest.json: the SHA-256 of what the run made. Its presence means complete, so it comes last."""
    files = [*sorted((folder / "model").iterdir()), folder / "report.json"]
    write_json(
        folder / "manifest.json",
        {"files": {str(path.relative_to(folder)): _sha256(path) for path in files}},
    )


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
