"""The registry: tags, cards, and deletion, which refuses what an endpoint could serve."""

from pathlib import Path

import pytest
from django.test import Client
from django.urls import reverse

from apps.accounts.models import AuditEvent, Project, User
from apps.core.errors import Conflict, DomainError, NotFound
from apps.core.storage import artifacts
from apps.rewards.services import deploy
from apps.training import services
from apps.training.card import model_card
from apps.training.models import RewardModel
from apps.training.selectors import model_named, models_of
from apps.training.services import adopt_model, delete_model, tag_model

MANIFEST = {
    "objective": "bradley_terry",
    "backbone": {"kind": "step-encoder", "unfrozen": False},
    "aggregation": "value",
    "reward": {"median": 0.1, "std": 2.0},
    "snapshot": {"name": "desk/first@1", "hash": "h"},
    "criteria": {"polite": {"text": "polite"}},
}
REPORT = {
    "preference": {
        "accuracy": 0.7,
        "interval": [0.6, 0.8],
        "n": 50,
        "baselines": {"longer": {"accuracy": 0.5, "difference": 0.2, "interval": [0.1, 0.3]}},
    },
    "findings": [{"name": "truncated", "sentence": "Some did not fit."}],
}


@pytest.fixture
def model(project: Project, tmp_path: Path) -> RewardModel:
    (tmp_path / "weights").mkdir()
    (tmp_path / "weights" / "model.safetensors").write_bytes(b"weights")
    artifact = artifacts.store_tree(tmp_path / "weights", "models/polite-1")
    return adopt_model(project=project, name="polite", artifact=artifact, manifest=MANIFEST, by=None)


def url(name: str, model: RewardModel) -> str:
    return reverse(f"training:{name}", args=[model.project.slug, model.pk])


class TestDeletion:
    def test_its_artifact_goes_and_its_version_is_never_given_again(
        self, model: RewardModel, django_capture_on_commit_callbacks
    ) -> None:
        with django_capture_on_commit_callbacks(execute=True):
            delete_model(model=model, by=None)
        with pytest.raises(NotFound):
            artifacts.stage(model.artifact)
        assert not models_of(model.project).exists()
        with pytest.raises(NotFound, match="There is no model desk/polite"):
            model_named("desk/polite")
        again = adopt_model(project=model.project, name="polite", artifact="x", manifest=MANIFEST, by=None)
        assert again.version == 2
        assert AuditEvent.objects.get(verb="model.deleted").target == "desk/polite@1"
        with pytest.raises(Conflict, match="has been deleted already"):
            delete_model(model=model, by=None)

    def test_what_is_deployed_or_could_be_rolled_back_to_stays(self, model: RewardModel) -> None:
        deploy(model=model, endpoint_name="desk", project=model.project, by=None)
        other = adopt_model(project=model.project, name="other", artifact="x", manifest=MANIFEST, by=None)
        deploy(model=other, endpoint_name="desk", project=model.project, by=None)
        with pytest.raises(Conflict, match=r"cannot be deleted: the endpoint desk@1 uses it"):
            delete_model(model=model, by=None)
        assert artifacts.stage(model.artifact).is_dir()

    def test_what_is_deleted_is_not_deployed(self, model: RewardModel) -> None:
        delete_model(model=model, by=None)
        with pytest.raises(Conflict, match="has been deleted"):
            deploy(model=model, endpoint_name="desk", project=model.project, by=None)

    def test_from_its_page(self, model: RewardModel, researcher_client: Client) -> None:
        answer = researcher_client.post(url("model-delete", model))
        assert answer["Location"] == reverse("training:model-list", args=["desk"])
        model.refresh_from_db()
        assert model.deleted_at is not None
        assert researcher_client.get(url("model-detail", model)).status_code == 404


class TestTags:
    def test_words_with_commas_or_blanks_between_them(
        self, model: RewardModel, researcher_client: Client
    ) -> None:
        assert (
            researcher_client.post(url("model-tags", model), {"tags": "best, for-support best"}).status_code
            == 302
        )
        model.refresh_from_db()
        assert model.tags == ["best", "for-support"]
        for page in (url("model-detail", model), reverse("training:model-list", args=["desk"])):
            assert "for-support" in researcher_client.get(page).content.decode()

    @pytest.mark.parametrize("tags", [["not a slug"], [f"tag-{place}" for place in range(30)]])
    def test_what_is_no_tag(self, model: RewardModel, tags: list[str]) -> None:
        with pytest.raises(DomainError):
            tag_model(model=model, tags=tags, by=None)
        model.refresh_from_db()
        assert model.tags == []


class TestCard:
    def test_it_says_what_the_model_is_and_how_good(self, model: RewardModel) -> None:
        services.record_evaluation(
            model=model, dataset_version=None, source="desk/first@1", report=REPORT, by=None
        )
        text = model_card(model)
        for piece in (
            "# desk/polite@1\n",
            "- **Objective**: bradley_terry",
            "- **Backbone**: kind step-encoder, unfrozen False",
            "- **Raw rewards in training**: median 0.1, standard deviation 2.0",
            "- **Criteria**: polite",
            "- **Dataset**: desk/first@1",
            "| Held-out comparisons: Accuracy | 70.0 % [60.0 %, 80.0 %] | 50 | longer wins: 50.0 % |",
            "- Some did not fit.",
        ):
            assert piece in text

    def test_as_a_file(self, model: RewardModel, researcher_client: Client) -> None:
        answer = researcher_client.get(url("model-card", model))
        assert answer["Content-Type"].startswith("text/markdown")
        assert 'filename="polite-1.md"' in answer["Content-Disposition"]
        assert "No evaluation in this project." in answer.content.decode()


def test_wrong_methods(model: RewardModel, researcher_client: Client) -> None:
    for name in ("model-tags", "model-delete"):
        assert researcher_client.get(url(name, model)).status_code == 405
    assert researcher_client.post(url("model-card", model)).status_code == 405


class TestACompared:
    """What `compare` kept, on its page."""

    FLIP = {
        "task": "parcel",
        "item": "1",
        "annotator": "ann",
        "chosen": {"id": None, "hash": "f" * 64, "raw": 1.5},
        "rejected": {"id": None, "hash": "e" * 64, "raw": 0.5},
        "margin": 1.0,
        "other_margin": -0.25,
        "won": True,
    }

    def page(self, model: RewardModel, researcher_client: Client, **against: object) -> str:
        found = {
            "model": "desk/polite@2",
            "difference": 0.1,
            "interval": [0.02, 0.18],
            "n": 50,
            "flips": {"won": 6, "lost": 1, "examples": [self.FLIP]},
            "distance": 0.25,
        }
        row = services.record_evaluation(
            model=model,
            dataset_version=None,
            source="x",
            report=REPORT | {"against": found | against},
            by=None,
        )
        listed = researcher_client.get(url("model-detail", model)).content.decode()
        address = reverse("training:evaluation-detail", args=[model.project.slug, row.pk])
        assert address in listed
        return researcher_client.get(address).content.decode()

    def test_says_who_is_better_and_shows_the_flips(
        self, model: RewardModel, researcher_client: Client
    ) -> None:
        page = self.page(model, researcher_client)
        assert (
            "Its accuracy is 10.0 points higher than that of desk/polite@2 on the same 50 comparisons" in page
        )
        assert "(95 % interval [2.0, 18.0])." in page
        assert "6 correct only here, 1 correct only there" in page
        assert "Correct only here" in page
        assert "0.250" in page
        assert "The model is correct on 70.0 % of 50" in page

    def test_a_difference_that_may_be_chance_is_called_so(
        self, model: RewardModel, researcher_client: Client
    ) -> None:
        assert "The difference may be chance." in self.page(
            model, researcher_client, difference=-0.01, interval=[-0.1, 0.08]
        )

    def test_a_published_benchmark_by_subset_and_style(
        self, model: RewardModel, researcher_client: Client
    ) -> None:
        matrix = [[0.71, 0.52, 0.33], [0.81, 0.72, 0.54], [0.91, 0.83, 0.74]]
        subsets = {"chat": {"average": 0.678, "matrix": matrix}, "Ties": {"score": None, "n": 12}}
        published = {
            "benchmark": "rm-bench",
            "n": 90,
            "score": 0.678,
            "interval": [0.6, 0.7],
            "subsets": subsets,
        }
        row = services.record_evaluation(
            model=model, dataset_version=None, source="rm.json", report={"published": published}, by=None
        )
        address = reverse("training:evaluation-detail", args=[model.project.slug, row.pk])
        page = researcher_client.get(address).content.decode()
        assert "rm-bench" in page and "[0.60, 0.70], n 90" in page
        assert "chat, style matrix" in page and "Ties, style matrix" not in page
        assert [f"{100 * value:.1f} %" in page for row in matrix for value in row] == [True] * 9

    def test_two_that_decide_alike(self, model: RewardModel, researcher_client: Client) -> None:
        alike = {"won": 0, "lost": 0, "examples": []}
        page = self.page(model, researcher_client, difference=0.0, interval=[0.0, 0.0], flips=alike)
        assert "It decides all 50 comparisons as desk/polite@2 does." in page

    def test_without_a_strict_comparison_there_is_nothing_to_say(
        self, model: RewardModel, researcher_client: Client
    ) -> None:
        page = self.page(model, researcher_client, difference=None, interval=None, n=0)
        assert "Its accuracy is" not in page

    def test_of_another_project_is_none(self, model: RewardModel, outsider: User, client: Client) -> None:
        row = services.record_evaluation(model=model, dataset_version=None, source="x", report={}, by=None)
        client.force_login(outsider)
        address = reverse("training:evaluation-detail", args=["elsewhere", row.pk])
        assert client.get(address).status_code == 404
