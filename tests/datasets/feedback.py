"""Feedback for tests: comparisons of short texts, imported as anyone would."""

import io
import json
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from apps.accounts.models import Project
from apps.annotation.feedback.services import import_feedback
from apps.core.jobs.job_queue import JobState
from apps.core.storage.artifacts import store_tree
from apps.datasets.models import DatasetVersion
from apps.datasets.services import freeze_dataset
from apps.datasets.splits import SPLITS
from apps.datasets.version_builder import build_dataset_version
from workers.schema import write_records


def pair(task: str, *, choice: str = "a", annotator: str = "ann", **fields: Any) -> dict[str, Any]:
    """A comparison of a long and careful answer (a) with a rude one (b)."""
    return {
        "task": {"id": task, "instruction": f"Please help me with {task}."},
        "a": {
            "prompt": f"Please help me with {task}.",
            "response": f"Gladly: {task} is done, and I checked it.",
        },
        "b": {"prompt": f"Please help me with {task}.", "response": f"No. {task} is your problem."},
        "choice": choice,
        "annotator": annotator,
        **fields,
    }


def import_pairs(project: Project, pairs: Iterable[dict[str, Any]]) -> None:
    stream = io.BytesIO("".join(json.dumps(pair) + "\n" for pair in pairs).encode())
    result = import_feedback(project=project, stream=stream, format="pairs", by=None)
    assert not result.rejected, result.rejected


def freeze(project: Project, name: str = "first", **options: Any) -> DatasetVersion:
    return build_dataset_version(freeze_dataset(project=project, name=name, by=None, claimed=True, **options))


def frozen_nothing(project: Project) -> DatasetVersion:
    """A dataset with its files, and nothing in them."""
    with tempfile.TemporaryDirectory() as scratch:
        for split in SPLITS:
            write_records(Path(scratch) / f"{split}.jsonl.zst", [])
        store_tree(Path(scratch), f"snapshots/nothing-of-{project.slug}")
    return DatasetVersion.objects.create(
        project=project,
        name="first",
        version=1,
        state=JobState.SUCCEEDED,
        artifact=f"snapshots/nothing-of-{project.slug}",
    )
