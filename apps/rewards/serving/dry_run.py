"""Scoring stored trajectories by a spec that is not deployed. For the web process only."""

from starlette.requests import Request

from apps.rewards.serving.access import INTERNAL, Caller
from apps.rewards.serving.body import read_body
from apps.rewards.serving.directory import RevisionInfo
from apps.rewards.serving.problems import Problem
from apps.rewards.serving.requests import ScoreRequest, read_document, whole_items
from apps.rewards.serving.scored import Scored
from apps.rewards.serving.state import State
from workers.schema import Item, TrajectoryId
from workers.schema.decode import convert

POINTER = "/trajectory_ids"


async def dry_run(request: Request, state: State, caller: Caller) -> Scored:
    """{"spec", "artifacts": {model: artifact}, "judges": {name: key}, "trajectory_ids"}.

    Its models are let go of again afterwards.
    """
    if caller.name != INTERNAL:
        raise Problem(f"There is no {request.url.path} here.", status=404)
    document = await state.in_reader(read_document, await read_body(request))
    artifacts = convert(document.get("artifacts"), dict[str, str], pointer="/artifacts")
    judges = convert(document.get("judges", {}), dict[str, int], pointer="/judges")
    ids = convert(document.get("trajectory_ids"), list[str], pointer=POINTER)
    spec = convert(document.get("spec"), dict, pointer="/spec")
    asked = ScoreRequest(tuple(Item(content=TrajectoryId(one)) for one in ids), pointer=POINTER)
    version = await state.deployments.undeployed(RevisionInfo(0, spec, artifacts, judges), caller.project)
    with version.lease():
        version.retire()  # closed as soon as this is answered
        with asked.placing():
            items = await state.in_reader(whole_items, asked.items, caller.project)
            scores = await version.score(await state.in_reader(version.render, items))
    return Scored("dry run", 0, asked, scores, 0.0)
