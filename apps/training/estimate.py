"""What a run would take, before it is started: by what the newest run of its kind in the project took."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from apps.core.jobs.job_queue import JobState
from apps.datasets.models import DatasetVersion
from apps.training.models import TrainingRun

# What makes runs take alike, judgement by judgement.
_KIND = ("backbone", "encoder", "decoder", "unfrozen", "lora_rank", "gradient_checkpointing", "max_tokens")
_READS = {
    "bradley_terry": ("pairwise",),
    "plackett_luce": ("ranking",),
    "regression": ("rating", "rubric"),
    "outcome": ("outcome",),
    "progress": ("outcome",),
    "process": ("step",),
}


@dataclass(frozen=True, slots=True)
class Estimate:
    """judgements: of the training split, that the objective reads. seconds: at most, since training may stop early.

    memory: bytes, the most that `like` held; of the GPU where it ran on one. like: None where no run can tell.
    """

    judgements: int
    passes: int
    like: TrainingRun | None
    seconds: float | None
    memory: int | None

    @property
    def time(self) -> str:
        """In words, as exactly as such a guess deserves."""
        for size, unit in ((3600.0, "hours"), (60.0, "minutes")):
            if self.seconds is not None and self.seconds >= 1.5 * size:
                return f"{self.seconds / size:.0f} {unit}"
        return "a minute" if (self.seconds or 0) > 30 else "half a minute"


def estimate(dataset_version: DatasetVersion, recipe: Mapping[str, Any]) -> Estimate:
    judgements = _judgements(dataset_version, recipe["objective"])
    passes = recipe["epochs"] * (1 + recipe["folds"])
    like = _like(dataset_version, recipe)
    if like is None:
        return Estimate(judgements, passes, None, None, None)
    report = like.report or {}
    trained = report["train"]
    done = trained["steps"] * min(like.recipe["batch_pairs"], trained["examples"])
    beside = report["seconds"] - trained["seconds"]  # reading, encoding, measuring
    seconds = beside * judgements / trained["examples"] + judgements * passes * trained["seconds"] / max(
        1, done
    )
    return Estimate(judgements, passes, like, seconds, trained.get("peak_memory"))


def _judgements(dataset_version: DatasetVersion, objective: str) -> int:
    counts: dict[str, int] = dataset_version.records
    wanted = _READS.get(objective, tuple(counts))
    whole = sum(dataset_version.splits.values())
    share = dataset_version.splits.get("train", 0) / whole if whole else 0.0
    return round(share * sum(counts.get(kind, 0) for kind in wanted))


def _like(dataset_version: DatasetVersion, recipe: Mapping[str, Any]) -> TrainingRun | None:
    """The newest that went through in one go, without folds; on the same data before others."""
    rows = TrainingRun.objects.filter(project=dataset_version.project, state=JobState.SUCCEEDED, attempt=1)
    rows = rows.filter(**{f"recipe__{key}": recipe[key] for key in _KIND}, recipe__folds=0)
    rows = rows.filter(report__train__steps__gt=0, report__seconds__gt=0)
    same = rows.filter(dataset_version=dataset_version, recipe__objective=recipe["objective"])
    return same.order_by("-pk").first() or rows.order_by("-pk").first()
