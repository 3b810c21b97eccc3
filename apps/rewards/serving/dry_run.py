"""Scoring stored trajectories by a spec that is not deployed. For the web process only."""

from collections.abc import Mapping
from typing import Any

from starlette.requests import Request

from apps.rewards.serving.access import INTERNAL, Caller
from apps.rewards.serving.problems import Problem
from apps.rewards.serving.registry import RevisionInfo
from apps.rewards.serving.requests import ScoreRequest, load_items, read_document
from apps.rewards.serving.response import ScoreResponse
from apps.rewards.serving.routing import require_reasons, with_reasons
from apps.rewards.serving.state import ServiceState
from workers.schema import ScoreInput, TrajectoryId
from workers.schema.decode import convert

POINTER = "/trajectory_ids"


async def dry_run(request: Request, state: ServiceState, caller: Caller) -> list[dict[str, Any]]:
    """{"spec", "artifacts": {model: artifact}, "judges": {name: key}, "trajectory_ids", "reasons"} to results.

    reasons: whether each result has them, false by default. The models are unloaded afterwards.
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
            items = await parsers.run(load_items, asked.items, caller.project)
            prepared = await parsers.run(version.render, items)
            scores = await version.score(prepared)
            if is_explained:
                explainers = state.explainers.slot(caller)
                scores = await explainers.run(with_reasons, version, prepared.items, scores, lambda _: None)
    return ScoreResponse("dry run", caller.project, 0, asked, items, items, scores, 0.0).results()


def _parse(body: bytes, headers: Mapping[str, str]) -> dict[str, Any]:
    return read_document(body)
