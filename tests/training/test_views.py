"""Pages of runs and models, over a child process that plays its part."""

import html
import json
import re

import pytest
from django.test import Client
from django.urls import reverse

from apps.accounts.models import User
from apps.core.jobs.job_queue import JobState, claim_next
from apps.datasets.models import DatasetVersion
from apps.training import runner, services
from apps.training.models import Recipe, RewardModel, TrainingRun
from tests.training import fake_child as child

pytestmark = [pytest.mark.usefixtures("fake_child")]


def url(name: str, *args: object) -> str:
    return reverse(f"training:{name}", args=["desk", *args])


@pytest.fixture
def finished(dataset_version: DatasetVersion) -> TrainingRun:
    return finish(dataset_version, child.COMPLETE)


def finish(dataset_version: DatasetVersion, behaviour: float) -> TrainingRun:
    services.start_run(
        project=dataset_version.project,
        dataset_version=dataset_version,
        recipe={"label_smoothing": behaviour},
        name="",
        by=None,
    )
    run = claim_next(TrainingRun)
    assert run is not None
    runner.execute(run)
    return run


def drawn(page: str, name: str) -> dict:
    found = re.search(rf'<(\w+) id="{name}-data"[^>]*>(.*?)</\1>', page)
    assert found
    return json.loads(html.unescape(found[2]))


class TestStarting:
    def fields(self, dataset_version: DatasetVersion, **more: object) -> dict:
        return {"dataset": dataset_version.pk, "recipe": "bradley-terry", "seed": 3, "name": "polite"} | more

    def test_by_a_recipes_name(
        self, dataset_version: DatasetVersion, researcher_client: Client, researcher: User
    ) -> None:
        answer = researcher_client.post(url("run-create"), self.fields(dataset_version))
        run = TrainingRun.objects.get()
        assert (answer.status_code, answer["Location"]) == (302, url("run-detail", run.pk))
        assert (run.recipe_name, run.seed, run.started_by, run.state) == (
            "bradley-terry",
            3,
            researcher,
            JobState.QUEUED,
        )
        assert "in the queue" in researcher_client.get(answer["Location"]).content.decode()

    def test_by_toml_that_is_kept_under_a_name(
        self, dataset_version: DatasetVersion, researcher_client: Client
    ) -> None:
        own = self.fields(dataset_version, recipe="own", toml="epochs = 3", save_as="short")
        choices = researcher_client.get(url("run-create")).context["form"].fields["recipe"].choices
        own["recipe"] = choices[-1][0]
        assert researcher_client.post(url("run-create"), own).status_code == 302
        run = TrainingRun.objects.get()
        assert (run.recipe_name, run.recipe["epochs"]) == ("short", 3)
        assert Recipe.objects.get().toml == "epochs = 3"

    def test_a_key_that_is_none_is_shown_at_the_recipe(
        self, dataset_version: DatasetVersion, researcher_client: Client
    ) -> None:
        choices = researcher_client.get(url("run-create")).context["form"].fields["recipe"].choices
        own = self.fields(dataset_version, recipe=choices[-1][0], toml="epoch = 3", save_as="short")
        answer = researcher_client.post(url("run-create"), own)
        assert answer.status_code == 422
        assert "unknown key &#x27;epoch&#x27;" in answer.content.decode()
        assert not TrainingRun.objects.exists()
        assert not Recipe.objects.exists()

    def test_a_dataset_of_another_project_is_none(
        self, dataset_version: DatasetVersion, outsider: User, client: Client
    ) -> None:
        client.force_login(outsider)
        answer = client.post(reverse("training:run-create", args=["elsewhere"]), self.fields(dataset_version))
        assert answer.status_code == 422
        assert not TrainingRun.objects.exists()


class TestAWatchedRun:
    def test_its_curves_and_what_it_says(self, finished: TrainingRun, researcher_client: Client) -> None:
        page = researcher_client.get(url("run-detail", finished.pk)).content.decode()
        loss, accuracy = drawn(page, "loss"), drawn(page, "accuracy")
        assert [series["name"] for series in loss["series"]] == ["training loss", "validation loss"]
        assert loss["series"][0]["points"] == [[1, 1.0], [2, 0.5], [3, pytest.approx(1 / 3)]]
        assert accuracy["series"][0]["points"][-1] == [3, 0.8]
        assert "training loss from 1.000 to 0.333" in page
        assert "The model is correct on 90.0 % of 40 held-out comparisons" in page
        assert "beats every trivial baseline" in page
        assert "three steps done" in page

    def test_while_it_goes_on_the_page_asks_for_more(
        self, dataset_version: DatasetVersion, researcher_client: Client
    ) -> None:
        run = services.start_run(
            project=dataset_version.project,
            dataset_version=dataset_version,
            recipe="bradley-terry",
            name="",
            by=None,
        )
        fragment = researcher_client.get(url("run-status", run.pk), headers={"HX-Request": "true"})
        assert "HX-Refresh" not in fragment
        assert f'hx-get="{url("run-status", run.pk)}"' in fragment.content.decode()
        researcher_client.post(url("run-cancel", run.pk))
        ended = researcher_client.get(url("run-status", run.pk), headers={"HX-Request": "true"})
        assert ended["HX-Refresh"] == "true"
        assert "hx-trigger" not in ended.content.decode()

    def test_a_failed_one_says_why_and_is_resumed(
        self, dataset_version: DatasetVersion, researcher_client: Client
    ) -> None:
        run = finish(dataset_version, child.REFUSE)
        page = researcher_client.get(url("run-detail", run.pk)).content.decode()
        assert "The training split has one pair" in page
        assert "Resume" in page
        assert researcher_client.post(url("run-resume", run.pk)).status_code == 302
        run.refresh_from_db()
        assert (run.state, run.error) == (JobState.QUEUED, "")

    def test_hostile_words_of_a_child_are_shown_as_words(
        self, finished: TrainingRun, researcher_client: Client
    ) -> None:
        TrainingRun.objects.filter(pk=finished.pk).update(log_tail="</pre><script>alert(1)</script>")
        page = researcher_client.get(url("run-detail", finished.pk)).content.decode()
        assert "<script>alert(1)" not in page
        assert "&lt;script&gt;alert(1)" in page


def test_lists_and_the_model(finished: TrainingRun, researcher_client: Client) -> None:
    model = RewardModel.objects.get()
    assert "90.0 %" in researcher_client.get(url("run-list")).content.decode()
    assert f"{model.name}@1" in researcher_client.get(url("model-list")).content.decode()
    page = researcher_client.get(url("model-detail", model.pk)).content.decode()
    assert "manage.py deploy" in page
    assert "longer wins" in page
    assert (
        "correct on 90.0 % of held-out comparisons"
        in researcher_client.get(url("project-node")).content.decode()
    )


def test_annotators_and_strangers(
    finished: TrainingRun, annotator: User, outsider: User, client: Client
) -> None:
    model = RewardModel.objects.get()
    pages = [
        *(url(name) for name in ("run-list", "run-create", "run-compare", "model-list")),
        *(url(name, finished.pk) for name in ("run-detail", "run-status")),
        url("model-detail", model.pk),
    ]
    for user, status in ((annotator, 403), (outsider, 404)):
        client.force_login(user)
        assert [client.get(page).status_code for page in pages] == [status] * len(pages)
        for name in ("run-cancel", "run-resume"):
            assert client.post(url(name, finished.pk)).status_code == status


def test_again_with_this_changed(dataset_version: DatasetVersion, researcher_client: Client) -> None:
    """The form holds what differs from the defaults, and what it would start is the same run with the next seed."""
    finished = finish(dataset_version, child.REFUSE)
    assert f"?like={finished.pk}" in researcher_client.get(url("run-detail", finished.pk)).content.decode()
    page = researcher_client.get(url("run-create"), {"like": finished.pk})
    form = page.context["form"]
    assert form["toml"].value() == f"label_smoothing = {child.REFUSE}\n"
    assert (form["seed"].value(), form["name"].value()) == (finished.seed + 1, finished.model_name)
    given = {
        name: value for name in form.fields if (value := form[name].value()) not in (None, "", [], False)
    }
    assert researcher_client.post(url("run-create"), given).status_code == 302
    again = TrainingRun.objects.latest("pk")
    assert (again.recipe, again.seed) == (finished.recipe, finished.seed + 1)
    assert researcher_client.get(url("run-create"), {"like": 10**9}).status_code == 404


class TestSeveralRuns:
    @pytest.fixture
    def three(self, dataset_version: DatasetVersion) -> list[TrainingRun]:
        """Two seeds of one recipe, and one of another."""
        recipe = {"label_smoothing": child.COMPLETE}
        for seed, more in ((0, {}), (1, {}), (0, {"epochs": 3})):
            services.start_run(
                project=dataset_version.project,
                dataset_version=dataset_version,
                recipe=recipe | more,
                seed=seed,
                by=None,
            )
            run = claim_next(TrainingRun)
            assert run is not None
            runner.execute(run)
        return list(TrainingRun.objects.order_by("pk"))

    def test_seeds_are_one_row(self, three: list[TrainingRun], researcher_client: Client) -> None:
        first, second, other = three
        TrainingRun.objects.filter(pk=second.pk).update(report=with_accuracy(second.report, 0.7))
        page = researcher_client.get(url("run-list"), {"by": "seed"})
        groups = [line.row for line in page.context["table"].body]
        assert [group.runs for group in groups] == [[other], [second, first]]
        (_, seeds) = groups
        spread = seeds.measured
        assert (spread.mean, spread.lowest, spread.highest) == (pytest.approx(0.8), 0.7, 0.9)
        assert "[70.0 %, 90.0 %], 2 seeds" in page.content.decode()
        TrainingRun.objects.filter(pk=second.pk).update(seed=first.seed)  # the same again: no second seed
        (_, same) = (
            line.row for line in researcher_client.get(url("run-list"), {"by": "seed"}).context["table"].body
        )
        assert (same.measured.mean, same.measured.seeds) == (0.7, 1)

    def test_runs_are_a_table(self, three: list[TrainingRun], researcher_client: Client) -> None:
        """Sorted by results and parameters; parameters in which the recipes differ are columns, once chosen."""
        first, second, other = three
        TrainingRun.objects.filter(pk=second.pk).update(report=with_accuracy(second.report, 0.7))
        TrainingRun.objects.filter(pk=other.pk).update(report=None)

        def runs(**query: str) -> list[TrainingRun]:
            return [line.row for line in researcher_client.get(url("run-list"), query).context["table"].body]

        assert runs() == [other, second, first]
        assert [run.number for run in runs()] == [3, 2, 1], "numbers are the project's"
        assert runs(sort="-held_out") == [first, second, other] and runs(sort="held_out")[0] == second
        assert runs(sort="recipe.epochs")[0] == other
        assert runs(state="failed") == [] and len(runs(state="succeeded")) == 3
        assert len(runs(sort="duration")) == 3
        columns = {"offered": ["recipe.epochs", "seed"], "column": ["recipe.epochs"]}
        researcher_client.post("/tables/training-runs/display", columns)
        file = researcher_client.get(url("run-list"), {"csv": "1", "sort": "run"})
        lines = b"".join(file.streaming_content).decode().splitlines()  # type: ignore[attr-defined]
        assert lines[0].endswith(",epochs") and lines[3].endswith(",3")

    def test_a_run_gets_a_name(self, three: list[TrainingRun], researcher_client: Client) -> None:
        run = three[0]
        assert (
            researcher_client.post(url("run-rename", run.pk), {"name": " longer  context "}).status_code
            == 302
        )
        assert "Run 1: longer context" in researcher_client.get(url("run-detail", run.pk)).content.decode()
        found = researcher_client.get(url("run-list"), {"q": "CONTEXT"}).context["table"].body
        assert [line.row for line in found] == [run]
        assert researcher_client.post(url("run-rename", run.pk), {"name": "x" * 101}).status_code == 400
        researcher_client.post(url("run-rename", run.pk), {"name": ""})
        run.refresh_from_db()
        assert run.title == "Run 1"

    def test_accuracy_under_length_control_stands_below_the_plain_one(
        self, three: list[TrainingRun], researcher_client: Client
    ) -> None:
        run = three[0]
        assert run.report is not None
        controlled = {"accuracy": 0.55, "interval": [0.4, 0.7], "n": 9, "longer": 0.8, "shorter": 0.3}
        preference = run.report["preference"] | {"length_controlled": controlled}
        TrainingRun.objects.filter(pk=run.pk).update(report=run.report | {"preference": preference})
        text = researcher_client.get(url("run-detail", run.pk)).content.decode()
        _, _, row = text.partition("This model, length-controlled")
        assert row
        assert "55.0 %" in row[:200]
        assert "[40.0 %, 70.0 %], n 9" in row[:200]

    def test_curves_are_laid_over_each_other(
        self, three: list[TrainingRun], researcher_client: Client
    ) -> None:
        first, second, other = three
        page = researcher_client.get(url("run-compare"), {"run": [f"{second.pk},{first.pk}", str(other.pk)]})
        assert page.context["runs"] == [second, first, other]
        text = page.content.decode()
        names = [f"run {run.number}" for run in (second, first, other)]
        loss = drawn(text, "metric-1")
        assert loss["y"]["name"] == "validation loss"
        assert [series["name"] for series in loss["series"]] == names
        assert [series["style"] for series in loss["series"]] == [run.pk for run in (second, first, other)]
        assert drawn(text, "metric-2")["series"][0]["points"][1] == [2, 0.5]
        only = researcher_client.get(url("run-compare"), {"run": first.pk, "metric": "training loss"})
        assert [drawing["y"]["name"] for _, drawing, _ in only.context["drawings"]] == ["training loss"]
        assert [(difference.key, difference.values) for difference in page.context["differences"]] == [
            ("seed", ["1", "0", "0"]),
            ("epochs", ["20", "20", "3"]),
        ]

    def test_none_too_many_and_strange_ones(
        self, three: list[TrainingRun], researcher_client: Client, outsider: User
    ) -> None:
        assert "No runs selected" in researcher_client.get(url("run-compare")).content.decode()
        page = researcher_client.get(
            url("run-compare"), {"run": f"{three[0].pk},x,-1,{10**30},{10**12},,{three[0].pk}"}
        )
        assert page.context["runs"] == [three[0]]
        elsewhere = Client()
        elsewhere.force_login(outsider)
        answer = elsewhere.get(reverse("training:run-compare", args=["elsewhere"]), {"run": str(three[0].pk)})
        assert answer.context["runs"] == []


def with_accuracy(report: dict | None, accuracy: float) -> dict:
    assert report is not None
    return report | {"preference": report["preference"] | {"accuracy": accuracy}}


def test_a_recipe_without_a_name_is_called_a_custom_one() -> None:
    assert TrainingRun(recipe_name="own").recipe_title == "custom recipe"
    assert TrainingRun(recipe_name="bradley-terry").recipe_title == "bradley-terry"
