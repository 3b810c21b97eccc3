"""A served reward with its model and dataset, for tests of pages and of a browser."""

from apps.accounts.models import Project
from apps.core.jobs import job_queue
from apps.core.jobs.job_queue import JobState
from apps.rewards.models import Endpoint, ScoreSample
from apps.rewards.services import deploy
from apps.training import runner
from apps.training.models import TrainingRun
from apps.training.services import start_run
from tests.datasets.feedback import freeze, import_pairs, pair

ANSWER = [
    {"role": "user", "content": "Please help me with task-3."},
    {"role": "assistant", "content": "Gladly: task-3 is done, and I checked it."},
]


def train_and_serve(project: Project) -> ScoreSample:
    """A reward of a model trained on annotations of ann, and of bea, who chose the opposite on one task."""
    pairs = [pair(f"task-{n}", annotator="ann") for n in range(20)]
    import_pairs(project, [*pairs, pair("task-3", annotator="bea", choice="b")])
    recipe = {"epochs": 3, "ensemble": 1}
    run = start_run(project=project, dataset_version=freeze(project), recipe=recipe, by=None, name="desk")
    claimed = job_queue.claim_next(TrainingRun)
    assert claimed is not None
    runner.execute(claimed)
    run.refresh_from_db()
    assert run.state == JobState.SUCCEEDED, run.error
    return scored(deploy(model=run.model, endpoint_name="reward", project=project, by=None).endpoint)


def scored(endpoint: Endpoint, version: int = 1) -> ScoreSample:
    result = {"reward": 0.5, "raw": 0.5, "baseline": 0.0, "components": {"desk": 0.5}, "flags": []}
    return ScoreSample.objects.create(
        endpoint=endpoint,
        version=version,
        caller="tsk_1",
        item={"messages": ANSWER},
        result=result,
        reward=0.5,
    )
