"""By which recipe a cycle trains, of models of every kind."""

from typing import Any

import pytest

from apps.accounts.models import AuditEvent, Project, User
from apps.datasets.models import DatasetVersion
from apps.retraining.cycle import advance_cycle, start_cycle
from apps.retraining.models import RetrainingCycle
from apps.rewards.services import deploy
from apps.training.models import RewardModel, TrainingRun
from workers.schema.builtin_recipes import builtin_recipes, searched_recipe
from workers.schema.recipe import FULL_FINE_TUNING, Recipe, parse_recipe, recipe_to_dict

STEP_ENCODER = {"kind": "step-encoder"}
UNFROZEN_JOINT = {"objective": "joint", "unfrozen": True, "epochs": 3, "batch_tasks": 8, "folds": 3}


def started(
    project: Project,
    by: User,
    *,
    backbone: dict[str, Any],
    recipe: Recipe | None = None,
    name: str = "own",
    report: dict[str, Any] | None = None,
    objective: str = "bradley_terry",
    heads_only: bool = True,
) -> RetrainingCycle:
    """A cycle whose dataset, with comparisons, is frozen; of a model that is imported where it has no recipe."""
    dataset_version = DatasetVersion.objects.create(
        project=project, name="d", version=1, state="succeeded", usable_pairs=9, records={"pairwise": 9}
    )
    run = None
    if recipe is not None:
        run = TrainingRun.objects.create(
            project=project,
            dataset_version=dataset_version,
            recipe_name=name,
            recipe=recipe_to_dict(recipe),
            report=report,
            model_name="m",
        )
    manifest = {
        "aggregation": "value",
        "heads": {"ensemble": (recipe or Recipe()).ensemble},
        "backbone": backbone,
        "objective": objective,
    }
    model = RewardModel.objects.create(
        project=project, name="m", version=1, artifact="models/1", manifest=manifest, training_run=run
    )
    endpoint = deploy(model=model, endpoint_name="reward", project=project, by=None).endpoint
    cycle = start_cycle(endpoint=endpoint, by=by, heads_only=heads_only, automatic=True)
    cycle.dataset_version, cycle.stage = dataset_version, RetrainingCycle.Stage.TRAINING
    cycle.save()
    return cycle


def trained_by(cycle: RetrainingCycle) -> TrainingRun:
    advance_cycle(cycle)
    return TrainingRun.objects.latest("pk")


def test_heads_of_a_model_whose_encoder_auto_had_trained(project: Project, researcher: User) -> None:
    """The schedule for training the encoder is not that of heads on a frozen one."""
    auto, report = builtin_recipes()["auto"], {"search": {"chosen": "unfrozen"}}
    cycle = started(project, researcher, backbone=STEP_ENCODER, recipe=auto, name="auto", report=report)
    run = trained_by(cycle)
    assert run.recipe == recipe_to_dict(parse_recipe({"heads_only": True}))
    assert run.parent == cycle.previous_model


@pytest.mark.parametrize("heads_only", [True, False])
def test_what_a_recipe_says_of_the_feedback_stays(
    project: Project, researcher: User, heads_only: bool
) -> None:
    recipe = parse_recipe(UNFROZEN_JOINT | {"label_smoothing": 0.1})
    run = trained_by(
        started(project, researcher, backbone=STEP_ENCODER, recipe=recipe, heads_only=heads_only)
    )
    told = {"objective": "joint", "label_smoothing": 0.1}
    kept = told | {"heads_only": True} if heads_only else UNFROZEN_JOINT | told
    assert run.recipe == recipe_to_dict(parse_recipe(kept))
    assert (run.parent is not None) is heads_only


def test_heads_of_a_decoder_that_was_trained_whole(
    project: Project, researcher: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("apps.training.recipes.check_names", lambda *_: {})
    shape = {"backbone": "decoder", "decoder": "qwen", "lora_rank": 0}
    cycle = started(project, researcher, backbone={"kind": "decoder"}, recipe=parse_recipe(shape))
    run = trained_by(cycle)
    assert run.recipe == recipe_to_dict(parse_recipe(shape | {"heads_only": True}))
    assert run.recipe["learning_rate"] != FULL_FINE_TUNING["learning_rate"]


@pytest.mark.parametrize("kind", ["linear", "hybrid"])
@pytest.mark.parametrize("is_imported", [False, True])
def test_a_linear_model_is_fitted_whole_with_the_served_one_as_parent(
    project: Project, researcher: User, kind: str, is_imported: bool
) -> None:
    recipe = parse_recipe({"backbone": kind, "objective": "joint", "folds": 5})
    cycle = started(
        project,
        researcher,
        backbone={"kind": kind},
        recipe=None if is_imported else recipe,
        objective="joint",
    )
    run = trained_by(cycle)
    assert (run.recipe["backbone"], run.recipe["objective"], run.recipe["heads_only"]) == (
        kind,
        "joint",
        False,
    )
    assert (run.parent, run.recipe["folds"]) == (cycle.previous_model, 0)
    cycle.refresh_from_db()
    assert cycle.heads_only is False
    assert AuditEvent.objects.get(verb="retraining.started").data["heads_only"] is False


def test_a_generative_model_is_trained_whole(
    project: Project, researcher: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("apps.training.recipes.check_names", lambda *_: {})
    recipe = parse_recipe({"backbone": "decoder", "decoder": "qwen", "objective": "generative"})
    run = trained_by(started(project, researcher, backbone={"kind": "generative"}, recipe=recipe))
    assert (run.recipe, run.parent) == (recipe_to_dict(recipe), None)


@pytest.mark.parametrize(
    ("name", "objective", "expected"),
    [
        ("auto", "outcome", "joint"),
        ("auto", "process", "joint"),
        ("auto", "bradley_terry", "bradley_terry"),
        ("own", "outcome", "outcome"),
    ],
)
def test_comparisons_are_learnt_from_where_auto_had_none(
    project: Project, researcher: User, name: str, objective: str, expected: str
) -> None:
    recipe = parse_recipe({"objective": objective, "search": ["linear", "frozen"]})
    report = {"search": {"chosen": "frozen"}}
    cycle = started(project, researcher, backbone=STEP_ENCODER, recipe=recipe, name=name, report=report)
    run = trained_by(cycle)
    chosen = searched_recipe(parse_recipe({"objective": expected, "search": ["frozen"]}), "frozen")
    assert run.recipe == recipe_to_dict(chosen) | {"heads_only": True}
