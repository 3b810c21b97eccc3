"""Executes a selection: a child process of the core on a folder of what there is to choose from."""

import json
import tempfile
from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from typing import Any

from django.conf import settings
from msgspec.structs import replace

from apps.active_learning.models import ItemSelection, SelectionPlan
from apps.active_learning.selectors import KEYS, SelectionBasis, newest_selection, open_items, selection_basis
from apps.active_learning.services import store_selection
from apps.annotation.feedback.records import feedback_records
from apps.annotation.models import Item
from apps.annotation.selectors import item_trajectory_ids
from apps.core.errors import DomainError, NotFound
from apps.core.jobs.job_queue import Cancelled, ClaimLost, JobHeartbeat, JobState, finish, keep_heartbeat
from apps.core.processes import core_subprocess
from apps.core.storage.artifacts import delete_tree, stage, store_tree
from apps.core.storage.storage_names import storage_name
from apps.datasets.selectors import read_dataset_records
from apps.datasets.statistics import record_task
from apps.rewards.selectors import sampled_trajectories
from apps.training.selectors import with_ancestors
from apps.trajectories.attachments import noting_digests, write_pictures
from apps.trajectories.selectors import stream_trajectories
from workers import schema
from workers.schema.comparisons import comparisons

CHILD = "workers.active_learning"
COUNT = 200  # items put in order; the one who asks for more meanwhile gets the others at random
MOST_ITEMS = 20_000  # looked at in one go, of those drawn first; the others come in as these are judged
MOST_TRAFFIC = 500


def execute(selection: ItemSelection) -> None:
    """Choose, to the end. Raises ClaimLost, Interrupted."""
    with (
        keep_heartbeat(selection) as heartbeat,
        tempfile.TemporaryDirectory(prefix="active-learning-") as scratch,
    ):
        folder = Path(scratch)
        try:
            basis = selection_basis(selection.plan)
            _prepare(folder, selection.plan, basis, heartbeat)
            core_subprocess.run_to_end(
                CHILD, [str(folder)], folder=folder, what="The choosing", check=heartbeat.check
            )
            _keep(selection, basis, folder)
        except DomainError as error:
            finish(selection, JobState.FAILED, error=error.message)
        except Cancelled:
            finish(selection, JobState.CANCELLED)


def _prepare(folder: Path, plan: SelectionPlan, basis: SelectionBasis, heartbeat: JobHeartbeat) -> None:
    known = _link_known(folder / "known", plan, basis)
    if basis.model is not None:
        (folder / "model").symlink_to(stage(basis.model.artifact))
    items = list(open_items(plan.campaign).order_by("random_key").values_list("pk", flat=True)[:MOST_ITEMS])
    asked = list(
        Item.objects.filter(campaign=plan.campaign, completed_count__gt=0).values_list("pk", flat=True)
    )
    heartbeat.progress = {"done": 0, "total": None, "note": f"Reading {len(items)} items"}
    sides = item_trajectory_ids([*items, *asked])
    for name, wanted in (("items", items), ("asked", asked)):
        _write(
            folder / f"{name}.jsonl",
            ({"id": pk, "sides": [str(side) for side in sides[pk]]} for pk in wanted),
        )
    rows = {run for runs in sides.values() for run in runs}
    said = list(comparisons(feedback_records(project=plan.campaign.project, bare=True)))
    rows |= {int(run) for comparison in said for run in (comparison.a, comparison.b)}
    _write(
        folder / "comparisons.jsonl",
        ({name: getattr(comparison, name) for name in comparison.__slots__} for comparison in said),
    )
    (folder / "seen.json").write_text(json.dumps(_tasks_seen(basis)))
    traffic = dict(sampled_trajectories(plan.endpoint, MOST_TRAFFIC)) if plan.endpoint else {}
    (folder / "traffic.json").write_text(json.dumps(list(traffic)))
    new = [run for run in sorted(rows) if str(run) not in known]
    heartbeat.progress = {"done": 0, "total": None, "note": f"Reading {len(new)} new runs"}
    unknown = (replace(candidate, id=name) for name, candidate in traffic.items() if name not in known)
    attachments: set[str] = set()
    schema.write_trajectories(
        folder / "new.jsonl.zst",
        noting_digests(chain(stream_trajectories(new, check=heartbeat.check), unknown), attachments),
    )
    if basis.model is not None and basis.model.sees_pictures:
        write_pictures(plan.campaign.project, attachments, folder, check=heartbeat.check)
    config = {
        "strategy": plan.strategy,
        "seed": plan.pk,
        "count": COUNT,
        "device": settings.TRAINING_DEVICE,
        "wanted": plan.target_accuracy,
    }
    (folder / "config.json").write_text(json.dumps(config))


def _tasks_seen(basis: SelectionBasis) -> list[str] | None:
    """Tasks that the model or an ancestor was trained or stopped by. None where that is not known."""
    seen: set[str] = set()
    for model in with_ancestors(basis.model) if basis.model is not None else ():
        dataset_version = model.training_run.dataset_version if model.training_run else None
        if dataset_version is None or dataset_version.withdrawn_at is not None:
            return None
        try:
            for split in ("train", "validation"):
                seen.update(map(record_task, read_dataset_records(dataset_version, split)))
        except (FileNotFoundError, DomainError):  # withdrawn, and its files removed, meanwhile
            return None
    return sorted(seen)


def _link_known(folder: Path, plan: SelectionPlan, basis: SelectionBasis) -> set[str]:
    """What the last choosing knew of trajectories, where it looked through the same; whom it knew."""
    last = newest_selection(plan)
    if last is None or last.basis != basis.key or not last.artifact:
        return set()
    try:
        folder.symlink_to(stage(last.artifact))
    except NotFound:  # removed by hand, or lost with its store: it is made again
        return set()
    return set(json.loads((folder / KEYS).read_text()))


def _keep(selection: ItemSelection, basis: SelectionBasis, folder: Path) -> None:
    chosen = [json.loads(line) for line in (folder / "chosen.jsonl").read_text().splitlines()]
    result: dict[str, Any] = json.loads((folder / "result.json").read_text())
    name = storage_name("active_learning", f"{selection.pk}-{selection.attempt}")
    store_tree(folder / "features", name)
    facts = {"basis": basis.key, "basis_label": str(basis), "artifact": name}
    try:
        store_selection(selection=selection, chosen=chosen, result=result, facts=facts)
    except ClaimLost:
        delete_tree(name)
        raise


def _write(path: Path, lines: Iterable[dict[str, Any]]) -> None:
    with path.open("w", encoding="utf-8") as out:
        out.writelines(json.dumps(line) + "\n" for line in lines)
