"""Checkpoints: written whole or not at all, the newest readable one wins, read with `weights_only=True`."""

import os
import shutil
from pathlib import Path
from typing import Any

import torch

from workers.errors import RewardError
from workers.train.events import Report

_KEPT = 2  # if the newest cannot be read, the one before it is used


def save_checkpoint(folder: Path, step: int, state: dict[str, Any]) -> None:
    """state: tensors, numbers, text, and lists and dicts of them. Deletes older ones once this one is complete.

    shards of the state: sizes of the files that the processes of a sharded model have written for it before.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = checkpoint_path(folder, step)
    part = path.with_suffix(".part")
    with part.open("wb") as file:
        torch.save(state, file)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)
    for old in [*sorted(folder.glob("step-*.pt"))[:-_KEPT], *folder.glob("step-*.part")]:
        old.unlink()
    kept = {shards_folder(other) for other in folder.glob("step-*.pt") if other != path or "shards" in state}
    for shards in set(folder.glob("step-*.shards")) - kept:
        shutil.rmtree(shards)


def checkpoint_path(folder: Path, step: int) -> Path:
    return folder / f"step-{step:09d}.pt"


def shards_folder(path: Path) -> Path:
    """Where the processes of a sharded model write their parts of the checkpoint at `path`."""
    return path.with_suffix(".shards")


def file_sizes(folder: Path) -> dict[str, int]:
    return {file.name: file.stat().st_size for file in sorted(folder.iterdir())}


def random_state(device: torch.device) -> dict[str, Any]:
    """The part of a checkpoint's state for torch's random number generators."""
    cuda_state = torch.cuda.get_rng_state(device) if device.type == "cuda" else None
    return {"random": torch.get_rng_state(), "cuda_random": cuda_state}


def restore_random_state(state: dict[str, Any], device: torch.device) -> None:
    torch.set_rng_state(state["random"])
    if state["cuda_random"] is not None and device.type == "cuda":
        torch.cuda.set_rng_state(state["cuda_random"], device)


def restore_random_state_of_rank(
    state: dict[str, Any], rank: int, world_size: int, seed: int, device: torch.device
) -> None:
    """Each rank its own. Without one (more ranks than before, or a checkpoint of an earlier version), ranks other
    than the first go on from a state derived from the seed and the step."""
    by_rank = state.get("random_by_rank", [state])
    if rank < len(by_rank):
        restore_random_state(by_rank[rank], device)
    else:
        torch.manual_seed(seed + rank + world_size * state["step"])


def newest_checkpoint(folder: Path) -> tuple[dict[str, Any] | None, list[str]]:
    """The newest that can be read, None where there is none; and the names of those that could not be.

    Incomplete ones (`.part`) are ignored. Tensors of a sharded model are not read yet
    (`ProcessGroup.complete_checkpoint`).
    """
    unreadable: list[str] = []
    for path in sorted(folder.glob("step-*.pt"), reverse=True):
        try:
            state: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
            is_complete = "shards" not in state or file_sizes(shards_folder(path)) == state["shards"]
        except Exception:  # torch raises many exceptions for damaged bytes
            is_complete = False
        if is_complete:
            return state, unreadable
        unreadable.append(path.name)
    return None, unreadable


def state_to_resume(folder: Path | None, examples: int, report: Report) -> dict[str, Any] | None:
    """The newest that can be read, None to start from the beginning. report: gets those that cannot be read.

    examples: those that are trained on. Raises RewardError where the checkpoint has others.
    """
    if folder is None:
        return None
    state, unreadable = newest_checkpoint(folder)
    for name in unreadable:
        report(message=f"the checkpoint {name} cannot be read; continuing from the one before it")
    if state is not None and state.get("examples") != examples:
        raise RewardError(
            "the checkpoint is of other training data; delete checkpoints/ to start from the beginning."
        )
    return state
