"""Scoring stored trajectories by a spec that is not deployed. For the web process only."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from starlette.requests import Request

from apps.rewards.serving.access import INTERNAL, Caller
from apps.rewards.serving.problems import Problem
from apps.rewards.serving.registry import RevisionInfo
from apps.rewards.serving.requests import ScoreRequest, read_document
from apps.rewards.serving.response import ScoreResponse
from apps.rewards.serving.routing import require_reasons, with_reasons
from apps.rewards.serving.state import ServiceState
from apps.rewards.serving.trajectory_lookup import load_stored_trajectories
from workers.engine.hacking_probes import PROBES, can_be_probed
from workers.errors import InvalidRecord, RewardError
from workers.schema import ScoreInput, TrajectoryId
from workers.schema.decode import convert

POINTER = "/trajectory_ids"


async def dry_run(request: Request, state: ServiceState, caller: Caller) -> list[dict[str, Any]]:
    """{"spec", "artifacts": {model: artifact}, "judges": {name: key}, "trajectory_ids", "reasons", "details",
    "probe"} to results.

    reasons: whether each result has them, false by default. details: whether each has `values`, of every component
    before its weight, and `component_steps`. probe: one of workers.engine.hacking_probes, by which the trajectories are
    changed before they are scored. The models are unloaded afterwards.
    """
    if caller.name != INTERNAL:
        raise Problem(f"There is no {request.url.path} here.", status=404)
    parsers = state.intake.parsers(caller)
    document = await state.intake.read(request, _parse, caller, parsers)
    artifacts = convert(document.get("artifacts"), dict[str, str], pointer="/artifacts")
    judges = convert(document.get("judges", {}), dict[str, int], pointer="/judges")
    ids = convert(document.get("trajectory_ids"), list[str], pointer=POINTER)
    spec = convert(document.get("spec"), dict, pointer="/spec")
    is_explained = convert(document.get("reasons", False), bool, pointer="/reasons")
    is_detailed = convert(document.get("details", False), bool, pointer="/details")
    probe = _probe(document.get("probe"))
    asked = ScoreRequest(
        tuple(ScoreInput(content=TrajectoryId(number)) for number in ids),
        pointer=POINTER,
        with_reasons=is_explained,
    )
    version = await state.deployments.load_ephemeral(RevisionInfo(0, spec, artifacts, judges), caller.project)
    with version.lease():
        version.retire()  # closed as soon as this is answered
        if is_explained:
            require_reasons(version)
        with asked.item_error_scope():
            items = await parsers.run(_load, asked.items, caller.project, probe, version.loads_pictures)
            prepared = await parsers.run(version.render, items)
            prepared = replace(prepared, with_component_steps=is_detailed)
            scores = await version.score(prepared)
            if is_explained:
                explainers = state.explainers.slot(caller)
                scores = await explainers.run(with_reasons, version, prepared.items, scores, lambda _: None)
    results = ScoreResponse("dry run", caller.project, 0, asked, items, items, scores, 0.0).results()
    if is_detailed:
        for result, score in zip(results, scores, strict=True):
            result |= {"values": score.values, "component_steps": score.component_steps}
    return results


def _probe(value: Any) -> str | None:
    if value is not None and value not in PROBES:
        raise InvalidRecord(f"there is no probe {value!r}; known are {', '.join(PROBES)}.", pointer="/probe")
    return value


def _load(
    items: Sequence[ScoreInput], project: str, probe: str | None, with_pictures: bool
) -> list[ScoreInput]:
    """With the reference answer of the task, which components may need. Raises RewardError for a trajectory that the
    probe cannot change."""
    keys = [item.content.id for item in items if isinstance(item.content, TrajectoryId)]
    loaded = []
    for index, content in enumerate(load_stored_trajectories(keys, project, with_pictures=with_pictures)):
        if probe is not None:
            if not can_be_probed(content):
                raise RewardError("the trajectory has no words to change.", pointer=f"/{index}")
            content = PROBES[probe](content)
        loaded.append(ScoreInput(content=content, reference=content.task.reference))
    return loaded


def _parse(body: bytes, headers: Mapping[str, str]) -> dict[str, Any]:
    return read_document(body)
