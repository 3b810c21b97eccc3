import pytest

from apps.accounts.models import AuditEvent, Project
from apps.core.errors import Conflict, DomainError, NotFound
from apps.core.jobs.job_queue import ClaimLost, JobState, claim_next
from apps.datasets.models import DatasetVersion
from apps.datasets.services import freeze_dataset
from apps.training import services
from apps.training.models import TrainingRun
from tests.datasets.feedback import freeze, import_pairs, pair


def start(dataset_version: DatasetVersion, **options: object) -> TrainingRun:
    options = {"recipe": "bradley-terry", "by": None} | options
    return services.start_run(project=dataset_version.project, dataset_version=dataset_version, **options)  # type: ignore[arg-type]


def test_a_run_holds_its_whole_recipe(dataset_version: DatasetVersion) -> None:
    run = start(dataset_version, seed=7)
    assert (run.state, run.recipe_name, run.model_name, run.seed) == (
        JobState.QUEUED,
        "bradley-terry",
        "first",
        7,
    )
    assert run.recipe["objective"] == "bradley_terry"
    assert run.recipe["epochs"] == 20
    assert AuditEvent.objects.filter(project=dataset_version.project, verb="run.started").exists()


def test_own_toml_and_values(dataset_version: DatasetVersion) -> None:
    assert start(dataset_version, recipe="epochs = 2").recipe["epochs"] == 2
    assert start(dataset_version, recipe={"epochs": 3}).recipe["epochs"] == 3


def test_an_unknown_key_is_named_with_its_pointer(dataset_version: DatasetVersion) -> None:
    with pytest.raises(DomainError, match="unknown key 'epoch'") as caught:
        start(dataset_version, recipe="epoch = 2")
    assert caught.value.pointer == "/epoch"
    assert not TrainingRun.objects.exists()


def test_an_unknown_recipe_lists_those_there_are(dataset_version: DatasetVersion) -> None:
    services.save_recipe(project=dataset_version.project, name="ours", toml="epochs = 2", by=None)
    with pytest.raises(NotFound, match=r"available: auto, bradley-terry, .*ours"):
        start(dataset_version, recipe="theirs")
    assert start(dataset_version, recipe="ours").recipe["epochs"] == 2


def test_a_bad_recipe_is_not_saved(project: Project) -> None:
    with pytest.raises(DomainError, match="not valid TOML"):
        services.save_recipe(project=project, name="ours", toml="epochs = ", by=None)
    assert not project.recipes.exists()


@pytest.mark.parametrize("pairs", [0, 1])
def test_fewer_than_two_usable_pairs(project: Project, pairs: int) -> None:
    same = {"prompt": "hi", "response": "equal"}
    equal = {
        "task": {"id": "equal"},
        "a": same,
        "b": {"prompt": "hi", "response": "other"},
        "criterion": "polite",
    }
    import_pairs(
        project, [pair(f"task-{n}") for n in range(pairs)] + [equal | {"choice": "a", "annotator": "ann"}]
    )
    dataset_version = freeze(project)
    expected = f"desk/first@1 has {pairs} usable pairs?; label at least two and freeze again."
    with pytest.raises(DomainError, match=expected):
        start(dataset_version)
    assert not TrainingRun.objects.exists()


def test_only_a_frozen_dataset_version_of_the_project(dataset_version: DatasetVersion) -> None:
    waiting = freeze_dataset(project=dataset_version.project, name="first", by=None)
    with pytest.raises(DomainError, match="is queued"):
        start(waiting)
    other = Project.objects.create(slug="other", name="Other")
    with pytest.raises(DomainError, match="is not in the project"):
        services.start_run(project=other, dataset_version=dataset_version, recipe="bradley-terry", by=None)


def test_cancel_before_it_runs_then_resume(dataset_version: DatasetVersion) -> None:
    run = services.cancel_run(run=start(dataset_version), by=None)
    assert run.state == JobState.CANCELLED
    with pytest.raises(Conflict, match="is already cancelled"):
        services.cancel_run(run=run, by=None)
    assert services.resume_run(run=run, by=None).state == JobState.QUEUED
    with pytest.raises(Conflict, match="only a failed or cancelled run"):
        services.resume_run(run=run, by=None)


def test_models_are_numbered_and_a_lost_claim_registers_none(dataset_version: DatasetVersion) -> None:
    for version in (1, 2):
        start(dataset_version)
        run = claim_next(TrainingRun)
        assert run is not None
        model = services.register_model(run=run, artifact="models/x", manifest={}, report={"seconds": 1})
        assert str(model) == f"desk/first@{version}"
        run.refresh_from_db()
        assert (run.state, run.report) == (JobState.SUCCEEDED, {"seconds": 1})
        assert model.evaluations.get().dataset_version == dataset_version
        with pytest.raises(ClaimLost):
            services.register_model(run=run, artifact="models/x", manifest={}, report={})


def test_the_same_line_twice_is_one_event(dataset_version: DatasetVersion) -> None:
    start(dataset_version)
    run = claim_next(TrainingRun)
    assert run is not None
    services.record_events(run=run, events=[(1, {"step": 1, "loss": 0.5}), (2, {"step": 2})])
    services.record_events(run=run, events=[(2, {"step": 2, "loss": 0.4}), (3, {"step": 3})])
    stored = dict(run.events.values_list("seq", "data"))
    assert stored == {1: {"step": 1, "loss": 0.5}, 2: {"step": 2, "loss": 0.4}, 3: {"step": 3}}
    services.forget_events(run=run, beyond=1)
    assert run.events.count() == 1
    run.attempt += 1
    with pytest.raises(ClaimLost):
        services.record_events(run=run, events=[(2, {})])
