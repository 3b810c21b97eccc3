"""The sample project in the browser: created at once, filled by a job."""

from django.db import transaction

from apps.accounts.models import Membership, Project, Role, User
from apps.accounts.new_projects import create_own_project
from apps.core.errors import DomainError
from apps.core.jobs import job_queue
from apps.core.jobs.job_queue import JobState, finish, keep_heartbeat
from apps.demo import loop
from apps.demo.models import SampleLoad
from apps.training.models import TrainingRun
from apps.training.services import start_run

LOAD_SAMPLES = "apps.demo.tasks.load_samples"
NAME = "Sample: a support desk"
# The quickest of what the demo tries: seconds on a CPU.
_RECIPE = {"search": ["linear"]}


@transaction.atomic
def open_sample(*, by: User) -> Project:
    """The sample project that the user owns, or a new one that a worker fills. A failed load is tried again."""
    User.objects.select_for_update().get(pk=by.pk)  # two clicks make one project
    owned = Membership.objects.filter(user=by, role=Role.OWNER).values("project")
    load = SampleLoad.objects.select_related("project").filter(project__in=owned, created_by=by).first()
    if load is None:
        project = create_own_project(name=NAME, by=by)
        load = SampleLoad.objects.create(project=project, created_by=by)
    elif load.state in (JobState.FAILED, JobState.CANCELLED):
        job_queue.requeue(load)
    job_queue.nudge_on_commit(LOAD_SAMPLES)
    return load.project


def fill_sample(load: SampleLoad) -> None:
    """Trajectories, feedback, a campaign, a dataset version, and a training run. What is there is not repeated."""
    project, by = load.project, load.created_by
    if by is None:
        finish(load, JobState.FAILED, error="The person who opened the sample has left.")
        return
    with keep_heartbeat(load) as beat:
        try:
            beat.progress = {"done": 0, "total": 3, "note": "importing trajectories and feedback"}
            job_queue.renew_heartbeat(load, progress=beat.progress)
            loop.load_sample(project, by)
            beat.check()
            beat.progress = {"done": 1, "total": 3, "note": "creating a campaign"}
            loop.make_campaign(project, by)
            beat.check()
            beat.progress = {"done": 2, "total": 3, "note": "freezing the feedback"}
            dataset_version = loop.freeze(project, by, again=False)
            if not TrainingRun.objects.filter(dataset_version=dataset_version).exists():
                start_run(
                    project=project,
                    dataset_version=dataset_version,
                    recipe=_RECIPE,
                    by=by,
                    name=loop.DATASET,
                )
        except job_queue.Cancelled:
            finish(load, JobState.CANCELLED)
        except DomainError as error:
            finish(load, JobState.FAILED, error=error.message)
        else:
            finish(load, JobState.SUCCEEDED, progress={"done": 3, "total": 3, "note": ""})
