"""Checkpoints: written whole or not at all, the newest complete one wins, read with `weights_only=True`."""

import os
from pathlib import Path
from typing import Any

import torch


def save_checkpoint(folder: Path, step: int, state: dict[str, Any]) -> None:
    """state: tensors, numbers, text, and lists and dicts of them. Older checkpoints go once this one is complete."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"step-{step:09d}.pt"
    part = path.with_suffix(".part")
    with part.open("wb") as file:
        torch.save(state, file)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)
    for old in folder.iterdir():
        if old != path and old.suffix in (".pt", ".part"):
            old.unlink()


def newest_checkpoint(folder: Path) -> dict[str, Any] | None:
    """None where there is none; an unfinished one (`.part`) is not looked at."""
    found = sorted(folder.glob("step-*.pt"))
    if not found:
        return None
    state: dict[str, Any] = torch.load(found[-1], map_location="cpu", weights_only=True)
    return state
