import pytest

from apps.accounts.models import AuditEvent, Project
from apps.core.errors import Conflict, DomainError, NotFound
from apps.core.jobs.job_queue import ClaimLost, JobState, claim_next
from apps.datasets.models import Snapshot
from apps.datasets.services import freeze_snapshot
from apps.training import services
from apps.training.models import Run
from tests.datasets.feedback import freeze, import_pairs, pair


def start(snapshot: Snapshot, **options: object) -> Run:
    options = {"recipe": "bradley-terry", "by": None} | options
    return services.start_run(project=snapshot.project, snapshot=snapshot, **options)  # type: ignore[arg-type]


def test_a_run_holds_its_whole_recipe(snapshot: Snapshot) -> None:
    run = start(snapshot, seed=7)
    assert (run.state, run.recipe_name, run.model_name, run.seed) == (
        JobState.QUEUED,
        "bradley-terry",
        "first",
        7,
    )
    assert run.recipe["objective"] == "bradley_terry"
    assert run.recipe["epochs"] == 20
    assert AuditEvent.objects.filter(project=snapshot.project, verb="run.started").exists()


def test_own_toml_and_values(snapshot: Snapshot) -> None:
    assert start(snapshot, recipe="epochs = 2").recipe["epochs"] == 2
    assert start(snapshot, recipe={"epochs": 3}).recipe["epochs"] == 3


def test_an_unknown_key_is_named_with_its_pointer(snapshot: Snapshot) -> None:
    with pytest.raises(DomainError, match="unknown key 'epoch'") as caught:
        start(snapshot, recipe="epoch = 2")
    assert caught.value.pointer == "/epoch"
    assert not Run.objects.exists()


def test_an_unknown_recipe_lists_those_there_are(snapshot: Snapshot) -> None:
    services.save_recipe(project=snapshot.project, name="ours", toml="epochs = 2", by=None)
    with pytest.raises(NotFound, match=r"known are bradley-terry, .*ours"):
        start(snapshot, recipe="theirs")
    assert start(snapshot, recipe="ours").recipe["epochs"] == 2


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
    snapshot = freeze(project)
    expected = f"desk/first@1 has {pairs} usable pairs?; label at least two and freeze again."
    with pytest.raises(DomainError, match=expected):
        start(snapshot)
    assert not Run.objects.exists()


def test_only_a_frozen_snapshot_of_the_project(snapshot: Snapshot) -> None:
    waiting = freeze_snapshot(project=snapshot.project, name="first", by=None)
    with pytest.raises(DomainError, match="is queued"):
        start(waiting)
    other = Project.objects.create(slug="other", name="Other")
    with pytest.raises(DomainError, match="belongs to another project"):
        services.start_run(project=other, snapshot=snapshot, recipe="bradley-terry", by=None)


def test_cancel_before_it_runs_then_resume(snapshot: Snapshot) -> None:
    run = services.cancel_run(run=start(snapshot), by=None)
    assert run.state == JobState.CANCELLED
    with pytest.raises(Conflict, match="cancelled already"):
        services.cancel_run(run=run, by=None)
    assert services.resume_run(run=run, by=None).state == JobState.QUEUED
    with pytest.raises(Conflict, match="only a failed or cancelled run"):
        services.resume_run(run=run, by=None)


def test_models_are_numbered_and_a_lost_claim_registers_none(snapshot: Snapshot) -> None:
    for version in (1, 2):
        start(snapshot)
        run = claim_next(Run)
        assert run is not None
        model = services.register_model(run=run, artifact="models/x", manifest={}, report={"seconds": 1})
        assert str(model) == f"desk/first@{version}"
        run.refresh_from_db()
        assert (run.state, run.report) == (JobState.SUCCEEDED, {"seconds": 1})
        assert model.evaluations.get().snapshot == snapshot
        with pytest.raises(ClaimLost):
            services.register_model(run=run, artifact="models/x", manifest={}, report={})


def test_the_same_line_twice_is_one_event(snapshot: Snapshot) -> None:
    start(snapshot)
    run = claim_next(Run)
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
