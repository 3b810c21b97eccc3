"""The folder a selection works in: the contract between Django and the core.

config.json        what is wanted
model/             the artifact whose backbone is looked through; without it, the embedded encoder alone
known/             features of before, by the same backbone: features.safetensors, keys.json
new.jsonl.zst      trajectories that are not in known/; in all other files they are called by their ids
pictures.zip       the pictures of those, for a model that sees
items.jsonl        {"id", "sides": [trajectory, ...]} of every item that may be asked about
asked.jsonl        the same of those that were asked about
comparisons.jsonl  {"task", "a", "b", "preferred", "weight"}, as workers.schema.comparisons has them, newest last
seen.json          [task, ...]: what the model was trained on; null where that is not known; absent for the encoder
traffic.json       [trajectory, ...]: what is really scored

features/          as known/, with what was new
chosen.jsonl       {"id", "rank", "score", "measures": {name: share}} of the first `count`, in order
result.json        written last: {"comparisons", "encoded", "items", "curve", ...}
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from safetensors.numpy import load_file, save_file

from workers.active_learning.order import Strategy
from workers.active_learning.posterior import Numbers
from workers.errors import RewardError
from workers.schema import parse_json
from workers.schema.comparisons import Comparison
from workers.schema.decode import convert

FEATURES, KEYS = "features.safetensors", "keys.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectionConfig:
    """count: items chosen, each counting with those before it. wanted: an accuracy to estimate labels for."""

    strategy: Strategy
    seed: int = 0
    count: int = 100
    device: str = "cpu"
    wanted: float | None = None


class CandidateItem(NamedTuple):
    id: int
    sides: tuple[str, ...]


def read_config(folder: Path) -> SelectionConfig:
    path = folder / "config.json"
    if not path.is_file():
        raise RewardError(f"{folder.name} is not the folder of a selection: it has no config.json.")
    return convert(parse_json(path.read_bytes()), SelectionConfig)


def read_features(folder: Path) -> dict[str, Numbers]:
    """By trajectory; empty where there is nothing."""
    if not (folder / KEYS).is_file():
        return {}
    keys: list[str] = json.loads((folder / KEYS).read_text())
    rows = load_file(folder / FEATURES)["features"].astype(np.float64)
    if len(keys) != len(rows):
        raise RewardError(
            f"{folder.name} has {len(rows)} rows of features for {len(keys)} trajectories; remove it."
        )
    return dict(zip(keys, rows, strict=True))


def write_features(folder: Path, features: Mapping[str, Numbers]) -> None:
    folder.mkdir(exist_ok=True)
    rows = np.array(list(features.values()), dtype=np.float32)
    save_file({"features": rows.reshape(len(features), -1)}, folder / FEATURES)
    (folder / KEYS).write_text(json.dumps(list(features)))


def read_seen_tasks(folder: Path) -> frozenset[str] | None:
    """None where it is not known what the model was trained on."""
    path = folder / "seen.json"
    seen: list[str] | None = json.loads(path.read_text()) if path.is_file() else []
    return None if seen is None else frozenset(seen)


def read_items(path: Path) -> list[CandidateItem]:
    return [CandidateItem(line["id"], tuple(line["sides"])) for line in _lines(path)]


def read_comparisons(path: Path) -> list[Comparison]:
    return [Comparison(**line) for line in _lines(path)]


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as lines:
        yield from (json.loads(line) for line in lines)


def write_lines(path: Path, lines: Iterable[dict[str, Any]]) -> None:
    with path.open("w", encoding="utf-8") as out:
        out.writelines(json.dumps(line, allow_nan=False) + "\n" for line in lines)
