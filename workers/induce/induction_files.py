"""The files of an induction, and what is in them: the contract between Django and the core.

config.json             {"seed", "device", "server": {"base_url", "model", ...} | null}
comments.jsonl          {"id", "trajectory", "text", "sign": 1 | -1 | null, "steps": [first, last] | null}
trajectories.jsonl.zst  those that were commented on; everywhere else they are called by their ids
others.jsonl.zst        others to be judged; may be missing
previous.json           [{"id", "name", "good": [text], "bad": [text]}]: metrics of an earlier induction, to find out
                        which of them continue; may be missing
groups.json             [{"name", "definition", "points": [[comment, point], ...], "stands"?}]: metrics that people
                        decided on, to be judged by where they stand; may be missing
answers.jsonl           {"key", "answer", "about"}: what a language model answered before; what it answers now joins it

aspects.jsonl           {"id", "comment", "trajectory", "feedback", "behaviour", "sign", "step", "chance", "metric",
                        "covered", "example", "at": [x, y]}; metric: a place in the list of result.json, or null;
                        example: 0 of the point that stands best for its side of the metric, then 1, ... or null
traits.jsonl            {"trajectory", "metric", "sign": 1 | -1 | 0, "value", "step", "because", "reason"}; value: the
                        chance of praise less the chance of blame; because: the aspect it was judged by, or null
result.json             written last: {"engine", "metrics", "coverage", "redundancy", "held_out", "curve", ...}; with
                        a language model also "failed": the comments and trajectories it gave no answer on
"""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from workers.errors import RewardError
from workers.llm import LLMServer
from workers.schema import parse_json
from workers.schema.decode import convert

DEGENERATE_SHARE = 0.95  # of trajectories with the same verdict, good or bad: such a metric tells nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class Comment:
    """steps: `step` indices, inclusive, that it was anchored to. sign: as its annotator gave it, or None."""

    id: str
    trajectory: str
    text: str
    sign: int | None = None
    steps: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Aspect:
    """One point of a comment, tied to what the agent did. sign: 1 praise, -1 blame.

    step: the `step` index it is most likely about, with its chance; None where the agent did nothing.
    """

    trajectory: str
    behaviour: str
    feedback: str
    sign: int
    step: int | None = None
    chance: float | None = None
    comment: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trait:
    """A metric judged on a trajectory. sign: 1 good, -1 bad, 0 does not apply.

    step: where it shows. because: the aspect it was judged by, or None; reason: as a judge gave it.
    """

    trajectory: str
    metric: str
    sign: int
    step: int | None = None
    because: int | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class InductionConfig:
    """server: the language model to be asked, whose key is in the environment as OPENAI_API_KEY; None: the embedded
    engine."""

    seed: int = 0
    device: str = "cpu"
    server: LLMServer | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PreviousMetric:
    """A metric of an earlier induction. id: as the caller knows it."""

    id: str
    name: str
    good: tuple[str, ...] = ()
    bad: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DecidedMetric:
    """A metric that people decided on. points: (comment, point). stands: False where it was rejected."""

    name: str
    definition: str
    points: tuple[tuple[str, str], ...]
    stands: bool = True


def read_config(folder: Path) -> InductionConfig:
    path = folder / "config.json"
    if not path.is_file():
        raise RewardError(f"{folder.name} is no folder of an induction: it has no config.json.")
    return convert(parse_json(path.read_bytes()), InductionConfig)


def read_comments(folder: Path) -> list[Comment]:
    with (folder / "comments.jsonl").open(encoding="utf-8") as lines:
        return [convert(parse_json(line), Comment) for line in lines]


def read_previous(folder: Path) -> list[PreviousMetric]:
    path = folder / "previous.json"
    return [convert(raw, PreviousMetric) for raw in json.loads(path.read_text())] if path.is_file() else []


def read_groups(folder: Path) -> list[DecidedMetric] | None:
    path = folder / "groups.json"
    return [convert(raw, DecidedMetric) for raw in json.loads(path.read_text())] if path.is_file() else None


def aspect_to_json(number: int, aspect: Aspect) -> dict[str, Any]:
    """The part of a line of aspects.jsonl that is known without metrics."""
    names = {"comment", "trajectory", "feedback", "behaviour", "sign", "step", "chance"}
    return {"id": number} | {name: value for name, value in asdict(aspect).items() if name in names}


def write_lines(path: Path, lines: Iterable[dict[str, Any]]) -> None:
    with path.open("w", encoding="utf-8") as out:
        out.writelines(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
