"""What a run would take, told from the newest run of its kind."""

import pytest
from django.test import Client
from django.urls import reverse

from apps.core.jobs.job_queue import JobState
from apps.datasets.models import DatasetVersion
from apps.training.estimate import estimate
from apps.training.models import TrainingRun
from workers.schema.builtin_recipes import builtin_recipes
from workers.schema.recipe import parse_recipe, recipe_to_dict


def recipe(**given: object) -> dict:
    return recipe_to_dict(parse_recipe(given))


def ended(
    dataset_version: DatasetVersion, values: dict, *, seconds: float = 30.0, **more: object
) -> TrainingRun:
    """5 steps of 10 feedback records (all there were) took 20 s, everything else 10 s."""
    trained = {"examples": 10, "steps": 5, "seconds": 20.0, "peak_memory": 2 * 10**9}
    fields = {"state": JobState.SUCCEEDED, "attempt": 1, "report": {"seconds": seconds, "train": trained}}
    return TrainingRun.objects.create(
        project=dataset_version.project,
        dataset_version=dataset_version,
        recipe_name="x",
        recipe=values,
        model_name="x",
        **fields | more,
    )


@pytest.fixture
def twelve(dataset_version: DatasetVersion) -> DatasetVersion:
    """Twelve comparisons, of which ten are to be trained on."""
    dataset_version.records, dataset_version.splits = (
        {"pairwise": 12},
        {"train": 10, "validation": 1, "test": 1},
    )
    dataset_version.save()
    return dataset_version


def test_by_the_newest_run_of_its_kind(twelve: DatasetVersion) -> None:
    run = ended(twelve, recipe())
    found = estimate(twelve, recipe(epochs=7))
    # 20 s for 5 epochs over 10 records make 4 s an epoch; 7 of them, and 10 s for the rest.
    assert (found.records, found.epochs, found.like, found.seconds) == (10, 7, run, pytest.approx(38.0))
    assert (found.memory, found.time) == (2 * 10**9, "a minute")
    assert estimate(twelve, recipe(epochs=7, folds=4)).seconds == pytest.approx(10 + 35 * 4)


def test_only_what_the_objective_reads_counts(twelve: DatasetVersion) -> None:
    twelve.records = {"pairwise": 6, "outcome": 6}
    assert estimate(twelve, recipe(objective="outcome")).records == 5
    assert estimate(twelve, recipe(objective="joint")).records == 10


@pytest.mark.parametrize(
    ("values", "more"),
    [
        ({"unfrozen": True}, {}),
        ({"max_tokens": 512}, {}),
        ({"folds": 5}, {}),
        ({"heads_only": True}, {}),
        ({"annotators": "learnt"}, {}),
        ({"generators": ["swap", "hard_negative"]}, {}),
        ({}, {"attempt": 2}),
        ({}, {"state": JobState.FAILED}),
        ({}, {"report": {"preference": None}}),
    ],
)
def test_runs_that_cannot_tell(twelve: DatasetVersion, values: dict, more: dict) -> None:
    ended(twelve, recipe(**values), **more)
    found = estimate(twelve, recipe())
    assert (found.like, found.seconds, found.memory) == (None, None, None)


def test_the_same_data_and_objective_come_first(twelve: DatasetVersion) -> None:
    same = ended(twelve, recipe())
    ended(twelve, recipe(objective="outcome"))
    assert estimate(twelve, recipe()).like == same


def test_a_search_takes_at_most_its_budget_and_what_follows_grows(twelve: DatasetVersion) -> None:
    """Of 430 s the search took 400; reading and evaluating 10, the fit 20."""
    search = recipe(search=["linear", "frozen"])
    run = ended(twelve, search)
    run.report |= {"seconds": 430.0, "search": {"seconds": 400.0}}
    run.save()
    assert estimate(twelve, search).seconds == pytest.approx(430)
    twelve.records = {"pairwise": 24}
    assert estimate(twelve, search).seconds == pytest.approx(600 + 2 * 30)
    short = recipe(search=["linear", "frozen"], search_seconds=50.0, folds=3)
    assert estimate(twelve, short).seconds == pytest.approx(50 + 2 * (10 + 4 * 20))


def test_runs_that_train_more_often_tell_of_each_other(twelve: DatasetVersion) -> None:
    values = recipe(annotators="learnt")
    run = ended(twelve, values)
    ended(twelve, recipe())
    assert estimate(twelve, values).like == run


def test_a_run_from_before_base_weights_could_be_chosen_is_similar(twelve: DatasetVersion) -> None:
    values = recipe()
    run = ended(twelve, {key: value for key, value in values.items() if key != "base_weights"})
    assert estimate(twelve, values).like == run
    assert estimate(twelve, values | {"base_weights": "float32"}).like is None


class TestOnTheForm:
    def ask(self, researcher_client: Client, **fields: object) -> str:
        answer = researcher_client.post(reverse("training:run-estimate", args=["desk"]), fields)
        assert answer.status_code == 200
        return answer.content.decode()

    def test_before_anything_is_chosen(self, twelve: DatasetVersion, researcher_client: Client) -> None:
        ended(twelve, recipe(search=["linear", "hybrid", "frozen", "unfrozen"]), seconds=3670.0)
        page = researcher_client.get(reverse("training:run-create", args=["desk"])).content.decode()
        assert (
            "10 feedback records in the training split. The search for a recipe takes up to 600 s.</p>"
            in page
        )
        assert "1 hours" not in page and "up to 61 minutes" in page
        assert "Time, with the search" in page and "the most recent similar run" in page

    def test_what_the_objective_reads_is_named(
        self, twelve: DatasetVersion, researcher_client: Client
    ) -> None:
        DatasetVersion.objects.filter(pk=twelve.pk).update(records={"pairwise": 6, "outcome": 6})
        page = self.ask(
            researcher_client, dataset=twelve.pk, recipe="own", toml='objective = "bradley_terry"'
        )
        assert (
            "About 5 comparisons, which the objective reads, of 10 feedback records in the training split"
            in page
        )

    def test_auto_as_it_fits_the_dataset(self, twelve: DatasetVersion, researcher_client: Client) -> None:
        twelve.usable_pairs, twelve.records = 0, {"outcome": 12}
        twelve.save()
        page = researcher_client.get(reverse("training:run-create", args=["desk"])).content.decode()
        assert "10 feedback records in the training split" in page
        assert "objective = &quot;outcome&quot;" in page

    def test_as_the_form_stands(self, twelve: DatasetVersion, researcher_client: Client) -> None:
        page = self.ask(
            researcher_client, dataset=twelve.pk, recipe="own", toml='objective = "progress"\nepochs = 3'
        )
        assert "for up to 3 epochs" in page
        assert "no similar run has succeeded" in page
        assert "aggregation = &quot;sum&quot;</code> <span" in page
        assert not TrainingRun.objects.exists()

    def test_a_wrong_key_is_told(self, twelve: DatasetVersion, researcher_client: Client) -> None:
        page = self.ask(researcher_client, dataset=twelve.pk, recipe="own", toml="epoch = 3")
        assert "unknown key &#x27;epoch&#x27;" in page

    def test_nonsense_is_no_error(self, twelve: DatasetVersion, researcher_client: Client) -> None:
        assert "for up to 20 epochs" in self.ask(
            researcher_client, dataset="x", recipe="bradley-terry", seed="-1"
        )
        assert "There is no recipe" in self.ask(researcher_client, dataset=10**20, recipe="none")


def test_of_a_decoder_what_follows_from_its_shape(twelve: DatasetVersion, researcher_client: Client) -> None:
    values = recipe_to_dict(builtin_recipes()["8b-qlora"])
    found = estimate(twelve, values)
    assert found.like is None and found.decoder is not None
    assert 20e9 < found.decoder.memory < 80e9
    assert estimate(twelve, recipe()).decoder is None
    assert estimate(twelve, values | {"heads_only": True}).decoder is None
    assert estimate(twelve, values | {"decoder": "of an unknown shape"}).decoder is None
    path = reverse("training:run-estimate", args=["desk"])
    given = {"dataset": twelve.pk, "recipe": "8b-qlora", "seed": 0}
    page = researcher_client.post(path, given).content.decode()
    assert "GPU memory, computed" in page
    assert "<dd>51 GB</dd>" in page  # as docs/gpu.md has it
