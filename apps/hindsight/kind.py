"""Hindsight tasks of trajectories as a kind of proposal."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
from django.db.models import QuerySet

from apps.accounts.models import Project
from apps.hindsight.models import HindsightProposal, HindsightTask
from apps.hindsight.selectors import trajectories_without_task
from apps.llm.models import SpendingPurpose
from apps.proposals.kinds import ProposalKind
from apps.trajectories.masking import mask_trajectory
from apps.trajectories.models import Trajectory
from apps.trajectories.selectors import stream_trajectories
from apps.trajectories.services import detectors_of
from workers import schema
from workers.schema.conditions import with_reached, without_reached

DEFAULT_TRAJECTORIES, MAX_TRAJECTORIES = 50, 500


class HindsightOptions(msgspec.Struct, frozen=True, kw_only=True):
    """filter: of the trajectories. most: how many of them, the newest."""

    filter: str = ""
    most: int = DEFAULT_TRAJECTORIES


class _HindsightKind(ProposalKind[HindsightProposal, HindsightTask]):
    job, proposed, about = HindsightProposal, HindsightTask, Trajectory
    related = ("project", "trajectory__task")
    about_field, about_nouns, most = "trajectory", "trajectories", MAX_TRAJECTORIES
    advance = "apps.hindsight.tasks.advance_hindsight"
    verb, noun, this = "hindsight", "a hindsight task", "This hindsight task is"
    none_left = (
        "Every one of these trajectories has a hindsight task. Change the filter, or reject one to have it "
        "proposed again."
    )
    child, asking, purpose = "workers.hindsight", "Asking what was done", SpendingPurpose.HINDSIGHT

    def choose(self, project: Project, trajectories: QuerySet[Trajectory], most: int) -> list[int]:
        return trajectories_without_task(trajectories, most)

    def write_inputs(
        self, proposal: HindsightProposal, keys: list[int], folder: Path, check: Callable[[], None]
    ) -> None:
        detectors = detectors_of(proposal.project)
        masked = (mask_trajectory(each, detectors)[0] for each in stream_trajectories(keys, check=check))
        schema.write_trajectories(folder / "trajectories.jsonl.zst", _without_copies(proposal, masked))

    def values(self, line: Mapping[str, Any]) -> dict[str, Any]:
        return {"text": line["task"], "evidence": line["evidence"]}

    def use(self, own: HindsightTask) -> None:
        """The metadata of the trajectory has the text as reached from now on, and new dataset versions can have it as a
        demonstration."""
        _set_reached(own, own.text)

    def withdraw(self, own: HindsightTask) -> None:
        """What was accepted leaves the metadata of the trajectory. Frozen dataset versions keep it."""
        _set_reached(own, "")

    def audit(self, own: HindsightTask) -> tuple[str, dict[str, Any]]:
        return str(own.trajectory.number), {"characters": len(own.text)}


def _without_copies(
    proposal: HindsightProposal, read: Iterable[schema.Trajectory]
) -> Iterator[schema.Trajectory]:
    """Each content once; why the others get no text is stored with those that have none."""
    seen: set[str] = set()
    copies: dict[str, str] = {}
    for run in read:
        if run.content_hash in seen:
            copies[str(run.id)] = "The trajectory has the same content as another one of the proposal."
        else:
            seen.add(run.content_hash)
            yield run
    proposal.result["problems"] = proposal.result.get("problems", {}) | copies


def _set_reached(own: HindsightTask, text: str) -> None:
    """text: empty to remove what was accepted before."""
    trajectory = Trajectory.objects.select_for_update().get(pk=own.trajectory_id)
    metadata = trajectory.metadata
    if own.accepted_text:
        metadata = without_reached(metadata, own.accepted_text)
    if text:
        metadata = with_reached(metadata, text)
    if metadata != trajectory.metadata:
        trajectory.metadata = metadata
        trajectory.save(update_fields=["metadata"])
    own.accepted_text = text


HINDSIGHT = _HindsightKind()
