"""The folder an induction works in: the contract between Django and the core.

config.json             {"seed"}
comments.jsonl          {"id", "trajectory", "text", "sign": 1 | -1 | null, "steps": [first, last] | null}
trajectories.jsonl.zst  those that were commented on; everywhere else they are called by their ids
others.jsonl.zst        those to be judged besides; may be missing
previous.json           [{"id", "name", "good": [text], "bad": [text]}]: metrics of before, to be told which of them are
                        still there; may be missing
groups.json             [[[comment, point], ...], ...]: metrics that people decided on, to be judged by; may be missing

aspects.jsonl           {"id", "comment", "trajectory", "feedback", "behaviour", "sign", "step", "chance", "metric",
                        "covered", "example", "at": [x, y]}; metric: a place in the list of result.json, or null;
                        example: 0 of the point that stands best for its side of the metric, then 1, ... or null
traits.jsonl            {"trajectory", "metric", "sign": 1 | -1 | 0, "value", "step", "because", "reason"}; value: the
                        chance of praise less the chance of blame; because: the aspect it was judged by, or null
result.json             written last: {"engine", "metrics", "coverage", "redundancy", "held_out", "curve", ...}
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workers.errors import RewardError
from workers.induce.evidence import Comment
from workers.schema import parse_json
from workers.schema.decode import convert


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    seed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Previous:
    """A metric of before. id: whatever the caller calls it."""

    id: str
    name: str
    good: tuple[str, ...] = ()
    bad: tuple[str, ...] = ()


def read_config(folder: Path) -> Config:
    path = folder / "config.json"
    if not path.is_file():
        raise RewardError(f"{folder.name} is no folder of an induction: it has no config.json.")
    return convert(parse_json(path.read_bytes()), Config)


def read_comments(folder: Path) -> list[Comment]:
    with (folder / "comments.jsonl").open(encoding="utf-8") as lines:
        return [convert(parse_json(line), Comment) for line in lines]


def read_previous(folder: Path) -> list[Previous]:
    path = folder / "previous.json"
    return [convert(one, Previous) for one in json.loads(path.read_text())] if path.is_file() else []


def read_groups(folder: Path) -> list[list[tuple[str, str]]] | None:
    path = folder / "groups.json"
    if not path.is_file():
        return None
    return [[(comment, point) for comment, point in group] for group in json.loads(path.read_text())]


def write_lines(path: Path, lines: Iterable[dict[str, Any]]) -> None:
    with path.open("w", encoding="utf-8") as out:
        out.writelines(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
